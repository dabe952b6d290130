//! The medium interface: block storage as requests and completions.
//!
//! A unit answers SCSI, a medium stores. The unit asks with a [`MediumRequest`]; the owner of the storage
//! answers each with one [`MediumCompletion`], in any order, any time later. No call here blocks. Payload lies in
//! the command's buffer, which the owner of the storage also owns (see [`crate::Output::Acquire`]), or, seldom, in
//! the command's parameter data: a request names a range of it.
//!
//! Left out: caching. A medium that caches says so by what its flush does.

use crate::command::{CommandId, DataLocation};
use units::{BlockCount, ByteRange, Extent, Lba};

/// Names a request to the machine that asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MediumRequestId {
    /// The command on whose behalf.
    pub command: CommandId,
    /// Counts the command's requests.
    pub part: u16,
}

/// One thing the medium of a unit is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediumRequest {
    /// Comes back in the completion.
    pub id: MediumRequestId,
    /// Which unit's medium.
    pub unit: u8,
    /// Operation.
    pub op: MediumOp,
    /// With which blocks. Always within the capacity that the unit was made with.
    pub extent: Extent,
    /// Memory that `range` is a range of: the buffer of `id.command`, or its parameter data
    /// ([`crate::command::Executor::reply`]), which stays as it is until the completion.
    pub location: DataLocation,
    /// Where the payload lies; empty where the operation has none.
    pub range: ByteRange,
}

/// Operation on blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediumOp {
    /// Blocks into the buffer.
    Read,
    /// The buffer into blocks; with `fua` they are durable before the completion.
    Write {
        /// Force unit access.
        fua: bool,
    },
    /// Like [`MediumOp::Write`], in one piece: whatever happens, all of the blocks are written or none.
    WriteAtomic {
        /// Force unit access.
        fua: bool,
    },
    /// Makes sure that the blocks can be read, and keeps nothing of them.
    Verify,
    /// Reads the blocks and compares them with the buffer; [`MediumError::Miscompare`] where they differ.
    Compare,
    /// Compares the blocks with the first half of the buffer and, if equal, writes its second half.
    CompareAndWrite {
        /// Force unit access.
        fua: bool,
    },
    /// Reads the blocks, ors the buffer into them, writes them.
    Or {
        /// Force unit access.
        fua: bool,
    },
    /// Compares each block with the one block in the buffer.
    CompareSame,
    /// Writes the one block in the buffer to each block of the extent.
    WriteSame {
        /// If the block is all zeroes, the extent may be unmapped instead.
        unmap: bool,
    },
    /// Makes the blocks read as zero, and keeps their space.
    WriteZeroes,
    /// Gives the blocks' space back; they read as zero afterwards.
    Unmap,
    /// Everything written before is durable at the completion. The extent is of no concern.
    Flush,
    /// Asks whether the first block is mapped and for how many blocks that holds.
    Status,
    /// Announces that the blocks will be read soon.
    Prefetch,
    /// Keeps the unit's state (see [`crate::lun::LogicalUnit::durable_state`]) beside the medium.
    SaveState,
}

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediumCompletion {
    /// The request's.
    pub id: MediumRequestId,
    /// Result of the request.
    pub result: Result<MediumDone, MediumError>,
}

/// Result of a request that succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediumDone {
    /// The operation is done.
    Done,
    /// To [`MediumOp::Status`]: the first `blocks` blocks of the extent are all mapped or all not.
    Provisioning {
        /// Whether they take space.
        mapped: bool,
        /// How many, at least one.
        blocks: BlockCount,
    },
}

/// Why a request failed. Each becomes one sense code, in one place ([`crate::lun`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediumError {
    /// A block cannot be read.
    Unreadable {
        /// The first such block.
        lba: Lba,
    },
    /// A block cannot be written.
    Unwritable {
        /// The first such block.
        lba: Lba,
    },
    /// There is no space left to map a block.
    OutOfSpace,
    /// The medium turned out to be write protected.
    WriteProtected,
    /// The medium has become shorter than it was.
    Shrunk,
    /// Comparison found a difference.
    Miscompare {
        /// Offset of the first byte that differs, from the start of the extent.
        offset: u32,
    },
    /// There is no medium: its owner has taken it out.
    Absent,
    /// The medium is elsewhere and does not answer, but may do so again. A change may have been made or not.
    Unreachable,
    /// The medium does not do that.
    Unsupported,
}

impl MediumError {
    /// The same error for a request that begins `bytes` bytes into its command's data.
    pub(crate) const fn after(self, bytes: u32) -> Self {
        match self {
            Self::Miscompare { offset } => Self::Miscompare { offset: offset.saturating_add(bytes) },
            other => other,
        }
    }
}
