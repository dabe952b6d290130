//! SuperSpeed bulk transfers: bursts, sequence numbers, flow control (USB 3.2 clauses 8.10 and
//! 8.11.1).
//!
//! Each side of an endpoint is a state machine. The host side requests data packets on an IN
//! endpoint and sends them on an OUT endpoint ([`HostEndpoint`]); the device side does the opposite
//! ([`DeviceEndpoint`]). Both queue transfers, by stream where the endpoint has streams, and report
//! their [`Progress`]. Packets are [`Message`]s; the link determines their times.
//!
//! An acknowledgement says which packet is expected next and how many may follow (NumP). A receiver
//! without room answers with none at all or with NRDY, and says ERDY when it has room; the sender
//! then starts again with the packet that was not taken. A packet shorter than the largest ends its
//! transfer. A device that has halted an endpoint answers STALL, and goes on when its host has
//! cleared the halt.
//!
//! Not modelled: interrupt and isochronous endpoints.
//!
//! Invariants: packets of one endpoint are taken in order, each once; no more are in flight than
//! were asked for.

mod device;
mod ends;
mod host;
mod message;
mod port;
mod queue;

pub use bus::link::{End, Endpoint, PacketPayload, Progress, Transfer};
pub use device::DeviceEndpoint;
pub use host::HostEndpoint;
pub use message::{Message, Sequence};
pub use port::{DevicePort, ERDY_TIMEOUT, HostPort, Others, TRANSACTION_TIMEOUT};
pub use queue::NotWithdrawn;

use std::fmt;

/// The endpoint has no such stream, or has streams and none was named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSuchStream;

impl fmt::Display for NoSuchStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the endpoint has no such stream")
    }
}

impl std::error::Error for NoSuchStream {}

#[cfg(test)]
mod tests;
