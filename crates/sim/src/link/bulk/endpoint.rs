//! Endpoint parameters from its descriptors, which both sides know.

use units::Duration;
use wire::usb::EndpointAddress;

/// A bulk endpoint (USB 3.2 clauses 9.6.6 and 9.6.7), or an interrupt endpoint, which is modelled
/// alike.
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
    /// Polling interval of an interrupt endpoint on USB 2.0; zero for a bulk endpoint.
    pub interval: Duration,
}

impl Endpoint {
    /// A bulk endpoint.
    pub const fn bulk(address: EndpointAddress, packet_bytes: u16, burst: u8, streams: u16) -> Self {
        Self { address, packet_bytes, burst, streams, interval: Duration::ZERO }
    }

    /// Returns the packets needed for `bytes`; a zero-length transfer is one packet.
    pub fn packets(&self, bytes: u32) -> u32 {
        bytes.div_ceil(u32::from(self.packet_bytes)).max(1)
    }
}
