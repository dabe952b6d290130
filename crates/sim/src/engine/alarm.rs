//! A moving deadline on top of events that cannot be cancelled.

use units::Instant;

/// Schedules events for the deadline of one state machine. The deadline moves with each command,
/// and an event per move would fill the queue with 30 s time-outs. So `set` requests an event only
/// if no earlier one is pending, and an event that arrives too early is re-examined.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alarm {
    /// Time of the earliest scheduled event.
    scheduled: Option<Instant>,
}

impl Alarm {
    /// Sets the deadline. If this returns a time, the caller schedules an event for it.
    #[must_use = "without the event the deadline is missed"]
    pub fn set(&mut self, deadline: Option<Instant>) -> Option<Instant> {
        let deadline = deadline?;
        if self.scheduled.is_some_and(|scheduled| scheduled <= deadline) {
            return None;
        }
        self.scheduled = Some(deadline);
        Some(deadline)
    }

    /// Returns the time of the pending event.
    pub const fn scheduled(&self) -> Option<Instant> {
        self.scheduled
    }

    /// Handles an event. Returns whether it is the earliest scheduled one; a later one that was
    /// overtaken is ignored.
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
    fn an_earlier_deadline_overtakes_the_previous_one() {
        let mut alarm = Alarm::default();
        assert_eq!(alarm.set(at(20)), at(20));
        assert_eq!(alarm.set(at(10)), at(10));
        assert!(alarm.ring(Instant::from_ps(10)));
        assert!(!alarm.ring(Instant::from_ps(20)));
    }
}
