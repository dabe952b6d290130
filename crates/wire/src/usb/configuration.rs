//! Configuration descriptor (USB 3.2 clause 9.6.3, USB 2.0 clause 9.6.3).

use super::descriptor_kind::{DescriptorKind, fixed_descriptor};
use crate::DecodeError;
use core::fmt;

/// The head of a configuration; its interfaces and endpoints follow it in the same answer.
///
/// ```text
///  0      bLength (9)                             5      bConfigurationValue
///  1      bDescriptorType (02h)                   6      iConfiguration
///  2..4   wTotalLength (bytes, with all parts)    7      bmAttributes
///  4      bNumInterfaces                          8      bMaxPower
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfigurationDescriptor {
    /// Bytes of this descriptor and of everything that belongs to it.
    #[doc(alias = "wTotalLength")]
    pub total_len: u16,
    /// How many interfaces, not counting alternate settings.
    #[doc(alias = "bNumInterfaces")]
    pub interfaces: u8,
    /// Value of this configuration in SET_CONFIGURATION.
    #[doc(alias = "bConfigurationValue")]
    pub value: u8,
    /// Index of the string with its name; 0 is none.
    #[doc(alias = "iConfiguration")]
    pub string: u8,
    /// Bit 6 of `bmAttributes`: self-powered.
    pub self_powered: bool,
    /// Bit 5 of `bmAttributes`: can wake up the host.
    pub remote_wakeup: bool,
    /// Current drawn from the bus, in units of 2 mA, or of 8 mA at SuperSpeed.
    #[doc(alias = "bMaxPower")]
    pub max_power: u8,
}

impl ConfigurationDescriptor {
    /// Bytes of the descriptor.
    pub const LEN: usize = 9;

    /// Decodes a descriptor; bytes past the known ones are ignored, so are the reserved attributes.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        Self::decode_as(DescriptorKind::Configuration, bytes)
    }

    /// The whole descriptor. The reserved attribute bit 7 is one, as the standard wants it.
    pub fn encode(&self) -> [u8; 9] {
        self.encode_as(DescriptorKind::Configuration)
    }

    pub(super) fn decode_as(kind: DescriptorKind, bytes: &[u8]) -> Result<Self, DecodeError> {
        let &[_, _, t0, t1, interfaces, value, string, attributes, max_power] =
            fixed_descriptor::<9>(bytes, kind)?;
        Ok(Self {
            total_len: u16::from_le_bytes([t0, t1]),
            interfaces,
            value,
            string,
            self_powered: attributes & 0x40 != 0,
            remote_wakeup: attributes & 0x20 != 0,
            max_power,
        })
    }

    pub(super) fn encode_as(&self, kind: DescriptorKind) -> [u8; 9] {
        let [t0, t1] = self.total_len.to_le_bytes();
        let attributes = 0x80 | u8::from(self.self_powered) << 6 | u8::from(self.remote_wakeup) << 5;
        [9, kind.into(), t0, t1, self.interfaces, self.value, self.string, attributes, self.max_power]
    }
}

impl fmt::Display for ConfigurationDescriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { value, interfaces, total_len, .. } = self;
        write!(f, "configuration {value} of {interfaces} interfaces, {total_len} bytes")
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    /// Configuration 1, one interface, 121 bytes, self-powered, string 4, 14 units of current.
    const SELF_POWERED: [u8; 9] = [0x09, 0x02, 0x79, 0x00, 0x01, 0x01, 0x04, 0xc0, 0x0e];

    #[test]
    fn literal_bytes_both_ways() {
        let configuration = ConfigurationDescriptor::decode(&SELF_POWERED).unwrap();
        let expected = ConfigurationDescriptor {
            total_len: 121,
            interfaces: 1,
            value: 1,
            string: 4,
            self_powered: true,
            remote_wakeup: false,
            max_power: 14,
        };
        assert_eq!(configuration, expected);
        assert_eq!(configuration.encode(), SELF_POWERED);
        assert_eq!(configuration.to_string(), "configuration 1 of 1 interfaces, 121 bytes");
    }

    #[test]
    fn remote_wakeup_is_bit_5() {
        let mut bytes = SELF_POWERED;
        bytes[7] = 0xa0;
        let configuration = ConfigurationDescriptor::decode(&bytes).unwrap();
        assert!(configuration.remote_wakeup && !configuration.self_powered);
        assert_eq!(configuration.encode(), bytes);
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for len in 0..9 {
            let error = ConfigurationDescriptor::decode(&SELF_POWERED[..len]).unwrap_err();
            assert_eq!(error, DecodeError::Truncated { needed: 9, got: len });
        }
    }

    #[test]
    fn another_type_is_another_kind() {
        let mut bytes = SELF_POWERED;
        bytes[1] = 0x07;
        let error = DecodeError::WrongKind { expected: 2, found: 7 };
        assert_eq!(ConfigurationDescriptor::decode(&bytes), Err(error));
    }

    proptest! {
        #[test]
        fn every_content_comes_back_but_for_reserved_bits(content: [u8; 7]) {
            let mut bytes = [&[9, 2], &content[..]].concat();
            let configuration = ConfigurationDescriptor::decode(&bytes).unwrap();
            bytes[7] = bytes[7] & 0xe0 | 0x80;
            prop_assert_eq!(&configuration.encode()[..], &bytes[..]);
        }

        #[test]
        fn any_bytes_decode_or_say_why(bytes in prop::collection::vec(any::<u8>(), 0..16)) {
            let _ = ConfigurationDescriptor::decode(&bytes);
        }
    }
}
