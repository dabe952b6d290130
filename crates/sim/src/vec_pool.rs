//! A pool of empty vectors that keep their allocation.

/// Empty vectors with their allocations.
#[derive(Clone, Debug)]
pub(crate) struct VecPool<T>(Vec<Vec<T>>);

/// Vectors that the pool keeps at most.
const KEPT_MOST: usize = 64;

impl<T> VecPool<T> {
    /// Creates an empty pool.
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Takes an empty vector, with an allocation if the pool has one.
    pub(crate) fn take(&mut self) -> Vec<T> {
        self.0.pop().unwrap_or_default()
    }

    /// Returns a vector to the pool. One without an allocation is dropped.
    pub(crate) fn give(&mut self, mut list: Vec<T>) {
        list.clear();
        if list.capacity() > 0 && self.0.len() < KEPT_MOST {
            self.0.push(list);
        }
    }
}

impl<T> Default for VecPool<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_stays_and_what_was_in_it_does_not() {
        let mut pool = VecPool::default();
        let mut list = pool.take();
        list.extend(0..100);
        pool.give(list);
        let again = pool.take();
        assert!(again.is_empty() && again.capacity() >= 100);
        pool.give(Vec::new());
        assert!(pool.0.is_empty());
        (0..2 * KEPT_MOST).for_each(|_| pool.give(vec![0]));
        assert_eq!(pool.0.len(), KEPT_MOST);
    }
}
