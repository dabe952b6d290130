//! bMaxPower against what the port gives (USB 2.0 clause 7.2.1, USB 3.2 clause 11.4.5): 500 mA or 900 mA from a hub
//! with a supply of its own, 100 mA or 150 mA from one that is fed by the bus. At 10 Gb/s it is as at 5 Gb/s. The kernel sets no
//! configuration that wants more, unless somebody has it do so.

use super::{Check, CheckKind, Health};
use crate::diagnose::advice;
use crate::diagnose::evidence::{Evidence, Reading};
use std::fmt;

pub(super) fn check(evidence: &Evidence<'_>) -> Check {
    let kind = CheckKind::Power;
    let device = evidence.device;
    let over_currents = device.plugged.as_ref().and_then(|port| port.over_currents).unwrap_or(0);
    if over_currents > 0 {
        let reading = evidence.attribute("port/over_current_count", over_currents.to_string());
        return kind
            .says(Health::Concern, "the port has switched off because too much was drawn")
            .seen(reading)
            .advise(more_power());
    }
    let Some(budget) = Budget::of(evidence) else {
        return kind
            .says(Health::Unknown, "the kernel does not tell what it may draw")
            .seen(evidence.attribute("bMaxPower", "empty"));
    };
    let reading = budget.reading(evidence);
    if budget.is_exceeded() {
        return kind.says(Health::Concern, budget.to_string()).seen(reading).advise(more_power());
    }
    let own = device.described().is_some_and(|one| one.head.self_powered);
    let because = match (own, budget.wanted_ma) {
        (true, wanted) => format!("it has a supply of its own, it says, and draws {wanted} mA at most"),
        (false, 0) => "it draws nothing from the bus, it says".to_owned(),
        (false, _) => budget.to_string(),
    };
    kind.says(Health::Good, because).seen(reading)
}

/// What a drive may draw, and what it is given.
#[derive(Clone, Copy, Debug)]
pub(in crate::diagnose) struct Budget {
    wanted_ma: u32,
    given_ma: u32,
    hub_is_fed: bool,
}

impl Budget {
    /// `None` if nothing tells what it may draw.
    pub(in crate::diagnose) fn of(evidence: &Evidence<'_>) -> Option<Self> {
        let wanted_ma = evidence.device.wanted_ma()?;
        let hub = evidence.inventory.hub_of(evidence.device);
        let hub_is_fed = hub.is_some_and(|hub| {
            !hub.is_root_hub() && hub.configuration.as_ref().is_some_and(|one| !one.head.self_powered)
        });
        let given_ma = match (hub_is_fed, evidence.device.speed.is_super()) {
            (false, true) => 900,
            (false, false) => 500,
            (true, true) => 150,
            (true, false) => 100,
        };
        Some(Self { wanted_ma, given_ma, hub_is_fed })
    }

    pub(in crate::diagnose) const fn is_exceeded(self) -> bool {
        self.wanted_ma > self.given_ma
    }

    /// What it may draw, and where that is: sysfs has it of a drive that the kernel has configured alone.
    pub(in crate::diagnose) fn reading(self, evidence: &Evidence<'_>) -> Reading {
        let wanted = self.wanted_ma;
        match evidence.device.max_power_ma {
            Some(_) => evidence.attribute("bMaxPower", format!("{wanted} mA")),
            None => evidence.attribute("descriptors", format!("bMaxPower {wanted} mA")),
        }
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let port = if self.hub_is_fed { "a hub without a supply of its own" } else { "the port" };
        write!(f, "it may draw {} mA, and {port} gives {} mA", self.wanted_ma, self.given_ma)
    }
}

/// Moves it to where there is more.
pub(in crate::diagnose) fn more_power() -> advice::Advice {
    advice::other_port(
        "Give it more power",
        "a hub with a supply of its own, or the enclosure's own adapter",
        "disks that turn draw 900 mA and more when they start, whatever bMaxPower says",
    )
}
