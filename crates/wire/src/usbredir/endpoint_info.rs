//! `ep_info`: the endpoints of the current configuration (usbredir 0.7, `usb_redir_ep_info_header`).
//!
//! Five arrays of 32, OUT endpoints 0..=15 and then IN endpoints 0..=15. The fourth travels with the
//! capability `ep_info_max_packet_size`, the fourth and fifth with `bulk_streams` (which implies it).

use super::{Capabilities, Capability, ENDPOINT_COUNT, EndpointType, PacketType};
use super::{endpoint_address, endpoint_index};
use crate::{DecodeError, NoRoom, Reader, Writer};
use core::fmt;

/// The endpoints, in a table by address.
///
/// ```text
///   0..32  type[32]            96..160  max_packet_size[32], u16
///  32..64  interval[32]       160..288  max_streams[32], u32
///  64..96  interface[32]
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndpointInfo {
    entries: [EndpointEntry; ENDPOINT_COUNT],
}

/// One endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndpointEntry {
    /// Its type, [`EndpointType::Absent`] for a place without an endpoint.
    pub kind: EndpointType,
    /// bInterval.
    pub interval: u8,
    /// bInterfaceNumber of its interface.
    pub interface: u8,
    /// wMaxPacketSize in bytes; 0 if it does not travel.
    pub max_packet_size: u16,
    /// Streams that may be allocated, 0 for none or if it does not travel.
    pub max_streams: u32,
}

impl EndpointEntry {
    /// No endpoint.
    pub const ABSENT: Self =
        Self { kind: EndpointType::Absent, interval: 0, interface: 0, max_packet_size: 0, max_streams: 0 };
}

impl EndpointInfo {
    /// The packet type that this header belongs to.
    pub const KIND: PacketType = PacketType::EndpointInfo;
    /// Bytes of the longest layout.
    pub const LEN_MAX: usize = 288;
    /// A table without endpoints, not even endpoint 0.
    pub const EMPTY: Self = Self { entries: [EndpointEntry::ABSENT; ENDPOINT_COUNT] };

    /// Bytes on the wire.
    pub const fn len(capabilities: Capabilities) -> usize {
        match (has_streams(capabilities), has_packet_sizes(capabilities)) {
            (true, _) => 288,
            (false, true) => 160,
            (false, false) => 96,
        }
    }

    /// The endpoint at an address.
    pub fn endpoint(&self, address: u8) -> EndpointEntry {
        self.entries.get(endpoint_index(address)).copied().unwrap_or(EndpointEntry::ABSENT)
    }

    /// Places an endpoint at an address.
    pub fn set_endpoint(&mut self, address: u8, endpoint: EndpointEntry) {
        if let Some(place) = self.entries.get_mut(endpoint_index(address)) {
            *place = endpoint;
        }
    }

    /// The endpoints that are there, with their addresses, OUT before IN.
    pub fn endpoints(&self) -> impl Iterator<Item = (u8, EndpointEntry)> {
        let places = self.entries.iter().enumerate();
        let present = places.filter(|(_, endpoint)| endpoint.kind != EndpointType::Absent);
        present.map(|(index, endpoint)| (endpoint_address(index), *endpoint))
    }

    /// Decodes the header; bytes past [`Self::len`] are left alone.
    pub fn decode(bytes: &[u8], capabilities: Capabilities) -> Result<Self, DecodeError> {
        let needed = Self::len(capabilities);
        let head = bytes.get(..needed).ok_or(DecodeError::Truncated { needed, got: bytes.len() })?;
        let mut reader = Reader::new(head);
        let mut table = Self::EMPTY;
        for endpoint in &mut table.entries {
            endpoint.kind = reader.u8()?.into();
        }
        for endpoint in &mut table.entries {
            endpoint.interval = reader.u8()?;
        }
        for endpoint in &mut table.entries {
            endpoint.interface = reader.u8()?;
        }
        if has_packet_sizes(capabilities) {
            for endpoint in &mut table.entries {
                endpoint.max_packet_size = reader.le16()?;
            }
        }
        if has_streams(capabilities) {
            for endpoint in &mut table.entries {
                endpoint.max_streams = reader.le32()?;
            }
        }
        Ok(table)
    }

    /// Appends the header to `out`.
    pub fn encode(&self, capabilities: Capabilities, out: &mut Writer<'_>) -> Result<(), NoRoom> {
        out.put(&self.entries.map(|endpoint| endpoint.kind.into()))?;
        out.put(&self.entries.map(|endpoint| endpoint.interval))?;
        out.put(&self.entries.map(|endpoint| endpoint.interface))?;
        if has_packet_sizes(capabilities) {
            self.entries.iter().try_for_each(|endpoint| out.le16(endpoint.max_packet_size))?;
        }
        if has_streams(capabilities) {
            self.entries.iter().try_for_each(|endpoint| out.le32(endpoint.max_streams))?;
        }
        Ok(())
    }
}

const fn has_streams(capabilities: Capabilities) -> bool {
    capabilities.has(Capability::BulkStreams)
}

const fn has_packet_sizes(capabilities: Capabilities) -> bool {
    has_streams(capabilities) || capabilities.has(Capability::EndpointInfoMaxPacketSize)
}

impl fmt::Display for EndpointInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ep_info")?;
        for (address, EndpointEntry { kind, max_packet_size, max_streams, .. }) in self.endpoints() {
            write!(f, ", {address:#04x} {kind} {max_packet_size} bytes {max_streams} streams")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    const SIZES: Capabilities = Capabilities::of(&[Capability::EndpointInfoMaxPacketSize]);
    const STREAMS: Capabilities =
        Capabilities::of(&[Capability::EndpointInfoMaxPacketSize, Capability::BulkStreams]);

    /// Endpoint 4 OUT and endpoint 1 IN, both bulk, 1024 bytes, 32 streams.
    fn table() -> [u8; 288] {
        let mut bytes = [0; 288];
        bytes[..32].fill(0xff);
        for (place, interval) in [(4, 7), (17, 9)] {
            bytes[place] = 2;
            bytes[32 + place] = interval;
            bytes[64 + place] = 1;
            bytes[96 + 2 * place..][..2].copy_from_slice(&[0x00, 0x04]);
            bytes[160 + 4 * place..][..4].copy_from_slice(&[0x20, 0, 0, 0]);
        }
        bytes
    }

    fn encoded(endpoints: &EndpointInfo, capabilities: Capabilities) -> std::vec::Vec<u8> {
        let mut bytes = [0xee; 288];
        let mut out = Writer::new(&mut bytes);
        endpoints.encode(capabilities, &mut out).unwrap();
        let written = out.written();
        bytes[..written].to_vec()
    }

    #[test]
    fn everything_travels_with_bulk_streams() {
        let endpoints = EndpointInfo::decode(&table(), STREAMS).unwrap();
        let bulk = EndpointEntry {
            kind: EndpointType::Bulk,
            interval: 7,
            interface: 1,
            max_packet_size: 1024,
            max_streams: 32,
        };
        assert_eq!(endpoints.endpoint(0x04), bulk);
        assert_eq!(endpoints.endpoint(0x81), EndpointEntry { interval: 9, ..bulk });
        assert_eq!(endpoints.endpoint(0x01), EndpointEntry::ABSENT);
        assert!(endpoints.endpoints().map(|(address, _)| address).eq([0x04, 0x81]));
        assert_eq!(encoded(&endpoints, STREAMS), table());
        let shown = "ep_info, 0x04 bulk 1024 bytes 32 streams, 0x81 bulk 1024 bytes 32 streams";
        assert_eq!(endpoints.to_string(), shown);
    }

    #[test]
    fn packet_sizes_travel_without_stream_counts() {
        let endpoints = EndpointInfo::decode(&table(), SIZES).unwrap();
        let endpoint = endpoints.endpoint(0x81);
        assert_eq!((endpoint.max_packet_size, endpoint.max_streams), (1024, 0));
        assert_eq!(encoded(&endpoints, SIZES), table()[..160]);
    }

    #[test]
    fn neither_travels_without_capabilities() {
        let endpoints = EndpointInfo::decode(&table(), Capabilities::NONE).unwrap();
        let endpoint = endpoints.endpoint(0x81);
        assert_eq!((endpoint.interval, endpoint.max_packet_size, endpoint.max_streams), (9, 0, 0));
        assert_eq!(encoded(&endpoints, Capabilities::NONE), table()[..96]);
    }

    #[test]
    fn an_endpoint_is_placed_by_its_address() {
        let mut endpoints = EndpointInfo::EMPTY;
        let control = EndpointEntry { kind: EndpointType::Control, ..EndpointEntry::ABSENT };
        endpoints.set_endpoint(0x80, control);
        assert_eq!(encoded(&endpoints, Capabilities::NONE)[16], 0);
        assert_eq!(endpoints.endpoints().next(), Some((0x80, control)));
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for (capabilities, needed) in [(Capabilities::NONE, 96), (SIZES, 160), (STREAMS, 288)] {
            for got in 0..needed {
                let error = EndpointInfo::decode(&table()[..got], capabilities).unwrap_err();
                assert_eq!(error, DecodeError::Truncated { needed, got });
            }
        }
    }

    proptest! {
        #[test]
        fn encode_undoes_decode(bytes in prop::collection::vec(any::<u8>(), 288), capabilities: u32) {
            let capabilities = Capabilities::from(capabilities);
            let endpoints = EndpointInfo::decode(&bytes, capabilities).unwrap();
            prop_assert_eq!(encoded(&endpoints, capabilities), &bytes[..EndpointInfo::len(capabilities)]);
        }
    }
}
