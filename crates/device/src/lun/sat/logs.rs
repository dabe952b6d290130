//! SMART READ LOG and READ LOG EXT (ACS-4 clauses 7.43 and 7.22): directory, errors, self-tests, statistics.
//!
//! The error logs are empty: what an ATA drive would log as an error, a host learns here by sense data, and the log
//! pages of SCSI count it. The log of selective self-tests has no spans, since there are no such tests, and cannot be
//! written.

use super::Action;
use crate::lun::LogicalUnit;
use alloc::vec::Vec;
use wire::ata::{
    CommandRegisters, ExtendedErrorLog, ExtendedSelfTestEntry, ExtendedSelfTestLog, GeneralStatistics,
    LogAddress, LogDirectory, SelectiveSelfTestLog, SelfTest, SelfTestEntry, SelfTestLog, SelfTestStatus,
    SummaryErrorLog,
};
use wire::scsi::cdb::SelfTestCode;

/// Pages of the device statistics log: the list of pages, and the general statistics.
const STATISTICS_PAGES: u16 = 2;

/// COUNT pages of a SMART log, from its first.
pub(super) fn smart_read_log(unit: &LogicalUnit, registers: &CommandRegisters) -> Action {
    let log: &[[u8; 512]] = &match registers.log_address() {
        LogAddress::Directory => return send(&[smart_directory().encode()], 0, registers.count),
        // Without an error the two are the same.
        LogAddress::SummaryError | LogAddress::ComprehensiveError => [SummaryErrorLog::EMPTY.encode()],
        LogAddress::SelectiveSelfTest => [SelectiveSelfTestLog::EMPTY.encode()],
        LogAddress::SelfTest => [self_tests(unit).encode()],
        LogAddress::DeviceStatistics => return send(&statistics(unit), 0, registers.count),
        _ => return Action::ABORT,
    };
    send(log, 0, registers.count)
}

/// COUNT pages of a general purpose log.
pub(super) fn read_log_ext(unit: &LogicalUnit, registers: &CommandRegisters) -> Action {
    let page = registers.log_page();
    match registers.log_address() {
        LogAddress::Directory => send(&[general_directory().encode()], page, registers.count),
        LogAddress::ExtendedComprehensiveError => {
            send(&[ExtendedErrorLog::EMPTY.encode()], page, registers.count)
        }
        LogAddress::DeviceStatistics => send(&statistics(unit), page, registers.count),
        LogAddress::ExtendedSelfTest => send(&[extended_self_tests(unit).encode()], page, registers.count),
        _ => Action::ABORT,
    }
}

/// Pages that exist, one at least; others are no answer to half of them.
fn send(log: &[[u8; 512]], page: u16, count: u16) -> Action {
    let (first, count) = (usize::from(page), usize::from(count));
    match log.get(first..first + count) {
        Some([]) | None => Action::ABORT,
        Some(pages) => Action::Send(pages.as_flattened().to_vec()),
    }
}

fn smart_directory() -> LogDirectory {
    LogDirectory::EMPTY
        .with(LogAddress::SummaryError, 1)
        .with(LogAddress::ComprehensiveError, 1)
        .with(LogAddress::DeviceStatistics, STATISTICS_PAGES)
        .with(LogAddress::SelfTest, 1)
        .with(LogAddress::SelectiveSelfTest, 1)
}

fn general_directory() -> LogDirectory {
    LogDirectory::EMPTY
        .with(LogAddress::ExtendedComprehensiveError, 1)
        .with(LogAddress::DeviceStatistics, STATISTICS_PAGES)
        .with(LogAddress::ExtendedSelfTest, 1)
}

/// The self-test results of SEND DIAGNOSTIC and SMART in ATA form.
fn self_tests(unit: &LogicalUnit) -> SelfTestLog {
    let mut log = SelfTestLog::EMPTY;
    for test in oldest_first(unit) {
        log.record(SelfTestEntry {
            test,
            status: SelfTestStatus::PASSED,
            power_on_hours: 0,
            checkpoint: 0,
            failing_lba: u32::MAX,
        });
    }
    log
}

/// The same with room for 48-bit LBAs.
fn extended_self_tests(unit: &LogicalUnit) -> ExtendedSelfTestLog {
    const NO_LBA: u64 = (1 << 48) - 1;
    let mut log = ExtendedSelfTestLog::EMPTY;
    for test in oldest_first(unit) {
        log.record(ExtendedSelfTestEntry {
            test,
            status: SelfTestStatus::PASSED,
            power_on_hours: 0,
            checkpoint: 0,
            failing_lba: NO_LBA,
        });
    }
    log
}

fn oldest_first(unit: &LogicalUnit) -> impl Iterator<Item = SelfTest> {
    let results = unit.logs.self_tests().results.iter();
    let tests: Vec<SelfTest> = results.map_while(|result| ata_test(result.code)).collect();
    tests.into_iter().rev()
}

const fn ata_test(code: SelfTestCode) -> Option<SelfTest> {
    Some(match code {
        SelfTestCode::BackgroundShort => SelfTest::Short,
        SelfTestCode::BackgroundExtended => SelfTest::Extended,
        SelfTestCode::ForegroundShort => SelfTest::ShortCaptive,
        SelfTestCode::ForegroundExtended => SelfTest::ExtendedCaptive,
        _ => return None,
    })
}

fn statistics(unit: &LogicalUnit) -> [[u8; 512]; STATISTICS_PAGES as usize] {
    let (reads, writes) = (&unit.logs.reads, &unit.logs.writes);
    let block_bytes = u64::from(unit.config.block_size.bytes());
    let general = GeneralStatistics {
        power_on_resets: Some(unit.ata.power_cycles),
        power_on_hours: None,
        sectors_written: Some(writes.command_bytes / block_bytes),
        write_commands: Some(writes.commands),
        sectors_read: Some(reads.command_bytes / block_bytes),
        read_commands: Some(reads.commands),
    };
    [GeneralStatistics::page_list(), general.encode()]
}
