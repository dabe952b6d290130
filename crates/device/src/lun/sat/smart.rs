//! SMART (ACS-4 clause 7.43): readings, thresholds, self-tests, overall health.
//!
//! A self-test has nothing to test but the program that answers; it passes at once, and stands in the same list as
//! those of SEND DIAGNOSTIC. Attributes are not saved over power loss, and are marked so.

use super::{Action, logs};
use crate::lun::LogicalUnit;
use alloc::vec::Vec;
use wire::ata::{
    Attribute, AttributeFlags, AttributeThreshold, CommandRegisters, OfflineCapabilities, OfflineStatus,
    ResultRegisters, SelfTest, SelfTestStatus, SmartCapabilities, SmartReadings, SmartSubcommand,
    SmartThresholds,
};
use wire::scsi::cdb::SelfTestCode;

/// Begins a SMART command.
pub(super) fn start(unit: &mut LogicalUnit, registers: &CommandRegisters) -> Action {
    let subcommand = SmartSubcommand::from(registers.features as u8);
    let enabled = unit.ata.smart || subcommand == SmartSubcommand::Enable;
    if !registers.has_smart_signature() || !enabled {
        return Action::ABORT;
    }
    match subcommand {
        SmartSubcommand::ReadData => Action::Send(readings(unit).encode().to_vec()),
        SmartSubcommand::ReadThresholds => Action::Send(thresholds(unit).encode().to_vec()),
        SmartSubcommand::ReadLog => logs::smart_read_log(unit, registers),
        SmartSubcommand::ReturnStatus => Action::End(ResultRegisters::smart_status(false)),
        SmartSubcommand::ExecuteOfflineImmediate => test(unit, SelfTest::from(registers.lba as u8)),
        SmartSubcommand::Enable => {
            unit.ata.smart = true;
            Action::DONE
        }
        SmartSubcommand::Disable => {
            unit.ata.smart = false;
            Action::DONE
        }
        SmartSubcommand::WriteLog
        | SmartSubcommand::AttributeAutosave
        | SmartSubcommand::AutomaticOffline
        | SmartSubcommand::SaveAttributeValues
        | SmartSubcommand::Unknown(_) => Action::ABORT,
    }
}

fn test(unit: &mut LogicalUnit, test: SelfTest) -> Action {
    let code = match test {
        SelfTest::OfflineRoutine => {
            unit.ata.offline = OfflineStatus::Completed;
            return Action::DONE;
        }
        // None is ever found running.
        SelfTest::Abort => return Action::DONE,
        SelfTest::Short => SelfTestCode::BackgroundShort,
        SelfTest::Extended => SelfTestCode::BackgroundExtended,
        SelfTest::ShortCaptive => SelfTestCode::ForegroundShort,
        SelfTest::ExtendedCaptive => SelfTestCode::ForegroundExtended,
        _ => return Action::ABORT,
    };
    unit.logs.record_self_test(code);
    match test {
        // A captive test reports its result at once, in the registers of SMART RETURN STATUS.
        SelfTest::ShortCaptive | SelfTest::ExtendedCaptive => {
            Action::End(ResultRegisters::smart_status(false))
        }
        _ => Action::DONE,
    }
}

/// Ids as smartmontools and the drives that it knows have them.
const REALLOCATED_SECTORS: u8 = 5;
const POWER_CYCLES: u8 = 12;
const REPORTED_UNCORRECTABLE: u8 = 187;
const TEMPERATURE: u8 = 194;
const SECTORS_WRITTEN: u8 = 241;
const SECTORS_READ: u8 = 242;

/// The normalised value of a counter that says nothing about health.
const FINE: u8 = 100;
/// Below this there would be too few spare sectors; there are no spare sectors, and none is ever replaced.
const REALLOCATED_SECTORS_THRESHOLD: u8 = 10;
const REVISION: u16 = 16;

fn readings(unit: &LogicalUnit) -> SmartReadings {
    SmartReadings {
        revision: REVISION,
        attributes: Attribute::table(&attributes(unit).collect::<Vec<_>>()),
        offline_status: unit.ata.offline,
        automatic_offline: false,
        self_test: SelfTestStatus::PASSED,
        offline_seconds: 0,
        offline_capabilities: OfflineCapabilities::IMMEDIATE.with(OfflineCapabilities::SELF_TEST),
        capabilities: SmartCapabilities::EMPTY,
        error_logging: true,
        short_test_minutes: 1,
        extended_test_minutes: 1,
        conveyance_test_minutes: 0,
    }
}

/// In the order of their ids.
fn attributes(unit: &LogicalUnit) -> impl Iterator<Item = Attribute> {
    let block_bytes = u64::from(unit.config.block_size.bytes());
    let errors = unit.logs.reads.uncorrected_errors.saturating_add(unit.logs.writes.uncorrected_errors);
    let left = FINE - errors.min(u64::from(FINE) - 1) as u8;
    let counted = AttributeFlags::ONLINE.with(AttributeFlags::EVENT_COUNT);
    let reallocation = AttributeFlags::PRE_FAILURE.with(counted);
    let warm = |celsius: u8| {
        let left = FINE.saturating_sub(celsius).max(1);
        attribute(TEMPERATURE, AttributeFlags::ONLINE, left, celsius.into())
    };
    [
        Some(attribute(REALLOCATED_SECTORS, reallocation, FINE, 0)),
        Some(attribute(POWER_CYCLES, counted, FINE, unit.ata.power_cycles)),
        Some(attribute(REPORTED_UNCORRECTABLE, counted, left, errors)),
        unit.config.temperature_c.map(warm),
        Some(attribute(SECTORS_WRITTEN, counted, FINE, unit.logs.writes.command_bytes / block_bytes)),
        Some(attribute(SECTORS_READ, counted, FINE, unit.logs.reads.command_bytes / block_bytes)),
    ]
    .into_iter()
    .flatten()
}

/// A reading that was never worse than it is.
const fn attribute(id: u8, flags: AttributeFlags, value: u8, raw: u64) -> Attribute {
    Attribute { id, flags, value, worst: value, raw }
}

fn thresholds(unit: &LogicalUnit) -> SmartThresholds {
    let mut thresholds = [AttributeThreshold::default(); Attribute::COUNT];
    for (place, Attribute { id, .. }) in thresholds.iter_mut().zip(attributes(unit)) {
        let threshold = if id == REALLOCATED_SECTORS { REALLOCATED_SECTORS_THRESHOLD } else { 0 };
        *place = AttributeThreshold { id, threshold };
    }
    SmartThresholds { revision: REVISION, thresholds }
}
