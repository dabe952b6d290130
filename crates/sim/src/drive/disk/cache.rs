//! The disk cache: read segments and dirty runs.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use units::Extent;

/// Cached runs of read sectors, most recently used last.
#[derive(Clone, Debug)]
pub(super) struct Segments {
    runs: VecDeque<Range<u64>>,
    runs_max: usize,
}

impl Segments {
    pub(super) const fn new(runs_max: usize) -> Self {
        Self { runs: VecDeque::new(), runs_max }
    }

    /// Returns the run that contains an extent, and marks it as used.
    pub(super) fn find(&mut self, extent: Extent) -> Option<Range<u64>> {
        let wanted = range(extent);
        let place = self.runs.iter().position(|run| run.start <= wanted.start && wanted.end <= run.end);
        let run = place.and_then(|place| self.runs.remove(place))?;
        self.runs.push_back(run.clone());
        Some(run)
    }

    /// Returns the number of contiguous cached sectors before `lba`: the length of a sequential
    /// stream that continues there.
    pub(super) fn before(&self, lba: u64) -> u64 {
        let mut start = lba;
        while let Some(run) = self.runs.iter().find(|run| run.end == start) {
            start = run.start;
        }
        lba - start
    }

    /// Adds a run; evicts the least recently used one.
    pub(super) fn keep(&mut self, run: Range<u64>) {
        if run.is_empty() || self.runs_max == 0 {
            return;
        }
        self.runs.retain(|old| !(run.start <= old.start && old.end <= run.end));
        if self.runs.len() == self.runs_max {
            self.runs.pop_front();
        }
        self.runs.push_back(run);
    }

    /// Drops runs that overlap a write.
    pub(super) fn forget(&mut self, extent: Extent) {
        let wanted = range(extent);
        self.runs.retain(|run| run.end <= wanted.start || wanted.end <= run.start);
    }
}

/// Runs of sectors that are not on the platters yet, coalesced with their neighbours.
#[derive(Clone, Debug, Default)]
pub(super) struct Dirty {
    /// End by start; no two touch.
    runs: BTreeMap<u64, u64>,
    sectors: u64,
}

impl Dirty {
    pub(super) const fn sectors(&self) -> u64 {
        self.sectors
    }

    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    pub(super) fn add(&mut self, extent: Extent) {
        let Range { mut start, mut end } = range(extent);
        if start == end {
            return;
        }
        while let Some((&old_start, &old_end)) = self.runs.range(..=end).next_back() {
            if old_end < start {
                break;
            }
            self.runs.remove(&old_start);
            self.sectors -= old_end - old_start;
            (start, end) = (start.min(old_start), end.max(old_end));
        }
        self.runs.insert(start, end);
        self.sectors += end - start;
    }

    /// Returns whether an extent is fully dirty.
    pub(super) fn holds(&self, extent: Extent) -> bool {
        let wanted = range(extent);
        let run = self.runs.range(..=wanted.start).next_back();
        run.is_some_and(|(_, &end)| wanted.end <= end)
    }

    /// Returns whether an extent is partly dirty.
    pub(super) fn touches(&self, extent: Extent) -> bool {
        let wanted = range(extent);
        let run = self.runs.range(..wanted.end).next_back();
        run.is_some_and(|(_, &end)| end > wanted.start)
    }

    /// Returns the starts of the runs nearest to a sector, `most` on each side.
    pub(super) fn near(&self, lba: u64, most: usize) -> impl Iterator<Item = u64> {
        let above = self.runs.range(lba..).take(most);
        let below = self.runs.range(..lba).rev().take(most);
        above.chain(below).map(|(&start, _)| start)
    }

    /// Removes and returns the first `most` sectors of the run that starts at `start`.
    pub(super) fn take(&mut self, start: u64, most: u64) -> Extent {
        let Some(end) = self.runs.remove(&start) else { return Extent::new(start, 0) };
        let taken = end.min(start + most);
        if taken < end {
            self.runs.insert(taken, end);
        }
        self.sectors -= taken - start;
        Extent::new(start, taken - start)
    }
}

const fn range(extent: Extent) -> Range<u64> {
    extent.lba.0..extent.lba.0 + extent.blocks.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn runs_that_touch_are_one_stream() {
        let mut segments = Segments::new(4);
        for run in [0..100, 130..140, 100..130, 150..160] {
            segments.keep(run);
        }
        assert_eq!([140, 130, 150, 160, 99].map(|lba| segments.before(lba)), [140, 130, 0, 10, 0]);
    }

    #[test]
    fn the_segment_of_longest_no_use_makes_room() {
        let mut segments = Segments::new(2);
        segments.keep(0..100);
        segments.keep(200..300);
        assert_eq!(segments.find(Extent::new(10, 90)), Some(0..100));
        segments.keep(400..500);
        assert_eq!(segments.find(Extent::new(0, 100)), Some(0..100));
        assert_eq!(segments.find(Extent::new(200, 1)), None);
        segments.forget(Extent::new(99, 1));
        assert_eq!(segments.find(Extent::new(0, 1)), None);
    }

    #[test]
    fn neighbours_become_one() {
        let mut dirty = Dirty::default();
        for start in [16, 0, 8] {
            dirty.add(Extent::new(start, 8));
        }
        assert_eq!(dirty.near(0, 9).collect::<Vec<_>>(), [0]);
        assert_eq!(dirty.take(0, 20), Extent::new(0, 20));
        assert_eq!(dirty.take(20, 20), Extent::new(20, 4));
        assert!(dirty.is_empty());
    }

    proptest! {
        #[test]
        fn runs_are_a_set_of_sectors(steps in prop::collection::vec((0_u64..200, 1_u64..20, any::<bool>()), 0..60)) {
            let (mut dirty, mut set) = (Dirty::default(), BTreeSet::new());
            for (lba, count, adds) in steps {
                let near = dirty.near(lba, 1).next();
                if adds {
                    dirty.add(Extent::new(lba, count));
                    set.extend(lba..lba + count);
                } else if let Some(start) = near {
                    let taken = dirty.take(start, count);
                    set.retain(|sector| !(taken.lba.0..taken.lba.0 + taken.blocks.0).contains(sector));
                }
                let probe = Extent::new(lba, count);
                prop_assert_eq!(dirty.sectors(), set.len() as u64);
                prop_assert_eq!(dirty.holds(probe), (lba..lba + count).all(|sector| set.contains(&sector)));
                prop_assert_eq!(dirty.touches(probe), (lba..lba + count).any(|sector| set.contains(&sector)));
            }
        }
    }
}
