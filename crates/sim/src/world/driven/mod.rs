//! One host, and drives at its root ports and behind hubs, with all that is between: transports, driver, controller, packets,
//! devices.
//!
//! A [`Driven`] world is powered on from a description ([`Setup`]): the driver takes the controller over, and everything that
//! a device is told is told by packets. What a transport wants becomes TRBs in memory, which the controller carries out on
//! the links. Beside the times of links and drives there are those of the controller's [`Part`](crate::xhci::Part), and of
//! the [`Core`] that runs driver and transports, which take none unless [`Host::costs`] says so.
//!
//! Drives are known by their number in the description, from 0. Drives at root ports of their own share the controller and
//! its way to memory; those behind hubs of one root port share its link as well.
//!
//! All drives of a world are on links of one kind: SuperSpeed, or a bus of USB 2.0 for each root port, which goes on by itself
//! (`Happens::Bus`) where a link carries packet by packet.
//!
//! Always true: driver and controller share memory and registers, and nothing else; what an event costs does not grow with
//! the number of drives that it is not about.

mod among_hubs;
mod buses;
mod commanded;
mod core;
mod desk;
mod device_act;
mod enclosure;
mod errand;
mod front;
mod hotplug;
mod hubs;
mod link_act;
mod machine;
mod notes;
mod packets;
mod power_on;
mod root;
mod schedule;
mod seat;
mod setup;
mod sleep;
mod transport;
mod trouble;
mod view;
mod wiring;
mod write_turn;

pub use self::core::{Core, HostCosts, HostWork};
pub use ::xhci_driver::Config as DriverConfig;
pub(super) use enclosure::Done;
pub use enclosure::Enclosure;
pub use hotplug::HotPlugError;
pub use power_on::{NotUp, Occupant, PowerOnError};
pub use setup::{Drive, Host, Hub, Keeping, Node, Packing, Plug, Protocol, Setup, SetupError, Spot};
pub use transport::AnyTransport;

use self::core::Work;
use super::observer::Observer;
use super::stopped::{AT_ONCE_MAX, Pulse};
use super::{Finished, Stopped};
use crate::engine::{Alarm, Engine, Event};
use crate::few::Few;
use crate::link::hub::TreeEvent;
use crate::link::superspeed::Side;
use crate::link::{Fate, Missed};
use front::Front;
use hubs::HubSeat;
use initiator::{CommandId, Output, Transport};
use machine::Machine;
use root::Root;
use seat::Seat;
use std::collections::VecDeque;
use units::Instant;

/// A host and drives, with a controller, links and hubs between them.
#[derive(Debug)]
pub struct Driven {
    engine: Engine<Happens>,
    machine: Machine,
    core: Core,
    /// Whether links may sleep.
    sleeps: bool,
    /// What the driver makes of neighbours over BOT.
    packing: Option<Packing>,
    /// Root ports of the controller before those of the world's rate.
    ports_before: u8,
    /// Whether what goes out is with the controller for one command at a time, over UAS.
    writes_in_turn: bool,
    roots: Vec<Root>,
    /// All devices: drives by their number, and then hubs.
    fronts: Vec<Front>,
    seats: Vec<Seat>,
    /// Hubs, in the order of their numbers.
    hubs: Vec<HubSeat>,
    /// Drives as they were described.
    drives: Vec<Drive>,
    /// Root ports, by their number at the controller.
    by_port: Vec<u8>,
    /// Numbers of devices, by slot.
    by_slot: Vec<u8>,
    finished: VecDeque<Finished>,
    /// Deadlines of the controller, of driver and transports, and of the core.
    alarms: [Alarm; 3],
    /// Drives that may want something.
    stirs: Few,
    /// Hubs that may, or their drivers.
    hub_stirs: Few,
    /// Root ports at which something was done, by the side of the link.
    woken: [Few; 2],
    /// Drives with endpoints that were stopped, and are not quiet yet.
    stopping: Few,
    /// Root ports at which what is said again later may be left out, since nobody waits for each packet: those of drives without
    /// a bridge.
    leaves_out: Few,
    scratch: Vec<u8>,
    pulse: Pulse,
    stopped: Option<Stopped>,
    /// Whether things go wrong, and books are kept, with the first drive.
    is_troubled: bool,
    /// Whether each packet is looked at when it is sent and when it arrives: for a trace, for observers, or for trouble.
    shows_packets: bool,
    /// Whether everybody is asked after everything that happens: see [`Self::asking_all`].
    asks_all: bool,
    /// Whether the hub at its root port is to be reset as soon as it can be.
    hub_is_to_be_reset: bool,
}

/// Something that happens.
#[derive(Clone, Copy, Debug)]
enum Happens {
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
const _: () = assert!(size_of::<Happens>() <= size_of::<u64>());

impl Event for Happens {
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

impl Driven {
    /// The caller wants a command to end. It still ends once.
    pub fn abort(&mut self, drive: usize, id: CommandId) {
        let Some(seat) = self.seats.get_mut(drive) else { return };
        seat.desk.transport.abort(self.engine.now(), id);
        self.machine.told(drive);
        self.settle();
    }

    /// Pulls out what is at the root port that leads to a drive.
    pub fn unplug(&mut self, drive: usize) {
        let Some(front) = self.fronts.get(drive) else { return };
        self.machine.controller.unplug(self.engine.now(), front.way.port);
        self.settle();
    }

    /// Asks everybody after everything that happens whether they want something, instead of those alone who were told something.
    /// The same happens then, and takes longer: for tests of who is told what.
    #[must_use]
    pub const fn asking_all(mut self) -> Self {
        self.asks_all = true;
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
            self.stopped = Some(Stopped::StandsStill);
        }
        self.handle(event);
        true
    }

    /// Most events are those of packets, which are asked for first and need little.
    #[inline(always)]
    fn handle(&mut self, event: Happens) {
        if self.engine.is_traced() {
            self.note_kept();
        }
        match event {
            Happens::Free(root, side) => self.send(root.into(), side),
            Happens::Arrives(root, side, bytes) => self.handle_arrival(root.into(), side, bytes),
            _ => self.handle_other(event),
        }
    }

    #[inline(never)]
    fn handle_arrival(&mut self, root: usize, side: Side, bytes: u16) {
        self.arrive(root, side, bytes, Fate::Arrives);
        if self.is_calm(self.engine.now()) {
            let [host, device] = self.woken;
            if host.or(device).is_none() {
                // As mostly: who has something to send is who has heard something.
                return self.wake_side(root, side);
            }
        }
        self.woken[side as usize].add(root);
        self.settle_after();
    }

    /// What happens beside packets on links that nothing has happened to.
    #[inline(never)]
    fn handle_other(&mut self, event: Happens) {
        let now = self.engine.now();
        match event {
            Happens::Free(..) | Happens::Arrives(..) => {}
            Happens::Suffers(root, side, bytes, fate) => self.suffer(root.into(), side, bytes, fate),
            Happens::Bus(root) => {
                if !self.roots[usize::from(root)].alarm.ring(now) {
                    return;
                }
                self.go_on_with_bus(root.into());
            }
            Happens::Retry(root, side) => self.retry(root.into(), side),
            Happens::Missed(number, missed) => self.miss(number.into(), missed),
            Happens::Ready(drive) => self.offer_late(drive.into()),
            Happens::Passes(root, happening) => {
                self.pass(root.into(), happening);
                if self.is_calm(now) {
                    return self.wake_woken();
                }
            }
            Happens::Hub(number) => self.pass_hub_time(now, number.into()),
            Happens::Stored(drive) => {
                self.has_stored(drive.into());
                let seat = &mut self.seats[usize::from(drive)];
                seat.drive.store(now, &mut seat.trouble);
                self.stirs.add(drive.into());
                self.note_work(drive.into());
            }
            Happens::Enclosure(drive) => {
                if !self.seats[usize::from(drive)].alarm.ring(now) {
                    return;
                }
                let enclosure = &mut self.seats[usize::from(drive)].drive.enclosure;
                let is_done = enclosure.as_mut().is_some_and(|enclosure| enclosure.handle_timeout(now));
                if !is_done && self.is_calm(now) {
                    // A frame or a flash die has gone on, and nobody behind the bridge has heard of it.
                    return self.set_enclosure(drive.into());
                }
                self.stirs.add(drive.into());
            }
            Happens::Controller => {
                if !self.alarms[0].ring(now) {
                    return;
                }
                self.machine.is_touched = true;
                self.machine.controller.handle_timeout(now, &mut self.machine.memory);
            }
            Happens::Deadline => {
                if !self.alarms[1].ring(now) {
                    return;
                }
                self.pass_deadline(now);
            }
            Happens::Core => {
                if !self.alarms[2].ring(now) {
                    return;
                }
            }
        }
        self.settle_after();
    }

    /// Settles after something that has happened.
    fn settle_after(&mut self) {
        self.settle_told();
        if self.is_troubled {
            self.seats[0].trouble.ledger.look_back(self.engine.looked_back());
            self.halt_by_itself();
        }
    }

    fn pass_deadline(&mut self, now: Instant) {
        self.machine.drive(now, |driver, access| driver.handle_timeout(access, now));
        for (number, seat) in self.seats.iter_mut().enumerate() {
            if seat.desk.transport.poll_timeout().is_some_and(|deadline| deadline.at <= now) {
                seat.desk.transport.handle_timeout(now);
                self.machine.told(number);
            }
        }
    }

    /// Carries what all machines want, until they want nothing; then sees who may send, and when to wake up.
    fn settle(&mut self) {
        self.machine.is_touched = true;
        self.settle_told();
    }

    /// The same of those who were told something.
    fn settle_told(&mut self) {
        let now = self.engine.now();
        if self.has_more(now) {
            self.carry_all(now);
        }
        self.wake_woken();
        if std::mem::take(&mut self.machine.is_touched) || self.asks_all || self.is_troubled {
            self.look_at_lines();
            let due = self.machine.controller.poll_timeout();
            if let Some(at) = self.alarms[0].set(due) {
                self.at(at, Happens::Controller);
            }
            if self.machine.has_news || !self.machine.news.is_none() {
                self.set_deadline();
            }
        }
        if !self.core.is_free()
            && let Some(at) = self.alarms[2].set(self.core.poll_timeout())
        {
            self.at(at, Happens::Core);
        }
    }

    /// Whether a packet that has come has changed nothing but links and their ports, so that nobody else wants anything, and
    /// nobody's deadline has moved.
    #[inline(always)]
    fn is_calm(&self, now: Instant) -> bool {
        let is_due = self.core.poll_timeout().is_some_and(|at| at <= now);
        let nobody_stirs = self.stirs.or(self.hub_stirs).is_none();
        let nobody_asks = !self.machine.is_touched && nobody_stirs && !is_due;
        nobody_asks && !self.is_troubled && !self.asks_all
    }

    /// Whether anybody may want something: who was told something, or has had it in line.
    #[inline(always)]
    fn has_more(&self, now: Instant) -> bool {
        let machine = &self.machine;
        machine.driver_talks
            || !machine.talks.or(self.stirs).or(self.hub_stirs).is_none()
            || machine.controller.has_output()
            || self.core.poll_timeout().is_some_and(|at| at <= now)
    }

    /// Lets those send who may.
    fn wake_woken(&mut self) {
        let [host, device] = std::mem::take(&mut self.woken);
        for root in host.or(device) {
            self.wake(root, [host.has(root), device.has(root)]);
        }
    }

    /// Driver or transports were told something: whether they want to be told of the time earlier than they will be. A
    /// deadline that has moved away leaves the alarm as it is; which is the first is looked for when it has rung.
    fn set_deadline(&mut self) {
        self.machine.has_news = false;
        let told = self.machine.news.drain();
        let mut first = self.machine.driver.poll_timeout().map(|deadline| deadline.at);
        let (asked, by) = match self.alarms[1].scheduled() {
            Some(scheduled) => (told, first.map_or(scheduled, |first| first.min(scheduled))),
            None => (Few::below(self.seats.len()), Instant::from_ps(u64::MAX)),
        };
        for drive in asked {
            let transport = &self.seats[drive].desk.transport;
            if transport.wants_time_before(by)
                && let Some(deadline) = transport.poll_timeout()
            {
                first = Some(first.map_or(deadline.at, |first| first.min(deadline.at)));
            }
        }
        if let Some(at) = self.alarms[1].set(first) {
            self.at(at, Happens::Deadline);
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
        self.stopped = Some(Stopped::NeverSettles);
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
        while let Some(drive) = self.machine.talks.first() {
            if let Some(output) = self.seats[drive].desk.transport.poll_output() {
                self.carry_out(now, drive, output);
                return true;
            }
            self.machine.talks.remove(drive);
        }
        // A driver that was told nothing wants nothing.
        if self.machine.driver_talks {
            if let Some(output) = self.machine.driver.poll_output() {
                self.carry_out_of_driver(now, output);
                return true;
            }
            self.machine.driver_talks = false;
        }
        if let Some(output) = self.machine.controller.poll_output() {
            self.carry_out_of_controller(now, output);
            return true;
        }
        while let Some(drive) = self.stirs.first() {
            if let Some(output) = self.seats[drive].drive.device.poll_output() {
                self.carry_out_of_device(now, drive, output);
                return true;
            }
            if self.look_into_enclosure(now, drive) || self.seats[drive].trouble.is_restless {
                return true;
            }
            self.stirs.remove(drive);
            self.set_enclosure(drive);
        }
        while let Some(hub) = self.hub_stirs.first() {
            if self.go_on_with_hub(now, hub) {
                return true;
            }
            self.hub_stirs.remove(hub);
        }
        false
    }

    #[inline(never)]
    fn carry_out(&mut self, now: Instant, drive: usize, output: Output) {
        let (machine, front) = (&mut self.machine, &mut self.fronts[drive]);
        match output {
            Output::Submit(transfer) => {
                let seat = &mut self.seats[drive];
                if self.core.is_free() && !self.is_troubled && !seat.desk.write_turn.is_kept() {
                    // As mostly: nobody looks at it on its way, which is long.
                    return seat.desk.offer(machine, now, front.device, transfer);
                }
                let transfer = if self.is_troubled { seat.trouble.submit(transfer) } else { transfer };
                if let Some(transfer) = seat.desk.write_turn.pass(transfer) {
                    self.give_core(now, drive, Work::Transfer(transfer));
                }
            }
            Output::Cancel(id) => {
                let desk = &mut self.seats[drive].desk;
                if desk.write_turn.take_back(id) {
                    self.give_core(now, drive, Work::TakenBack(id));
                } else if !self.core.take_back(drive, id) {
                    desk.cancel(machine, now, front.device, id);
                }
            }
            Output::Request(id, request) => {
                front.request(machine, now, (id, request));
                self.hear_errands(drive);
            }
            Output::Finished(id, outcome) => {
                let next = self.seats[drive].desk.write_turn.ended(id);
                self.give_core(now, drive, Work::Finish(id, outcome));
                next.into_iter().for_each(|transfer| self.give_core(now, drive, Work::Transfer(transfer)));
            }
        }
    }

    #[inline(never)]
    fn carry_out_of_driver(&mut self, now: Instant, output: ::xhci_driver::Output) {
        use ::xhci_driver::Output as Out;
        (self.machine.has_news, self.machine.driver_talks) = (true, true);
        match output {
            Out::Completed(device, done) => {
                let Some(number) = self.number_of(device) else { return };
                let front = &mut self.fronts[number];
                if front.control_ended(&mut self.machine, now, done.id, (done.status, done.actual)) {
                    self.hear_errands(number);
                } else if number < self.seats.len() {
                    let copied = self.seats[number].desk.copied_after(done.id, done.actual);
                    self.give_core(now, number, Work::Completion(done, copied));
                } else {
                    self.hub_reported(number, done);
                }
            }
            Out::Answered(id, answer) => {
                let number = id.0 as usize;
                if let Some(front) = self.fronts.get_mut(number) {
                    front.answered(&mut self.machine, now, answer);
                    if let Some(device) = front.device {
                        self.by_slot[usize::from(device.slot())] = number as u8;
                    }
                    self.hear_errands(number);
                }
            }
            Out::PortChanged { port, status } => {
                if let Some(root) = self.root_at(port) {
                    self.roots[root].is_connected = status.is_connected();
                    self.roots[root].is_ready = status.is_connected() && status.is_enabled();
                }
            }
            Out::Gone(device) => {
                if let Some(number) = self.number_of(device) {
                    self.lose(now, number);
                }
            }
            Out::Died(_) => (0..self.fronts.len()).for_each(|number| self.lose(now, number)),
            Out::Running => {}
        }
    }

    /// The root port of this number, if something is there.
    fn root_at(&self, port: u8) -> Option<usize> {
        let root = usize::from(*self.by_port.get(usize::from(port))?);
        (self.roots.get(root)?.port == port).then_some(root)
    }

    /// The device that the driver knows by this id.
    fn number_of(&self, device: ::xhci_driver::DeviceId) -> Option<usize> {
        let number = usize::from(*self.by_slot.get(usize::from(device.slot()))?);
        (self.fronts.get(number)?.device == Some(device)).then_some(number)
    }

    /// A device is gone.
    fn lose(&mut self, now: Instant, number: usize) {
        self.fronts[number].device = None;
        if let Some(seat) = self.seats.get_mut(number) {
            seat.desk.transport.handle_disconnect(now);
            self.machine.told(number);
        }
        self.lose_hub(number);
    }

    /// Tells a transport what came of what it wanted of the bus.
    fn hear_errands(&mut self, number: usize) {
        if let Some(wanted) = self.fronts[number].errands.of_hub_above.take() {
            self.ask_hub_above(number, wanted);
        }
        while let Some((id, answer)) = self.fronts[number].errands.answers.pop_front() {
            if let Some(seat) = self.seats.get_mut(number) {
                seat.desk.transport.handle_answer(self.engine.now(), id, answer);
                self.machine.told(number);
            }
        }
        while let Some(came) = self.fronts[number].errands.of_hub.pop_front() {
            self.tell_hub_driver(number, &came);
        }
        while let Some(gone) = self.fronts[number].errands.gone.pop_front() {
            self.lose(self.engine.now(), gone);
        }
    }
}

#[cfg(test)]
mod tests;
