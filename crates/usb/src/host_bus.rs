//! The host bus: carries transfers to one interface of a device.
//!
//! A [`HostBus`] accepts [`TransferRequest`]s, reports completions, is waited for by readiness, and
//! performs the other operations that transports need: alternate settings, streams, halts, resets.
//! Payload lies in DMA buffers of the bus. Implementations: the kernel ([`crate::usbfs`]) and a
//! controller driven by this crate ([`crate::controller`]).
//!
//! Always true: an accepted request completes once; the bytes of a buffer are not accessible while
//! a transfer uses it.

mod buffers;
mod observed;

pub(crate) use buffers::BufferMemory;
pub use buffers::{BufferId, BufferSpan};
pub use observed::{Enumerated, ObservedBus};

use bus::{Completion, EndpointAddress, Pipe, TransferId};
use std::time::Duration;
use units::ByteRange;
use wire::usb::SetupPacket;

/// A transfer to carry out. The caller must not reuse an id in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferRequest {
    /// Returned in its completion.
    pub id: TransferId,
    /// Its pipe.
    pub pipe: Pipe,
    /// Its buffer.
    pub buffer: BufferId,
    /// The bytes of the buffer.
    pub range: ByteRange,
}

/// A number of buffers of the same length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferBlock {
    /// Number of buffers.
    pub count: u16,
    /// Bytes of each.
    pub bytes: u32,
}

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

/// One interface of a device and the bus to it.
///
/// Control requests block; bulk completions are returned by [`poll`](Self::poll) after
/// [`reap`](Self::reap) has collected them.
pub trait HostBus {
    /// The error type.
    type Error: HostBusError;

    /// Returns the bytes of a buffer; `None` while a transfer uses it.
    fn bytes(&mut self, buffer: BufferId) -> Option<&mut [u8]>;

    /// Copies out of a range of a buffer, even while a transfer uses it. Returns the bytes copied,
    /// limited by both lengths.
    fn copy_out(&self, buffer: BufferId, range: ByteRange, into: &mut [u8]) -> usize;

    /// Copies into a range of a buffer, likewise.
    fn copy_in(&mut self, buffer: BufferId, range: ByteRange, from: &[u8]) -> usize;

    /// Copies from a range of one buffer to a range of another, likewise.
    fn copy_across(&mut self, from: BufferSpan, to: BufferSpan) -> usize;

    /// Returns whether the controller accesses the buffers directly.
    fn is_zero_copy(&self) -> bool;

    /// Submits a transfer. It completes once.
    fn submit(&mut self, request: TransferRequest);

    /// Cancels a transfer. It still completes, as cancelled or with its actual status.
    fn cancel(&mut self, id: TransferId);

    /// Returns the next collected completion.
    fn poll(&mut self) -> Option<Completion>;

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

    /// Returns whether the device was seen to disconnect.
    fn is_gone(&self) -> bool;

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
