//! READ DEFECT DATA parameter data (SBC-4 clauses 5.22 and 5.23): the headers before the defects.

use crate::DecodeError;
use crate::scsi::layout::{be16, be32, bit, bits, set_bit, set_bits};
use core::fmt;

/// Header of READ DEFECT DATA(10).
///
/// ```text
///  0      reserved
///  1      PLISTV (4), GLISTV (3), defect list format (2:0)
///  2..4   defect list length
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DefectListHeader10 {
    /// The primary list is in it.
    #[doc(alias = "PLISTV")]
    pub primary: bool,
    /// The grown list is in it.
    #[doc(alias = "GLISTV")]
    pub grown: bool,
    /// Form of the defects, three bits.
    pub format: u8,
    /// Bytes of the defects that follow.
    pub list_len: u16,
}

/// Header of READ DEFECT DATA(12).
///
/// ```text
///  0      reserved
///  1      PLISTV (4), GLISTV (3), defect list format (2:0)
///  2..4   generation code
///  4..8   defect list length
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DefectListHeader12 {
    /// The primary list is in it.
    #[doc(alias = "PLISTV")]
    pub primary: bool,
    /// The grown list is in it.
    #[doc(alias = "GLISTV")]
    pub grown: bool,
    /// Form of the defects, three bits.
    pub format: u8,
    /// Counts changes of the lists; zero: not counted.
    pub generation: u16,
    /// Bytes of the defects that follow.
    pub list_len: u32,
}

impl DefectListHeader10 {
    /// Bytes on the wire.
    pub const LEN: usize = 4;

    /// Decodes the first four bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let (whole, _) = bytes
            .split_first_chunk::<{ Self::LEN }>()
            .ok_or(DecodeError::Truncated { needed: Self::LEN, got: bytes.len() })?;
        Ok(Self {
            primary: bit::<4>(whole[1]),
            grown: bit::<3>(whole[1]),
            format: bits::<2, 0>(whole[1]),
            list_len: be16::<2, _>(whole),
        })
    }

    /// The four bytes on the wire.
    pub fn encode(&self) -> [u8; 4] {
        let [high, low] = self.list_len.to_be_bytes();
        [0, lists(self.primary, self.grown, self.format), high, low]
    }
}

impl DefectListHeader12 {
    /// Bytes on the wire.
    pub const LEN: usize = 8;

    /// Decodes the first eight bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let (whole, _) = bytes
            .split_first_chunk::<{ Self::LEN }>()
            .ok_or(DecodeError::Truncated { needed: Self::LEN, got: bytes.len() })?;
        Ok(Self {
            primary: bit::<4>(whole[1]),
            grown: bit::<3>(whole[1]),
            format: bits::<2, 0>(whole[1]),
            generation: be16::<2, _>(whole),
            list_len: be32::<4, _>(whole),
        })
    }

    /// The eight bytes on the wire.
    pub fn encode(&self) -> [u8; 8] {
        let mut out = [0; Self::LEN];
        out[1] = lists(self.primary, self.grown, self.format);
        out[2..4].copy_from_slice(&self.generation.to_be_bytes());
        out[4..].copy_from_slice(&self.list_len.to_be_bytes());
        out
    }
}

impl fmt::Display for DefectListHeader10 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(self.primary, self.grown, self.list_len.into(), f)
    }
}

impl fmt::Display for DefectListHeader12 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(self.primary, self.grown, self.list_len, f)
    }
}

fn show(primary: bool, grown: bool, len: u32, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let lists = match (primary, grown) {
        (true, true) => "primary and grown list",
        (true, false) => "primary list",
        (false, true) => "grown list",
        (false, false) => "no list",
    };
    write!(f, "{lists}, {len} bytes of defects")
}

fn lists(primary: bool, grown: bool, format: u8) -> u8 {
    set_bit::<4>(primary) | set_bit::<3>(grown) | set_bits::<2, 0>(format)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_both_ways() {
        let ten = DefectListHeader10 { primary: true, grown: false, format: 5, list_len: 0x1234 };
        assert_eq!(ten.encode(), [0, 0x15, 0x12, 0x34]);
        assert_eq!(DefectListHeader10::decode(&[0, 0x15, 0x12, 0x34]), Ok(ten));
        let twelve =
            DefectListHeader12 { primary: false, grown: true, format: 3, generation: 1, list_len: 0x1_0002 };
        assert_eq!(twelve.encode(), [0, 0x0b, 0, 1, 0, 1, 0, 2]);
        assert_eq!(DefectListHeader12::decode(&[0, 0x0b, 0, 1, 0, 1, 0, 2]), Ok(twelve));
    }

    #[test]
    fn a_header_reads_as_a_line() {
        extern crate std;
        use std::string::ToString;
        let ten = DefectListHeader10 { primary: true, grown: false, format: 5, list_len: 8 };
        assert_eq!(ten.to_string(), "primary list, 8 bytes of defects");
        let twelve = DefectListHeader12 { primary: true, grown: true, format: 5, generation: 0, list_len: 0 };
        assert_eq!(twelve.to_string(), "primary and grown list, 0 bytes of defects");
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for len in 0..4 {
            let error = DecodeError::Truncated { needed: 4, got: len };
            assert_eq!(DefectListHeader10::decode(&[0; 4][..len]), Err(error));
        }
        for len in 0..8 {
            let error = DecodeError::Truncated { needed: 8, got: len };
            assert_eq!(DefectListHeader12::decode(&[0; 8][..len]), Err(error));
        }
    }
}
