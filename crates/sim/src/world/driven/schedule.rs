//! When things happen: events are scheduled, those of media one at a time.
//!
//! Always true: of the requests that the medium of a drive has, the first that will be done is an event.

use super::{Driven, Happens};
use crate::engine::{QueueFull, Turn};
use crate::world::Stopped;
use units::Instant;

impl Driven {
    #[inline(never)]
    pub(super) fn at_turn(&mut self, turn: Turn, event: Happens) {
        self.schedule_at(turn, event);
    }

    /// The same as part of its caller, which is most of all events.
    #[inline(always)]
    pub(super) fn schedule_at(&mut self, turn: Turn, event: Happens) {
        if let Err(QueueFull) = self.engine.at_turn(turn, event) {
            self.stopped = Some(Stopped::QueueFull);
        }
    }

    #[inline(never)]
    pub(super) fn at(&mut self, at: Instant, event: Happens) {
        let turn = self.engine.turn(at);
        self.at_turn(turn, event);
    }

    /// A world whose controller had no room for something stops.
    #[inline]
    pub(super) fn look_at_lines(&mut self) {
        if let Some(full) = self.machine.controller.overrun() {
            self.stopped = Some(Stopped::LineFull(full));
        }
    }

    /// The medium of a drive will have done a request. Of the many that a drive may have only the first is an event.
    pub(super) fn store_at(&mut self, number: usize, done_at: Instant) {
        let turn = self.engine.turn(done_at);
        let stores = &mut self.seats[number].stores;
        // They are done as they came, unless one is slow.
        let place = stores.iter().rposition(|(other, _)| *other < turn).map_or(0, |before| before + 1);
        let is_first = place == 0;
        stores.insert(place, (turn, is_first));
        if is_first {
            self.at_turn(turn, Happens::Stored(number as u8));
        }
    }

    /// The medium of a drive has done the request that was an event: the next one is.
    pub(super) fn has_stored(&mut self, number: usize) {
        let stores = &mut self.seats[number].stores;
        stores.pop_front();
        if let Some((turn, is_event)) = stores.front_mut()
            && !std::mem::replace(is_event, true)
        {
            let turn = *turn;
            self.at_turn(turn, Happens::Stored(number as u8));
        }
    }
}
