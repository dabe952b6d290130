//! Many blocks at once without their data: WRITE SAME and UNMAP (SBC-4).

use super::field::Place::Absent;
use super::field::{bit, bits, bytes};

cdb! {
    /// WRITE SAME (SBC-4): one block of data to every block, or deallocation that reads the same.
    pub struct WriteSame, width: ["WRITE SAME(10)" = Ten 0x41, "WRITE SAME(16)" = Sixteen 0x93] {
        /// The first block.
        lba: u64 = [bytes(2, 5), bytes(2, 9)],
        /// Blocks to write; zero is as many as there are, unless the unit says otherwise (WSNZ).
        blocks: u32 = [bytes(7, 8), bytes(10, 13)],
        /// Which protection information comes and is checked, 0..=7.
        #[doc(alias = "WRPROTECT")]
        protect: u8 = [bits(1, 7, 5); 2],
        /// Blocks that are unmapped stay anchored.
        anchor: bool = [bit(1, 4); 2],
        /// The blocks may be unmapped if they then read as the data.
        unmap: bool = [bit(1, 3); 2],
        /// No data comes with the command: the block is all zeroes.
        #[doc(alias = "NDOB")]
        no_data_out: bool = [Absent, bit(1, 0)],
        /// Group number 0..=63.
        group: u8 = [bits(6, 5, 0), bits(14, 5, 0)],
    }
}

cdb! {
    /// UNMAP (SBC-4): gives back the extents in the parameter list.
    pub struct Unmap: "UNMAP" = Ten 0x42 {
        /// The blocks stay anchored.
        anchor: bool = bit(1, 0),
        /// Group number 0..=63.
        group: u8 = bits(6, 5, 0),
        /// Bytes of the parameter list; zero is no error and no extents.
        parameter_list_len: u16 = bytes(7, 8),
    }
}

#[cfg(test)]
mod tests {
    use super::super::CdbWidth;
    use super::*;

    #[test]
    fn write_same_both_ways_in_every_width() {
        assert_both_ways!(
            WriteSame { lba: 0x1122_3344, blocks: 0x5566, protect: 1, anchor: true, unmap: true, group: 5 },
            [0x41, 0x38, 0x11, 0x22, 0x33, 0x44, 5, 0x55, 0x66, 0],
            "WRITE SAME(10) lba 287454020 blocks 21862 protect 0x01 anchor unmap group 0x05"
        );
        assert_both_ways!(
            WriteSame {
                width: CdbWidth::Sixteen,
                lba: 1,
                blocks: 2,
                unmap: true,
                no_data_out: true,
                group: 5
            },
            [0x93, 0x09, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 5, 0],
            "WRITE SAME(16) lba 1 blocks 2 unmap no_data_out group 0x05"
        );
    }

    #[test]
    fn no_data_takes_the_wider_cdb() {
        let zeroes = WriteSame { no_data_out: true, ..WriteSame::default() };
        assert_eq!(zeroes.encode()[..2], [0x93, 0x01]);
    }

    #[test]
    fn unmap_both_ways() {
        assert_both_ways!(
            Unmap { anchor: true, group: 0x3f, parameter_list_len: 24 },
            [0x42, 0x01, 0, 0, 0, 0, 0x3f, 0, 24, 0],
            "UNMAP anchor group 0x3f parameter_list_len 24"
        );
    }
}
