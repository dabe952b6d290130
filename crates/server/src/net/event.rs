//! Events of a server, for its owner.

use super::Address;
use crate::usbredir::{Fault, Peer};
use device::ActiveTransport;
use std::fmt;
use std::io;

/// Something that has happened.
#[derive(Debug)]
pub enum Event {
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
    /// The client has disconnected, or was disconnected.
    Disconnected(Reason),
    /// A connection could not be accepted. The server tries again.
    AcceptFailed(io::Error),
    /// The server serves no client any more; commands in flight complete.
    Stopping,
}

/// Why a client was disconnected.
#[derive(Debug)]
pub enum Reason {
    /// It has closed its end.
    Closed,
    /// The connection broke.
    Lost(io::Error),
    /// It broke the protocol.
    Fault(Fault),
    /// Its hello has not arrived in time ([`crate::usbredir::Limits::hello_timeout`]).
    HelloTimeout,
    /// The server stops.
    Stopped,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listening(address) => write!(f, "listening on {address}"),
            Self::Connected { client } => write!(f, "client connected: {client}"),
            Self::Greeted(peer) => write!(f, "client version: {}", peer.version),
            Self::Rejected { client } => write!(f, "rejected {client}: another client is connected"),
            Self::Transport(ActiveTransport::None) => f.write_str("no guest driver is bound to the drive"),
            Self::Transport(ActiveTransport::Bot) => f.write_str("guest uses BOT"),
            Self::Transport(ActiveTransport::Uas { streams: true }) => {
                f.write_str("guest uses UAS with streams")
            }
            Self::Transport(ActiveTransport::Uas { streams: false }) => {
                f.write_str("guest uses UAS without streams")
            }
            Self::Disconnected(reason) => write!(f, "client disconnected: {reason}"),
            Self::AcceptFailed(error) => write!(f, "cannot accept a connection, trying again: {error}"),
            Self::Stopping => f.write_str("stopping"),
        }
    }
}

impl fmt::Display for Reason {
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
