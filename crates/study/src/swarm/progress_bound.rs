//! The bound on time and events without a completion, for one session and for all sessions of a
//! machine.
//!
//! Time is checked per session, since a disk has a limited timeout per request. Events are checked
//! over all sessions, since those of a machine that serves others say nothing about a session that
//! waits. Always true: work is finite, so events without completions eventually exceed the bound.

use super::case::Case;
use units::{Duration, Instant};

/// Virtual time within which some request completes: all timeouts of one, and a margin.
const SPAN: Duration = Duration::from_secs(1_500);
/// Events within which some request completes; a translator needs some thirty per packet of 64
/// bytes, and gets eight times as many.
const EVENTS: u64 = 1_000_000;

/// Time of the last completion in a session, and the machine's event count then.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProgressBound {
    at: Instant,
    events: u64,
}

impl ProgressBound {
    /// The start of a session.
    pub(super) const START: Self = Self { at: Instant::ZERO, events: 0 };
    /// Virtual time within which some request completes.
    pub(super) const SPAN: Duration = SPAN;

    /// Records a completion.
    pub(super) const fn ended(at: Instant, events: u64) -> Self {
        Self { at, events }
    }

    /// Events within which some request of a case completes.
    pub(super) fn events_max(case: &Case) -> u64 {
        if case.is_translated() { 8 * EVENTS } else { EVENTS }
    }

    /// The event count at the last completion in any session.
    pub(super) fn last_of(sessions: impl Iterator<Item = Self>) -> u64 {
        sessions.map(|bound| bound.events).max().unwrap_or(0)
    }

    /// Whether nothing has completed for too long: in this session by time, or in any by events.
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
    fn a_slow_drive_is_not_stuck_while_others_work() {
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
    fn endless_events_exceed_the_bound() {
        let now = WORKS.at;
        let since = |events: u64| events - ProgressBound::last_of([WORKS, WAITS].into_iter());
        assert!(!WAITS.is_stuck(now, since(8_900_000), 1_000_000));
        assert!(WAITS.is_stuck(now, since(8_900_001), 1_000_000));
        assert!(WORKS.is_stuck(now, since(8_900_001), 1_000_000));
    }

    #[test]
    fn the_time_bound_is_per_session() {
        let now = Instant::from_ps(1_501_000_000_000_001);
        assert!(WAITS.is_stuck(now, 0, 1_000_000));
        assert!(!WORKS.is_stuck(now, 0, 1_000_000));
    }
}
