//! Port status and control register (xHCI 1.2 clause 5.4.8).

use crate::xhci::{bit, field, flag, place};
use core::fmt;

/// PORTSC. Reading it is easy; what is written back must leave out the bits that a one clears or starts.
///
/// ```text
///   CCS 0, PED 1, OCA 3, PR 4, PLS 8:5, PP 9, Port Speed 13:10, LWS 16,
///   CSC 17, PEC 18, WRC 19, OCC 20, PRC 21, PLC 22, CEC 23, CAS 24, DR 30, WPR 31
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortStatus(u32);

register_bits! {
    /// Changes at a port; writing a one clears it.
    pub struct PortChanges: u32 {
        /// Somebody came or went (CSC).
        CONNECT = 0x0002_0000 => "connect",
        /// It was disabled (PEC).
        ENABLE = 0x0004_0000 => "enable",
        /// A warm reset ended (WRC).
        WARM_RESET = 0x0008_0000 => "warm reset",
        /// Too much current, or no longer (OCC).
        OVER_CURRENT = 0x0010_0000 => "over-current",
        /// A reset ended (PRC).
        RESET = 0x0020_0000 => "reset",
        /// The link went to another state (PLC).
        LINK = 0x0040_0000 => "link",
        /// The link could not be configured (CEC).
        CONFIG_ERROR = 0x0080_0000 => "config error",
    }
}

code! {
    /// State of a link (PLS).
    pub enum LinkState: u8 {
        /// Works.
        U0 = 0x00 => "U0",
        /// Sleeps lightly.
        U1 = 0x01 => "U1",
        /// Sleeps.
        U2 = 0x02 => "U2",
        /// Suspended.
        U3 = 0x03 => "U3",
        /// Off.
        Disabled = 0x04 => "disabled",
        /// No device is connected.
        RxDetect = 0x05 => "Rx.Detect",
        /// Does not train; wants a warm reset.
        Inactive = 0x06 => "inactive",
        /// At USB 2: wants a reset.
        Polling = 0x07 => "polling",
        /// Trains again.
        Recovery = 0x08 => "recovery",
        /// Being reset.
        HotReset = 0x09 => "hot reset",
        /// Measured by test equipment.
        Compliance = 0x0a => "compliance",
        /// Measured by test equipment.
        TestMode = 0x0b => "test mode",
        /// Woken.
        Resume = 0x0f => "resume",
    }
}

impl PortStatus {
    const CHANGES: u32 = 0x00fe_0000;
    /// Enabled (a one disables), reset, link write strobe, changes, warm reset: not to be written by accident.
    const ACTS: u32 = 0x8001_0012 | Self::CHANGES;

    /// Somebody is connected (CCS).
    pub const fn is_connected(self) -> bool {
        flag(self.0, 0)
    }

    /// The port is enabled (PED).
    pub const fn is_enabled(self) -> bool {
        flag(self.0, 1)
    }

    /// Too much current (OCA).
    pub const fn is_over_current(self) -> bool {
        flag(self.0, 3)
    }

    /// A reset is in progress (PR).
    pub const fn is_resetting(self) -> bool {
        flag(self.0, 4)
    }

    /// It has power (PP).
    pub const fn is_powered(self) -> bool {
        flag(self.0, 9)
    }

    /// State of the link (PLS).
    pub fn link_state(self) -> LinkState {
        LinkState::from(field(self.0, 5, 4) as u8)
    }

    /// Speed id of who is connected; what it means says the port's protocol.
    pub const fn speed_id(self) -> u8 {
        field(self.0, 10, 4) as u8
    }

    /// Returns the changes.
    pub fn changes(self) -> PortChanges {
        PortChanges::from(self.0 & Self::CHANGES)
    }

    /// Returns the value whose write changes nothing.
    #[must_use]
    pub const fn unchanged(self) -> Self {
        Self(self.0 & !Self::ACTS)
    }

    /// Returns the value to write to power the port.
    #[must_use]
    pub const fn powering(self) -> Self {
        Self(self.unchanged().0 | 1 << 9)
    }

    /// Returns the value to write to reset the port.
    #[must_use]
    pub const fn resetting(self) -> Self {
        Self(self.unchanged().0 | 1 << 4)
    }

    /// Returns the value to write to reset a SuperSpeed port whose link does not train (WPR).
    #[must_use]
    pub const fn warm_resetting(self) -> Self {
        Self(self.unchanged().0 | 1 << 31)
    }

    /// Returns the value to write to acknowledge changes.
    #[must_use]
    pub fn acknowledging(self, changes: PortChanges) -> Self {
        Self(self.unchanged().0 | u32::from(changes) & Self::CHANGES)
    }
}

/// The state of a port, as its status register reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortParts {
    /// Somebody is there (CCS).
    pub connected: bool,
    /// Somebody can be talked to (PED).
    pub enabled: bool,
    /// It is being reset (PR).
    pub resetting: bool,
    /// It has power (PP).
    pub powered: bool,
    /// State of the link (PLS).
    pub link_state: LinkState,
    /// Speed id of the attached device; 0 if none.
    pub speed_id: u8,
    /// Changes that are not acknowledged yet.
    pub changes: PortChanges,
}

impl PortParts {
    /// The status that says so.
    pub fn status(&self) -> PortStatus {
        let flags =
            bit(self.connected, 0) | bit(self.enabled, 1) | bit(self.resetting, 4) | bit(self.powered, 9);
        let link = place(u8::from(self.link_state).into(), 5, 4) | place(self.speed_id.into(), 10, 4);
        PortStatus(flags | link | u32::from(self.changes) & PortStatus::CHANGES)
    }
}

/// Actions that a write to a port's status asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortWrite {
    /// The port is to be disabled (PED, written as one).
    pub disables: bool,
    /// It is to be reset (PR).
    pub resets: bool,
    /// Its link is to be reset as well (WPR).
    pub warm_resets: bool,
    /// It is to have power (PP).
    pub powered: bool,
    /// Changes that have been taken note of.
    pub acknowledged: PortChanges,
}

impl PortWrite {
    /// Decodes what was written.
    pub fn decode(word: u32) -> Self {
        Self {
            disables: flag(word, 1),
            resets: flag(word, 4),
            warm_resets: flag(word, 31),
            powered: flag(word, 9),
            acknowledged: PortChanges::from(word & PortStatus::CHANGES),
        }
    }
}

impl From<u32> for PortStatus {
    fn from(word: u32) -> Self {
        Self(word)
    }
}

impl From<PortStatus> for u32 {
    fn from(status: PortStatus) -> Self {
        status.0
    }
}

impl fmt::Display for PortStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_connected() {
            true => write!(f, "connected at speed id {}, {}", self.speed_id(), self.link_state()),
            false => write!(f, "empty, {}", self.link_state()),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    /// Connected, enabled, U0, powered, speed id 4, connect and reset changes.
    const SUPER: u32 = 0x0022_1203;

    #[test]
    fn literal_bits_are_read() {
        let status = PortStatus::from(SUPER);
        assert!(status.is_connected() && status.is_enabled() && status.is_powered());
        assert!(!status.is_resetting() && !status.is_over_current());
        assert_eq!((status.speed_id(), status.link_state()), (4, LinkState::U0));
        assert_eq!(status.changes(), PortChanges::CONNECT.with(PortChanges::RESET));
        assert_eq!(u32::from(status), SUPER);
        assert_eq!(status.to_string(), "connected at speed id 4, U0");
    }

    #[test]
    fn writes_neither_disable_nor_clear_by_accident() {
        let status = PortStatus::from(SUPER);
        assert_eq!(u32::from(status.unchanged()), 0x0000_1201);
        assert_eq!(u32::from(status.resetting()), 0x0000_1211);
        assert_eq!(u32::from(status.warm_resetting()), 0x8000_1201);
        assert_eq!(u32::from(status.acknowledging(PortChanges::RESET)), 0x0020_1201);
        assert_eq!(u32::from(PortStatus::from(0).powering()), 0x200);
    }

    #[test]
    fn a_controller_reports_what_a_driver_reads() {
        let parts = PortParts {
            connected: true,
            enabled: true,
            resetting: false,
            powered: true,
            link_state: LinkState::U0,
            speed_id: 4,
            changes: PortChanges::CONNECT.with(PortChanges::RESET),
        };
        assert_eq!(u32::from(parts.status()), SUPER);
        let empty = PortParts {
            connected: false,
            enabled: false,
            link_state: LinkState::RxDetect,
            speed_id: 0,
            changes: PortChanges::EMPTY,
            ..parts
        };
        assert_eq!(u32::from(empty.status()), 0x0000_02a0);
    }

    #[test]
    fn what_is_written_is_what_a_controller_reads() {
        let status = PortStatus::from(SUPER);
        let read = |written: PortStatus| PortWrite::decode(written.into());
        let nothing = PortWrite {
            disables: false,
            resets: false,
            warm_resets: false,
            powered: true,
            acknowledged: PortChanges::EMPTY,
        };
        assert_eq!(read(status.unchanged()), nothing);
        assert_eq!(read(status.resetting()), PortWrite { resets: true, ..nothing });
        assert_eq!(read(status.warm_resetting()), PortWrite { warm_resets: true, ..nothing });
        let acknowledged = PortChanges::RESET;
        assert_eq!(read(status.acknowledging(acknowledged)), PortWrite { acknowledged, ..nothing });
        assert!(PortWrite::decode(0x202).disables);
    }

    #[test]
    fn an_empty_port_says_its_link_state() {
        assert_eq!(PortStatus::from(0x0000_02a0).to_string(), "empty, Rx.Detect");
    }
}
