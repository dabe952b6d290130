//! Invariants of every machine, and the checks that report violations.
//!
//! An [`Invariant`] is a statement about any run. A [`Violation`] names it, its subject and the
//! time. The bookkeeping is next to what it is about: the machine's in [`Ledger`], block contents
//! in [`BlockModel`], queues in [`OccupancyStats`](crate::engine::OccupancyStats), energy in
//! [`Meter`](crate::power::Meter).
//!
//! Checks do not affect the machine; a machine stops at its first violation.

mod blocks;
mod ledger;

pub use blocks::{BlockAccess, BlockModel, UnexpectedBlock, WriteNumber};
pub use ledger::Ledger;

use crate::link::superspeed::Side;
use bus::TransferId;
use initiator::CommandId;
use initiator::disk::{Error, RequestId};
use std::fmt;
use units::{Instant, Lba};

/// Commands or requests per drive between two audits of a run without faults; the interval bounds
/// how far back idle time can excuse a burst.
pub const AUDIT_INTERVAL_COMMANDS: u32 = 128;

/// A statement that holds in every run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Invariant {
    /// Every request ends exactly once.
    RequestOnce,
    /// Every command ends exactly once.
    CommandOnce,
    /// Every transfer ends exactly once.
    TransferOnce,
    /// A transfer reports as many bytes as it has moved.
    BytesReported,
    /// A read returns what was written, and nothing older than the last completed write.
    Content,
    /// Flushed and written-through data survive a power loss.
    Durable,
    /// Payload carried by a lane was accepted, wasted, or is in flight.
    Conservation,
    /// A lane carries no more than its symbol rate allows.
    Capacity,
    /// Little's law, exactly.
    Little,
    /// Times in all states of a part add up to the elapsed time, and the energy per state to the
    /// power integrated over time.
    Energy,
    /// No event is scheduled in the past.
    Past,
    /// Something completes within a bound of time and of events.
    Progress,
    /// Without faults nothing fails and no recovery runs.
    NoSpuriousErrors,
    /// A newly attached device reports a unit attention.
    Announced,
    /// A present device is not given up, and no request fails without a cause.
    Recovery,
    /// Nothing panics.
    Panic,
    /// Both ends follow the protocol.
    Protocol,
}

/// A violated invariant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The invariant.
    pub invariant: Invariant,
    /// Time of detection, in the current session of the device.
    pub at: Instant,
    /// The subject.
    pub subject: ViolationSubject,
}

/// The subject of a violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViolationSubject {
    /// The machine as a whole, with a description.
    Machine(&'static str),
    /// A request.
    Request(RequestId),
    /// A request and its error.
    Failure(RequestId, Error),
    /// A command.
    Command(CommandId),
    /// A transfer of one side.
    Transfer(Side, TransferId),
    /// A block and the write that it holds; `None` if no write has this content.
    Block(Lba, Option<WriteNumber>),
    /// The lane on which a side transmits.
    Lane(Side),
    /// Like `Lane`, for a link below hubs, numbered from 1.
    LaneBelow(u8, Side),
    /// A queue.
    Queue(&'static str),
}

impl Invariant {
    /// Returns the invariant as a sentence.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::RequestOnce => "every request completes once",
            Self::CommandOnce => "every command completes once",
            Self::TransferOnce => "every transfer completes once",
            Self::BytesReported => "a transfer reports the bytes that it has moved",
            Self::Content => "a read returns what was written",
            Self::Durable => "flushed data survives a power loss",
            Self::Conservation => "payload is conserved",
            Self::Capacity => "a lane does not exceed its capacity",
            Self::Little => "Little's law",
            Self::Energy => "energy by state equals power integrated over time",
            Self::Past => "no event is scheduled in the past",
            Self::Progress => "progress within a bound of time",
            Self::NoSpuriousErrors => "nothing fails without a fault",
            Self::Announced => "a new device reports a unit attention",
            Self::Recovery => "a recoverable error is recovered",
            Self::Panic => "nothing panics",
            Self::Protocol => "both ends follow the protocol",
        }
    }
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.sentence())
    }
}

impl fmt::Display for ViolationSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Machine(what) => f.write_str(what),
            Self::Request(RequestId(id)) => write!(f, "request {id}"),
            Self::Failure(RequestId(id), error) => write!(f, "request {id}: {error}"),
            Self::Command(id) => id.fmt(f),
            Self::Transfer(side, id) => write!(f, "transfer {} of the {side}", id.0),
            Self::Block(lba, Some(write)) => write!(f, "block {} holds {write}", lba.0),
            Self::Block(lba, None) => write!(f, "block {} holds data that no write has", lba.0),
            Self::Lane(side) => write!(f, "the {side} lane"),
            Self::LaneBelow(link, side) => write!(f, "the {side} lane of link {link} below hubs"),
            Self::Queue(name) => f.write_str(name),
        }
    }
}

impl fmt::Display for Violation {
    /// `at 12.345 us, "a read returns what was written" violated: block 17 holds write 5`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.at.as_ps() / 1000;
        write!(f, "at {}.{:03} us, \"{}\" violated: {}", ns / 1000, ns % 1000, self.invariant, self.subject)
    }
}

impl std::error::Error for Violation {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_violation_names_invariant_subject_and_time() {
        let subject = ViolationSubject::Block(Lba(17), Some(WriteNumber(5)));
        let violation =
            Violation { invariant: Invariant::Content, at: Instant::from_ps(12_345_678), subject };
        let expected = "at 12.345 us, \"a read returns what was written\" violated: block 17 holds write 5";
        assert_eq!(violation.to_string(), expected);
    }
}
