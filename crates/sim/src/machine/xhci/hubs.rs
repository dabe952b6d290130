//! Hubs: the hub device, its status change report and the host's hub driver.
//!
//! Outputs of a hub driver are control sequences of the hub's `HostDevice`, and transfers of its
//! status change endpoint. Port actions of the hub take links of the tree up and down. An arriving
//! device is recorded, and enumerated by the caller that waits for it; a leaving one is detached at
//! once.
//!
//! Left out: CPU time of the hub driver. Invariant: no device behind a hub is addressed before the
//! hub driver has reported its location.

use super::control_sequence::{HubAction, SequenceStep, StepResult};
use super::root_port::Wires;
use super::{MachineEvent, PowerOnError, XhciMachine};
use crate::engine::Alarm;
use crate::hub::{HubDevice, HubEffect, STATUS_CHANGE};
use crate::link::bulk::{Endpoint, Transfer};
use crate::link::superspeed::Side;
use ::xhci_driver::{Answer, HubLocation, HubOutput, Location};
use bus::{Completion, EndpointAddress, Pipe, TransferId, TransferStatus};
use device::Verdict;
use units::Instant;
use wire::usb::hub::TtBuffer;
use wire::usb::{SetupPacket, StandardRequest};
use xhci_controller::LinkAct;

#[derive(Debug)]
pub(super) struct AttachedHub {
    pub(super) device: HubDevice,
    driver: Option<::xhci_driver::Hub>,
    /// Whether the driver has powered its ports, or has given up.
    state: State,
    /// Address of the report that the driver waits for.
    place: Option<u64>,
    /// Pending report of the status change endpoint.
    report: Option<[u8; 2]>,
    stopping: Vec<EndpointAddress>,
    alarm: Alarm,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    ComingUp,
    Up,
    Failed,
}

/// Id of the driver's transfer for a report, and of the hub's.
const REPORT: TransferId = TransferId(u64::MAX - 1);

impl AttachedHub {
    pub(super) fn new(device: HubDevice) -> Self {
        let (driver, place, report, stopping) = (None, None, None, Vec::new());
        Self { device, driver, state: State::ComingUp, place, report, stopping, alarm: Alarm::default() }
    }
}

impl XhciMachine {
    /// Returns the hub of this number.
    pub(super) fn hub(&mut self, number: usize) -> Option<&mut AttachedHub> {
        self.hubs.get_mut(number.checked_sub(self.drive_specs.len())?)
    }

    /// Returns the hub above a device, and the port there.
    pub(super) fn above(&self, number: usize) -> Option<(usize, u8)> {
        let route = self.devices[number].way.route;
        let port = route.port_after(route.tiers().checked_sub(1)?)?;
        let root = &self.root_ports[self.devices[number].end.root];
        let is_above = |&hub: &usize| self.devices[hub].way.route.via(port) == Some(route);
        root.devices.iter().copied().find(|hub| is_above(hub)).map(|hub| (hub, port))
    }

    /// Returns the device at a hub port.
    fn at_hub_port(&self, hub: usize, port: u8) -> Option<usize> {
        let route = self.devices[hub].way.route.via(port)?;
        let root = &self.root_ports[self.devices[hub].end.root];
        root.devices.iter().copied().find(|&number| self.devices[number].way.route == route)
    }

    /// Starts the driver of an addressed hub, which powers its ports.
    pub(super) fn bring_up_hub(&mut self, number: usize, location: Location) -> Result<(), PowerOnError> {
        let device = self.devices[number].device.ok_or(PowerOnError::Controller)?;
        if let Some(hub) = self.hub(number) {
            hub.driver = Some(::xhci_driver::Hub::new(HubLocation { device, location }));
            hub.state = State::ComingUp;
        }
        self.system.ready.hubs.add(number);
        self.settle();
        let index = number - self.drive_specs.len();
        self.wait_for(|machine| machine.hubs[index].state != State::ComingUp)?;
        match self.hubs[index].state {
            State::Up => Ok(()),
            State::ComingUp | State::Failed => Err(PowerOnError::Refused("what a hub is asked for")),
        }
    }

    /// Executes an output of a hub or its driver. Returns whether there was one.
    pub(super) fn advance_hub(&mut self, now: Instant, number: usize) -> bool {
        let Some(hub) = self.hub(number) else { return false };
        if let Some(effect) = hub.device.poll_effect() {
            self.carry_out_of_hub(number, effect);
            return true;
        }
        if let Some(output) = hub.driver.as_mut().and_then(::xhci_driver::Hub::poll_output) {
            self.carry_out_of_hub_driver(now, number, output);
            return true;
        }
        self.see_report(number);
        let Some(hub) = self.hub(number) else { return false };
        let driver = hub.driver.as_ref().and_then(::xhci_driver::Hub::poll_timeout);
        let due = hub.device.poll_timeout().into_iter().chain(driver).min();
        if let Some(at) = hub.alarm.set(due) {
            self.at(at, MachineEvent::Hub(number as u8));
        }
        false
    }

    /// Handles a timeout of a hub or its driver.
    pub(super) fn pass_hub_time(&mut self, now: Instant, number: usize) {
        let Some(hub) = self.hub(number) else { return };
        if hub.alarm.ring(now) {
            hub.device.handle_timeout(now);
            if let Some(driver) = &mut hub.driver {
                driver.handle_timeout(now);
            }
            self.system.ready.hubs.add(number);
        }
    }

    /// Applies a port action of a hub to the link below.
    fn carry_out_of_hub(&mut self, hub: usize, effect: HubEffect) {
        match effect {
            HubEffect::ClearBuffer(buffer) => self.clear_buffer(hub, buffer),
            HubEffect::Down(port) => {
                if let Some(child) = self.at_hub_port(hub, port) {
                    self.take_down(child);
                }
            }
            HubEffect::Up { port, is_reset } => {
                let Some(child) = self.at_hub_port(hub, port) else { return };
                self.engine.note("hub", format_args!("port {port} is up"));
                // A device that had a link before restarts, as after a reset.
                if is_reset || std::mem::replace(&mut self.devices[child].was_up, true) {
                    self.reset_drive(child);
                }
                if let Some(attached) = self.drives.get_mut(child) {
                    attached.forget_all();
                }
                let (now, end) = (self.engine.now(), self.devices[child].end);
                self.root_ports[end.root].restart_below(now, end.device);
                self.system.ready.mark_ports(end.root);
            }
        }
    }

    fn carry_out_of_hub_driver(&mut self, now: Instant, number: usize, output: HubOutput) {
        match output {
            HubOutput::Control(setup) => {
                self.devices[number].ask_for_hub(&mut self.system, now, SequenceStep::Control(setup));
                self.deliver_sequence_results(number);
            }
            HubOutput::Request(request) => {
                self.devices[number].ask_for_hub(&mut self.system, now, SequenceStep::Driver(request));
                self.deliver_sequence_results(number);
            }
            HubOutput::Listen { endpoint, bytes } => self.listen(now, number, endpoint, bytes),
            HubOutput::Up { .. } => self.set_state(number, State::Up),
            HubOutput::Failed => {
                self.set_state(number, State::Failed);
                self.end_port_resets(now, number);
            }
            HubOutput::Arrived { port, location } => {
                if let Some(child) = self.at_hub_port(number, port) {
                    self.devices[child].location = Some(location);
                }
            }
            HubOutput::Left { port } => {
                if let Some(child) = self.at_hub_port(number, port) {
                    self.detach_below_hub(now, number, child);
                }
            }
            HubOutput::PortReset { port, is_done } | HubOutput::BufferCleared { port, is_done } => {
                let Some(child) = self.at_hub_port(number, port) else { return };
                let answer = if is_done { Answer::Done } else { Answer::TimedOut };
                self.devices[child].complete_hub_action(&mut self.system, now, answer);
                self.deliver_sequence_results(child);
            }
        }
    }

    fn set_state(&mut self, number: usize, state: State) {
        if let Some(hub) = self.hub(number) {
            hub.state = state;
        }
    }

    /// Detaches all devices from one on, by sequences of the hub that reported it.
    fn detach_below_hub(&mut self, now: Instant, hub: usize, child: usize) {
        for number in self.below(child) {
            self.devices[number].location = None;
            if let Some(device) = self.devices[number].device {
                self.devices[hub].detach(&mut self.system, now, number, device);
            }
        }
        self.deliver_sequence_results(hub);
    }

    /// Submits the transfer for a status change report.
    fn listen(&mut self, now: Instant, number: usize, endpoint: EndpointAddress, bytes: u16) {
        let device = self.devices[number].device;
        let place = self.hub(number).and_then(|hub| hub.place).or_else(|| self.system.take_place());
        let Some((device, buffer)) = device.zip(place) else { return };
        if let Some(hub) = self.hub(number) {
            hub.place = place;
        }
        let pipe = Pipe::plain(endpoint);
        let transfer = ::xhci_driver::Transfer { id: REPORT, device, pipe, buffer, length: bytes.into() };
        if self.system.drive(now, |driver, access| driver.submit(access, &transfer)).is_err() {
            let refused = Completion { id: REPORT, status: TransferStatus::Error, actual: 0 };
            self.hub_reported(number, refused);
        }
    }

    /// Handles the completion of the report transfer.
    pub(super) fn hub_reported(&mut self, number: usize, done: Completion) {
        let place = self.hub(number).and_then(|hub| hub.place.take());
        let Some(place) = place.filter(|_| done.id == REPORT) else { return };
        let report = self.system.memory.slice(place, done.actual as usize).unwrap_or_default().to_vec();
        self.system.give_place(place);
        if let Some(driver) = self.hub(number).and_then(|hub| hub.driver.as_mut()) {
            driver.handle_report(done.status, &report);
        }
        self.system.ready.hubs.add(number);
    }

    /// Passes a result to the hub driver.
    pub(super) fn notify_hub_driver(&mut self, number: usize, came: &StepResult) {
        let now = self.engine.now();
        self.system.ready.hubs.add(number);
        let Some(driver) = self.hub(number).and_then(|hub| hub.driver.as_mut()) else { return };
        match came {
            StepResult::Completed(status, bytes) => driver.handle_control(now, *status, bytes),
            StepResult::Answer(answer) => driver.handle_answer(*answer),
            StepResult::Refused => driver.handle_answer(Answer::Gone),
        }
    }

    /// Drops the driver of a hub that is gone.
    pub(super) fn detach_hub(&mut self, number: usize) {
        let Some(hub) = self.hub(number) else { return };
        (hub.driver, hub.state) = (None, State::Failed);
        if let Some(place) = hub.place.take() {
            self.system.give_place(place);
        }
        self.end_port_resets(self.engine.now(), number);
    }

    /// Fails pending port resets of a hub.
    fn end_port_resets(&mut self, now: Instant, hub: usize) {
        for number in self.below(hub) {
            if self.above(number).is_some_and(|(above, _)| above == hub) {
                self.devices[number].complete_hub_action(&mut self.system, now, Answer::Gone);
            }
        }
    }

    /// Starts an action of the hub above a device.
    pub(super) fn ask_hub_above(&mut self, number: usize, wanted: HubAction) {
        let now = self.engine.now();
        let above = self.above(number);
        if let Some((hub, _)) = above {
            self.system.ready.hubs.add(hub);
        }
        let address = self.address_of(number);
        let driver = above.and_then(|(hub, port)| Some((self.hub(hub)?.driver.as_mut()?, port)));
        let is_begun = driver.is_some_and(|(driver, port)| match wanted {
            HubAction::ResetPort => driver.reset_port(now, port),
            HubAction::ClearBuffer(endpoint) => {
                address.is_some_and(|address| driver.clear_buffer(port, TtBuffer { address, endpoint }))
            }
        });
        if !is_begun {
            self.devices[number].complete_hub_action(&mut self.system, now, Answer::Gone);
        }
    }

    /// Returns the USB address of a device.
    fn address_of(&mut self, number: usize) -> Option<u8> {
        let device = self.devices[number].device?;
        self.system.drive(self.engine.now(), |driver, access| driver.address(access, device))
    }

    /// Clears the translator's buffer of an endpoint.
    fn clear_buffer(&mut self, hub: usize, TtBuffer { address, endpoint }: TtBuffer) {
        let (now, root) = (self.engine.now(), self.devices[hub].end.root);
        for number in self.below(hub) {
            let is_it = self.devices[number].is_translated && self.address_of(number) == Some(address);
            if let (true, Wires::Bus(tree)) = (is_it, &mut self.root_ports[root].wires) {
                tree.clear_buffer(now, self.devices[number].end.device, endpoint);
                self.system.ready.mark_port(root, Side::Host);
            }
        }
    }

    /// Handles a control request at a hub.
    pub(super) fn ask_hub(&mut self, number: usize, setup: SetupPacket) -> Option<Verdict> {
        let now = self.engine.now();
        self.system.ready.hubs.add(number);
        let verdict = self.hub(number)?.device.handle_control(now, setup);
        let configures = setup.standard() == Some(StandardRequest::SetConfiguration);
        if verdict == Verdict::Done && configures {
            let end = self.devices[number].end;
            let report_bytes = self.hub(number)?.device.shape().report_bytes();
            let report = Endpoint::bulk(STATUS_CHANGE, report_bytes, 1, 0);
            let has_it = self.hub(number)?.device.is_configured();
            let endpoints = if has_it { &[report][..] } else { &[] };
            self.root_ports[end.root].configure_device(end.device, endpoints);
            self.hub(number)?.report = None;
        }
        Some(verdict)
    }

    /// Restarts a hub that was reset or has lost power or link.
    pub(super) fn restart_hub(&mut self, number: usize) {
        if let Some(hub) = self.hub(number) {
            hub.device.restart();
            hub.report = None;
            self.system.ready.hubs.add(number);
        }
    }

    /// Queues the pending report at the status change endpoint, or withdraws it.
    fn see_report(&mut self, number: usize) {
        let end = self.devices[number].end;
        let Some(hub) = self.hub(number) else { return };
        let (before, now) = (hub.report, hub.device.report());
        let bytes = hub.device.shape().report_bytes().into();
        hub.report = now;
        let device = self.root_ports[end.root].ports(end.device).1;
        let pipe = Pipe::plain(STATUS_CHANGE);
        match (before, now) {
            (None, Some(_)) => {
                let transfer = Transfer { id: REPORT, bytes };
                // There is no endpoint before configuration.
                let _ = device.queue(pipe, transfer);
            }
            (Some(_), None) => {
                device.withdraw(pipe, REPORT);
            }
            _ => return,
        }
        self.system.ready.mark_port(end.root, Side::Device);
    }

    /// Reports progress of the report to the hub.
    pub(super) fn notify_hub(&mut self, number: usize) {
        let end = self.devices[number].end;
        let mut is_sent = false;
        while let Some(progress) = self.root_ports[end.root].ports(end.device).1.poll_progress() {
            is_sent |= progress.ended.is_some();
        }
        if let Some(hub) = self.hub(number).filter(|_| is_sent) {
            // Changes since then are reported again.
            hub.report = None;
            self.system.ready.hubs.add(number);
        }
    }

    /// Reports progress of the report transfer to the controller.
    pub(super) fn notify_controller_of_hub(&mut self, number: usize) {
        let (now, end) = (self.engine.now(), self.devices[number].end);
        let report = self.hub(number).and_then(|hub| hub.report).unwrap_or_default();
        let (host, _) = self.root_ports[end.root].ports(end.device);
        while let Some(progress) = host.poll_progress() {
            let bytes = progress.piece.and_then(|piece| {
                let at = piece.offset as usize;
                report.get(at..at + usize::from(piece.bytes))
            });
            let memory = &mut self.system.memory;
            self.system.ready.controller = true;
            self.system.controller.handle_progress(now, memory, &progress, bytes.unwrap_or_default());
        }
        let way = self.devices[number].way;
        while let Some(address) = host.poll_halt() {
            let is_stalled = !host.has_failed(address);
            let system = &mut self.system;
            system.ready.controller = true;
            system.controller.handle_halt(now, &mut system.memory, way, address, is_stalled);
        }
        self.service_hub_stops(number);
    }

    /// Applies a link action of the controller to the endpoints of a hub.
    pub(super) fn act_on_hub_link(&mut self, number: usize, act: LinkAct) {
        let end = self.devices[number].end;
        self.system.ready.mark_port(end.root, Side::Host);
        let host = self.root_ports[end.root].ports(end.device).0;
        match act {
            LinkAct::Install(endpoint) => host.install(endpoint),
            LinkAct::Remove(address) => host.remove(address),
            LinkAct::Queue(pipe, transfer) => {
                // A link that was down has no endpoints.
                let _ = host.queue(pipe, transfer);
            }
            LinkAct::Stop(address) => {
                host.stop(address);
                if let Some(hub) = self.hub(number) {
                    hub.stopping.push(address);
                }
                self.service_hub_stops(number);
            }
            LinkAct::Clear(address) => {
                for (pipe, id) in host.transfers_of(address) {
                    let _ = host.withdraw(pipe, id);
                }
            }
            LinkAct::Reset(address) => host.reset(address),
            LinkAct::Retry(address) => host.reset_for_retry(address),
            LinkAct::Resume(address) => host.resume(address),
        }
    }

    /// Notifies the controller of hub endpoints that have become quiet.
    pub(super) fn service_hub_stops(&mut self, number: usize) {
        let (now, end) = (self.engine.now(), self.devices[number].end);
        let Some(mut stopping) = self.hub(number).map(|hub| std::mem::take(&mut hub.stopping)) else {
            return;
        };
        let (host, way) = (self.root_ports[end.root].host(end.device), self.devices[number].way);
        let (controller, memory) = (&mut self.system.controller, &mut self.system.memory);
        for address in stopping.extract_if(.., |address| host.is_quiet(*address)) {
            self.system.ready.controller = true;
            controller.handle_quiet(now, memory, way, address);
        }
        if let Some(hub) = self.hub(number) {
            hub.stopping = stopping;
        }
    }

    /// Returns a device and all behind it, hubs before their children.
    pub(super) fn below(&self, number: usize) -> Vec<usize> {
        let top = self.devices[number].way.route;
        let is_below = |number: &usize| self.devices[*number].way.route.leads_through(top);
        let root = &self.root_ports[self.devices[number].end.root];
        root.devices.iter().copied().filter(is_below).collect()
    }

    /// Takes down the link to a device at a hub port, with all links below.
    pub(super) fn take_down(&mut self, number: usize) {
        let (now, end) = (self.engine.now(), self.devices[number].end);
        self.root_ports[end.root].cut_below(now, end.device);
        self.system.ready.mark_ports(end.root);
        for number in self.below(number) {
            self.devices[number].control.requests.clear();
            self.restart_hub(number);
            match number < self.drives.len() {
                true => self.service_stops(number),
                false => self.service_hub_stops(number),
            }
        }
    }
}
