//! What is sent to a tree and what it says: who is where, what was sent, what happens next.
//!
//! Invariants: these are values; they hold no part of a tree.

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

/// Where something is plugged in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachPoint {
    /// At the host.
    Root,
    /// At a port of a hub, 1 to 15.
    Port(HubId, u8),
}

/// Devices of a tree, hubs counted: one controller has no more slots for our driver.
pub const DEVICES_MAX: usize = INDEXES_MAX;

/// Nothing can be plugged in there: something is, or it would be behind too many hubs, or there is
/// no such port, or the tree has [`DEVICES_MAX`] devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttachError;

/// A message and the device that it is for or from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Routed {
    /// The device.
    pub device: DeviceId,
    /// The ports on the way to it.
    pub route: RouteString,
    /// The message.
    pub message: Message,
    /// Which of the ports that have been there it is for.
    pub(super) generation: u32,
}

/// Something that happens in a tree. Branches are counted as they were made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeEvent {
    /// A lane is free.
    Free {
        /// Of which branch,
        branch: u8,
        /// in which of its lives.
        generation: u8,
        /// Who sends on it.
        from: Side,
    },
    /// A packet has come to an end of a branch; to a hub, as far as the hub needs it to pass it on.
    Reaches {
        /// Of which branch,
        branch: u8,
        /// in which of its lives.
        generation: u8,
        /// Which end.
        side: Side,
        /// Bytes of payload.
        bytes: u16,
    },
    /// LBAD has come back to a side of a branch.
    Retry {
        /// Of which branch,
        branch: u8,
        /// in which of its lives.
        generation: u8,
        /// Who sends again.
        from: Side,
    },
}

/// A packet that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// On which branch.
    pub branch: usize,
    /// Who sends.
    pub from: Side,
    /// What.
    pub routed: Routed,
    /// When.
    pub crossing: Crossing,
    /// A hub passes it on.
    pub is_passed: bool,
}

/// What is around a tree: how the host takes its time, and what becomes of packets. Nothing, unless
/// it says otherwise.
pub trait TreeEnvironment {
    /// How much longer than the link a message of the host has to wait.
    fn pace(&mut self, _message: &Message) -> Duration {
        Duration::ZERO
    }

    /// A message to or from a device has been sent on one of the links in flight: whether its
    /// header arrives damaged.
    fn damages(&mut self, _device: DeviceId, _message: &Message) -> bool {
        false
    }

    /// What has become of a message to or from a device by the time that it comes to its end.
    fn ends(&mut self, _device: DeviceId, _message: &Message) -> Fate {
        Fate::Arrives
    }
}

/// What comes of a packet that has come to an end of a branch, where it is not passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeArrival {
    /// It has come to its end.
    ToItsEnd(Arrived),
    /// No one looks at it, and it is sent again.
    InVain {
        /// On which branch.
        branch: usize,
        /// To which side.
        side: Side,
        /// Bytes of payload.
        bytes: u16,
    },
}

/// A packet that has come to its end, which has taken it.
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
    /// On which branch, and in which of its lives.
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
