//! What a survey found: how large the unit is, what it can, and which sizes it likes (SBC-4, SPC-5).
//!
//! Facts are collected answer by answer; [`Geometry`] is made of them at the end. Zero in [`Geometry::limits`] means
//! that the unit does not say. Answers that contradict each other, and pages that a unit lists but cannot give, are told
//! as [`Doubt`]s. Always true: there is a capacity, and the block size is one that is served.

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

/// Doubts that are kept; further ones are not told.
pub const DOUBTS_MAX: usize = 16;

/// A disk as its unit describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Who it is.
    pub identity: Identity,
    /// Logical blocks.
    pub capacity: BlockCount,
    /// The length of one.
    pub block_size: BlockSize,
    /// Logical blocks per physical block, as a power of two; 0 is one, or not told.
    pub physical_block_exponent: u8,
    /// The first logical block that begins a physical one.
    pub lowest_aligned_lba: u16,
    /// VPD page B0h; all zero where there is none.
    pub limits: BlockLimits,
    /// How blocks are unmapped, if they can be.
    pub unmap: Option<UnmapMethod>,
    /// Unmapped blocks read as zeroes.
    pub unmapped_reads_zeroes: bool,
    /// Whether there is a place for each block; `None` without VPD page B2h.
    pub provisioning: Option<ProvisioningType>,
    /// Whether the medium turns; not reported without VPD page B1h.
    pub rotation: RotationRate,
    /// The size of the box.
    pub form_factor: FormFactor,
    /// The medium cannot be written.
    pub write_protected: bool,
    /// The DPO and FUA bits may be set.
    pub fua: bool,
    /// A write may end before it is on the medium; `None` where the unit does not say.
    pub write_cache: Option<bool>,
    /// How warm it was, where the survey asked and the unit told.
    pub temperature: Option<Temperature>,
    /// What does not fit together.
    pub doubts: Vec<Doubt>,
}

/// Who a unit says to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// T10 VENDOR IDENTIFICATION.
    pub vendor: Ascii<8>,
    /// PRODUCT IDENTIFICATION.
    pub product: Ascii<16>,
    /// PRODUCT REVISION LEVEL.
    pub revision: Ascii<4>,
    /// The SPC it claims.
    pub version: SpcVersion,
    /// The medium can be removed.
    pub removable: bool,
    /// It says to take more than one command at a time (CMDQUE).
    pub command_queuing: bool,
    /// VPD page 80h without the spaces around; bytes that are not printable are escaped.
    pub serial: Option<String>,
    /// The best name of VPD page 83h, as text with its kind.
    pub name: Option<String>,
}

/// How blocks are unmapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnmapMethod {
    /// UNMAP.
    Unmap,
    /// WRITE SAME(16) with the UNMAP bit.
    WriteSame16,
    /// WRITE SAME(10) with the UNMAP bit.
    WriteSame10,
}

/// Something that a unit says and that cannot be right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// READ CAPACITY(10) and (16) tell different sizes; (10) counts, and the rest of (16) does not.
    Capacities {
        /// The last block and the block length by (10).
        ten: Capacity10,
        /// The last block by (16).
        last_lba: u64,
    },
    /// A page that the unit lists cannot be read.
    Page(VpdPageCode),
    /// No mode page can be read: write protection and caches are not known.
    NoModePages,
    /// VPD page B2h offers a way to unmap, READ CAPACITY(16) says that unmapping is off; it is.
    UnmapNotEnabled,
    /// READ CAPACITY(16) says that unmapping is on, and there is no usable way.
    NoWayToUnmap,
}

/// What of VPD page B2h counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Provisioning {
    unmap: bool,
    write_same_16: bool,
    write_same_10: bool,
    reads_zeroes: bool,
    kind: ProvisioningType,
}

/// The answers of a survey so far.
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
    /// The length of a physical block, in logical ones.
    pub const fn physical_blocks(&self) -> u64 {
        1 << self.physical_block_exponent
    }

    /// Bytes of the whole disk; saturates.
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

    /// Puts the answers together. An error is a unit that is not served.
    pub(super) fn into_geometry(mut self) -> Result<Geometry, Error> {
        let inquiry = self.inquiry.expect("a survey ends only after INQUIRY was answered");
        let ten = self.ten.expect("a survey ends only after READ CAPACITY(10) was answered");
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

    /// READ CAPACITY(16), unless (10) knows better: it is the command that every bridge was tested with.
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

    /// The way to unmap that Linux would choose.
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
