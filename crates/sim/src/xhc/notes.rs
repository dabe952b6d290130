//! Notes of doorbells and TRBs, for observers: what was rung, read and written, and when.
//!
//! An event is known before it can be seen; its note waits until then. Nothing is made into text,
//! and nothing read once more, unless somebody takes notes. Invariants: notes come in the order of
//! their times.

use super::memory::Memory;
use super::ring::Cursor;
use super::transfer::RingName;
use std::collections::VecDeque;
use units::Instant;
use wire::xhci::{CommandTrb, Doorbell, EventTrb, TRB_BYTES, TransferTrb};

#[derive(Clone, Debug, Default)]
pub(super) struct Notes {
    is_taking: bool,
    lines: VecDeque<(Instant, String)>,
    /// Notes for which there was no room beside those.
    missed: u64,
}

/// Notes that wait to be taken. Who looks on takes all after each thing that happens, of which none
/// makes more than some dozens.
const LINES_MAX: usize = 1 << 16;

/// TRBs of a TD that are reported at most.
const TRBS_MAX: usize = 64;

impl Notes {
    /// They are taken from now on, or no more.
    pub(super) fn take(&mut self, is_taking: bool) {
        self.is_taking = is_taking;
        self.lines.clear();
    }

    /// Whether anybody takes them.
    pub(super) const fn is_taking(&self) -> bool {
        self.is_taking
    }

    /// The next one of what was by now; behind the last for which there was room how many there
    /// would have been.
    pub(super) fn poll(&mut self, now: Instant) -> Option<(Instant, String)> {
        let line = self.lines.pop_front_if(|(at, _)| *at <= now);
        if line.is_some() || !self.lines.is_empty() {
            return line;
        }
        match std::mem::take(&mut self.missed) {
            0 => None,
            missed => Some((now, format!("{missed} notes that nobody has taken"))),
        }
    }

    /// Nothing is made ready for a note that no one takes.
    #[inline(always)]
    fn note(&mut self, at: Instant, note: impl FnOnce() -> String) {
        if self.is_taking {
            self.keep(at, note());
        }
    }

    /// Behind what was before, and before the events that no one can see yet.
    #[cold]
    fn keep(&mut self, at: Instant, line: String) {
        if self.missed > 0 || self.lines.len() == LINES_MAX {
            self.missed += 1;
            return;
        }
        let place = self.lines.partition_point(|(other, _)| *other <= at);
        self.lines.insert(place, (at, line));
    }

    /// A doorbell was rung.
    #[inline(always)]
    pub(super) fn doorbell(&mut self, now: Instant, slot: u32, doorbell: Doorbell) {
        self.note(now, || format!("doorbell of slot {slot}: {doorbell}"));
    }

    /// A command was read.
    pub(super) fn command(&mut self, now: Instant, at: u64, command: CommandTrb) {
        self.note(now, || format!("TRB at {at:#x}: {command}"));
    }

    /// An event can be seen from a time on.
    #[inline(always)]
    pub(super) fn event(&mut self, at: Instant, event: EventTrb) {
        self.note(at, || format!("event TRB: {event}"));
    }

    /// A TD was read from here to there.
    pub(super) fn td(
        &mut self,
        now: Instant,
        memory: &Memory,
        name: RingName,
        (mut from, to): (Cursor, Cursor),
    ) {
        if !self.is_taking {
            return;
        }
        let RingName { slot, endpoint, stream } = name;
        for _ in 0..TRBS_MAX {
            if from == to {
                return;
            }
            let Ok(bytes) = memory.read::<TRB_BYTES>(from.at) else { return };
            let Ok((trb, _)) = TransferTrb::decode(&bytes) else { return };
            let (number, at) = (endpoint.get(), from.at);
            self.keep(now, format!("slot {slot} endpoint {number}, stream {stream}: TRB at {at:#x}: {trb}"));
            from = match trb {
                TransferTrb::Link { segment, toggle_cycle, .. } => {
                    Cursor { at: segment, cycle: from.cycle ^ toggle_cycle }
                }
                _ => Cursor { at: from.at + TRB_BYTES as u64, ..from },
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_for_which_there_is_no_room_are_counted_and_told() {
        let mut notes = Notes { is_taking: true, ..Notes::default() };
        let now = Instant::from_ps(7);
        (0..65_536 + 3).for_each(|_| notes.doorbell(now, 1, Doorbell { target: None, stream: 0 }));
        let reported: Vec<_> = std::iter::from_fn(|| notes.poll(now)).collect();
        assert_eq!(reported.len(), 65_537);
        assert_eq!(reported[65_536], (now, "3 notes that nobody has taken".to_owned()));
        notes.doorbell(now, 1, Doorbell { target: None, stream: 0 });
        assert_eq!(notes.poll(now).as_ref(), Some(&reported[0]), "there is room again");
        assert_eq!(notes.poll(now), None);
    }
}
