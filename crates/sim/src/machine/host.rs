//! The host's side of a world: a transport, its transfers under way, and the memory of its commands.
//!
//! A transfer is a flight from its submission to its completion, which is told to who looks on as well. Left out: a
//! controller; a transfer is on its endpoint as soon as it is submitted.

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

/// A command that has ended.
#[derive(Debug)]
pub struct FinishedCommand {
    /// Of which drive, where there are several.
    pub drive: usize,
    /// Which one.
    pub id: CommandId,
    /// How.
    pub outcome: Outcome,
    /// Its memory.
    pub buffer: Vec<u8>,
}

#[derive(Debug)]
pub(super) struct HostSide<T> {
    pub(super) transport: T,
    in_flight: InFlight<TransferState>,
    /// Memory of commands, by slot.
    buffers: Vec<Option<(CommandId, Vec<u8>)>>,
    pub(super) finished: VecDeque<FinishedCommand>,
    /// Whether the transport was told something since its deadline was asked for. To ask costs a look at every slot, and
    /// most packets tell it nothing.
    pub(super) deadline_dirty: bool,
    pub(super) observers: Observers,
}

/// A transfer under way.
#[derive(Debug)]
struct TransferState {
    payload: Payload,
    pipe: Pipe,
    length: u32,
    /// Out: bytes that the device has taken, whether the host knows or not.
    taken: u32,
    /// Whether the transport has taken it back, and packets of it are under way.
    is_cancelled: bool,
    /// What the device has queued to end it, if anything.
    ending: Option<TransferId>,
    /// What a transfer without memory of its own has brought; of a pack, all its bytes, one piece after another.
    message: Vec<u8>,
    /// The pieces of a pack.
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

    /// A command has ended. Whether it was under way.
    #[must_use = "a command ends once"]
    pub(super) fn finish(&mut self, now: Instant, id: CommandId, outcome: Outcome) -> bool {
        self.observers.notify(|observer| observer.ended(now, id, &outcome));
        let place = self.buffers.get_mut(usize::from(id.slot));
        let memory = place.and_then(|place| place.take_if(|(owner, _)| *owner == id));
        let was_under_way = memory.is_some();
        let buffer = memory.map_or_else(Vec::new, |(_, buffer)| buffer);
        self.finished.push_back(FinishedCommand { drive: 0, id, outcome, buffer });
        was_under_way
    }

    /// Whether a transfer of this number has not ended.
    pub(super) fn is_in_flight(&self, number: TransferId) -> bool {
        self.in_flight.get(number).is_some()
    }

    /// Queues a transfer of the transport. One on an endpoint that is halted, or that is not there, ends at once.
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

    /// A transfer of the transport has nowhere to go.
    pub(super) fn refuse(&mut self, now: Instant, transfer: Transfer) {
        let completion = Completion { id: transfer.id, status: TransferStatus::Disconnected, actual: 0 };
        self.deadline_dirty = true;
        self.transport.handle_completion(now, completion, &[]);
    }

    /// The transport takes a transfer back: its number and its pipe, unless it has ended.
    pub(super) fn cancel(&mut self, id: TransferId) -> Option<(TransferId, Pipe)> {
        let number = self.in_flight.find(id)?;
        let (_, state) = self.in_flight.get_mut(number)?;
        state.is_cancelled = true;
        Some((number, state.pipe))
    }

    /// Pipes of the transfers that have not ended.
    pub(super) fn in_flight(&self) -> impl Iterator<Item = Pipe> {
        self.in_flight.iter().map(|(_, (_, state))| state.pipe)
    }

    pub(super) fn is_cancelled(&self, number: TransferId) -> bool {
        self.in_flight.get(number).is_some_and(|(_, state)| state.is_cancelled)
    }

    /// The pipe of a transfer.
    pub(super) fn pipe_of(&self, number: TransferId) -> Option<Pipe> {
        self.in_flight.get(number).map(|(_, state)| state.pipe)
    }

    /// Bytes of a transfer that the device has not taken, if nothing of the device ends it already.
    pub(super) fn wants_end(&self, number: TransferId) -> Option<u32> {
        let (_, state) = self.in_flight.get(number)?;
        state.ending.is_none().then_some(state.length - state.taken)
    }

    /// The device has queued something that ends a transfer.
    pub(super) fn ends_with(&mut self, number: TransferId, ending: TransferId) {
        if let Some((_, state)) = self.in_flight.get_mut(number) {
            state.ending = Some(ending);
        }
    }

    /// The device has taken a piece.
    pub(super) fn taken(&mut self, piece: Packet) {
        if let Some((_, state)) = self.in_flight.get_mut(piece.transfer) {
            state.taken = piece.offset + u32::from(piece.bytes);
        }
    }

    /// Something of a transfer has moved. What the device has queued to end it, if it has ended.
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
                    // A packet that is larger than what is left is cut, and told as babble.
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

    /// A transfer has ended. What the device has queued to end it, and on which pipe.
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
            self.observers.notify(|observer| observer.completed(now, &shown, (status, moved), bytes));
        }
        self.deadline_dirty = true;
        self.transport.handle_completion(now, Completion { id, status, actual: moved }, bytes);
        state.ending.map(|ending| (state.pipe, ending))
    }

    /// The bytes of a piece that the host sends.
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
    /// How it looks to who looks on.
    fn shown(&self, id: TransferId) -> HostTransfer {
        let command = match self.payload {
            Payload::Buffer(piece) => Some(piece.command),
            _ => None,
        };
        HostTransfer { id, pipe: self.pipe, length: self.length, command }
    }

    /// All that it sends.
    fn bytes_out<'a>(&'a self, buffers: &'a [Option<(CommandId, Vec<u8>)>]) -> &'a [u8] {
        match &self.payload {
            _ if self.pipe.endpoint.direction() == Direction::In => &[],
            Payload::Inline(inline) => inline.as_bytes(),
            Payload::Buffer(piece) => buffer_of(buffers, piece, self.length),
            Payload::Pieces(_) => &self.message,
            Payload::Message => &[],
        }
    }

    /// What it has brought.
    fn bytes_in<'a>(&'a self, buffers: &'a [Option<(CommandId, Vec<u8>)>], moved: u32) -> &'a [u8] {
        match &self.payload {
            _ if self.pipe.endpoint.direction() == Direction::Out => &[],
            Payload::Buffer(piece) => buffer_of(buffers, piece, moved),
            _ => &self.message,
        }
    }
}

/// The bytes of pieces, one after another.
fn gather(buffers: &[Option<(CommandId, Vec<u8>)>], pieces: &[BufferRange]) -> Vec<u8> {
    pieces.iter().flat_map(|piece| buffer_of(buffers, piece, piece.range.len)).copied().collect()
}

/// Puts what has come into the places of pieces, as far as it goes.
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

/// The first bytes of a piece of a command's memory.
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
