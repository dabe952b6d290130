//! bMaxPower against what the port gives (USB 2.0 clause 7.2.1, USB 3.2 clause 11.4.5): 500 mA or 900 mA from a hub
//! with a supply of its own, 100 mA or 150 mA from one that is fed by the bus. At 10 Gb/s it is as at 5 Gb/s.

use super::{Check, CheckKind, Health};
use crate::diagnose::advice;
use crate::diagnose::evidence::Evidence;

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
    let Some(wanted) = device.max_power_ma else {
        return kind
            .says(Health::Unknown, "the drive is not configured")
            .seen(evidence.attribute("bMaxPower", "empty"));
    };
    let reading = evidence.attribute("bMaxPower", format!("{wanted} mA"));
    let hub = evidence.inventory.hub_of(device);
    let hub_is_fed = hub.is_some_and(|hub| {
        !hub.is_root_hub() && hub.configuration.as_ref().is_some_and(|one| !one.head.self_powered)
    });
    let given = match (hub_is_fed, device.speed.is_super()) {
        (false, true) => 900,
        (false, false) => 500,
        (true, true) => 150,
        (true, false) => 100,
    };
    let port = if hub_is_fed { "a hub without a supply of its own" } else { "the port" };
    if wanted > given {
        return kind
            .says(Health::Concern, format!("it may draw {wanted} mA, and {port} gives {given} mA"))
            .seen(reading)
            .advise(more_power());
    }
    let own = device.configuration.as_ref().is_some_and(|one| one.head.self_powered);
    let because = match (own, wanted) {
        (true, _) => format!("it has a supply of its own, it says, and draws {wanted} mA at most"),
        (false, 0) => "it draws nothing from the bus, it says".to_owned(),
        (false, _) => format!("it may draw {wanted} mA, and {port} gives {given} mA"),
    };
    kind.says(Health::Good, because).seen(reading)
}

fn more_power() -> advice::Advice {
    advice::other_port(
        "Give it more power",
        "a hub with a supply of its own, or the enclosure's own adapter",
        "disks that turn draw 900 mA and more when they start, whatever bMaxPower says",
    )
}
