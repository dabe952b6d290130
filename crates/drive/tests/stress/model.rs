//! Model of the blocks of a disk: the content that a host may find, given the writes it has begun and ended.
//!
//! Each write stamps its blocks with its number. A write that ended GOOD hides all that had ended before it began; one
//! that failed may or may not be there, block by block.

use std::collections::BTreeSet;
use testkit::command::BLOCK;

/// Names a write; 0 is what the blocks hold at first.
pub(crate) type Stamp = u32;

/// A range of blocks, as the first and the count.
pub(crate) type Blocks = (u8, u8);

#[derive(Debug)]
pub(crate) struct Model {
    clock: u64,
    /// By stamp: when it began, and when it ended.
    writes: Vec<(u64, Option<u64>)>,
    /// By block: the stamps that it may hold.
    possible: Vec<BTreeSet<Stamp>>,
    /// Reads in flight: by number, the first block and what each block may turn out to hold.
    reads: Vec<Option<(u8, Vec<BTreeSet<Stamp>>)>>,
}

/// Names a read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Read(usize);

impl Model {
    pub(crate) fn new(blocks: u8) -> Self {
        let possible = vec![BTreeSet::from([0]); blocks.into()];
        Self { clock: 0, writes: vec![(0, Some(0))], possible, reads: Vec::new() }
    }

    /// A write begins: its stamp, and the bytes to send.
    pub(crate) fn begin_write(&mut self, (first, count): Blocks) -> (Stamp, Vec<u8>) {
        self.clock += 1;
        let stamp = self.writes.len() as Stamp;
        self.writes.push((self.clock, None));
        for block in first..first + count {
            self.possible[usize::from(block)].insert(stamp);
            for (start, allowed) in self.reads.iter_mut().flatten() {
                let place = block.checked_sub(*start).and_then(|at| allowed.get_mut(usize::from(at)));
                place.map(|allowed| allowed.insert(stamp));
            }
        }
        (stamp, stamp.to_be_bytes().repeat(usize::from(count) * BLOCK as usize / 4))
    }

    /// A write has ended, GOOD and whole or not.
    pub(crate) fn end_write(&mut self, stamp: Stamp, (first, count): Blocks, good: bool) {
        self.clock += 1;
        self.writes[stamp as usize].1 = Some(self.clock);
        if !good {
            return;
        }
        let (begun, writes) = (self.writes[stamp as usize].0, &self.writes);
        for block in first..first + count {
            self.possible[usize::from(block)].retain(|&other| {
                other == stamp || writes[other as usize].1.is_none_or(|ended| ended > begun)
            });
        }
    }

    /// A read begins.
    pub(crate) fn begin_read(&mut self, (first, count): Blocks) -> Read {
        let allowed = self.possible[usize::from(first)..usize::from(first + count)].to_vec();
        self.reads.push(Some((first, allowed)));
        Read(self.reads.len() - 1)
    }

    /// A read has ended, with these bytes; fails if they cannot be.
    #[track_caller]
    pub(crate) fn end_read(&mut self, read: Read, bytes: &[u8]) {
        let (first, allowed) = self.reads[read.0].take().expect("a read ends once");
        for ((block, bytes), allowed) in (first..).zip(bytes.chunks_exact(BLOCK as usize)).zip(allowed) {
            let holds = |stamp: &Stamp| bytes.chunks_exact(4).all(|found| found == stamp.to_be_bytes());
            assert!(allowed.iter().any(holds), "block {block} holds {:02x?}, not {allowed:?}", &bytes[..4]);
        }
    }
}
