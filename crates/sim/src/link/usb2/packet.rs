//! Packets of a USB 2.0 bus (USB 2.0 clause 8.4), and transaction requests and answers.
//!
//! Payload is a [`PacketPayload`] of a transfer; the owner of the transfer has the bytes. Not
//! modelled: start-of-frame packets, which the bus counts, PRE and ERR.

use crate::link::bulk::PacketPayload;
use crate::link::control::{CONTROL_DATA, endpoint_0};
use std::fmt;
use wire::usb::{Direction, EndpointAddress, SetupPacket};

/// Which of the two data packets it is (clause 8.6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Toggle {
    /// DATA0, the first after a configuration or the end of a halt.
    #[default]
    Data0,
    /// DATA1.
    Data1,
}

/// A handshake packet (clause 8.4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Handshake {
    /// Accepted; in answer to PING: there is room.
    Ack,
    /// Not ready.
    Nak,
    /// Accepted, and there is no room for more. High speed only.
    Nyet,
    /// The endpoint is halted.
    Stall,
}

/// The host's part of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostRequest {
    /// IN token.
    In(EndpointAddress),
    /// OUT token and data.
    Out(EndpointAddress, Toggle, PacketPayload),
    /// PING token. High speed only.
    Ping(EndpointAddress),
    /// SETUP token and request.
    Setup(SetupPacket),
}

/// The device's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Data in answer to IN. The host acknowledges it.
    Data(Toggle, PacketPayload),
    /// A handshake.
    Handshake(Handshake),
}

/// Phase of a split transaction (clause 8.4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SplitPhase {
    /// Start split: the translator accepts the request with ACK, or answers NAK without a free
    /// buffer.
    Start,
    /// Complete split: the translator returns the result, or NYET while it is pending.
    Complete,
}

/// A transaction that a host begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostTransaction {
    /// With the device directly.
    Whole(HostRequest),
    /// A split phase with the translator of the device's hub.
    Split(SplitPhase, HostRequest),
}

/// A packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet {
    /// Split token.
    Split(SplitPhase),
    /// Token of a request.
    Token(HostRequest),
    /// Data of either side.
    Data(Toggle, PacketPayload),
    /// A handshake of either side.
    Handshake(Handshake),
}

impl Toggle {
    /// Returns the other one.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Data0 => Self::Data1,
            Self::Data1 => Self::Data0,
        }
    }
}

impl Packet {
    /// Returns a fingerprint for the digest.
    pub fn mark(&self) -> u64 {
        let (kind, first, second, bytes) = match *self {
            Self::Split(half) => (1, half as u8, 0, 0),
            Self::Token(HostRequest::In(endpoint)) => (2, endpoint.into(), 0, 0),
            Self::Token(HostRequest::Out(endpoint, toggle, piece)) => {
                (3, endpoint.into(), toggle as u8, piece.bytes)
            }
            Self::Token(HostRequest::Ping(endpoint)) => (4, endpoint.into(), 0, 0),
            // What it asks is in place of all else.
            Self::Token(HostRequest::Setup(setup)) => return !u64::from_be_bytes(setup.encode()),
            Self::Data(toggle, piece) => (5, toggle as u8, 0, piece.bytes),
            Self::Handshake(handshake) => (6, handshake as u8, 0, 0),
        };
        let [b0, b1] = bytes.to_be_bytes();
        u64::from_be_bytes([0, kind, first, second, b0, b1, 0, 0])
    }
}

impl HostRequest {
    /// The endpoint.
    pub const fn endpoint(&self) -> EndpointAddress {
        match *self {
            Self::In(endpoint) | Self::Out(endpoint, ..) | Self::Ping(endpoint) => endpoint,
            Self::Setup(_) => endpoint_0(Direction::Out),
        }
    }

    /// The data that follows the token.
    pub const fn data_packet(&self) -> Option<Packet> {
        match *self {
            Self::Out(_, toggle, piece) => Some(Packet::Data(toggle, piece)),
            Self::Setup(_) => {
                let bytes = SetupPacket::LEN as u16;
                Some(Packet::Data(Toggle::Data0, PacketPayload { transfer: CONTROL_DATA, offset: 0, bytes }))
            }
            Self::In(_) | Self::Ping(_) => None,
        }
    }
}

impl HostTransaction {
    /// Returns the request to the device.
    pub const fn ask(&self) -> &HostRequest {
        match self {
            Self::Whole(ask) | Self::Split(_, ask) => ask,
        }
    }

    /// Returns the packets of the host: split token, token, data.
    pub(super) const fn packets(&self) -> [Option<Packet>; 3] {
        let token = Some(Packet::Token(*self.ask()));
        match *self {
            Self::Whole(ask) => [None, token, ask.data_packet()],
            Self::Split(half @ SplitPhase::Start, ask) => {
                [Some(Packet::Split(half)), token, ask.data_packet()]
            }
            Self::Split(half @ SplitPhase::Complete, _) => [Some(Packet::Split(half)), token, None],
        }
    }
}

impl From<Answer> for Packet {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::Data(toggle, piece) => Self::Data(toggle, piece),
            Answer::Handshake(handshake) => Self::Handshake(handshake),
        }
    }
}

impl fmt::Display for Handshake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ack => "ACK",
            Self::Nak => "NAK",
            Self::Nyet => "NYET",
            Self::Stall => "STALL",
        })
    }
}

impl fmt::Display for Packet {
    /// `IN 1`, `DATA0 512 bytes`, `ACK`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Split(SplitPhase::Start) => f.write_str("SSPLIT"),
            Self::Split(SplitPhase::Complete) => f.write_str("CSPLIT"),
            Self::Token(ask) => {
                let name = match ask {
                    HostRequest::In(_) => "IN",
                    HostRequest::Out(..) => "OUT",
                    HostRequest::Ping(_) => "PING",
                    HostRequest::Setup(_) => "SETUP",
                };
                write!(f, "{name} {}", ask.endpoint().number())
            }
            Self::Data(toggle, piece) => write!(f, "DATA{} {} bytes", *toggle as u8, piece.bytes),
            Self::Handshake(handshake) => handshake.fmt(f),
        }
    }
}
