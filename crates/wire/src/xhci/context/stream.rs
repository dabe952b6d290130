//! Stream context (xHCI 1.2 clause 6.2.4).

use crate::DecodeError;
use crate::xhci::{bit, bytes_of, dwords, field, flag, place, pointer, wide};
use core::fmt;

/// A stream: where its ring is, or an array of further stream contexts.
///
/// ```text
///  0..8   DCS 0, SCT 3:1, TR Dequeue Pointer 63:4         8..12  Stopped EDTLA 23:0
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamContext {
    /// Type of the context: the array that it is in, and the target of its pointer.
    pub context_type: StreamContextType,
    /// The ring or the array, a multiple of 16.
    pub dequeue: u64,
    /// The cycle bit of the TRBs there (DCS).
    pub cycle: bool,
    /// Bytes moved in the event data TD that was stopped. Output only, 24 bits.
    pub stopped_length: u32,
}

/// Stream context type (SCT).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StreamContextType {
    /// In a secondary array, a ring.
    SecondaryRing,
    /// In the primary array, a ring.
    PrimaryRing,
    /// In the primary array, a secondary array of 2^n contexts, n from 3 to 8.
    SecondaryArray(u8),
}

impl StreamContextType {
    /// A secondary array with this many contexts: 8 to 256, a power of two.
    pub const fn secondary_array(contexts: u16) -> Option<Self> {
        match contexts {
            8 | 16 | 32 | 64 | 128 | 256 => Some(Self::SecondaryArray(contexts.trailing_zeros() as u8)),
            _ => None,
        }
    }

    pub(crate) const fn from_bits(bits: u32) -> Self {
        match bits & 7 {
            0 => Self::SecondaryRing,
            1 => Self::PrimaryRing,
            exponent => Self::SecondaryArray(exponent as u8 + 1),
        }
    }

    pub(crate) const fn bits(self) -> u32 {
        match self {
            Self::SecondaryRing => 0,
            Self::PrimaryRing => 1,
            Self::SecondaryArray(exponent) => exponent.saturating_sub(1) as u32 & 7,
        }
    }
}

impl StreamContext {
    /// Bytes of a stream context, whatever the size of the others.
    pub const LEN: usize = 16;

    /// A ring that begins here, not yet run.
    pub const fn ring(context_type: StreamContextType, dequeue: u64) -> Self {
        Self { context_type, dequeue, cycle: true, stopped_length: 0 }
    }

    /// Decodes a context; bytes past it are ignored.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let [low, high, stopped, _] = dwords::<4>(bytes)?;
        let [ring_low, ring_high] = pointer(wide(low, high), 4);
        Ok(Self {
            context_type: StreamContextType::from_bits(field(low, 1, 3)),
            dequeue: wide(ring_low, ring_high),
            cycle: flag(low, 0),
            stopped_length: field(stopped, 0, 24),
        })
    }

    /// The 16 bytes.
    pub fn encode(&self) -> [u8; 16] {
        let [low, high] = pointer(self.dequeue, 4);
        let low = low | self.context_type.bits() << 1 | bit(self.cycle, 0);
        bytes_of(&[low, high, place(self.stopped_length, 0, 24)])
    }
}

impl fmt::Display for StreamContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.context_type {
            StreamContextType::SecondaryArray(n) => write!(f, "2^{n} contexts at {:#x}", self.dequeue),
            _ => write!(f, "ring at {:#x}", self.dequeue),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    #[test]
    fn rings_and_arrays_both_ways() {
        let ring = StreamContext::ring(StreamContextType::PrimaryRing, 0x1_0000_2000);
        let bytes = [0x03, 0x20, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(ring.encode(), bytes);
        assert_eq!(StreamContext::decode(&bytes), Ok(ring));
        let array = StreamContext {
            context_type: StreamContextType::secondary_array(256).unwrap(),
            cycle: false,
            stopped_length: 0x123456,
            ..ring
        };
        let bytes = [0x0e, 0x20, 0, 0, 1, 0, 0, 0, 0x56, 0x34, 0x12, 0, 0, 0, 0, 0];
        assert_eq!(array.encode(), bytes);
        assert_eq!(StreamContext::decode(&bytes), Ok(array));
        assert_eq!(array.to_string(), "2^8 contexts at 0x100002000");
    }

    #[test]
    fn secondary_arrays_have_8_to_256_contexts() {
        let kind = StreamContextType::secondary_array;
        assert_eq!(kind(8), Some(StreamContextType::SecondaryArray(3)));
        assert_eq!([4, 9, 512].map(kind), [None; 3]);
        assert_eq!(StreamContextType::SecondaryArray(3).bits(), 2);
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for len in 0..16 {
            let error = DecodeError::Truncated { needed: 16, got: len };
            assert_eq!(StreamContext::decode(&[0; 16][..len]), Err(error));
        }
    }

    proptest! {
        #[test]
        fn what_decodes_is_encoded_to_the_same_value(bytes: [u8; 16]) {
            let context = StreamContext::decode(&bytes).unwrap();
            prop_assert_eq!(StreamContext::decode(&context.encode()), Ok(context));
        }
    }
}
