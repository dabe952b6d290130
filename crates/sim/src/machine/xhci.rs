//! A machine with an xHCI host controller: driver, controller, links, hubs and drives.
//!
//! An [`XhciMachine`] is powered on from a description ([`Setup`]): the driver initialises the
//! controller, and devices are enumerated by packets. Transfers of a transport become TRBs in
//! memory, which the controller executes on the links. Besides link and drive timing there are that
//! of the controller's [`Part`](crate::xhc::Part) and of the [`Core`] that runs driver and
//! transports; the latter takes no time by default ([`Host::costs`]).
//!
//! Drives are numbered in the order of the description, from 0. Drives at separate root ports share
//! the controller and its path to memory; those behind hubs of one root port share its link too.
//!
//! All links are SuperSpeed, or each root port is a USB 2.0 bus, which has one event
//! (`MachineEvent::Bus`) where a link has one per packet.
//!
//! Invariants: driver and controller share memory and registers only; the cost of an event does not
//! grow with the number of unrelated drives.

mod attached_drive;
mod buses;
mod control_sequence;
mod core;
mod device_act;
mod enclosure;
mod event_occupancy;
mod faults;
mod host_device;
mod host_system;
mod host_transport;
mod hotplug;
mod hub_packets;
mod hubs;
mod link_act;
mod notes;
mod packets;
mod power_on;
mod ready_set;
mod root_port;
mod schedule;
mod setup;
mod simulation;
mod sleep;
mod view;
mod wiring;
mod write_gate;

pub use self::core::{Core, HostCosts, HostWork};
pub use ::xhci_driver::Config as DriverConfig;
pub(super) use enclosure::Done;
pub use enclosure::Enclosure;
pub use hotplug::HotPlugError;
pub use initiator::AnyTransport;
pub use power_on::{DriveParts, PowerOnError, PowerOnFailure};
pub use setup::{BlockStorage, Drive, Host, Hub, Node, Packing, Plug, PortPath, Protocol, Setup, SetupError};

use self::core::Work;
use super::host::HostAction;
use super::observer::Observer;
use super::stop_reason::{AT_ONCE_MAX, Pulse};
use super::{FinishedCommand, StopReason};
use crate::engine::{Alarm, Engine, Event};
use crate::index_set::IndexSet64;
use crate::link::hub::TreeEvent;
use crate::link::superspeed::Side;
use crate::link::{Fate, Missed};
use attached_drive::AttachedDrive;
use bus::Front;
use host_device::HostDevice;
use host_system::HostSystem;
use hubs::AttachedHub;
use initiator::{CommandId, Transport};
use root_port::RootPort;
use std::collections::VecDeque;
use units::Instant;

/// A host with an xHCI controller, and drives on links and hubs.
#[derive(Debug)]
pub struct XhciMachine {
    engine: Engine<MachineEvent>,
    system: HostSystem,
    core: Core,
    /// Whether link power management is enabled.
    sleeps: bool,
    /// Packing of adjacent requests over BOT.
    packing: Option<Packing>,
    /// Root ports of the controller before those of the machine's rate.
    ports_before: u8,
    /// Whether data-out is limited to one command at a time, over UAS.
    writes_in_turn: bool,
    root_ports: Vec<RootPort>,
    /// All devices: drives by number, then hubs.
    devices: Vec<HostDevice>,
    drives: Vec<AttachedDrive>,
    /// Hubs by number.
    hubs: Vec<AttachedHub>,
    /// Descriptions of the drives.
    drive_specs: Vec<Drive>,
    /// Root ports by controller port number.
    by_port: Vec<u8>,
    /// Device numbers by slot.
    by_slot: Vec<u8>,
    finished: VecDeque<FinishedCommand>,
    /// Alarms of the controller, of driver and transports, and of the core.
    alarms: [Alarm; 3],
    /// Drives with stopped endpoints that are not quiet yet.
    stopping: IndexSet64,
    /// Root ports at which repeated packets may be skipped, since nothing depends on each packet:
    /// those of drives without a bridge.
    elides_repeats: IndexSet64,
    scratch: Vec<u8>,
    pulse: Pulse,
    stopped: Option<StopReason>,
    /// Whether faults are injected and packets booked, with the first drive.
    injects_faults: bool,
    /// Whether each packet is inspected on sending and arrival: for traces, observers or faults.
    shows_packets: bool,
    /// Whether everything is polled after each event: see [`Self::polling_all`].
    polls_all: bool,
    /// Whether the hub at the first root port is to be reset as soon as possible.
    pending_hub_reset: bool,
}

/// An event.
#[derive(Clone, Copy, Debug)]
enum MachineEvent {
    /// The lane of a side of a root port's link is free.
    Free(u8, Side),
    /// A packet arrives at a side of a root port's link, with its payload bytes.
    Arrives(u8, Side, u16),
    /// A packet arrives that a fault has affected.
    Suffers(u8, Side, u16, Fate),
    /// The USB 2.0 bus of a root port has an event.
    Bus(u8),
    /// LBAD has arrived at a side of a root port's link.
    Retry(u8, Side),
    /// An answer between host and a drive has timed out.
    Missed(u8, Missed),
    /// A deferred transfer of a drive is due.
    Ready(u8),
    /// The hubs of a root port have an event.
    Passes(u8, TreeEvent),
    /// A deadline of a hub or its driver.
    Hub(u8),
    /// A drive has completed its oldest request.
    Stored(u8),
    /// The enclosure of a drive has an event.
    Enclosure(u8),
    /// A deadline of the controller.
    Controller,
    /// A deadline of driver or transports.
    Deadline,
    /// The core has completed a job.
    Core,
}

// Events are passed through the queue in one register.
const _: () = assert!(size_of::<MachineEvent>() <= size_of::<u64>());

impl Event for MachineEvent {
    fn mark(&self) -> u64 {
        let (number, kind) = match self {
            Self::Stored(drive) => (*drive, 0),
            Self::Deadline => (0, 1),
            Self::Free(root, side) => (*root, 2 + *side as u64),
            Self::Controller => (0, 6),
            Self::Arrives(root, side, bytes) => (*root, 4 + *side as u64 + 2 * u64::from(*bytes)),
            Self::Retry(root, side) => (*root, (1 << 32) + *side as u64),
            Self::Missed(number, missed) => (*number, (2 << 32) + missed.mark()),
            Self::Ready(drive) => (*drive, (1 << 32) + 3),
            Self::Suffers(root, side, _, fate) => (*root, (1 << 32) + 4 + *side as u64 + 2 * *fate as u64),
            Self::Core => (0, 3 << 32),
            Self::Bus(root) => (*root, (1 << 33) + 2),
            Self::Passes(root, happening) => (*root, happening.mark()),
            Self::Hub(number) => (*number, (1 << 33) + 1),
            Self::Enclosure(drive) => (*drive, (1 << 32) + 12),
        };
        kind + u64::from_be_bytes([number, 0, 0, 0, 0, 0, 0, 0])
    }
}

impl XhciMachine {
    /// Aborts a command, which still completes once.
    pub fn abort(&mut self, drive: usize, id: CommandId) {
        let Some(attached) = self.drives.get_mut(drive) else { return };
        attached.host_transport.transport_mut().abort(self.engine.now(), id);
        self.system.ready.mark_transport(drive);
        self.settle();
    }

    /// Detaches what is at the root port of a drive.
    pub fn unplug(&mut self, drive: usize) {
        let Some(host_device) = self.devices.get(drive) else { return };
        self.system.controller.unplug(self.engine.now(), host_device.way.port);
        self.settle();
    }

    /// Polls everything after each event instead of only what was called. Slower, with the same
    /// result: for tests of the pending flags.
    #[must_use]
    pub const fn polling_all(mut self) -> Self {
        self.polls_all = true;
        self
    }

    const fn is_stopped(&self) -> bool {
        self.stopped.is_some()
    }

    /// Executes the next event, if there is one.
    #[inline(always)]
    fn step(&mut self) -> bool {
        let Some(event) = self.engine.next() else { return false };
        if self.pulse.is_lost(self.engine.now(), self.engine.happened()) {
            self.stopped = Some(StopReason::StandsStill);
        }
        self.handle(event);
        true
    }

    /// Packet events come first, since they are the most frequent.
    #[inline(always)]
    fn handle(&mut self, event: MachineEvent) {
        if self.engine.is_traced() {
            self.note_deferred();
        }
        match event {
            MachineEvent::Free(root, side) => self.send(root.into(), side),
            MachineEvent::Arrives(root, side, bytes) => self.handle_arrival(root.into(), side, bytes),
            _ => self.handle_other(event),
        }
    }

    #[inline(never)]
    fn handle_arrival(&mut self, root: usize, side: Side, bytes: u16) {
        self.arrive(root, side, bytes, Fate::Arrives);
        if self.is_quiescent(self.engine.now()) && !self.system.ready.has_ports() {
            // The usual case: only the receiver has something to send.
            return self.wake_side(root, side);
        }
        self.system.ready.mark_port(root, side);
        self.settle_after();
    }

    /// Executes other events than packets on unaffected links.
    #[inline(never)]
    fn handle_other(&mut self, event: MachineEvent) {
        let now = self.engine.now();
        match event {
            MachineEvent::Free(..) | MachineEvent::Arrives(..) => {}
            MachineEvent::Suffers(root, side, bytes, fate) => self.suffer(root.into(), side, bytes, fate),
            MachineEvent::Bus(root) => {
                if !self.root_ports[usize::from(root)].alarm.ring(now) {
                    return;
                }
                self.advance_bus(root.into());
            }
            MachineEvent::Retry(root, side) => self.retry(root.into(), side),
            MachineEvent::Missed(number, missed) => self.miss(number.into(), missed),
            MachineEvent::Ready(drive) => self.offer_deferred(drive.into()),
            MachineEvent::Passes(root, happening) => {
                self.pass(root.into(), happening);
                if self.is_quiescent(now) {
                    return self.wake_ready_ports();
                }
            }
            MachineEvent::Hub(number) => self.pass_hub_time(now, number.into()),
            MachineEvent::Stored(drive) => {
                self.complete_store(drive.into());
                let attached = &mut self.drives[usize::from(drive)];
                attached.drive.store(now, &mut attached.injector);
                self.system.ready.drives.add(drive.into());
                self.note_work(drive.into());
            }
            MachineEvent::Enclosure(drive) => {
                if !self.drives[usize::from(drive)].alarm.ring(now) {
                    return;
                }
                let enclosure = &mut self.drives[usize::from(drive)].drive.enclosure;
                let is_done = enclosure.as_mut().is_some_and(|enclosure| enclosure.handle_timeout(now));
                if !is_done && self.is_quiescent(now) {
                    // A SATA frame or a flash die has progressed, without an effect on the bridge.
                    return self.set_enclosure(drive.into());
                }
                self.system.ready.drives.add(drive.into());
            }
            MachineEvent::Controller => {
                if !self.alarms[0].ring(now) {
                    return;
                }
                self.system.ready.controller = true;
                self.system.controller.handle_timeout(now, &mut self.system.memory);
            }
            MachineEvent::Deadline => {
                if !self.alarms[1].ring(now) {
                    return;
                }
                self.pass_deadline(now);
            }
            MachineEvent::Core => {
                if !self.alarms[2].ring(now) {
                    return;
                }
            }
        }
        self.settle_after();
    }

    /// Settles after an event.
    fn settle_after(&mut self) {
        self.settle_dirty();
        if self.injects_faults {
            self.drives[0].injector.ledger.check_schedule(self.engine.scheduled_late());
            self.halt_by_itself();
        }
    }

    fn pass_deadline(&mut self, now: Instant) {
        self.system.drive(now, |driver, access| driver.handle_timeout(access, now));
        for (number, attached) in self.drives.iter_mut().enumerate() {
            let transport = attached.host_transport.transport_mut();
            if transport.poll_timeout().is_some_and(|deadline| deadline.at <= now) {
                transport.handle_timeout(now);
                self.system.ready.mark_transport(number);
            }
        }
    }

    /// Executes all outputs, then sends and sets alarms.
    fn settle(&mut self) {
        self.system.ready.controller = true;
        self.settle_dirty();
    }

    /// Like [`Self::settle`], for what was called.
    fn settle_dirty(&mut self) {
        let now = self.engine.now();
        if self.has_more(now) {
            self.carry_all(now);
        }
        self.wake_ready_ports();
        if std::mem::take(&mut self.system.ready.controller) || self.polls_all || self.injects_faults {
            self.check_capacity();
            self.system.account_events(now);
            let due = self.system.controller.poll_timeout();
            if let Some(at) = self.alarms[0].set(due) {
                self.at(at, MachineEvent::Controller);
            }
            if self.system.ready.driver_deadline || !self.system.ready.deadlines.is_none() {
                self.set_deadline();
            }
        }
        if !self.core.is_free()
            && let Some(at) = self.alarms[2].set(self.core.poll_timeout())
        {
            self.at(at, MachineEvent::Core);
        }
    }

    /// Returns whether a packet has only changed links and ports, so that nothing else has outputs
    /// or another deadline.
    #[inline(always)]
    fn is_quiescent(&self, now: Instant) -> bool {
        let is_due = self.core.poll_timeout().is_some_and(|at| at <= now);
        self.system.ready.is_quiescent() && !is_due && !self.injects_faults && !self.polls_all
    }

    /// Returns whether anything may have outputs.
    #[inline(always)]
    fn has_more(&self, now: Instant) -> bool {
        self.system.ready.has_outputs()
            || self.system.controller.has_output()
            || self.core.poll_timeout().is_some_and(|at| at <= now)
    }

    /// Lets root ports with pending packets send.
    fn wake_ready_ports(&mut self) {
        let [host, device] = std::mem::take(&mut self.system.ready.ports);
        for root in host.or(device) {
            self.wake(root, [host.has(root), device.has(root)]);
        }
    }

    /// Sets the alarm for the earliest deadline of driver and transports. A deadline that has moved
    /// away leaves the alarm; the next one is found when it fires.
    fn set_deadline(&mut self) {
        self.system.ready.driver_deadline = false;
        let called = self.system.ready.deadlines.drain();
        let mut first = self.system.driver.poll_timeout().map(|deadline| deadline.at);
        let (asked, by) = match self.alarms[1].scheduled() {
            Some(scheduled) => (called, first.map_or(scheduled, |first| first.min(scheduled))),
            None => (IndexSet64::below(self.drives.len()), Instant::from_ps(u64::MAX)),
        };
        for drive in asked {
            let transport = self.drives[drive].host_transport.transport();
            if transport.wants_time_before(by)
                && let Some(deadline) = transport.poll_timeout()
            {
                first = Some(first.map_or(deadline.at, |first| first.min(deadline.at)));
            }
        }
        if let Some(at) = self.alarms[1].set(first) {
            self.at(at, MachineEvent::Deadline);
        }
    }

    /// Executes outputs until there are none.
    #[inline(never)]
    fn carry_all(&mut self, now: Instant) {
        for _ in 0..AT_ONCE_MAX {
            if !(self.carry_on(now) && self.has_more(now)) {
                return;
            }
        }
        self.stopped = Some(StopReason::NeverSettles);
    }

    /// Executes one output, if there is one.
    #[inline(always)]
    fn carry_on(&mut self, now: Instant) -> bool {
        if self.engine.is_traced() {
            self.note_controller();
        }
        if !self.core.is_free()
            && let Some(task) = self.core.poll_done(now)
        {
            self.end_task(now, task);
            return true;
        }
        while let Some(drive) = self.system.ready.transports.first() {
            let call = self.system.call(now, self.devices[drive].device);
            if let Some(action) = self.drives[drive].host_transport.poll(call) {
                self.carry_out(now, drive, action);
                return true;
            }
            self.system.ready.transports.remove(drive);
        }
        // A driver that was not called has no outputs.
        if self.system.ready.driver {
            if let Some(output) = self.system.driver.poll_output() {
                self.carry_out_of_driver(now, output);
                return true;
            }
            self.system.ready.driver = false;
        }
        if let Some(output) = self.system.controller.poll_output() {
            self.carry_out_of_controller(now, output);
            return true;
        }
        while let Some(drive) = self.system.ready.drives.first() {
            if let Some(output) = self.drives[drive].drive.device.poll_output().map(Front::take) {
                self.carry_out_of_device(now, drive, output);
                return true;
            }
            if self.poll_enclosure_event(now, drive) || self.drives[drive].injector.is_restless {
                return true;
            }
            self.system.ready.drives.remove(drive);
            self.set_enclosure(drive);
        }
        while let Some(hub) = self.system.ready.hubs.first() {
            if self.advance_hub(now, hub) {
                return true;
            }
            self.system.ready.hubs.remove(hub);
        }
        false
    }

    #[inline(never)]
    fn carry_out(&mut self, now: Instant, drive: usize, action: HostAction) {
        let attached = &mut self.drives[drive];
        match action {
            HostAction::Submit(request) => {
                if self.injects_faults
                    && let Some(bytes) = attached.host_transport.message(&request)
                {
                    attached.injector.submit_message(bytes);
                }
                if attached.host_transport.is_merged(&request) {
                    self.run_on_core(now, drive, Work::MergedTransfer(request));
                } else if let Some(request) = attached.host_transport.pass(request) {
                    self.run_on_core(now, drive, Work::Transfer(request));
                }
            }
            HostAction::Cancel(id) => {
                if attached.host_transport.cancel_waiting(id) {
                    self.run_on_core(now, drive, Work::Cancelled(id));
                } else if !self.core.cancel(drive, id) {
                    attached.host_transport.cancel(self.system.call(now, self.devices[drive].device), id);
                }
            }
            HostAction::Request(id, request) => {
                self.devices[drive].request(&mut self.system, now, id, request);
                self.deliver_sequence_results(drive);
            }
            HostAction::Finish(id, outcome) => {
                let next = attached.host_transport.pass_after(id);
                self.run_on_core(now, drive, Work::Finish(id, outcome));
                next.into_iter().for_each(|request| self.run_on_core(now, drive, Work::Transfer(request)));
            }
        }
    }

    #[inline(never)]
    fn carry_out_of_driver(&mut self, now: Instant, output: ::xhci_driver::Output) {
        use ::xhci_driver::Output as Out;
        self.system.ready.mark_driver();
        match output {
            Out::Completed(device, done) => {
                let Some(number) = self.number_of(device) else { return };
                let host_device = &mut self.devices[number];
                if host_device.control_ended(&mut self.system, now, done) {
                    self.deliver_sequence_results(number);
                } else if number < self.drives.len() {
                    let copied = self.drives[number].host_transport.copied_after(done.id, done.actual);
                    self.run_on_core(now, number, Work::Completion(done, copied));
                } else {
                    self.hub_reported(number, done);
                }
            }
            Out::Answered(id, answer) => {
                let number = id.0 as usize;
                if let Some(host_device) = self.devices.get_mut(number) {
                    host_device.answered(&mut self.system, now, answer);
                    if let Some(device) = host_device.device {
                        self.by_slot[usize::from(device.slot())] = number as u8;
                    }
                    self.deliver_sequence_results(number);
                }
            }
            Out::PortChanged { port, status } => {
                if let Some(root) = self.root_at(port) {
                    self.root_ports[root].is_connected = status.is_connected();
                    self.root_ports[root].is_ready = status.is_connected() && status.is_enabled();
                }
            }
            Out::Gone(device) => {
                if let Some(number) = self.number_of(device) {
                    self.lose(now, number);
                }
            }
            Out::Died(_) => (0..self.devices.len()).for_each(|number| self.lose(now, number)),
            Out::Running => {}
        }
    }

    /// Returns the root port of a controller port, if it is used.
    fn root_at(&self, port: u8) -> Option<usize> {
        let root = usize::from(*self.by_port.get(usize::from(port))?);
        (self.root_ports.get(root)?.port == port).then_some(root)
    }

    /// Returns the device with this driver id.
    fn number_of(&self, device: ::xhci_driver::DeviceId) -> Option<usize> {
        let number = usize::from(*self.by_slot.get(usize::from(device.slot()))?);
        (self.devices.get(number)?.device == Some(device)).then_some(number)
    }

    /// Handles the loss of a device.
    fn lose(&mut self, now: Instant, number: usize) {
        self.devices[number].device = None;
        if let Some(attached) = self.drives.get_mut(number) {
            attached.host_transport.transport_mut().handle_disconnect(now);
            self.system.ready.mark_transport(number);
        }
        self.detach_hub(number);
    }

    /// Delivers results of control sequences.
    fn deliver_sequence_results(&mut self, number: usize) {
        if let Some(wanted) = self.devices[number].sequences.hub_above_action.take() {
            self.ask_hub_above(number, wanted);
        }
        while let Some((id, answer)) = self.devices[number].sequences.answers.pop_front() {
            if let Some(attached) = self.drives.get_mut(number) {
                attached.host_transport.transport_mut().handle_answer(self.engine.now(), id, answer);
                self.system.ready.mark_transport(number);
            }
        }
        while let Some(came) = self.devices[number].sequences.hub_results.pop_front() {
            self.notify_hub_driver(number, &came);
        }
        while let Some(gone) = self.devices[number].sequences.gone.pop_front() {
            self.lose(self.engine.now(), gone);
        }
    }
}

#[cfg(test)]
mod tests;
