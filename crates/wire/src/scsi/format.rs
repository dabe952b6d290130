//! FORMAT UNIT parameter list header, short and long (SBC-4).
//!
//! ```text
//! short   0  protection field usage (2:0)    1  flags    2..4  defect list length
//! long    0  protection field usage (2:0)    1  flags    3     P_I_INFORMATION (7:4), P_I_EXPONENT (3:0)
//!         4..8  defect list length
//! flags   FOV (7), DPRY (6), DCRT (5), STPF (4), IP (3), IMMED (1)
//! ```
//! Left out: the initialization pattern descriptor that follows if IP is set, and the defect list.

use super::layout::{be16, be32, bit, bits, set_bit, set_bits};
use crate::{DecodeError, NoRoom, Writer};
use core::fmt;

/// How to format. Whether the header is long is the LONGLIST bit of the CDB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FormatHeader {
    /// PROTECTION FIELD USAGE, three bits.
    pub protection_field_usage: u8,
    /// The four options after this one count.
    #[doc(alias = "FOV")]
    pub format_options_valid: bool,
    /// The primary defect list is not used.
    #[doc(alias = "DPRY")]
    pub disable_primary: bool,
    /// No certification.
    #[doc(alias = "DCRT")]
    pub disable_certification: bool,
    /// The format stops if a defect list cannot be read.
    #[doc(alias = "STPF")]
    pub stop_format: bool,
    /// An initialization pattern descriptor follows.
    #[doc(alias = "IP")]
    pub initialization_pattern: bool,
    /// Status comes at once, the format goes on.
    #[doc(alias = "IMMED")]
    pub immediate: bool,
    /// P_I_INFORMATION, four bits; only in the long header.
    pub protection_interval_information: u8,
    /// PROTECTION INTERVAL EXPONENT, four bits; only in the long header.
    pub protection_interval_exponent: u8,
    /// DEFECT LIST LENGTH in bytes.
    pub defect_list_length: u32,
}

impl FormatHeader {
    /// Bytes of the short header.
    pub const SHORT_LEN: usize = 4;
    /// Bytes of the long header.
    pub const LONG_LEN: usize = 8;

    /// Decodes the header at the front of `bytes`.
    pub fn decode(long: bool, bytes: &[u8]) -> Result<Self, DecodeError> {
        let needed = if long { Self::LONG_LEN } else { Self::SHORT_LEN };
        let truncated = DecodeError::Truncated { needed, got: bytes.len() };
        let head = bytes.first_chunk::<4>().ok_or(truncated)?;
        let mut header = Self {
            protection_field_usage: bits::<2, 0>(head[0]),
            format_options_valid: bit::<7>(head[1]),
            disable_primary: bit::<6>(head[1]),
            disable_certification: bit::<5>(head[1]),
            stop_format: bit::<4>(head[1]),
            initialization_pattern: bit::<3>(head[1]),
            immediate: bit::<1>(head[1]),
            protection_interval_information: 0,
            protection_interval_exponent: 0,
            defect_list_length: be16::<2, _>(head).into(),
        };
        if long {
            let whole = bytes.first_chunk::<8>().ok_or(truncated)?;
            header.protection_interval_information = bits::<7, 4>(whole[3]);
            header.protection_interval_exponent = bits::<3, 0>(whole[3]);
            header.defect_list_length = be32::<4, _>(whole);
        }
        Ok(header)
    }

    /// Writes the header; the answer is the bytes written. A length past 65535 has no room in the short one.
    pub fn encode(&self, long: bool, out: &mut [u8]) -> Result<usize, NoRoom> {
        let mut writer = Writer::new(out);
        let flags = set_bit::<7>(self.format_options_valid)
            | set_bit::<6>(self.disable_primary)
            | set_bit::<5>(self.disable_certification)
            | set_bit::<4>(self.stop_format)
            | set_bit::<3>(self.initialization_pattern)
            | set_bit::<1>(self.immediate);
        writer.put(&[set_bits::<2, 0>(self.protection_field_usage), flags])?;
        let length = self.defect_list_length;
        if long {
            let protection = set_bits::<7, 4>(self.protection_interval_information)
                | set_bits::<3, 0>(self.protection_interval_exponent);
            writer.put(&[0, protection])?;
            writer.be32(length)?;
        } else {
            let needed = usize::try_from(length).unwrap_or(usize::MAX);
            writer.be16(u16::try_from(length).map_err(|_| NoRoom { needed, got: u16::MAX.into() })?)?;
        }
        Ok(writer.written())
    }
}

impl fmt::Display for FormatHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "format, immediate {}, {} bytes of defects", self.immediate, self.defect_list_length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_header_both_ways() {
        let bytes = [0x01, 0xa2, 0x00, 0x10];
        let header = FormatHeader {
            protection_field_usage: 1,
            format_options_valid: true,
            disable_certification: true,
            immediate: true,
            defect_list_length: 16,
            ..FormatHeader::default()
        };
        assert_eq!(FormatHeader::decode(false, &bytes), Ok(header));
        let mut out = [0xff; 4];
        assert_eq!(header.encode(false, &mut out), Ok(4));
        assert_eq!(out, bytes);
    }

    #[test]
    fn the_long_header_both_ways() {
        let bytes = [0x00, 0x58, 0x00, 0x12, 0x00, 0x01, 0x00, 0x00];
        let header = FormatHeader {
            disable_primary: true,
            stop_format: true,
            initialization_pattern: true,
            protection_interval_information: 1,
            protection_interval_exponent: 2,
            defect_list_length: 0x1_0000,
            ..FormatHeader::default()
        };
        assert_eq!(FormatHeader::decode(true, &bytes), Ok(header));
        let mut out = [0xff; 8];
        assert_eq!(header.encode(true, &mut out), Ok(8));
        assert_eq!(out, bytes);
        assert_eq!(header.encode(false, &mut out), Err(NoRoom { needed: 0x1_0000, got: 65535 }));
    }

    #[test]
    fn every_truncated_length_is_told() {
        for (long, needed) in [(false, 4), (true, 8)] {
            for got in 0..needed {
                let error = DecodeError::Truncated { needed, got };
                assert_eq!(FormatHeader::decode(long, &[0; 8][..got]), Err(error));
            }
        }
    }
}
