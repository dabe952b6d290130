//! Latency of a command by stage; the stages add up to the total.
//!
//! A command is in one stage at a time. [`LatencyTracker::enter`] leaves one and enters the next at
//! the same instant, so each picosecond counts once.

use units::{Duration, Instant};

/// A stage of a command's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LatencyStage {
    /// Queued in the host, above or in the transport.
    Queue,
    /// Waiting for the host's core, which works on other commands.
    Core,
    /// In the host's driver: building the command or handling its completion.
    Driver,
    /// In the host controller: doorbells, rings, descriptors, events.
    Controller,
    /// On the link: packets, acknowledgements, turnarounds.
    Link,
    /// In the bridge: firmware and translation.
    Bridge,
    /// In the drive.
    Drive,
    /// Waiting behind something else.
    Waiting,
}

impl LatencyStage {
    /// All stages in path order.
    pub const ALL: [Self; 8] = [
        Self::Queue,
        Self::Core,
        Self::Driver,
        Self::Controller,
        Self::Link,
        Self::Bridge,
        Self::Drive,
        Self::Waiting,
    ];

    /// Returns the display name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Core => "core-wait",
            Self::Driver => "driver",
            Self::Controller => "controller",
            Self::Link => "link",
            Self::Bridge => "bridge",
            Self::Drive => "drive",
            Self::Waiting => "waiting",
        }
    }
}

/// Time per stage, of one command or a sum of many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageTimes([Duration; LatencyStage::ALL.len()]);

impl StageTimes {
    /// Returns the time in a stage.
    pub const fn of(&self, stage: LatencyStage) -> Duration {
        self.0[stage as usize]
    }

    /// Returns the total time.
    pub fn total(&self) -> Duration {
        self.0.iter().fold(Duration::ZERO, |sum, &share| sum + share)
    }

    /// Returns the stage with the most time, the first of equals. A queue fills because of another
    /// stage, so it is returned only if no other stage took any time.
    pub fn largest(&self) -> LatencyStage {
        let works = |stage: &LatencyStage| *stage != LatencyStage::Queue;
        let most = LatencyStage::ALL.into_iter().filter(works).rev().max_by_key(|&stage| self.of(stage));
        most.filter(|most| self.of(*most) > Duration::ZERO || self.of(LatencyStage::Queue) == Duration::ZERO)
            .unwrap_or(LatencyStage::Queue)
    }

    /// Adds the times of another command.
    pub fn add(&mut self, other: &Self) {
        for (share, more) in self.0.iter_mut().zip(other.0) {
            *share += more;
        }
    }
}

/// Tracks the current stage of a command.
#[derive(Clone, Copy, Debug)]
pub struct LatencyTracker {
    started: Instant,
    entered: Instant,
    stage: LatencyStage,
    shares: StageTimes,
}

impl LatencyTracker {
    /// Starts tracking at `now`.
    pub fn start(now: Instant, stage: LatencyStage) -> Self {
        Self { started: now, entered: now, stage, shares: StageTimes::default() }
    }

    /// Moves the command to another stage.
    pub fn enter(&mut self, now: Instant, stage: LatencyStage) {
        self.shares.0[self.stage as usize] += now - self.entered;
        self.entered = now;
        self.stage = stage;
    }

    /// Ends tracking; returns the latency and the stage times that add up to it.
    pub fn end(mut self, now: Instant) -> (Duration, StageTimes) {
        self.enter(now, self.stage);
        (now - self.started, self.shares)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_stage_met_twice_counts_twice() {
        let at = Instant::from_ps;
        let mut journey = LatencyTracker::start(at(100), LatencyStage::Driver);
        journey.enter(at(110), LatencyStage::Link);
        journey.enter(at(140), LatencyStage::Driver);
        let (latency, shares) = journey.end(at(145));
        assert_eq!(latency, Duration::from_ps(45));
        assert_eq!(shares.of(LatencyStage::Driver), Duration::from_ps(15));
        assert_eq!(shares.of(LatencyStage::Link), Duration::from_ps(30));
        assert_eq!(shares.largest(), LatencyStage::Link);
    }

    #[test]
    fn of_equal_stages_the_first_is_the_largest() {
        assert_eq!(StageTimes::default().largest(), LatencyStage::Core);
    }

    proptest! {
        #[test]
        fn shares_add_up_to_the_latency(steps in prop::collection::vec((0_u64..1_000_000, 0..LatencyStage::ALL.len()), 0..50)) {
            let mut now = Instant::from_ps(77);
            let mut journey = LatencyTracker::start(now, LatencyStage::Waiting);
            for (span, stage) in steps {
                now = now + Duration::from_ps(span);
                journey.enter(now, LatencyStage::ALL[stage]);
            }
            let (latency, shares) = journey.end(now + Duration::from_ps(3));
            prop_assert_eq!(latency, shares.total());
        }
    }
}
