//! The counters and results behind the log pages (SPC-5 clause 7.3, SBC-4 clause 6.4).
//!
//! Counters begin at zero with power and stop at their end. Commands and bytes are counted when a command is
//! planned, errors when the medium reports them. Left out: what a virtual drive does not have (wear, power-on hours,
//! processing times, a thermometer unless a temperature is configured): their fields say "not known" or zero as the
//! standard provides. Two pages are not
//! there at all: background scan (15h), since nothing scans and its page begins with the minutes of power, which are
//! not counted; and logical block provisioning (0Ch), since its counts are in units of a threshold and there are none.

mod page;

use super::plan::{DataPhase, MediumPlan, Plan};
use crate::medium::{MediumError, MediumOp};
use alloc::boxed::Box;
pub use page::{LogPage, LogValues, PAGES, encode};
use wire::scsi::cdb::SelfTestCode;
use wire::scsi::log::{LogPageCode, SelfTestLog, SelfTestOutcome, SelfTestResult};

/// Counters and results of one unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Logs {
    /// Commands that read blocks for the host.
    pub reads: Transfers,
    /// Commands that write blocks of the host.
    pub writes: Transfers,
    /// Commands that compare blocks on the medium.
    pub verifies: Transfers,
    /// Times that the unit was stopped and started again.
    pub start_stop_cycles: u32,
    self_tests: Box<SelfTestLog>,
}

/// Commands of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transfers {
    /// How many, for the statistics.
    pub commands: u64,
    /// Bytes that they were to move, for the statistics.
    pub command_bytes: u64,
    /// The same bytes for the error counters, which are reset on their own.
    pub bytes: u64,
    /// How many of them met a medium error.
    pub uncorrected_errors: u64,
}

impl Logs {
    /// Counts a command that is going to use the medium.
    pub const fn record_plan(&mut self, plan: &Plan) {
        let Plan::Medium(MediumPlan { op, data, bytes, .. }) = plan else { return };
        let kind = match (op, data) {
            (MediumOp::Read, DataPhase::In) => &mut self.reads,
            (MediumOp::Compare | MediumOp::CompareSame, _) => &mut self.verifies,
            (_, DataPhase::Out) => &mut self.writes,
            _ => return,
        };
        kind.commands = kind.commands.saturating_add(1);
        kind.command_bytes = kind.command_bytes.saturating_add(*bytes as u64);
        kind.bytes = kind.bytes.saturating_add(*bytes as u64);
    }

    /// Counts what a medium could not do.
    pub const fn record_failure(&mut self, error: MediumError) {
        let kind = match error {
            MediumError::Unreadable { .. } | MediumError::Shrunk => &mut self.reads,
            MediumError::Unwritable { .. } => &mut self.writes,
            _ => return,
        };
        kind.uncorrected_errors = kind.uncorrected_errors.saturating_add(1);
    }

    /// Puts a self-test that passed in front of the others; of more than twenty the oldest is forgotten.
    pub fn record_self_test(&mut self, code: SelfTestCode) {
        let results = &mut self.self_tests.results;
        results.rotate_right(1);
        if let Some(newest) = results.first_mut() {
            let outcome = SelfTestOutcome::Passed;
            *newest = SelfTestResult { code, outcome, first_failure: u64::MAX, ..SelfTestResult::UNUSED };
        }
    }

    /// The last twenty self-tests.
    pub const fn self_tests(&self) -> &SelfTestLog {
        &self.self_tests
    }

    /// Sets the counters of a page to zero; `None` stands for all pages. Lists stay.
    pub fn reset(&mut self, page: Option<LogPageCode>) {
        let is = |code| page.is_none_or(|page| page == code);
        let kinds = [
            (LogPageCode::ReadErrors, &mut self.reads),
            (LogPageCode::WriteErrors, &mut self.writes),
            (LogPageCode::VerifyErrors, &mut self.verifies),
        ];
        for (code, kind) in kinds {
            if is(code) {
                (kind.bytes, kind.uncorrected_errors) = (0, 0);
            }
            if is(LogPageCode::GeneralStatistics) {
                (kind.commands, kind.command_bytes) = (0, 0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::{Extent, Lba};

    const fn plan(op: MediumOp, data: DataPhase) -> Plan {
        Plan::Medium(MediumPlan { op, extent: Extent::new(0, 8), data, bytes: 4096 })
    }

    #[test]
    fn commands_are_counted_by_what_they_do() {
        let mut logs = Logs::default();
        logs.record_plan(&plan(MediumOp::Read, DataPhase::In));
        logs.record_plan(&plan(MediumOp::Write { fua: false }, DataPhase::Out));
        logs.record_plan(&plan(MediumOp::Write { fua: true }, DataPhase::Out));
        logs.record_plan(&plan(MediumOp::Compare, DataPhase::Out));
        logs.record_plan(&plan(MediumOp::Flush, DataPhase::None));
        logs.record_plan(&Plan::Good);
        assert_eq!((logs.reads.commands, logs.reads.bytes), (1, 4096));
        assert_eq!((logs.writes.commands, logs.writes.bytes), (2, 8192));
        assert_eq!((logs.verifies.commands, logs.verifies.bytes), (1, 4096));
    }

    #[test]
    fn a_medium_error_counts_where_it_happened() {
        let mut logs = Logs::default();
        logs.record_failure(MediumError::Unreadable { lba: Lba(5) });
        logs.record_failure(MediumError::Unwritable { lba: Lba(5) });
        logs.record_failure(MediumError::OutOfSpace);
        let errors = [logs.reads, logs.writes, logs.verifies].map(|kind| kind.uncorrected_errors);
        assert_eq!(errors, [1, 1, 0]);
    }

    #[test]
    fn the_twenty_newest_self_tests_are_kept() {
        let mut logs = Logs::default();
        logs.record_self_test(SelfTestCode::BackgroundShort);
        for _ in 0..20 {
            logs.record_self_test(SelfTestCode::ForegroundExtended);
        }
        let codes = logs.self_tests().results.map(|result| result.code);
        assert_eq!(codes, [SelfTestCode::ForegroundExtended; 20]);
    }

    #[test]
    fn a_page_is_reset_alone_or_with_all() {
        let mut logs = Logs::default();
        logs.record_plan(&plan(MediumOp::Read, DataPhase::In));
        logs.record_plan(&plan(MediumOp::Write { fua: false }, DataPhase::Out));
        logs.reset(Some(LogPageCode::ReadErrors));
        assert_eq!((logs.reads.command_bytes, logs.reads.bytes, logs.writes.bytes), (4096, 0, 4096));
        logs.reset(None);
        assert_eq!(logs, Logs::default());
    }
}
