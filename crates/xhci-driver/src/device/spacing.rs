//! The distance of an endpoint's rings in memory, to find the ring of an address without a search.
//!
//! Rings allocated together are mostly equidistant. Where they are not the guess is wrong, and the
//! caller must search.

/// Where the last ring of an endpoint lies, and how far before it the one before that.
#[derive(Debug, Default)]
pub(crate) struct Spacing {
    last: u64,
    step: u32,
    ring: u16,
}

impl Spacing {
    /// There is one more ring, which begins there.
    pub(crate) fn add(&mut self, ring: u16, begin: u64) {
        let step = u32::try_from(begin.wrapping_sub(self.last)).unwrap_or(u32::MAX);
        (self.last, self.step, self.ring) = (begin, step, ring);
    }

    /// Which ring an address is of, if they lie evenly.
    #[inline]
    pub(crate) fn guess(&self, address: u64) -> usize {
        let before = u32::try_from(self.last.saturating_sub(address)).unwrap_or(u32::MAX);
        let rings = if before == 0 { 0 } else { before.div_ceil(self.step.max(1)) };
        usize::from(self.ring).saturating_sub(rings as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_that_lie_evenly_are_found_and_others_are_missed() {
        let mut spacing = Spacing::default();
        assert_eq!(spacing.guess(0x9000), 0);
        for (ring, begin) in [(0, 0x1000), (1, 0x8000), (2, 0x9000), (3, 0xa000)] {
            spacing.add(ring, begin);
        }
        let guesses = [0xa7f0, 0xa000, 0x9ff0, 0x9000, 0x8000, 0x1000].map(|at| spacing.guess(at));
        assert_eq!(guesses, [3, 3, 2, 2, 1, 0]);
        assert_eq!(spacing.guess(0x7000), 0, "it is none's");
    }

    #[test]
    fn a_ring_before_the_one_before_it_is_no_harm() {
        let mut spacing = Spacing::default();
        spacing.add(0, 0x9000);
        spacing.add(1, 0x1000);
        assert_eq!((spacing.guess(0x1000), spacing.guess(0x9000)), (1, 1));
        assert_eq!(spacing.guess(0), 0);
    }
}
