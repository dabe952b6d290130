//! Without streams: which tag moves data in each direction, and which wait.

use alloc::collections::VecDeque;
use bus::Direction;

/// Tags that may move data, without streams: one in each direction, and those that wait.
#[derive(Debug, Default)]
pub(super) struct DirectionQueues {
    pub(super) inward: DirectionQueue,
    pub(super) outward: DirectionQueue,
}

#[derive(Debug, Default)]
pub(super) struct DirectionQueue {
    pub(super) holder: Option<u16>,
    pub(super) waiting: VecDeque<u16>,
}

impl DirectionQueues {
    pub(super) fn of(&mut self, direction: Direction) -> &mut DirectionQueue {
        match direction {
            Direction::In => &mut self.inward,
            Direction::Out => &mut self.outward,
        }
    }
}
