//! Bounded queues and the error that names the full one.
//!
//! Each limit is far beyond what a working model queues, so reaching it is a model bug: the machine
//! stops and reports the queue. Invariant: an item that does not fit is reported, never dropped.

use std::collections::VecDeque;
use std::fmt;

/// A named queue has reached its capacity; its producer outruns its consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapacityExceeded {
    /// Name of the queue.
    pub queue: &'static str,
    /// Its capacity.
    pub capacity: usize,
}

impl CapacityExceeded {
    /// Appends an item to the queue that this describes.
    ///
    /// # Errors
    /// If the queue is full.
    #[inline]
    pub fn push<T>(self, line: &mut VecDeque<T>, thing: T) -> Result<(), Self> {
        if line.len() >= self.capacity {
            return Err(self);
        }
        line.push_back(thing);
        Ok(())
    }
}

impl fmt::Display for CapacityExceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is full at {} entries: simulation model bug", self.queue, self.capacity)
    }
}

impl std::error::Error for CapacityExceeded {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_accepts_items_up_to_its_capacity() {
        let (two_entries, mut line) = (CapacityExceeded { queue: "a queue", capacity: 2 }, VecDeque::new());
        assert_eq!(
            [1, 2, 3].map(|thing| two_entries.push(&mut line, thing)),
            [Ok(()), Ok(()), Err(two_entries)]
        );
        assert_eq!(line, [1, 2]);
        assert_eq!(two_entries.to_string(), "a queue is full at 2 entries: simulation model bug");
    }
}
