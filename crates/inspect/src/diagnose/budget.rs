//! bMaxPower against what the port gives (USB 2.0 clause 7.2.1, USB 3.2 clause 11.4.5): 500 mA or 900 mA from a hub
//! with its own power supply, 100 mA or 150 mA from one that is fed by the bus. At 10 Gb/s it is as at 5 Gb/s. The kernel sets no
//! configuration that wants more, unless it is set by hand: a rule goes by that, and a check.

use super::evidence::{Evidence, Reading};
use std::fmt;

/// What a drive may draw, and what it is given.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    pub(super) wanted_ma: u32,
    given_ma: u32,
    hub_is_fed: bool,
}

impl Budget {
    /// `None` if it is not known what it may draw.
    pub(super) fn of(evidence: &Evidence<'_>) -> Option<Self> {
        let wanted_ma = evidence.device.wanted_ma()?;
        let hub = evidence.inventory.hub_of(evidence.device);
        if evidence.device.speed == crate::inventory::LinkSpeed::Unknown && evidence.inventory.is_from_text()
        {
            return None;
        }
        // A text may not say whether a hub has its own power supply.
        if evidence.inventory.is_from_text()
            && hub.is_none_or(|hub| !hub.is_root_hub() && hub.configuration.is_none())
        {
            return None;
        }
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

    pub(super) const fn is_exceeded(self) -> bool {
        self.wanted_ma > self.given_ma
    }

    /// What it may draw, and where that is: sysfs has it of a drive that the kernel has configured alone.
    pub(super) fn reading(self, evidence: &Evidence<'_>) -> Reading {
        let wanted = self.wanted_ma;
        match evidence.device.max_power_ma {
            Some(_) => evidence.attribute("bMaxPower", format!("{wanted} mA")),
            None => evidence.attribute("descriptors", format!("bMaxPower {wanted} mA")),
        }
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let port = if self.hub_is_fed { "a bus-powered hub" } else { "the port" };
        write!(f, "it may draw {} mA, and {port} gives {} mA", self.wanted_ma, self.given_ma)
    }
}
