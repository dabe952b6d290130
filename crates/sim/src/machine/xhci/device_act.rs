//! Outputs of a drive: queued transfers, terminators of host transfers, medium requests; and its
//! answers on endpoint 0.
//!
//! The drive's injector decides faults of transfers. Hubs answer in `hubs`. Invariant: each
//! transfer that the device queues is sent once, unless a fault intervenes.

use super::attached_drive::Ending;
use super::{MachineEvent, XhciMachine};
use crate::fault::{FaultKind, SeededBug};
use crate::link::control::{ControlAnswer, ControlEnd, ControlEvent, ControlTransfer};
use crate::link::superspeed::Side;
use crate::machine::drive::EnclosureEvent;
use crate::machine::fault_injector::Sent;
use crate::machine::{ControlExchange, FixedLatencyDrive, configure};
use bus::{Pipe, TransferId};
use device::{DeviceTransfer, Verdict};
use units::Instant;
use wire::usb::{SetupPacket, StandardRequest};
use xhci_controller::ControlAnswer as AnswerToController;

impl XhciMachine {
    #[inline(never)]
    pub(super) fn carry_out_of_device(&mut self, now: Instant, number: usize, output: device::Output) {
        use device::Output as Out;
        let (attached, end) = (&mut self.drives[number], self.devices[number].end);
        match output {
            Out::Transfer(transfer) if attached.drive.enclosure.is_none() && !self.injects_faults => {
                self.offer(number, transfer);
            }
            Out::Transfer(transfer) => {
                if let Some(transfer) = attached.drive.defer_status(now, transfer) {
                    self.send_transfer(now, number, transfer);
                }
            }
            Out::Finish(pipe) => self.finish(number, pipe),
            Out::FinishBoth(data_in, data_out) => {
                self.finish(number, data_in);
                self.finish(number, data_out);
            }
            Out::Acquire(id, bytes) => {
                let is_misplaced = attached.injector.faults.triggers(SeededBug::WrongExtent);
                attached.drive.acquire(now, id, bytes, is_misplaced);
            }
            Out::Release(id) => attached.drive.release(now, id),
            Out::Medium(request) if let Some(enclosure) = &mut attached.drive.enclosure => {
                match attached.injector.faults.draw(FaultKind::Slow) {
                    Some(random) => enclosure.take_slow(now, request, now + FixedLatencyDrive::slow(random)),
                    None => enclosure.take(now, request),
                }
                let (blocks, lba) = (request.extent.blocks.0, request.extent.lba.0);
                self.engine.note("drive", format_args!("{}{blocks} blocks from {lba} on", self.tag(number)));
                self.note_work(number);
            }
            Out::Medium(request) => {
                let done_at = attached.drive.plain.take(now, request, &mut attached.injector.faults);
                attached
                    .host_transport
                    .observers
                    .notify(|observer| observer.medium_requested(now, &request, done_at));
                if self.engine.is_traced() {
                    let (extent, span) = (request.extent, done_at - now);
                    let (blocks, lba) = (extent.blocks.0, extent.lba.0);
                    let note =
                        format_args!("{}{blocks} blocks from {lba} on, done in {span}", self.tag(number));
                    self.engine.note("drive", note);
                }
                self.schedule_store(number, done_at);
                self.note_work(number);
            }
            Out::Cancel(id)
                if attached.injector.cancel_deferred(id) || attached.drive.withdraw_queued(now, id) =>
            {
                attached.drive.cancel_unsent(id);
            }
            Out::Cancel(id) => {
                self.system.ready.mark_port(end.root, Side::Device);
                attached.drive.cancel(now, self.root_ports[end.root].ports(end.device).1, id);
                self.notify_drive(number);
            }
            Out::Halt(endpoint) => {
                self.system.ready.mark_port(end.root, Side::Device);
                self.root_ports[end.root].ports(end.device).1.halt(endpoint);
            }
            Out::ClearHalt(endpoint) => {
                self.system.ready.mark_port(end.root, Side::Device);
                self.root_ports[end.root].ports(end.device).1.clear_halt(endpoint);
                self.notify_drive(number);
            }
        }
    }

    /// Handles an event of a drive's enclosure. Returns whether there was one.
    pub(super) fn poll_enclosure_event(&mut self, now: Instant, number: usize) -> bool {
        let attached = &mut self.drives[number];
        let happened = attached.drive.poll_enclosure(now, &mut attached.injector);
        self.note_work(number);
        let attached = &mut self.drives[number];
        match happened {
            Some(EnclosureEvent::Heard(since, stream)) => {
                attached.host_transport.observers.notify(|observer| observer.translated(since, now, stream));
                true
            }
            Some(EnclosureEvent::Status(since, transfer)) => {
                let stream = transfer.pipe.stream;
                attached.host_transport.observers.notify(|observer| observer.translated(since, now, stream));
                self.send_transfer(now, number, transfer);
                true
            }
            Some(EnclosureEvent::Stored(since, request)) => {
                attached
                    .host_transport
                    .observers
                    .notify(|observer| observer.medium_requested(since, &request, now));
                true
            }
            None => false,
        }
    }

    /// Sets the alarm of a drive's enclosure.
    pub(super) fn set_enclosure(&mut self, number: usize) {
        let attached = &mut self.drives[number];
        let due = attached.drive.enclosure.as_ref().and_then(|enclosure| enclosure.poll_timeout());
        if let Some(at) = attached.alarm.set(due) {
            self.at(at, MachineEvent::Enclosure(number as u8));
        }
    }

    /// Queues a device transfer, subject to faults.
    #[inline(never)]
    fn send_transfer(&mut self, now: Instant, number: usize, transfer: DeviceTransfer) {
        if !self.injects_faults {
            return self.offer(number, transfer);
        }
        let attached = &mut self.drives[number];
        match attached.injector.send(now, transfer, &attached.drive) {
            Sent::Once(transfer) => self.offer(number, transfer),
            Sent::Twice(transfer) => {
                let again = attached.drive.stray(&transfer);
                self.offer(number, transfer);
                self.offer(number, again);
            }
            Sent::Never(transfer) => attached.drive.forget(transfer),
            Sent::Later(due) => self.at(due, MachineEvent::Ready(number as u8)),
        }
    }

    /// Queues a device transfer at its port.
    pub(super) fn offer(&mut self, number: usize, transfer: DeviceTransfer) {
        let (now, end) = (self.engine.now(), self.devices[number].end);
        let is_open = self.root_ports[end.root].is_split_open(end.device, transfer.pipe.endpoint);
        let attached = &mut self.drives[number];
        self.system.ready.mark_port(end.root, Side::Device);
        attached.host_transport.observers.notify(|observer| observer.offered(now, &transfer));
        let (host, device) = self.root_ports[end.root].ports(end.device);
        let pipe = transfer.pipe;
        let expected = match attached.is_over_below(pipe, host, is_open) {
            false => host.expects(pipe),
            true => host.awaits(pipe).1,
        };
        let ending = attached.drive.offer(device, transfer, expected);
        if let Some(device) = ending
            && let Some(host) = host.transfers(pipe).nth(attached.is_over_below(pipe, host, is_open).into())
        {
            attached.endings.push(Ending { pipe, host, device });
        }
    }

    /// Terminates the host transfers on a pipe: In with an empty packet, Out with room for the
    /// rest.
    fn finish(&mut self, number: usize, pipe: Pipe) {
        let (attached, end) = (&mut self.drives[number], self.devices[number].end);
        let is_open = self.root_ports[end.root].is_split_open(end.device, pipe.endpoint);
        let (host, device) = self.root_ports[end.root].ports(end.device);
        self.system.ready.mark_port(end.root, Side::Device);
        if host.expects(pipe).is_none() {
            // None, as usual when a command completes.
            return;
        }
        for host in host.transfers(pipe).skip(attached.is_over_below(pipe, host, is_open).into()) {
            if let Some(rest) = attached.wants_end(pipe, host) {
                let device = attached.drive.end(device, pipe, rest);
                attached.endings.push(Ending { pipe, host, device });
            }
        }
    }

    /// Processes packets of endpoint 0.
    pub(super) fn service_endpoint_0(&mut self, number: usize) {
        let (now, end) = (self.engine.now(), self.devices[number].end);
        while let Some(event) = self.root_ports[end.root].ports(end.device).1.poll_control() {
            if let ControlEvent::Asked(setup) = event {
                self.ask_device(number, setup);
            }
        }
        while let Some(progress) = self.root_ports[end.root].ports(end.device).0.poll_control() {
            let control = &mut self.devices[number].control;
            if let Some(piece) = progress.piece {
                let (at, len) = (piece.offset as usize, usize::from(piece.bytes));
                control.data_in.extend_from_slice(control.reply.get(at..at + len).unwrap_or(&[]));
            }
            let Some(end) = progress.ended else { continue };
            let brought = std::mem::take(&mut control.data_in);
            let attached = self.drives.get_mut(number);
            let is_lost =
                attached.is_some_and(|attached| attached.injector.faults.triggers(SeededBug::LostAnswer));
            let answer = match end {
                ControlEnd::Done if !is_lost => AnswerToController::Done(brought),
                _ => AnswerToController::Stalled,
            };
            if let Some(request) = control.requests.pop_front() {
                self.system.ready.controller = true;
                self.system.controller.handle_control(now, &mut self.system.memory, request.id, &answer);
            }
            self.begin_control(number);
        }
    }

    /// Starts the oldest control transfer, if none is in flight.
    pub(super) fn begin_control(&mut self, number: usize) {
        let host_device = &mut self.devices[number];
        let Some(request) = host_device.control.requests.front() else { return };
        let transfer = ControlTransfer { id: TransferId(0), setup: request.setup };
        self.system.ready.mark_port(host_device.end.root, Side::Host);
        if self.root_ports[host_device.end.root].ports(host_device.end.device).0.control(transfer).is_ok() {
            host_device.control.data_in.clear();
        }
    }

    /// Handles a control request at a device.
    fn ask_device(&mut self, number: usize, setup: SetupPacket) {
        let (now, end) = (self.engine.now(), self.devices[number].end);
        let control = &mut self.devices[number].control;
        let data_out = control.requests.front().map_or(&[][..], |request| &request.data_out);
        let Some(attached) = self.drives.get_mut(number) else {
            if let Some(verdict) = self.ask_hub(number, setup) {
                self.answer_request(number, setup, verdict);
            }
            return;
        };
        let verdict = attached.drive.device.handle_control(setup, data_out);
        self.system.ready.drives.add(number);
        let exchange = ControlExchange { setup, answer: verdict.clone() };
        attached.host_transport.observers.notify(|observer| observer.control(now, &exchange));
        let sets_up = matches!(
            setup.standard(),
            Some(StandardRequest::SetInterface | StandardRequest::SetConfiguration)
        );
        if verdict == Verdict::Done && sets_up {
            let endpoints = configure::endpoints_of(&attached.drive.device);
            self.root_ports[end.root].configure_device(end.device, &endpoints);
        }
        if verdict == Verdict::Done {
            self.track_sleep_request(number, setup);
        }
        self.answer_request(number, setup, verdict);
    }

    /// Sends the device's answer to a control request.
    fn answer_request(&mut self, number: usize, setup: SetupPacket, verdict: Verdict) {
        let end = self.devices[number].end;
        let control = &mut self.devices[number].control;
        let answer = match verdict {
            Verdict::Done => ControlAnswer::Done(0),
            Verdict::Data(bytes) => {
                control.reply = bytes;
                ControlAnswer::Done(u16::try_from(control.reply.len()).unwrap_or(u16::MAX))
            }
            Verdict::Stall => ControlAnswer::Stall,
        };
        self.system.ready.mark_port(end.root, Side::Device);
        self.root_ports[end.root].ports(end.device).1.answer(setup, answer);
    }
}
