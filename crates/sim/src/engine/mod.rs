//! Virtual time: events in one order, and what is known about them.
//!
//! An [`Engine`] holds what is going to happen. [`Engine::next`] takes the earliest event and moves the time to it; of
//! two at the same time the one that was scheduled first comes first. What an event does is the world's business: it owns
//! the engine and its components side by side, so that an event is a plain value and no component holds another.
//!
//! Beside the order there are: a [`Digest`] over every event that happened, a [`Random`] source for each component,
//! [`OccupancyStats`] and [`StageTimes`] for statistics that add up exactly, a [`Processor`] for what is done one thing at a time, and a
//! [`Trace`] for the curious.
//!
//! Events are not taken back. A component that changes its mind ignores the event when it comes; an [`Alarm`] sees to it
//! that one deadline that moves does not fill the queue.
//!
//! Always true: time never runs back; the number of events that wait is bounded, and so is each line that a peer could make longer
//! without an end ([`CapacityExceeded`]); nothing depends on an address, a hash
//! order, a clock or a thread.

mod alarm;
mod digest;
mod full;
mod level;
mod processor;
mod queue;
mod random;
mod share;
mod trace;
mod wheel;

pub use alarm::Alarm;
pub use digest::Digest;
pub use full::CapacityExceeded;
pub use level::OccupancyStats;
pub use processor::{LINE_MAX, Processor};
pub use queue::{EVENTS_MAX, EventKey, QueueFull};
pub use random::Random;
pub use share::{LatencyStage, LatencyTracker, StageTimes};
pub use trace::{Trace, TraceEntry};

use queue::Queue;
use std::fmt;
use units::{Duration, Instant};

/// Something that happens in a world.
pub trait Event: Copy {
    /// What makes this event differ from others, in a word for the digest: a kind, a component, a number.
    fn mark(&self) -> u64;
}

/// What is going to happen, and when.
pub struct Engine<E> {
    now: Instant,
    /// That of the last event.
    turn: EventKey,
    queue: Queue<E>,
    digest: Digest,
    happened: u64,
    /// When something was first scheduled for a time that was over.
    scheduled_late: Option<Instant>,
    trace: Option<Box<dyn Trace>>,
}

impl<E: Event> Engine<E> {
    /// An engine at time zero, in which nothing is going to happen.
    pub fn new() -> Self {
        let (now, turn) = (Instant::ZERO, EventKey::new(Instant::ZERO, 0));
        Self {
            now,
            turn,
            queue: Queue::new(),
            digest: Digest::new(),
            happened: 0,
            scheduled_late: None,
            trace: None,
        }
    }

    /// The time.
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// Schedules an event. One that would lie in the past happens now, after all that is scheduled for now.
    ///
    /// # Errors
    /// If [`EVENTS_MAX`] events wait: the world makes more than it takes.
    pub fn at(&mut self, at: Instant, event: E) -> Result<(), QueueFull> {
        let turn = self.reserve(at);
        self.queue.push(turn, event)
    }

    /// Schedules an event that happens `span` from now.
    ///
    /// # Errors
    /// As [`Engine::at`].
    pub fn after(&mut self, span: Duration, event: E) -> Result<(), QueueFull> {
        self.at(self.now + span, event)
    }

    /// The next turn at a time, kept for an event of which nobody knows yet whether it is needed: then it happens where it
    /// would have happened had it been scheduled now.
    #[inline]
    pub fn reserve(&mut self, at: Instant) -> EventKey {
        if at < self.now {
            self.look_back();
        }
        self.queue.turn(at.max(self.now))
    }

    #[cold]
    fn look_back(&mut self) {
        self.scheduled_late.get_or_insert(self.now);
    }

    /// When something was first scheduled for a time that was over, by a component that is wrong about the time. It has happened at
    /// once, or will.
    pub const fn scheduled_late(&self) -> Option<Instant> {
        self.scheduled_late
    }

    /// Schedules an event for a turn that was kept. The turn must not be over.
    ///
    /// # Errors
    /// As [`Engine::at`].
    pub fn schedule_reserved(&mut self, turn: EventKey, event: E) -> Result<(), QueueFull> {
        debug_assert!(!self.has_passed(turn), "a turn that is over is nobody's");
        self.queue.push(turn, event)
    }

    /// Whether a turn is over: an event with it would have happened.
    pub fn has_passed(&self, turn: EventKey) -> bool {
        turn <= self.turn
    }

    /// The next event; the time is then that of the event. `None` if nothing is going to happen any more.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator would borrow the engine while events schedule others"
    )]
    #[inline(always)]
    pub fn next(&mut self) -> Option<E> {
        let (turn, event) = self.queue.pop()?;
        debug_assert!(turn.at() >= self.now, "time runs back");
        (self.turn, self.now) = (turn, turn.at());
        self.happened += 1;
        self.digest.mix(turn.at().as_ps());
        self.digest.mix(event.mark());
        Some(event)
    }

    /// Lets time pass up to `at`, as far as nothing happens before.
    pub fn pass(&mut self, at: Instant) {
        let next_at = self.next_at();
        self.now = self.now.max(next_at.map_or(at, |next| next.min(at)));
        if next_at.is_none_or(|next| next > self.now) {
            // All that was scheduled for now has happened.
            self.turn = self.queue.turn(self.now);
        }
    }

    /// When the next event happens.
    pub fn next_at(&self) -> Option<Instant> {
        self.queue.next_at()
    }

    /// Events that have happened.
    pub const fn happened(&self) -> u64 {
        self.happened
    }

    /// Events that wait.
    pub fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// The digest over all events so far, and over what [`Engine::mix`] added.
    pub const fn digest(&self) -> u64 {
        self.digest.value()
    }

    /// Adds a result to the digest, such as a checksum of what was read.
    pub const fn mix(&mut self, word: u64) {
        self.digest.mix(word);
    }

    /// Sends notes to `trace` from now on.
    pub fn trace_to(&mut self, trace: Box<dyn Trace>) {
        self.trace = Some(trace);
    }

    /// Takes the trace back, with all that it holds.
    pub fn take_trace(&mut self) -> Option<Box<dyn Trace>> {
        self.trace.take()
    }

    /// Whether anybody takes notes, so that there is a point in making them.
    pub const fn is_traced(&self) -> bool {
        self.trace.is_some()
    }

    /// Notes what `component` does. Without a trace this is a comparison with nothing, and no text is made.
    pub fn note(&mut self, component: &'static str, text: fmt::Arguments<'_>) {
        if let Some(trace) = &mut self.trace {
            trace.record(TraceEntry { at: self.now, component, text });
        }
    }

    /// The same of something that was at `at`, since which nothing else was noted.
    pub fn note_of(&mut self, at: Instant, component: &'static str, text: fmt::Arguments<'_>) {
        if let Some(trace) = &mut self.trace {
            trace.record(TraceEntry { at, component, text });
        }
    }
}

impl<E: Event> Default for Engine<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E> fmt::Debug for Engine<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("now", &self.now)
            .field("happened", &self.happened)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
