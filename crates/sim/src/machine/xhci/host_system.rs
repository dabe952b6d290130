//! The host: a driver, its controller and their shared memory.
//!
//! It also tracks which transports were called, so that an event costs only what it concerns. CPU
//! time is the core's.

use crate::index_set::IndexSet64;
use crate::xhc::{Controller, DriverAccess, Memory};
use units::Instant;
use xhci_driver::{DmaLayout, DmaMemory};

/// Bytes of a slot for inline data: longer than any IU or wrapper.
pub(super) const INLINE_BYTES: u32 = 1024;

#[derive(Debug)]
pub(super) struct HostSystem {
    pub(super) driver: xhci_driver::Controller,
    pub(super) controller: Controller,
    pub(super) memory: Memory,
    /// Free slots for inline data.
    places: Vec<u64>,
    /// Whether the driver was called since its deadline was read.
    pub(super) driver_deadline_dirty: bool,
    /// Whether the driver may have outputs.
    pub(super) driver_pending: bool,
    /// Drives whose transport was called since its deadline was read.
    pub(super) deadlines_dirty: IndexSet64,
    /// Drives whose transport may have outputs.
    pub(super) pending_output: IndexSet64,
    /// Whether driver, transports or controller were called since the controller's deadline was
    /// read.
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

    /// Calls the driver with access to its controller.
    pub(super) fn drive<R>(
        &mut self,
        now: Instant,
        act: impl FnOnce(&mut xhci_driver::Controller, &mut DriverAccess<'_>) -> R,
    ) -> R {
        (self.driver_deadline_dirty, self.driver_pending, self.is_touched) = (true, true, true);
        act(&mut self.driver, &mut DriverAccess::new(now, &mut self.controller, &mut self.memory))
    }

    /// Marks the transport of a drive as called.
    pub(super) const fn mark_dirty(&mut self, drive: usize) {
        self.deadlines_dirty.add(drive);
        self.pending_output.add(drive);
        self.is_touched = true;
    }

    /// Allocates a slot for inline data. `None` if memory is exhausted.
    pub(super) fn take_place(&mut self) -> Option<u64> {
        let layout = DmaLayout { bytes: INLINE_BYTES, align: 64, boundary: INLINE_BYTES };
        self.places.pop().or_else(|| self.memory.allocate(layout))
    }

    pub(super) fn give_place(&mut self, place: u64) {
        self.places.push(place);
    }
}
