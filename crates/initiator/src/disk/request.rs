//! What is asked of a disk, and how it ends.
//!
//! Blocks in, results out: no CDB and no sense data shows here, but what they say does. Every [`Error`] names what is
//! guilty as far as the unit tells. Left out: what was tried before an error, which [`Counts`](super::Counts) tells.

use crate::Failure;
use core::fmt;
use units::{BlockSize, Extent, Lba};
use wire::DecodeError;
use wire::scsi::Status;
use wire::scsi::sense::{AdditionalSense, SenseKey};

/// Names a request. The caller gives the names; two requests under way must not have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// Something to be done with blocks.
///
/// The buffer of a read or a write is as long as its blocks; that of [`Operation::WriteSame`] is one block; others have
/// none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Comes back at the end.
    pub id: RequestId,
    /// What to do.
    pub operation: Operation,
    /// With which blocks. A flush is of all blocks and looks at none.
    pub extent: Extent,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
// A tag of its own is read quicker than one in a flag.
#[repr(u8)]
pub enum Operation {
    /// Blocks to the buffer.
    Read {
        /// From the medium, where the unit has such a read.
        fua: bool,
        /// The blocks are not worth keeping in the unit's cache.
        dpo: bool,
        /// Fewer bytes than asked for are no error.
        may_be_short: bool,
    },
    /// The buffer to blocks.
    Write {
        /// Ends when the blocks are on the medium; where the unit has no such write, a flush follows.
        fua: bool,
        /// The blocks are not worth keeping in the unit's cache.
        dpo: bool,
    },
    /// What was written and has ended goes to the medium.
    Flush,
    /// The blocks hold nothing that is needed.
    Unmap,
    /// Zeroes to the blocks.
    Zero {
        /// The blocks may be unmapped, if they read as zeroes then.
        may_unmap: bool,
    },
    /// The one block in the buffer to each of the blocks.
    WriteSame,
}

/// A request that went well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// Bytes of the buffer, from its start, that hold what was read, or were written. Less than all only where a read
    /// may be short.
    pub moved: u32,
}

/// A field that a unit does not like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// In the CDB, else in the parameter list.
    pub in_cdb: bool,
    /// Its first byte, from 0.
    pub byte: u16,
    /// Its leftmost bit, where that is known.
    pub bit: Option<u8>,
}

/// Why a request, or a step of the survey, did not go well. DiskPatience was had where patience can help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// A block cannot be read or written.
    Medium {
        /// Which one, if the unit tells.
        lba: Option<Lba>,
        /// What is the matter with it.
        additional: AdditionalSense,
    },
    /// The unit is broken.
    Hardware(AdditionalSense),
    /// The unit does not take the command as it is.
    IllegalRequest {
        /// What is the matter with it.
        additional: AdditionalSense,
        /// Where, if the unit tells.
        field: Option<Field>,
    },
    /// The unit does not have the command.
    Unsupported,
    /// Blocks past the last one, or the unit has changed since the request was taken on.
    OutOfRange,
    /// The medium is write protected.
    WriteProtected,
    /// The blocks may not be accessed: locked, or the like.
    Protected(AdditionalSense),
    /// A thinly provisioned unit has no more room.
    NoSpace,
    /// The unit is not ready, and does not become so in time or by itself.
    NotReady(AdditionalSense),
    /// There is no medium.
    NoMedium,
    /// Another host has reserved the unit.
    ReservationConflict,
    /// BUSY or TASK SET FULL, again and again.
    Busy(Status),
    /// One unit attention after the other.
    Attention(AdditionalSense),
    /// The unit aborted the command, again and again.
    AbortedCommand(AdditionalSense),
    /// GOOD status, but not as many bytes as there are to move, again and again if they are fewer.
    Residue {
        /// Bytes moved.
        moved: u32,
        /// Bytes to move.
        expected: u32,
    },
    /// Sense data of another kind.
    Sense {
        /// Its class.
        key: SenseKey,
        /// What it says.
        additional: AdditionalSense,
    },
    /// A status that means nothing here, or CHECK CONDITION without sense data.
    Status(Status),
    /// Of a flush: a write that had ended well was lost since the flush before (a deferred error).
    LostWrite(LostWrite),
    /// The transport brought no answer, again and again.
    Transport(Failure),
    /// The caller took it back.
    Aborted,
    /// The unit is gone.
    Gone,
    /// The survey: the unit is not a disk, by its peripheral device type and qualifier in one byte.
    NotADisk(u8),
    /// The survey: blocks of a length that is not served, in bytes.
    BlockLength(u32),
    /// The survey: the answer is none.
    Answer(DecodeError),
}

/// A deferred error: it befell a command that had ended well (SPC-5, deferred errors).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostWrite {
    /// Its class.
    pub key: SenseKey,
    /// What it says.
    pub additional: AdditionalSense,
    /// The block, if the unit tells.
    pub lba: Option<Lba>,
}

/// Why a request is not taken on. Nothing will come of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestRefusal {
    /// As many as there is room for are under way.
    Full,
    /// There was no survey yet, or it failed.
    NotSurveyed,
    /// Blocks past the last one.
    OutOfRange,
    /// More bytes than a buffer can have (2^32 - 1).
    TooLong,
    /// The unit is gone.
    Gone,
}

impl Operation {
    /// Whether the unit's blocks change.
    pub const fn changes_blocks(self) -> bool {
        matches!(self, Self::Write { .. } | Self::Unmap | Self::Zero { .. } | Self::WriteSame)
    }

    /// Whether the buffer is as long as the blocks.
    pub const fn moves_blocks(self) -> bool {
        matches!(self, Self::Read { .. } | Self::Write { .. })
    }
}

impl Request {
    /// Bytes of the buffer; `None` past 32 bits.
    pub fn buffer_bytes(&self, block_size: BlockSize) -> Option<u32> {
        match self.operation {
            Operation::Read { .. } | Operation::Write { .. } => {
                u32::try_from(block_size.bytes_in(self.extent.blocks)?.0).ok()
            }
            Operation::WriteSame => Some(block_size.bytes()),
            Operation::Flush | Operation::Unmap | Operation::Zero { .. } => Some(0),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Medium { lba: Some(lba), additional } => write!(f, "medium error at {lba}: {additional}"),
            Self::Medium { lba: None, additional } => write!(f, "medium error: {additional}"),
            Self::Hardware(additional) => write!(f, "hardware error: {additional}"),
            Self::IllegalRequest { additional, field: None } => write!(f, "refused: {additional}"),
            Self::IllegalRequest { additional, field: Some(field) } => {
                write!(f, "refused: {additional}, {field}")
            }
            Self::Unsupported => f.write_str("the unit does not have the command"),
            Self::OutOfRange => f.write_str("past the last block"),
            Self::WriteProtected => f.write_str("write protected"),
            Self::Protected(additional) => write!(f, "protected: {additional}"),
            Self::NoSpace => f.write_str("no room left on the unit"),
            Self::NotReady(additional) => write!(f, "not ready: {additional}"),
            Self::NoMedium => f.write_str("no medium"),
            Self::ReservationConflict => f.write_str("reserved by another host"),
            Self::Busy(status) => write!(f, "{status} too often"),
            Self::Attention(additional) => write!(f, "too many unit attentions, the last: {additional}"),
            Self::AbortedCommand(additional) => write!(f, "aborted by the unit: {additional}"),
            Self::Residue { moved, expected } => write!(f, "GOOD, but {moved} of {expected} bytes moved"),
            Self::Sense { key, additional } => write!(f, "{key}: {additional}"),
            Self::Status(status) => write!(f, "status {status} without a reason"),
            Self::LostWrite(lost) => lost.fmt(f),
            Self::Transport(failure) => failure.fmt(f),
            Self::Aborted => f.write_str("taken back"),
            Self::Gone => f.write_str("the unit is gone"),
            Self::NotADisk(peripheral) => write!(f, "not a disk: peripheral {peripheral:#04x}"),
            Self::BlockLength(bytes) => write!(f, "blocks of {bytes} bytes are not served"),
            Self::Answer(error) => write!(f, "the answer is none: {error}"),
        }
    }
}

impl fmt::Display for LostWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an earlier write was lost: {}: {}", self.key, self.additional)?;
        self.lba.map_or(Ok(()), |lba| write!(f, " at {lba}"))
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.in_cdb { "CDB" } else { "parameter list" };
        write!(f, "byte {} of the {place}", self.byte)?;
        self.bit.map_or(Ok(()), |bit| write!(f, " bit {bit}"))
    }
}

impl fmt::Display for RequestRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "no room for another request",
            Self::NotSurveyed => "the disk is not surveyed",
            Self::OutOfRange => "past the last block",
            Self::TooLong => "more bytes than a buffer can have",
            Self::Gone => "the unit is gone",
        })
    }
}

impl core::error::Error for Error {}
impl core::error::Error for RequestRefusal {}
