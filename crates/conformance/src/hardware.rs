//! The drivers of this machine as a bus for tests.

use crate::bus::{ControlFailure, Driver};
use std::time::Duration;
use usb::host_bus::{HardwareBus, HostBusError, Readiness};
use wire::usb::SetupPacket;

/// An interface of a device at a port of this machine.
#[derive(Debug)]
pub struct HardwareDriver<B>(pub B);

impl<B: HardwareBus> Driver for HardwareDriver<B> {
    type Bus = B;

    fn bus(&mut self) -> &mut B {
        &mut self.0
    }

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
