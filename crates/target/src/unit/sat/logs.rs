//! SMART READ LOG and READ LOG EXT (ACS-4 clauses 7.43 and 7.22): directory, errors, self-tests, statistics.
//!
//! The error log is empty: what an ATA drive would log as an error, a host learns here by sense data, and the log
//! pages of SCSI count it.

use super::Action;
use crate::unit::Unit;
use alloc::vec::Vec;
use wire::ata::{
    CommandRegisters, GeneralStatistics, LogAddress, LogDirectory, SelfTest, SelfTestEntry, SelfTestLog,
    SelfTestStatus, SummaryErrorLog,
};
use wire::scsi::cdb::SelfTestCode;

/// Pages of the device statistics log: the list of pages, and the general statistics.
const STATISTICS_PAGES: u16 = 2;

/// COUNT pages of a SMART log, from its first.
pub(super) fn smart_read_log(unit: &Unit, registers: &CommandRegisters) -> Action {
    let log: &[[u8; 512]] = &match registers.log_address() {
        LogAddress::Directory => return send(&[smart_directory().encode()], 0, registers.count),
        LogAddress::SummaryError => [SummaryErrorLog::EMPTY.encode()],
        LogAddress::SelfTest => [self_tests(unit).encode()],
        LogAddress::DeviceStatistics => return send(&statistics(unit), 0, registers.count),
        _ => return Action::ABORT,
    };
    send(log, 0, registers.count)
}

/// COUNT pages of a general purpose log.
pub(super) fn read_log_ext(unit: &Unit, registers: &CommandRegisters) -> Action {
    let page = registers.log_page();
    match registers.log_address() {
        LogAddress::Directory => send(&[general_directory().encode()], page, registers.count),
        LogAddress::DeviceStatistics => send(&statistics(unit), page, registers.count),
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
    general_directory().with(LogAddress::SummaryError, 1).with(LogAddress::SelfTest, 1)
}

fn general_directory() -> LogDirectory {
    LogDirectory::EMPTY.with(LogAddress::DeviceStatistics, STATISTICS_PAGES)
}

/// What SEND DIAGNOSTIC and SMART have tested, as ATA tells it.
fn self_tests(unit: &Unit) -> SelfTestLog {
    let tests: Vec<SelfTest> =
        unit.logs.self_tests().results.iter().map_while(|result| ata_test(result.code)).collect();
    let mut log = SelfTestLog::EMPTY;
    for &test in tests.iter().rev() {
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

const fn ata_test(code: SelfTestCode) -> Option<SelfTest> {
    Some(match code {
        SelfTestCode::BackgroundShort => SelfTest::Short,
        SelfTestCode::BackgroundExtended => SelfTest::Extended,
        SelfTestCode::ForegroundShort => SelfTest::ShortCaptive,
        SelfTestCode::ForegroundExtended => SelfTest::ExtendedCaptive,
        _ => return None,
    })
}

fn statistics(unit: &Unit) -> [[u8; 512]; STATISTICS_PAGES as usize] {
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
