//! The result of identification: capacity, capabilities and preferred sizes (SBC-4, SPC-5).
//!
//! Facts are collected answer by answer; [`Geometry`] is built from them at the end. Zero in
//! [`Geometry::limits`] means not reported. Contradictory answers, and listed pages that cannot be
//! read, are reported as [`Doubt`]s. Always true: there is a capacity, and the block size is
//! supported.

use super::request::Error;
use super::temperature::Temperature;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use units::{BlockCount, BlockSize};
use wire::scsi::ascii::Ascii;
use wire::scsi::capacity::{Capacity10, Capacity16};
use wire::scsi::inquiry::{SpcVersion, StandardInquiry};
use wire::scsi::mode::DeviceSpecific;
use wire::scsi::vpd::{
    BlockDeviceCharacteristics, BlockLimits, FormFactor, LogicalBlockProvisioning, ProvisioningType,
    RotationRate, UnmappedReads, VpdPageCode,
};

/// Doubts kept; further ones are dropped.
pub const DOUBTS_MAX: usize = 16;

/// A disk as its unit describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Identification strings.
    pub identity: Identity,
    /// Logical blocks.
    pub capacity: BlockCount,
    /// Logical block length.
    pub block_size: BlockSize,
    /// Logical blocks per physical block, as a power of two; 0 if one or not reported.
    pub physical_block_exponent: u8,
    /// The first logical block aligned to a physical one.
    pub lowest_aligned_lba: u16,
    /// VPD page B0h; all zero where there is none.
    pub limits: BlockLimits,
    /// How blocks are unmapped, if they can be.
    pub unmap: Option<UnmapMethod>,
    /// Unmapped blocks read as zeroes.
    pub unmapped_reads_zeroes: bool,
    /// The provisioning type; `None` without VPD page B2h.
    pub provisioning: Option<ProvisioningType>,
    /// Rotation rate; not reported without VPD page B1h.
    pub rotation: RotationRate,
    /// Form factor.
    pub form_factor: FormFactor,
    /// The medium is write protected.
    pub write_protected: bool,
    /// The DPO and FUA bits may be set.
    pub fua: bool,
    /// Write cache enabled; `None` if not reported.
    pub write_cache: Option<bool>,
    /// The temperature, if requested and reported.
    pub temperature: Option<Temperature>,
    /// Contradictions found.
    pub doubts: Vec<Doubt>,
}

/// Identification strings of a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// T10 VENDOR IDENTIFICATION.
    pub vendor: Ascii<8>,
    /// PRODUCT IDENTIFICATION.
    pub product: Ascii<16>,
    /// PRODUCT REVISION LEVEL.
    pub revision: Ascii<4>,
    /// The SPC version it claims.
    pub version: SpcVersion,
    /// The medium is removable.
    pub removable: bool,
    /// It reports command queuing (CMDQUE).
    pub command_queuing: bool,
    /// VPD page 80h without surrounding spaces; non-printable bytes are escaped.
    pub serial: Option<String>,
    /// The best name of VPD page 83h, as text with its type.
    pub name: Option<String>,
}

/// The command that unmaps blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnmapMethod {
    /// UNMAP.
    Unmap,
    /// WRITE SAME(16) with the UNMAP bit.
    WriteSame16,
    /// WRITE SAME(10) with the UNMAP bit.
    WriteSame10,
}

/// A contradiction in what a unit reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// READ CAPACITY(10) and (16) disagree; (10) is used, and the rest of (16) ignored.
    Capacities {
        /// Last LBA and block length of (10).
        ten: Capacity10,
        /// Last LBA of (16).
        last_lba: u64,
    },
    /// A page that the unit lists cannot be read.
    Page(VpdPageCode),
    /// No mode page can be read: write protection and caches are unknown.
    NoModePages,
    /// VPD page B2h offers unmapping, READ CAPACITY(16) reports it as disabled; it is not used.
    UnmapNotEnabled,
    /// READ CAPACITY(16) reports unmapping, but there is no usable command.
    NoWayToUnmap,
}

/// The relevant part of VPD page B2h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Provisioning {
    unmap: bool,
    write_same_16: bool,
    write_same_10: bool,
    reads_zeroes: bool,
    kind: ProvisioningType,
}

/// The answers so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    pub(super) inquiry: Option<StandardInquiry>,
    pub(super) ten: Option<Capacity10>,
    pub(super) sixteen: Option<Capacity16>,
    pub(super) serial: Option<String>,
    pub(super) name: Option<String>,
    pub(super) limits: Option<BlockLimits>,
    pub(super) characteristics: Option<BlockDeviceCharacteristics>,
    pub(super) provisioning: Option<Provisioning>,
    pub(super) device_specific: Option<DeviceSpecific>,
    pub(super) write_cache: Option<bool>,
    pub(super) temperature: Option<Temperature>,
    pub(super) doubts: Vec<Doubt>,
}

impl Geometry {
    /// Returns the physical block length, in logical blocks.
    pub const fn physical_blocks(&self) -> u64 {
        1 << self.physical_block_exponent
    }

    /// Returns the capacity in bytes; saturates.
    pub fn bytes(&self) -> u64 {
        self.block_size.bytes_in(self.capacity).map_or(u64::MAX, |bytes| bytes.0)
    }
}

impl Provisioning {
    pub(super) fn of(page: &LogicalBlockProvisioning<'_>) -> Self {
        Self {
            unmap: page.unmap,
            write_same_16: page.write_same_16,
            write_same_10: page.write_same_10,
            reads_zeroes: page.unmapped_reads == UnmappedReads::Zeroes,
            kind: page.provisioning_type,
        }
    }

    const fn offers_anything(self) -> bool {
        self.unmap || self.write_same_16 || self.write_same_10
    }
}

impl Facts {
    pub(super) fn doubt(&mut self, doubt: Doubt) {
        if self.doubts.len() < DOUBTS_MAX {
            self.doubts.push(doubt);
        }
    }

    /// Combines the answers. An error is an unsupported unit.
    pub(super) fn into_geometry(mut self) -> Result<Geometry, Error> {
        let inquiry = self.inquiry.expect("identification ends only after INQUIRY was answered");
        let ten = self.ten.expect("identification ends only after READ CAPACITY(10) was answered");
        let sixteen = self.agreeing_sixteen(ten);
        let last_lba = sixteen.map_or(ten.last_lba.into(), |sixteen| sixteen.last_lba);
        let block_length = sixteen.map_or(ten.block_length, |sixteen| sixteen.block_length);
        let limits = self.limits.unwrap_or_default();
        let device_specific = self.device_specific.unwrap_or_default();
        let unmap = self.unmap_method(sixteen, &limits);
        let reads_zeroes = sixteen.is_some_and(|sixteen| sixteen.provisioning_reads_zeroes)
            || self.provisioning.is_some_and(|provisioning| provisioning.reads_zeroes);
        Ok(Geometry {
            identity: Identity {
                vendor: inquiry.vendor,
                product: inquiry.product,
                revision: inquiry.revision,
                version: inquiry.version,
                removable: inquiry.removable,
                command_queuing: inquiry.command_queuing,
                serial: self.serial,
                name: self.name,
            },
            capacity: BlockCount(last_lba.saturating_add(1)),
            block_size: BlockSize::from_bytes(block_length).ok_or(Error::BlockLength(block_length))?,
            physical_block_exponent: sixteen.map_or(0, |sixteen| sixteen.physical_block_exponent),
            lowest_aligned_lba: sixteen.map_or(0, |sixteen| sixteen.lowest_aligned_lba),
            limits,
            unmap,
            unmapped_reads_zeroes: unmap.is_some() && reads_zeroes,
            provisioning: self.provisioning.map(|provisioning| provisioning.kind),
            rotation: self.characteristics.map_or(RotationRate::NotReported, |page| page.rotation_rate),
            form_factor: self.characteristics.map_or(FormFactor::NotReported, |page| page.form_factor),
            write_protected: device_specific.write_protected,
            fua: device_specific.dpo_fua,
            write_cache: self.write_cache,
            temperature: self.temperature,
            doubts: self.doubts,
        })
    }

    /// Returns READ CAPACITY(16), unless (10) contradicts it: every bridge is tested with (10).
    fn agreeing_sixteen(&mut self, ten: Capacity10) -> Option<Capacity16> {
        let sixteen = self.sixteen?;
        let said = u64::from(ten.last_lba);
        let same_end = ten.last_lba == u32::MAX || said == sixteen.last_lba;
        if same_end && ten.block_length == sixteen.block_length {
            return Some(sixteen);
        }
        self.doubt(Doubt::Capacities { ten, last_lba: sixteen.last_lba });
        None
    }

    /// Returns the unmap command that Linux would choose.
    fn unmap_method(&mut self, sixteen: Option<Capacity16>, limits: &BlockLimits) -> Option<UnmapMethod> {
        let enabled = sixteen.is_some_and(|sixteen| sixteen.provisioning_management);
        let can_unmap = limits.maximum_unmap_lba_count > 0;
        if !enabled {
            if self.provisioning.is_some_and(Provisioning::offers_anything) {
                self.doubt(Doubt::UnmapNotEnabled);
            }
            return None;
        }
        let method = match self.provisioning {
            Some(offered) if offered.unmap && can_unmap => Some(UnmapMethod::Unmap),
            Some(offered) if offered.write_same_16 => Some(UnmapMethod::WriteSame16),
            Some(offered) if offered.write_same_10 => Some(UnmapMethod::WriteSame10),
            Some(_) => None,
            // Before SBC-3 there was no page to say how.
            None if can_unmap => Some(UnmapMethod::Unmap),
            None => Some(UnmapMethod::WriteSame16),
        };
        if method.is_none() {
            self.doubt(Doubt::NoWayToUnmap);
        }
        method
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.vendor, self.product, self.revision)
    }
}

impl fmt::Display for Geometry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (blocks, bytes) = (self.capacity.0, self.block_size.bytes());
        write!(f, "{}, {blocks} blocks of {bytes} bytes", self.identity)
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Capacities { ten, last_lba } => {
                write!(f, "READ CAPACITY(10) says {ten}, (16) says last LBA {last_lba}")
            }
            Self::Page(page) => write!(f, "VPD page {page} is listed and cannot be read"),
            Self::NoModePages => f.write_str("no mode page can be read"),
            Self::UnmapNotEnabled => f.write_str("unmapping is offered (B2h) but not enabled (LBPME)"),
            Self::NoWayToUnmap => f.write_str("unmapping is enabled (LBPME) but there is no way to do it"),
        }
    }
}
