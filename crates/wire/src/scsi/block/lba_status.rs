//! GET LBA STATUS parameter data (SBC-4 clause 5.6.2).

use crate::scsi::layout::{be32, be64, bit, bits, set_bit, set_bits};
use crate::{DecodeError, NoRoom};
use core::fmt;

code! {
    /// PROVISIONING STATUS: four bits.
    pub enum ProvisioningStatus: u8 {
        /// It takes space, or the unit does not know.
        Mapped = 0x0 => "mapped",
        /// It takes no space.
        Deallocated = 0x1 => "deallocated",
        /// It uses no space, but space is reserved for it.
        Anchored = 0x2 => "anchored",
        /// It takes space, as the unit does know.
        MappedForSure = 0x3 => "mapped for sure",
        /// The unit does not know.
        NotKnown = 0x4 => "not known",
    }
}

/// The header before the descriptors.
///
/// ```text
///  0..4   parameter data length: bytes after this field
///  4..7   reserved
///  7      report type (0: all descriptors, whatever their status)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LbaStatusHeader {
    /// Bytes of the descriptors that follow.
    pub descriptors_len: u32,
    /// RTP: not all descriptors are reported, but those of the report type asked for.
    #[doc(alias = "RTP")]
    pub by_report_type: bool,
}

/// One run of blocks with the same status.
///
/// ```text
///  0..8   LBA status logical block address
///  8..12  number of logical blocks
/// 12      provisioning status (3:0)
/// 13      additional status
/// 14..16  reserved
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LbaStatusDescriptor {
    /// The first block.
    pub lba: u64,
    /// How many.
    pub blocks: u32,
    /// Their status.
    pub provisioning: ProvisioningStatus,
    /// ADDITIONAL STATUS; zero: nothing to add.
    pub additional_status: u8,
}

impl LbaStatusHeader {
    /// Bytes on the wire.
    pub const LEN: usize = 8;

    /// Decodes the first eight bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let (whole, _) = bytes
            .split_first_chunk::<{ Self::LEN }>()
            .ok_or(DecodeError::Truncated { needed: Self::LEN, got: bytes.len() })?;
        // Bytes 4 to 7 count in the length.
        let descriptors_len = be32::<0, _>(whole).saturating_sub(4);
        Ok(Self { descriptors_len, by_report_type: bit::<0>(whole[7]) })
    }

    /// The eight bytes on the wire.
    pub fn encode(&self) -> [u8; 8] {
        let mut out = [0; Self::LEN];
        out[..4].copy_from_slice(&self.descriptors_len.saturating_add(4).to_be_bytes());
        out[7] = set_bit::<0>(self.by_report_type);
        out
    }

    /// Writes the header and `descriptors`, already encoded, and says how many bytes that took.
    pub fn encode_list(descriptors: &[u8], out: &mut [u8]) -> Result<usize, NoRoom> {
        let mut writer = crate::Writer::new(out);
        let header = Self { descriptors_len: descriptors.len() as u32, by_report_type: false };
        writer.put(&header.encode())?;
        writer.put(descriptors)?;
        Ok(writer.written())
    }
}

impl LbaStatusDescriptor {
    /// Bytes on the wire.
    pub const LEN: usize = 16;

    /// Decodes the first 16 bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let (whole, _) = bytes
            .split_first_chunk::<{ Self::LEN }>()
            .ok_or(DecodeError::Truncated { needed: Self::LEN, got: bytes.len() })?;
        Ok(Self {
            lba: be64::<0, _>(whole),
            blocks: be32::<8, _>(whole),
            provisioning: bits::<3, 0>(whole[12]).into(),
            additional_status: whole[13],
        })
    }

    /// The 16 bytes on the wire.
    pub fn encode(&self) -> [u8; 16] {
        let mut out = [0; Self::LEN];
        out[..8].copy_from_slice(&self.lba.to_be_bytes());
        out[8..12].copy_from_slice(&self.blocks.to_be_bytes());
        out[12] = set_bits::<3, 0>(self.provisioning.into());
        out[13] = self.additional_status;
        out
    }
}

impl fmt::Display for LbaStatusHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes of descriptors", self.descriptors_len)
    }
}

impl fmt::Display for LbaStatusDescriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LBA {}, {} blocks {}", self.lba, self.blocks, self.provisioning)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    const HOLE: [u8; 16] = [0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0x10, 0, 0x01, 0, 0, 0];

    #[test]
    fn a_descriptor_both_ways() {
        let hole = LbaStatusDescriptor {
            lba: 0x1_0000_0002,
            blocks: 4096,
            provisioning: ProvisioningStatus::Deallocated,
            additional_status: 0,
        };
        assert_eq!(LbaStatusDescriptor::decode(&HOLE), Ok(hole));
        assert_eq!(hole.encode(), HOLE);
        assert_eq!(hole.to_string(), "LBA 4294967298, 4096 blocks deallocated");
    }

    #[test]
    fn a_header_counts_from_behind_its_length() {
        let header = LbaStatusHeader { descriptors_len: 32, by_report_type: false };
        assert_eq!(header.encode(), [0, 0, 0, 36, 0, 0, 0, 0]);
        assert_eq!(LbaStatusHeader::decode(&[0, 0, 0, 36, 0, 0, 0, 0]), Ok(header));
    }

    #[test]
    fn a_list_is_header_and_descriptors() {
        let mut out = [0xff; 24];
        assert_eq!(LbaStatusHeader::encode_list(&HOLE, &mut out), Ok(24));
        assert_eq!(out[..8], [0, 0, 0, 20, 0, 0, 0, 0]);
        assert_eq!(out[8..], HOLE);
        assert_eq!(LbaStatusHeader::encode_list(&HOLE, &mut [0; 23]), Err(NoRoom { needed: 24, got: 23 }));
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for len in 0..16 {
            let error = LbaStatusDescriptor::decode(&HOLE[..len]).unwrap_err();
            assert_eq!(error, DecodeError::Truncated { needed: 16, got: len });
        }
        assert_eq!(LbaStatusHeader::decode(&[0; 7]), Err(DecodeError::Truncated { needed: 8, got: 7 }));
    }

    #[test]
    fn an_unknown_status_survives() {
        let mut bytes = HOLE;
        bytes[12] = 0x0f;
        let descriptor = LbaStatusDescriptor::decode(&bytes).unwrap();
        assert_eq!(descriptor.provisioning, ProvisioningStatus::Unknown(15));
        assert_eq!(descriptor.encode(), bytes);
    }
}
