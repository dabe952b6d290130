//! Posted events: the event ring, its interrupter, and notes for observers.

use super::event::{EventRing, Interrupter};
use super::notes::Notes;
use units::Instant;
use wire::xhci::EventTrb;

/// Event ring and interrupter.
#[derive(Clone, Debug)]
pub(super) struct Events {
    pub(super) ring: EventRing,
    pub(super) interrupter: Interrupter,
    /// Number of events posted.
    pub(super) posted: u64,
    /// Notes for observers.
    pub(super) notes: Notes,
}

impl Events {
    pub(super) fn new() -> Self {
        let notes = Notes::default();
        Self { ring: EventRing::new(), interrupter: Interrupter::new(), posted: 0, notes }
    }

    /// Posts an event that is visible from `at` on.
    pub(super) fn post(&mut self, at: Instant, event: EventTrb) {
        self.posted += 1;
        let at = self.ring.push(at, event);
        self.notes.event(at, event);
        if let Some(at) = self.ring.next_at() {
            self.interrupter.want(at);
        }
    }

    /// Wants an interrupt when the next event is visible, at once if the driver has left some; without events, none.
    pub(super) fn want_interrupt(&mut self, now: Instant) {
        if self.ring.has_untaken() {
            self.interrupter.want(now);
        } else if let Some(at) = self.ring.next_at() {
            self.interrupter.want(at);
        } else {
            self.interrupter.want_nothing();
        }
    }

    pub(super) fn reset(&mut self) {
        self.ring.reset();
        (self.interrupter, self.posted) = (Interrupter::new(), 0);
    }
}
