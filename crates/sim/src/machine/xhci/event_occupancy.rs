//! Occupancy of the controller's event ring: which events are in it until the driver takes them,
//! and since when.
//!
//! Not modelled: events that are not written yet. Invariant: events are taken in the order in which
//! they were written.

use crate::engine::OccupancyStats;
use std::collections::VecDeque;
use units::{Duration, Instant};
use xhci_controller::EventTraffic;

/// Events in a ring over time.
#[derive(Clone, Debug, Default)]
pub(super) struct EventOccupancy {
    level: OccupancyStats,
    since: VecDeque<Instant>,
    /// The traffic that was accounted for.
    seen: EventTraffic,
    /// The driver has taken some that were never written.
    has_lost_count: bool,
}

impl EventOccupancy {
    /// Starts with the events that are present.
    pub(super) fn new(now: Instant, traffic: EventTraffic) -> Self {
        let mut occupancy = Self { seen: traffic, ..Self::default() };
        (0..traffic.present).for_each(|_| occupancy.arrive(now));
        occupancy
    }

    /// Accounts for the events written and taken since the last call, at `now`.
    pub(super) fn update(&mut self, now: Instant, traffic: EventTraffic) {
        if traffic.placed != self.seen.placed {
            // Events of the ring before are gone.
            let seen = EventTraffic { placed: traffic.placed, ..EventTraffic::default() };
            *self = Self { seen, ..Self::default() };
        }
        (self.seen.written..traffic.written).for_each(|_| self.arrive(now));
        if traffic.early != self.seen.early {
            self.date_back();
        }
        (self.seen.taken..traffic.taken).for_each(|_| self.leave(now));
        self.seen = traffic;
    }

    fn arrive(&mut self, now: Instant) {
        self.level.arrive(now);
        self.since.push_back(now);
    }

    fn leave(&mut self, now: Instant) {
        match self.since.pop_front() {
            Some(since) => self.level.leave(now, since),
            None => self.has_lost_count = true,
        }
    }

    /// Seeded bug: moves the time of the last event before its write.
    fn date_back(&mut self) {
        if let Some(since) = self.since.back_mut() {
            *since = Instant::from_ps(since.as_ps().saturating_sub(Duration::from_ns(1).as_ps()));
        }
    }

    /// Checks Little's law, and that the number of events matches the ring.
    pub(super) fn is_consistent(&self, now: Instant) -> bool {
        self.level.is_consistent(now) && self.level.count() == self.seen.present && !self.has_lost_count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ns: u64) -> Instant {
        Instant::ZERO + Duration::from_ns(ns)
    }

    const fn traffic(written: u64, taken: u64, present: u32) -> EventTraffic {
        EventTraffic { placed: 1, written, taken, present, early: 0 }
    }

    #[test]
    fn written_and_taken_events_are_balanced() {
        let mut occupancy = EventOccupancy::new(at(0), traffic(0, 0, 0));
        (1..=3).for_each(|count| occupancy.update(at(10 * count), traffic(count, 0, count as u32)));
        occupancy.update(at(50), traffic(3, 2, 1));
        assert!(occupancy.is_consistent(at(60)));
        occupancy.update(at(65), traffic(3, 2, 2));
        assert!(!occupancy.is_consistent(at(66)), "one more in the ring than was written");
        occupancy.update(at(70), traffic(3, 3, 0));
        assert!(occupancy.is_consistent(at(80)));
        occupancy.update(at(90), traffic(3, 4, 0));
        assert!(!occupancy.is_consistent(at(90)), "one more taken than there was");
    }

    #[test]
    fn a_new_ring_starts_empty() {
        let mut occupancy = EventOccupancy::new(at(0), traffic(5, 0, 5));
        let placed = EventTraffic { placed: 2, written: 1, taken: 0, present: 1, early: 0 };
        occupancy.update(at(10), placed);
        assert!(occupancy.is_consistent(at(20)));
    }

    #[test]
    fn an_event_dated_before_its_write_is_found() {
        let mut occupancy = EventOccupancy::new(at(0), traffic(0, 0, 0));
        occupancy.update(at(10), EventTraffic { early: 1, ..traffic(1, 0, 1) });
        occupancy.update(at(20), EventTraffic { early: 1, ..traffic(1, 1, 0) });
        assert!(!occupancy.is_consistent(at(30)));
    }
}
