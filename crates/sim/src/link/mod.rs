//! What lies between a host controller and a device.
//!
//! [`superspeed`] is the dual-simplex link of USB 3: two lanes that know nothing of each other but the acknowledgements
//! that one carries for the other. [`bulk`] is what both ends of a bulk endpoint say to each other over it, and [`streams`]
//! their agreement on which stream of a pipe moves; [`control`] is endpoint 0. [`hub`] has several devices behind hubs share
//! a link. [`usb2`] is the bus of USB 2.0, at high and at full speed. A [`LinkPair`] is the ports of a host and a device and what
//! lies between them, as a [`Connection`] says; a [`Fate`] is what becomes of a packet on its way.
//!
//! What every packet goes through is part of its callers (`inline(always)`), and what is rare is kept out of there (`cold`): a
//! world is slowed by the cache for code as much as by instructions, see docs/PERFORMANCE.md.

pub mod bulk;
pub mod control;
mod fate;
pub mod hub;
mod lanes;
mod loss_timers;
mod pair;
mod port;
mod propagation;
mod rate;
mod retry;
mod run;
pub mod streams;
pub mod superspeed;
pub mod usb2;
#[cfg(test)]
mod wire;

pub use fate::{Fate, Fates};
pub use lanes::Wake;
pub use loss_timers::Missed;
pub use pair::{Arrival, CABLE, Connection, LinkPair};
pub use port::{DevicePort, HostPort};
pub use rate::AnyRate;

use units::Instant;

/// When something is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crossing {
    /// When its first symbol is sent.
    pub begins: Instant,
    /// When its last symbol has been sent, and something else may follow.
    pub ends: Instant,
    /// When its last symbol has arrived at the other side.
    pub arrives: Instant,
    /// When the port at the other side acts on it, which takes its time.
    pub heard: Instant,
}
