//! Commands of block devices (SBC-4): one file per family, its rows in [`ROWS`].
//!
//! Checked in this order: fields that must be zero, that the blocks exist, how many they are. A length of zero is
//! no error and does nothing, but its address must exist. There is no protection information: RDPROTECT and its
//! kin must be zero. DPO and GROUP NUMBER change nothing and are not looked at; nor are reserved bits.
//!
//! Left out: 32-byte CDBs, REASSIGN BLOCKS, streams, zones, tokens.

mod atomic;
mod cache;
mod capacity;
mod defects;
mod format;
mod lba_status;
mod power;
mod presence;
mod read_write;
mod sanitize;
#[cfg(test)]
mod tests;
mod unmap;
mod verify;
mod write_same;

pub use presence::InsertedMedium;
pub(super) use sanitize::resume as resume_sanitize;

use super::spc::{Decision, fetch_list, fields, settle};
use super::table::Row;
use super::{DataPhase, MediumPlan, Plan, Unit, limits};
use crate::medium::MediumOp;
use core::hint::cold_path;
use units::Extent;
use wire::scsi::cdb::CdbWidth;
use wire::scsi::sense::{AdditionalSense, Sense};

/// The family's rows.
pub const ROWS: &[Row] = &[
    read_write::READ_6,
    read_write::READ_10,
    read_write::READ_12,
    read_write::READ_16,
    read_write::WRITE_6,
    read_write::WRITE_10,
    read_write::WRITE_12,
    read_write::WRITE_16,
    capacity::READ_CAPACITY_10,
    capacity::READ_CAPACITY_16,
    lba_status::GET_LBA_STATUS,
    cache::SYNCHRONIZE_CACHE_10,
    cache::SYNCHRONIZE_CACHE_16,
    cache::PRE_FETCH_10,
    cache::PRE_FETCH_16,
    verify::VERIFY_10,
    verify::VERIFY_12,
    verify::VERIFY_16,
    verify::WRITE_AND_VERIFY_10,
    verify::WRITE_AND_VERIFY_12,
    verify::WRITE_AND_VERIFY_16,
    write_same::WRITE_SAME_10,
    write_same::WRITE_SAME_16,
    unmap::UNMAP,
    atomic::COMPARE_AND_WRITE,
    atomic::ORWRITE_16,
    atomic::WRITE_ATOMIC_16,
    power::START_STOP_UNIT,
    power::PREVENT_ALLOW_MEDIUM_REMOVAL,
    format::FORMAT_UNIT,
    sanitize::OVERWRITE,
    sanitize::BLOCK_ERASE,
    sanitize::CRYPTOGRAPHIC_ERASE,
    sanitize::EXIT_FAILURE_MODE,
    defects::READ_DEFECT_DATA_10,
    defects::READ_DEFECT_DATA_12,
];

/// Protection information was asked for (bits 7:5 of byte 1), of which the unit has none.
fn without_protection(protect: u8) -> Result<(), Sense> {
    if protect == 0 { Ok(()) } else { Err(Sense::invalid_field_in_cdb(1, Some(7))) }
}

/// `blocks` blocks from `lba` on, if the unit has them all. INFORMATION tells the first that it has not.
fn existing(unit: &Unit, lba: u64, blocks: u64) -> Result<Extent, Sense> {
    let extent = Extent::new(lba, blocks);
    if extent.fits(unit.config.capacity) {
        return Ok(extent);
    }
    cold_path();
    let out_of_range = Sense::illegal_request(AdditionalSense::LOGICAL_BLOCK_ADDRESS_OUT_OF_RANGE);
    Err(out_of_range.with_information(lba.max(unit.config.capacity.0)))
}

/// The same, where no blocks stand for all from `lba` on.
fn existing_to_end(unit: &Unit, lba: u64, blocks: u64) -> Result<Extent, Sense> {
    let extent = existing(unit, lba, blocks)?;
    if extent.is_empty() { existing(unit, lba, unit.config.capacity.0 - lba) } else { Ok(extent) }
}

/// The blocks of a transfer, if the unit has them and one command may move so many.
fn transferable(unit: &Unit, width: CdbWidth, lba: u64, blocks: u32) -> Result<Extent, Sense> {
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
const fn bytes_of(unit: &Unit, extent: Extent) -> u32 {
    extent.blocks.0 as u32 * unit.config.block_size.bytes()
}

/// A medium operation with the data of its blocks; nothing to do without blocks.
const fn moving(unit: &Unit, op: MediumOp, extent: Extent, data: DataPhase) -> Plan {
    if extent.is_empty() {
        return Plan::Good;
    }
    Plan::Medium(MediumPlan { op, extent, data, bytes: bytes_of(unit, extent) })
}

/// The whole medium.
const fn everything(unit: &Unit) -> Extent {
    Extent::new(0, unit.config.capacity.0)
}

/// Whether a write must be durable before it ends: FUA, or the write cache is off.
const fn must_be_durable(unit: &Unit, fua: bool) -> bool {
    fua || !unit.write_cache_enabled()
}
