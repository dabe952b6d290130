//! Logical units below an interface: `hostN/targetN:C:T/N:C:T:L` of sysfs.
//!
//! The kernel keeps the vital product data pages that it has read; over Bulk-Only it reads none (`skip_vpd_pages`), so
//! a missing page says nothing about the drive. Left out: partitions, file systems, who uses them.

use crate::tree::Tree;
use std::fmt;
use wire::Legible;
use wire::scsi::vpd::{BlockLimits, LogicalBlockProvisioning, UnitSerialNumber};

/// A logical unit of an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Disk {
    /// Its address, such as `6:0:0:1`.
    pub address: String,
    /// Its directory in sysfs.
    pub path: String,
    /// Its block device, such as `sda`; `None` for other units, and without a driver.
    pub node: Option<String>,
    /// Its generic device, such as `sg0`.
    pub generic: Option<String>,
    /// Its logical unit number.
    pub lun: u64,
    /// T10 vendor identification.
    pub vendor: Option<String>,
    /// Product identification.
    pub model: Option<String>,
    /// Product revision.
    pub revision: Option<String>,
    /// Commands that the kernel keeps in flight at most.
    pub queue_depth: Option<u64>,
    /// Capacity in bytes.
    pub bytes: Option<u64>,
    /// Bytes of a logical block.
    pub block_bytes: Option<u32>,
    /// The disk turns, as far as the kernel knows.
    pub rotational: Option<bool>,
    /// `provisioning_mode`: how the kernel unmaps blocks, or `full` if it does not.
    pub provisioning_mode: Option<String>,
    /// Bytes of one discard; zero if the kernel sends none.
    pub discard_bytes_max: Option<u64>,
    /// The unmap support that the unit reports; `None` if the kernel has not asked.
    pub unmap: Option<UnmapSupport>,
    /// Its own serial number (page 80h).
    pub serial: Option<String>,
}

/// The unmap support that a unit reports: pages B0h and B2h (SBC-4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnmapSupport {
    /// MAXIMUM UNMAP LBA COUNT; zero: no UNMAP.
    pub lba_count_max: u32,
    /// LBPU: the UNMAP command is supported.
    pub unmap: bool,
    /// LBPWS: WRITE SAME (16) can unmap.
    pub write_same_16: bool,
    /// LBPWS10: WRITE SAME (10) can unmap.
    pub write_same_10: bool,
}

/// A command that unmaps blocks, by the kernel's word in `provisioning_mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnmapCommand {
    /// UNMAP.
    Unmap,
    /// WRITE SAME (16) with the bit UNMAP.
    WriteSame16,
    /// WRITE SAME (10) with the bit UNMAP.
    WriteSame10,
}

impl UnmapCommand {
    /// Returns the kernel's name for it.
    pub const fn mode(self) -> &'static str {
        match self {
            Self::Unmap => "unmap",
            Self::WriteSame16 => "writesame_16",
            Self::WriteSame10 => "writesame_10",
        }
    }
}

impl fmt::Display for UnmapCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unmap => "UNMAP",
            Self::WriteSame16 => "WRITE SAME (16)",
            Self::WriteSame10 => "WRITE SAME (10)",
        })
    }
}

impl Disk {
    /// Whether `/dev/NODE` is this disk or a partition of it.
    pub fn is_node(&self, node: &str) -> bool {
        let is_partition = |rest: &str| rest.chars().all(|letter| letter.is_ascii_digit());
        let disk = self.node.as_deref().and_then(|own| node.strip_prefix(own)).is_some_and(is_partition);
        disk || self.generic.as_deref() == Some(node)
    }

    /// The units of one SCSI host.
    pub(super) fn read_all(tree: &Tree, host: &str) -> Vec<Self> {
        let targets = tree.names(host, |name| name.starts_with("target"));
        let units = targets.iter().flat_map(|target| {
            let target = format!("{host}/{target}");
            let is_address = |name: &str| name.split(':').count() == 4;
            tree.names(&target, is_address).into_iter().map(move |unit| (format!("{target}/{unit}"), unit))
        });
        units.map(|(path, address)| Self::read(tree, path, address)).collect()
    }

    fn read(tree: &Tree, path: String, address: String) -> Self {
        /// The kernel's unit of `size`, whatever the logical block is.
        const SECTOR_BYTES: u64 = 512;
        let at = |name: &str| format!("{path}/{name}");
        let text = |name: &str| tree.text(&at(name)).ok().filter(|text| !text.is_empty());
        let first = |name: &str| tree.names(&at(name), |_| true).into_iter().next();
        let node = first("block");
        let block = node.as_ref().map(|node| at(&format!("block/{node}")));
        let of_block = |name: &str| block.as_ref().and_then(|block| tree.number(&format!("{block}/{name}")));
        Self {
            lun: address.rsplit(':').next().and_then(|lun| lun.parse().ok()).unwrap_or_default(),
            generic: first("scsi_generic"),
            vendor: text("vendor"),
            model: text("model"),
            revision: text("rev"),
            queue_depth: tree.number(&at("queue_depth")),
            bytes: of_block("size").and_then(|sectors| sectors.checked_mul(SECTOR_BYTES)),
            block_bytes: of_block("queue/logical_block_size").and_then(|bytes| bytes.try_into().ok()),
            rotational: of_block("queue/rotational").map(|turns| turns != 0),
            provisioning_mode: text(&format!("scsi_disk/{address}/provisioning_mode")),
            discard_bytes_max: of_block("queue/discard_max_bytes"),
            unmap: UnmapSupport::read(tree, &path),
            serial: serial(tree, &at("vpd_pg80")),
            node,
            address,
            path,
        }
    }
}

impl UnmapSupport {
    /// The command that unmaps, chosen as the kernel does where the unit says that it is thin (drivers/scsi/sd.c); one of
    /// two signs of UNMAP is enough if there is no other command.
    pub const fn command(self) -> Option<UnmapCommand> {
        let Self { lba_count_max, unmap, write_same_16, write_same_10 } = self;
        match (unmap, lba_count_max > 0) {
            (true, true) => Some(UnmapCommand::Unmap),
            _ if write_same_16 => Some(UnmapCommand::WriteSame16),
            _ if write_same_10 => Some(UnmapCommand::WriteSame10),
            (false, false) => None,
            _ => Some(UnmapCommand::Unmap),
        }
    }

    fn read(tree: &Tree, unit: &str) -> Option<Self> {
        let limits = tree.bytes(&format!("{unit}/vpd_pgb0")).ok();
        let provisioning = tree.bytes(&format!("{unit}/vpd_pgb2")).ok();
        let limits = limits.as_deref().and_then(|page| BlockLimits::decode(page).ok());
        let provisioning =
            provisioning.as_deref().and_then(|page| LogicalBlockProvisioning::decode(page).ok());
        if limits.is_none() && provisioning.is_none() {
            return None;
        }
        let mut support = Self::default();
        if let Some(limits) = limits {
            support.lba_count_max = limits.maximum_unmap_lba_count;
        }
        if let Some(provisioning) = provisioning {
            support.unmap = provisioning.unmap;
            support.write_same_16 = provisioning.write_same_16;
            support.write_same_10 = provisioning.write_same_10;
        }
        Some(support)
    }
}

/// Reads the serial number of VPD page 80h from a file of sysfs.
pub(crate) fn serial(tree: &Tree, path: &str) -> Option<String> {
    let page = tree.bytes(path).ok()?;
    let serial = UnitSerialNumber::decode(&page).ok()?.serial;
    let serial = Legible(serial).to_string().trim().to_owned();
    (!serial.is_empty()).then_some(serial)
}
