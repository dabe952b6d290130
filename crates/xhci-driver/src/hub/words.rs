//! What is said to the driver of a hub, and what it says.

use crate::words::{DeviceId, Location, Request};
use units::Instant;
use wire::usb::{EndpointAddress, SetupPacket};

/// A hub that has an address, and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HubPlace {
    /// The hub.
    pub device: DeviceId,
    /// Where it is.
    pub location: Location,
}

/// What a hub's driver wants, and what it tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HubOutput {
    /// A control transfer; what comes of it goes to [`crate::Hub::handle_control`]. One at a time, requests counted.
    Control(SetupPacket),
    /// A request of the controller's driver; its answer goes to [`crate::Hub::handle_answer`].
    Request(Request),
    /// A transfer of the status change endpoint; what comes of it goes to [`crate::Hub::handle_report`].
    Listen {
        /// Where.
        endpoint: EndpointAddress,
        /// Room.
        bytes: u16,
    },
    /// Its ports have power and are looked after.
    Up {
        /// How many there are.
        ports: u8,
    },
    /// Somebody is at a port and can be talked to: there is to be attached.
    Arrived {
        /// From 1.
        port: u8,
        /// Where that is.
        location: Location,
    },
    /// Who was at a port is gone.
    Left {
        /// From 1.
        port: u8,
    },
    /// The reset that [`crate::Hub::reset_port`] asked for is over.
    PortReset {
        /// From 1.
        port: u8,
        /// Whether the port is enabled.
        is_done: bool,
    },
    /// What [`crate::Hub::clear_buffer`] asked for is over.
    BufferCleared {
        /// From 1.
        port: u8,
        /// Whether the hub has done it.
        is_done: bool,
    },
    /// It does not answer as a hub does, and is of no use until it is attached again.
    Failed,
}

/// A port, as the host knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Port {
    /// Nobody is there, or nobody who is of use.
    #[default]
    Empty,
    /// Contacts may bounce until then (TATTDB, USB 2.0 clause 7.1.7.3).
    Debouncing(Instant),
    /// Reset for the first time, no longer than until then.
    Enabling(Instant),
    /// Rests after its reset until then (TRSTRCY, USB 2.0 clause 7.1.7.5); its speed id.
    Recovering(Instant, u8),
    /// There.
    There,
    /// There, and reset because its owner wants it, no longer than until then.
    Resetting(Instant),
}

impl Port {
    /// Whether its owner knows of somebody.
    pub(super) const fn is_told(self) -> bool {
        matches!(self, Self::There | Self::Resetting(_))
    }

    /// When something is to be done.
    pub(super) const fn due(self) -> Option<Instant> {
        match self {
            Self::Debouncing(at) | Self::Enabling(at) | Self::Recovering(at, _) | Self::Resetting(at) => {
                Some(at)
            }
            Self::Empty | Self::There => None,
        }
    }
}
