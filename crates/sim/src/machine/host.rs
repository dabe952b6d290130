//! The host end of a machine without a controller: a transport, its transfers in flight and the
//! command buffers.
//!
//! The link is a [`HostBus`] that notes what it is asked for; the machine carries that out.
//! Observers see each transfer from submission to completion. Left out: a controller; a transfer is
//! on its endpoint as soon as it is submitted.

use super::drive::DriveSide;
use super::observer::{HostTransfer, Observers};
use crate::link::HostPort;
use crate::link::bulk::{End, PacketPayload as Packet, Progress, Transfer as Bulk};
use bus::{Completion, Pipe, TransferId, TransferStatus};
use initiator::session::{
    BufferId, BufferMemory, BufferSpan, CommandBuffer, CommandRunner, HostBus, RunnerBuffers, TransferRequest,
};
use initiator::{BusAnswer, BusRequest, Command, CommandId, Outcome, Refusal, RequestId, Transport};
use std::collections::VecDeque;
use units::Instant;
use wire::usb::Direction;

/// A completed command.
#[derive(Debug)]
pub struct FinishedCommand {
    /// Number of the drive.
    pub drive: usize,
    /// Id of the command.
    pub id: CommandId,
    /// Outcome.
    pub outcome: Outcome,
    /// Its buffer.
    pub buffer: Vec<u8>,
}

#[derive(Debug)]
pub(super) struct HostSide<T> {
    commands: CommandRunner<T>,
    bus: LinkBus,
    pub(super) finished: VecDeque<FinishedCommand>,
    /// Whether the transport was called since its deadline was read. Reading it scans every slot,
    /// and most packets do not change it.
    pub(super) deadline_dirty: bool,
    pub(super) observers: Observers,
}

/// An action that the transport requests.
#[derive(Debug)]
pub(super) enum HostAction {
    Submit(TransferRequest),
    Cancel(TransferId),
    Request(RequestId, BusRequest),
    Finish(CommandId, Outcome),
}

/// The link as the transport sees it.
#[derive(Debug)]
struct LinkBus {
    /// One for the message of each transfer, one for merged transfers, and one for each slot.
    buffers: Vec<Vec<u8>>,
    /// The buffer of slot 0.
    first: BufferId,
    /// By slot.
    owners: Vec<Option<CommandId>>,
    /// By transfer id.
    transfers: Vec<Option<TransferState>>,
    actions: VecDeque<HostAction>,
}

/// A transfer in flight.
#[derive(Clone, Copy, Debug)]
struct TransferState {
    pipe: Pipe,
    span: BufferSpan,
    /// Out: bytes that the device has accepted, whether the host knows or not.
    taken: u32,
    /// Whether the transport has cancelled it while packets are in flight.
    is_cancelled: bool,
    /// The terminator that the device has queued, if any.
    ending: Option<TransferId>,
}

impl<T: Transport> HostSide<T> {
    pub(super) fn new(transport: T) -> Self {
        let transfers = transport.transfers_max();
        let merged = BufferId::new(transfers as u32);
        let buffers = RunnerBuffers { messages: BufferId::default(), merged: Some(merged) };
        Self {
            commands: CommandRunner::new(transport, buffers),
            bus: LinkBus {
                buffers: vec![Vec::new(); transfers + 1],
                first: merged.after(1),
                owners: Vec::new(),
                transfers: vec![None; transfers],
                actions: VecDeque::new(),
            },
            finished: VecDeque::new(),
            deadline_dirty: true,
            observers: Observers::default(),
        }
    }

    pub(super) const fn transport(&self) -> &T {
        self.commands.transport()
    }

    /// Returns the transport to be called, which may change its deadline.
    pub(super) const fn call(&mut self) -> &mut T {
        self.deadline_dirty = true;
        self.commands.transport_mut()
    }

    pub(super) fn submit(&mut self, now: Instant, command: &Command, buffer: Vec<u8>) -> Result<(), Refusal> {
        let slot = command.id.slot;
        self.deadline_dirty = true;
        let lent = CommandBuffer { buffer: self.bus.first.after(slot), is_whole: true };
        self.commands.submit(now, command, lent)?;
        self.bus.lend(slot, command.id, buffer);
        self.observers.notify(|observer| observer.began(now, command));
        Ok(())
    }

    /// Returns the next thing to do.
    pub(super) fn poll(&mut self, now: Instant) -> Option<HostAction> {
        if self.bus.actions.is_empty()
            && let Some(finished) = self.commands.poll(now, &mut self.bus)
        {
            self.bus.actions.push_back(HostAction::Finish(finished.id, finished.outcome));
        }
        self.bus.actions.pop_front()
    }

    /// Completes a command. Returns whether it was in flight.
    #[must_use = "a command ends once"]
    pub(super) fn finish(&mut self, now: Instant, id: CommandId, outcome: Outcome) -> bool {
        self.observers.notify(|observer| observer.ended(now, id, &outcome));
        let owner = self.bus.owners.get_mut(usize::from(id.slot));
        let was_in_flight = owner.and_then(|owner| owner.take_if(|owner| *owner == id)).is_some();
        let buffer = match self.bus.buffers.get_mut(self.bus.first.after(id.slot).index()) {
            Some(buffer) if was_in_flight => std::mem::take(buffer),
            _ => Vec::new(),
        };
        self.finished.push_back(FinishedCommand { drive: 0, id, outcome, buffer });
        was_in_flight
    }

    /// Returns whether a transfer is in flight.
    pub(super) fn is_in_flight(&self, id: TransferId) -> bool {
        self.bus.get(id).is_some()
    }

    /// Returns the message that a transfer sends, to be changed.
    pub(super) fn message(&mut self, request: &TransferRequest) -> Option<&mut [u8]> {
        let is_message = request.span.buffer.index() < self.bus.transfers.len();
        let is_sent = is_message && request.pipe.endpoint.direction() == Direction::Out;
        self.bus
            .buffers
            .get_mut(request.span.buffer.index())
            .filter(|_| is_sent)?
            .get_mut(request.span.range.as_usize())
    }

    /// Queues a transfer of the transport. On a halted or missing endpoint it completes at once.
    pub(super) fn offer(&mut self, now: Instant, port: &mut HostPort, request: TransferRequest) {
        let TransferRequest { id, pipe, span, .. } = request;
        let state = TransferState { pipe, span, taken: 0, is_cancelled: false, ending: None };
        self.bus.start(id, state);
        if !self.observers.is_empty() {
            let shown = self.bus.shown(id, &state);
            let bytes = match pipe.endpoint.direction() {
                Direction::Out => self.bus.slice(span),
                Direction::In => &[],
            };
            self.observers.notify(|observer| observer.submitted(now, &shown, bytes));
        }
        if port.is_halted(pipe.endpoint) {
            self.end(now, id, TransferStatus::Stall, 0);
        } else if port.queue(pipe, Bulk { id, bytes: span.range.len }).is_err() {
            self.end(now, id, TransferStatus::Error, 0);
        }
    }

    /// Completes a transfer that has no device.
    pub(super) fn refuse(&mut self, now: Instant, id: TransferId) {
        self.deadline_dirty = true;
        let completion = Completion { id, status: TransferStatus::Disconnected, actual: 0 };
        self.commands.complete(now, &mut self.bus, completion);
    }

    /// Marks a transfer as cancelled; returns its pipe, if in flight.
    pub(super) fn cancel(&mut self, id: TransferId) -> Option<Pipe> {
        let state = self.bus.get_mut(id)?;
        state.is_cancelled = true;
        Some(state.pipe)
    }

    /// Returns the pipes of the transfers in flight.
    pub(super) fn in_flight(&self) -> impl Iterator<Item = Pipe> {
        self.bus.transfers.iter().flatten().map(|state| state.pipe)
    }

    pub(super) fn is_cancelled(&self, id: TransferId) -> bool {
        self.bus.get(id).is_some_and(|state| state.is_cancelled)
    }

    /// Returns the pipe of a transfer.
    pub(super) fn pipe_of(&self, id: TransferId) -> Option<Pipe> {
        self.bus.get(id).map(|state| state.pipe)
    }

    /// Returns the bytes of a transfer that the device has not accepted, unless a terminator is
    /// queued.
    pub(super) fn wants_end(&self, id: TransferId) -> Option<u32> {
        let state = self.bus.get(id)?;
        state.ending.is_none().then_some(state.span.range.len - state.taken)
    }

    /// Records the terminator of a transfer.
    pub(super) fn ends_with(&mut self, id: TransferId, ending: TransferId) {
        if let Some(state) = self.bus.get_mut(id) {
            state.ending = Some(ending);
        }
    }

    /// Records a piece that the device has accepted.
    pub(super) fn taken(&mut self, piece: Packet) {
        if let Some(state) = self.bus.get_mut(piece.transfer) {
            state.taken = piece.offset + u32::from(piece.bytes);
        }
    }

    /// Handles progress of a transfer. Returns its terminator if it has completed.
    pub(super) fn progress(
        &mut self,
        now: Instant,
        progress: Progress,
        drive: &mut DriveSide,
    ) -> Option<(Pipe, TransferId)> {
        let Progress { id, moved, ended, piece } = progress;
        let span = self.bus.get(id).map(|state| state.span);
        if let (Some(piece), Some(span)) = (piece, span) {
            let bytes = drive.bytes(piece);
            let start = moved as usize - bytes.len().min(moved as usize);
            // A packet beyond the end of the transfer is cut and reported as babble.
            let place = self.bus.place(span).get_mut(start..).unwrap_or_default();
            let len = bytes.len().min(place.len());
            place[..len].copy_from_slice(&bytes[..len]);
        }
        let status = match ended? {
            End::Overflow => TransferStatus::Babble,
            End::Stalled => TransferStatus::Stall,
            End::Withdrawn => TransferStatus::Cancelled,
            End::Full if moved == span?.range.len => TransferStatus::Done,
            End::Full | End::Short => TransferStatus::Short,
            End::Failed => TransferStatus::Error,
        };
        self.end(now, id, status, moved)
    }

    /// Completes a transfer. Returns its terminator and pipe.
    pub(super) fn end(
        &mut self,
        now: Instant,
        id: TransferId,
        status: TransferStatus,
        moved: u32,
    ) -> Option<(Pipe, TransferId)> {
        let state = self.bus.transfers.get_mut(id.0 as usize)?.take()?;
        if !self.observers.is_empty() {
            let shown = self.bus.shown(id, &state);
            let bytes = match state.pipe.endpoint.direction() {
                Direction::In => self.bus.slice(state.span.first(moved)),
                Direction::Out => &[],
            };
            self.observers.notify(|observer| observer.completed(now, &shown, status, moved, bytes));
        }
        self.deadline_dirty = true;
        self.commands.complete(now, &mut self.bus, Completion { id, status, actual: moved });
        state.ending.map(|ending| (state.pipe, ending))
    }

    /// Returns the bytes of a piece that the host sends.
    pub(super) fn bytes(&self, piece: Packet) -> &[u8] {
        let Some(state) = self.bus.get(piece.transfer) else { return &[] };
        let at = piece.offset as usize;
        self.bus.slice(state.span).get(at..at + usize::from(piece.bytes)).unwrap_or_default()
    }
}

impl LinkBus {
    /// Takes the buffer of a command.
    fn lend(&mut self, slot: u16, owner: CommandId, buffer: Vec<u8>) {
        let (slot, index) = (usize::from(slot), self.first.after(slot).index());
        if slot >= self.owners.len() {
            self.owners.resize(slot + 1, None);
            self.buffers.resize_with(index + 1, Vec::new);
        }
        (self.owners[slot], self.buffers[index]) = (Some(owner), buffer);
    }

    fn get(&self, id: TransferId) -> Option<&TransferState> {
        self.transfers.get(id.0 as usize)?.as_ref()
    }

    fn get_mut(&mut self, id: TransferId) -> Option<&mut TransferState> {
        self.transfers.get_mut(id.0 as usize)?.as_mut()
    }

    fn start(&mut self, id: TransferId, state: TransferState) {
        if let Some(slot) = self.transfers.get_mut(id.0 as usize) {
            *slot = Some(state);
        }
    }

    /// Returns the bytes of a span, as far as there are any.
    fn slice(&self, span: BufferSpan) -> &[u8] {
        let bytes = self.buffers.get(span.buffer.index());
        bytes.and_then(|bytes| bytes.get(span.range.as_usize())).unwrap_or_default()
    }

    /// Returns the bytes of a span, to be written. Buffers of messages and merged transfers grow.
    fn place(&mut self, span: BufferSpan) -> &mut [u8] {
        let range = span.range.as_usize();
        let is_own = span.buffer.index() < self.first.index();
        let Some(bytes) = self.buffers.get_mut(span.buffer.index()) else { return &mut [] };
        if is_own && bytes.len() < range.end {
            bytes.resize(range.end, 0);
        }
        bytes.get_mut(range).unwrap_or_default()
    }

    /// Returns the observers' view of a transfer.
    fn shown(&self, id: TransferId, state: &TransferState) -> HostTransfer {
        let slot = state.span.buffer.index().checked_sub(self.first.index());
        let command = slot.and_then(|slot| *self.owners.get(slot)?);
        HostTransfer { id, pipe: state.pipe, length: state.span.range.len, command }
    }
}

impl BufferMemory for LinkBus {
    fn bytes(&mut self, buffer: BufferId) -> Option<&mut [u8]> {
        self.buffers.get_mut(buffer.index()).map(Vec::as_mut_slice)
    }

    fn copy_out(&self, from: BufferSpan, into: &mut [u8]) -> usize {
        copy(self.slice(from), into)
    }

    fn copy_in(&mut self, into: BufferSpan, from: &[u8]) -> usize {
        copy(from, self.place(into))
    }

    fn copy_across(&mut self, from: BufferSpan, into: BufferSpan) -> usize {
        self.place(into);
        let indices = [from.buffer.index(), into.buffer.index()];
        let Ok([source, target]) = self.buffers.get_disjoint_mut(indices) else { return 0 };
        let source = source.get(from.range.as_usize()).unwrap_or_default();
        copy(source, target.get_mut(into.range.as_usize()).unwrap_or_default())
    }
}

impl HostBus for LinkBus {
    type Buffers = Self;

    fn buffers(&mut self) -> &mut Self {
        self
    }

    fn submit(&mut self, request: TransferRequest) -> Option<Completion> {
        self.actions.push_back(HostAction::Submit(request));
        None
    }

    fn cancel(&mut self, id: TransferId) {
        self.actions.push_back(HostAction::Cancel(id));
    }

    fn request(&mut self, id: RequestId, request: BusRequest) -> Option<BusAnswer> {
        self.actions.push_back(HostAction::Request(id, request));
        None
    }
}

/// Copies as much as both hold; returns the bytes copied.
pub(super) fn copy(from: &[u8], into: &mut [u8]) -> usize {
    let len = from.len().min(into.len());
    into[..len].copy_from_slice(&from[..len]);
    len
}
