//! What a server tells its owner.

use super::Address;
use crate::usbredir::{Fault, Peer};
use device::ActiveTransport;
use std::fmt;
use std::io;

/// Something that has happened.
#[derive(Debug)]
pub enum Event {
    /// Clients may come. A port 0 that was asked for is the real one here.
    Listening(Address),
    /// A client is there.
    Connected {
        /// Who: a process or a network address.
        client: String,
    },
    /// The client has said its hello; the device is plugged in.
    Greeted(Peer),
    /// Another client came while one was there, and was turned away.
    TurnedAway {
        /// Who.
        client: String,
    },
    /// The guest uses another transport than before: its first bulk transfer over it has come.
    Transport(ActiveTransport),
    /// The client is gone.
    Disconnected(Reason),
    /// A connection could not be accepted. It is tried again.
    AcceptFailed(io::Error),
    /// No client is served any more; what is under way ends.
    Stopping,
}

/// Why a client is gone.
#[derive(Debug)]
pub enum Reason {
    /// It has closed its end.
    Closed,
    /// The connection broke.
    Lost(io::Error),
    /// It broke the protocol.
    Fault(Fault),
    /// The server stops.
    Stopped,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listening(address) => write!(f, "listening at {address}"),
            Self::Connected { client } => write!(f, "{client} has connected"),
            Self::Greeted(peer) => write!(f, "the client is {}", peer.version),
            Self::TurnedAway { client } => write!(f, "{client} was turned away: one client at a time"),
            Self::Transport(ActiveTransport::None) => f.write_str("the guest has no driver on the drive"),
            Self::Transport(ActiveTransport::Bot) => f.write_str("the guest uses the drive by BOT"),
            Self::Transport(ActiveTransport::Uas { streams: true }) => {
                f.write_str("the guest uses the drive by UAS, with streams")
            }
            Self::Transport(ActiveTransport::Uas { streams: false }) => {
                f.write_str("the guest uses the drive by UAS, without streams")
            }
            Self::Disconnected(reason) => write!(f, "the client is gone: {reason}"),
            Self::AcceptFailed(error) => write!(f, "a connection could not be accepted: {error}"),
            Self::Stopping => f.write_str("stopping"),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("it closed the connection"),
            Self::Lost(error) => write!(f, "{error}"),
            Self::Fault(fault) => fault.fmt(f),
            Self::Stopped => f.write_str("the server stops"),
        }
    }
}
