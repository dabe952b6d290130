//! Transfers of a host: what it submits, and how they complete.

use bus::{Pipe, TransferStatus};
use device::Inline;

/// A transfer that the host submits.
#[derive(Debug)]
pub struct HostTransfer {
    /// The host's id for it. The drive does not require ids to be unique.
    pub id: u64,
    /// The pipe.
    pub pipe: Pipe,
    /// Bytes to send, or the size of the buffer.
    pub length: u32,
    /// Out: memory (from [`Drive::pool`](crate::Drive::pool)) that begins with `length` bytes of payload. In: nothing.
    pub payload: Vec<u8>,
}

/// The completion of a host transfer.
#[derive(Debug)]
pub struct HostCompletion {
    /// The host's id for it.
    pub id: u64,
    /// The pipe.
    pub pipe: Pipe,
    /// The requested length in bytes.
    pub length: u32,
    /// How it ended.
    pub status: TransferStatus,
    /// Bytes moved.
    pub actual: u32,
    /// In: the bytes.
    pub body: Body,
}

/// Bytes for the host.
#[derive(Debug)]
pub enum Body {
    /// None.
    Empty,
    /// A few bytes, stored inline.
    Inline(Inline),
    /// The first `actual` of this memory, which goes back to [`Drive::pool`](crate::Drive::pool) when they are sent.
    Buffer(Vec<u8>),
}
