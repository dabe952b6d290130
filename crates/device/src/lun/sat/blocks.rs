//! ATA commands that touch the medium: reads, writes, verify, flush, TRIM (ACS-4 clause 7).
//!
//! They become what READ, WRITE and UNMAP of SCSI become, under the same limits. An address that does not exist is
//! IDNF at that address; a length past the limit is aborted.

use super::Action;
use super::identify::TRIM_BLOCKS_MAX;
use crate::lun::{DataPhase, LogicalUnit, MediumPlan, Plan, limits};
use crate::medium::MediumOp;
use units::Extent;
use wire::ata::{AtaCommand, AtaError, CommandRegisters, ResultRegisters, TrimRange};
use wire::scsi::sense::{AdditionalSense, Sense, SenseKey};

/// FEATURES of DATA SET MANAGEMENT: TRIM, and nothing else.
const TRIM: u16 = 1;

/// Bytes in a block of LBA ranges, whatever a sector has.
const TRIM_BLOCK_BYTES: u32 = 512;

/// Whether COUNT counts sectors that the command moves.
pub(super) const fn counts_sectors(command: AtaCommand) -> bool {
    use AtaCommand as Command;
    matches!(
        command,
        Command::ReadSectors
            | Command::ReadSectorsExt
            | Command::ReadDma
            | Command::ReadDmaExt
            | Command::WriteSectors
            | Command::WriteSectorsExt
            | Command::WriteDma
            | Command::WriteDmaExt
            | Command::WriteDmaFuaExt
    )
}

/// Begins a command.
pub(super) fn start(unit: &mut LogicalUnit, registers: &CommandRegisters) -> Action {
    use AtaCommand as Command;
    if let Err(plan) = unit.check_ready() {
        return Action::Refuse(plan);
    }
    unit.ata.wake();
    match registers.command {
        Command::FlushCache | Command::FlushCacheExt => {
            Action::Medium(MediumPlan::bare(MediumOp::Flush, Extent::default()))
        }
        Command::ReadVerifySectors | Command::ReadVerifySectorsExt => match extent(unit, registers) {
            Ok(extent) => Action::Medium(MediumPlan::bare(MediumOp::Verify, extent)),
            Err(missing) => missing,
        },
        Command::ReadSectors | Command::ReadSectorsExt | Command::ReadDma | Command::ReadDmaExt => {
            transfer(unit, registers, MediumOp::Read, DataPhase::In)
        }
        _ if unit.is_write_protected() => Action::Refuse(Plan::Check(WRITE_PROTECTED)),
        Command::DataSetManagement => receive_ranges(registers),
        command => {
            let fua = command == Command::WriteDmaFuaExt || !unit.write_cache_enabled();
            transfer(unit, registers, MediumOp::Write { fua }, DataPhase::Out)
        }
    }
}

const WRITE_PROTECTED: Sense = Sense::new(SenseKey::DataProtect, AdditionalSense::WRITE_PROTECTED);

fn transfer(unit: &LogicalUnit, registers: &CommandRegisters, op: MediumOp, data: DataPhase) -> Action {
    if registers.sectors() > limits::transfer_blocks_max(unit.config.block_size) {
        return Action::ABORT;
    }
    let bytes = registers.sectors() * unit.config.block_size.bytes();
    match extent(unit, registers) {
        Ok(extent) => Action::Medium(MediumPlan { op, extent, data, bytes }),
        Err(missing) => missing,
    }
}

/// The sectors that a command names, if there are such.
fn extent(unit: &LogicalUnit, registers: &CommandRegisters) -> Result<Extent, Action> {
    existing(unit, registers.address(), registers.sectors())
}

fn existing(unit: &LogicalUnit, lba: u64, sectors: u32) -> Result<Extent, Action> {
    let extent = Extent::new(lba, sectors.into());
    if extent.fits(unit.config.capacity) {
        return Ok(extent);
    }
    let first_missing = lba.max(unit.config.capacity.0);
    Err(Action::End(ResultRegisters::failed(AtaError::ID_NOT_FOUND, first_missing)))
}

fn receive_ranges(registers: &CommandRegisters) -> Action {
    if registers.features != TRIM || !(1..=TRIM_BLOCKS_MAX).contains(&registers.count) {
        return Action::ABORT;
    }
    Action::Receive(u32::from(registers.count) * TRIM_BLOCK_BYTES)
}

/// The ranges of DATA SET MANAGEMENT are here: all of them must exist before the first is trimmed.
pub(super) fn trim(unit: &LogicalUnit, ranges: &[u8]) -> Action {
    match TrimRange::list(ranges)
        .try_for_each(|range| existing(unit, range.lba, range.sectors.into()).map(drop))
    {
        Ok(()) => trim_next(ranges, 0),
        Err(missing) => missing,
    }
}

/// Trims the range number `step`, if there are so many.
pub(super) fn trim_next(ranges: &[u8], step: u32) -> Action {
    match TrimRange::list(ranges).nth(step as usize) {
        Some(TrimRange { lba, sectors }) => {
            Action::Medium(MediumPlan::bare(MediumOp::Unmap, Extent::new(lba, sectors.into())))
        }
        None => Action::DONE,
    }
}
