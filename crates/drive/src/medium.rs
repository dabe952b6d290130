//! Block storage of a drive.
//!
//! A drive is one thread with a readiness loop, so nothing here blocks. The loop moves a [`Job`] in with
//! [`Medium::submit`], and gets a [`CompletedJob`] back: at once from memory, later from a file, by [`Medium::poll`].
//! The command's buffer travels inside the job. While the kernel or another thread works on that memory no one
//! else can reach it, no byte is copied, and nothing is allocated for a read or a write.
//!
//! In a turn of the loop: submit what there is, [`Medium::flush_submissions`] once, [`Medium::poll`] until `None`.
//! Do so again whenever [`Medium::event_fd`] is readable.
//!
//! Left out: a cache (a file has the page cache of the system), and order. Jobs finish in any order, and
//! overlapping jobs are not serialized: COMPARE AND WRITE and ORWRITE are uninterrupted (SBC-4 clauses 5.3 and 5.10)
//! because the unit runs them alone in its task set.
//!
//! Always true: each job brings exactly one `CompletedJob` with the same buffer. How many there are at once is bounded by
//! the buffers that the caller owns.

mod ahead;
mod compound;
mod empty;
mod file;
mod flush;
mod lie;
mod lying;
mod nbd;
mod ram;
mod stream;
mod volatile;

pub use empty::EmptySlot;
pub use file::{Engine, FileMedium, FileOptions, OpenError, OpenReason, create_image};
pub use flush::flush;
pub use lie::{Lie, LieDescription, LieValue, NotALie};
pub use lying::{LieError, LyingMedium};
pub use nbd::{NbdAddress, NbdError, NbdMedium, NbdReason, NbdServer, NotAnNbdAddress};
pub use ram::{RamMedium, RamTooLarge};
pub use stream::StreamedRam;
pub use volatile::VolatileRam;

use device::medium::{MediumCompletion, MediumDone, MediumError, MediumOp, MediumRequest};
use std::fmt::Debug;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;
use units::{BlockCount, BlockSize, ByteCount};

/// Bytes of unit state that a medium keeps at most ([`Medium::load_state`]).
pub const STATE_BYTES_MAX: usize = 1 << 20;

/// A request to a medium, with its buffer.
#[derive(Debug)]
pub struct Job {
    /// The request. Its range is within `buffer`.
    pub request: MediumRequest,
    /// Memory that the range of the request is a range of: the buffer of the command, or a copy of its parameter
    /// data. For [`MediumOp::SaveState`] all of it is the state to keep.
    pub buffer: Vec<u8>,
}

/// A completed job.
#[derive(Debug)]
pub struct CompletedJob {
    /// The completion for the device.
    pub completion: MediumCompletion,
    /// The buffer of the job.
    pub buffer: Vec<u8>,
}

/// A power loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerLoss {
    /// Decides which of the blocks that are not durable are old, and which new.
    pub seed: u64,
    /// Whether a block that is not durable may be new in its first bytes and old in the others.
    pub tears: bool,
}

/// Block storage of one unit. A synchronous medium that wraps no other needs only the required methods.
pub trait Medium: Debug {
    /// Accepts a job. `Some` if it completed at once. Otherwise it starts with the next
    /// [`flush_submissions`](Self::flush_submissions).
    fn submit(&mut self, job: Job) -> Option<CompletedJob>;

    /// Starts everything that was submitted, in one system call.
    fn flush_submissions(&mut self) {}

    /// The next completed job. After `None` the event descriptor signals when to poll again.
    fn poll(&mut self) -> Option<CompletedJob> {
        None
    }

    /// Is readable when [`poll`](Self::poll) may have something. `None` for a medium that does everything on the spot.
    fn event_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Loses power, and has it again: blocks that are not durable are old or new afterwards. No job is in flight. Returns
    /// whether this medium has a model of it; nothing happens to one that has none.
    fn lose_power(&mut self, _loss: PowerLoss) -> bool {
        false
    }

    /// Blocks that there are.
    fn capacity(&self) -> BlockCount;

    /// Looks again how many there are, for a medium whose size its owner has changed.
    ///
    /// # Errors
    /// Returns the system error. The capacity is then unchanged.
    fn measure(&mut self) -> io::Result<BlockCount> {
        Ok(self.capacity())
    }

    /// The length of each.
    fn block_size(&self) -> BlockSize;

    /// Whether every operation that changes blocks is refused with [`MediumError::WriteProtected`].
    fn is_read_only(&self) -> bool;

    /// Whether [`MediumOp::WriteAtomic`] keeps its promise here.
    fn writes_atomically(&self) -> bool;

    /// Whether the unit's state has a place here that outlives a power cycle.
    fn keeps_state(&self) -> bool;

    /// Keeps the unit's state, so that [`load_state`](Self::load_state) finds it in the next life. Blocks: for start-up
    /// and shutdown. In between there is [`MediumOp::SaveState`].
    ///
    /// # Errors
    /// The system error. The previously saved state is then unchanged.
    fn save_state(&mut self, state: &[u8]) -> io::Result<()>;

    /// The unit's last saved state, if there is one.
    ///
    /// # Errors
    /// Returns the system error, or an error if there are more than [`STATE_BYTES_MAX`] bytes.
    fn load_state(&self) -> io::Result<Option<Vec<u8>>>;

    /// Describes the medium and how it works, for people: a part of the line at start-up.
    fn describe(&self) -> String;

    /// The path that it was opened at, if it is a file or a block device.
    fn path(&self) -> Option<&Path> {
        None
    }
}

/// How many blocks of which size: turns extents into places.
#[derive(Clone, Copy, Debug)]
struct Geometry {
    capacity: BlockCount,
    block_size: BlockSize,
    /// Bytes of the last block that are not stored, and read as zeroes.
    padding_bytes: u32,
}

/// The bytes of a medium that a request concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    start: u64,
    len: u64,
}

impl Geometry {
    /// The whole blocks in `size`. The remainder is not part of the drive.
    const fn of(size: ByteCount, block_size: BlockSize) -> Self {
        Self { capacity: block_size.blocks_in(size), block_size, padding_bytes: 0 }
    }

    /// All blocks in `size`, the last of them perhaps with a part that is not stored.
    const fn padded(size: ByteCount, block_size: BlockSize) -> Self {
        let BlockCount(whole) = block_size.blocks_in(size);
        let rest = (size.0 % block_size.bytes() as u64) as u32;
        match rest {
            0 => Self { capacity: BlockCount(whole), block_size, padding_bytes: 0 },
            _ => {
                Self { capacity: BlockCount(whole + 1), block_size, padding_bytes: block_size.bytes() - rest }
            }
        }
    }

    /// Where the bytes that are stored end.
    const fn stored_end(self) -> u64 {
        (self.capacity.0 * self.block_bytes()).saturating_sub(self.padding_bytes as u64)
    }

    const fn block_bytes(self) -> u64 {
        self.block_size.bytes() as u64
    }

    /// The bytes that a request concerns.
    ///
    /// # Errors
    /// `Shrunk` for blocks that do not exist, `Unsupported` for a payload that does not go with its extent. The target
    /// asks for neither; we just do not rely on it where memory and files are at stake.
    fn span(self, request: &MediumRequest, buffer: &[u8]) -> Result<Span, MediumError> {
        let extent = request.extent;
        if matches!(request.op, MediumOp::Flush | MediumOp::SaveState) {
            return Ok(Span { start: 0, len: 0 });
        }
        if !extent.fits(self.capacity) {
            return Err(MediumError::Shrunk);
        }
        if extent.is_empty() && request.op == MediumOp::Status {
            return Err(MediumError::Unsupported);
        }
        let block = self.block_bytes();
        let span = Span { start: extent.lba.0 * block, len: extent.blocks.0 * block };
        let payload = match request.op {
            MediumOp::Read
            | MediumOp::Write { .. }
            | MediumOp::WriteAtomic { .. }
            | MediumOp::Compare
            | MediumOp::Or { .. } => span.len,
            MediumOp::CompareAndWrite { .. } => span.len.saturating_mul(2),
            MediumOp::CompareSame | MediumOp::WriteSame { .. } => block,
            _ => 0,
        };
        let named = u64::from(request.range.len);
        let fits = request.range.as_usize().end <= buffer.len();
        if fits && named >= payload { Ok(span) } else { Err(MediumError::Unsupported) }
    }
}

impl Job {
    /// The job is over, with this result.
    pub fn finish(self, result: Result<MediumDone, MediumError>) -> CompletedJob {
        CompletedJob { completion: MediumCompletion { id: self.request.id, result }, buffer: self.buffer }
    }
}

#[cfg(test)]
mod suite;
