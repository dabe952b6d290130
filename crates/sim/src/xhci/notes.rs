//! Notes of doorbells and TRBs, for people who look on: what was rung, read and written, when it was.
//!
//! Nothing is made into text, and nothing read once more, unless somebody takes notes.

use super::memory::Memory;
use super::ring::Cursor;
use super::transfer::RingName;
use std::collections::VecDeque;
use wire::xhci::{CommandTrb, Doorbell, EventTrb, TRB_BYTES, TransferTrb};

#[derive(Clone, Debug, Default)]
pub(super) struct Notes {
    pub(super) is_taking: bool,
    lines: VecDeque<String>,
    /// Notes for which there was no room behind those.
    missed: u64,
}

/// Notes that wait to be taken. Who looks on takes all after each thing that happens, of which none makes more than some dozens.
const LINES_MAX: usize = 1 << 16;

/// TRBs of a TD that are told at most.
const TRBS_MAX: usize = 64;

impl Notes {
    /// The next note; behind the last for which there was room how many there would have been.
    pub(super) fn poll(&mut self) -> Option<String> {
        let line = self.lines.pop_front();
        line.or_else(|| match std::mem::take(&mut self.missed) {
            0 => None,
            missed => Some(format!("{missed} notes that nobody has taken")),
        })
    }

    fn keep(&mut self, line: String) {
        if self.missed == 0 && self.lines.len() < LINES_MAX {
            self.lines.push_back(line);
        } else {
            self.missed += 1;
        }
    }

    /// Nothing is made ready for a note that nobody takes.
    #[inline(always)]
    fn note(&mut self, note: impl FnOnce() -> String) {
        if self.is_taking {
            self.keep(note());
        }
    }

    /// A doorbell was rung.
    #[inline(always)]
    pub(super) fn doorbell(&mut self, slot: u32, doorbell: Doorbell) {
        self.note(|| format!("doorbell of slot {slot}: {doorbell}"));
    }

    /// A command was read.
    pub(super) fn command(&mut self, at: u64, command: CommandTrb) {
        self.note(|| format!("TRB at {at:#x}: {command}"));
    }

    /// An event is written, to be seen later.
    #[inline(always)]
    pub(super) fn event(&mut self, event: EventTrb) {
        self.note(|| format!("event TRB: {event}"));
    }

    /// A TD was read from here to there.
    pub(super) fn td(&mut self, memory: &Memory, name: RingName, (mut from, to): (Cursor, Cursor)) {
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
            self.keep(format!(
                "slot {slot} endpoint {}, stream {stream}: TRB at {:#x}: {trb}",
                endpoint.get(),
                from.at
            ));
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
        (0..65_536 + 3).for_each(|_| notes.doorbell(1, Doorbell { target: None, stream: 0 }));
        let told: Vec<String> = std::iter::from_fn(|| notes.poll()).collect();
        assert_eq!(told.len(), 65_537);
        assert_eq!(told[65_536], "3 notes that nobody has taken");
        notes.doorbell(1, Doorbell { target: None, stream: 0 });
        assert_eq!(notes.poll().as_deref(), Some(told[0].as_str()), "there is room again");
        assert_eq!(notes.poll(), None);
    }
}
