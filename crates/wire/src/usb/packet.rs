//! Packets of USB 1.1 and 2.0 as they are on the wire, from packet identifier to check (USB 2.0 clause 8.3).
//!
//! A token is three bytes; a data packet is an identifier, the payload and [`check_of_payload`]; a handshake is an
//! identifier alone. SuperSpeed has other packets. Left out: SYNC and end of packet, which no
//! capture keeps; start of frame, split transactions and extension tokens.

use crate::DecodeError;
use core::fmt;

code! {
    /// Packet identifier: four bits, and their complement in the upper half of the byte (USB 2.0 table 8-1). A byte whose
    /// halves do not fit is unknown.
    #[doc(alias = "PID")]
    pub enum PacketId: u8 {
        /// Token: data to the device follow.
        Out = 0xe1 => "OUT",
        /// Token: the device may send.
        In = 0x69 => "IN",
        /// Token: a control transfer begins.
        Setup = 0x2d => "SETUP",
        /// Token: has the device room?
        Ping = 0xb4 => "PING",
        /// Data with an even number.
        Data0 = 0xc3 => "DATA0",
        /// Data with an odd number.
        Data1 = 0x4b => "DATA1",
        /// The data were taken.
        Ack = 0xd2 => "ACK",
        /// Nothing to send, or no room.
        Nak = 0x5a => "NAK",
        /// The endpoint is halted, or the request is not known.
        Stall = 0x1e => "STALL",
        /// The data were taken, and there is no room for more.
        Nyet = 0x96 => "NYET",
    }
}

impl PacketId {
    /// Whether a [`Token`] begins with it.
    pub const fn is_token(self) -> bool {
        matches!(self, Self::Out | Self::In | Self::Setup | Self::Ping)
    }
}

/// Begins a transaction: who is meant, and what comes (USB 2.0 clause 8.4.1).
///
/// ```text
///  0      packet identifier
///  1..3   device address (6:0), endpoint number (10:7), check (15:11), little-endian
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// OUT, IN, SETUP or PING.
    pub id: PacketId,
    /// Address of the device, 0 to 127.
    pub address: u8,
    /// Number of the endpoint, 0 to 15.
    pub endpoint: u8,
}

impl Token {
    /// Bytes of a token.
    pub const LEN: usize = 3;

    /// Decodes a token; bytes past it are ignored.
    ///
    /// # Errors
    /// Bytes that are too few, another packet, a check that does not fit.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let &[id, low, high] =
            bytes.first_chunk().ok_or(DecodeError::Truncated { needed: Self::LEN, got: bytes.len() })?;
        let id = PacketId::from(id);
        if !id.is_token() {
            return Err(DecodeError::Invalid { field: "PID", value: u8::from(id).into() });
        }
        let word = u16::from_le_bytes([low, high]);
        if word >> 11 != check_of_token(word & 0x07ff) {
            return Err(DecodeError::Invalid { field: "CRC5", value: (word >> 11).into() });
        }
        Ok(Self { id, address: low & 0x7f, endpoint: (word >> 7 & 0x0f) as u8 })
    }

    /// The whole token. Bits of address and endpoint that do not exist are dropped.
    pub fn encode(&self) -> [u8; Self::LEN] {
        let fields = u16::from(self.address & 0x7f) | u16::from(self.endpoint & 0x0f) << 7;
        let [low, high] = (fields | check_of_token(fields) << 11).to_le_bytes();
        [self.id.into(), low, high]
    }
}

impl fmt::Display for Token {
    /// `IN 5.1`: device 5, endpoint 1.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}.{}", self.id, self.address, self.endpoint)
    }
}

/// The two bytes after the payload of a data packet (USB 2.0 clause 8.3.5.2): x¹⁶ + x¹⁵ + x² + 1.
#[doc(alias = "CRC16")]
pub fn check_of_payload(payload: &[u8]) -> [u8; 2] {
    let remainder = payload.iter().fold(0xffff, |remainder, &byte| divide(remainder, byte.into(), 8, 0xa001));
    (!remainder).to_le_bytes()
}

/// Five bits over the eleven of a token (USB 2.0 clause 8.3.5.1): x⁵ + x² + 1.
fn check_of_token(fields: u16) -> u16 {
    !divide(0x1f, fields, 11, 0x14) & 0x1f
}

/// Goes on with a division: `count` bits, the lowest first, by a polynomial written backwards.
fn divide(remainder: u16, bits: u16, count: u32, polynomial: u16) -> u16 {
    (0..count).fold(remainder ^ bits, |remainder, _| {
        if remainder & 1 == 0 { remainder >> 1 } else { remainder >> 1 ^ polynomial }
    })
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn tokens_are_what_an_analyser_shows() {
        let setup = Token { id: PacketId::Setup, address: 0, endpoint: 0 };
        assert_eq!(setup.encode(), [0x2d, 0x00, 0x10]);
        // The examples of "Cyclic Redundancy Checks in USB": checks 10111, 11100 and 01110, the first bit sent first.
        for (token, bytes) in [
            (Token { id: PacketId::Setup, address: 0x15, endpoint: 0xe }, [0x2d, 0x15, 0xef]),
            (Token { id: PacketId::Out, address: 0x3a, endpoint: 0xa }, [0xe1, 0x3a, 0x3d]),
            (Token { id: PacketId::In, address: 0x70, endpoint: 0x4 }, [0x69, 0x70, 0x72]),
        ] {
            assert_eq!(token.encode(), bytes, "{token}");
            assert_eq!(Token::decode(&bytes), Ok(token));
        }
    }

    #[test]
    fn a_token_whose_check_does_not_fit_is_refused() {
        let error = DecodeError::Invalid { field: "CRC5", value: 0x03 };
        assert_eq!(Token::decode(&[0x2d, 0x00, 0x18]), Err(error));
        assert_eq!(Token::decode(&[0x2d, 0x00]), Err(DecodeError::Truncated { needed: 3, got: 2 }));
    }

    #[test]
    fn a_handshake_is_no_token() {
        let error = DecodeError::Invalid { field: "PID", value: 0xd2 };
        assert_eq!(Token::decode(&[0xd2, 0x00, 0x10]), Err(error));
        assert_eq!(PacketId::from(0x3c), PacketId::Unknown(0x3c));
    }

    #[test]
    fn payload_has_its_check() {
        assert_eq!(check_of_payload(&[]), [0x00, 0x00]);
        // GET_DESCRIPTOR of a device, 64 bytes.
        assert_eq!(check_of_payload(&[0x80, 0x06, 0x00, 0x01, 0x00, 0x00, 0x40, 0x00]), [0xdd, 0x94]);
    }

    #[test]
    fn a_token_prints_its_place() {
        let token = Token { id: PacketId::In, address: 5, endpoint: 1 };
        assert_eq!(token.to_string(), "IN 5.1");
    }
}
