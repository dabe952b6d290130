//! The endpoints of one device, endpoint 0 among them, at both ends of its link: who may send next.
//!
//! The host starts one burst at a time in each direction and goes round; while others wait, a burst ends after as many packets
//! as the endpoint's largest burst, else it goes on. Answers go before data, so that
//! what ends a command is acknowledged before the next command comes. A device's data goes round as well.

use super::NoSuchStream;
use super::device::DeviceEndpoint;
use super::endpoint::Endpoint;
use super::host::HostEndpoint;
use super::message::Message;
use super::queue::{NotWithdrawn, Progress, Transfer};
use crate::link::control::{
    ControlAnswer, ControlBusy, ControlDevice, ControlEvent, ControlHost, ControlProgress, ControlTransfer,
};
use crate::link::streams::Violation;
use bus::{Pipe, TransferId};
use std::collections::VecDeque;
use units::Duration;
use wire::usb::{Direction, EndpointAddress, SetupPacket};

/// How long a host waits for an answer (clause 8.13, tHostTransactionTimeout: 7.6 ms at least).
pub const TRANSACTION_TIMEOUT: Duration = Duration::from_us(7_600);

/// How long a device waits for an answer to ERDY before it says so again (clause 8.13, tERDYTimeout).
pub const ERDY_TIMEOUT: Duration = Duration::from_ms(500);

/// The host's ends of the endpoints of a device.
#[derive(Clone, Debug, Default)]
pub struct HostPort {
    control: ControlHost,
    endpoints: Vec<Numbered<HostEndpoint>>,
    /// Where the last burst was started, by direction.
    turns: [usize; 2],
    progress: VecDeque<Progress>,
    /// Endpoints that have halted, and nobody was told.
    halts: VecDeque<EndpointAddress>,
    others: Others,
}

/// What other devices on the same bus do, by direction, Out first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Others {
    /// A burst of theirs is under way.
    pub have_bus: [bool; 2],
    /// They would start one.
    pub want_bus: [bool; 2],
}

/// The device's ends of its endpoints.
#[derive(Clone, Debug, Default)]
pub struct DevicePort {
    control: ControlDevice,
    endpoints: Vec<Numbered<DeviceEndpoint>>,
    /// Which was last to send.
    turn: usize,
    progress: VecDeque<Progress>,
}

/// An endpoint and its address.
#[derive(Clone, Debug)]
struct Numbered<E> {
    address: EndpointAddress,
    end: E,
}

impl HostPort {
    /// The host's ends of a device's endpoints, and of endpoint 0.
    pub fn new(endpoints: &[Endpoint]) -> Self {
        let mut port = Self::default();
        port.configure(endpoints);
        port
    }

    /// Other endpoints in the place of all but endpoint 0: the device has been set up in another way.
    pub fn configure(&mut self, endpoints: &[Endpoint]) {
        let numbered =
            |&endpoint: &Endpoint| Numbered { address: endpoint.address, end: HostEndpoint::new(endpoint) };
        let control = std::mem::take(&mut self.control);
        *self = Self { control, endpoints: endpoints.iter().map(numbered).collect(), ..Self::default() };
    }

    /// An endpoint comes, in the place of what was there under its address; the others stay as they are.
    pub fn install(&mut self, endpoint: Endpoint) {
        let address = endpoint.address;
        self.remove(address);
        self.endpoints.push(Numbered { address, end: HostEndpoint::new(endpoint) });
    }

    /// An endpoint goes, with all that it has.
    pub fn remove(&mut self, address: EndpointAddress) {
        self.endpoints.retain(|endpoint| endpoint.address != address);
        self.halts.retain(|halted| *halted != address);
        self.turns = [0; 2];
    }

    /// Begins a control transfer.
    ///
    /// # Errors
    /// If one is under way.
    pub fn control(&mut self, transfer: ControlTransfer) -> Result<(), ControlBusy> {
        self.control.begin(transfer)
    }

    /// What of the control transfer has moved.
    pub fn poll_control(&mut self) -> Option<ControlProgress> {
        self.control.poll_progress()
    }

    /// Queues a transfer.
    ///
    /// # Errors
    /// If there is no such endpoint or stream.
    pub fn queue(&mut self, pipe: Pipe, transfer: Transfer) -> Result<(), NoSuchStream> {
        find(&mut self.endpoints, pipe.endpoint).ok_or(NoSuchStream)?.queue(pipe.stream, transfer)
    }

    /// Bytes that the first transfer of a pipe still waits for, or has not sent. `None` if there is none.
    pub fn expects(&self, pipe: Pipe) -> Option<u32> {
        let endpoint = self.endpoints.iter().find(|endpoint| endpoint.address == pipe.endpoint)?;
        endpoint.end.left(pipe.stream)
    }

    /// Transfers of a pipe that have not ended, oldest first.
    pub fn transfers(&self, pipe: Pipe) -> impl Iterator<Item = TransferId> {
        let endpoint = self.endpoints.iter().find(|endpoint| endpoint.address == pipe.endpoint);
        endpoint.into_iter().flat_map(move |endpoint| endpoint.end.transfers(pipe.stream))
    }

    /// Transfers that have not ended, on all pipes of an endpoint.
    pub fn transfers_of(&self, address: EndpointAddress) -> Vec<(Pipe, TransferId)> {
        self.select(|other| other == address)
    }

    /// The same of all endpoints.
    pub fn all_transfers(&self) -> Vec<(Pipe, TransferId)> {
        self.select(|_| true)
    }

    fn select(&self, wanted: impl Fn(EndpointAddress) -> bool) -> Vec<(Pipe, TransferId)> {
        let endpoints = self.endpoints.iter().filter(|endpoint| wanted(endpoint.address));
        let all = endpoints.flat_map(|&Numbered { address, ref end }| {
            end.all_transfers().map(move |(stream, id)| (Pipe { endpoint: address, stream }, id))
        });
        all.collect()
    }

    /// Its endpoints.
    pub fn addresses(&self) -> impl Iterator<Item = EndpointAddress> {
        self.endpoints.iter().map(|endpoint| endpoint.address)
    }

    /// Stops an endpoint: see [`HostEndpoint::stop`]. Nothing happens if there is none.
    pub fn stop(&mut self, address: EndpointAddress) {
        self.change(address, HostEndpoint::stop);
    }

    /// Whether an endpoint is stopped or halted, and nothing of it is under way; so is one that is not there.
    pub fn is_quiet(&self, address: EndpointAddress) -> bool {
        self.endpoints.iter().all(|endpoint| endpoint.address != address || endpoint.end.is_quiet())
    }

    /// Whether an endpoint is halted.
    pub fn is_halted(&self, address: EndpointAddress) -> bool {
        self.endpoints.iter().any(|endpoint| endpoint.address == address && endpoint.end.is_halted())
    }

    /// Starts an endpoint again: see [`HostEndpoint::resume`].
    pub fn resume(&mut self, address: EndpointAddress) {
        if let Some(end) = find(&mut self.endpoints, address) {
            end.resume();
        }
    }

    /// Takes a transfer back. Bytes of it that have moved.
    ///
    /// # Errors
    /// If it is not queued, or packets of its stream are under way.
    pub fn withdraw(&mut self, pipe: Pipe, id: TransferId) -> Result<u32, NotWithdrawn> {
        find(&mut self.endpoints, pipe.endpoint).ok_or(NotWithdrawn::Unknown)?.withdraw(pipe.stream, id)
    }

    /// Resets an endpoint: see [`HostEndpoint::reset`].
    pub fn reset(&mut self, address: EndpointAddress) {
        if let Some(end) = find(&mut self.endpoints, address) {
            end.reset();
        }
    }

    /// Resets an endpoint that has failed, for a new try: see [`HostEndpoint::reset_for_retry`].
    pub fn reset_for_retry(&mut self, address: EndpointAddress) {
        if let Some(end) = find(&mut self.endpoints, address) {
            end.reset_for_retry();
        }
    }

    /// Whether an endpoint is halted because the device does not answer.
    pub fn has_failed(&self, address: EndpointAddress) -> bool {
        self.endpoints.iter().any(|endpoint| endpoint.address == address && endpoint.end.has_failed())
    }

    /// Whether the device owes an answer on an endpoint: see [`HostEndpoint::awaits`].
    pub fn awaits(&self, address: EndpointAddress) -> Option<u32> {
        if address.number() == 0 {
            return self.control.awaits();
        }
        self.endpoints.iter().find(|endpoint| endpoint.address == address)?.end.awaits()
    }

    /// The device has not answered on an endpoint for [`TRANSACTION_TIMEOUT`].
    pub fn time_out(&mut self, address: EndpointAddress) {
        if address.number() == 0 {
            return self.control.time_out();
        }
        self.change(address, HostEndpoint::time_out);
    }

    /// Changes an endpoint, and sees what has come of it.
    fn change<R>(
        &mut self,
        address: EndpointAddress,
        change: impl FnOnce(&mut HostEndpoint) -> R,
    ) -> Option<R> {
        let end = find(&mut self.endpoints, address)?;
        let was_halted = end.is_halted();
        let result = change(end);
        self.progress.extend(std::iter::from_fn(|| end.poll_progress()));
        if end.is_halted() && !was_halted {
            self.halts.push_back(address);
        }
        Some(result)
    }

    /// The next endpoint that has halted.
    pub fn poll_halt(&mut self) -> Option<EndpointAddress> {
        self.halts.pop_front()
    }

    /// A message of the device has come.
    ///
    /// # Errors
    /// If the device could not have sent it in this state, or has no such endpoint.
    pub fn receive(&mut self, message: Message) -> Result<(), Violation> {
        let address = message.endpoint();
        if address.number() == 0 {
            return self.control.receive(message);
        }
        let others_wait = self.control.wants_in() && address.direction() == Direction::In;
        let others_wait = others_wait
            || self.others.want_bus[address.direction() as usize]
            || self.endpoints.iter().any(|other| {
                other.address != address && is_like(other.address, address) && other.end.wants_bus()
            });
        self.change(address, |end| end.receive(message, !others_wait)).unwrap_or(Err(Violation))
    }

    /// A message of the device has come with a damaged payload.
    ///
    /// # Errors
    /// As [`Self::receive`].
    pub fn receive_damaged(&mut self, message: Message) -> Result<(), Violation> {
        let address = message.endpoint();
        match message {
            Message::Data { .. } if address.number() == 0 => self.control.receive_damaged(),
            Message::Data { .. } => {
                find(&mut self.endpoints, address).ok_or(Violation)?.receive_damaged(message);
            }
            // There is no payload.
            _ => return self.receive(message),
        }
        Ok(())
    }

    /// What has moved.
    pub fn poll_progress(&mut self) -> Option<Progress> {
        self.progress.pop_front()
    }

    /// The next message to send, now that the lane is free.
    pub fn poll(&mut self) -> Option<Message> {
        if self.control.is_busy()
            && let Some(message) = self.poll_control_message()
        {
            return Some(message);
        }
        for direction in [Direction::In, Direction::Out] {
            self.give_bus(direction);
        }
        let answer = self.endpoints.iter_mut().find_map(|endpoint| endpoint.end.poll_answer());
        answer.or_else(|| self.endpoints.iter_mut().find_map(|endpoint| endpoint.end.poll_data()))
    }

    /// Endpoint 0 goes before all others, but asks for data only when no other has asked.
    fn poll_control_message(&mut self) -> Option<Message> {
        let is_in = |endpoint: &Numbered<HostEndpoint>| endpoint.address.direction() == Direction::In;
        let has_asked = self.endpoints.iter().any(|endpoint| is_in(endpoint) && endpoint.end.has_bus());
        self.control.poll(!has_asked && !self.others.have_bus[Direction::In as usize])
    }

    /// Shares the bus with other devices, which do this now.
    pub const fn share(&mut self, others: Others) {
        self.others = others;
    }

    /// Whether a burst is under way, by direction, Out first.
    pub fn has_bus(&self) -> [bool; 2] {
        let [out, into] = self.any(HostEndpoint::has_bus);
        [out, into || self.control.has_in()]
    }

    /// Whether it would start one.
    pub fn wants_bus(&self) -> [bool; 2] {
        let [out, into] = self.any(HostEndpoint::wants_bus);
        [out, into || self.control.wants_in()]
    }

    fn any(&self, is_so: impl Fn(&HostEndpoint) -> bool) -> [bool; 2] {
        [Direction::Out, Direction::In].map(|direction| {
            let mut of = self.endpoints.iter().filter(|endpoint| endpoint.address.direction() == direction);
            of.any(|endpoint| is_so(&endpoint.end))
        })
    }

    /// Gives the bus of a direction to the next that wants it, if nobody has it.
    fn give_bus(&mut self, direction: Direction) {
        let is_of = |endpoint: &Numbered<HostEndpoint>| endpoint.address.direction() == direction;
        let control_has_bus =
            direction == Direction::In && (self.control.has_in() || self.control.wants_in());
        let is_given = control_has_bus || self.others.have_bus[direction as usize];
        if is_given || self.endpoints.iter().any(|endpoint| is_of(endpoint) && endpoint.end.has_bus()) {
            return;
        }
        let (count, turn) = (self.endpoints.len(), &mut self.turns[usize::from(direction == Direction::In)]);
        let next = (1..=count).map(|step| (*turn + step) % count);
        let mut wanting =
            next.filter(|&index| is_of(&self.endpoints[index]) && self.endpoints[index].end.wants_bus());
        if let Some(index) = wanting.next() {
            *turn = index;
            self.endpoints[index].end.start();
        }
    }
}

impl DevicePort {
    /// The ends of a device's endpoints, and of endpoint 0.
    pub fn new(endpoints: &[Endpoint]) -> Self {
        let mut port = Self::default();
        port.configure(endpoints);
        port
    }

    /// Other endpoints in the place of all but endpoint 0: the device has been set up in another way.
    pub fn configure(&mut self, endpoints: &[Endpoint]) {
        let numbered =
            |&endpoint: &Endpoint| Numbered { address: endpoint.address, end: DeviceEndpoint::new(endpoint) };
        let control = std::mem::take(&mut self.control);
        *self = Self { control, endpoints: endpoints.iter().map(numbered).collect(), ..Self::default() };
    }

    /// What has come of packets on endpoint 0.
    pub fn poll_control(&mut self) -> Option<ControlEvent> {
        self.control.poll_event()
    }

    /// The device answers what it was asked on endpoint 0: see [`ControlDevice::answer`].
    pub fn answer(&mut self, setup: SetupPacket, answer: ControlAnswer) {
        self.control.answer(setup, answer);
    }

    /// Queues a transfer.
    ///
    /// # Errors
    /// If there is no such endpoint or stream.
    pub fn queue(&mut self, pipe: Pipe, transfer: Transfer) -> Result<(), NoSuchStream> {
        find(&mut self.endpoints, pipe.endpoint).ok_or(NoSuchStream)?.queue(pipe.stream, transfer)
    }

    /// Takes a transfer back: see [`DeviceEndpoint::withdraw`]. Whether it was queued.
    pub fn withdraw(&mut self, pipe: Pipe, id: TransferId) -> bool {
        self.change(pipe.endpoint, |end| end.withdraw(pipe.stream, id)).unwrap_or(false)
    }

    /// Whether the host owes an answer to ERDY on an endpoint.
    pub fn awaits(&self, address: EndpointAddress) -> bool {
        self.endpoints.iter().any(|endpoint| endpoint.address == address && endpoint.end.awaits())
    }

    /// The host has not answered ERDY on an endpoint for [`ERDY_TIMEOUT`].
    pub fn repeat_erdy(&mut self, address: EndpointAddress) {
        self.change(address, DeviceEndpoint::repeat_erdy);
    }

    /// Halts an endpoint: see [`DeviceEndpoint::halt`]. Nothing happens if there is none.
    pub fn halt(&mut self, address: EndpointAddress) {
        self.change(address, DeviceEndpoint::halt);
    }

    /// Ends the halt of an endpoint: see [`DeviceEndpoint::clear_halt`].
    pub fn clear_halt(&mut self, address: EndpointAddress) {
        self.change(address, DeviceEndpoint::clear_halt);
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

    /// A message of the host has come.
    ///
    /// # Errors
    /// If the host could not have sent it in this state, or there is no such endpoint.
    pub fn receive(&mut self, message: Message) -> Result<(), Violation> {
        let address = message.endpoint();
        if address.number() == 0 {
            return self.control.receive(message);
        }
        let end = find(&mut self.endpoints, address).ok_or(Violation)?;
        let result = end.receive(message);
        self.progress.extend(std::iter::from_fn(|| end.poll_progress()));
        result
    }

    /// A message of the host has come with a damaged payload. A SETUP is then as good as lost.
    ///
    /// # Errors
    /// As [`Self::receive`].
    pub fn receive_damaged(&mut self, message: Message) -> Result<(), Violation> {
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

    /// What has moved.
    pub fn poll_progress(&mut self) -> Option<Progress> {
        self.progress.pop_front()
    }

    /// The next message to send, now that the lane is free.
    pub fn poll(&mut self) -> Option<Message> {
        let control = self.control.poll();
        let answer =
            control.or_else(|| self.endpoints.iter_mut().find_map(|endpoint| endpoint.end.poll_answer()));
        if answer.is_some() {
            return answer;
        }
        let count = self.endpoints.len();
        let mut next = (1..=count).map(|step| (self.turn + step) % count);
        let (index, data) = next.find_map(|index| Some((index, self.endpoints[index].end.poll_data()?)))?;
        self.turn = index;
        Some(data)
    }
}

fn find<E>(endpoints: &mut [Numbered<E>], address: EndpointAddress) -> Option<&mut E> {
    endpoints.iter_mut().find(|endpoint| endpoint.address == address).map(|endpoint| &mut endpoint.end)
}

fn is_like(one: EndpointAddress, other: EndpointAddress) -> bool {
    one.direction() == other.direction()
}
