//! The parts of a machine that need attention, so that an event costs only what it concerns.
//!
//! A call marks what may have outputs, packets or another deadline because of it; the machine takes
//! the marks off as it settles. Invariant: what is not marked has no outputs, nothing to send, and
//! the deadline that its alarm knows.

use crate::index_set::IndexSet64;
use crate::link::superspeed::Side;

/// Marked parts of a machine.
#[derive(Debug)]
pub(super) struct ReadySet {
    /// Drives whose transport may have outputs.
    pub(super) transports: IndexSet64,
    /// Whether the driver may have outputs.
    pub(super) driver: bool,
    /// Drives that may have outputs.
    pub(super) drives: IndexSet64,
    /// Hubs that may have outputs, or their drivers.
    pub(super) hubs: IndexSet64,
    /// Root ports that may have packets to send, by side of the link.
    pub(super) ports: [IndexSet64; 2],
    /// Drives whose transport may have another deadline.
    pub(super) deadlines: IndexSet64,
    /// Whether the driver may have another deadline.
    pub(super) driver_deadline: bool,
    /// Whether the controller may have another deadline: it, the driver or a transport was called.
    pub(super) controller: bool,
}

impl ReadySet {
    /// Creates the set of a machine whose driver and controller are to be polled first.
    pub(super) const fn new() -> Self {
        Self {
            transports: IndexSet64::NONE,
            driver: true,
            drives: IndexSet64::NONE,
            hubs: IndexSet64::NONE,
            ports: [IndexSet64::NONE; 2],
            deadlines: IndexSet64::NONE,
            driver_deadline: true,
            controller: true,
        }
    }

    /// Marks the driver.
    pub(super) const fn mark_driver(&mut self) {
        (self.driver, self.driver_deadline) = (true, true);
    }

    /// Marks the transport of a drive.
    pub(super) const fn mark_transport(&mut self, drive: usize) {
        self.transports.add(drive);
        self.deadlines.add(drive);
        self.controller = true;
    }

    /// Marks a side of a root port.
    pub(super) const fn mark_port(&mut self, root: usize, side: Side) {
        self.ports[side as usize].add(root);
    }

    /// Marks both sides of a root port.
    pub(super) const fn mark_ports(&mut self, root: usize) {
        self.mark_port(root, Side::Host);
        self.mark_port(root, Side::Device);
    }

    /// Returns whether anything but the controller may have outputs.
    #[inline]
    pub(super) const fn has_outputs(&self) -> bool {
        self.driver || !self.transports.or(self.drives).or(self.hubs).is_none()
    }

    /// Returns whether a root port may have packets to send.
    #[inline]
    pub(super) const fn has_ports(&self) -> bool {
        let [host, device] = self.ports;
        !host.or(device).is_none()
    }

    /// Returns whether nothing but root ports is marked. A driver or transport is so with the
    /// controller only.
    #[inline]
    pub(super) const fn is_quiescent(&self) -> bool {
        !self.controller && self.drives.or(self.hubs).is_none()
    }
}
