//! ATA commands about the device itself: power modes, settings, its size, its diagnosis (ACS-4 clause 7).
//!
//! The write cache is that of the caching mode page, switched from either side. Power modes are reported as they were
//! asked for, until a command needs the medium; in none of them does a command take longer.

use super::Action;
use crate::lun::{LogicalUnit, MediumPlan, Readiness};
use crate::medium::MediumOp;
use units::Extent;
use wire::ata::{
    AtaCommand, CommandRegisters, PowerMode, ResultRegisters, SetFeaturesSubcommand, TransferMode,
};

/// Begins a command, or aborts what the device does not know.
pub(super) fn start(unit: &mut LogicalUnit, registers: &CommandRegisters) -> Action {
    use AtaCommand as Command;
    let last = unit.config.capacity.0.saturating_sub(1);
    match registers.command {
        Command::CheckPowerMode => {
            let mode = power_mode(unit);
            Action::End(ResultRegisters { count: u8::from(mode).into(), ..ResultRegisters::GOOD })
        }
        Command::Idle | Command::IdleImmediate => {
            unit.ata.power = PowerMode::Idle;
            Action::DONE
        }
        Command::Standby | Command::StandbyImmediate | Command::Sleep => {
            unit.ata.power = PowerMode::Standby;
            flush(unit)
        }
        Command::SetFeatures => set_features(unit, registers),
        Command::ReadNativeMaxAddress => Action::End(ResultRegisters::native_max(last, false)),
        Command::ReadNativeMaxAddressExt => Action::End(ResultRegisters::native_max(last, true)),
        Command::ExecuteDeviceDiagnostic => Action::End(ResultRegisters::SIGNATURE),
        _ => Action::ABORT,
    }
}

/// A unit that is stopped stands still, whatever was asked of the ATA device.
const fn power_mode(unit: &LogicalUnit) -> PowerMode {
    match unit.readiness {
        Readiness::Stopped => PowerMode::Standby,
        _ => unit.ata.power,
    }
}

fn set_features(unit: &mut LogicalUnit, registers: &CommandRegisters) -> Action {
    use SetFeaturesSubcommand as Subcommand;
    match Subcommand::from(registers.features as u8) {
        Subcommand::EnableWriteCache => {
            switch_write_cache(unit, true);
            Action::DONE
        }
        Subcommand::DisableWriteCache => {
            switch_write_cache(unit, false);
            flush(unit)
        }
        Subcommand::SetTransferMode => match TransferMode::from(registers.count as u8) {
            TransferMode::Other(_) => Action::ABORT,
            _ => Action::DONE,
        },
        // Look-ahead is on, and settings stay until power goes.
        Subcommand::EnableLookAhead | Subcommand::KeepSettings => Action::DONE,
        _ => Action::ABORT,
    }
}

fn switch_write_cache(unit: &mut LogicalUnit, on: bool) {
    let mut values = *unit.modes.current();
    values.caching.write_cache = on;
    unit.modes.set_current(values);
}

/// Flushes the cache to the medium, if the unit is ready.
fn flush(unit: &LogicalUnit) -> Action {
    match unit.readiness {
        Readiness::Ready => Action::Medium(MediumPlan::bare(MediumOp::Flush, Extent::default())),
        _ => Action::DONE,
    }
}
