//! Other-speed configuration descriptor (USB 2.0 clause 9.6.4).

use super::{ConfigurationDescriptor, DescriptorKind};
use crate::DecodeError;
use core::fmt;

/// The head of a configuration as it would be at the other of full and high speed.
///
/// Laid out as a [`ConfigurationDescriptor`], with type 07h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherSpeedConfigurationDescriptor(pub ConfigurationDescriptor);

impl OtherSpeedConfigurationDescriptor {
    /// Bytes of the descriptor.
    pub const LEN: usize = 9;

    /// Decodes a descriptor; bytes past the known ones are ignored, so are the reserved attributes.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        ConfigurationDescriptor::decode_as(DescriptorKind::OtherSpeedConfiguration, bytes).map(Self)
    }

    /// The whole descriptor.
    pub fn encode(&self) -> [u8; 9] {
        self.0.encode_as(DescriptorKind::OtherSpeedConfiguration)
    }
}

impl fmt::Display for OtherSpeedConfigurationDescriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "other-speed {}", self.0)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    const FULL_SPEED: [u8; 9] = [0x09, 0x07, 0x20, 0x00, 0x01, 0x01, 0x00, 0x80, 0x32];

    #[test]
    fn literal_bytes_both_ways() {
        let other = OtherSpeedConfigurationDescriptor::decode(&FULL_SPEED).unwrap();
        assert_eq!((other.0.total_len, other.0.max_power), (32, 50));
        assert_eq!(other.encode(), FULL_SPEED);
        assert_eq!(other.to_string(), "other-speed configuration 1 of 1 interfaces, 32 bytes");
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for len in 0..9 {
            let error = OtherSpeedConfigurationDescriptor::decode(&FULL_SPEED[..len]).unwrap_err();
            assert_eq!(error, DecodeError::Truncated { needed: 9, got: len });
        }
    }

    #[test]
    fn a_configuration_of_this_speed_is_another_kind() {
        let mut bytes = FULL_SPEED;
        bytes[1] = 0x02;
        let error = DecodeError::WrongKind { expected: 7, found: 2 };
        assert_eq!(OtherSpeedConfigurationDescriptor::decode(&bytes), Err(error));
    }

    proptest! {
        #[test]
        fn any_bytes_decode_or_say_why(bytes in prop::collection::vec(any::<u8>(), 0..16)) {
            let _ = OtherSpeedConfigurationDescriptor::decode(&bytes);
        }
    }
}
