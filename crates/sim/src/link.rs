//! Links between a host controller and a device.
//!
//! [`superspeed`] is the dual-simplex link of USB 3: two lanes, each of which carries the
//! acknowledgements for the other. [`bulk`] is the bulk protocol at both ends, [`streams`] the
//! protocol by which both ends agree on the current stream of a pipe, and [`control`] is endpoint
//! 0. [`hub`] lets several devices behind hubs share a link. [`usb2`] is the USB 2.0 bus, at high
//! and at full speed. A [`LinkPair`] joins a host port, a device port and the link between them, as
//! a [`Connection`] describes; a [`Fate`] decides whether a packet arrives, is damaged or is lost.
//!
//! Code on the path of every packet is `inline(always)`, and rare cases are moved out of it
//! (`cold`): instruction cache misses slow a simulation as much as instructions do, see
//! docs/PERFORMANCE.md.

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

/// The times of one transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crossing {
    /// Time at which the first symbol is sent.
    pub begins: Instant,
    /// Time at which the last symbol has been sent and the lane is free.
    pub ends: Instant,
    /// Time at which the last symbol has arrived at the other side.
    pub arrives: Instant,
    /// Time at which the receiving port acts on it, after its processing delay.
    pub heard: Instant,
}
