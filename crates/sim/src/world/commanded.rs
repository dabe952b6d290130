//! What every world is to the one who has commands for it, with a controller or without.

use super::{Finished, Observer, Stopped, World};
use crate::engine::Trace;
use crate::link::superspeed::Link;
use initiator::{Command, Refusal, Transport};
use units::Instant;

/// A world that takes commands.
pub trait Commanded {
    /// The time.
    fn now(&self) -> Instant;

    /// Events that have happened.
    fn happened(&self) -> u64;

    /// The digest of all that has happened.
    fn digest(&self) -> u64;

    /// The link, with what it has carried, if it is one of SuperSpeed.
    fn link(&self) -> Option<&Link>;

    /// Commands that can be under way at once.
    fn depth(&self) -> usize;

    /// Sends notes of every packet to a trace.
    fn trace_to(&mut self, trace: Box<dyn Trace>);

    /// Takes the trace back; no notes are made from now on.
    fn take_trace(&mut self) -> Option<Box<dyn Trace>>;

    /// Tells `observer` what happens from now on.
    fn observe(&mut self, observer: Box<dyn Observer>);

    /// Gives the transport a command. `buffer` holds what it writes, or has room for what it reads.
    ///
    /// # Errors
    /// The transport's refusal.
    fn submit(&mut self, command: &Command, buffer: Vec<u8>) -> Result<(), Refusal>;

    /// Lets things happen until a command ends. `None` if nothing is going to happen any more.
    ///
    /// # Errors
    /// If the world does not go on.
    fn run(&mut self) -> Result<Option<Finished>, Stopped>;
}

impl<T: Transport> Commanded for World<T> {
    fn now(&self) -> Instant {
        self.now()
    }

    fn happened(&self) -> u64 {
        self.happened()
    }

    fn digest(&self) -> u64 {
        self.digest()
    }

    fn link(&self) -> Option<&Link> {
        self.link()
    }

    fn depth(&self) -> usize {
        self.transport().depth()
    }

    fn trace_to(&mut self, trace: Box<dyn Trace>) {
        self.trace_to(trace);
    }

    fn take_trace(&mut self) -> Option<Box<dyn Trace>> {
        self.take_trace()
    }

    fn observe(&mut self, observer: Box<dyn Observer>) {
        self.observe(observer);
    }

    fn submit(&mut self, command: &Command, buffer: Vec<u8>) -> Result<(), Refusal> {
        self.submit(command, buffer)
    }

    fn run(&mut self) -> Result<Option<Finished>, Stopped> {
        self.run()
    }
}
