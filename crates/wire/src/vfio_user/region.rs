//! DEVICE_GET_REGION_INFO, REGION_READ, REGION_WRITE and REGION_WRITE_MULTI: BARs and configuration space
//! (vfio-user.rst; linux/vfio.h, `struct vfio_region_info`).

use super::Command;
use crate::{DecodeError, Reader};

register_bits! {
    /// How a region can be accessed.
    pub struct RegionFlags: u32 {
        /// It can be read.
        READ = 0x01 => "read",
        /// It can be written.
        WRITE = 0x02 => "write",
        /// Parts of it can be mapped; a descriptor comes beside the reply.
        MMAP = 0x04 => "mmap",
        /// A chain of capabilities follows.
        CAPABILITIES = 0x08 => "capabilities",
    }
}

fixed_layout! {
    /// A question of the client, and the answer in the same structure.
    pub struct RegionInfo is Command::RegionInfo => {
        /// Bytes that the client has room for, or that the answer would need.
        size: u32 as u32,
        /// How it can be accessed.
        flags: RegionFlags as u32,
        /// Its number ([`super::region_index`]).
        index: u32 as u32,
        /// Where the first capability is, from the beginning of this structure.
        capability_offset: u32 as u32,
        /// Its length in bytes.
        length: u64 as u64,
        /// Where it begins in the file of the descriptor.
        offset: u64 as u64,
    }
}

/// Parts of a region that can be mapped (`VFIO_REGION_INFO_CAP_SPARSE_MMAP`): the head of the capability.
///
/// ```text
///  0..2  id 1       4..8   offset of the next capability, 0 for none    12..16  reserved
///  2..4  version 1  8..12  how many areas follow
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SparseMmap {
    /// How many areas follow.
    pub areas: u32,
}

impl SparseMmap {
    /// Bytes before the areas.
    pub const LEN: usize = 16;

    /// The bytes of the head; it is the last capability.
    pub fn encode(&self) -> [u8; Self::LEN] {
        let [n0, n1, n2, n3] = self.areas.to_le_bytes();
        [1, 0, 1, 0, 0, 0, 0, 0, n0, n1, n2, n3, 0, 0, 0, 0]
    }
}

fixed_layout! {
    /// An area that can be mapped.
    pub struct SparseArea is Command::RegionInfo => {
        /// Where it begins in the region.
        offset: u64 as u64,
        /// Its length in bytes.
        length: u64 as u64,
    }
}

fixed_layout! {
    /// An access to a region; data follow a write and the reply to a read.
    pub struct RegionAccess is Command::RegionRead => {
        /// Where it begins.
        offset: u64 as u64,
        /// The region's number.
        region: u32 as u32,
        /// Bytes.
        count: u32 as u32,
    }
}

/// The most writes in one message (QEMU, `VFIO_USER_MULTI_MAX`).
pub const WRITES_MAX: usize = 200;

/// Several small writes in one message, in order.
///
/// ```text
///  0..8  how many    8..  the writes, 24 bytes each
/// ```
#[derive(Clone, Debug)]
pub struct WriteMulti<'a> {
    writes: Reader<'a>,
}

/// A write of a [`WriteMulti`].
///
/// ```text
///  0..8  offset    8..12  region    12..16  count    16..24  data
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteOne {
    /// Where it goes.
    pub access: RegionAccess,
    /// The data, of which `access.count` bytes count.
    pub data: [u8; 8],
}

impl WriteOne {
    /// Bytes on the wire.
    pub const LEN: usize = 24;

    /// The bytes to be written.
    pub fn bytes(&self) -> &[u8] {
        self.data.get(..self.access.count as usize).unwrap_or(&self.data)
    }
}

impl<'a> WriteMulti<'a> {
    /// Decodes the body of a message.
    ///
    /// Errors: more writes than [`WRITES_MAX`], or than there are bytes for.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let count = reader.le64()?;
        let place = usize::try_from(count).ok().filter(|count| *count <= WRITES_MAX);
        let count = place.ok_or(DecodeError::Invalid { field: "wr_cnt", value: count })?;
        let writes = Reader::new(reader.slice(count * WriteOne::LEN)?);
        Ok(Self { writes })
    }
}

impl Iterator for WriteMulti<'_> {
    type Item = Result<WriteOne, DecodeError>;

    /// A write of more than eight bytes is an error.
    fn next(&mut self) -> Option<Self::Item> {
        let bytes = self.writes.array::<{ WriteOne::LEN }>().ok()?;
        let decode = || {
            let mut reader = Reader::new(&bytes);
            let access = RegionAccess::decode(reader.slice(RegionAccess::LEN)?)?;
            let data = reader.array()?;
            if access.count as usize > data.len() {
                return Err(DecodeError::Invalid { field: "count", value: access.count.into() });
            }
            Ok(WriteOne { access, data })
        };
        Some(decode())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;
    use std::vec::Vec;

    #[test]
    fn a_region_and_its_areas() {
        let mut bytes = [0; 32];
        (bytes[0], bytes[4], bytes[12], bytes[17]) = (64, 0x0f, 32, 0x80);
        let info = RegionInfo::decode(&bytes).unwrap();
        assert_eq!((info.index, info.capability_offset, info.length), (0, 32, 0x8000));
        assert_eq!(info.encode(), bytes);
        let head = SparseMmap { areas: 1 }.encode();
        assert_eq!(head, [1, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
        let area = SparseArea { offset: 0x1000, length: 0x2000 };
        assert_eq!(area.encode(), [0, 0x10, 0, 0, 0, 0, 0, 0, 0, 0x20, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn an_access_names_its_region() {
        let bytes = [4, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0];
        let access = RegionAccess::decode(&bytes).unwrap();
        assert_eq!(access, RegionAccess { offset: 0x2004, region: 0, count: 4 });
        assert_eq!(access.to_string(), "REGION_READ, offset 8196, region 0, count 4");
    }

    #[test]
    fn several_writes_in_order() {
        let mut bytes = [0; 8 + 48];
        bytes[0] = 2;
        (bytes[8], bytes[20], bytes[24]) = (0x10, 4, 0xaa);
        (bytes[32], bytes[44], bytes[48]) = (0x18, 1, 0xbb);
        let writes: Vec<_> = WriteMulti::decode(&bytes).unwrap().map(Result::unwrap).collect();
        assert_eq!((writes[0].access.offset, writes[0].bytes()), (0x10, &[0xaa, 0, 0, 0][..]));
        assert_eq!((writes[1].access.offset, writes[1].bytes()), (0x18, &[0xbb][..]));
        assert_eq!(writes.len(), 2);
    }

    #[test]
    fn counts_that_lie_are_refused() {
        let mut bytes = [0; 8 + 24];
        bytes[0] = 2;
        assert!(matches!(WriteMulti::decode(&bytes), Err(DecodeError::Truncated { .. })));
        bytes[..8].copy_from_slice(&u64::MAX.to_le_bytes());
        assert_eq!(
            WriteMulti::decode(&bytes).err(),
            Some(DecodeError::Invalid { field: "wr_cnt", value: u64::MAX })
        );
        bytes[..8].copy_from_slice(&1u64.to_le_bytes());
        bytes[20] = 9;
        let writes: Vec<_> = WriteMulti::decode(&bytes).unwrap().collect();
        assert_eq!(writes, [Err(DecodeError::Invalid { field: "count", value: 9 })]);
    }
}
