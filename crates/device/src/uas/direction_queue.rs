//! Without streams: which tag moves data in each direction, and which wait.

use alloc::collections::VecDeque;
use bus::Direction;

/// Who may move data, without streams: one slot in each direction, and those who wait.
#[derive(Debug, Default)]
pub(super) struct Turns {
    pub(super) inward: Turn,
    pub(super) outward: Turn,
}

#[derive(Debug, Default)]
pub(super) struct Turn {
    pub(super) holder: Option<u16>,
    pub(super) waiting: VecDeque<u16>,
}

impl Turns {
    pub(super) fn of(&mut self, direction: Direction) -> &mut Turn {
        match direction {
            Direction::In => &mut self.inward,
            Direction::Out => &mut self.outward,
        }
    }
}
