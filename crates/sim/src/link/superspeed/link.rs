//! Both directions of a link, and the credits that couple them.
//!
//! A port may have four header packets under way that the other has not taken (USB 3.2 clause 7.2.4.1). For each that it
//! takes, a port sends LGOOD and LCRD; for one that arrives damaged LBAD, and what was sent since comes again after LRTY
//! (clause 7.2.4.1.4). Left out: recovery after the third time.

use super::lane::Lane;
use super::packet::Packet;
use super::rate::Rate;
use crate::link::Crossing;
use std::fmt;
use units::{Duration, Instant};

/// Header packets that may be under way without having been taken (clause 7.2.4.1.1).
const CREDITS: usize = 4;

/// One end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The one nearer to the host: a port that faces downstream.
    Host,
    /// The one nearer to the device.
    Device,
}

/// The sender has no credit. One comes back when the other side has taken a packet: see [`Link::take`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocked;

/// A link between two ports.
#[derive(Clone, Debug)]
pub struct Link {
    rate: Rate,
    /// By the side that sends.
    lanes: [Lane; 2],
    credits: [Credits; 2],
}

/// Credits of one sender: for each, when it is or was back; `None` while the packet is under way.
#[derive(Clone, Copy, Debug)]
struct Credits {
    back_at: [Option<Instant>; CREDITS],
    next: usize,
    oldest: usize,
}

impl Side {
    /// The other one.
    pub const fn other(self) -> Self {
        match self {
            Self::Host => Self::Device,
            Self::Device => Self::Host,
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Host => "host",
            Self::Device => "device",
        })
    }
}

impl Link {
    /// A link that is up and idle. `flight` is what a symbol takes through the cable.
    pub fn new(rate: Rate, flight: Duration) -> Self {
        let (lane, credits) = (Lane::new(rate, flight), Credits::new());
        Self { rate, lanes: [lane.clone(), lane], credits: [credits; 2] }
    }

    /// The rate.
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// The lane on which `side` sends.
    pub const fn lane(&self, side: Side) -> &Lane {
        &self.lanes[side as usize]
    }

    /// `from` sends a packet, no sooner than `gap` after what went before. One at a time: whoever has more to send comes
    /// again when this one ends, so that link commands do not wait behind a queue.
    ///
    /// # Errors
    /// If no credit is there and none is on its way back.
    pub fn send(
        &mut self,
        now: Instant,
        from: Side,
        packet: Packet,
        gap: Duration,
    ) -> Result<Crossing, Blocked> {
        let back_at = self.credits[from as usize].spend().ok_or(Blocked)?;
        Ok(self.lanes[from as usize].send(now.max(back_at), packet, gap))
    }

    /// `from` sends a packet again, after LRTY has said so: it has its credit still.
    pub fn resend(&mut self, now: Instant, from: Side, packet: Packet) -> Crossing {
        self.lanes[from as usize].send(now, packet, Duration::ZERO)
    }

    /// `from` sends a link command that is not about a packet that it took: LBAD, LRTY.
    pub fn send_command(&mut self, now: Instant, from: Side) -> Crossing {
        self.lanes[from as usize].send_commands(now, 1)
    }

    /// `at` has received a packet, whole, and has room for the next one: LGOOD and LCRD go back. When the sender has them.
    pub fn take(&mut self, now: Instant, at: Side) -> Instant {
        let back_at = self.lanes[at as usize].send_commands(now, 2).arrives;
        self.credits[at.other() as usize].give_back(back_at);
        back_at
    }
}

impl Credits {
    const fn new() -> Self {
        Self { back_at: [Some(Instant::ZERO); CREDITS], next: 0, oldest: 0 }
    }

    /// Takes the next credit: since when it is there, or from when it will be.
    fn spend(&mut self) -> Option<Instant> {
        let back_at = self.back_at[self.next].take()?;
        self.next = (self.next + 1) % CREDITS;
        Some(back_at)
    }

    /// Gives the oldest credit back that is spent.
    fn give_back(&mut self, back_at: Instant) {
        debug_assert!(self.back_at[self.oldest].is_none(), "more packets were taken than sent");
        self.back_at[self.oldest] = Some(back_at);
        self.oldest = (self.oldest + 1) % CREDITS;
    }
}
