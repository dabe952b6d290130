//! Events by time, and among those of one time by the order in which they were scheduled.
//!
//! The sequence number beside its time makes the order total, so it is the same however events are kept. The next ones are in a
//! line that is in order; where few wait, which is where one drive is at work, they all are. The line of many ends at a time:
//! what comes later lies, in no order, in a [`Wheel`] of short spans, of which one at a time makes the line, and what comes
//! later than the wheel reaches lies in a heap, and so does what one span has too much of. So an event costs the same however
//! many others wait. Events move as they are ordered, so they are to be small: what an event is about stays with whom it is
//! about.
//!
//! Always true: the line is in order, and empty only if nothing waits; all that waits beside it comes later.

use super::wheel::{Span, Wheel};
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::fmt;
use units::Instant;

/// The most events that may wait at once. A world of 32 drives at depth 32 has some thousands.
pub const EVENTS_MAX: usize = 1 << 20;

/// [`EVENTS_MAX`] events wait: a world that makes more events than it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueFull;

/// Events of a line that has no end: as many as move sooner than a wheel turns.
const LINE_MAX: usize = 16;

/// Events of any line: where more happens in a span, a heap is sooner put in order.
const LINE_HARD_MAX: usize = 128;

/// Events that wait.
pub(super) struct Queue<E> {
    /// The next is the last.
    line: Vec<Due<E>>,
    /// What comes from here on lies beside the line; [`EventKey::NEVER`] while nothing does.
    line_end: EventKey,
    wheel: Wheel<E>,
    /// What comes later than the wheel reaches, and what a span has too much of.
    heap: BinaryHeap<Reverse<Due<E>>>,
    sequence: u64,
}

/// A place in the order of all events: a time, and how many were scheduled before. Two are never the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventKey {
    at: Instant,
    sequence: u64,
}

/// An event and its turn, ordered by that.
#[derive(Clone, Copy, Debug)]
pub(super) struct Due<E> {
    pub(super) turn: EventKey,
    pub(super) event: E,
}

impl<E: Copy> Queue<E> {
    pub(super) const fn new() -> Self {
        // Nothing has the turn of number 0, which was before the first.
        Self {
            line: Vec::new(),
            line_end: EventKey::NEVER,
            wheel: Wheel::new(),
            heap: BinaryHeap::new(),
            sequence: 1,
        }
    }

    /// The next turn at a time.
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

    /// The same where the line is full, or ends before.
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

    /// The line ends with the span of its next event: what comes later lies beside it from now on.
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

    /// An event that comes before the end of the line has a place in it.
    #[inline(always)]
    fn insert_in_line(&mut self, turn: EventKey, event: E) {
        if self.line.len() < LINE_HARD_MAX {
            self.insert_sorted(turn, event);
        } else {
            self.overflow(turn, event);
        }
    }

    /// More happens within a span than a line has room for: it ends before the latest.
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

    /// Puts by what comes after the end of the line.
    #[inline(always)]
    fn push_later(&mut self, turn: EventKey, event: E) {
        if !self.wheel.take(turn, event) {
            self.heap.push(Reverse(Due { turn, event }));
        }
    }

    /// The next event and its turn.
    #[inline(always)]
    pub(super) fn pop(&mut self) -> Option<(EventKey, E)> {
        let Due { turn, event } = self.line.pop()?;
        if self.line.is_empty() {
            self.refill();
        }
        Some((turn, event))
    }

    /// The line is empty: the events of the next span of which there are any make the next.
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

    /// Those in the heap that are of the line's span come into the line, as far as it has room for them and they are sooner than
    /// what is there.
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

    /// Puts an event into the line. Nothing is handed an event by reference on the way there: it would be put together in memory word
    /// by word, and be copied from there at once, for which a processor waits.
    #[inline(always)]
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
    /// After all others.
    const NEVER: Self = Self { at: Instant::from_ps(u64::MAX), sequence: u64::MAX };

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
            // Some at one time, some in one span, some that a wheel reaches, some later, and the last there are.
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
