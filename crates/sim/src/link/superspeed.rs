//! A SuperSpeed link between two ports, exact to the symbol (USB 3.2 clause 7, link layer).
//!
//! [`Rate`] defines symbol times and packet sizes, [`Packet`] is a packet size, a [`Lane`] is one
//! direction and a [`Link`] both: each packet costs the other direction two link commands, and uses
//! one of four credits until it is accepted. Bursts, sequence numbers and streams belong to the
//! protocol layer.
//!
//! A port acts on a packet after its [`TurnRound`].
//!
//! A lane carries one packet at a time, and the sender polls when the lane is free, so that link
//! commands wait for one packet at most, as the standard requires. They need no events: their times
//! are known when they are sent.
//!
//! Not modelled: training, receiver detection and equalisation; a link is up when the simulation
//! starts.
//!
//! Invariants: a lane carries one packet or command at a time, in order; no header packet is sent
//! without a credit.

mod lane;
mod link;
mod packet;
mod rate;
mod side;
mod sleep;
mod turn;

pub use lane::{Lane, Traffic};
pub use link::{BUS_INTERVAL, Blocked, Link};
pub use packet::Packet;
pub use rate::Rate;
pub use side::Side;
pub use sleep::{ExitLatency, Inactivity, LinkState, Sleep};
pub use turn::TurnRound;

#[cfg(test)]
mod tests;
