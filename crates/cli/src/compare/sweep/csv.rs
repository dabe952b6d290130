//! Records of a sweep as a table: comma-separated values (RFC 4180), and one for people.
//!
//! Names of columns contain their units: `_us` microseconds, `_mb_per_s` 10^6 bytes per second, `_w` watts, `_j_per_gb` joules per 10^9
//! bytes. Missing values are empty.

use crate::failure::Failure;
use crate::output_file;
use crate::sanitize::shown;
use report::TextTable;
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

/// The columns that [`table`] shows.
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

/// Writes a table of lines; an older table of that name is replaced.
pub(crate) fn write<'a>(file: &Path, lines: impl Iterator<Item = &'a str>) -> Result<(), Failure> {
    let mut table = csv::Writer::from_writer(Vec::new());
    let heads = COLUMNS.map(str::to_owned).to_vec();
    let mut all = [heads].into_iter().chain(lines.map(|line| cells(line, &COLUMNS)));
    let written = all.try_for_each(|record| table.write_record(record));
    let bytes = written.map_err(|error| error.to_string());
    let bytes = bytes.and_then(|()| table.into_inner().map_err(|error| error.to_string()));
    let unwritten = |error| Failure::new(format!("cannot write {}", shown(file))).because(error);
    output_file::write(file, output_file::Kind::Table, &bytes.map_err(unwritten)?)
}

/// The same for people, with the most important columns; those that are the same in all rows are left out first.
pub(super) fn table(lines: &[String]) -> TextTable {
    let shown = |cell: String| match cell.parse::<f64>() {
        Ok(number) if cell.contains('.') => format!("{number:.1}"),
        _ => cell,
    };
    let of_line = |line: &String| cells(line, &SHOWN).into_iter().map(shown).collect();
    let rows: Vec<Vec<String>> = lines.iter().map(of_line).collect();
    let is_same = |column: usize| rows.windows(2).all(|two| two[0][column] == two[1][column]);
    let alike = (1..7).filter(|column| is_same(*column)).map(|column| SHOWN[column]);
    let left_out: Vec<&str> =
        alike.chain(["latency_mean_us", "transport", "controller", "variant"]).collect();
    let mut table = TextTable::new(SHOWN).words([]).names(0..5).leave_out_first(&left_out);
    rows.into_iter().for_each(|row| table.row(row));
    table
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
