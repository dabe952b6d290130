//! What must hold in every world, and who says when it does not.
//!
//! A [`Invariant`] is a sentence about any run. A [`Violation`] names the law, what it befell, and when. The books that notice are
//! kept beside the parts that they are about: the world's own by [`Ledger`], what blocks may hold by [`BlockModel`], queues by
//! [`OccupancyStats`](crate::engine::OccupancyStats) and energy by [`Meter`](crate::power::Meter), whose two sums are compared here.
//!
//! Always true: a check changes nothing in the world that it is about; a world that has broken a law stops.

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

/// Commands or requests between two audits of a run that is not troubled, for each drive: a rest excuses no burst that is longer ago.
pub const AUDIT_INTERVAL_COMMANDS: u32 = 128;

/// What holds in every run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Invariant {
    /// Every request ends exactly once.
    RequestOnce,
    /// Every command ends exactly once.
    CommandOnce,
    /// Every transfer ends exactly once.
    TransferOnce,
    /// A transfer is said to have moved what it has moved.
    BytesReported,
    /// What is read was written there, and nothing newer has ended before.
    Content,
    /// What was flushed, or written through, is there after a power loss.
    Durable,
    /// Payload that a lane has carried was taken, or carried in vain, and is on its way otherwise.
    Conservation,
    /// A lane carries no more than its symbols take.
    Capacity,
    /// Little's law, exactly.
    Little,
    /// Times in all states of a part are all the time there was, and what each has cost is its power integrated over time.
    Energy,
    /// Nothing happens before now.
    Past,
    /// Something ends within a bound of time and of events.
    Progress,
    /// Where nothing goes wrong nothing fails, and nobody recovers.
    NoSpuriousErrors,
    /// A device that was plugged in says so.
    Announced,
    /// A device that is there is not given up, and a request does not fail without a reason.
    Recovery,
    /// Nothing panics.
    Panic,
    /// Both ends say only what they may say.
    Protocol,
}

/// A law was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which.
    pub law: Invariant,
    /// When it was noticed, in the life of the device that it befell.
    pub at: Instant,
    /// What it befell.
    pub about: ViolationSubject,
}

/// What a violation befell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViolationSubject {
    /// The world as a whole, in a few words.
    Machine(&'static str),
    /// A request.
    Request(RequestId),
    /// A request, and what it ended with.
    Failure(RequestId, Error),
    /// A command.
    Command(CommandId),
    /// A transfer of one side.
    Transfer(Side, TransferId),
    /// A block, and the write that it holds; `None` is what nobody has written.
    Block(Lba, Option<WriteNumber>),
    /// The lane on which a side sends.
    Lane(Side),
    /// The same of a link below hubs, by its number from 1.
    LaneBelow(u8, Side),
    /// A queue.
    Queue(&'static str),
}

impl Invariant {
    /// The law in a sentence.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::RequestOnce => "every request ends once",
            Self::CommandOnce => "every command ends once",
            Self::TransferOnce => "every transfer ends once",
            Self::BytesReported => "a transfer tells what it has moved",
            Self::Content => "what is read is what was written",
            Self::Durable => "what was flushed is there after a power loss",
            Self::Conservation => "payload is neither made nor lost",
            Self::Capacity => "a lane carries no more than it can",
            Self::Little => "Little's law",
            Self::Energy => "what each state costs is the power integrated over time",
            Self::Past => "nothing happens before now",
            Self::Progress => "something ends in time",
            Self::NoSpuriousErrors => "without faults nothing fails",
            Self::Announced => "a device that was plugged in says so",
            Self::Recovery => "what can be recovered from is recovered from",
            Self::Panic => "nothing panics",
            Self::Protocol => "both ends say what they may",
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
            Self::Block(lba, None) => write!(f, "block {} holds what nobody wrote", lba.0),
            Self::Lane(side) => write!(f, "the lane of the {side}"),
            Self::LaneBelow(link, side) => write!(f, "the lane of the {side} on link {link} below hubs"),
            Self::Queue(name) => f.write_str(name),
        }
    }
}

impl fmt::Display for Violation {
    /// `at 12.345 us, "what is read is what was written" was violation: block 17 holds write 5`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.at.as_ps() / 1000;
        write!(f, "at {}.{:03} us, \"{}\" was broken: {}", ns / 1000, ns % 1000, self.law, self.about)
    }
}

impl std::error::Error for Violation {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_violation_names_the_law_the_place_and_the_time() {
        let about = ViolationSubject::Block(Lba(17), Some(WriteNumber(5)));
        let violation = Violation { law: Invariant::Content, at: Instant::from_ps(12_345_678), about };
        let told = "at 12.345 us, \"what is read is what was written\" was broken: block 17 holds write 5";
        assert_eq!(violation.to_string(), told);
    }
}
