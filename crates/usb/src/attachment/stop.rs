//! Interruption of an attachment that is being set up.
//!
//! A signal ends a wait, but it can arrive during another system call, such as a port reset, or
//! right before the wait. So the signal handler sets a flag, which is checked before each wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that interrupts identification; without one, only a signal during a wait does.
#[derive(Clone, Debug, Default)]
pub struct Stop(Option<Arc<AtomicBool>>);

impl Stop {
    /// Interrupts when this flag is set.
    pub const fn when(word: Arc<AtomicBool>) -> Self {
        Self(Some(word))
    }

    /// Returns whether the flag is set.
    pub fn is_wanted(&self) -> bool {
        self.0.as_ref().is_some_and(|word| word.load(Ordering::Relaxed))
    }
}
