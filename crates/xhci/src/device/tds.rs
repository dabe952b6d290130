//! The TDs of a ring, oldest first.
//!
//! A stream has mostly one, or none: that lies in the ring itself, so that whoever looks for it has it at hand. Always true: if there
//! is no first, there are no others.

use super::td::{Td, TdState};
use alloc::collections::VecDeque;

#[derive(Debug, Default)]
pub(crate) struct Tds {
    first: Option<Td>,
    others: VecDeque<Td>,
}

impl Tds {
    /// Puts one behind the others.
    #[inline]
    pub(crate) fn push(&mut self, td: Td) {
        match self.first {
            None => self.first = Some(td),
            Some(_) => self.others.push_back(td),
        }
    }

    /// The oldest.
    #[inline]
    pub(crate) const fn first(&self) -> Option<&Td> {
        self.first.as_ref()
    }

    /// Takes the oldest.
    #[inline]
    pub(crate) fn pop_first(&mut self) -> Option<Td> {
        let first = self.first.take();
        if !self.others.is_empty() {
            self.first = self.others.pop_front();
        }
        first
    }

    /// Takes the oldest, if it is over.
    #[inline]
    pub(crate) fn pop_over(&mut self) -> Option<Td> {
        if self.first.is_some_and(|td| td.state == TdState::Over) { self.pop_first() } else { None }
    }

    pub(crate) fn get(&self, at: usize) -> Option<&Td> {
        match at.checked_sub(1) {
            None => self.first.as_ref(),
            Some(at) => self.others.get(at),
        }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, at: usize) -> Option<&mut Td> {
        match at.checked_sub(1) {
            None => self.first.as_mut(),
            Some(at) => self.others.get_mut(at),
        }
    }

    /// Oldest first.
    #[inline]
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Td> {
        self.first.iter().chain(&self.others)
    }

    /// The same, to be changed.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Td> {
        self.first.iter_mut().chain(&mut self.others)
    }
}
