//! VERIFY and WRITE AND VERIFY, (10), (12) and (16) (SBC-4).

use super::field::{bit, bits, bytes};

cdb! {
    /// VERIFY (SBC-4): can the blocks be read, and are they what the host says?
    pub struct Verify, width: [
        "VERIFY(10)" = Ten 0x2f, "VERIFY(12)" = Twelve 0xaf, "VERIFY(16)" = Sixteen 0x8f,
    ] {
        /// The first block.
        lba: u64 = [bytes(2, 5), bytes(2, 5), bytes(2, 9)],
        /// Blocks to verify; how many come with the command depends on `byte_check`.
        #[doc(alias = "VERIFICATION LENGTH")]
        blocks: u32 = [bytes(7, 8), bytes(6, 9), bytes(10, 13)],
        /// Which protection information is checked, 0..=7.
        #[doc(alias = "VRPROTECT")]
        protect: u8 = [bits(1, 7, 5); 3],
        /// The blocks are not worth keeping in the cache.
        dpo: bool = [bit(1, 4); 3],
        /// Data to compare the blocks with.
        #[doc(alias = "BYTCHK")]
        byte_check: ByteCheck = [bits(1, 2, 1); 3],
        /// Group number 0..=63.
        group: u8 = [bits(6, 5, 0), bits(10, 5, 0), bits(14, 5, 0)],
    }
}

cdb! {
    /// WRITE AND VERIFY (SBC-4): blocks to the medium, then a look at the medium.
    pub struct WriteAndVerify, width: [
        "WRITE AND VERIFY(10)" = Ten 0x2e,
        "WRITE AND VERIFY(12)" = Twelve 0xae,
        "WRITE AND VERIFY(16)" = Sixteen 0x8e,
    ] {
        /// The first block.
        lba: u64 = [bytes(2, 5), bytes(2, 5), bytes(2, 9)],
        /// Blocks to write; all of them come with the command.
        #[doc(alias = "TRANSFER LENGTH")]
        blocks: u32 = [bytes(7, 8), bytes(6, 9), bytes(10, 13)],
        /// Which protection information comes and is checked, 0..=7.
        #[doc(alias = "WRPROTECT")]
        protect: u8 = [bits(1, 7, 5); 3],
        /// The blocks are not worth keeping in the cache.
        dpo: bool = [bit(1, 4); 3],
        /// Data to compare the blocks with; one block for all is reserved here.
        #[doc(alias = "BYTCHK")]
        byte_check: ByteCheck = [bits(1, 2, 1); 3],
        /// Group number 0..=63.
        group: u8 = [bits(6, 5, 0), bits(10, 5, 0), bits(14, 5, 0)],
    }
}

choice! {
    /// BYTCHK: what a verify operation compares the medium with (SBC-4).
    pub enum ByteCheck {
        /// Nothing: it need only be readable. VERIFY has no data.
        MediumOnly = 0 => "medium only",
        /// The data of the command, byte by byte.
        Data = 1 => "compare data",
        /// No meaning; an invalid field.
        Reserved = 2 => "reserved byte check",
        /// The data of the command, a single block, with each block.
        OneBlock = 3 => "compare one block",
    }
}

#[cfg(test)]
mod tests {
    use super::super::CdbWidth;
    use super::*;

    #[test]
    fn verify_both_ways_in_every_width() {
        assert_both_ways!(
            Verify {
                lba: 0x1122_3344,
                blocks: 0x5566,
                protect: 5,
                dpo: true,
                byte_check: ByteCheck::OneBlock,
                group: 9
            },
            [0x2f, 0xb6, 0x11, 0x22, 0x33, 0x44, 9, 0x55, 0x66, 0],
            "VERIFY(10) lba 287454020 blocks 21862 protect 0x05 dpo compare one block group 0x09"
        );
        assert_both_ways!(
            Verify { width: CdbWidth::Twelve, lba: 1, blocks: 2, byte_check: ByteCheck::Data, group: 1 },
            [0xaf, 0x02, 0, 0, 0, 1, 0, 0, 0, 2, 1, 0],
            "VERIFY(12) lba 1 blocks 2 compare data group 0x01"
        );
        assert_both_ways!(
            Verify { width: CdbWidth::Sixteen, lba: 1, blocks: 2, byte_check: ByteCheck::Reserved, group: 1 },
            [0x8f, 0x04, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 1, 0],
            "VERIFY(16) lba 1 blocks 2 reserved byte check group 0x01"
        );
    }

    #[test]
    fn write_and_verify_both_ways_in_every_width() {
        assert_both_ways!(
            WriteAndVerify {
                lba: 1,
                blocks: 2,
                protect: 1,
                dpo: true,
                byte_check: ByteCheck::Data,
                group: 3
            },
            [0x2e, 0x32, 0, 0, 0, 1, 3, 0, 2, 0],
            "WRITE AND VERIFY(10) lba 1 blocks 2 protect 0x01 dpo compare data group 0x03"
        );
        assert_both_ways!(
            WriteAndVerify { width: CdbWidth::Twelve, lba: 1, blocks: 2, group: 3 },
            [0xae, 0, 0, 0, 0, 1, 0, 0, 0, 2, 3, 0],
            "WRITE AND VERIFY(12) lba 1 blocks 2 group 0x03"
        );
        assert_both_ways!(
            WriteAndVerify { width: CdbWidth::Sixteen, lba: 1, blocks: 2, group: 3 },
            [0x8e, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 3, 0],
            "WRITE AND VERIFY(16) lba 1 blocks 2 group 0x03"
        );
    }
}
