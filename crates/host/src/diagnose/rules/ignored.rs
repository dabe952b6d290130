//! Whether a quirk says to ignore UAS: the user's own entry, a row of Linux's table, a rule in its code.

use super::{Judgement, Rule, Verdict};
use crate::diagnose::advice;
use crate::diagnose::evidence::{Evidence, Reading};
use initiator::probe::quirk::{BridgeFacts, Flag};
use initiator::probe::{self, Evidence as Seen};

pub(super) fn judge(evidence: &Evidence<'_>) -> Judgement {
    let rule = Rule::NotIgnored;
    if !evidence.speaks_uas() {
        return rule.says(Verdict::NotAsked, "there is no UAS to ignore");
    }
    let quirks = &evidence.quirks;
    let (built_in, in_force) = (&quirks.built_in, quirks.uas());
    let because = if !in_force.contains(Flag::IgnoreUas) {
        match quirks.user {
            Some(_) if built_in.uas().contains(Flag::IgnoreUas) => {
                "Linux would ignore it, and usb-storage.quirks= says not to".to_owned()
            }
            _ => format!("quirks in force: {in_force}"),
        }
    } else if quirks.user.is_some_and(|user| user.contains(Flag::IgnoreUas)) {
        format!("usb-storage.quirks= has the letter u for {}", evidence.device.id)
    } else if built_in.row.is_some_and(|row| row.flags.contains(Flag::IgnoreUas)) {
        format!("Linux's own table says to ignore UAS for {}", evidence.device.id)
    } else {
        built_in.coded.map_or_else(String::new, |coded| coded.reason().to_owned())
    };
    let verdict = if in_force.contains(Flag::IgnoreUas) { Verdict::Refused } else { Verdict::Met };
    let mut judgement = rule.says(verdict, because);
    if let Some(row) = built_in.row {
        let found = format!("{}: {}", row.name, row.flags);
        judgement = judgement.seen(Reading::new("Linux, unusual_uas.h", found));
    }
    if let Some(coded) = built_in.coded {
        judgement = judgement.seen(Reading::new("Linux, uas-detect.h", coded.reason()));
    }
    if let (Some(_), Some(Seen::Bridge { bridge, .. })) =
        (built_in.coded, evidence.finding(probe::Rule::NotIgnored).map(|finding| &finding.evidence))
    {
        let BridgeFacts { max_power, status_streams, .. } = bridge;
        let found = format!("bMaxPower {max_power}, {status_streams} streams on the status pipe");
        judgement = judgement.seen(evidence.attribute("descriptors", found));
        judgement = judgement.seen(evidence.attribute("speed", evidence.device.speed.to_string()));
    }
    let value = evidence.inventory.quirks.value();
    let value = if value.is_empty() { "empty" } else { value };
    judgement = judgement.seen(Reading::new(evidence.inventory.quirks.path(), value));
    if verdict == Verdict::Met {
        return judgement;
    }
    let line = ["UAS is ignored for this device", "UAS is blacklisted for this device"];
    let line = line.iter().find_map(|words| evidence.log_line(words));
    judgement.seen_if_any(line).advise(advice::use_uas(evidence))
}
