//! Bytes of command buffers: a limit, and the commands that wait for memory.
//!
//! Granted in the order of asking, so that a large command is not starved by small ones. Always true: if no
//! memory is held, the first that waits is granted, however large.

use super::CommandId;
use alloc::collections::VecDeque;

#[derive(Debug)]
pub(super) struct Memory {
    limit_bytes: u32,
    held_bytes: u32,
    waiting: VecDeque<(CommandId, u32)>,
}

impl Memory {
    pub(super) const fn new(limit_bytes: u32) -> Self {
        Self { limit_bytes, held_bytes: 0, waiting: VecDeque::new() }
    }

    /// Reserves bytes for a command if none waits and they fit below the limit. Returns whether it did.
    pub(super) fn take(&mut self, bytes: u32) -> bool {
        let is_free = self.waiting.is_empty() && self.has_room(bytes);
        if is_free {
            self.held_bytes = self.held_bytes.saturating_add(bytes);
        }
        is_free
    }

    /// Queues a command that needs memory.
    pub(super) fn ask(&mut self, id: CommandId, bytes: u32) {
        self.waiting.push_back((id, bytes));
    }

    /// Removes a command from the queue.
    pub(super) fn forget(&mut self, id: CommandId) {
        self.waiting.retain(|&(waiting, _)| waiting != id);
    }

    /// The next command that gets what it asked for.
    pub(super) fn grant(&mut self) -> Option<(CommandId, u32)> {
        let &(_, bytes) = self.waiting.front()?;
        if !self.has_room(bytes) {
            return None;
        }
        self.held_bytes = self.held_bytes.saturating_add(bytes);
        self.waiting.pop_front()
    }

    const fn has_room(&self, bytes: u32) -> bool {
        self.held_bytes == 0 || self.held_bytes.saturating_add(bytes) <= self.limit_bytes
    }

    /// So many bytes are free again.
    pub(super) const fn give_back(&mut self, bytes: u32) {
        self.held_bytes -= bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn id(slot: u16) -> CommandId {
        CommandId { slot, generation: 0 }
    }

    #[test]
    fn the_first_is_granted_however_large() {
        let mut memory = Memory::new(100);
        memory.ask(id(1), 1000);
        assert_eq!(memory.grant(), Some((id(1), 1000)));
    }

    #[test]
    fn a_small_one_does_not_overtake_a_large_one() {
        let mut memory = Memory::new(100);
        memory.ask(id(1), 60);
        memory.ask(id(2), 60);
        memory.ask(id(3), 10);
        assert_eq!(memory.grant(), Some((id(1), 60)));
        assert_eq!(memory.grant(), None);
        memory.give_back(60);
        assert_eq!(memory.grant(), Some((id(2), 60)));
        assert_eq!(memory.grant(), Some((id(3), 10)));
    }

    #[test]
    fn a_command_that_no_longer_waits_does_not_block_the_others() {
        let mut memory = Memory::new(100);
        memory.ask(id(1), 60);
        memory.ask(id(2), 60);
        memory.ask(id(3), 10);
        assert_eq!(memory.grant(), Some((id(1), 60)));
        memory.forget(id(2));
        assert_eq!(memory.grant(), Some((id(3), 10)));
        assert_eq!(memory.grant(), None);
    }
}
