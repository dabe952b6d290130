//! What both ends know of an endpoint from its descriptors.

use wire::usb::EndpointAddress;

/// A bulk endpoint (USB 3.2 clauses 9.6.6 and 9.6.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Number and direction.
    pub address: EndpointAddress,
    /// Bytes of the largest packet: 1,024 at SuperSpeed.
    pub packet_bytes: u16,
    /// Packets of the largest burst, 1 to 16.
    pub burst: u8,
    /// Streams; 0 for an endpoint without.
    pub streams: u16,
}

impl Endpoint {
    /// Packets that carry so many bytes; nothing is a packet as well.
    pub fn packets(&self, bytes: u32) -> u32 {
        bytes.div_ceil(u32::from(self.packet_bytes)).max(1)
    }
}
