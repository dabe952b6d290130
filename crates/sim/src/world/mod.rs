//! One host, one link, one drive: the initiator's transport and the target's device, joined by packets.
//!
//! A [`World`] carries what the transport and the device want to both ports of a [`LinkPair`], which says when each packet
//! arrives, on a SuperSpeed link or on a bus of USB 2.0. Payload is copied as its packets arrive, so what is read is what was on the
//! wire. The drive is a [`Plain`] one.
//!
//! Left out so far: a host controller and its driver, which take no time here; what a host asks of a drive that was just
//! plugged in or reset.
//!
//! Always true: the time of a command is the time of its packets and of the drive, and of nothing else.

mod commanded;
mod drive;
pub mod driven;
mod endings;
mod enumerate;
#[cfg(test)]
mod fixture;
mod host;
mod mark;
pub mod numbers;
mod observer;
mod on_bus;
mod plain;
mod planted;
mod plug;
mod rest;
mod stopped;
mod trouble;

pub(crate) use commanded::Begins;
pub use commanded::Commanded;
pub use enumerate::Exchange;
pub use host::Finished;
pub(crate) use observer::Observers;
pub use observer::{CoreTurn, HostTransfer, Observer, WorkedFor};
pub use plain::Plain;
pub use plug::{PlugError, Plugged, bot, turbo, uas};
pub use rest::REST;
pub use stopped::Stopped;
pub use trouble::Remains;

use crate::check::{About, Law};
use crate::engine::{Alarm, Engine, Event, QueueFull, Turn};
use crate::link::bulk::Message;
use crate::link::superspeed::{Link, Side, Sleep};
use crate::link::usb2::Bus;
use crate::link::{Arrival, Connection, Crossing, Fate, Fates, LinkPair, Missed, Wake};
use crate::power::Meter;
use bus::Pipe;
use device::device::STATUS;
use drive::DriveSide;
use endings::Endings;
use host::HostSide;
use initiator::{Command, CommandId, Outcome, Output, Refusal, Transport};
use stopped::{AT_ONCE_MAX, Pulse};
use trouble::{Sent, Trouble};
use units::{Duration, Instant};

/// A host and a drive with a link between them.
#[derive(Debug)]
pub struct World<T> {
    engine: Engine<Happens>,
    link_pair: LinkPair,
    host: HostSide<T>,
    drive: DriveSide,
    endings: Endings,
    trouble: Trouble,
    alarm: Alarm,
    /// When a bus of USB 2.0 goes on.
    bus_alarm: Alarm,
    fates: Option<Box<dyn Fates>>,
    pulse: Pulse,
    stopped: Option<Stopped>,
}

/// Something that happens.
#[derive(Clone, Copy, Debug)]
enum Happens {
    /// The lane of a side is free.
    Free(Side),
    /// What was on its way to a side arrives, with so many bytes of payload.
    Arrives(Side, u16),
    /// The same for one to which something has happened.
    Suffers(Side, u16, Fate),
    /// LBAD has come back to a side.
    Retry(Side),
    /// The time is over after which an answer is missed.
    Missed(Missed),
    /// A bus of USB 2.0 goes on.
    Bus,
    /// The drive has done its oldest request.
    Stored,
    /// The device is ready for what it was not ready for.
    Ready,
    /// A deadline of the transport.
    Deadline,
    /// A port has been reset.
    PortReset,
}

impl Event for Happens {
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

impl<T: Transport> World<T> {
    /// A world in which a drive of the connection's speed has been plugged in and configured.
    pub fn new(connection: impl Into<Connection>, plugged: Plugged<T>, plain: Plain) -> Self {
        let Plugged { transport, device, endpoints, enumeration: _ } = plugged;
        Self {
            engine: Engine::new(),
            link_pair: connection.into().join(&endpoints),
            host: HostSide::new(transport),
            drive: DriveSide::new(device, plain),
            endings: Endings::default(),
            trouble: Trouble::default(),
            alarm: Alarm::default(),
            bus_alarm: Alarm::default(),
            fates: None,
            pulse: Pulse::default(),
            stopped: None,
        }
    }

    /// The time.
    pub const fn now(&self) -> Instant {
        self.engine.now()
    }

    /// Events that have happened.
    pub const fn happened(&self) -> u64 {
        self.engine.happened()
    }

    /// The digest of all that has happened.
    pub const fn digest(&self) -> u64 {
        self.engine.digest()
    }

    /// The transport.
    pub const fn transport(&self) -> &T {
        &self.host.transport
    }

    /// The link, with what it has carried, if it is one of SuperSpeed.
    pub const fn link(&self) -> Option<&Link> {
        self.link_pair.link()
    }

    /// The bus, with what it has carried, if it is one of USB 2.0.
    pub const fn bus(&self) -> Option<&Bus> {
        self.link_pair.bus()
    }

    /// Lets a SuperSpeed link sleep when nothing crosses.
    pub fn let_sleep(&mut self, sleep: Sleep) {
        self.link_pair.let_sleep(sleep);
    }

    /// What the drive has drawn: idle and at work.
    pub const fn drive_meter(&self) -> &Meter<2> {
        self.drive.plain.meter()
    }

    /// Sends notes of every packet to a trace.
    pub fn trace_to(&mut self, trace: Box<dyn crate::engine::Trace>) {
        self.engine.trace_to(trace);
    }

    /// Takes the trace back; no notes are made from now on.
    pub fn take_trace(&mut self) -> Option<Box<dyn crate::engine::Trace>> {
        self.engine.take_trace()
    }

    /// Lets `fates` decide what becomes of each packet from now on. Without, all arrive.
    pub fn suffer(&mut self, fates: Box<dyn Fates>) {
        self.fates = Some(fates);
    }

    /// Tells `observer` what happens from now on.
    pub fn observe(&mut self, observer: Box<dyn Observer>) {
        self.host.observers.add(observer);
    }

    /// Gives the transport a command. `buffer` holds what it writes, or has room for what it reads.
    ///
    /// # Errors
    /// The transport's refusal.
    pub fn submit(&mut self, command: &Command, buffer: Vec<u8>) -> Result<(), Refusal> {
        let now = self.engine.now();
        mark::begin(&mut self.engine, 0, command, &buffer);
        self.host.submit(now, command, buffer)?;
        self.engine.note("driver", format_args!("{}", Begins(command)));
        self.settle();
        Ok(())
    }

    /// The caller wants a command to end. It still ends once.
    pub fn abort(&mut self, id: CommandId) {
        self.host.has_news = true;
        self.host.transport.abort(self.engine.now(), id);
        self.settle();
    }

    /// Lets things happen until a command ends. `None` if nothing is going to happen any more.
    ///
    /// # Errors
    /// If the world does not go on.
    pub fn run(&mut self) -> Result<Option<Finished>, Stopped> {
        self.run_until(None)
    }

    /// The same, but no longer than up to a time: `None` when it has come, or if nothing is going to happen any more.
    ///
    /// # Errors
    /// If the world does not go on.
    pub fn run_until(&mut self, until: Option<Instant>) -> Result<Option<Finished>, Stopped> {
        loop {
            self.trouble.ledger.look_back(self.engine.looked_back());
            if let Some(stopped) = self.stopped.or(self.trouble.ledger.broken().map(Stopped::Broken)) {
                return Err(stopped);
            }
            if let Some(finished) = self.host.finished.pop_front() {
                mark::end(&mut self.engine, &finished);
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

    /// Lets the next thing happen, if there is one.
    fn step(&mut self) -> bool {
        let Some(event) = self.engine.next() else { return false };
        if self.pulse.is_lost(self.engine.now(), self.engine.happened()) {
            self.stopped = Some(Stopped::StandsStill);
        }
        self.handle(event);
        true
    }

    fn handle(&mut self, event: Happens) {
        let now = self.engine.now();
        match event {
            Happens::Free(side) => return self.send(side),
            Happens::Arrives(side, bytes) => self.arrive(side, bytes, Fate::Arrives),
            Happens::Suffers(side, bytes, fate) => self.arrive(side, bytes, fate),
            Happens::Missed(missed) => self.miss(missed),
            Happens::Retry(side) => self.link_pair.retry(now, side),
            Happens::Bus if self.bus_alarm.ring(now) => self.go_on_with_bus(),
            Happens::Bus => {}
            Happens::PortReset => self.end_port_reset(),
            Happens::Stored => {
                self.drive.store(now, &mut self.trouble);
                self.link_pair.work(now, self.drive.is_busy());
            }
            Happens::Ready => {
                while let Some(transfer) = self.trouble.take_late(now) {
                    self.offer(transfer);
                }
                self.echo();
            }
            Happens::Deadline if self.alarm.ring(now) => {
                self.host.has_news = true;
                if self.host.transport.poll_timeout().is_some_and(|deadline| deadline.at <= now) {
                    self.host.transport.handle_timeout(now);
                }
            }
            Happens::Deadline => {}
        }
        self.settle();
        self.befall_endpoints();
    }

    /// An answer may be missed.
    fn miss(&mut self, missed: Missed) {
        let again = self.link_pair.miss(missed);
        self.look_again(again);
        self.tell_progress();
        self.look_after_endpoints();
        self.look_after_endpoint_0();
    }

    fn look_again(&mut self, missed: Option<(Duration, Missed)>) {
        if let Some((span, missed)) = missed {
            self.at(self.engine.now() + span, Happens::Missed(missed));
        }
    }

    /// A message has arrived: it is taken, and its payload is copied.
    fn arrive(&mut self, side: Side, bytes: u16, fate: Fate) {
        let now = self.engine.now();
        let Some(&message) = self.link_pair.coming(side) else { return };
        if fate == Fate::Arrives {
            self.show(side.other(), &message, None);
        }
        if self.trouble.ends_life() {
            self.unplug();
        }
        if self.trouble.forgets_endpoints() {
            self.link_pair.configure(Side::Device, &[]);
        }
        // What arrives damaged is heard when it comes again.
        let is_heard = fate != Fate::Arrives || self.trouble.hears(message);
        let fate = if is_heard { fate } else { Fate::Lost };
        let Arrival { frees_other_at, retry_at, is_control, taken } = self.link_pair.arrive(now, side, fate);
        if let Some(at) = retry_at {
            self.at(at, Happens::Retry(side.other()));
        }
        if let Some(at) = frees_other_at {
            self.at(at, Happens::Free(side.other()));
        }
        if taken.is_err() {
            self.stopped = Some(Stopped::Violation);
        }
        self.tell_progress();
        self.trouble.ledger.arrive(now, side, bytes.into());
        self.look_after_endpoints();
        if is_control {
            self.look_after_endpoint_0();
        }
    }

    /// Tells both sides what of their transfers has moved or ended.
    fn tell_progress(&mut self) {
        let now = self.engine.now();
        while let Some(progress) = self.link_pair.host.poll_progress() {
            let (first, progress) = self.trouble.progress(progress);
            if let Some(piece) = progress.piece
                && self.trouble.has_doubts()
                && self.host.pipe_of(progress.id) == Some(Pipe::plain(STATUS))
            {
                self.trouble.doubt(self.drive.bytes(piece));
            }
            for progress in first.into_iter().chain([progress]) {
                self.book(Side::Host, &progress);
                let ending = self.host.progress(now, progress, &mut self.drive);
                self.forget_ending(ending);
            }
        }
        self.tell_drive();
    }

    /// Tells the drive what of its transfers has moved or ended.
    fn tell_drive(&mut self) {
        while let Some(progress) = self.link_pair.device.poll_progress() {
            self.book(Side::Device, &progress);
            if self.trouble.keeps_end(&progress) {
                continue;
            }
            if let Some(piece) = progress.piece {
                self.host.taken(piece);
            }
            let bytes = progress.piece.map_or(&[][..], |piece| self.host.bytes(piece));
            self.drive.progress(self.engine.now(), progress, bytes);
        }
    }

    /// Carries what both machines want, until they want nothing.
    fn carry_all(&mut self) {
        for _ in 0..AT_ONCE_MAX {
            if let Some(output) = self.host.transport.poll_output() {
                self.carry_out(output);
            } else if let Some(output) = self.drive.device.poll_output() {
                self.carry_out_of_device(output);
            } else if !self.trouble.is_restless {
                return;
            }
        }
        self.stopped = Some(Stopped::NeverSettles);
    }

    /// Carries what both machines want; then sees who may send, and when to wake up.
    fn settle(&mut self) {
        self.carry_all();
        for side in [Side::Host, Side::Device] {
            match self.link_pair.wakes(side, |turn| self.engine.is_over(turn)) {
                Wake::Never => {}
                Wake::Now => self.send(side),
                Wake::At(free) => self.at_turn(free, Happens::Free(side)),
            }
        }
        let due_at = self.link_pair.due_at(self.engine.now());
        if let Some(at) = self.bus_alarm.set(due_at) {
            self.at(at, Happens::Bus);
        }
        if std::mem::take(&mut self.host.has_news) {
            let deadline = self.host.transport.poll_timeout().map(|deadline| deadline.at);
            if let Some(at) = self.alarm.set(deadline) {
                // A deadline may have passed when it is set.
                self.at(at.max(self.engine.now()), Happens::Deadline);
            }
        }
    }

    fn carry_out(&mut self, output: Output) {
        match output {
            Output::Submit(transfer) => {
                let now = self.engine.now();
                let transfer = self.trouble.submit(transfer);
                if self.link_pair.is_cut() {
                    self.host.refuse(now, transfer);
                } else {
                    self.host.offer(now, &mut self.link_pair.host, transfer);
                }
            }
            Output::Cancel(id) => self.cancel(id),
            Output::Request(id, request) => self.request(id, request),
            Output::Finished(id, outcome) => self.finish_command(id, outcome),
        }
    }

    fn finish_command(&mut self, id: CommandId, outcome: Outcome) {
        let now = self.engine.now();
        self.engine.note("driver", format_args!("{id} ends"));
        for _ in 0..self.trouble.ends() {
            if !self.host.finish(now, id, outcome.clone()) {
                self.trouble.ledger.break_law(Law::CommandOnce, now, About::Command(id));
            }
        }
        self.echo();
    }

    /// [`Bug::Echo`](crate::fault::Bug::Echo): an event that makes the next.
    fn echo(&mut self) {
        if self.trouble.echoes() {
            self.at(self.engine.now(), Happens::Ready);
        }
    }

    fn carry_out_of_device(&mut self, output: device::Output) {
        use device::Output as Out;
        match output {
            Out::Transfer(transfer) => match self.trouble.send(self.engine.now(), transfer, &self.drive) {
                Sent::Once(transfer) => self.offer(transfer),
                Sent::Twice(transfer) => {
                    let again = self.drive.stray(&transfer);
                    self.offer(transfer);
                    self.offer(again);
                }
                Sent::Never(transfer) => self.drive.forget(transfer),
                Sent::Later(due) => self.at(due, Happens::Ready),
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
                let done_at = self.drive.plain.take(now, request, &mut self.trouble.faults);
                self.link_pair.work(now, true);
                self.host.observers.tell(|observer| observer.asked(now, &request, done_at));
                let (blocks, lba, span) = (request.extent.blocks.0, request.extent.lba.0, done_at - now);
                self.engine.note("drive", format_args!("{blocks} blocks from {lba} on, done in {span}"));
                self.at(done_at, Happens::Stored);
            }
            Out::Cancel(id) if self.trouble.drop_late(id) => self.drive.never(id),
            Out::Cancel(id) => {
                self.drive.cancel(self.engine.now(), &mut self.link_pair.device, id);
                self.tell_drive();
            }
            Out::Halt(endpoint) => self.link_pair.device.halt(endpoint),
            Out::ClearHalt(endpoint) => {
                self.link_pair.device.clear_halt(endpoint);
                self.tell_drive();
            }
        }
    }

    /// The device offers a transfer to the bus.
    fn offer(&mut self, transfer: device::DeviceTransfer) {
        let (pipe, now) = (transfer.pipe, self.engine.now());
        self.host.observers.tell(|observer| observer.offered(now, &transfer));
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
        let free = self.engine.turn(crossing.ends);
        if !self.link_pair.rests(side, free) {
            self.at_turn(free, Happens::Free(side));
        }
        if self.trouble.hurries() {
            self.link_pair.hurry(side);
        }
        let now = self.engine.now();
        let fate = match &mut self.fates {
            Some(fates) => fates.fate(now, side, &message),
            None => self.trouble.fate(message),
        };
        let arrival = match fate {
            Fate::Arrives => Happens::Arrives(side.other(), bytes),
            _ => Happens::Suffers(side.other(), bytes, fate),
        };
        match fate {
            Fate::Arrives => {}
            Fate::HeaderDamaged => self.link_pair.damage(side, message),
            Fate::PayloadDamaged | Fate::Lost => {
                let missed = self.link_pair.lose(&message);
                self.look_again(missed);
            }
        }
        self.at(crossing.heard, arrival);
    }

    /// Shows a packet of a side to who looks on: when it is sent, with its crossing, and when it arrives.
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
        observers.tell(|observer| match crossing {
            Some(crossing) => observer.sent(from, message, crossing, bytes),
            None => observer.arrived(now, from.other(), message, bytes),
        });
        self.host.observers = observers;
    }

    fn at_turn(&mut self, turn: Turn, event: Happens) {
        if let Err(QueueFull) = self.engine.at_turn(turn, event) {
            self.stopped = Some(Stopped::QueueFull);
        }
    }

    fn at(&mut self, at: Instant, event: Happens) {
        if let Err(QueueFull) = self.engine.at(at, event) {
            self.stopped = Some(Stopped::QueueFull);
        }
    }
}

/// A side, in notes.
const fn name(side: Side) -> &'static str {
    match side {
        Side::Host => "host",
        Side::Device => "device",
    }
}

#[cfg(test)]
mod tests;
