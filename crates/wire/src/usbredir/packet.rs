//! Any packet: one value for the headers of all 33 types.
//!
//! A session that is in a hurry decodes the type it expects; this is for everything else: rare packets,
//! traces, fuzzing. The payload is not in it.

use super::{
    AllocBulkStreams, AltSettingStatus, BufferedBulkPacket, BulkPacket, BulkReceivingStatus,
    BulkStreamsStatus, Capabilities, ConfigurationStatus, ControlPacket, DeviceConnect, EndpointInfo,
    FreeBulkStreams, GetAltSetting, Header, Hello, InterfaceInfo, InterruptPacket, InterruptReceivingStatus,
    IsoPacket, IsoStreamStatus, PacketType, SetAltSetting, SetConfiguration, Side, StartBulkReceiving,
    StartInterruptReceiving, StartIsoStream, StopBulkReceiving, StopInterruptReceiving, StopIsoStream,
};
use crate::{DecodeError, NoRoom, Writer};
use core::fmt;

/// Declares [`Packet`] from three lists: types without a type-specific header, types whose header always has
/// the same layout, types whose layout the capabilities decide.
macro_rules! packets {
    (bare: $($bare:ident)+; fixed: $($fixed:ident)+; negotiated: $($negotiated:ident)+;) => {
        /// The type's own header of any packet. Variants are documented at [`PacketType`].
        #[allow(missing_docs, reason = "each is documented at the packet type of the same name")]
        #[allow(clippy::large_enum_variant, reason = "no allocation here; the large ones are rare")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Packet {
            $( $bare, )+
            $( $fixed($fixed), )+
            $( $negotiated($negotiated), )+
        }

        impl Packet {
            /// Returns the type of the packet.
            pub const fn kind(&self) -> PacketType {
                match self {
                    $( Self::$bare => PacketType::$bare, )+
                    $( Self::$fixed(_) => PacketType::$fixed, )+
                    $( Self::$negotiated(_) => PacketType::$negotiated, )+
                }
            }

            /// Decodes the header of a packet of type `kind`; bytes past it are left alone.
            pub fn decode(
                kind: PacketType,
                bytes: &[u8],
                capabilities: Capabilities,
            ) -> Result<Self, DecodeError> {
                Ok(match kind {
                    $( PacketType::$bare => Self::$bare, )+
                    $( PacketType::$fixed => Self::$fixed($fixed::decode(bytes)?), )+
                    $( PacketType::$negotiated => Self::$negotiated($negotiated::decode(bytes, capabilities)?), )+
                    PacketType::Unknown(value) => {
                        return Err(DecodeError::Invalid { field: "type", value: value.into() });
                    }
                })
            }

            /// Appends the type's own header to `out`.
            pub fn encode(&self, capabilities: Capabilities, out: &mut Writer<'_>) -> Result<(), NoRoom> {
                match self {
                    $( Self::$bare => Ok(()), )+
                    $( Self::$fixed(packet) => out.put(&packet.encode()), )+
                    $( Self::$negotiated(packet) => packet.encode(capabilities, out), )+
                }
            }
        }

        impl fmt::Display for Packet {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $( Self::$bare => PacketType::$bare.fmt(f), )+
                    $( Self::$fixed(packet) => packet.fmt(f), )+
                    $( Self::$negotiated(packet) => packet.fmt(f), )+
                }
            }
        }

        $( impl From<$fixed> for Packet {
            fn from(packet: $fixed) -> Self {
                Self::$fixed(packet)
            }
        } )+

        $( impl From<$negotiated> for Packet {
            fn from(packet: $negotiated) -> Self {
                Self::$negotiated(packet)
            }
        } )+
    };
}

packets! {
    bare:
        DeviceDisconnect Reset GetConfiguration CancelDataPacket FilterReject FilterFilter
        DeviceDisconnectAck;
    fixed:
        Hello InterfaceInfo SetConfiguration ConfigurationStatus SetAltSetting GetAltSetting AltSettingStatus
        StartIsoStream StopIsoStream IsoStreamStatus
        StartInterruptReceiving StopInterruptReceiving InterruptReceivingStatus
        AllocBulkStreams FreeBulkStreams BulkStreamsStatus
        StartBulkReceiving StopBulkReceiving BulkReceivingStatus
        ControlPacket IsoPacket InterruptPacket BufferedBulkPacket;
    negotiated:
        DeviceConnect EndpointInfo BulkPacket;
}

impl Packet {
    /// Bytes of the longest [`Header`] and type header together.
    pub const HEADERS_LEN_MAX: usize = Header::LEN_MAX + EndpointInfo::LEN_MAX;

    /// Bytes of payload when `sender` sends this; `None` for the two types whose payload has any length:
    /// capability words after a hello, rules after a filter.
    ///
    /// A receiver holds it against [`Header::payload_len`], which is how many bytes there are.
    pub const fn payload_len(&self, sender: Side) -> Option<u32> {
        Some(match self {
            Self::Hello(_) | Self::FilterFilter => return None,
            Self::ControlPacket(packet) => packet.payload_len(sender),
            Self::BulkPacket(packet) => packet.payload_len(sender),
            Self::IsoPacket(packet) => packet.payload_len(sender),
            Self::InterruptPacket(packet) => packet.payload_len(sender),
            Self::BufferedBulkPacket(packet) => packet.payload_len(sender),
            _ => 0,
        })
    }

    /// Appends both headers, for a payload of `payload_len` bytes that the caller sends next.
    ///
    /// A hello is encoded with [`Capabilities::NONE`].
    pub fn encode_headers(
        &self,
        id: u64,
        payload_len: u32,
        capabilities: Capabilities,
        out: &mut Writer<'_>,
    ) -> Result<(), NoRoom> {
        let header_len = self.kind().header_len(capabilities).unwrap_or(0) as u32;
        let length = header_len.saturating_add(payload_len);
        Header { kind: self.kind(), length, id }.encode(capabilities, out)?;
        self.encode(capabilities, out)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::usbredir::{Capability, Speed, Status};
    use proptest::prelude::*;
    use std::string::ToString;
    use std::vec::Vec;

    fn encoded(packet: &Packet, id: u64, payload_len: u32, capabilities: Capabilities) -> Vec<u8> {
        let mut bytes = [0; Packet::HEADERS_LEN_MAX];
        let mut out = Writer::new(&mut bytes);
        packet.encode_headers(id, payload_len, capabilities, &mut out).unwrap();
        let written = out.written();
        bytes[..written].to_vec()
    }

    fn kinds() -> impl Strategy<Value = PacketType> {
        prop_oneof![0u32..28, 100u32..105].prop_map(PacketType::from)
    }

    #[test]
    fn headers_come_in_one_piece() {
        let bulk = BulkPacket { endpoint: 0x82, status: Status::Success, length: 4096, stream_id: 3 };
        let capabilities = Capabilities::of(&[Capability::Ids64Bits, Capability::BulkLength32Bits]);
        let bytes = encoded(&bulk.into(), 0x0102, 4096, capabilities);
        let header = [101, 0, 0, 0, 0x0a, 0x10, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0];
        let own = [0x82, 0, 0x00, 0x10, 3, 0, 0, 0, 0, 0];
        assert_eq!(bytes, [&header[..], &own].concat());
    }

    #[test]
    fn a_packet_without_a_type_specific_header_is_a_header_alone() {
        let bytes = encoded(&Packet::Reset, 7, 0, Capabilities::NONE);
        assert_eq!(bytes, [3, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0]);
        assert_eq!(Packet::decode(PacketType::Reset, &[], Capabilities::NONE), Ok(Packet::Reset));
        assert_eq!(Packet::Reset.to_string(), "reset");
    }

    #[test]
    fn a_hello_leaves_with_its_capability_words() {
        let bytes = encoded(&Hello::new("drive").into(), 0, 4, Capabilities::NONE);
        assert_eq!(bytes[..17], [0, 0, 0, 0, 68, 0, 0, 0, 0, 0, 0, 0, b'd', b'r', b'i', b'v', b'e']);
        assert_eq!(bytes.len(), 76);
    }

    #[test]
    fn an_unknown_type_cannot_be_decoded() {
        let error = DecodeError::Invalid { field: "type", value: 42 };
        assert_eq!(Packet::decode(PacketType::Unknown(42), &[0; 300], Capabilities::NONE), Err(error));
    }

    #[test]
    fn payload_lengths_follow_direction_and_type() {
        let control = ControlPacket {
            endpoint: 0x80,
            request: 6,
            request_type: 0x80,
            status: Status::Success,
            value: 0,
            index: 0,
            length: 18,
        };
        assert_eq!(Packet::from(control).payload_len(Side::UsbHost), Some(18));
        assert_eq!(Packet::from(control).payload_len(Side::UsbGuest), Some(0));
        assert_eq!(Packet::CancelDataPacket.payload_len(Side::UsbGuest), Some(0));
        assert_eq!(Packet::FilterFilter.payload_len(Side::UsbGuest), None);
    }

    #[test]
    fn a_layout_of_one_capability_set_is_not_that_of_another() {
        let device = DeviceConnect {
            speed: Speed::High,
            device_class: 0,
            device_subclass: 0,
            device_protocol: 0,
            vendor_id: 1,
            product_id: 2,
            device_version: 3,
        };
        let version = Capabilities::of(&[Capability::ConnectDeviceVersion]);
        assert_eq!(encoded(&device.into(), 0, 0, version)[4], 10);
        assert_eq!(encoded(&device.into(), 0, 0, Capabilities::NONE)[4], 8);
    }

    proptest! {
        /// Every type under every combination of the eight capabilities.
        #[test]
        fn encode_undoes_decode(
            kind in kinds(), capabilities: u8, bytes in prop::collection::vec(any::<u8>(), 288),
        ) {
            let capabilities = Capabilities::from(u32::from(capabilities));
            if let Ok(packet) = Packet::decode(kind, &bytes, capabilities) {
                let mut again = [0; Packet::HEADERS_LEN_MAX];
                let mut out = Writer::new(&mut again);
                packet.encode(capabilities, &mut out).unwrap();
                prop_assert_eq!(Some(out.written()), kind.header_len(capabilities));
                prop_assert_eq!(packet.kind(), kind);
                prop_assert_eq!(Packet::decode(kind, &again, capabilities).unwrap(), packet);
            }
        }

        #[test]
        fn one_byte_too_few_is_an_error(kind in kinds(), capabilities: u8) {
            let capabilities = Capabilities::from(u32::from(capabilities));
            let needed = kind.header_len(capabilities).unwrap();
            if let Some(got) = needed.checked_sub(1) {
                let error = Packet::decode(kind, &[0; 288][..got], capabilities).unwrap_err();
                prop_assert_eq!(error, DecodeError::Truncated { needed, got });
            }
        }

        #[test]
        fn any_bytes_decode_or_say_why(
            kind: u32, capabilities: u32, bytes in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            if let Ok(packet) = Packet::decode(kind.into(), &bytes, capabilities.into()) {
                prop_assert!(!packet.to_string().is_empty());
            }
        }
    }
}
