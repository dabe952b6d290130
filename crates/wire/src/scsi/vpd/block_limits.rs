//! Block limits, page B0h (SBC-4): how large a command may be, and which sizes are good.

use super::header::{VpdPageCode, blank, whole_of};
use crate::DecodeError;
use crate::scsi::inquiry::Peripheral;
use crate::scsi::layout::{be16, be32, be64, bit, set_bit};
use core::fmt;

/// Limits and preferences; all lengths are in logical blocks, and zero is "not reported" or "no limit".
///
/// ```text
///  4      WSNZ (0)                             32..36  UGAVALID (31), unmap granularity alignment
///  5      maximum COMPARE AND WRITE length     36..44  maximum WRITE SAME length
///  6..8   optimal transfer length granularity  44..48  maximum atomic transfer length
///  8..12  maximum transfer length              48..52  atomic alignment
/// 12..16  optimal transfer length              52..56  atomic transfer length granularity
/// 16..20  maximum prefetch length              56..60  maximum atomic transfer length
/// 20..24  maximum unmap LBA count                      with atomic boundary
/// 24..28  maximum unmap descriptor count       60..64  maximum atomic boundary size
/// 28..32  optimal unmap granularity
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockLimits {
    /// WRITE SAME with a length of zero is refused.
    #[doc(alias = "WSNZ")]
    pub write_same_non_zero: bool,
    /// MAXIMUM COMPARE AND WRITE LENGTH; zero if the command is not supported.
    pub maximum_compare_and_write_length: u8,
    /// OPTIMAL TRANSFER LENGTH GRANULARITY.
    pub optimal_transfer_length_granularity: u16,
    /// MAXIMUM TRANSFER LENGTH of one command.
    pub maximum_transfer_length: u32,
    /// OPTIMAL TRANSFER LENGTH of one command.
    pub optimal_transfer_length: u32,
    /// MAXIMUM PREFETCH LENGTH of PRE-FETCH.
    pub maximum_prefetch_length: u32,
    /// MAXIMUM UNMAP LBA COUNT of one UNMAP; FFFF_FFFFh: no limit.
    pub maximum_unmap_lba_count: u32,
    /// MAXIMUM UNMAP BLOCK DESCRIPTOR COUNT of one UNMAP; FFFF_FFFFh: no limit.
    pub maximum_unmap_block_descriptor_count: u32,
    /// OPTIMAL UNMAP GRANULARITY.
    pub optimal_unmap_granularity: u32,
    /// UNMAP GRANULARITY ALIGNMENT (31 bits), if UGAVALID says that it counts.
    #[doc(alias = "UGAVALID")]
    pub unmap_granularity_alignment: Option<u32>,
    /// MAXIMUM WRITE SAME LENGTH.
    pub maximum_write_same_length: u64,
    /// MAXIMUM ATOMIC TRANSFER LENGTH.
    pub maximum_atomic_transfer_length: u32,
    /// ATOMIC ALIGNMENT.
    pub atomic_alignment: u32,
    /// ATOMIC TRANSFER LENGTH GRANULARITY.
    pub atomic_transfer_length_granularity: u32,
    /// MAXIMUM ATOMIC TRANSFER LENGTH WITH ATOMIC BOUNDARY.
    pub maximum_atomic_transfer_length_with_boundary: u32,
    /// MAXIMUM ATOMIC BOUNDARY SIZE.
    pub maximum_atomic_boundary_size: u32,
}

impl BlockLimits {
    /// Bytes with the header.
    pub const LEN: usize = 64;

    /// Decodes the page; fields past its end (it was 16 bytes long once) are zero.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let page: [u8; Self::LEN] = whole_of(VpdPageCode::BlockLimits, bytes)?;
        let alignment = be32::<32, _>(&page) & 0x7fff_ffff;
        Ok(Self {
            write_same_non_zero: bit::<0>(page[4]),
            maximum_compare_and_write_length: page[5],
            optimal_transfer_length_granularity: be16::<6, _>(&page),
            maximum_transfer_length: be32::<8, _>(&page),
            optimal_transfer_length: be32::<12, _>(&page),
            maximum_prefetch_length: be32::<16, _>(&page),
            maximum_unmap_lba_count: be32::<20, _>(&page),
            maximum_unmap_block_descriptor_count: be32::<24, _>(&page),
            optimal_unmap_granularity: be32::<28, _>(&page),
            unmap_granularity_alignment: bit::<7>(page[32]).then_some(alignment),
            maximum_write_same_length: be64::<36, _>(&page),
            maximum_atomic_transfer_length: be32::<44, _>(&page),
            atomic_alignment: be32::<48, _>(&page),
            atomic_transfer_length_granularity: be32::<52, _>(&page),
            maximum_atomic_transfer_length_with_boundary: be32::<56, _>(&page),
            maximum_atomic_boundary_size: be32::<60, _>(&page),
        })
    }

    /// The 64 bytes on the wire.
    pub fn encode(&self, peripheral: Peripheral) -> [u8; 64] {
        let mut out: [u8; Self::LEN] = blank(VpdPageCode::BlockLimits, peripheral);
        out[4] = set_bit::<0>(self.write_same_non_zero);
        out[5] = self.maximum_compare_and_write_length;
        out[6..8].copy_from_slice(&self.optimal_transfer_length_granularity.to_be_bytes());
        out[8..12].copy_from_slice(&self.maximum_transfer_length.to_be_bytes());
        out[12..16].copy_from_slice(&self.optimal_transfer_length.to_be_bytes());
        out[16..20].copy_from_slice(&self.maximum_prefetch_length.to_be_bytes());
        out[20..24].copy_from_slice(&self.maximum_unmap_lba_count.to_be_bytes());
        out[24..28].copy_from_slice(&self.maximum_unmap_block_descriptor_count.to_be_bytes());
        out[28..32].copy_from_slice(&self.optimal_unmap_granularity.to_be_bytes());
        let alignment = self.unmap_granularity_alignment.map_or(0, |blocks| blocks | 0x8000_0000);
        out[32..36].copy_from_slice(&alignment.to_be_bytes());
        out[36..44].copy_from_slice(&self.maximum_write_same_length.to_be_bytes());
        out[44..48].copy_from_slice(&self.maximum_atomic_transfer_length.to_be_bytes());
        out[48..52].copy_from_slice(&self.atomic_alignment.to_be_bytes());
        out[52..56].copy_from_slice(&self.atomic_transfer_length_granularity.to_be_bytes());
        out[56..60].copy_from_slice(&self.maximum_atomic_transfer_length_with_boundary.to_be_bytes());
        out[60..64].copy_from_slice(&self.maximum_atomic_boundary_size.to_be_bytes());
        out
    }
}

impl fmt::Display for BlockLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (transfer, unmap) = (self.maximum_transfer_length, self.maximum_unmap_lba_count);
        write!(f, "block limits: {transfer} blocks a transfer, {unmap} blocks an UNMAP")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: [u8; 64] = [
        0x00, 0xb0, 0x00, 0x3c, 0x01, 0x20, 0x00, 0x08, // WSNZ, 32 blocks, granularity 8
        0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x04, 0x00, // transfer: 65536, optimal 1024
        0x00, 0x00, 0x20, 0x00, 0x00, 0x40, 0x00, 0x00, // prefetch 8192, unmap 4194304
        0x00, 0x00, 0x00, 0xff, 0x00, 0x00, 0x00, 0x10, // 255 descriptors, granularity 16
        0x80, 0x00, 0x00, 0x03, 0x00, 0x00, 0x00, 0x01, // aligned to 3, WRITE SAME:
        0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x40, // 1_0000_0002h; atomic 64
        0x00, 0x00, 0x00, 0x08, 0x00, 0x00, 0x00, 0x04, // alignment 8, granularity 4
        0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x02, 0x00, // with boundary 256, boundary 512
    ];

    #[test]
    fn literal_bytes_both_ways() {
        let limits = BlockLimits {
            write_same_non_zero: true,
            maximum_compare_and_write_length: 32,
            optimal_transfer_length_granularity: 8,
            maximum_transfer_length: 65536,
            optimal_transfer_length: 1024,
            maximum_prefetch_length: 8192,
            maximum_unmap_lba_count: 4_194_304,
            maximum_unmap_block_descriptor_count: 255,
            optimal_unmap_granularity: 16,
            unmap_granularity_alignment: Some(3),
            maximum_write_same_length: 0x1_0000_0002,
            maximum_atomic_transfer_length: 64,
            atomic_alignment: 8,
            atomic_transfer_length_granularity: 4,
            maximum_atomic_transfer_length_with_boundary: 256,
            maximum_atomic_boundary_size: 512,
        };
        assert_eq!(BlockLimits::decode(&PAGE), Ok(limits));
        assert_eq!(limits.encode(Peripheral::DISK), PAGE);
    }

    #[test]
    fn an_alignment_that_is_not_valid_does_not_count() {
        let mut bytes = PAGE;
        bytes[32] = 0x00;
        assert_eq!(BlockLimits::decode(&bytes).unwrap().unmap_granularity_alignment, None);
    }

    #[test]
    fn the_short_page_of_sbc_2_reports_no_unmap() {
        let mut bytes = PAGE;
        bytes[3] = 0x0c;
        let limits = BlockLimits::decode(&bytes[..16]).unwrap();
        assert_eq!(limits.optimal_transfer_length, 1024);
        assert_eq!(limits.maximum_unmap_lba_count, 0);
        let error = DecodeError::Truncated { needed: 16, got: 15 };
        assert_eq!(BlockLimits::decode(&bytes[..15]), Err(error));
    }
}
