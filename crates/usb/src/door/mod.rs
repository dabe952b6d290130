//! The bus door of the host's side: what carries transfers to one interface of a device, whatever is behind it.
//!
//! A [`BusDoor`] takes [`Order`]s, tells how each ended, is waited at by readiness, and does what a transport asks of a
//! bus besides: settings, streams, halts, resets. Memory lies in cells, which belong to the door. Behind it is the
//! kernel ([`crate::usbfs`]) or a controller that we drive ourselves ([`crate::controller`]).
//!
//! Always true: an order that was taken completes once; the bytes of a cell are not given out while an order is in it.

mod cells;
mod watched;

pub use cells::CellId;
pub(crate) use cells::CellMemory;
pub use watched::{Enumerated, Watched};

use bus::{Completion, EndpointAddress, Pipe, TransferId};
use std::time::Duration;
use units::ByteRange;
use wire::usb::SetupPacket;

/// A transfer to be done. The caller's ids are not two at once the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// Comes back at the end.
    pub id: TransferId,
    /// Where it goes.
    pub pipe: Pipe,
    /// Whose memory.
    pub cell: CellId,
    /// Which bytes of it.
    pub range: ByteRange,
}

/// Memory to be had, in cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellBlock {
    /// CellMemory.
    pub count: u16,
    /// Bytes of each.
    pub bytes: u32,
}

/// Why a wait has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// There may be something to see: a transfer that has ended, or a device that is gone.
    Ready,
    /// The time is over.
    TimeOver,
    /// A signal came in.
    Interrupted,
}

/// What a door's error means to a transport.
pub trait DoorError: std::error::Error {
    /// The device refused with a stall.
    fn is_stall(&self) -> bool;

    /// The device is gone.
    fn is_disconnect(&self) -> bool;
}

/// One interface of a device, and the bus to it.
///
/// Requests wait for the device; transfers are told by [`poll`](Self::poll) when [`reap`](Self::reap) has seen that
/// they ended.
pub trait BusDoor {
    /// What can go wrong.
    type Error: DoorError;

    /// The bytes of a cell; `None` while a transfer is in it.
    fn bytes(&mut self, cell: CellId) -> Option<&mut [u8]>;

    /// Copies out of a range of a cell, whatever transfer is in it; as many bytes as there are, and as there is room.
    fn copy_out(&self, cell: CellId, range: ByteRange, into: &mut [u8]) -> usize;

    /// Copies into a range of a cell, likewise.
    fn copy_in(&mut self, cell: CellId, range: ByteRange, from: &[u8]) -> usize;

    /// Copies from a range of a cell to one of another, likewise.
    fn copy_across(&mut self, from: (CellId, ByteRange), to: (CellId, ByteRange)) -> usize;

    /// Whether the controller itself reads and writes the cells.
    fn is_zero_copy(&self) -> bool;

    /// Takes a transfer on. It completes once.
    fn submit(&mut self, order: Order);

    /// Takes a transfer back. It still completes, as cancelled or as what it has become.
    fn cancel(&mut self, id: TransferId);

    /// The next transfer that has ended, of those that were seen to have.
    fn poll(&mut self) -> Option<Completion>;

    /// Looks which transfers have ended; whether any has.
    ///
    /// # Errors
    /// If the device is gone and everything has completed, or the door fails in a way that nobody has foreseen.
    fn reap(&mut self) -> Result<bool, Self::Error>;

    /// Waits until there may be something to reap, a signal came in, or the time is over.
    ///
    /// # Errors
    /// If there is no waiting.
    fn wait(&mut self, limit: Option<Duration>) -> Result<Readiness, Self::Error>;

    /// Whether the device was seen to be gone.
    fn is_gone(&self) -> bool;

    /// Why transfers were not taken, if that was not the device's fault; told once.
    fn take_fault(&mut self) -> Option<Self::Error>;

    /// Chooses a setting of the interface. Its transfers must have completed.
    ///
    /// # Errors
    /// If the device refuses.
    fn select_alternate(&mut self, alternate: u8) -> Result<(), Self::Error>;

    /// Allocates streams on three endpoints of the setting in use; how many there are: ids 1 to this.
    ///
    /// # Errors
    /// If device or controller have none.
    fn allocate_streams(&mut self, endpoints: [EndpointAddress; 3], wanted: u16) -> Result<u16, Self::Error>;

    /// A control transfer; gives back how many bytes were moved. Waits for the device.
    ///
    /// # Errors
    /// If the device refuses or does not answer.
    fn control(&mut self, setup: SetupPacket, bytes: &mut [u8]) -> Result<usize, Self::Error>;

    /// CLEAR FEATURE (ENDPOINT_HALT), and what the controller needs with it.
    ///
    /// # Errors
    /// If the device refuses, or other streams of the endpoint have transfers.
    fn clear_halt(&mut self, endpoint: EndpointAddress) -> Result<(), Self::Error>;

    /// Resets the port. All transfers complete; the interface is at its first setting and has no streams.
    ///
    /// # Errors
    /// If the device does not come back.
    fn reset(&mut self) -> Result<(), Self::Error>;

    /// Gives the interface back to where it was taken from.
    ///
    /// # Errors
    /// If it is not as it was before.
    fn close(self) -> Result<(), Self::Error>;
}
