//! The computer of a world: a driver, its controller, and the memory that they share.
//!
//! It notes as well whose transport or device was told something, so that an event costs what it is about and not a look
//! at every drive. What driver and transports take is the core's affair.

use crate::index_set::IndexSet64;
use crate::xhc::{Controller, DriverAccess, Memory};
use units::Instant;
use xhci_driver::{DmaLayout, DmaMemory};

/// Bytes of a place for what travels inline: longer than any information unit or wrapper.
pub(super) const INLINE_BYTES: u32 = 1024;

#[derive(Debug)]
pub(super) struct HostSystem {
    pub(super) driver: xhci_driver::Controller,
    pub(super) controller: Controller,
    pub(super) memory: Memory,
    /// Places for what travels inline that nobody uses.
    places: Vec<u64>,
    /// Whether the driver was told something since its deadline was asked for.
    pub(super) driver_deadline_dirty: bool,
    /// Whether the driver may want something.
    pub(super) driver_pending: bool,
    /// Drives whose transport was told something since its deadline was asked for.
    pub(super) deadlines_dirty: IndexSet64,
    /// Drives whose transport may want something.
    pub(super) pending_output: IndexSet64,
    /// Whether driver, transports or controller were told something since the controller was asked for its time.
    pub(super) is_touched: bool,
}

impl HostSystem {
    pub(super) fn new(driver: xhci_driver::Controller, controller: Controller) -> Self {
        Self {
            driver,
            controller,
            memory: Memory::new(),
            places: Vec::new(),
            driver_deadline_dirty: true,
            driver_pending: true,
            deadlines_dirty: IndexSet64::NONE,
            pending_output: IndexSet64::NONE,
            is_touched: true,
        }
    }

    /// Lets the driver do something with its controller.
    pub(super) fn drive<R>(
        &mut self,
        now: Instant,
        act: impl FnOnce(&mut xhci_driver::Controller, &mut DriverAccess<'_>) -> R,
    ) -> R {
        (self.driver_deadline_dirty, self.driver_pending, self.is_touched) = (true, true, true);
        act(&mut self.driver, &mut DriverAccess::new(now, &mut self.controller, &mut self.memory))
    }

    /// The transport of a drive was told something.
    pub(super) const fn mark_dirty(&mut self, drive: usize) {
        self.deadlines_dirty.add(drive);
        self.pending_output.add(drive);
        self.is_touched = true;
    }

    /// A place for what travels inline. `None` if there is no memory.
    pub(super) fn take_place(&mut self) -> Option<u64> {
        let layout = DmaLayout { bytes: INLINE_BYTES, align: 64, boundary: INLINE_BYTES };
        self.places.pop().or_else(|| self.memory.allocate(layout))
    }

    pub(super) fn give_place(&mut self, place: u64) {
        self.places.push(place);
    }
}
