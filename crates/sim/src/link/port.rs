//! Host and device ports of either bus, behind one interface.
//!
//! Both variants queue, move, complete and cancel transfers through the same methods. Packets
//! differ, and are exchanged by [`super::LinkPair`].

use super::bulk::{Endpoint, NoSuchStream, NotWithdrawn, Progress, Transfer};
use super::control::{ControlAnswer, ControlBusy, ControlEvent, ControlProgress, ControlTransfer};
use super::{bulk, usb2};
use bus::{Pipe, TransferId};
use wire::usb::{EndpointAddress, SetupPacket};

/// The host side of a device's endpoints.
#[derive(Clone, Debug)]
pub enum HostPort {
    /// On a SuperSpeed link.
    SuperSpeed(bulk::HostPort),
    /// On a USB 2.0 bus.
    Usb2(usb2::HostPort),
}

/// The device side of its endpoints.
#[derive(Clone, Debug)]
pub enum DevicePort {
    /// On a SuperSpeed link.
    SuperSpeed(bulk::DevicePort),
    /// On a USB 2.0 bus.
    Usb2(usb2::DevicePort),
}

/// Delegates a call to the port of either bus.
macro_rules! either {
    ($of:expr, $port:ident => $call:expr) => {
        match $of {
            Self::SuperSpeed($port) => $call,
            Self::Usb2($port) => $call,
        }
    };
}

impl HostPort {
    /// Returns a reset port of the same type.
    #[must_use]
    pub fn reset_copy(&self, endpoints: &[Endpoint]) -> Self {
        match self {
            Self::SuperSpeed(port) => Self::SuperSpeed(port.reset_copy(endpoints)),
            Self::Usb2(port) => Self::Usb2(port.reset_copy(endpoints)),
        }
    }

    /// Replaces all endpoints except endpoint 0.
    pub fn configure(&mut self, endpoints: &[Endpoint]) {
        either!(self, port => port.configure(endpoints));
    }

    /// Installs an endpoint, replacing one with the same address; the others are unchanged.
    pub fn install(&mut self, endpoint: Endpoint) {
        either!(self, port => port.install(endpoint));
    }

    /// Removes an endpoint with its transfers.
    pub fn remove(&mut self, address: EndpointAddress) {
        either!(self, port => port.remove(address));
    }

    /// Starts a control transfer.
    ///
    /// # Errors
    /// If one is in progress.
    pub fn control(&mut self, transfer: ControlTransfer) -> Result<(), ControlBusy> {
        either!(self, port => port.control(transfer))
    }

    /// Returns the next progress report of the control transfer.
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

    /// Returns the length in bytes of the first transfer of a pipe. `None` if there is none.
    pub fn expects(&self, pipe: Pipe) -> Option<u32> {
        either!(self, port => port.expects(pipe))
    }

    /// Returns the bytes that the first transfer of a pipe still needs, and the length of the next
    /// one (USB 2.0 only).
    pub fn awaits(&self, pipe: Pipe) -> (Option<u32>, Option<u32>) {
        match self {
            Self::SuperSpeed(_) => (None, None),
            Self::Usb2(port) => port.awaits(pipe),
        }
    }

    /// Returns the outstanding transfers of a pipe, oldest first.
    pub fn transfers(&self, pipe: Pipe) -> impl Iterator<Item = TransferId> {
        let (fast, slow) = match self {
            Self::SuperSpeed(port) => (Some(port.transfers(pipe)), None),
            Self::Usb2(port) => (None, Some(port.transfers(pipe))),
        };
        fast.into_iter().flatten().chain(slow.into_iter().flatten())
    }

    /// Returns the outstanding transfers of an endpoint, oldest first.
    pub fn transfers_of(&self, address: EndpointAddress) -> Vec<(Pipe, TransferId)> {
        either!(self, port => port.transfers_of(address))
    }

    /// Returns the outstanding transfers of all endpoints.
    pub fn all_transfers(&self) -> Vec<(Pipe, TransferId)> {
        either!(self, port => port.all_transfers())
    }

    /// Returns the addresses of its endpoints, without endpoint 0.
    pub fn addresses(&self) -> impl Iterator<Item = EndpointAddress> {
        let (fast, slow) = match self {
            Self::SuperSpeed(port) => (Some(port.addresses()), None),
            Self::Usb2(port) => (None, Some(port.addresses())),
        };
        fast.into_iter().flatten().chain(slow.into_iter().flatten())
    }

    /// Stops an endpoint at the next packet boundary. Does nothing if there is none.
    pub fn stop(&mut self, address: EndpointAddress) {
        either!(self, port => port.stop(address));
    }

    /// Returns whether an endpoint is stopped or halted with nothing in flight, or does not exist.
    pub fn is_quiet(&self, address: EndpointAddress) -> bool {
        either!(self, port => port.is_quiet(address))
    }

    /// Returns whether an endpoint is halted.
    pub fn is_halted(&self, address: EndpointAddress) -> bool {
        either!(self, port => port.is_halted(address))
    }

    /// Restarts a stopped endpoint.
    pub fn resume(&mut self, address: EndpointAddress) {
        either!(self, port => port.resume(address));
    }

    /// Cancels a transfer. Returns the bytes of it that have moved.
    ///
    /// # Errors
    /// If it is not queued, or packets of its pipe are in flight.
    pub fn withdraw(&mut self, pipe: Pipe, id: TransferId) -> Result<u32, NotWithdrawn> {
        either!(self, port => port.withdraw(pipe, id))
    }

    /// Resets an endpoint to its initial state, keeping its transfers. It is stopped then.
    pub fn reset(&mut self, address: EndpointAddress) {
        either!(self, port => port.reset(address));
    }

    /// Returns whether an endpoint is halted because the device did not respond.
    pub fn has_failed(&self, address: EndpointAddress) -> bool {
        either!(self, port => port.has_failed(address))
    }

    /// Resets a failed endpoint for a retry, keeping its sequence number. It is stopped then.
    pub fn reset_for_retry(&mut self, address: EndpointAddress) {
        either!(self, port => port.reset_for_retry(address));
    }

    /// Returns whether progress or a halt may be pending.
    pub fn has_pending(&self) -> bool {
        match self {
            Self::SuperSpeed(port) => port.has_pending(),
            Self::Usb2(_) => true,
        }
    }

    /// Returns the next endpoint that has halted.
    pub fn poll_halt(&mut self) -> Option<EndpointAddress> {
        either!(self, port => port.poll_halt())
    }

    /// Returns the next progress report.
    #[inline]
    pub fn poll_progress(&mut self) -> Option<Progress> {
        either!(self, port => port.poll_progress())
    }
}

impl DevicePort {
    /// Returns a reset port of the same type.
    #[must_use]
    pub fn reset_copy(&self, endpoints: &[Endpoint]) -> Self {
        match self {
            Self::SuperSpeed(port) => Self::SuperSpeed(port.reset_copy(endpoints)),
            Self::Usb2(port) => Self::Usb2(port.reset_copy(endpoints)),
        }
    }

    /// Replaces all endpoints except endpoint 0.
    pub fn configure(&mut self, endpoints: &[Endpoint]) {
        either!(self, port => port.configure(endpoints));
    }

    /// Returns the next event of endpoint 0.
    pub fn poll_control(&mut self) -> Option<ControlEvent> {
        either!(self, port => port.poll_control())
    }

    /// Sets the device's answer to a request on endpoint 0. Ignored if another request has come
    /// since.
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

    /// Cancels a transfer. Returns whether it was queued.
    pub fn withdraw(&mut self, pipe: Pipe, id: TransferId) -> bool {
        either!(self, port => port.withdraw(pipe, id))
    }

    /// Halts an endpoint. Does nothing if there is none.
    pub fn halt(&mut self, address: EndpointAddress) {
        either!(self, port => port.halt(address));
    }

    /// Makes an endpoint answer "not ready" `times` times although it could move data.
    pub fn refuse(&mut self, address: EndpointAddress, times: u8) {
        either!(self, port => port.refuse(address, times));
    }

    /// Returns whether progress may be pending.
    pub const fn has_pending(&self) -> bool {
        match self {
            Self::SuperSpeed(port) => port.has_pending(),
            Self::Usb2(_) => true,
        }
    }

    /// Clears the halt of an endpoint.
    pub fn clear_halt(&mut self, address: EndpointAddress) {
        either!(self, port => port.clear_halt(address));
    }

    /// Returns the next progress report.
    #[inline]
    pub fn poll_progress(&mut self) -> Option<Progress> {
        either!(self, port => port.poll_progress())
    }
}
