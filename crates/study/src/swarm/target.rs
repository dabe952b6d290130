//! The machine that a session runs on: with a controller and its driver, or without.
//!
//! Always true: both offer the same interface, so that an invariant that holds in one must hold in
//! the other.

use initiator::{Command, CommandId, Counters, Refusal, Transport};
use sim::check::Violation;
use sim::engine::Trace;
use sim::fault::{FaultKind, Faults};
use sim::machine::xhci::XhciMachine;
use sim::machine::{DetachedDrive, DirectMachine, FinishedCommand, Simulation, StopReason};
use units::Instant;

/// A machine with injected faults. Drives are indexed; without a controller there is one.
pub(super) trait SwarmTarget {
    fn now(&self) -> Instant;
    fn happened(&self) -> u64;
    fn digest(&self) -> u64;
    /// Mixes a result into the digest.
    fn mix(&mut self, word: u64);
    /// Queue depth of the transport.
    fn depth(&self, drive: usize) -> usize;
    /// Counters of the transport.
    fn counters(&self, drive: usize) -> Counters;
    /// Whether the layers below the transports saw nothing unexpected.
    fn has_clean_host(&self) -> bool;
    /// The fault injector of a drive.
    fn faults(&mut self, drive: usize) -> &mut Faults;
    /// Why the drives are gone, if they are.
    fn gone(&self) -> Option<FaultKind>;
    /// Statuses that may be about an earlier command.
    fn misattributed(&self, drive: usize) -> u64;
    /// Wasted bytes.
    fn wasted_bytes(&self) -> u64;
    fn submit(&mut self, drive: usize, command: &Command, buffer: Vec<u8>) -> Result<(), Refusal>;
    fn abort(&mut self, drive: usize, id: CommandId);
    fn run_until(&mut self, until: Option<Instant>) -> Result<Option<FinishedCommand>, StopReason>;
    /// Checks all invariants.
    fn audit(&mut self) -> Result<(), Violation>;
    /// Checks the invariants of an idle drive.
    fn audit_rest(&self, drive: usize, is_left_alone: bool) -> Result<(), Violation>;
    fn trace_to(&mut self, trace: Box<dyn Trace>);
    /// The remaining state of each drive.
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
