//! How long commands of a load take: from when they are wanted, and from when the transport has them; and where that time goes.

use sim::engine::{LatencyStage, LatencyTracker, StageTimes};
use units::{Duration, Instant, Lba};

/// Commands of a drive that have ended, and their times together.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CommandTimes {
    /// How many.
    pub(super) commands: u64,
    /// From when they were wanted.
    pub(super) stays: Duration,
    /// From when the transport had them.
    pub(super) held: Duration,
}

/// A command that the transport has.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StartedCommand {
    /// Where.
    pub(super) lba: Lba,
    /// Since when it is wanted.
    pub(super) wanted: Instant,
    /// Since when the transport has it.
    pub(super) at: Instant,
}

/// How long a command took.
#[derive(Clone, Copy, Debug)]
pub(super) struct CommandTime {
    /// Before the transport had it.
    pub(super) waited: Duration,
    /// From then on.
    pub(super) held: Duration,
}

/// Where the time of a drive's commands went, all of them together.
#[derive(Clone, Copy, Debug, Default)]
pub struct Explained {
    /// Time by stage.
    pub shares: StageTimes,
    /// Commands of which it is the time.
    pub commands: u64,
    /// That of the one which took longest, the first of those that took as long.
    pub slowest: StageTimes,
}

impl CommandTimes {
    /// The mean of their times.
    pub(super) fn mean(&self) -> Duration {
        Duration::from_ps(self.stays.as_ps().checked_div(self.commands).unwrap_or(0))
    }
}

impl CommandTime {
    /// The time in which it waited, as that in the queue and nowhere else.
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
