//! Self-numbered blocks: a read shows where data came from, and a medium of any size needs no
//! memory.
//!
//! A block begins with its number and the complement; the rest is ignored and left as it was.

use device::medium::{MediumDone, MediumError, MediumOp, MediumRequest};
use units::{BlockSize, Extent, Lba};

/// Bytes of a number and its complement.
const BYTES: usize = 16;

/// A medium whose blocks hold their own numbers and must be written with those.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbered {
    /// Number of blocks.
    pub(super) blocks: u64,
    /// Blocks written with other content.
    pub(super) misplaced_blocks: u64,
}

/// Returns the prefix of a block.
pub(crate) fn number(lba: Lba) -> [u8; BYTES] {
    (u128::from(!lba.0) << u64::BITS | u128::from(lba.0)).to_le_bytes()
}

/// Writes the number of each block, from `lba`, to its start.
pub fn put(lba: Lba, bytes: &mut [u8], block_size: BlockSize) {
    put_from(lba, 0, bytes, block_size);
}

/// Like [`put`], for `bytes` that start at byte `at` of the first block.
pub(super) fn put_from(lba: Lba, at: usize, bytes: &mut [u8], block_size: BlockSize) {
    let block_bytes = block_size.bytes() as usize;
    for block in at / block_bytes..(at + bytes.len()).div_ceil(block_bytes) {
        let (number, begin) = (number(Lba(lba.0 + block as u64)), block * block_bytes);
        let number = &number[at.saturating_sub(begin).min(BYTES)..];
        let place = &mut bytes[begin.saturating_sub(at)..];
        let len = place.len().min(number.len());
        place[..len].copy_from_slice(&number[..len]);
    }
}

/// Returns whether each block, from `lba`, starts with its number.
pub fn are_right(lba: Lba, bytes: &[u8], block_size: BlockSize) -> bool {
    blocks(lba, bytes, block_size).all(|(lba, begins)| *begins == number(lba))
}

/// Counts the blocks from `lba` that hold neither their number nor zeroes.
pub(crate) fn misplaced_among(lba: Lba, bytes: &[u8], block_size: BlockSize) -> u64 {
    let is_misplaced_block =
        |(lba, begins): &(Lba, &[u8; BYTES])| **begins != number(*lba) && **begins != [0; BYTES];
    blocks(lba, bytes, block_size).filter(is_misplaced_block).count() as u64
}

/// Iterates over the prefixes of whole blocks from `lba`.
fn blocks(lba: Lba, bytes: &[u8], block_size: BlockSize) -> impl Iterator<Item = (Lba, &[u8; BYTES])> {
    let whole = bytes.chunks_exact(block_size.bytes() as usize);
    (lba.0..).map(Lba).zip(whole.filter_map(|block| block.first_chunk()))
}

impl Numbered {
    /// Creates a medium.
    pub(super) const fn new(blocks: u64) -> Self {
        Self { blocks, misplaced_blocks: 0 }
    }

    /// Returns whether an extent exists.
    pub(super) fn has(&self, extent: Extent) -> bool {
        extent.lba.0.checked_add(extent.blocks.0).is_some_and(|end| end <= self.blocks)
    }

    /// Executes a request on its part of the buffer.
    ///
    /// # Errors
    /// If the blocks do not exist or the operation is unsupported.
    pub(super) fn done(
        &mut self,
        request: &MediumRequest,
        block_size: BlockSize,
        buffer: &mut [u8],
    ) -> Result<MediumDone, MediumError> {
        let lba = request.extent.lba;
        if !self.has(request.extent) {
            return Err(MediumError::Shrunk);
        }
        let memory = buffer.get_mut(request.range.as_usize()).unwrap_or_default();
        match request.op {
            MediumOp::Read => put(lba, memory, block_size),
            MediumOp::Write { .. } => {
                let wrong = blocks(lba, memory, block_size).filter(|(lba, begins)| **begins != number(*lba));
                self.misplaced_blocks += wrong.count() as u64;
            }
            MediumOp::Compare
            | MediumOp::CompareSame
            | MediumOp::CompareAndWrite { .. }
            | MediumOp::Or { .. } => return Err(MediumError::Unsupported),
            _ => {}
        }
        Ok(MediumDone::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn misplaced_blocks_are_those_with_other_content() {
        let mut bytes = [0; 4 * 512];
        assert_eq!(misplaced_among(Lba(7), &bytes, BlockSize::B512), 0, "nothing was ever written");
        put(Lba(7), &mut bytes, BlockSize::B512);
        assert!(are_right(Lba(7), &bytes, BlockSize::B512));
        assert_eq!(misplaced_among(Lba(7), &bytes, BlockSize::B512), 0);
        bytes[2 * 512 + 9] ^= 1;
        assert!(!are_right(Lba(7), &bytes, BlockSize::B512));
        assert_eq!(misplaced_among(Lba(7), &bytes, BlockSize::B512), 1);
        assert_eq!(misplaced_among(Lba(8), &bytes, BlockSize::B512), 4, "all of them belong elsewhere");
    }

    proptest! {
        #[test]
        fn a_part_of_blocks_is_as_it_is_in_the_whole(at in 0..4096_usize, len in 0..4096_usize) {
            let mut whole = vec![0; 8192];
            put(Lba(1000), &mut whole, BlockSize::B512);
            let mut part = vec![0; len];
            put_from(Lba(1000), at, &mut part, BlockSize::B512);
            prop_assert_eq!(part, &whole[at..at + len]);
        }
    }
}
