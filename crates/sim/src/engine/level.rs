//! Exact occupancy statistics of a queueing station, so that Little's law can be asserted.
//!
//! Little's law: mean occupancy = arrival rate × mean stay. Over a span that starts and ends empty
//! it is an identity: the area under the occupancy curve equals the sum of all stays. Both sides
//! are counted independently, in whole picoseconds.

use units::{Duration, Instant};

/// Occupancy statistics of one station.
#[derive(Clone, Copy, Debug, Default)]
pub struct OccupancyStats {
    count: u32,
    most: u32,
    changed: Instant,
    /// Items times picoseconds.
    area: u128,
    arrived: u64,
    /// Sum of all completed stays in picoseconds.
    stays: u128,
    /// Sum of the arrival times of the items present.
    came: u128,
}

impl OccupancyStats {
    /// Records an arrival.
    pub fn arrive(&mut self, now: Instant) {
        self.pass(now);
        self.count += 1;
        self.most = self.most.max(self.count);
        self.arrived += 1;
        self.came += u128::from(now.as_ps());
    }

    /// Records the departure of an item that arrived at `since`.
    pub fn leave(&mut self, now: Instant, since: Instant) {
        debug_assert!(self.count > 0, "departures follow arrivals");
        self.pass(now);
        self.count = self.count.saturating_sub(1);
        self.stays += u128::from((now - since).as_ps());
        self.came = self.came.saturating_sub(u128::from(since.as_ps()));
    }

    /// Returns the current occupancy.
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// Returns the maximum occupancy.
    pub const fn most(&self) -> u32 {
        self.most
    }

    /// Returns the number of arrivals.
    pub const fn arrived(&self) -> u64 {
        self.arrived
    }

    /// Returns the mean occupancy up to `now`.
    pub fn mean(&self, now: Instant) -> f64 {
        match now.as_ps() {
            0 => 0.0,
            span => self.area(now) as f64 / span as f64,
        }
    }

    /// Returns the mean stay of the items that have left.
    pub fn mean_stay(&self) -> Duration {
        let left = u128::from(self.arrived) - u128::from(self.count);
        Duration::from_ps(
            self.stays.checked_div(left).map_or(0, |mean| u64::try_from(mean).unwrap_or(u64::MAX)),
        )
    }

    /// Returns whether Little's law holds up to `now`: if not, an item left without arriving, or
    /// arrived twice. A wrong arrival time is found once the station is empty, since the arrival
    /// sum is then non-zero.
    pub fn is_consistent(&self, now: Instant) -> bool {
        let still_here = u128::from(self.count) * u128::from(now.as_ps());
        let is_even = self.count > 0 || self.came == 0;
        is_even && self.area(now) + self.came == self.stays + still_here
    }

    /// Returns items times picoseconds up to `now`.
    pub fn area(&self, now: Instant) -> u128 {
        self.area + u128::from(self.count) * u128::from((now - self.changed).as_ps())
    }

    fn pass(&mut self, now: Instant) {
        self.area = self.area(now);
        self.changed = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn at(ps: u64) -> Instant {
        Instant::from_ps(ps)
    }

    #[test]
    fn overlapping_stays_add_up() {
        let mut level = OccupancyStats::default();
        level.arrive(at(10));
        level.arrive(at(20));
        level.leave(at(40), at(10));
        level.leave(at(60), at(20));
        assert_eq!((level.count(), level.most(), level.arrived()), (0, 2, 2));
        assert_eq!(level.mean_stay(), Duration::from_ps(35));
        assert!((level.mean(at(100)) - 0.7).abs() < 1e-9);
        assert!(level.is_consistent(at(100)));
    }

    #[test]
    fn a_departure_with_a_wrong_arrival_time_is_detected() {
        let mut level = OccupancyStats::default();
        level.arrive(at(10));
        level.leave(at(40), at(11));
        assert!(!level.is_consistent(at(50)));
    }

    #[test]
    fn a_departure_with_a_too_early_arrival_time_is_detected() {
        let mut level = OccupancyStats::default();
        level.arrive(at(10));
        level.arrive(at(20));
        level.leave(at(40), at(9));
        level.leave(at(45), at(20));
        assert!(!level.is_consistent(at(50)));
    }

    proptest! {
        #[test]
        fn littles_law_holds_at_any_time(steps in prop::collection::vec((0_u64..1000, any::<prop::sample::Index>(), any::<bool>()), 0..200)) {
            let (mut level, mut here, mut now) = (OccupancyStats::default(), Vec::new(), 0);
            for (span, which, leaves) in steps {
                now += span;
                if leaves && !here.is_empty() {
                    level.leave(at(now), here.swap_remove(which.index(here.len())));
                } else {
                    level.arrive(at(now));
                    here.push(at(now));
                }
                prop_assert!(level.is_consistent(at(now + 5)));
                prop_assert_eq!(level.count() as usize, here.len());
            }
        }
    }
}
