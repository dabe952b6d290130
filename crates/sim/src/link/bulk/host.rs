//! The host side of a SuperSpeed bulk endpoint: starts every burst, in either direction.
//!
//! The controller arbitrates the bus: it polls [`HostEndpoint::wants_bus`] and grants the bus with
//! [`HostEndpoint::start`]. On SuperSpeed one IN endpoint has it at a time (USB 3.2 clause 8.10.2).
//!
//! Software stops an endpoint with [`HostEndpoint::stop`]: it releases the bus at a packet
//! boundary, and is quiet when everything in flight has been answered. Then transfers can be
//! cancelled. A STALL halts it: the current transfer completes, the others wait.
//! [`HostEndpoint::reset`] resets it but keeps its transfers, and [`HostEndpoint::resume`] restarts
//! it (for xHCI 1.2 clauses 4.6.8 to 4.6.10).

mod errors;

use super::NoSuchStream;
use super::message::{Message, Sequence, named};
use super::queue::{NotWithdrawn, Queues};
use crate::link::run::EndpointRun;
use crate::link::streams::{FromDevice, FromHost, Host, StreamField, Violation};
use bus::link::{End, Endpoint, PacketPayload, Progress, Transfer};
use bus::{Fifo, StreamId, TransferId};
use wire::usb::Direction;

/// The host side.
#[derive(Clone, Debug)]
pub struct HostEndpoint {
    endpoint: Endpoint,
    queues: Queues,
    /// Of an endpoint with streams.
    pipe: Option<Host>,
    /// IN: the number that is expected; OUT: that of the next packet.
    next: Sequence,
    /// Packets that were asked for, or sent, and have not come, or been acknowledged.
    in_flight: u8,
    /// OUT: packets that the device takes after the last that it acknowledged.
    limit: u8,
    /// OUT: packets that may still be sent in this burst.
    budget: u8,
    has_bus: bool,
    run: EndpointRun,
    /// IN: a packet was damaged; packets are ignored until it is repeated.
    is_retrying: bool,
    /// OUT: packets after those that were acknowledged that were sent before the device did not
    /// answer; it may have them.
    may_have: u8,
    /// Times in a row that the device did not answer.
    failures: u8,
    /// Counts messages; timeouts compare it.
    steps: u32,
    /// An endpoint without streams whose device is not ready.
    is_blocked: bool,
    outbox: Fifo<Message>,
    progress: Fifo<Progress>,
}

impl HostEndpoint {
    /// An endpoint on which nothing has moved.
    pub fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            queues: Queues::new(&endpoint),
            pipe: (endpoint.streams > 0).then(Host::new),
            next: Sequence::default(),
            in_flight: 0,
            limit: endpoint.burst,
            budget: 0,
            has_bus: false,
            run: EndpointRun::Running,
            is_retrying: false,
            may_have: 0,
            failures: 0,
            steps: 0,
            is_blocked: false,
            outbox: Fifo::new(),
            progress: Fifo::new(),
        }
    }

    /// Returns the message counter that timeouts compare.
    pub(in crate::link::bulk) const fn steps(&self) -> u32 {
        self.steps
    }

    /// Starts the message counter at `steps`.
    pub(in crate::link::bulk) const fn count_from(&mut self, steps: u32) {
        self.steps = steps;
    }

    /// Queues a transfer: memory to fill on an IN endpoint, bytes to send on an OUT endpoint.
    ///
    /// # Errors
    /// If the endpoint has no such stream.
    pub fn queue(&mut self, stream: Option<StreamId>, transfer: Transfer) -> Result<(), NoSuchStream> {
        if stream.is_some() != self.pipe.is_some() {
            return Err(NoSuchStream);
        }
        let was_empty = self.queues.push(stream, transfer).ok_or(NoSuchStream)?;
        if let (Some(pipe), Some(stream), true) = (&mut self.pipe, stream, was_empty) {
            let said = pipe.arm(stream);
            self.say(said);
            self.leave_if_done();
        }
        Ok(())
    }

    /// Releases the bus at the next packet boundary, and starts nothing until [`Self::resume`].
    pub fn stop(&mut self) {
        if self.run != EndpointRun::Running {
            return;
        }
        if self.may_have > 0 {
            return self.halt(EndpointRun::Failed, End::Failed);
        }
        self.run = EndpointRun::Stopped;
        // What was asked for comes still; what was not sent is not.
        self.has_bus &= self.is_in();
        if let Some(pipe) = &mut self.pipe {
            pipe.hold();
        }
    }

    /// Returns whether it is stopped or halted with nothing in flight.
    pub fn is_quiet(&self) -> bool {
        let is_settled = self.is_halted() || self.pipe.as_ref().is_none_or(Host::is_settled);
        self.run != EndpointRun::Running
            && !self.has_bus
            && self.in_flight == 0
            && is_settled
            && self.outbox.is_empty()
    }

    /// Returns whether the device has halted it or does not respond.
    pub fn is_halted(&self) -> bool {
        matches!(self.run, EndpointRun::Halted | EndpointRun::Failed)
    }

    /// Returns whether it is halted because the device does not respond.
    pub fn has_failed(&self) -> bool {
        self.run == EndpointRun::Failed
    }

    /// Restarts it after [`Self::stop`] or [`Self::reset`]. Has no effect while halted.
    pub fn resume(&mut self) {
        if self.run != EndpointRun::Stopped {
            return;
        }
        self.run = EndpointRun::Running;
        if let Some(pipe) = &mut self.pipe {
            let queues = &self.queues;
            let said = pipe.release(|stream| !queues.is_empty(Some(stream)));
            self.say(said);
            self.leave_if_done();
        }
    }

    /// Cancels a transfer. Returns the bytes of it that have moved.
    ///
    /// # Errors
    /// If it is not queued, or packets of its stream are in flight.
    pub fn withdraw(&mut self, stream: Option<StreamId>, id: TransferId) -> Result<u32, NotWithdrawn> {
        let is_current = self.pipe.as_ref().is_none_or(|pipe| pipe.current() == stream);
        if is_current && (self.has_bus || self.in_flight > 0) {
            return Err(NotWithdrawn::InFlight);
        }
        let progress = self.queues.withdraw(stream, id).flatten().ok_or(NotWithdrawn::Unknown)?;
        self.leave_if_empty();
        Ok(progress.moved)
    }

    /// Resets it to sequence number 0, no stream, not halted, keeping its transfers. It is stopped
    /// then.
    pub fn reset(&mut self) {
        // Nothing of a host is cancelled while it is in flight.
        let _ = self.queues.forget_sent();
        let queues = std::mem::replace(&mut self.queues, Queues::new(&self.endpoint));
        let progress = std::mem::take(&mut self.progress);
        let steps = self.steps.wrapping_add(1);
        *self = Self { queues, progress, steps, run: EndpointRun::Stopped, ..Self::new(self.endpoint) };
        if let Some(pipe) = &mut self.pipe {
            pipe.hold();
            if let Some(stream) = self.queues.find(|_| true) {
                pipe.arm(stream);
            }
        }
    }

    /// Transfers of a stream, oldest first.
    pub(super) fn transfers(&self, stream: Option<StreamId>) -> impl Iterator<Item = TransferId> {
        self.queues.of(stream)
    }

    /// The same of all streams.
    pub(super) fn all_transfers(&self) -> impl Iterator<Item = (Option<StreamId>, TransferId)> {
        self.queues.all()
    }

    /// Returns the bytes that the first transfer of a stream still waits for, or has not sent.
    pub(super) fn expects(&self, stream: Option<StreamId>) -> Option<u32> {
        self.queues.first_bytes(stream)
    }

    /// Returns whether it would start a burst if granted the bus.
    pub fn wants_bus(&self) -> bool {
        !self.has_bus
            && self.run == EndpointRun::Running
            && self.current().is_some_and(|stream| self.has_more(stream))
            && self.has_window()
    }

    /// Returns whether it has the bus: a burst is in progress.
    pub const fn has_bus(&self) -> bool {
        self.has_bus
    }

    /// Grants it the bus for one burst.
    pub fn start(&mut self) {
        let Some(stream) = self.current() else { return };
        self.has_bus = true;
        self.budget = self.endpoint.burst;
        if self.is_in() {
            self.ask(stream);
        }
    }

    /// Handles a message of the device. `may_go_on` reports that no other endpoint wants the bus.
    ///
    /// # Errors
    /// If the device could not have sent it in this state.
    #[inline(never)]
    pub fn receive(&mut self, message: &Message, may_go_on: bool) -> Result<(), Violation> {
        self.steps = self.steps.wrapping_add(1);
        match *message {
            // It has crossed what halted the endpoint.
            _ if self.is_halted() => Ok(()),
            Message::Data { stream, sequence, piece: Some(piece), is_last, .. } if self.is_in() => {
                self.receive_data(stream, sequence, piece, is_last, may_go_on)
            }
            Message::Ack { stream, expects, packets, is_retry, .. } if !self.is_in() => {
                self.receive_ack(stream, expects, packets, is_retry)
            }
            Message::Nrdy { stream, .. } => self.receive_nrdy(stream),
            Message::Stall { .. } => {
                self.halt(EndpointRun::Halted, End::Stalled);
                Ok(())
            }
            Message::Erdy { stream, packets, .. } => self.receive_erdy(stream, packets),
            _ => Err(Violation),
        }
    }

    /// Returns the next message other than data.
    pub fn poll_answer(&mut self) -> Option<Message> {
        self.outbox.pop_front()
    }

    /// Returns whether a message other than data is pending.
    pub(super) fn has_answer(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// Returns whether it may send data: it has the bus for that, and the device has room.
    pub(super) fn may_send(&self) -> bool {
        self.has_bus && self.has_window() && !self.is_in()
    }

    /// Returns whether progress is pending.
    pub(super) fn has_progress(&self) -> bool {
        !self.progress.is_empty()
    }

    /// Returns the next progress report.
    pub fn poll_progress(&mut self) -> Option<Progress> {
        self.progress.pop_front()
    }

    fn is_in(&self) -> bool {
        self.endpoint.address.direction() == Direction::In
    }

    /// The stream that may move: `Some(None)` on an endpoint without streams.
    fn current(&self) -> Option<Option<StreamId>> {
        match &self.pipe {
            Some(pipe) => pipe.current().map(Some),
            None => (!self.is_blocked).then_some(None),
        }
    }

    fn has_more(&self, stream: Option<StreamId>) -> bool {
        if self.is_in() { !self.queues.is_empty(stream) } else { self.queues.has_unsent(stream) }
    }

    const fn has_window(&self) -> bool {
        self.in_flight < self.limit
    }

    /// Asks for the packets of the first transfer, or as many as a burst has.
    #[inline(always)]
    fn ask(&mut self, stream: Option<StreamId>) {
        let left = self.queues.left(stream).unwrap_or(0);
        self.in_flight =
            u8::try_from(self.endpoint.packets(left)).unwrap_or(u8::MAX).min(self.endpoint.burst);
        self.send_ack(stream, true, self.is_retrying);
    }

    fn acknowledge(&mut self, stream: Option<StreamId>, is_pending: bool) {
        self.send_ack(stream, is_pending, false);
    }

    fn send_ack(&mut self, stream: Option<StreamId>, is_pending: bool, is_retry: bool) {
        let (endpoint, expects, packets) = (self.endpoint.address, self.next, self.in_flight);
        let stream = stream.map(StreamField::Stream);
        self.outbox.push_back(Message::Ack { endpoint, stream, expects, packets, is_pending, is_retry });
    }

    #[inline]
    fn receive_data(
        &mut self,
        field: Option<StreamField>,
        sequence: Sequence,
        piece: PacketPayload,
        is_last: bool,
        may_go_on: bool,
    ) -> Result<(), Violation> {
        let ahead = sequence.since(self.next);
        if ahead > 0 && (self.is_retrying || ahead < self.in_flight) {
            // One is missing.
            if !self.is_retrying {
                self.ask_again();
            }
            return Ok(());
        }
        (self.is_retrying, self.failures) = (false, 0);
        let stream = self.current().ok_or(Violation)?;
        let is_expected = self.has_bus && self.in_flight > 0 && sequence == self.next;
        if !is_expected || field != stream.map(StreamField::Stream) {
            return Err(Violation);
        }
        self.next = self.next.next();
        self.in_flight -= 1;
        let progress = self.queues.take(stream, piece, self.endpoint.packet_bytes).ok_or(Violation)?;
        self.progress.push_back(progress);
        let ends = is_last || matches!(progress.ended, Some(End::Short | End::Overflow));
        let has_more = !self.queues.is_empty(stream);
        match () {
            () if may_go_on && has_more && !is_last && self.run == EndpointRun::Running => self.ask(stream),
            () if !ends && self.in_flight > 0 => self.acknowledge(stream, true),
            () => self.end_burst(stream, is_last, has_more)?,
        }
        Ok(())
    }

    /// The burst is over, on an IN endpoint.
    fn end_burst(
        &mut self,
        stream: Option<StreamId>,
        is_last: bool,
        has_more: bool,
    ) -> Result<(), Violation> {
        self.has_bus = false;
        self.in_flight = 0;
        self.acknowledge(stream, has_more && !is_last);
        let (Some(pipe), Some(stream)) = (&mut self.pipe, stream) else {
            self.is_blocked = is_last;
            return Ok(());
        };
        let said = pipe.receive(FromDevice::Burst { stream, ends: is_last }, |_| has_more)?;
        // The acknowledgement has said Move or Last already.
        for said in said.into_iter().flatten().filter(|said| *said == FromHost::Prime) {
            self.say(Some(said));
        }
        // The device will propose the stream when it has more.
        Ok(())
    }

    /// Returns the next data packet of the burst.
    pub fn poll_data(&mut self) -> Option<Message> {
        let stream = self.current().filter(|_| self.may_send())?;
        let (piece, is_last) = self.queues.send(stream, self.endpoint.packet_bytes)?;
        let sequence = self.next;
        self.next = self.next.next();
        self.in_flight += 1;
        self.budget -= 1;
        self.has_bus = self.budget > 0 && !is_last;
        let (endpoint, stream) = (self.endpoint.address, stream.map(StreamField::Stream));
        Some(Message::Data { endpoint, stream, sequence, piece: Some(piece), is_last })
    }

    #[inline]
    fn receive_ack(
        &mut self,
        field: Option<StreamField>,
        expects: Sequence,
        packets: u8,
        is_retry: bool,
    ) -> Result<(), Violation> {
        if self.in_flight == 0 && self.may_have == 0 && expects == self.next {
            // It answers what was sent again and had been taken before.
            return Ok(());
        }
        let stream = self.current().ok_or(Violation)?;
        self.skip_to(stream, expects);
        let left = self.next.since(expects);
        // It answers what was sent again, so it has nothing beyond.
        (self.may_have, self.failures) = (0, 0);
        if field != stream.map(StreamField::Stream) && left == self.in_flight {
            // The same, of a stream that has ended since.
            return Ok(());
        }
        if field != stream.map(StreamField::Stream) || left > self.in_flight {
            return Err(Violation);
        }
        for _ in left..self.in_flight {
            let progress = self.queues.taken(stream, self.endpoint.packet_bytes).ok_or(Violation)?;
            self.progress.push_back(progress);
        }
        self.in_flight = left;
        self.limit = packets;
        if is_retry {
            self.rewind_to(stream, expects);
            return Ok(());
        }
        // Without room now, the device still answers what is in flight: it takes that, or says
        // NRDY.
        let is_answered = left == 0;
        let ends = packets == 0;
        if is_answered && (ends || !self.queues.has_unsent(stream)) {
            self.end_turn(stream, ends)
        } else {
            Ok(())
        }
    }

    /// All that was sent is acknowledged, or the device takes no more, on an OUT endpoint.
    fn end_turn(&mut self, stream: Option<StreamId>, ends: bool) -> Result<(), Violation> {
        self.has_bus = false;
        let (Some(pipe), Some(stream)) = (&mut self.pipe, stream) else {
            self.is_blocked |= ends;
            return Ok(());
        };
        self.limit = self.endpoint.burst;
        let [_last, said] = pipe.receive(FromDevice::Burst { stream, ends }, |_| false)?;
        self.say(said);
        Ok(())
    }

    fn receive_nrdy(&mut self, field: Option<StreamField>) -> Result<(), Violation> {
        (self.may_have, self.failures) = (0, 0);
        let current = self.current();
        match (&mut self.pipe, field) {
            (None, None) => self.is_blocked = true,
            (Some(pipe), Some(field)) => {
                let [said, _] = pipe.receive(FromDevice::Nrdy(field), |_| false)?;
                self.say(said);
                // It answers Prime or a refusal, so nothing that was sent was refused.
                if current != Some(named(Some(field))) {
                    return Ok(());
                }
            }
            _ => return Err(Violation),
        }
        self.has_bus = false;
        if self.is_in() {
            (self.in_flight, self.is_retrying) = (0, false);
        } else if let Some(stream) = current {
            let oldest = self.next.before(self.in_flight);
            self.rewind_to(stream, oldest);
            self.limit = self.endpoint.burst;
        }
        Ok(())
    }

    /// Leaves a stream without transfers for others that have some.
    fn leave_if_done(&mut self) {
        if self.pipe.as_ref().is_some_and(Host::has_pending) {
            self.leave_if_empty();
        }
    }

    /// Leaves a stream without transfers. A device that has proposed it waits for an answer and
    /// proposes no other stream before.
    fn leave_if_empty(&mut self) {
        let is_at_rest = self.run == EndpointRun::Running && !self.has_bus && self.in_flight == 0;
        let Some(pipe) = self.pipe.as_mut().filter(|_| is_at_rest) else { return };
        let queues = &self.queues;
        if pipe.current().is_some_and(|stream| queues.is_empty(Some(stream))) {
            let said = pipe.leave();
            self.say(said);
        }
    }

    #[inline]
    fn receive_erdy(&mut self, stream: Option<StreamId>, packets: u8) -> Result<(), Violation> {
        match (&mut self.pipe, stream) {
            (None, None) => {
                self.is_blocked = false;
                self.limit = packets.min(self.endpoint.burst);
            }
            (Some(pipe), Some(stream)) => {
                let queues = &self.queues;
                let [said, _] =
                    pipe.receive(FromDevice::Erdy(stream), |stream| !queues.is_empty(Some(stream)))?;
                let begins = self.in_flight == 0 && pipe.current() == Some(stream);
                if begins {
                    self.limit = packets.min(self.endpoint.burst);
                }
                self.say(said);
            }
            _ => return Err(Violation),
        }
        Ok(())
    }

    /// Sends the packet of the stream state machine, unless the first packet of a burst stands for
    /// it.
    fn say(&mut self, said: Option<FromHost>) {
        let field = match said {
            Some(FromHost::Prime) => StreamField::Prime,
            Some(FromHost::NoStream) => StreamField::NoStream,
            Some(FromHost::Move(_) | FromHost::Last(_)) | None => return,
        };
        let (endpoint, stream) = (self.endpoint.address, Some(field));
        self.outbox.push_back(if self.is_in() {
            let packets = u8::from(field == StreamField::Prime);
            Message::Ack { endpoint, stream, expects: self.next, packets, is_pending: false, is_retry: false }
        } else {
            Message::Data { endpoint, stream, sequence: self.next, piece: None, is_last: true }
        });
    }
}
