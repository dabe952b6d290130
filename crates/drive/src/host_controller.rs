//! A USB host controller with drives at its root ports: registers and guest memory on one side,
//! media on the other.
//!
//! [`HostController`] joins an [`xhci_controller::Controller`] with a [`Drive`] for each port. It
//! has no clock: every call names the present time, and what the controller does takes no time. A
//! transfer moves as a whole when both sides have it, so an endpoint that is stopped is quiet at
//! once, and what has moved by then is reported as partial.
//!
//! ```text
//!   driver ── registers ──► Controller ── transfers ──► Drive ── requests ──► Medium
//!      └── guest memory ◄──── payload ───────┘
//! ```
//!
//! Always true: a transfer of a drive is reported to the controller once; payload that the host
//! sends is limited ([`PAYLOAD_BYTES_MAX`]). Left out: hubs, and devices other than drives.

use crate::drive::{Body, Drive, HostCompletion, HostTransfer};
use crate::medium::Medium;
use bus::link::{End, PacketPayload, Progress, Transfer};
use bus::{Direction, EndpointAddress, Pipe, Speed, TransferId, TransferStatus};
use device::{ActiveTransport, Verdict};
use std::collections::VecDeque;
use units::Instant;
use xhci_controller::{
    ControlAnswer, ControlRequest, Controller, DevicePath, GuestMemory, LinkAct, Model, Output,
};

/// Payload of OUT transfers that a drive may hold; further transfers wait in guest memory.
pub const PAYLOAD_BYTES_MAX: usize = 32 << 20;

/// The largest transfer. A larger one ends with a transaction error: no driver of a drive makes
/// one.
pub const TRANSFER_BYTES_MAX: u32 = 16 << 20;

/// OUT transfers up to this length do not wait for room: commands must reach a drive that holds
/// much payload.
const MESSAGE_BYTES_MAX: u32 = 1024;

/// Rounds of the controller and its drives in one call. One round does all that is due; the limit
/// is for a driver that always adds more.
const ROUNDS_MAX: u32 = 10_000;

/// A controller and the drives at its ports. Media are of any kind, unless the type says which kind
/// `M` all are.
#[derive(Debug)]
pub struct HostController<M: ?Sized = dyn Medium + Send> {
    controller: Controller,
    /// By root port, less one.
    ports: Vec<Option<RootPort<M>>>,
    has_interrupt: bool,
}

/// A drive at a root port.
#[derive(Debug)]
struct RootPort<M: ?Sized> {
    drive: Drive<M>,
    /// OUT transfers that wait for room, in order.
    waiting: VecDeque<Queued>,
    /// The transport of the last transfer: a driver that enumerates passes by settings that it has no use for.
    used: ActiveTransport,
}

/// A transfer that the controller has queued on a pipe.
#[derive(Clone, Copy, Debug)]
struct Queued {
    pipe: Pipe,
    transfer: Transfer,
}

/// Why a drive cannot be attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAttached {
    /// No root port of the drive's speed is free.
    NoPort,
}

impl<M: Medium + ?Sized> HostController<M> {
    /// Creates a controller with empty ports.
    pub fn new(model: Model) -> Self {
        let ports = (0..model.ports()).map(|_| None).collect();
        Self { controller: Controller::new(model), ports, has_interrupt: false }
    }

    /// Attaches a drive to the first free root port of its speed. Returns the port, from 1.
    ///
    /// # Errors
    /// [`NotAttached`] with the drive.
    pub fn attach(&mut self, now: Instant, drive: Drive<M>) -> Result<u8, (NotAttached, Box<Drive<M>>)> {
        let speed = drive.device().config().speed;
        let model = *self.controller.model();
        let is_right = |port: &u8| model.is_usb3(*port) == (speed == Speed::Super);
        let is_free = |port: &u8| self.ports[usize::from(*port) - 1].is_none();
        let Some(port) = (1..=model.ports()).filter(is_right).find(is_free) else {
            return Err((NotAttached::NoPort, Box::new(drive)));
        };
        self.ports[usize::from(port) - 1] =
            Some(RootPort { drive, waiting: VecDeque::new(), used: ActiveTransport::None });
        self.controller.plug(now, port, speed_id(speed));
        Ok(port)
    }

    /// Detaches the drive at a root port and returns it.
    pub fn detach(&mut self, now: Instant, port: u8) -> Option<Drive<M>> {
        let place = self.ports.get_mut(usize::from(port).checked_sub(1)?)?;
        let RootPort { mut drive, .. } = place.take()?;
        drive.nexus_loss();
        self.controller.unplug(now, port);
        Some(drive)
    }

    /// Resets everything, as after power-on: the controller forgets its driver, drives stay at their ports and are detected
    /// again. Planned faults stay.
    pub fn reset(&mut self, now: Instant) {
        self.controller.power_cycle();
        self.has_interrupt = false;
        for (number, port) in (1..).zip(&mut self.ports) {
            let Some(port) = port else { continue };
            port.waiting.clear();
            port.used = ActiveTransport::None;
            port.drive.nexus_loss();
            // What was outstanding has completed; no driver waits for it.
            while port.drive.poll_with(|_| {}) {}
            self.controller.plug(now, number, speed_id(port.drive.device().config().speed));
        }
    }

    /// Returns the drive at a root port.
    pub fn drive_mut(&mut self, port: u8) -> Option<&mut Drive<M>> {
        let place = self.ports.get_mut(usize::from(port).checked_sub(1)?)?;
        place.as_mut().map(|port| &mut port.drive)
    }

    /// Returns the drives and their root ports.
    pub fn drives(&self) -> impl Iterator<Item = (u8, &Drive<M>)> {
        (1..).zip(&self.ports).filter_map(|(number, port)| Some((number, &port.as_ref()?.drive)))
    }

    /// Returns the transport that the driver of the drive at a root port uses.
    pub fn transport(&self, port: u8) -> ActiveTransport {
        let place = usize::from(port).checked_sub(1).and_then(|place| self.ports.get(place)?.as_ref());
        place.map_or(ActiveTransport::None, |port| port.used)
    }

    /// Returns the controller.
    pub const fn controller(&self) -> &Controller {
        &self.controller
    }

    /// Returns the controller, to inject faults.
    pub const fn controller_mut(&mut self) -> &mut Controller {
        &mut self.controller
    }

    /// Reads a register.
    pub fn read_register(&mut self, now: Instant, offset: u32) -> u32 {
        self.controller.read_register(now, offset)
    }

    /// Writes a register. [`Self::run`] does what follows from it.
    pub fn write_register(&mut self, now: Instant, memory: &mut impl GuestMemory, offset: u32, value: u32) {
        self.controller.write_register(now, memory, offset, value);
    }

    /// Returns when [`Self::run`] has something to do, without anything from outside.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.controller.poll_timeout()
    }

    /// Returns whether the controller has interrupted the driver since the last call.
    pub const fn take_interrupt(&mut self) -> bool {
        let has_interrupt = self.has_interrupt;
        self.has_interrupt = false;
        has_interrupt
    }

    /// Does all that is due: deadlines, transfers, requests of media that have completed.
    pub fn run(&mut self, now: Instant, memory: &mut impl GuestMemory) {
        for _ in 0..ROUNDS_MAX {
            if self.controller.poll_timeout().is_some_and(|at| at <= now) {
                self.controller.handle_timeout(now, memory);
            }
            let mut has_acted = self.carry_out_all(now, memory);
            for place in 0..self.ports.len() {
                has_acted |= self.serve_drive(now, memory, place);
            }
            let is_due = self.controller.poll_timeout().is_some_and(|at| at <= now);
            if !has_acted && !is_due {
                break;
            }
        }
        // A driver may look at the event ring without an interrupt and without reading a register.
        self.controller.show_events(now, memory);
    }

    fn carry_out_all(&mut self, now: Instant, memory: &mut impl GuestMemory) -> bool {
        let mut has_acted = false;
        while let Some(output) = self.controller.poll_output() {
            has_acted = true;
            match output {
                Output::Interrupt => self.has_interrupt = true,
                Output::Link(path, act) => self.act_on_link(now, memory, path, act),
                Output::Control(path, request) => self.control(now, memory, path, &request),
                Output::PortReset(port) => self.at_port(port, |port| {
                    port.waiting.clear();
                    port.drive.bus_reset();
                }),
                Output::PortDown(port) => self.at_port(port, |port| {
                    port.waiting.clear();
                    port.drive.nexus_loss();
                }),
                // Links do not sleep.
                Output::PortUp(_) | Output::PortPower(..) => {}
            }
        }
        has_acted
    }

    fn at_port(&mut self, port: u8, act: impl FnOnce(&mut RootPort<M>)) {
        let place = usize::from(port).checked_sub(1).and_then(|place| self.ports.get_mut(place));
        if let Some(Some(port)) = place {
            act(port);
        }
    }

    /// Returns the place of the drive at the end of a path: there are no hubs.
    fn place(&self, path: DevicePath) -> Option<usize> {
        let place = usize::from(path.port).checked_sub(1).filter(|_| path.route.tiers() == 0)?;
        self.ports.get(place)?.is_some().then_some(place)
    }

    fn control(
        &mut self,
        now: Instant,
        memory: &mut impl GuestMemory,
        path: DevicePath,
        request: &ControlRequest,
    ) {
        let answer = match self.place(path).and_then(|place| self.ports[place].as_mut()) {
            None => ControlAnswer::Silent,
            Some(port) => match port.drive.control(request.setup, &request.data_out) {
                Verdict::Done => ControlAnswer::Done(Vec::new()),
                Verdict::Data(bytes) => ControlAnswer::Done(bytes),
                Verdict::Stall => ControlAnswer::Stalled,
            },
        };
        self.controller.handle_control(now, memory, request.id, &answer);
    }

    fn act_on_link(&mut self, now: Instant, memory: &mut impl GuestMemory, path: DevicePath, act: LinkAct) {
        let Some(place) = self.place(path) else { return self.act_without_drive(now, memory, path, act) };
        match act {
            LinkAct::Queue(pipe, transfer) => self.queue(now, memory, place, Queued { pipe, transfer }),
            LinkAct::Stop(address) => {
                self.cancel_at(place, address);
                self.report_all(now, memory, place, |_| true);
                self.controller.handle_quiet(now, memory, path, address);
            }
            LinkAct::Remove(address) | LinkAct::Clear(address) => {
                self.cancel_at(place, address);
                self.report_all(now, memory, place, |_| true);
            }
            // An endpoint of a drive keeps no packets, so a host has nothing to install or retry.
            LinkAct::Install(_) | LinkAct::Reset(_) | LinkAct::Retry(_) | LinkAct::Resume(_) => {}
        }
    }

    /// No drive answers any more: a transfer fails, and an endpoint is quiet at once.
    fn act_without_drive(
        &mut self,
        now: Instant,
        memory: &mut impl GuestMemory,
        path: DevicePath,
        act: LinkAct,
    ) {
        match act {
            LinkAct::Queue(_, transfer) => self.fail(now, memory, transfer.id),
            LinkAct::Stop(address) => self.controller.handle_quiet(now, memory, path, address),
            _ => {}
        }
    }

    fn cancel_at(&mut self, place: usize, address: EndpointAddress) {
        if let Some(port) = &mut self.ports[place] {
            port.waiting.retain(|queued| queued.pipe.endpoint != address);
            port.drive.cancel_at(address);
        }
    }

    /// Gives a drive a transfer, or has it wait for room.
    fn queue(&mut self, now: Instant, memory: &mut impl GuestMemory, place: usize, queued: Queued) {
        let Some(port) = &mut self.ports[place] else { return };
        let Queued { pipe, transfer } = queued;
        if transfer.bytes > TRANSFER_BYTES_MAX {
            return self.fail(now, memory, transfer.id);
        }
        let is_out = pipe.endpoint.direction() == Direction::Out;
        let has_room = transfer.bytes <= MESSAGE_BYTES_MAX || port.has_room(transfer.bytes);
        let is_behind = port.waiting.iter().any(|other| other.pipe == pipe);
        if is_out && (!has_room || is_behind) {
            port.waiting.push_back(queued);
        } else {
            self.submit(now, memory, place, queued);
        }
    }

    fn submit(&mut self, now: Instant, memory: &mut impl GuestMemory, place: usize, queued: Queued) {
        let Some(port) = &mut self.ports[place] else { return };
        let Queued { pipe, transfer } = queued;
        let mut payload = Vec::new();
        if pipe.endpoint.direction() == Direction::Out && transfer.bytes > 0 {
            let bytes = transfer.bytes as usize;
            payload = port.drive.pool().take(bytes);
            if self.controller.read_transfer(memory, transfer.id, &mut payload[..bytes]).is_err() {
                port.drive.pool().put(payload);
                return self.controller.break_down();
            }
        }
        port.used = port.drive.device().transport();
        let host_transfer = HostTransfer { id: transfer.id.0, pipe, length: transfer.bytes, payload };
        if port.drive.submit(host_transfer).is_err() {
            self.fail(now, memory, transfer.id);
        }
    }

    fn fail(&mut self, now: Instant, memory: &mut impl GuestMemory, id: TransferId) {
        let progress = Progress { id, moved: 0, ended: Some(End::Failed), piece: None };
        self.controller.handle_progress(now, memory, &progress, &[]);
    }

    /// Lets a drive work, and reports what has completed. Returns whether anything has.
    fn serve_drive(&mut self, now: Instant, memory: &mut impl GuestMemory, place: usize) -> bool {
        let Some(port) = &mut self.ports[place] else { return false };
        port.drive.run_once();
        // Without room the completion waits in the drive, until the driver has taken events.
        let mut has_acted = self.report_all(now, memory, place, Controller::has_event_room);
        while let Some(queued) = self.ports[place].as_mut().and_then(RootPort::next_with_room) {
            has_acted = true;
            self.submit(now, memory, place, queued);
        }
        has_acted
    }

    /// Reports what has completed while `may_report`. Returns whether anything was reported.
    fn report_all(
        &mut self,
        now: Instant,
        memory: &mut impl GuestMemory,
        place: usize,
        may_report: impl Fn(&Controller) -> bool,
    ) -> bool {
        let Self { controller, ports, .. } = self;
        let Some(port) = &mut ports[place] else { return false };
        let mut has_reported = false;
        while may_report(controller)
            && port.drive.poll_with(|completion| report(controller, now, memory, completion))
        {
            has_reported = true;
        }
        has_reported
    }
}

impl<M: Medium + ?Sized> RootPort<M> {
    fn has_room(&self, bytes: u32) -> bool {
        self.drive.payload_bytes() + bytes as usize <= PAYLOAD_BYTES_MAX
    }

    /// Returns the first transfer that waits, if there is room for it now.
    fn next_with_room(&mut self) -> Option<Queued> {
        let first = self.waiting.front()?;
        if self.has_room(first.transfer.bytes) { self.waiting.pop_front() } else { None }
    }
}

/// Reports a completed transfer, with its payload, to the controller.
fn report(
    controller: &mut Controller,
    now: Instant,
    memory: &mut impl GuestMemory,
    completion: &HostCompletion,
) {
    let id = TransferId(completion.id);
    let ended = match completion.status {
        TransferStatus::Done => Some(End::Full),
        TransferStatus::Short => Some(End::Short),
        TransferStatus::Stall => Some(End::Stalled),
        TransferStatus::Babble => Some(End::Overflow),
        // The endpoint is being stopped: what has moved is reported, and its TD continues there.
        TransferStatus::Cancelled if completion.actual > 0 => None,
        TransferStatus::Cancelled => Some(End::Withdrawn),
        TransferStatus::Disconnected | TransferStatus::Error => Some(End::Failed),
    };
    let bytes: &[u8] = match &completion.body {
        Body::Empty => &[],
        Body::Inline(bytes) => bytes.as_bytes(),
        Body::Buffer(bytes) => bytes,
    };
    let bytes = bytes.get(..completion.actual as usize).unwrap_or(bytes);
    let is_in = completion.pipe.endpoint.direction() == Direction::In;
    let piece = is_in.then_some(PacketPayload { transfer: id, offset: 0, bytes: 0 });
    let progress = Progress { id, moved: completion.actual, ended, piece };
    controller.handle_progress(now, memory, &progress, bytes);
}

/// Returns the id of a speed in a port's status (xHCI 1.2 clause 7.2.2.1.1).
const fn speed_id(speed: Speed) -> u8 {
    match speed {
        Speed::Full => 1,
        Speed::High => 3,
        Speed::Super => 4,
    }
}
