//! Device qualifier descriptor (USB 2.0 clause 9.6.2).

use super::descriptor_kind::{DescriptorKind, fixed_descriptor};
use super::{BcdVersion, ClassCode};
use crate::DecodeError;
use core::fmt;

/// Fields of the device descriptor as they would be at the other of full and high speed.
///
/// A device at SuperSpeed, or one that knows only one of the two, answers a request for it with a stall.
///
/// ```text
///  0      bLength (10)                            6      bDeviceProtocol
///  1      bDescriptorType (06h)                   7      bMaxPacketSize0 (bytes)
///  2..4   bcdUSB                                  8      bNumConfigurations
///  4      bDeviceClass                            9      reserved
///  5      bDeviceSubClass
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QualifierDescriptor {
    /// The version of USB.
    #[doc(alias = "bcdUSB")]
    pub usb_version: BcdVersion,
    /// The class.
    pub class: ClassCode,
    /// Bytes of the longest packet of endpoint 0.
    #[doc(alias = "bMaxPacketSize0")]
    pub max_packet_size_0: u8,
    /// How many configurations there are at the other speed.
    #[doc(alias = "bNumConfigurations")]
    pub configurations: u8,
}

impl QualifierDescriptor {
    /// Bytes of the descriptor.
    pub const LEN: usize = 10;

    /// Decodes a descriptor; the reserved byte and bytes past the known ones are ignored.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let &[_, _, u0, u1, class, subclass, protocol, max_packet_size_0, configurations, _] =
            fixed_descriptor::<10>(bytes, DescriptorKind::DeviceQualifier)?;
        let usb_version = BcdVersion(u16::from_le_bytes([u0, u1]));
        let class = ClassCode { class, subclass, protocol };
        Ok(Self { usb_version, class, max_packet_size_0, configurations })
    }

    /// The whole descriptor.
    pub fn encode(&self) -> [u8; 10] {
        let [u0, u1] = self.usb_version.0.to_le_bytes();
        let ClassCode { class, subclass, protocol } = self.class;
        let kind = DescriptorKind::DeviceQualifier.into();
        [10, kind, u0, u1, class, subclass, protocol, self.max_packet_size_0, self.configurations, 0]
    }
}

impl fmt::Display for QualifierDescriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { usb_version, class, configurations, .. } = self;
        write!(f, "at the other speed USB {usb_version} class {class}, {configurations} configurations")
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    const QUALIFIER: [u8; 10] = [0x0a, 0x06, 0x10, 0x02, 0x00, 0x00, 0x00, 0x40, 0x01, 0x00];

    #[test]
    fn literal_bytes_both_ways() {
        let qualifier = QualifierDescriptor::decode(&QUALIFIER).unwrap();
        let expected = QualifierDescriptor {
            usb_version: BcdVersion(0x0210),
            class: ClassCode { class: 0, subclass: 0, protocol: 0 },
            max_packet_size_0: 64,
            configurations: 1,
        };
        assert_eq!(qualifier, expected);
        assert_eq!(qualifier.encode(), QUALIFIER);
        let text = "at the other speed USB 2.10 class 00/00/00, 1 configurations";
        assert_eq!(qualifier.to_string(), text);
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for len in 0..10 {
            let error = QualifierDescriptor::decode(&QUALIFIER[..len]).unwrap_err();
            assert_eq!(error, DecodeError::Truncated { needed: 10, got: len });
        }
    }

    #[test]
    fn another_type_is_another_kind() {
        let mut bytes = QUALIFIER;
        bytes[1] = 0x01;
        let error = DecodeError::WrongKind { expected: 6, found: 1 };
        assert_eq!(QualifierDescriptor::decode(&bytes), Err(error));
    }

    proptest! {
        #[test]
        fn every_content_comes_back(content: [u8; 7]) {
            let bytes = [&[10, 6], &content[..], &[0]].concat();
            prop_assert_eq!(&QualifierDescriptor::decode(&bytes).unwrap().encode()[..], &bytes[..]);
        }

        #[test]
        fn any_bytes_decode_or_say_why(bytes in prop::collection::vec(any::<u8>(), 0..16)) {
            let _ = QualifierDescriptor::decode(&bytes);
        }
    }
}
