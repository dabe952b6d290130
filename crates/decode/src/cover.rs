//! How much of the time was covered by intervals that overlap as they like.
//!
//! Intervals come about in the order of their ends, of several drives mixed. Invariants: memory is bounded; an interval that reaches back
//! beyond the last [`PIECES_MAX`] gaps may be counted twice where it does.

/// Pieces that are kept apart, at most.
const PIECES_MAX: usize = 1024;

/// The time that some interval covers.
#[derive(Debug, Default)]
pub(crate) struct Cover {
    /// Apart from each other, in their order.
    pieces: Vec<(u64, u64)>,
    /// Of those before, which are forgotten.
    settled: u64,
}

impl Cover {
    /// Covers the time from one to the other.
    pub(crate) fn add(&mut self, from: u64, to: u64) {
        let (mut from, mut to) = (from, to.max(from));
        let behind = self.pieces.partition_point(|piece| piece.1 < from);
        let after = self.pieces.partition_point(|piece| piece.0 <= to);
        if let Some(met) = self.pieces.get(behind..after) {
            from = met.first().map_or(from, |first| first.0.min(from));
            to = met.last().map_or(to, |last| last.1.max(to));
        }
        self.pieces.splice(behind..after.max(behind), [(from, to)]);
        if self.pieces.len() > PIECES_MAX {
            self.settled += self.pieces.drain(..PIECES_MAX / 2).map(|(from, to)| to - from).sum::<u64>();
        }
    }

    /// All of it.
    pub(crate) fn total(&self) -> u64 {
        self.settled + self.pieces.iter().map(|(from, to)| to - from).sum::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_overlaps_counts_once() {
        let mut cover = Cover::default();
        for (from, to) in [(10, 20), (15, 30), (50, 60), (40, 45), (29, 41)] {
            cover.add(from, to);
        }
        assert_eq!((cover.total(), cover.pieces.as_slice()), (45, &[(10, 45), (50, 60)][..]));
        cover.add(0, 100);
        assert_eq!(cover.total(), 100);
    }

    #[test]
    fn memory_is_bounded() {
        let mut cover = Cover::default();
        (0..100_000_u64).for_each(|at| cover.add(at * 10, at * 10 + 3));
        assert!(cover.total() == 300_000 && cover.pieces.len() <= PIECES_MAX);
    }

    proptest! {
        #[test]
        fn as_many_moments_as_are_in_some_interval(all in prop::collection::vec((0_u64..200, 0_u64..40), 0..40)) {
            let mut cover = Cover::default();
            all.iter().for_each(|(from, len)| cover.add(*from, from + len));
            let is_in = |moment: &u64| all.iter().any(|(from, len)| (*from..from + len).contains(moment));
            prop_assert_eq!(cover.total(), (0..400).filter(is_in).count() as u64);
        }
    }
}
