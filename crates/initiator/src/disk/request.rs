//! Block requests and their results.
//!
//! Blocks in, results out: without CDBs and sense data, but with their meaning. Every [`Error`]
//! names the cause as far as the unit reports it. Left out: retries before an error, which
//! [`Counts`](super::Counts) counts.

use crate::Failure;
use core::fmt;
use units::{BlockSize, Extent, Lba};
use wire::DecodeError;
use wire::scsi::Status;
use wire::scsi::sense::{AdditionalSense, SenseKey};

/// Identifies a request. The caller chooses the ids; two requests in flight must not share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// A block request.
///
/// The buffer of a read or write is as long as its blocks; that of [`Operation::WriteSame`] is one
/// block; others have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Returned with the result.
    pub id: RequestId,
    /// The operation.
    pub operation: Operation,
    /// The blocks. A flush covers all blocks and ignores it.
    pub extent: Extent,
}

/// The operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
// A separate tag is faster to read than a niche in a flag.
#[repr(u8)]
pub enum Operation {
    /// Reads blocks into the buffer.
    Read {
        /// From the medium, if the unit supports FUA.
        fua: bool,
        /// Disable page out: the blocks need not stay in the cache.
        dpo: bool,
        /// Fewer bytes than requested are no error.
        may_be_short: bool,
    },
    /// Writes the buffer to blocks.
    Write {
        /// Completes when the blocks are on the medium; without FUA support a flush follows.
        fua: bool,
        /// Disable page out: the blocks need not stay in the cache.
        dpo: bool,
    },
    /// Flushes completed writes to the medium.
    Flush,
    /// Unmaps blocks.
    Unmap,
    /// Zeroes blocks.
    Zero {
        /// The blocks may be unmapped if they then read as zeroes.
        may_unmap: bool,
    },
    /// Writes the one block in the buffer to each of the blocks.
    WriteSame,
}

/// A successful request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// Bytes of the buffer, from its start, that were read or written. Less than all only if a read
    /// may be short.
    pub moved: u32,
}

/// A field that the unit rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// In the CDB, else in the parameter list.
    pub in_cdb: bool,
    /// Its first byte, from 0.
    pub byte: u16,
    /// Its leftmost bit, if known.
    pub bit: Option<u8>,
}

/// Why a request, or an identify step, failed, after retries where they can help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// A block cannot be read or written.
    Medium {
        /// The block, if reported.
        lba: Option<Lba>,
        /// The additional sense code.
        additional: AdditionalSense,
    },
    /// The unit is defective.
    Hardware(AdditionalSense),
    /// The unit rejected the command.
    IllegalRequest {
        /// The additional sense code.
        additional: AdditionalSense,
        /// The rejected field, if reported.
        field: Option<Field>,
    },
    /// The unit does not support the command.
    Unsupported,
    /// Beyond the capacity, or the unit has changed since the request was accepted.
    OutOfRange,
    /// The medium is write protected.
    WriteProtected,
    /// The blocks are not accessible, e.g. locked.
    Protected(AdditionalSense),
    /// A thinly provisioned unit is out of space.
    NoSpace,
    /// The unit is not ready, and did not become ready in time or by itself.
    NotReady(AdditionalSense),
    /// There is no medium.
    NoMedium,
    /// Another host has reserved the unit.
    ReservationConflict,
    /// BUSY or TASK SET FULL, too often.
    Busy(Status),
    /// Unit attentions, too often.
    Attention(AdditionalSense),
    /// The unit aborted the command, too often.
    AbortedCommand(AdditionalSense),
    /// GOOD with a wrong byte count, too often if it was too small.
    Residue {
        /// Bytes transferred.
        moved: u32,
        /// Bytes expected.
        expected: u32,
    },
    /// Other sense data.
    Sense {
        /// The sense key.
        key: SenseKey,
        /// The additional sense code.
        additional: AdditionalSense,
    },
    /// An unexpected status, or CHECK CONDITION without sense data.
    Status(Status),
    /// For a flush: an acknowledged write was lost since the flush before (deferred error).
    LostWrite(LostWrite),
    /// The transport failed, too often.
    Transport(Failure),
    /// Aborted by the caller.
    Aborted,
    /// The unit is gone.
    Gone,
    /// Identification: the unit is not a disk, by its peripheral device type and qualifier in one
    /// byte.
    NotADisk(u8),
    /// Identification: unsupported block length, in bytes.
    BlockLength(u32),
    /// Identification: malformed answer.
    Answer(DecodeError),
}

/// A deferred error: an acknowledged write was lost (SPC-5, deferred errors).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostWrite {
    /// The sense key.
    pub key: SenseKey,
    /// The additional sense code.
    pub additional: AdditionalSense,
    /// The block, if reported.
    pub lba: Option<Lba>,
}

/// Why a request is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestRefusal {
    /// The maximum of requests is in flight.
    Full,
    /// The unit is not identified, or identification failed.
    NotIdentified,
    /// Beyond the capacity.
    OutOfRange,
    /// Longer than a buffer can be (2^32 - 1 bytes).
    TooLong,
    /// The unit is gone.
    Gone,
}

impl Operation {
    /// Returns whether blocks are modified.
    pub const fn changes_blocks(self) -> bool {
        matches!(self, Self::Write { .. } | Self::Unmap | Self::Zero { .. } | Self::WriteSame)
    }

    /// Returns whether the buffer is as long as the blocks.
    pub const fn moves_blocks(self) -> bool {
        matches!(self, Self::Read { .. } | Self::Write { .. })
    }
}

impl Request {
    /// Returns the length of the buffer; `None` past 32 bits.
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
            Self::IllegalRequest { additional, field: None } => write!(f, "illegal request: {additional}"),
            Self::IllegalRequest { additional, field: Some(field) } => {
                write!(f, "illegal request: {additional}, {field}")
            }
            Self::Unsupported => f.write_str("command not supported by the unit"),
            Self::OutOfRange => f.write_str("beyond the capacity"),
            Self::WriteProtected => f.write_str("write protected"),
            Self::Protected(additional) => write!(f, "protected: {additional}"),
            Self::NoSpace => f.write_str("no space left on the unit"),
            Self::NotReady(additional) => write!(f, "not ready: {additional}"),
            Self::NoMedium => f.write_str("no medium"),
            Self::ReservationConflict => f.write_str("reserved by another host"),
            Self::Busy(status) => write!(f, "{status} too often"),
            Self::Attention(additional) => write!(f, "too many unit attentions, the last: {additional}"),
            Self::AbortedCommand(additional) => write!(f, "aborted by the unit: {additional}"),
            Self::Residue { moved, expected } => {
                write!(f, "status GOOD, but {moved} of {expected} bytes transferred")
            }
            Self::Sense { key, additional } => write!(f, "{key}: {additional}"),
            Self::Status(status) => write!(f, "status {status} without sense data"),
            Self::LostWrite(lost) => lost.fmt(f),
            Self::Transport(failure) => failure.fmt(f),
            Self::Aborted => f.write_str("aborted by the caller"),
            Self::Gone => f.write_str("the unit is gone"),
            Self::NotADisk(peripheral) => write!(f, "not a disk: peripheral {peripheral:#04x}"),
            Self::BlockLength(bytes) => write!(f, "unsupported block length of {bytes} bytes"),
            Self::Answer(error) => write!(f, "malformed answer: {error}"),
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
            Self::Full => "queue full",
            Self::NotIdentified => "the disk is not identified",
            Self::OutOfRange => "beyond the capacity",
            Self::TooLong => "request too long for a buffer",
            Self::Gone => "the unit is gone",
        })
    }
}

impl core::error::Error for Error {}
impl core::error::Error for RequestRefusal {}
