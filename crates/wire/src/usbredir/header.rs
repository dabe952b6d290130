//! The header that begins every packet (usbredir 0.7, `usb_redir_header`).

use super::{Capabilities, Capability, PACKET_LEN_MAX, PacketType};
use crate::{DecodeError, NoRoom, Reader, Writer};
use core::fmt;

/// Header of a packet: its type, its length, and the request that it belongs to.
///
/// ```text
///  0..4   type          8..16  id, or
///  4..8   length        8..12  id without the capability 64bits_ids
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Type of the packet.
    pub kind: PacketType,
    /// Bytes after this header: the type's own header and the payload.
    pub length: u32,
    /// Chosen by the guest for a request, repeated by the host in the answer. An id of which 32 bits
    /// travel counts modulo 2^32.
    pub id: u64,
}

impl Header {
    /// Bytes with the longer id.
    pub const LEN_MAX: usize = 16;

    /// Bytes on the wire.
    pub const fn len(capabilities: Capabilities) -> usize {
        if capabilities.has(Capability::Ids64Bits) { 16 } else { 12 }
    }

    /// Decodes a header. Its length field is judged by [`Self::payload_len`].
    #[inline]
    pub fn decode(bytes: &[u8], capabilities: Capabilities) -> Result<Self, DecodeError> {
        let needed = Self::len(capabilities);
        let head = bytes.get(..needed).ok_or(DecodeError::Truncated { needed, got: bytes.len() })?;
        let mut reader = Reader::new(head);
        let (kind, length) = (reader.le32()?.into(), reader.le32()?);
        let id = match capabilities.has(Capability::Ids64Bits) {
            true => reader.le64()?,
            false => reader.le32()?.into(),
        };
        Ok(Self { kind, length, id })
    }

    /// Appends the header to `out`.
    #[inline]
    pub fn encode(&self, capabilities: Capabilities, out: &mut Writer<'_>) -> Result<(), NoRoom> {
        let [k0, k1, k2, k3] = u32::from(self.kind).to_le_bytes();
        let [l0, l1, l2, l3] = self.length.to_le_bytes();
        let [i0, i1, i2, i3, i4, i5, i6, i7] = self.id.to_le_bytes();
        match capabilities.has(Capability::Ids64Bits) {
            true => out.put(&[k0, k1, k2, k3, l0, l1, l2, l3, i0, i1, i2, i3, i4, i5, i6, i7]),
            false => out.put(&[k0, k1, k2, k3, l0, l1, l2, l3, i0, i1, i2, i3]),
        }
    }

    /// Bytes of payload after the type's own header.
    ///
    /// Errors: a type without a known layout ([`DecodeError::Invalid`] `type`; the caller may still read
    /// over `length` bytes), and a `length` that is too short for the type's header, longer than a type
    /// without payload has, or past [`PACKET_LEN_MAX`].
    #[inline]
    pub fn payload_len(&self, capabilities: Capabilities) -> Result<u32, DecodeError> {
        let Some(header_len) = self.kind.header_len(capabilities) else {
            return Err(DecodeError::Invalid { field: "type", value: u32::from(self.kind).into() });
        };
        let wrong = DecodeError::Invalid { field: "length", value: self.length.into() };
        let payload_len = self.length.checked_sub(header_len as u32).ok_or(wrong)?;
        let fits = self.length <= PACKET_LEN_MAX && (payload_len == 0 || self.kind.has_payload());
        if fits { Ok(payload_len) } else { Err(wrong) }
    }
}

impl fmt::Display for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} id {} length {}", self.kind, self.id, self.length)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    const LONG: Capabilities = Capabilities::of(&[Capability::Ids64Bits]);
    const CANCEL: [u8; 16] = [21, 0, 0, 0, 0, 0, 0, 0, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11];

    fn encoded(header: &Header, capabilities: Capabilities) -> ([u8; 16], usize) {
        let mut bytes = [0; 16];
        let mut out = Writer::new(&mut bytes);
        header.encode(capabilities, &mut out).unwrap();
        let written = out.written();
        (bytes, written)
    }

    #[test]
    fn an_id_has_64_bits_if_both_sides_can() {
        let header = Header::decode(&CANCEL, LONG).unwrap();
        let expected = Header { kind: PacketType::CancelDataPacket, length: 0, id: 0x1122_3344_5566_7788 };
        assert_eq!(header, expected);
        assert_eq!(encoded(&header, LONG), (CANCEL, 16));
        assert_eq!(header.to_string(), "cancel_data_packet id 1234605616436508552 length 0");
    }

    #[test]
    fn an_id_has_32_bits_otherwise() {
        let header = Header::decode(&CANCEL, Capabilities::NONE).unwrap();
        assert_eq!(header.id, 0x5566_7788);
        let (bytes, written) = encoded(&header, Capabilities::NONE);
        assert_eq!((&bytes[..12], written), (&CANCEL[..12], 12));
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for (capabilities, needed) in [(LONG, 16), (Capabilities::NONE, 12)] {
            for got in 0..needed {
                let error = Header::decode(&CANCEL[..got], capabilities).unwrap_err();
                assert_eq!(error, DecodeError::Truncated { needed, got });
            }
        }
    }

    #[test]
    fn the_payload_is_what_the_type_header_leaves() {
        let wide = Capabilities::of(&[Capability::BulkLength32Bits]);
        let header = Header { kind: PacketType::BulkPacket, length: 41, id: 1 };
        assert_eq!(header.payload_len(Capabilities::NONE), Ok(33));
        assert_eq!(header.payload_len(wide), Ok(31));
    }

    #[test]
    fn a_length_that_cannot_be_is_refused() {
        let wrong = |kind, length| {
            let error = Header { kind, length, id: 0 }.payload_len(Capabilities::NONE).unwrap_err();
            assert_eq!(error, DecodeError::Invalid { field: "length", value: length.into() });
        };
        wrong(PacketType::BulkPacket, 7); // shorter than its own header
        wrong(PacketType::Reset, 1); // a type without payload
        wrong(PacketType::BulkPacket, 0x0800_0401); // past the limit
        wrong(PacketType::Hello, u32::MAX);
    }

    #[test]
    fn an_unknown_type_survives_and_has_no_payload() {
        let header = Header::decode(&[28, 0, 0, 0, 5, 0, 0, 0, 9, 0, 0, 0], Capabilities::NONE).unwrap();
        assert_eq!(header, Header { kind: PacketType::Unknown(28), length: 5, id: 9 });
        let error = DecodeError::Invalid { field: "type", value: 28 };
        assert_eq!(header.payload_len(Capabilities::NONE), Err(error));
    }

    #[test]
    fn a_full_destination_is_an_error() {
        let header = Header { kind: PacketType::Reset, length: 0, id: 0 };
        let mut bytes = [0; 15];
        let error = header.encode(LONG, &mut Writer::new(&mut bytes)).unwrap_err();
        assert_eq!(error, NoRoom { needed: 16, got: 15 });
    }

    proptest! {
        #[test]
        fn decode_undoes_encode(kind: u32, length: u32, id: u64, wide: bool) {
            let capabilities = if wide { LONG } else { Capabilities::NONE };
            let id = if wide { id } else { id & 0xffff_ffff };
            let header = Header { kind: kind.into(), length, id };
            let (bytes, _) = encoded(&header, capabilities);
            prop_assert_eq!(Header::decode(&bytes, capabilities).unwrap(), header);
        }

        #[test]
        fn a_payload_never_passes_the_limit(kind in 0u32..110, length: u32, capabilities: u32) {
            let header = Header { kind: kind.into(), length, id: 0 };
            if let Ok(payload_len) = header.payload_len(capabilities.into()) {
                prop_assert!(payload_len <= length && length <= PACKET_LEN_MAX);
            }
        }
    }
}
