//! The bus of USB 2.0 with a device of bulk endpoints on it: high speed and full speed (clauses 5.8
//! and 8).
//!
//! A [`Bus`] is half duplex: one packet at a time, and whole transactions within a frame. The host
//! asks and the device answers: [`HostRequest`], [`Answer`], and where data came in, the host's
//! ACK. [`HostPort`] and [`DevicePort`] are both ends of the endpoints, of the same shape as those
//! of [`super::bulk`], with the same [`Transfer`](super::bulk::Transfer) and
//! [`Progress`](super::bulk::Progress), and endpoint 0 has the words of [`super::control`]; an
//! [`Exchange`] lets them meet on a bus, packet by packet. A [`Tree`] is a bus with hubs, on which
//! several devices meet their host in turns, those of full speed behind a hub of high speed by its
//! translator.
//!
//! A device that is not ready says NAK and is asked again, as often as the host's [`Pacing`] says.
//! At high speed a host asks for room with PING before it sends data to a device that had none.
//! Data packets alternate between DATA0 and DATA1, so that one whose handshake was lost is known
//! when it comes again. A packet that is not answered is tried three times.
//!
//! Not modelled: bit stuffing, isochronous endpoints, suspend, low speed; an interrupt endpoint is
//! asked like one of bulk, but no more often than it wants to be. After OUT data that was not
//! answered the host sends it again; some controllers ask with PING first, which a device without a
//! buffer beside its transfers could not report from what it has said already.
//!
//! Invariants: one transaction is in progress; data of an endpoint is taken in order, each packet
//! once; a transaction never crosses from one frame into the next.

mod control;
mod device;
mod exchange;
mod host;
mod line;
mod packet;
mod port;
mod rate;
mod tree;
mod wires;

pub use device::DeviceEndpoint;
pub use exchange::{AllSent, Exchange, Fate, Sent, payload_of};
pub use host::{HostEndpoint, Pacing, TRIES_MAX};
pub use packet::{Answer, Handshake, HostRequest, HostTransaction, Packet, SplitPhase, Toggle};
pub use port::{DevicePort, HostPort, NextTransaction};
pub use rate::Rate;
pub use tree::{BusEvent, FateOf, Translators, Tree};
pub use wires::Bus;

#[cfg(test)]
mod tests;
