//! Events by time, and among those of one time by the order in which they were scheduled.
//!
//! The sequence number beside its time makes the order total, so it is the same however events are kept. Most are scheduled
//! for the next moment, and take their place near the end of a short line that is in order; what comes later than all of a
//! line that is full lies in a heap, and the next event is the sooner of both. Events move as they are ordered, so they are
//! to be small: what an event is about stays with whom it is about.
//!
//! Always true: the line is in order, and no longer than it may be.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::fmt;
use units::Instant;

/// The most events that may wait at once. A world of 32 drives at depth 32 has some thousands.
pub const EVENTS_MAX: usize = 1 << 20;

/// [`EVENTS_MAX`] events wait: a world that makes more events than it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueFull;

/// Events of the line: as many as move sooner than a heap is put in order.
const LINE_MAX: usize = 16;

/// Events that wait.
pub(super) struct Queue<E> {
    /// The next is the last.
    line: Vec<Due<E>>,
    heap: BinaryHeap<Reverse<Due<E>>>,
    sequence: u64,
}

/// A place in the order of all events: a time, and how many were scheduled before. Two are never the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Turn {
    at: Instant,
    sequence: u64,
}

/// An event and its turn, ordered by that.
#[derive(Clone, Copy, Debug)]
struct Due<E> {
    turn: Turn,
    event: E,
}

impl<E: Copy> Queue<E> {
    pub(super) const fn new() -> Self {
        // Nothing has the turn of number 0, which was before the first.
        Self { line: Vec::new(), heap: BinaryHeap::new(), sequence: 1 }
    }

    /// The next turn at a time.
    pub(super) const fn turn(&mut self, at: Instant) -> Turn {
        let turn = Turn::new(at, self.sequence);
        self.sequence += 1;
        turn
    }

    pub(super) fn push(&mut self, turn: Turn, event: E) -> Result<(), QueueFull> {
        let due = Due { turn, event };
        if self.line.len() < LINE_MAX {
            self.line_up(due);
            return Ok(());
        }
        self.push_beside(due)
    }

    /// The same where the line is full: the latest goes into the heap.
    #[inline(never)]
    fn push_beside(&mut self, due: Due<E>) -> Result<(), QueueFull> {
        if self.len() >= EVENTS_MAX {
            return Err(QueueFull);
        }
        if self.line[0] < due {
            self.heap.push(Reverse(due));
        } else {
            self.heap.push(Reverse(self.line.remove(0)));
            self.line_up(due);
        }
        Ok(())
    }

    /// The next event and its turn.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<(Turn, E)> {
        let is_in_line = match (self.line.last(), self.heap.peek()) {
            (Some(next), Some(Reverse(other))) => next < other,
            (next, _) => next.is_some(),
        };
        let next = if is_in_line { self.line.pop() } else { self.pop_beside() }?;
        Some((next.turn, next.event))
    }

    #[inline(never)]
    fn pop_beside(&mut self) -> Option<Due<E>> {
        self.heap.pop().map(|Reverse(next)| next)
    }

    pub(super) fn next_at(&self) -> Option<Instant> {
        let (next, other) = (self.line.last(), self.heap.peek().map(|Reverse(next)| next));
        next.into_iter().chain(other).map(|next| next.turn.at()).min()
    }

    pub(super) fn len(&self) -> usize {
        self.line.len() + self.heap.len()
    }

    /// Puts an event into the line.
    fn line_up(&mut self, due: Due<E>) {
        let mut at = self.line.len();
        self.line.push(due);
        while at > 0 && self.line[at - 1].turn < due.turn {
            self.line[at] = self.line[at - 1];
            at -= 1;
        }
        self.line[at] = due;
    }
}

impl Turn {
    pub(super) const fn new(at: Instant, sequence: u64) -> Self {
        Self { at, sequence }
    }

    /// Its time.
    pub const fn at(self) -> Instant {
        self.at
    }
}

impl<E> PartialEq for Due<E> {
    fn eq(&self, other: &Self) -> bool {
        self.turn == other.turn
    }
}

impl<E> Eq for Due<E> {}

impl<E> PartialOrd for Due<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Due<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.turn.cmp(&other.turn)
    }
}

impl fmt::Display for QueueFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{EVENTS_MAX} events wait: something in this world makes more of them than it takes")
    }
}

impl std::error::Error for QueueFull {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn events_come_by_time_and_then_as_they_were_scheduled(
            steps in prop::collection::vec((0_u64..50, any::<bool>()), 1..300)
        ) {
            let (mut queue, mut model) = (Queue::new(), Vec::<(u64, usize)>::new());
            for (number, (at, takes)) in steps.into_iter().enumerate() {
                if takes {
                    let next = model.iter().min().copied();
                    model.retain(|waiting| Some(*waiting) != next);
                    prop_assert_eq!(queue.next_at().map(Instant::as_ps), next.map(|(at, _)| at));
                    prop_assert_eq!(queue.pop().map(|(turn, event)| (turn.at().as_ps(), event)), next);
                } else {
                    let turn = queue.turn(Instant::from_ps(at));
                    queue.push(turn, number).unwrap();
                    model.push((at, number));
                }
                prop_assert_eq!(queue.len(), model.len());
            }
        }
    }
}
