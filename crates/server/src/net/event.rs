//! Events of a server, for its owner.

use super::Address;
use crate::usbredir::{Fault, Peer};
use device::ActiveTransport;
use std::fmt;
use std::io;

/// Something that has happened. A client breaks the rules of its protocol by `F`.
#[derive(Debug)]
pub enum Event<F = Fault> {
    /// Clients can connect. A requested port 0 is the real one here.
    Listening(Address),
    /// A client has connected.
    Connected {
        /// Its process or network address.
        client: String,
    },
    /// The client's hello has arrived; the device is plugged in.
    Greeted(Peer),
    /// A second client has connected and was rejected.
    Rejected {
        /// Its process or network address.
        client: String,
    },
    /// The guest uses another transport than before: its first bulk transfer over it has arrived.
    Transport(ActiveTransport),
    /// The same of a drive at a root port of a controller.
    PortTransport {
        /// The root port.
        port: u8,
        /// The transport that the guest uses.
        transport: ActiveTransport,
    },
    /// The client has disconnected, or was disconnected.
    Disconnected(Reason<F>),
    /// A connection could not be accepted. The server tries again.
    AcceptFailed(io::Error),
    /// The server serves no client any more; commands in flight complete.
    Stopping,
}

/// Why a client was disconnected.
#[derive(Debug)]
pub enum Reason<F = Fault> {
    /// It has closed its end.
    Closed,
    /// The connection broke.
    Lost(io::Error),
    /// It broke the protocol.
    Fault(F),
    /// Its hello has not arrived in time ([`crate::usbredir::Limits::hello_timeout`]).
    HelloTimeout,
    /// The server stops.
    Stopped,
}

impl<F: fmt::Display> fmt::Display for Event<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listening(address) => write!(f, "listening on {address}"),
            Self::Connected { client } => write!(f, "client connected: {client}"),
            Self::Greeted(peer) => write!(f, "client version: {}", peer.version),
            Self::Rejected { client } => write!(f, "rejected {client}: another client is connected"),
            Self::Transport(transport) => f.write_str(describe(*transport)),
            Self::PortTransport { port, transport } => write!(f, "{} at port {port}", describe(*transport)),
            Self::Disconnected(reason) => write!(f, "client disconnected: {reason}"),
            Self::AcceptFailed(error) => write!(f, "cannot accept a connection, trying again: {error}"),
            Self::Stopping => f.write_str("stopping"),
        }
    }
}

/// Describes how the guest uses the drive.
const fn describe(transport: ActiveTransport) -> &'static str {
    match transport {
        ActiveTransport::None => "no guest driver is bound to the drive",
        ActiveTransport::Bot => "guest uses BOT",
        ActiveTransport::Cbi { interrupt: true } => "guest uses CBI with interrupts",
        ActiveTransport::Cbi { interrupt: false } => "guest uses CBI without interrupts",
        ActiveTransport::Uas { streams: true } => "guest uses UAS with streams",
        ActiveTransport::Uas { streams: false } => "guest uses UAS without streams",
    }
}

impl<F: fmt::Display> fmt::Display for Reason<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("connection closed by peer"),
            Self::Lost(error) => write!(f, "connection failed: {error}"),
            Self::Fault(fault) => fault.fmt(f),
            Self::HelloTimeout => f.write_str("timed out waiting for its usbredir hello"),
            Self::Stopped => f.write_str("server is stopping"),
        }
    }
}
