//! LBA range entries of DATA SET MANAGEMENT with TRIM (ACS-4 clause 7.6.3).
//!
//! 64 of them fill a block of 512 bytes; the command's count field counts blocks.

use super::LBA_MASK;
use crate::DecodeError;
use core::fmt;

/// Sectors that the host no longer needs.
///
/// ```text
///  0..6  first LBA      6..8  sectors; 0 makes the entry empty
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrimRange {
    /// The first of them; 48 bits count.
    pub lba: u64,
    /// How many.
    pub sectors: u16,
}

impl TrimRange {
    /// Bytes on the wire.
    pub const LEN: usize = 8;

    /// Decodes the first entry of `bytes`.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let entry = bytes.first_chunk::<8>();
        let entry = entry.ok_or(DecodeError::Truncated { needed: Self::LEN, got: bytes.len() })?;
        let entry = u64::from_le_bytes(*entry);
        Ok(Self { lba: entry & LBA_MASK, sectors: (entry >> 48) as u16 })
    }

    /// The entries of a whole list that name sectors, in order; a part of an entry at the end does not count.
    pub fn list(bytes: &[u8]) -> impl Iterator<Item = Self> {
        bytes.chunks_exact(Self::LEN).flat_map(Self::decode).filter(|range| range.sectors != 0)
    }

    /// The bytes of the entry.
    pub const fn encode(&self) -> [u8; 8] {
        (self.lba & LBA_MASK | (self.sectors as u64) << 48).to_le_bytes()
    }
}

impl fmt::Display for TrimRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} sectors at LBA {}", self.sectors, self.lba)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;

    const ENTRY: [u8; 8] = [0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0x01, 0x80];

    #[test]
    fn literal_bytes_both_ways() {
        let range = TrimRange::decode(&ENTRY).unwrap();
        assert_eq!(range, TrimRange { lba: 0x1122_3344_5566, sectors: 0x8001 });
        assert_eq!(range.encode(), ENTRY);
    }

    #[test]
    fn empty_entries_are_left_out_of_a_list() {
        let mut block = [0; 512];
        block[8..16].copy_from_slice(&ENTRY);
        assert!(TrimRange::list(&block).eq([TrimRange { lba: 0x1122_3344_5566, sectors: 0x8001 }]));
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for got in 0..8 {
            let error = TrimRange::decode(&ENTRY[..got]).unwrap_err();
            assert_eq!(error, DecodeError::Truncated { needed: 8, got });
        }
    }

    proptest! {
        #[test]
        fn encode_undoes_decode(bytes: [u8; 8]) {
            prop_assert_eq!(TrimRange::decode(&bytes).unwrap().encode(), bytes);
        }
    }
}
