//! Notes of those who make them by themselves, brought to who looks on, in order.

use super::XhciMachine;
use std::fmt;

impl XhciMachine {
    /// Whose it is, in notes of a world with several drives.
    pub(super) const fn tag(&self, number: usize) -> Tag {
        Tag { number, drives: self.drives.len(), devices: self.devices.len() }
    }

    /// Who makes notes by themselves do so from now on, or no more.
    pub(super) fn take_notes(&mut self, is_taking: bool) {
        self.system.controller.take_notes(is_taking);
        for enclosure in self.drives.iter_mut().filter_map(|attached| attached.drive.enclosure.as_mut()) {
            enclosure.take_notes(is_taking);
        }
    }

    /// Notes what was since the last event on the cables of bridges and in memory, before anything of this one is.
    #[inline(never)]
    pub(super) fn note_deferred(&mut self) {
        let now = self.engine.now();
        let mut kept = Vec::new();
        while let Some((at, text)) = self.system.controller.poll_note(now) {
            kept.push((at, "xhci", text));
        }
        for number in 0..self.drives.len() {
            while let Some(note) =
                self.drives[number].drive.enclosure.as_mut().and_then(|enclosure| enclosure.poll_note(now))
            {
                kept.push((note.at, "sata", format!("{}{}", self.tag(number), note.text)));
            }
        }
        kept.sort_by_key(|(at, ..)| *at);
        for (at, component, text) in kept {
            self.engine.note_of(at, component, format_args!("{text}"));
        }
    }

    /// Notes what the controller has read and heard now.
    #[inline(never)]
    pub(super) fn note_controller(&mut self) {
        while let Some((at, text)) = self.system.controller.poll_note(self.engine.now()) {
            self.engine.note_of(at, "xhci", format_args!("{text}"));
        }
    }
}

/// `drive 3: `, or nothing.
pub(super) struct Tag {
    number: usize,
    drives: usize,
    devices: usize,
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number {
            _ if self.devices == 1 => Ok(()),
            drive if drive < self.drives => write!(f, "drive {drive}: "),
            device => write!(f, "device {device}: "),
        }
    }
}
