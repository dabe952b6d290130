//! The interface of an exported device to its session.

use bus::rendezvous::Full;
use bus::{EndpointAddress, Pipe};
use device::{Device, Verdict};
use drive::{Drive, HostCompletion, HostTransfer, Pool};
use wire::usb::SetupPacket;

/// A device with its transfers: a [`Drive`], or something simpler in a test.
pub trait Exported {
    /// Takes a transfer on. It completes once, by [`Exported::poll`].
    ///
    /// # Errors
    /// [`Full`] when too many are outstanding; the transfer is dropped.
    fn submit(&mut self, transfer: HostTransfer) -> Result<(), Full>;

    /// The same for a few bytes that the host sends.
    ///
    /// # Errors
    /// [`Full`], as above.
    fn submit_message(&mut self, id: u64, pipe: Pipe, bytes: &[u8]) -> Result<(), Full> {
        let mut payload = self.pool().take(bytes.len());
        payload[..bytes.len()].copy_from_slice(bytes);
        self.submit(HostTransfer { id, pipe, length: bytes.len() as u32, payload })
    }

    /// Takes a transfer back; it still completes. `false` if none with this id is outstanding.
    fn cancel(&mut self, id: u64) -> bool;

    /// Cancels all transfers at an endpoint; they still complete.
    fn cancel_at(&mut self, endpoint: EndpointAddress);

    /// A control transfer on endpoint 0. One that selects a configuration or an alternate setting cancels all transfers; they
    /// still complete.
    fn control(&mut self, setup: SetupPacket, data_out: &[u8]) -> Verdict;

    /// A bus reset: outstanding transfers complete, the device is in its default state.
    fn bus_reset(&mut self);

    /// The next transfer that has ended.
    fn poll(&mut self) -> Option<HostCompletion>;

    /// The device, for what it is and how it is configured.
    fn device(&self) -> &Device;

    /// Payload memory.
    fn pool(&mut self) -> &mut Pool;

    /// Payload of submitted transfers that the device has not taken, in bytes.
    fn payload_bytes(&self) -> usize;

    /// Requests that media work on.
    fn at_media(&self) -> usize;
}

impl Exported for Drive {
    fn submit(&mut self, transfer: HostTransfer) -> Result<(), Full> {
        self.submit(transfer)
    }

    fn submit_message(&mut self, id: u64, pipe: Pipe, bytes: &[u8]) -> Result<(), Full> {
        self.submit_message(id, pipe, bytes)
    }

    fn cancel(&mut self, id: u64) -> bool {
        self.cancel(id)
    }

    fn cancel_at(&mut self, endpoint: EndpointAddress) {
        self.cancel_at(endpoint);
    }

    fn control(&mut self, setup: SetupPacket, data_out: &[u8]) -> Verdict {
        self.control(setup, data_out)
    }

    fn bus_reset(&mut self) {
        self.bus_reset();
    }

    fn poll(&mut self) -> Option<HostCompletion> {
        self.poll()
    }

    fn device(&self) -> &Device {
        self.device()
    }

    fn pool(&mut self) -> &mut Pool {
        self.pool()
    }

    fn payload_bytes(&self) -> usize {
        self.payload_bytes()
    }

    fn at_media(&self) -> usize {
        self.at_media()
    }
}
