//! Value types of the tree: ids, packets, events and the environment.
//!
//! Invariant: these are plain values without references into a tree.

use crate::index_set::INDEXES_MAX;
use crate::link::bulk::Message;
use crate::link::superspeed::Side;
use crate::link::{Crossing, Fate};
use std::fmt;
use units::Duration;
use wire::xhci::RouteString;

/// A hub of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HubId(pub(in crate::link) usize);

/// A device of a tree, by number from 0. Hubs are counted as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceId(pub usize);

/// Where a device or hub is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachPoint {
    /// At the root port.
    Root,
    /// At a port of a hub, 1 to 15.
    Port(HubId, u8),
}

/// Devices of a tree, hubs counted: one controller has no more slots for our driver.
pub const DEVICES_MAX: usize = INDEXES_MAX;

/// Cannot attach: the port is taken or does not exist, too many hubs are in the path, or the tree
/// has [`DEVICES_MAX`] devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttachError;

/// A message and the device it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Routed {
    /// The device.
    pub device: DeviceId,
    /// The route to it.
    pub route: RouteString,
    /// The message.
    pub message: Message,
    /// The generation of the destination.
    pub(super) generation: u32,
}

/// An event of a tree. Branches are numbered in order of creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeEvent {
    /// A lane is free.
    Free {
        /// Of which branch,
        branch: u8,
        /// and its generation.
        generation: u8,
        /// The sending side.
        from: Side,
    },
    /// A packet reaches an end of a branch; at a hub, as far as needed to forward it.
    Reaches {
        /// Of which branch,
        branch: u8,
        /// and its generation.
        generation: u8,
        /// Which end.
        side: Side,
        /// Bytes of payload.
        bytes: u16,
    },
    /// LBAD reaches a side of a branch.
    Retry {
        /// Of which branch,
        branch: u8,
        /// and its generation.
        generation: u8,
        /// The side that retransmits.
        from: Side,
    },
}

/// A packet that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// On which branch.
    pub branch: usize,
    /// The sending side.
    pub from: Side,
    /// The packet.
    pub routed: Routed,
    /// When.
    pub crossing: Crossing,
    /// Whether a hub forwards it.
    pub is_passed: bool,
}

/// The environment of a tree: host delays and fault injection. The defaults do nothing.
pub trait TreeEnvironment {
    /// Returns the additional delay of a message of the host.
    fn pace(&mut self, _message: &Message) -> Duration {
        Duration::ZERO
    }

    /// Returns whether the header of a message arrives damaged on one of its links.
    fn damages(&mut self, _device: DeviceId, _message: &Message) -> bool {
        false
    }

    /// Returns the fate of a message at its destination.
    fn ends(&mut self, _device: DeviceId, _message: &Message) -> Fate {
        Fate::Arrives
    }
}

/// The arrival of a packet that is not forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeArrival {
    /// It reached its destination.
    ToItsEnd(Arrived),
    /// It is ignored, and will be retransmitted.
    InVain {
        /// On which branch.
        branch: usize,
        /// To which side.
        side: Side,
        /// Bytes of payload.
        bytes: u16,
    },
}

/// A packet accepted by its destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// Which end.
    pub side: Side,
    /// Of which device.
    pub device: DeviceId,
    /// The message.
    pub message: Message,
}

impl TreeEvent {
    /// Returns its branch and generation.
    pub(super) fn branch(self) -> (usize, u8) {
        let (Self::Free { branch, generation, .. }
        | Self::Reaches { branch, generation, .. }
        | Self::Retry { branch, generation, .. }) = self;
        (branch.into(), generation)
    }

    /// Returns a fingerprint for the digest.
    pub fn mark(&self) -> u64 {
        let (branch, [p0, p1], kind, side) = match *self {
            Self::Free { branch, from, .. } => (branch, [0; 2], 1, from),
            Self::Reaches { branch, side, bytes, .. } => (branch, bytes.to_be_bytes(), 2, side),
            Self::Retry { branch, from, .. } => (branch, [0; 2], 3, from),
        };
        u64::from_be_bytes([0, kind, 0, branch, p0, p1, 0, side as u8])
    }
}

impl fmt::Display for AttachError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cannot attach here: the port is taken, out of range or too deep, or the tree is full")
    }
}

impl std::error::Error for AttachError {}
