//! One connection of a client, without I/O: what is to be sent on it, and the reply that is arriving.
//!
//! A request is sent whole before the next one begins. Left out: sockets ([`super::socket`]), and what replies mean.
//! Always true: bytes of a reply that no request wants are skipped, never stored.

use super::client::Breach;
use super::in_flight::ReplyState;
use super::terms::Terms;
use std::collections::VecDeque;
use wire::nbd::{
    BlockStatus, ChunkError, ChunkHeader, ChunkKind, Command, ErrorCode, Hole, ReplyMagic, SimpleReply,
};
use wire::{DecodeError, Reader};

/// A connection.
#[derive(Debug)]
pub(super) struct Lane {
    /// Slots whose requests are to be sent, in order.
    pub(super) queue: VecDeque<u16>,
    /// Bytes of the first that are sent.
    pub(super) sent: usize,
    pub(super) arriving: Arriving,
}

/// Kind of the next bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arriving {
    /// The header of a reply or a chunk.
    Header,
    /// Payload of a read in this slot, from this place of its range on.
    Data { slot: u16, at: usize, left: usize, is_last: bool },
    /// Bytes that no request wants, of the reply in this slot.
    Rest { slot: u16, left: usize, is_last: bool },
}

/// A request as it is known when its reply arrives.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) slot: u16,
    pub(super) command: Command,
    pub(super) offset: u64,
    pub(super) length: u32,
}

/// Meaning of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// More bytes are needed.
    Incomplete,
    /// So many bytes were a header; then come those of `next`. Zeroes are at a place of the read's range.
    Header { taken: usize, next: Arriving, zeroes: Option<(usize, usize)> },
    /// So many bytes were a whole reply, or the last chunk of one.
    Complete { taken: usize, zeroes: Option<(usize, usize)> },
}

impl Lane {
    /// A connection with nothing on it, with room for `requests`.
    pub(super) fn new(requests: usize) -> Self {
        Self { queue: VecDeque::with_capacity(requests), sent: 0, arriving: Arriving::Header }
    }
}

/// The cookie in a header, once it has arrived.
pub(super) fn cookie(bytes: &[u8]) -> Result<Option<u64>, Breach> {
    let cookie = match ReplyMagic::decode(bytes) {
        Err(DecodeError::Truncated { .. }) => return Ok(None),
        Err(error) => return Err(Breach::Malformed(error)),
        Ok(ReplyMagic::Simple) => SimpleReply::decode(bytes).map(|reply| reply.cookie),
        Ok(ReplyMagic::Structured) => ChunkHeader::decode(bytes).map(|chunk| chunk.cookie),
    };
    match cookie {
        Ok(cookie) => Ok(Some(cookie)),
        Err(DecodeError::Truncated { .. }) => Ok(None),
        Err(error) => Err(Breach::Malformed(error)),
    }
}

/// Interprets the header at the beginning of `bytes` for the request that its cookie names.
pub(super) fn meaning(
    bytes: &[u8],
    asked: Asked,
    reply: &mut ReplyState,
    terms: &Terms,
) -> Result<Meaning, Breach> {
    let outcome = match ReplyMagic::decode(bytes) {
        Ok(ReplyMagic::Simple) => simple(bytes, asked, reply),
        Ok(ReplyMagic::Structured) => chunk(bytes, asked, reply, terms),
        Err(error) => Err(Breach::Malformed(error)),
    };
    match outcome {
        Err(Breach::Malformed(DecodeError::Truncated { .. })) => Ok(Meaning::Incomplete),
        outcome => outcome,
    }
}

fn simple(bytes: &[u8], asked: Asked, reply: &mut ReplyState) -> Result<Meaning, Breach> {
    let SimpleReply { error, .. } = SimpleReply::decode(bytes)?;
    let taken = SimpleReply::LEN;
    if error != ErrorCode::None {
        reply.error = Some(error);
    } else if asked.command == Command::Read {
        reply.received = asked.length;
        let next = Arriving::Data { slot: asked.slot, at: 0, left: asked.length as usize, is_last: true };
        return Ok(Meaning::Header { taken, next, zeroes: None });
    }
    Ok(Meaning::Complete { taken, zeroes: None })
}

fn chunk(bytes: &[u8], asked: Asked, reply: &mut ReplyState, terms: &Terms) -> Result<Meaning, Breach> {
    let header = ChunkHeader::decode(bytes)?;
    let slot = asked.slot;
    let mut reader = Reader::new(bytes.get(ChunkHeader::LEN..).unwrap_or_default());
    let (length, is_last) = (header.length as usize, header.is_last());
    let mut zeroes = None;
    let looked_at = match header.kind {
        ChunkKind::None => 0,
        ChunkKind::OffsetData => {
            let at = place(reader.be64()?, length - 8, asked, reply)?;
            let next = Arriving::Data { slot, at, left: length - 8, is_last };
            return Ok(Meaning::Header { taken: ChunkHeader::LEN + 8, next, zeroes });
        }
        ChunkKind::OffsetHole => {
            let hole = Hole::decode(&reader.array::<{ Hole::LEN }>()?)?;
            let at = place(hole.offset, hole.length as usize, asked, reply)?;
            zeroes = Some((at, hole.length as usize));
            Hole::LEN
        }
        ChunkKind::BlockStatus => {
            let status = BlockStatus::decode(&reader.array::<{ BlockStatus::LEN }>()?)?;
            if asked.command != Command::BlockStatus {
                return Err(Breach::Unasked);
            }
            if Some(status.context) == terms.allocation {
                reply.status = Some(status);
            }
            BlockStatus::LEN
        }
        kind if kind.is_error() => {
            let error = match length {
                0..ChunkError::LEN => ErrorCode::Io,
                _ => ChunkError::decode(&reader.array::<{ ChunkError::LEN }>()?)?.code,
            };
            reply.error.get_or_insert(error);
            length.min(ChunkError::LEN) * usize::from(length >= ChunkError::LEN)
        }
        _ => return Err(Breach::Unasked),
    };
    let (taken, left) = (ChunkHeader::LEN + looked_at, length - looked_at);
    if left == 0 && is_last {
        return Ok(Meaning::Complete { taken, zeroes });
    }
    let next = match left {
        0 => Arriving::Header,
        left => Arriving::Rest { slot, left, is_last },
    };
    Ok(Meaning::Header { taken, next, zeroes })
}

/// Where in the range of a read `len` bytes at `offset` of the export belong.
fn place(offset: u64, len: usize, asked: Asked, reply: &mut ReplyState) -> Result<usize, Breach> {
    if asked.command != Command::Read {
        return Err(Breach::Unasked);
    }
    let at = offset.checked_sub(asked.offset).and_then(|at| usize::try_from(at).ok());
    let at = at.filter(|at| at.checked_add(len).is_some_and(|end| end <= asked.length as usize));
    reply.received = reply.received.saturating_add(len as u32);
    at.ok_or(Breach::Outside)
}
