//! How large is the unit, and which of its blocks are mapped (SBC-4).
//!
//! READ CAPACITY(10) and (16) answer with different data and are two commands here. Their PMI bit and
//! LBA are obsolete since SBC-3; they are decoded, because SBC-2 has a unit refuse an LBA without PMI.

use super::field::{bit, bytes};

cdb! {
    /// READ CAPACITY(10) (SBC-4): the last LBA in 32 bits, the block length.
    pub struct ReadCapacity10: "READ CAPACITY(10)" = Ten 0x25 {
        /// Obsolete: where to look from, with PMI.
        lba: u32 = bytes(2, 5),
        /// Obsolete: partial medium indicator.
        #[doc(alias = "PMI")]
        partial_medium: bool = bit(8, 0),
    }
}

cdb! {
    /// READ CAPACITY(16) (SBC-4): the last LBA in 64 bits, block lengths, protection, provisioning.
    pub struct ReadCapacity16: "READ CAPACITY(16)" = Sixteen 0x9e / 0x10 {
        /// Obsolete: where to look from, with PMI.
        lba: u64 = bytes(2, 9),
        /// Bytes that the host has room for.
        allocation_len: u32 = bytes(10, 13),
        /// Obsolete: partial medium indicator.
        #[doc(alias = "PMI")]
        partial_medium: bool = bit(14, 0),
    }
}

cdb! {
    /// GET LBA STATUS (SBC-4): mapped, deallocated or anchored, extent by extent.
    pub struct GetLbaStatus: "GET LBA STATUS" = Sixteen 0x9e / 0x12 {
        /// The first block of the first extent.
        lba: u64 = bytes(2, 9),
        /// Bytes that the host has room for; less than 24 is an error.
        allocation_len: u32 = bytes(10, 13),
        /// Which extents are wanted; zero is all.
        report_type: u8 = bytes(14, 14),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_capacity_10_both_ways() {
        assert_both_ways!(
            ReadCapacity10 { lba: 0x0102_0304, partial_medium: true },
            [0x25, 0, 1, 2, 3, 4, 0, 0, 1, 0],
            "READ CAPACITY(10) lba 16909060 partial_medium"
        );
    }

    #[test]
    fn read_capacity_16_both_ways() {
        assert_both_ways!(
            ReadCapacity16 { lba: 7, allocation_len: 32, partial_medium: true },
            [0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 32, 1, 0],
            "READ CAPACITY(16) lba 7 allocation_len 32 partial_medium"
        );
    }

    #[test]
    fn get_lba_status_both_ways() {
        assert_both_ways!(
            GetLbaStatus { lba: 0x0102_0304_0506_0708, allocation_len: 0x0a0b_0c0d, report_type: 2 },
            [0x9e, 0x12, 1, 2, 3, 4, 5, 6, 7, 8, 0x0a, 0x0b, 0x0c, 0x0d, 2, 0],
            "GET LBA STATUS lba 72623859790382856 allocation_len 168496141 report_type 0x02"
        );
    }
}
