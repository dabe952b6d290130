//! The device side of a SuperSpeed bulk endpoint: answers the host, and requests attention with
//! ERDY.
//!
//! The device function queues its transfers; without any it answers NRDY, and sends ERDY once one
//! is queued. With streams it proposes the stream that has waited longest (USB 3.2 clause
//! 8.12.1.4). While halted it answers STALL to every request; queued transfers wait until the halt
//! is cleared.
//!
//! Invariants: sends no more than requested; ignores packets with an unexpected sequence number.

use super::NoSuchStream;
use super::message::{Message, Sequence, named};
use super::queue::Queues;
use crate::link::streams::{Device, DeviceState, FromDevice, FromHost, StreamField, Violation};
use bus::link::{Endpoint, PacketPayload, Progress, Transfer};
use bus::{Fifo, StreamId, TransferId};
use wire::usb::Direction;

/// The device side.
#[derive(Clone, Debug)]
pub struct DeviceEndpoint {
    endpoint: Endpoint,
    queues: Queues,
    /// Of an endpoint with streams.
    pipe: Option<Device>,
    /// IN: the number of the next packet; OUT: that which is expected.
    next: Sequence,
    /// IN: packets that were sent and not acknowledged.
    in_flight: u8,
    /// IN: the stream of those packets.
    moving: Option<StreamId>,
    /// Counts messages of the host; timeouts compare it.
    steps: u32,
    /// IN: packets that may be sent.
    window: u8,
    /// IN: the last packet of a burst is not acknowledged. Requests that crossed it are void.
    is_burst_over: bool,
    /// An endpoint without streams that has said that it is not ready, and has to say when it is.
    owes_erdy: bool,
    /// Such an endpoint has said that it is ready, and the host has not answered.
    has_said_erdy: bool,
    is_halted: bool,
    /// Number of injected NRDYs, each followed by ERDY.
    refusals: u8,
    outbox: Fifo<Message>,
    progress: Fifo<Progress>,
}

impl DeviceEndpoint {
    /// An endpoint on which nothing has moved.
    pub fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            queues: Queues::new(&endpoint),
            pipe: (endpoint.streams > 0).then(Device::new),
            next: Sequence::default(),
            in_flight: 0,
            moving: None,
            steps: 0,
            window: 0,
            is_burst_over: false,
            owes_erdy: false,
            has_said_erdy: false,
            is_halted: false,
            refusals: 0,
            outbox: Fifo::new(),
            progress: Fifo::new(),
        }
    }

    /// Returns the message counter that timeouts compare.
    pub(super) const fn steps(&self) -> u32 {
        self.steps
    }

    /// Starts the message counter at `steps`.
    pub(super) const fn count_from(&mut self, steps: u32) {
        self.steps = steps;
    }

    /// Queues a transfer: bytes to send on an IN endpoint, room on an OUT endpoint.
    ///
    /// # Errors
    /// If the endpoint has no such stream.
    pub fn queue(&mut self, stream: Option<StreamId>, transfer: Transfer) -> Result<(), NoSuchStream> {
        if stream.is_some() != self.pipe.is_some() {
            return Err(NoSuchStream);
        }
        self.queues.push(stream, transfer).ok_or(NoSuchStream)?;
        self.say_ready();
        self.propose();
        Ok(())
    }

    /// Cancels a transfer. Returns whether it was queued: it then completes as withdrawn, as soon
    /// as the host has acknowledged the packets sent of it.
    pub fn withdraw(&mut self, stream: Option<StreamId>, id: TransferId) -> bool {
        let Some(ended) = self.queues.withdraw(stream, id) else { return false };
        ended.into_iter().for_each(|ended| self.progress.push_back(ended));
        if self.is_in() && self.window > 0 && self.in_flight == 0 {
            self.answer_want();
        }
        true
    }

    /// Halts the endpoint (clause 8.11.1: a device answers STALL then). If the host waits for ERDY,
    /// the endpoint sends one, so that the host polls it and sees the halt.
    pub fn halt(&mut self) {
        if std::mem::replace(&mut self.is_halted, true) {
            return;
        }
        // What waits for an acknowledgement is answered when that comes.
        if std::mem::take(&mut self.window) > 0 && self.in_flight == 0 {
            let stream = self.pipe.as_ref().and_then(Device::current);
            self.stall(stream.map(StreamField::Stream));
        }
        self.say_ready();
        self.propose();
    }

    /// Makes the endpoint answer NRDY `times` times although it is ready, each followed by ERDY.
    pub const fn refuse(&mut self, times: u8) {
        self.refusals = times;
    }

    /// Returns whether it is not ready once more, though it could move `stream`.
    fn refuses(&mut self, stream: Option<StreamId>) -> bool {
        let refuses = self.refusals > 0 && self.is_ready(stream);
        self.refusals -= u8::from(refuses);
        refuses
    }

    /// Clears the halt and resets the endpoint to sequence number 0 without a current stream
    /// (clause 9.4.5). Transfers are kept and continue where they are.
    pub fn clear_halt(&mut self) {
        while let Some(ended) = self.queues.forget_sent() {
            self.progress.push_back(ended);
        }
        let queues = std::mem::replace(&mut self.queues, Queues::new(&self.endpoint));
        let progress = std::mem::take(&mut self.progress);
        *self = Self { queues, progress, steps: self.steps, ..Self::new(self.endpoint) };
    }

    /// Handles a message of the host.
    ///
    /// # Errors
    /// If the host could not have sent it in this state.
    #[inline(never)]
    pub fn receive(&mut self, message: &Message) -> Result<(), Violation> {
        let is_in = self.is_in();
        self.has_said_erdy = false;
        self.steps = self.steps.wrapping_add(1);
        if self.is_halted {
            return self.receive_halted(message);
        }
        match *message {
            Message::Ack { stream: Some(StreamField::Prime | StreamField::NoStream), expects, .. }
                if self.in_flight > 0 =>
            {
                // The acknowledgement of the last burst was lost, and this stands for it.
                let left = self.next.since(expects).min(self.in_flight);
                self.acknowledge(left)?;
                if left > 0 {
                    self.go_back(expects);
                }
            }
            _ => {}
        }
        match *message {
            Message::Ack { stream: Some(StreamField::Prime), .. }
            | Message::Data { stream: Some(StreamField::Prime), .. } => {
                self.window = 0;
                self.notify_pipe(FromHost::Prime)?;
            }
            Message::Ack { stream: Some(StreamField::NoStream), .. }
            | Message::Data { stream: Some(StreamField::NoStream), .. } => {
                self.notify_pipe(FromHost::NoStream)?
            }
            Message::Ack { stream, expects, packets, is_pending, is_retry, .. } if is_in => {
                self.receive_ack(named(stream), expects, packets, is_pending, is_retry)?;
            }
            Message::Data { stream, sequence, piece: Some(piece), is_last, .. } if !is_in => {
                // What followed a packet that was not taken comes again after it.
                if sequence == self.next {
                    self.receive_data(named(stream), Some(piece), is_last)?;
                } else if sequence.is_before(self.next) {
                    self.repeat_taken(named(stream));
                }
            }
            _ => return Err(Violation),
        }
        self.propose();
        Ok(())
    }

    /// Handles an acknowledgement early, before it arrives, if it only reports one more accepted
    /// packet of a running burst and no later answer depends on it. Returns whether it was handled,
    /// so that its arrival need not be scheduled.
    #[inline]
    pub(super) fn hear_early(&mut self, stream: StreamId, expects: Sequence, packets: u8) -> bool {
        let Some(pipe) = &self.pipe else { return false };
        let is_moving = match pipe.state() {
            DeviceState::MoveData(moving) | DeviceState::BurstSent(moving) => moving == stream,
            _ => false,
        };
        let left = self.next.since(expects);
        let is_next = is_moving && left + 1 == self.in_flight && !self.is_halted && self.refusals == 0;
        let asks_for_no_more = self.is_burst_over || packets.saturating_sub(left) == self.window;
        // Else what comes of it is reported: an answer, or the end of a transfer.
        let goes_on = left > 0 || self.window > 0 && self.queues.has_unsent(Some(stream));
        if !is_next || !asks_for_no_more || !goes_on {
            return false;
        }
        let is_counted = self.queues.take_within(Some(stream), self.endpoint.packet_bytes);
        if is_counted {
            (self.in_flight, self.has_said_erdy) = (left, false);
            self.steps = self.steps.wrapping_add(1);
        }
        is_counted
    }

    /// Returns the next message other than data.
    pub fn poll_answer(&mut self) -> Option<Message> {
        self.outbox.pop_front()
    }

    /// Returns whether a message other than data is pending.
    pub(super) fn has_answer(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// Returns whether the host has requested data that may be available.
    pub(super) fn may_send(&self) -> bool {
        self.window > 0 && self.is_in()
    }

    /// Returns whether progress is pending.
    pub(super) fn has_progress(&self) -> bool {
        !self.progress.is_empty()
    }

    /// Returns the next progress report.
    pub fn poll_progress(&mut self) -> Option<Progress> {
        self.progress.pop_front()
    }

    /// Sends ERDY if it answered NRDY before.
    fn say_ready(&mut self) {
        if std::mem::take(&mut self.owes_erdy) {
            self.has_said_erdy = true;
            self.send_erdy();
        }
    }

    /// Repeats ERDY after a timeout: the host did not answer it, or did not acknowledge the end of
    /// a burst. The host then repeats what it expects.
    pub fn repeat_erdy(&mut self) {
        if self.awaits().is_none() {
            return;
        }
        match &mut self.pipe {
            None => self.send_erdy(),
            Some(pipe) => {
                if let Some(FromDevice::Erdy(stream)) = pipe.propose_again() {
                    self.send_proposal(stream);
                }
            }
        }
    }

    /// Returns the message counter if the host owes an answer to ERDY or to the end of a burst.
    pub fn awaits(&self) -> Option<u32> {
        let is_asked = match &self.pipe {
            None => self.has_said_erdy,
            Some(pipe) => matches!(pipe.state(), DeviceState::StartStream(_)),
        };
        (is_asked || self.is_burst_over && self.in_flight > 0).then_some(self.steps)
    }

    fn send_proposal(&mut self, stream: StreamId) {
        let (endpoint, packets) = (self.endpoint.address, self.packets_of(Some(stream)));
        self.outbox.push_back(Message::Erdy { endpoint, stream: Some(stream), packets });
    }

    fn send_erdy(&mut self) {
        let packets = self.packets_of(None).max(1);
        self.outbox.push_back(Message::Erdy { endpoint: self.endpoint.address, stream: None, packets });
    }

    #[cold]
    #[inline(never)]
    fn stall(&mut self, stream: Option<StreamField>) {
        self.outbox.push_back(Message::Stall { endpoint: self.endpoint.address, stream });
    }

    /// Handles a message while halted: accepts acknowledgements, answers everything else with
    /// STALL.
    #[cold]
    #[inline(never)]
    fn receive_halted(&mut self, message: &Message) -> Result<(), Violation> {
        match *message {
            Message::Ack { stream, expects, packets, is_retry, .. } if self.is_in() => {
                let mut left = self.next.since(expects);
                if left <= self.in_flight {
                    self.acknowledge(left)?;
                }
                if is_retry {
                    self.go_back(expects);
                    left = 0;
                }
                let wants_data = packets > 0 && left == 0;
                if wants_data || matches!(stream, Some(StreamField::Prime | StreamField::NoStream)) {
                    self.stall(stream);
                }
                Ok(())
            }
            Message::Data { stream, .. } => {
                self.stall(stream);
                Ok(())
            }
            _ => Err(Violation),
        }
    }

    /// Completes all packets in flight except the last `left`.
    #[inline(always)]
    fn acknowledge(&mut self, left: u8) -> Result<(), Violation> {
        for _ in left..self.in_flight {
            let progress = self.queues.taken(self.moving, self.endpoint.packet_bytes).ok_or(Violation)?;
            self.progress.push_back(progress);
        }
        self.in_flight = left;
        Ok(())
    }

    fn is_in(&self) -> bool {
        self.endpoint.address.direction() == Direction::In
    }

    /// Returns whether a stream has data or room.
    fn is_ready(&self, stream: Option<StreamId>) -> bool {
        if self.is_in() { self.queues.has_unsent(stream) } else { !self.queues.is_empty(stream) }
    }

    /// Returns the packets of the first transfer, at most one burst.
    fn packets_of(&self, stream: Option<StreamId>) -> u8 {
        let packets = self.queues.left(stream).map_or(0, |left| self.endpoint.packets(left));
        u8::try_from(packets).unwrap_or(u8::MAX).min(self.endpoint.burst)
    }

    /// Proposes the stream that has waited longest, if the pipe is idle.
    #[inline]
    fn propose(&mut self) {
        if self.pipe.as_ref().is_some_and(|pipe| pipe.state() == DeviceState::Idle) {
            self.propose_next();
        }
    }

    fn propose_next(&mut self) {
        let Some(pipe) = &mut self.pipe else { return };
        let Some(stream) = self.queues.find(|stream| pipe.may_propose(stream)) else { return };
        if pipe.propose(stream).is_some() {
            self.send_proposal(stream);
        }
    }

    /// Passes a host message to the stream state machine and sends its answer.
    fn notify_pipe(&mut self, said: FromHost) -> Result<(), Violation> {
        let ready = match said {
            FromHost::Move(stream) => self.is_ready(Some(stream)),
            _ => false,
        };
        let answer = self.pipe.as_mut().ok_or(Violation)?.receive(said, |_| ready)?;
        self.say_refusal(answer);
        Ok(())
    }

    fn say_refusal(&mut self, answer: Option<FromDevice>) {
        if let Some(FromDevice::Nrdy(field)) = answer {
            self.outbox.push_back(Message::Nrdy { endpoint: self.endpoint.address, stream: Some(field) });
        }
    }

    /// Handles an ACK: completes packets and opens the window for more.
    #[inline]
    fn receive_ack(
        &mut self,
        stream: Option<StreamId>,
        expects: Sequence,
        packets: u8,
        is_pending: bool,
        is_retry: bool,
    ) -> Result<(), Violation> {
        let mut left = self.next.since(expects);
        if left > self.in_flight {
            return Err(Violation);
        }
        self.acknowledge(left)?;
        if is_retry {
            self.go_back(expects);
            left = 0;
        }
        self.is_burst_over &= left > 0;
        self.window = if self.is_burst_over { 0 } else { packets.saturating_sub(left) };
        match (self.pipe.as_ref().map(Device::state), stream) {
            (None, None) => self.answer_want(),
            (Some(DeviceState::BurstSent(_)), Some(stream)) if self.window > 0 => {
                self.notify_pipe(FromHost::Move(stream))?;
                self.answer_want();
            }
            (Some(DeviceState::BurstSent(_)), Some(stream)) if packets == 0 && left == 0 && !is_pending => {
                self.notify_pipe(FromHost::Last(stream))?;
            }
            (Some(DeviceState::BurstSent(_)), Some(_)) => {}
            (Some(DeviceState::MoveData(_)), Some(_)) => self.answer_want(),
            // The acknowledgement of the last burst, which was taken for lost; the proposal is
            // answered after it.
            (Some(DeviceState::StartStream(_)), Some(_)) if packets == 0 => {}
            (Some(_), Some(stream)) => {
                self.notify_pipe(FromHost::Move(stream))?;
                if self.pipe.as_ref().and_then(Device::current).is_none() {
                    // It has been refused.
                    self.window = 0;
                }
                self.answer_want();
            }
            _ => return Err(Violation),
        }
        Ok(())
    }

    /// Rewinds to the first packet that the host has not accepted.
    #[cold]
    #[inline(never)]
    fn go_back(&mut self, from: Sequence) {
        self.queues.rewind(self.moving);
        (self.next, self.in_flight, self.is_burst_over) = (from, 0, false);
        if let Some(pipe) = &mut self.pipe {
            pipe.retry();
        }
        // The end of the burst will come again as well.
        self.owes_erdy = false;
    }

    /// Sends NRDY if the host requests more than is available.
    #[inline(always)]
    fn answer_want(&mut self) {
        let stream = self.pipe.as_ref().and_then(Device::current);
        if self.window == 0 || self.in_flight > 0 {
            return;
        }
        let is_refused = self.refuses(stream);
        if self.queues.has_unsent(stream) && !is_refused {
            return;
        }
        self.window = 0;
        self.decline(stream);
        if is_refused {
            self.say_ready();
        }
    }

    /// Sends NRDY and notes that ERDY is due.
    fn decline(&mut self, stream: Option<StreamId>) {
        if let Some(pipe) = &mut self.pipe {
            pipe.decline();
        }
        self.owes_erdy = self.pipe.is_none();
        let endpoint = self.endpoint.address;
        self.outbox.push_back(Message::Nrdy { endpoint, stream: stream.map(StreamField::Stream) });
    }

    /// Returns the next data packet that the host has requested.
    #[inline]
    pub fn poll_data(&mut self) -> Option<Message> {
        if !self.is_in() || self.window == 0 {
            return None;
        }
        let stream = match &self.pipe {
            Some(pipe) => match pipe.state() {
                DeviceState::MoveData(stream) => Some(stream),
                _ => return None,
            },
            None => None,
        };
        let (piece, is_last) = self.queues.send(stream, self.endpoint.packet_bytes)?;
        let sequence = self.next;
        self.next = self.next.next();
        self.in_flight += 1;
        self.moving = stream;
        let is_short = piece.bytes < self.endpoint.packet_bytes;
        self.is_burst_over = is_last || is_short;
        self.window = if self.is_burst_over { 0 } else { self.window - 1 };
        match &mut self.pipe {
            Some(pipe) if self.window == 0 => {
                pipe.burst(is_last);
            }
            Some(_) => {}
            None => self.owes_erdy = is_last,
        }
        let (endpoint, stream) = (self.endpoint.address, stream.map(StreamField::Stream));
        Some(Message::Data { endpoint, stream, sequence, piece: Some(piece), is_last })
    }

    /// Handles a data packet of the host with a damaged payload.
    ///
    /// # Errors
    /// If the host could not have sent it in this state.
    pub fn receive_damaged(&mut self, message: &Message) -> Result<(), Violation> {
        match *message {
            Message::Data { stream, sequence, piece: Some(_), is_last, .. }
                if !self.is_in() && !self.is_halted =>
            {
                self.has_said_erdy = false;
                if sequence == self.next {
                    self.receive_data(named(stream), None, is_last)?;
                } else if sequence.is_before(self.next) {
                    self.repeat_taken(named(stream));
                }
                self.propose();
                Ok(())
            }
            // Without payload nothing of it is damaged; a halt is reported whatever comes.
            _ => self.receive(message),
        }
    }

    /// Handles the expected data packet; `None` if it is damaged.
    fn receive_data(
        &mut self,
        stream: Option<StreamId>,
        piece: Option<PacketPayload>,
        is_last: bool,
    ) -> Result<(), Violation> {
        if let (Some(pipe), Some(stream)) = (&self.pipe, stream)
            && pipe.current() != Some(stream)
        {
            self.notify_pipe(FromHost::Move(stream))?;
            if self.pipe.as_ref().and_then(Device::current) != Some(stream) {
                return Ok(());
            }
        }
        let is_refused = piece.is_some() && self.refuses(stream);
        let Some(piece) = piece.filter(|_| !self.queues.is_empty(stream) && !is_refused) else {
            if is_refused {
                self.decline(stream);
                self.say_ready();
            } else if self.queues.is_empty(stream) {
                self.decline(stream);
            } else {
                self.say_taken(stream, true);
            }
            return Ok(());
        };
        let progress = self.queues.take(stream, piece, self.endpoint.packet_bytes).ok_or(Violation)?;
        self.next = self.next.next();
        self.progress.push_back(progress);
        let packets = self.say_taken(stream, false);
        self.end_turn(stream, is_last, packets == 0)
    }

    /// Acknowledges a duplicate packet again: the first acknowledgement was lost.
    #[cold]
    #[inline(never)]
    fn repeat_taken(&mut self, stream: Option<StreamId>) {
        if let Some(pipe) = &mut self.pipe {
            pipe.forget_proposal();
        }
        let packets = self.say_taken(stream, false);
        self.owes_erdy |= self.pipe.is_none() && packets == 0;
    }

    /// Sends ACK with the expected sequence number. Returns the packets there is room for.
    fn say_taken(&mut self, stream: Option<StreamId>, is_retry: bool) -> u8 {
        let packets = self.packets_of(stream);
        self.outbox.push_back(Message::Ack {
            endpoint: self.endpoint.address,
            stream: stream.map(StreamField::Stream),
            expects: self.next,
            packets,
            is_pending: false,
            is_retry,
        });
        packets
    }

    /// Ends the burst when the host sends no more or there is no room for more.
    fn end_turn(&mut self, stream: Option<StreamId>, is_last: bool, is_full: bool) -> Result<(), Violation> {
        let (Some(pipe), Some(stream)) = (&mut self.pipe, stream) else {
            self.owes_erdy = is_full;
            return Ok(());
        };
        if is_last || is_full {
            pipe.burst(is_full);
            pipe.receive(FromHost::Last(stream), |_| false)?;
        }
        Ok(())
    }
}
