//! Which numbers of the plan a measurement can see: those of the parts that its run is made of.
//!
//! A run is of the driver that has the drive, which need not be the one that was asked first, and of that side of a bridge's
//! firmware that its transport speaks. So one run stands for all values of numbers that it does not see. Left out: numbers of
//! parts that are there and idle in one workload, such as those of writes in a run of reads.
//!
//! Always true: if a measurement does not see a number, its run is the same whatever the number is.

use super::facts::Facts;
use super::measurement::Measurement;
use super::parameter::ParameterPath;
use super::plan::{FreeNumber, Plan};
use crate::parts::{Carried, Catalogue, PartKind};
use crate::setups::{Assembly, DriveName};
use std::collections::{BTreeMap, BTreeSet};

/// The parts of a run, and what carries its commands.
struct Seen<'a> {
    parts: BTreeSet<(PartKind, &'a str)>,
    carried: Option<Carried>,
}

/// Of each measurement the numbers that it sees, by their place in the plan.
pub(super) fn numbers(
    facts: Facts<'_>,
    plan: &Plan,
    measurements: impl IntoIterator<Item = Measurement>,
) -> BTreeMap<Measurement, Vec<usize>> {
    let of = |measurement: Measurement| {
        let variant = facts.variant(&measurement.setup, &measurement.variant);
        let seen = variant.map(|variant| Seen::of(&variant.assembly, facts.catalogue));
        let is_seen = |number: &FreeNumber| {
            seen.as_ref().is_some_and(|seen| number.places.iter().any(|place| seen.has(place)))
        };
        let numbers = plan.numbers().enumerate().filter(|(_, number)| is_seen(number));
        let numbers = numbers.map(|(index, _)| index).collect();
        (measurement, numbers)
    };
    measurements.into_iter().map(of).collect()
}

impl<'a> Seen<'a> {
    fn of(assembly: &'a Assembly, catalogue: &'a Catalogue) -> Self {
        // Each field by name, so that a further one is not forgotten here.
        let Assembly { host, driver, controller, hubs, bridge, link, drive, power_states: _ } = assembly;
        let activation = assembly.activation(catalogue).ok();
        // Where there is none, the chain is refused whatever the numbers are.
        let driver = activation.as_ref().map_or(driver, |activation| &activation.driver);
        let known =
            catalogue.entries().find(|entry| entry.kind() == PartKind::Driver && entry.name == *driver);
        let mut parts = BTreeSet::from([
            (PartKind::Host, host.as_str()),
            (PartKind::Controller, controller),
            (PartKind::Sata, controller),
            match drive {
                DriveName::Ssd(name) => (PartKind::Ssd, name),
                DriveName::Hdd(name) => (PartKind::Hdd, name),
            },
        ]);
        parts.extend(known.map(|entry| (PartKind::Driver, entry.name.as_str())));
        parts.extend(hubs.iter().map(|hub| (PartKind::Hub, hub.as_str())));
        parts.extend(bridge.iter().map(|bridge| (PartKind::Bridge, bridge.as_str())));
        parts.extend(link.iter().map(|link| (PartKind::Link, link.as_str())));
        parts.extend(catalogue.host(host).map(|host| (PartKind::Power, host.power.as_str())));
        Self { parts, carried: activation.map(|activation| activation.transport) }
    }

    fn has(&self, place: &ParameterPath) -> bool {
        let speaks = match (place.kind, self.carried) {
            (PartKind::Bridge, Some(Carried::Uas(_))) => !place.number.starts_with("bot."),
            (PartKind::Bridge, Some(Carried::Bot | Carried::Turbo)) => !place.number.starts_with("uas."),
            _ => true,
        };
        speaks && self.parts.contains(&(place.kind, place.part.as_str()))
    }
}
