//! What becomes of a packet on its way.
//!
//! A packet whose header arrives damaged is sent again by the link (USB 3.2 clause 7.2.4.1.4), and the ports never learn of it. One whose
//! payload arrives damaged is asked for again by its receiver (clause 8.11). One that is lost is missed by the host, which
//! waits for an answer (clause 8.13). Left out: links that fail so often that they are trained anew.

use super::bulk::Message;
use super::superspeed::Side;
use std::fmt::Debug;
use units::Instant;

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fate {
    /// It arrives as it was sent.
    #[default]
    Arrives,
    /// Its header does not match its CRC.
    HeaderDamaged,
    /// Its payload does not match its CRC. A packet without payload arrives.
    PayloadDamaged,
    /// The link takes it, and the port never sees it.
    Lost,
}

/// Who decides what becomes of each packet.
pub trait Fates: Debug {
    /// What becomes of a packet that a side begins to send.
    fn fate(&mut self, at: Instant, from: Side, message: &Message) -> Fate;
}
