//! The world that a life is lived in: with a controller and its driver, or without.
//!
//! Always true: what a life asks of both is the same, so that what holds in one must hold in the other.

use crate::check::Violation;
use crate::engine::Trace;
use crate::fault::{Faults, Kind};
use crate::world::driven::Driven;
use crate::world::{Commanded, Finished, Remains, Stopped, World};
use initiator::{Command, CommandId, Counters, Refusal, Transport};
use units::Instant;

/// A world with one drive, in which things go wrong.
pub(super) trait Stage {
    fn now(&self) -> Instant;
    fn happened(&self) -> u64;
    fn digest(&self) -> u64;
    /// Adds a result to the digest.
    fn mix(&mut self, word: u64);
    /// Commands that can be under way at once.
    fn depth(&self) -> usize;
    /// What the transport counts.
    fn counters(&self) -> Counters;
    /// Whether what is below the transport has met nothing strange.
    fn is_calm_below(&self) -> bool;
    fn faults(&mut self) -> &mut Faults;
    /// Why the device is gone, if it is.
    fn gone(&self) -> Option<Kind>;
    /// Statuses that may be about an earlier command.
    fn misled(&self) -> u64;
    /// Bytes that were carried in vain.
    fn in_vain(&self) -> u64;
    fn submit(&mut self, command: &Command, buffer: Vec<u8>) -> Result<(), Refusal>;
    fn abort(&mut self, id: CommandId);
    fn run_until(&mut self, until: Option<Instant>) -> Result<Option<Finished>, Stopped>;
    /// Compares all books.
    fn audit(&mut self) -> Result<(), Violation>;
    /// Compares what must be when all commands have ended.
    fn audit_rest(&self) -> Result<(), Violation>;
    fn trace_to(&mut self, trace: Box<dyn Trace>);
    fn end(self, kind: Kind) -> Remains;
}

impl<T: Transport> Stage for World<T> {
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

    fn depth(&self) -> usize {
        self.transport().depth()
    }

    fn counters(&self) -> Counters {
        self.transport().counters()
    }

    fn is_calm_below(&self) -> bool {
        true
    }

    fn faults(&mut self) -> &mut Faults {
        self.faults()
    }

    fn gone(&self) -> Option<Kind> {
        self.gone()
    }

    fn misled(&self) -> u64 {
        self.misled()
    }

    fn in_vain(&self) -> u64 {
        self.in_vain()
    }

    fn submit(&mut self, command: &Command, buffer: Vec<u8>) -> Result<(), Refusal> {
        self.submit(command, buffer)
    }

    fn abort(&mut self, id: CommandId) {
        self.abort(id);
    }

    fn run_until(&mut self, until: Option<Instant>) -> Result<Option<Finished>, Stopped> {
        self.run_until(until)
    }

    fn audit(&mut self) -> Result<(), Violation> {
        self.audit()
    }

    fn audit_rest(&self) -> Result<(), Violation> {
        Ok(())
    }

    fn trace_to(&mut self, trace: Box<dyn Trace>) {
        self.trace_to(trace);
    }

    fn end(self, kind: Kind) -> Remains {
        self.end(kind)
    }
}

impl Stage for Driven {
    fn now(&self) -> Instant {
        Commanded::now(self)
    }

    fn happened(&self) -> u64 {
        Commanded::happened(self)
    }

    fn digest(&self) -> u64 {
        Commanded::digest(self)
    }

    fn mix(&mut self, word: u64) {
        self.mix(word);
    }

    fn depth(&self) -> usize {
        Commanded::depth(self, 0)
    }

    fn counters(&self) -> Counters {
        self.transport_counters()
    }

    fn is_calm_below(&self) -> bool {
        self.is_calm_below()
    }

    fn faults(&mut self) -> &mut Faults {
        self.faults()
    }

    fn gone(&self) -> Option<Kind> {
        self.gone()
    }

    fn misled(&self) -> u64 {
        self.misled()
    }

    fn in_vain(&self) -> u64 {
        self.in_vain()
    }

    fn submit(&mut self, command: &Command, buffer: Vec<u8>) -> Result<(), Refusal> {
        Commanded::submit(self, 0, command, buffer)
    }

    fn abort(&mut self, id: CommandId) {
        self.abort(0, id);
    }

    fn run_until(&mut self, until: Option<Instant>) -> Result<Option<Finished>, Stopped> {
        self.run_until(until)
    }

    fn audit(&mut self) -> Result<(), Violation> {
        self.audit()
    }

    fn audit_rest(&self) -> Result<(), Violation> {
        self.audit_rest()
    }

    fn trace_to(&mut self, trace: Box<dyn Trace>) {
        Commanded::trace_to(self, trace);
    }

    fn end(self, kind: Kind) -> Remains {
        self.end(kind)
    }
}
