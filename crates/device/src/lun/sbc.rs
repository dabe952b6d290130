//! Commands of block devices (SBC-4): one file per group of commands.
//!
//! Checked in this order: fields that must be zero, that the blocks exist, how many they are. A length of zero is
//! no error and does nothing, but its address must exist. There is no protection information: RDPROTECT and its
//! kin must be zero. DPO and GROUP NUMBER change nothing and are not looked at; nor are reserved bits.
//!
//! Left out: 32-byte CDBs, REASSIGN BLOCKS, streams, zones, tokens.

pub(super) mod atomic;
pub(super) mod cache;
pub(super) mod capacity;
pub(super) mod defects;
pub(super) mod format;
pub(super) mod lba_status;
pub(super) mod power;
mod presence;
pub(super) mod read_write;
pub(super) mod sanitize;
#[cfg(test)]
mod tests;
pub(super) mod unmap;
pub(super) mod verify;
pub(super) mod write_same;

pub use presence::InsertedMedium;
pub(crate) use sanitize::resume as resume_sanitize;

use super::plan::{Decision, fetch_list, fields, settle};
use super::{DataPhase, LogicalUnit, MediumPlan, Plan, limits};
use crate::medium::MediumOp;
use core::hint::cold_path;
use units::Extent;
use wire::scsi::cdb::CdbWidth;
use wire::scsi::sense::{AdditionalSense, Sense};

/// Protection information was asked for (bits 7:5 of byte 1), of which the unit has none.
fn without_protection(protect: u8) -> Result<(), Sense> {
    if protect == 0 { Ok(()) } else { Err(Sense::invalid_field_in_cdb(1, Some(7))) }
}

/// `blocks` blocks from `lba` on, if they all exist. INFORMATION is the first block that does not exist.
pub(super) fn existing(unit: &LogicalUnit, lba: u64, blocks: u64) -> Result<Extent, Sense> {
    let extent = Extent::new(lba, blocks);
    if extent.fits(unit.config.capacity) {
        return Ok(extent);
    }
    cold_path();
    let out_of_range = Sense::illegal_request(AdditionalSense::LOGICAL_BLOCK_ADDRESS_OUT_OF_RANGE);
    Err(out_of_range.with_information(lba.max(unit.config.capacity.0)))
}

/// Like [`existing`], with zero blocks meaning all from `lba` on.
fn existing_to_end(unit: &LogicalUnit, lba: u64, blocks: u64) -> Result<Extent, Sense> {
    let extent = existing(unit, lba, blocks)?;
    if extent.is_empty() { existing(unit, lba, unit.config.capacity.0 - lba) } else { Ok(extent) }
}

/// The blocks of a transfer, if the unit has them and one command may move so many.
fn transferable(unit: &LogicalUnit, width: CdbWidth, lba: u64, blocks: u32) -> Result<Extent, Sense> {
    let extent = existing(unit, lba, blocks.into())?;
    if blocks > limits::transfer_blocks_max(unit.config.block_size) {
        cold_path();
        return Err(Sense::invalid_field_in_cdb(length_field(width), None));
    }
    Ok(extent)
}

/// Byte of the TRANSFER LENGTH, VERIFICATION LENGTH or NUMBER OF LOGICAL BLOCKS field.
const fn length_field(width: CdbWidth) -> u16 {
    match width {
        CdbWidth::Six => 4,
        CdbWidth::Ten => 7,
        CdbWidth::Twelve => 6,
        CdbWidth::Sixteen => 10,
    }
}

/// Bytes of as many blocks; `extent` has passed a limit that keeps them below 4 GiB.
const fn bytes_of(unit: &LogicalUnit, extent: Extent) -> u32 {
    extent.blocks.0 as u32 * unit.config.block_size.bytes()
}

/// A medium operation with the data of its blocks; nothing to do without blocks.
pub(super) const fn moving(unit: &LogicalUnit, op: MediumOp, extent: Extent, data: DataPhase) -> Plan {
    if extent.is_empty() {
        return Plan::Good;
    }
    Plan::Medium(MediumPlan { op, extent, data, bytes: bytes_of(unit, extent) })
}

/// The whole medium.
const fn everything(unit: &LogicalUnit) -> Extent {
    Extent::new(0, unit.config.capacity.0)
}

/// Whether a write must be durable before it ends: FUA, or the write cache is off.
fn must_be_durable(unit: &LogicalUnit, fua: bool) -> bool {
    fua || !unit.write_cache_enabled()
}
