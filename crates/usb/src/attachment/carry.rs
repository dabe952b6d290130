//! Carries out the outputs of disk and transport, and feeds back the results.
//!
//! Always true: after each call all outputs are carried out; what remains waits for the bus or a
//! deadline.

use super::{Attachment, FinishedRequest, LOST_KEPT_MAX};
use crate::host_bus::{BufferId, BufferSpan, HostBus, HostBusError, TransferRequest};
use bus::{Completion, Direction, TransferStatus};
use initiator::disk::{self, Memory};
use initiator::{
    BufferRange, BusAnswer, BusRequest, Command, CommandId, Outcome, Output, PEEK_BYTES_MAX, Payload,
    StreamEndpoints, Transfer,
};
use units::{ByteRange, Instant};

/// Length of a message buffer: an IU with sense data, a CBW or CSW, a COMMAND IU.
pub(super) const MESSAGE_BYTES: u32 = 128;

/// Length of a parameter list buffer of a command. Longer parameters are zeroes, in a shared
/// buffer.
pub(super) const LIST_BYTES: u32 = disk::LIST_BYTES_MAX as u32;

/// The memory of each command of the disk, by slot.
#[derive(Debug, Default)]
pub(super) struct Commands {
    memory: Vec<Option<(CommandId, Memory)>>,
}

/// A transfer in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingTransfer {
    payload: Payload,
    direction: Direction,
    /// Its buffer.
    buffer: BufferId,
    /// The buffer was taken for it alone.
    is_message: bool,
}

impl Commands {
    fn set(&mut self, id: CommandId, memory: Memory) {
        let at = usize::from(id.slot);
        if at >= self.memory.len() {
            self.memory.resize(at + 1, None);
        }
        self.memory[at] = Some((id, memory));
    }

    fn of(&self, id: CommandId) -> Option<Memory> {
        let &(owner, memory) = self.memory.get(usize::from(id.slot))?.as_ref()?;
        (owner == id).then_some(memory)
    }

    fn remove(&mut self, id: CommandId) -> Option<Memory> {
        let memory = self.of(id);
        if memory.is_some() {
            self.memory[usize::from(id.slot)] = None;
        }
        memory
    }
}

impl<D: HostBus> Attachment<D> {
    /// Carries out outputs and completions until there are none.
    pub(super) fn settle(&mut self, now: Instant) {
        loop {
            if let Some(output) = self.disk.poll_output() {
                self.carry_disk(now, output);
            } else if let Some(output) = self.transport.poll_output() {
                self.carry_transport(now, output);
            } else if let Some(completion) = self.bus.poll() {
                self.complete(now, completion);
            } else if self.bus.is_gone() && !self.is_gone {
                self.is_gone = true;
                self.transport.handle_disconnect(now);
            } else {
                return;
            }
        }
    }

    fn carry_disk(&mut self, now: Instant, output: disk::Output) {
        match output {
            disk::Output::Submit(command, memory) => self.begin(now, &command, memory),
            disk::Output::Abort(id) => self.transport.abort(now, id),
            disk::Output::Identified(result) => self.identified = Some(result),
            disk::Output::Finished(id, result) => {
                let slot = id.0 as u16;
                self.slots[usize::from(slot)] = false;
                self.finished.push_back(FinishedRequest { slot, result });
            }
            disk::Output::Lost(lost) => {
                if self.lost.len() < LOST_KEPT_MAX {
                    self.lost.push_back(lost);
                }
            }
        }
    }

    fn begin(&mut self, now: Instant, command: &Command, memory: Memory) {
        self.commands.set(command.id, memory);
        if memory == Memory::Parameters {
            let list = self.disk.parameters(command.id);
            if list.len() <= LIST_BYTES as usize {
                let buffer = self.buffers.lists.after(command.id.slot);
                self.bus.copy_in(buffer, ByteRange::new(0, list.len() as u32), list);
            }
        }
        if let Err(refusal) = self.transport.submit(now, command) {
            self.commands.remove(command.id);
            self.disk.handle_refusal(now, command.id, refusal);
        }
    }

    fn carry_transport(&mut self, now: Instant, output: Output) {
        match output {
            Output::Submit(transfer) => self.offer(now, transfer),
            Output::Cancel(id) => {
                if let Some(number) = self.in_flight_table.find(id) {
                    self.bus.cancel(number);
                }
            }
            Output::Request(id, request) => {
                let answer = self.ask(request);
                // A reset ends all transfers, and the transport is to know that first.
                while let Some(completion) = self.bus.poll() {
                    self.complete(now, completion);
                }
                self.transport.handle_answer(now, id, answer);
            }
            Output::Finished(id, outcome) => self.end(now, id, &outcome),
        }
    }

    /// Handles the end of a command.
    fn end(&mut self, now: Instant, id: CommandId, outcome: &Outcome) {
        self.answer.clear();
        if self.commands.remove(id) == Some(Memory::Answer) {
            self.answer.resize(disk::ANSWER_BYTES_MAX as usize, 0);
            let all = ByteRange::new(0, disk::ANSWER_BYTES_MAX);
            self.bus.copy_out(self.buffers.answer, all, &mut self.answer);
        }
        self.disk.handle_outcome(now, id, outcome, &self.answer);
    }

    fn offer(&mut self, now: Instant, transfer: Transfer) {
        let Transfer { id, pipe, length, payload } = transfer;
        let Some((buffer, range, is_message)) = self.place(&payload, length, pipe.endpoint.direction())
        else {
            let completion = Completion { id, status: TransferStatus::Error, actual: 0 };
            return self.transport.handle_completion(now, completion, &[]);
        };
        let pending = PendingTransfer { payload, direction: pipe.endpoint.direction(), buffer, is_message };
        let number = self.in_flight_table.insert(id, pending);
        self.bus.submit(TransferRequest { id: number, pipe, buffer, range });
    }

    /// Returns the memory of a transfer; `None` if there is none left.
    fn place(
        &mut self,
        payload: &Payload,
        length: u32,
        direction: Direction,
    ) -> Option<(BufferId, ByteRange, bool)> {
        let range = ByteRange::new(0, length);
        match payload {
            Payload::Inline(inline) => {
                let buffer = self.buffers.take_message()?;
                self.bus.copy_in(buffer, range, inline.as_bytes());
                Some((buffer, range, true))
            }
            Payload::Message => Some((self.buffers.take_message()?, range, true)),
            Payload::Buffer(piece) => {
                let (buffer, range) = self.place_of(piece)?;
                Some((buffer, range, false))
            }
            Payload::Pieces(pack) => {
                let bounce = self.buffers.bounce?;
                if direction == Direction::Out {
                    self.take_pieces(*pack);
                    self.copy_pack(bounce, length, Direction::Out);
                }
                Some((bounce, range, false))
            }
        }
    }

    /// Returns the memory of a buffer range of a command.
    fn place_of(&self, piece: &BufferRange) -> Option<(BufferId, ByteRange)> {
        let buffer = match self.commands.of(piece.command)? {
            Memory::Request(id) => self.buffers.slots.after(id.0 as u16),
            Memory::Answer => self.buffers.answer,
            Memory::Parameters if piece.range.end() > LIST_BYTES => self.buffers.zeroes,
            Memory::Parameters => self.buffers.lists.after(piece.command.slot),
            Memory::None => return None,
        };
        Some((buffer, piece.range))
    }

    fn take_pieces(&mut self, pack: initiator::PackId) {
        self.pieces.clear();
        self.pieces.extend_from_slice(self.transport.pieces(pack));
    }

    /// Gathers or scatters this many bytes of a merged transfer.
    fn copy_pack(&mut self, bounce: BufferId, bytes: u32, direction: Direction) {
        let mut start = 0;
        for index in 0..self.pieces.len() {
            let piece = self.pieces[index];
            let len = piece.range.len.min(bytes - start);
            if let Some((buffer, range)) = self.place_of(&piece) {
                let packed = BufferSpan { buffer: bounce, range: ByteRange::new(start, len) };
                let own = BufferSpan { buffer, range: ByteRange::new(range.start, len) };
                match direction {
                    Direction::Out => self.bus.copy_across(own, packed),
                    Direction::In => self.bus.copy_across(packed, own),
                };
            }
            start += len;
        }
    }

    fn complete(&mut self, now: Instant, completion: Completion) {
        let Some((id, pending)) = self.in_flight_table.remove(completion.id) else { return };
        let PendingTransfer { payload, direction, buffer, is_message } = pending;
        let Completion { status, actual, .. } = completion;
        let mut bytes = [0; MESSAGE_BYTES as usize];
        let shown = match payload {
            Payload::Inline(_) => 0,
            Payload::Message => {
                self.bus.copy_out(buffer, ByteRange::new(0, actual.min(MESSAGE_BYTES)), &mut bytes)
            }
            Payload::Buffer(piece) if actual as usize <= PEEK_BYTES_MAX => {
                self.bus.copy_out(buffer, ByteRange::new(piece.range.start, actual), &mut bytes)
            }
            Payload::Buffer(_) => 0,
            Payload::Pieces(pack) => {
                if direction == Direction::In {
                    self.take_pieces(pack);
                    self.copy_pack(buffer, actual, Direction::In);
                }
                let is_short = actual as usize <= PEEK_BYTES_MAX;
                if is_short { self.bus.copy_out(buffer, ByteRange::new(0, actual), &mut bytes) } else { 0 }
            }
        };
        if is_message {
            self.buffers.put_message(buffer);
        }
        self.transport.handle_completion(now, Completion { id, status, actual }, &bytes[..shown]);
    }

    fn ask(&mut self, request: BusRequest) -> BusAnswer {
        let done = match request {
            BusRequest::ClearHalt(endpoint) => self.bus.clear_halt(endpoint),
            BusRequest::SelectAlternate { alternate, .. } => self.bus.select_alternate(alternate),
            BusRequest::MassStorageReset { .. } => match request.setup() {
                Some(setup) => self.bus.control(setup, &mut []).map(drop),
                None => return BusAnswer::Failed,
            },
            BusRequest::AllocateStreams { endpoints, wanted } => {
                let StreamEndpoints { status, data_in, data_out } = endpoints;
                return match self.bus.allocate_streams([status, data_in, data_out], wanted) {
                    Ok(granted) => BusAnswer::Streams(granted),
                    Err(_) => BusAnswer::Failed,
                };
            }
            BusRequest::ResetPort => self.bus.reset(),
        };
        match done {
            Ok(()) => BusAnswer::Done,
            Err(error) if error.is_stall() => BusAnswer::Stalled,
            Err(_) => BusAnswer::Failed,
        }
    }
}
