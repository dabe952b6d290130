//! The computer of a world: a driver, its controller, and the memory that they share.
//!
//! It notes as well whose transport or device was told something, so that an event costs what it is about and not a look
//! at every drive. What driver and transports take is the core's affair.

use crate::few::Few;
use crate::xhc::{Controller, DriverAccess, Memory};
use units::Instant;
use xhci_driver::{DmaLayout, DmaMemory};

/// Bytes of a place for what travels inline: longer than any information unit or wrapper.
pub(super) const INLINE_BYTES: u32 = 1024;

#[derive(Debug)]
pub(super) struct Machine {
    pub(super) driver: xhci_driver::Controller,
    pub(super) controller: Controller,
    pub(super) memory: Memory,
    /// Places for what travels inline that nobody uses.
    places: Vec<u64>,
    /// Whether the driver was told something since its deadline was asked for.
    pub(super) has_news: bool,
    /// Whether the driver may want something.
    pub(super) driver_talks: bool,
    /// Drives whose transport was told something since its deadline was asked for.
    pub(super) news: Few,
    /// Drives whose transport may want something.
    pub(super) talks: Few,
    /// Whether driver, transports or controller were told something since the controller was asked for its time.
    pub(super) is_touched: bool,
}

impl Machine {
    pub(super) fn new(driver: xhci_driver::Controller, controller: Controller) -> Self {
        Self {
            driver,
            controller,
            memory: Memory::new(),
            places: Vec::new(),
            has_news: true,
            driver_talks: true,
            news: Few::NONE,
            talks: Few::NONE,
            is_touched: true,
        }
    }

    /// Lets the driver do something with its controller.
    pub(super) fn drive<R>(
        &mut self,
        now: Instant,
        act: impl FnOnce(&mut xhci_driver::Controller, &mut DriverAccess<'_>) -> R,
    ) -> R {
        (self.has_news, self.driver_talks, self.is_touched) = (true, true, true);
        act(&mut self.driver, &mut DriverAccess::new(now, &mut self.controller, &mut self.memory))
    }

    /// The transport of a drive was told something.
    pub(super) const fn told(&mut self, drive: usize) {
        self.news.add(drive);
        self.talks.add(drive);
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
