//! GET LBA STATUS parameter data (SBC-4): which blocks are mapped.
//!
//! ```text
//!  0..4   parameter data length (what follows in the whole answer)
//!  7      completion condition (3:1), RTP (0)
//!  8..    descriptors: LBA (8), number of blocks (4), additional status (7:4) and
//!         provisioning status (3:0) (1), 3 reserved
//! ```

use super::layout::{be32, be64, bit, bits, set_bits};
use crate::{DecodeError, NoRoom, Reader, Writer};
use core::fmt;

/// The status of blocks in a row, ascending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LbaStatusList<'a> {
    /// PARAMETER DATA LENGTH: bytes of the whole answer past this field.
    pub data_length: u32,
    /// COMPLETION CONDITION, three bits: why the list ends where it does; 0: not told.
    pub completion_condition: u8,
    /// RTP: the report type of the CDB was processed.
    #[doc(alias = "RTP")]
    pub report_type_processed: bool,
    descriptors: &'a [[u8; 16]],
}

/// Blocks of one status in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LbaStatusDescriptor {
    /// LBA STATUS LOGICAL BLOCK ADDRESS: the first.
    pub lba: u64,
    /// NUMBER OF LOGICAL BLOCKS.
    pub block_count: u32,
    /// PROVISIONING STATUS.
    pub status: ProvisioningStatus,
    /// ADDITIONAL STATUS, four bits.
    pub additional_status: u8,
}

code! {
    /// PROVISIONING STATUS, four bits.
    pub enum ProvisioningStatus: u8 {
        /// Mapped, or it cannot be told.
        MappedOrUnknown = 0x00 => "mapped or unknown",
        /// Deallocated: no place on the medium.
        Deallocated = 0x01 => "deallocated",
        /// Anchored: a place, but no content.
        Anchored = 0x02 => "anchored",
        /// Mapped for certain.
        Mapped = 0x03 => "mapped",
        /// It cannot be told.
        NotKnown = 0x04 => "not known",
    }
}

impl<'a> LbaStatusList<'a> {
    /// Bytes before the first descriptor.
    pub const HEADER_LEN: usize = 8;

    /// Decodes a list, whole or cut by the allocation length.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let data_length = reader.be32()?;
        let [_, _, _, flags] = reader.array()?;
        let said = usize::try_from(data_length).unwrap_or(usize::MAX).saturating_sub(4);
        let list = reader.rest().get(..said).unwrap_or(reader.rest());
        Ok(Self {
            data_length,
            completion_condition: bits::<3, 1>(flags),
            report_type_processed: bit::<0>(flags),
            descriptors: list.as_chunks().0,
        })
    }

    /// The descriptors that are here, one by one.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = LbaStatusDescriptor> + 'a {
        self.descriptors.iter().map(|bytes| LbaStatusDescriptor {
            lba: be64::<0, _>(bytes),
            block_count: be32::<8, _>(bytes),
            status: bits::<3, 0>(bytes[12]).into(),
            additional_status: bits::<7, 4>(bytes[12]),
        })
    }

    /// Writes a list of `descriptors` with nothing said in its flags; the answer is the bytes written.
    pub fn encode_list(descriptors: &[LbaStatusDescriptor], out: &mut [u8]) -> Result<usize, NoRoom> {
        let needed = descriptors.len().saturating_mul(16).saturating_add(4);
        let length = u32::try_from(needed).map_err(|_| NoRoom { needed, got: out.len() })?;
        let mut writer = Writer::new(out);
        writer.be32(length)?;
        writer.zeroes(4)?;
        for descriptor in descriptors {
            writer.be64(descriptor.lba)?;
            writer.be32(descriptor.block_count)?;
            let status =
                set_bits::<3, 0>(descriptor.status.into()) | set_bits::<7, 4>(descriptor.additional_status);
            writer.put(&[status, 0, 0, 0])?;
        }
        Ok(writer.written())
    }
}

impl fmt::Display for LbaStatusList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "status of {} ranges", self.descriptors.len())
    }
}

impl fmt::Display for LbaStatusDescriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} blocks at LBA {} {}", self.block_count, self.lba, self.status)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    const LIST: [u8; 40] = [
        0, 0, 0, 0x24, 0, 0, 0, 0, // header
        0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 16, 0x01, 0, 0, 0, // deallocated
        0, 0, 0, 0, 0, 0, 0, 24, 0, 0, 1, 0, 0x19, 0, 0, 0, // unknown 9, additional 1
    ];

    #[test]
    fn literal_bytes_both_ways() {
        let expected = [
            LbaStatusDescriptor {
                lba: 8,
                block_count: 16,
                status: ProvisioningStatus::Deallocated,
                additional_status: 0,
            },
            LbaStatusDescriptor {
                lba: 24,
                block_count: 256,
                status: ProvisioningStatus::Unknown(9),
                additional_status: 1,
            },
        ];
        let list = LbaStatusList::decode(&LIST).unwrap();
        assert_eq!(list.data_length, 36);
        assert!(list.iter().eq(expected));
        let mut out = [0xff; 40];
        assert_eq!(LbaStatusList::encode_list(&expected, &mut out), Ok(40));
        assert_eq!(out, LIST);
        assert_eq!(expected[0].to_string(), "16 blocks at LBA 8 deallocated");
    }

    #[test]
    fn a_cut_list_keeps_whole_descriptors() {
        for got in 0..8 {
            assert!(matches!(LbaStatusList::decode(&LIST[..got]), Err(DecodeError::Truncated { .. })));
        }
        assert_eq!(LbaStatusList::decode(&LIST[..39]).unwrap().iter().len(), 1);
        assert_eq!(LbaStatusList::decode(&LIST[..23]).unwrap().iter().len(), 0);
    }

    #[test]
    fn flags_are_read() {
        let list = LbaStatusList::decode(&[0, 0, 0, 4, 0, 0, 0, 0x05]).unwrap();
        assert_eq!((list.completion_condition, list.report_type_processed), (2, true));
    }
}
