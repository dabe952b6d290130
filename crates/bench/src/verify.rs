//! Whether what was written is there: each block gets a stamp of its own, and is read back.
//!
//! A stamped block says where it belongs, how often it was written, in which session, and ends with a sum over all of
//! this, so that a block that is lost, old, misplaced, or damaged is told from one that is right. A [`Ledger`] knows which
//! stamp each block must have. Left out: blocks that this session has not written.
//!
//! Layout, little-endian: 0 magic (8 bytes), 8 LBA (8), 16 generation (4), 20 session (4), then filling that follows from
//! those, and in the last 8 bytes the sum of all before them.
//!
//! Always true: no two accesses that a ledger is asked about at the same time may overlap ([`Ledger`] cannot know in which
//! order a drive does them); a block whose write has failed is not judged until it is written again. Reads of a run are judged and are no
//! reading back: what comes then may be from the drive's cache, and the block may be written again.

use fastrand::Rng;
use serde::Serialize;
use std::fmt;
use units::{BlockSize, Extent};

/// Blocks that one ledger keeps: four bytes of memory each.
pub const LEDGER_BLOCKS_MAX: u64 = 64 << 20;

/// Wrong blocks that are kept for the report; all are counted.
pub const WRONG_KEPT_MAX: usize = 16;

/// `uaskstmp`.
const MAGIC: u64 = u64::from_le_bytes(*b"uaskstmp");

/// Words before the filling.
const HEAD_WORDS: usize = 3;

/// The block was written, and the write has failed: it may hold the old or the new.
const UNCERTAIN: u32 = 1 << 31;

/// The block was read back after the run, and judged.
const READ_BACK: u32 = 1 << 30;

/// The rest.
const GENERATION: u32 = READ_BACK - 1;

/// What each block of a part of a drive must hold.
#[derive(Debug)]
pub struct Ledger {
    session: u32,
    first: u64,
    block_bytes: usize,
    /// Times that each block was written, [`UNCERTAIN`] and [`READ_BACK`].
    generations: Vec<u32>,
    /// The run is over: what is read now is read back.
    reads_back: bool,
    findings: Findings,
}

/// What reading back has found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Findings {
    /// Blocks that were stamped and written, again each time.
    pub written: u64,
    /// Blocks that were read and compared with their stamp, again each time, in a run and after it.
    pub checked: u64,
    /// Blocks that could not be judged when they were read, since their write had failed.
    pub uncertain: u64,
    /// Different blocks that a run has written or tried to write, which are all to be read back after it.
    pub to_read_back: u64,
    /// Those of them that were, and were judged.
    pub read_back: u64,
    /// Those of them that were not: they could not be read, or were not reached, or their write had failed.
    pub not_read_back: u64,
    /// Blocks that were not right.
    pub wrong: u64,
    /// The first of them.
    pub first_wrong: Vec<WrongBlock>,
}

/// A block that does not hold what it must.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WrongBlock {
    /// Which one.
    pub lba: u64,
    /// The generation that it must have.
    pub expected: u32,
    /// What it holds instead.
    pub found: BlockContent,
}

/// What lies in the place of a stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum BlockContent {
    /// No stamp.
    NoStamp,
    /// An earlier or later write of this block: the one that must be there is lost.
    OtherGeneration {
        /// Its generation.
        generation: u32,
    },
    /// A block that belongs elsewhere.
    Misplaced {
        /// Where.
        belongs_to: u64,
    },
    /// A block of an earlier session: nothing of this one has arrived.
    OtherSession,
    /// The stamp is right and the rest is not.
    Damaged,
}

impl Ledger {
    /// A ledger of so many blocks; `None` if they are more than [`LEDGER_BLOCKS_MAX`].
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

    /// Stamps the blocks that are about to be written.
    pub fn stamp(&mut self, extent: Extent, memory: &mut [u8]) {
        for (lba, block) in
            (extent.lba.0..).zip(memory.chunks_exact_mut(self.block_bytes)).take(extent.blocks.0 as usize)
        {
            let Some(generation) = self.generation(lba) else { continue };
            // The first is 1; it would take a drive's whole life to come to the flags.
            *generation = (*generation & GENERATION).wrapping_add(1) & GENERATION;
            let generation = *generation;
            stamp(block, lba, generation, self.session);
        }
    }

    /// The write of those blocks has ended.
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

    /// The run is over, and what is read from now on is read back.
    pub const fn begin_reading_back(&mut self) {
        self.reads_back = true;
    }

    /// Compares blocks that were read with what they must hold.
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
            if let Err(found) = look(block, lba, expected, self.session) {
                self.findings.tell(WrongBlock { lba, expected, found });
            }
        }
    }

    /// The next blocks from `lba` on that were written, `most` of them at most.
    pub fn next_written(&self, lba: u64, most: u64) -> Option<Extent> {
        let at = usize::try_from(lba.saturating_sub(self.first)).ok()?;
        let rest = self.generations.get(at..)?;
        let skipped = rest.iter().position(|generation| *generation != 0)?;
        let count =
            rest[skipped..].iter().take(most as usize).take_while(|generation| **generation != 0).count();
        Some(Extent::new(self.first + (at + skipped) as u64, count as u64))
    }

    /// What was found so far.
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

    fn tell(&mut self, block: WrongBlock) {
        self.wrong += 1;
        if self.first_wrong.len() < WRONG_KEPT_MAX {
            self.first_wrong.push(block);
        }
    }
}

fn blocks(extent: Extent) -> std::ops::Range<u64> {
    extent.lba.0..extent.lba.0 + extent.blocks.0
}

fn stamp(block: &mut [u8], lba: u64, generation: u32, session: u32) {
    let words = [MAGIC, lba, Write { generation, session }.word()];
    let mut filling = Rng::with_seed(lba ^ words[2].rotate_left(17));
    let (body, last) = block.split_at_mut(block.len() - 8);
    let mut sum = Sum::default();
    for (at, place) in body.chunks_exact_mut(8).enumerate() {
        let word = words.get(at).copied().unwrap_or_else(|| filling.u64(..));
        place.copy_from_slice(&word.to_le_bytes());
        sum.add(word);
    }
    last.copy_from_slice(&sum.0.to_le_bytes());
}

fn look(block: &[u8], lba: u64, generation: u32, session: u32) -> Result<(), BlockContent> {
    let mut words =
        block.chunks_exact(8).map(|chunk| u64::from_le_bytes(chunk.try_into().unwrap_or_default()));
    let mut sum = Sum::default();
    let mut next = || words.next().inspect(|word| sum.add(*word)).unwrap_or_default();
    let [magic, place, written] = [next(), next(), next()];
    if magic != MAGIC {
        return Err(BlockContent::NoStamp);
    }
    for _ in 0..block.len() / 8 - HEAD_WORDS - 1 {
        next();
    }
    let is_whole = words.next() == Some(sum.0);
    let written = Write::of_word(written);
    if !is_whole {
        Err(BlockContent::Damaged)
    } else if written.session != session {
        Err(BlockContent::OtherSession)
    } else if place != lba {
        Err(BlockContent::Misplaced { belongs_to: place })
    } else if written.generation != generation {
        Err(BlockContent::OtherGeneration { generation: written.generation })
    } else {
        Ok(())
    }
}

/// Which write a stamp is of.
#[derive(Clone, Copy)]
struct Write {
    generation: u32,
    session: u32,
}

impl Write {
    fn word(self) -> u64 {
        let ([g0, g1, g2, g3], [s0, s1, s2, s3]) =
            (self.generation.to_le_bytes(), self.session.to_le_bytes());
        u64::from_le_bytes([g0, g1, g2, g3, s0, s1, s2, s3])
    }

    const fn of_word(word: u64) -> Self {
        let [g0, g1, g2, g3, s0, s1, s2, s3] = word.to_le_bytes();
        Self {
            generation: u32::from_le_bytes([g0, g1, g2, g3]),
            session: u32::from_le_bytes([s0, s1, s2, s3]),
        }
    }
}

/// A sum that every bit of every word goes into, in its place.
#[derive(Clone, Copy, Debug, Default)]
struct Sum(u64);

impl Sum {
    const fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl fmt::Display for WrongBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lba, expected, found } = self;
        write!(f, "LBA {lba}, write {expected}: ")?;
        match found {
            BlockContent::NoStamp => f.write_str("there is no stamp"),
            BlockContent::OtherGeneration { generation } => write!(f, "it holds write {generation}"),
            BlockContent::Misplaced { belongs_to } => write!(f, "it holds what belongs to LBA {belongs_to}"),
            BlockContent::OtherSession => f.write_str("it holds what an earlier session wrote"),
            BlockContent::Damaged => f.write_str("it is damaged"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger() -> Ledger {
        Ledger::new(Extent::new(100, 50), BlockSize::B512, 7).expect("fifty blocks")
    }

    /// What one wrong block is found to be.
    fn found(ledger: &mut Ledger, extent: Extent, memory: &[u8]) -> Option<BlockContent> {
        let before = ledger.findings.first_wrong.len();
        ledger.check(extent, memory);
        ledger.findings.first_wrong.get(before).map(|wrong| wrong.found)
    }

    #[test]
    fn blocks_that_hold_their_stamps_are_right() {
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
    fn what_is_wrong_with_a_block_is_told() {
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
        stamp(&mut other, 111, 2, 7);
        assert_eq!(found(&mut ledger, one, &other), Some(BlockContent::Misplaced { belongs_to: 111 }));
        stamp(&mut other, 110, 2, 6);
        assert_eq!(found(&mut ledger, one, &other), Some(BlockContent::OtherSession));
        assert_eq!(found(&mut ledger, one, &new), None);
    }

    #[test]
    fn a_write_that_failed_is_not_judged_until_the_next() {
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
    fn each_block_that_is_to_be_read_back_counts_once() {
        let (mut ledger, mut memory) = (ledger(), vec![0; 4 * 512]);
        let four = Extent::new(110, 4);
        for is_good in [true, true, false, true] {
            ledger.stamp(four, &mut memory);
            ledger.written(four, is_good);
        }
        let told = |ledger: &Ledger| {
            let Findings { to_read_back, read_back, not_read_back, .. } = ledger.findings();
            [to_read_back, read_back, not_read_back]
        };
        // In the run, which may be from the drive's cache.
        ledger.check(four, &memory);
        assert_eq!(told(&ledger), [4, 0, 4]);
        let last = Extent::new(113, 1);
        ledger.stamp(last, &mut memory[3 * 512..]);
        ledger.written(last, false);
        ledger.begin_reading_back();
        ledger.check(Extent::new(110, 1), &memory[..512]);
        ledger.check(Extent::new(110, 1), &memory[..512]);
        assert_eq!(told(&ledger), [4, 1, 3], "the others cannot be read");
        ledger.check(four, &memory);
        assert_eq!(told(&ledger), [4, 3, 1], "nobody knows what the last one is to hold");
        let findings = ledger.findings();
        assert_eq!((findings.written, findings.checked, findings.wrong), (12, 9, 0));
        let mut two = findings.clone();
        two.add(&findings);
        assert_eq!([two.to_read_back, two.read_back, two.not_read_back], [8, 6, 2]);
    }

    #[test]
    fn only_what_was_written_is_read_back() {
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
    fn a_ledger_has_its_limit() {
        assert!(Ledger::new(Extent::new(0, LEDGER_BLOCKS_MAX + 1), BlockSize::B512, 0).is_none());
    }
}
