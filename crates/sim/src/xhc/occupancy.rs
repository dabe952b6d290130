//! Occupancy of an event ring: which events are in it until the driver takes them, and since when.
//!
//! Not modelled: events that are not written yet. Invariant: events are taken in the order in which
//! they were written.

use crate::engine::OccupancyStats;
use std::collections::VecDeque;
use units::{Duration, Instant};

/// Number of events in a ring over time.
#[derive(Clone, Debug, Default)]
pub(super) struct OccupancyLedger {
    level: OccupancyStats,
    since: VecDeque<Instant>,
    /// The driver has taken some that were never written.
    has_lost_count: bool,
}

impl OccupancyLedger {
    /// Records a written event.
    pub(super) fn written(&mut self, now: Instant) {
        self.level.arrive(now);
        self.since.push_back(now);
    }

    /// Records `count` events taken by the driver.
    pub(super) fn taken(&mut self, now: Instant, count: u32) {
        for _ in 0..count {
            match self.since.pop_front() {
                Some(since) => self.level.leave(now, since),
                None => self.has_lost_count = true,
            }
        }
    }

    /// Seeded bug: moves the time of the last event before its write.
    pub(super) fn date_back(&mut self) {
        if let Some(since) = self.since.back_mut() {
            *since = Instant::from_ps(since.as_ps().saturating_sub(Duration::from_ns(1).as_ps()));
        }
    }

    /// Checks Little's law, and that the number of events matches the ring.
    pub(super) fn is_consistent(&self, now: Instant, lie_there: u32) -> bool {
        self.level.is_consistent(now) && self.level.count() == lie_there && !self.has_lost_count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ns: u64) -> Instant {
        Instant::ZERO + Duration::from_ns(ns)
    }

    #[test]
    fn what_is_written_and_taken_adds_up_and_what_is_not_does_not() {
        let mut ledger = OccupancyLedger::default();
        [10, 20, 30].into_iter().for_each(|ns| ledger.written(at(ns)));
        ledger.taken(at(50), 2);
        assert!(ledger.is_consistent(at(60), 1) && !ledger.is_consistent(at(60), 2));
        ledger.taken(at(70), 1);
        assert!(ledger.is_consistent(at(80), 0));
        ledger.taken(at(90), 1);
        assert!(!ledger.is_consistent(at(90), 0), "one more than there was");
    }

    #[test]
    fn one_that_is_dated_back_is_seen_when_nothing_is_there() {
        let mut ledger = OccupancyLedger::default();
        ledger.written(at(10));
        ledger.date_back();
        ledger.taken(at(20), 1);
        assert!(!ledger.is_consistent(at(30), 0));
    }
}
