//! Why a simulation stops, and the detection of livelocks: events that schedule each other while
//! time stands still, or state machines that trigger each other without events.
//!
//! Invariant: a stopped machine keeps reporting its reason.

use crate::check::{Invariant, Violation, ViolationSubject};
use crate::engine::{CapacityExceeded, QueueFull};
use std::fmt;
use units::Instant;

/// Why a simulation stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// One end violated the protocol: a model bug.
    Violation,
    /// See [`QueueFull`].
    QueueFull,
    /// See [`CapacityExceeded`].
    CapacityExceeded(CapacityExceeded),
    /// Events schedule each other while time stands still.
    StandsStill,
    /// State machines trigger each other endlessly without an event.
    NeverSettles,
    /// An invariant was violated.
    Broken(Violation),
}

impl StopReason {
    /// Returns the invariant that this violates, and its subject; `None` if a violation is known.
    pub(super) const fn breaks(self) -> Option<(Invariant, ViolationSubject)> {
        match self {
            Self::Violation => {
                Some((Invariant::Protocol, ViolationSubject::Machine("a message at the wrong time")))
            }
            Self::QueueFull => Some((Invariant::Progress, ViolationSubject::Machine("too many events"))),
            Self::CapacityExceeded(CapacityExceeded { queue, .. }) => {
                Some((Invariant::Progress, ViolationSubject::Queue(queue)))
            }
            Self::StandsStill => Some((Invariant::Progress, ViolationSubject::Machine("time stands still"))),
            Self::NeverSettles => {
                Some((Invariant::Progress, ViolationSubject::Machine("livelock without events")))
            }
            Self::Broken(_) => None,
        }
    }
}

/// Outputs between two events at most: a few per drive and command are usual.
pub(super) const AT_ONCE_MAX: u32 = 1 << 16;

/// Samples whether time advances: few events per drive share an instant.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pulse {
    looked_at: Option<Instant>,
}

/// Events between two samples. This many at one instant may go unnoticed, twice as many do not.
const EVENTS: u64 = 1 << 16;

impl Pulse {
    /// Counts an event. Returns whether time has stood still since the last sample.
    #[inline]
    pub(super) fn is_lost(&mut self, now: Instant, happened: u64) -> bool {
        happened.is_multiple_of(EVENTS) && self.looked_at.replace(now) == Some(now)
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Violation => f.write_str("one end violated the protocol: simulation model bug"),
            Self::QueueFull => QueueFull.fmt(f),
            Self::CapacityExceeded(full) => full.fmt(f),
            Self::StandsStill => f.write_str("events repeat while time stands still: simulation model bug"),
            Self::NeverSettles => {
                f.write_str("state machines trigger each other without an event: simulation model bug")
            }
            Self::Broken(violation) => violation.fmt(f),
        }
    }
}

impl std::error::Error for StopReason {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of events until detection.
    fn lost_after(at: impl Fn(u64) -> u64) -> Option<u64> {
        let mut pulse = Pulse::default();
        (1..=400_000).find(|&event| pulse.is_lost(Instant::from_ps(at(event)), event))
    }

    #[test]
    fn time_that_stands_still_is_detected() {
        assert_eq!(lost_after(|_| 7), Some(131_072));
        assert_eq!(lost_after(|event| event.min(100_000)), Some(196_608));
    }

    #[test]
    fn slow_progress_is_not_reported() {
        assert_eq!(lost_after(|event| event), None);
        assert_eq!(lost_after(|event| event / 65_536), None);
    }
}
