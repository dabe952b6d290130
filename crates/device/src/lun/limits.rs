//! How large one command may be: the values of the block limits page (SBC-4 clause 6.6.4) and that the
//! block commands check.
//!
//! Left out: limits of the whole device (commands in flight, buffer memory), which are
//! [`crate::command::Limits`].

use units::BlockSize;

/// Bytes that one READ or WRITE moves at most.
pub const TRANSFER_BYTES_MAX: u32 = 8 << 20;
/// Bytes of a transfer that is large enough to be fast, where nothing speaks for less.
pub const TRANSFER_BYTES_OPTIMAL_MAX: u32 = 1 << 20;
/// Bytes that are best written or unmapped together: the page of the host's memory and of most file systems.
pub const GRANULE_BYTES: u32 = 4096;
/// LOGICAL BLOCKS PER PHYSICAL BLOCK EXPONENT (SBC-4 table 89): each block is written by itself, whatever lies
/// beside it. That larger pieces are faster is reported by the granularities of the block limits page.
pub const PHYSICAL_BLOCK_EXPONENT: u8 = 0;
/// Blocks that one COMPARE AND WRITE compares at most.
pub const COMPARE_AND_WRITE_BLOCKS_MAX: u8 = 255;
/// Bytes that one WRITE SAME writes at most: no more than a host can read back with one command.
pub const WRITE_SAME_BYTES_MAX: u64 = TRANSFER_BYTES_MAX as u64;
/// Whether WRITE SAME refuses a length of zero, which would mean "up to the last block" (WSNZ).
pub const WRITE_SAME_NON_ZERO: bool = true;
/// Block descriptors that one UNMAP has at most: as many as [`super::PARAMETER_BYTES_MAX`] holds after a header.
pub const UNMAP_DESCRIPTORS_MAX: u32 = (super::PARAMETER_BYTES_MAX as u32 - 8) / 16;
/// Blocks that one UNMAP unmaps at most: no limit.
pub const UNMAP_BLOCKS_MAX: u32 = u32::MAX;
/// Bytes that one WRITE ATOMIC writes at most.
pub const ATOMIC_BYTES_MAX: u32 = 1 << 20;

/// Blocks that one READ or WRITE moves at most.
pub const fn transfer_blocks_max(size: BlockSize) -> u32 {
    TRANSFER_BYTES_MAX / size.bytes()
}

/// Bytes of a transfer that is large enough to be fast, so that one on each of `streams` streams is no more than
/// `budget_bytes` together. Hosts make their commands no longer than this unless their owner insists.
pub const fn transfer_bytes_optimal(budget_bytes: u32, streams: u16) -> u32 {
    let share = if streams == 0 { budget_bytes } else { budget_bytes / streams as u32 };
    let bytes = if share < TRANSFER_BYTES_OPTIMAL_MAX { share } else { TRANSFER_BYTES_OPTIMAL_MAX };
    let granules = bytes / GRANULE_BYTES;
    if granules == 0 { GRANULE_BYTES } else { granules * GRANULE_BYTES }
}

/// Blocks that are best written or unmapped together, at least one.
pub const fn blocks_per_granule(size: BlockSize) -> u32 {
    GRANULE_BYTES / size.bytes()
}

/// Blocks that one WRITE SAME writes at most.
pub const fn write_same_blocks_max(size: BlockSize) -> u64 {
    WRITE_SAME_BYTES_MAX / size.bytes() as u64
}

/// Blocks that one WRITE ATOMIC writes at most.
pub const fn atomic_blocks_max(size: BlockSize) -> u32 {
    ATOMIC_BYTES_MAX / size.bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_in_blocks_follow_the_block_size() {
        assert_eq!(transfer_blocks_max(BlockSize::B512), 16384);
        assert_eq!(transfer_blocks_max(BlockSize::B4096), 2048);
        assert_eq!(blocks_per_granule(BlockSize::B512), 8);
        assert_eq!(blocks_per_granule(BlockSize::B4096), 1);
        assert_eq!(write_same_blocks_max(BlockSize::B512), 16384);
        assert_eq!(atomic_blocks_max(BlockSize::B4096), 256);
    }

    #[test]
    fn streams_share_a_budget_in_whole_granules() {
        assert_eq!(transfer_bytes_optimal(16 << 20, 256), 64 << 10);
        assert_eq!(transfer_bytes_optimal(16 << 20, 32), 512 << 10);
        assert_eq!(transfer_bytes_optimal(16 << 20, 2), TRANSFER_BYTES_OPTIMAL_MAX);
        assert_eq!(transfer_bytes_optimal(16 << 20, 0), TRANSFER_BYTES_OPTIMAL_MAX);
        assert_eq!(transfer_bytes_optimal(100_000, 3), 8 * GRANULE_BYTES);
        assert_eq!(transfer_bytes_optimal(1, 256), GRANULE_BYTES);
    }
}
