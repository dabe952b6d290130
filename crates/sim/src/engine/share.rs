//! Where the time of a command goes, stage by stage, so that the stages add up to the whole.
//!
//! A command is in one stage at a time. [`LatencyTracker::enter`] ends one and begins another at the same instant, so no
//! picosecond is counted twice or not at all.

use units::{Duration, Instant};

/// Where a command can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LatencyStage {
    /// In the host's line, above the transport or in it, before anything is done for it.
    Queue,
    /// In line for the host's core, which works for other commands meanwhile.
    Core,
    /// In the host's driver: building it, or taking its completion.
    Driver,
    /// In the host controller: doorbells, rings, descriptors, events.
    Controller,
    /// On the link: packets, acknowledgements, turn-rounds.
    Link,
    /// In the bridge: firmware and translation.
    Bridge,
    /// In the drive.
    Drive,
    /// In none of them: something else has its place.
    Waiting,
}

impl LatencyStage {
    /// All stages, in the order in which a command meets them.
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

    /// The name for people.
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

/// How long a command, or many, spent in each stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageTimes([Duration; LatencyStage::ALL.len()]);

impl StageTimes {
    /// The time in one stage.
    pub const fn of(&self, stage: LatencyStage) -> Duration {
        self.0[stage as usize]
    }

    /// The time in all stages.
    pub fn total(&self) -> Duration {
        self.0.iter().fold(Duration::ZERO, |sum, &share| sum + share)
    }

    /// The stage with the most time; of equals the first. A queue is where time is lost because of another stage, so that it is
    /// the largest only where there is none.
    pub fn largest(&self) -> LatencyStage {
        let works = |stage: &LatencyStage| *stage != LatencyStage::Queue;
        let most = LatencyStage::ALL.into_iter().filter(works).rev().max_by_key(|&stage| self.of(stage));
        most.filter(|most| self.of(*most) > Duration::ZERO || self.of(LatencyStage::Queue) == Duration::ZERO)
            .unwrap_or(LatencyStage::Queue)
    }

    /// Adds those of another command.
    pub fn add(&mut self, other: &Self) {
        for (share, more) in self.0.iter_mut().zip(other.0) {
            *share += more;
        }
    }
}

/// A command on its way.
#[derive(Clone, Copy, Debug)]
pub struct LatencyTracker {
    started: Instant,
    entered: Instant,
    stage: LatencyStage,
    shares: StageTimes,
}

impl LatencyTracker {
    /// A command that starts now.
    pub fn start(now: Instant, stage: LatencyStage) -> Self {
        Self { started: now, entered: now, stage, shares: StageTimes::default() }
    }

    /// The command goes on to another stage.
    pub fn enter(&mut self, now: Instant, stage: LatencyStage) {
        self.shares.0[self.stage as usize] += now - self.entered;
        self.entered = now;
        self.stage = stage;
    }

    /// The command has ended: its latency, and the shares, which add up to it.
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
