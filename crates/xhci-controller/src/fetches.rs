//! Scheduled fetches of rings, in order of time.

use super::slot::{EndpointName, RingName};
use alloc::collections::VecDeque;
use units::Instant;

/// Maximum scheduled fetches; further doorbells are ignored. Each ring has one or two.
const FETCHES_MAX: usize = 1 << 16;

/// A scheduled fetch of a ring.
#[derive(Clone, Copy, Debug)]
struct Fetch {
    at: Instant,
    to: RingName,
}

/// Scheduled fetches.
#[derive(Clone, Debug, Default)]
pub(super) struct Fetches(VecDeque<Fetch>);

impl Fetches {
    /// Schedules a fetch of a ring, after earlier ones.
    pub(super) fn schedule(&mut self, at: Instant, to: RingName) {
        let at = self.0.back().map_or(at, |last| at.max(last.at));
        self.0.push_back(Fetch { at, to });
    }

    /// Returns whether no more can be scheduled by doorbells.
    pub(super) fn is_full(&self) -> bool {
        self.0.len() >= FETCHES_MAX
    }

    /// Returns whether one of this ring is scheduled.
    pub(super) fn has(&self, to: RingName) -> bool {
        self.0.iter().any(|fetch| fetch.to == to)
    }

    /// Returns when the next is due.
    pub(super) fn due(&self) -> Option<Instant> {
        self.0.front().map(|fetch| fetch.at)
    }

    /// Takes the ring of the next that is due.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<RingName> {
        self.0.pop_front_if(|fetch| fetch.at <= now).map(|fetch| fetch.to)
    }

    /// Drops those of an endpoint.
    pub(super) fn drop_endpoint(&mut self, name: EndpointName) {
        self.0.retain(|fetch| fetch.to.endpoint_name() != name);
    }

    /// Drops those of a slot.
    pub(super) fn drop_slot(&mut self, slot: u8) {
        self.0.retain(|fetch| fetch.to.slot != slot);
    }

    /// Drops all.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Drops all but the first so many.
    #[cfg(test)]
    pub(super) fn truncate(&mut self, count: usize) {
        self.0.truncate(count);
    }
}
