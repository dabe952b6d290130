//! READ FORMAT CAPACITIES data (MMC-6 clause 6.23): the list header and the capacity of the medium.
//!
//! Left out: descriptors of sizes that a medium could be formatted to.

use super::head;
use crate::DecodeError;
use crate::scsi::layout::{be32, bits, set_bits};
use core::fmt;

code! {
    /// DESCRIPTOR TYPE of the current capacity, two bits.
    pub enum CapacityType: u8 {
        /// The medium could have so much if it were formatted.
        Unformatted = 0x01 => "unformatted medium",
        /// The medium has so much.
        Formatted = 0x02 => "formatted medium",
        /// There is no medium; the drive reads so much at most.
        NoMedium = 0x03 => "no medium",
    }
}

/// Current or maximum capacity descriptor.
///
/// ```text
/// 0..4  number of blocks      4  descriptor type (1:0)      5..8  block length
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapacityDescriptor {
    /// Blocks.
    pub blocks: u32,
    /// Type of the capacity.
    pub kind: CapacityType,
    /// Bytes of a block, three bytes.
    pub block_length: u32,
}

/// Parameter data: a header and the current capacity.
///
/// ```text
/// 3  capacity list length (8, a multiple of it)      4..12  current capacity
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormatCapacities {
    /// The capacity.
    pub current: CapacityDescriptor,
}

impl CapacityDescriptor {
    /// Bytes on the wire.
    pub const LEN: usize = 8;

    /// Decodes the first eight bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let whole: &[u8; Self::LEN] = head(bytes)?;
        let length = [0, whole[5], whole[6], whole[7]];
        Ok(Self {
            blocks: be32::<0, _>(whole),
            kind: bits::<1, 0>(whole[4]).into(),
            block_length: u32::from_be_bytes(length),
        })
    }

    /// The eight bytes on the wire.
    pub fn encode(&self) -> [u8; 8] {
        let mut out = [0; Self::LEN];
        out[..4].copy_from_slice(&self.blocks.to_be_bytes());
        out[4..].copy_from_slice(&self.block_length.to_be_bytes());
        out[4] = set_bits::<1, 0>(self.kind.into());
        out
    }
}

impl fmt::Display for CapacityDescriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} blocks of {} bytes", self.kind, self.blocks, self.block_length)
    }
}

impl FormatCapacities {
    /// Bytes on the wire.
    pub const LEN: usize = 12;

    /// Decodes header and current capacity; descriptors after it are left alone.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let whole: &[u8; Self::LEN] = head(bytes)?;
        if whole[3] < 8 {
            return Err(DecodeError::Invalid { field: "CAPACITY LIST LENGTH", value: whole[3].into() });
        }
        Ok(Self { current: CapacityDescriptor::decode(&whole[4..])? })
    }

    /// The twelve bytes on the wire.
    pub fn encode(&self) -> [u8; 12] {
        let mut out = [0; Self::LEN];
        out[3] = 8;
        out[4..].copy_from_slice(&self.current.encode());
        out
    }
}

impl fmt::Display for FormatCapacities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.current.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: [u8; 12] = [0, 0, 0, 8, 0, 5, 0x7d, 0xa9, 0x02, 0, 8, 0];

    #[test]
    fn a_formatted_medium_both_ways() {
        let current =
            CapacityDescriptor { blocks: 359_849, kind: CapacityType::Formatted, block_length: 2048 };
        assert_eq!(FormatCapacities::decode(&BYTES), Ok(FormatCapacities { current }));
        assert_eq!(FormatCapacities { current }.encode(), BYTES);
        assert_eq!(CapacityDescriptor::decode(&BYTES[4..]), Ok(current));
    }

    #[test]
    fn an_empty_list_and_truncated_lengths_are_errors() {
        for got in 0..12 {
            let error = DecodeError::Truncated { needed: 12, got };
            assert_eq!(FormatCapacities::decode(&BYTES[..got]), Err(error));
        }
        let error = DecodeError::Invalid { field: "CAPACITY LIST LENGTH", value: 0 };
        assert_eq!(FormatCapacities::decode(&[0; 12]), Err(error));
    }
}
