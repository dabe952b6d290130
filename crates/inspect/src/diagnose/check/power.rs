//! bMaxPower against what the port gives, and a port that has switched off.

use super::{Check, CheckKind, Health};
use crate::diagnose::advice;
use crate::diagnose::budget::{Budget, SharedBudget};
use crate::diagnose::evidence::{Evidence, Reading};
use crate::inventory::BOARD_MODEL;

pub(super) fn check(evidence: &Evidence<'_>) -> Check {
    let kind = CheckKind::Power;
    let device = evidence.device;
    let over_currents = device.plugged.as_ref().and_then(|port| port.over_currents).unwrap_or(0);
    if over_currents > 0 {
        let reading = evidence.attribute("port/over_current_count", over_currents.to_string());
        return kind
            .says(Health::Concern, "the port switched off because of overcurrent")
            .seen(reading)
            .advise(advice::more_power());
    }
    if let Some(check) = of_board(evidence) {
        return check;
    }
    let Some(budget) = Budget::of(evidence) else {
        if let Some(wanted) = device.wanted_ma() {
            return kind
                .says(
                    Health::Unknown,
                    format!("it may draw {wanted} mA; what its port supplies is not known"),
                )
                .seen(evidence.attribute("descriptors", format!("bMaxPower {wanted} mA")));
        }
        return kind
            .says(Health::Unknown, "its maximum current is not known")
            .seen(evidence.attribute("bMaxPower", "empty"));
    };
    let reading = budget.reading(evidence);
    if budget.is_exceeded() {
        return kind.says(Health::Concern, budget.to_string()).seen(reading).advise(advice::more_power());
    }
    let own = device.described().is_some_and(|one| one.head.self_powered);
    let because = match (own, budget.wanted_ma) {
        (true, wanted) => {
            format!("it is self-powered and draws at most {wanted} mA from the bus")
        }
        (false, 0) => "it reports 0 mA from the bus".to_owned(),
        (false, _) => budget.to_string(),
    };
    kind.says(Health::Good, because).seen(reading)
}

/// A board whose supply is too low, or whose ports give less than their drives may draw together.
fn of_board(evidence: &Evidence<'_>) -> Option<Check> {
    let kind = CheckKind::Power;
    let board = evidence.inventory.board.as_ref()?;
    if let Some(supply) = board.supply.as_ref().filter(|supply| supply.was_low) {
        let when = if supply.is_low { "is too low now" } else { "was too low since boot" };
        return Some(
            kind.says(Health::Concern, format!("the board's supply voltage {when}"))
                .seen(Reading::new(&supply.path, &supply.text))
                .advise(advice::better_supply()),
        );
    }
    let shared = SharedBudget::of(evidence.inventory)?;
    if !shared.is_exceeded() || !shared.has(evidence.device) {
        return None;
    }
    let because =
        format!("{shared}, and {} gives its USB ports {} mA together", board.model, shared.given_ma);
    Some(
        kind.says(Health::Concern, because)
            .seen(Reading::new(BOARD_MODEL, &board.model))
            .advise(advice::powered_hub()),
    )
}
