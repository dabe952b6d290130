//! One host, one link, one drive, with all that is between them: transport, driver, controller, packets, device.
//!
//! A [`Driven`] world is powered on ([`Driven::power_on`]): the driver takes the controller over, and everything that the
//! device is told is told by packets. What the transport wants becomes TRBs in memory, which the controller carries out on
//! the link. Beside the times of the link and the drive there are those of the controller's [`Part`](crate::xhci::Part);
//! driver and transport still take none.
//!
//! Always true: driver and controller share memory and registers, and nothing else.

mod computer;
mod errand;
mod link_act;
mod power_on;

pub use ::xhci::Config as DriverConfig;
pub use power_on::{Host, Nobody, PowerOnError};

use super::drive::DriveSide;
use super::observer::Observer;
use super::plain::Plain;
use super::trouble::Trouble;
use super::{Commanded, Finished, Stopped, plug};
use crate::engine::{Alarm, Engine, Event, QueueFull, Trace};
use crate::link::bulk::{DevicePort, HostPort, Message, Piece};
use crate::link::control::{CONTROL_DATA, ControlAnswer, ControlEvent};
use crate::link::superspeed::{Link, Rate, Side, Sleep, TurnRound};
use crate::link::{Arrival, Crossing, Joint};
use crate::world::Exchange;
use crate::xhci::{self as model, ControlRequest};
use bus::{EndpointAddress, Pipe, TransferId};
use computer::Computer;
use initiator::{Command, CommandId, Output, Refusal, Transport};
use std::collections::VecDeque;
use target::{Device, Verdict};
use units::{Duration, Instant};
use wire::scsi::opcode::OperationCode;
use wire::usb::{Direction, SetupPacket, StandardRequest};

/// A host and a drive with a controller and a link between them.
#[derive(Debug)]
pub struct Driven<T> {
    engine: Engine<Happens>,
    joint: Joint,
    computer: Computer<T>,
    drive: DriveSide,
    /// Deadlines of the controller, and of driver and transport.
    alarms: [Alarm; 2],
    /// Endpoints that were stopped, and are not quiet yet.
    stopping: Vec<EndpointAddress>,
    /// Empty packets and room that the device has queued to end transfers of the host: pipe, the host's, the device's.
    endings: Vec<(Pipe, TransferId, TransferId)>,
    /// What goes out on the link: transfer, bytes, bytes that the device has taken.
    going_out: Vec<(TransferId, u32, u32)>,
    control: Control,
    /// Whether the drive's port can be talked to.
    is_port_ready: bool,
    scratch: Vec<u8>,
    /// None: faults are not joined with a controller yet.
    trouble: Trouble,
    stopped: Option<Stopped>,
}

/// Control transfers: the first is under way.
#[derive(Debug, Default)]
struct Control {
    requests: VecDeque<ControlRequest>,
    /// What the device answers with, and what has come of it.
    reply: Vec<u8>,
    data_in: Vec<u8>,
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
    /// The controller has something to do.
    Controller,
    /// A deadline of driver or transport.
    Deadline,
}

impl Event for Happens {
    fn mark(&self) -> u64 {
        match self {
            Self::Stored => 0,
            Self::Deadline => 1,
            Self::Free(side) => 2 + *side as u64,
            Self::Controller => 6,
            Self::Arrives(side, message) => 4 + *side as u64 + 2 * u64::from(message.packet().payload()),
        }
    }
}

impl<T: Transport> Driven<T> {
    fn new(rate: Rate, computer: Computer<T>, device: Device, plain: Plain) -> Self {
        // What the host takes from a packet to its answer is the controller's.
        let link = Link::new(rate, Duration::from_ns(5)).between(TurnRound::DEVICE_ONLY);
        let mut joint = Joint::new(link, HostPort::new(&[]), DevicePort::new(&[]));
        // Nothing crosses before the link is trained.
        joint.cut();
        Self {
            engine: Engine::new(),
            joint,
            computer,
            drive: DriveSide::new(device, plain),
            alarms: [Alarm::default(); 2],
            stopping: Vec::new(),
            endings: Vec::new(),
            going_out: Vec::new(),
            control: Control::default(),
            is_port_ready: false,
            scratch: Vec::new(),
            trouble: Trouble::default(),
            stopped: None,
        }
    }

    fn with_transport<U>(self, transport: U) -> Driven<U> {
        Driven {
            engine: self.engine,
            joint: self.joint,
            computer: self.computer.with_transport(transport),
            drive: self.drive,
            alarms: self.alarms,
            stopping: self.stopping,
            endings: self.endings,
            going_out: self.going_out,
            control: self.control,
            is_port_ready: self.is_port_ready,
            scratch: self.scratch,
            trouble: self.trouble,
            stopped: self.stopped,
        }
    }

    /// The controller, with what it counts.
    pub const fn controller(&self) -> &model::Controller {
        &self.computer.controller
    }

    /// The driver, with what it counts.
    pub const fn driver(&self) -> &::xhci::Controller {
        &self.computer.driver
    }

    /// The transport.
    pub const fn transport(&self) -> &T {
        &self.computer.transport
    }

    /// The caller wants a command to end. It still ends once.
    pub fn abort(&mut self, id: CommandId) {
        self.computer.has_news = true;
        self.computer.transport.abort(self.engine.now(), id);
        self.settle();
    }

    /// Pulls the drive out.
    pub fn unplug(&mut self) {
        let now = self.engine.now();
        self.computer.controller.unplug(now, errand::PORT);
        self.settle();
    }

    /// Lets the link sleep when nothing crosses.
    pub fn let_sleep(&mut self, sleep: Sleep) {
        self.joint.let_sleep(sleep);
    }

    const fn is_stopped(&self) -> bool {
        self.stopped.is_some()
    }

    /// Lets the next thing happen, if there is one.
    fn step(&mut self) -> bool {
        let event = self.engine.next();
        event.map(|event| self.handle(event)).is_some()
    }

    fn handle(&mut self, event: Happens) {
        let now = self.engine.now();
        match event {
            Happens::Free(side) => return self.send(side),
            Happens::Arrives(side, message) => self.arrive(side, message),
            Happens::Stored => {
                self.drive.store(now, &mut self.trouble);
                self.joint.work(now, self.drive.plain.is_busy());
            }
            Happens::Controller => {
                if !self.alarms[0].ring(now) {
                    return;
                }
                self.computer.controller.handle_timeout(now, &mut self.computer.memory);
            }
            Happens::Deadline => {
                if !self.alarms[1].ring(now) {
                    return;
                }
                self.computer.drive(now, |driver, hands| driver.handle_timeout(hands, now));
                if self.computer.transport.poll_timeout().is_some_and(|deadline| deadline.at <= now) {
                    self.computer.transport.handle_timeout(now);
                }
            }
        }
        self.settle();
    }

    /// A message has arrived: it is taken, and its payload is copied.
    fn arrive(&mut self, side: Side, message: Message) {
        let now = self.engine.now();
        self.show(side.other(), &message, None);
        let Arrival { frees_other_at, taken, .. } = self.joint.arrive(now, side, message);
        if let Some(at) = frees_other_at {
            self.at(at, Happens::Free(side.other()));
        }
        if taken.is_err() {
            self.stopped = Some(Stopped::Violation);
        }
        match side {
            Side::Host => self.tell_controller(),
            Side::Device => self.tell_drive(),
        }
        if message.endpoint().number() == 0 {
            self.look_after_endpoint_0();
        }
        if !self.stopping.is_empty() {
            self.look_after_stops();
        }
    }

    /// Tells the controller what of its transfers has moved or ended.
    fn tell_controller(&mut self) {
        let now = self.engine.now();
        while let Some(progress) = self.joint.host.poll_progress() {
            let bytes = progress.piece.map_or(&[][..], |piece| self.drive.bytes(piece));
            let Computer { controller, memory, .. } = &mut self.computer;
            controller.handle_progress(now, memory, &progress, bytes);
            if progress.ended.is_some() {
                self.going_out.retain(|(id, ..)| *id != progress.id);
                self.endings.retain(|(_, host, _)| *host != progress.id);
            }
        }
        // The controller knows of a halt by the end of a transfer.
        while self.joint.host.poll_halt().is_some() {}
    }

    /// Tells the drive what of its transfers has moved or ended.
    fn tell_drive(&mut self) {
        while let Some(progress) = self.joint.device.poll_progress() {
            let Computer { controller, memory, .. } = &self.computer;
            let bytes = match progress.piece {
                None => &[][..],
                Some(piece) => {
                    let out = self.going_out.iter_mut().find(|(id, ..)| *id == piece.transfer);
                    if let Some((.., taken)) = out {
                        *taken = piece.offset + u32::from(piece.bytes);
                    }
                    controller.bytes(memory, piece, &mut self.scratch)
                }
            };
            self.drive.progress(progress, bytes);
        }
    }

    /// Carries what all machines want, until they want nothing; then sees who may send, and when to wake up.
    fn settle(&mut self) {
        let now = self.engine.now();
        loop {
            if let Some(output) = self.computer.transport.poll_output() {
                self.carry_out(now, output);
            } else if let Some(output) = self.computer.driver.poll_output() {
                self.carry_out_of_driver(now, output);
            } else if let Some(output) = self.computer.controller.poll_output() {
                self.carry_out_of_controller(now, output);
            } else if let Some(output) = self.drive.device.poll_output() {
                self.carry_out_of_device(now, output);
            } else {
                break;
            }
        }
        for side in [Side::Host, Side::Device] {
            if self.joint.wakes(side) {
                self.send(side);
            }
        }
        let due = self.computer.controller.poll_timeout();
        if let Some(at) = self.alarms[0].set(due) {
            self.at(at, Happens::Controller);
        }
        if std::mem::take(&mut self.computer.has_news) {
            let driver = self.computer.driver.poll_timeout().map(|deadline| deadline.at);
            let transport = self.computer.transport.poll_timeout().map(|deadline| deadline.at);
            if let Some(at) = self.alarms[1].set(driver.into_iter().chain(transport).min()) {
                self.at(at, Happens::Deadline);
            }
        }
    }

    fn carry_out(&mut self, now: Instant, output: Output) {
        match output {
            Output::Submit(transfer) => self.computer.offer(now, transfer),
            Output::Cancel(id) => self.computer.cancel(now, id),
            Output::Request(id, request) => self.computer.request(now, id, request),
            Output::Finished(id, outcome) => {
                self.engine.note("driver", format_args!("{id} ends"));
                self.computer.finish(now, id, outcome);
            }
        }
    }

    fn carry_out_of_driver(&mut self, now: Instant, output: ::xhci::Output) {
        use ::xhci::Output as Out;
        self.computer.has_news = true;
        match output {
            Out::Completed(_, done) => {
                if !self.computer.control_ended(now, done.id, (done.status, done.actual)) {
                    self.computer.complete(now, done);
                }
            }
            Out::Answered(_, answer) => self.computer.answered(now, answer),
            Out::PortChanged { port: errand::PORT, status } => {
                self.is_port_ready = status.is_connected() && status.is_enabled();
            }
            Out::Gone(_) | Out::Died(_) => {
                self.computer.device = None;
                self.computer.transport.handle_disconnect(now);
            }
            Out::Running | Out::PortChanged { .. } => {}
        }
    }

    fn carry_out_of_device(&mut self, now: Instant, output: target::Output) {
        use target::Output as Out;
        match output {
            Out::Transfer(transfer) => {
                self.computer.observers.tell(|observer| observer.offered(now, &transfer));
                let (pipe, expected) = (transfer.pipe, self.joint.host.expects(transfer.pipe));
                let ending = self.drive.offer(&mut self.joint.device, transfer, expected);
                if let Some((ending, host)) = ending.zip(self.joint.host.transfers(pipe).next()) {
                    self.endings.push((pipe, host, ending));
                }
            }
            Out::Finish(pipe) => self.finish(pipe),
            Out::FinishBoth(data_in, data_out) => {
                self.finish(data_in);
                self.finish(data_out);
            }
            Out::Acquire(id, bytes) => self.drive.acquire(id, bytes),
            Out::Release(id) => self.drive.release(id),
            Out::Medium(request) => {
                let done_at = self.drive.plain.take(now, request, &mut self.trouble.faults);
                self.joint.work(now, true);
                self.computer.observers.tell(|observer| observer.asked(now, &request, done_at));
                let (blocks, lba, span) = (request.extent.blocks.0, request.extent.lba.0, done_at - now);
                self.engine.note("drive", format_args!("{blocks} blocks from {lba} on, done in {span}"));
                self.at(done_at, Happens::Stored);
            }
            Out::Cancel(id) => {
                self.drive.cancel(&mut self.joint.device, id);
                self.tell_drive();
            }
            Out::Halt(endpoint) => self.joint.device.halt(endpoint),
            Out::ClearHalt(endpoint) => {
                self.joint.device.clear_halt(endpoint);
                self.tell_drive();
            }
        }
    }

    /// The device ends what the host has on a pipe: In with an empty packet, Out with room for all that comes.
    fn finish(&mut self, pipe: Pipe) {
        let hosts: Vec<_> = self.joint.host.transfers(pipe).collect();
        for host in hosts {
            if self.endings.iter().any(|(_, ended, _)| *ended == host) {
                continue;
            }
            let rest = match pipe.endpoint.direction() {
                Direction::In => Some(0),
                Direction::Out => {
                    let out = self.going_out.iter().find(|(id, ..)| *id == host);
                    // It may have all, and the host does not know yet.
                    out.map(|(_, bytes, taken)| bytes - taken).filter(|rest| *rest > 0)
                }
            };
            if let Some(rest) = rest {
                let ending = self.drive.end(&mut self.joint.device, pipe, rest);
                self.endings.push((pipe, host, ending));
            }
        }
    }

    /// Packets of endpoint 0 have come.
    fn look_after_endpoint_0(&mut self) {
        while let Some(event) = self.joint.device.poll_control() {
            if let ControlEvent::Asked(setup) = event {
                self.ask_device(setup);
            }
        }
        let now = self.engine.now();
        while let Some(progress) = self.joint.host.poll_control() {
            if let Some(piece) = progress.piece {
                let (at, len) = (piece.offset as usize, usize::from(piece.bytes));
                self.control.data_in.extend_from_slice(self.control.reply.get(at..at + len).unwrap_or(&[]));
            }
            let Some(end) = progress.ended else { continue };
            let answer = match end {
                crate::link::control::ControlEnd::Done => {
                    model::ControlAnswer::Done(std::mem::take(&mut self.control.data_in))
                }
                _ => model::ControlAnswer::Stalled,
            };
            if let Some(request) = self.control.requests.pop_front() {
                let Computer { controller, memory, .. } = &mut self.computer;
                controller.handle_control(now, memory, (request.slot, request.number), &answer);
            }
            self.begin_control();
        }
    }

    /// Begins the oldest control transfer, if none is under way.
    fn begin_control(&mut self) {
        let Some(request) = self.control.requests.front() else { return };
        let transfer = crate::link::control::ControlTransfer { id: TransferId(0), setup: request.setup };
        if self.joint.host.control(transfer).is_ok() {
            self.control.data_in.clear();
        }
    }

    /// A request has come to the device.
    fn ask_device(&mut self, setup: SetupPacket) {
        let now = self.engine.now();
        let data_out = self.control.requests.front().map_or(&[][..], |request| &request.data_out);
        let verdict = self.drive.device.handle_control(setup, data_out);
        let exchange = Exchange { setup, answer: verdict.clone() };
        self.computer.observers.tell(|observer| observer.control(now, &exchange));
        let sets_up = matches!(
            setup.standard(),
            Some(StandardRequest::SetInterface | StandardRequest::SetConfiguration)
        );
        if verdict == Verdict::Done && sets_up {
            let endpoints = plug::endpoints_of(&self.drive.device);
            self.joint.configure(Side::Device, &endpoints);
        }
        if verdict == Verdict::Done {
            self.joint.heed(now, setup);
        }
        let answer = match verdict {
            Verdict::Done => ControlAnswer::Done(0),
            Verdict::Data(bytes) => {
                self.control.reply = bytes;
                ControlAnswer::Done(u16::try_from(self.control.reply.len()).unwrap_or(u16::MAX))
            }
            Verdict::Stall => ControlAnswer::Stall,
        };
        self.joint.device.answer(setup, answer);
    }

    /// Sends the next message of a side whose lane is free.
    fn send(&mut self, side: Side) {
        let now = self.engine.now();
        let controller = &mut self.computer.controller;
        let sent = match side {
            Side::Host => self.joint.send_paced(now, side, |message| controller.pace(now, message)),
            Side::Device => self.joint.send(now, side),
        };
        let Some((message, crossing)) = sent else { return };
        let component = match side {
            Side::Host => "host",
            Side::Device => "device",
        };
        self.engine.note(component, format_args!("{message}"));
        self.show(side, &message, Some(&crossing));
        self.at(crossing.ends, Happens::Free(side));
        self.at(crossing.heard, Happens::Arrives(side.other(), message));
    }

    /// Shows a packet of a side to who looks on: when it is sent, with its crossing, and when it arrives.
    fn show(&mut self, from: Side, message: &Message, crossing: Option<&Crossing>) {
        if self.computer.observers.is_empty() {
            return;
        }
        let mut observers = std::mem::take(&mut self.computer.observers);
        let mut scratch = std::mem::take(&mut self.scratch);
        let bytes = match (message.piece(), from) {
            (None, _) => &[][..],
            (Some(piece), _) if piece.transfer == CONTROL_DATA => self.control_bytes(piece, from),
            (Some(piece), Side::Host) => {
                self.computer.controller.bytes(&self.computer.memory, piece, &mut scratch)
            }
            (Some(piece), Side::Device) => self.drive.bytes(piece),
        };
        let now = self.engine.now();
        observers.tell(|observer| match crossing {
            Some(crossing) => observer.sent(from, message, crossing, bytes),
            None => observer.arrived(now, from.other(), message, bytes),
        });
        (self.computer.observers, self.scratch) = (observers, scratch);
    }

    fn control_bytes(&self, piece: Piece, from: Side) -> &[u8] {
        let all = match from {
            Side::Host => self.control.requests.front().map_or(&[][..], |request| &request.data_out),
            Side::Device => &self.control.reply,
        };
        let at = piece.offset as usize;
        all.get(at..at + usize::from(piece.bytes)).unwrap_or(&[])
    }

    fn at(&mut self, at: Instant, event: Happens) {
        if let Err(QueueFull) = self.engine.at(at, event) {
            self.stopped = Some(Stopped::QueueFull);
        }
    }
}

impl<T: Transport> Commanded for Driven<T> {
    fn now(&self) -> Instant {
        self.engine.now()
    }

    fn happened(&self) -> u64 {
        self.engine.happened()
    }

    fn digest(&self) -> u64 {
        self.engine.digest()
    }

    fn link(&self) -> Option<&Link> {
        self.joint.link()
    }

    fn depth(&self) -> usize {
        self.computer.transport.depth()
    }

    fn trace_to(&mut self, trace: Box<dyn Trace>) {
        self.engine.trace_to(trace);
    }

    fn take_trace(&mut self) -> Option<Box<dyn Trace>> {
        self.engine.take_trace()
    }

    fn observe(&mut self, observer: Box<dyn Observer>) {
        self.computer.observers.add(observer);
    }

    fn submit(&mut self, command: &Command, buffer: Vec<u8>) -> Result<(), Refusal> {
        self.computer.submit(self.engine.now(), command, buffer)?;
        let operation = command.cdb.as_bytes().first().copied().map(OperationCode::from);
        if let (id, Some(operation)) = (command.id, operation) {
            let bytes = command.transfer_len();
            self.engine.note("driver", format_args!("{id} begins: {operation}, {bytes} bytes"));
        }
        self.settle();
        Ok(())
    }

    fn run(&mut self) -> Result<Option<Finished>, Stopped> {
        loop {
            if let Some(stopped) = self.stopped {
                return Err(stopped);
            }
            if let Some(finished) = self.computer.finished.pop_front() {
                return Ok(Some(finished));
            }
            if !self.step() {
                return Ok(None);
            }
        }
    }
}

#[cfg(test)]
mod tests;
