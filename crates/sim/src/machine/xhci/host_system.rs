//! The host: a driver, its controller and their shared memory.
//!
//! CPU time is the core's.

use super::event_occupancy::EventOccupancy;
use super::ready_set::ReadySet;
use crate::xhc::{DriverAccess, Memory, PacketDelays, Part};
use units::Instant;
use xhci_controller::Controller;
use xhci_driver::{DeviceId, DmaLayout, DmaMemory};

/// Bytes of a slot for inline data: longer than any IU or wrapper.
pub(super) const INLINE_BYTES: u32 = 1024;

#[derive(Debug)]
pub(super) struct HostSystem {
    pub(super) driver: xhci_driver::Controller,
    pub(super) controller: Controller,
    pub(super) packet_delays: PacketDelays,
    pub(super) memory: Memory,
    /// Occupancy of the event ring, if faults are injected.
    event_occupancy: Option<Box<EventOccupancy>>,
    /// Free slots for inline data.
    places: Vec<u64>,
    /// The parts of the machine that need attention.
    pub(super) ready: ReadySet,
}

/// The host and its device, for a call of the bus.
pub(super) struct BusCall<'a> {
    pub(super) system: &'a mut HostSystem,
    pub(super) now: Instant,
    pub(super) device: Option<DeviceId>,
}

impl HostSystem {
    pub(super) fn new(driver: xhci_driver::Controller, part: &Part) -> Self {
        Self {
            driver,
            controller: Controller::new(part.controller()),
            packet_delays: part.packet_delays(),
            memory: Memory::new(),
            event_occupancy: None,
            places: Vec::new(),
            ready: ReadySet::new(),
        }
    }

    /// Calls the driver with access to its controller.
    pub(super) fn drive<R>(
        &mut self,
        now: Instant,
        act: impl FnOnce(&mut xhci_driver::Controller, &mut DriverAccess<'_>) -> R,
    ) -> R {
        self.ready.mark_driver();
        self.ready.controller = true;
        act(&mut self.driver, &mut DriverAccess::new(now, &mut self.controller, &mut self.memory))
    }

    /// Returns what a call of the bus of a device needs.
    pub(super) const fn call(&mut self, now: Instant, device: Option<DeviceId>) -> BusCall<'_> {
        BusCall { system: self, now, device }
    }

    /// Starts to track the occupancy of the event ring.
    pub(super) fn track_events(&mut self, now: Instant) {
        self.event_occupancy = Some(Box::new(EventOccupancy::new(now, self.controller.event_traffic())));
    }

    /// Accounts for the events of this instant, if they are tracked.
    #[inline]
    pub(super) fn account_events(&mut self, now: Instant) {
        if let Some(occupancy) = &mut self.event_occupancy {
            occupancy.update(now, self.controller.event_traffic());
        }
    }

    /// Checks Little's law for the event ring, if it is tracked.
    pub(super) fn are_events_consistent(&mut self, now: Instant) -> bool {
        self.account_events(now);
        self.event_occupancy.as_ref().is_none_or(|occupancy| occupancy.is_consistent(now))
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
