//! Block descriptors of direct access block devices (SBC-4, mode parameter block descriptors).

use crate::DecodeError;
use crate::scsi::layout::{be32, be64};
use core::fmt;

/// Short LBA mode parameter block descriptor: eight bytes.
///
/// ```text
///  0..4   number of logical blocks    4  reserved    5..8  logical block length
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortBlockDescriptor {
    /// NUMBER OF LOGICAL BLOCKS; FFFF_FFFFh if there are more, and "all of them" in MODE SELECT.
    pub block_count: u32,
    /// LOGICAL BLOCK LENGTH in bytes (24 bits).
    pub block_length: u32,
}

impl ShortBlockDescriptor {
    /// Bytes on the wire.
    pub const LEN: usize = 8;

    /// Decodes the first eight bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let whole = bytes
            .first_chunk::<{ Self::LEN }>()
            .ok_or(DecodeError::Truncated { needed: Self::LEN, got: bytes.len() })?;
        let block_length = be32::<4, _>(whole) & 0x00ff_ffff;
        Ok(Self { block_count: be32::<0, _>(whole), block_length })
    }

    /// The eight bytes on the wire.
    pub fn encode(&self) -> [u8; 8] {
        let mut out = [0; Self::LEN];
        out[..4].copy_from_slice(&self.block_count.to_be_bytes());
        out[4..].copy_from_slice(&(self.block_length & 0x00ff_ffff).to_be_bytes());
        out
    }
}

/// Long LBA mode parameter block descriptor: sixteen bytes.
///
/// ```text
///  0..8   number of logical blocks    8..12  reserved    12..16  logical block length
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongBlockDescriptor {
    /// NUMBER OF LOGICAL BLOCKS; all ones is "all of them" in MODE SELECT.
    pub block_count: u64,
    /// LOGICAL BLOCK LENGTH in bytes.
    pub block_length: u32,
}

impl LongBlockDescriptor {
    /// Bytes on the wire.
    pub const LEN: usize = 16;

    /// Decodes the first sixteen bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let whole = bytes
            .first_chunk::<{ Self::LEN }>()
            .ok_or(DecodeError::Truncated { needed: Self::LEN, got: bytes.len() })?;
        Ok(Self { block_count: be64::<0, _>(whole), block_length: be32::<12, _>(whole) })
    }

    /// The sixteen bytes on the wire.
    pub fn encode(&self) -> [u8; 16] {
        let mut out = [0; Self::LEN];
        out[..8].copy_from_slice(&self.block_count.to_be_bytes());
        out[12..].copy_from_slice(&self.block_length.to_be_bytes());
        out
    }
}

impl fmt::Display for ShortBlockDescriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} blocks of {} bytes", self.block_count, self.block_length)
    }
}

impl fmt::Display for LongBlockDescriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} blocks of {} bytes", self.block_count, self.block_length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_both_ways() {
        let bytes = [0x00, 0x20, 0x00, 0x00, 0x00, 0x00, 0x02, 0x00];
        let descriptor = ShortBlockDescriptor { block_count: 0x0020_0000, block_length: 512 };
        assert_eq!(ShortBlockDescriptor::decode(&bytes), Ok(descriptor));
        assert_eq!(descriptor.encode(), bytes);
        let error = DecodeError::Truncated { needed: 8, got: 7 };
        assert_eq!(ShortBlockDescriptor::decode(&bytes[..7]), Err(error));
    }

    #[test]
    fn long_both_ways() {
        let bytes = [0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 0, 0x00, 0x00, 0x10, 0x00];
        let descriptor = LongBlockDescriptor { block_count: 0x4_0000_0001, block_length: 4096 };
        assert_eq!(LongBlockDescriptor::decode(&bytes), Ok(descriptor));
        assert_eq!(descriptor.encode(), bytes);
        let error = DecodeError::Truncated { needed: 16, got: 15 };
        assert_eq!(LongBlockDescriptor::decode(&bytes[..15]), Err(error));
    }

    #[test]
    fn the_reserved_byte_of_a_short_one_does_not_count() {
        let bytes = [0, 0, 0, 0, 0xff, 0x00, 0x02, 0x00];
        assert_eq!(ShortBlockDescriptor::decode(&bytes).unwrap().block_length, 512);
    }
}
