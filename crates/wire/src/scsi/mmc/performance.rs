//! GET PERFORMANCE data, type 00h (MMC-6 clause 6.8): the header, and nominal performance descriptors.
//!
//! Left out: exceptions, which a virtual disc has none of, and the other types.

use super::head;
use crate::DecodeError;
use crate::scsi::layout::{be32, bit, set_bit};
use core::fmt;

/// Performance header.
///
/// ```text
/// 0..4  performance data length (bytes that follow)      4  write (1), except (0)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerformanceHeader {
    /// PERFORMANCE DATA LENGTH: bytes that follow the field.
    pub data_length: u32,
    /// It is about writes.
    pub write: bool,
    /// The descriptors are exceptions.
    pub exceptions: bool,
}

/// Nominal performance descriptor: from one block to another, at these speeds at both.
///
/// ```text
/// 0..4  start LBA    4..8  start performance    8..12  end LBA    12..16  end performance
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerformanceDescriptor {
    /// The first block.
    pub start_lba: u32,
    /// Speed there, in units of 1000 bytes a second.
    pub start_kb_per_s: u32,
    /// The last block.
    pub end_lba: u32,
    /// Speed there, in units of 1000 bytes a second.
    pub end_kb_per_s: u32,
}

impl PerformanceHeader {
    /// Bytes on the wire.
    pub const LEN: usize = 8;

    /// Decodes the first eight bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let whole: &[u8; Self::LEN] = head(bytes)?;
        Ok(Self {
            data_length: be32::<0, _>(whole),
            write: bit::<1>(whole[4]),
            exceptions: bit::<0>(whole[4]),
        })
    }

    /// The eight bytes on the wire.
    pub fn encode(&self) -> [u8; 8] {
        let mut out = [0; Self::LEN];
        out[..4].copy_from_slice(&self.data_length.to_be_bytes());
        out[4] = set_bit::<1>(self.write) | set_bit::<0>(self.exceptions);
        out
    }
}

impl fmt::Display for PerformanceHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes, write {}, exceptions {}", self.data_length, self.write, self.exceptions)
    }
}

impl PerformanceDescriptor {
    /// Bytes on the wire.
    pub const LEN: usize = 16;

    /// Decodes the first 16 bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let whole: &[u8; Self::LEN] = head(bytes)?;
        Ok(Self {
            start_lba: be32::<0, _>(whole),
            start_kb_per_s: be32::<4, _>(whole),
            end_lba: be32::<8, _>(whole),
            end_kb_per_s: be32::<12, _>(whole),
        })
    }

    /// The 16 bytes on the wire.
    pub fn encode(&self) -> [u8; 16] {
        let mut out = [0; Self::LEN];
        let fields = [self.start_lba, self.start_kb_per_s, self.end_lba, self.end_kb_per_s];
        for (place, field) in out.chunks_exact_mut(4).zip(fields) {
            place.copy_from_slice(&field.to_be_bytes());
        }
        out
    }
}

impl fmt::Display for PerformanceDescriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LBA {} to {}, {} kB/s", self.start_lba, self.end_lba, self.start_kb_per_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literal_bytes_both_ways() {
        let header = PerformanceHeader { data_length: 20, write: true, exceptions: false };
        assert_eq!(header.encode(), [0, 0, 0, 20, 0x02, 0, 0, 0]);
        assert_eq!(PerformanceHeader::decode(&[0, 0, 0, 20, 0x02, 0, 0, 0]), Ok(header));
        let bytes = [0, 0, 0, 1, 0, 0, 0x21, 0x13, 0, 5, 0, 0, 0, 0, 0x21, 0x14];
        let descriptor = PerformanceDescriptor {
            start_lba: 1,
            start_kb_per_s: 8467,
            end_lba: 0x05_0000,
            end_kb_per_s: 8468,
        };
        assert_eq!(PerformanceDescriptor::decode(&bytes), Ok(descriptor));
        assert_eq!(descriptor.encode(), bytes);
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for got in 0..16 {
            let bytes = &[0; 16][..got];
            assert_eq!(PerformanceDescriptor::decode(bytes), Err(DecodeError::Truncated { needed: 16, got }));
            assert_eq!(PerformanceHeader::decode(bytes).is_err(), got < 8);
        }
    }
}
