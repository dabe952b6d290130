//! A SuperSpeed link between two ports, to the symbol (USB 3.2 clause 7, the link layer).
//!
//! [`Rate`] says how long a symbol takes and what a packet weighs, [`Packet`] is what crosses, a
//! [`Lane`] is one direction and a [`Link`] both: each packet that arrives costs the other
//! direction two link commands, and gives one of four credits back. What the packets mean is not
//! known here: bursts, sequence numbers and streams are the protocol layer's.
//!
//! A port acts on a packet after its [`TurnRound`].
//!
//! A lane takes one packet at a time, and the sender asks when the lane is free again, so that link
//! commands never wait for more than the packet that is in flight, as the standard has it. They are
//! not events of their own: when they end is known when they are sent.
//!
//! Not modelled: training, receiver detection and equalisation; a link is up when the world begins.
//!
//! Invariants: a lane carries one thing at a time, in the order in which it was sent; of header
//! packets without credit there are none.

mod lane;
mod link;
mod packet;
mod rate;
mod sleep;
mod turn;

pub use lane::{Lane, Traffic};
pub use link::{BUS_INTERVAL, Blocked, Link, Side};
pub use packet::Packet;
pub use rate::Rate;
pub use sleep::{ExitLatency, Inactivity, LinkState, Sleep};
pub use turn::TurnRound;

#[cfg(test)]
mod tests;
