//! Interface descriptor (USB 3.2 clause 9.6.5, USB 2.0 clause 9.6.5).

use super::ClassCode;
use super::descriptor_kind::{DescriptorKind, fixed_descriptor};
use crate::DecodeError;
use core::fmt;

/// One alternate setting of an interface; its endpoints follow it.
///
/// ```text
///  0      bLength (9)                             5      bInterfaceClass
///  1      bDescriptorType (04h)                   6      bInterfaceSubClass
///  2      bInterfaceNumber                        7      bInterfaceProtocol
///  3      bAlternateSetting                       8      iInterface
///  4      bNumEndpoints
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceDescriptor {
    /// Which interface, from 0.
    #[doc(alias = "bInterfaceNumber")]
    pub number: u8,
    /// Which setting of it, from 0; SET_INTERFACE chooses.
    #[doc(alias = "bAlternateSetting")]
    pub alternate: u8,
    /// How many endpoints, without endpoint 0.
    #[doc(alias = "bNumEndpoints")]
    pub endpoints: u8,
    /// Class, subclass and protocol of the interface.
    pub class: ClassCode,
    /// Index of the string with its name; 0 is none.
    #[doc(alias = "iInterface")]
    pub string: u8,
}

impl InterfaceDescriptor {
    /// Bytes of the descriptor.
    pub const LEN: usize = 9;

    /// Decodes a descriptor; bytes past the known ones are ignored.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let &[_, _, number, alternate, endpoints, class, subclass, protocol, string] =
            fixed_descriptor::<9>(bytes, DescriptorKind::Interface)?;
        let class = ClassCode { class, subclass, protocol };
        Ok(Self { number, alternate, endpoints, class, string })
    }

    /// The whole descriptor.
    pub fn encode(&self) -> [u8; 9] {
        let Self { number, alternate, endpoints, class, string } = *self;
        let ClassCode { class, subclass, protocol } = class;
        let kind = DescriptorKind::Interface.into();
        [9, kind, number, alternate, endpoints, class, subclass, protocol, string]
    }
}

impl fmt::Display for InterfaceDescriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, alternate, endpoints, class, .. } = self;
        write!(f, "interface {number} alternate {alternate} class {class}, {endpoints} endpoints")
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    /// Interface 0, alternate setting 1, UAS with four endpoints, string 6.
    const UAS: [u8; 9] = [0x09, 0x04, 0x00, 0x01, 0x04, 0x08, 0x06, 0x62, 0x06];

    #[test]
    fn literal_bytes_both_ways() {
        let interface = InterfaceDescriptor::decode(&UAS).unwrap();
        let class = ClassCode::UAS;
        let expected = InterfaceDescriptor { number: 0, alternate: 1, endpoints: 4, class, string: 6 };
        assert_eq!(interface, expected);
        assert_eq!(interface.encode(), UAS);
        assert_eq!(interface.to_string(), "interface 0 alternate 1 class 08/06/62 (UAS), 4 endpoints");
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for len in 0..9 {
            let error = InterfaceDescriptor::decode(&UAS[..len]).unwrap_err();
            assert_eq!(error, DecodeError::Truncated { needed: 9, got: len });
        }
    }

    #[test]
    fn another_type_is_another_kind() {
        let mut bytes = UAS;
        bytes[1] = 0x0b;
        let error = DecodeError::WrongKind { expected: 4, found: 11 };
        assert_eq!(InterfaceDescriptor::decode(&bytes), Err(error));
    }

    proptest! {
        #[test]
        fn every_content_comes_back(content: [u8; 7]) {
            let bytes = [&[9, 4], &content[..]].concat();
            prop_assert_eq!(&InterfaceDescriptor::decode(&bytes).unwrap().encode()[..], &bytes[..]);
        }

        #[test]
        fn any_bytes_decode_or_say_why(bytes in prop::collection::vec(any::<u8>(), 0..16)) {
            let _ = InterfaceDescriptor::decode(&bytes);
        }
    }
}
