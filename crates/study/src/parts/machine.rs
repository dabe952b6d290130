//! Hosts, and the power draw of a machine's parts.
//!
//! Driver costs are given for a reference host; a host has a factor. Left out: caches and frequency
//! changes.

use super::fields::{FieldError, File, within};
use super::quantity::{Count, PowerDraw, Quantity, Share};
use serde::Deserialize;
use sim::machine::xhci::HostCosts;
use sim::power::Microwatts;
pub use sim::power::machine::PowerPart;
use units::Duration;

/// A host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPart {
    /// Cores that drivers can run on.
    pub cores: u8,
    /// Time here, in thousandths of that on the reference host.
    pub pace_per_mille: u32,
    /// Power draw part, by name.
    pub power: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HostFile {
    title: String,
    power: String,
    cores: Quantity<Count>,
    pace: Quantity<Share>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PowerFile {
    title: String,
    core: Draws,
    controller: Draws,
    link: LinkDraws,
    bridge: Draws,
    ssd: Draws,
    hdd: Draws,
    rest: Quantity<PowerDraw>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Draws {
    idle: Quantity<PowerDraw>,
    busy: Quantity<PowerDraw>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LinkDraws {
    u0: Quantity<PowerDraw>,
    u1: Quantity<PowerDraw>,
    u2: Quantity<PowerDraw>,
    exit: Quantity<PowerDraw>,
}

impl HostPart {
    /// Scales the costs of a driver to this host.
    pub fn costs(&self, there: &HostCosts) -> HostCosts {
        HostCosts {
            command: self.here(there.command),
            transfer: self.here(there.transfer),
            completion: self.here(there.completion),
            finish: self.here(there.finish),
            pack: self.here(there.pack),
            copied_byte_ps: there.copied_byte_ps * u64::from(self.pace_per_mille) / 1000,
            interrupt: self.here(there.interrupt),
            wake: self.here(there.wake),
            idle_after: there.idle_after,
        }
    }

    /// Scales one cost.
    pub fn here(&self, cost: Duration) -> Duration {
        let ps = u128::from(cost.as_ps()) * u128::from(self.pace_per_mille) / 1000;
        Duration::from_ps(u64::try_from(ps).unwrap_or(u64::MAX))
    }
}

impl File for HostFile {
    type Part = HostPart;

    fn title(&self) -> &str {
        &self.title
    }

    fn make(&self) -> Result<Self::Part, FieldError> {
        Ok(HostPart {
            cores: within("cores", &self.cores, 1, 64)?,
            pace_per_mille: within("pace", &self.pace, 10, 100_000)?,
            power: self.power.clone(),
        })
    }
}

impl File for PowerFile {
    type Part = PowerPart;

    fn title(&self) -> &str {
        &self.title
    }

    fn make(&self) -> Result<Self::Part, FieldError> {
        let LinkDraws { u0, u1, u2, exit } = &self.link;
        Ok(PowerPart {
            core: self.core.draws(),
            controller: self.controller.draws(),
            link: [u0.draw(), u1.draw(), u2.draw(), exit.draw()],
            bridge: self.bridge.draws(),
            ssd: self.ssd.draws(),
            hdd: self.hdd.draws(),
            rest: self.rest.draw(),
        })
    }
}

impl Draws {
    fn draws(&self) -> [Microwatts; 2] {
        [self.idle.draw(), self.busy.draw()]
    }
}
