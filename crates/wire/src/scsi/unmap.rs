//! UNMAP parameter list (SBC-4, UNMAP command).
//!
//! ```text
//!  0..2   unmap data length (what follows, 6 + block descriptors)
//!  2..4   unmap block descriptor data length (a multiple of 16)
//!  4..8   reserved
//!  8..    block descriptors: LBA (8), number of blocks (4), reserved (4)
//! ```

use super::layout::{be16, be32, be64};
use crate::{DecodeError, NoRoom, Writer};
use core::fmt;

/// What to unmap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnmapList<'a> {
    descriptors: &'a [[u8; 16]],
}

/// Blocks in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnmapDescriptor {
    /// UNMAP LOGICAL BLOCK ADDRESS: the first.
    pub lba: u64,
    /// NUMBER OF LOGICAL BLOCKS; 0 unmaps nothing and is no error.
    pub block_count: u32,
}

impl<'a> UnmapList<'a> {
    /// Bytes before the first block descriptor.
    pub const HEADER_LEN: usize = 8;

    /// Decodes the list.
    ///
    /// UNMAP DATA LENGTH must be there in full and hold the block descriptors; of a block descriptor length
    /// that is no multiple of 16 the rest is ignored, as SBC-4 has it.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let (header, _) = bytes
            .split_first_chunk::<8>()
            .ok_or(DecodeError::Truncated { needed: Self::HEADER_LEN, got: bytes.len() })?;
        let (data, descriptors) = (be16::<0, _>(header), be16::<2, _>(header));
        if u32::from(data) < u32::from(descriptors) + 6 {
            return Err(DecodeError::Invalid { field: "UNMAP DATA LENGTH", value: data.into() });
        }
        let needed = 2 + usize::from(data);
        let end = Self::HEADER_LEN + usize::from(descriptors);
        let truncated = DecodeError::Truncated { needed, got: bytes.len() };
        let list = bytes.get(..needed).and_then(|all| all.get(Self::HEADER_LEN..end)).ok_or(truncated)?;
        Ok(Self { descriptors: list.as_chunks().0 })
    }

    /// How many descriptors there are.
    pub const fn len(&self) -> usize {
        self.descriptors.len()
    }

    /// Whether there is none: nothing is unmapped and all is well.
    pub const fn is_empty(&self) -> bool {
        self.descriptors.is_empty()
    }

    /// The descriptors, one by one.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = UnmapDescriptor> + 'a {
        self.descriptors
            .iter()
            .map(|bytes| UnmapDescriptor { lba: be64::<0, _>(bytes), block_count: be32::<8, _>(bytes) })
    }

    /// Writes a list of `descriptors`; the answer is the bytes written.
    pub fn encode_list(descriptors: &[UnmapDescriptor], out: &mut [u8]) -> Result<usize, NoRoom> {
        let needed = descriptors.len().saturating_mul(16);
        let no_room = NoRoom { needed, got: usize::from(u16::MAX - 6) };
        let length = u16::try_from(needed).map_err(|_| no_room)?;
        let mut writer = Writer::new(out);
        writer.be16(length.checked_add(6).ok_or(no_room)?)?;
        writer.be16(length)?;
        writer.zeroes(4)?;
        for descriptor in descriptors {
            writer.be64(descriptor.lba)?;
            writer.be32(descriptor.block_count)?;
            writer.zeroes(4)?;
        }
        Ok(writer.written())
    }
}

impl fmt::Display for UnmapList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unmap {} ranges", self.len())
    }
}

impl fmt::Display for UnmapDescriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} blocks at LBA {}", self.block_count, self.lba)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;

    const LIST: [u8; 40] = [
        0x00, 0x26, 0x00, 0x20, 0, 0, 0, 0, // header
        0, 0, 0, 0, 0, 0, 0x10, 0x00, 0, 0, 0x08, 0x00, 0, 0, 0, 0, // 2048 blocks at 4096
        0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0x01, 0, 0, 0, 0, // 1 block at 2^32
    ];
    const RANGES: [UnmapDescriptor; 2] =
        [UnmapDescriptor { lba: 4096, block_count: 2048 }, UnmapDescriptor { lba: 1 << 32, block_count: 1 }];

    #[test]
    fn literal_bytes_both_ways() {
        let list = UnmapList::decode(&LIST).unwrap();
        assert!(list.iter().eq(RANGES));
        assert_eq!(list.len(), 2);
        let mut out = [0xff; 40];
        assert_eq!(UnmapList::encode_list(&RANGES, &mut out), Ok(40));
        assert_eq!(out, LIST);
    }

    #[test]
    fn every_truncated_length_is_told() {
        for got in 0..40 {
            let needed = if got < 8 { 8 } else { 40 };
            assert_eq!(UnmapList::decode(&LIST[..got]), Err(DecodeError::Truncated { needed, got }));
        }
    }

    #[test]
    fn lengths_that_contradict_each_other_are_invalid() {
        let mut bytes = LIST;
        bytes[1] = 0x25;
        let error = DecodeError::Invalid { field: "UNMAP DATA LENGTH", value: 0x25 };
        assert_eq!(UnmapList::decode(&bytes), Err(error));
    }

    #[test]
    fn part_of_a_descriptor_is_ignored() {
        let mut bytes = LIST;
        bytes[3] = 0x1f; // inside an UNMAP DATA LENGTH of 26h
        assert!(UnmapList::decode(&bytes).unwrap().iter().eq([RANGES[0]]));
        assert!(UnmapList::decode(&[0, 6, 0, 0, 0, 0, 0, 0]).unwrap().is_empty());
    }

    #[test]
    fn more_than_the_length_can_say_has_no_room() {
        let error = NoRoom { needed: 65536, got: 65529 };
        assert_eq!(UnmapList::encode_list(&[RANGES[0]; 4096], &mut []), Err(error));
    }

    proptest! {
        #[test]
        fn any_bytes_decode_or_say_why(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = UnmapList::decode(&bytes).map(|list| list.iter().count());
        }
    }
}
