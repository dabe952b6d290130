//! Verifies written data: each block gets a unique stamp and is read back.
//!
//! A stamped block ([`workload::stamp`]) holds its LBA, how often it was written and in which session,
//! which distinguishes lost, stale, misplaced and damaged blocks from correct ones. A [`Ledger`] knows
//! the expected stamp of each block. Left out: blocks that this session did not write.
//!
//! Always true: accesses in flight together do not overlap, since a [`Ledger`] cannot know in which
//! order a drive executes them; a block whose write failed is not judged until it is written again.
//! Reads within a run are judged but do not count as read back: they may come from the drive's
//! cache.

use serde::Serialize;
use std::fmt;
use units::{BlockSize, Extent};
use workload::stamp::{self, Stamp};

pub use workload::stamp::BlockContent;

/// Blocks that one ledger tracks at most, with four bytes of memory each.
pub const LEDGER_BLOCKS_MAX: u64 = 64 << 20;

/// Wrong blocks listed in the report; all are counted.
pub const WRONG_KEPT_MAX: usize = 16;

/// The write of the block failed: it may hold old or new data.
const UNCERTAIN: u32 = 1 << 31;

/// The block was read back after the run and judged.
const READ_BACK: u32 = 1 << 30;

/// The remaining bits.
const GENERATION: u32 = READ_BACK - 1;

/// The expected content of each block in a part of a drive.
#[derive(Debug)]
pub struct Ledger {
    session: u32,
    first: u64,
    block_bytes: usize,
    /// Write count of each block, with [`UNCERTAIN`] and [`READ_BACK`].
    generations: Vec<u32>,
    /// The run is over: reads now count as read back.
    reads_back: bool,
    findings: Findings,
}

/// Verification results.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Findings {
    /// Stamped blocks written, counted per write.
    pub written: u64,
    /// Blocks read and compared, within and after the run, counted per read.
    pub checked: u64,
    /// Blocks read but not judged, since their write had failed.
    pub uncertain: u64,
    /// Distinct blocks written or attempted, all to be read back.
    pub to_read_back: u64,
    /// Of those, blocks read back and judged.
    pub read_back: u64,
    /// Of those, blocks not judged: unreadable, not reached, or with a failed write.
    pub not_read_back: u64,
    /// Wrong blocks.
    pub wrong: u64,
    /// The first of them.
    pub first_wrong: Vec<WrongBlock>,
}

/// A block with wrong content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WrongBlock {
    /// Its LBA.
    pub lba: u64,
    /// Expected generation.
    pub expected: u32,
    /// Actual content.
    pub found: BlockContent,
}

impl Ledger {
    /// Creates a ledger; `None` for more than [`LEDGER_BLOCKS_MAX`] blocks.
    pub fn new(extent: Extent, block_size: BlockSize, session: u32) -> Option<Self> {
        if extent.blocks.0 > LEDGER_BLOCKS_MAX {
            return None;
        }
        Some(Self {
            session,
            first: extent.lba.0,
            block_bytes: block_size.bytes() as usize,
            generations: vec![0; extent.blocks.0 as usize],
            reads_back: false,
            findings: Findings::default(),
        })
    }

    /// Stamps the blocks of a write about to start.
    pub fn stamp(&mut self, extent: Extent, memory: &mut [u8]) {
        for (lba, block) in
            (extent.lba.0..).zip(memory.chunks_exact_mut(self.block_bytes)).take(extent.blocks.0 as usize)
        {
            let Some(generation) = self.generation(lba) else { continue };
            // Generations begin at 1 and cannot reach the flags in a drive's lifetime.
            *generation = (*generation & GENERATION).wrapping_add(1) & GENERATION;
            let generation = *generation;
            stamp::write(block, lba, Stamp { generation, session: self.session });
        }
    }

    /// Records the completion of a write.
    pub fn written(&mut self, extent: Extent, is_good: bool) {
        if is_good {
            self.findings.written += extent.blocks.0;
            return;
        }
        for lba in blocks(extent) {
            if let Some(generation) = self.generation(lba) {
                *generation |= UNCERTAIN;
            }
        }
    }

    /// Starts the read-back phase.
    pub const fn begin_reading_back(&mut self) {
        self.reads_back = true;
    }

    /// Compares read blocks with their expected content.
    pub fn check(&mut self, extent: Extent, memory: &[u8]) {
        for (lba, block) in
            (extent.lba.0..).zip(memory.chunks_exact(self.block_bytes)).take(extent.blocks.0 as usize)
        {
            let flag = if self.reads_back { READ_BACK } else { 0 };
            let Some(entry) = self.generation(lba).filter(|entry| **entry != 0) else { continue };
            if *entry & UNCERTAIN != 0 {
                self.findings.uncertain += 1;
                continue;
            }
            *entry |= flag;
            let expected = *entry & GENERATION;
            self.findings.checked += 1;
            if let Err(found) =
                stamp::check(block, lba, Stamp { generation: expected, session: self.session })
            {
                self.findings.add_wrong(WrongBlock { lba, expected, found });
            }
        }
    }

    /// Returns the next written blocks from `lba` on, at most `most`.
    pub fn next_written(&self, lba: u64, most: u64) -> Option<Extent> {
        let at = usize::try_from(lba.saturating_sub(self.first)).ok()?;
        let rest = self.generations.get(at..)?;
        let skipped = rest.iter().position(|generation| *generation != 0)?;
        let count =
            rest[skipped..].iter().take(most as usize).take_while(|generation| **generation != 0).count();
        Some(Extent::new(self.first + (at + skipped) as u64, count as u64))
    }

    /// Returns the results so far.
    pub fn findings(&self) -> Findings {
        let (mut to_read_back, mut read_back) = (0, 0);
        for generation in self.generations.iter().filter(|generation| **generation != 0) {
            to_read_back += 1;
            read_back += u64::from(generation & READ_BACK != 0);
        }
        let not_read_back = to_read_back - read_back;
        Findings { to_read_back, read_back, not_read_back, ..self.findings.clone() }
    }

    fn generation(&mut self, lba: u64) -> Option<&mut u32> {
        self.generations.get_mut(usize::try_from(lba.checked_sub(self.first)?).ok()?)
    }
}

impl Findings {
    /// Adds those of another run.
    pub fn add(&mut self, other: &Self) {
        self.written += other.written;
        self.checked += other.checked;
        self.uncertain += other.uncertain;
        self.to_read_back += other.to_read_back;
        self.read_back += other.read_back;
        self.not_read_back += other.not_read_back;
        self.wrong += other.wrong;
        let room = WRONG_KEPT_MAX.saturating_sub(self.first_wrong.len());
        self.first_wrong.extend(other.first_wrong.iter().take(room).cloned());
    }

    fn add_wrong(&mut self, block: WrongBlock) {
        self.wrong += 1;
        if self.first_wrong.len() < WRONG_KEPT_MAX {
            self.first_wrong.push(block);
        }
    }
}

fn blocks(extent: Extent) -> std::ops::Range<u64> {
    extent.lba.0..extent.lba.0 + extent.blocks.0
}

impl fmt::Display for WrongBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lba, expected, found } = self;
        write!(f, "LBA {lba}, write {expected}: ")?;
        match found {
            BlockContent::NoStamp => f.write_str("no stamp"),
            BlockContent::OtherGeneration { generation } => write!(f, "holds write {generation}"),
            BlockContent::Misplaced { belongs_to } => write!(f, "holds the data of LBA {belongs_to}"),
            BlockContent::OtherSession => f.write_str("holds data of an earlier session"),
            BlockContent::Damaged => f.write_str("damaged"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger() -> Ledger {
        Ledger::new(Extent::new(100, 50), BlockSize::B512, 7).expect("fifty blocks")
    }

    /// Returns the content that the check finds in one wrong block.
    fn found(ledger: &mut Ledger, extent: Extent, memory: &[u8]) -> Option<BlockContent> {
        let before = ledger.findings.first_wrong.len();
        ledger.check(extent, memory);
        ledger.findings.first_wrong.get(before).map(|wrong| wrong.found)
    }

    #[test]
    fn correct_stamps_pass() {
        let (mut ledger, mut memory) = (ledger(), vec![0; 3 * 512]);
        let extent = Extent::new(110, 3);
        ledger.stamp(extent, &mut memory);
        ledger.written(extent, true);
        assert_eq!(found(&mut ledger, extent, &memory), None);
        assert_eq!((ledger.findings.written, ledger.findings.checked, ledger.findings.wrong), (3, 3, 0));
        assert_eq!(
            (&memory[..8], &memory[512 + 8..512 + 24]),
            (&b"uaskstmp"[..], &[111, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0][..])
        );
    }

    #[test]
    fn wrong_blocks_are_classified() {
        let (mut ledger, mut old, mut new) = (ledger(), vec![0; 512], vec![0; 512]);
        let one = Extent::new(110, 1);
        ledger.stamp(one, &mut old);
        ledger.stamp(one, &mut new);
        ledger.written(one, true);
        assert_eq!(found(&mut ledger, one, &old), Some(BlockContent::OtherGeneration { generation: 1 }));
        assert_eq!(found(&mut ledger, one, &[0; 512]), Some(BlockContent::NoStamp));
        for byte in [24, 300, 511] {
            let mut damaged = new.clone();
            damaged[byte] ^= 0x10;
            assert_eq!(found(&mut ledger, one, &damaged), Some(BlockContent::Damaged));
        }
        let mut other = vec![0; 512];
        stamp::write(&mut other, 111, Stamp { generation: 2, session: 7 });
        assert_eq!(found(&mut ledger, one, &other), Some(BlockContent::Misplaced { belongs_to: 111 }));
        stamp::write(&mut other, 110, Stamp { generation: 2, session: 6 });
        assert_eq!(found(&mut ledger, one, &other), Some(BlockContent::OtherSession));
        assert_eq!(found(&mut ledger, one, &new), None);
    }

    #[test]
    fn failed_writes_are_not_judged() {
        let (mut ledger, mut memory) = (ledger(), vec![0; 512]);
        let one = Extent::new(100, 1);
        ledger.stamp(one, &mut memory);
        ledger.written(one, false);
        assert_eq!(found(&mut ledger, one, &[0; 512]), None);
        let Findings { uncertain, checked, written, .. } = ledger.findings();
        assert_eq!((uncertain, checked, written), (1, 0, 0), "what failed is not written");
        ledger.stamp(one, &mut memory);
        ledger.written(one, true);
        assert_eq!(found(&mut ledger, one, &[0; 512]), Some(BlockContent::NoStamp));
    }

    #[test]
    fn each_block_to_read_back_counts_once() {
        let (mut ledger, mut memory) = (ledger(), vec![0; 4 * 512]);
        let four = Extent::new(110, 4);
        for is_good in [true, true, false, true] {
            ledger.stamp(four, &mut memory);
            ledger.written(four, is_good);
        }
        let counts = |ledger: &Ledger| {
            let Findings { to_read_back, read_back, not_read_back, .. } = ledger.findings();
            [to_read_back, read_back, not_read_back]
        };
        // In the run, which may be from the drive's cache.
        ledger.check(four, &memory);
        assert_eq!(counts(&ledger), [4, 0, 4]);
        let last = Extent::new(113, 1);
        ledger.stamp(last, &mut memory[3 * 512..]);
        ledger.written(last, false);
        ledger.begin_reading_back();
        ledger.check(Extent::new(110, 1), &memory[..512]);
        ledger.check(Extent::new(110, 1), &memory[..512]);
        assert_eq!(counts(&ledger), [4, 1, 3], "the others cannot be read");
        ledger.check(four, &memory);
        assert_eq!(counts(&ledger), [4, 3, 1], "the content of the last one is unknown");
        let findings = ledger.findings();
        assert_eq!((findings.written, findings.checked, findings.wrong), (12, 9, 0));
        let mut two = findings.clone();
        two.add(&findings);
        assert_eq!([two.to_read_back, two.read_back, two.not_read_back], [8, 6, 2]);
    }

    #[test]
    fn only_written_blocks_are_read_back() {
        let (mut ledger, mut memory) = (ledger(), vec![0; 6 * 512]);
        ledger.stamp(Extent::new(103, 6), &mut memory);
        ledger.stamp(Extent::new(149, 1), &mut memory);
        assert_eq!(ledger.next_written(0, 4), Some(Extent::new(103, 4)));
        assert_eq!(ledger.next_written(107, 4), Some(Extent::new(107, 2)));
        assert_eq!(ledger.next_written(109, 4), Some(Extent::new(149, 1)));
        assert_eq!(ledger.next_written(150, 4), None);
        assert_eq!(found(&mut ledger, Extent::new(120, 1), &[0; 512]), None);
    }

    #[test]
    fn ledger_size_is_limited() {
        assert!(Ledger::new(Extent::new(0, LEDGER_BLOCKS_MAX + 1), BlockSize::B512, 0).is_none());
    }
}
