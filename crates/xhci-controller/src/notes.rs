//! Notes of doorbells and TRBs for observers.
//!
//! The note of an event waits until the event is visible. Text is created, and memory read again,
//! only while notes are enabled. Invariant: notes are in order of time.

use super::memory::GuestMemory;
use super::ring::Cursor;
use super::slot::RingName;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use units::Instant;
use wire::xhci::{CommandTrb, Doorbell, EventTrb, TRB_BYTES, TransferTrb};

#[derive(Clone, Debug, Default)]
pub(super) struct Notes {
    is_taking: bool,
    lines: VecDeque<(Instant, String)>,
    /// Notes dropped for want of room.
    missed: u64,
}

/// Maximum pending notes. The observer takes all after each event, which makes a few dozen at most.
const LINES_MAX: usize = 1 << 16;

/// Maximum TRBs noted per TD.
const TRBS_MAX: usize = 64;

impl Notes {
    /// Enables or disables notes.
    pub(super) fn take(&mut self, is_taking: bool) {
        self.is_taking = is_taking;
        self.lines.clear();
    }

    /// Returns whether notes are enabled.
    pub(super) const fn is_taking(&self) -> bool {
        self.is_taking
    }

    /// Returns the next note until `now`; after the last, the number of dropped notes.
    pub(super) fn poll(&mut self, now: Instant) -> Option<(Instant, String)> {
        let line = self.lines.pop_front_if(|(at, _)| *at <= now);
        if line.is_some() || !self.lines.is_empty() {
            return line;
        }
        match core::mem::take(&mut self.missed) {
            0 => None,
            missed => Some((now, format!("{missed} notes dropped"))),
        }
    }

    /// Text is created only while notes are enabled.
    #[inline(always)]
    fn note(&mut self, at: Instant, note: impl FnOnce() -> String) {
        if self.is_taking {
            self.keep(at, note());
        }
    }

    /// Inserts in order of time, before events that are not visible yet.
    #[cold]
    fn keep(&mut self, at: Instant, line: String) {
        if self.missed > 0 || self.lines.len() == LINES_MAX {
            self.missed += 1;
            return;
        }
        let place = self.lines.partition_point(|(other, _)| *other <= at);
        self.lines.insert(place, (at, line));
    }

    /// Handles a doorbell.
    #[inline(always)]
    pub(super) fn doorbell(&mut self, now: Instant, slot: u32, doorbell: Doorbell) {
        self.note(now, || format!("doorbell of slot {slot}: {doorbell}"));
    }

    /// Notes a command TRB.
    pub(super) fn command(&mut self, now: Instant, at: u64, command: CommandTrb) {
        self.note(now, || format!("TRB at {at:#x}: {command}"));
    }

    /// Notes an event TRB.
    #[inline(always)]
    pub(super) fn event(&mut self, at: Instant, event: EventTrb) {
        self.note(at, || format!("event TRB: {event}"));
    }

    /// Notes the TRBs of a TD.
    pub(super) fn td(
        &mut self,
        now: Instant,
        memory: &impl GuestMemory,
        name: RingName,
        mut from: Cursor,
        to: Cursor,
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
    fn dropped_notes_are_counted_and_reported() {
        let mut notes = Notes { is_taking: true, ..Notes::default() };
        let now = Instant::from_ps(7);
        (0..65_536 + 3).for_each(|_| notes.doorbell(now, 1, Doorbell { target: None, stream: 0 }));
        let reported: alloc::vec::Vec<_> = core::iter::from_fn(|| notes.poll(now)).collect();
        assert_eq!(reported.len(), 65_537);
        assert_eq!(reported[65_536], (now, String::from("3 notes dropped")));
        notes.doorbell(now, 1, Doorbell { target: None, stream: 0 });
        assert_eq!(notes.poll(now).as_ref(), Some(&reported[0]), "there is room again");
        assert_eq!(notes.poll(now), None);
    }
}
