//! Container ID capability (USB 3.2 clause 9.6.2.3).

use super::super::descriptor_kind::DescriptorKind;
use super::capability_kind::{CapabilityKind, fixed_capability};
use crate::DecodeError;
use core::fmt;

/// A UUID that is the same for every device in one product.
///
/// ```text
///  0      bLength (20)                            3      reserved
///  1      bDescriptorType (10h)                   4..20  ContainerID
///  2      bDevCapabilityType (04h)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContainerIdCapability {
    /// The UUID, as its bytes are on the wire.
    #[doc(alias = "ContainerID")]
    pub uuid: [u8; 16],
}

impl ContainerIdCapability {
    /// Bytes of the descriptor.
    pub const LEN: usize = 20;

    /// A UUID of version 8, which leaves all but version and variant to its maker (RFC 9562 clause 5.8).
    ///
    /// The UUID travels with its first three fields little-endian, so that the version is in byte 7.
    pub const fn of_version_8(bits: u128) -> Self {
        let mut uuid = bits.to_le_bytes();
        uuid[7] = uuid[7] & 0x0f | 0x80;
        uuid[8] = uuid[8] & 0x3f | 0x80;
        Self { uuid }
    }

    /// Decodes a descriptor; the reserved byte and bytes past the known ones are ignored.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let [_, _, _, _, uuid @ ..] = fixed_capability::<20>(bytes, CapabilityKind::ContainerId)?;
        Ok(Self { uuid: *uuid })
    }

    /// The whole descriptor.
    pub fn encode(&self) -> [u8; 20] {
        let (kind, capability) = (DescriptorKind::DeviceCapability, CapabilityKind::ContainerId);
        let mut whole = [0; 20];
        let bytes = [20, kind.into(), capability.into(), 0].into_iter().chain(self.uuid);
        for (place, byte) in whole.iter_mut().zip(bytes) {
            *place = byte;
        }
        whole
    }
}

impl fmt::Display for ContainerIdCapability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("container ")?;
        self.uuid.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    const CONTAINER: [u8; 20] = [20, 0x10, 0x04, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0xff];

    #[test]
    fn literal_bytes_both_ways() {
        let capability = ContainerIdCapability::decode(&CONTAINER).unwrap();
        assert_eq!(capability.uuid, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0xff]);
        assert_eq!(capability.encode(), CONTAINER);
        assert_eq!(capability.to_string(), "container 0102030405060708090a0b0c0d0e0fff");
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for len in 0..20 {
            let error = DecodeError::Truncated { needed: 20, got: len };
            assert_eq!(ContainerIdCapability::decode(&CONTAINER[..len]), Err(error));
        }
    }

    #[test]
    fn another_capability_is_another_kind() {
        let mut bytes = CONTAINER;
        bytes[2] = 0x05;
        let error = DecodeError::WrongKind { expected: 4, found: 5 };
        assert_eq!(ContainerIdCapability::decode(&bytes), Err(error));
    }

    proptest! {
        #[test]
        fn decode_undoes_encode(uuid: [u8; 16]) {
            let capability = ContainerIdCapability { uuid };
            prop_assert_eq!(ContainerIdCapability::decode(&capability.encode()).unwrap(), capability);
        }
    }

    #[test]
    fn version_and_variant_are_set_in_their_places() {
        let uuid = ContainerIdCapability::of_version_8(u128::MAX).uuid;
        assert_eq!((uuid[7], uuid[8]), (0x8f, 0xbf));
        let uuid = ContainerIdCapability::of_version_8(0x0102).uuid;
        assert_eq!(uuid, [0x02, 0x01, 0, 0, 0, 0, 0, 0x80, 0x80, 0, 0, 0, 0, 0, 0, 0]);
    }
}
