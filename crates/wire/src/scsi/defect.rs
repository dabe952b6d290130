//! READ DEFECT DATA (10) and (12) parameter data headers (SBC-4).
//!
//! ```text
//! (10)   1  PLISTV (4), GLISTV (3), defect list format (2:0)    2..4  defect list length
//! (12)   1  PLISTV (4), GLISTV (3), defect list format (2:0)    2..4  generation code
//!        4..8  defect list length
//! ```
//! The address descriptors that follow are left to whoever has defects.

use super::cdb::DefectListFormat;
use super::layout::{be16, be32, bit, bits, set_bit, set_bits};
use crate::{DecodeError, NoRoom, Writer};
use core::fmt;

/// What of the defect lists was returned. Whether the header is that of (12) is for the caller to say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DefectHeader {
    /// The primary list is there.
    #[doc(alias = "PLISTV")]
    pub primary: bool,
    /// The grown list is there.
    #[doc(alias = "GLISTV")]
    pub grown: bool,
    /// DEFECT LIST FORMAT, as in the CDB.
    pub format: DefectListFormat,
    /// GENERATION CODE; only in (12).
    pub generation: u16,
    /// DEFECT LIST LENGTH in bytes, of the whole list.
    pub defect_list_length: u32,
}

impl DefectHeader {
    /// Bytes of the header of (10).
    pub const LEN_10: usize = 4;
    /// Bytes of the header of (12).
    pub const LEN_12: usize = 8;

    /// Decodes the header at the front of `bytes`.
    pub fn decode(twelve: bool, bytes: &[u8]) -> Result<Self, DecodeError> {
        let needed = if twelve { Self::LEN_12 } else { Self::LEN_10 };
        let truncated = DecodeError::Truncated { needed, got: bytes.len() };
        let head = bytes.first_chunk::<4>().ok_or(truncated)?;
        let number = be16::<2, _>(head);
        let (generation, defect_list_length) = if twelve {
            (number, be32::<4, _>(bytes.first_chunk::<8>().ok_or(truncated)?))
        } else {
            (0, number.into())
        };
        Ok(Self {
            primary: bit::<4>(head[1]),
            grown: bit::<3>(head[1]),
            format: list_format(bits::<2, 0>(head[1])),
            generation,
            defect_list_length,
        })
    }

    /// Writes the header; the answer is the bytes written. A length past 65535 has no room in that of (10).
    pub fn encode(&self, twelve: bool, out: &mut [u8]) -> Result<usize, NoRoom> {
        let mut writer = Writer::new(out);
        let flags =
            set_bit::<4>(self.primary) | set_bit::<3>(self.grown) | set_bits::<2, 0>(self.format as u8);
        writer.put(&[0, flags])?;
        let length = self.defect_list_length;
        if twelve {
            writer.be16(self.generation)?;
            writer.be32(length)?;
        } else {
            let needed = usize::try_from(length).unwrap_or(usize::MAX);
            writer.be16(u16::try_from(length).map_err(|_| NoRoom { needed, got: u16::MAX.into() })?)?;
        }
        Ok(writer.written())
    }
}

/// The inverse of `as u8`.
const fn list_format(bits: u8) -> DefectListFormat {
    match bits {
        0 => DefectListFormat::ShortBlock,
        1 => DefectListFormat::ExtendedBytesFromIndex,
        2 => DefectListFormat::ExtendedPhysicalSector,
        3 => DefectListFormat::LongBlock,
        4 => DefectListFormat::BytesFromIndex,
        5 => DefectListFormat::PhysicalSector,
        6 => DefectListFormat::VendorSpecific,
        _ => DefectListFormat::Reserved,
    }
}

impl fmt::Display for DefectHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { primary, grown, defect_list_length, .. } = self;
        write!(f, "primary {primary}, grown {grown}, {defect_list_length} bytes of defects")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_both_ways() {
        let bytes = [0, 0x1d, 0x00, 0x08];
        let header = DefectHeader {
            primary: true,
            grown: true,
            format: DefectListFormat::PhysicalSector,
            generation: 0,
            defect_list_length: 8,
        };
        assert_eq!(DefectHeader::decode(false, &bytes), Ok(header));
        let mut out = [0xff; 4];
        assert_eq!(header.encode(false, &mut out), Ok(4));
        assert_eq!(out, bytes);
    }

    #[test]
    fn twelve_both_ways() {
        let bytes = [0, 0x0b, 0x00, 0x02, 0x00, 0x01, 0x00, 0x00];
        let header = DefectHeader {
            primary: false,
            grown: true,
            format: DefectListFormat::LongBlock,
            generation: 2,
            defect_list_length: 0x1_0000,
        };
        assert_eq!(DefectHeader::decode(true, &bytes), Ok(header));
        let mut out = [0xff; 8];
        assert_eq!(header.encode(true, &mut out), Ok(8));
        assert_eq!(out, bytes);
        assert_eq!(header.encode(false, &mut out), Err(NoRoom { needed: 0x1_0000, got: 65535 }));
    }

    #[test]
    fn every_format_survives() {
        for format in 0..8 {
            let header = DefectHeader::decode(false, &[0, format, 0, 0]).unwrap();
            let mut out = [0xff; 4];
            header.encode(false, &mut out).unwrap();
            assert_eq!(out, [0, format, 0, 0]);
        }
    }

    #[test]
    fn every_truncated_length_is_told() {
        for (twelve, needed) in [(false, 4), (true, 8)] {
            for got in 0..needed {
                let error = DecodeError::Truncated { needed, got };
                assert_eq!(DefectHeader::decode(twelve, &[0; 8][..got]), Err(error));
            }
        }
    }
}
