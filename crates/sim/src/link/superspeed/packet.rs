//! A packet as the link layer sees it: its length.

use super::rate::Rate;

/// A packet: a header packet, with a payload or without.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Packet {
    /// A transaction packet, a link management packet or a timestamp: all are one header packet
    /// (USB 3.2 clause 8.3).
    Header,
    /// A data packet with so many bytes of payload, at most 1,024 (clause 8.6).
    Data(u16),
}

impl Packet {
    /// Symbols of this packet.
    pub const fn symbols(self, rate: Rate) -> u32 {
        match self {
            Self::Header => rate.header_packet(),
            Self::Data(bytes) => rate.data_packet(bytes as u32),
        }
    }

    /// Returns the bytes of payload.
    pub const fn payload(self) -> u16 {
        match self {
            Self::Header => 0,
            Self::Data(bytes) => bytes,
        }
    }
}
