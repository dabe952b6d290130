//! The log pages of a unit, as bytes.
//!
//! Each page is a list of parameters in ascending order (SPC-5 clause 7.3). Left out: thresholds, and pages of things
//! that this drive does not have.

use super::{Logs, Transfers};
use crate::lun::{LogicalUnitConfig, REFERENCE_CELSIUS};
use wire::NoRoom;
use wire::scsi::log::{
    ALL_SUBPAGES, ErrorCounters, GeneralStatisticsLog, InformationalExceptionsLog, LogPageCode, LogWriter,
    NonMediumErrorLog, SolidStateMediaLog, StartStopCycleLog, SupportedLogPages, SupportedLogSubpages,
    TemperatureLog,
};

/// The pages there are, ascending, each with the code of its last parameter.
pub const PAGES: [(LogPageCode, u16); 11] = [
    (LogPageCode::SupportedPages, 0),
    (LogPageCode::WriteErrors, 6),
    (LogPageCode::ReadErrors, 6),
    (LogPageCode::VerifyErrors, 6),
    (LogPageCode::NonMediumErrors, 0),
    (LogPageCode::Temperature, 0),
    (LogPageCode::StartStopCycles, 4),
    (LogPageCode::SelfTestResults, 20),
    (LogPageCode::SolidStateMedia, 1),
    (LogPageCode::GeneralStatistics, 1),
    (LogPageCode::InformationalExceptions, 0),
];

/// Which values of counters are reported; lists are the same in both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogValues {
    /// Counted so far.
    Cumulative,
    /// After a reset: zero.
    DefaultCumulative,
}

/// A page as LOG SENSE asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogPage {
    /// Its code.
    pub code: LogPageCode,
    /// Its subpage code.
    pub subpage: u8,
    /// The values of counters.
    pub values: LogValues,
    /// The first parameter.
    pub pointer: u16,
}

/// Writes one of [`PAGES`] and returns its length in bytes.
pub fn encode(
    logs: &Logs,
    config: &LogicalUnitConfig,
    page: LogPage,
    out: &mut [u8],
) -> Result<usize, NoRoom> {
    let LogPage { code, subpage, values, pointer } = page;
    if code == LogPageCode::SupportedPages {
        return encode_supported(subpage, out);
    }
    let mut logs = logs.clone();
    if values == LogValues::DefaultCumulative {
        logs.reset(None);
    }
    let mut writer = LogWriter::new(code, subpage, pointer, out)?;
    match code {
        LogPageCode::WriteErrors => counters(logs.writes).encode(&mut writer)?,
        LogPageCode::ReadErrors => counters(logs.reads).encode(&mut writer)?,
        LogPageCode::VerifyErrors => counters(logs.verifies).encode(&mut writer)?,
        LogPageCode::NonMediumErrors => NonMediumErrorLog::default().encode(&mut writer)?,
        LogPageCode::Temperature => {
            let reference_celsius = config.temperature_c.map(|_| REFERENCE_CELSIUS);
            TemperatureLog { celsius: config.temperature_c, reference_celsius }.encode(&mut writer)?;
        }
        LogPageCode::StartStopCycles => {
            let cycles = Some(logs.start_stop_cycles);
            StartStopCycleLog { cycles, ..StartStopCycleLog::default() }.encode(&mut writer)?;
        }
        LogPageCode::SelfTestResults => logs.self_tests().encode(&mut writer)?,
        LogPageCode::SolidStateMedia => SolidStateMediaLog::default().encode(&mut writer)?,
        LogPageCode::GeneralStatistics => statistics(&logs, config).encode(&mut writer)?,
        LogPageCode::InformationalExceptions => {
            let celsius = config.temperature_c;
            InformationalExceptionsLog { celsius, ..InformationalExceptionsLog::default() }
                .encode(&mut writer)?;
        }
        _ => {}
    }
    writer.finish()
}

fn encode_supported(subpage: u8, out: &mut [u8]) -> Result<usize, NoRoom> {
    if subpage == 0 {
        return SupportedLogPages::encode_list(&PAGES.map(|(code, _)| code), out);
    }
    let mut pages = [(LogPageCode::SupportedPages, ALL_SUBPAGES); PAGES.len() + 1];
    let [first, _, rest @ ..] = &mut pages;
    *first = (LogPageCode::SupportedPages, 0);
    for (place, (code, _)) in rest.iter_mut().zip(PAGES.into_iter().skip(1)) {
        *place = (code, 0);
    }
    SupportedLogSubpages::encode_list(&pages, out)
}

fn counters(kind: Transfers) -> ErrorCounters {
    ErrorCounters {
        corrected_without_delay: Some(0),
        corrected_with_delay: Some(0),
        retries: Some(0),
        corrected: Some(0),
        correction_runs: Some(0),
        bytes: Some(kind.bytes),
        uncorrected: Some(kind.uncorrected_errors),
    }
}

fn statistics(logs: &Logs, config: &LogicalUnitConfig) -> GeneralStatisticsLog {
    let blocks = |bytes: u64| bytes / u64::from(config.block_size.bytes());
    GeneralStatisticsLog {
        read_commands: logs.reads.commands,
        write_commands: logs.writes.commands,
        blocks_received: blocks(logs.writes.command_bytes),
        blocks_transmitted: blocks(logs.reads.command_bytes),
        ..GeneralStatisticsLog::default()
    }
}
