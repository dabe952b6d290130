//! How long nothing has ended: the law that something does, for one life and for all that are lived in one world.
//!
//! Time is asked of each life by itself, since a disk has so much patience with a request and no more. Events are asked of all lives
//! together: those of a world that serves others say nothing about who waits for its own drive. Always true: others have only so much
//! to ask for, so that events without an end are too many some time.

use super::case::Case;
use units::{Duration, Instant};

/// Within this much virtual time some request ends: all the patience that a disk has with one, and some more.
const SPAN: Duration = Duration::from_secs(1_500);
/// Within so many events some request ends; a translator is asked some thirty times for each packet of 64 bytes, and has eight times as
/// many.
const EVENTS: u64 = 1_000_000;

/// When something ended last in a life, and how many events had happened in the world.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProgressBound {
    at: Instant,
    events: u64,
}

impl ProgressBound {
    /// A life begins.
    pub(super) const START: Self = Self { at: Instant::ZERO, events: 0 };
    /// Within this much virtual time some request ends.
    pub(super) const SPAN: Duration = SPAN;

    /// Something has ended.
    pub(super) const fn ended(at: Instant, events: u64) -> Self {
        Self { at, events }
    }

    /// Events within which some request of a case ends.
    pub(super) fn events_max(case: &Case) -> u64 {
        if case.is_translated() { 8 * EVENTS } else { EVENTS }
    }

    /// How many events had happened when something ended last in any of these lives.
    pub(super) fn last_of(sessions: impl Iterator<Item = Self>) -> u64 {
        sessions.map(|bound| bound.events).max().unwrap_or(0)
    }

    /// Whether nothing has ended for too long: nothing of this life by time, or nothing of any by events.
    pub(super) fn is_stuck(self, now: Instant, events_since_any: u64, events_max: u64) -> bool {
        now.since(self.at) > SPAN || events_since_any > events_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORKS: ProgressBound = ProgressBound::ended(Instant::from_ps(9_000_000_000_000), 7_900_000);
    const WAITS: ProgressBound = ProgressBound::ended(Instant::from_ps(1_000_000_000_000), 400_000);

    #[test]
    fn who_waits_for_a_slow_drive_is_not_stuck_while_others_work() {
        let last = ProgressBound::last_of([WORKS, WAITS].into_iter());
        assert_eq!(last, 7_900_000);
        let now = Instant::from_ps(10_000_000_000_000);
        assert!(!WAITS.is_stuck(now, 8_600_000 - last, 1_000_000));
        assert!(
            WAITS.is_stuck(now, 8_600_000 - ProgressBound::last_of([WAITS].into_iter()), 1_000_000),
            "alone it is"
        );
    }

    #[test]
    fn events_without_an_end_are_too_many_some_time() {
        let now = WORKS.at;
        let since = |events: u64| events - ProgressBound::last_of([WORKS, WAITS].into_iter());
        assert!(!WAITS.is_stuck(now, since(8_900_000), 1_000_000));
        assert!(WAITS.is_stuck(now, since(8_900_001), 1_000_000));
        assert!(WORKS.is_stuck(now, since(8_900_001), 1_000_000));
    }

    #[test]
    fn time_is_asked_of_each_life_by_itself() {
        let now = Instant::from_ps(1_501_000_000_000_001);
        assert!(WAITS.is_stuck(now, 0, 1_000_000));
        assert!(!WORKS.is_stuck(now, 0, 1_000_000));
    }
}
