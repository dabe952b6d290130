//! Simulated machines: a host, links and drives, connected packet by packet.
//!
//! [`DirectMachine`] has no host controller: it passes the outputs of transport and device to both
//! ports of a [`LinkPair`], which times each packet on a SuperSpeed link or a USB 2.0 bus. Payload is
//! copied as its packets arrive, so a read returns what was on the wire. The drive is a
//! [`FixedLatencyDrive`]. [`xhci`] has the machine with driver, controller and hubs.
//!
//! Left out of `DirectMachine`: host controller and driver, which take no time; enumeration after
//! attach or reset.
//!
//! Invariant: the latency of a command is that of its packets and of the drive.

mod configure;
mod digest;
mod drive;
mod endings;
mod enumerate;
mod fault_injector;
mod fixed_latency;
#[cfg(test)]
mod fixture;
mod host;
mod in_flight;
pub mod numbers;
mod observer;
mod quiescence;
mod seeded_bugs;
mod simulation;
mod stop_reason;
mod usb2_bus;
pub mod xhci;

pub use configure::{PlugError, Plugged, bot, turbo, uas};
pub use enumerate::ControlExchange;
pub use fault_injector::DetachedDrive;
pub use fixed_latency::FixedLatencyDrive;
pub use host::FinishedCommand;
pub(crate) use observer::Observers;
pub use observer::{CoreClient, CoreSlice, HostTransfer, Observer};
pub use quiescence::QUIESCE_TIME;
pub(crate) use simulation::CommandStart;
pub use simulation::Simulation;
pub use stop_reason::StopReason;

use crate::check::{Invariant, ViolationSubject};
use crate::engine::{Alarm, Engine, Event, EventKey, QueueFull};
use crate::link::bulk::Message;
use crate::link::superspeed::{Link, Side, Sleep};
use crate::link::usb2::Bus;
use crate::link::{Arrival, Connection, Crossing, Fate, Fates, LinkPair, Missed, Wake};
use crate::power::Meter;
use bus::{Front, Pipe};
use device::device::STATUS;
use drive::DriveSide;
use endings::Endings;
use fault_injector::{FaultInjector, Sent};
use host::{HostAction, HostSide};
use initiator::{Command, CommandId, Outcome, Refusal, Transport};
use stop_reason::{AT_ONCE_MAX, Pulse};
use units::{Duration, Instant};

/// A host and a drive on one link, without a host controller.
#[derive(Debug)]
pub struct DirectMachine<T> {
    engine: Engine<MachineEvent>,
    link_pair: LinkPair,
    host: HostSide<T>,
    drive: DriveSide,
    endings: Endings,
    injector: FaultInjector,
    alarm: Alarm,
    /// Next event of a USB 2.0 bus.
    bus_alarm: Alarm,
    fates: Option<Box<dyn Fates>>,
    pulse: Pulse,
    stopped: Option<StopReason>,
}

/// An event.
#[derive(Clone, Copy, Debug)]
enum MachineEvent {
    /// The lane of a side is free.
    Free(Side),
    /// A packet arrives at a side, with its payload bytes.
    Arrives(Side, u16),
    /// A packet arrives that a fault has affected.
    Suffers(Side, u16, Fate),
    /// LBAD has arrived at a side.
    Retry(Side),
    /// An answer has timed out.
    Missed(Missed),
    /// A USB 2.0 bus has an event.
    Bus,
    /// The drive has completed its oldest request.
    Stored,
    /// A deferred transfer of the device is due.
    Ready,
    /// The transport's deadline.
    Deadline,
    /// A port reset has completed.
    PortReset,
}

impl Event for MachineEvent {
    fn mark(&self) -> u64 {
        match self {
            Self::Stored => 0,
            Self::Deadline => 1,
            Self::Free(side) => 2 + *side as u64,
            Self::PortReset => 6,
            Self::Missed(missed) => (2 << 32) + missed.mark(),
            Self::Retry(side) => 7 + *side as u64,
            Self::Ready => 17,
            Self::Suffers(side, _, fate) => 9 + *side as u64 + 2 * *fate as u64,
            Self::Bus => 1 << 32,
            Self::Arrives(side, bytes) => 4 + *side as u64 + 2 * u64::from(*bytes),
        }
    }
}

impl<T: Transport> DirectMachine<T> {
    /// Creates a machine with a configured drive of the connection's speed.
    pub fn new(connection: impl Into<Connection>, plugged: Plugged<T>, plain: FixedLatencyDrive) -> Self {
        let Plugged { transport, device, endpoints, enumeration: _ } = plugged;
        Self {
            engine: Engine::new(),
            link_pair: connection.into().join(&endpoints),
            host: HostSide::new(transport),
            drive: DriveSide::new(device, plain),
            endings: Endings::default(),
            injector: FaultInjector::default(),
            alarm: Alarm::default(),
            bus_alarm: Alarm::default(),
            fates: None,
            pulse: Pulse::default(),
            stopped: None,
        }
    }

    /// Returns the current time.
    pub const fn now(&self) -> Instant {
        self.engine.now()
    }

    /// Returns the number of events so far.
    pub const fn happened(&self) -> u64 {
        self.engine.happened()
    }

    /// Returns the digest of all events.
    pub const fn digest(&self) -> u64 {
        self.engine.digest()
    }

    /// Returns the transport.
    pub const fn transport(&self) -> &T {
        self.host.transport()
    }

    /// Returns the link, if it is SuperSpeed.
    pub const fn link(&self) -> Option<&Link> {
        self.link_pair.link()
    }

    /// Returns the bus, if it is USB 2.0.
    pub const fn bus(&self) -> Option<&Bus> {
        self.link_pair.bus()
    }

    /// Enables link power management on a SuperSpeed link.
    pub fn let_sleep(&mut self, sleep: Sleep) {
        self.link_pair.let_sleep(sleep);
    }

    /// Returns the power meter of the drive: idle, busy.
    pub const fn drive_meter(&self) -> &Meter<2> {
        self.drive.plain.meter()
    }

    /// Traces every packet.
    pub fn trace_to(&mut self, trace: Box<dyn crate::engine::Trace>) {
        self.engine.trace_to(trace);
    }

    /// Detaches the trace.
    pub fn take_trace(&mut self) -> Option<Box<dyn crate::engine::Trace>> {
        self.engine.take_trace()
    }

    /// Lets `fates` decide the fate of each packet. By default all arrive.
    pub fn suffer(&mut self, fates: Box<dyn Fates>) {
        self.fates = Some(fates);
    }

    /// Attaches an observer.
    pub fn observe(&mut self, observer: Box<dyn Observer>) {
        self.host.observers.add(observer);
    }

    /// Submits a command. `buffer` holds the data to write, or room for the data to read.
    ///
    /// # Errors
    /// The transport's refusal.
    pub fn submit(&mut self, command: &Command, buffer: Vec<u8>) -> Result<(), Refusal> {
        let now = self.engine.now();
        digest::begin(&mut self.engine, 0, command, &buffer);
        self.host.submit(now, command, buffer)?;
        self.engine.note("driver", format_args!("{}", CommandStart(command)));
        self.settle();
        Ok(())
    }

    /// Aborts a command, which still completes once.
    pub fn abort(&mut self, id: CommandId) {
        self.host.call().abort(self.engine.now(), id);
        self.settle();
    }

    /// Runs until a command completes. `None` if no events are pending.
    ///
    /// # Errors
    /// If the simulation stops.
    pub fn run(&mut self) -> Result<Option<FinishedCommand>, StopReason> {
        self.run_until(None)
    }

    /// Like [`Self::run`], up to a time: `None` when it is reached or no events are pending.
    ///
    /// # Errors
    /// If the simulation stops.
    pub fn run_until(&mut self, until: Option<Instant>) -> Result<Option<FinishedCommand>, StopReason> {
        loop {
            self.injector.ledger.check_schedule(self.engine.scheduled_late());
            if let Some(stopped) = self.stopped.or(self.injector.ledger.violation().map(StopReason::Broken)) {
                return Err(stopped);
            }
            if let Some(finished) = self.host.finished.pop_front() {
                digest::end(&mut self.engine, &finished);
                return Ok(Some(finished));
            }
            if let Some(until) = until
                && self.engine.next_at().is_none_or(|next| next > until)
            {
                self.engine.pass(until);
                return Ok(None);
            }
            if !self.step() {
                return Ok(None);
            }
        }
    }

    /// Adds a result to the digest.
    pub const fn mix(&mut self, word: u64) {
        self.engine.mix(word);
    }

    /// Executes the next event, if there is one.
    fn step(&mut self) -> bool {
        let Some(event) = self.engine.next() else { return false };
        if self.pulse.is_lost(self.engine.now(), self.engine.happened()) {
            self.stopped = Some(StopReason::StandsStill);
        }
        self.handle(event);
        true
    }

    fn handle(&mut self, event: MachineEvent) {
        let now = self.engine.now();
        match event {
            MachineEvent::Free(side) => return self.send(side),
            MachineEvent::Arrives(side, bytes) => self.arrive(side, bytes, Fate::Arrives),
            MachineEvent::Suffers(side, bytes, fate) => self.arrive(side, bytes, fate),
            MachineEvent::Missed(missed) => self.miss(missed),
            MachineEvent::Retry(side) => self.link_pair.retry(now, side),
            MachineEvent::Bus if self.bus_alarm.ring(now) => self.advance_bus(),
            MachineEvent::Bus => {}
            MachineEvent::PortReset => self.end_port_reset(),
            MachineEvent::Stored => {
                self.drive.store(now, &mut self.injector);
                self.link_pair.work(now, self.drive.is_busy());
            }
            MachineEvent::Ready => {
                while let Some(transfer) = self.injector.next_deferred(now) {
                    self.offer(transfer);
                }
                self.echo();
            }
            MachineEvent::Deadline if self.alarm.ring(now) => {
                if self.host.call().poll_timeout().is_some_and(|deadline| deadline.at <= now) {
                    self.host.call().handle_timeout(now);
                }
            }
            MachineEvent::Deadline => {}
        }
        self.settle();
        self.inject_endpoint_faults();
    }

    /// Handles a timed-out answer.
    fn miss(&mut self, missed: Missed) {
        let again = self.link_pair.miss(missed);
        self.schedule_missed(again);
        self.report_progress();
        self.service_endpoints();
        self.service_endpoint_0();
    }

    fn schedule_missed(&mut self, missed: Option<(Duration, Missed)>) {
        if let Some((span, missed)) = missed {
            self.at(self.engine.now() + span, MachineEvent::Missed(missed));
        }
    }

    /// Handles an arriving message and copies its payload.
    fn arrive(&mut self, side: Side, bytes: u16, fate: Fate) {
        let now = self.engine.now();
        let Some(&message) = self.link_pair.coming(side) else { return };
        if fate == Fate::Arrives {
            self.show(side.other(), &message, None);
        }
        if self.injector.ends_session() {
            self.unplug();
        }
        if self.injector.forgets_endpoints() {
            self.link_pair.configure(Side::Device, &[]);
        }
        // A damaged packet is processed when it is retried.
        let is_heard = fate != Fate::Arrives || self.injector.receives(message);
        let fate = if is_heard { fate } else { Fate::Lost };
        let Arrival { frees_other_at, retry_at, is_control, taken } = self.link_pair.arrive(now, side, fate);
        if let Some(at) = retry_at {
            self.at(at, MachineEvent::Retry(side.other()));
        }
        if let Some(at) = frees_other_at {
            self.at(at, MachineEvent::Free(side.other()));
        }
        if taken.is_err() {
            self.stopped = Some(StopReason::Violation);
        }
        self.report_progress();
        self.injector.ledger.arrive(now, side, bytes.into());
        self.service_endpoints();
        if is_control {
            self.service_endpoint_0();
        }
    }

    /// Reports progress of transfers to both sides.
    fn report_progress(&mut self) {
        let now = self.engine.now();
        while let Some(progress) = self.link_pair.host.poll_progress() {
            let (first, progress) = self.injector.progress(progress);
            if let Some(piece) = progress.piece
                && self.injector.has_suspect_tags()
                && self.host.pipe_of(progress.id) == Some(Pipe::plain(STATUS))
            {
                self.injector.check_status_tag(self.drive.bytes(piece));
            }
            for progress in first.into_iter().chain([progress]) {
                self.book(Side::Host, &progress);
                let ending = self.host.progress(now, progress, &mut self.drive);
                self.forget_ending(ending);
            }
        }
        self.notify_drive();
    }

    /// Reports progress of its transfers to the drive.
    fn notify_drive(&mut self) {
        while let Some(progress) = self.link_pair.device.poll_progress() {
            self.book(Side::Device, &progress);
            if self.injector.drops_completion(&progress) {
                continue;
            }
            if let Some(piece) = progress.piece {
                self.host.taken(piece);
            }
            let bytes = progress.piece.map_or(&[][..], |piece| self.host.bytes(piece));
            self.drive.progress(self.engine.now(), progress, bytes);
        }
    }

    /// Executes outputs of transport and device until there are none.
    fn carry_all(&mut self) {
        for _ in 0..AT_ONCE_MAX {
            if let Some(action) = self.host.poll(self.engine.now()) {
                self.carry_out(action);
            } else if let Some(output) = self.drive.device.poll_output().map(Front::take) {
                self.carry_out_of_device(output);
            } else if !self.injector.is_restless {
                return;
            }
        }
        self.stopped = Some(StopReason::NeverSettles);
    }

    /// Executes all outputs, then sends and sets alarms.
    fn settle(&mut self) {
        self.carry_all();
        for side in [Side::Host, Side::Device] {
            match self.link_pair.wakes(side, |turn| self.engine.has_passed(turn)) {
                Wake::Never => {}
                Wake::Now => self.send(side),
                Wake::At(free) => self.schedule_reserved(free, MachineEvent::Free(side)),
            }
        }
        let due_at = self.link_pair.due_at(self.engine.now());
        if let Some(at) = self.bus_alarm.set(due_at) {
            self.at(at, MachineEvent::Bus);
        }
        if std::mem::take(&mut self.host.deadline_dirty) {
            let deadline = self.host.transport().poll_timeout().map(|deadline| deadline.at);
            if let Some(at) = self.alarm.set(deadline) {
                // A deadline may have passed when it is set.
                self.at(at.max(self.engine.now()), MachineEvent::Deadline);
            }
        }
    }

    fn carry_out(&mut self, action: HostAction) {
        match action {
            HostAction::Submit(request) => {
                let now = self.engine.now();
                if let Some(bytes) = self.host.message(&request) {
                    self.injector.submit_message(bytes);
                }
                if self.link_pair.is_cut() {
                    self.host.refuse(now, request.id);
                } else {
                    self.host.offer(now, &mut self.link_pair.host, request);
                }
            }
            HostAction::Cancel(id) => self.cancel(id),
            HostAction::Request(id, request) => self.request(id, request),
            HostAction::Finish(id, outcome) => self.finish_command(id, outcome),
        }
    }

    fn finish_command(&mut self, id: CommandId, outcome: Outcome) {
        let now = self.engine.now();
        self.engine.note("driver", format_args!("{id} ends"));
        for _ in 0..self.injector.ends() {
            if !self.host.finish(now, id, outcome.clone()) {
                self.injector.ledger.report_violation(
                    Invariant::CommandOnce,
                    now,
                    ViolationSubject::Command(id),
                );
            }
        }
        self.echo();
    }

    /// [`SeededBug::Echo`](crate::fault::SeededBug::Echo): an event that schedules the next.
    fn echo(&mut self) {
        if self.injector.echoes() {
            self.at(self.engine.now(), MachineEvent::Ready);
        }
    }

    fn carry_out_of_device(&mut self, output: device::Output) {
        use device::Output as Out;
        match output {
            Out::Transfer(transfer) => match self.injector.send(self.engine.now(), transfer, &self.drive) {
                Sent::Once(transfer) => self.offer(transfer),
                Sent::Twice(transfer) => {
                    let again = self.drive.stray(&transfer);
                    self.offer(transfer);
                    self.offer(again);
                }
                Sent::Never(transfer) => self.drive.forget(transfer),
                Sent::Later(due) => self.at(due, MachineEvent::Ready),
            },
            Out::Finish(pipe) => self.finish(pipe),
            Out::FinishBoth(data_in, data_out) => {
                self.finish(data_in);
                self.finish(data_out);
            }
            Out::Acquire(id, bytes) => self.drive.acquire(self.engine.now(), id, bytes, false),
            Out::Release(id) => self.drive.release(self.engine.now(), id),
            Out::Medium(request) => {
                let now = self.engine.now();
                let done_at = self.drive.plain.take(now, request, &mut self.injector.faults);
                self.link_pair.work(now, true);
                self.host.observers.notify(|observer| observer.medium_requested(now, &request, done_at));
                let (blocks, lba, span) = (request.extent.blocks.0, request.extent.lba.0, done_at - now);
                self.engine.note("drive", format_args!("{blocks} blocks from {lba} on, done in {span}"));
                self.at(done_at, MachineEvent::Stored);
            }
            Out::Cancel(id) if self.injector.cancel_deferred(id) => self.drive.cancel_unsent(id),
            Out::Cancel(id) => {
                self.drive.cancel(self.engine.now(), &mut self.link_pair.device, id);
                self.notify_drive();
            }
            Out::Halt(endpoint) => self.link_pair.device.halt(endpoint),
            Out::ClearHalt(endpoint) => {
                self.link_pair.device.clear_halt(endpoint);
                self.notify_drive();
            }
        }
    }

    /// Queues a transfer of the device.
    fn offer(&mut self, transfer: device::DeviceTransfer) {
        let (pipe, now) = (transfer.pipe, self.engine.now());
        self.host.observers.notify(|observer| observer.offered(now, &transfer));
        let expected = self.link_pair.host.expects(pipe);
        let ending = self.drive.offer(&mut self.link_pair.device, transfer, expected);
        if let Some((ending, number)) = ending.zip(self.link_pair.host.transfers(pipe).next()) {
            self.host.ends_with(number, ending);
        }
    }

    /// Sends the next message of a side whose lane is free.
    fn send(&mut self, side: Side) {
        let Some((crossing, bytes)) = self.link_pair.send(self.engine.now(), side) else { return };
        let Some(&message) = self.link_pair.sent(side) else { return };
        self.engine.mix(message.mark());
        self.engine.note(name(side), format_args!("{message}"));
        self.show(side, &message, Some(&crossing));
        let free = self.engine.reserve(crossing.ends);
        if !self.link_pair.rests(side, free) {
            self.schedule_reserved(free, MachineEvent::Free(side));
        }
        if self.injector.hurries() {
            self.link_pair.hurry(side);
        }
        let now = self.engine.now();
        let fate = match &mut self.fates {
            Some(fates) => fates.fate(now, side, &message),
            None => self.injector.fate(message),
        };
        let arrival = match fate {
            Fate::Arrives => MachineEvent::Arrives(side.other(), bytes),
            _ => MachineEvent::Suffers(side.other(), bytes, fate),
        };
        match fate {
            Fate::Arrives => {}
            Fate::HeaderDamaged => self.link_pair.damage(side, message),
            Fate::PayloadDamaged | Fate::Lost => {
                let missed = self.link_pair.lose(&message);
                self.schedule_missed(missed);
            }
        }
        self.at(crossing.heard, arrival);
    }

    /// Shows a packet to observers: when it is sent, with its crossing, and when it arrives.
    fn show(&mut self, from: Side, message: &Message, crossing: Option<&Crossing>) {
        if self.host.observers.is_empty() {
            return;
        }
        let mut observers = std::mem::take(&mut self.host.observers);
        let bytes = match (message.piece(), from) {
            (None, _) => &[][..],
            (Some(piece), Side::Host) => self.host.bytes(piece),
            (Some(piece), Side::Device) => self.drive.bytes(piece),
        };
        let now = self.engine.now();
        observers.notify(|observer| match crossing {
            Some(crossing) => observer.sent(from, message, crossing, bytes),
            None => observer.arrived(now, from.other(), message, bytes),
        });
        self.host.observers = observers;
    }

    fn schedule_reserved(&mut self, turn: EventKey, event: MachineEvent) {
        if let Err(QueueFull) = self.engine.schedule_reserved(turn, event) {
            self.stopped = Some(StopReason::QueueFull);
        }
    }

    fn at(&mut self, at: Instant, event: MachineEvent) {
        if let Err(QueueFull) = self.engine.at(at, event) {
            self.stopped = Some(StopReason::QueueFull);
        }
    }
}

/// Returns the trace name of a side.
const fn name(side: Side) -> &'static str {
    match side {
        Side::Host => "host",
        Side::Device => "device",
    }
}

#[cfg(test)]
mod tests;
