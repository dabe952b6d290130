//! Blocks between cache and medium: SYNCHRONIZE CACHE and PRE-FETCH, (10) and (16) (SBC-4).
//!
//! Left out: the obsolete SYNC_NV bit.

use super::field::{bit, bits, bytes};

cdb! {
    /// SYNCHRONIZE CACHE (SBC-4): what is cached of the blocks goes to the medium.
    pub struct SynchronizeCache, width: [
        "SYNCHRONIZE CACHE(10)" = Ten 0x35, "SYNCHRONIZE CACHE(16)" = Sixteen 0x91,
    ] {
        /// The first block.
        lba: u64 = [bytes(2, 5), bytes(2, 9)],
        /// Blocks; zero is all from `lba` on.
        blocks: u32 = [bytes(7, 8), bytes(10, 13)],
        /// GOOD at once, the work follows.
        #[doc(alias = "IMMED")]
        immediate: bool = [bit(1, 1); 2],
        /// Group number 0..=63.
        group: u8 = [bits(6, 5, 0), bits(14, 5, 0)],
    }
}

cdb! {
    /// PRE-FETCH (SBC-4): the blocks go to the cache; CONDITION MET if they all fit.
    pub struct PreFetch, width: ["PRE-FETCH(10)" = Ten 0x34, "PRE-FETCH(16)" = Sixteen 0x90] {
        /// The first block.
        lba: u64 = [bytes(2, 5), bytes(2, 9)],
        /// Blocks; zero is all from `lba` on.
        #[doc(alias = "PREFETCH LENGTH")]
        blocks: u32 = [bytes(7, 8), bytes(10, 13)],
        /// The answer comes at once, the work follows.
        #[doc(alias = "IMMED")]
        immediate: bool = [bit(1, 1); 2],
        /// Group number 0..=63.
        group: u8 = [bits(6, 5, 0), bits(14, 5, 0)],
    }
}

#[cfg(test)]
mod tests {
    use super::super::CdbWidth;
    use super::*;

    #[test]
    fn synchronize_cache_both_ways_in_every_width() {
        assert_both_ways!(
            SynchronizeCache { lba: 0x1122_3344, blocks: 0x5566, immediate: true, group: 7 },
            [0x35, 0x02, 0x11, 0x22, 0x33, 0x44, 7, 0x55, 0x66, 0],
            "SYNCHRONIZE CACHE(10) lba 287454020 blocks 21862 immediate group 0x07"
        );
        assert_both_ways!(
            SynchronizeCache { width: CdbWidth::Sixteen, lba: 1, blocks: 2, group: 7 },
            [0x91, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 7, 0],
            "SYNCHRONIZE CACHE(16) lba 1 blocks 2 group 0x07"
        );
    }

    #[test]
    fn pre_fetch_both_ways_in_every_width() {
        assert_both_ways!(
            PreFetch { lba: 0x1122_3344, blocks: 0x5566, immediate: true, group: 7 },
            [0x34, 0x02, 0x11, 0x22, 0x33, 0x44, 7, 0x55, 0x66, 0],
            "PRE-FETCH(10) lba 287454020 blocks 21862 immediate group 0x07"
        );
        assert_both_ways!(
            PreFetch { width: CdbWidth::Sixteen, lba: 1, blocks: 2, immediate: true },
            [0x90, 0x02, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0],
            "PRE-FETCH(16) lba 1 blocks 2 immediate"
        );
    }
}
