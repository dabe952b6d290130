//! Seeded bugs: known bugs injected on purpose, to test that the checks find them.
//!
//! A seeded bug acts in the glue code of a machine, where our code could have it; initiator and
//! device are unchanged. One bug is active at a time. Invariant: without a seeded bug a machine
//! behaves as if this module did not exist.

use std::fmt;

/// A seeded bug that the checks must find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeededBug {
    /// The completion of a command is not reported.
    LostEnd,
    /// The completion of a command is reported twice.
    EndTwice,
    /// A transfer reports one byte less than it moved.
    Residue,
    /// A flush is acknowledged and not executed.
    SkippedFlush,
    /// A write with FUA stays in the cache.
    IgnoredFua,
    /// Data of one stream are sent on another.
    MixedStreams,
    /// An ERDY is lost at the host.
    MissedErdy,
    /// A write is executed again later.
    WriteTwice,
    /// A write is acknowledged and not executed.
    LostWrite,
    /// A read returns the content of an earlier read.
    StaleRead,
    /// A command carries the tag of the previous one, which may be in flight.
    EarlyTag,
    /// A unit attention is suppressed.
    ForgottenAttention,
    /// A controller drops an event.
    LostEvent,
    /// A controller writes an event twice.
    EventTwice,
    /// A controller writes an event with the wrong cycle bit.
    WrongCycle,
    /// A controller event points to the TRB after the one that it is about.
    WrongPointer,
    /// A controller event reports a residue that is one byte too large.
    WrongLength,
    /// An event enters the statistics of the event ring before it was written.
    LongEvent,
    /// A controller skips a TD.
    SkippedTd,
    /// An event schedules another one at the same time, endlessly.
    Echo,
    /// An idle state machine is polled endlessly.
    Restless,
    /// A packet on a SuperSpeed link takes no time.
    Haste,
    /// Data on a USB 2.0 bus takes no time.
    HastyBus,
    /// The drive does not learn that one of its transfers was sent.
    UnreportedEnd,
    /// A byte on a USB 2.0 bus is not counted.
    UncountedByte,
    /// A successful control transfer is reported as failed.
    LostAnswer,
    /// The drive does not learn that a cancelled transfer is off the bus. Nothing waits for that.
    KeptOffer,
    /// A request enters the statistics of the medium before it arrived.
    LongStay,
    /// Idle time of a drive is not booked with its energy.
    UnbookedTime,
    /// A medium request completes before it was submitted.
    PastEvent,
    /// The completion of a request is reported twice.
    RequestTwice,
    /// The device port loses its endpoints and is addressed.
    LostEndpoints,
    /// A bridge sends a queued write for other blocks than the SCSI command names.
    WrongExtent,
}

/// Triggers the seeded bug, if there is one.
#[derive(Clone, Copy, Debug, Default)]
pub struct BugInjector {
    bug: Option<SeededBug>,
    met: u32,
}

impl SeededBug {
    /// All seeded bugs.
    pub const ALL: [Self; 33] = [
        Self::LostEnd,
        Self::EndTwice,
        Self::Residue,
        Self::SkippedFlush,
        Self::IgnoredFua,
        Self::MixedStreams,
        Self::MissedErdy,
        Self::WriteTwice,
        Self::LostWrite,
        Self::StaleRead,
        Self::EarlyTag,
        Self::ForgottenAttention,
        Self::LostEvent,
        Self::EventTwice,
        Self::WrongCycle,
        Self::WrongPointer,
        Self::WrongLength,
        Self::LongEvent,
        Self::SkippedTd,
        Self::Echo,
        Self::Restless,
        Self::Haste,
        Self::HastyBus,
        Self::UnreportedEnd,
        Self::UncountedByte,
        Self::LostAnswer,
        Self::KeptOffer,
        Self::LongStay,
        Self::UnbookedTime,
        Self::PastEvent,
        Self::RequestTwice,
        Self::LostEndpoints,
        Self::WrongExtent,
    ];

    /// Triggers at every n-th opportunity: rarely, unless there are few opportunities.
    const fn every(self) -> u32 {
        match self {
            Self::SkippedFlush
            | Self::IgnoredFua
            | Self::ForgottenAttention
            | Self::KeptOffer
            | Self::WrongExtent => 1,
            // Identifying a drive takes a dozen commands.
            bug if bug.is_of_controller() => 64,
            // Packets are frequent.
            Self::Haste
            | Self::HastyBus
            | Self::UnreportedEnd
            | Self::UncountedByte
            | Self::LostEndpoints => 64,
            // Enumeration takes seven requests.
            Self::LostAnswer => 5,
            _ => 3,
        }
    }

    /// Returns whether the bug needs a host controller.
    pub const fn is_of_controller(self) -> bool {
        matches!(
            self,
            Self::LostEvent
                | Self::EventTwice
                | Self::WrongCycle
                | Self::WrongPointer
                | Self::WrongLength
                | Self::LongEvent
                | Self::SkippedTd
        )
    }

    /// Returns the name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::LostEnd => "lost-end",
            Self::EndTwice => "end-twice",
            Self::Residue => "residue",
            Self::SkippedFlush => "skipped-flush",
            Self::IgnoredFua => "ignored-fua",
            Self::MixedStreams => "mixed-streams",
            Self::MissedErdy => "missed-erdy",
            Self::WriteTwice => "write-twice",
            Self::LostWrite => "lost-write",
            Self::StaleRead => "stale-read",
            Self::EarlyTag => "early-tag",
            Self::ForgottenAttention => "forgotten-attention",
            Self::LostEvent => "lost-event",
            Self::EventTwice => "event-twice",
            Self::WrongCycle => "wrong-cycle",
            Self::WrongPointer => "wrong-pointer",
            Self::WrongLength => "wrong-length",
            Self::LongEvent => "long-event",
            Self::SkippedTd => "skipped-td",
            Self::Echo => "echo",
            Self::Restless => "restless",
            Self::Haste => "haste",
            Self::HastyBus => "hasty-bus",
            Self::UnreportedEnd => "unreported-end",
            Self::UncountedByte => "uncounted-byte",
            Self::LostAnswer => "lost-answer",
            Self::KeptOffer => "kept-offer",
            Self::LongStay => "long-stay",
            Self::UnbookedTime => "unbooked-time",
            Self::PastEvent => "past-event",
            Self::RequestTwice => "request-twice",
            Self::LostEndpoints => "lost-endpoints",
            Self::WrongExtent => "wrong-extent",
        }
    }
}

impl BugInjector {
    /// Creates an injector.
    pub const fn new(bug: Option<SeededBug>) -> Self {
        Self { bug, met: 0 }
    }

    /// Returns whether no bug is seeded.
    pub const fn is_none(&self) -> bool {
        self.bug.is_none()
    }

    /// Counts an opportunity for `bug`. Returns whether it triggers.
    pub fn triggers(&mut self, bug: SeededBug) -> bool {
        if self.bug != Some(bug) {
            return false;
        }
        self.met = self.met.wrapping_add(1);
        self.met.is_multiple_of(bug.every())
    }
}

impl fmt::Display for SeededBug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bug_triggers_periodically_and_only_if_seeded() {
        let mut injector = BugInjector::new(Some(SeededBug::StaleRead));
        let shows: Vec<bool> = (0..6).map(|_| injector.triggers(SeededBug::StaleRead)).collect();
        assert_eq!(shows, [false, false, true, false, false, true]);
        assert!((0..9).all(|_| !injector.triggers(SeededBug::LostWrite)));
        assert!((0..9).all(|_| !BugInjector::default().triggers(SeededBug::LostWrite)));
    }
}
