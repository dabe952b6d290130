//! Writes that other commands see whole or not at all: COMPARE AND WRITE, ORWRITE(16), WRITE ATOMIC(16)
//! (SBC-4).

use super::field::{bit, bits, bytes};

cdb! {
    /// COMPARE AND WRITE (SBC-4): writes the second half of the data if the first is what is there.
    pub struct CompareAndWrite: "COMPARE AND WRITE" = Sixteen 0x89 {
        /// The first block.
        lba: u64 = bytes(2, 9),
        /// Blocks to compare and to write; twice as many come with the command.
        #[doc(alias = "NUMBER OF LOGICAL BLOCKS")]
        blocks: u8 = bytes(13, 13),
        /// Which protection information comes and is checked, 0..=7.
        #[doc(alias = "WRPROTECT")]
        protect: u8 = bits(1, 7, 5),
        /// The blocks are not worth keeping in the cache.
        dpo: bool = bit(1, 4),
        /// GOOD only once the blocks are on the medium.
        fua: bool = bit(1, 3),
        /// Group number 0..=63.
        group: u8 = bits(14, 5, 0),
    }
}

cdb! {
    /// ORWRITE(16) (SBC-4): ors the data into the blocks.
    pub struct OrWrite: "ORWRITE(16)" = Sixteen 0x8b {
        /// The first block.
        lba: u64 = bytes(2, 9),
        /// Blocks to change.
        #[doc(alias = "TRANSFER LENGTH")]
        blocks: u32 = bytes(10, 13),
        /// Which protection information comes and is checked, 0..=7.
        #[doc(alias = "ORPROTECT")]
        protect: u8 = bits(1, 7, 5),
        /// The blocks are not worth keeping in the cache.
        dpo: bool = bit(1, 4),
        /// GOOD only once the blocks are on the medium.
        fua: bool = bit(1, 3),
        /// Group number 0..=63.
        group: u8 = bits(14, 5, 0),
    }
}

cdb! {
    /// WRITE ATOMIC(16) (SBC-4): after a power loss all of the blocks are new, or none.
    pub struct WriteAtomic: "WRITE ATOMIC(16)" = Sixteen 0x9c {
        /// The first block.
        lba: u64 = bytes(2, 9),
        /// Blocks of each atomic write; zero makes the whole command one.
        atomic_boundary: u16 = bytes(10, 11),
        /// Blocks to write.
        #[doc(alias = "TRANSFER LENGTH")]
        blocks: u16 = bytes(12, 13),
        /// Which protection information comes and is checked, 0..=7.
        #[doc(alias = "WRPROTECT")]
        protect: u8 = bits(1, 7, 5),
        /// The blocks are not worth keeping in the cache.
        dpo: bool = bit(1, 4),
        /// GOOD only once the blocks are on the medium.
        fua: bool = bit(1, 3),
        /// Group number 0..=63.
        group: u8 = bits(14, 5, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compare_and_write_both_ways() {
        assert_both_ways!(
            CompareAndWrite {
                lba: 0x0102_0304_0506_0708,
                blocks: 1,
                protect: 5,
                dpo: true,
                fua: true,
                group: 2
            },
            [0x89, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 1, 2, 0],
            "COMPARE AND WRITE lba 72623859790382856 blocks 1 protect 0x05 dpo fua group 0x02"
        );
    }

    #[test]
    fn orwrite_both_ways() {
        assert_both_ways!(
            OrWrite { lba: 1, blocks: 0x1122_3344, protect: 1, dpo: true, fua: true, group: 2 },
            [0x8b, 0x38, 0, 0, 0, 0, 0, 0, 0, 1, 0x11, 0x22, 0x33, 0x44, 2, 0],
            "ORWRITE(16) lba 1 blocks 287454020 protect 0x01 dpo fua group 0x02"
        );
    }

    #[test]
    fn write_atomic_both_ways() {
        assert_both_ways!(
            WriteAtomic { lba: 1, atomic_boundary: 0x0102, blocks: 0x0304, protect: 1, fua: true, group: 2 },
            [0x9c, 0x28, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 3, 4, 2, 0],
            "WRITE ATOMIC(16) lba 1 atomic_boundary 258 blocks 772 protect 0x01 fua group 0x02"
        );
    }
}
