//! Data packets: transfers on their way to the device and completions on their way back (usbredir 0.7).
//!
//! The guest asks: status 0, `length` as many bytes as it has or wants. The host answers with the same id:
//! how it ended, `length` as many bytes as moved. Payload travels with the data itself: from the guest for
//! OUT, from the host for IN; in the other direction `length` stands alone. `payload_len` says which.

use super::{BULK_TRANSFER_LEN_MAX, Capabilities, Capability, PacketType, Side, Status};
use crate::{DecodeError, NoRoom, Reader, Writer};
use core::fmt;

fixed_layout! {
    /// A control transfer on endpoint 0.
    pub struct ControlPacket is PacketType::ControlPacket => {
        /// 0x80 if data goes to the guest, 0x00 if it goes to the device.
        endpoint: u8 as u8,
        /// bRequest.
        request: u8 as u8,
        /// bmRequestType.
        request_type: u8 as u8,
        /// How the transfer ended.
        status: Status as u8,
        /// wValue.
        value: u16 as u16,
        /// wIndex.
        index: u16 as u16,
        /// wLength, or bytes moved.
        length: u16 as u16,
    }
}

fixed_layout! {
    /// An isochronous packet; payload goes with it in the direction of its endpoint.
    pub struct IsoPacket is PacketType::IsoPacket => {
        /// Endpoint address.
        endpoint: u8 as u8,
        /// How the packet ended.
        status: Status as u8,
        /// Bytes.
        length: u16 as u16,
    }
}

fixed_layout! {
    /// An interrupt packet: polled by the host for IN, sent and answered for OUT.
    pub struct InterruptPacket is PacketType::InterruptPacket => {
        /// Endpoint address.
        endpoint: u8 as u8,
        /// How the packet ended.
        status: Status as u8,
        /// Bytes.
        length: u16 as u16,
    }
}

fixed_layout! {
    /// Bytes that the host read ahead on a bulk IN endpoint.
    pub struct BufferedBulkPacket is PacketType::BufferedBulkPacket => {
        /// Stream, 0 for none.
        stream_id: u32 as u32,
        /// Bytes.
        length: u32 as u32,
        /// Endpoint address, IN.
        endpoint: u8 as u8,
        /// How the transfer ended.
        status: Status as u8,
    }
}

/// A bulk transfer.
///
/// ```text
///  0     endpoint            4..8   stream_id
///  1     status              8..10  length, high part, with the capability 32bits_bulk_length
///  2..4  length, low part
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BulkPacket {
    /// Endpoint address.
    pub endpoint: u8,
    /// How the transfer ended.
    pub status: Status,
    /// Bytes wanted or moved, at most [`Self::length_max`].
    pub length: u32,
    /// Stream, 0 for none.
    pub stream_id: u32,
}

impl BulkPacket {
    /// The packet type that this header belongs to.
    pub const KIND: PacketType = PacketType::BulkPacket;

    /// Bytes on the wire.
    pub const fn len(capabilities: Capabilities) -> usize {
        if capabilities.has(Capability::BulkLength32Bits) { 10 } else { 8 }
    }

    /// The longest transfer, in bytes, that can be said.
    pub const fn length_max(capabilities: Capabilities) -> u32 {
        if capabilities.has(Capability::BulkLength32Bits) { BULK_TRANSFER_LEN_MAX } else { 0xffff }
    }

    /// Decodes the header; bytes past [`Self::len`] are left alone.
    #[inline]
    pub fn decode(bytes: &[u8], capabilities: Capabilities) -> Result<Self, DecodeError> {
        let needed = Self::len(capabilities);
        let head = bytes.get(..needed).ok_or(DecodeError::Truncated { needed, got: bytes.len() })?;
        let mut reader = Reader::new(head);
        let (endpoint, status) = (reader.u8()?, reader.u8()?.into());
        let (length_low, stream_id) = (u32::from(reader.le16()?), reader.le32()?);
        let length = match capabilities.has(Capability::BulkLength32Bits) {
            true => u32::from(reader.le16()?) << 16 | length_low,
            false => length_low,
        };
        if length > BULK_TRANSFER_LEN_MAX {
            return Err(DecodeError::Invalid { field: "length", value: length.into() });
        }
        Ok(Self { endpoint, status, length, stream_id })
    }

    /// Appends the header to `out`. A length past [`Self::length_max`] is written as that.
    #[inline]
    pub fn encode(&self, capabilities: Capabilities, out: &mut Writer<'_>) -> Result<(), NoRoom> {
        let [l0, l1, l2, l3] = self.length.min(Self::length_max(capabilities)).to_le_bytes();
        let [s0, s1, s2, s3] = self.stream_id.to_le_bytes();
        let (endpoint, status) = (self.endpoint, self.status.into());
        match capabilities.has(Capability::BulkLength32Bits) {
            true => out.put(&[endpoint, status, l0, l1, s0, s1, s2, s3, l2, l3]),
            false => out.put(&[endpoint, status, l0, l1, s0, s1, s2, s3]),
        }
    }

    /// Bytes of payload when `sender` sends this.
    pub const fn payload_len(&self, sender: Side) -> u32 {
        if carries_data(self.endpoint, sender) { self.length } else { 0 }
    }
}

impl fmt::Display for BulkPacket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { endpoint, status, length, stream_id } = self;
        write!(f, "bulk_packet, endpoint {endpoint:#04x} stream {stream_id}, {length} bytes, {status}")
    }
}

impl ControlPacket {
    /// Bytes of payload when `sender` sends this.
    pub const fn payload_len(&self, sender: Side) -> u32 {
        if carries_data(self.endpoint, sender) { self.length as u32 } else { 0 }
    }
}

impl IsoPacket {
    /// Bytes of payload when `sender` sends this.
    pub const fn payload_len(&self, sender: Side) -> u32 {
        if carries_data(self.endpoint, sender) { self.length as u32 } else { 0 }
    }
}

impl InterruptPacket {
    /// Bytes of payload when `sender` sends this.
    pub const fn payload_len(&self, sender: Side) -> u32 {
        if carries_data(self.endpoint, sender) { self.length as u32 } else { 0 }
    }
}

impl BufferedBulkPacket {
    /// Bytes of payload when `sender` sends this.
    pub const fn payload_len(&self, sender: Side) -> u32 {
        if carries_data(self.endpoint, sender) { self.length } else { 0 }
    }
}

/// Data goes from the host for IN endpoints, from the guest for OUT endpoints.
const fn carries_data(endpoint: u8, sender: Side) -> bool {
    (endpoint & 0x80 != 0) == matches!(sender, Side::UsbHost)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    const WIDE: Capabilities = Capabilities::of(&[Capability::BulkLength32Bits]);
    /// 0x00012345 bytes from endpoint 1 IN, stream 0x1f, stalled.
    const BULK: [u8; 10] = [0x81, 4, 0x45, 0x23, 0x1f, 0, 0, 0, 0x01, 0x00];

    fn encoded(bulk: &BulkPacket, capabilities: Capabilities) -> std::vec::Vec<u8> {
        let mut bytes = [0; 10];
        let mut out = Writer::new(&mut bytes);
        bulk.encode(capabilities, &mut out).unwrap();
        let written = out.written();
        bytes[..written].to_vec()
    }

    #[test]
    fn a_bulk_length_has_32_bits_if_both_sides_can() {
        let bulk = BulkPacket::decode(&BULK, WIDE).unwrap();
        let expected =
            BulkPacket { endpoint: 0x81, status: Status::Stall, length: 0x1_2345, stream_id: 0x1f };
        assert_eq!(bulk, expected);
        assert_eq!(encoded(&bulk, WIDE), BULK);
        assert_eq!(bulk.to_string(), "bulk_packet, endpoint 0x81 stream 31, 74565 bytes, stall");
    }

    #[test]
    fn a_bulk_length_has_16_bits_otherwise() {
        let bulk = BulkPacket::decode(&BULK, Capabilities::NONE).unwrap();
        assert_eq!(bulk.length, 0x2345);
        assert_eq!(encoded(&bulk, Capabilities::NONE), BULK[..8]);
        let long = BulkPacket { length: 0x1_0000, ..bulk };
        assert_eq!(encoded(&long, Capabilities::NONE)[2..4], [0xff, 0xff]);
    }

    #[test]
    fn a_bulk_length_past_the_limit_is_refused() {
        let mut bytes = [0x81, 0, 0, 0, 0, 0, 0, 0, 0x00, 0x08]; // 128 MiB
        assert_eq!(BulkPacket::decode(&bytes, WIDE).unwrap().length, 0x0800_0000);
        bytes[2] = 1;
        let error = DecodeError::Invalid { field: "length", value: 0x0800_0001 };
        assert_eq!(BulkPacket::decode(&bytes, WIDE), Err(error));
    }

    #[test]
    fn a_control_transfer_carries_its_setup() {
        let bytes = [0x80, 6, 0x80, 0, 0x00, 0x02, 0x09, 0x04, 0xff, 0x01];
        let control = ControlPacket::decode(&bytes).unwrap();
        let expected = ControlPacket {
            endpoint: 0x80,
            request: 6,
            request_type: 0x80,
            status: Status::Success,
            value: 0x0200,
            index: 0x0409,
            length: 0x01ff,
        };
        assert_eq!((control, control.encode()), (expected, bytes));
    }

    #[test]
    fn other_data_packets_both_ways() {
        let iso = IsoPacket { endpoint: 0x02, status: Status::IoError, length: 0x0102 };
        assert_eq!(IsoPacket::decode(&[2, 3, 2, 1]), Ok(iso));
        assert_eq!(iso.encode(), [2, 3, 2, 1]);
        let interrupt = InterruptPacket { endpoint: 0x83, status: Status::Timeout, length: 8 };
        assert_eq!(InterruptPacket::decode(&[0x83, 5, 8, 0]), Ok(interrupt));
        assert_eq!(interrupt.encode(), [0x83, 5, 8, 0]);
        let bytes = [1, 0, 0, 0, 4, 3, 2, 1, 0x81, 1];
        let buffered = BufferedBulkPacket {
            stream_id: 1,
            length: 0x0102_0304,
            endpoint: 0x81,
            status: Status::Cancelled,
        };
        assert_eq!(BufferedBulkPacket::decode(&bytes), Ok(buffered));
        assert_eq!(buffered.encode(), bytes);
    }

    #[test]
    fn payload_travels_with_the_data() {
        let bulk = |endpoint| BulkPacket { endpoint, status: Status::Success, length: 512, stream_id: 0 };
        assert_eq!(bulk(0x81).payload_len(Side::UsbHost), 512);
        assert_eq!(bulk(0x81).payload_len(Side::UsbGuest), 0);
        assert_eq!(bulk(0x04).payload_len(Side::UsbHost), 0);
        assert_eq!(bulk(0x04).payload_len(Side::UsbGuest), 512);
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        let short = |needed, got| Some(DecodeError::Truncated { needed, got }).filter(|_| got < needed);
        for got in 0..10 {
            let bytes = &[0; 10][..got];
            assert_eq!(BulkPacket::decode(bytes, WIDE).err(), short(10, got));
            assert_eq!(BulkPacket::decode(bytes, Capabilities::NONE).err(), short(8, got));
            assert_eq!(ControlPacket::decode(bytes).err(), short(10, got));
            assert_eq!(IsoPacket::decode(bytes).err(), short(4, got));
            assert_eq!(InterruptPacket::decode(bytes).err(), short(4, got));
            assert_eq!(BufferedBulkPacket::decode(bytes).err(), short(10, got));
        }
    }

    proptest! {
        #[test]
        fn decode_undoes_encode(
            endpoint: u8, status: u8, length in 0..=BULK_TRANSFER_LEN_MAX, stream_id: u32, wide: bool,
        ) {
            let capabilities = if wide { WIDE } else { Capabilities::NONE };
            let length = length.min(BulkPacket::length_max(capabilities));
            let bulk = BulkPacket { endpoint, status: status.into(), length, stream_id };
            prop_assert_eq!(BulkPacket::decode(&encoded(&bulk, capabilities), capabilities).unwrap(), bulk);
        }
    }
}
