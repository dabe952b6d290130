//! Messages between a host controller and a link about transfers: endpoints, queued transfers, their
//! progress and their ends.
//!
//! Payload is a range of the sender's transfer and is not carried: the owner of the memory copies
//! it. Left out: packets and their times, which each link has itself.

use crate::TransferId;
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

/// A transfer that one side queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Its id.
    pub id: TransferId,
    /// Its bytes.
    pub bytes: u32,
}

/// How a transfer completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// All of it has moved.
    Full,
    /// A short packet ended it.
    Short,
    /// A packet came that was larger than what was left.
    Overflow,
    /// Host: the device's endpoint is halted, and so is the host's now.
    Stalled,
    /// Device: it was cancelled.
    Withdrawn,
    /// Host: packets were not answered, as often as they were tried, and its endpoint is halted.
    Failed,
}

/// The effect of one packet on a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The transfer.
    pub id: TransferId,
    /// Bytes of it that have moved so far.
    pub moved: u32,
    /// If it has ended.
    pub ended: Option<End>,
    /// At the end that receives: what came, of whose transfer.
    pub piece: Option<PacketPayload>,
}

/// The payload of one data packet, as a range of the sender's transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketPayload {
    /// The sender's transfer.
    pub transfer: TransferId,
    /// Offset of the payload in the transfer, in bytes.
    pub offset: u32,
    /// Length in bytes: the maximum packet size, or less at the end of the transfer.
    pub bytes: u16,
}
