//! Transfers of a device in flight, numbered by small indices.
//!
//! A device chooses transfer ids freely; a port wants small numbers. Always true: an index stands
//! for one transfer at a time and is reused after its completion, so the table is no longer than
//! the most transfers that were in flight at once.

use bus::TransferId;
use core::hint::cold_path;

/// A table of transfers in flight, each with what the machine keeps of it.
#[derive(Clone, Debug)]
pub(super) struct InFlight<T> {
    entries: Vec<Option<(TransferId, T)>>,
    free: Vec<u32>,
}

impl<T> InFlight<T> {
    /// Creates an empty table.
    pub(super) const fn new() -> Self {
        Self { entries: Vec::new(), free: Vec::new() }
    }

    /// Adds a transfer and returns its index.
    pub(super) fn insert(&mut self, id: TransferId, about: T) -> TransferId {
        let number = self.free.pop().unwrap_or_else(|| {
            cold_path();
            self.entries.push(None);
            self.entries.len() as u32 - 1
        });
        self.entries[number as usize] = Some((id, about));
        TransferId(number.into())
    }

    /// Removes the transfer at an index and returns its id and data.
    pub(super) fn remove(&mut self, number: TransferId) -> Option<(TransferId, T)> {
        let entry = self.entries.get_mut(usize::try_from(number.0).ok()?)?.take()?;
        self.free.push(number.0 as u32);
        Some(entry)
    }

    /// Returns the transfer at an index.
    pub(super) fn get(&self, number: TransferId) -> Option<&(TransferId, T)> {
        self.entries.get(usize::try_from(number.0).ok()?)?.as_ref()
    }

    /// Returns the transfer at an index mutably.
    pub(super) fn get_mut(&mut self, number: TransferId) -> Option<&mut (TransferId, T)> {
        self.entries.get_mut(usize::try_from(number.0).ok()?)?.as_mut()
    }

    /// Iterates over the transfers with their indices.
    pub(super) fn iter(&self) -> impl Iterator<Item = (TransferId, &(TransferId, T))> {
        let entries = self.entries.iter().enumerate();
        entries.filter_map(|(number, entry)| Some((TransferId(number as u64), entry.as_ref()?)))
    }

    /// Returns the index of a transfer. A linear search: for cancels, which are rare.
    pub(super) fn find(&self, id: TransferId) -> Option<TransferId> {
        let is_it = |entry: &Option<(TransferId, T)>| entry.as_ref().is_some_and(|(own, _)| *own == id);
        self.entries.iter().position(is_it).map(|number| TransferId(number as u64))
    }
}

impl<T> Default for InFlight<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_is_reused_after_its_transfer_completes() {
        let mut in_flight = InFlight::new();
        let [first, second] =
            [(700, 'a'), (900, 'b')].map(|(id, about)| in_flight.insert(TransferId(id), about));
        assert_eq!((first, second), (TransferId(0), TransferId(1)));
        assert_eq!(in_flight.find(TransferId(900)), Some(second));
        assert_eq!(in_flight.iter().map(|(number, _)| number).collect::<Vec<_>>(), [first, second]);
        assert_eq!(in_flight.remove(first), Some((TransferId(700), 'a')));
        assert_eq!((in_flight.remove(first), in_flight.find(TransferId(700))), (None, None));
        assert_eq!(in_flight.insert(TransferId(900), 'c'), first);
    }

    #[test]
    fn an_unused_index_finds_nothing() {
        let mut in_flight = InFlight::<()>::new();
        assert_eq!(in_flight.remove(TransferId(0)), None);
        assert_eq!(in_flight.remove(TransferId(u64::MAX)), None);
    }
}
