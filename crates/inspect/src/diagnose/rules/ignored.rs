//! Whether a quirk says to ignore UAS: the user's own entry, a row of Linux's table, a rule in its code.
//!
//! `usb-storage` has its own table, which `uas` does not look into. A device that is to be ignored by that one alone (VL817) is
//! taken by whichever driver is asked first. The kernel asks in the order in which drivers were registered: of modules `usb-storage` is
//! the first, since `uas` needs it; built into the kernel, `uas` is (drivers/usb/storage/Makefile). What is bound to the drive shows it, and where
//! nothing is bound, whether `uas` is known to be built in.
//!
//! Tables are those of the kernel's version, as far as the versions of their rows are known. Of a row that came later it
//! is not known whether the kernel has taken it over, unless the bound driver or the kernel's log shows it. What the kernel
//! says of a drive that `usb-storage` has counts even where nothing that is known here has it say so.

use super::{Judgement, Rule, Verdict};
use crate::diagnose::advice;
use crate::diagnose::evidence::{Evidence, IGNORED_WORDS, Reading};
use crate::inventory::KernelFound;
use quirks::Evidence as Seen;
use quirks::quirk::table::TableRow;
use quirks::quirk::{BridgeFacts, Flag, Versions};

pub(super) fn judge(evidence: &Evidence<'_>) -> Judgement {
    let rule = Rule::NotIgnored;
    // A text may have the quirk, and not the descriptors.
    let is_unknown = evidence.device.described().is_none();
    let is_ignored = evidence.quirks.uas().contains(Flag::IgnoreUas);
    match (evidence.speaks_uas(), is_unknown) {
        (true, _) => {}
        (false, true) if is_ignored => {}
        (false, true) => return rule.says(Verdict::NotAsked, "it is unknown whether the drive supports UAS"),
        (false, false) => return rule.says(Verdict::NotAsked, "the drive does not support UAS"),
    }
    let later = evidence.later_row.filter(|row| row.flags.contains(Flag::IgnoreUas));
    let other = later.or(evidence.leaving_row);
    let only_by_storage = evidence.quirks.only_storage_ignores_uas();
    if only_by_storage && evidence.driver() == Some("uas") {
        return by_storage(evidence, Verdict::Met, "uas does not apply this table and was probed first");
    }
    if only_by_storage && evidence.driver().is_none() && evidence.inventory.drivers.uas_is_built_in {
        return by_storage(
            evidence,
            Verdict::Met,
            "uas does not apply this table and is probed first, since both drivers are built in",
        );
    }
    if only_by_storage {
        let judgement = by_storage(
            evidence,
            Verdict::Refused,
            "usb-storage is probed before uas, which does not apply this table",
        );
        return judgement.seen_if_any(kernels_word(evidence)).advise(advice::use_uas(evidence));
    }
    let unexplained =
        kernels_word(evidence).filter(|_| !is_ignored && evidence.driver() == Some("usb-storage"));
    if let Some(line) = unexplained {
        return by_kernel(evidence, line);
    }
    let judgement = match other {
        Some(row) if !is_ignored && evidence.quirks.user.is_none() => return by_other(evidence, row),
        // A text may lack the entry of the user's that explains it.
        _ if is_ignored && evidence.inventory.lacks_quirks_in_force() && evidence.driver() == Some("uas") => {
            rule.says(Verdict::Met, refusal(evidence))
        }
        _ if is_ignored => rule.says(Verdict::Refused, refusal(evidence)),
        _ => rule.says(Verdict::Met, no_refusal(evidence)),
    };
    let judgement = readings(evidence).into_iter().fold(judgement, Judgement::seen);
    if !is_ignored {
        return judgement;
    }
    if evidence.driver() == Some("uas") {
        return judgement.seen(evidence.driver_reading());
    }
    judgement.seen_if_any(kernels_word(evidence)).advise(advice::use_uas(evidence))
}

/// That the kernel says that it ignores UAS for the device.
fn kernels_word(evidence: &Evidence<'_>) -> Option<Reading> {
    IGNORED_WORDS.iter().find_map(|words| evidence.log_line(words))
}

/// The kernel says so, and nothing else does.
fn by_kernel(evidence: &Evidence<'_>, line: Reading) -> Judgement {
    let (because, advice) = if evidence.quirks.user.is_some() {
        let because = "the kernel logged that it ignores UAS for this device; usb-storage.quirks= has no letter u for it now";
        (because, advice::plug_in_again())
    } else if evidence.inventory.lacks_quirks_in_force() {
        let because = "the kernel logged that it ignores UAS for this device: by its built-in table, or by the letter u in usb-storage.quirks=";
        (because, advice::find_entry(evidence))
    } else {
        let because = "the kernel logged that it ignores UAS for this device; no known row does, and usb-storage.quirks= has no entry for it now";
        (because, advice::use_uas_unlike_kernel(evidence))
    };
    let judgement = Rule::NotIgnored.says(Verdict::Refused, because).seen(line);
    readings(evidence).into_iter().fold(judgement, Judgement::seen).advise(advice)
}

/// Returns the reason to ignore it.
fn refusal(evidence: &Evidence<'_>) -> String {
    let (quirks, id) = (&evidence.quirks, evidence.device.id);
    let built_in = &quirks.built_in;
    let because = if quirks.user.is_some_and(|user| user.contains(Flag::IgnoreUas)) {
        format!("usb-storage.quirks= has the letter u for {id}")
    } else if built_in.row.is_some_and(|row| row.flags.contains(Flag::IgnoreUas)) {
        format!("Linux's built-in quirk table disables UAS for {id}")
    } else {
        built_in.coded.map_or_else(String::new, |coded| coded.reason().to_owned())
    };
    if evidence.driver() == Some("uas") {
        return format!("{because}; uas is bound nevertheless");
    }
    because
}

/// Judges by a row that `usb-storage` alone has.
fn by_storage(evidence: &Evidence<'_>, verdict: Verdict, but: &str) -> Judgement {
    let because =
        format!("usb-storage's built-in quirk table disables UAS for {}; {but}", evidence.device.id);
    let row = evidence.quirks.built_in.storage_row.map(Reading::of_row);
    Rule::NotIgnored
        .says(verdict, because)
        .seen_if_any(row)
        .seen(settings(evidence))
        .seen(evidence.driver_reading())
}

/// Why it is not ignored.
fn no_refusal(evidence: &Evidence<'_>) -> String {
    let quirks = &evidence.quirks;
    match quirks.user {
        Some(_) if quirks.built_in.uas().contains(Flag::IgnoreUas) => {
            "Linux's table disables UAS, but usb-storage.quirks= overrides it".to_owned()
        }
        _ if evidence.inventory.lacks_quirks_in_force() => {
            format!("built-in quirks: {}", quirks.uas())
        }
        _ => format!("quirks in force: {}", quirks.uas()),
    }
}

/// A version that the kernel's stable branch may have followed or not ignores UAS for the device.
fn by_other(evidence: &Evidence<'_>, row: &TableRow) -> Judgement {
    let rule = Rule::NotIgnored;
    let versions = row.versions;
    let judgement = match evidence.driver() {
        Some("uas") => rule
            .says(Verdict::Met, format!("{versions} ignores UAS for this device; this kernel does not, since uas is bound"))
            .seen(evidence.driver_reading()),
        _ if evidence.leaving_row.is_some() => rule.says(
            Verdict::Unknown,
            format!(
                "{versions} ignores UAS for this device; this kernel may have dropped that, as later ones have"
            ),
        ),
        _ => rule.says(
            Verdict::Unknown,
            format!("{versions} ignores UAS for this device; this older kernel may have a backport"),
        ),
    };
    let mut judgement = judgement
        .seen(Reading::of_row(row))
        .seen_if_any(evidence.inventory.kernel().map(Reading::of_kernel))
        .seen(settings(evidence));
    if judgement.verdict == Verdict::Unknown && evidence.log_is_refused() {
        judgement.root_adds = Some("the kernel's log shows whether UAS was ignored".into());
    }
    judgement
}

/// Lists the readings of the rule.
fn readings(evidence: &Evidence<'_>) -> Vec<Reading> {
    let built_in = &evidence.quirks.built_in;
    let rows = || built_in.row.into_iter().chain(evidence.later_row);
    let mut readings: Vec<Reading> = rows().map(Reading::of_row).collect();
    // Whether such a row counts depends on the kernel.
    let kernel =
        evidence.inventory.kernel().filter(|_| rows().any(|row| row.versions != Versions::default()));
    readings.extend(kernel.map(Reading::of_kernel));
    if let Some(coded) = built_in.coded {
        readings.push(Reading::new(format!("{}, uas-detect.h", coded.versions()), coded.reason()));
    }
    if let (Some(_), Some(Seen::Bridge { bridge, .. })) =
        (built_in.coded, evidence.finding(quirks::Rule::NotIgnored).map(|finding| &finding.evidence))
    {
        let BridgeFacts { max_power, status_streams, .. } = bridge;
        let found = format!("bMaxPower {max_power}, {status_streams} streams on the status pipe");
        readings.push(evidence.attribute("descriptors", found));
        readings.push(evidence.attribute("speed", evidence.device.speed.to_string()));
    }
    readings.extend(
        evidence.missing_row.zip(evidence.inventory.kernel()).map(|(row, kernel)| missing(row, kernel)),
    );
    readings.push(settings(evidence));
    readings
}

/// A row that a later release of the kernel's branch has.
fn missing(row: &TableRow, kernel: KernelFound<'_>) -> Reading {
    let since = row.versions.since.and_then(|change| change.release_in(kernel.version));
    let since = since.map_or_else(String::new, |release| format!(", {release} has it"));
    let Reading { place, found } = Reading::of_row(row);
    Reading::new(place, format!("{found}; Linux {} has no such row{since}", kernel.version))
}

/// The user's own entries.
fn settings(evidence: &Evidence<'_>) -> Reading {
    let settings = &evidence.inventory.quirks;
    let value = settings.value();
    Reading::new(settings.path(), if value.is_empty() { "empty" } else { value })
}
