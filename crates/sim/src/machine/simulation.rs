//! The interface of a simulated machine to its users, with a controller or without, with one drive
//! or several.
//!
//! Drives are numbered from 0. Queries about a missing drive return empty values; commands to it
//! are refused.

use super::{DirectMachine, FinishedCommand, Observer, StopReason};
use crate::check::Violation;
use crate::components::{BusLoad, Components, LaneLoad, QueueLoad};
use crate::engine::Trace;
use crate::link::superspeed::Link;
use initiator::{Command, CommandId, Refusal, Transport};
use std::fmt;
use units::Instant;
use wire::scsi::opcode::OperationCode;

/// Trace text for the start of a command.
pub(crate) struct CommandStart<'a>(pub(crate) &'a Command);

impl fmt::Display for CommandStart<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Command { id, cdb, .. } = self.0;
        let operation = OperationCode::from(cdb.operation_code());
        write!(f, "{id} begins: {operation}, {} bytes", self.0.transfer_len())
    }
}

/// A simulated machine that accepts commands.
pub trait Simulation {
    /// Returns the current time.
    fn now(&self) -> Instant;

    /// Returns the number of events so far.
    fn happened(&self) -> u64;

    /// Returns the digest of all events.
    fn digest(&self) -> u64;

    /// Returns the number of drives.
    fn drives(&self) -> usize;

    /// Returns the SuperSpeed link at the root port of a drive, if it has one.
    fn link(&self, drive: usize) -> Option<&Link>;

    /// Returns the counters of its components since it started.
    fn components(&self) -> Components;

    /// Returns the queue depth of a drive.
    fn depth(&self, drive: usize) -> usize;

    /// Returns the blocks that were written with other content than their number, where blocks hold
    /// it ([`FixedLatencyDrive::numbered`](super::FixedLatencyDrive::numbered)).
    fn misplaced_blocks(&self, drive: usize) -> u64;

    /// Checks the invariants that are always tracked. Call it at the end of a run.
    ///
    /// # Errors
    /// The first violation.
    fn audit(&mut self) -> Result<(), Violation>;

    /// Traces every packet.
    fn trace_to(&mut self, trace: Box<dyn Trace>);

    /// Detaches the trace.
    fn take_trace(&mut self) -> Option<Box<dyn Trace>>;

    /// Attaches an observer to a drive.
    fn observe(&mut self, drive: usize, observer: Box<dyn Observer>);

    /// Submits a command to the transport of a drive. `buffer` holds the data to write, or room for
    /// the data to read.
    ///
    /// # Errors
    /// The transport's refusal.
    fn submit(&mut self, drive: usize, command: &Command, buffer: Vec<u8>) -> Result<(), Refusal>;

    /// Reports to observers since when the last submitted command has been queued. Has no other
    /// effect.
    fn queued_since(&mut self, _drive: usize, _since: Instant, _command: CommandId) {}

    /// Runs until a command completes. `None` if no events are pending.
    ///
    /// # Errors
    /// If the simulation stops.
    fn run(&mut self) -> Result<Option<FinishedCommand>, StopReason> {
        self.run_until(None)
    }

    /// Like [`Self::run`], up to a time: `None` when it is reached or no events are pending.
    ///
    /// # Errors
    /// If the simulation stops.
    fn run_until(&mut self, until: Option<Instant>) -> Result<Option<FinishedCommand>, StopReason>;
}

impl<T: Transport> Simulation for DirectMachine<T> {
    fn now(&self) -> Instant {
        self.now()
    }

    fn happened(&self) -> u64 {
        self.happened()
    }

    fn digest(&self) -> u64 {
        self.digest()
    }

    fn drives(&self) -> usize {
        1
    }

    fn link(&self, drive: usize) -> Option<&Link> {
        self.link().filter(|_| drive == 0)
    }

    fn components(&self) -> Components {
        let now = self.now();
        Components {
            span: now - Instant::ZERO,
            links: self.link().map(LaneLoad::of).into_iter().collect(),
            buses: self.bus().map(BusLoad::of).into_iter().collect(),
            media: vec![QueueLoad::of(self.drive.plain.level(), now)],
            ..Components::default()
        }
    }

    fn depth(&self, drive: usize) -> usize {
        if drive == 0 { self.transport().depth() } else { 0 }
    }

    fn misplaced_blocks(&self, drive: usize) -> u64 {
        if drive == 0 { self.drive.plain.misplaced_blocks() } else { 0 }
    }

    fn audit(&mut self) -> Result<(), Violation> {
        self.audit()
    }

    fn trace_to(&mut self, trace: Box<dyn Trace>) {
        self.trace_to(trace);
    }

    fn take_trace(&mut self) -> Option<Box<dyn Trace>> {
        self.take_trace()
    }

    fn observe(&mut self, drive: usize, observer: Box<dyn Observer>) {
        if drive == 0 {
            self.observe(observer);
        }
    }

    fn submit(&mut self, drive: usize, command: &Command, buffer: Vec<u8>) -> Result<(), Refusal> {
        if drive == 0 { self.submit(command, buffer) } else { Err(Refusal::Gone) }
    }

    fn run(&mut self) -> Result<Option<FinishedCommand>, StopReason> {
        self.run()
    }

    fn run_until(&mut self, until: Option<Instant>) -> Result<Option<FinishedCommand>, StopReason> {
        self.run_until(until)
    }
}
