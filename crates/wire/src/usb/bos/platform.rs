//! Platform capability (USB 3.2 clause 9.6.2.4).

use super::super::descriptor_kind::{DescriptorKind, whole_descriptor};
use super::capability_kind::{CapabilityKind, fixed_capability};
use crate::{DecodeError, NoRoom, Writer};
use core::fmt;

/// Data for one platform (an operating system, WebUSB), which the UUID names.
///
/// ```text
///  0      bLength (20 + n)                        3      reserved
///  1      bDescriptorType (10h)                   4..20  PlatformCapabilityUUID
///  2      bDevCapabilityType (05h)               20..    CapabilityData, 235 bytes at most
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlatformCapability<'a> {
    /// The UUID, as its bytes are on the wire.
    #[doc(alias = "PlatformCapabilityUUID")]
    pub uuid: [u8; 16],
    /// Bytes that the platform defines.
    #[doc(alias = "CapabilityData")]
    pub content: &'a [u8],
}

impl<'a> PlatformCapability<'a> {
    /// Bytes without content.
    pub const LEN: usize = 20;
    /// Bytes of content that a descriptor has room for.
    pub const CONTENT_LEN_MAX: usize = 235;

    /// Decodes a descriptor.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let [_, _, _, _, uuid @ ..] = fixed_capability::<20>(bytes, CapabilityKind::Platform)?;
        let (_, content) = whole_descriptor::<20>(bytes, DescriptorKind::DeviceCapability)?;
        Ok(Self { uuid: *uuid, content })
    }

    /// Writes the descriptor to the front of `out` and says how long it is.
    ///
    /// Content past 235 bytes cannot be said in the length field and is left off.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, NoRoom> {
        let content = self.content.get(..Self::CONTENT_LEN_MAX).unwrap_or(self.content);
        let (len, got) = (Self::LEN + content.len(), out.len());
        let (kind, capability) = (DescriptorKind::DeviceCapability, CapabilityKind::Platform);
        let mut writer = Writer::new(out);
        let mut put = || {
            writer.put(&[len as u8, kind.into(), capability.into(), 0])?;
            writer.put(&self.uuid)?;
            writer.put(content)
        };
        put().map_err(|_: NoRoom| NoRoom { needed: len, got })?;
        Ok(len)
    }
}

impl fmt::Display for PlatformCapability<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("platform ")?;
        self.uuid.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        write!(f, ", {} bytes", self.content.len())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;
    use std::vec;

    const PLATFORM: [u8; 22] =
        [22, 0x10, 0x05, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0xff, 0xaa, 0xbb];

    #[test]
    fn literal_bytes_both_ways() {
        let capability = PlatformCapability::decode(&PLATFORM).unwrap();
        assert_eq!(capability.uuid, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0xff]);
        assert_eq!(capability.content, [0xaa, 0xbb]);
        let mut out = [0; 22];
        assert_eq!(capability.encode(&mut out), Ok(22));
        assert_eq!(out, PLATFORM);
        assert_eq!(capability.to_string(), "platform 0102030405060708090a0b0c0d0e0fff, 2 bytes");
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for len in 0..22 {
            let needed = if len < 20 { 20 } else { 22 };
            let error = DecodeError::Truncated { needed, got: len };
            assert_eq!(PlatformCapability::decode(&PLATFORM[..len]), Err(error));
        }
    }

    #[test]
    fn every_buffer_too_small_is_an_error() {
        let capability = PlatformCapability::decode(&PLATFORM).unwrap();
        for len in 0..22 {
            assert_eq!(capability.encode(&mut vec![0; len]), Err(NoRoom { needed: 22, got: len }));
        }
    }

    #[test]
    fn another_capability_is_another_kind() {
        let mut bytes = PLATFORM;
        bytes[2] = 0x04;
        let error = DecodeError::WrongKind { expected: 5, found: 4 };
        assert_eq!(PlatformCapability::decode(&bytes), Err(error));
    }

    #[test]
    fn content_past_the_length_field_is_left_off() {
        let capability = PlatformCapability { uuid: [0; 16], content: &[0x5a; 300] };
        let mut out = [0; 300];
        assert_eq!(capability.encode(&mut out), Ok(255));
        assert_eq!((out[0], out[254], out[255]), (255, 0x5a, 0));
    }

    proptest! {
        #[test]
        fn decode_undoes_encode(uuid: [u8; 16], content in prop::collection::vec(any::<u8>(), 0..=235)) {
            let capability = PlatformCapability { uuid, content: &content };
            let mut out = [0; 255];
            let len = capability.encode(&mut out).unwrap();
            prop_assert_eq!(PlatformCapability::decode(&out[..len]).unwrap(), capability);
        }
    }
}
