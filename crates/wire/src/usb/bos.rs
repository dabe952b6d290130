//! Binary device object store: what the device can do, independent of configuration (USB 3.2 clause 9.6.2).
//!
//! A header with a count, then that many device capability descriptors. A host asks for it only if the
//! device is of USB 2.1 or later. Capabilities without a type here survive as [`DeviceCapability::Unknown`].

mod capability_kind;
mod container_id;
mod platform;
mod super_speed;
mod super_speed_plus;
mod usb2_extension;

pub use capability_kind::CapabilityKind;
pub use container_id::ContainerIdCapability;
pub use platform::PlatformCapability;
pub use super_speed::{SpeedSet, SuperSpeedCapability};
pub use super_speed_plus::{
    LaneSpeedUnit, LinkProtocol, SublinkSpeed, SuperSpeedPlusCapability, SuperSpeedPlusMinimum,
};
pub use usb2_extension::Usb2ExtensionCapability;

use super::descriptor_kind::{DescriptorKind, fixed_descriptor, whole_descriptor};
use crate::{DecodeError, NoRoom, Writer};
use core::fmt;

/// The head of the store; the capabilities follow it in the same answer.
///
/// ```text
///  0      bLength (5)                             2..4   wTotalLength (bytes, with all capabilities)
///  1      bDescriptorType (0Fh)                   4      bNumDeviceCaps
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BosDescriptor {
    /// Bytes of this descriptor and of every capability.
    #[doc(alias = "wTotalLength")]
    pub total_len: u16,
    /// How many capabilities follow.
    #[doc(alias = "bNumDeviceCaps")]
    pub capabilities: u8,
}

impl BosDescriptor {
    /// Bytes of the descriptor.
    pub const LEN: usize = 5;

    /// Decodes a descriptor; bytes past the known ones are ignored.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let &[_, _, t0, t1, capabilities] = fixed_descriptor::<5>(bytes, DescriptorKind::Bos)?;
        Ok(Self { total_len: u16::from_le_bytes([t0, t1]), capabilities })
    }

    /// The whole descriptor.
    pub fn encode(&self) -> [u8; 5] {
        let [t0, t1] = self.total_len.to_le_bytes();
        [5, DescriptorKind::Bos.into(), t0, t1, self.capabilities]
    }
}

impl fmt::Display for BosDescriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BOS of {} capabilities, {} bytes", self.capabilities, self.total_len)
    }
}

/// One capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceCapability<'a> {
    /// Link power management at USB 2.0 speeds.
    Usb2Extension(Usb2ExtensionCapability),
    /// Speeds and exit latencies.
    SuperSpeed(SuperSpeedCapability),
    /// Which of several devices are one product.
    ContainerId(ContainerIdCapability),
    /// Data for one platform, named by a UUID.
    Platform(PlatformCapability<'a>),
    /// Speeds above 5 Gbit/s.
    SuperSpeedPlus(SuperSpeedPlusCapability<'a>),
    /// A capability without a type here.
    Unknown {
        /// Its type.
        kind: CapabilityKind,
        /// The whole descriptor.
        bytes: &'a [u8],
    },
}

impl<'a> DeviceCapability<'a> {
    /// Decodes the capability at the front of `bytes`.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let (&[_, _, kind], rest) = whole_descriptor::<3>(bytes, DescriptorKind::DeviceCapability)?;
        let whole = bytes.get(..3 + rest.len()).unwrap_or(bytes);
        match CapabilityKind::from(kind) {
            CapabilityKind::Usb2Extension => Usb2ExtensionCapability::decode(whole).map(Self::Usb2Extension),
            CapabilityKind::SuperSpeed => SuperSpeedCapability::decode(whole).map(Self::SuperSpeed),
            CapabilityKind::ContainerId => ContainerIdCapability::decode(whole).map(Self::ContainerId),
            CapabilityKind::Platform => PlatformCapability::decode(whole).map(Self::Platform),
            CapabilityKind::SuperSpeedPlus => {
                SuperSpeedPlusCapability::decode(whole).map(Self::SuperSpeedPlus)
            }
            kind => Ok(Self::Unknown { kind, bytes: whole }),
        }
    }

    /// Writes the capability to the front of `out` and says how long it is.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, NoRoom> {
        let mut writer = Writer::new(out);
        match self {
            Self::Usb2Extension(capability) => writer.put(&capability.encode())?,
            Self::SuperSpeed(capability) => writer.put(&capability.encode())?,
            Self::ContainerId(capability) => writer.put(&capability.encode())?,
            Self::Platform(capability) => return capability.encode(out),
            Self::SuperSpeedPlus(capability) => return capability.encode(out),
            Self::Unknown { bytes, .. } => writer.put(bytes)?,
        }
        Ok(writer.written())
    }
}

impl fmt::Display for DeviceCapability<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usb2Extension(capability) => capability.fmt(f),
            Self::SuperSpeed(capability) => capability.fmt(f),
            Self::ContainerId(capability) => capability.fmt(f),
            Self::Platform(capability) => capability.fmt(f),
            Self::SuperSpeedPlus(capability) => capability.fmt(f),
            Self::Unknown { kind, bytes } => write!(f, "capability {kind}, {} bytes", bytes.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    const HEADER: [u8; 5] = [0x05, 0x0f, 0x2a, 0x00, 0x03];

    #[test]
    fn literal_header_both_ways() {
        let bos = BosDescriptor::decode(&HEADER).unwrap();
        assert_eq!(bos, BosDescriptor { total_len: 42, capabilities: 3 });
        assert_eq!(bos.encode(), HEADER);
        assert_eq!(bos.to_string(), "BOS of 3 capabilities, 42 bytes");
    }

    #[test]
    fn every_truncated_header_is_an_error() {
        for len in 0..5 {
            let error = DecodeError::Truncated { needed: 5, got: len };
            assert_eq!(BosDescriptor::decode(&HEADER[..len]), Err(error));
        }
    }

    #[test]
    fn another_type_is_another_kind() {
        let error = DecodeError::WrongKind { expected: 0x0f, found: 0x10 };
        assert_eq!(BosDescriptor::decode(&[5, 0x10, 0, 0, 0]), Err(error));
        let error = DecodeError::WrongKind { expected: 0x10, found: 0x0f };
        assert_eq!(DeviceCapability::decode(&HEADER), Err(error));
    }

    #[test]
    fn an_unknown_capability_survives() {
        let bytes = [0x05, 0x10, 0x0b, 0xaa, 0xbb, 0xcc]; // the last byte is not its own
        let capability = DeviceCapability::decode(&bytes).unwrap();
        let kind = CapabilityKind::Unknown(0x0b);
        assert_eq!(capability, DeviceCapability::Unknown { kind, bytes: &bytes[..5] });
        assert_eq!(capability.to_string(), "capability unknown (0x0b), 5 bytes");
        let mut out = [0; 5];
        assert_eq!(capability.encode(&mut out), Ok(5));
        assert_eq!(out, bytes[..5]);
        assert_eq!(capability.encode(&mut out[..4]), Err(NoRoom { needed: 5, got: 4 }));
    }

    #[test]
    fn a_known_capability_too_short_is_an_error() {
        let error = DecodeError::Truncated { needed: 10, got: 7 };
        assert_eq!(DeviceCapability::decode(&[7, 0x10, 3, 0, 0, 0, 0]), Err(error));
    }

    #[test]
    fn every_truncated_capability_is_an_error() {
        for len in 0..5 {
            let needed = if len < 3 { 3 } else { 5 };
            let error = DecodeError::Truncated { needed, got: len };
            assert_eq!(DeviceCapability::decode(&[5, 0x10, 0x0b, 1, 2][..len]), Err(error));
        }
    }

    proptest! {
        #[test]
        fn decode_undoes_encode(kind in 0u8..13, content in prop::collection::vec(any::<u8>(), 0..80)) {
            let mut bytes = [&[0, 0x10, kind], &content[..]].concat();
            bytes[0] = bytes.len() as u8;
            if let Ok(capability) = DeviceCapability::decode(&bytes) {
                let _ = capability.to_string();
                let mut out = [0; 255];
                let len = capability.encode(&mut out).unwrap();
                prop_assert_eq!(DeviceCapability::decode(&out[..len]).unwrap(), capability);
            }
        }

        #[test]
        fn any_bytes_decode_or_say_why(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = BosDescriptor::decode(&bytes);
            let _ = DeviceCapability::decode(&bytes);
        }
    }
}
