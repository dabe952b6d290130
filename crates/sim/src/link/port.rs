//! The ports of a host and a device, whatever lies between them.
//!
//! Both kinds have one shape: transfers are queued, moved, ended and taken back in the same words. What crosses differs, and
//! is the business of the [`super::LinkPair`].

use super::bulk::{Endpoint, NoSuchStream, NotWithdrawn, Progress, Transfer};
use super::control::{ControlAnswer, ControlBusy, ControlEvent, ControlProgress, ControlTransfer};
use super::{bulk, usb2};
use bus::{Pipe, TransferId};
use wire::usb::{EndpointAddress, SetupPacket};

/// The host's ends of the endpoints of a device.
#[derive(Clone, Debug)]
pub enum HostPort {
    /// On a SuperSpeed link.
    SuperSpeed(bulk::HostPort),
    /// On a bus of USB 2.0.
    Usb2(usb2::HostPort),
}

/// The device's ends of its endpoints.
#[derive(Clone, Debug)]
pub enum DevicePort {
    /// On a SuperSpeed link.
    SuperSpeed(bulk::DevicePort),
    /// On a bus of USB 2.0.
    Usb2(usb2::DevicePort),
}

/// The same call of either kind.
macro_rules! either {
    ($of:expr, $port:ident => $call:expr) => {
        match $of {
            Self::SuperSpeed($port) => $call,
            Self::Usb2($port) => $call,
        }
    };
}

impl HostPort {
    /// A port of the same kind on which nothing has moved.
    #[must_use]
    pub fn reset_copy(&self, endpoints: &[Endpoint]) -> Self {
        match self {
            Self::SuperSpeed(port) => Self::SuperSpeed(port.reset_copy(endpoints)),
            Self::Usb2(port) => Self::Usb2(port.reset_copy(endpoints)),
        }
    }

    /// Other endpoints in the place of all but endpoint 0.
    pub fn configure(&mut self, endpoints: &[Endpoint]) {
        either!(self, port => port.configure(endpoints));
    }

    /// An endpoint comes, in the place of what was there under its address; the others stay as they are.
    pub fn install(&mut self, endpoint: Endpoint) {
        either!(self, port => port.install(endpoint));
    }

    /// An endpoint goes, with all that it has.
    pub fn remove(&mut self, address: EndpointAddress) {
        either!(self, port => port.remove(address));
    }

    /// Begins a control transfer.
    ///
    /// # Errors
    /// If one is under way.
    pub fn control(&mut self, transfer: ControlTransfer) -> Result<(), ControlBusy> {
        either!(self, port => port.control(transfer))
    }

    /// What of the control transfer has moved.
    pub fn poll_control(&mut self) -> Option<ControlProgress> {
        either!(self, port => port.poll_control())
    }

    /// Queues a transfer.
    ///
    /// # Errors
    /// If there is no such endpoint or stream.
    pub fn queue(&mut self, pipe: Pipe, transfer: Transfer) -> Result<(), NoSuchStream> {
        either!(self, port => port.queue(pipe, transfer))
    }

    /// Bytes of the first transfer of a pipe, those that have moved included. `None` if there is none.
    pub fn expects(&self, pipe: Pipe) -> Option<u32> {
        either!(self, port => port.expects(pipe))
    }

    /// Bytes that the first transfer of a pipe still waits for, and all of the one behind it, on a bus of USB 2.0.
    pub fn awaits(&self, pipe: Pipe) -> (Option<u32>, Option<u32>) {
        match self {
            Self::SuperSpeed(_) => (None, None),
            Self::Usb2(port) => port.awaits(pipe),
        }
    }

    /// Transfers of a pipe that have not ended, oldest first.
    pub fn transfers(&self, pipe: Pipe) -> impl Iterator<Item = TransferId> {
        let (fast, slow) = match self {
            Self::SuperSpeed(port) => (Some(port.transfers(pipe)), None),
            Self::Usb2(port) => (None, Some(port.transfers(pipe))),
        };
        fast.into_iter().flatten().chain(slow.into_iter().flatten())
    }

    /// Transfers of an endpoint that have not ended.
    pub fn transfers_of(&self, address: EndpointAddress) -> Vec<(Pipe, TransferId)> {
        either!(self, port => port.transfers_of(address))
    }

    /// Transfers of all endpoints that have not ended.
    pub fn all_transfers(&self) -> Vec<(Pipe, TransferId)> {
        either!(self, port => port.all_transfers())
    }

    /// Its endpoints but for endpoint 0.
    pub fn addresses(&self) -> impl Iterator<Item = EndpointAddress> {
        let (fast, slow) = match self {
            Self::SuperSpeed(port) => (Some(port.addresses()), None),
            Self::Usb2(port) => (None, Some(port.addresses())),
        };
        fast.into_iter().flatten().chain(slow.into_iter().flatten())
    }

    /// Stops an endpoint at the next packet boundary. Nothing happens if there is none.
    pub fn stop(&mut self, address: EndpointAddress) {
        either!(self, port => port.stop(address));
    }

    /// Whether an endpoint is stopped or halted, and nothing of it is under way; so is one that is not there.
    pub fn is_quiet(&self, address: EndpointAddress) -> bool {
        either!(self, port => port.is_quiet(address))
    }

    /// Whether an endpoint is halted.
    pub fn is_halted(&self, address: EndpointAddress) -> bool {
        either!(self, port => port.is_halted(address))
    }

    /// Starts an endpoint again that was stopped.
    pub fn resume(&mut self, address: EndpointAddress) {
        either!(self, port => port.resume(address));
    }

    /// Takes a transfer back. Bytes of it that have moved.
    ///
    /// # Errors
    /// If it is not queued, or packets of its pipe are under way.
    pub fn withdraw(&mut self, pipe: Pipe, id: TransferId) -> Result<u32, NotWithdrawn> {
        either!(self, port => port.withdraw(pipe, id))
    }

    /// Makes an endpoint as it was in the beginning, but for its transfers. It is stopped then.
    pub fn reset(&mut self, address: EndpointAddress) {
        either!(self, port => port.reset(address));
    }

    /// Whether an endpoint is halted because the device does not answer.
    pub fn has_failed(&self, address: EndpointAddress) -> bool {
        either!(self, port => port.has_failed(address))
    }

    /// Makes an endpoint that has failed ready for a new try. It is stopped then.
    pub fn reset_for_retry(&mut self, address: EndpointAddress) {
        either!(self, port => port.reset_for_retry(address));
    }

    /// Whether something may have moved or halted, and nobody was told.
    pub fn has_pending(&self) -> bool {
        match self {
            Self::SuperSpeed(port) => port.has_pending(),
            Self::Usb2(_) => true,
        }
    }

    /// The next endpoint that has halted.
    pub fn poll_halt(&mut self) -> Option<EndpointAddress> {
        either!(self, port => port.poll_halt())
    }

    /// What has moved.
    #[inline(always)]
    pub fn poll_progress(&mut self) -> Option<Progress> {
        either!(self, port => port.poll_progress())
    }
}

impl DevicePort {
    /// A port of the same kind on which nothing has moved.
    #[must_use]
    pub fn reset_copy(&self, endpoints: &[Endpoint]) -> Self {
        match self {
            Self::SuperSpeed(port) => Self::SuperSpeed(port.reset_copy(endpoints)),
            Self::Usb2(port) => Self::Usb2(port.reset_copy(endpoints)),
        }
    }

    /// Other endpoints in the place of all but endpoint 0.
    pub fn configure(&mut self, endpoints: &[Endpoint]) {
        either!(self, port => port.configure(endpoints));
    }

    /// What has come of packets on endpoint 0.
    pub fn poll_control(&mut self) -> Option<ControlEvent> {
        either!(self, port => port.poll_control())
    }

    /// The device answers what it was asked on endpoint 0.
    pub fn answer(&mut self, setup: SetupPacket, answer: ControlAnswer) {
        either!(self, port => port.answer(setup, answer));
    }

    /// Queues a transfer.
    ///
    /// # Errors
    /// If there is no such endpoint or stream.
    pub fn queue(&mut self, pipe: Pipe, transfer: Transfer) -> Result<(), NoSuchStream> {
        either!(self, port => port.queue(pipe, transfer))
    }

    /// Takes a transfer back. Whether it was queued.
    pub fn withdraw(&mut self, pipe: Pipe, id: TransferId) -> bool {
        either!(self, port => port.withdraw(pipe, id))
    }

    /// Halts an endpoint. Nothing happens if there is none.
    pub fn halt(&mut self, address: EndpointAddress) {
        either!(self, port => port.halt(address));
    }

    /// An endpoint is not ready so many times, and could be.
    pub fn refuse(&mut self, address: EndpointAddress, times: u8) {
        either!(self, port => port.refuse(address, times));
    }

    /// Whether something may have moved, and nobody was told.
    pub const fn has_pending(&self) -> bool {
        match self {
            Self::SuperSpeed(port) => port.has_pending(),
            Self::Usb2(_) => true,
        }
    }

    /// Ends the halt of an endpoint.
    pub fn clear_halt(&mut self, address: EndpointAddress) {
        either!(self, port => port.clear_halt(address));
    }

    /// What has moved.
    #[inline(always)]
    pub fn poll_progress(&mut self) -> Option<Progress> {
        either!(self, port => port.poll_progress())
    }
}
