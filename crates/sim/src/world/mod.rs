//! One host, one link, one drive: the initiator's transport and the target's device, joined by packets.
//!
//! A [`World`] carries what the transport wants to a [`HostPort`] and what the device wants to a [`DevicePort`], and lets the
//! [`Link`] say when each packet arrives. Payload is copied as its packets arrive, so what is read is what was on the
//! wire. The drive is a [`Plain`] one.
//!
//! Left out so far: a host controller and its driver, which take no time here; control transfers, which are answered at once;
//! cancels, halts and resets, which stop the world with [`Stopped`].
//!
//! Always true: the time of a command is the time of its packets and of the drive, and of nothing else.

mod drive;
mod enumerate;
mod host;
mod observer;
mod plain;
mod plug;

pub use enumerate::Exchange;
pub use host::Finished;
pub use observer::{HostTransfer, Observer};
pub use plain::Plain;
pub use plug::{PlugError, Plugged, bot, uas};

use crate::engine::{Alarm, Engine, Event, QueueFull};
use crate::link::bulk::{DevicePort, HostPort, Message};
use crate::link::superspeed::{Link, Rate, Side};
use crate::link::{Arrival, Crossing, Joint};
use bus::Pipe;
use drive::DriveSide;
use host::HostSide;
use initiator::{BusAnswer, BusRequest, Command, Output, Refusal, Transport};
use std::fmt;
use target::{ActiveTransport, Verdict};
use units::{Duration, Instant};
use wire::scsi::opcode::OperationCode;
use wire::usb::Direction;

/// A host and a drive with a link between them.
#[derive(Debug)]
pub struct World<T> {
    engine: Engine<Happens>,
    joint: Joint,
    host: HostSide<T>,
    drive: DriveSide,
    alarm: Alarm,
    stopped: Option<Stopped>,
}

/// Why a world does not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// Something happened that is not modelled.
    NotModelled(&'static str),
    /// One end sent what it could not have sent: a fault of ours.
    Violation,
    /// See [`QueueFull`].
    QueueFull,
}

/// Something that happens.
#[derive(Clone, Copy, Debug)]
enum Happens {
    /// The lane of a side is free.
    Free(Side),
    /// A message arrives at a side.
    Arrives(Side, Message),
    /// The drive has done its oldest request.
    Stored,
    /// A deadline of the transport.
    Deadline,
}

impl Event for Happens {
    fn mark(&self) -> u64 {
        match self {
            Self::Stored => 0,
            Self::Deadline => 1,
            Self::Free(side) => 2 + *side as u64,
            Self::Arrives(side, message) => 4 + *side as u64 + 2 * u64::from(message.packet().payload()),
        }
    }
}

impl<T: Transport> World<T> {
    /// A world in which a drive has been plugged in and configured.
    pub fn new(rate: Rate, plugged: Plugged<T>, plain: Plain) -> Self {
        let Plugged { transport, device, endpoints, enumeration: _ } = plugged;
        let link = Link::new(rate, Duration::from_ns(5));
        Self {
            engine: Engine::new(),
            joint: Joint::new(link, HostPort::new(&endpoints), DevicePort::new(&endpoints)),
            host: HostSide::new(transport),
            drive: DriveSide::new(device, plain),
            alarm: Alarm::default(),
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

    /// The link, with what it has carried.
    pub const fn link(&self) -> &Link {
        self.joint.link()
    }

    /// Sends notes of every packet to a trace.
    pub fn trace_to(&mut self, trace: Box<dyn crate::engine::Trace>) {
        self.engine.trace_to(trace);
    }

    /// Takes the trace back; no notes are made from now on.
    pub fn take_trace(&mut self) -> Option<Box<dyn crate::engine::Trace>> {
        self.engine.take_trace()
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
        self.host.submit(self.engine.now(), command, buffer)?;
        let operation = command.cdb.as_bytes().first().copied().map(OperationCode::from);
        if let (id, Some(operation)) = (command.id, operation) {
            let bytes = command.transfer_len();
            self.engine.note("driver", format_args!("{id} begins: {operation}, {bytes} bytes"));
        }
        self.settle();
        Ok(())
    }

    /// Lets things happen until a command ends. `None` if nothing is going to happen any more.
    ///
    /// # Errors
    /// If the world does not go on.
    pub fn run(&mut self) -> Result<Option<Finished>, Stopped> {
        loop {
            if let Some(stopped) = self.stopped {
                return Err(stopped);
            }
            if let Some(finished) = self.host.finished.pop_front() {
                return Ok(Some(finished));
            }
            let Some(event) = self.engine.next() else { return Ok(None) };
            self.handle(event);
        }
    }

    fn handle(&mut self, event: Happens) {
        let now = self.engine.now();
        match event {
            Happens::Free(side) => return self.send(side),
            Happens::Arrives(side, message) => self.arrive(side, message),
            Happens::Stored => self.drive.store(),
            Happens::Deadline if self.alarm.ring(now) => {
                self.host.has_news = true;
                if self.host.transport.poll_timeout().is_some_and(|deadline| deadline.at <= now) {
                    self.host.transport.handle_timeout(now);
                }
            }
            Happens::Deadline => {}
        }
        self.settle();
    }

    /// A message has arrived: it is taken, and its payload is copied.
    fn arrive(&mut self, side: Side, message: Message) {
        let now = self.engine.now();
        self.show(side.other(), &message, None);
        let Arrival { frees_other_at, taken } = self.joint.arrive(now, side, message);
        if let Some(at) = frees_other_at {
            self.at(at, Happens::Free(side.other()));
        }
        if taken.is_err() {
            self.stopped = Some(Stopped::Violation);
        }
        while let Some(progress) = self.joint.host.poll_progress() {
            self.host.progress(now, progress, &self.drive);
        }
        while let Some(progress) = self.joint.device.poll_progress() {
            self.drive.progress(progress, &self.host);
        }
    }

    /// Carries what both machines want, until they want nothing; then sees who may send, and when to wake up.
    fn settle(&mut self) {
        loop {
            if let Some(output) = self.host.transport.poll_output() {
                self.carry_out(output);
            } else if let Some(output) = self.drive.device.poll_output() {
                self.carry_out_of_device(output);
            } else {
                break;
            }
        }
        for side in [Side::Host, Side::Device] {
            if self.joint.wakes(side) {
                self.send(side);
            }
        }
        if std::mem::take(&mut self.host.has_news) {
            let deadline = self.host.transport.poll_timeout().map(|deadline| deadline.at);
            if let Some(at) = self.alarm.set(deadline) {
                self.at(at, Happens::Deadline);
            }
        }
    }

    fn carry_out(&mut self, output: Output) {
        match output {
            Output::Submit(transfer) => self.host.offer(self.engine.now(), &mut self.joint.host, transfer),
            Output::Cancel(_) => self.stopped = Some(Stopped::NotModelled("a cancelled transfer")),
            Output::Request(id, request) => {
                let answer = self.ask(request);
                self.host.has_news = true;
                self.host.transport.handle_answer(self.engine.now(), id, answer);
            }
            Output::Finished(id, outcome) => {
                self.engine.note("driver", format_args!("{id} ends"));
                self.host.finish(self.engine.now(), id, outcome);
            }
        }
    }

    fn carry_out_of_device(&mut self, output: target::Output) {
        use target::Output as Out;
        match output {
            Out::Transfer(transfer) => {
                let now = self.engine.now();
                self.host.observers.tell(|observer| observer.offered(now, &transfer));
                let expected = self.joint.host.expects(transfer.pipe);
                self.drive.offer(&mut self.joint.device, transfer, expected);
            }
            Out::Finish(pipe) => self.finish(pipe),
            Out::FinishBoth(data_in, data_out) => {
                self.finish(data_in);
                self.finish(data_out);
            }
            Out::Acquire(id, bytes) => self.drive.acquire(id, bytes),
            Out::Release(id) => self.drive.release(id),
            Out::Medium(request) => {
                let now = self.engine.now();
                let done_at = self.drive.plain.take(now, request);
                self.host.observers.tell(|observer| observer.asked(now, &request, done_at));
                let (blocks, lba, span) = (request.extent.blocks.0, request.extent.lba.0, done_at - now);
                self.engine.note("drive", format_args!("{blocks} blocks from {lba} on, done in {span}"));
                self.at(done_at, Happens::Stored);
            }
            Out::Cancel(_) => {
                self.stopped = Some(Stopped::NotModelled("a transfer that the device takes back"))
            }
            Out::Halt(_) | Out::ClearHalt(_) => {
                self.stopped = Some(Stopped::NotModelled("a halted endpoint"))
            }
        }
    }

    /// Ends what the host still has on a pipe: In with an empty packet.
    fn finish(&mut self, pipe: Pipe) {
        match (self.joint.host.expects(pipe), pipe.endpoint.direction()) {
            (None, _) => {}
            (Some(_), Direction::In) => drive::end(&mut self.joint.device, pipe),
            (Some(_), Direction::Out) => {
                self.stopped = Some(Stopped::NotModelled("data that the device does not want"));
            }
        }
    }

    /// Answers a control transfer at once.
    fn ask(&mut self, request: BusRequest) -> BusAnswer {
        match (request, request.setup()) {
            (_, Some(setup)) => match self.drive.device.handle_control(setup, &[]) {
                Verdict::Done => BusAnswer::Done,
                _ => BusAnswer::Stalled,
            },
            (BusRequest::AllocateStreams { wanted, .. }, None) => match self.drive.device.transport() {
                ActiveTransport::Uas { streams: true } => {
                    BusAnswer::Streams(wanted.min(self.drive.device.config().streams))
                }
                _ => BusAnswer::Failed,
            },
            (_, None) => {
                self.stopped = Some(Stopped::NotModelled("a port reset"));
                BusAnswer::Failed
            }
        }
    }

    /// Sends the next message of a side whose lane is free.
    fn send(&mut self, side: Side) {
        let Some((message, crossing)) = self.joint.send(self.engine.now(), side) else { return };
        let component = match side {
            Side::Host => "host",
            Side::Device => "device",
        };
        self.engine.note(component, format_args!("{message}"));
        self.show(side, &message, Some(&crossing));
        self.at(crossing.ends, Happens::Free(side));
        self.at(crossing.arrives, Happens::Arrives(side.other(), message));
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

    fn at(&mut self, at: Instant, event: Happens) {
        if let Err(QueueFull) = self.engine.at(at, event) {
            self.stopped = Some(Stopped::QueueFull);
        }
    }
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotModelled(what) => write!(f, "{what} is not modelled yet"),
            Self::Violation => {
                f.write_str("one end sent what it could not have sent, which is a fault of the model")
            }
            Self::QueueFull => QueueFull.fmt(f),
        }
    }
}

impl std::error::Error for Stopped {}

#[cfg(test)]
mod tests;
