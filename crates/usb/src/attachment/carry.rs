//! Outputs of disk and transport carried out, and what comes of them carried back.
//!
//! Always true: after each call nothing is left to be carried; what waits, waits for the bus or for a deadline.

use super::{Attachment, Finished, LOST_KEPT_MAX};
use crate::door::{BusDoor, CellId, DoorError, Order};
use bus::{Completion, Direction, TransferStatus};
use initiator::disk::{self, Memory};
use initiator::{
    BusAnswer, BusRequest, Command, CommandId, Outcome, Output, PEEK_BYTES_MAX, Payload, Piece,
    StreamEndpoints, Transfer,
};
use units::{ByteRange, Instant};

/// Bytes of a message: an IU with sense data, a wrapper, a COMMAND IU.
pub(super) const MESSAGE_BYTES: u32 = 128;

/// Bytes of a parameter list that is a command's own. What is longer is zeroes, which all share.
pub(super) const LIST_BYTES: u32 = disk::LIST_BYTES_MAX as u32;

/// Whose memory each command of the disk moves, by its slot.
#[derive(Debug, Default)]
pub(super) struct Commands {
    memory: Vec<Option<(CommandId, Memory)>>,
}

/// What is to be known of a transfer under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flight {
    payload: Payload,
    direction: Direction,
    /// Where its bytes are.
    cell: CellId,
    /// The cell was taken for it alone.
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

impl<D: BusDoor> Attachment<D> {
    /// Carries outputs and completions until there are none.
    pub(super) fn settle(&mut self, now: Instant) {
        loop {
            if let Some(output) = self.disk.poll_output() {
                self.carry_disk(now, output);
            } else if let Some(output) = self.transport.poll_output() {
                self.carry_transport(now, output);
            } else if let Some(completion) = self.door.poll() {
                self.complete(now, completion);
            } else if self.door.is_gone() && !self.is_gone {
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
            disk::Output::Surveyed(result) => self.surveyed = Some(result),
            disk::Output::Finished(id, result) => {
                let slot = id.0 as u16;
                self.slots[usize::from(slot)] = false;
                self.finished.push_back(Finished { slot, result });
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
                let cell = self.cells.lists.after(command.id.slot);
                self.door.copy_in(cell, ByteRange::new(0, list.len() as u32), list);
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
                if let Some(number) = self.flights.find(id) {
                    self.door.cancel(number);
                }
            }
            Output::Request(id, request) => {
                let answer = self.ask(request);
                // A reset ends all transfers, and the transport is to know that first.
                while let Some(completion) = self.door.poll() {
                    self.complete(now, completion);
                }
                self.transport.handle_answer(now, id, answer);
            }
            Output::Finished(id, outcome) => self.end(now, id, &outcome),
        }
    }

    /// A command has ended.
    fn end(&mut self, now: Instant, id: CommandId, outcome: &Outcome) {
        self.answer.clear();
        if self.commands.remove(id) == Some(Memory::Answer) {
            self.answer.resize(disk::ANSWER_BYTES_MAX as usize, 0);
            let all = ByteRange::new(0, disk::ANSWER_BYTES_MAX);
            self.door.copy_out(self.cells.answer, all, &mut self.answer);
        }
        self.disk.handle_outcome(now, id, outcome, &self.answer);
    }

    fn offer(&mut self, now: Instant, transfer: Transfer) {
        let Transfer { id, pipe, length, payload } = transfer;
        let Some((cell, range, is_message)) = self.place(&payload, length, pipe.endpoint.direction()) else {
            let completion = Completion { id, status: TransferStatus::Error, actual: 0 };
            return self.transport.handle_completion(now, completion, &[]);
        };
        let flight = Flight { payload, direction: pipe.endpoint.direction(), cell, is_message };
        let number = self.flights.insert(id, flight);
        self.door.submit(Order { id: number, pipe, cell, range });
    }

    /// Where the bytes of a transfer are, or are to be. `None`: there is no room.
    fn place(
        &mut self,
        payload: &Payload,
        length: u32,
        direction: Direction,
    ) -> Option<(CellId, ByteRange, bool)> {
        let range = ByteRange::new(0, length);
        match payload {
            Payload::Inline(inline) => {
                let cell = self.cells.take_message()?;
                self.door.copy_in(cell, range, inline.as_bytes());
                Some((cell, range, true))
            }
            Payload::Message => Some((self.cells.take_message()?, range, true)),
            Payload::Buffer(piece) => {
                let (cell, range) = self.place_of(piece)?;
                Some((cell, range, false))
            }
            Payload::Pieces(pack) => {
                let bounce = self.cells.bounce?;
                if direction == Direction::Out {
                    self.take_pieces(*pack);
                    self.copy_pack(bounce, length, Direction::Out);
                }
                Some((bounce, range, false))
            }
        }
    }

    /// Where a piece of a command's memory is.
    fn place_of(&self, piece: &Piece) -> Option<(CellId, ByteRange)> {
        let cell = match self.commands.of(piece.command)? {
            Memory::Request(id) => self.cells.slots.after(id.0 as u16),
            Memory::Answer => self.cells.answer,
            Memory::Parameters if piece.range.end() > LIST_BYTES => self.cells.zeroes,
            Memory::Parameters => self.cells.lists.after(piece.command.slot),
            Memory::None => return None,
        };
        Some((cell, piece.range))
    }

    fn take_pieces(&mut self, pack: initiator::PackId) {
        self.pieces.clear();
        self.pieces.extend_from_slice(self.transport.pieces(pack));
    }

    /// Copies a pack together, or apart; as many bytes of it.
    fn copy_pack(&mut self, bounce: CellId, bytes: u32, direction: Direction) {
        let mut start = 0;
        for index in 0..self.pieces.len() {
            let piece = self.pieces[index];
            let len = piece.range.len.min(bytes - start);
            if let Some((cell, range)) = self.place_of(&piece) {
                let packed = (bounce, ByteRange::new(start, len));
                let own = (cell, ByteRange::new(range.start, len));
                match direction {
                    Direction::Out => self.door.copy_across(own, packed),
                    Direction::In => self.door.copy_across(packed, own),
                };
            }
            start += len;
        }
    }

    fn complete(&mut self, now: Instant, completion: Completion) {
        let Some((id, flight)) = self.flights.remove(completion.id) else { return };
        let Flight { payload, direction, cell, is_message } = flight;
        let Completion { status, actual, .. } = completion;
        let mut bytes = [0; MESSAGE_BYTES as usize];
        let shown = match payload {
            Payload::Inline(_) => 0,
            Payload::Message => {
                self.door.copy_out(cell, ByteRange::new(0, actual.min(MESSAGE_BYTES)), &mut bytes)
            }
            Payload::Buffer(piece) if actual as usize <= PEEK_BYTES_MAX => {
                self.door.copy_out(cell, ByteRange::new(piece.range.start, actual), &mut bytes)
            }
            Payload::Buffer(_) => 0,
            Payload::Pieces(pack) => {
                if direction == Direction::In {
                    self.take_pieces(pack);
                    self.copy_pack(cell, actual, Direction::In);
                }
                let is_short = actual as usize <= PEEK_BYTES_MAX;
                if is_short { self.door.copy_out(cell, ByteRange::new(0, actual), &mut bytes) } else { 0 }
            }
        };
        if is_message {
            self.cells.put_message(cell);
        }
        self.transport.handle_completion(now, Completion { id, status, actual }, &bytes[..shown]);
    }

    fn ask(&mut self, request: BusRequest) -> BusAnswer {
        let done = match request {
            BusRequest::ClearHalt(endpoint) => self.door.clear_halt(endpoint),
            BusRequest::SelectAlternate { alternate, .. } => self.door.select_alternate(alternate),
            BusRequest::MassStorageReset { .. } => match request.setup() {
                Some(setup) => self.door.control(setup, &mut []).map(drop),
                None => return BusAnswer::Failed,
            },
            BusRequest::AllocateStreams { endpoints, wanted } => {
                let StreamEndpoints { status, data_in, data_out } = endpoints;
                return match self.door.allocate_streams([status, data_in, data_out], wanted) {
                    Ok(granted) => BusAnswer::Streams(granted),
                    Err(_) => BusAnswer::Failed,
                };
            }
            BusRequest::ResetPort => self.door.reset(),
        };
        match done {
            Ok(()) => BusAnswer::Done,
            Err(error) if error.is_stall() => BusAnswer::Stalled,
            Err(_) => BusAnswer::Failed,
        }
    }
}
