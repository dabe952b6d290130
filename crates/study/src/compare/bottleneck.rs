//! Bottlenecks, by mechanism: from how busy each resource of a simulated machine was while figures were counted.
//!
//! A resource that serves one thing at a time (a core, a lane, firmware, a cable) limits the rate when it is nearly always busy. So does
//! a driver that keeps no more commands in flight when more are queued, if the rate grows up to that number. Left out: drives, which work
//! on several commands at once and are busy whenever they have one, and the controller's way to memory. What the simulation does not
//! know is not guessed: then there is no bottleneck to name.

use super::Configuration;
use crate::parts::Carried;
use crate::trial::Trial;
use sim::components::Components;
use std::fmt;

/// The share of time from which on a resource counts as always busy.
const BUSY: f64 = 0.9;

/// The resource or mechanism that limits a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bottleneck {
    HostCore,
    Link,
    Bus,
    BridgeFirmware,
    BridgeMemory,
    SataCable,
    /// Commands in flight at most.
    InFlight(u16),
}

/// The known limits of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Limits {
    /// The busiest resource that serves one thing at a time, if it is always busy.
    serial: Option<Bottleneck>,
    /// Commands in flight at most, where at least as many were queued.
    in_flight: Option<u16>,
}

impl Limits {
    /// Those of a run of a column at a queue depth.
    pub(super) fn of(column: &Configuration, depth: u16, trial: &Trial) -> Self {
        let own = column.activation.depth;
        // Turbo packs its requests, so that their number says nothing of commands.
        let has_limit = column.activation.transport != Carried::Turbo && depth >= own;
        Self { in_flight: has_limit.then_some(own), ..Self::of_components(&trial.components) }
    }

    fn of_components(all: &Components) -> Self {
        use Bottleneck::{BridgeFirmware, BridgeMemory, Bus, HostCore, Link, SataCable};
        let lanes = all.links.iter().chain(&all.links_below).flatten();
        let buses = all.buses.iter().chain(&all.buses_below);
        let shares = (all.core.iter().map(|core| (HostCore, core.busy)))
            .chain(lanes.map(|lane| (Link, lane.busy)))
            .chain(buses.map(|bus| (Bus, bus.busy)))
            .chain(all.bridges.iter().map(|bridge| (BridgeFirmware, bridge.firmware)))
            .chain(all.bridges.iter().map(|bridge| (BridgeMemory, bridge.memory)))
            .chain(all.stores.iter().map(|store| (SataCable, store.cable.busy)))
            .map(|(resource, busy)| (resource, all.share(busy)));
        let busiest = shares.max_by(|one, other| one.1.total_cmp(&other.1));
        Self {
            serial: busiest.filter(|(_, share)| *share >= BUSY).map(|(resource, _)| resource),
            in_flight: None,
        }
    }

    /// Returns the bottleneck of the rate, which does not grow any more from the depth `saturated_at` on.
    pub(super) fn bottleneck(&self, saturated_at: Option<u16>) -> Option<Bottleneck> {
        let reaches = |limit: &u16| saturated_at.is_some_and(|depth| depth >= *limit);
        self.serial.or_else(|| self.in_flight.filter(reaches).map(Bottleneck::InFlight))
    }
}

impl fmt::Display for Bottleneck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::HostCore => "the host core",
            Self::Link => "the USB link",
            Self::Bus => "the USB 2.0 bus",
            Self::BridgeFirmware => "the bridge's firmware",
            Self::BridgeMemory => "the bridge's memory",
            Self::SataCable => "the SATA cable",
            Self::InFlight(1) => "one command at a time",
            Self::InFlight(count) => return write!(f, "the limit of {count} commands in flight"),
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use sim::components::{BridgeLoad, CoreLoad};
    use units::Duration;

    /// Limits with a bottleneck that is known whether the rate grows or not.
    pub(in crate::compare) const fn always(serial: Bottleneck) -> Limits {
        Limits { serial: Some(serial), in_flight: None }
    }

    fn components(core: u64, firmware: u64) -> Components {
        let core = Some(CoreLoad { busy: Duration::from_us(core), ..CoreLoad::default() });
        let firmware = BridgeLoad { firmware: Duration::from_us(firmware), ..BridgeLoad::default() };
        Components { span: Duration::from_us(100), core, bridges: vec![firmware], ..Components::default() }
    }

    #[test]
    fn the_busiest_serial_resource_limits_if_it_never_rests() {
        let limits = |core, firmware| Limits::of_components(&components(core, firmware));
        assert_eq!(limits(95, 50).bottleneck(None), Some(Bottleneck::HostCore));
        assert_eq!(limits(92, 99).bottleneck(Some(4)), Some(Bottleneck::BridgeFirmware));
        assert_eq!(limits(80, 50).bottleneck(Some(4)), None);
    }

    #[test]
    fn commands_in_flight_limit_only_a_rate_that_grows_up_to_their_number() {
        let limits = Limits { in_flight: Some(4), ..Limits::of_components(&components(10, 10)) };
        assert_eq!(limits.bottleneck(Some(4)), Some(Bottleneck::InFlight(4)));
        // It was saturated before: something else limits it.
        assert_eq!((limits.bottleneck(Some(2)), limits.bottleneck(None)), (None, None));
    }
}
