//! Event scheduling; of the requests of a medium only the next one is an event.
//!
//! Invariant: the earliest pending request of each medium is scheduled.

use super::{MachineEvent, XhciMachine};
use crate::engine::{CapacityExceeded, EventKey, QueueFull};
use crate::machine::StopReason;
use units::Instant;

/// The queue of events that are not visible yet.
const EVENTS: CapacityExceeded = CapacityExceeded {
    queue: "the event queue of the controller",
    capacity: xhci_controller::EVENTS_WAITING_MAX,
};

impl XhciMachine {
    #[inline(never)]
    pub(super) fn schedule_reserved(&mut self, turn: EventKey, event: MachineEvent) {
        self.schedule_at(turn, event);
    }

    /// Inlined, for the most frequent events.
    #[inline]
    pub(super) fn schedule_at(&mut self, turn: EventKey, event: MachineEvent) {
        if let Err(QueueFull) = self.engine.schedule_reserved(turn, event) {
            self.stopped = Some(StopReason::QueueFull);
        }
    }

    #[inline(never)]
    pub(super) fn at(&mut self, at: Instant, event: MachineEvent) {
        let turn = self.engine.reserve(at);
        self.schedule_reserved(turn, event);
    }

    /// Stops the machine if a queue of the controller is full.
    #[inline]
    pub(super) fn check_capacity(&mut self) {
        if self.system.controller.has_overrun() {
            self.stopped = Some(StopReason::CapacityExceeded(EVENTS));
        }
    }

    /// Schedules the completion of a medium request; only the earliest is an event.
    pub(super) fn schedule_store(&mut self, number: usize, done_at: Instant) {
        let turn = self.engine.reserve(done_at);
        let completions = &mut self.drives[number].completions;
        // They complete in order, unless one is slow.
        let place = completions.iter().rposition(|(other, _)| *other < turn).map_or(0, |before| before + 1);
        let is_first = place == 0;
        completions.insert(place, (turn, is_first));
        if is_first {
            self.schedule_reserved(turn, MachineEvent::Stored(number as u8));
        }
    }

    /// Schedules the next completion of a medium.
    pub(super) fn complete_store(&mut self, number: usize) {
        let completions = &mut self.drives[number].completions;
        completions.pop_front();
        if let Some((turn, is_event)) = completions.front_mut()
            && !std::mem::replace(is_event, true)
        {
            let turn = *turn;
            self.schedule_reserved(turn, MachineEvent::Stored(number as u8));
        }
    }
}
