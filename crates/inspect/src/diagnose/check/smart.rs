//! SMART needs ATA PASS-THROUGH, which a quirk may block: the kernel then answers in the drive's place.

use super::{Check, CheckKind, Health};
use crate::diagnose::advice;
use crate::diagnose::evidence::{Evidence, Reading};
use quirks::quirk::Flag;

pub(super) fn check(evidence: &Evidence<'_>) -> Check {
    let kind = CheckKind::Smart;
    let quirks = &evidence.quirks;
    let user = quirks.user.is_some_and(|user| user.contains(Flag::NoAta1x));
    let blocked = quirks.of_driver(evidence.driver()).contains(Flag::NoAta1x);
    let later = evidence.later_row.filter(|row| quirks.user.is_none() && row.flags.contains(Flag::NoAta1x));
    if let Some(row) = later.filter(|_| !blocked) {
        let because =
            format!("{} blocks ATA pass-through for it; this older kernel may have a backport", row.versions);
        return kind.says(Health::Unknown, because).seen(Reading::of_row(row)).seen(settings(evidence));
    }
    if !blocked && evidence.inventory.lacks_quirks_in_force() {
        return kind.says(
            Health::Unknown,
            "no built-in quirk blocks ATA pass-through; the quirks in force are not in the text",
        );
    }
    if !blocked {
        return kind.says(Health::Good, "no quirk blocks ATA pass-through").seen(settings(evidence));
    }
    let reading = if user {
        settings(evidence)
    } else if let Some(row) = quirks.built_in.row.filter(|row| row.flags.contains(Flag::NoAta1x)) {
        Reading::of_row(row)
    } else {
        let reason = quirks.built_in.coded.map_or("", |coded| coded.reason());
        Reading::new("Linux, uas-detect.h", reason)
    };
    let mut because = "the flag t blocks ATA pass-through: smartctl and hdparm get no answer".to_owned();
    // Stable branches have taken over that the row is for fewer revisions.
    if !user && let Some(before) = quirks.built_in.row.and_then(|row| row.versions.before) {
        because =
            format!("in Linux before {before} {because}; a later release of this branch may not block it");
    }
    kind.says(Health::Concern, because).seen(reading).advise(advice::let_smart_through(evidence))
}

fn settings(evidence: &Evidence<'_>) -> Reading {
    let settings = &evidence.inventory.quirks;
    let value = settings.value();
    Reading::new(settings.path(), if value.is_empty() { "empty" } else { value })
}
