//! Outputs of a transport carried to a drive, and completions back.
//!
//! The buffers of commands lie here, by the caller's slot. Left out: latency; the caller has the clock.
//! Always true: after each call nothing is left to be carried, and what waits, waits for a medium or for a deadline.

use super::plug;
use crate::drive::{Body, Drive, HostCompletion, HostTransfer, Pool};
use crate::medium::Medium;
use bus::rendezvous::Full;
use bus::{Completion, Direction, Fifo, Pipe, TransferId, TransferStatus};
use device::{ActiveTransport, Verdict};
use initiator::{
    BufferRange, BusAnswer, BusRequest, Command, CommandId, Deadline, Failure, InFlight, Outcome, Output,
    PEEK_BYTES_MAX, PackId, Payload, Refusal, Transfer, Transport,
};
use std::hint::cold_path;
use units::Instant;

/// A command that has ended.
#[derive(Debug)]
pub struct LoopbackCompletion {
    /// Which one.
    pub id: CommandId,
    /// How.
    pub outcome: Outcome,
    /// Memory that begins with what the command read. That of a write may have gone to the drive; then it is empty.
    pub buffer: Vec<u8>,
}

/// A transport and a drive, joined.
#[derive(Debug)]
pub struct Loopback<T, M: ?Sized = dyn Medium + Send> {
    host: Host<T>,
    drive: Drive<M>,
    finished: Fifo<LoopbackCompletion>,
}

/// The host's end.
#[derive(Debug)]
struct Host<T> {
    transport: T,
    in_flight: InFlight<Place>,
    /// Buffers of commands in flight, by slot.
    buffers: Vec<Option<Buffer>>,
    /// The pieces of the transfer at hand.
    pieces: Vec<BufferRange>,
}

/// Where the bytes of a transfer belong.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// With the transport.
    Message,
    /// Nowhere: they went out.
    Sent,
    /// In a command's buffer.
    Buffer(BufferRange),
    /// In several.
    Pieces(PackId),
}

impl Place {
    const fn of(payload: &Payload) -> Self {
        match *payload {
            Payload::Inline(_) => Self::Sent,
            Payload::Message => Self::Message,
            Payload::Buffer(piece) => Self::Buffer(piece),
            Payload::Pieces(pack) => Self::Pieces(pack),
        }
    }
}

#[derive(Debug)]
struct Buffer {
    owner: CommandId,
    memory: Vec<u8>,
}

impl<T: Transport, M: Medium + ?Sized> Loopback<T, M> {
    /// Joins a drive that was made ready (see [`plug`](mod@super::plug)) with the transport made for it.
    pub fn new(transport: T, drive: Drive<M>) -> Self {
        let host = Host { transport, in_flight: InFlight::new(), buffers: Vec::new(), pieces: Vec::new() };
        Self { host, drive, finished: Fifo::new() }
    }

    /// Accepts a command and the memory of `buffer`, which holds the data to write or receives the data read; it is made
    /// longer where it is too short. The command goes to the drive by [`Self::settle`] or with the next [`Self::run_once`], together with the others that were
    /// accepted: each step runs for many commands in a row, while its instructions are in near caches.
    ///
    /// # Errors
    /// The transport's refusal; the buffer keeps its memory.
    #[inline(always)]
    pub fn submit(&mut self, now: Instant, command: &Command, buffer: &mut Vec<u8>) -> Result<(), Refusal> {
        let needed = command.transfer().map_or(0, |phase| phase.range.as_usize().end);
        if buffer.len() < needed {
            cold_path();
            buffer.resize(needed, 0);
        }
        // The buffer is there before anything can ask for it.
        let slot = usize::from(command.id.slot);
        let Host { transport, buffers, .. } = &mut self.host;
        if slot >= buffers.len() {
            cold_path();
            buffers.resize_with(slot + 1, || None);
        }
        let earlier = buffers[slot].replace(Buffer { owner: command.id, memory: std::mem::take(buffer) });
        if let Err(refusal) = transport.submit(now, command) {
            cold_path();
            if let Some(refused) = std::mem::replace(&mut buffers[slot], earlier) {
                *buffer = refused.memory;
            }
            return Err(refusal);
        }
        Ok(())
    }

    /// The caller wants a command to end.
    pub fn abort(&mut self, now: Instant, id: CommandId) {
        self.host.transport.abort(now, id);
        self.settle(now);
    }

    /// Sends accepted commands, runs the drive and handles the results.
    pub fn run_once(&mut self, now: Instant) {
        self.settle(now);
        self.drive.run_once();
        self.settle(now);
    }

    /// The time that [`Self::poll_timeout`] returned is reached.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.host.transport.handle_timeout(now);
        self.settle(now);
    }

    /// When to call [`Self::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Deadline> {
        self.host.transport.poll_timeout()
    }

    /// Announces to the transport how many requests will be in flight: see [`Transport::expect`].
    pub fn expect(&mut self, requests: usize) {
        self.host.transport.expect(requests);
    }

    /// The next command that has ended.
    pub fn poll(&mut self) -> Option<LoopbackCompletion> {
        self.finished.pop_front()
    }

    /// The transport.
    pub const fn transport(&self) -> &T {
        &self.host.transport
    }

    /// The drive.
    pub const fn drive(&self) -> &Drive<M> {
        &self.drive
    }

    /// The drive alone. Its transfers in flight remain: reset the bus before it is used again.
    pub fn into_drive(self) -> Drive<M> {
        self.drive
    }

    /// Memory for buffers.
    pub const fn pool(&mut self) -> &mut Pool {
        self.drive.pool()
    }

    /// Sends accepted commands, and carries outputs and completions until there are none.
    pub fn settle(&mut self, now: Instant) {
        loop {
            while self.carry_out_next(now) {}
            // All that have ended, one after the other: what comes of them is carried out together.
            let (host, mut has_any) = (&mut self.host, false);
            while self.drive.poll_with(|completion| host.complete(now, completion)) {
                has_any = true;
            }
            if !has_any {
                return;
            }
        }
    }

    /// Executes the transport's next output. Returns whether there was one. Its contents are used in place.
    fn carry_out_next(&mut self, now: Instant) -> bool {
        let Some(mut output) = self.host.transport.next_output() else { return false };
        match &mut *output {
            Output::Submit(Transfer { id, pipe, length, payload: Payload::Inline(inline) }) => {
                let (id, pipe, length) = (*id, *pipe, *length);
                if self.drive.pass_message(pipe, inline.as_bytes()) {
                    output.discard();
                    self.host.transport.handle_sent(now, id, length);
                    return true;
                }
                cold_path();
                let number = self.host.in_flight.insert(id, Place::Sent);
                let taken = self.drive.submit_message(number.0, pipe, inline.as_bytes());
                output.discard();
                self.note_offer(now, number, taken);
            }
            &mut Output::Submit(Transfer { id, pipe, length, ref payload }) => {
                let place = Place::of(payload);
                output.discard();
                self.offer(now, id, pipe, length, place);
            }
            &mut Output::Finished(id, ref mut outcome) => {
                let outcome = std::mem::replace(outcome, Outcome::Failed(Failure::Aborted));
                output.discard();
                self.finished.push_with(|| LoopbackCompletion {
                    id,
                    outcome,
                    buffer: self.host.take_buffer(id),
                });
            }
            &mut Output::Cancel(id) => {
                cold_path();
                output.discard();
                if let Some(number) = self.host.in_flight.find(id) {
                    self.drive.cancel(number.0);
                }
            }
            &mut Output::Request(id, request) => {
                cold_path();
                output.discard();
                let answer = self.ask(request);
                self.host.transport.handle_answer(now, id, answer);
            }
        }
        true
    }

    /// Offers the drive a transfer of memory.
    fn offer(&mut self, now: Instant, id: TransferId, pipe: Pipe, length: u32, place: Place) {
        let number = self.host.in_flight.insert(id, place);
        let payload = match pipe.endpoint.direction() {
            Direction::In => Vec::new(),
            Direction::Out => self.host.gather(place, length, self.drive.pool()),
        };
        let taken = self.drive.submit(HostTransfer { id: number.0, pipe, length, payload });
        self.note_offer(now, number, taken);
    }

    /// A transfer that the drive has not taken ends here.
    fn note_offer(&mut self, now: Instant, number: TransferId, taken: Result<(), Full>) {
        if taken.is_err()
            && let Some((id, _)) = self.host.in_flight.remove(number)
        {
            cold_path();
            let completion = Completion { id, status: TransferStatus::Error, actual: 0 };
            self.host.transport.handle_completion(now, completion, &[]);
        }
    }

    fn ask(&mut self, request: BusRequest) -> BusAnswer {
        match (request, request.setup()) {
            (_, Some(setup)) => match self.drive.control(setup, &[]) {
                Verdict::Done => BusAnswer::Done,
                _ => BusAnswer::Stalled,
            },
            (BusRequest::AllocateStreams { endpoints, wanted }, None) => {
                match self.drive.device().transport() {
                    ActiveTransport::Uas { streams: true } => {
                        for endpoint in [endpoints.status, endpoints.data_in, endpoints.data_out] {
                            self.drive.cancel_at(endpoint);
                        }
                        BusAnswer::Streams(wanted.min(self.drive.device().config().streams))
                    }
                    _ => BusAnswer::Failed,
                }
            }
            (_, None) => {
                self.drive.bus_reset();
                plug::configure(&mut self.drive).map_or(BusAnswer::Failed, |()| BusAnswer::Done)
            }
        }
    }
}

impl<T: Transport> Host<T> {
    /// The buffer of a command that has ended.
    fn take_buffer(&mut self, id: CommandId) -> Vec<u8> {
        let buffer = self.buffers.get_mut(usize::from(id.slot));
        let buffer = buffer.and_then(|slot| slot.take_if(|buffer| buffer.owner == id));
        buffer.map_or_else(Vec::new, |buffer| buffer.memory)
    }

    /// The bytes that a transfer sends.
    fn gather(&mut self, place: Place, length: u32, pool: &mut Pool) -> Vec<u8> {
        match place {
            Place::Buffer(BufferRange { command, range }) if range.start == 0 => {
                std::mem::take(memory_of(&mut self.buffers, command).unwrap_or(&mut Vec::new()))
            }
            Place::Buffer(_) | Place::Pieces(_) => {
                cold_path();
                self.take_pieces(place);
                self.copy_pieces(length, pool)
            }
            Place::Message | Place::Sent => Vec::new(),
        }
    }

    /// Notes which pieces a transfer covers.
    fn take_pieces(&mut self, place: Place) {
        self.pieces.clear();
        match place {
            Place::Buffer(piece) => self.pieces.push(piece),
            Place::Pieces(pack) => self.pieces.extend_from_slice(self.transport.pieces(pack)),
            Place::Sent | Place::Message => {}
        }
    }

    fn copy_pieces(&mut self, length: u32, pool: &mut Pool) -> Vec<u8> {
        let mut memory = pool.take(length as usize);
        let mut rest = &mut memory[..];
        for piece in &self.pieces {
            let Some(source) = memory_of(&mut self.buffers, piece.command) else { continue };
            let (place, after) = rest.split_at_mut(piece.range.len as usize);
            place.copy_from_slice(&source[piece.range.as_usize()]);
            rest = after;
        }
        memory
    }

    fn complete(&mut self, now: Instant, completion: &mut HostCompletion) {
        let HostCompletion { id: number, status, actual, ref mut body, .. } = *completion;
        let Some((id, place)) = self.in_flight.remove(TransferId(number)) else { return };
        let completion = Completion { id, status, actual };
        match (place, &body) {
            (Place::Message, _) => {
                self.transport.handle_completion(now, completion, bytes_of(body, actual));
            }
            (Place::Sent, _) | (_, Body::Empty) => self.transport.handle_completion(now, completion, &[]),
            (Place::Buffer(_) | Place::Pieces(_), _) => {
                let mut peek = [0; PEEK_BYTES_MAX];
                let peeked = match bytes_of(body, actual) {
                    [] => 0,
                    bytes if bytes.len() <= PEEK_BYTES_MAX => {
                        cold_path();
                        peek[..bytes.len()].copy_from_slice(bytes);
                        bytes.len()
                    }
                    _ => 0,
                };
                self.scatter(place, body, actual);
                self.transport.handle_completion(now, completion, &peek[..peeked]);
            }
        }
    }

    /// Puts what a transfer has brought where it belongs.
    fn scatter(&mut self, place: Place, body: &mut Body, actual: u32) {
        if let (Place::Buffer(piece), Body::Buffer(memory)) = (place, &mut *body)
            && piece.range.start == 0
            && piece.range.len == actual
            && let Some(place) = memory_of(&mut self.buffers, piece.command)
        {
            return std::mem::swap(place, memory);
        }
        cold_path();
        self.take_pieces(place);
        let mut bytes = bytes_of(body, actual);
        for piece in &self.pieces {
            let Some(place) = memory_of(&mut self.buffers, piece.command) else { continue };
            let (here, after) = bytes.split_at(bytes.len().min(piece.range.len as usize));
            let start = piece.range.start as usize;
            place[start..start + here.len()].copy_from_slice(here);
            bytes = after;
        }
    }
}

fn memory_of(buffers: &mut [Option<Buffer>], id: CommandId) -> Option<&mut Vec<u8>> {
    let buffer = buffers.get_mut(usize::from(id.slot))?.as_mut()?;
    (buffer.owner == id).then_some(&mut buffer.memory)
}

fn bytes_of(body: &Body, actual: u32) -> &[u8] {
    match body {
        Body::Empty => &[],
        Body::Inline(inline) => inline.as_bytes(),
        Body::Buffer(memory) => &memory[..memory.len().min(actual as usize)],
    }
}
