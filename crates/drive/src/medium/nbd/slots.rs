//! The requests in flight, by number. A number is used again after its request has ended, under another generation.

use super::in_flight::{InFlight, Origin, ReplyState, SendStage, WireRequest};
use std::time::Instant;

/// Requests in flight.
#[derive(Debug)]
pub(super) struct Slots {
    entries: Vec<Option<InFlight>>,
    free: Vec<u16>,
    numbers: u64,
}

impl Slots {
    /// Room for `count` requests, below 65536.
    pub(super) fn new(count: usize) -> Self {
        let entries = (0..count).map(|_| None).collect();
        Self { entries, free: (0..count as u16).rev().collect(), numbers: 0 }
    }

    /// Slots that there are.
    pub(super) const fn count(&self) -> u16 {
        self.entries.len() as u16
    }

    /// The request in a slot.
    pub(super) fn get(&self, slot: u16) -> Option<&InFlight> {
        self.entries.get(usize::from(slot))?.as_ref()
    }

    /// The request in a slot, to change it.
    pub(super) fn get_mut(&mut self, slot: u16) -> Option<&mut InFlight> {
        self.entries.get_mut(usize::from(slot))?.as_mut()
    }

    /// All requests.
    pub(super) fn iter(&self) -> impl Iterator<Item = &InFlight> {
        self.entries.iter().flatten()
    }

    /// A number that was not given before.
    pub(super) const fn next_number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// Puts a request into a slot, where it is held. `None`: there is none left.
    pub(super) fn begin(&mut self, origin: Origin, request: WireRequest, deadline: Instant) -> Option<u16> {
        let slot = self.free.pop()?;
        let order = self.next_number();
        let entry = self.entries.get_mut(usize::from(slot))?;
        *entry = Some(InFlight {
            origin,
            order,
            generation: 0,
            deadline,
            request,
            stage: SendStage::Held,
            lane: 0,
            reply: ReplyState::default(),
            done: 0,
            change: None,
            flush: 0,
        });
        Some(slot)
    }

    /// Empties a slot.
    pub(super) fn end(&mut self, slot: u16) -> Option<InFlight> {
        let entry = self.entries.get_mut(usize::from(slot))?.take();
        if entry.is_some() {
            self.free.push(slot);
        }
        entry
    }
}
