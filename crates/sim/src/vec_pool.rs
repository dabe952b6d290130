//! Lists that are needed again and again: their memory stays when what was in them is gone.

/// Empty lists with memory.
#[derive(Clone, Debug)]
pub(crate) struct VecPool<T>(Vec<Vec<T>>);

/// As many as are kept.
const KEPT_MOST: usize = 64;

impl<T> VecPool<T> {
    /// None yet.
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    /// An empty list.
    pub(crate) fn take(&mut self) -> Vec<T> {
        self.0.pop().unwrap_or_default()
    }

    /// A list that nobody needs any more. One without memory is not kept.
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
        let mut spares = VecPool::default();
        let mut list = spares.take();
        list.extend(0..100);
        spares.give(list);
        let again = spares.take();
        assert!(again.is_empty() && again.capacity() >= 100);
        spares.give(Vec::new());
        assert!(spares.0.is_empty());
        (0..2 * KEPT_MOST).for_each(|_| spares.give(vec![0]));
        assert_eq!(spares.0.len(), KEPT_MOST);
    }
}
