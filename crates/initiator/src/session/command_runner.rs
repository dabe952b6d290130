//! Commands on a bus: a transport, its transfers in flight and the buffers of its commands.
//!
//! The bus is passed to each call, so that several runners can share one. Always true: a transfer
//! that the bus accepted is in the table until it completes; a buffer is used only in the range
//! that its command names.

use super::{BufferId, BufferMemory, BufferSpan, HostBus, TransferRequest};
use crate::output::PEEK_BYTES_MAX;
use crate::{
    BufferRange, BusRequest, Command, CommandId, Failure, Outcome, Output, PackId, Payload, Refusal,
    RequestId, Transfer, Transport,
};
use alloc::vec::Vec;
use bus::{Completion, Direction, TransferId, TransferStatus};
use core::hint::cold_path;
use core::mem;
use units::{ByteRange, Instant};

/// A command that ended.
#[derive(Debug)]
pub struct FinishedCommand {
    /// Its id.
    pub id: CommandId,
    /// Its outcome.
    pub outcome: Outcome,
    /// Its buffer, which is the caller's again.
    pub buffer: Option<CommandBuffer>,
}

/// The buffer that the data phase of a command names a range of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommandBuffer {
    /// The buffer.
    pub buffer: BufferId,
    /// Whether it holds nothing but the data of this command: see [`TransferRequest::is_whole`].
    pub is_whole: bool,
}

/// Buffers that a runner needs for itself.
#[derive(Clone, Copy, Debug)]
pub struct RunnerBuffers {
    /// The first of [`Transport::transfers_max`] buffers of [`MESSAGE_BYTES`], one for each
    /// transfer.
    pub messages: BufferId,
    /// One for merged transfers, if the transport makes them.
    pub merged: Option<BufferId>,
}

/// Length of a message buffer: an IU with sense data, a CBW or CSW, a COMMAND IU.
pub const MESSAGE_BYTES: u32 = 128;

/// A transport whose outputs are carried out on a bus.
#[derive(Debug)]
pub struct CommandRunner<T> {
    transport: T,
    buffers: RunnerBuffers,
    /// By transfer id.
    in_flight: Vec<Option<PendingTransfer>>,
    /// By slot.
    commands: Vec<Option<(CommandId, CommandBuffer)>>,
    /// The buffer ranges of the merged transfer at hand.
    pieces: Vec<BufferRange>,
}

/// A transfer in flight.
#[derive(Clone, Copy, Debug)]
struct PendingTransfer {
    span: BufferSpan,
    direction: Direction,
    data: TransferData,
}

/// The owner of the data of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TransferData {
    /// For the transport.
    Message,
    /// Of one command.
    Command,
    /// Of several.
    Merged(PackId),
}

impl<T: Transport> CommandRunner<T> {
    /// Creates a runner with nothing in flight.
    pub fn new(transport: T, buffers: RunnerBuffers) -> Self {
        let in_flight = (0..transport.transfers_max()).map(|_| None).collect();
        Self { transport, buffers, in_flight, commands: Vec::new(), pieces: Vec::new() }
    }

    /// Returns the transport.
    pub const fn transport(&self) -> &T {
        &self.transport
    }

    /// Returns the transport mutably, for calls that concern no command: its deadline passed, a
    /// command is aborted, the device is gone.
    pub const fn transport_mut(&mut self) -> &mut T {
        &mut self.transport
    }

    /// Accepts a command. It ends with one [`FinishedCommand`].
    ///
    /// # Errors
    ///
    /// The transport's refusal; the command is not in flight then.
    #[inline]
    pub fn submit(&mut self, now: Instant, command: &Command, buffer: CommandBuffer) -> Result<(), Refusal> {
        let slot = usize::from(command.id.slot);
        if slot >= self.commands.len() {
            cold_path();
            self.commands.resize(slot + 1, None);
        }
        self.transport.submit(now, command)?;
        self.commands[slot] = Some((command.id, buffer));
        Ok(())
    }

    /// Carries out outputs of the transport up to the next end of a command.
    #[inline]
    pub fn poll<B: HostBus>(&mut self, now: Instant, bus: &mut B) -> Option<FinishedCommand> {
        while let Some(mut output) = self.transport.poll_output() {
            match &mut *output {
                Output::Submit(Transfer { id, pipe, length, payload: Payload::Inline(inline) }) => {
                    let (id, pipe, span) = (*id, *pipe, self.buffers.message(*id, *length));
                    bus.buffers().copy_in(span, inline.as_bytes());
                    output.discard();
                    let request = TransferRequest { id, pipe, span, is_whole: true };
                    self.offer(now, bus, request, TransferData::Message);
                }
                &mut Output::Submit(transfer) => {
                    output.discard();
                    self.offer_data(now, bus, &transfer);
                }
                &mut Output::Finished(id, ref mut outcome) => {
                    let outcome = mem::replace(outcome, Outcome::Failed(Failure::Aborted));
                    output.discard();
                    let slot = self.commands.get_mut(usize::from(id.slot));
                    let buffer = slot.and_then(|slot| slot.take_if(|(owner, _)| *owner == id));
                    return Some(FinishedCommand { id, outcome, buffer: buffer.map(|(_, buffer)| buffer) });
                }
                &mut Output::Cancel(id) => {
                    cold_path();
                    output.discard();
                    if self.in_flight.get(id.0 as usize).is_some_and(Option::is_some) {
                        bus.cancel(id);
                    }
                }
                &mut Output::Request(id, request) => {
                    cold_path();
                    output.discard();
                    self.ask(now, bus, id, request);
                }
            }
        }
        None
    }

    /// Returns whether a transfer in flight uses the buffer of a command that ended: then a test
    /// has found a bug of the transport.
    pub fn uses(&self, finished: &FinishedCommand) -> bool {
        let buffer = finished.buffer.map(|command| command.buffer);
        self.in_flight.iter().flatten().any(|transfer| match transfer.data {
            TransferData::Message => false,
            TransferData::Command => Some(transfer.span.buffer) == buffer,
            TransferData::Merged(pack) => {
                self.transport.pieces(pack).iter().any(|piece| piece.command == finished.id)
            }
        })
    }

    /// Handles a completion of the bus. One of an unknown transfer is ignored.
    #[inline]
    pub fn complete<B: HostBus>(&mut self, now: Instant, bus: &mut B, completion: Completion) {
        let slot = self.in_flight.get_mut(completion.id.0 as usize);
        let Some(PendingTransfer { span, direction, data }) = slot.and_then(Option::take) else { return };
        let Completion { actual, .. } = completion;
        let mut peek = [0; PEEK_BYTES_MAX];
        let bytes = match (direction, data) {
            (Direction::Out, _) => &[][..],
            (Direction::In, TransferData::Message) => {
                let bytes = bus.buffers().bytes(span.buffer);
                bytes.and_then(|bytes| bytes.get(span.first(actual).range.as_usize())).unwrap_or_default()
            }
            (Direction::In, TransferData::Command | TransferData::Merged(_)) => {
                if let TransferData::Merged(pack) = data {
                    self.copy_pieces(bus, pack, span.first(actual), Direction::In);
                }
                if actual as usize <= PEEK_BYTES_MAX {
                    cold_path();
                    let copied = bus.buffers().copy_out(span.first(actual), &mut peek);
                    &peek[..copied]
                } else {
                    &[]
                }
            }
        };
        self.transport.handle_completion(now, completion, bytes);
    }

    fn ask<B: HostBus>(&mut self, now: Instant, bus: &mut B, id: RequestId, request: BusRequest) {
        let answer = bus.request(id, request);
        // A reset ends all transfers, and the transport is to know that first.
        while let Some(completion) = bus.poll() {
            self.complete(now, bus, completion);
        }
        if let Some(answer) = answer {
            self.transport.handle_answer(now, id, answer);
        }
    }

    /// Submits a transfer of a received message or of commands' data.
    #[inline]
    fn offer_data<B: HostBus>(&mut self, now: Instant, bus: &mut B, transfer: &Transfer) {
        let Transfer { id, pipe, length, payload } = *transfer;
        let found = match payload {
            Payload::Buffer(piece) => {
                let CommandBuffer { buffer, is_whole } = self.buffer_of(piece.command).unwrap_or_default();
                Some((BufferSpan { buffer, range: piece.range }, is_whole, TransferData::Command))
            }
            Payload::Message | Payload::Inline(_) => {
                Some((self.buffers.message(id, length), true, TransferData::Message))
            }
            Payload::Pieces(pack) => {
                let range = ByteRange::new(0, length);
                self.buffers
                    .merged
                    .map(|buffer| (BufferSpan { buffer, range }, true, TransferData::Merged(pack)))
            }
        };
        let Some((span, is_whole, data)) = found else {
            let completion = Completion { id, status: TransferStatus::Error, actual: 0 };
            return self.transport.handle_completion(now, completion, &[]);
        };
        if let (TransferData::Merged(pack), Direction::Out) = (data, pipe.endpoint.direction()) {
            self.copy_pieces(bus, pack, span, Direction::Out);
        }
        self.offer(now, bus, TransferRequest { id, pipe, span, is_whole }, data);
    }

    #[inline]
    fn offer<B: HostBus>(&mut self, now: Instant, bus: &mut B, request: TransferRequest, data: TransferData) {
        let TransferRequest { id, pipe, span, .. } = request;
        let direction = pipe.endpoint.direction();
        match bus.submit(request) {
            Some(Completion { status: TransferStatus::Done, actual, .. }) if direction == Direction::Out => {
                self.transport.handle_sent(now, id, actual);
            }
            completion => {
                if let Some(slot) = self.in_flight.get_mut(id.0 as usize) {
                    *slot = Some(PendingTransfer { span, direction, data });
                }
                if let Some(completion) = completion {
                    cold_path();
                    self.complete(now, bus, completion);
                }
            }
        }
    }

    #[inline]
    fn buffer_of(&self, id: CommandId) -> Option<CommandBuffer> {
        let &(owner, buffer) = self.commands.get(usize::from(id.slot))?.as_ref()?;
        (owner == id).then_some(buffer)
    }

    /// Gathers the pieces of a merged transfer into its span (Out) or scatters them (In).
    fn copy_pieces<B: HostBus>(&mut self, bus: &mut B, pack: PackId, span: BufferSpan, direction: Direction) {
        self.pieces.clear();
        self.pieces.extend_from_slice(self.transport.pieces(pack));
        let (mut start, mut left) = (span.range.start, span.range.len);
        for &BufferRange { command, range } in &self.pieces {
            let len = range.len.min(left);
            if let Some(CommandBuffer { buffer, .. }) = self.buffer_of(command) {
                let own = BufferSpan { buffer, range: ByteRange::new(range.start, len) };
                let merged = BufferSpan { range: ByteRange::new(start, len), ..span };
                match direction {
                    Direction::Out => bus.buffers().copy_across(own, merged),
                    Direction::In => bus.buffers().copy_across(merged, own),
                };
            }
            (start, left) = (start + len, left - len);
        }
    }
}

impl RunnerBuffers {
    /// Returns the place of a message of this transfer.
    #[inline]
    fn message(&self, id: TransferId, length: u32) -> BufferSpan {
        BufferSpan { buffer: self.messages.after(id.0 as u16), range: ByteRange::new(0, length) }
    }
}
