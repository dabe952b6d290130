//! UNMAP parameter list (SBC-4 clause 5.35.2).

use crate::{DecodeError, NoRoom, Reader, Writer};
use core::fmt;

/// One run of blocks to unmap.
///
/// ```text
///  0..8   unmap logical block address
///  8..12  number of logical blocks
/// 12..16  reserved
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnmapDescriptor {
    /// The first block.
    pub lba: u64,
    /// How many; zero is legal and unmaps nothing.
    pub blocks: u32,
}

impl UnmapDescriptor {
    /// Bytes on the wire.
    pub const LEN: usize = 16;

    /// Decodes the first 16 bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let descriptor = Self { lba: reader.be64()?, blocks: reader.be32()? };
        reader.slice(4)?;
        Ok(descriptor)
    }

    /// The 16 bytes on the wire.
    pub fn encode(&self) -> [u8; 16] {
        let mut out = [0; Self::LEN];
        out[..8].copy_from_slice(&self.lba.to_be_bytes());
        out[8..12].copy_from_slice(&self.blocks.to_be_bytes());
        out
    }
}

impl fmt::Display for UnmapDescriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LBA {}, {} blocks", self.lba, self.blocks)
    }
}

/// The whole list, still as bytes.
///
/// ```text
///  0..2   unmap data length: bytes after this field
///  2..4   unmap block descriptor data length: bytes of the descriptors
///  4..8   reserved
///  8..    descriptors, 16 bytes each
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnmapList<'a> {
    descriptors: &'a [u8],
}

impl<'a> UnmapList<'a> {
    /// Bytes before the first descriptor.
    pub const HEADER_LEN: usize = 8;

    /// Decodes a list. Bytes after the descriptors are not looked at, nor is an incomplete last descriptor,
    /// which the standard has ignored.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        reader.be16()?;
        let len = usize::from(reader.be16()?);
        reader.slice(4)?;
        Ok(Self { descriptors: reader.slice(len)? })
    }

    /// Writes the list of `descriptors` and says how many bytes that took.
    pub fn encode(descriptors: &[UnmapDescriptor], out: &mut [u8]) -> Result<usize, NoRoom> {
        let len = descriptors.len().saturating_mul(UnmapDescriptor::LEN);
        let needed = len.saturating_add(Self::HEADER_LEN);
        let too_long = NoRoom { needed, got: out.len() };
        let mut writer = Writer::new(out);
        writer.be16(needed.checked_sub(2).and_then(|len| u16::try_from(len).ok()).ok_or(too_long)?)?;
        writer.be16(u16::try_from(len).map_err(|_| too_long)?)?;
        writer.zeroes(4)?;
        descriptors.iter().try_for_each(|descriptor| writer.put(&descriptor.encode()))?;
        Ok(writer.written())
    }

    /// How many whole descriptors there are.
    pub const fn len(&self) -> usize {
        self.descriptors.len() / UnmapDescriptor::LEN
    }

    /// Whether there is none, which is no error.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The descriptors, in their order.
    pub fn descriptors(&self) -> impl Iterator<Item = UnmapDescriptor> + Clone + use<'a> {
        self.descriptors.chunks_exact(UnmapDescriptor::LEN).flat_map(UnmapDescriptor::decode)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    const TWO: [u8; 40] = [
        0, 38, 0, 32, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0,
        0, 0, 0, 0, 0, 0, 0,
    ];

    #[test]
    fn a_list_both_ways() {
        let list = UnmapList::decode(&TWO).unwrap();
        let descriptors =
            [UnmapDescriptor { lba: 0x1_0000_0002, blocks: 3 }, UnmapDescriptor { lba: 9, blocks: 0 }];
        assert_eq!(list.len(), 2);
        assert_eq!(list.descriptors().collect::<Vec<_>>(), descriptors);
        let mut out = [0xff; 64];
        assert_eq!(UnmapList::encode(&descriptors, &mut out), Ok(40));
        assert_eq!(out[..40], TWO);
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for len in 0..TWO.len() {
            assert!(
                matches!(UnmapList::decode(&TWO[..len]), Err(DecodeError::Truncated { got, .. }) if got == len),
                "{len}"
            );
        }
    }

    #[test]
    fn an_incomplete_last_descriptor_is_ignored() {
        let mut bytes = TWO;
        bytes[3] = 31;
        assert_eq!(UnmapList::decode(&bytes).unwrap().len(), 1);
    }

    #[test]
    fn a_list_without_descriptors_is_legal() {
        assert!(UnmapList::decode(&[0, 6, 0, 0, 0, 0, 0, 0]).unwrap().is_empty());
        let mut out = [0xff; 8];
        assert_eq!(UnmapList::encode(&[], &mut out), Ok(8));
        assert_eq!(out, [0, 6, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn a_list_needs_room() {
        let one = [UnmapDescriptor { lba: 0, blocks: 1 }];
        assert!(UnmapList::encode(&one, &mut [0; 23]).is_err());
        assert_eq!(UnmapList::encode(&one, &mut [0; 24]), Ok(24));
    }
}
