//! One deadline that may move, as events that are never taken back.

use units::Instant;

/// The deadline of one machine. It moves with each command; an event for each move would fill the queue with time-outs
/// of 30 s. So an event is scheduled only if none comes early enough, and one that comes too early is looked at again.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alarm {
    /// When the earliest event comes that was scheduled.
    scheduled: Option<Instant>,
}

impl Alarm {
    /// The machine's deadline is `deadline` now. If this says so, the world schedules an event for then.
    #[must_use = "without the event the deadline passes unseen"]
    pub fn set(&mut self, deadline: Option<Instant>) -> Option<Instant> {
        let deadline = deadline?;
        if self.scheduled.is_some_and(|scheduled| scheduled <= deadline) {
            return None;
        }
        self.scheduled = Some(deadline);
        Some(deadline)
    }

    /// When an event will come, if one will.
    pub const fn scheduled(&self) -> Option<Instant> {
        self.scheduled
    }

    /// The event of time `now` has come. Whether it is the earliest one that was scheduled; a later one, which an earlier
    /// has overtaken, is of no use any more.
    pub fn ring(&mut self, now: Instant) -> bool {
        let due = self.scheduled.is_some_and(|scheduled| scheduled <= now);
        if due {
            self.scheduled = None;
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(ps: u64) -> Option<Instant> {
        Some(Instant::from_ps(ps))
    }

    #[test]
    fn a_deadline_that_moves_away_needs_no_event() {
        let mut alarm = Alarm::default();
        assert_eq!(alarm.set(at(10)), at(10));
        assert_eq!(alarm.set(at(20)), None);
        assert_eq!(alarm.set(None), None);
        assert_eq!(alarm.scheduled(), at(10));
        assert!(alarm.ring(Instant::from_ps(10)));
        assert_eq!(alarm.scheduled(), None);
        assert_eq!(alarm.set(at(20)), at(20));
    }

    #[test]
    fn a_deadline_that_comes_nearer_overtakes_the_one_before() {
        let mut alarm = Alarm::default();
        assert_eq!(alarm.set(at(20)), at(20));
        assert_eq!(alarm.set(at(10)), at(10));
        assert!(alarm.ring(Instant::from_ps(10)));
        assert!(!alarm.ring(Instant::from_ps(20)));
    }
}
