//! Transfers under way, each under a small number, for whoever carries them out.
//!
//! A transport names transfers as it likes; a bus likes numbers that stay small. Always true: a number stands for one
//! transfer at a time and is used again when that is over, so there are no more entries than transfers were under way
//! at once.

use alloc::vec::Vec;
use bus::TransferId;
use core::hint::cold_path;

/// Transfers by number, each with what its carrier has to know of it.
#[derive(Clone, Debug)]
pub struct Flights<T> {
    entries: Vec<Option<(TransferId, T)>>,
    free: Vec<u32>,
}

impl<T> Flights<T> {
    /// None yet.
    pub const fn new() -> Self {
        Self { entries: Vec::new(), free: Vec::new() }
    }

    /// Notes a transfer; returns its number.
    pub fn insert(&mut self, id: TransferId, about: T) -> TransferId {
        let number = self.free.pop().unwrap_or_else(|| {
            cold_path();
            self.entries.push(None);
            self.entries.len() as u32 - 1
        });
        self.entries[number as usize] = Some((id, about));
        TransferId(number.into())
    }

    /// Forgets the transfer of that number, and returns it as it was noted.
    pub fn remove(&mut self, number: TransferId) -> Option<(TransferId, T)> {
        let entry = self.entries.get_mut(usize::try_from(number.0).ok()?)?.take()?;
        self.free.push(number.0 as u32);
        Some(entry)
    }

    /// The transfer of that number.
    pub fn get(&self, number: TransferId) -> Option<&(TransferId, T)> {
        self.entries.get(usize::try_from(number.0).ok()?)?.as_ref()
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, number: TransferId) -> Option<&mut (TransferId, T)> {
        self.entries.get_mut(usize::try_from(number.0).ok()?)?.as_mut()
    }

    /// What is noted, each by its number.
    pub fn iter(&self) -> impl Iterator<Item = (TransferId, &(TransferId, T))> {
        let entries = self.entries.iter().enumerate();
        entries.filter_map(|(number, entry)| Some((TransferId(number as u64), entry.as_ref()?)))
    }

    /// The number of a transfer. Looks at all of them: for cancels, which are rare.
    pub fn find(&self, id: TransferId) -> Option<TransferId> {
        let is_it = |entry: &Option<(TransferId, T)>| entry.as_ref().is_some_and(|(own, _)| *own == id);
        self.entries.iter().position(is_it).map(|number| TransferId(number as u64))
    }
}

impl<T> Default for Flights<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_used_again_once_its_transfer_is_over() {
        let mut flights = Flights::new();
        let [first, second] =
            [(700, 'a'), (900, 'b')].map(|(id, about)| flights.insert(TransferId(id), about));
        assert_eq!((first, second), (TransferId(0), TransferId(1)));
        assert_eq!(flights.find(TransferId(900)), Some(second));
        assert_eq!(flights.iter().map(|(number, _)| number).collect::<Vec<_>>(), [first, second]);
        assert_eq!(flights.remove(first), Some((TransferId(700), 'a')));
        assert_eq!((flights.remove(first), flights.find(TransferId(700))), (None, None));
        assert_eq!(flights.insert(TransferId(900), 'c'), first);
    }

    #[test]
    fn a_number_that_was_never_given_finds_nothing() {
        let mut flights = Flights::<()>::new();
        assert_eq!(flights.remove(TransferId(0)), None);
        assert_eq!(flights.remove(TransferId(u64::MAX)), None);
    }
}
