//! Trace entries of components that buffer them, merged in time order.

use super::XhciMachine;
use std::fmt;

impl XhciMachine {
    /// Returns the drive prefix of trace entries.
    pub(super) const fn tag(&self, number: usize) -> Tag {
        Tag { number, drives: self.drives.len(), devices: self.devices.len() }
    }

    /// Enables or disables buffered tracing.
    pub(super) fn take_notes(&mut self, is_taking: bool) {
        self.system.controller.take_notes(is_taking);
        for enclosure in self.drives.iter_mut().filter_map(|attached| attached.drive.enclosure.as_mut()) {
            enclosure.take_notes(is_taking);
        }
    }

    /// Traces what happened in cables and memory since the last event, before this event traces
    /// anything.
    #[inline(never)]
    pub(super) fn note_deferred(&mut self) {
        let now = self.engine.now();
        let mut entries = Vec::new();
        while let Some((at, text)) = self.system.controller.poll_note(now) {
            entries.push((at, "xhci", text));
        }
        for number in 0..self.drives.len() {
            while let Some(note) =
                self.drives[number].drive.enclosure.as_mut().and_then(|enclosure| enclosure.poll_note(now))
            {
                entries.push((note.at, "sata", format!("{}{}", self.tag(number), note.text)));
            }
        }
        entries.sort_by_key(|(at, ..)| *at);
        for (at, component, text) in entries {
            self.engine.note_of(at, component, format_args!("{text}"));
        }
    }

    /// Traces what the controller has read and received now.
    #[inline(never)]
    pub(super) fn note_controller(&mut self) {
        while let Some((at, text)) = self.system.controller.poll_note(self.engine.now()) {
            self.engine.note_of(at, "xhci", format_args!("{text}"));
        }
    }
}

/// `drive 3: `, or empty.
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
