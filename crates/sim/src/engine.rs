//! Discrete-event simulation in virtual time.
//!
//! An [`Engine`] holds pending events. [`Engine::next`] pops the earliest one and advances the
//! clock to it; events at the same time come in the order in which they were scheduled. Events are
//! plain values: the machine owns the engine and its components side by side and executes them.
//!
//! The module also has: a [`Digest`] over all events, a [`Random`] source per component,
//! [`OccupancyStats`] and [`StageTimes`] that add up exactly, a [`Processor`] that serves jobs one
//! at a time, and a [`Trace`] interface.
//!
//! Events cannot be cancelled. A component ignores an event that no longer applies; an [`Alarm`]
//! keeps one moving deadline from filling the queue.
//!
//! Invariants: time is monotonic; the number of pending events is bounded, and so is each queue
//! that a peer could grow ([`CapacityExceeded`]); nothing depends on an address, a hash order, a
//! clock or a thread.

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

/// An event of a simulation.
pub trait Event: Copy {
    /// Returns a word for the digest that identifies the event: kind, component, number.
    fn mark(&self) -> u64;
}

/// The clock and the pending events.
pub struct Engine<E> {
    now: Instant,
    /// Key of the last event.
    turn: EventKey,
    queue: Queue<E>,
    digest: Digest,
    happened: u64,
    /// Time of the first attempt to schedule an event in the past.
    scheduled_late: Option<Instant>,
    trace: Option<Box<dyn Trace>>,
}

impl<E: Event> Engine<E> {
    /// Creates an engine at time zero without events.
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

    /// Returns the current time.
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// Schedules an event. An event in the past happens now, after everything scheduled for now.
    ///
    /// # Errors
    /// If [`EVENTS_MAX`] events are pending.
    pub fn at(&mut self, at: Instant, event: E) -> Result<(), QueueFull> {
        let turn = self.reserve(at);
        self.queue.push(turn, event)
    }

    /// Schedules an event `span` from now.
    ///
    /// # Errors
    /// As [`Engine::at`].
    pub fn after(&mut self, span: Duration, event: E) -> Result<(), QueueFull> {
        self.at(self.now + span, event)
    }

    /// Reserves the next key at a time, for an event that may turn out to be unnecessary; scheduled
    /// later with this key, it happens in the same order as if it had been scheduled now.
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

    /// Returns when an event was first scheduled in the past, which is a model bug. The event was
    /// moved to that time.
    pub const fn scheduled_late(&self) -> Option<Instant> {
        self.scheduled_late
    }

    /// Schedules an event with a reserved key, which must not have passed.
    ///
    /// # Errors
    /// As [`Engine::at`].
    pub fn schedule_reserved(&mut self, turn: EventKey, event: E) -> Result<(), QueueFull> {
        debug_assert!(!self.has_passed(turn), "the key has passed");
        self.queue.push(turn, event)
    }

    /// Returns whether a key has passed: its event would have happened.
    pub fn has_passed(&self, turn: EventKey) -> bool {
        turn <= self.turn
    }

    /// Pops the next event and advances the clock to it. `None` if no events are pending.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator would borrow the engine while events schedule others"
    )]
    #[inline(always)]
    pub fn next(&mut self) -> Option<E> {
        let (turn, event) = self.queue.pop()?;
        debug_assert!(turn.at() >= self.now, "time is monotonic");
        (self.turn, self.now) = (turn, turn.at());
        self.happened += 1;
        self.digest.mix(turn.at().as_ps());
        self.digest.mix(event.mark());
        Some(event)
    }

    /// Advances the clock to `at`, or to the next event if that is earlier.
    pub fn pass(&mut self, at: Instant) {
        let next_at = self.next_at();
        self.now = self.now.max(next_at.map_or(at, |next| next.min(at)));
        if next_at.is_none_or(|next| next > self.now) {
            // Everything scheduled for now has happened.
            self.turn = self.queue.turn(self.now);
        }
    }

    /// Returns the time of the next event.
    pub fn next_at(&self) -> Option<Instant> {
        self.queue.next_at()
    }

    /// Returns the number of events so far.
    pub const fn happened(&self) -> u64 {
        self.happened
    }

    /// Returns the number of pending events.
    pub fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Returns the digest over all events and over what [`Engine::mix`] added.
    pub const fn digest(&self) -> u64 {
        self.digest.value()
    }

    /// Adds a result to the digest, such as a checksum of what was read.
    pub const fn mix(&mut self, word: u64) {
        self.digest.mix(word);
    }

    /// Sends trace entries to `trace`.
    pub fn trace_to(&mut self, trace: Box<dyn Trace>) {
        self.trace = Some(trace);
    }

    /// Detaches the trace and returns it.
    pub fn take_trace(&mut self) -> Option<Box<dyn Trace>> {
        self.trace.take()
    }

    /// Returns whether a trace is attached.
    pub const fn is_traced(&self) -> bool {
        self.trace.is_some()
    }

    /// Records a trace entry now. Without a trace no text is formatted.
    pub fn note(&mut self, component: &'static str, text: fmt::Arguments<'_>) {
        if let Some(trace) = &mut self.trace {
            trace.record(TraceEntry { at: self.now, component, text });
        }
    }

    /// Records a trace entry of an earlier time, after which no entry was recorded.
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
