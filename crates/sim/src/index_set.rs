//! A set of indexes below 64 in one word, for finding pending items without scanning them all.

/// A set of indexes below 64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct IndexSet64(u64);

/// Number of possible indexes.
pub(crate) const INDEXES_MAX: usize = u64::BITS as usize;

impl IndexSet64 {
    /// The empty set.
    pub(crate) const NONE: Self = Self(0);

    /// All indexes below `number`.
    pub(crate) const fn below(number: usize) -> Self {
        debug_assert!(number <= INDEXES_MAX, "there are 64 numbers");
        Self(if number >= INDEXES_MAX { u64::MAX } else { (1 << number) - 1 })
    }

    pub(crate) const fn is_none(self) -> bool {
        self.0 == 0
    }

    pub(crate) const fn add(&mut self, number: usize) {
        debug_assert!(number < INDEXES_MAX, "there are 64 numbers");
        self.0 |= 1 << (number % INDEXES_MAX);
    }

    pub(crate) const fn remove(&mut self, number: usize) {
        self.0 &= !(1 << (number % INDEXES_MAX));
    }

    pub(crate) const fn has(self, number: usize) -> bool {
        self.0 & (1 << (number % INDEXES_MAX)) != 0
    }

    /// The union of both sets.
    pub(crate) const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the lowest index.
    pub(crate) const fn first(self) -> Option<usize> {
        if self.is_none() { None } else { Some(self.0.trailing_zeros() as usize) }
    }

    /// Returns the next index after `number`, wrapping around.
    pub(crate) const fn after(self, number: usize) -> Option<usize> {
        let turn = (number as u32 + 1) % u64::BITS;
        let turned = self.0.rotate_right(turn);
        if turned == 0 {
            return None;
        }
        Some((turned.trailing_zeros() + turn) as usize % INDEXES_MAX)
    }

    /// Empties the set and returns what it held.
    pub(crate) const fn drain(&mut self) -> Self {
        std::mem::replace(self, Self::NONE)
    }
}

impl Iterator for IndexSet64 {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let first = self.first()?;
        self.remove(first);
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_go_round() {
        let mut few = IndexSet64::NONE;
        assert_eq!(few.after(63), None);
        [3, 0, 63].into_iter().for_each(|number| few.add(number));
        assert_eq!([0, 3, 62, 63].map(|number| few.after(number)), [Some(3), Some(63), Some(63), Some(0)]);
        assert_eq!([0, 1, 64].map(|number| IndexSet64::below(number).count()), [0, 1, 64]);
        few.remove(3);
        assert_eq!(few.drain().collect::<Vec<_>>(), [0, 63]);
        assert!(few.is_none());
    }
}
