//! SuperSpeed hubs: devices in tiers that share one link to the host (USB 3.2 clauses 8.10 and 10).
//!
//! A [`Tree`] is a root port, hubs below it and devices. Packets of the host are routed by the
//! route string of their device; packets of a device go up. A hub keeps packets in order on each
//! path, and serves its ports round-robin on the lane to the host. Each link has separate credits:
//! a hub returns one when it has forwarded the packet.
//!
//! ```text
//!   host ports, one for each device
//!        │ root link          one IN burst at a time on the bus, ports go round
//!       hub ───── header received, then its delay, then the header goes on; payload follows as it comes
//!      ╱   ╲
//!  device   hub               up to five on a way
//!          ╱   ╲
//!      device   device
//! ```
//!
//! At Gen 1 a hub stores headers and repeats payload; at Gen 2 it stores whole packets. Not
//! modelled: packets that a hub defers for a link in a low power state, and links of different
//! rates in one tree. A header may arrive damaged on any link, which sends it again; a payload is
//! damaged, or a packet lost, at its end alone.
//!
//! Invariants: packets of one device stay in order in each direction; none is lost or duplicated; a
//! link never carries more packets than it has credits for.

mod burst;
mod ends;
mod lane;
mod tree;
mod types;

pub use tree::Tree;
pub use types::{
    Arrived, AttachError, AttachPoint, DEVICES_MAX, DeviceId, HubId, Routed, Sent, TreeArrival,
    TreeEnvironment, TreeEvent,
};

use units::Duration;

/// Maximum forwarding delay of a hub, and the default in a tree (wHubDelay, clause 10.15.2.1).
pub const DELAY_MAX: Duration = Duration::from_ns(400);

#[cfg(test)]
mod tests;
