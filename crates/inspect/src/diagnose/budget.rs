//! bMaxPower against what the port gives (USB 2.0 clause 7.2.1, USB 3.2 clause 11.4.5): 500 mA or 900 mA from a hub
//! with its own power supply, 100 mA or 150 mA from one that is fed by the bus. At 10 Gb/s it is as at 5 Gb/s. The kernel sets no
//! configuration that wants more, unless it is set by hand: a rule goes by that, and a check.

use super::evidence::{Evidence, Reading};
use crate::inventory::{Inventory, UsbDevice};
use quirks::DeviceId;
use std::fmt;

/// The current that a drive may draw, and the current that its port supplies.
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

    /// Returns its maximum current, with where that is: sysfs has it of a drive that the kernel has configured alone.
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
        write!(f, "it may draw {} mA; {port} supplies {} mA", self.wanted_ma, self.given_ma)
    }
}

/// The current that a board supplies, and that the drives which it feeds may draw together.
#[derive(Clone, Debug)]
pub(super) struct SharedBudget {
    pub(super) given_ma: u32,
    wanted_ma: u32,
    ports: Vec<String>,
}

/// Hubs on boards of Raspberry Pi, which report that they have a supply, the board's.
const ONBOARD_HUBS: [DeviceId; 4] = [
    DeviceId::new(0x2109, 0x3431),
    DeviceId::new(0x0424, 0x9512),
    DeviceId::new(0x0424, 0x9514),
    DeviceId::new(0x0424, 0x2514),
];

impl SharedBudget {
    /// `None` of a board without a known limit.
    pub(super) fn of(inventory: &Inventory) -> Option<Self> {
        let given_ma = inventory.board.as_ref()?.usb_ma?;
        let mut shared = Self { given_ma, wanted_ma: 0, ports: Vec::new() };
        for device in inventory.storage().filter(|device| is_fed_by_board(inventory, device)) {
            let Some(wanted_ma) = device.wanted_ma() else { continue };
            shared.wanted_ma = shared.wanted_ma.saturating_add(wanted_ma);
            shared.ports.push(device.port.clone());
        }
        Some(shared)
    }

    pub(super) const fn is_exceeded(&self) -> bool {
        self.wanted_ma > self.given_ma
    }

    pub(super) fn has(&self, device: &UsbDevice) -> bool {
        self.ports.contains(&device.port)
    }
}

/// Whether a drive draws its current from the board: neither it nor a hub above it has its own supply.
fn is_fed_by_board(inventory: &Inventory, device: &UsbDevice) -> bool {
    const HUBS_DEEP_MAX: usize = 7;
    let is_fed = |device: &UsbDevice| device.described().is_some_and(|one| !one.head.self_powered);
    let is_onboard = |hub: &UsbDevice| ONBOARD_HUBS.contains(&hub.id);
    let hubs = std::iter::successors(inventory.hub_of(device), |hub| inventory.hub_of(hub));
    is_fed(device) && hubs.take(HUBS_DEEP_MAX).all(|hub| hub.is_root_hub() || is_onboard(hub) || is_fed(hub))
}

impl fmt::Display for SharedBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = if self.ports.len() == 1 { "it may" } else { "its drives may" };
        write!(f, "{of} draw {} mA ({})", self.wanted_ma, self.ports.join(", "))
    }
}
