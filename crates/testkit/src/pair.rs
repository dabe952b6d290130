//! An initiator and a device on a [`FaultyBus`], with a clock that the test sets.
//!
//! Always true, or the test fails: a command ends with none of its transfers in flight; every wait
//! has a deadline; with an unplugged drive all ends without time.

use crate::faulty_bus::FaultyBus;
use ::drive::Drive;
use initiator::session::{
    BufferBlock, BufferId, BufferMemory, BufferSpan, CommandBuffer, CommandRunner, FinishedCommand, HostBus,
    RunnerBuffers,
};
use initiator::{Command, CommandId, Refusal, Transport};
use std::collections::VecDeque;
use units::{ByteRange, Instant};

/// Slots for commands, and the bytes of each buffer.
pub const SLOTS: BufferBlock = BufferBlock { count: 64, bytes: 4096 };

/// Bytes of a merged transfer at most.
const MERGED_BYTES: u32 = 64 << 10;

/// A transport and a drive.
pub struct Pair<T> {
    commands: CommandRunner<T>,
    /// The bus.
    pub bus: FaultyBus,
    /// The time.
    pub now: Instant,
    /// The buffer of slot 0.
    slots: BufferId,
    finished: VecDeque<FinishedCommand>,
}

impl<T: Transport> Pair<T> {
    /// Joins the two.
    pub fn new(transport: T, drive: Drive) -> Self {
        let merged = BufferBlock { count: 1, bytes: MERGED_BYTES };
        let (bus, [messages, merged, slots]) = FaultyBus::new(drive, &transport, [merged, SLOTS]);
        let commands = CommandRunner::new(transport, RunnerBuffers { messages, merged: Some(merged) });
        Self { commands, bus, now: Instant::ZERO, slots, finished: VecDeque::new() }
    }

    /// Returns the transport.
    pub const fn transport(&self) -> &T {
        self.commands.transport()
    }

    /// Starts a command with these bytes in its buffer, which are made if it is accepted.
    ///
    /// # Errors
    /// The transport's refusal.
    pub fn submit(&mut self, command: &Command, bytes: impl FnOnce() -> Vec<u8>) -> Result<(), Refusal> {
        let buffer = self.slots.after(command.id.slot);
        self.commands.submit(self.now, command, CommandBuffer { buffer, is_whole: true })?;
        let bytes = bytes();
        let range = ByteRange::new(0, bytes.len() as u32);
        self.bus.buffers().copy_in(BufferSpan { buffer, range }, &bytes);
        self.listen();
        Ok(())
    }

    /// Returns the buffer of a command.
    pub fn bytes(&mut self, id: CommandId) -> &[u8] {
        self.bus.buffers().bytes(self.slots.after(id.slot)).expect("there is such a slot")
    }

    /// Aborts a command.
    pub fn abort(&mut self, id: CommandId) {
        self.commands.transport_mut().abort(self.now, id);
        self.listen();
    }

    /// Returns the next command that has ended.
    pub fn poll(&mut self) -> Option<FinishedCommand> {
        self.finished.pop_front()
    }

    /// Carries out what the transport asked for first.
    pub fn carry(&mut self) {
        self.bus.carry();
        while let Some((id, answer)) = self.bus.poll_answer() {
            self.commands.transport_mut().handle_answer(self.now, id, answer);
            self.listen();
        }
    }

    /// Delivers a completion: see [`FaultyBus::deliver`].
    pub fn deliver(&mut self, position: usize) -> bool {
        let is_delivered = self.bus.deliver(position);
        while let Some(completion) = self.bus.poll() {
            self.commands.complete(self.now, &mut self.bus, completion);
        }
        self.listen();
        is_delivered
    }

    /// Carries out and delivers all that takes no time.
    pub fn flow(&mut self) {
        loop {
            self.bus.collect();
            if self.bus.has_asked() {
                self.carry();
            } else if !self.deliver(0) {
                return;
            }
        }
    }

    /// Lets time pass up to the next deadline. Returns whether there was one.
    pub fn pass_time(&mut self) -> bool {
        let Some(deadline) = self.transport().poll_timeout() else { return false };
        self.now = self.now.max(deadline.at);
        self.commands.transport_mut().handle_timeout(self.now);
        self.listen();
        assert!(self.transport().poll_timeout() != Some(deadline), "nothing came of {deadline:?}");
        true
    }

    /// Unplugs the drive. The transport is notified before its transfers end, or when they have.
    pub fn unplug(&mut self, is_notified_first: bool) {
        if is_notified_first && !self.bus.is_unplugged() {
            self.notify_gone();
        }
        self.bus.unplug();
    }

    /// Ends all that was in flight with an unplugged drive.
    pub fn bury(&mut self) {
        self.flow();
        self.notify_gone();
        self.flow();
        assert!(self.bus.is_quiet(), "transfers outlive the device");
        assert_eq!((self.transport().in_flight(), self.transport().depth()), (0, 0));
        assert_eq!(self.transport().poll_timeout(), None);
    }

    /// Returns the drive, after [`Self::bury`]: it is plugged in again as another pair.
    pub fn into_drive(self) -> Drive {
        self.bus.into_drive()
    }

    fn notify_gone(&mut self) {
        if !std::mem::replace(&mut self.bus.is_notified, true) {
            self.commands.transport_mut().handle_disconnect(self.now);
            self.listen();
        }
    }

    fn listen(&mut self) {
        while let Some(finished) = self.commands.poll(self.now, &mut self.bus) {
            assert!(!self.commands.uses(&finished), "{} is still in flight", finished.id);
            self.finished.push_back(finished);
        }
    }
}
