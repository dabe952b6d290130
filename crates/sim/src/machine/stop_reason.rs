//! Why a world does not go on, and how one is noticed that goes round in a circle: whose events make each other while time stands
//! still, or whose machines make each other want something while nothing happens.
//!
//! Always true: a world that has stopped says why, whoever lets it go on.

use crate::check::{Invariant, Violation, ViolationSubject};
use crate::engine::{CapacityExceeded, QueueFull};
use std::fmt;
use units::Instant;

/// Why a world does not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// One end sent what it could not have sent: a fault of ours.
    Violation,
    /// See [`QueueFull`].
    QueueFull,
    /// See [`CapacityExceeded`].
    CapacityExceeded(CapacityExceeded),
    /// Events make each other, and time stands still.
    StandsStill,
    /// Machines of ours make each other want something, without an end and without an event.
    NeverSettles,
    /// A law was broken.
    Broken(Violation),
}

impl StopReason {
    /// The law that a world breaks by stopping so, and what that is about; `None` for one whose broken law is known.
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
                Some((Invariant::Progress, ViolationSubject::Machine("nobody comes to rest")))
            }
            Self::Broken(_) => None,
        }
    }
}

/// Things that machines of a world want one after the other, before anything else happens: a few for each drive and command, and
/// not so many.
pub(super) const AT_ONCE_MAX: u32 = 1 << 16;

/// Whether time goes on, which is looked at now and then: what happens at one instant happens a few times for each drive, and
/// not so often.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pulse {
    looked_at: Option<Instant>,
}

/// Events from one look to the next. As many at one instant may be missed, and twice as many are not.
const EVENTS: u64 = 1 << 16;

impl Pulse {
    /// An event has happened: whether time stands still since the last look.
    #[inline(always)]
    pub(super) fn is_lost(&mut self, now: Instant, happened: u64) -> bool {
        happened.is_multiple_of(EVENTS) && self.looked_at.replace(now) == Some(now)
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Violation => {
                f.write_str("one end sent what it could not have sent, which is a fault of the model")
            }
            Self::QueueFull => QueueFull.fmt(f),
            Self::CapacityExceeded(full) => full.fmt(f),
            Self::StandsStill => {
                f.write_str("events make each other while time stands still, which is a fault of the model")
            }
            Self::NeverSettles => f.write_str(
                "machines make each other want something and nothing happens, which is a fault of the model",
            ),
            Self::Broken(violation) => violation.fmt(f),
        }
    }
}

impl std::error::Error for StopReason {}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many events it took.
    fn lost_after(at: impl Fn(u64) -> u64) -> Option<u64> {
        let mut pulse = Pulse::default();
        (1..=400_000).find(|&event| pulse.is_lost(Instant::from_ps(at(event)), event))
    }

    #[test]
    fn time_that_stands_still_is_noticed() {
        assert_eq!(lost_after(|_| 7), Some(131_072));
        assert_eq!(lost_after(|event| event.min(100_000)), Some(196_608));
    }

    #[test]
    fn time_that_goes_on_slowly_is_not() {
        assert_eq!(lost_after(|event| event), None);
        assert_eq!(lost_after(|event| event / 65_536), None);
    }
}
