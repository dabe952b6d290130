//! Known bugs, planted on purpose to see whether the checks find them.
//!
//! A bug lives in the glue of a world, where a part of ours could have it; the initiator and the target are as they always
//! are. One is planted at a time. Always true: a world without a planted bug is the same as if there were none to plant.

use std::fmt;

/// A bug that the checks must find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeededBug {
    /// The end of a command is not told.
    LostEnd,
    /// The end of a command is told twice.
    EndTwice,
    /// A transfer is said to have moved one byte less than it has.
    Residue,
    /// A flush is answered and not done.
    SkippedFlush,
    /// A write through the cache stays in the cache.
    IgnoredFua,
    /// Data of one stream are sent on another.
    MixedStreams,
    /// ERDY is not heard.
    MissedErdy,
    /// A write is done once more, later.
    WriteTwice,
    /// A write is answered and not done.
    LostWrite,
    /// A read is answered with what the blocks held at an earlier one.
    StaleRead,
    /// A command goes out with the tag of the one before, which may be under way.
    EarlyTag,
    /// Where a unit has something to say about a command, nothing is said.
    ForgottenAttention,
    /// An event of a controller is not written.
    LostEvent,
    /// An event of a controller is written twice.
    EventTwice,
    /// An event of a controller has the wrong cycle bit.
    WrongCycle,
    /// An event of a controller names the TRB after that which it is about.
    WrongPointer,
    /// An event of a controller tells one byte more that did not move.
    WrongLength,
    /// An event of a controller is said to lie in its ring since before it was written.
    LongEvent,
    /// A controller does not carry out a TD.
    SkippedTd,
    /// An event makes another one at the same time, and that the next.
    Echo,
    /// A machine that has nothing more to say is asked for ever.
    Restless,
    /// What is sent on a SuperSpeed link takes no time.
    Haste,
    /// Data that is sent on a bus of USB 2.0 takes no time.
    HastyBus,
    /// A drive is not told that something of its own has gone out.
    UnreportedEnd,
    /// A byte that crosses a bus of USB 2.0 is not counted.
    UncountedByte,
    /// A control transfer that went well is told to have failed.
    LostAnswer,
    /// A drive is not told that something which was taken back is off the bus. Nobody waits for that.
    KeptOffer,
    /// A request is said to be at a medium since before it came.
    LongStay,
    /// The time for which a drive had nothing to do is not booked with what it draws.
    UnbookedTime,
    /// What a medium does is due before it was asked for.
    PastEvent,
    /// The end of a request is told twice.
    RequestTwice,
    /// The port of a device forgets its endpoints, and is asked for them.
    LostEndpoints,
    /// A bridge gives its drive a queued write of other blocks than those of the SCSI command.
    WrongExtent,
}

/// A bug in its place, or none.
#[derive(Clone, Copy, Debug, Default)]
pub struct BugInjector {
    bug: Option<SeededBug>,
    met: u32,
}

impl SeededBug {
    /// All of them.
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

    /// It shows at every so manieth opportunity: seldom, as bugs do, unless there are few opportunities.
    const fn every(self) -> u32 {
        match self {
            Self::SkippedFlush
            | Self::IgnoredFua
            | Self::ForgottenAttention
            | Self::KeptOffer
            | Self::WrongExtent => 1,
            // A drive is looked at by a dozen commands before it is asked for anything.
            bug if bug.is_of_controller() => 64,
            // There are many packets.
            Self::Haste
            | Self::HastyBus
            | Self::UnreportedEnd
            | Self::UncountedByte
            | Self::LostEndpoints => 64,
            // A drive is asked seven things while it is brought up.
            Self::LostAnswer => 5,
            _ => 3,
        }
    }

    /// Whether it is one of a host controller, and shows in no world without.
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

    /// Its name on a command line.
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
            Self::UnreportedEnd => "untold-end",
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
    /// With this bug.
    pub const fn new(bug: Option<SeededBug>) -> Self {
        Self { bug, met: 0 }
    }

    /// Whether there is none.
    pub const fn is_none(&self) -> bool {
        self.bug.is_none()
    }

    /// An opportunity for a bug: whether it shows.
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
    fn a_bug_shows_now_and_then_and_only_where_it_was_planted() {
        let mut injector = BugInjector::new(Some(SeededBug::StaleRead));
        let shows: Vec<bool> = (0..6).map(|_| injector.triggers(SeededBug::StaleRead)).collect();
        assert_eq!(shows, [false, false, true, false, false, true]);
        assert!((0..9).all(|_| !injector.triggers(SeededBug::LostWrite)));
        assert!((0..9).all(|_| !BugInjector::default().triggers(SeededBug::LostWrite)));
    }
}
