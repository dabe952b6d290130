//! Power and energy by part and state.
//!
//! A [`Meter`] belongs to a part with a few states and a power per state. It keeps two independent
//! counts: time per state, and power integrated over time. Their agreement is checked in every
//! machine ([`crate::check::Invariant::Energy`]), exactly: microwatts times picoseconds are
//! attojoules. [`think_time`] measures what link power states cost and save for a host that pauses
//! between commands; [`machine`] gives the power of a whole machine under load.
//!
//! Left out: energy of state changes, and losses in supply and cable.

pub mod machine;
pub mod think_time;

use std::fmt;
use units::{Duration, Instant};

/// Power, in microwatts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Microwatts(pub u32);

/// Energy, in attojoules: a microwatt for a picosecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Attojoules(pub u128);

/// A power meter of a part with `STATES` states.
#[derive(Clone, Debug)]
pub struct Meter<const STATES: usize> {
    draws: [Microwatts; STATES],
    state: usize,
    since: Instant,
    /// Time per state up to `since`, without the current one.
    times: [Duration; STATES],
    /// The energy up to now is the current power times all the time, plus this; each change of
    /// power adds power difference times its instant.
    offset: i128,
}

impl Microwatts {
    /// Converts from milliwatts.
    pub const fn from_milliwatts(milliwatts: u32) -> Self {
        Self(milliwatts * 1_000)
    }

    /// Returns the energy over a span.
    pub const fn over(self, span: Duration) -> Attojoules {
        Attojoules(self.0 as u128 * span.as_ps() as u128)
    }
}

impl Attojoules {
    /// Converts to joules.
    pub fn joules(self) -> f64 {
        self.0 as f64 / 1e18
    }

    /// Returns the mean power over a span.
    pub fn mean(self, span: Duration) -> Microwatts {
        let mean = self.0.checked_div(u128::from(span.as_ps())).unwrap_or(0);
        Microwatts(u32::try_from(mean).unwrap_or(u32::MAX))
    }
}

impl<const STATES: usize> Meter<STATES> {
    /// Creates a meter with the power of each state; the first state holds at time zero.
    pub const fn new(draws: [Microwatts; STATES]) -> Self {
        Self { draws, state: 0, since: Instant::ZERO, times: [Duration::from_ps(0); STATES], offset: 0 }
    }

    /// Switches to a state at `at`, which is not before the last change.
    pub fn switch(&mut self, at: Instant, state: usize) {
        debug_assert!(at >= self.since, "states follow each other");
        self.times[self.state] += at.since(self.since);
        let change = i128::from(self.draws[self.state].0) - i128::from(self.draws[state].0);
        self.offset += change * i128::from(at.as_ps());
        (self.state, self.since) = (state, at.max(self.since));
    }

    /// Seeded bug: switches without booking the time so far.
    pub(crate) const fn switch_without_books(&mut self, at: Instant, state: usize) {
        (self.state, self.since) = (state, at);
    }

    /// Returns the current state.
    pub const fn state(&self) -> usize {
        self.state
    }

    /// Returns the time of the last switch.
    pub const fn since(&self) -> Instant {
        self.since
    }

    /// Returns the time per state up to `now`.
    pub fn times(&self, now: Instant) -> [Duration; STATES] {
        let mut times = self.times;
        times[self.state] += now.since(self.since);
        times
    }

    /// Returns the energy per state up to `now`.
    pub fn energy_by_state(&self, now: Instant) -> [Attojoules; STATES] {
        let times = self.times(now);
        std::array::from_fn(|state| self.draws[state].over(times[state]))
    }

    /// Returns the power integrated over time up to `now`.
    pub fn energy(&self, now: Instant) -> Attojoules {
        let now = now.max(self.since);
        let drawn = i128::from(self.draws[self.state].0) * i128::from(now.as_ps());
        Attojoules(u128::try_from(drawn + self.offset).unwrap_or(0))
    }

    /// Returns whether both counts agree: the times add up to the elapsed time, and the energies
    /// per state to the integral.
    pub fn is_consistent(&self, now: Instant) -> bool {
        let now = now.max(self.since);
        let spent: u128 = self.times(now).iter().map(|time| u128::from(time.as_ps())).sum();
        let cost: u128 = self.energy_by_state(now).iter().map(|energy| energy.0).sum();
        spent == u128::from(now.as_ps()) && cost == self.energy(now).0
    }
}

/// Subtracts earlier times per state.
pub(crate) fn since<const STATES: usize>(
    times: [Duration; STATES],
    earlier: [Duration; STATES],
) -> [Duration; STATES] {
    std::array::from_fn(|state| times[state].saturating_sub(earlier[state]))
}

impl fmt::Display for Attojoules {
    /// `1.234567 mJ`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06} mJ", self.0 / 10_u128.pow(15), self.0 / 10_u128.pow(9) % 1_000_000)
    }
}

impl fmt::Display for Microwatts {
    /// `300.000 mW`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03} mW", self.0 / 1_000, self.0 % 1_000)
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
    fn a_watt_for_a_second_is_a_joule() {
        let energy = Microwatts::from_milliwatts(1_000).over(Duration::from_secs(1));
        assert_eq!(energy, Attojoules(1_000_000_000_000_000_000));
        assert_eq!(energy.to_string(), "1000.000000 mJ");
        assert_eq!(energy.mean(Duration::from_secs(4)).to_string(), "250.000 mW");
    }

    #[test]
    fn time_in_two_states_costs_what_each_draws() {
        let mut meter = Meter::new([Microwatts(300), Microwatts(7)]);
        meter.switch(at(10), 1);
        meter.switch(at(30), 0);
        assert_eq!(meter.times(at(35)), [Duration::from_ps(15), Duration::from_ps(20)]);
        assert_eq!(meter.energy_by_state(at(35)), [Attojoules(4_500), Attojoules(140)]);
        assert_eq!(meter.energy(at(35)), Attojoules(4_640));
        assert!(meter.is_consistent(at(35)));
    }

    #[test]
    fn unaccounted_time_is_detected() {
        let mut meter = Meter::new([Microwatts(300), Microwatts(7)]);
        meter.switch(at(10), 1);
        meter.times[0] = Duration::from_ps(9);
        assert!(!meter.is_consistent(at(20)));
    }

    #[test]
    fn unintegrated_energy_is_detected() {
        let mut meter = Meter::new([Microwatts(300), Microwatts(7)]);
        meter.switch(at(10), 1);
        meter.offset -= 1;
        assert!(!meter.is_consistent(at(20)));
    }

    proptest! {
        #[test]
        fn both_energy_counts_agree(draws in any::<[u32; 3]>(), turns in prop::collection::vec((0_u64..1 << 45, 0_usize..3), 0..50)) {
            let mut meter = Meter::new(draws.map(Microwatts));
            let mut now = 0;
            for (span, state) in turns {
                now += span;
                meter.switch(at(now), state);
                prop_assert!(meter.is_consistent(at(now + 12_345)));
            }
        }
    }
}
