//! Latencies of a load's commands, with and without the wait for the transport, and their stages.

use sim::engine::{LatencyStage, LatencyTracker, StageTimes};
use units::{Duration, Instant, Lba};

/// Sums over the completed commands of a drive.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CommandTimes {
    /// Number.
    pub(super) commands: u64,
    /// Since submission by the application.
    pub(super) stays: Duration,
    /// Since submission to the transport.
    pub(super) held: Duration,
}

/// A command in the transport.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StartedCommand {
    /// Its LBA.
    pub(super) lba: Lba,
    /// Submission by the application.
    pub(super) wanted: Instant,
    /// Submission to the transport.
    pub(super) at: Instant,
}

/// The latency of a command.
#[derive(Clone, Copy, Debug)]
pub(super) struct CommandTime {
    /// Wait for the transport.
    pub(super) waited: Duration,
    /// Time in the transport.
    pub(super) held: Duration,
}

/// Total stage times of a drive's commands.
#[derive(Clone, Copy, Debug, Default)]
pub struct Explained {
    /// Time by stage.
    pub shares: StageTimes,
    /// Number of commands.
    pub commands: u64,
    /// Stage times of the slowest command, the first of equals.
    pub slowest: StageTimes,
}

impl CommandTimes {
    /// Mean latency.
    pub(super) fn mean(&self) -> Duration {
        Duration::from_ps(self.stays.as_ps().checked_div(self.commands).unwrap_or(0))
    }
}

impl CommandTime {
    /// Counts the wait as the queue stage.
    pub(super) fn queued(self) -> StageTimes {
        LatencyTracker::start(Instant::ZERO, LatencyStage::Queue).end(Instant::ZERO + self.waited).1
    }
}

impl Explained {
    pub(super) fn add(&mut self, one: StageTimes) {
        self.shares.add(&one);
        self.commands += 1;
        if one.total() > self.slowest.total() {
            self.slowest = one;
        }
    }
}
