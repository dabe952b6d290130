//! Accessors for the parts of a machine.

use super::{AnyTransport, Core, Enclosure, XhciMachine};
use crate::power::Meter;
use xhci_controller::Controller;

impl XhciMachine {
    /// Returns the controller.
    pub const fn controller(&self) -> &Controller {
        &self.system.controller
    }

    /// Returns the driver.
    pub const fn driver(&self) -> &::xhci_driver::Controller {
        &self.system.driver
    }

    /// Returns the enclosure of a drive, if it has one.
    pub fn enclosure(&mut self, drive: usize) -> Option<&mut Enclosure> {
        self.drives.get_mut(drive)?.drive.enclosure.as_deref_mut()
    }

    /// Returns the power meter of a drive without enclosure: idle, busy.
    pub fn drive_meter(&self, drive: usize) -> Option<&Meter<2>> {
        self.drives.get(drive).map(|attached| attached.drive.plain.meter())
    }

    /// Returns the core that runs the driver.
    pub const fn core(&self) -> &Core {
        &self.core
    }

    /// Returns the transport of a drive. `None` if there is no such drive.
    pub fn transport(&self, drive: usize) -> Option<&AnyTransport> {
        self.drives.get(drive).map(|attached| attached.host_transport.transport())
    }
}
