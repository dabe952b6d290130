//! FORMAT UNIT parameter list (SBC-4 clause 5.4.2): its header, short or long, and the head of the initialization
//! pattern descriptor that may follow. Left out: defects.

use crate::scsi::layout::{bit, bits, set_bit, set_bits};
use crate::{DecodeError, NoRoom, Reader, Writer};

/// The header of the list.
///
/// ```text
///  0      protection field usage (2:0)
///  1      FOV (7), DPRY (6), DCRT (5), STPF (4), IP (3), IMMED (1)
///  2..4   short: defect list length
///  2      long: reserved
///  3      long: P_I_INFORMATION (7:4), protection interval exponent (3:0)
///  4..8   long: defect list length
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FormatList {
    /// Which protection information, with FMTPINFO of the CDB.
    pub protection_field_usage: u8,
    /// FOV: the five options that follow count.
    #[doc(alias = "FOV")]
    pub options_valid: bool,
    /// DPRY: the primary defects are not to be used.
    #[doc(alias = "DPRY")]
    pub disable_primary: bool,
    /// DCRT: no certification.
    #[doc(alias = "DCRT")]
    pub disable_certification: bool,
    /// STPF: stop if a defect list cannot be had.
    #[doc(alias = "STPF")]
    pub stop_format: bool,
    /// IP: an initialization pattern follows.
    #[doc(alias = "IP")]
    pub initialization_pattern: bool,
    /// IMMED: GOOD at once, the work follows.
    #[doc(alias = "IMMED")]
    pub immediate: bool,
    /// P_I_INFORMATION; long header only.
    pub protection_information: u8,
    /// PROTECTION INTERVAL EXPONENT; long header only.
    pub protection_interval_exponent: u8,
    /// DEFECT LIST LENGTH in bytes.
    pub defect_list_len: u32,
}

impl FormatList {
    /// Bytes of the short header.
    pub const SHORT_LEN: usize = 4;
    /// Bytes of the long header.
    pub const LONG_LEN: usize = 8;

    /// Bytes of the header, `long` or not (LONGLIST of the CDB).
    pub const fn header_len(long: bool) -> usize {
        if long { Self::LONG_LEN } else { Self::SHORT_LEN }
    }

    /// Decodes the header.
    pub fn decode(long: bool, bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let (usage, options) = (reader.u8()?, reader.u8()?);
        let (intervals, defect_list_len) = match long {
            true => {
                reader.u8()?;
                (reader.u8()?, reader.be32()?)
            }
            false => (0, reader.be16()?.into()),
        };
        Ok(Self {
            protection_field_usage: bits::<2, 0>(usage),
            options_valid: bit::<7>(options),
            disable_primary: bit::<6>(options),
            disable_certification: bit::<5>(options),
            stop_format: bit::<4>(options),
            initialization_pattern: bit::<3>(options),
            immediate: bit::<1>(options),
            protection_information: bits::<7, 4>(intervals),
            protection_interval_exponent: bits::<3, 0>(intervals),
            defect_list_len,
        })
    }

    /// Writes the header and says how many bytes that took. A short one cuts the defect list length to 16 bits.
    pub fn encode(&self, long: bool, out: &mut [u8]) -> Result<usize, NoRoom> {
        let mut writer = Writer::new(out);
        writer.u8(set_bits::<2, 0>(self.protection_field_usage))?;
        writer.u8(set_bit::<7>(self.options_valid)
            | set_bit::<6>(self.disable_primary)
            | set_bit::<5>(self.disable_certification)
            | set_bit::<4>(self.stop_format)
            | set_bit::<3>(self.initialization_pattern)
            | set_bit::<1>(self.immediate))?;
        if long {
            writer.u8(0)?;
            writer.u8(set_bits::<7, 4>(self.protection_information)
                | set_bits::<3, 0>(self.protection_interval_exponent))?;
            writer.be32(self.defect_list_len)?;
        } else {
            writer.be16(self.defect_list_len as u16)?;
        }
        Ok(writer.written())
    }
}

/// The initialization pattern descriptor, without the pattern, which follows (SBC-4 clause 5.4.2.3).
///
/// ```text
///  0      IP MODIFIER (7:6, obsolete), SI (5)   2..4  initialization pattern length
///  1      initialization pattern type           4..   initialization pattern
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitializationPattern {
    /// IP MODIFIER, two bits: obsolete, and zero.
    pub modifier: u8,
    /// SI: also what is reassigned or otherwise out of reach is to be written.
    #[doc(alias = "SI")]
    pub security_initialize: bool,
    /// Where the pattern comes from.
    pub pattern_type: PatternType,
    /// INITIALIZATION PATTERN LENGTH in bytes.
    pub length: u16,
}

code! {
    /// INITIALIZATION PATTERN TYPE (SBC-4).
    pub enum PatternType: u8 {
        /// The device's own pattern.
        Default = 0x00 => "default pattern",
        /// The pattern of the descriptor, repeated.
        Repeated = 0x01 => "repeated pattern",
    }
}

impl InitializationPattern {
    /// Bytes before the pattern.
    pub const LEN: usize = 4;

    /// Decodes the head of the descriptor.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let [flags, pattern_type] = reader.array()?;
        Ok(Self {
            modifier: bits::<7, 6>(flags),
            security_initialize: bit::<5>(flags),
            pattern_type: pattern_type.into(),
            length: reader.be16()?,
        })
    }

    /// The bytes of the head.
    pub fn encode(&self) -> [u8; Self::LEN] {
        let [high, low] = self.length.to_be_bytes();
        let flags = set_bits::<7, 6>(self.modifier) | set_bit::<5>(self.security_initialize);
        [flags, self.pattern_type.into(), high, low]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_descriptor_both_ways() {
        let head = InitializationPattern {
            modifier: 2,
            security_initialize: true,
            pattern_type: PatternType::Repeated,
            length: 0x0204,
        };
        assert_eq!(InitializationPattern::decode(&[0xa0, 0x01, 2, 4, 0x55]), Ok(head));
        assert_eq!(head.encode(), [0xa0, 0x01, 2, 4]);
        assert_eq!(
            InitializationPattern::decode(&[0, 0x7f, 0, 0]).map(|head| head.encode()),
            Ok([0, 0x7f, 0, 0])
        );
        for got in 0..4 {
            let error = InitializationPattern::decode(&[0; 4][..got]).unwrap_err();
            assert!(matches!(error, DecodeError::Truncated { .. }));
        }
    }

    #[test]
    fn a_short_header_both_ways() {
        let list = FormatList {
            options_valid: true,
            disable_certification: true,
            immediate: true,
            defect_list_len: 0x0102,
            ..FormatList::default()
        };
        assert_eq!(FormatList::decode(false, &[0, 0xa2, 1, 2]), Ok(list));
        let mut out = [0xff; 4];
        assert_eq!(list.encode(false, &mut out), Ok(4));
        assert_eq!(out, [0, 0xa2, 1, 2]);
    }

    #[test]
    fn a_long_header_both_ways() {
        let list = FormatList {
            protection_field_usage: 5,
            disable_primary: true,
            stop_format: true,
            initialization_pattern: true,
            protection_information: 1,
            protection_interval_exponent: 3,
            defect_list_len: 0x0102_0304,
            ..FormatList::default()
        };
        let bytes = [5, 0x58, 0, 0x13, 1, 2, 3, 4];
        assert_eq!(FormatList::decode(true, &bytes), Ok(list));
        let mut out = [0xff; 8];
        assert_eq!(list.encode(true, &mut out), Ok(8));
        assert_eq!(out, bytes);
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for (long, whole) in [(false, 4), (true, 8)] {
            for len in 0..whole {
                let error = FormatList::decode(long, &[0; 8][..len]).unwrap_err();
                assert!(matches!(error, DecodeError::Truncated { got, .. } if got == len));
            }
        }
    }
}
