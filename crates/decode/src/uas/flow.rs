//! Which transfer of status and data is of which command.
//!
//! Three ways to know: the stream, where the capture has it, is the tag; what a host submits before a command is for that command,
//! since drivers hand in status, data and command together; and after READ READY or WRITE READY data are of its tag.
//! Invariants: as many transfers are remembered as [`TRANSFERS_MAX`]; the oldest is forgotten for another.

use crate::command::{Part, TransferStep};
use crate::event::{Event, TransferEnd};
use std::collections::VecDeque;

/// Transfers of a device that are in flight at a time.
const TRANSFERS_MAX: usize = 4096;
/// Commands whose data the device has asked for and the host not submitted.
const READY_MAX: usize = 1024;

#[derive(Debug, Default)]
pub(super) struct Flow {
    /// Transfers in flight, in the order in which they were submitted.
    transfers: VecDeque<Transfer>,
    /// Tags that the device is ready for: to the host, to the device.
    ready: [VecDeque<u16>; 2],
    /// The tag that data went to last, since a host may send them in pieces.
    latest: [Option<u16>; 2],
    /// Whether a transfer has ended that was not seen to begin.
    pub(super) has_strays: bool,
}

/// A transfer in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transfer {
    id: u64,
    tag: Option<u16>,
    pub(super) stream: Option<u16>,
    /// How it began.
    pub(super) step: TransferStep,
}

impl Flow {
    pub(super) fn status_submitted(&mut self, event: &Event<'_>) {
        self.remember(event, Part::Status, event.stream);
    }

    /// The tag that a status transfer was for, if that is known.
    pub(super) fn status_ended(&mut self, event: &Event<'_>) -> Option<u16> {
        let remembered = self.take(event);
        event.stream.or(remembered)
    }

    /// The tag of data that are submitted, if it is known yet.
    pub(super) fn data_submitted(&mut self, event: &Event<'_>) -> Option<u16> {
        let way = usize::from(!event.is_in());
        let tag = match event.stream {
            Some(stream) => Some(stream),
            None => self.ready[way].pop_front().or(self.latest[way]),
        };
        if event.stream.is_none() {
            self.latest[way] = tag;
        }
        // A transfer that is over as soon as it begins is not waited for.
        if event.ended().is_none() {
            let part = if event.is_in() { Part::DataIn } else { Part::DataOut };
            self.remember(event, part, tag);
        }
        tag
    }

    pub(super) fn data_ended(&mut self, event: &Event<'_>) -> Option<u16> {
        if event.is_submitted() {
            let way = usize::from(!event.is_in());
            return event.stream.or(self.latest[way]);
        }
        let remembered = self.take(event);
        remembered.or(event.stream)
    }

    /// The device is ready for data of a tag.
    pub(super) fn ready(&mut self, tag: u16, is_in: bool) {
        let way = usize::from(!is_in);
        self.ready[way].truncate(READY_MAX - 1);
        self.ready[way].push_back(tag);
    }

    /// A command begins: the transfers that were submitted for it, from now on its own.
    pub(super) fn claim(&mut self, tag: u16) -> Vec<Transfer> {
        // Of status transfers that are unclaimed, one is this command's: the latest. Without streams any is as good.
        let status = self
            .transfers
            .iter()
            .rposition(|transfer| transfer.tag.is_none() && transfer.step.part == Part::Status);
        let mut claimed = Vec::new();
        for (index, transfer) in self.transfers.iter_mut().enumerate() {
            let is_data = transfer.step.part != Part::Status;
            if transfer.tag.is_none() && (is_data || Some(index) == status) {
                transfer.tag = Some(tag);
                claimed.push(*transfer);
            } else if transfer.tag == Some(tag) {
                claimed.push(*transfer);
            }
        }
        claimed
    }

    /// Whether data of a command are in flight.
    pub(super) fn waits_for(&self, tag: u16) -> bool {
        self.transfers.iter().any(|transfer| transfer.tag == Some(tag) && transfer.step.part != Part::Status)
    }

    /// A command has ended: what is left of its data belongs to no command.
    pub(super) fn forget(&mut self, tag: u16) {
        self.transfers.retain(|transfer| transfer.tag != Some(tag));
        for way in 0..2 {
            self.ready[way].retain(|ready| *ready != tag);
            self.latest[way] = self.latest[way].filter(|latest| *latest != tag);
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Packets are missing here: what belongs to no command yet may belong to one of them.
    pub(super) fn miss(&mut self) {
        self.transfers.retain(|transfer| transfer.tag.is_some());
        self.ready = Default::default();
        self.latest = Default::default();
    }

    fn remember(&mut self, event: &Event<'_>, part: Part, tag: Option<u16>) {
        // If it is the same once more, its end was missed.
        self.transfers.retain(|transfer| (transfer.id, transfer.step.part) != (event.id, part));
        if self.transfers.len() >= TRANSFERS_MAX {
            self.transfers.pop_front();
        }
        let Event { mark, phase, length, stream, .. } = *event;
        let step = TransferStep { mark, part, phase, length };
        self.transfers.push_back(Transfer { id: event.id, tag, stream, step });
    }

    /// The transfer that has ended: its tag.
    fn take(&mut self, event: &Event<'_>) -> Option<u16> {
        let at = self.transfers.iter().position(|transfer| transfer.id == event.id);
        self.has_strays |= at.is_none() && !event.is_submitted() && event.ended() == Some(TransferEnd::Done);
        self.transfers.remove(at?)?.tag
    }
}
