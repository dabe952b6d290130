//! Mode parameter header, six and ten byte form (SPC-5, mode parameter header formats; SBC-4).
//!
//! ```text
//! form   length  medium type  device specific  LONGLBA  block descriptor length
//!  (6)   0       1            2                -        3
//! (10)   0..2    2            3                4 (0)    6..8
//! ```

use crate::scsi::layout::{be16, bit, set_bit};
use crate::{DecodeError, NoRoom, Writer};
use core::fmt;

/// Which MODE SENSE or MODE SELECT command the list belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModeForm {
    /// MODE SENSE (6), MODE SELECT (6): a header of four bytes.
    Six,
    /// MODE SENSE (10), MODE SELECT (10): a header of eight bytes.
    Ten,
}

impl ModeForm {
    /// Bytes of the header.
    pub const fn header_len(self) -> usize {
        match self {
            Self::Six => 4,
            Self::Ten => 8,
        }
    }

    /// Bytes of the list, header and all, of which MODE DATA LENGTH says `mode_data_length`.
    pub fn total_len(self, mode_data_length: u16) -> usize {
        let field_len = match self {
            Self::Six => 1,
            Self::Ten => 2,
        };
        usize::from(mode_data_length) + field_len
    }

    /// MODE DATA LENGTH, if `total` bytes (header and all) can be said: it does not count its own field.
    pub fn mode_data_length(self, total: usize) -> Option<u16> {
        match self {
            Self::Six => u8::try_from(total.checked_sub(1)?).ok().map(u16::from),
            Self::Ten => u16::try_from(total.checked_sub(2)?).ok(),
        }
    }
}

/// Mode parameter header: precedes block descriptors and pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModeHeader {
    /// MODE DATA LENGTH: bytes that follow the field; zero (reserved) in MODE SELECT.
    pub mode_data_length: u16,
    /// MEDIUM TYPE; zero for a disk.
    pub medium_type: u8,
    /// DEVICE-SPECIFIC PARAMETER of a disk.
    pub device_specific: DeviceSpecific,
    /// LONGLBA: block descriptors are long; never set in the six byte form.
    pub long_lba: bool,
    /// BLOCK DESCRIPTOR LENGTH: bytes of all block descriptors.
    pub block_descriptor_length: u16,
}

/// DEVICE-SPECIFIC PARAMETER of a direct access block device (SBC-4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceSpecific {
    /// The medium is write protected; means nothing in MODE SELECT.
    #[doc(alias = "WP")]
    pub write_protected: bool,
    /// DPO and FUA bits of CDBs are supported; reserved in MODE SELECT.
    #[doc(alias = "DPOFUA")]
    pub dpo_fua: bool,
}

impl DeviceSpecific {
    /// From the byte on the wire; reserved bits are lost.
    pub const fn from_byte(byte: u8) -> Self {
        Self { write_protected: bit::<7>(byte), dpo_fua: bit::<4>(byte) }
    }

    /// The byte on the wire.
    pub const fn byte(self) -> u8 {
        set_bit::<7>(self.write_protected) | set_bit::<4>(self.dpo_fua)
    }
}

impl ModeHeader {
    /// Decodes the header at the front of `bytes`.
    pub fn decode(form: ModeForm, bytes: &[u8]) -> Result<Self, DecodeError> {
        let truncated = DecodeError::Truncated { needed: form.header_len(), got: bytes.len() };
        match form {
            ModeForm::Six => {
                let head = bytes.first_chunk::<4>().ok_or(truncated)?;
                Ok(Self {
                    mode_data_length: head[0].into(),
                    medium_type: head[1],
                    device_specific: DeviceSpecific::from_byte(head[2]),
                    long_lba: false,
                    block_descriptor_length: head[3].into(),
                })
            }
            ModeForm::Ten => {
                let head = bytes.first_chunk::<8>().ok_or(truncated)?;
                Ok(Self {
                    mode_data_length: be16::<0, _>(head),
                    medium_type: head[2],
                    device_specific: DeviceSpecific::from_byte(head[3]),
                    long_lba: bit::<0>(head[4]),
                    block_descriptor_length: be16::<6, _>(head),
                })
            }
        }
    }

    /// Writes the header; the answer is the bytes written. A length past 255 has no room in six bytes.
    pub fn encode(&self, form: ModeForm, out: &mut [u8]) -> Result<usize, NoRoom> {
        let mut writer = Writer::new(out);
        self.put(form, &mut writer)?;
        Ok(writer.written())
    }

    pub(super) fn put(&self, form: ModeForm, writer: &mut Writer<'_>) -> Result<(), NoRoom> {
        let Self { mode_data_length, medium_type, block_descriptor_length, .. } = *self;
        let device_specific = self.device_specific.byte();
        match form {
            ModeForm::Six => {
                let (length, descriptors) = (byte(mode_data_length)?, byte(block_descriptor_length)?);
                writer.put(&[length, medium_type, device_specific, descriptors])
            }
            ModeForm::Ten => {
                writer.be16(mode_data_length)?;
                writer.put(&[medium_type, device_specific, set_bit::<0>(self.long_lba), 0])?;
                writer.be16(block_descriptor_length)
            }
        }
    }
}

fn byte(length: u16) -> Result<u8, NoRoom> {
    u8::try_from(length).map_err(|_| NoRoom { needed: length.into(), got: u8::MAX.into() })
}

impl fmt::Display for ModeHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DeviceSpecific { write_protected, dpo_fua } = self.device_specific;
        write!(f, "{} bytes, write protected {write_protected}, DPO and FUA {dpo_fua}", self.mode_data_length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: ModeHeader = ModeHeader {
        mode_data_length: 0x2b,
        medium_type: 0x01,
        device_specific: DeviceSpecific { write_protected: true, dpo_fua: true },
        long_lba: false,
        block_descriptor_length: 8,
    };

    #[test]
    fn six_bytes_both_ways() {
        let bytes = [0x2b, 0x01, 0x90, 0x08];
        assert_eq!(ModeHeader::decode(ModeForm::Six, &bytes), Ok(HEADER));
        let mut out = [0xff; 4];
        assert_eq!(HEADER.encode(ModeForm::Six, &mut out), Ok(4));
        assert_eq!(out, bytes);
    }

    #[test]
    fn ten_bytes_both_ways() {
        let bytes = [0x01, 0x2b, 0x00, 0x10, 0x01, 0x00, 0x00, 0x10];
        let header = ModeHeader {
            mode_data_length: 0x012b,
            medium_type: 0,
            device_specific: DeviceSpecific { write_protected: false, dpo_fua: true },
            long_lba: true,
            block_descriptor_length: 16,
        };
        assert_eq!(ModeHeader::decode(ModeForm::Ten, &bytes), Ok(header));
        let mut out = [0xff; 8];
        assert_eq!(header.encode(ModeForm::Ten, &mut out), Ok(8));
        assert_eq!(out, bytes);
        assert_eq!(header.encode(ModeForm::Six, &mut out), Err(NoRoom { needed: 0x012b, got: 255 }));
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for (form, needed) in [(ModeForm::Six, 4), (ModeForm::Ten, 8)] {
            for got in 0..needed {
                let error = DecodeError::Truncated { needed, got };
                assert_eq!(ModeHeader::decode(form, &[0; 8][..got]), Err(error));
            }
        }
    }

    #[test]
    fn the_length_does_not_count_itself() {
        assert_eq!(ModeForm::Six.mode_data_length(256), Some(255));
        assert_eq!(ModeForm::Six.mode_data_length(257), None);
        assert_eq!(ModeForm::Ten.mode_data_length(28), Some(26));
        assert_eq!(ModeForm::Ten.mode_data_length(0x1_0002), None);
    }
}
