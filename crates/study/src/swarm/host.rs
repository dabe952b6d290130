//! The request generator: remaining requests, and the expected content of blocks.
//!
//! It outlives device sessions: its knowledge of blocks must hold in the next one. Always true:
//! request numbers are unique over all sessions.

use super::case::{Case, Mix};
use initiator::disk::{Operation, Request, RequestId};
use sim::check::{BlockAccess, BlockModel};
use sim::engine::Random;
use std::collections::VecDeque;
use units::Extent;

/// The request generator of a drive.
#[derive(Debug)]
pub(super) struct Host {
    pub(super) blocks: BlockModel,
    random: Random,
    next: u64,
    /// Remaining requests.
    left: u32,
    /// The next block to read back in the last session.
    inspects: Option<u64>,
    capacity: u64,
    longest: u32,
    mix: Mix,
    /// Places of recent requests.
    recent: VecDeque<Extent>,
}

/// Recent places remembered, to detect conflicts with requests not yet released.
const RECENT: usize = 4;

impl Host {
    /// Creates the generator of a drive.
    pub(super) fn new(case: &Case, drive: u64) -> Self {
        Self {
            blocks: BlockModel::new(case.blocks, case.block, case.is_cached),
            random: Random::new(case.seed ^ drive << u32::BITS, "host"),
            next: 0,
            left: case.requests,
            inspects: None,
            capacity: case.blocks.into(),
            longest: case.longest,
            mix: case.mix,
            recent: VecDeque::with_capacity(RECENT),
        }
    }

    /// Whether requests remain.
    pub(super) fn has_work(&self) -> bool {
        self.left > 0 || self.inspects.is_some_and(|next| next < self.capacity)
    }

    /// From now on only reads back all blocks.
    pub(super) fn inspect(&mut self) {
        self.left = 0;
        self.inspects = Some(0);
    }

    /// Whether only read-back remains, which must not fail.
    pub(super) const fn is_inspecting(&self) -> bool {
        self.inspects.is_some()
    }

    /// Returns the next request with its access.
    pub(super) fn next(&mut self) -> Option<(Request, BlockAccess)> {
        let (operation, extent) = match &mut self.inspects {
            Some(first) if *first < self.capacity => {
                let extent = Extent::new(*first, u64::from(self.longest).min(self.capacity - *first));
                *first += extent.blocks.0;
                (READ, extent)
            }
            Some(_) => return None,
            None => {
                self.left = self.left.checked_sub(1)?;
                self.choose()
            }
        };
        let id = RequestId(self.next);
        self.next += 1;
        let access = match operation {
            Operation::Write { fua, .. } => BlockAccess::Write { through: fua },
            Operation::Flush => BlockAccess::Flush,
            Operation::Read { .. } => BlockAccess::Read,
            Operation::Unmap | Operation::Zero { .. } | Operation::WriteSame => BlockAccess::Zero,
        };
        Some((Request { id, operation, extent }, access))
    }

    /// Whether to abort the request just made.
    pub(super) fn aborts(&mut self) -> bool {
        !self.is_inspecting() && self.random.below(100) < u64::from(self.mix.aborts)
    }

    /// A random place, or that of a recent request.
    fn place(&mut self) -> Extent {
        let goes_back = self.mix.again > 0 && self.random.below(100) < u64::from(self.mix.again);
        if goes_back && !self.recent.is_empty() {
            let which = self.random.below(self.recent.len() as u64) as usize;
            return self.recent[which];
        }
        let blocks = 1 + self.random.below(u64::from(self.longest));
        let first = self.random.below(self.capacity - blocks + 1);
        let extent = Extent::new(first, blocks);
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(extent);
        extent
    }

    fn choose(&mut self) -> (Operation, Extent) {
        let extent = self.place();
        let blocks = extent.blocks.0;
        let Mix { reads, through, flushes, zeroes, .. } = self.mix;
        let die = self.random.below(100);
        let below = |shares: &[u8]| die < shares.iter().map(|share| u64::from(*share)).sum();
        let operation = match () {
            () if below(&[flushes]) => return (Operation::Flush, Extent::new(0, 0)),
            () if below(&[flushes, reads]) => READ,
            () if below(&[flushes, reads, through]) => Operation::Write { fua: true, dpo: false },
            () if below(&[flushes, reads, through, zeroes]) => {
                Operation::Zero { may_unmap: blocks.is_multiple_of(2) }
            }
            () => Operation::Write { fua: false, dpo: false },
        };
        (operation, extent)
    }
}

const READ: Operation = Operation::Read { fua: false, dpo: false, may_be_short: false };
