//! What is to be seen of a world from outside, between its events.

use super::{AnyTransport, Core, Enclosure, XhciMachine};
use crate::power::Meter;
use crate::xhc as model;

impl XhciMachine {
    /// The controller, with what it counts.
    pub const fn controller(&self) -> &model::Controller {
        &self.system.controller
    }

    /// The driver, with what it counts.
    pub const fn driver(&self) -> &::xhci_driver::Controller {
        &self.system.driver
    }

    /// The enclosure of a drive, if it has one.
    pub fn enclosure(&mut self, drive: usize) -> Option<&mut Enclosure> {
        self.drives.get_mut(drive)?.drive.enclosure.as_deref_mut()
    }

    /// What a drive has drawn that is not made of parts: idle and at work.
    pub fn drive_meter(&self, drive: usize) -> Option<&Meter<2>> {
        self.drives.get(drive).map(|attached| attached.drive.plain.meter())
    }

    /// The core that runs the driver, with what it has done.
    pub const fn core(&self) -> &Core {
        &self.core
    }

    /// The transport of a drive. `None` if there is no such drive.
    pub fn transport(&self, drive: usize) -> Option<&AnyTransport> {
        self.drives.get(drive).map(|attached| &attached.host_endpoint.transport)
    }
}
