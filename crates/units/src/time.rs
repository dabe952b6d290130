//! Time in picoseconds: fine enough for one symbol of any USB, and 213 days in 64 bits.
//!
//! A point and a span are different types: points subtract to a span, spans add up, points do not. Everything
//! saturates, since time that wraps runs back. Left out: calendars and clocks.

use core::fmt;
use core::ops::{Add, AddAssign, Sub};

/// A point in time, in picoseconds since the back end's own zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

/// A span of time, in picoseconds. Never negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(u64);

impl Instant {
    /// The back end's zero.
    pub const ZERO: Self = Self(0);

    /// The point `ps` picoseconds after the back end's zero.
    pub const fn from_ps(ps: u64) -> Self {
        Self(ps)
    }

    /// Picoseconds since the back end's zero.
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// The span from `earlier` to here; zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Duration {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// A span of `ps` picoseconds.
    pub const fn from_ps(ps: u64) -> Self {
        Self(ps)
    }

    /// A span of `ns` nanoseconds; saturates.
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns.saturating_mul(PS_PER_NS))
    }

    /// A span of `us` microseconds; saturates.
    pub const fn from_us(us: u64) -> Self {
        Self(us.saturating_mul(PS_PER_US))
    }

    /// A span of `ms` milliseconds; saturates.
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms.saturating_mul(PS_PER_MS))
    }

    /// A span of `s` seconds; saturates.
    pub const fn from_secs(s: u64) -> Self {
        Self(s.saturating_mul(PS_PER_S))
    }

    /// The span in picoseconds.
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// The span in whole nanoseconds, rounded down.
    pub const fn as_ns(self) -> u64 {
        self.0 / PS_PER_NS
    }

    /// The span in whole milliseconds, rounded down.
    pub const fn as_ms(self) -> u64 {
        self.0 / PS_PER_MS
    }

    /// How much longer it is than another; nothing if it is shorter.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    /// Saturates at the end of time rather than wrapping into the past.
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl Add for Duration {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Duration {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Instant {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.since(earlier)
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ps if ps < PS_PER_NS => write!(f, "{ps} ps"),
            ps if ps < PS_PER_US => write!(f, "{}.{:03} ns", ps / PS_PER_NS, ps % PS_PER_NS),
            ps if ps < PS_PER_MS => write!(f, "{}.{:03} us", ps / PS_PER_US, ps % PS_PER_US / PS_PER_NS),
            ps if ps < PS_PER_S => write!(f, "{}.{:03} ms", ps / PS_PER_MS, ps % PS_PER_MS / PS_PER_US),
            ps => write!(f, "{}.{:03} s", ps / PS_PER_S, ps % PS_PER_S / PS_PER_MS),
        }
    }
}

const PS_PER_NS: u64 = 1_000;
const PS_PER_US: u64 = 1_000_000;
const PS_PER_MS: u64 = 1_000_000_000;
const PS_PER_S: u64 = 1_000_000_000_000;

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn an_instant_never_runs_back() {
        let early = Instant::from_ps(5);
        let late = early + Duration::from_ns(1);
        assert_eq!(late - early, Duration::from_ps(1_000));
        assert_eq!(early - late, Duration::ZERO);
        assert_eq!(Instant::from_ps(u64::MAX) + Duration::from_secs(1), Instant::from_ps(u64::MAX));
    }

    #[test]
    fn a_span_prints_in_the_unit_that_fits() {
        assert_eq!(Duration::from_ps(999).to_string(), "999 ps");
        assert_eq!(Duration::from_ps(2_112_000).to_string(), "2.112 us");
        assert_eq!(Duration::from_ms(1_500).to_string(), "1.500 s");
    }

    #[test]
    fn what_is_shorter_is_not_longer_by_anything() {
        let [short, long] = [3, 8].map(Duration::from_ns);
        assert_eq!(long.saturating_sub(short), Duration::from_ns(5));
        assert_eq!(short.saturating_sub(long), Duration::ZERO);
    }
}
