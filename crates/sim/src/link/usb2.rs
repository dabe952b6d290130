//! The bus of USB 2.0 with a device of bulk endpoints on it: high speed and full speed (clauses 5.8
//! and 8).
//!
//! A [`Bus`] is half duplex: one packet at a time, and whole transactions within a frame. The host
//! starts transactions and the device answers: [`HostRequest`], [`Answer`], and the host's ACK of
//! IN data. [`HostPort`] and [`DevicePort`] have the interface of [`super::bulk`], with the same
//! [`Transfer`](super::bulk::Transfer) and [`Progress`](super::bulk::Progress); endpoint 0 uses the
//! types of [`super::control`]. An [`Exchange`] connects them on a bus, packet by packet. A
//! [`Tree`] is a bus with hubs and several devices, with translators for full-speed devices behind
//! high-speed hubs.
//!
//! A device that is not ready answers NAK and is polled again after the host's [`Pacing`]. At high
//! speed the host sends PING before data to a device that had no room. Data packets alternate
//! between DATA0 and DATA1, so that a duplicate after a lost handshake is detected. A packet
//! without an answer is tried three times.
//!
//! Not modelled: bit stuffing, isochronous endpoints, suspend, low speed; an interrupt endpoint is
//! polled like a bulk endpoint, but at most once per interval. The host repeats unanswered OUT
//! data; some controllers send PING first.
//!
//! Invariants: one transaction is in progress; data of an endpoint is accepted in order, each
//! packet once; a transaction never crosses a frame boundary.

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
