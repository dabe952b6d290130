//! A request to a server: what a step of a task becomes, and how far it is.
//!
//! One step may become several requests, one after the other: a write has 1 MiB of payload at most, a share of what is stored until a flush.
//! Left out: which connection a request is sent on, and when ([`super::client`]).
//! Always true: the cookie of a request names its slot and how often that slot was used, so that a late reply finds no other.

use super::terms::Terms;
use super::unflushed::{ChangeId, Content};
use crate::medium::file::task::{Allocation, FileOperation, Memory, Task};
use rustix::io::Errno;
use std::ops::Range;
use std::time::Instant;
use wire::nbd::{BlockStatus, Command, CommandFlags, ErrorCode, Request, TransmissionFlags};

/// Bytes of payload of one write at most: a share of what is stored until a flush.
const WRITE_LEN_MAX: u32 = 1 << 20;
/// Slots that a cookie can name.
const SLOTS_OF_A_COOKIE: u64 = 1 << u16::BITS;
/// Bytes that one request makes zero at most.
const ZEROES_LEN_MAX: u64 = 1 << 30;
/// Bytes that one request asks the status of at most: less than the 32 bits that a length has.
const STATUS_LEN_MAX: u64 = 1 << 31;

/// Someone's request, in flight.
#[derive(Debug)]
pub(super) struct InFlight {
    pub(super) origin: Origin,
    /// Counts entries by their beginning.
    pub(super) order: u64,
    /// Distinguishes entries in one slot.
    pub(super) generation: u32,
    pub(super) deadline: Instant,
    pub(super) request: WireRequest,
    pub(super) stage: SendStage,
    /// Whose connection it is on.
    pub(super) lane: u8,
    /// The reply so far.
    pub(super) reply: ReplyState,
    /// Bytes of a long allocation that are done.
    pub(super) done: u64,
    /// The change that it makes, as it is stored.
    pub(super) change: Option<ChangeId>,
    /// Number of the flush that it is.
    pub(super) flush: u64,
}

impl InFlight {
    /// Returns the cookie of the request in a slot: the slot, and above it the generation.
    pub(super) fn cookie(&self, slot: u16) -> u64 {
        u64::from(self.generation) * SLOTS_OF_A_COOKIE + u64::from(slot)
    }

    /// Returns the header of the request in a slot.
    pub(super) fn header(&self, slot: u16) -> [u8; Request::LEN] {
        let WireRequest { command, flags, offset, length, .. } = self.request;
        Request { flags, command, cookie: self.cookie(slot), offset, length }.encode()
    }
}

/// Where a request comes from.
#[derive(Debug)]
pub(super) enum Origin {
    /// A job of the drive.
    Job(Task),
    /// A change that was acknowledged before the server was lost.
    Replay(ChangeId),
    /// Room for changes is short.
    Flush,
}

/// How far a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SendStage {
    /// It waits: for a server, for another change of the same bytes, or for room to keep it.
    Held,
    /// It is to be sent.
    Queued,
    /// Some of it may be sent.
    Sending,
    /// It is sent.
    Sent,
    /// Its reply came before all of it was sent.
    Answered,
}

/// A reply, in one or more chunks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ReplyState {
    /// The first error.
    pub(super) error: Option<ErrorCode>,
    /// Bytes read.
    pub(super) received: u32,
    /// State of the first bytes.
    pub(super) status: Option<BlockStatus>,
}

/// A request as it goes to the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WireRequest {
    pub(super) command: Command,
    pub(super) flags: CommandFlags,
    pub(super) offset: u64,
    pub(super) length: u32,
    /// Memory of the task for payload.
    pub(super) memory: Memory,
    /// Where in it; empty if there is none.
    pub(super) range: Range<usize>,
}

/// A step, translated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Translation {
    /// A request.
    Send(WireRequest),
    /// An answer that needs no server.
    Answer(Result<u64, Errno>),
}

impl WireRequest {
    /// A request without payload.
    pub(super) const fn bare(command: Command, offset: u64, length: u32) -> Self {
        let (flags, memory) = (CommandFlags::EMPTY, Memory::Buffer);
        Self { command, flags, offset, length, memory, range: 0..0 }
    }

    /// The same with flags.
    pub(super) fn with(self, flags: CommandFlags) -> Self {
        Self { flags, ..self }
    }

    /// Whether it changes what is stored.
    pub(super) const fn is_change(&self) -> bool {
        matches!(self.command, Command::Write | Command::WriteZeroes | Command::Trim)
    }

    /// Whether it is durable at its reply.
    pub(super) const fn is_durable(&self) -> bool {
        self.flags.has(CommandFlags::FUA)
    }

    /// First byte, and the one behind the last.
    pub(super) const fn span(&self) -> (u64, u64) {
        (self.offset, self.offset + self.length as u64)
    }
}

/// Translates a step of a task for a server of these terms. `done` bytes of an allocation are done.
///
/// UNMAP becomes WRITE_ZEROES, which may leave a hole: a unit promises that unmapped blocks read as zero, and TRIM promises
/// nothing.
pub(super) fn translate(step: &FileOperation, done: u64, terms: &Terms) -> Translation {
    let bare = |command, offset, length| Translation::Send(WireRequest::bare(command, offset, length));
    match step {
        FileOperation::Read { at, memory, range } => {
            let length = range.len().min(terms.payload_max as usize);
            let (memory, range) = (*memory, range.start..range.start + length);
            Translation::Send(WireRequest {
                memory,
                range,
                ..WireRequest::bare(Command::Read, *at, length as u32)
            })
        }
        FileOperation::Write { durable: true, .. } if !terms.can(TransmissionFlags::SEND_FUA) => {
            Translation::Answer(Err(Errno::OPNOTSUPP))
        }
        FileOperation::Write { at, memory, range, durable } => {
            let length = range.len().min(terms.payload_max.min(WRITE_LEN_MAX) as usize);
            let (memory, range) = (*memory, range.start..range.start + length);
            let flags = if *durable { CommandFlags::FUA } else { CommandFlags::EMPTY };
            let request = WireRequest::bare(Command::Write, *at, length as u32).with(flags);
            Translation::Send(WireRequest { memory, range, ..request })
        }
        // A server without it has nothing that is not durable, or no way to make it so.
        FileOperation::Sync if !terms.can(TransmissionFlags::SEND_FLUSH) => Translation::Answer(Ok(0)),
        FileOperation::Sync => bare(Command::Flush, 0, 0),
        FileOperation::Allocate { how: Allocation::Reserve, .. } => {
            Translation::Answer(Err(Errno::OPNOTSUPP))
        }
        FileOperation::Allocate { .. } if !terms.can(TransmissionFlags::SEND_WRITE_ZEROES) => {
            Translation::Answer(Err(Errno::OPNOTSUPP))
        }
        FileOperation::Allocate { how, at, len } => {
            let length = (len - done).min(ZEROES_LEN_MAX) as u32;
            let flags = match how {
                Allocation::Punch => CommandFlags::EMPTY,
                Allocation::Zero | Allocation::Reserve => CommandFlags::NO_HOLE,
            };
            Translation::Send(WireRequest::bare(Command::WriteZeroes, at + done, length).with(flags))
        }
        FileOperation::Advise { .. } if !terms.can(TransmissionFlags::SEND_CACHE) => {
            Translation::Answer(Ok(0))
        }
        FileOperation::Advise { at, len } => {
            bare(Command::Cache, *at, (*len).min(terms.payload_max.into()) as u32)
        }
        FileOperation::SeekMapped { at } | FileOperation::SeekHole { at } => {
            let left = terms.size_bytes.saturating_sub(*at).min(STATUS_LEN_MAX);
            let length = left - left % u64::from(terms.block_min);
            match terms.allocation {
                Some(_) if length > 0 => bare(Command::BlockStatus, *at, length as u32),
                // Everything is mapped, as far as anybody knows.
                _ => Translation::Answer(Err(Errno::INVAL)),
            }
        }
        FileOperation::KeepState | FileOperation::KeepRecord | FileOperation::ClearRecord => {
            Translation::Answer(Err(Errno::NOSYS))
        }
    }
}

/// Applies the status of the first bytes to a step that looks for a byte with space, or without: its offset.
pub(super) fn seek(step: &FileOperation, status: BlockStatus) -> u64 {
    use wire::nbd::Statuses;
    let is_hole = status.status.has(Statuses::HOLE.with(Statuses::ZERO));
    match step {
        FileOperation::SeekMapped { at } if is_hole => at + u64::from(status.length),
        FileOperation::SeekHole { at } if !is_hole => at + u64::from(status.length),
        FileOperation::SeekMapped { at } | FileOperation::SeekHole { at } => *at,
        _ => 0,
    }
}

/// The request that makes a change again.
pub(super) fn replayed(offset: u64, len: u32, content: Content) -> WireRequest {
    match content {
        Content::Data(_) => WireRequest::bare(Command::Write, offset, len),
        Content::Zeroes { keeps_space } => {
            let flags = if keeps_space { CommandFlags::NO_HOLE } else { CommandFlags::EMPTY };
            WireRequest::bare(Command::WriteZeroes, offset, len).with(flags)
        }
    }
}

/// The error of a server as the system would report it for a file.
pub(super) fn errno(code: ErrorCode) -> Errno {
    match code {
        ErrorCode::NotPermitted => Errno::PERM,
        ErrorCode::OutOfMemory => Errno::NOMEM,
        ErrorCode::Invalid => Errno::INVAL,
        ErrorCode::OutOfSpace => Errno::NOSPC,
        ErrorCode::Overflow => Errno::OVERFLOW,
        ErrorCode::NotSupported => Errno::OPNOTSUPP,
        ErrorCode::None | ErrorCode::Io | ErrorCode::Shutdown | ErrorCode::Unknown(_) => Errno::IO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::nbd::Statuses;

    fn terms(flags: TransmissionFlags) -> Terms {
        Terms {
            size_bytes: 8 << 30,
            flags,
            block_min: 512,
            payload_max: 4 << 20,
            is_structured: true,
            allocation: Some(0),
        }
    }

    #[test]
    fn a_long_read_is_cut_to_what_the_server_sends() {
        let step = FileOperation::Read { at: 512, memory: Memory::Buffer, range: 100..(8 << 20) };
        let Translation::Send(request) = translate(&step, 0, &terms(TransmissionFlags::EMPTY)) else {
            panic!("a request");
        };
        assert_eq!((request.offset, request.length), (512, 4 << 20));
        assert_eq!(request.range, 100..100 + (4 << 20));
        assert!(!request.is_change());
    }

    #[test]
    fn forced_unit_access_is_the_servers_if_it_has_it() {
        let step = FileOperation::Write { at: 0, memory: Memory::Buffer, range: 0..512, durable: true };
        let refused = translate(&step, 0, &terms(TransmissionFlags::EMPTY));
        assert_eq!(refused, Translation::Answer(Err(Errno::OPNOTSUPP)));
        let Translation::Send(request) = translate(&step, 0, &terms(TransmissionFlags::SEND_FUA)) else {
            panic!("a request");
        };
        assert!(request.is_durable() && request.is_change());
    }

    #[test]
    fn unmap_becomes_zeroes_that_may_leave_a_hole() {
        let terms = terms(TransmissionFlags::SEND_WRITE_ZEROES);
        let step = |how| FileOperation::Allocate { how, at: 4096, len: 3 << 30 };
        let zeroes = |offset, length| WireRequest::bare(Command::WriteZeroes, offset, length);
        let punch = translate(&step(Allocation::Punch), 2 << 30, &terms);
        assert_eq!(punch, Translation::Send(zeroes(4096 + (2 << 30), 1 << 30)));
        let zero = translate(&step(Allocation::Zero), 0, &terms);
        let zeroed = zeroes(4096, 1 << 30).with(CommandFlags::NO_HOLE);
        assert_eq!(zero, Translation::Send(zeroed));
    }

    #[test]
    fn only_what_has_no_space_and_reads_as_zero_is_a_hole() {
        let status = |status| BlockStatus { context: 0, length: 4096, status };
        let mapped = FileOperation::SeekMapped { at: 512 };
        let hole = FileOperation::SeekHole { at: 512 };
        for (bits, after_mapped, after_hole) in
            [(0, 512, 4608), (1, 512, 4608), (2, 512, 4608), (3, 4608, 512)]
        {
            let status = status(Statuses::from(bits));
            assert_eq!((seek(&mapped, status), seek(&hole, status)), (after_mapped, after_hole), "{bits}");
        }
    }
}
