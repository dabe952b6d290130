//! What every world is to the one who has commands for it, with a controller or without, with one drive or several.
//!
//! Drives have numbers from 0. Of one that is not there nothing is known, and it takes nothing.

use super::{DirectMachine, FinishedCommand, Observer, StopReason};
use crate::check::Violation;
use crate::components::{BusLoad, Components, LaneLoad, QueueLoad};
use crate::engine::Trace;
use crate::link::superspeed::Link;
use initiator::{Command, CommandId, Refusal, Transport};
use std::fmt;
use units::Instant;
use wire::scsi::opcode::OperationCode;

/// That a command begins, for those who take notes.
pub(crate) struct CommandStart<'a>(pub(crate) &'a Command);

impl fmt::Display for CommandStart<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Command { id, cdb, .. } = self.0;
        let operation = OperationCode::from(cdb.operation_code());
        write!(f, "{id} begins: {operation}, {} bytes", self.0.transfer_len())
    }
}

/// A world that takes commands.
pub trait Simulation {
    /// The time.
    fn now(&self) -> Instant;

    /// Events that have happened.
    fn happened(&self) -> u64;

    /// The digest of all that has happened.
    fn digest(&self) -> u64;

    /// Its drives.
    fn drives(&self) -> usize;

    /// The link at the root port that leads to a drive, with what it has carried, if it is one of SuperSpeed.
    fn link(&self, drive: usize) -> Option<&Link>;

    /// What its components have done since it began.
    fn components(&self) -> Components;

    /// Commands that can be under way at once with a drive.
    fn depth(&self, drive: usize) -> usize;

    /// Blocks of a drive that were written with what belongs elsewhere, where blocks hold their number
    /// ([`FixedLatencyDrive::numbered`](super::FixedLatencyDrive::numbered)).
    fn misplaced_blocks(&self, drive: usize) -> u64;

    /// Compares the books that are kept whatever happens. To be asked when a run ends.
    ///
    /// # Errors
    /// The first violation.
    fn audit(&mut self) -> Result<(), Violation>;

    /// Sends notes of every packet to a trace.
    fn trace_to(&mut self, trace: Box<dyn Trace>);

    /// Takes the trace back; no notes are made from now on.
    fn take_trace(&mut self) -> Option<Box<dyn Trace>>;

    /// Tells `observer` what happens to a drive from now on.
    fn observe(&mut self, drive: usize, observer: Box<dyn Observer>);

    /// Gives the transport of a drive a command. `buffer` holds what it writes, or has room for what it reads.
    ///
    /// # Errors
    /// The transport's refusal.
    fn submit(&mut self, drive: usize, command: &Command, buffer: Vec<u8>) -> Result<(), Refusal>;

    /// Tells those who look on at a drive that the command that it was given last has waited since a time. Nothing else comes of it.
    fn queued_since(&mut self, _drive: usize, _since: Instant, _command: CommandId) {}

    /// Lets things happen until a command ends. `None` if nothing is going to happen any more.
    ///
    /// # Errors
    /// If the world does not go on.
    fn run(&mut self) -> Result<Option<FinishedCommand>, StopReason> {
        self.run_until(None)
    }

    /// The same, but no longer than up to a time: `None` when it has come, or if nothing is going to happen any more.
    ///
    /// # Errors
    /// If the world does not go on.
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
