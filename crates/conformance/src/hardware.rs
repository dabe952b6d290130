//! The drivers of this machine as a bus for tests.

use crate::bus::{ControlFailure, Driver};
use bus::{Completion, TransferId};
use initiator::session::{HostBus, TransferRequest};
use initiator::{BusAnswer, BusRequest, RequestId};
use std::time::Duration;
use usb::host_bus::{HardwareBus, HostBusError, Readiness};
use wire::usb::SetupPacket;

/// An interface of a device at a port of this machine.
#[derive(Debug)]
pub struct HardwareDriver<B>(pub B);

impl<B: HardwareBus> HostBus for HardwareDriver<B> {
    type Buffers = B::Buffers;

    fn buffers(&mut self) -> &mut B::Buffers {
        self.0.buffers()
    }

    fn submit(&mut self, request: TransferRequest) -> Option<Completion> {
        self.0.submit(request)
    }

    fn cancel(&mut self, id: TransferId) {
        self.0.cancel(id);
    }

    fn poll(&mut self) -> Option<Completion> {
        self.0.poll()
    }

    fn request(&mut self, id: RequestId, request: BusRequest) -> Option<BusAnswer> {
        self.0.request(id, request)
    }

    fn poll_answer(&mut self) -> Option<(RequestId, BusAnswer)> {
        self.0.poll_answer()
    }

    fn is_gone(&self) -> bool {
        self.0.is_gone()
    }
}

impl<B: HardwareBus> Driver for HardwareDriver<B> {
    fn control(&mut self, setup: SetupPacket, bytes: &mut [u8]) -> Result<usize, ControlFailure> {
        self.0.control(setup, bytes).map_err(|error| {
            if error.is_stall() { ControlFailure::Stalled } else { ControlFailure::NoAnswer }
        })
    }

    fn work(&mut self, limit: Duration) -> bool {
        // Whatever is wrong shows as a transfer without an end, or as a disconnect.
        match self.0.wait(Some(limit)) {
            Ok(Readiness::Ready) => self.0.reap().is_ok(),
            Ok(Readiness::Interrupted) => true,
            Ok(Readiness::TimeOver) | Err(_) => false,
        }
    }
}
