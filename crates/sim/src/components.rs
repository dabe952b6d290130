//! Counters of each component of a machine over a span of time: lanes of links and buses (those
//! below hubs too), the controller, the CPU core that runs the driver, simple media, and bridge,
//! SATA cable and drive of an enclosure.
//!
//! Each value is the difference of two running counters, so reading them costs nothing while the
//! machine runs. Left out: the parts of a drive (dies, arm) and the tags in use at a bridge;
//! `study::explain` attributes these per command. Invariant: adjacent spans add up.

use crate::engine::OccupancyStats;
use crate::link::superspeed::{Link, Side, Traffic};
use crate::link::usb2::Bus;
use crate::sata::Books;
use units::{Duration, Instant};
use xhci_controller::Counters;

/// The counters of all components.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Components {
    /// The span that the counters cover.
    pub span: Duration,
    /// SuperSpeed links at root ports: host lane, device lane.
    pub links: Vec<[LaneLoad; 2]>,
    /// SuperSpeed links below hubs, by root port and then in the order of plugging in.
    pub links_below: Vec<[LaneLoad; 2]>,
    /// USB 2.0 buses at root ports.
    pub buses: Vec<BusLoad>,
    /// USB 2.0 buses below transaction translators.
    pub buses_below: Vec<BusLoad>,
    /// The host controller, if the machine has one.
    pub controller: Option<ControllerLoad>,
    /// The core that runs driver and transports, if their work takes time.
    pub core: Option<CoreLoad>,
    /// The medium of each drive without an enclosure.
    pub media: Vec<QueueLoad>,
    /// The bridge of each drive in an enclosure.
    pub bridges: Vec<BridgeLoad>,
    /// The SATA cable and the drive behind each bridge.
    pub stores: Vec<StoreLoad>,
}

/// Load of a SuperSpeed lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneLoad {
    /// Traffic in symbols and bytes.
    pub traffic: Traffic,
    /// Time for which the lane was busy.
    pub busy: Duration,
}

/// Load of a USB 2.0 bus, which both directions share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BusLoad {
    /// Payload bytes on the bus, accepted or not.
    pub payload: u64,
    /// Time of all packets, including their overhead.
    pub busy: Duration,
}

/// Load of a bridge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BridgeLoad {
    /// Time with any work at the firmware, the drive or between them.
    pub busy: Duration,
    /// Time for which the firmware was busy.
    pub firmware: Duration,
    /// Queue of the firmware.
    pub queue: QueueLoad,
    /// Time for which the bridge's memory was busy.
    pub memory: Duration,
}

/// Load of a SATA cable and its drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreLoad {
    /// Traffic on the cable.
    pub cable: Books,
    /// Time for which the drive had a command.
    pub drive: Duration,
}

/// Load of a host controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ControllerLoad {
    /// Completed TDs.
    pub tds: u64,
    /// Interrupts raised.
    pub interrupts: u64,
    /// Times that the event ring was full.
    pub rings_full: u32,
}

/// Load of a CPU core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreLoad {
    /// Time for which the core was busy.
    pub busy: Duration,
    /// Queue of the core.
    pub queue: QueueLoad,
}

/// Load of a queueing station.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueLoad {
    /// Arrivals.
    pub arrived: u64,
    /// Items times picoseconds.
    area: u128,
    /// Maximum occupancy since the machine started.
    pub most: u32,
}

impl Components {
    /// Returns the counters accumulated since `earlier`, of the same machine.
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

    /// Returns the share of the span, 0 to 1, that `busy` takes.
    pub fn share(&self, busy: Duration) -> f64 {
        busy.as_ps() as f64 / (self.span.as_ps() as f64).max(1.0)
    }

    /// Returns the mean occupancy of a queue.
    pub fn mean(&self, queue: QueueLoad) -> f64 {
        queue.area as f64 / (self.span.as_ps() as f64).max(1.0)
    }
}

/// Subtracts earlier counters, element by element.
fn since<T>(all: &[T], earlier: &[T], one: impl Fn(&T, &T) -> T) -> Vec<T> {
    all.iter().zip(earlier).map(|(now, before)| one(now, before)).collect()
}

impl BusLoad {
    /// Reads the counters of a bus.
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
    /// Reads the counters of both lanes of a link.
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
    /// Reads the counters of a queue up to `now`.
    pub(crate) fn of(level: &OccupancyStats, now: Instant) -> Self {
        Self { arrived: level.arrived(), area: level.area(now), most: level.most() }
    }

    fn since(self, earlier: Self) -> Self {
        // A reattached drive restarts at zero.
        let arrived = self.arrived.saturating_sub(earlier.arrived);
        Self { arrived, area: self.area.saturating_sub(earlier.area), ..self }
    }
}
