//! Whether somebody wants to come to an end, for whom a disk is being set up.
//!
//! A signal ends a wait, but it may come while the kernel has something else to do for us, such as a port reset, or right
//! before the wait begins. So whoever catches it leaves a word, which is looked for before each wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A word that ends a survey; without one, only a signal that comes during a wait does.
#[derive(Clone, Debug, Default)]
pub struct Stop(Option<Arc<AtomicBool>>);

impl Stop {
    /// Ends when this is set.
    pub const fn when(word: Arc<AtomicBool>) -> Self {
        Self(Some(word))
    }

    /// Whether the end is wanted.
    pub fn is_wanted(&self) -> bool {
        self.0.as_ref().is_some_and(|word| word.load(Ordering::Relaxed))
    }
}
