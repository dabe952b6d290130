//! Streams on SuperSpeed bulk endpoints (usbredir 0.7, capability `bulk_streams`).
//!
//! After `count` streams are allocated, the ids 1..=count are valid on each of the endpoints.

use super::{ENDPOINT_COUNT, PacketType, Status, endpoint_address, endpoint_index};
use core::fmt;

/// A set of endpoints, one bit for each place of the endpoint table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndpointSet(u32);

impl EndpointSet {
    /// The set with these endpoint addresses.
    pub fn of(addresses: &[u8]) -> Self {
        Self(addresses.iter().fold(0, |set, &address| set | 1 << endpoint_index(address)))
    }

    /// Whether the endpoint at this address is in the set.
    pub const fn has(self, address: u8) -> bool {
        self.0 & 1 << endpoint_index(address) != 0
    }

    /// The addresses, OUT before IN.
    pub fn addresses(self) -> impl Iterator<Item = u8> {
        (0..ENDPOINT_COUNT).filter(move |index| self.0 & 1 << index != 0).map(endpoint_address)
    }

    /// Whether no endpoint is in the set.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl From<u32> for EndpointSet {
    fn from(bits: u32) -> Self {
        Self(bits)
    }
}

impl From<EndpointSet> for u32 {
    fn from(set: EndpointSet) -> Self {
        set.0
    }
}

impl fmt::Display for EndpointSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "{";
        for address in self.addresses() {
            write!(f, "{separator}{address:#04x}")?;
            separator = " ";
        }
        f.write_str(if self.is_empty() { "{}" } else { "}" })
    }
}

fixed_layout! {
    /// Allocate streams; answered by [`BulkStreamsStatus`].
    pub struct AllocBulkStreams is PacketType::AllocBulkStreams => {
        /// On these endpoints.
        endpoints: EndpointSet as u32,
        /// As many on each; stream 0 does not count.
        count: u32 as u32,
    }
}

fixed_layout! {
    /// Free the streams; answered by [`BulkStreamsStatus`].
    pub struct FreeBulkStreams is PacketType::FreeBulkStreams => {
        /// Of these endpoints.
        endpoints: EndpointSet as u32,
    }
}

fixed_layout! {
    /// How many streams there are, after a request to allocate or to free them.
    pub struct BulkStreamsStatus is PacketType::BulkStreamsStatus => {
        /// The endpoints of the request.
        endpoints: EndpointSet as u32,
        /// Streams on each; a host may not grant fewer than were asked for.
        count: u32 as u32,
        /// How the request ended.
        status: Status as u8,
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::DecodeError;
    use proptest::prelude::*;
    use std::string::ToString;

    /// Endpoints 0x04, 0x82 and 0x83.
    const SET: [u8; 4] = [0x10, 0x00, 0x0c, 0x00];

    #[test]
    fn a_set_has_a_bit_for_each_endpoint() {
        let set = EndpointSet::of(&[0x83, 0x04, 0x82]);
        assert_eq!(u32::from(set), 0x000c_0010);
        assert!(set.has(0x04) && set.has(0x82) && !set.has(0x84) && !set.has(0x02));
        assert!(set.addresses().eq([0x04, 0x82, 0x83]));
        assert_eq!(set.to_string(), "{0x04 0x82 0x83}");
        assert_eq!(EndpointSet::default().to_string(), "{}");
    }

    #[test]
    fn literal_bytes_both_ways() {
        let endpoints = EndpointSet::of(&[0x04, 0x82, 0x83]);
        let request = [&SET[..], &[32, 1, 0, 0]].concat();
        let alloc = AllocBulkStreams::decode(&request).unwrap();
        assert_eq!(alloc, AllocBulkStreams { endpoints, count: 288 });
        assert_eq!(alloc.encode()[..], request);
        assert_eq!(alloc.to_string(), "alloc_bulk_streams, endpoints {0x04 0x82 0x83}, count 288");

        assert_eq!(FreeBulkStreams::decode(&SET), Ok(FreeBulkStreams { endpoints }));
        assert_eq!(FreeBulkStreams { endpoints }.encode(), SET);

        let answer = [&SET[..], &[32, 0, 0, 0, 2]].concat();
        let status = BulkStreamsStatus::decode(&answer).unwrap();
        assert_eq!(status, BulkStreamsStatus { endpoints, count: 32, status: Status::Invalid });
        assert_eq!(status.encode()[..], answer);
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        let short = |needed, got| Some(DecodeError::Truncated { needed, got });
        for got in 0..9 {
            let bytes = &[0; 9][..got];
            assert_eq!(BulkStreamsStatus::decode(bytes).err(), short(9, got));
            assert_eq!(AllocBulkStreams::decode(bytes).err(), short(8, got).filter(|_| got < 8));
            assert_eq!(FreeBulkStreams::decode(bytes).err(), short(4, got).filter(|_| got < 4));
        }
    }

    proptest! {
        #[test]
        fn a_set_is_what_its_addresses_make(bits: u32) {
            let set = EndpointSet::from(bits);
            let addresses: std::vec::Vec<u8> = set.addresses().collect();
            prop_assert_eq!(EndpointSet::of(&addresses), set);
        }
    }
}
