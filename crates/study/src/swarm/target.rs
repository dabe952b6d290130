//! The world that a life is lived in: with a controller and its driver, or without.
//!
//! Always true: what a life asks of both is the same, so that what holds in one must hold in the other.

use initiator::{Command, CommandId, Counters, Refusal, Transport};
use sim::check::Violation;
use sim::engine::Trace;
use sim::fault::{FaultKind, Faults};
use sim::machine::xhci::XhciMachine;
use sim::machine::{DetachedDrive, DirectMachine, FinishedCommand, Simulation, StopReason};
use units::Instant;

/// A world in which things go wrong. Drives are named by number; without a controller there is one.
pub(super) trait SwarmTarget {
    fn now(&self) -> Instant;
    fn happened(&self) -> u64;
    fn digest(&self) -> u64;
    /// Adds a result to the digest.
    fn mix(&mut self, word: u64);
    /// Commands that can be under way at once.
    fn depth(&self, drive: usize) -> usize;
    /// What the transport counts.
    fn counters(&self, drive: usize) -> Counters;
    /// Whether what is below the transports has met nothing strange.
    fn has_clean_host(&self) -> bool;
    /// What goes wrong with a drive.
    fn faults(&mut self, drive: usize) -> &mut Faults;
    /// Why the drives are gone, if they are.
    fn gone(&self) -> Option<FaultKind>;
    /// Statuses that may be about an earlier command.
    fn misattributed(&self, drive: usize) -> u64;
    /// Bytes that were carried in vain.
    fn wasted_bytes(&self) -> u64;
    fn submit(&mut self, drive: usize, command: &Command, buffer: Vec<u8>) -> Result<(), Refusal>;
    fn abort(&mut self, drive: usize, id: CommandId);
    fn run_until(&mut self, until: Option<Instant>) -> Result<Option<FinishedCommand>, StopReason>;
    /// Compares all books.
    fn audit(&mut self) -> Result<(), Violation>;
    /// Compares what must be when all commands have ended.
    fn audit_rest(&self, drive: usize, is_left_alone: bool) -> Result<(), Violation>;
    fn trace_to(&mut self, trace: Box<dyn Trace>);
    /// What is left of each drive.
    fn end(self, kind: FaultKind) -> Vec<DetachedDrive>;
}

impl<T: Transport> SwarmTarget for DirectMachine<T> {
    fn now(&self) -> Instant {
        self.now()
    }

    fn happened(&self) -> u64 {
        self.happened()
    }

    fn digest(&self) -> u64 {
        self.digest()
    }

    fn mix(&mut self, word: u64) {
        self.mix(word);
    }

    fn depth(&self, _: usize) -> usize {
        self.transport().depth()
    }

    fn counters(&self, _: usize) -> Counters {
        self.transport().counters()
    }

    fn has_clean_host(&self) -> bool {
        true
    }

    fn faults(&mut self, _: usize) -> &mut Faults {
        self.faults()
    }

    fn gone(&self) -> Option<FaultKind> {
        self.gone()
    }

    fn misattributed(&self, _: usize) -> u64 {
        self.misattributed()
    }

    fn wasted_bytes(&self) -> u64 {
        self.wasted_bytes()
    }

    fn submit(&mut self, _: usize, command: &Command, buffer: Vec<u8>) -> Result<(), Refusal> {
        self.submit(command, buffer)
    }

    fn abort(&mut self, _: usize, id: CommandId) {
        self.abort(id);
    }

    fn run_until(&mut self, until: Option<Instant>) -> Result<Option<FinishedCommand>, StopReason> {
        self.run_until(until)
    }

    fn audit(&mut self) -> Result<(), Violation> {
        self.audit()
    }

    fn audit_rest(&self, _: usize, is_left_alone: bool) -> Result<(), Violation> {
        self.audit_rest(is_left_alone)
    }

    fn trace_to(&mut self, trace: Box<dyn Trace>) {
        self.trace_to(trace);
    }

    fn end(self, kind: FaultKind) -> Vec<DetachedDrive> {
        vec![self.end(kind)]
    }
}

impl SwarmTarget for XhciMachine {
    fn now(&self) -> Instant {
        Simulation::now(self)
    }

    fn happened(&self) -> u64 {
        Simulation::happened(self)
    }

    fn digest(&self) -> u64 {
        Simulation::digest(self)
    }

    fn mix(&mut self, word: u64) {
        self.mix(word);
    }

    fn depth(&self, drive: usize) -> usize {
        Simulation::depth(self, drive)
    }

    fn counters(&self, drive: usize) -> Counters {
        self.transport_counters(drive)
    }

    fn has_clean_host(&self) -> bool {
        self.has_clean_host()
    }

    fn faults(&mut self, drive: usize) -> &mut Faults {
        self.faults(drive)
    }

    fn gone(&self) -> Option<FaultKind> {
        self.gone()
    }

    fn misattributed(&self, drive: usize) -> u64 {
        self.misattributed(drive)
    }

    fn wasted_bytes(&self) -> u64 {
        self.wasted_bytes()
    }

    fn submit(&mut self, drive: usize, command: &Command, buffer: Vec<u8>) -> Result<(), Refusal> {
        Simulation::submit(self, drive, command, buffer)
    }

    fn abort(&mut self, drive: usize, id: CommandId) {
        self.abort(drive, id);
    }

    fn run_until(&mut self, until: Option<Instant>) -> Result<Option<FinishedCommand>, StopReason> {
        self.run_until(until)
    }

    fn audit(&mut self) -> Result<(), Violation> {
        self.audit()
    }

    fn audit_rest(&self, drive: usize, is_left_alone: bool) -> Result<(), Violation> {
        self.audit_rest(drive, is_left_alone)
    }

    fn trace_to(&mut self, trace: Box<dyn Trace>) {
        Simulation::trace_to(self, trace);
    }

    fn end(self, kind: FaultKind) -> Vec<DetachedDrive> {
        self.end(kind)
    }
}
