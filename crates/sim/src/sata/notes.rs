//! Notes of frames on the wire, for observers.
//!
//! Text is created only while notes are enabled.

use std::collections::VecDeque;
use units::Instant;

/// Frames that were sent, while notes are enabled.
#[derive(Clone, Debug, Default)]
pub(super) struct Notes(Option<VecDeque<Note>>);

/// A frame, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// When the wire was taken for it.
    pub at: Instant,
    /// Sender and content.
    pub text: String,
}

impl Notes {
    /// Takes notes from now on, or no more.
    pub(super) fn take(&mut self, is_taking: bool) {
        self.0 = is_taking.then(VecDeque::new);
    }

    /// Returns whether notes are enabled.
    pub(super) const fn is_taking(&self) -> bool {
        self.0.is_some()
    }

    /// A frame is sent.
    pub(super) fn note(&mut self, at: Instant, text: String) {
        if let Some(notes) = &mut self.0 {
            notes.push_back(Note { at, text });
        }
    }

    /// Returns the next one of those that have begun by now.
    pub(super) fn poll(&mut self, now: Instant) -> Option<Note> {
        self.0.as_mut()?.pop_front_if(|note| note.at <= now)
    }
}
