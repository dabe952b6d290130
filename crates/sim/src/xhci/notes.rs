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
}

/// TRBs of a TD that are told at most.
const TRBS_MAX: usize = 64;

impl Notes {
    pub(super) fn poll(&mut self) -> Option<String> {
        self.lines.pop_front()
    }

    /// Nothing is made ready for a note that nobody takes.
    #[inline(always)]
    fn note(&mut self, note: impl FnOnce() -> String) {
        if self.is_taking {
            self.lines.push_back(note());
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
            self.lines.push_back(format!(
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
