//! Single commands at a drive in the same process.

use super::host_bus::LoopbackBus;
use crate::drive::{Drive, Pool};
use crate::medium::Medium;
use bus::Fifo;
use initiator::session::{
    BufferBlock, BufferId, CommandBuffer, CommandRunner, HostBus, MESSAGE_BYTES, RunnerBuffers,
};
use initiator::turbo::TRANSFER_BYTES;
use initiator::{Command, CommandId, Deadline, Outcome, Refusal, Transport};
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
    commands: CommandRunner<T>,
    bus: LoopbackBus<M>,
    /// The buffer of the command of slot 0; those of other slots follow.
    first: BufferId,
    finished: Fifo<LoopbackCompletion>,
}

impl<T: Transport, M: Medium + ?Sized> Loopback<T, M> {
    /// Joins a drive that was made ready (see [`plug`](mod@super::plug)) with the transport made for it.
    pub fn new(transport: T, drive: Drive<M>) -> Self {
        let mut bus = LoopbackBus::new(drive);
        let messages = BufferBlock { count: transport.transfers_max() as u16, bytes: MESSAGE_BYTES };
        let merged = BufferBlock { count: 1, bytes: TRANSFER_BYTES };
        let [messages, merged, first] = bus.allocate([messages, merged, BufferBlock { count: 0, bytes: 0 }]);
        let buffers = RunnerBuffers { messages, merged: Some(merged) };
        Self { commands: CommandRunner::new(transport, buffers), bus, first, finished: Fifo::new() }
    }

    /// Accepts a command and the memory of `buffer`, which holds the data to write or receives the data read; it is made
    /// longer where it is too short. The command goes to the drive by [`Self::settle`] or with the next [`Self::run_once`],
    /// together with the others that were accepted: each step runs for many commands in a row, while its instructions are
    /// in near caches.
    ///
    /// # Errors
    /// The transport's refusal; the buffer keeps its memory.
    pub fn submit(&mut self, now: Instant, command: &Command, buffer: &mut Vec<u8>) -> Result<(), Refusal> {
        let needed = command.transfer().map_or(0, |phase| phase.range.as_usize().end);
        if buffer.len() < needed {
            cold_path();
            buffer.resize(needed, 0);
        }
        let id = self.first.after(command.id.slot);
        self.commands.submit(now, command, CommandBuffer { buffer: id, is_whole: true })?;
        self.bus.replace(id, std::mem::take(buffer));
        Ok(())
    }

    /// The caller wants a command to end.
    pub fn abort(&mut self, now: Instant, id: CommandId) {
        self.commands.transport_mut().abort(now, id);
        self.settle(now);
    }

    /// Sends accepted commands, runs the drive and handles the results.
    pub fn run_once(&mut self, now: Instant) {
        self.settle(now);
        self.bus.run_once();
        self.settle(now);
    }

    /// The time that [`Self::poll_timeout`] returned is reached.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.commands.transport_mut().handle_timeout(now);
        self.settle(now);
    }

    /// When to call [`Self::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Deadline> {
        self.commands.transport().poll_timeout()
    }

    /// Announces to the transport how many requests will be in flight: see [`Transport::expect`].
    pub fn expect(&mut self, requests: usize) {
        self.commands.transport_mut().expect(requests);
    }

    /// The next command that has ended.
    pub fn poll(&mut self) -> Option<LoopbackCompletion> {
        self.finished.pop_front()
    }

    /// The transport.
    pub const fn transport(&self) -> &T {
        self.commands.transport()
    }

    /// The drive.
    pub const fn drive(&self) -> &Drive<M> {
        self.bus.drive()
    }

    /// The drive alone. Its transfers in flight remain: reset the bus before it is used again.
    pub fn into_drive(self) -> Drive<M> {
        self.bus.into_drive()
    }

    /// Memory for buffers.
    pub const fn pool(&mut self) -> &mut Pool {
        self.bus.pool()
    }

    /// Sends accepted commands, and carries outputs and completions until there are none.
    pub fn settle(&mut self, now: Instant) {
        loop {
            while let Some(finished) = self.commands.poll(now, &mut self.bus) {
                let buffer = finished.buffer.map(|command| self.bus.replace(command.buffer, Vec::new()));
                let (id, outcome, buffer) = (finished.id, finished.outcome, buffer.unwrap_or_default());
                self.finished.push_back(LoopbackCompletion { id, outcome, buffer });
            }
            // All that have ended, one after the other: what comes of them is carried out together.
            let mut has_any = false;
            while let Some(completion) = self.bus.poll() {
                self.commands.complete(now, &mut self.bus, completion);
                has_any = true;
            }
            if !has_any {
                return;
            }
        }
    }
}
