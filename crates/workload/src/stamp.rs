//! Stamped blocks: data that say where and when they were written.
//!
//! A stamp is computed from LBA, generation and session, so that reading back needs no table. Layout, little-endian:
//! 0 magic (8 bytes), 8 LBA (8), 16 generation (4), 20 session (4), then filler derived from those, and in the last 8 bytes
//! the checksum of all before. Left out: which stamp a block should hold, which its writer knows.

use fastrand::Rng;
use serde::Serialize;

/// `uaskstmp`.
const MAGIC: u64 = u64::from_le_bytes(*b"uaskstmp");

/// Words before the filler.
const HEAD_WORDS: usize = 3;

/// The actual content of a block that should hold a stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum BlockContent {
    /// No stamp.
    NoStamp,
    /// An earlier or later write of this block: the expected one is lost.
    OtherGeneration {
        /// Generation found.
        generation: u32,
    },
    /// A stamp of another LBA.
    Misplaced {
        /// That LBA.
        belongs_to: u64,
    },
    /// A stamp of an earlier session: no write of this one arrived.
    OtherSession,
    /// A valid header with a damaged body.
    Damaged,
}

/// Fills a block with the stamp of its LBA and this write. A block has 32 bytes or more.
pub fn write(block: &mut [u8], lba: u64, stamp: Stamp) {
    let words = [MAGIC, lba, stamp.word()];
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

/// Compares a block with the stamp that it should hold.
///
/// # Errors
///
/// Content in its place.
pub fn check(block: &[u8], lba: u64, stamp: Stamp) -> Result<(), BlockContent> {
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
    let written = Stamp::of_word(written);
    if !is_whole {
        Err(BlockContent::Damaged)
    } else if written.session != stamp.session {
        Err(BlockContent::OtherSession)
    } else if place != lba {
        Err(BlockContent::Misplaced { belongs_to: place })
    } else if written.generation != stamp.generation {
        Err(BlockContent::OtherGeneration { generation: written.generation })
    } else {
        Ok(())
    }
}

/// Identifies the write of a stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Counts the writes of the block.
    pub generation: u32,
    /// The run that wrote it.
    pub session: u32,
}

impl Stamp {
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

/// A position-dependent checksum.
#[derive(Clone, Copy, Debug, Default)]
struct Sum(u64);

impl Sum {
    const fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_holds_its_own_stamp_and_no_other() {
        const STAMP: Stamp = Stamp { generation: 2, session: 7 };
        let mut block = [0; 512];
        assert_eq!(check(&block, 5, STAMP), Err(BlockContent::NoStamp));
        write(&mut block, 5, STAMP);
        assert_eq!(block[..24], *b"uaskstmp\x05\0\0\0\0\0\0\0\x02\0\0\0\x07\0\0\0");
        assert_eq!(check(&block, 5, STAMP), Ok(()));
        assert_eq!(check(&block, 6, STAMP), Err(BlockContent::Misplaced { belongs_to: 5 }));
        assert_eq!(check(&block, 5, Stamp { session: 8, ..STAMP }), Err(BlockContent::OtherSession));
        let other = Stamp { generation: 3, ..STAMP };
        assert_eq!(check(&block, 5, other), Err(BlockContent::OtherGeneration { generation: 2 }));
        block[100] ^= 1;
        assert_eq!(check(&block, 5, STAMP), Err(BlockContent::Damaged));
    }
}
