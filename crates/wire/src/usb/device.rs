//! Device descriptor (USB 3.2 clause 9.6.1, USB 2.0 clause 9.6.1).

use super::descriptor_kind::{DescriptorKind, fixed_descriptor};
use super::{BcdVersion, ClassCode};
use crate::DecodeError;
use core::fmt;

/// Properties of the device as a whole.
///
/// ```text
///  0      bLength (18)                            8..10  idVendor
///  1      bDescriptorType (01h)                  10..12  idProduct
///  2..4   bcdUSB                                 12..14  bcdDevice
///  4      bDeviceClass                           14      iManufacturer
///  5      bDeviceSubClass                        15      iProduct
///  6      bDeviceProtocol                        16      iSerialNumber
///  7      bMaxPacketSize0                        17      bNumConfigurations
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceDescriptor {
    /// The version of USB that the device keeps at its present speed.
    #[doc(alias = "bcdUSB")]
    pub usb_version: BcdVersion,
    /// [`ClassCode::PER_INTERFACE`] for most devices.
    pub class: ClassCode,
    /// As on the wire; [`Self::control_packet_len`] is in bytes.
    #[doc(alias = "bMaxPacketSize0")]
    pub max_packet_size_0: u8,
    /// Vendor id, assigned by the USB-IF.
    #[doc(alias = "idVendor")]
    pub vendor: u16,
    /// Which product of that vendor.
    #[doc(alias = "idProduct")]
    pub product: u16,
    /// Which release of that product.
    #[doc(alias = "bcdDevice")]
    pub device_version: BcdVersion,
    /// Index of the string with the vendor's name; 0 is none.
    #[doc(alias = "iManufacturer")]
    pub manufacturer_string: u8,
    /// Index of the string with the product's name; 0 is none.
    #[doc(alias = "iProduct")]
    pub product_string: u8,
    /// Index of the string with the serial number; 0 is none, which Bulk-Only Transport does not allow.
    #[doc(alias = "iSerialNumber")]
    pub serial_string: u8,
    /// How many configurations there are at the present speed.
    #[doc(alias = "bNumConfigurations")]
    pub configurations: u8,
}

impl DeviceDescriptor {
    /// Bytes of the descriptor.
    pub const LEN: usize = 18;

    /// Decodes a descriptor; bytes past the known ones are ignored.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let d = fixed_descriptor::<18>(bytes, DescriptorKind::Device)?;
        Ok(Self {
            usb_version: BcdVersion(u16::from_le_bytes([d[2], d[3]])),
            class: ClassCode::new(d[4], d[5], d[6]),
            max_packet_size_0: d[7],
            vendor: u16::from_le_bytes([d[8], d[9]]),
            product: u16::from_le_bytes([d[10], d[11]]),
            device_version: BcdVersion(u16::from_le_bytes([d[12], d[13]])),
            manufacturer_string: d[14],
            product_string: d[15],
            serial_string: d[16],
            configurations: d[17],
        })
    }

    /// The whole descriptor.
    pub fn encode(&self) -> [u8; 18] {
        let [u0, u1] = self.usb_version.0.to_le_bytes();
        let [v0, v1] = self.vendor.to_le_bytes();
        let [p0, p1] = self.product.to_le_bytes();
        let [d0, d1] = self.device_version.0.to_le_bytes();
        let ClassCode { class, subclass, protocol } = self.class;
        let strings = [self.manufacturer_string, self.product_string, self.serial_string];
        let kind = DescriptorKind::Device.into();
        let [s0, s1, s2] = strings;
        let (packet, configurations) = (self.max_packet_size_0, self.configurations);
        [
            18,
            kind,
            u0,
            u1,
            class,
            subclass,
            protocol,
            packet,
            v0,
            v1,
            p0,
            p1,
            d0,
            d1,
            s0,
            s1,
            s2,
            configurations,
        ]
    }

    /// Bytes of the longest packet of endpoint 0. From USB 3.0 on the field is an exponent of two; `None` if
    /// that is more than the 32768 bytes a `u16` holds.
    pub fn control_packet_len(&self) -> Option<u16> {
        match self.usb_version >= BcdVersion::USB_3_0 {
            true => 1u16.checked_shl(self.max_packet_size_0.into()),
            false => Some(self.max_packet_size_0.into()),
        }
    }
}

impl fmt::Display for DeviceDescriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { vendor, product, usb_version, class, .. } = self;
        write!(f, "device {vendor:04x}:{product:04x} USB {usb_version} class {class}")
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    /// A SuperSpeed device 46f4:0003, strings 1, 2, 3.
    const SUPER: [u8; 18] =
        [0x12, 0x01, 0x20, 0x03, 0x00, 0x00, 0x00, 0x09, 0xf4, 0x46, 0x03, 0x00, 0x05, 0x01, 1, 2, 3, 1];

    #[test]
    fn literal_bytes_both_ways() {
        let device = DeviceDescriptor::decode(&SUPER).unwrap();
        let expected = DeviceDescriptor {
            usb_version: BcdVersion(0x0320),
            class: ClassCode { class: 0, subclass: 0, protocol: 0 },
            max_packet_size_0: 9,
            vendor: 0x46f4,
            product: 3,
            device_version: BcdVersion(0x0105),
            manufacturer_string: 1,
            product_string: 2,
            serial_string: 3,
            configurations: 1,
        };
        assert_eq!(device, expected);
        assert_eq!(device.encode(), SUPER);
        assert_eq!(device.to_string(), "device 46f4:0003 USB 3.20 class 00/00/00");
    }

    #[test]
    fn the_control_packet_is_an_exponent_from_usb_3_on() {
        let mut device = DeviceDescriptor::decode(&SUPER).unwrap();
        assert_eq!(device.control_packet_len(), Some(512));
        device.max_packet_size_0 = 16;
        assert_eq!(device.control_packet_len(), None);
        (device.usb_version, device.max_packet_size_0) = (BcdVersion::USB_2_1, 64);
        assert_eq!(device.control_packet_len(), Some(64));
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for len in 0..18 {
            let error = DeviceDescriptor::decode(&SUPER[..len]).unwrap_err();
            assert_eq!(error, DecodeError::Truncated { needed: 18, got: len });
        }
    }

    #[test]
    fn another_type_is_another_kind() {
        let mut bytes = SUPER;
        bytes[1] = 0x02;
        assert_eq!(DeviceDescriptor::decode(&bytes), Err(DecodeError::WrongKind { expected: 1, found: 2 }));
    }

    #[test]
    fn a_length_byte_too_small_is_an_error() {
        let mut bytes = SUPER;
        bytes[0] = 17;
        let error = DecodeError::Invalid { field: "bLength", value: 17 };
        assert_eq!(DeviceDescriptor::decode(&bytes), Err(error));
    }

    proptest! {
        #[test]
        fn every_content_comes_back(content: [u8; 16]) {
            let bytes = [&[18, 1], &content[..]].concat();
            prop_assert_eq!(&DeviceDescriptor::decode(&bytes).unwrap().encode()[..], &bytes[..]);
        }

        #[test]
        fn any_bytes_decode_or_say_why(bytes in prop::collection::vec(any::<u8>(), 0..24)) {
            let _ = DeviceDescriptor::decode(&bytes);
        }
    }
}
