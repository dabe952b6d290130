//! Events by time, and among those of one time by the order in which they were scheduled.
//!
//! What is sorted is one number for each event: its time, then its sequence number, then the place where the event itself
//! lies until its time has come. The sequence makes the order total, so it is the same however the numbers are kept. Most
//! events are scheduled for the next moment: what comes before all that was put into a heap is kept in a short line, and the
//! heap is not asked.
//!
//! Always true: what is in the line comes before what is in the heap; a place is used again when its
//! event has happened.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use units::Instant;

/// The most events that may wait at once. A world of 32 drives at depth 32 has some thousands.
pub const EVENTS_MAX: usize = 1 << PLACE_BITS;

/// [`EVENTS_MAX`] events wait: a world that makes more events than it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueFull;

/// Bits of a number that say where the event lies. Those above them say when it was scheduled: as many as count the events of
/// half a year at a million in a second.
const PLACE_BITS: u32 = 20;

/// Numbers of the line.
const LINE_MAX: usize = 32;

/// Events that wait.
pub(super) struct Queue<E> {
    /// The next is the last.
    line: Vec<Due>,
    heap: BinaryHeap<Reverse<Due>>,
    places: Vec<E>,
    /// Places whose event has happened.
    spare: Vec<u32>,
    sequence: u64,
}

/// A place in the order of all events: a time, and how many were scheduled before. Two are never the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Turn(u128);

/// A turn, and where its event lies, as one number, since one comparison is quicker than two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Due(u128);

impl<E: Copy> Queue<E> {
    pub(super) const fn new() -> Self {
        // Nothing has the turn of number 0, which was before the first.
        Self { line: Vec::new(), heap: BinaryHeap::new(), places: Vec::new(), spare: Vec::new(), sequence: 1 }
    }

    /// The next turn at a time.
    pub(super) const fn turn(&mut self, at: Instant) -> Turn {
        let turn = Turn::new(at, self.sequence);
        self.sequence += 1;
        turn
    }

    pub(super) fn push(&mut self, turn: Turn, event: E) -> Result<(), QueueFull> {
        let place = match self.spare.pop() {
            Some(place) => {
                self.places[place as usize] = event;
                place
            }
            None if self.places.len() >= EVENTS_MAX => return Err(QueueFull),
            None => {
                self.places.push(event);
                self.places.len() as u32 - 1
            }
        };
        let due = Due(turn.0 | u128::from(place));
        match self.heap.peek() {
            Some(Reverse(first)) if *first < due => self.heap.push(Reverse(due)),
            _ => self.line_up(due),
        }
        Ok(())
    }

    /// The next event and its turn. It lies where it is until the next one is scheduled.
    pub(super) fn pop(&mut self) -> Option<(Turn, &E)> {
        let next = self.line.pop().or_else(|| self.heap.pop().map(|Reverse(next)| next))?;
        self.spare.push(next.place());
        Some((next.turn(), &self.places[next.place() as usize]))
    }

    pub(super) fn next_at(&self) -> Option<Instant> {
        let next = self.line.last().or_else(|| self.heap.peek().map(|Reverse(next)| next));
        next.map(|next| next.turn().at())
    }

    pub(super) fn len(&self) -> usize {
        self.line.len() + self.heap.len()
    }

    /// Puts a number into the line. If that is too long then, its end goes into the heap.
    fn line_up(&mut self, due: Due) {
        let mut at = self.line.len();
        self.line.push(due);
        while at > 0 && self.line[at - 1] < due {
            self.line[at] = self.line[at - 1];
            at -= 1;
        }
        self.line[at] = due;
        if self.line.len() > LINE_MAX {
            self.heap.push(Reverse(self.line.remove(0)));
        }
    }
}

impl Turn {
    pub(super) const fn new(at: Instant, sequence: u64) -> Self {
        Self((at.as_ps() as u128) << u64::BITS | (sequence << PLACE_BITS) as u128)
    }

    /// Its time.
    pub const fn at(self) -> Instant {
        Instant::from_ps((self.0 >> u64::BITS) as u64)
    }
}

impl Due {
    const fn turn(self) -> Turn {
        Turn(self.0 & !(EVENTS_MAX as u128 - 1))
    }

    const fn place(self) -> u32 {
        self.0 as u32 & (EVENTS_MAX as u32 - 1)
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
                    prop_assert_eq!(queue.pop().map(|(turn, &event)| (turn.at().as_ps(), event)), next);
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
