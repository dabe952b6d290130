//! The transfer queue of one side of a USB 2.0 endpoint, one packet at a time.
//!
//! Invariants: bytes move in the order in which their transfers were queued, each once; a transfer
//! of no bytes is one packet.

use crate::link::bulk::{End, PacketPayload, Progress, Transfer};
use bus::TransferId;
use std::collections::VecDeque;

/// Transfers that wait.
#[derive(Clone, Debug, Default)]
pub(super) struct Line(VecDeque<Waiting>);

/// A transfer and how far it is.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    transfer: Transfer,
    moved: u32,
    /// Whether it was cancelled, and ends with the packet that is in flight.
    is_withdrawn: bool,
}

impl Line {
    pub(super) fn push(&mut self, transfer: Transfer) {
        self.0.push_back(Waiting { transfer, moved: 0, is_withdrawn: false });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the bytes that the first transfer still waits for, or has not sent.
    pub(super) fn left(&self) -> Option<u32> {
        self.0.front().map(Waiting::left)
    }

    /// Returns the bytes of the transfer behind the first.
    pub(super) fn second_bytes(&self) -> Option<u32> {
        self.0.get(1).map(|second| second.transfer.bytes)
    }

    /// Returns the bytes of the first transfer, moved ones included.
    pub(super) fn first_bytes(&self) -> Option<u32> {
        self.0.front().map(|first| first.transfer.bytes)
    }

    /// Returns the payload to send next.
    pub(super) fn piece(&self, largest: u16) -> Option<PacketPayload> {
        let first = self.0.front()?;
        let bytes = u16::try_from(first.left()).unwrap_or(u16::MAX).min(largest);
        Some(PacketPayload { transfer: first.transfer.id, offset: first.moved, bytes })
    }

    /// Completes payload that was acknowledged.
    pub(super) fn taken(&mut self, piece: PacketPayload) -> Option<Progress> {
        let first = self.0.front_mut()?;
        first.moved += u32::from(piece.bytes);
        let ended = match first.left() {
            _ if first.is_withdrawn => Some(End::Withdrawn),
            0 => Some(End::Full),
            _ => None,
        };
        Some(self.reported(ended, None))
    }

    /// Receives payload into the first transfer. `None` if there is none.
    pub(super) fn take(&mut self, piece: PacketPayload, largest: u16) -> Option<Progress> {
        let first = self.0.front_mut()?;
        let (left, bytes) = (first.left(), u32::from(piece.bytes));
        first.moved += bytes.min(left);
        let ended = match bytes {
            _ if bytes > left => Some(End::Overflow),
            _ if bytes == left => Some(End::Full),
            _ if piece.bytes < largest => Some(End::Short),
            _ => None,
        };
        Some(self.reported(ended, Some(piece)))
    }

    /// Completes the first transfer as it is.
    pub(super) fn end_first(&mut self, end: End) -> Option<Progress> {
        self.0.front()?;
        Some(self.reported(Some(end), None))
    }

    /// Cancels a transfer. `None` if it is not queued, otherwise its completion, unless that waits
    /// for a packet that `is_sent`.
    pub(super) fn withdraw(&mut self, id: TransferId, is_sent: bool) -> Option<Option<Progress>> {
        let at = self.0.iter().position(|waiting| waiting.transfer.id == id && !waiting.is_withdrawn)?;
        if at == 0 && is_sent {
            self.0[at].is_withdrawn = true;
            return Some(None);
        }
        self.0.remove(at).map(|waiting| Some(waiting.progress(Some(End::Withdrawn), None)))
    }

    /// Completes a cancelled transfer whose packet will not be acknowledged.
    pub(super) fn forget_sent(&mut self) -> Option<Progress> {
        let is_withdrawn = self.0.front().is_some_and(|first| first.is_withdrawn);
        if is_withdrawn { self.end_first(End::Withdrawn) } else { None }
    }

    /// Returns the transfers, oldest first.
    pub(super) fn transfers(&self) -> impl Iterator<Item = TransferId> {
        self.0.iter().map(|waiting| waiting.transfer.id)
    }

    /// Reports the first transfer, and removes it if it has completed.
    fn reported(&mut self, ended: Option<End>, piece: Option<PacketPayload>) -> Progress {
        let progress = self.0[0].progress(ended, piece);
        if ended.is_some() {
            self.0.pop_front();
        }
        progress
    }
}

impl Waiting {
    const fn left(&self) -> u32 {
        self.transfer.bytes - self.moved
    }

    const fn progress(&self, ended: Option<End>, piece: Option<PacketPayload>) -> Progress {
        Progress { id: self.transfer.id, moved: self.moved, ended, piece }
    }
}
