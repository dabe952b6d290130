//! `device_connect`: a device arrives (usbredir 0.7, `usb_redir_device_connect_header`).
//!
//! The host sends `interface_info` and `ep_info` before it.

use super::{Capabilities, Capability, PacketType, Speed};
use crate::{DecodeError, NoRoom, Reader, Writer};
use core::fmt;

/// The identity of a device.
///
/// ```text
///  0  speed              4..6   vendor id
///  1  device class       6..8   product id
///  2  device subclass    8..10  device version, with the capability connect_device_version
///  3  device protocol
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceConnect {
    /// Its speed.
    pub speed: Speed,
    /// bDeviceClass.
    pub device_class: u8,
    /// bDeviceSubClass.
    pub device_subclass: u8,
    /// bDeviceProtocol.
    pub device_protocol: u8,
    /// idVendor.
    pub vendor_id: u16,
    /// idProduct.
    pub product_id: u16,
    /// bcdDevice; 0 if it does not travel.
    pub device_version: u16,
}

impl DeviceConnect {
    /// The packet type that this header belongs to.
    pub const KIND: PacketType = PacketType::DeviceConnect;

    /// Bytes on the wire.
    pub const fn len(capabilities: Capabilities) -> usize {
        if capabilities.has(Capability::ConnectDeviceVersion) { 10 } else { 8 }
    }

    /// Decodes the header; bytes past [`Self::len`] are left alone.
    pub fn decode(bytes: &[u8], capabilities: Capabilities) -> Result<Self, DecodeError> {
        let needed = Self::len(capabilities);
        let head = bytes.get(..needed).ok_or(DecodeError::Truncated { needed, got: bytes.len() })?;
        let mut reader = Reader::new(head);
        Ok(Self {
            speed: reader.u8()?.into(),
            device_class: reader.u8()?,
            device_subclass: reader.u8()?,
            device_protocol: reader.u8()?,
            vendor_id: reader.le16()?,
            product_id: reader.le16()?,
            device_version: match capabilities.has(Capability::ConnectDeviceVersion) {
                true => reader.le16()?,
                false => 0,
            },
        })
    }

    /// Appends the header to `out`.
    pub fn encode(&self, capabilities: Capabilities, out: &mut Writer<'_>) -> Result<(), NoRoom> {
        let class = [self.device_class, self.device_subclass, self.device_protocol];
        out.u8(self.speed.into())?;
        out.put(&class)?;
        out.le16(self.vendor_id)?;
        out.le16(self.product_id)?;
        match capabilities.has(Capability::ConnectDeviceVersion) {
            true => out.le16(self.device_version),
            false => Ok(()),
        }
    }
}

impl fmt::Display for DeviceConnect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { speed, vendor_id, product_id, device_version, .. } = self;
        write!(f, "device_connect, {vendor_id:04x}:{product_id:04x} version {device_version:#06x}, {speed}")
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    const VERSION: Capabilities = Capabilities::of(&[Capability::ConnectDeviceVersion]);
    const DRIVE: [u8; 10] = [3, 0xef, 2, 1, 0x6b, 0x1d, 0x04, 0x01, 0x34, 0x12];

    fn encoded(device: &DeviceConnect, capabilities: Capabilities) -> ([u8; 10], usize) {
        let mut bytes = [0; 10];
        let mut out = Writer::new(&mut bytes);
        device.encode(capabilities, &mut out).unwrap();
        let written = out.written();
        (bytes, written)
    }

    #[test]
    fn the_version_travels_if_both_sides_can() {
        let device = DeviceConnect::decode(&DRIVE, VERSION).unwrap();
        assert_eq!(device.speed, Speed::Super);
        assert_eq!((device.device_class, device.device_subclass, device.device_protocol), (0xef, 2, 1));
        assert_eq!((device.vendor_id, device.product_id, device.device_version), (0x1d6b, 0x0104, 0x1234));
        assert_eq!(encoded(&device, VERSION), (DRIVE, 10));
        assert_eq!(device.to_string(), "device_connect, 1d6b:0104 version 0x1234, SuperSpeed");
    }

    #[test]
    fn the_version_stays_away_otherwise() {
        let device = DeviceConnect::decode(&DRIVE, Capabilities::NONE).unwrap();
        assert_eq!((device.product_id, device.device_version), (0x0104, 0));
        let (bytes, written) = encoded(&device, Capabilities::NONE);
        assert_eq!((&bytes[..8], written), (&DRIVE[..8], 8));
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for (capabilities, needed) in [(VERSION, 10), (Capabilities::NONE, 8)] {
            for got in 0..needed {
                let error = DeviceConnect::decode(&DRIVE[..got], capabilities).unwrap_err();
                assert_eq!(error, DecodeError::Truncated { needed, got });
            }
        }
    }

    #[test]
    fn an_unknown_speed_survives() {
        let bytes = [9, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let device = DeviceConnect::decode(&bytes, VERSION).unwrap();
        assert_eq!(device.speed, Speed::Unknown(9));
        assert_eq!(encoded(&device, VERSION).0, bytes);
    }

    proptest! {
        #[test]
        fn encode_undoes_decode(bytes: [u8; 10]) {
            let device = DeviceConnect::decode(&bytes, VERSION).unwrap();
            prop_assert_eq!(encoded(&device, VERSION), (bytes, 10));
        }
    }
}
