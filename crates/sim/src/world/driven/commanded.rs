//! A driven world as others use it: commands in, what they came to out.
//!
//! Left out: what goes wrong, which is [`trouble`](super::trouble)'s. Always true: what was submitted ends once.

use super::core::Work;
use super::{Driven, Observer};
use crate::check::Violation;
use crate::components::{BusLoad, Components, CoreLoad, LaneLoad, QueueLoad};
use crate::engine::Trace;
use crate::link::superspeed::Link;
use crate::world::{Begins, Commanded, Finished, Stopped, mark};
use initiator::{Command, CommandId, Refusal, Transport};
use units::Instant;

impl Commanded for Driven {
    fn now(&self) -> Instant {
        self.engine.now()
    }

    fn happened(&self) -> u64 {
        self.engine.happened()
    }

    fn digest(&self) -> u64 {
        self.engine.digest()
    }

    fn drives(&self) -> usize {
        self.seats.len()
    }

    fn link(&self, drive: usize) -> Option<&Link> {
        self.roots[self.fronts.get(drive)?.end.root].link()
    }

    fn components(&self) -> Components {
        let now = self.engine.now();
        let core = CoreLoad { busy: self.core.busy(now), queue: QueueLoad::of(self.core.level(), now) };
        let plain = self.seats.iter().filter(|seat| seat.drive.enclosure.is_none());
        let made_of_parts = self.seats.iter().filter_map(|seat| seat.drive.enclosure.as_ref());
        let (bridges, stores) = made_of_parts.map(|enclosure| enclosure.load(now)).unzip();
        Components {
            span: now - Instant::ZERO,
            links: self.roots.iter().filter_map(|root| root.link().map(LaneLoad::of)).collect(),
            links_below: self.roots.iter().flat_map(|root| root.links_below().map(LaneLoad::of)).collect(),
            buses: self.roots.iter().filter_map(|root| root.bus().map(BusLoad::of)).collect(),
            buses_below: self.roots.iter().flat_map(|root| root.buses_below().map(BusLoad::of)).collect(),
            controller: Some(self.controller().counters().into()),
            core: (!self.core.is_free()).then_some(core),
            media: plain.map(|seat| QueueLoad::of(seat.drive.plain.level(), now)).collect(),
            bridges,
            stores,
        }
    }

    fn depth(&self, drive: usize) -> usize {
        self.seats.get(drive).map_or(0, |seat| seat.desk.transport.depth())
    }

    fn strays(&self, drive: usize) -> u64 {
        self.seats.get(drive).map_or(0, |seat| seat.drive.plain.strays())
    }

    fn audit(&mut self) -> Result<(), Violation> {
        self.audit()
    }

    fn trace_to(&mut self, trace: Box<dyn Trace>) {
        self.engine.trace_to(trace);
        self.shows_packets = true;
        self.take_notes(true);
    }

    fn take_trace(&mut self) -> Option<Box<dyn Trace>> {
        self.take_notes(false);
        self.engine.take_trace()
    }

    fn observe(&mut self, drive: usize, observer: Box<dyn Observer>) {
        if let Some(seat) = self.seats.get_mut(drive) {
            seat.desk.observers.add(observer);
            self.shows_packets |= seat.desk.observers.watch_packets();
        }
    }

    fn waited(&mut self, drive: usize, since: Instant, command: CommandId) {
        if let Some(seat) = self.seats.get_mut(drive) {
            seat.desk.observers.tell(|observer| observer.waited(since, command));
        }
    }

    fn submit(&mut self, drive: usize, command: &Command, buffer: Vec<u8>) -> Result<(), Refusal> {
        let (now, seat) = (self.engine.now(), self.seats.get_mut(drive).ok_or(Refusal::Gone)?);
        mark::begin(&mut self.engine, drive, command, &buffer);
        seat.desk.submit(&mut self.machine, now, command, buffer)?;
        self.engine.note("driver", format_args!("{}{}", self.tag(drive), Begins(command)));
        if !self.core.is_free() {
            self.line_up(now, drive, Work::Command(command.id));
        }
        self.settle();
        Ok(())
    }

    fn run(&mut self) -> Result<Option<Finished>, Stopped> {
        loop {
            if let Some(stopped) = self.stopped {
                return Err(stopped);
            }
            if !self.finished.is_empty() {
                return Ok(self.finished.pop_front());
            }
            if !self.step() {
                return Ok(None);
            }
        }
    }

    fn run_until(&mut self, until: Option<Instant>) -> Result<Option<Finished>, Stopped> {
        self.run_until(until)
    }
}
