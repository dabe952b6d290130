//! The event queue: ordered by time, then by scheduling order.
//!
//! The sequence number makes the order total, independent of the data structure. The next events
//! are in a short sorted line; with few events pending, as with one drive, all of them are. Beyond
//! the end of the line, events are unsorted in a [`Wheel`] of short time spans, one of which
//! becomes the next line; events beyond the wheel, and the surplus of a crowded span, are in a
//! heap. So the cost of an event does not grow with the number pending. Events are copied while
//! sorting and should be small.
//!
//! Invariants: the line is sorted, and empty only if nothing is pending; everything outside it
//! comes later.

use super::wheel::{Span, Wheel};
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::fmt;
use units::Instant;

/// Pending events at most. A machine with 32 drives at QD32 has several thousand.
pub const EVENTS_MAX: usize = 1 << 20;

/// The event queue is full: the machine schedules more events than it executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueFull;

/// Length up to which the line takes all events: insertion is cheaper than the wheel.
const LINE_MAX: usize = 16;

/// Length limit of a line: above it a heap sorts faster.
const LINE_HARD_MAX: usize = 128;

/// Pending events.
pub(super) struct Queue<E> {
    /// Sorted; the next event is last.
    line: Vec<Due<E>>,
    /// Events from this key on are outside the line; [`EventKey::NEVER`] while there are none.
    line_end: EventKey,
    wheel: Wheel<E>,
    /// Events beyond the wheel, and the surplus of a crowded span.
    heap: BinaryHeap<Reverse<Due<E>>>,
    sequence: u64,
}

/// The position of an event in the total order: time, then sequence number. Keys are unique.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventKey {
    at: Instant,
    sequence: u64,
}

/// An event with its key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Due<E> {
    pub(super) turn: EventKey,
    pub(super) event: E,
}

impl<E: Copy> Queue<E> {
    pub(super) const fn new() -> Self {
        // Sequence number 0 is before the first event.
        Self {
            line: Vec::new(),
            line_end: EventKey::NEVER,
            wheel: Wheel::new(),
            heap: BinaryHeap::new(),
            sequence: 1,
        }
    }

    /// Allocates the next key at a time.
    pub(super) const fn turn(&mut self, at: Instant) -> EventKey {
        let turn = EventKey::new(at, self.sequence);
        self.sequence += 1;
        turn
    }

    #[inline]
    pub(super) fn push(&mut self, turn: EventKey, event: E) -> Result<(), QueueFull> {
        if self.line.len() < LINE_MAX && turn < self.line_end {
            self.insert_sorted(turn, event);
            return Ok(());
        }
        self.push_beside(turn, event)
    }

    /// The slow path: the line is full or ends earlier.
    #[inline(never)]
    fn push_beside(&mut self, turn: EventKey, event: E) -> Result<(), QueueFull> {
        if self.len() >= EVENTS_MAX {
            return Err(QueueFull);
        }
        if self.line_end == EventKey::NEVER {
            self.end_line();
        }
        if turn >= self.line_end {
            self.push_later(turn, event);
        } else {
            self.insert_in_line(turn, event);
        }
        Ok(())
    }

    /// Ends the line with the span of its next event and moves later events out.
    #[cold]
    fn end_line(&mut self) {
        let Some(next) = self.line.last() else { return };
        self.turn_to(Span::of(next.turn.at));
        let later = self.line.partition_point(|due| due.turn >= self.line_end);
        for place in 0..later {
            let Due { turn, event } = self.line[place];
            self.push_later(turn, event);
        }
        self.line.drain(..later);
    }

    fn turn_to(&mut self, span: Span) {
        self.line_end = span.end().map_or(EventKey::NEVER, |end| EventKey::new(end, 0));
        self.wheel.turn_to(span);
    }

    /// Inserts an event that belongs into the line.
    #[inline]
    fn insert_in_line(&mut self, turn: EventKey, event: E) {
        if self.line.len() < LINE_HARD_MAX {
            self.insert_sorted(turn, event);
        } else {
            self.overflow(turn, event);
        }
    }

    /// The span has more events than the line holds: the line ends before the latest.
    #[cold]
    fn overflow(&mut self, turn: EventKey, event: E) {
        let mut latest = Due { turn, event };
        if self.line[0] > latest {
            latest = self.line.remove(0);
            self.insert_sorted(turn, event);
        }
        self.line_end = latest.turn;
        self.heap.push(Reverse(latest));
    }

    /// Stores an event that comes after the line.
    #[inline]
    fn push_later(&mut self, turn: EventKey, event: E) {
        if !self.wheel.take(turn, event) {
            self.heap.push(Reverse(Due { turn, event }));
        }
    }

    /// Pops the next event.
    #[inline(always)]
    pub(super) fn pop(&mut self) -> Option<(EventKey, E)> {
        let Due { turn, event } = self.line.pop()?;
        if self.line.is_empty() {
            self.refill();
        }
        Some((turn, event))
    }

    /// Refills the empty line from the next span with events.
    #[inline(never)]
    fn refill(&mut self) {
        let near = self.wheel.next();
        let far = self.heap.peek().map(|Reverse(next)| Span::of(next.turn.at));
        let Some(span) = near.into_iter().chain(far).min() else {
            self.line_end = EventKey::NEVER;
            return;
        };
        self.turn_to(span);
        if near == Some(span) {
            while let Some(Due { turn, event }) = self.wheel.give() {
                self.insert_in_line(turn, event);
            }
        }
        if far == Some(span) || self.line.len() == LINE_HARD_MAX {
            self.take_from_heap(span);
        }
    }

    /// Moves events of the span from the heap into the line, as long as they fit and are earlier
    /// than its last.
    #[cold]
    fn take_from_heap(&mut self, span: Span) {
        while let Some(&Reverse(next)) = self.heap.peek()
            && Span::of(next.turn.at) == span
        {
            if self.line.len() == LINE_HARD_MAX && self.line[0] < next {
                self.line_end = next.turn;
                return;
            }
            self.heap.pop();
            self.insert_in_line(next.turn, next.event);
        }
    }

    #[inline]
    pub(super) fn next_at(&self) -> Option<Instant> {
        self.line.last().map(|next| next.turn.at)
    }

    pub(super) fn len(&self) -> usize {
        self.line.len() + self.wheel.len() + self.heap.len()
    }

    /// Inserts an event into the line. Passed by value: building it in memory and copying it at
    /// once would stall the processor on store forwarding.
    #[inline]
    fn insert_sorted(&mut self, turn: EventKey, event: E) {
        let mut place = self.line.len();
        self.line.push(Due { turn, event });
        while place > 0 && self.line[place - 1].turn < turn {
            self.line[place] = self.line[place - 1];
            place -= 1;
            self.line[place] = Due { turn, event };
        }
    }
}

impl EventKey {
    /// After all events.
    const NEVER: Self = Self { at: Instant::from_ps(u64::MAX), sequence: u64::MAX };

    pub(super) const fn new(at: Instant, sequence: u64) -> Self {
        Self { at, sequence }
    }

    /// Returns the time.
    pub const fn at(self) -> Instant {
        self.at
    }

    /// Returns both parts as one number: two subtractions compare it, without a branch.
    #[inline]
    const fn as_number(self) -> u128 {
        (self.at.as_ps() as u128) << u64::BITS | self.sequence as u128
    }
}

impl PartialOrd for EventKey {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }

    #[inline]
    fn lt(&self, other: &Self) -> bool {
        self.as_number() < other.as_number()
    }

    #[inline]
    fn ge(&self, other: &Self) -> bool {
        self.as_number() >= other.as_number()
    }
}

impl Ord for EventKey {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_number().cmp(&other.as_number())
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
        write!(f, "event queue is full at {EVENTS_MAX} events: simulation model bug")
    }
}

impl std::error::Error for QueueFull {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn events_are_ordered_by_time_then_by_scheduling(
            // Some at one time, some in one span, some that a wheel reaches, some later, and the
            // last there are.
            unit in prop::sample::select(vec![1_u64, 1 << 13, 1 << 18, 1 << 24, 1 << 40, u64::MAX / 49]),
            steps in prop::collection::vec((0_u64..50, any::<bool>()), 1..300)
        ) {
            let few = steps.len() < 40;
            let (mut queue, mut model) = (Queue::new(), Vec::<(u64, usize)>::new());
            for (number, (at, takes)) in steps.into_iter().enumerate() {
                let at = at * unit;
                // Of many, more come than go.
                if takes && (few || number % 3 == 0) {
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
