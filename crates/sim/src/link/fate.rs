//! Fault injection for packets of a SuperSpeed link.
//!
//! The link retransmits a packet whose header arrives damaged (USB 3.2 clause 7.2.4.1.4); the ports
//! do not notice. The receiver requests a packet with a damaged payload again (clause 8.11). The
//! host times out on a lost packet (clause 8.13). Not modelled: links that fail so often that they
//! retrain.

use super::bulk::Message;
use super::superspeed::Side;
use std::fmt::Debug;
use units::Instant;

/// The outcome of one packet transmission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fate {
    /// It arrives as it was sent.
    #[default]
    Arrives,
    /// Its header does not match its CRC.
    HeaderDamaged,
    /// Its payload does not match its CRC. A packet without payload arrives.
    PayloadDamaged,
    /// The link layer acknowledges it, and the port never sees it.
    Lost,
}

/// Decides the fate of each packet.
pub trait Fates: Debug {
    /// Returns the fate of a packet that a side begins to send.
    fn fate(&mut self, at: Instant, from: Side, message: &Message) -> Fate;
}
