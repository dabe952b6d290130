//! A timing wheel: events of the near future by short time span.
//!
//! The wheel has a slot for each of the next [`SPANS`] spans with an unsorted list of events.
//! Insertion and removal cost the same however many events are pending. All lists share one arena
//! whose most recently freed entry is reused first.
//!
//! Invariant: a slot holds events of one span within reach of the wheel.

use super::queue::{Due, EventKey};
use units::Instant;

/// Spans within reach, somewhat longer than the latency of a simple drive.
const SPANS: usize = 1024;
/// Bits of the time within a span. 32 drives have one or two events per 65 ns; longer spans need
/// more sorting, shorter ones more searching.
const SPAN_BITS: u32 = 16;
/// The end of a list.
const NONE: u32 = u32::MAX;

/// A time span, numbered from zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Span(u64);

/// Events of the next spans.
pub(super) struct Wheel<E> {
    /// First span within reach.
    first: Span,
    /// Head of the list of each slot.
    heads: [u32; SPANS],
    /// Bitmap of non-empty slots.
    taken: [u64; SPANS / 64],
    waiting: Vec<Waiting<E>>,
    /// Head of the free list in `waiting`.
    free: u32,
    len: usize,
}

/// An event or a free entry, and the next in its list.
struct Waiting<E> {
    due: Due<E>,
    next: u32,
}

impl Span {
    /// Returns the span of a time.
    pub(super) const fn of(at: Instant) -> Self {
        Self(at.as_ps() >> SPAN_BITS)
    }

    /// Returns the end of the span, if it can be represented.
    pub(super) fn end(self) -> Option<Instant> {
        self.0.checked_add(1)?.checked_mul(1 << SPAN_BITS).map(Instant::from_ps)
    }

    const fn place(self) -> usize {
        self.0 as usize % SPANS
    }
}

impl<E: Copy> Wheel<E> {
    pub(super) const fn new() -> Self {
        let (heads, taken) = ([NONE; SPANS], [0; SPANS / 64]);
        Self { first: Span(0), heads, taken, waiting: Vec::new(), free: NONE, len: 0 }
    }

    /// Moves the wheel forward to `span`, leaving no event behind. An empty wheel may move
    /// backward.
    pub(super) fn turn_to(&mut self, span: Span) {
        debug_assert!(self.next().is_none_or(|next| next >= span), "an event is left behind");
        if span > self.first || self.len == 0 {
            self.first = span;
        }
    }

    /// Inserts an event. Returns false if its span is out of reach.
    #[inline(always)]
    pub(super) fn take(&mut self, turn: EventKey, event: E) -> bool {
        let span = Span::of(turn.at());
        // A span before the first wraps to out of reach.
        if span.0.wrapping_sub(self.first.0) >= SPANS as u64 {
            return false;
        }
        let place = span.place();
        let next = std::mem::replace(&mut self.heads[place], self.free);
        if let Some(waiting) = self.waiting.get_mut(self.free as usize) {
            self.free = waiting.next;
            *waiting = Waiting { due: Due { turn, event }, next };
        } else {
            self.heads[place] = self.waiting.len() as u32;
            self.waiting.push(Waiting { due: Due { turn, event }, next });
        }
        self.taken[place / 64] |= 1 << (place % 64);
        self.len += 1;
        true
    }

    /// Returns the first span with events.
    pub(super) fn next(&self) -> Option<Span> {
        let from = self.first.place();
        // The first word is visited twice, for the slots before the first within it.
        let mut mask = u64::MAX << (from % 64);
        for word in from / 64..=from / 64 + self.taken.len() {
            let taken = self.taken[word % self.taken.len()] & mask;
            if taken != 0 {
                let place = word * 64 + taken.trailing_zeros() as usize;
                return Some(Span(self.first.0 + (place - from) as u64));
            }
            mask = u64::MAX;
        }
        None
    }

    /// Removes an event of the first span.
    #[inline(always)]
    pub(super) fn give(&mut self) -> Option<Due<E>> {
        let place = self.first.place();
        let number = self.heads[place];
        let Waiting { due, next } = self.waiting.get_mut(number as usize)?;
        let due = *due;
        self.heads[place] = std::mem::replace(next, self.free);
        self.free = number;
        if self.heads[place] == NONE {
            self.taken[place / 64] &= !(1 << (place % 64));
        }
        self.len -= 1;
        Some(due)
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(span: u64) -> EventKey {
        EventKey::new(Instant::from_ps(span << SPAN_BITS), span)
    }

    fn all(wheel: &mut Wheel<()>) -> Vec<u64> {
        let mut spans = Vec::new();
        while let Some(span) = wheel.next() {
            wheel.turn_to(span);
            while wheel.give().is_some() {
                spans.push(span.0);
            }
        }
        spans
    }

    #[test]
    fn spans_come_in_their_order_wherever_the_wheel_stands() {
        for first in [0, 1, 63, 64, 1000, 1023, 1024, 5000] {
            let mut wheel = Wheel::new();
            wheel.turn_to(Span(first));
            for after in [1023, 70, 3, 3, 0, 64] {
                assert!(wheel.take(at(first + after), ()));
            }
            assert_eq!(wheel.len(), 6);
            assert_eq!(all(&mut wheel), [0, 3, 3, 64, 70, 1023].map(|after| first + after));
            assert_eq!((wheel.len(), wheel.next()), (0, None));
        }
    }

    #[test]
    fn a_wheel_reaches_so_far_and_no_farther() {
        let mut wheel = Wheel::new();
        wheel.turn_to(Span(10));
        assert!(!wheel.take(at(10 + 1024), ()));
        assert!(wheel.take(at(9 + 1024), ()));
    }

    #[test]
    fn places_are_used_again() {
        let mut wheel = Wheel::new();
        for span in 0..10_000 {
            assert!(wheel.take(at(span), ()) && wheel.take(at(span + 1), ()));
            wheel.turn_to(Span(span));
            while wheel.give().is_some() {}
        }
        assert_eq!((wheel.waiting.len(), wheel.len()), (3, 1));
    }
}
