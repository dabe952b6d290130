//! What each component of a world has done in a span of time: lanes of links, the controller, the core that runs the driver, media.
//!
//! Everything is a difference of two counts that a component keeps anyway, so that nothing is counted for whoever looks. Left out:
//! what parts behind a bridge do, which [`crate::explain`] tells by command. Always true: a span that was cut in two adds up.

use crate::engine::Level;
use crate::link::superspeed::{Link, Side, Traffic};
use crate::xhci::Counters;
use units::{Duration, Instant};

/// All of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Components {
    /// The time that it is about.
    pub span: Duration,
    /// SuperSpeed links at root ports: the host's lane and the device's.
    pub links: Vec<[LaneLoad; 2]>,
    /// Bytes of payload that buses of USB 2.0 at root ports have carried.
    pub bus_payload: Vec<u64>,
    /// The host controller, if there is one.
    pub controller: Option<ControllerLoad>,
    /// The core that runs driver and transports, if that takes time.
    pub core: Option<CoreLoad>,
    /// The medium of each drive that is not made of parts.
    pub media: Vec<QueueLoad>,
}

/// What a lane has carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneLoad {
    /// In symbols and bytes.
    pub traffic: Traffic,
    /// The time that it took.
    pub busy: Duration,
}

/// What a controller has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ControllerLoad {
    /// TDs that were told.
    pub tds: u64,
    /// Interrupts.
    pub interrupts: u64,
    /// Times that the event ring was full.
    pub rings_full: u32,
}

/// What a core has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreLoad {
    /// How long it has worked.
    pub busy: Duration,
    /// What it had in line.
    pub queue: QueueLoad,
}

/// How many waited and were served somewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueLoad {
    /// How many have come.
    pub arrived: u64,
    /// Things times picoseconds.
    area: u128,
    /// The most there were at once, since the world began.
    pub most: u32,
}

impl Components {
    /// What came after `earlier`, of the same world.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let links = self.links.iter().zip(&earlier.links);
        let payload = self.bus_payload.iter().zip(&earlier.bus_payload);
        let media = self.media.iter().zip(&earlier.media);
        Self {
            span: self.span.saturating_sub(earlier.span),
            links: links.map(|(now, before)| [0, 1].map(|side| now[side].since(before[side]))).collect(),
            bus_payload: payload.map(|(now, before)| now - before).collect(),
            controller: self.controller.zip(earlier.controller).map(|(now, before)| now.since(before)),
            core: self.core.zip(earlier.core).map(|(now, before)| now.since(before)),
            media: media.map(|(now, before)| now.since(*before)).collect(),
        }
    }

    /// The share of the span that something took, from 0 to 1.
    pub fn share(&self, busy: Duration) -> f64 {
        busy.as_ps() as f64 / (self.span.as_ps() as f64).max(1.0)
    }

    /// How many were somewhere on average.
    pub fn mean(&self, queue: QueueLoad) -> f64 {
        queue.area as f64 / (self.span.as_ps() as f64).max(1.0)
    }
}

impl LaneLoad {
    /// Both lanes of a link since it was made.
    pub(crate) fn of(link: &Link) -> [Self; 2] {
        [Side::Host, Side::Device]
            .map(|side| Self { traffic: link.lane(side).traffic(), busy: link.lane_busy(side) })
    }

    fn since(self, earlier: Self) -> Self {
        Self { traffic: self.traffic.since(earlier.traffic), busy: self.busy.saturating_sub(earlier.busy) }
    }
}

impl ControllerLoad {
    fn since(self, earlier: Self) -> Self {
        Self {
            tds: self.tds - earlier.tds,
            interrupts: self.interrupts - earlier.interrupts,
            rings_full: self.rings_full - earlier.rings_full,
        }
    }
}

impl From<Counters> for ControllerLoad {
    fn from(Counters { tds, interrupts, rings_full, .. }: Counters) -> Self {
        Self { tds, interrupts, rings_full }
    }
}

impl CoreLoad {
    fn since(self, earlier: Self) -> Self {
        Self { busy: self.busy.saturating_sub(earlier.busy), queue: self.queue.since(earlier.queue) }
    }
}

impl QueueLoad {
    /// What was there up to `now`.
    pub(crate) fn of(level: &Level, now: Instant) -> Self {
        Self { arrived: level.arrived(), area: level.area(now), most: level.most() }
    }

    fn since(self, earlier: Self) -> Self {
        // A drive that was plugged in again begins anew.
        let arrived = self.arrived.saturating_sub(earlier.arrived);
        Self { arrived, area: self.area.saturating_sub(earlier.area), ..self }
    }
}
