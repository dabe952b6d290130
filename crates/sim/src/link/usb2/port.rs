//! The endpoints of one device, including endpoint 0, at both ends of a USB 2.0 bus: arbitration.
//!
//! Endpoint 0 goes first. The host serves the other endpoints round-robin, one transaction at a
//! time, and skips those that answered NAK recently.

use super::control::{CONTROL_PACKET_BYTES, ControlDevice, ControlHost};
use super::device::DeviceEndpoint;
use super::host::{HostEndpoint, Pacing};
use super::packet::{Answer, HostRequest};
use super::rate::Rate;
use crate::link::bulk::{Endpoint, NoSuchStream, NotWithdrawn, Progress, Transfer};
use crate::link::control::{ControlAnswer, ControlBusy, ControlEvent, ControlProgress, ControlTransfer};
use bus::{Pipe, TransferId};
use std::collections::VecDeque;
use units::Instant;
use wire::usb::{EndpointAddress, SetupPacket};

/// The host side of a device's endpoints.
#[derive(Clone, Debug)]
pub struct HostPort {
    rate: Rate,
    control: ControlHost,
    endpoints: Vec<Numbered<HostEndpoint>>,
    pacing: Pacing,
    /// The endpoint served last.
    turn: usize,
    /// Whether an endpoint may have a new request.
    has_pending: bool,
    progress: VecDeque<Progress>,
    /// Halted endpoints that have not been reported.
    halts: VecDeque<EndpointAddress>,
}

/// The device side of its endpoints.
#[derive(Clone, Debug)]
pub struct DevicePort {
    rate: Rate,
    control: ControlDevice,
    endpoints: Vec<Numbered<DeviceEndpoint>>,
    progress: VecDeque<Progress>,
}

/// The next action of the host on a free bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextTransaction {
    /// Starts a transaction. The device sends at most this many bytes, if it sends.
    HostRequest(HostRequest, u16),
    /// Waits until then, because all ready endpoints answered NAK.
    Later(Instant),
    /// Has nothing to send.
    Nothing,
}

/// An endpoint and its address.
#[derive(Clone, Debug)]
struct Numbered<E> {
    address: EndpointAddress,
    packet_bytes: u16,
    end: E,
}

impl HostPort {
    /// Creates the host side of a device's endpoints and of endpoint 0.
    pub fn new(rate: Rate, endpoints: &[Endpoint], pacing: Pacing) -> Self {
        Self {
            rate,
            control: ControlHost::new(rate),
            endpoints: numbered(endpoints, |endpoint| HostEndpoint::new(endpoint, rate)),
            pacing,
            turn: 0,
            has_pending: false,
            progress: VecDeque::new(),
            halts: VecDeque::new(),
        }
    }

    /// Replaces all endpoints except endpoint 0.
    pub fn configure(&mut self, endpoints: &[Endpoint]) {
        let control = std::mem::replace(&mut self.control, ControlHost::new(self.rate));
        *self = Self { control, has_pending: true, ..self.reset_copy(endpoints) };
    }

    /// Returns a reset port of the same rate and pacing.
    #[must_use]
    pub fn reset_copy(&self, endpoints: &[Endpoint]) -> Self {
        Self::new(self.rate, endpoints, self.pacing)
    }

    /// Installs an endpoint, replacing one with the same address; the others are unchanged.
    pub fn install(&mut self, endpoint: Endpoint) {
        self.remove(endpoint.address);
        let (address, packet_bytes) = (endpoint.address, endpoint.packet_bytes);
        self.endpoints.push(Numbered { address, packet_bytes, end: HostEndpoint::new(endpoint, self.rate) });
    }

    /// Removes an endpoint with its transfers.
    pub fn remove(&mut self, address: EndpointAddress) {
        self.endpoints.retain(|endpoint| endpoint.address != address);
        self.halts.retain(|halted| *halted != address);
        self.turn = 0;
    }

    /// Starts a control transfer.
    ///
    /// # Errors
    /// If one is in progress.
    pub fn control(&mut self, transfer: ControlTransfer) -> Result<(), ControlBusy> {
        self.has_pending = true;
        self.control.begin(transfer)
    }

    /// Returns the next progress report of the control transfer.
    pub fn poll_control(&mut self) -> Option<ControlProgress> {
        self.control.poll_progress()
    }

    /// Returns the delays that the controller adds.
    pub const fn pacing(&self) -> &Pacing {
        &self.pacing
    }

    /// Queues a transfer.
    ///
    /// # Errors
    /// If there is no such endpoint, or a stream is named: there are none on this bus.
    pub fn queue(&mut self, pipe: Pipe, transfer: Transfer) -> Result<(), NoSuchStream> {
        self.change(plain(pipe)?, |end| end.queue(transfer)).ok_or(NoSuchStream)
    }

    /// Returns the bytes that the first transfer of a pipe still waits for, or has not sent. `None`
    /// if there is none.
    pub fn expects(&self, pipe: Pipe) -> Option<u32> {
        self.find(pipe.endpoint)?.expects()
    }

    /// Returns the bytes that the first transfer of a pipe still needs, and the length of the next
    /// one (USB 2.0 only).
    pub fn awaits(&self, pipe: Pipe) -> (Option<u32>, Option<u32>) {
        self.find(pipe.endpoint).map_or((None, None), HostEndpoint::awaits)
    }

    /// Returns the outstanding transfers of a pipe, oldest first.
    pub fn transfers(&self, pipe: Pipe) -> impl Iterator<Item = TransferId> {
        self.find(pipe.endpoint).into_iter().flat_map(HostEndpoint::transfers)
    }

    /// Returns the outstanding transfers of an endpoint, oldest first.
    pub fn transfers_of(&self, address: EndpointAddress) -> Vec<(Pipe, TransferId)> {
        let pipe = Pipe::plain(address);
        self.transfers(pipe).map(|id| (pipe, id)).collect()
    }

    /// Returns the outstanding transfers of all endpoints.
    pub fn all_transfers(&self) -> Vec<(Pipe, TransferId)> {
        self.addresses().flat_map(|address| self.transfers_of(address)).collect()
    }

    /// Returns the addresses of its endpoints, without endpoint 0.
    pub fn addresses(&self) -> impl Iterator<Item = EndpointAddress> {
        self.endpoints.iter().map(|endpoint| endpoint.address)
    }

    /// Stops an endpoint: see [`HostEndpoint::stop`]. Nothing happens if there is none.
    pub fn stop(&mut self, address: EndpointAddress) {
        self.change(address, HostEndpoint::stop);
    }

    /// Returns whether an endpoint is stopped or halted with nothing in flight, or does not exist.
    pub fn is_quiet(&self, address: EndpointAddress) -> bool {
        self.find(address).is_none_or(HostEndpoint::is_quiet)
    }

    /// Returns whether an endpoint is halted.
    pub fn is_halted(&self, address: EndpointAddress) -> bool {
        self.find(address).is_some_and(HostEndpoint::is_halted)
    }

    /// Returns whether an endpoint is halted because the device did not respond.
    pub fn has_failed(&self, address: EndpointAddress) -> bool {
        self.find(address).is_some_and(HostEndpoint::has_failed)
    }

    /// Starts an endpoint again: see [`HostEndpoint::resume`].
    pub fn resume(&mut self, address: EndpointAddress) {
        self.change(address, HostEndpoint::resume);
    }

    /// Cancels a transfer. Returns the bytes of it that have moved.
    ///
    /// # Errors
    /// If it is not queued, or a packet of the endpoint is in flight.
    pub fn withdraw(&mut self, pipe: Pipe, id: TransferId) -> Result<u32, NotWithdrawn> {
        self.change(pipe.endpoint, |end| end.withdraw(id)).ok_or(NotWithdrawn::Unknown)?
    }

    /// Resets an endpoint: see [`HostEndpoint::reset`].
    pub fn reset(&mut self, address: EndpointAddress) {
        self.change(address, HostEndpoint::reset);
    }

    /// Resets an endpoint that has failed, for a new try: see [`HostEndpoint::reset_for_retry`].
    pub fn reset_for_retry(&mut self, address: EndpointAddress) {
        self.change(address, HostEndpoint::reset_for_retry);
    }

    /// Returns the next endpoint that has halted.
    pub fn poll_halt(&mut self) -> Option<EndpointAddress> {
        self.halts.pop_front()
    }

    /// Returns the next progress report.
    pub fn poll_progress(&mut self) -> Option<Progress> {
        self.progress.pop_front()
    }

    /// Returns the next transaction on a free bus, without starting it.
    pub fn turn(&self, now: Instant) -> NextTransaction {
        let mut earliest = None;
        match self.control.wants() {
            Some((at, ask)) if at <= now => return NextTransaction::HostRequest(ask, CONTROL_PACKET_BYTES),
            Some((at, _)) => earliest = Some(at),
            None => {}
        }
        let count = self.endpoints.len();
        for step in 1..=count {
            let endpoint = &self.endpoints[(self.turn + step) % count];
            match endpoint.end.wants() {
                Some((at, ask)) if at <= now => {
                    return NextTransaction::HostRequest(ask, endpoint.packet_bytes);
                }
                Some((at, _)) => earliest = Some(earliest.map_or(at, |earliest: Instant| earliest.min(at))),
                None => {}
            }
        }
        earliest.map_or(NextTransaction::Nothing, NextTransaction::Later)
    }

    /// Returns the bytes of the largest packet of the endpoint that is asked.
    pub(super) fn packet_bytes(&self, ask: &HostRequest) -> u16 {
        packet_bytes(&self.endpoints, ask)
    }

    /// Starts the transaction of [`Self::turn`].
    pub fn ask(&mut self, ask: HostRequest) {
        if ask.endpoint().number() == 0 {
            return self.control.ask(ask);
        }
        if let Some(index) = self.endpoints.iter().position(|endpoint| endpoint.address == ask.endpoint()) {
            self.turn = index;
            self.endpoints[index].end.ask(ask);
        }
    }

    /// Handles the device's answer; `None` for no or a corrupt answer. Returns whether data is
    /// acknowledged.
    pub fn answered(&mut self, now: Instant, ask: &HostRequest, answer: Option<Answer>) -> bool {
        let (address, pacing) = (ask.endpoint(), self.pacing);
        if address.number() == 0 {
            return self.control.answered(now, answer, &pacing);
        }
        self.conclude(address, |end| end.answered(now, answer, &pacing)).unwrap_or(false)
    }

    /// Repeats a transaction at `until` that was not accepted.
    pub fn put_off(&mut self, until: Instant, ask: &HostRequest) {
        let address = ask.endpoint();
        if address.number() == 0 {
            return self.control.put_off(until);
        }
        self.conclude(address, |end| end.put_off(until));
    }

    /// Fails the transaction permanently and halts the endpoint.
    pub fn fail(&mut self, ask: &HostRequest) {
        let address = ask.endpoint();
        if address.number() == 0 {
            return self.control.fail();
        }
        self.conclude(address, HostEndpoint::fail);
    }

    /// Collects progress and halts of an endpoint after a transaction.
    fn conclude<R>(
        &mut self,
        address: EndpointAddress,
        conclude: impl FnOnce(&mut HostEndpoint) -> R,
    ) -> Option<R> {
        let end = find(&mut self.endpoints, address)?;
        let was_halted = end.is_halted();
        let result = conclude(end);
        self.progress.extend(std::iter::from_fn(|| end.poll_progress()));
        if end.is_halted() && !was_halted {
            self.halts.push_back(address);
        }
        Some(result)
    }

    /// Returns whether there may be new requests since the last call.
    pub(super) const fn take_pending(&mut self) -> bool {
        std::mem::replace(&mut self.has_pending, false)
    }

    fn find(&self, address: EndpointAddress) -> Option<&HostEndpoint> {
        self.endpoints.iter().find(|endpoint| endpoint.address == address).map(|endpoint| &endpoint.end)
    }

    fn change<R>(
        &mut self,
        address: EndpointAddress,
        change: impl FnOnce(&mut HostEndpoint) -> R,
    ) -> Option<R> {
        self.has_pending = true;
        find(&mut self.endpoints, address).map(change)
    }
}

impl DevicePort {
    /// Creates the device side of its endpoints and of endpoint 0.
    pub fn new(rate: Rate, endpoints: &[Endpoint]) -> Self {
        let endpoints = numbered(endpoints, |endpoint| DeviceEndpoint::new(endpoint, rate));
        Self { rate, control: ControlDevice::default(), endpoints, progress: VecDeque::new() }
    }

    /// Replaces all endpoints except endpoint 0.
    pub fn configure(&mut self, endpoints: &[Endpoint]) {
        let control = std::mem::take(&mut self.control);
        *self = Self { control, ..self.reset_copy(endpoints) };
    }

    /// Returns a reset port of the same rate.
    #[must_use]
    pub fn reset_copy(&self, endpoints: &[Endpoint]) -> Self {
        Self::new(self.rate, endpoints)
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
    /// If there is no such endpoint, or a stream is named: there are none on this bus.
    pub fn queue(&mut self, pipe: Pipe, transfer: Transfer) -> Result<(), NoSuchStream> {
        self.change(plain(pipe)?, |end| end.queue(transfer)).ok_or(NoSuchStream)
    }

    /// Cancels a transfer: see [`DeviceEndpoint::withdraw`]. Returns whether it was queued.
    pub fn withdraw(&mut self, pipe: Pipe, id: TransferId) -> bool {
        self.change(pipe.endpoint, |end| end.withdraw(id)).unwrap_or(false)
    }

    /// Halts an endpoint. Does nothing if there is none.
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

    /// Returns the device's answer. `None` if it has no such endpoint.
    pub fn asked(&mut self, ask: HostRequest) -> Option<Answer> {
        if ask.endpoint().number() == 0 {
            return Some(self.control.asked(ask));
        }
        self.change(ask.endpoint(), |end| end.asked(ask))
    }

    /// Returns the bytes of the largest packet of the endpoint that is asked.
    pub(super) fn packet_bytes(&self, ask: &HostRequest) -> u16 {
        packet_bytes(&self.endpoints, ask)
    }

    /// Handles the host's ACK for an endpoint.
    pub fn acknowledged(&mut self, address: EndpointAddress) {
        if address.number() == 0 {
            return self.control.acknowledged();
        }
        self.change(address, DeviceEndpoint::acknowledged);
    }

    /// Returns the next progress report.
    pub fn poll_progress(&mut self) -> Option<Progress> {
        self.progress.pop_front()
    }

    fn change<R>(
        &mut self,
        address: EndpointAddress,
        change: impl FnOnce(&mut DeviceEndpoint) -> R,
    ) -> Option<R> {
        let end = find(&mut self.endpoints, address)?;
        let result = change(end);
        self.progress.extend(std::iter::from_fn(|| end.poll_progress()));
        Some(result)
    }
}

fn numbered<E>(endpoints: &[Endpoint], end: impl Fn(Endpoint) -> E) -> Vec<Numbered<E>> {
    let one = |&endpoint: &Endpoint| Numbered {
        address: endpoint.address,
        packet_bytes: endpoint.packet_bytes,
        end: end(endpoint),
    };
    endpoints.iter().map(one).collect()
}

fn packet_bytes<E>(endpoints: &[Numbered<E>], ask: &HostRequest) -> u16 {
    let known = endpoints.iter().find(|endpoint| endpoint.address == ask.endpoint());
    known.map_or(CONTROL_PACKET_BYTES, |endpoint| endpoint.packet_bytes)
}

fn find<E>(endpoints: &mut [Numbered<E>], address: EndpointAddress) -> Option<&mut E> {
    endpoints.iter_mut().find(|endpoint| endpoint.address == address).map(|endpoint| &mut endpoint.end)
}

const fn plain(pipe: Pipe) -> Result<EndpointAddress, NoSuchStream> {
    match pipe.stream {
        None => Ok(pipe.endpoint),
        Some(_) => Err(NoSuchStream),
    }
}
