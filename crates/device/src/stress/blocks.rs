//! Model of the blocks of a disk: the content that a host may find, given the writes it has begun and ended.
//!
//! Each write stamps its blocks with its own number. A block holds the stamp of one write. A write that has ended
//! GOOD hides all that had ended before it began; one that failed, was aborted, or was lost in a reset may or may not
//! be there, but changes nothing after its end.

use crate::host_fixture::medium::BLOCK;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// Names a write; 0 and its neighbours below 256 are what the blocks hold at first.
pub(super) type Stamp = u32;

/// A range of blocks, as the first and the count.
pub(super) type Blocks = (u8, u8);

#[derive(Debug, Default)]
pub(super) struct Model {
    clock: u64,
    last_stamp: Stamp,
    begun: BTreeMap<Stamp, u64>,
    ended: BTreeMap<Stamp, u64>,
    /// Stamps that a block may hold; a block that is not here holds what it held at first.
    possible: BTreeMap<u8, BTreeSet<Stamp>>,
    reads: Vec<Option<(u8, Vec<BTreeSet<Stamp>>)>>,
}

/// Names a read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Read(usize);

const FIRST: Stamp = 0;

impl Model {
    /// A write begins: its stamp, and the bytes to send.
    pub(super) fn begin_write(&mut self, (first, count): Blocks) -> (Stamp, Vec<u8>) {
        self.clock += 1;
        self.last_stamp += 1;
        let stamp = self.last_stamp;
        self.begun.insert(stamp, self.clock);
        for block in first..first + count {
            self.possible.entry(block).or_insert_with(|| BTreeSet::from([FIRST])).insert(stamp);
            for (start, allowed) in self.reads.iter_mut().flatten() {
                if let Some(allowed) =
                    block.checked_sub(*start).and_then(|at| allowed.get_mut(usize::from(at)))
                {
                    allowed.insert(stamp);
                }
            }
        }
        (stamp, stamp.to_be_bytes().repeat(usize::from(count) * BLOCK / 4))
    }

    /// A write has ended, GOOD or not.
    pub(super) fn end_write(&mut self, stamp: Stamp, (first, count): Blocks, good: bool) {
        self.clock += 1;
        self.ended.insert(stamp, self.clock);
        if !good {
            return;
        }
        let begun = self.begun[&stamp];
        for block in first..first + count {
            let ended = &self.ended;
            let possible = self.possible.get_mut(&block).expect("a write has begun there");
            possible.retain(|&other| {
                other == stamp || other != FIRST && ended.get(&other).is_none_or(|&end| end > begun)
            });
        }
    }

    /// A read begins.
    pub(super) fn begin_read(&mut self, (first, count): Blocks) -> Read {
        let holds = |block| self.possible.get(&block).cloned().unwrap_or_else(|| BTreeSet::from([FIRST]));
        let allowed = (first..first + count).map(holds).collect();
        self.reads.push(Some((first, allowed)));
        Read(self.reads.len() - 1)
    }

    /// A read has ended, with so much data; fails if the data cannot be.
    #[track_caller]
    pub(super) fn end_read(&mut self, read: Read, bytes: &[u8]) {
        let (first, allowed) = self.reads[read.0].take().expect("a read ends once");
        for ((block, bytes), allowed) in (first..).zip(bytes.chunks_exact(BLOCK)).zip(allowed) {
            let matches = |stamp: &Stamp| match *stamp {
                FIRST => bytes.iter().all(|&byte| byte == block),
                stamp => bytes == stamp.to_be_bytes().repeat(BLOCK / 4),
            };
            assert!(allowed.iter().any(matches), "block {block} holds {:02x?}, not {allowed:?}", &bytes[..8]);
        }
    }
}
