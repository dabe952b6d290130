//! The two class requests on endpoint 0 (Bulk-Only Transport 1.0 clause 3).

use crate::DecodeError;
use crate::usb::{Direction, Recipient, RequestKind, SetupPacket};
use core::fmt;

/// A class request to a Bulk-Only interface. Every field of the setup packet is prescribed, so a request
/// that differs in one of them is not this request; a device answers it with a stall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClassRequest {
    /// Answers one byte: the highest logical unit, 0 to 15 (clause 3.2).
    GetMaxLun {
        /// `bInterfaceNumber` of the interface asked.
        interface: u8,
    },
    /// Makes the device ready for the next command wrapper; halts and toggles stay (clause 3.1).
    MassStorageReset {
        /// `bInterfaceNumber` of the interface asked.
        interface: u8,
    },
}

impl ClassRequest {
    /// `bRequest` of Get Max LUN.
    pub const GET_MAX_LUN: u8 = 0xfe;
    /// `bRequest` of Bulk-Only Mass Storage Reset.
    pub const MASS_STORAGE_RESET: u8 = 0xff;

    /// The request in a setup packet.
    pub fn decode(setup: &SetupPacket) -> Result<Self, DecodeError> {
        let interface = setup.index.to_le_bytes()[0];
        let request = match setup.request {
            Self::GET_MAX_LUN => Self::GetMaxLun { interface },
            Self::MASS_STORAGE_RESET => Self::MassStorageReset { interface },
            found => {
                let (expected, found) = (Self::GET_MAX_LUN.into(), found.into());
                return Err(DecodeError::WrongKind { expected, found });
            }
        };
        let prescribed = request.encode();
        let fields: [(&'static str, u16, u16); 4] = [
            ("bmRequestType", setup.request_type().into(), prescribed.request_type().into()),
            ("wValue", setup.value, prescribed.value),
            ("wIndex", setup.index, prescribed.index),
            ("wLength", setup.length, prescribed.length),
        ];
        match fields.into_iter().find(|(_, found, right)| found != right) {
            Some((field, value, _)) => Err(DecodeError::Invalid { field, value: value.into() }),
            None => Ok(request),
        }
    }

    /// The setup packet of the request.
    pub fn encode(&self) -> SetupPacket {
        let (direction, request, interface, length) = match *self {
            Self::GetMaxLun { interface } => (Direction::In, Self::GET_MAX_LUN, interface, 1),
            Self::MassStorageReset { interface } => (Direction::Out, Self::MASS_STORAGE_RESET, interface, 0),
        };
        let (kind, recipient) = (RequestKind::Class, Recipient::Interface);
        SetupPacket { direction, kind, recipient, request, value: 0, index: interface.into(), length }
    }
}

impl fmt::Display for ClassRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::GetMaxLun { interface } => write!(f, "Get Max LUN of interface {interface}"),
            Self::MassStorageReset { interface } => write!(f, "Mass Storage Reset of interface {interface}"),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    const GET_MAX_LUN: [u8; 8] = [0xa1, 0xfe, 0x00, 0x00, 0x02, 0x00, 0x01, 0x00];
    const RESET: [u8; 8] = [0x21, 0xff, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00];

    fn decode(bytes: [u8; 8]) -> Result<ClassRequest, DecodeError> {
        ClassRequest::decode(&SetupPacket::from(bytes))
    }

    #[test]
    fn literal_get_max_lun_both_ways() {
        let request = ClassRequest::GetMaxLun { interface: 2 };
        assert_eq!(decode(GET_MAX_LUN), Ok(request));
        assert_eq!(request.encode().encode(), GET_MAX_LUN);
        assert_eq!(request.to_string(), "Get Max LUN of interface 2");
    }

    #[test]
    fn literal_reset_both_ways() {
        let request = ClassRequest::MassStorageReset { interface: 0 };
        assert_eq!(decode(RESET), Ok(request));
        assert_eq!(request.encode().encode(), RESET);
        assert_eq!(request.to_string(), "Mass Storage Reset of interface 0");
    }

    #[test]
    fn every_prescribed_field_counts() {
        let changes = [
            (0, 0x21, "bmRequestType", 0x21), // out, not in
            (2, 1, "wValue", 1),
            (5, 1, "wIndex", 0x0102),
            (6, 2, "wLength", 2),
        ];
        for (offset, byte, field, value) in changes {
            let mut bytes = GET_MAX_LUN;
            bytes[offset] = byte;
            assert_eq!(decode(bytes), Err(DecodeError::Invalid { field, value }));
        }
    }

    #[test]
    fn another_request_is_another_kind() {
        let mut bytes = GET_MAX_LUN;
        bytes[1] = 0xfc;
        assert_eq!(decode(bytes), Err(DecodeError::WrongKind { expected: 0xfe, found: 0xfc }));
    }

    proptest! {
        #[test]
        fn what_decodes_encodes_to_the_same_bytes(bytes: [u8; 8], reset: bool, right: [bool; 3]) {
            let mut bytes = bytes;
            bytes[0] = if right[0] { if reset { 0x21 } else { 0xa1 } } else { bytes[0] };
            bytes[1] = if reset { 0xff } else { 0xfe };
            if right[1] {
                (bytes[2], bytes[3], bytes[5]) = (0, 0, 0);
            }
            if right[2] {
                (bytes[6], bytes[7]) = (u8::from(!reset), 0);
            }
            if let Ok(request) = decode(bytes) {
                prop_assert_eq!(request.encode().encode(), bytes);
            } else {
                prop_assert!(right != [true; 3]);
            }
        }
    }
}
