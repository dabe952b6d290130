//! Why a session cannot go on: always the client's doing.

use std::error::Error;
use std::fmt;
use wire::DecodeError;
use wire::usbredir::PacketType;

/// What a client has sent that no answer fits.
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
    /// More bulk packets outstanding than a device takes on ([`bus::rendezvous::HOST_TRANSFERS_MAX`]).
    TooManyTransfers,
    /// The client's filter refuses the device.
    Refused,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BeforeHello(kind) => write!(f, "the client sent {kind} before its hello"),
            Self::WrongDirection(kind) => write!(f, "the client sent {kind}, which only we may send"),
            Self::Malformed(kind, error) => write!(f, "the client sent a malformed {kind}: {error}"),
            Self::PayloadMismatch { kind, said, came } => {
                write!(f, "the client sent a {kind} for {said} bytes with {came}")
            }
            Self::TooLong { kind, length } => write!(f, "the client sent a {kind} of {length} bytes"),
            Self::TooMuchPayload { bytes } => {
                write!(f, "the client sent {bytes} bytes of payload that no command asks for")
            }
            Self::TooManyTransfers => f.write_str("the client has too many bulk packets outstanding"),
            Self::Refused => f.write_str("the client's filter refuses the device"),
        }
    }
}

impl Error for Fault {}
