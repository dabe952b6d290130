//! [`Simulation`] for a machine with a controller.
//!
//! Left out: faults, see [`faults`](super::faults). Invariant: each submitted command completes
//! once.

use super::core::Work;
use super::{Observer, XhciMachine};
use crate::check::Violation;
use crate::components::{BusLoad, Components, CoreLoad, LaneLoad, QueueLoad};
use crate::engine::Trace;
use crate::link::superspeed::Link;
use crate::machine::{CommandStart, FinishedCommand, Simulation, StopReason, digest};
use initiator::{Command, CommandId, Refusal, Transport};
use units::Instant;

impl Simulation for XhciMachine {
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
        self.drives.len()
    }

    fn link(&self, drive: usize) -> Option<&Link> {
        self.root_ports[self.devices.get(drive)?.end.root].link()
    }

    fn components(&self) -> Components {
        let now = self.engine.now();
        let core = CoreLoad { busy: self.core.busy(now), queue: QueueLoad::of(self.core.level(), now) };
        let plain = self.drives.iter().filter(|attached| attached.drive.enclosure.is_none());
        let made_of_parts = self.drives.iter().filter_map(|attached| attached.drive.enclosure.as_ref());
        let (bridges, stores) = made_of_parts.map(|enclosure| enclosure.load(now)).unzip();
        Components {
            span: now - Instant::ZERO,
            links: self.root_ports.iter().filter_map(|root| root.link().map(LaneLoad::of)).collect(),
            links_below: self
                .root_ports
                .iter()
                .flat_map(|root| root.links_below().map(LaneLoad::of))
                .collect(),
            buses: self.root_ports.iter().filter_map(|root| root.bus().map(BusLoad::of)).collect(),
            buses_below: self
                .root_ports
                .iter()
                .flat_map(|root| root.buses_below().map(BusLoad::of))
                .collect(),
            controller: Some(self.controller().counters().into()),
            core: (!self.core.is_free()).then_some(core),
            media: plain.map(|attached| QueueLoad::of(attached.drive.plain.level(), now)).collect(),
            bridges,
            stores,
        }
    }

    fn depth(&self, drive: usize) -> usize {
        self.drives.get(drive).map_or(0, |attached| attached.host_transport.transport().depth())
    }

    fn misplaced_blocks(&self, drive: usize) -> u64 {
        self.drives.get(drive).map_or(0, |attached| attached.drive.plain.misplaced_blocks())
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
        if let Some(attached) = self.drives.get_mut(drive) {
            attached.host_transport.observers.add(observer);
            self.shows_packets |= attached.host_transport.observers.watch_packets();
        }
    }

    fn queued_since(&mut self, drive: usize, since: Instant, command: CommandId) {
        if let Some(attached) = self.drives.get_mut(drive) {
            attached.host_transport.observers.notify(|observer| observer.queued_since(since, command));
        }
    }

    fn submit(&mut self, drive: usize, command: &Command, buffer: Vec<u8>) -> Result<(), Refusal> {
        let (now, attached) = (self.engine.now(), self.drives.get_mut(drive).ok_or(Refusal::Gone)?);
        digest::begin(&mut self.engine, drive, command, &buffer);
        attached.host_transport.submit(&mut self.system, now, command, buffer)?;
        self.engine.note("driver", format_args!("{}{}", self.tag(drive), CommandStart(command)));
        if !self.core.is_free() {
            self.enqueue_task(now, drive, Work::Command(command.id));
        }
        self.settle();
        Ok(())
    }

    fn run(&mut self) -> Result<Option<FinishedCommand>, StopReason> {
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

    fn run_until(&mut self, until: Option<Instant>) -> Result<Option<FinishedCommand>, StopReason> {
        self.run_until(until)
    }
}
