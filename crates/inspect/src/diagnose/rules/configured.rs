//! Whether the kernel has set a configuration of the drive: without one it has no interface, and no driver is ever asked.
//!
//! `usb_choose_configuration` (Linux, drivers/usb/core/generic.c) takes none of a device that is not authorized, and
//! none that wants more than its port gives.

use super::{Judgement, Rule, Verdict};
use crate::diagnose::advice;
use crate::diagnose::budget::Budget;
use crate::diagnose::evidence::Evidence;

/// Why no driver is asked; `None` if one is.
pub(super) fn judge(evidence: &Evidence<'_>) -> Option<Judgement> {
    if evidence.device.is_configured() {
        return None;
    }
    let judgement = match evidence.device.authorized {
        Some(false) => unauthorized(evidence),
        _ => unpowered(evidence).unwrap_or_else(|| unchosen(evidence)),
    };
    Some(judgement.seen(evidence.attribute("bConfigurationValue", "empty")))
}

fn unauthorized(evidence: &Evidence<'_>) -> Judgement {
    says("the device is not authorized: by USBGuard, another policy, or a manual setting")
        .seen(evidence.attribute("authorized", "0"))
        .seen_if_any(evidence.log_line("Device is not authorized for usage"))
        .advise(advice::authorize(evidence.device))
}

/// That its port gives too little: by what the kernel goes by, or by its own word.
fn unpowered(evidence: &Evidence<'_>) -> Option<Judgement> {
    let line = evidence.log_line("rejected ");
    let budget = Budget::of(evidence);
    let because = match budget.filter(|budget| budget.is_exceeded()) {
        Some(budget) => format!("the kernel has set no configuration, since {budget}"),
        // A hub whose supply was pulled out says of itself what it did before.
        None if line.is_some() => {
            "the kernel has set no configuration, since the port reports too little power".to_owned()
        }
        None => return None,
    };
    let reading = budget.map(|budget| budget.reading(evidence));
    Some(says(because).seen_if_any(reading).seen_if_any(line).advise(advice::more_power()))
}

fn unchosen(evidence: &Evidence<'_>) -> Judgement {
    let words = ["can't set config", "no configuration chosen"];
    says("the kernel has set no configuration, or it was unset by hand")
        .seen_if_any(words.iter().find_map(|words| evidence.log_line(words)))
        .advise(advice::configure(evidence.device))
}

fn says(because: impl Into<String>) -> Judgement {
    Rule::Configured.says(Verdict::Refused, because)
}
