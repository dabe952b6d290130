//! Accept Device-Specific Command (CBI Transport 1.1 clause 2.1).

use crate::DecodeError;
use crate::usb::{Direction, Recipient, RequestKind, SetupPacket};
use core::fmt;

/// The class request that carries a command block in its data stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(alias = "ADSC")]
pub struct AcceptCommand {
    /// `bInterfaceNumber` of the interface.
    pub interface: u8,
    /// Bytes of the command block.
    pub length: u16,
}

impl AcceptCommand {
    /// `bRequest`.
    pub const REQUEST: u8 = 0x00;

    /// The request in a setup packet; every other field is prescribed.
    pub fn decode(setup: &SetupPacket) -> Result<Self, DecodeError> {
        let [interface, _] = setup.index.to_le_bytes();
        let request = Self { interface, length: setup.length };
        let prescribed = request.encode();
        let fields: [(&'static str, u16, u16); 4] = [
            ("bmRequestType", setup.request_type().into(), prescribed.request_type().into()),
            ("bRequest", setup.request.into(), Self::REQUEST.into()),
            ("wValue", setup.value, 0),
            ("wIndex", setup.index, prescribed.index),
        ];
        match fields.into_iter().find(|(_, found, right)| found != right) {
            Some((field, value, _)) => Err(DecodeError::Invalid { field, value: value.into() }),
            None => Ok(request),
        }
    }

    /// The setup packet of the request.
    pub const fn encode(&self) -> SetupPacket {
        SetupPacket {
            direction: Direction::Out,
            kind: RequestKind::Class,
            recipient: Recipient::Interface,
            request: Self::REQUEST,
            value: 0,
            index: self.interface as u16,
            length: self.length,
        }
    }
}

impl fmt::Display for AcceptCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { interface, length } = self;
        write!(f, "Accept Device-Specific Command of interface {interface}, {length} bytes")
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    const BYTES: [u8; 8] = [0x21, 0x00, 0, 0, 0x02, 0, 12, 0];

    #[test]
    fn literal_bytes_both_ways() {
        let request = AcceptCommand { interface: 2, length: 12 };
        assert_eq!(AcceptCommand::decode(&BYTES.into()), Ok(request));
        assert_eq!(request.encode().encode(), BYTES);
        assert_eq!(request.to_string(), "Accept Device-Specific Command of interface 2, 12 bytes");
    }

    #[test]
    fn other_requests_are_refused_at_their_field() {
        for (at, byte, field) in
            [(0, 0xa1, "bmRequestType"), (1, 0xff, "bRequest"), (2, 1, "wValue"), (5, 1, "wIndex")]
        {
            let mut bytes = BYTES;
            bytes[at] = byte;
            let found = AcceptCommand::decode(&bytes.into());
            assert!(
                matches!(found, Err(DecodeError::Invalid { field: name, .. }) if name == field),
                "{found:?}"
            );
        }
    }
}
