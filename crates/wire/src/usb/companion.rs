//! SuperSpeed endpoint companion descriptor (USB 3.2 clause 9.6.7).

use super::descriptor_kind::{DescriptorKind, fixed_descriptor};
use crate::DecodeError;
use core::fmt;

/// SuperSpeed properties of the endpoint whose descriptor precedes it.
///
/// ```text
///  0      bLength (6)                             3      bmAttributes: of a bulk endpoint, MaxStreams (4:0)
///  1      bDescriptorType (30h)                   4..6   wBytesPerInterval
///  2      bMaxBurst (packets less one, 0 to 15)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SuperSpeedCompanion {
    /// Packets per burst, less one.
    #[doc(alias = "bMaxBurst")]
    pub max_burst: u8,
    /// As on the wire; [`Self::max_streams`] reads it for a bulk endpoint.
    #[doc(alias = "bmAttributes")]
    pub attributes: u8,
    /// Bytes of a periodic endpoint per service interval; 0 on bulk endpoints.
    #[doc(alias = "wBytesPerInterval")]
    pub bytes_per_interval: u16,
}

impl SuperSpeedCompanion {
    /// Bytes of the descriptor.
    pub const LEN: usize = 6;
    /// The highest exponent that MaxStreams may hold: 65536 streams.
    pub const STREAMS_EXPONENT_MAX: u8 = 16;

    /// The companion of a bulk endpoint with 2^`streams_exponent` streams, or without streams if that is 0.
    pub const fn bulk(max_burst: u8, streams_exponent: u8) -> Self {
        Self { max_burst, attributes: streams_exponent & 0x1f, bytes_per_interval: 0 }
    }

    /// Decodes a descriptor; bytes past the known ones are ignored.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let &[_, _, max_burst, attributes, b0, b1] =
            fixed_descriptor::<6>(bytes, DescriptorKind::SuperSpeedCompanion)?;
        Ok(Self { max_burst, attributes, bytes_per_interval: u16::from_le_bytes([b0, b1]) })
    }

    /// The whole descriptor.
    pub fn encode(&self) -> [u8; 6] {
        let [b0, b1] = self.bytes_per_interval.to_le_bytes();
        [6, DescriptorKind::SuperSpeedCompanion.into(), self.max_burst, self.attributes, b0, b1]
    }

    /// How many streams the bulk endpoint has; 0 is none. A reserved exponent counts as the highest.
    pub const fn max_streams(&self) -> u32 {
        match self.attributes & 0x1f {
            0 => 0,
            exponent if exponent > Self::STREAMS_EXPONENT_MAX => 1 << Self::STREAMS_EXPONENT_MAX,
            exponent => 1 << exponent,
        }
    }
}

impl fmt::Display for SuperSpeedCompanion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bursts of {} packets", u16::from(self.max_burst) + 1)?;
        match self.max_streams() {
            0 => f.write_str(", no streams"),
            streams => write!(f, ", {streams} streams"),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    /// Bursts of 16 packets, 32 streams.
    const STREAMS_32: [u8; 6] = [0x06, 0x30, 0x0f, 0x05, 0x00, 0x00];

    #[test]
    fn literal_bytes_both_ways() {
        let companion = SuperSpeedCompanion::decode(&STREAMS_32).unwrap();
        assert_eq!(companion, SuperSpeedCompanion::bulk(15, 5));
        assert_eq!(companion.max_streams(), 32);
        assert_eq!(companion.encode(), STREAMS_32);
        assert_eq!(companion.to_string(), "bursts of 16 packets, 32 streams");
    }

    #[test]
    fn a_periodic_endpoint_says_its_bytes_per_interval() {
        let bytes = [0x06, 0x30, 0x02, 0x01, 0x00, 0x0c];
        let companion = SuperSpeedCompanion::decode(&bytes).unwrap();
        assert_eq!(companion.bytes_per_interval, 3072);
        assert_eq!(companion.encode(), bytes);
    }

    #[test]
    fn the_exponent_of_streams_ends_at_sixteen() {
        let streams = [0, 1, 8, 16, 17, 31].map(|n| SuperSpeedCompanion::bulk(0, n).max_streams());
        assert_eq!(streams, [0, 2, 256, 65536, 65536, 65536]);
        assert_eq!(SuperSpeedCompanion::bulk(0, 0).to_string(), "bursts of 1 packets, no streams");
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for len in 0..6 {
            let error = SuperSpeedCompanion::decode(&STREAMS_32[..len]).unwrap_err();
            assert_eq!(error, DecodeError::Truncated { needed: 6, got: len });
        }
    }

    #[test]
    fn another_type_is_another_kind() {
        let mut bytes = STREAMS_32;
        bytes[1] = 0x31;
        let error = DecodeError::WrongKind { expected: 0x30, found: 0x31 };
        assert_eq!(SuperSpeedCompanion::decode(&bytes), Err(error));
    }

    proptest! {
        #[test]
        fn every_content_comes_back(content: [u8; 4]) {
            let bytes = [&[6, 0x30], &content[..]].concat();
            let companion = SuperSpeedCompanion::decode(&bytes).unwrap();
            prop_assert_eq!(&companion.encode()[..], &bytes[..]);
            let _ = companion.to_string();
        }

        #[test]
        fn any_bytes_decode_or_say_why(bytes in prop::collection::vec(any::<u8>(), 0..10)) {
            let _ = SuperSpeedCompanion::decode(&bytes);
        }
    }
}
