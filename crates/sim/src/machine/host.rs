//! The host end of a machine without a controller: a transport, its transfers in flight and the
//! command buffers.
//!
//! Observers see each transfer from submission to completion. Left out: a controller; a transfer is
//! on its endpoint as soon as it is submitted.

use super::drive::DriveSide;
use super::observer::{HostTransfer, Observers};
use crate::link::HostPort;
use crate::link::bulk::{End, PacketPayload as Packet, Progress, Transfer as Bulk};
use bus::{Completion, Pipe, TransferId, TransferStatus};
use initiator::{
    BufferRange, Command, CommandId, InFlight, Outcome, PEEK_BYTES_MAX, Payload, Refusal, Transfer, Transport,
};
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
    pub(super) transport: T,
    in_flight: InFlight<TransferState>,
    /// Command buffers by slot.
    buffers: Vec<Option<(CommandId, Vec<u8>)>>,
    pub(super) finished: VecDeque<FinishedCommand>,
    /// Whether the transport was called since its deadline was read. Reading it scans every slot,
    /// and most packets do not change it.
    pub(super) deadline_dirty: bool,
    pub(super) observers: Observers,
}

/// A transfer in flight.
#[derive(Debug)]
struct TransferState {
    payload: Payload,
    pipe: Pipe,
    length: u32,
    /// Out: bytes that the device has accepted, whether the host knows or not.
    taken: u32,
    /// Whether the transport has cancelled it while packets are in flight.
    is_cancelled: bool,
    /// The terminator that the device has queued, if any.
    ending: Option<TransferId>,
    /// Received bytes of a transfer without a command buffer; of a pack, all its bytes in order.
    message: Vec<u8>,
    /// Pieces of a pack.
    pieces: Vec<BufferRange>,
}

impl<T: Transport> HostSide<T> {
    pub(super) fn new(transport: T) -> Self {
        let (in_flight, finished, observers) = (InFlight::new(), VecDeque::new(), Observers::default());
        Self { transport, in_flight, buffers: Vec::new(), finished, deadline_dirty: true, observers }
    }

    pub(super) fn submit(&mut self, now: Instant, command: &Command, buffer: Vec<u8>) -> Result<(), Refusal> {
        let slot = usize::from(command.id.slot);
        if slot >= self.buffers.len() {
            self.buffers.resize_with(slot + 1, || None);
        }
        self.deadline_dirty = true;
        self.transport.submit(now, command)?;
        self.buffers[slot] = Some((command.id, buffer));
        self.observers.notify(|observer| observer.began(now, command));
        Ok(())
    }

    /// Completes a command. Returns whether it was in flight.
    #[must_use = "a command ends once"]
    pub(super) fn finish(&mut self, now: Instant, id: CommandId, outcome: Outcome) -> bool {
        self.observers.notify(|observer| observer.ended(now, id, &outcome));
        let place = self.buffers.get_mut(usize::from(id.slot));
        let memory = place.and_then(|place| place.take_if(|(owner, _)| *owner == id));
        let was_in_flight = memory.is_some();
        let buffer = memory.map_or_else(Vec::new, |(_, buffer)| buffer);
        self.finished.push_back(FinishedCommand { drive: 0, id, outcome, buffer });
        was_in_flight
    }

    /// Returns whether a transfer is in flight.
    pub(super) fn is_in_flight(&self, number: TransferId) -> bool {
        self.in_flight.get(number).is_some()
    }

    /// Queues a transfer of the transport. On a halted or missing endpoint it completes at once.
    pub(super) fn offer(&mut self, now: Instant, port: &mut HostPort, transfer: Transfer) {
        let Transfer { id, pipe, length, payload } = transfer;
        let pieces = match payload {
            Payload::Pieces(pack) => self.transport.pieces(pack).to_vec(),
            _ => Vec::new(),
        };
        let message = match pipe.endpoint.direction() {
            Direction::Out => gather(&self.buffers, &pieces),
            Direction::In => Vec::new(),
        };
        let (taken, is_cancelled, ending) = (0, false, None);
        let state = TransferState { payload, pipe, length, taken, is_cancelled, ending, message, pieces };
        if !self.observers.is_empty() {
            let (shown, bytes) = (state.shown(id), state.bytes_out(&self.buffers));
            self.observers.notify(|observer| observer.submitted(now, &shown, bytes));
        }
        let number = self.in_flight.insert(id, state);
        if port.is_halted(pipe.endpoint) {
            self.end(now, number, TransferStatus::Stall, 0);
        } else if port.queue(pipe, Bulk { id: number, bytes: length }).is_err() {
            self.end(now, number, TransferStatus::Error, 0);
        }
    }

    /// Completes a transfer that has no device.
    pub(super) fn refuse(&mut self, now: Instant, transfer: Transfer) {
        let completion = Completion { id: transfer.id, status: TransferStatus::Disconnected, actual: 0 };
        self.deadline_dirty = true;
        self.transport.handle_completion(now, completion, &[]);
    }

    /// Marks a transfer as cancelled; returns its number and pipe, if in flight.
    pub(super) fn cancel(&mut self, id: TransferId) -> Option<(TransferId, Pipe)> {
        let number = self.in_flight.find(id)?;
        let (_, state) = self.in_flight.get_mut(number)?;
        state.is_cancelled = true;
        Some((number, state.pipe))
    }

    /// Returns the pipes of the transfers in flight.
    pub(super) fn in_flight(&self) -> impl Iterator<Item = Pipe> {
        self.in_flight.iter().map(|(_, (_, state))| state.pipe)
    }

    pub(super) fn is_cancelled(&self, number: TransferId) -> bool {
        self.in_flight.get(number).is_some_and(|(_, state)| state.is_cancelled)
    }

    /// Returns the pipe of a transfer.
    pub(super) fn pipe_of(&self, number: TransferId) -> Option<Pipe> {
        self.in_flight.get(number).map(|(_, state)| state.pipe)
    }

    /// Returns the bytes of a transfer that the device has not accepted, unless a terminator is
    /// queued.
    pub(super) fn wants_end(&self, number: TransferId) -> Option<u32> {
        let (_, state) = self.in_flight.get(number)?;
        state.ending.is_none().then_some(state.length - state.taken)
    }

    /// Records the terminator of a transfer.
    pub(super) fn ends_with(&mut self, number: TransferId, ending: TransferId) {
        if let Some((_, state)) = self.in_flight.get_mut(number) {
            state.ending = Some(ending);
        }
    }

    /// Records a piece that the device has accepted.
    pub(super) fn taken(&mut self, piece: Packet) {
        if let Some((_, state)) = self.in_flight.get_mut(piece.transfer) {
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
        let Progress { id: number, moved, ended, piece } = progress;
        if let (Some(piece), Some((_, state))) = (piece, self.in_flight.get_mut(number)) {
            let bytes = drive.bytes(piece);
            let start = moved as usize - bytes.len().min(moved as usize);
            match state.payload {
                Payload::Buffer(BufferRange { command, range }) => {
                    let at = range.start as usize + start;
                    // A packet beyond the end of the transfer is cut and reported as babble.
                    let bytes = &bytes[..bytes.len().min(range.as_usize().end - at)];
                    if let Some(place) = memory_of(&mut self.buffers, command) {
                        place[at..at + bytes.len()].copy_from_slice(bytes);
                    }
                }
                _ => {
                    let room = (state.length as usize).saturating_sub(state.message.len());
                    state.message.extend_from_slice(&bytes[..bytes.len().min(room)]);
                }
            }
        }
        let status = match ended? {
            End::Overflow => TransferStatus::Babble,
            End::Stalled => TransferStatus::Stall,
            End::Withdrawn => TransferStatus::Cancelled,
            End::Full if moved == self.in_flight.get(number)?.1.length => TransferStatus::Done,
            End::Full | End::Short => TransferStatus::Short,
            End::Failed => TransferStatus::Error,
        };
        self.end(now, number, status, moved)
    }

    /// Completes a transfer. Returns its terminator and pipe.
    pub(super) fn end(
        &mut self,
        now: Instant,
        number: TransferId,
        status: TransferStatus,
        moved: u32,
    ) -> Option<(Pipe, TransferId)> {
        let (id, state) = self.in_flight.remove(number)?;
        if state.pipe.endpoint.direction() == Direction::In {
            scatter(&mut self.buffers, &state.pieces, &state.message);
        }
        let mut peek = [0; PEEK_BYTES_MAX];
        let bytes = match state.payload {
            Payload::Buffer(BufferRange { command, range }) if moved as usize <= PEEK_BYTES_MAX => {
                let (at, len) = (range.start as usize, moved as usize);
                if let Some(place) = memory_of(&mut self.buffers, command) {
                    peek[..len].copy_from_slice(&place[at..at + len]);
                }
                &peek[..len]
            }
            Payload::Message => &state.message[..],
            Payload::Pieces(_) if moved as usize <= PEEK_BYTES_MAX => &state.message[..],
            _ => &[],
        };
        if !self.observers.is_empty() {
            let (shown, bytes) = (state.shown(id), state.bytes_in(&self.buffers, moved));
            self.observers.notify(|observer| observer.completed(now, &shown, status, moved, bytes));
        }
        self.deadline_dirty = true;
        self.transport.handle_completion(now, Completion { id, status, actual: moved }, bytes);
        state.ending.map(|ending| (state.pipe, ending))
    }

    /// Returns the bytes of a piece that the host sends.
    pub(super) fn bytes(&self, piece: Packet) -> &[u8] {
        let Some((_, state)) = self.in_flight.get(piece.transfer) else { return &[] };
        let (at, len) = (piece.offset as usize, usize::from(piece.bytes));
        match &state.payload {
            Payload::Inline(inline) => &inline.as_bytes()[at..at + len],
            Payload::Buffer(BufferRange { command, range }) => {
                let memory = self.buffers.get(usize::from(command.slot)).and_then(Option::as_ref);
                let start = range.start as usize + at;
                memory
                    .filter(|(owner, _)| owner == command)
                    .map_or(&[], |(_, memory)| &memory[start..start + len])
            }
            Payload::Pieces(_) => state.message.get(at..at + len).unwrap_or(&[]),
            Payload::Message => &[],
        }
    }
}

impl TransferState {
    /// Returns the observers' view.
    fn shown(&self, id: TransferId) -> HostTransfer {
        let command = match self.payload {
            Payload::Buffer(piece) => Some(piece.command),
            _ => None,
        };
        HostTransfer { id, pipe: self.pipe, length: self.length, command }
    }

    /// Returns the bytes that it sends.
    fn bytes_out<'a>(&'a self, buffers: &'a [Option<(CommandId, Vec<u8>)>]) -> &'a [u8] {
        match &self.payload {
            _ if self.pipe.endpoint.direction() == Direction::In => &[],
            Payload::Inline(inline) => inline.as_bytes(),
            Payload::Buffer(piece) => buffer_of(buffers, piece, self.length),
            Payload::Pieces(_) => &self.message,
            Payload::Message => &[],
        }
    }

    /// Returns the bytes that it has received.
    fn bytes_in<'a>(&'a self, buffers: &'a [Option<(CommandId, Vec<u8>)>], moved: u32) -> &'a [u8] {
        match &self.payload {
            _ if self.pipe.endpoint.direction() == Direction::Out => &[],
            Payload::Buffer(piece) => buffer_of(buffers, piece, moved),
            _ => &self.message,
        }
    }
}

/// Concatenates the bytes of pieces.
fn gather(buffers: &[Option<(CommandId, Vec<u8>)>], pieces: &[BufferRange]) -> Vec<u8> {
    pieces.iter().flat_map(|piece| buffer_of(buffers, piece, piece.range.len)).copied().collect()
}

/// Distributes received bytes to pieces.
fn scatter(buffers: &mut [Option<(CommandId, Vec<u8>)>], pieces: &[BufferRange], mut bytes: &[u8]) {
    for piece in pieces {
        let (now, rest) = bytes.split_at(bytes.len().min(piece.range.len as usize));
        bytes = rest;
        let place = memory_of(buffers, piece.command);
        if let Some(place) = place.and_then(|memory| memory.get_mut(piece.range.as_usize())) {
            place[..now.len()].copy_from_slice(now);
        }
    }
}

/// Returns the first bytes of a piece of a command buffer.
fn buffer_of<'a>(buffers: &'a [Option<(CommandId, Vec<u8>)>], piece: &BufferRange, len: u32) -> &'a [u8] {
    let owned = buffers.get(usize::from(piece.command.slot)).and_then(Option::as_ref);
    let start = piece.range.start as usize;
    owned
        .filter(|(owner, _)| *owner == piece.command)
        .and_then(|(_, memory)| memory.get(start..start + len as usize))
        .unwrap_or(&[])
}

fn memory_of(buffers: &mut [Option<(CommandId, Vec<u8>)>], id: CommandId) -> Option<&mut Vec<u8>> {
    let (owner, memory) = buffers.get_mut(usize::from(id.slot))?.as_mut()?;
    (*owner == id).then_some(memory)
}
