//! A ring of log entries (ACS-4 clauses 9.5 and 9.18, ATA8-ACS annex A): once it is full, a new one takes the place of the oldest.
//!
//! Always true: the place of the newest is 0, where there is none, or one of 1 to the number of places.

use crate::DecodeError;

/// `N` places, and which of them is the newest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ring<E, const N: usize> {
    /// Counts from 1; 0 if nothing was ever recorded.
    newest: u16,
    entries: [E; N],
}

impl<E: Copy, const N: usize> Ring<E, N> {
    /// Nothing was ever recorded.
    pub(super) const fn empty(unused: E) -> Self {
        Self { newest: 0, entries: [unused; N] }
    }

    /// A ring as it lay on the wire. `field` is what the index is called if there is no such place.
    pub(super) fn new(newest: u16, entries: [E; N], field: &'static str) -> Result<Self, DecodeError> {
        if usize::from(newest) > N {
            return Err(DecodeError::Invalid { field, value: newest.into() });
        }
        Ok(Self { newest, entries })
    }

    /// The place of the newest, counted from 1; 0 if nothing was ever recorded.
    pub(super) const fn newest(&self) -> u16 {
        self.newest
    }

    /// The places in their order.
    pub(super) const fn entries(&self) -> &[E; N] {
        &self.entries
    }

    /// All places, the newest first; those behind the oldest entry are unused.
    pub(super) fn newest_first(&self) -> impl Iterator<Item = &E> {
        let (newer, older) = self.entries.split_at_checked(usize::from(self.newest)).unwrap_or_default();
        newer.iter().rev().chain(older.iter().rev())
    }

    /// Adds an entry, over the oldest.
    pub(super) fn record(&mut self, entry: E) {
        let place = usize::from(self.newest) % N;
        self.newest = place as u16 + 1;
        if let Some(place) = self.entries.get_mut(place) {
            *place = entry;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_entry_takes_the_place_of_the_oldest() {
        let mut ring = Ring::<u8, 3>::empty(0);
        for entry in 1..=4 {
            ring.record(entry);
        }
        assert_eq!((ring.newest(), ring.entries()), (1, &[4, 2, 3]));
        assert!(ring.newest_first().eq(&[4, 3, 2]));
    }

    #[test]
    fn unused_places_come_last() {
        let mut ring = Ring::<u8, 3>::empty(0);
        ring.record(1);
        assert!(ring.newest_first().eq(&[1, 0, 0]));
    }

    #[test]
    fn an_index_without_a_place_is_invalid() {
        let error = DecodeError::Invalid { field: "index", value: 4 };
        assert_eq!(Ring::<u8, 3>::new(4, [0; 3], "index"), Err(error));
        assert!(Ring::<u8, 3>::new(3, [0; 3], "index").is_ok());
    }
}
