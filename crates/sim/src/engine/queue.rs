//! Events by time, and among those of one time by the order in which they were scheduled.
//!
//! A binary heap of a time, a sequence number and the event. The sequence makes the order total, so it is the same
//! however the heap is built.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::fmt;
use units::Instant;

/// The most events that may wait at once. A world of 32 drives at depth 32 has some thousands.
pub const EVENTS_MAX: usize = 1 << 20;

/// [`EVENTS_MAX`] events wait: a world that makes more events than it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueFull;

/// Events that wait.
pub(super) struct Queue<E> {
    heap: BinaryHeap<Scheduled<E>>,
    sequence: u64,
}

/// An event and its place in the order.
struct Scheduled<E> {
    at: Instant,
    sequence: u64,
    event: E,
}

impl<E> Queue<E> {
    pub(super) const fn new() -> Self {
        Self { heap: BinaryHeap::new(), sequence: 0 }
    }

    pub(super) fn push(&mut self, at: Instant, event: E) -> Result<(), QueueFull> {
        if self.heap.len() >= EVENTS_MAX {
            return Err(QueueFull);
        }
        self.heap.push(Scheduled { at, sequence: self.sequence, event });
        self.sequence += 1;
        Ok(())
    }

    pub(super) fn pop(&mut self) -> Option<(Instant, E)> {
        self.heap.pop().map(|scheduled| (scheduled.at, scheduled.event))
    }

    pub(super) fn next_at(&self) -> Option<Instant> {
        self.heap.peek().map(|scheduled| scheduled.at)
    }

    pub(super) fn len(&self) -> usize {
        self.heap.len()
    }
}

impl<E> Scheduled<E> {
    /// Time and sequence as one number, since one comparison is quicker than two.
    const fn key(&self) -> u128 {
        (self.at.as_ps() as u128) << u64::BITS | self.sequence as u128
    }
}

impl<E> Ord for Scheduled<E> {
    /// The earliest is the greatest, since the heap gives that first.
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

impl<E> PartialOrd for Scheduled<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> PartialEq for Scheduled<E> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<E> Eq for Scheduled<E> {}

impl fmt::Display for QueueFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{EVENTS_MAX} events wait: something in this world makes more of them than it takes")
    }
}

impl std::error::Error for QueueFull {}
