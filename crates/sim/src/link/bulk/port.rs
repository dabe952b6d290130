//! The endpoints of one device, including endpoint 0, at both ends of its link: arbitrates who
//! sends next.
//!
//! The host starts one burst at a time in each direction and uses round-robin; while others wait, a
//! burst ends after as many packets as the endpoint's largest burst, else it goes on. Answers go
//! before data, so that what ends a command is acknowledged before the next command comes. A
//! device's data uses round-robin as well. Who is next is found by what was noted of each endpoint
//! when it changed: [`Ends`].

use super::NoSuchStream;
use super::device::DeviceEndpoint;
use super::ends::{EndIndex, Ends, Set};
use super::host::HostEndpoint;
use super::message::Message;
use super::queue::NotWithdrawn;
use crate::link::control::{
    ControlAnswer, ControlBusy, ControlDevice, ControlEvent, ControlHost, ControlProgress, ControlTransfer,
};
use crate::link::streams::{StreamField, Violation};
use bus::link::{Endpoint, Progress, Transfer};
use bus::{Pipe, TransferId};
use std::collections::VecDeque;
use units::Duration;
use wire::usb::{Direction, EndpointAddress, SetupPacket};

/// How long a host waits for an answer (clause 8.13, tHostTransactionTimeout: 7.6 ms at least).
pub const TRANSACTION_TIMEOUT: Duration = Duration::from_us(7_600);

/// How long a device waits for an answer to ERDY before it repeats it (clause 8.13, tERDYTimeout).
/// The standard does not define a timeout for the acknowledgement of a burst; the same value is
/// assumed.
pub const ERDY_TIMEOUT: Duration = Duration::from_ms(500);

/// The host side of a device's endpoints.
#[derive(Clone, Debug, Default)]
pub struct HostPort {
    control: ControlHost,
    endpoints: Ends<HostEndpoint>,
    /// Where the last burst was started, by direction.
    turns: [EndIndex; 2],
    /// Halted endpoints that have not been reported.
    halts: VecDeque<EndpointAddress>,
    others: Others,
}

/// Bus usage of the other devices on the same bus, by direction, Out first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Others {
    /// A burst of theirs is in flight.
    pub have_bus: [bool; 2],
    /// They would start one.
    pub want_bus: [bool; 2],
}

/// The device side of its endpoints.
#[derive(Clone, Debug, Default)]
pub struct DevicePort {
    control: ControlDevice,
    endpoints: Ends<DeviceEndpoint>,
    /// The endpoint that sent last.
    turn: EndIndex,
}

impl HostPort {
    /// Creates the host side of a device's endpoints and of endpoint 0.
    pub fn new(endpoints: &[Endpoint]) -> Self {
        let mut port = Self::default();
        port.configure(endpoints);
        port
    }

    /// Returns a reset port with `endpoints`.
    #[must_use]
    pub fn reset_copy(&self, endpoints: &[Endpoint]) -> Self {
        let mut port = Self { endpoints: self.endpoints.reset_copy(), ..Self::default() };
        port.configure(endpoints);
        port
    }

    /// Replaces all endpoints except endpoint 0.
    pub fn configure(&mut self, endpoints: &[Endpoint]) {
        let control = std::mem::take(&mut self.control);
        *self = Self { control, endpoints: self.endpoints.reset_copy(), ..Self::default() };
        endpoints.iter().for_each(|&endpoint| self.install(endpoint));
    }

    /// Installs an endpoint, replacing one with the same address; the others are unchanged.
    pub fn install(&mut self, endpoint: Endpoint) {
        self.remove(endpoint.address);
        self.endpoints.install(endpoint.address, HostEndpoint::new(endpoint));
    }

    /// Removes an endpoint with its transfers.
    pub fn remove(&mut self, address: EndpointAddress) {
        self.endpoints.remove(address);
        self.halts.retain(|halted| *halted != address);
        self.turns = [EndIndex::default(); 2];
    }

    /// Starts a control transfer.
    ///
    /// # Errors
    /// If one is in progress.
    pub fn control(&mut self, transfer: ControlTransfer) -> Result<(), ControlBusy> {
        self.control.begin(transfer)
    }

    /// Returns the next progress report of the control transfer.
    pub fn poll_control(&mut self) -> Option<ControlProgress> {
        self.control.poll_progress()
    }

    /// Queues a transfer.
    ///
    /// # Errors
    /// If there is no such endpoint or stream.
    #[inline]
    pub fn queue(&mut self, pipe: Pipe, transfer: Transfer) -> Result<(), NoSuchStream> {
        self.change(pipe.endpoint, |end| end.queue(pipe.stream, transfer)).unwrap_or(Err(NoSuchStream))
    }

    /// Returns the length in bytes of the first transfer of a pipe. `None` if there is none.
    pub fn expects(&self, pipe: Pipe) -> Option<u32> {
        self.endpoints.get(pipe.endpoint)?.expects(pipe.stream)
    }

    /// Returns the outstanding transfers of a pipe, oldest first.
    pub fn transfers(&self, pipe: Pipe) -> impl Iterator<Item = TransferId> {
        let end = self.endpoints.get(pipe.endpoint);
        end.into_iter().flat_map(move |end| end.transfers(pipe.stream))
    }

    /// Returns the outstanding transfers of all pipes of an endpoint.
    pub fn transfers_of(&self, address: EndpointAddress) -> Vec<(Pipe, TransferId)> {
        self.select(|other| other == address)
    }

    /// The same of all endpoints.
    pub fn all_transfers(&self) -> Vec<(Pipe, TransferId)> {
        self.select(|_| true)
    }

    fn select(&self, wanted: impl Fn(EndpointAddress) -> bool) -> Vec<(Pipe, TransferId)> {
        let endpoints = self.endpoints.iter().filter(|(address, _)| wanted(*address));
        let all = endpoints.flat_map(|(endpoint, end)| {
            end.all_transfers().map(move |(stream, id)| (Pipe { endpoint, stream }, id))
        });
        all.collect()
    }

    /// Its endpoints.
    pub fn addresses(&self) -> impl Iterator<Item = EndpointAddress> {
        self.endpoints.iter().map(|(address, _)| address)
    }

    /// Stops an endpoint: see [`HostEndpoint::stop`]. Nothing happens if there is none.
    pub fn stop(&mut self, address: EndpointAddress) {
        self.change(address, HostEndpoint::stop);
    }

    /// Returns whether an endpoint is stopped or halted with nothing in flight, or does not exist.
    pub fn is_quiet(&self, address: EndpointAddress) -> bool {
        self.endpoints.get(address).is_none_or(HostEndpoint::is_quiet)
    }

    /// Returns whether an endpoint is halted.
    pub fn is_halted(&self, address: EndpointAddress) -> bool {
        self.endpoints.get(address).is_some_and(HostEndpoint::is_halted)
    }

    /// Starts an endpoint again: see [`HostEndpoint::resume`].
    pub fn resume(&mut self, address: EndpointAddress) {
        self.change(address, HostEndpoint::resume);
    }

    /// Cancels a transfer. Returns the bytes of it that have moved.
    ///
    /// # Errors
    /// If it is not queued, or packets of its stream are in flight.
    pub fn withdraw(&mut self, pipe: Pipe, id: TransferId) -> Result<u32, NotWithdrawn> {
        let withdrawn = self.change(pipe.endpoint, |end| end.withdraw(pipe.stream, id));
        withdrawn.unwrap_or(Err(NotWithdrawn::Unknown))
    }

    /// Resets an endpoint: see [`HostEndpoint::reset`].
    pub fn reset(&mut self, address: EndpointAddress) {
        self.change(address, HostEndpoint::reset);
    }

    /// Resets an endpoint that has failed, for a new try: see [`HostEndpoint::reset_for_retry`].
    pub fn reset_for_retry(&mut self, address: EndpointAddress) {
        self.change(address, HostEndpoint::reset_for_retry);
    }

    /// Returns whether an endpoint is halted because the device did not respond.
    pub fn has_failed(&self, address: EndpointAddress) -> bool {
        self.endpoints.get(address).is_some_and(HostEndpoint::has_failed)
    }

    /// Returns the message counter if the device owes an answer: see [`HostEndpoint::awaits`].
    pub fn awaits(&self, address: EndpointAddress) -> Option<u32> {
        if address.number() == 0 {
            return self.control.awaits();
        }
        self.endpoints.get(address)?.awaits()
    }

    /// Handles the expiry of [`TRANSACTION_TIMEOUT`] on an endpoint.
    pub fn time_out(&mut self, address: EndpointAddress) {
        if address.number() == 0 {
            return self.control.time_out();
        }
        self.change(address, HostEndpoint::time_out);
    }

    /// Changes an endpoint and records a new halt.
    #[inline(always)]
    fn change<R>(
        &mut self,
        address: EndpointAddress,
        change: impl FnOnce(&mut HostEndpoint) -> R,
    ) -> Option<R> {
        let place = self.endpoints.place(address)?;
        Some(self.change_at(address, place, change))
    }

    #[inline(always)]
    fn change_at<R>(
        &mut self,
        address: EndpointAddress,
        place: EndIndex,
        change: impl FnOnce(&mut HostEndpoint) -> R,
    ) -> R {
        let halts = &mut self.halts;
        self.endpoints.change(place, |end| {
            let was_halted = end.is_halted();
            let result = change(end);
            if end.is_halted() && !was_halted {
                halts.push_back(address);
            }
            result
        })
    }

    /// Returns the next endpoint that has halted.
    pub fn poll_halt(&mut self) -> Option<EndpointAddress> {
        self.halts.pop_front()
    }

    /// Handles a message of the device.
    ///
    /// # Errors
    /// If the device could not have sent it in this state, or has no such endpoint.
    pub fn receive(&mut self, message: &Message) -> Result<(), Violation> {
        self.receive_at(message.endpoint(), message)
    }

    /// The same of a message of which the endpoint is known.
    #[inline(always)]
    pub(in crate::link) fn receive_at(
        &mut self,
        address: EndpointAddress,
        message: &Message,
    ) -> Result<(), Violation> {
        if address.number() == 0 {
            return self.control.receive(*message);
        }
        let (place, direction) = (self.endpoints.place(address).ok_or(Violation)?, address.direction());
        let wanting = self.endpoints.wanting_bus().and(self.endpoints.of(direction)).without(place);
        let others_wait = !wanting.is_empty()
            || self.others.want_bus[direction as usize]
            || direction == Direction::In && self.control.wants_in();
        self.change_at(address, place, |end| end.receive(message, !others_wait))
    }

    /// Handles a message of the device with a damaged payload.
    ///
    /// # Errors
    /// As [`Self::receive`].
    pub fn receive_damaged(&mut self, message: &Message) -> Result<(), Violation> {
        let address = message.endpoint();
        match message {
            Message::Data { .. } if address.number() == 0 => self.control.receive_damaged(),
            Message::Data { .. } => {
                self.change(address, |end| end.receive_damaged(message)).ok_or(Violation)?;
            }
            // There is no payload.
            _ => return self.receive(message),
        }
        Ok(())
    }

    /// Returns the next progress report.
    pub fn poll_progress(&mut self) -> Option<Progress> {
        self.endpoints.poll_progress()
    }

    /// Returns whether progress or a halt is pending.
    pub fn has_pending(&self) -> bool {
        self.endpoints.has_progress() || !self.halts.is_empty()
    }

    /// Returns whether there may be something to send. If there is nothing now, there is nothing
    /// before something has come, was queued or was changed.
    pub const fn may_send(&self) -> bool {
        self.control.is_busy() || self.endpoints.may_send()
    }

    /// Returns the next message to send, now that the lane is free.
    #[inline(always)]
    pub fn poll(&mut self) -> Option<Message> {
        if !self.may_send() {
            return None;
        }
        if self.control.is_busy()
            && let Some(message) = self.poll_control_message()
        {
            return Some(message);
        }
        if !self.endpoints.wanting_bus().is_empty() {
            for direction in [Direction::In, Direction::Out] {
                self.give_bus(direction);
            }
        }
        if let Some(answer) = self.endpoints.poll_answer() {
            return Some(answer);
        }
        let mut sending = self.endpoints.sending();
        while let Some(place) = sending.first() {
            if let Some(data) = self.endpoints.change(place, HostEndpoint::poll_data) {
                return Some(data);
            }
            sending = sending.without(place);
        }
        None
    }

    /// Endpoint 0 goes before all others, but asks for data only when no other has asked.
    #[cold]
    #[inline(never)]
    fn poll_control_message(&mut self) -> Option<Message> {
        let have_asked = self.endpoints.having_bus().and(self.endpoints.of(Direction::In));
        self.control.poll(have_asked.is_empty() && !self.others.have_bus[Direction::In as usize])
    }

    /// Shares the bus with other devices, which do this now.
    pub const fn share(&mut self, others: Others) {
        self.others = others;
    }

    /// Returns whether a burst is in progress, by direction, Out first.
    pub fn has_bus(&self) -> [bool; 2] {
        let [out, into] = self.any(self.endpoints.having_bus());
        [out, into || self.control.has_in()]
    }

    /// Returns whether it would start one.
    pub fn wants_bus(&self) -> [bool; 2] {
        let [out, into] = self.any(self.endpoints.wanting_bus());
        [out, into || self.control.wants_in()]
    }

    /// Returns whether any is in the set, by direction.
    fn any(&self, set: Set) -> [bool; 2] {
        [Direction::Out, Direction::In].map(|direction| !set.and(self.endpoints.of(direction)).is_empty())
    }

    /// Grants the bus of a direction to the next endpoint that wants it, if it is free.
    #[inline(always)]
    fn give_bus(&mut self, direction: Direction) {
        let of = self.endpoints.of(direction);
        let wanting = self.endpoints.wanting_bus().and(of);
        if wanting.is_empty() || !self.endpoints.having_bus().and(of).is_empty() {
            return;
        }
        let control_has_bus =
            direction == Direction::In && (self.control.has_in() || self.control.wants_in());
        if control_has_bus || self.others.have_bus[direction as usize] {
            return;
        }
        let turn = &mut self.turns[direction as usize];
        if let Some(place) = wanting.after(*turn) {
            *turn = place;
            self.endpoints.change(place, HostEndpoint::start);
        }
    }
}

impl DevicePort {
    /// Creates the device side of its endpoints and of endpoint 0.
    pub fn new(endpoints: &[Endpoint]) -> Self {
        let mut port = Self::default();
        port.configure(endpoints);
        port
    }

    /// Returns a reset port with `endpoints`.
    #[must_use]
    pub fn reset_copy(&self, endpoints: &[Endpoint]) -> Self {
        let mut port = Self { endpoints: self.endpoints.reset_copy(), ..Self::default() };
        port.configure(endpoints);
        port
    }

    /// Replaces all endpoints except endpoint 0.
    pub fn configure(&mut self, endpoints: &[Endpoint]) {
        let control = std::mem::take(&mut self.control);
        *self = Self { control, endpoints: self.endpoints.reset_copy(), ..Self::default() };
        for &endpoint in endpoints {
            self.endpoints.install(endpoint.address, DeviceEndpoint::new(endpoint));
        }
    }

    /// Returns the next event of endpoint 0.
    pub fn poll_control(&mut self) -> Option<ControlEvent> {
        self.control.poll_event()
    }

    /// Sets the device's answer to a request on endpoint 0. Ignored if another request has come
    /// since.
    pub fn answer(&mut self, setup: SetupPacket, answer: ControlAnswer) {
        self.control.answer(setup, answer);
    }

    /// Queues a transfer.
    ///
    /// # Errors
    /// If there is no such endpoint or stream.
    #[inline]
    pub fn queue(&mut self, pipe: Pipe, transfer: Transfer) -> Result<(), NoSuchStream> {
        self.change(pipe.endpoint, |end| end.queue(pipe.stream, transfer)).unwrap_or(Err(NoSuchStream))
    }

    /// Cancels a transfer: see [`DeviceEndpoint::withdraw`]. Returns whether it was queued.
    pub fn withdraw(&mut self, pipe: Pipe, id: TransferId) -> bool {
        self.change(pipe.endpoint, |end| end.withdraw(pipe.stream, id)).unwrap_or(false)
    }

    /// Returns the message counter if the host owes an answer: see [`DeviceEndpoint::awaits`].
    pub fn awaits(&self, address: EndpointAddress) -> Option<u32> {
        self.endpoints.get(address)?.awaits()
    }

    /// Handles the expiry of [`ERDY_TIMEOUT`] on an endpoint.
    pub fn repeat_erdy(&mut self, address: EndpointAddress) {
        self.change(address, DeviceEndpoint::repeat_erdy);
    }

    /// Halts an endpoint: see [`DeviceEndpoint::halt`]. Nothing happens if there is none.
    pub fn halt(&mut self, address: EndpointAddress) {
        self.change(address, DeviceEndpoint::halt);
    }

    /// Makes an endpoint answer "not ready" `times` times: see [`DeviceEndpoint::refuse`].
    pub fn refuse(&mut self, address: EndpointAddress, times: u8) {
        self.change(address, |end| end.refuse(times));
    }

    /// Ends the halt of an endpoint: see [`DeviceEndpoint::clear_halt`].
    pub fn clear_halt(&mut self, address: EndpointAddress) {
        self.change(address, DeviceEndpoint::clear_halt);
    }

    #[inline(always)]
    fn change<R>(
        &mut self,
        address: EndpointAddress,
        change: impl FnOnce(&mut DeviceEndpoint) -> R,
    ) -> Option<R> {
        let place = self.endpoints.place(address)?;
        Some(self.endpoints.change(place, change))
    }

    /// Handles a message of the host.
    ///
    /// # Errors
    /// If the host could not have sent it in this state, or there is no such endpoint.
    pub fn receive(&mut self, message: &Message) -> Result<(), Violation> {
        self.receive_at(message.endpoint(), message)
    }

    /// The same of a message of which the endpoint is known.
    #[inline(always)]
    pub(in crate::link) fn receive_at(
        &mut self,
        address: EndpointAddress,
        message: &Message,
    ) -> Result<(), Violation> {
        if address.number() == 0 {
            return self.control.receive(*message);
        }
        self.change(address, |end| end.receive(message)).unwrap_or(Err(Violation))
    }

    /// Handles a message of the host with a damaged payload. A SETUP counts as lost.
    ///
    /// # Errors
    /// As [`Self::receive`].
    pub fn receive_damaged(&mut self, message: &Message) -> Result<(), Violation> {
        let address = message.endpoint();
        match message {
            Message::Setup { .. } => Ok(()),
            Message::Data { .. } if address.number() == 0 => {
                self.control.receive_damaged();
                Ok(())
            }
            _ => self.change(address, |end| end.receive_damaged(message)).unwrap_or(Err(Violation)),
        }
    }

    /// A message of the host is in flight, to which nothing will happen. Returns whether it need
    /// not come: see [`DeviceEndpoint::hear_early`].
    #[inline]
    pub(in crate::link) fn hear_early(&mut self, message: &Message) -> bool {
        match *message {
            Message::Ack {
                endpoint,
                stream: Some(StreamField::Stream(stream)),
                expects,
                packets: packets @ 1..,
                is_retry: false,
                ..
            } => {
                let end = self.endpoints.get_mut(endpoint);
                end.is_some_and(|end| end.hear_early(stream, expects, packets))
            }
            _ => false,
        }
    }

    /// Returns the next progress report.
    pub fn poll_progress(&mut self) -> Option<Progress> {
        self.endpoints.poll_progress()
    }

    /// Returns whether progress is pending.
    pub const fn has_pending(&self) -> bool {
        self.endpoints.has_progress()
    }

    /// Returns whether there may be something to send: see [`HostPort::may_send`].
    pub fn may_send(&self) -> bool {
        self.endpoints.may_send() || self.control.has_message()
    }

    /// Returns the next message to send, now that the lane is free.
    #[inline(always)]
    pub fn poll(&mut self) -> Option<Message> {
        if !self.may_send() {
            return None;
        }
        if let Some(message) = self.control.poll() {
            return Some(message);
        }
        if let Some(answer) = self.endpoints.poll_answer() {
            return Some(answer);
        }
        let mut sending = self.endpoints.sending();
        while let Some(place) = sending.after(self.turn) {
            if let Some(data) = self.endpoints.change(place, DeviceEndpoint::poll_data) {
                self.turn = place;
                return Some(data);
            }
            sending = sending.without(place);
        }
        None
    }
}
