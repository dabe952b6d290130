//! Block device characteristics, page B1h (SBC-4): rotation, form factor and the like.

use super::header::{VpdPageCode, blank, whole_of};
use crate::DecodeError;
use crate::scsi::inquiry::Peripheral;
use crate::scsi::layout::{be16, be32, bit, bits, set_bit, set_bits};
use core::fmt;

/// Characteristics of the medium.
///
/// ```text
///  4..6   medium rotation rate
///  6      product type
///  7      WABEREQ (7:6), WACEREQ (5:4), nominal form factor (3:0)
///  8      ZONED (5:4), RBWZ (3), BOCS (2), FUAB (1), VBULS (0)
/// 12..16  depopulation time in seconds
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockDeviceCharacteristics {
    /// MEDIUM ROTATION RATE.
    pub rotation_rate: RotationRate,
    /// PRODUCT TYPE.
    pub product_type: ProductType,
    /// Result of a read after SANITIZE with BLOCK ERASE, before a write.
    #[doc(alias = "WABEREQ")]
    pub after_block_erase: AfterErase,
    /// Result of a read after SANITIZE with CRYPTOGRAPHIC ERASE, before a write.
    #[doc(alias = "WACEREQ")]
    pub after_cryptographic_erase: AfterErase,
    /// NOMINAL FORM FACTOR.
    pub form_factor: FormFactor,
    /// ZONED.
    pub zoned: Zoned,
    /// REASSIGN BLOCKS writes zeroes where it cannot recover what a block held.
    #[doc(alias = "RBWZ")]
    pub reassign_blocks_write_zero: bool,
    /// Background operation control is supported.
    #[doc(alias = "BOCS")]
    pub background_operation_control: bool,
    /// SYNCHRONIZE CACHE and FUA make earlier writes durable as SBC-4 asks, not only as SBC-2 did.
    #[doc(alias = "FUAB")]
    pub force_unit_access_behaviour: bool,
    /// VERIFY with BYTCHK and an unmapped LBA is supported.
    #[doc(alias = "VBULS")]
    pub verify_byte_check_unmapped: bool,
    /// DEPOPULATION TIME in seconds at most; 0: not reported.
    pub depopulation_time_s: u32,
}

/// MEDIUM ROTATION RATE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RotationRate {
    /// 0000h: not reported.
    NotReported,
    /// 0001h: does not rotate, such as a solid state drive.
    NonRotating,
    /// Revolutions per minute, 0401h to FFFEh; other values are reserved and preserved.
    Rpm(u16),
}

impl From<u16> for RotationRate {
    fn from(value: u16) -> Self {
        match value {
            0 => Self::NotReported,
            1 => Self::NonRotating,
            rpm => Self::Rpm(rpm),
        }
    }
}

impl From<RotationRate> for u16 {
    fn from(rate: RotationRate) -> u16 {
        match rate {
            RotationRate::NotReported => 0,
            RotationRate::NonRotating => 1,
            RotationRate::Rpm(rpm) => rpm,
        }
    }
}

code! {
    /// PRODUCT TYPE.
    pub enum ProductType: u8 {
        /// Not reported.
        NotIndicated = 0x00 => "not indicated",
        /// A CFast card.
        Cfast = 0x01 => "CFast",
        /// A CompactFlash card.
        CompactFlash = 0x02 => "CompactFlash",
        /// A Memory Stick.
        MemoryStick = 0x03 => "Memory Stick",
        /// A MultiMediaCard.
        MultiMediaCard = 0x04 => "MultiMediaCard",
        /// An SD card.
        SecureDigital = 0x05 => "SD card",
        /// An XQD card.
        Xqd = 0x06 => "XQD",
        /// Universal flash storage.
        Ufs = 0x07 => "UFS",
    }
}

code! {
    /// NOMINAL FORM FACTOR, four bits.
    pub enum FormFactor: u8 {
        /// Not reported.
        NotReported = 0x00 => "not reported",
        /// 5.25 inch.
        Inch5p25 = 0x01 => "5.25 inch",
        /// 3.5 inch.
        Inch3p5 = 0x02 => "3.5 inch",
        /// 2.5 inch.
        Inch2p5 = 0x03 => "2.5 inch",
        /// 1.8 inch.
        Inch1p8 = 0x04 => "1.8 inch",
        /// Smaller.
        LessThan1p8 = 0x05 => "less than 1.8 inch",
    }
}

code! {
    /// WABEREQ and WACEREQ, two bits: what a read of an erased block finds.
    pub enum AfterErase: u8 {
        /// Not reported.
        NotSpecified = 0x00 => "not specified",
        /// GOOD status and any bytes.
        Good = 0x01 => "good, any bytes",
        /// A medium error.
        MediumError = 0x02 => "medium error",
        /// A medium error that asks for a write: WRITE AFTER SANITIZE REQUIRED.
        WriteRequired = 0x03 => "write after sanitize required",
    }
}

code! {
    /// ZONED, two bits.
    pub enum Zoned: u8 {
        /// Not reported: not zoned, or host managed (see the device type).
        NotReported = 0x00 => "not reported",
        /// Host aware.
        HostAware = 0x01 => "host aware",
        /// Zoned inside, not outside.
        DeviceManaged = 0x02 => "device managed",
    }
}

impl BlockDeviceCharacteristics {
    /// Bytes with the header.
    pub const LEN: usize = 64;

    /// Decodes the page; fields past its end are zero.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let page: [u8; Self::LEN] = whole_of(VpdPageCode::BlockDeviceCharacteristics, bytes)?;
        Ok(Self {
            rotation_rate: be16::<4, _>(&page).into(),
            product_type: page[6].into(),
            after_block_erase: bits::<7, 6>(page[7]).into(),
            after_cryptographic_erase: bits::<5, 4>(page[7]).into(),
            form_factor: bits::<3, 0>(page[7]).into(),
            zoned: bits::<5, 4>(page[8]).into(),
            reassign_blocks_write_zero: bit::<3>(page[8]),
            background_operation_control: bit::<2>(page[8]),
            force_unit_access_behaviour: bit::<1>(page[8]),
            verify_byte_check_unmapped: bit::<0>(page[8]),
            depopulation_time_s: be32::<12, _>(&page),
        })
    }

    /// The 64 bytes on the wire.
    pub fn encode(&self, peripheral: Peripheral) -> [u8; 64] {
        let mut out: [u8; Self::LEN] = blank(VpdPageCode::BlockDeviceCharacteristics, peripheral);
        out[4..6].copy_from_slice(&u16::from(self.rotation_rate).to_be_bytes());
        out[6] = self.product_type.into();
        out[7] = set_bits::<7, 6>(self.after_block_erase.into())
            | set_bits::<5, 4>(self.after_cryptographic_erase.into())
            | set_bits::<3, 0>(self.form_factor.into());
        out[8] = set_bits::<5, 4>(self.zoned.into())
            | set_bit::<3>(self.reassign_blocks_write_zero)
            | set_bit::<2>(self.background_operation_control)
            | set_bit::<1>(self.force_unit_access_behaviour)
            | set_bit::<0>(self.verify_byte_check_unmapped);
        out[12..16].copy_from_slice(&self.depopulation_time_s.to_be_bytes());
        out
    }
}

impl fmt::Display for RotationRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotReported => f.write_str("rotation not reported"),
            Self::NonRotating => f.write_str("non-rotating"),
            Self::Rpm(rpm) => write!(f, "{rpm} rpm"),
        }
    }
}

impl fmt::Display for BlockDeviceCharacteristics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, form factor {}, zoned {}", self.rotation_rate, self.form_factor, self.zoned)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    fn page() -> [u8; 64] {
        let mut bytes = [0; 64];
        bytes[..16].copy_from_slice(&[
            0x00, 0xb1, 0x00, 0x3c, 0x1c, 0x20, 0x05, 0x93, 0x17, 0, 0, 0, 0, 0, 0x0e, 0x10,
        ]);
        bytes
    }

    #[test]
    fn literal_bytes_both_ways() {
        let characteristics = BlockDeviceCharacteristics {
            rotation_rate: RotationRate::Rpm(7200),
            product_type: ProductType::SecureDigital,
            after_block_erase: AfterErase::MediumError,
            after_cryptographic_erase: AfterErase::Good,
            form_factor: FormFactor::Inch2p5,
            zoned: Zoned::HostAware,
            reassign_blocks_write_zero: false,
            background_operation_control: true,
            force_unit_access_behaviour: true,
            verify_byte_check_unmapped: true,
            depopulation_time_s: 3600,
        };
        assert_eq!(BlockDeviceCharacteristics::decode(&page()), Ok(characteristics));
        assert_eq!(characteristics.encode(Peripheral::DISK), page());
        assert_eq!(characteristics.to_string(), "7200 rpm, form factor 2.5 inch, zoned host aware");
    }

    #[test]
    fn rotation_has_two_values_that_are_no_speed() {
        assert_eq!(RotationRate::from(0), RotationRate::NotReported);
        assert_eq!(RotationRate::from(1), RotationRate::NonRotating);
        for value in 0..=u16::MAX {
            assert_eq!(u16::from(RotationRate::from(value)), value);
        }
    }

    #[test]
    fn unknown_codes_survive() {
        let mut bytes = page();
        (bytes[6], bytes[7], bytes[8]) = (0xee, 0x0f, 0x30);
        let decoded = BlockDeviceCharacteristics::decode(&bytes).unwrap();
        assert_eq!(decoded.product_type, ProductType::Unknown(0xee));
        assert_eq!(decoded.form_factor, FormFactor::Unknown(15));
        assert_eq!(decoded.zoned, Zoned::Unknown(3));
        assert_eq!(decoded.encode(Peripheral::DISK), bytes);
    }
}
