//! What a drive wants: transfers on offer, an early end of the host's, its medium; and what it answers at endpoint 0.
//!
//! What goes wrong with a transfer is asked here, and decided by the drive's trouble. What a hub answers is the hub's. Always true:
//! a transfer that the device wants to send goes out once, unless a fault has it otherwise.

use super::seat::Ending;
use super::{Driven, Happens};
use crate::fault::{Bug, Kind};
use crate::link::control::{ControlAnswer, ControlEnd, ControlEvent, ControlTransfer};
use crate::link::superspeed::Side;
use crate::world::drive::Happened;
use crate::world::trouble::Sent;
use crate::world::{Exchange, Plain, plug};
use crate::xhc as model;
use bus::{Pipe, TransferId};
use device::{DeviceTransfer, Verdict};
use units::Instant;
use wire::usb::{SetupPacket, StandardRequest};

impl Driven {
    #[inline(never)]
    pub(super) fn carry_out_of_device(&mut self, now: Instant, number: usize, output: device::Output) {
        use device::Output as Out;
        let (seat, end) = (&mut self.seats[number], self.fronts[number].end);
        match output {
            Out::Transfer(transfer) if seat.drive.enclosure.is_none() && !self.is_troubled => {
                self.offer(number, transfer);
            }
            Out::Transfer(transfer) => {
                if let Some(transfer) = seat.drive.keep_status(now, transfer) {
                    self.send_transfer(now, number, transfer);
                }
            }
            Out::Finish(pipe) => self.finish(number, pipe),
            Out::FinishBoth(data_in, data_out) => {
                self.finish(number, data_in);
                self.finish(number, data_out);
            }
            Out::Acquire(id, bytes) => {
                let is_misplaced = seat.trouble.faults.shows(Bug::WrongExtent);
                seat.drive.acquire(now, id, bytes, is_misplaced);
            }
            Out::Release(id) => seat.drive.release(now, id),
            Out::Medium(request) if let Some(enclosure) = &mut seat.drive.enclosure => {
                match seat.trouble.faults.strikes(Kind::Slow) {
                    Some(random) => enclosure.take_slow(now, request, now + Plain::slow(random)),
                    None => enclosure.take(now, request),
                }
                let (blocks, lba) = (request.extent.blocks.0, request.extent.lba.0);
                self.engine.note("drive", format_args!("{}{blocks} blocks from {lba} on", self.tag(number)));
                self.note_work(number);
            }
            Out::Medium(request) => {
                let done_at = seat.drive.plain.take(now, request, &mut seat.trouble.faults);
                seat.desk.observers.tell(|observer| observer.asked(now, &request, done_at));
                if self.engine.is_traced() {
                    let (extent, span) = (request.extent, done_at - now);
                    let (blocks, lba) = (extent.blocks.0, extent.lba.0);
                    let note =
                        format_args!("{}{blocks} blocks from {lba} on, done in {span}", self.tag(number));
                    self.engine.note("drive", note);
                }
                self.store_at(number, done_at);
                self.note_work(number);
            }
            Out::Cancel(id) if seat.trouble.drop_late(id) || seat.drive.drop_in_line(now, id) => {
                seat.drive.never(id);
            }
            Out::Cancel(id) => {
                self.woken[Side::Device as usize].add(end.root);
                seat.drive.cancel(now, self.roots[end.root].ports(end.device).1, id);
                self.tell_drive(number);
            }
            Out::Halt(endpoint) => {
                self.woken[Side::Device as usize].add(end.root);
                self.roots[end.root].ports(end.device).1.halt(endpoint);
            }
            Out::ClearHalt(endpoint) => {
                self.woken[Side::Device as usize].add(end.root);
                self.roots[end.root].ports(end.device).1.clear_halt(endpoint);
                self.tell_drive(number);
            }
        }
    }

    /// Takes something that the enclosure of a drive has done. Whether there was something.
    pub(super) fn look_into_enclosure(&mut self, now: Instant, number: usize) -> bool {
        let seat = &mut self.seats[number];
        let happened = seat.drive.poll_enclosure(now, &mut seat.trouble);
        self.note_work(number);
        let seat = &mut self.seats[number];
        match happened {
            Some(Happened::Heard(since, stream)) => {
                seat.desk.observers.tell(|observer| observer.translated(since, now, stream));
                true
            }
            Some(Happened::Status(since, transfer)) => {
                let stream = transfer.pipe.stream;
                seat.desk.observers.tell(|observer| observer.translated(since, now, stream));
                self.send_transfer(now, number, transfer);
                true
            }
            Some(Happened::Stored(since, request)) => {
                seat.desk.observers.tell(|observer| observer.asked(since, &request, now));
                true
            }
            None => false,
        }
    }

    /// When the enclosure of a drive goes on, if it has one.
    pub(super) fn set_enclosure(&mut self, number: usize) {
        let seat = &mut self.seats[number];
        let due = seat.drive.enclosure.as_ref().and_then(|enclosure| enclosure.poll_timeout());
        if let Some(at) = seat.alarm.set(due) {
            self.at(at, Happens::Enclosure(number as u8));
        }
    }

    /// The device sends something, or has room for it, unless something goes wrong with that.
    #[inline(never)]
    fn send_transfer(&mut self, now: Instant, number: usize, transfer: DeviceTransfer) {
        if !self.is_troubled {
            return self.offer(number, transfer);
        }
        let seat = &mut self.seats[number];
        match seat.trouble.send(now, transfer, &seat.drive) {
            Sent::Once(transfer) => self.offer(number, transfer),
            Sent::Twice(transfer) => {
                let again = seat.drive.stray(&transfer);
                self.offer(number, transfer);
                self.offer(number, again);
            }
            Sent::Never(transfer) => seat.drive.forget(transfer),
            Sent::Later(due) => self.at(due, Happens::Ready(number as u8)),
        }
    }

    /// The device offers a transfer to the bus.
    pub(super) fn offer(&mut self, number: usize, transfer: DeviceTransfer) {
        let (now, end) = (self.engine.now(), self.fronts[number].end);
        let is_open = self.roots[end.root].is_split_open(end.device, transfer.pipe.endpoint);
        let seat = &mut self.seats[number];
        self.woken[Side::Device as usize].add(end.root);
        seat.desk.observers.tell(|observer| observer.offered(now, &transfer));
        let (host, device) = self.roots[end.root].ports(end.device);
        let pipe = transfer.pipe;
        let expected = match seat.is_over_below(pipe, host, is_open) {
            false => host.expects(pipe),
            true => host.awaits(pipe).1,
        };
        let ending = seat.drive.offer(device, transfer, expected);
        if let Some(device) = ending
            && let Some(host) = host.transfers(pipe).nth(seat.is_over_below(pipe, host, is_open).into())
        {
            seat.endings.push(Ending { pipe, host, device });
        }
    }

    /// The device ends what the host has on a pipe: In with an empty packet, Out with room for all that comes.
    fn finish(&mut self, number: usize, pipe: Pipe) {
        let (seat, end) = (&mut self.seats[number], self.fronts[number].end);
        let is_open = self.roots[end.root].is_split_open(end.device, pipe.endpoint);
        let (host, device) = self.roots[end.root].ports(end.device);
        self.woken[Side::Device as usize].add(end.root);
        if host.expects(pipe).is_none() {
            // It has nothing there, as mostly when a command ends.
            return;
        }
        for host in host.transfers(pipe).skip(seat.is_over_below(pipe, host, is_open).into()) {
            if let Some(rest) = seat.wants_end(pipe, host) {
                let device = seat.drive.end(device, pipe, rest);
                seat.endings.push(Ending { pipe, host, device });
            }
        }
    }

    /// Packets of endpoint 0 have come.
    pub(super) fn look_after_endpoint_0(&mut self, number: usize) {
        let (now, end) = (self.engine.now(), self.fronts[number].end);
        while let Some(event) = self.roots[end.root].ports(end.device).1.poll_control() {
            if let ControlEvent::Asked(setup) = event {
                self.ask_device(number, setup);
            }
        }
        while let Some(progress) = self.roots[end.root].ports(end.device).0.poll_control() {
            let control = &mut self.fronts[number].control;
            if let Some(piece) = progress.piece {
                let (at, len) = (piece.offset as usize, usize::from(piece.bytes));
                control.data_in.extend_from_slice(control.reply.get(at..at + len).unwrap_or(&[]));
            }
            let Some(end) = progress.ended else { continue };
            let brought = std::mem::take(&mut control.data_in);
            let seat = self.seats.get_mut(number);
            let is_lost = seat.is_some_and(|seat| seat.trouble.faults.shows(Bug::LostAnswer));
            let answer = match end {
                ControlEnd::Done if !is_lost => model::ControlAnswer::Done(brought),
                _ => model::ControlAnswer::Stalled,
            };
            if let Some(request) = control.requests.pop_front() {
                let which = (request.slot, request.number);
                self.machine.is_touched = true;
                self.machine.controller.handle_control(now, &mut self.machine.memory, which, &answer);
            }
            self.begin_control(number);
        }
    }

    /// Begins the oldest control transfer, if none is under way.
    pub(super) fn begin_control(&mut self, number: usize) {
        let front = &mut self.fronts[number];
        let Some(request) = front.control.requests.front() else { return };
        let transfer = ControlTransfer { id: TransferId(0), setup: request.setup };
        self.woken[Side::Host as usize].add(front.end.root);
        if self.roots[front.end.root].ports(front.end.device).0.control(transfer).is_ok() {
            front.control.data_in.clear();
        }
    }

    /// A request has come to the device.
    fn ask_device(&mut self, number: usize, setup: SetupPacket) {
        let (now, end) = (self.engine.now(), self.fronts[number].end);
        let control = &mut self.fronts[number].control;
        let data_out = control.requests.front().map_or(&[][..], |request| &request.data_out);
        let Some(seat) = self.seats.get_mut(number) else {
            if let Some(verdict) = self.ask_hub(number, setup) {
                self.answer_request(number, setup, verdict);
            }
            return;
        };
        let verdict = seat.drive.device.handle_control(setup, data_out);
        self.stirs.add(number);
        let exchange = Exchange { setup, answer: verdict.clone() };
        seat.desk.observers.tell(|observer| observer.control(now, &exchange));
        let sets_up = matches!(
            setup.standard(),
            Some(StandardRequest::SetInterface | StandardRequest::SetConfiguration)
        );
        if verdict == Verdict::Done && sets_up {
            let endpoints = plug::endpoints_of(&seat.drive.device);
            self.roots[end.root].configure_device(end.device, &endpoints);
        }
        if verdict == Verdict::Done {
            self.heed(number, setup);
        }
        self.answer_request(number, setup, verdict);
    }

    /// The device has decided what comes of a request.
    fn answer_request(&mut self, number: usize, setup: SetupPacket, verdict: Verdict) {
        let end = self.fronts[number].end;
        let control = &mut self.fronts[number].control;
        let answer = match verdict {
            Verdict::Done => ControlAnswer::Done(0),
            Verdict::Data(bytes) => {
                control.reply = bytes;
                ControlAnswer::Done(u16::try_from(control.reply.len()).unwrap_or(u16::MAX))
            }
            Verdict::Stall => ControlAnswer::Stall,
        };
        self.woken[Side::Device as usize].add(end.root);
        self.roots[end.root].ports(end.device).1.answer(setup, answer);
    }
}
