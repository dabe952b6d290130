//! Which stream of a bulk pipe moves: the stream protocol, a machine for each end (USB 3.2 clause
//! 8.12.1.4).
//!
//! A pipe has many streams and moves one at a time, the *current* one. Mostly the device chooses:
//! it asks with ERDY for the stream whose command it works on, and the host goes along or, where it
//! has no buffers for that, refuses with NoStream. When the host gets new buffers it says so with
//! Prime, once, without saying for which stream; so a device that was refused asks again only then.
//! If the new buffers are for the stream that moved last, the host may start that by itself.
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
//! In Move Data both take turns: the host says that the stream moves, the device moves a burst, the
//! host says that it goes on or that this was the last. So no end of a stream ever crosses a
//! beginning of the next. How much a burst is, is the protocol layer's. An IN pipe and an OUT pipe
//! agree in the same way with other packets: what is [`FromHost`] here is an ACK transaction packet
//! on an IN pipe and a data packet on an OUT pipe, what is [`FromDevice`] the other way about.
//!
//! Not modelled: the Deferred bit, by which a hub reports that it held a packet back. What is
//! written here of clause 8.12.1.4 is from secondary sources; the refusal is answered with
//! NRDY(NoStream).
//!
//! Invariants: neither end waits for the other for ever, whatever crosses on the way; a packet that
//! the other end could not have sent takes the machine to Disabled, and nothing else.

mod device;
mod host;

pub use device::{Device, DeviceState};
pub use host::{Host, HostState};

use bus::StreamId;
use std::fmt;

/// What a packet says in its Stream ID field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StreamField {
    /// FFFEh: there are new buffers.
    Prime,
    /// FFFFh: no stream.
    NoStream,
    /// A stream.
    Stream(StreamId),
}

/// What a host says about streams.
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

/// What a device says about streams.
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

/// A packet that the other end could not have sent in its state. The pipe is disabled until
/// software looks at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation;

impl StreamField {
    /// The id as it is on the wire.
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
