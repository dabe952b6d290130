//! Inputs and outputs of the hub driver.

use crate::types::{DeviceId, Location, Request};
use units::Instant;
use wire::usb::{EndpointAddress, SetupPacket};

/// An addressed hub and its location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HubLocation {
    /// The hub.
    pub device: DeviceId,
    /// Its location.
    pub location: Location,
}

/// An output of the hub driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HubOutput {
    /// A control transfer; its result goes to [`crate::Hub::handle_control`]. At most one of these
    /// and requests is outstanding.
    Control(SetupPacket),
    /// A request to the controller driver; its answer goes to [`crate::Hub::handle_answer`].
    Request(Request),
    /// A transfer of the status change endpoint; its result goes to [`crate::Hub::handle_report`].
    Listen {
        /// The endpoint.
        endpoint: EndpointAddress,
        /// Length of the receive buffer.
        bytes: u16,
    },
    /// The ports have power and are monitored.
    Up {
        /// Number of ports.
        ports: u8,
    },
    /// A device was connected and its port enabled: attach it.
    Arrived {
        /// From 1.
        port: u8,
        /// Its location.
        location: Location,
    },
    /// The device of a port was disconnected.
    Left {
        /// From 1.
        port: u8,
    },
    /// The reset requested by [`crate::Hub::reset_port`] ended.
    PortReset {
        /// From 1.
        port: u8,
        /// Whether the port is enabled.
        is_done: bool,
    },
    /// The operation requested by [`crate::Hub::clear_buffer`] ended.
    BufferCleared {
        /// From 1.
        port: u8,
        /// Whether it succeeded.
        is_done: bool,
    },
    /// The hub answers incorrectly and cannot be used until it is attached again.
    Failed,
}

/// The state of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Port {
    /// No usable device.
    #[default]
    Empty,
    /// Debouncing until then (TATTDB, USB 2.0 clause 7.1.7.3).
    Debouncing(Instant),
    /// Being reset for the first time; times out then.
    Enabling(Instant),
    /// Reset recovery until then (TRSTRCY, USB 2.0 clause 7.1.7.5); its speed id.
    Recovering(Instant, u8),
    /// A device is connected.
    There,
    /// Connected, and being reset for its owner; times out then.
    Resetting(Instant),
}

impl Port {
    /// Returns whether a device was reported.
    pub(super) const fn is_reported(self) -> bool {
        matches!(self, Self::There | Self::Resetting(_))
    }

    /// Returns the deadline.
    pub(super) const fn due(self) -> Option<Instant> {
        match self {
            Self::Debouncing(at) | Self::Enabling(at) | Self::Recovering(at, _) | Self::Resetting(at) => {
                Some(at)
            }
            Self::Empty | Self::There => None,
        }
    }
}
