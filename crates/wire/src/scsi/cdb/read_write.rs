//! READ and WRITE, (6), (10), (12) and (16) (SBC-4).
//!
//! The six-byte commands say 256 blocks with a length of zero; in the others zero is no blocks, which is
//! not an error. Left out: duration limits (DLD bits) and the obsolete FUA_NV.

use super::field::Place::{Absent, ByteOr256};
use super::field::{LBA_21, bit, bits, bytes};

cdb! {
    /// READ (SBC-4): blocks from the medium to the host.
    pub struct Read, width: [
        "READ(6)" = Six 0x08, "READ(10)" = Ten 0x28, "READ(12)" = Twelve 0xa8, "READ(16)" = Sixteen 0x88,
    ] {
        /// The first block.
        lba: u64 = [LBA_21, bytes(2, 5), bytes(2, 5), bytes(2, 9)],
        /// Blocks to read; 256 is a zero in READ(6).
        #[doc(alias = "TRANSFER LENGTH")]
        blocks: u32 = [ByteOr256(4), bytes(7, 8), bytes(6, 9), bytes(10, 13)],
        /// Which protection information is checked and sent, 0..=7.
        #[doc(alias = "RDPROTECT")]
        protect: u8 = [Absent, bits(1, 7, 5), bits(1, 7, 5), bits(1, 7, 5)],
        /// The blocks are not worth keeping in the cache.
        dpo: bool = [Absent, bit(1, 4), bit(1, 4), bit(1, 4)],
        /// From the medium, not from a volatile cache.
        fua: bool = [Absent, bit(1, 3), bit(1, 3), bit(1, 3)],
        /// Rather an error than a long recovery.
        rarc: bool = [Absent, bit(1, 2), bit(1, 2), bit(1, 2)],
        /// Group number 0..=63.
        group: u8 = [Absent, bits(6, 5, 0), bits(10, 5, 0), bits(14, 5, 0)],
    }
}

cdb! {
    /// WRITE (SBC-4): blocks from the host to the medium.
    pub struct Write, width: [
        "WRITE(6)" = Six 0x0a, "WRITE(10)" = Ten 0x2a, "WRITE(12)" = Twelve 0xaa, "WRITE(16)" = Sixteen 0x8a,
    ] {
        /// The first block.
        lba: u64 = [LBA_21, bytes(2, 5), bytes(2, 5), bytes(2, 9)],
        /// Blocks to write; 256 is a zero in WRITE(6).
        #[doc(alias = "TRANSFER LENGTH")]
        blocks: u32 = [ByteOr256(4), bytes(7, 8), bytes(6, 9), bytes(10, 13)],
        /// Which protection information comes and is checked, 0..=7.
        #[doc(alias = "WRPROTECT")]
        protect: u8 = [Absent, bits(1, 7, 5), bits(1, 7, 5), bits(1, 7, 5)],
        /// The blocks are not worth keeping in the cache.
        dpo: bool = [Absent, bit(1, 4), bit(1, 4), bit(1, 4)],
        /// GOOD only once the blocks are on the medium.
        fua: bool = [Absent, bit(1, 3), bit(1, 3), bit(1, 3)],
        /// Group number 0..=63.
        group: u8 = [Absent, bits(6, 5, 0), bits(10, 5, 0), bits(14, 5, 0)],
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Cdb, CdbWidth};
    use super::*;
    use crate::DecodeError;
    use proptest::prelude::*;

    #[test]
    fn read_6_both_ways() {
        assert_both_ways!(
            Read { width: CdbWidth::Six, lba: 0x1f_2233, blocks: 8 },
            [0x08, 0x1f, 0x22, 0x33, 8, 0],
            "READ(6) lba 2040371 blocks 8"
        );
    }

    #[test]
    fn read_6_of_no_blocks_is_256() {
        assert_both_ways!(
            Read { width: CdbWidth::Six, lba: 1, blocks: 256 },
            [0x08, 0, 0, 1, 0, 0],
            "READ(6) lba 1 blocks 256"
        );
        assert_both_ways!(
            Write { width: CdbWidth::Six, lba: 1, blocks: 256 },
            [0x0a, 0, 0, 1, 0, 0],
            "WRITE(6) lba 1 blocks 256"
        );
    }

    #[test]
    fn read_10_both_ways() {
        assert_both_ways!(
            Read {
                lba: 0x1122_3344,
                blocks: 0x5566,
                protect: 5,
                dpo: true,
                fua: true,
                rarc: true,
                group: 0x3f,
            },
            [0x28, 0xbc, 0x11, 0x22, 0x33, 0x44, 0x3f, 0x55, 0x66, 0],
            "READ(10) lba 287454020 blocks 21862 protect 0x05 dpo fua rarc group 0x3f"
        );
    }

    #[test]
    fn read_12_both_ways() {
        assert_both_ways!(
            Read { width: CdbWidth::Twelve, lba: 0x1122_3344, blocks: 0x5566_7788, fua: true, group: 1 },
            [0xa8, 0x08, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x01, 0],
            "READ(12) lba 287454020 blocks 1432778632 fua group 0x01"
        );
    }

    #[test]
    fn read_16_both_ways() {
        assert_both_ways!(
            Read { width: CdbWidth::Sixteen, lba: 0x0102_0304_0506_0708, blocks: 0x1122_3344, dpo: true },
            [0x88, 0x10, 1, 2, 3, 4, 5, 6, 7, 8, 0x11, 0x22, 0x33, 0x44, 0, 0],
            "READ(16) lba 72623859790382856 blocks 287454020 dpo"
        );
    }

    #[test]
    fn write_both_ways_in_every_width() {
        assert_both_ways!(
            Write { lba: 0x1122_3344, blocks: 0x5566, protect: 1, dpo: true, fua: true, group: 2 },
            [0x2a, 0x38, 0x11, 0x22, 0x33, 0x44, 2, 0x55, 0x66, 0],
            "WRITE(10) lba 287454020 blocks 21862 protect 0x01 dpo fua group 0x02"
        );
        assert_both_ways!(
            Write { width: CdbWidth::Twelve, lba: 1, blocks: 2, fua: true },
            [0xaa, 0x08, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0],
            "WRITE(12) lba 1 blocks 2 fua"
        );
        assert_both_ways!(
            Write { width: CdbWidth::Sixteen, lba: 1, blocks: 2, group: 0x3f },
            [0x8a, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0x3f, 0],
            "WRITE(16) lba 1 blocks 2 group 0x3f"
        );
    }

    #[test]
    fn a_cdb_widens_until_it_says_everything() {
        let opcode_and_len = |cdb: Cdb| (cdb[0], cdb.len());
        let read = Read { width: CdbWidth::Six, blocks: 1, ..Read::default() };
        assert_eq!(opcode_and_len(read.encode()), (0x08, 6));
        assert_eq!(opcode_and_len(Read { blocks: 0, ..read }.encode()), (0x28, 10));
        assert_eq!(opcode_and_len(Read { fua: true, ..read }.encode()), (0x28, 10));
        assert_eq!(opcode_and_len(Read { lba: 0x20_0000, ..read }.encode()), (0x28, 10));
        assert_eq!(opcode_and_len(Read { blocks: 0x1_0000, ..read }.encode()), (0xa8, 12));
        assert_eq!(opcode_and_len(Read { lba: 0x1_0000_0000, ..read }.encode()), (0x88, 16));
    }

    #[test]
    fn a_write_is_no_read() {
        let error = DecodeError::WrongKind { expected: 0x08, found: 0x2a };
        assert_eq!(Read::decode(&[0x2a; 10]), Err(error));
    }

    proptest! {
        #[test]
        fn whatever_the_width_no_bit_of_a_write_is_lost(
            lba: u64, blocks: u32, small: bool, flags: [bool; 2], protect in 0u8..8, group in 0u8..64,
        ) {
            let (lba, blocks) = if small { (lba >> 40, blocks >> 20) } else { (lba, blocks) };
            let [dpo, fua] = flags;
            let write = Write { lba, blocks, protect, dpo, fua, group, width: CdbWidth::Six, ..Write::default() };
            let decoded = Write::decode(&write.encode()).unwrap();
            prop_assert_eq!(decoded, Write { width: decoded.width, ..write });
        }
    }
}
