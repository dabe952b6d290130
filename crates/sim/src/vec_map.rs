//! A sorted vector as a map, for small maps with frequent inserts and removals.
//!
//! Moving the entries of one command is cheaper than walking a tree. Invariant: keys are unique and
//! ascending.

/// A map backed by a sorted vector.
#[derive(Clone, Debug)]
pub(crate) struct VecMap<K, V>(Vec<(K, V)>);

impl<K: Copy + Ord, V> VecMap<K, V> {
    /// Creates an empty map.
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn has(&self, key: K) -> bool {
        self.find(key).is_ok()
    }

    pub(crate) fn get(&self, key: K) -> Option<&V> {
        self.find(key).ok().map(|place| &self.0[place].1)
    }

    pub(crate) fn get_mut(&mut self, key: K) -> Option<&mut V> {
        self.find(key).ok().map(|place| &mut self.0[place].1)
    }

    /// Returns the value of `key`, inserting the default if it is absent.
    pub(crate) fn get_or_default(&mut self, key: K) -> &mut V
    where
        V: Default,
    {
        let place = self.find(key).unwrap_or_else(|place| {
            self.0.insert(place, (key, V::default()));
            place
        });
        &mut self.0[place].1
    }

    /// Inserts a value, replacing the one that is there.
    pub(crate) fn insert(&mut self, key: K, value: V) {
        match self.find(key) {
            Ok(place) => self.0[place].1 = value,
            Err(place) => self.0.insert(place, (key, value)),
        }
    }

    pub(crate) fn remove(&mut self, key: K) -> Option<V> {
        self.find(key).ok().map(|place| self.0.remove(place).1)
    }

    /// Retains the entries for which the predicate holds.
    pub(crate) fn retain(&mut self, mut is_kept: impl FnMut(K, &V) -> bool) {
        self.0.retain(|(key, value)| is_kept(*key, value));
    }

    /// Iterates in key order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (K, &V)> {
        self.0.iter().map(|(key, value)| (*key, value))
    }

    /// Returns the position of a key, or where to insert it. The last key is checked first, since
    /// most inserts append.
    fn find(&self, key: K) -> Result<usize, usize> {
        match self.0.last() {
            Some((last, _)) if *last < key => Err(self.0.len()),
            _ => self.0.binary_search_by(|(other, _)| other.cmp(&key)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn it_is_a_map_in_order(steps in prop::collection::vec((0_u8..12, 0_u8..5), 0..80)) {
            let (mut sorted, mut map) = (VecMap::new(), BTreeMap::new());
            for (number, (key, step)) in steps.into_iter().enumerate() {
                match step {
                    0 | 1 => {
                        sorted.insert(key, number);
                        map.insert(key, number);
                    }
                    2 => prop_assert_eq!(sorted.remove(key), map.remove(&key)),
                    3 => {
                        *sorted.get_or_default(key) += 1;
                        *map.entry(key).or_default() += 1;
                    }
                    _ => {
                        sorted.retain(|other, _| other % 3 != key % 3);
                        map.retain(|other, _| other % 3 != key % 3);
                    }
                }
                prop_assert_eq!(sorted.get(key), map.get(&key));
                prop_assert_eq!(sorted.get_mut(key), map.get_mut(&key));
                prop_assert_eq!((sorted.has(key), sorted.is_empty()), (map.contains_key(&key), map.is_empty()));
                prop_assert!(sorted.iter().eq(map.iter().map(|(key, value)| (*key, value))));
            }
        }
    }
}
