//! Events of a server, for its owner.

use super::Fault;
use crate::net::Address;
use device::ActiveTransport;
use std::fmt;
use std::io;

/// Something that has happened.
#[derive(Debug)]
pub enum Event {
    /// Clients can connect.
    Listening(Address),
    /// A client has connected.
    Connected {
        /// Its process.
        client: String,
    },
    /// A second client has connected and was rejected.
    Rejected {
        /// Its process.
        client: String,
    },
    /// The guest uses another transport than before at a port.
    Transport {
        /// The root port of the drive.
        port: u8,
        /// What it uses.
        transport: ActiveTransport,
    },
    /// The client has disconnected, or was disconnected.
    Disconnected(Reason),
    /// A connection could not be accepted. The server tries again.
    AcceptFailed(io::Error),
    /// The server serves no client any more.
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
    /// Its first message has not arrived in time.
    VersionTimeout,
    /// The server stops.
    Stopped,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listening(address) => write!(f, "listening on {address}"),
            Self::Connected { client } => write!(f, "client connected: {client}"),
            Self::Rejected { client } => write!(f, "rejected {client}: another client is connected"),
            Self::Transport { port, transport } => match transport {
                ActiveTransport::None => write!(f, "no guest driver is bound to the drive at port {port}"),
                ActiveTransport::Bot => write!(f, "guest uses BOT at port {port}"),
                ActiveTransport::Uas { streams: true } => {
                    write!(f, "guest uses UAS with streams at port {port}")
                }
                ActiveTransport::Uas { streams: false } => {
                    write!(f, "guest uses UAS without streams at port {port}")
                }
            },
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
            Self::VersionTimeout => f.write_str("timed out waiting for its VERSION message"),
            Self::Stopped => f.write_str("server is stopping"),
        }
    }
}
