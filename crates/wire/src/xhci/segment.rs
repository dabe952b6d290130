//! Event ring segment table entry (xHCI 1.2 clause 6.5).

use super::{bytes_of, dwords, field, place, pointer, wide};
use crate::DecodeError;
use core::fmt;

/// One segment of an event ring.
///
/// ```text
///  0..8   Ring Segment Base Address (63:6)        10..16 reserved
///  8..10  Ring Segment Size, in TRBs (16 to 4096)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventRingSegment {
    /// Where it begins; a multiple of 64.
    pub base: u64,
    /// How many TRBs it holds.
    pub trbs: u16,
}

impl EventRingSegment {
    /// Bytes of an entry.
    pub const LEN: usize = 16;

    /// Decodes an entry; bytes past it are ignored.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let [low, high, size, _] = dwords::<4>(bytes)?;
        let [low, high] = pointer(wide(low, high), 6);
        Ok(Self { base: wide(low, high), trbs: field(size, 0, 16) as u16 })
    }

    /// The whole entry.
    pub fn encode(&self) -> [u8; 16] {
        let [low, high] = pointer(self.base, 6);
        bytes_of(&[low, high, place(self.trbs.into(), 0, 16), 0])
    }
}

impl fmt::Display for EventRingSegment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} TRBs at {:#x}", self.trbs, self.base)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    const ENTRY: [u8; 16] = [0xc0, 0x56, 0x34, 0x12, 0x01, 0, 0, 0, 0x00, 0x01, 0, 0, 0, 0, 0, 0];

    #[test]
    fn literal_bytes_both_ways() {
        let entry = EventRingSegment { base: 0x1_1234_56c0, trbs: 256 };
        assert_eq!(entry.encode(), ENTRY);
        assert_eq!(EventRingSegment::decode(&ENTRY), Ok(entry));
        assert_eq!(entry.to_string(), "256 TRBs at 0x1123456c0");
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for len in 0..16 {
            let error = DecodeError::Truncated { needed: 16, got: len };
            assert_eq!(EventRingSegment::decode(&ENTRY[..len]), Err(error));
        }
    }
}
