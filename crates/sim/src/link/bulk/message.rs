//! Packets of a SuperSpeed endpoint (USB 3.2 clauses 8.5 and 8.6).
//!
//! Only the protocol layer; framing, checks and link commands are lengths in the link layer.
//! Payload is identified by the sender's transfer and not carried: the owner of the memory copies
//! it.

use crate::link::streams::StreamField;
use crate::link::superspeed::Packet;
use bus::StreamId;
use bus::link::PacketPayload;
use std::fmt;
use wire::usb::{Direction, EndpointAddress, SetupPacket};

/// The number of a data packet: 5 bits that wrap (clause 8.6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sequence(u8);

/// A transaction packet or a data packet. Those of endpoint 0 go both ways under its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// Acknowledges data, and reports the expected sequence number and the packets accepted.
    Ack {
        /// The endpoint.
        endpoint: EndpointAddress,
        /// The stream.
        stream: Option<StreamField>,
        /// The number that is expected next.
        expects: Sequence,
        /// NumP: packets that may come.
        packets: u8,
        /// PP: the host has more to ask for, later.
        is_pending: bool,
        /// Rty: the packet came damaged, and is to be sent again, with all that follow.
        is_retry: bool,
    },
    /// Data.
    Data {
        /// The endpoint.
        endpoint: EndpointAddress,
        /// The stream.
        stream: Option<StreamField>,
        /// The number of the packet.
        sequence: Sequence,
        /// Its payload; none for stream control.
        piece: Option<PacketPayload>,
        /// From a device: EOB, no packet follows. From a host: PP is clear, no packet follows.
        is_last: bool,
    },
    /// The device has no room, or nothing to send.
    Nrdy {
        /// The endpoint.
        endpoint: EndpointAddress,
        /// The stream.
        stream: Option<StreamField>,
    },
    /// The device's endpoint is halted.
    Stall {
        /// The endpoint.
        endpoint: EndpointAddress,
        /// The stream.
        stream: Option<StreamField>,
    },
    /// Endpoint 0: the host begins a control transfer, in a data packet of 8 bytes (clause 8.12.2).
    Setup {
        /// The request.
        setup: SetupPacket,
    },
    /// Endpoint 0: the host asks how it went.
    Status,
    /// The device has room, or something to send.
    Erdy {
        /// The endpoint.
        endpoint: EndpointAddress,
        /// The stream.
        stream: Option<StreamId>,
        /// NumP: packets that it takes or sends.
        packets: u8,
    },
}

impl Sequence {
    /// Numbers there are.
    const COUNT: u8 = 32;

    /// The number.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// The number after this.
    #[must_use]
    pub const fn next(self) -> Self {
        Self((self.0 + 1) % Self::COUNT)
    }

    /// Returns the sequence number `packets` earlier.
    #[must_use]
    pub const fn before(self, packets: u8) -> Self {
        Self((self.0 + Self::COUNT - packets % Self::COUNT) % Self::COUNT)
    }

    /// Returns whether it is the number of a packet before this one, rather than after: a burst is
    /// half of all numbers.
    pub const fn is_before(self, next: Self) -> bool {
        self.since(next) >= Self::COUNT / 2
    }

    /// Returns how many packets after `earlier` this one is.
    pub const fn since(self, earlier: Self) -> u8 {
        (self.0 + Self::COUNT - earlier.0) % Self::COUNT
    }
}

impl Message {
    /// The endpoint that it is for or from.
    pub const fn endpoint(&self) -> EndpointAddress {
        match *self {
            Self::Ack { endpoint, .. }
            | Self::Data { endpoint, .. }
            | Self::Nrdy { endpoint, .. }
            | Self::Stall { endpoint, .. }
            | Self::Erdy { endpoint, .. } => endpoint,
            Self::Setup { .. } | Self::Status => EndpointAddress::at::<0>(Direction::Out),
        }
    }

    /// Returns its Stream ID field.
    pub const fn stream(&self) -> Option<StreamField> {
        match *self {
            Self::Ack { stream, .. }
            | Self::Data { stream, .. }
            | Self::Nrdy { stream, .. }
            | Self::Stall { stream, .. } => stream,
            Self::Erdy { stream: Some(stream), .. } => Some(StreamField::Stream(stream)),
            Self::Erdy { stream: None, .. } | Self::Setup { .. } | Self::Status => None,
        }
    }

    /// Returns its payload, if it has any.
    pub const fn piece(&self) -> Option<PacketPayload> {
        match *self {
            Self::Data { piece, .. } => piece,
            _ => None,
        }
    }

    /// Returns a fingerprint for the digest.
    #[inline]
    pub fn mark(&self) -> u64 {
        let id = |field: Option<StreamField>| field.map_or(0, StreamField::id);
        let (kind, endpoint, stream, number, size, flags) = match *self {
            Self::Ack { endpoint, stream, expects, packets, is_pending, is_retry } => {
                let flags = u8::from(is_pending) + 2 * u8::from(is_retry);
                (1_u64, endpoint, id(stream), expects.0, packets.into(), flags)
            }
            Self::Data { endpoint, stream, sequence, piece, is_last } => {
                let bytes = piece.map_or(0, |piece| piece.bytes);
                (2, endpoint, id(stream), sequence.0, bytes, u8::from(is_last))
            }
            Self::Nrdy { endpoint, stream } => (3, endpoint, id(stream), 0, 0, 0),
            Self::Stall { endpoint, stream } => (4, endpoint, id(stream), 0, 0, 0),
            Self::Erdy { endpoint, stream, packets } => {
                (5, endpoint, id(stream.map(StreamField::Stream)), 0, packets.into(), 0)
            }
            Self::Status => (6, self.endpoint(), 0, 0, 0, 0),
            // What it asks is in place of all else.
            Self::Setup { setup } => return !u64::from_be_bytes(setup.encode()),
        };
        // Digits of different bases: no field reaches into another.
        let position =
            ((kind * 0x100 + u64::from(u8::from(endpoint))) * 0x1_0000 + u64::from(stream)) * 0x100;
        ((position + u64::from(number)) * 0x1_0000 + u64::from(size)) * 0x100 + u64::from(flags)
    }

    /// Returns its size for the link layer.
    pub const fn packet(&self) -> Packet {
        match self {
            Self::Data { piece: Some(piece), .. } => Packet::Data(piece.bytes),
            Self::Data { piece: None, .. } => Packet::Data(0),
            Self::Setup { .. } => Packet::Data(SetupPacket::LEN as u16),
            _ => Packet::Header,
        }
    }
}

/// ` stream 7`, or nothing.
struct Named(Option<StreamField>);

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |stream| write!(f, " stream {stream}"))
    }
}

impl fmt::Display for Message {
    /// `ACK 81h stream 7 expects 3, takes 4`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Ack { endpoint, stream, expects, packets, is_retry, .. } => {
                let again = if is_retry { " again" } else { "" };
                write!(f, "ACK {endpoint}{} expects {}{again}, takes {packets}", Named(stream), expects.0)
            }
            Self::Data { endpoint, stream, sequence, piece, is_last } => {
                let bytes = piece.map_or(0, |piece| piece.bytes);
                let last = if is_last { ", the last" } else { "" };
                write!(f, "DATA {endpoint}{} number {}, {bytes} bytes{last}", Named(stream), sequence.0)
            }
            Self::Nrdy { endpoint, stream } => write!(f, "NRDY {endpoint}{}", Named(stream)),
            Self::Setup { setup } => write!(f, "SETUP {:02x?}", setup.encode()),
            Self::Status => f.write_str("STATUS"),
            Self::Stall { endpoint, stream } => write!(f, "STALL {endpoint}{}", Named(stream)),
            Self::Erdy { endpoint, stream, packets } => {
                write!(f, "ERDY {endpoint}{} for {packets}", Named(stream.map(StreamField::Stream)))
            }
        }
    }
}

/// The stream that a field names.
pub(super) const fn named(field: Option<StreamField>) -> Option<StreamId> {
    match field {
        Some(StreamField::Stream(stream)) => Some(stream),
        _ => None,
    }
}
