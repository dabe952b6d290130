//! Reports of a controller: changes of its root ports, and counts.
//!
//! Left out: transfers. Always true: a count never decreases while the controller is open.

use wire::xhci::PortStatus;
use xhci_driver::Counters;

/// A change of a root port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortChange {
    /// From 1.
    pub port: u8,
    /// Its state.
    pub status: PortStatus,
}

/// Counts since the controller was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCounters {
    /// Counts of the driver.
    pub driver: Counters,
    /// Interrupts.
    pub interrupts: u64,
    /// Events found without an interrupt.
    pub unsignalled: u64,
}

impl PortChange {
    /// Returns whether a device is connected.
    pub const fn is_connected(self) -> bool {
        self.status.is_connected()
    }
}
