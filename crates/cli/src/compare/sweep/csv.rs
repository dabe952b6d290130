//! Records of a sweep as a table: comma-separated values (RFC 4180), and one for people.
//!
//! The head names each column with its unit: `_us` microseconds, `_mb_per_s` 10^6 bytes a second, `_w` watts, `_j_per_gb` joules for 10^9
//! bytes. What a record does not have is empty.

use crate::compare::table::{aligned, empty};
use crate::failure::Failure;
use crate::harmless::shown;
use comfy_table::Table;
use serde_json::Value;
use std::path::Path;

/// Columns, in their order.
const COLUMNS: [&str; 30] = [
    "point",
    "variant",
    "host",
    "asked_driver",
    "driver",
    "transport",
    "controller",
    "hubs",
    "bridge",
    "speed",
    "drive",
    "drive_kind",
    "block_bytes",
    "read_percent",
    "random_percent",
    "depth",
    "seed",
    "mb_per_s",
    "requests_per_s",
    "latency_mean_us",
    "latency_max_us",
    "requests",
    "elapsed_us",
    "power_mean_w",
    "power_peak_w",
    "power_peak_window_us",
    "energy_j_per_gb",
    "events",
    "digest",
    "reason",
];

/// What people see of it.
const SHOWN: [&str; 9] = [
    "variant",
    "controller",
    "bridge",
    "drive",
    "transport",
    "block_bytes",
    "depth",
    "mb_per_s",
    "latency_mean_us",
];

/// Writes a table of lines; an older file of that name is replaced.
pub(crate) fn write<'a>(file: &Path, lines: impl Iterator<Item = &'a str>) -> Result<(), Failure> {
    let unwritten =
        |error: csv::Error| Failure::new(format!("{} cannot be written", shown(file))).because(error);
    let mut table = csv::Writer::from_path(file).map_err(unwritten)?;
    table.write_record(COLUMNS).map_err(unwritten)?;
    for line in lines {
        table.write_record(cells(line, &COLUMNS)).map_err(unwritten)?;
    }
    table.flush().map_err(|error| unwritten(error.into()))
}

/// The same for people, with the most important columns.
pub(super) fn table(lines: &[String]) -> Table {
    let mut table = empty(&SHOWN);
    for line in lines {
        table.add_row(cells(line, &SHOWN).into_iter().map(|cell| match cell.parse::<f64>() {
            Ok(number) if cell.contains('.') => format!("{number:.1}"),
            _ => cell,
        }));
    }
    aligned(table)
}

fn cells(line: &str, columns: &[&str]) -> Vec<String> {
    let record: Value = serde_json::from_str(line).unwrap_or(Value::Null);
    let cell = |name: &&str| match &record[*name] {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    columns.iter().map(cell).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_with_commas_are_quoted_and_what_is_missing_is_empty() {
        let cells = cells(
            r#"{"point": 3, "reason": "no, not so", "mb_per_s": 1.5}"#,
            &["point", "reason", "mb_per_s", "seed"],
        );
        assert_eq!(cells, ["3", "no, not so", "1.5", ""]);
    }
}
