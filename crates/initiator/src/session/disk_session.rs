//! The session: a disk on a [`CommandRunner`], and the bus that it owns.
//!
//! Memory of the disk's commands is a buffer of the bus: that of a request's slot, or one of the
//! session's. Always true: a slot's buffer is not accessible while its request is in flight. Left
//! out: waiting, which only the caller's bus can do.

use super::command_runner::{CommandBuffer, CommandRunner, FinishedCommand, MESSAGE_BYTES, RunnerBuffers};
use super::{BufferBlock, BufferId, BufferMemory, BufferSpan, HostBus};
use crate::disk::{
    ANSWER_BYTES_MAX, AskTemperature, Disk, DiskConfig, Done, Error, IdentifyError, LIST_BYTES_MAX,
    LostWrite, Memory, Operation, Output, PARAMETER_BYTES_MAX, Request, RequestId, RequestRefusal,
};
use crate::{AnyTransport, Command, Refusal, Transport};
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use bus::Fifo;
use core::hint::cold_path;
use units::{ByteRange, Extent, Instant};

/// Lost writes kept until polled; all are counted.
pub const LOST_KEPT_MAX: usize = 64;

/// Length of a parameter list buffer of a command. Longer parameters are zeroes, in a shared
/// buffer.
const LIST_BYTES: u32 = LIST_BYTES_MAX as u32;

/// Number of buffer blocks of a session.
const BLOCKS: usize = 6;

/// The parameters that determine the buffers of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionConfig {
    /// Transfers in flight at once: [`Transport::transfers_max`].
    pub transfers: u16,
    /// Commands in flight at once: [`Transport::depth`].
    pub commands: u16,
    /// Bytes of a merged transfer: with [`Turbo`](crate::Turbo) its maximum, else 0.
    pub merged_bytes: u32,
    /// Requests in flight at once, each with a buffer.
    pub slots: u16,
    /// Bytes of each of these buffers.
    pub slot_bytes: u32,
}

/// The buffers of a session.
#[derive(Clone, Copy, Debug)]
pub struct SessionBuffers {
    runner: RunnerBuffers,
    /// Data of an identify command.
    answer: BufferId,
    /// Zeroes to write.
    zeroes: BufferId,
    /// Parameter lists, one for each command.
    lists: BufferId,
    /// The buffers of requests.
    slots: BufferId,
    slot_count: u16,
    slot_bytes: u32,
}

/// A request that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FinishedRequest {
    /// Its slot, free again.
    pub slot: u16,
    /// Its result.
    pub result: Result<Done, Error>,
}

/// A disk on a transport on a bus.
#[derive(Debug)]
pub struct Session<B, T = AnyTransport> {
    disk: Disk,
    commands: CommandRunner<T>,
    bus: B,
    buffers: SessionBuffers,
    /// By slot: bytes of the request in flight.
    slots: Vec<Option<u32>>,
    finished: Fifo<FinishedRequest>,
    /// Lost writes not polled yet.
    lost: VecDeque<LostWrite>,
    /// The result of the last identify sequence, until taken.
    identified: Option<Result<(), IdentifyError>>,
    /// The transport was notified of the disconnect.
    is_gone: bool,
}

impl SessionConfig {
    /// Returns what a transport needs, without merged transfers: 32 slots of 64 KiB.
    pub fn of(transport: &impl Transport) -> Self {
        Self {
            transfers: transport.transfers_max() as u16,
            commands: transport.depth() as u16,
            merged_bytes: 0,
            slots: 32,
            slot_bytes: 64 << 10,
        }
    }
}

impl SessionBuffers {
    /// Returns the blocks of buffers to allocate, in this order.
    pub const fn blocks(config: &SessionConfig) -> [BufferBlock; BLOCKS] {
        const fn block(count: u16, bytes: u32) -> BufferBlock {
            BufferBlock { count, bytes }
        }
        [
            block(config.transfers, MESSAGE_BYTES),
            block(1, ANSWER_BYTES_MAX),
            block(1, PARAMETER_BYTES_MAX),
            // Identification has a slot besides those of requests.
            block(config.commands.saturating_add(1), LIST_BYTES),
            block(if config.merged_bytes > 0 { 1 } else { 0 }, config.merged_bytes),
            block(config.slots, config.slot_bytes),
        ]
    }

    /// Names the buffers, given the first of each block.
    pub fn new(
        [messages, answer, zeroes, lists, merged, slots]: [BufferId; BLOCKS],
        config: &SessionConfig,
    ) -> Self {
        let merged = (config.merged_bytes > 0).then_some(merged);
        let runner = RunnerBuffers { messages, merged };
        let SessionConfig { slots: slot_count, slot_bytes, .. } = *config;
        Self { runner, answer, zeroes, lists, slots, slot_count, slot_bytes }
    }

    /// Returns the first buffer of requests.
    pub const fn slots(&self) -> BufferId {
        self.slots
    }
}

impl<B: HostBus, T: Transport> Session<B, T> {
    /// Joins the three. The disk is not identified yet.
    pub fn new(disk: DiskConfig, transport: T, bus: B, buffers: SessionBuffers) -> Self {
        Self {
            disk: Disk::new(disk),
            commands: CommandRunner::new(transport, buffers.runner),
            bus,
            buffers,
            slots: vec![None; buffers.slot_count.into()],
            finished: Fifo::with_capacity(buffers.slot_count.into()),
            lost: VecDeque::new(),
            identified: None,
            is_gone: false,
        }
    }

    /// Starts to identify the disk, initially or again. Its result is
    /// [`take_identified`](Self::take_identified).
    pub fn identify(&mut self, now: Instant, ask: AskTemperature) {
        self.identified = None;
        self.disk.start_asking(now, ask);
    }

    /// Returns once how the last identify sequence ended.
    pub const fn take_identified(&mut self) -> Option<Result<(), IdentifyError>> {
        self.identified.take()
    }

    /// Replaces the disk by one that is not identified, with other parameters. Nothing may be in
    /// flight.
    pub fn replace_disk(&mut self, disk: DiskConfig) {
        self.disk = Disk::new(disk);
    }

    /// Replaces the buffers of requests, from the same first one on. Nothing may be in flight.
    pub fn replace_slots(&mut self, count: u16, bytes: u32) {
        (self.buffers.slot_count, self.buffers.slot_bytes) = (count, bytes);
        self.slots.clear();
        self.slots.resize(count.into(), None);
    }

    /// Returns the buffer of a slot; `None` while its request is in flight, or if there is no such
    /// slot.
    pub fn buffer(&mut self, slot: u16) -> Option<&mut [u8]> {
        let (bytes, buffer) = (self.buffers.slot_bytes as usize, self.buffers.slots.after(slot));
        self.slots.get(usize::from(slot)).filter(|request| request.is_none())?;
        self.bus.buffers().bytes(buffer)?.get_mut(..bytes)
    }

    /// Accepts a request that uses the buffer of a slot. It ends with one [`FinishedRequest`], and
    /// goes to the bus with [`settle`](Self::settle), together with others.
    ///
    /// # Errors
    ///
    /// Why it is rejected: [`RequestRefusal::Full`] also if the slot is in use,
    /// [`RequestRefusal::TooLong`] also if its buffer is too small.
    #[inline]
    pub fn submit(
        &mut self,
        now: Instant,
        slot: u16,
        operation: Operation,
        extent: Extent,
    ) -> Result<(), RequestRefusal> {
        let Some(None) = self.slots.get(usize::from(slot)) else { return Err(RequestRefusal::Full) };
        let request = Request { id: RequestId(slot.into()), operation, extent };
        let block_size = self.disk.geometry().ok_or(RequestRefusal::NotIdentified)?.block_size;
        let bytes = request.buffer_bytes(block_size).ok_or(RequestRefusal::TooLong)?;
        if bytes > self.buffers.slot_bytes {
            return Err(RequestRefusal::TooLong);
        }
        // Before the disk makes commands of it.
        self.slots[usize::from(slot)] = Some(bytes);
        self.disk.submit(now, request).inspect_err(|_| self.slots[usize::from(slot)] = None)
    }

    /// Aborts a request. It still ends once.
    pub fn abort(&mut self, now: Instant, slot: u16) {
        self.disk.abort(now, RequestId(slot.into()));
    }

    /// Returns the next request that ended.
    #[inline]
    pub fn poll(&mut self) -> Option<FinishedRequest> {
        self.finished.pop_front()
    }

    /// Returns the next acknowledged write that was lost later (deferred error). The next flush
    /// fails with the first of them as well.
    pub fn poll_lost(&mut self) -> Option<LostWrite> {
        self.lost.pop_front()
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout) at the latest.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let of_transport = self.commands.transport().poll_timeout().map(|due| due.at);
        let of_disk = self.disk.poll_timeout().map(|due| due.at);
        of_transport.into_iter().chain(of_disk).min()
    }

    /// Handles a deadline. Calling it early or late is harmless.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.commands.transport_mut().handle_timeout(now);
        self.disk.handle_timeout(now);
    }

    /// Carries out outputs and handles completions until there are none.
    pub fn settle(&mut self, now: Instant) {
        loop {
            self.carry_out_disk(now);
            let mut is_busy = false;
            while let Some(finished) = self.commands.poll(now, &mut self.bus) {
                self.end(now, &finished);
                is_busy = true;
            }
            if is_busy {
                continue;
            }
            while let Some(completion) = self.bus.poll() {
                self.commands.complete(now, &mut self.bus, completion);
                is_busy = true;
            }
            if !is_busy && !self.handle_rare(now) {
                return;
            }
        }
    }

    /// Handles a late answer or the disconnect. Returns whether there was one.
    fn handle_rare(&mut self, now: Instant) -> bool {
        if let Some((id, answer)) = self.bus.poll_answer() {
            self.commands.transport_mut().handle_answer(now, id, answer);
            return true;
        }
        if !self.bus.is_gone() || self.is_gone {
            return false;
        }
        self.is_gone = true;
        self.commands.transport_mut().handle_disconnect(now);
        true
    }

    #[inline]
    fn carry_out_disk(&mut self, now: Instant) {
        while let Some(output) = self.disk.poll_output() {
            match *output {
                Output::Submit(ref command, Memory::Request(id)) => {
                    // Most commands have the whole buffer of a request, and are not moved.
                    let slot = id.0 as u16;
                    let request = self.slots.get(usize::from(slot)).copied().flatten();
                    let covers = |bytes| {
                        command.data_phase.is_some_and(|phase| phase.range == ByteRange::new(0, bytes))
                    };
                    let is_whole = request.is_some_and(covers);
                    let (id, buffer) = (command.id, self.buffers.slots.after(slot));
                    let taken = self.commands.submit(now, command, CommandBuffer { buffer, is_whole });
                    output.discard();
                    if let Err(refusal) = taken {
                        cold_path();
                        self.disk.handle_refusal(now, id, refusal);
                    }
                }
                Output::Finished(id, result) => {
                    output.discard();
                    let slot = id.0 as u16;
                    if let Some(request) = self.slots.get_mut(usize::from(slot)) {
                        *request = None;
                    }
                    self.finished.push_with(|| FinishedRequest { slot, result });
                }
                rare => {
                    cold_path();
                    output.discard();
                    self.carry_out_rare(now, rare);
                }
            }
        }
    }

    #[cold]
    fn carry_out_rare(&mut self, now: Instant, output: Output) {
        match output {
            Output::Submit(command, memory) => {
                if let Err(refusal) = self.submit_other(now, &command, memory) {
                    self.disk.handle_refusal(now, command.id, refusal);
                }
            }
            Output::Abort(id) => self.commands.transport_mut().abort(now, id),
            Output::Identified(result) => self.identified = Some(result),
            Output::Lost(lost) => {
                if self.lost.len() < LOST_KEPT_MAX {
                    self.lost.push_back(lost);
                }
            }
            Output::Finished(..) => {}
        }
    }

    /// Submits a command without a request's buffer.
    fn submit_other(&mut self, now: Instant, command: &Command, memory: Memory) -> Result<(), Refusal> {
        let buffer = match memory {
            Memory::Parameters => {
                let list = self.disk.parameters(command.id);
                if list.len() <= LIST_BYTES as usize {
                    let buffer = self.buffers.lists.after(command.id.slot);
                    let range = ByteRange::new(0, list.len() as u32);
                    self.bus.buffers().copy_in(BufferSpan { buffer, range }, list);
                    buffer
                } else {
                    self.buffers.zeroes
                }
            }
            Memory::Answer => self.buffers.answer,
            Memory::None | Memory::Request(_) => self.buffers.zeroes,
        };
        // The zeroes are shared by commands in flight.
        self.commands.submit(now, command, CommandBuffer { buffer, is_whole: memory == Memory::Answer })
    }

    /// Handles the end of a command.
    #[inline]
    fn end(&mut self, now: Instant, finished: &FinishedCommand) {
        let FinishedCommand { id, outcome, buffer } = finished;
        let is_answer = buffer.is_some_and(|command| command.buffer == self.buffers.answer);
        let mut answer = &[][..];
        if is_answer {
            cold_path();
            let bytes = self.bus.buffers().bytes(self.buffers.answer);
            answer = bytes.and_then(|bytes| bytes.get(..ANSWER_BYTES_MAX as usize)).unwrap_or_default();
        }
        self.disk.handle_outcome(now, *id, outcome, answer);
    }

    /// Returns whether nothing is in flight or recovering, so that another session may follow on the
    /// same bus.
    pub fn is_at_rest(&self) -> bool {
        let transport = self.commands.transport();
        let is_working = self.disk.in_flight() > 0 || self.disk.commands_in_flight() > 0;
        let is_waiting = transport.in_flight() > 0 || transport.poll_timeout().is_some();
        // Without depth the transport has given up.
        transport.depth() > 0 && !self.is_gone && !is_working && !is_waiting
    }

    /// Returns whether the transport knows that the device is disconnected.
    pub const fn is_gone(&self) -> bool {
        self.is_gone
    }

    /// Announces the maximum of requests in flight from now on, so that Turbo does not wait for a
    /// neighbour that cannot arrive ([`Transport::expect`]).
    pub fn expect(&mut self, requests: u16) {
        self.commands.transport_mut().expect(requests.into());
    }

    /// Returns the disk.
    pub const fn disk(&self) -> &Disk {
        &self.disk
    }

    /// Returns the transport.
    pub const fn transport(&self) -> &T {
        self.commands.transport()
    }

    /// Returns the bus.
    pub const fn bus(&self) -> &B {
        &self.bus
    }

    /// Returns the bus mutably, to wait for it or to run its other end.
    pub const fn bus_mut(&mut self) -> &mut B {
        &mut self.bus
    }

    /// Ends the session; requests in flight are dropped.
    pub fn into_bus(self) -> B {
        self.bus
    }

    /// Returns the number of slots.
    pub const fn slots(&self) -> u16 {
        self.buffers.slot_count
    }

    /// Returns the number of requests not returned by [`poll`](Self::poll) yet.
    pub fn in_flight(&self) -> usize {
        self.disk.in_flight() + self.finished.len()
    }
}
