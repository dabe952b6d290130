//! What is to be seen of a world from outside, between its events.

use super::{AnyTransport, Core, Driven, Enclosure};
use crate::power::Meter;
use crate::xhc as model;

impl Driven {
    /// The controller, with what it counts.
    pub const fn controller(&self) -> &model::Controller {
        &self.machine.controller
    }

    /// The driver, with what it counts.
    pub const fn driver(&self) -> &::xhci_driver::Controller {
        &self.machine.driver
    }

    /// The enclosure of a drive, if it has one.
    pub fn enclosure(&mut self, drive: usize) -> Option<&mut Enclosure> {
        self.seats.get_mut(drive)?.drive.enclosure.as_deref_mut()
    }

    /// What a drive has drawn that is not made of parts: idle and at work.
    pub fn drive_meter(&self, drive: usize) -> Option<&Meter<2>> {
        self.seats.get(drive).map(|seat| seat.drive.plain.meter())
    }

    /// The core that runs the driver, with what it has done.
    pub const fn core(&self) -> &Core {
        &self.core
    }

    /// The transport of a drive. `None` if there is no such drive.
    pub fn transport(&self, drive: usize) -> Option<&AnyTransport> {
        self.seats.get(drive).map(|seat| &seat.desk.transport)
    }
}
