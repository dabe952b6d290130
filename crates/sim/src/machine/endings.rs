//! Early completion: cancelled transfers, halted endpoints, resets and disconnection.
//!
//! As a driver does with its controller, an endpoint is stopped before a transfer is cancelled or a
//! halt is cleared, and resumes when it is quiet. A halt completes all host transfers on the
//! endpoint, and later ones until it is cleared, as in [`bus::rendezvous`]. A port reset drops
//! packets in flight on both sides.
//!
//! Left out: the time that controller and driver take; see `machine::xhci`.
//!
//! Invariants: each transfer of either side completes once; requests are answered in order.

use super::enumerate::ControlExchange;
use super::{DirectMachine, MachineEvent, configure, enumerate};
use crate::link::bulk::NotWithdrawn;
use crate::link::control::{ControlAnswer, ControlEnd, ControlEvent, ControlTransfer};
use crate::link::superspeed::Side;
use bus::{Front, Pipe, TransferId, TransferStatus};
use device::{ActiveTransport, Verdict};
use initiator::{BusAnswer, BusRequest, RequestId, Transport};
use std::collections::VecDeque;
use units::Duration;
use wire::usb::{Direction, EndpointAddress, Recipient, RequestKind, SetupPacket, StandardRequest};

/// Delay of a host after a port reset: the shortest one of Linux' hub driver. The reset itself has
/// completed by then (USB 3.2 clause 7.5.12: Hot Reset takes at most 12 ms).
const PORT_RESET: Duration = Duration::from_ms(10);

/// State of bus requests and stopped endpoints.
#[derive(Debug, Default)]
pub(super) struct Endings {
    /// Stopped endpoints that are not quiet yet.
    stopping: Vec<EndpointAddress>,
    /// Bus requests of the transport, oldest first.
    requests: VecDeque<(RequestId, BusRequest)>,
    /// Whether the first request is in progress.
    is_asking: bool,
    is_unplugged: bool,
}

impl<T: Transport> DirectMachine<T> {
    /// Detaches the drive: everything in flight completes, and the transport is notified.
    pub fn unplug(&mut self) {
        if std::mem::replace(&mut self.endings.is_unplugged, true) {
            return;
        }
        self.endings.stopping.clear();
        self.endings.requests.clear();
        self.end_all(TransferStatus::Disconnected);
        self.drive.device.handle_nexus_loss();
        self.link_pair.restart(&[]);
        self.link_pair.cut();
        self.drain_device_outputs();
        self.injector.clear_deferred();
        self.host.call().handle_disconnect(self.engine.now());
        self.settle();
    }

    /// Halts an endpoint of the drive, as firmware does on a protocol error.
    pub fn halt(&mut self, endpoint: EndpointAddress) {
        let setup = SetupPacket {
            direction: Direction::Out,
            kind: RequestKind::Standard,
            recipient: Recipient::Endpoint,
            request: StandardRequest::SetFeature.into(),
            // ENDPOINT_HALT.
            value: 0,
            index: u8::from(endpoint).into(),
            length: 0,
        };
        self.drive.device.handle_control(setup, &[]);
        self.settle();
    }

    /// Cancels a transfer of the transport.
    pub(super) fn cancel(&mut self, id: TransferId) {
        if let Some(pipe) = self.host.cancel(id) {
            self.withdraw_transfer(id, pipe);
        }
    }

    fn withdraw_transfer(&mut self, number: TransferId, pipe: Pipe) {
        match self.link_pair.host.withdraw(pipe, number) {
            Ok(moved) => self.end_transfer(number, TransferStatus::Cancelled, moved),
            Err(NotWithdrawn::InFlight) => self.stop(pipe.endpoint),
            // Its completion is pending.
            Err(NotWithdrawn::Unknown) => {}
        }
    }

    /// Completes a host transfer and withdraws its terminator.
    fn end_transfer(&mut self, number: TransferId, status: TransferStatus, moved: u32) {
        self.injector.ledger.forget(Side::Host, number);
        let ending = self.host.end(self.engine.now(), number, status, moved);
        self.forget_ending(ending);
        // No later packet may trigger this.
        self.notify_drive();
    }

    pub(super) fn forget_ending(&mut self, ending: Option<(Pipe, TransferId)>) {
        if let Some((pipe, ending)) = ending {
            self.drive.withdraw(&mut self.link_pair.device, pipe, ending);
        }
    }

    fn stop(&mut self, endpoint: EndpointAddress) {
        self.link_pair.host.stop(endpoint);
        if !self.endings.stopping.contains(&endpoint) {
            self.endings.stopping.push(endpoint);
        }
    }

    /// Handles halted endpoints, and stopped ones that have become quiet.
    pub(super) fn service_endpoints(&mut self) {
        while let Some(endpoint) = self.link_pair.host.poll_halt() {
            if self.link_pair.host.has_failed(endpoint) {
                // The failed transfer has completed; the others are retried.
                self.link_pair.host.reset_for_retry(endpoint);
                self.stop(endpoint);
                continue;
            }
            for (pipe, number) in self.link_pair.host.transfers_of(endpoint) {
                if let Ok(moved) = self.link_pair.host.withdraw(pipe, number) {
                    self.end_transfer(number, TransferStatus::Stall, moved);
                }
            }
        }
        if self.endings.stopping.is_empty() {
            return;
        }
        for endpoint in std::mem::take(&mut self.endings.stopping) {
            if !self.link_pair.host.is_quiet(endpoint) {
                self.endings.stopping.push(endpoint);
                continue;
            }
            for (pipe, number) in self.link_pair.host.transfers_of(endpoint) {
                if self.host.is_cancelled(number) {
                    self.withdraw_transfer(number, pipe);
                }
            }
            self.link_pair.host.resume(endpoint);
        }
        self.start_next_request();
    }

    /// Terminates the host transfers on a pipe: In with an empty packet, Out with room for the
    /// rest.
    pub(super) fn finish(&mut self, pipe: Pipe) {
        if self.link_pair.host.transfers(pipe).next().is_none() {
            return;
        }
        let numbers: Vec<_> = self.link_pair.host.transfers(pipe).collect();
        for number in numbers {
            let length = match (self.host.wants_end(number), pipe.endpoint.direction()) {
                (None, _) => continue,
                (Some(_), Direction::In) => 0,
                // The device has all of it, and the host does not know yet.
                (Some(0), Direction::Out) => continue,
                (Some(rest), Direction::Out) => rest,
            };
            let ending = self.drive.end(&mut self.link_pair.device, pipe, length);
            self.host.ends_with(number, ending);
        }
    }

    /// Queues a bus request of the transport.
    pub(super) fn request(&mut self, id: RequestId, request: BusRequest) {
        if self.endings.is_unplugged {
            return self.answer(id, BusAnswer::Failed);
        }
        self.endings.requests.push_back((id, request));
        self.start_next_request();
    }

    /// Starts the first request once its endpoints are quiet.
    fn start_next_request(&mut self) {
        let Some(&(_, request)) = self.endings.requests.front() else { return };
        if self.endings.is_asking || !self.is_ready_for(request) {
            return;
        }
        self.endings.is_asking = true;
        let now = self.engine.now();
        if request == BusRequest::ResetPort {
            self.link_pair.cut();
            return self.at(now + PORT_RESET, MachineEvent::PortReset);
        }
        let Some(setup) = request.setup() else {
            let answer = self.allocate(request);
            return self.end_request(answer);
        };
        // One is in flight at a time, with this id.
        let begun = self.link_pair.host.control(ControlTransfer { id: TransferId(0), setup });
        debug_assert!(begun.is_ok(), "requests are sent one by one");
    }

    /// Processes packets of endpoint 0.
    pub(super) fn service_endpoint_0(&mut self) {
        while let Some(event) = self.link_pair.device.poll_control() {
            // No request of a transport has a data-in phase.
            if let ControlEvent::Asked(setup) = event {
                self.ask(setup);
            }
        }
        while let Some(progress) = self.link_pair.host.poll_control() {
            if let Some(end) = progress.ended {
                self.handle_answer(end);
            }
        }
    }

    /// Handles a control request at the device.
    fn ask(&mut self, setup: SetupPacket) {
        let (now, verdict) = (self.engine.now(), self.drive.device.handle_control(setup, &[]));
        let exchange = ControlExchange { setup, answer: verdict.clone() };
        self.host.observers.notify(|observer| observer.control(now, &exchange));
        if verdict == Verdict::Done && setup.standard() == Some(StandardRequest::SetInterface) {
            let endpoints = configure::endpoints_of(&self.drive.device);
            self.link_pair.configure(Side::Device, &endpoints);
            self.drain_device_outputs();
        }
        let answer = match verdict {
            Verdict::Done => ControlAnswer::Done(0),
            Verdict::Data(bytes) => ControlAnswer::Done(u16::try_from(bytes.len()).unwrap_or(u16::MAX)),
            Verdict::Stall => ControlAnswer::Stall,
        };
        self.link_pair.device.answer(setup, answer);
    }

    /// Handles the answer to a control request at the host.
    fn handle_answer(&mut self, end: ControlEnd) {
        let is_done = end == ControlEnd::Done;
        match self.endings.requests.front() {
            Some(&(_, BusRequest::ClearHalt(endpoint))) => {
                if is_done {
                    self.link_pair.host.reset(endpoint);
                }
                self.link_pair.host.resume(endpoint);
            }
            Some((_, BusRequest::SelectAlternate { .. })) if is_done => {
                self.end_all(TransferStatus::Error);
                let endpoints = configure::endpoints_of(&self.drive.device);
                self.link_pair.configure(Side::Host, &endpoints);
            }
            _ => {}
        }
        self.end_request(match end {
            ControlEnd::Done => BusAnswer::Done,
            ControlEnd::Stalled => BusAnswer::Stalled,
            ControlEnd::Failed => BusAnswer::Failed,
        });
    }

    fn end_request(&mut self, answer: BusAnswer) {
        self.endings.is_asking = false;
        if let Some((id, _)) = self.endings.requests.pop_front() {
            self.answer(id, answer);
        }
        self.start_next_request();
    }

    fn answer(&mut self, id: RequestId, answer: BusAnswer) {
        self.host.call().handle_answer(self.engine.now(), id, answer);
    }

    /// Returns whether the endpoints of a request are quiet; stops them otherwise.
    fn is_ready_for(&mut self, request: BusRequest) -> bool {
        let endpoints = match request {
            BusRequest::ClearHalt(endpoint) => vec![endpoint],
            BusRequest::SelectAlternate { .. } => self.link_pair.host.addresses().collect(),
            _ => return true,
        };
        for &endpoint in &endpoints {
            self.link_pair.host.stop(endpoint);
        }
        let mut busy = endpoints.into_iter().filter(|&endpoint| !self.link_pair.host.is_quiet(endpoint));
        let Some(endpoint) = busy.next() else { return true };
        if !self.endings.stopping.contains(&endpoint) {
            self.endings.stopping.push(endpoint);
        }
        false
    }

    fn allocate(&self, request: BusRequest) -> BusAnswer {
        match (request, self.drive.device.transport()) {
            (BusRequest::AllocateStreams { wanted, .. }, ActiveTransport::Uas { streams: true }) => {
                BusAnswer::Streams(wanted.min(self.drive.device.config().streams))
            }
            _ => BusAnswer::Failed,
        }
    }

    /// Completes a port reset: the device is in its initial state and is addressed and configured
    /// again.
    pub(super) fn end_port_reset(&mut self) {
        if self.endings.is_unplugged {
            return;
        }
        self.endings.stopping.clear();
        self.end_all(TransferStatus::Error);
        self.drive.device.handle_bus_reset();
        self.link_pair.restart(&[]);
        self.drain_device_outputs();
        self.drive.forget_offers(self.engine.now());
        self.injector.clear_deferred();
        self.injector.ledger.forget_all(Side::Device);
        let is_set_up = enumerate::set_up_again(&mut self.drive.device).is_ok();
        self.link_pair.restart(&configure::endpoints_of(&self.drive.device));
        self.end_request(if is_set_up { BusAnswer::Done } else { BusAnswer::Failed });
    }

    /// Completes all host transfers.
    fn end_all(&mut self, status: TransferStatus) {
        for (_, number) in self.link_pair.host.all_transfers() {
            let status = if self.host.is_cancelled(number) { TransferStatus::Cancelled } else { status };
            self.injector.ledger.forget(Side::Host, number);
            self.host.end(self.engine.now(), number, status, 0);
        }
    }

    /// Processes pending outputs of the device.
    fn drain_device_outputs(&mut self) {
        while let Some(output) = self.drive.device.poll_output().map(Front::take) {
            self.carry_out_of_device(output);
        }
    }
}
