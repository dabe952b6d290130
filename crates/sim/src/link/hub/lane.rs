//! What one side of a branch sends, what it sends again, and what has not come to the other side.

use super::types::Routed;
use crate::link::retry::Retry;
use crate::link::superspeed::Side;
use std::collections::VecDeque;
use units::Instant;

/// What one side of a branch sends on.
#[derive(Clone, Debug)]
pub(super) struct Lane {
    /// It had nothing to send when it was asked last.
    pub(super) is_idle: bool,
    /// It will be looked at when what is on it has been sent, or when a credit is back.
    pub(super) is_expected: bool,
    /// What it would send if it had a credit.
    pub(super) held: Option<Passing>,
    /// Where what it sends has come from.
    pub(super) passes: Option<CameBy>,
    /// What has not come to the other side.
    pub(super) propagating: VecDeque<Coming>,
    /// What it has to send again.
    pub(super) retry: Retry<Passing>,
}

/// A packet in the component that sends it next, and where it has come from if that is a hub.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passing {
    pub(super) routed: Routed,
    pub(super) came_by: Option<CameBy>,
}

/// A packet that comes to the other side.
#[derive(Clone, Copy, Debug)]
pub(super) struct Coming {
    pub(super) routed: Routed,
    /// Its header is damaged.
    pub(super) is_damaged: bool,
}

/// The branch by which a packet has come to a hub, in which life, and the hub's side of it; and
/// when it had come.
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
