//! The record of a benchmark: figures and the conditions needed to trust them.
//!
//! A [`Record`] is one value; programs get it as JSON, whose fields are only ever added to, or as
//! CSV rows, people as a table. Units are part of the names.

mod csv;
mod machine;
mod table;

pub use csv::csv;
pub use table::{heading, table};

use crate::backend::{DriveInfo, ErrorCounters};
use crate::measure::{Estimate, Figures, MeasureError, Row};
use crate::verify::Findings;
use initiator::disk::{Temperature, TemperatureSource};
use serde::Serialize;
use workload::Fill;

/// One benchmark.
#[derive(Clone, Debug, Serialize)]
pub struct Record {
    /// Version of this program.
    pub version: &'static str,
    /// Command line.
    pub command_line: Vec<String>,
    /// Start, in seconds since 1970.
    pub began_unix_s: u64,
    /// The machine.
    pub machine: Machine,
    /// The measured device.
    pub target: Target,
    /// The workloads.
    pub workloads: Vec<String>,
    /// How it was measured.
    pub method: Method,
    /// Interrupted early.
    pub interrupted: bool,
    /// I/Os per second of the fastest row; only for a single workload on one transport.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iops: Option<f64>,
    /// Which row that is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iops_of: Option<RowName>,
    /// Megabytes (10⁶ bytes) per second of that row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mb_per_s: Option<f64>,
    /// Failed requests of all rows.
    pub errors: u64,
    /// Low-level errors of all rows.
    pub error_counters: ErrorCounters,
    /// The capture of the transfers, if requested and writable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub captured: Option<CaptureSummary>,
    /// A row for each job on each transport.
    pub rows: Vec<RecordRow>,
}

/// Summary of a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CaptureSummary {
    /// Files.
    pub files: u32,
    /// Records in them all.
    pub records: u64,
    /// Events dropped because the buffer was full.
    pub dropped: u64,
}

/// The machine.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Machine {
    /// Kernel release.
    pub kernel: Option<String>,
    /// Processor.
    pub processor: Option<String>,
    /// Processors in use.
    pub processors: usize,
}

/// The measured device.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Target {
    /// Name on the command line.
    pub name: String,
    /// `virtual`, `file`, `block-device` or `usb-port`.
    pub kind: &'static str,
    /// Description of the drive.
    #[serde(flatten)]
    pub identity: DriveInfo,
    /// Its USB port.
    pub usb_port: Option<String>,
    /// Logical unit, if our own drivers measured it.
    pub lun: Option<u8>,
    /// Its USB id, bridge and all.
    pub usb_id: Option<String>,
    /// Negotiated link.
    pub usb_speed: Option<String>,
    /// The host controller.
    pub controller: Option<String>,
    /// Kernel driver.
    pub driver: Option<String>,
    /// Degrees Celsius before and after, if known.
    pub temperature_c: [Option<f64>; 2],
    /// Source of the temperature: `log-page` (LOG SENSE, 0Dh) or `smart` of the drive, else
    /// `kernel`.
    pub temperature_source: Option<&'static str>,
}

/// Method of measurement.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Method {
    /// Measured time of each run, unless the job has its own; ends with the next completion, and
    /// rates are between completions.
    pub run_s: f64,
    /// Warm-up, likewise.
    pub warm_up_s: f64,
    /// Minimum of rounds.
    pub rounds_min: u32,
    /// Maximum of rounds.
    pub rounds_max: u32,
    /// Rounds end once half of each interval is within this percentage.
    pub steady_within_percent: f64,
    /// Kind of intervals.
    pub intervals: &'static str,
    /// Random seed for LBAs and payload.
    pub seed: u64,
    /// Writes were stamped and read back; stamping costs processor time.
    pub verify: bool,
}

/// Latency percentiles in a record.
pub const PERCENTS: [f64; 13] =
    [1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.99, 100.0];

/// Description of the intervals.
pub const INTERVALS: &str =
    "95 %, Student's t on logarithms of the rates of repeated runs; ratios by rounds, transports alternate";

/// A job on a transport.
#[derive(Clone, Debug, Serialize)]
pub struct RecordRow {
    /// The transport: `kernel`, `bot`, `turbo` or `uas`.
    pub transport: &'static str,
    /// The job.
    pub job: String,
    /// Queue depth.
    pub depth: u16,
    /// First byte of the part of the drive that was used.
    pub offset_bytes: u64,
    /// Bytes of that part, if the drive's size is known.
    pub span_bytes: Option<u64>,
    /// Data written: `random`, `zero`, `repeated` or `stamps`.
    pub written_data: Option<&'static str>,
    /// Why there are no figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Failed, as opposed to a transport that is not offered or an interruption.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
    /// Failed requests, with or without figures.
    pub errors: u64,
    /// The first distinct reasons.
    pub error_kinds: Vec<ErrorKind>,
    /// Low-level errors, recovered or not.
    pub error_counters: ErrorCounters,
    /// Verification results.
    pub verify: Option<Findings>,
    /// The figures.
    #[serde(flatten)]
    pub figures: Option<RowFigures>,
}

/// The figures of a row.
#[derive(Clone, Debug, Serialize)]
pub struct RowFigures {
    /// I/Os per second: geometric mean of the runs.
    pub iops: f64,
    /// Its interval.
    pub iops_interval: Option<[f64; 2]>,
    /// I/Os per second of each round.
    pub iops_of_rounds: Vec<f64>,
    /// Megabytes (10⁶ bytes) per second.
    pub mb_per_s: f64,
    /// Mean latency in microseconds.
    pub mean_us: f64,
    /// Median.
    pub p50_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// 99.9th percentile.
    pub p999_us: f64,
    /// Maximum.
    pub max_us: f64,
    /// Percentiles with their latencies in microseconds, ascending.
    pub percentiles_us: Vec<[f64; 2]>,
    /// Processor time of this process per I/O.
    pub processor_us_per_io: f64,
    /// Energy of the processor packages per 10⁹ bytes.
    pub joules_per_gb: Option<f64>,
    /// Ratio to the first transport.
    pub ratio_to_first: Option<Estimate>,
    /// I/Os counted.
    pub ios: u64,
    /// Runs counted.
    pub rounds: u32,
    /// The rate is as steady as requested.
    pub steady: bool,
    /// Interrupted early.
    pub interrupted: bool,
}

/// Requests that failed for one reason.
#[derive(Clone, Debug, Serialize)]
pub struct ErrorKind {
    /// The reason.
    pub reason: String,
    /// How many.
    pub count: u64,
}

impl Target {
    /// Describes a target.
    pub fn of(name: impl Into<String>, kind: &'static str, identity: DriveInfo) -> Self {
        Self { name: name.into(), kind, identity, ..Self::default() }
    }

    /// Adds temperatures of the drive, or else of the kernel's sensor: both readings are from one
    /// sensor, since two may differ.
    pub fn add_temperatures(&mut self, of_drive: [Option<Temperature>; 2], of_kernel: [Option<f64>; 2]) {
        let of_drive_c = of_drive.map(|reading| reading.map(|reading| f64::from(reading.celsius)));
        let source = of_drive[0].or(of_drive[1]).map(|reading| match reading.source {
            TemperatureSource::LogPage => "log-page",
            TemperatureSource::Smart => "smart",
        });
        let known = |both: [Option<f64>; 2]| both.iter().flatten().count();
        (self.temperature_c, self.temperature_source) = match (known(of_drive_c), known(of_kernel)) {
            (0, 0) => ([None; 2], None),
            (drive, kernel) if drive >= kernel => (of_drive_c, source),
            _ => (of_kernel, Some("kernel")),
        };
    }
}

/// Identifies a row of a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RowName {
    /// Its transport.
    pub transport: &'static str,
    /// Its job.
    pub job: String,
    /// Its depth.
    pub depth: u16,
}

impl Record {
    /// Adds rows and the values derived from all of them.
    pub fn take(&mut self, rows: &[Row]) {
        let (identity, verify) = (&self.target.identity, self.method.verify);
        self.rows = rows.iter().map(|row| RecordRow::of(row, identity, verify)).collect();
        let figures =
            || self.rows.iter().filter_map(|row| row.figures.as_ref().map(|figures| (row, figures)));
        self.errors = self.rows.iter().map(|row| row.errors).sum();
        self.error_counters =
            self.rows.iter().fold(ErrorCounters::NONE, |sum, row| sum.and(row.error_counters));
        // One figure for several transports would be that of one of them.
        let first = self.rows.first().map(|row| row.transport);
        let is_one = self.workloads.len() == 1 && self.rows.iter().all(|row| Some(row.transport) == first);
        let best =
            figures().filter(|_| is_one).max_by(|(_, one), (_, other)| one.iops.total_cmp(&other.iops));
        let named =
            best.map(|(row, _)| RowName { transport: row.transport, job: row.job.clone(), depth: row.depth });
        (self.iops, self.mb_per_s) = best.map(|(_, best)| (best.iops, best.mb_per_s)).unzip();
        self.iops_of = named;
    }

    /// Returns the number of wrong blocks.
    pub fn wrong_blocks(&self) -> u64 {
        self.findings().wrong
    }

    /// Returns the verification results of all rows.
    pub fn findings(&self) -> Findings {
        let mut all = Findings::default();
        self.rows.iter().filter_map(|row| row.verify.as_ref()).for_each(|findings| all.add(findings));
        all
    }

    /// Whether an interruption left no figures.
    pub fn is_ended_before_figures(&self) -> bool {
        self.interrupted && self.rows.iter().all(|row| row.figures.is_none())
    }

    /// Returns the first failed row.
    pub fn failed_row(&self) -> Option<&RecordRow> {
        self.rows.iter().find(|row| row.failed)
    }
}

impl RecordRow {
    fn of(row: &Row, identity: &DriveInfo, verify: bool) -> Self {
        let (error, figures) = match &row.figures {
            Ok(figures) => (None, Some(RowFigures::of(figures))),
            Err(error) => (Some(error.to_string()), None),
        };
        let kind = |(fault, count): &(crate::backend::AccessError, u64)| ErrorKind {
            reason: fault.to_string(),
            count: *count,
        };
        Self {
            transport: row.route.word(),
            job: row.label.clone(),
            depth: row.depth,
            offset_bytes: row.part.0,
            span_bytes: span(identity, row.part.0, row.part.1),
            written_data: row.fill.map(|fill| match fill {
                _ if verify => "stamps",
                Fill::Random => "random",
                Fill::Zero => "zero",
                Fill::Repeated => "repeated",
            }),
            error,
            failed: row.figures.as_ref().is_err_and(MeasureError::is_failure),
            errors: row.failures.count,
            error_kinds: row.failures.kinds.iter().map(kind).collect(),
            error_counters: row.error_counters,
            verify: row.findings.clone(),
            figures,
        }
    }
}

/// Bytes of a part from its first byte on: whole blocks, within the drive.
fn span(identity: &DriveInfo, offset_bytes: u64, asked: Option<u64>) -> Option<u64> {
    let there = (identity.bytes > 0).then(|| identity.bytes.saturating_sub(offset_bytes));
    let bytes = [there, asked].into_iter().flatten().min()?;
    Some(bytes - bytes % u64::from(identity.block_bytes.max(1)))
}

impl RowFigures {
    fn of(figures: &Figures) -> Self {
        let us = |nanoseconds: u64| nanoseconds as f64 / 1000.0;
        let at = |quantile| us(figures.latency.value_at_quantile(quantile));
        Self {
            iops: figures.iops.value,
            iops_interval: figures.iops.interval,
            iops_of_rounds: figures.iops_of_rounds.clone(),
            mb_per_s: figures.mb_per_s,
            mean_us: figures.latency.mean() / 1000.0,
            p50_us: at(0.5),
            p99_us: at(0.99),
            p999_us: at(0.999),
            max_us: us(figures.latency.max()),
            percentiles_us: PERCENTS.map(|percent| [percent, at(percent / 100.0)]).to_vec(),
            processor_us_per_io: figures.processor_us_per_io,
            joules_per_gb: figures.joules_per_gb,
            ratio_to_first: figures.ratio,
            ios: figures.ios,
            rounds: figures.rounds,
            steady: figures.is_steady,
            interrupted: figures.interrupted,
        }
    }
}

#[cfg(test)]
mod tests;
