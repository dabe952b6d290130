//! Protocol errors of a client, which end its session.

use bus::rendezvous::HOST_TRANSFERS_MAX;
use std::error::Error;
use std::fmt;
use wire::DecodeError;
use wire::usbredir::PacketType;

/// A protocol violation of a client, which ends the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A packet before the client's hello.
    BeforeHello(PacketType),
    /// A packet that only the other side may send.
    WrongDirection(PacketType),
    /// A packet that cannot be decoded, or whose length is not that of its type.
    Malformed(PacketType, DecodeError),
    /// A packet that says it has more payload than it carries, or less.
    PayloadMismatch {
        /// The packet.
        kind: PacketType,
        /// Bytes that its fields call for.
        said: u32,
        /// Bytes that came.
        came: u32,
    },
    /// A packet longer than any of its type needs to be.
    TooLong {
        /// The packet.
        kind: PacketType,
        /// Bytes that it says it has.
        length: u32,
    },
    /// More payload than may wait for the device ([`super::Limits::payload_bytes_hard`]).
    TooMuchPayload {
        /// Bytes that would wait.
        bytes: usize,
    },
    /// More bulk packets outstanding than a device accepts ([`bus::rendezvous::HOST_TRANSFERS_MAX`]).
    TooManyTransfers,
    /// The client's filter refuses the device.
    Refused,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BeforeHello(kind) => {
                write!(
                    f,
                    "it sent {kind} before a usbredir hello; a client such as QEMU begins with its hello"
                )
            }
            Self::WrongDirection(kind) => write!(f, "{kind}: only the USB host side may send this packet"),
            Self::Malformed(kind, error) => write!(f, "{kind}: malformed packet, {error}"),
            Self::PayloadMismatch { kind, said, came } => {
                write!(f, "{kind}: payload length mismatch, header says {said} bytes, got {came}")
            }
            Self::TooLong { kind, length } => {
                write!(f, "{kind}: packet of {length} bytes exceeds the maximum")
            }
            Self::TooMuchPayload { bytes } => {
                write!(f, "bulk OUT payload limit exceeded: {bytes} bytes wait and no command uses them")
            }
            Self::TooManyTransfers => {
                write!(f, "too many bulk transfers in flight (maximum {HOST_TRANSFERS_MAX})")
            }
            Self::Refused => f.write_str("device rejected by the client's filter"),
        }
    }
}

impl Error for Fault {}
