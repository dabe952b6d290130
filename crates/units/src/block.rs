//! Logical blocks: addresses, counts, sizes, extents (SBC-4 clause 4.5).
//!
//! An address and a count are different types; only an extent has both. Block sizes are those that drives have.
//! Always true: no arithmetic here wraps.

use crate::ByteCount;
use core::fmt;

/// A logical block address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lba(pub u64);

/// A number of logical blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockCount(pub u64);

/// The length of a logical block: 512 or 4096 bytes of a disk, 1024 of a floppy disk, 2048 of a CD,
/// DVD or BD, nothing else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BlockSize {
    /// 512 bytes.
    #[default]
    B512,
    /// 1024 bytes.
    B1024,
    /// 2048 bytes.
    B2048,
    /// 4096 bytes.
    B4096,
}

/// A run of blocks: `blocks` of them from `lba`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Extent {
    /// The first block.
    pub lba: Lba,
    /// How many.
    pub blocks: BlockCount,
}

impl BlockSize {
    /// The block size of `bytes` bytes, if there is one.
    pub const fn from_bytes(bytes: u32) -> Option<Self> {
        match bytes {
            512 => Some(Self::B512),
            1024 => Some(Self::B1024),
            2048 => Some(Self::B2048),
            4096 => Some(Self::B4096),
            _ => None,
        }
    }

    /// Bytes in one block.
    pub const fn bytes(self) -> u32 {
        match self {
            Self::B512 => 512,
            Self::B1024 => 1024,
            Self::B2048 => 2048,
            Self::B4096 => 4096,
        }
    }

    /// Bytes in `blocks` blocks; `None` past 64 bits.
    pub const fn bytes_in(self, blocks: BlockCount) -> Option<ByteCount> {
        match blocks.0.checked_mul(self.bytes() as u64) {
            Some(bytes) => Some(ByteCount(bytes)),
            None => None,
        }
    }

    /// Whole blocks in `bytes`, rounded down.
    pub const fn blocks_in(self, bytes: ByteCount) -> BlockCount {
        // By a constant in each case: no division when it runs.
        match self {
            Self::B512 => BlockCount(bytes.0 / 512),
            Self::B1024 => BlockCount(bytes.0 / 1024),
            Self::B2048 => BlockCount(bytes.0 / 2048),
            Self::B4096 => BlockCount(bytes.0 / 4096),
        }
    }
}

impl Extent {
    /// The run of `blocks` blocks from `lba`.
    pub const fn new(lba: u64, blocks: u64) -> Self {
        Self { lba: Lba(lba), blocks: BlockCount(blocks) }
    }

    /// Whether every block of it lies below `capacity`. An empty run fits up to the capacity itself.
    pub const fn fits(self, capacity: BlockCount) -> bool {
        match self.lba.0.checked_add(self.blocks.0) {
            Some(end) => end <= capacity.0,
            None => false,
        }
    }

    /// Whether the two runs share a block.
    pub const fn overlaps(self, other: Self) -> bool {
        let (a, b) = (self.lba.0, other.lba.0);
        !self.is_empty()
            && !other.is_empty()
            && a < b.saturating_add(other.blocks.0)
            && b < a.saturating_add(self.blocks.0)
    }

    /// Whether there is no block in it.
    pub const fn is_empty(self) -> bool {
        self.blocks.0 == 0
    }
}

impl fmt::Display for Lba {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LBA {}", self.0)
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}", self.lba, self.blocks.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extent_fits_up_to_the_last_block() {
        let capacity = BlockCount(100);
        assert!(Extent::new(99, 1).fits(capacity));
        assert!(Extent::new(100, 0).fits(capacity));
        assert!(!Extent::new(99, 2).fits(capacity));
        assert!(!Extent::new(101, 0).fits(capacity));
        assert!(!Extent::new(u64::MAX, 2).fits(capacity));
    }

    #[test]
    fn extents_overlap_when_they_share_a_block() {
        assert!(Extent::new(0, 8).overlaps(Extent::new(7, 1)));
        assert!(!Extent::new(0, 8).overlaps(Extent::new(8, 1)));
        assert!(!Extent::new(4, 0).overlaps(Extent::new(0, 8)));
    }

    #[test]
    fn only_two_block_sizes_exist() {
        assert_eq!(BlockSize::from_bytes(512).map(BlockSize::bytes), Some(512));
        assert_eq!(BlockSize::from_bytes(4096).map(BlockSize::bytes), Some(4096));
        assert_eq!(BlockSize::from_bytes(520), None);
        assert_eq!(BlockSize::B4096.bytes_in(BlockCount(3)), Some(ByteCount(12_288)));
    }
}
