//! `--against`: a measurement of hardware beside the same jobs in a simulated world.
//!
//! The record is what `uaskit bench --json` prints. A record names jobs and not their accesses, so that those are looked up among
//! the workloads that it names, and read from the name itself if that says them (`4K random read`). A row stands beside the columns that are
//! on its transport; if none is, beside all. Left out: jobs of files.
//!
//! Always true: an error is simulated over measured, less one; a record of a virtual drive has none.

mod page;

use super::choice::Configuration;
use super::request::gather;
use super::table::fitted;
use super::{CompareArguments, parts, print_findings, print_notes};
use crate::args::quantity;
use crate::failure::Failure;
use crate::sanitize::{self, shown};
use crate::stdout::Output;
use crate::text_file;
use report::TextTable;
use serde_json::{Value, json};
use std::path::Path;
use study::compare::Comparison;
use study::compare::Row;
use study::compare::runs::RunRequest;
use study::parts::Carried;
use workload::{AccessSpec, Job};

/// Rows of a record at most.
const ROWS_MAX: usize = 10_000;

/// A row of a record.
#[derive(Clone, Debug)]
struct Measured {
    transport: String,
    job: Job,
    megabytes_per_second: f64,
}

/// A record that was read.
#[derive(Debug)]
struct Record {
    target: String,
    /// Whether the drive was in memory, so that its rates are those of the processor that measured.
    is_virtual: bool,
    /// The kernel's driver, where the kernel had the drive.
    driver: String,
    rows: Vec<Measured>,
    /// Names of jobs whose access pattern is unknown.
    unknown: Vec<String>,
}

pub(super) fn show(
    arguments: &CompareArguments,
    file: &Path,
    comparison: Comparison<'_>,
    notes: &[String],
    out: &mut Output<'_>,
) -> Result<(), Failure> {
    let columns = comparison.columns;
    let record = Record::read(&text_file::read(file, "record", parts::FILE_BYTES_MAX)?)
        .map_err(|why| no_record(file).because(why))?;
    if record.rows.is_empty() {
        let why = format!("no row has a known job; unknown jobs: {}", list(&record.unknown));
        return Err(Failure::new(format!("cannot simulate any row of {}", shown(file))).because(why));
    }
    let mut jobs: Vec<Job> = Vec::new();
    for row in &record.rows {
        if !jobs.contains(&row.job) {
            jobs.push(row.job.clone());
        }
    }
    let gathered = gather(arguments, comparison, &jobs, RunRequest::ONCE)?;
    let rows: Vec<Row> = gathered.iter().map(|row| row.row(false)).collect();
    if let Some(file) = &arguments.report {
        page::write(&record, comparison, &rows, file)?;
    }
    if arguments.json {
        return writeln!(out, "{}", sanitize::json(&format!("{:#}", record.json(columns, &rows))));
    }
    print_notes(out, notes)?;
    print_findings(out, &page::findings(&record, columns, &rows), arguments.findings)?;
    writeln!(
        out,
        "{}: measured, and simulated with this setup; MB/s (10^6 bytes)\n{}",
        sanitize::escape(&record.target),
        fitted(&record.table(columns, &rows))
    )?;
    let alone = record.alone(columns);
    if !alone.is_empty() {
        writeln!(out, "Left out, since the setup has no such transport: {}", list(&alone))?;
    }
    Ok(())
}

fn no_record(file: &Path) -> Failure {
    Failure::new(format!("{} is not a record of uaskit bench", shown(file)))
        .try_this("Write one: uaskit bench DRIVE --json > record.json")
}

/// Lists names, escaped.
fn list(names: &[String]) -> String {
    names.iter().map(|name| sanitize::escape(name)).collect::<Vec<_>>().join("; ")
}

impl Record {
    /// Reads a record.
    fn read(text: &str) -> Result<Self, String> {
        let record: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let of = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
        let rows = record["rows"].as_array().ok_or("it has no list of `rows`")?;
        if rows.len() > ROWS_MAX {
            return Err(format!("it has more than {ROWS_MAX} rows"));
        }
        record["target"].as_object().ok_or("it has no `target`")?;
        let named: Vec<Job> = record["workloads"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|name| workload::named(name.as_str()?))
            .flat_map(|workload| workload.on_whole_drive().jobs)
            .collect();
        let target = of(&record["target"], "name");
        let mut read = Self {
            target,
            is_virtual: record["target"]["kind"] == "virtual",
            driver: of(&record["target"], "driver"),
            rows: Vec::new(),
            unknown: Vec::new(),
        };
        for (number, row) in (1..).zip(rows) {
            let label = row["job"].as_str().ok_or_else(|| format!("row {number} has no `job`"))?;
            let depth = row["depth"].as_u64().and_then(|depth| u16::try_from(depth).ok());
            let depth = depth.filter(|depth| (1..=workload::DEPTH_MAX).contains(depth));
            let depth = depth
                .ok_or_else(|| format!("row {number} has no `depth` of 1 to {}", workload::DEPTH_MAX))?;
            let Some(rate) = row["mb_per_s"].as_f64().filter(|rate| *rate > 0.0) else {
                // A row without figures has an error; the record is valid.
                if row["error"].is_string() || row["mb_per_s"].is_number() {
                    continue;
                }
                return Err(format!("row {number} has neither `mb_per_s` nor `error`"));
            };
            let known = named.iter().find(|job| job.label == label).cloned();
            match known.or_else(|| share(label).map(|share| Job::of(share, depth))) {
                Some(job) => {
                    let job = Job { depth, ..job };
                    read.rows.push(Measured {
                        transport: of(row, "transport"),
                        job,
                        megabytes_per_second: rate,
                    });
                }
                None if !read.unknown.iter().any(|name| name == label) => read.unknown.push(label.to_owned()),
                None => {}
            }
        }
        Ok(read)
    }

    /// The places of the columns that a row stands beside.
    fn beside(&self, row: &Measured, columns: &[Configuration]) -> Vec<usize> {
        let word = match (row.transport.as_str(), self.driver.as_str()) {
            ("kernel", "uas") => "uas",
            ("kernel", "usb-storage") => "bot",
            (other, _) => other,
        };
        // One that is not known, of a driver or a file, stands beside all.
        let is_known = ["bot", "turbo", "uas"].contains(&word);
        let is_alike = |column: &Configuration| match column.activation.transport {
            _ if !is_known => true,
            Carried::Bot => word == "bot",
            Carried::Turbo => word == "turbo",
            Carried::Uas(_) => word == "uas",
            Carried::Sata => false,
        };
        (0..columns.len()).filter(|place| is_alike(&columns[*place])).collect()
    }

    /// The transports of rows beside which nothing stands.
    fn alone(&self, columns: &[Configuration]) -> Vec<String> {
        let mut alone = Vec::new();
        for row in self.rows.iter().filter(|row| self.beside(row, columns).is_empty()) {
            if !alone.contains(&row.transport) {
                alone.push(row.transport.clone());
            }
        }
        alone
    }

    /// The simulated figures that stand beside a row, by column.
    fn simulated(&self, row: &Measured, columns: &[Configuration], rows: &[Row]) -> Vec<(usize, f64)> {
        let Some(of_job) = rows.iter().find(|simulated| simulated.job == row.job) else { return Vec::new() };
        let beside = self.beside(row, columns).into_iter();
        beside.map(|place| (place, of_job.trials[place].measured.megabytes_per_second())).collect()
    }

    /// Simulated over measured, less one; none where what was measured is no hardware.
    fn error(&self, simulated: f64, row: &Measured) -> Option<f64> {
        (!self.is_virtual).then(|| simulated / row.megabytes_per_second - 1.0)
    }

    fn table(&self, columns: &[Configuration], rows: &[Row]) -> TextTable {
        let heads = ["job", "depth", "transport", "measured", "setup", "simulated", "error"];
        let mut table = TextTable::new(heads).words([0, 2, 4]).keys(3);
        for row in &self.rows {
            for (place, figure) in self.simulated(row, columns, rows) {
                table.row([
                    row.job.label.clone(),
                    row.job.depth.to_string(),
                    sanitize::escape(&row.transport),
                    format!("{:.1}", row.megabytes_per_second),
                    columns[place].name.clone(),
                    format!("{figure:.1}"),
                    self.error(figure, row).map_or("-".into(), |error| format!("{:+.1} %", 100.0 * error)),
                ]);
            }
        }
        table
    }

    fn json(&self, columns: &[Configuration], rows: &[Row]) -> Value {
        let of_row = |row: &Measured| {
            let simulated = self.simulated(row, columns, rows).into_iter().map(|(place, figure)| {
                json!({
                    "column": columns[place].name,
                    "megabytes_per_second": figure,
                    "error": self.error(figure, row),
                })
            });
            json!({
                "job": row.job.label,
                "depth": row.job.depth,
                "transport": row.transport,
                "measured_megabytes_per_second": row.megabytes_per_second,
                "simulated": simulated.collect::<Vec<_>>(),
            })
        };
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "target": self.target,
            "is_virtual": self.is_virtual,
            "rows": self.rows.iter().map(of_row).collect::<Vec<_>>(),
            "unknown_jobs": self.unknown,
        })
    }
}

/// The accesses that a name says: `4K random read`, `8K 80 % random, 80 % read`.
fn share(label: &str) -> Option<AccessSpec> {
    let (size, rest) = label.split_once(' ')?;
    let bytes = u32::try_from(quantity::size(size).ok()?.0).ok()?;
    let percents = || (0..=100).flat_map(|random| (0..=100).map(move |reads| (reads, random)));
    let all = || percents().map(|(reads, random)| AccessSpec::all(bytes, reads, random));
    let is_it = |share: &AccessSpec| share.to_string() == label;
    // Most are of one way and one kind of place.
    let usual =
        [(100, 0), (0, 0), (100, 100), (0, 100)].map(|(reads, random)| AccessSpec::all(bytes, reads, random));
    usual.into_iter().find(is_it).or_else(|| rest.contains('%').then(|| all().find(is_it)).flatten())
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: &str = r#"{"target": {"name": "/dev/sdz", "driver": "uas"}, "workloads": ["mine"], "rows": [
        {"transport": "kernel", "job": "4K random read", "depth": 8, "mb_per_s": 100.5},
        {"transport": "bot", "job": "8K 80 % random, 80 % read", "depth": 64, "mb_per_s": 60.0},
        {"transport": "bot", "job": "4K random write", "depth": 1, "error": "it was pulled out"},
        {"transport": "bot", "job": "mix of mine", "depth": 1, "mb_per_s": 3.0}]}"#;

    #[test]
    fn jobs_are_known_by_their_names() {
        let record = Record::read(RECORD).unwrap();
        assert_eq!(record.rows.len(), 2);
        assert_eq!(record.rows[0].job, Job::of(AccessSpec::all(4096, 100, 100), 8));
        assert_eq!(record.rows[1].job.specs, [AccessSpec::all(8192, 80, 80)]);
        assert_eq!(record.unknown, ["mix of mine"]);
        assert_eq!(record.error(201.0, &record.rows[0]), Some(1.0));
    }

    #[test]
    fn what_is_no_record_says_why() {
        let why = |text: &str| Record::read(text).unwrap_err();
        assert!(why("[1, 2").contains("EOF"));
        assert_eq!(why("{}"), "it has no list of `rows`");
        assert_eq!(why(r#"{"rows": []}"#), "it has no `target`");
        let row = |row: &str| why(&format!("{{\"target\": {{}}, \"rows\": [{row}]}}"));
        assert_eq!(row("{}"), "row 1 has no `job`");
        assert_eq!(row(r#"{"job": "a", "depth": 0}"#), "row 1 has no `depth` of 1 to 256");
        assert_eq!(row(r#"{"job": "a", "depth": 1}"#), "row 1 has neither `mb_per_s` nor `error`");
    }
}
