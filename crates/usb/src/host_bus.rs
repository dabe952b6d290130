//! The host buses of this machine: what an attachment needs of one besides transfers.
//!
//! A [`HardwareBus`] is a [`HostBus`] that is waited for by readiness and whose requests report
//! why they fail. Payload lies in DMA buffers. Implementations: the kernel ([`crate::usbfs`]) and a
//! controller driven by this crate ([`crate::controller`]).
//!
//! Always true: an accepted transfer completes once; the bytes of a buffer are not accessible while
//! a transfer uses it.

mod buffers;
mod observed;

pub(crate) use buffers::DmaBuffers;
pub use initiator::session::{BufferBlock, BufferId, BufferMemory, BufferSpan, HostBus, TransferRequest};
pub use observed::{Enumerated, ObservedBus};

use bus::EndpointAddress;
use initiator::{BusAnswer, BusRequest, StreamEndpoints};
use std::time::Duration;
use wire::usb::SetupPacket;

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// A transfer may have completed, or the device disconnected.
    Ready,
    /// The time limit passed.
    TimeOver,
    /// A signal arrived.
    Interrupted,
}

/// Classification of errors for transports.
pub trait HostBusError: std::error::Error {
    /// Returns whether the device stalled the request.
    fn is_stall(&self) -> bool;

    /// Returns whether the device is disconnected.
    fn is_disconnect(&self) -> bool;
}

/// One interface of a device of this machine and the bus to it.
///
/// Control requests block; [`HostBus::poll`] returns completions that [`reap`](Self::reap) has
/// collected.
pub trait HardwareBus: HostBus {
    /// The error type.
    type Error: HostBusError;

    /// Returns whether the controller accesses the buffers directly.
    fn is_zero_copy(&self) -> bool;

    /// Collects completions; returns whether there was any.
    ///
    /// # Errors
    ///
    /// If the device is disconnected and everything has completed, or on an unexpected failure.
    fn reap(&mut self) -> Result<bool, Self::Error>;

    /// Waits until there may be something to reap, a signal arrives, or the limit passes.
    ///
    /// # Errors
    ///
    /// If waiting fails.
    fn wait(&mut self, limit: Option<Duration>) -> Result<Readiness, Self::Error>;

    /// Returns once why transfers were rejected, if the device is not the cause.
    fn take_fault(&mut self) -> Option<Self::Error>;

    /// Selects an alternate setting. Its transfers must have completed.
    ///
    /// # Errors
    ///
    /// If the device rejects it.
    fn select_alternate(&mut self, alternate: u8) -> Result<(), Self::Error>;

    /// Allocates streams on three endpoints of the current setting; returns their number: ids 1 to
    /// this.
    ///
    /// # Errors
    ///
    /// If device or controller do not support streams.
    fn allocate_streams(&mut self, endpoints: [EndpointAddress; 3], wanted: u16) -> Result<u16, Self::Error>;

    /// Performs a control transfer; returns the bytes transferred. Blocks.
    ///
    /// # Errors
    ///
    /// If the device stalls or does not answer.
    fn control(&mut self, setup: SetupPacket, bytes: &mut [u8]) -> Result<usize, Self::Error>;

    /// Sends CLEAR FEATURE (ENDPOINT_HALT) and resets the endpoint at the controller.
    ///
    /// # Errors
    ///
    /// If the device rejects it, or other streams of the endpoint have transfers.
    fn clear_halt(&mut self, endpoint: EndpointAddress) -> Result<(), Self::Error>;

    /// Resets the port. All transfers complete; the interface is at alternate setting 0 without
    /// streams.
    ///
    /// # Errors
    ///
    /// If the device does not come back.
    fn reset(&mut self) -> Result<(), Self::Error>;

    /// Returns the interface to its previous owner.
    ///
    /// # Errors
    ///
    /// If it is not in its previous state.
    fn close(self) -> Result<(), Self::Error>;
}

/// Performs a request of a transport.
pub(crate) fn answer<B: HardwareBus>(bus: &mut B, request: BusRequest) -> BusAnswer {
    let done = match request {
        BusRequest::ClearHalt(endpoint) => bus.clear_halt(endpoint),
        BusRequest::SelectAlternate { alternate, .. } => bus.select_alternate(alternate),
        BusRequest::MassStorageReset { .. } => match request.setup() {
            Some(setup) => bus.control(setup, &mut []).map(drop),
            None => return BusAnswer::Failed,
        },
        BusRequest::AllocateStreams { endpoints, wanted } => {
            let StreamEndpoints { status, data_in, data_out } = endpoints;
            return match bus.allocate_streams([status, data_in, data_out], wanted) {
                Ok(granted) => BusAnswer::Streams(granted),
                Err(_) => BusAnswer::Failed,
            };
        }
        BusRequest::ResetPort => bus.reset(),
    };
    match done {
        Ok(()) => BusAnswer::Done,
        Err(error) if error.is_stall() => BusAnswer::Stalled,
        Err(_) => BusAnswer::Failed,
    }
}
