//! Bulk transfers of SuperSpeed: bursts, sequence numbers, flow control (USB 3.2 clauses 8.10 and 8.11.1).
//!
//! Each end of an endpoint is a machine. The host's asks for data packets on an IN endpoint and sends them on an OUT
//! endpoint ([`HostEndpoint`]); the device's does the opposite ([`DeviceEndpoint`]). Both queue transfers, by stream where the
//! endpoint has streams, and tell as [`Progress`] what of them has moved. What crosses is a [`Message`]; when it crosses, and
//! how long that takes, is the link's.
//!
//! An acknowledgement says which packet is expected next and how many may follow (NumP). A receiver without room answers
//! with none at all or with NRDY, and says ERDY when it has room; the sender then starts again with the packet that was not
//! taken. A packet shorter than the largest ends its transfer. A device that has halted an endpoint answers STALL, and goes on
//! when its host has cleared the halt.
//!
//! Left out: interrupt and isochronous endpoints.
//!
//! Always true: packets of one endpoint are taken in order, each once; no more are under way than were asked for.

mod device;
mod endpoint;
mod ends;
mod host;
mod message;
mod port;
mod queue;

pub use device::DeviceEndpoint;
pub use endpoint::Endpoint;
pub use host::HostEndpoint;
pub use message::{Message, PacketPayload, Sequence};
pub use port::{DevicePort, ERDY_TIMEOUT, HostPort, Others, TRANSACTION_TIMEOUT};
pub use queue::{End, NotWithdrawn, Progress, Transfer};

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
