//! What each component of a world has done in a span of time: lanes of links and buses, those below hubs as well, the controller, the core
//! that runs the driver, plain media, and of drives that are made of parts the bridge, the SATA cable and the drive.
//!
//! Everything is a difference of two counts that a component keeps anyway, so that nothing is counted for whoever looks. Left out:
//! what is within a drive of parts (dies, the arm), and how many of a bridge's tags are taken: `study::explain` tells by command what
//! that costs. Always true: a span that was cut in two adds up.

use crate::engine::OccupancyStats;
use crate::link::superspeed::{Link, Side, Traffic};
use crate::link::usb2::Bus;
use crate::sata::Books;
use crate::xhc::Counters;
use units::{Duration, Instant};

/// All of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Components {
    /// The time that it is about.
    pub span: Duration,
    /// SuperSpeed links at root ports: the host's lane and the device's.
    pub links: Vec<[LaneLoad; 2]>,
    /// The same of those below hubs: root port by root port, as they were plugged in.
    pub links_below: Vec<[LaneLoad; 2]>,
    /// Buses of USB 2.0 at root ports.
    pub buses: Vec<BusLoad>,
    /// The same of those below translators.
    pub buses_below: Vec<BusLoad>,
    /// The host controller, if there is one.
    pub controller: Option<ControllerLoad>,
    /// The core that runs driver and transports, if that takes time.
    pub core: Option<CoreLoad>,
    /// The medium of each drive that is not made of parts.
    pub media: Vec<QueueLoad>,
    /// The bridge of each drive that is.
    pub bridges: Vec<BridgeLoad>,
    /// Its cable and the drive on that.
    pub stores: Vec<StoreLoad>,
}

/// What a lane has carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneLoad {
    /// In symbols and bytes.
    pub traffic: Traffic,
    /// The time that it took.
    pub busy: Duration,
}

/// What a bus of USB 2.0 has carried, which is one for both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BusLoad {
    /// Bytes of payload, taken or not.
    pub payload: u64,
    /// The time that its packets took, with what is around their payload.
    pub busy: Duration,
}

/// What a bridge has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BridgeLoad {
    /// How long it had something to do: its firmware, its drive or what is between them.
    pub busy: Duration,
    /// How long its firmware worked.
    pub firmware: Duration,
    /// What that had in line.
    pub queue: QueueLoad,
    /// How long data went through its memory.
    pub memory: Duration,
}

/// What a SATA cable has carried, and the drive on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreLoad {
    /// What the cable has carried.
    pub cable: Books,
    /// How long the drive had something to do.
    pub drive: Duration,
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
        let lanes = |now: &[LaneLoad; 2], before: &[_; 2]| [0, 1].map(|side| now[side].since(before[side]));
        Self {
            span: self.span.saturating_sub(earlier.span),
            links: since(&self.links, &earlier.links, lanes),
            links_below: since(&self.links_below, &earlier.links_below, lanes),
            buses: since(&self.buses, &earlier.buses, BusLoad::since),
            buses_below: since(&self.buses_below, &earlier.buses_below, BusLoad::since),
            controller: self.controller.zip(earlier.controller).map(|(now, before)| now.since(before)),
            core: self.core.zip(earlier.core).map(|(now, before)| now.since(before)),
            media: since(&self.media, &earlier.media, |now, before| now.since(*before)),
            bridges: since(&self.bridges, &earlier.bridges, BridgeLoad::since),
            stores: since(&self.stores, &earlier.stores, StoreLoad::since),
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

/// Each of these since it was counted earlier.
fn since<T>(all: &[T], earlier: &[T], one: impl Fn(&T, &T) -> T) -> Vec<T> {
    all.iter().zip(earlier).map(|(now, before)| one(now, before)).collect()
}

impl BusLoad {
    /// A bus since it was made.
    pub(crate) fn of(bus: &Bus) -> Self {
        Self { payload: bus.payload(), busy: bus.carried_for() }
    }

    fn since(&self, earlier: &Self) -> Self {
        let busy = self.busy.saturating_sub(earlier.busy);
        Self { payload: self.payload.saturating_sub(earlier.payload), busy }
    }
}

impl BridgeLoad {
    fn since(&self, earlier: &Self) -> Self {
        Self {
            busy: self.busy.saturating_sub(earlier.busy),
            firmware: self.firmware.saturating_sub(earlier.firmware),
            queue: self.queue.since(earlier.queue),
            memory: self.memory.saturating_sub(earlier.memory),
        }
    }
}

impl StoreLoad {
    fn since(&self, earlier: &Self) -> Self {
        let cable = Books {
            frames: self.cable.frames - earlier.cable.frames,
            payload_bytes: self.cable.payload_bytes - earlier.cable.payload_bytes,
            busy: self.cable.busy.saturating_sub(earlier.cable.busy),
        };
        Self { cable, drive: self.drive.saturating_sub(earlier.drive) }
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
    pub(crate) fn of(level: &OccupancyStats, now: Instant) -> Self {
        Self { arrived: level.arrived(), area: level.area(now), most: level.most() }
    }

    fn since(self, earlier: Self) -> Self {
        // A drive that was plugged in again begins anew.
        let arrived = self.arrived.saturating_sub(earlier.arrived);
        Self { arrived, area: self.area.saturating_sub(earlier.area), ..self }
    }
}
