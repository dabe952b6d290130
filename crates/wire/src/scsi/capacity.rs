//! READ CAPACITY (10) and (16) parameter data (SBC-4).
//!
//! How large the unit is, how long its blocks are, and with (16) how they lie on the medium. Left out: the
//! provisioning details, which are in VPD page B2h.

use super::layout::{be16, be32, be64, bit, bits, set_bit, set_bits};
use crate::DecodeError;
use core::fmt;

/// READ CAPACITY (10) parameter data: eight bytes, last LBA and block length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity10 {
    /// RETURNED LOGICAL BLOCK ADDRESS: the last one; FFFF_FFFFh sends the reader to READ CAPACITY (16).
    pub last_lba: u32,
    /// LOGICAL BLOCK LENGTH in bytes.
    pub block_length: u32,
}

impl Capacity10 {
    /// Bytes on the wire.
    pub const LEN: usize = 8;

    /// Decodes the first eight bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let (whole, _) = bytes
            .split_first_chunk::<{ Self::LEN }>()
            .ok_or(DecodeError::Truncated { needed: Self::LEN, got: bytes.len() })?;
        Ok(Self { last_lba: be32::<0, _>(whole), block_length: be32::<4, _>(whole) })
    }

    /// The eight bytes on the wire.
    pub fn encode(&self) -> [u8; 8] {
        let mut out = [0; Self::LEN];
        out[..4].copy_from_slice(&self.last_lba.to_be_bytes());
        out[4..].copy_from_slice(&self.block_length.to_be_bytes());
        out
    }
}

impl fmt::Display for Capacity10 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "last LBA {}, blocks of {} bytes", self.last_lba, self.block_length)
    }
}

code! {
    /// P_TYPE: how protection information is checked, where PROT_EN is one.
    pub enum ProtectionType: u8 {
        /// Type 1: the reference tag is the LBA.
        Type1 = 0x00 => "type 1",
        /// Type 2: the command carries the expected reference tag.
        Type2 = 0x01 => "type 2",
        /// Type 3: the reference tag is not defined.
        Type3 = 0x02 => "type 3",
    }
}

/// READ CAPACITY (16) parameter data.
///
/// ```text
///  0..8   returned logical block address (the last one)
///  8..12  logical block length in bytes
/// 12      RC BASIS (5:4), P_TYPE (3:1), PROT_EN (0)
/// 13      P_I_EXPONENT (7:4), logical blocks per physical block exponent (3:0)
/// 14..16  LBPME (15), LBPRZ (14), lowest aligned logical block address (13:0)
/// 16..32  reserved
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity16 {
    /// The last LBA.
    pub last_lba: u64,
    /// LOGICAL BLOCK LENGTH in bytes.
    pub block_length: u32,
    /// RC BASIS, two bits; only a zoned device sets it.
    pub rc_basis: u8,
    /// The type of protection, if the unit is formatted with it.
    #[doc(alias = "PROT_EN")]
    #[doc(alias = "P_TYPE")]
    pub protection: Option<ProtectionType>,
    /// Protection information intervals per block, as a power of two (0 to 15).
    #[doc(alias = "P_I_EXPONENT")]
    pub protection_interval_exponent: u8,
    /// Logical blocks per physical block, as a power of two (0 to 15); 0: one or not reported.
    #[doc(alias = "LBPPBE")]
    pub physical_block_exponent: u8,
    /// Logical block provisioning management is enabled: UNMAP has an effect.
    #[doc(alias = "LBPME")]
    pub provisioning_management: bool,
    /// Unmapped blocks read as zeroes.
    #[doc(alias = "LBPRZ")]
    pub provisioning_reads_zeroes: bool,
    /// LOWEST ALIGNED LOGICAL BLOCK ADDRESS: the first that starts a physical block (14 bits).
    pub lowest_aligned_lba: u16,
}

impl Capacity16 {
    /// Bytes on the wire.
    pub const LEN: usize = 32;

    /// Decodes the first 32 bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let (whole, _) = bytes
            .split_first_chunk::<{ Self::LEN }>()
            .ok_or(DecodeError::Truncated { needed: Self::LEN, got: bytes.len() })?;
        let protection_type = ProtectionType::from(bits::<3, 1>(whole[12]));
        Ok(Self {
            last_lba: be64::<0, _>(whole),
            block_length: be32::<8, _>(whole),
            rc_basis: bits::<5, 4>(whole[12]),
            protection: bit::<0>(whole[12]).then_some(protection_type),
            protection_interval_exponent: bits::<7, 4>(whole[13]),
            physical_block_exponent: bits::<3, 0>(whole[13]),
            provisioning_management: bit::<7>(whole[14]),
            provisioning_reads_zeroes: bit::<6>(whole[14]),
            lowest_aligned_lba: be16::<14, _>(whole) & 0x3fff,
        })
    }

    /// The 32 bytes on the wire.
    pub fn encode(&self) -> [u8; 32] {
        let mut out = [0; Self::LEN];
        out[..8].copy_from_slice(&self.last_lba.to_be_bytes());
        out[8..12].copy_from_slice(&self.block_length.to_be_bytes());
        let protection_type = self.protection.map_or(0, u8::from);
        out[12] = set_bits::<5, 4>(self.rc_basis)
            | set_bits::<3, 1>(protection_type)
            | set_bit::<0>(self.protection.is_some());
        out[13] = set_bits::<7, 4>(self.protection_interval_exponent)
            | set_bits::<3, 0>(self.physical_block_exponent);
        let [high, low] = self.lowest_aligned_lba.to_be_bytes();
        out[14] = set_bit::<7>(self.provisioning_management)
            | set_bit::<6>(self.provisioning_reads_zeroes)
            | set_bits::<5, 0>(high);
        out[15] = low;
        out
    }
}

impl fmt::Display for Capacity16 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "last LBA {}, blocks of {} bytes", self.last_lba, self.block_length)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    /// 8 TiB of 512 bytes in 4096-byte physical blocks from LBA 7 on, type 2 protection, thin, zeroes.
    const THIN: [u8; 32] = [
        0x00, 0x00, 0x00, 0x03, 0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x02, 0x00, 0x03, 0x13, 0xc0, 0x07, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ];

    #[test]
    fn capacity_10_both_ways() {
        let bytes = [0x00, 0x1f, 0xff, 0xff, 0x00, 0x00, 0x10, 0x00];
        let capacity = Capacity10 { last_lba: 0x001f_ffff, block_length: 4096 };
        assert_eq!(Capacity10::decode(&bytes), Ok(capacity));
        assert_eq!(capacity.encode(), bytes);
        assert_eq!(capacity.to_string(), "last LBA 2097151, blocks of 4096 bytes");
    }

    #[test]
    fn capacity_16_both_ways() {
        let capacity = Capacity16 {
            last_lba: 0x3_ffff_ffff,
            block_length: 512,
            rc_basis: 0,
            protection: Some(ProtectionType::Type2),
            protection_interval_exponent: 1,
            physical_block_exponent: 3,
            provisioning_management: true,
            provisioning_reads_zeroes: true,
            lowest_aligned_lba: 7,
        };
        assert_eq!(Capacity16::decode(&THIN), Ok(capacity));
        assert_eq!(capacity.encode(), THIN);
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for len in 0..32 {
            let error = Capacity16::decode(&THIN[..len]).unwrap_err();
            assert_eq!(error, DecodeError::Truncated { needed: 32, got: len });
        }
        for len in 0..8 {
            let error = Capacity10::decode(&THIN[..len]).unwrap_err();
            assert_eq!(error, DecodeError::Truncated { needed: 8, got: len });
        }
    }

    #[test]
    fn a_type_without_protection_is_none() {
        let mut bytes = THIN;
        bytes[12] = 0x02;
        assert_eq!(Capacity16::decode(&bytes).unwrap().protection, None);
        bytes[12] = 0x0f;
        let unknown = Capacity16::decode(&bytes).unwrap();
        assert_eq!(unknown.protection, Some(ProtectionType::Unknown(7)));
        assert_eq!(unknown.encode(), bytes);
    }

    proptest! {
        #[test]
        fn what_decodes_round_trips(bytes: [u8; 32]) {
            let capacity = Capacity16::decode(&bytes).unwrap();
            prop_assert_eq!(Capacity16::decode(&capacity.encode()), Ok(capacity));
            let capacity = Capacity10::decode(&bytes).unwrap();
            prop_assert_eq!(&capacity.encode(), &bytes[..8]);
        }
    }
}
