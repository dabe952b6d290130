//! The results of a case: verdict, faults that occurred, statistics.
//!
//! Left out: shrinking a failed case. Always true: equal cases have equal reports.

use super::case::Case;
use sim::check::Violation;
use sim::fault::FaultScript;

/// Results of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The violated invariant, if any.
    pub verdict: Result<(), Violation>,
    /// The injected faults that occurred.
    pub struck: FaultScript,
    /// Digest over all sessions.
    pub digest: u64,
    /// Statistics.
    pub stats: FaultStats,
}

/// Statistics of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultStats {
    /// Sessions of the device.
    pub sessions: u64,
    /// Completed requests.
    pub requests: u64,
    /// Failed requests.
    pub failed: u64,
    /// Commands sent.
    pub commands: u64,
    /// Retried commands.
    pub sent_again: u64,
    /// Command timeouts.
    pub timeouts: u64,
    /// Resets of device, port or logical unit.
    pub resets: u64,
    /// Events.
    pub events: u64,
    /// Wasted bytes.
    pub wasted_bytes: u64,
    /// Virtual time in milliseconds.
    pub virtual_ms: u64,
}

impl Report {
    /// Returns the scripted faults that did not occur, for lack of opportunity. None for random
    /// faults.
    pub fn missed(&self, case: &Case) -> FaultScript {
        case.faults.as_ref().map(|script| script.unless_in(&self.struck)).unwrap_or_default()
    }
}

impl FaultStats {
    /// Adds statistics.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            sessions: self.sessions + other.sessions,
            requests: self.requests + other.requests,
            failed: self.failed + other.failed,
            commands: self.commands + other.commands,
            sent_again: self.sent_again + other.sent_again,
            timeouts: self.timeouts + other.timeouts,
            resets: self.resets + other.resets,
            events: self.events + other.events,
            wasted_bytes: self.wasted_bytes + other.wasted_bytes,
            virtual_ms: self.virtual_ms + other.virtual_ms,
        }
    }
}
