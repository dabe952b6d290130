//! The sending side of a branch: held, retransmitted and in-flight packets.

use super::types::Routed;
use crate::link::retry::Retry;
use crate::link::superspeed::Side;
use std::collections::VecDeque;
use units::Instant;

/// The sending side of a branch.
#[derive(Clone, Debug)]
pub(super) struct Lane {
    /// It had nothing to send when polled last.
    pub(super) is_idle: bool,
    /// An event will poll it: the lane becomes free or a credit returns.
    pub(super) is_expected: bool,
    /// The packet that waits for a credit.
    pub(super) held: Option<Passing>,
    /// Origin of the packet on the lane.
    pub(super) passes: Option<CameBy>,
    /// Packets in flight to the other side.
    pub(super) propagating: VecDeque<Coming>,
    /// Packets to retransmit.
    pub(super) retry: Retry<Passing>,
}

/// A packet about to be sent, and its origin if that is a hub.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passing {
    pub(super) routed: Routed,
    pub(super) came_by: Option<CameBy>,
}

/// A packet in flight to the other side.
#[derive(Clone, Copy, Debug)]
pub(super) struct Coming {
    pub(super) routed: Routed,
    /// Its header is damaged.
    pub(super) is_damaged: bool,
}

/// The branch over which a packet reached a hub, its generation, the hub's side, and the time of
/// arrival.
#[derive(Clone, Copy, Debug)]
pub(super) struct CameBy {
    pub(super) branch: usize,
    pub(super) generation: u8,
    pub(super) side: Side,
    pub(super) since: Instant,
}

impl Lane {
    /// Two with nothing on them.
    pub(super) fn both() -> [Self; 2] {
        let lane = || Self {
            is_idle: true,
            is_expected: false,
            held: None,
            passes: None,
            propagating: VecDeque::new(),
            retry: Retry::new(),
        };
        [lane(), lane()]
    }
}
