//! The stream protocol, which selects the current stream of a bulk pipe: a state machine for each
//! side (USB 3.2 clause 8.12.1.4).
//!
//! A pipe has many streams and moves one at a time, the *current* one. Usually the device chooses:
//! it sends ERDY for the stream whose command it processes, and the host accepts or, without
//! buffers for it, refuses with NoStream. The host announces new buffers with one Prime that names
//! no stream; a refused device proposes again only then. If the new buffers are for the stream that
//! moved last, the host may start it itself.
//!
//! ```text
//!              Prime                 ERDY(n)                    Move(n)
//! Disabled ───────────► Prime Pipe    ┌──────► Start Stream ───────────┐
//!                           │         │            │                   ▼
//!                NRDY(Prime)▼         │    NoStream│  Move(last)   Move Data
//!                          Idle ──────┘◄───────────┘ ─────────────►    │
//!                           ▲ │ Prime: to Prime Pipe                   │
//!                           └──────────────────────────────────────────┘
//!                                       Last(n), or NRDY(n)
//! ```
//!
//! In Move Data both sides alternate: the host starts the stream, the device moves a burst, the
//! host continues or ends it. The size of a burst belongs to the protocol layer. [`FromHost`] is an
//! ACK transaction packet on an IN pipe and a data packet on an OUT pipe, [`FromDevice`] the
//! reverse.
//!
//! Not modelled: the Deferred bit, by which a hub reports that it held a packet back. Clause
//! 8.12.1.4 is implemented from secondary sources; a refusal is answered with NRDY(NoStream).
//!
//! Invariants: neither side waits for the other for ever, whatever packets cross; an invalid packet
//! only takes the state machine to Disabled.

mod device;
mod host;

pub use device::{Device, DeviceState};
pub use host::{Host, HostState};

use bus::StreamId;
use std::fmt;

/// The Stream ID field of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StreamField {
    /// FFFEh: there are new buffers.
    Prime,
    /// FFFFh: no stream.
    NoStream,
    /// A stream.
    Stream(StreamId),
}

/// A packet of the host, as far as streams are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FromHost {
    /// There are new buffers for some stream.
    Prime,
    /// There are none for the stream that was asked for.
    NoStream,
    /// This stream moves now, or goes on.
    Move(StreamId),
    /// That was the last burst: the host has no more buffers for the stream, or the device wants no
    /// more.
    Last(StreamId),
}

/// A packet of the device, as far as streams are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FromDevice {
    /// Ready for this stream.
    Erdy(StreamId),
    /// Not ready; or the answer to Prime, or to a refusal.
    Nrdy(StreamField),
    /// A burst of the current stream. After one that ends it the device wants no more of the stream
    /// for now.
    Burst {
        /// The stream.
        stream: StreamId,
        /// Whether it ends the stream (end of burst, or a short packet).
        ends: bool,
    },
}

/// A packet that is invalid in the current state. The pipe is disabled until software handles it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation;

impl StreamField {
    /// Returns the id on the wire.
    pub const fn id(self) -> u16 {
        match self {
            Self::Prime => 0xFFFE,
            Self::NoStream => 0xFFFF,
            Self::Stream(stream) => stream.get(),
        }
    }
}

impl fmt::Display for StreamField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prime => f.write_str("Prime"),
            Self::NoStream => f.write_str("NoStream"),
            Self::Stream(stream) => write!(f, "{}", stream.get()),
        }
    }
}

impl fmt::Display for FromHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prime => f.write_str("Prime"),
            Self::NoStream => f.write_str("NoStream"),
            Self::Move(stream) => write!(f, "Move({})", stream.get()),
            Self::Last(stream) => write!(f, "Last({})", stream.get()),
        }
    }
}

impl fmt::Display for FromDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Erdy(stream) => write!(f, "ERDY({})", stream.get()),
            Self::Nrdy(field) => write!(f, "NRDY({field})"),
            Self::Burst { stream, ends: false } => write!(f, "Burst({})", stream.get()),
            Self::Burst { stream, ends: true } => write!(f, "Burst({}), the last", stream.get()),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("stream protocol violation: received a packet that is invalid in this state; the pipe is disabled")
    }
}

impl std::error::Error for Violation {}

#[cfg(test)]
mod tests;
