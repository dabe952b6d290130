//! One host, and drives at its root ports and behind hubs, with all that is between: transports, driver, controller, packets,
//! devices.
//!
//! A [`XhciMachine`] world is powered on from a description ([`Setup`]): the driver takes the controller over, and everything that
//! a device is told is told by packets. What a transport wants becomes TRBs in memory, which the controller carries out on
//! the links. Beside the times of links and drives there are those of the controller's [`Part`](crate::xhc::Part), and of
//! the [`Core`] that runs driver and transports, which take none unless [`Host::costs`] says so.
//!
//! Drives are known by their number in the description, from 0. Drives at root ports of their own share the controller and
//! its way to memory; those behind hubs of one root port share its link as well.
//!
//! All drives of a world are on links of one kind: SuperSpeed, or a bus of USB 2.0 for each root port, which goes on by itself
//! (`MachineEvent::Bus`) where a link carries packet by packet.
//!
//! Always true: driver and controller share memory and registers, and nothing else; what an event costs does not grow with
//! the number of drives that it is not about.

mod attached_drive;
mod buses;
mod control_sequence;
mod core;
mod device_act;
mod enclosure;
mod faults;
mod host_device;
mod host_endpoint;
mod host_system;
mod hotplug;
mod hub_packets;
mod hubs;
mod link_act;
mod notes;
mod packets;
mod power_on;
mod root_port;
mod schedule;
mod setup;
mod simulation;
mod sleep;
mod transport;
mod view;
mod wiring;
mod write_gate;

pub use self::core::{Core, HostCosts, HostWork};
pub use ::xhci_driver::Config as DriverConfig;
pub(super) use enclosure::Done;
pub use enclosure::Enclosure;
pub use hotplug::HotPlugError;
pub use power_on::{DriveParts, PowerOnError, PowerOnFailure};
pub use setup::{BlockStorage, Drive, Host, Hub, Node, Packing, Plug, PortPath, Protocol, Setup, SetupError};
pub use transport::AnyTransport;

use self::core::Work;
use super::observer::Observer;
use super::stop_reason::{AT_ONCE_MAX, Pulse};
use super::{FinishedCommand, StopReason};
use crate::engine::{Alarm, Engine, Event};
use crate::index_set::IndexSet64;
use crate::link::hub::TreeEvent;
use crate::link::superspeed::Side;
use crate::link::{Fate, Missed};
use attached_drive::AttachedDrive;
use host_device::HostDevice;
use host_system::HostSystem;
use hubs::AttachedHub;
use initiator::{CommandId, Output, Transport};
use root_port::RootPort;
use std::collections::VecDeque;
use units::Instant;

/// A host and drives, with a controller, links and hubs between them.
#[derive(Debug)]
pub struct XhciMachine {
    engine: Engine<MachineEvent>,
    system: HostSystem,
    core: Core,
    /// Whether links may sleep.
    sleeps: bool,
    /// What the driver makes of neighbours over BOT.
    packing: Option<Packing>,
    /// Root ports of the controller before those of the world's rate.
    ports_before: u8,
    /// Whether what goes out is with the controller for one command at a time, over UAS.
    writes_in_turn: bool,
    root_ports: Vec<RootPort>,
    /// All devices: drives by their number, and then hubs.
    devices: Vec<HostDevice>,
    drives: Vec<AttachedDrive>,
    /// Hubs, in the order of their numbers.
    hubs: Vec<AttachedHub>,
    /// Drives as they were described.
    drive_specs: Vec<Drive>,
    /// Root ports, by their number at the controller.
    by_port: Vec<u8>,
    /// Numbers of devices, by slot.
    by_slot: Vec<u8>,
    finished: VecDeque<FinishedCommand>,
    /// Deadlines of the controller, of driver and transports, and of the core.
    alarms: [Alarm; 3],
    /// Drives that may want something.
    dirty_drives: IndexSet64,
    /// Hubs that may, or their drivers.
    dirty_hubs: IndexSet64,
    /// Root ports at which something was done, by the side of the link.
    ready_ports: [IndexSet64; 2],
    /// Drives with endpoints that were stopped, and are not quiet yet.
    stopping: IndexSet64,
    /// Root ports at which what is said again later may be left out, since nobody waits for each packet: those of drives without
    /// a bridge.
    elides_repeats: IndexSet64,
    scratch: Vec<u8>,
    pulse: Pulse,
    stopped: Option<StopReason>,
    /// Whether things go wrong, and books are kept, with the first drive.
    injects_faults: bool,
    /// Whether each packet is looked at when it is sent and when it arrives: for a trace, for observers, or for trouble.
    shows_packets: bool,
    /// Whether everybody is asked after everything that happens: see [`Self::polling_all`].
    polls_all: bool,
    /// Whether the hub at its root port is to be reset as soon as it can be.
    pending_hub_reset: bool,
}

/// Something that happens.
#[derive(Clone, Copy, Debug)]
enum MachineEvent {
    /// The lane of a side of a root port's link is free.
    Free(u8, Side),
    /// What was on its way to a side of a root port's link arrives, with so many bytes of payload.
    Arrives(u8, Side, u16),
    /// The same for one to which something has happened.
    Suffers(u8, Side, u16, Fate),
    /// The bus of USB 2.0 of a root port goes on.
    Bus(u8),
    /// LBAD has come back to a side of a root port's link.
    Retry(u8, Side),
    /// The time is over after which an answer is missed between host and a drive.
    Missed(u8, Missed),
    /// A drive is ready for what it was not ready for.
    Ready(u8),
    /// Something happens among the hubs of a root port.
    Passes(u8, TreeEvent),
    /// A time has come that a hub or its driver waited for.
    Hub(u8),
    /// A drive has done its oldest request.
    Stored(u8),
    /// Something is done in the enclosure of a drive.
    Enclosure(u8),
    /// The controller has something to do.
    Controller,
    /// A deadline of driver or transport.
    Deadline,
    /// The core is through with something.
    Core,
}

// What is scheduled moves through the queue and through calls in one register.
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
    /// The caller wants a command to end. It still ends once.
    pub fn abort(&mut self, drive: usize, id: CommandId) {
        let Some(attached) = self.drives.get_mut(drive) else { return };
        attached.host_endpoint.transport.abort(self.engine.now(), id);
        self.system.mark_dirty(drive);
        self.settle();
    }

    /// Pulls out what is at the root port that leads to a drive.
    pub fn unplug(&mut self, drive: usize) {
        let Some(host_device) = self.devices.get(drive) else { return };
        self.system.controller.unplug(self.engine.now(), host_device.way.port);
        self.settle();
    }

    /// Asks everybody after everything that happens whether they want something, instead of those alone who were told something.
    /// The same happens then, and takes longer: for tests of who is told what.
    #[must_use]
    pub const fn polling_all(mut self) -> Self {
        self.polls_all = true;
        self
    }

    const fn is_stopped(&self) -> bool {
        self.stopped.is_some()
    }

    /// Lets the next thing happen, if there is one.
    #[inline(always)]
    fn step(&mut self) -> bool {
        let Some(event) = self.engine.next() else { return false };
        if self.pulse.is_lost(self.engine.now(), self.engine.happened()) {
            self.stopped = Some(StopReason::StandsStill);
        }
        self.handle(event);
        true
    }

    /// Most events are those of packets, which are asked for first and need little.
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
        if self.is_quiescent(self.engine.now()) {
            let [host, device] = self.ready_ports;
            if host.or(device).is_none() {
                // As mostly: who has something to send is who has heard something.
                return self.wake_side(root, side);
            }
        }
        self.ready_ports[side as usize].add(root);
        self.settle_after();
    }

    /// What happens beside packets on links that nothing has happened to.
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
                self.dirty_drives.add(drive.into());
                self.note_work(drive.into());
            }
            MachineEvent::Enclosure(drive) => {
                if !self.drives[usize::from(drive)].alarm.ring(now) {
                    return;
                }
                let enclosure = &mut self.drives[usize::from(drive)].drive.enclosure;
                let is_done = enclosure.as_mut().is_some_and(|enclosure| enclosure.handle_timeout(now));
                if !is_done && self.is_quiescent(now) {
                    // A frame or a flash die has gone on, and nobody behind the bridge has heard of it.
                    return self.set_enclosure(drive.into());
                }
                self.dirty_drives.add(drive.into());
            }
            MachineEvent::Controller => {
                if !self.alarms[0].ring(now) {
                    return;
                }
                self.system.is_touched = true;
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

    /// Settles after something that has happened.
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
            if attached.host_endpoint.transport.poll_timeout().is_some_and(|deadline| deadline.at <= now) {
                attached.host_endpoint.transport.handle_timeout(now);
                self.system.mark_dirty(number);
            }
        }
    }

    /// Carries what all machines want, until they want nothing; then sees who may send, and when to wake up.
    fn settle(&mut self) {
        self.system.is_touched = true;
        self.settle_dirty();
    }

    /// The same of those who were told something.
    fn settle_dirty(&mut self) {
        let now = self.engine.now();
        if self.has_more(now) {
            self.carry_all(now);
        }
        self.wake_ready_ports();
        if std::mem::take(&mut self.system.is_touched) || self.polls_all || self.injects_faults {
            self.check_capacity();
            let due = self.system.controller.poll_timeout();
            if let Some(at) = self.alarms[0].set(due) {
                self.at(at, MachineEvent::Controller);
            }
            if self.system.driver_deadline_dirty || !self.system.deadlines_dirty.is_none() {
                self.set_deadline();
            }
        }
        if !self.core.is_free()
            && let Some(at) = self.alarms[2].set(self.core.poll_timeout())
        {
            self.at(at, MachineEvent::Core);
        }
    }

    /// Whether a packet that has come has changed nothing but links and their ports, so that nobody else wants anything, and
    /// nobody's deadline has moved.
    #[inline(always)]
    fn is_quiescent(&self, now: Instant) -> bool {
        let is_due = self.core.poll_timeout().is_some_and(|at| at <= now);
        let is_nothing_dirty = self.dirty_drives.or(self.dirty_hubs).is_none();
        let is_idle = !self.system.is_touched && is_nothing_dirty && !is_due;
        is_idle && !self.injects_faults && !self.polls_all
    }

    /// Whether anybody may want something: who was told something, or has had it in line.
    #[inline(always)]
    fn has_more(&self, now: Instant) -> bool {
        let system = &self.system;
        system.driver_pending
            || !system.pending_output.or(self.dirty_drives).or(self.dirty_hubs).is_none()
            || system.controller.has_output()
            || self.core.poll_timeout().is_some_and(|at| at <= now)
    }

    /// Lets those send who may.
    fn wake_ready_ports(&mut self) {
        let [host, device] = std::mem::take(&mut self.ready_ports);
        for root in host.or(device) {
            self.wake(root, [host.has(root), device.has(root)]);
        }
    }

    /// Driver or transports were told something: whether they want to be told of the time earlier than they will be. A
    /// deadline that has moved away leaves the alarm as it is; which is the first is looked for when it has rung.
    fn set_deadline(&mut self) {
        self.system.driver_deadline_dirty = false;
        let told = self.system.deadlines_dirty.drain();
        let mut first = self.system.driver.poll_timeout().map(|deadline| deadline.at);
        let (asked, by) = match self.alarms[1].scheduled() {
            Some(scheduled) => (told, first.map_or(scheduled, |first| first.min(scheduled))),
            None => (IndexSet64::below(self.drives.len()), Instant::from_ps(u64::MAX)),
        };
        for drive in asked {
            let transport = &self.drives[drive].host_endpoint.transport;
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

    /// Carries out what anybody wants, until nobody wants anything.
    #[inline(never)]
    fn carry_all(&mut self, now: Instant) {
        for _ in 0..AT_ONCE_MAX {
            if !(self.carry_on(now) && self.has_more(now)) {
                return;
            }
        }
        self.stopped = Some(StopReason::NeverSettles);
    }

    /// Carries out one thing, if anybody wants something.
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
        while let Some(drive) = self.system.pending_output.first() {
            if let Some(output) = self.drives[drive].host_endpoint.transport.poll_output() {
                self.carry_out(now, drive, output);
                return true;
            }
            self.system.pending_output.remove(drive);
        }
        // A driver that was told nothing wants nothing.
        if self.system.driver_pending {
            if let Some(output) = self.system.driver.poll_output() {
                self.carry_out_of_driver(now, output);
                return true;
            }
            self.system.driver_pending = false;
        }
        if let Some(output) = self.system.controller.poll_output() {
            self.carry_out_of_controller(now, output);
            return true;
        }
        while let Some(drive) = self.dirty_drives.first() {
            if let Some(output) = self.drives[drive].drive.device.poll_output() {
                self.carry_out_of_device(now, drive, output);
                return true;
            }
            if self.poll_enclosure_event(now, drive) || self.drives[drive].injector.is_restless {
                return true;
            }
            self.dirty_drives.remove(drive);
            self.set_enclosure(drive);
        }
        while let Some(hub) = self.dirty_hubs.first() {
            if self.advance_hub(now, hub) {
                return true;
            }
            self.dirty_hubs.remove(hub);
        }
        false
    }

    #[inline(never)]
    fn carry_out(&mut self, now: Instant, drive: usize, output: Output) {
        let (system, host_device) = (&mut self.system, &mut self.devices[drive]);
        match output {
            Output::Submit(transfer) => {
                let attached = &mut self.drives[drive];
                if self.core.is_free()
                    && !self.injects_faults
                    && !attached.host_endpoint.write_gate.is_serial()
                {
                    // As mostly: nobody looks at it on its way, which is long.
                    return attached.host_endpoint.offer(system, now, host_device.device, transfer);
                }
                let transfer =
                    if self.injects_faults { attached.injector.submit(transfer) } else { transfer };
                if let Some(transfer) = attached.host_endpoint.write_gate.pass(transfer) {
                    self.run_on_core(now, drive, Work::Transfer(transfer));
                }
            }
            Output::Cancel(id) => {
                let host_endpoint = &mut self.drives[drive].host_endpoint;
                if host_endpoint.write_gate.cancel(id) {
                    self.run_on_core(now, drive, Work::Cancelled(id));
                } else if !self.core.cancel(drive, id) {
                    host_endpoint.cancel(system, now, host_device.device, id);
                }
            }
            Output::Request(id, request) => {
                host_device.request(system, now, (id, request));
                self.deliver_sequence_results(drive);
            }
            Output::Finished(id, outcome) => {
                let next = self.drives[drive].host_endpoint.write_gate.ended(id);
                self.run_on_core(now, drive, Work::Finish(id, outcome));
                next.into_iter().for_each(|transfer| self.run_on_core(now, drive, Work::Transfer(transfer)));
            }
        }
    }

    #[inline(never)]
    fn carry_out_of_driver(&mut self, now: Instant, output: ::xhci_driver::Output) {
        use ::xhci_driver::Output as Out;
        (self.system.driver_deadline_dirty, self.system.driver_pending) = (true, true);
        match output {
            Out::Completed(device, done) => {
                let Some(number) = self.number_of(device) else { return };
                let host_device = &mut self.devices[number];
                if host_device.control_ended(&mut self.system, now, done.id, (done.status, done.actual)) {
                    self.deliver_sequence_results(number);
                } else if number < self.drives.len() {
                    let copied = self.drives[number].host_endpoint.copied_after(done.id, done.actual);
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

    /// The root port of this number, if something is there.
    fn root_at(&self, port: u8) -> Option<usize> {
        let root = usize::from(*self.by_port.get(usize::from(port))?);
        (self.root_ports.get(root)?.port == port).then_some(root)
    }

    /// The device that the driver knows by this id.
    fn number_of(&self, device: ::xhci_driver::DeviceId) -> Option<usize> {
        let number = usize::from(*self.by_slot.get(usize::from(device.slot()))?);
        (self.devices.get(number)?.device == Some(device)).then_some(number)
    }

    /// A device is gone.
    fn lose(&mut self, now: Instant, number: usize) {
        self.devices[number].device = None;
        if let Some(attached) = self.drives.get_mut(number) {
            attached.host_endpoint.transport.handle_disconnect(now);
            self.system.mark_dirty(number);
        }
        self.detach_hub(number);
    }

    /// Tells a transport what came of what it wanted of the bus.
    fn deliver_sequence_results(&mut self, number: usize) {
        if let Some(wanted) = self.devices[number].sequences.hub_above_action.take() {
            self.ask_hub_above(number, wanted);
        }
        while let Some((id, answer)) = self.devices[number].sequences.answers.pop_front() {
            if let Some(attached) = self.drives.get_mut(number) {
                attached.host_endpoint.transport.handle_answer(self.engine.now(), id, answer);
                self.system.mark_dirty(number);
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
