//! Heads and verdicts of `smartctl`: whether the drive answers, and whether it reports that it is failing.

use super::facts::Facts;
use super::section::Reader;
use super::{SmartHealth, SmartText};

/// Attributes whose raw value must be zero: reallocated, pending and uncorrectable sectors.
const ATTRIBUTES: [&str; 3] = ["Reallocated_Sector_Ct", "Current_Pending_Sector", "Offline_Uncorrectable"];

/// Reads what smartctl printed of one disk.
pub(super) fn read(reader: &Reader<'_>, facts: &mut Facts) {
    for line in reader.lines {
        let text = line.text.trim();
        let health = if text.contains("overall-health") || text.starts_with("SMART Health Status") {
            let is_good = text.ends_with("PASSED") || text.ends_with("OK");
            Some(if is_good { SmartHealth::Passed } else { SmartHealth::Failing })
        } else if ATTRIBUTES.iter().any(|name| text.contains(name)) {
            let raw = text.split_whitespace().last().and_then(|raw| raw.parse::<u64>().ok());
            raw.filter(|raw| *raw > 0).map(|_| SmartHealth::Failing)
        } else if text.starts_with("Read Device Identity failed") {
            Some(SmartHealth::NoAnswer)
        } else if text.contains("Unknown USB bridge") {
            Some(SmartHealth::UnknownBridge)
        } else {
            None
        };
        if let Some(health) = health {
            facts.smart.push(SmartText { health, source: reader.source(line) });
        }
    }
}
