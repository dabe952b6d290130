//! What a benchmark leaves behind: figures, and everything that one must know to believe them.
//!
//! A [`Record`] is one value with a name for everything; programs get it as JSON, whose fields are only added to, or as
//! lines of CSV, people as a table. Units are in the names.

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
    /// The version of this program.
    pub version: &'static str,
    /// What was called.
    pub command_line: Vec<String>,
    /// When it began, in seconds since 1970.
    pub began_unix_s: u64,
    /// The machine.
    pub machine: Machine,
    /// What was measured.
    pub target: Target,
    /// The workloads.
    pub workloads: Vec<String>,
    /// How it was measured.
    pub method: Method,
    /// It was ended before its end.
    pub interrupted: bool,
    /// I/Os in a second of the row with the most, if one workload ran on one transport.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iops: Option<f64>,
    /// Which row that is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iops_of: Option<RowName>,
    /// Millions of bytes in a second, of that row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mb_per_s: Option<f64>,
    /// Requests that failed, of all rows.
    pub errors: u64,
    /// What went wrong below, of all rows.
    pub troubles: ErrorCounters,
    /// What was written down of its transfers meanwhile, if that was asked for and the file could be written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub captured: Option<CaptureSummary>,
    /// A row for each job on each transport.
    pub rows: Vec<RecordRow>,
}

/// What came of a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CaptureSummary {
    /// Files.
    pub files: u32,
    /// Records in them all.
    pub records: u64,
    /// Events for which there was no room, and that they lack.
    pub dropped: u64,
}

/// The machine.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Machine {
    /// The kernel's release.
    pub kernel: Option<String>,
    /// The processor.
    pub processor: Option<String>,
    /// Processors in use.
    pub processors: usize,
}

/// What was measured.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Target {
    /// What was named.
    pub name: String,
    /// `virtual`, `file`, `block-device` or `usb-port`.
    pub kind: &'static str,
    /// Who it is, as far as the bench_device knows by now.
    #[serde(flatten)]
    pub identity: DriveInfo,
    /// Its USB port.
    pub usb_port: Option<String>,
    /// The logical unit of the drive there that was measured, where our own drivers have done so.
    pub lun: Option<u8>,
    /// Its USB id, bridge and all.
    pub usb_id: Option<String>,
    /// Its link.
    pub usb_speed: Option<String>,
    /// The host controller.
    pub controller: Option<String>,
    /// The kernel's driver.
    pub driver: Option<String>,
    /// Degrees Celsius before and after, where the drive or a sensor tells.
    pub temperature_c: [Option<f64>; 2],
    /// Who tells: `log-page` (LOG SENSE, 0Dh) or `smart` of the drive, else `kernel`.
    pub temperature_source: Option<&'static str>,
}

/// How it was measured.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Method {
    /// Of each run, unless the job has its own; it goes on to the next end of a request, and rates are of the time between two of these.
    pub run_s: f64,
    /// Dropped before it, likewise: until the next end as well.
    pub warm_up_s: f64,
    /// Rounds at least.
    pub rounds_min: u32,
    /// Rounds at most.
    pub rounds_max: u32,
    /// Rounds end when half of each interval is at most so many percent.
    pub steady_within_percent: f64,
    /// What intervals are.
    pub intervals: &'static str,
    /// Where places and payload come from.
    pub seed: u64,
    /// Writes were stamped and read back; stamping costs processor time.
    pub verify: bool,
}

/// Percent of requests whose latency a record tells.
pub const PERCENTS: [f64; 13] =
    [1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.99, 100.0];

/// What is said of intervals.
pub const INTERVALS: &str =
    "95 %, Student's t on logarithms of the rates of repeated runs; ratios by rounds, transports in turns";

/// A job on a transport.
#[derive(Clone, Debug, Serialize)]
pub struct RecordRow {
    /// The transport: `kernel`, `bot`, `turbo` or `uas`.
    pub transport: &'static str,
    /// The job.
    pub job: String,
    /// Requests under way at once.
    pub depth: u16,
    /// The first byte of the part of the drive that it has used.
    pub offset_bytes: u64,
    /// Bytes of that part, as far as somebody knows how large the drive is.
    pub span_bytes: Option<u64>,
    /// What was written: `random`, `zero`, `repeated` or `stamps`.
    pub written_data: Option<&'static str>,
    /// Why there are no figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// It has come to nothing, where others without figures are of a transport that is not offered, or were ended too soon.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
    /// Requests that failed, whether there are figures or not.
    pub errors: u64,
    /// The first kinds of them.
    pub error_kinds: Vec<ErrorKind>,
    /// What went wrong below, and was mended or not.
    pub troubles: ErrorCounters,
    /// What reading back has found.
    pub verify: Option<Findings>,
    /// The figures.
    #[serde(flatten)]
    pub figures: Option<RowFigures>,
}

/// The figures of a row.
#[derive(Clone, Debug, Serialize)]
pub struct RowFigures {
    /// I/Os in a second: the geometric mean of the runs.
    pub iops: f64,
    /// Its interval.
    pub iops_interval: Option<[f64; 2]>,
    /// I/Os in a second of each round, of which that is the mean.
    pub iops_of_rounds: Vec<f64>,
    /// Millions of bytes in a second.
    pub mb_per_s: f64,
    /// Mean latency in microseconds.
    pub mean_us: f64,
    /// Median.
    pub p50_us: f64,
    /// 99 of a hundred are quicker.
    pub p99_us: f64,
    /// 999 of a thousand are quicker.
    pub p999_us: f64,
    /// The longest.
    pub max_us: f64,
    /// Percent of requests, and the microseconds that they took at most; from few to many.
    pub percentiles_us: Vec<[f64; 2]>,
    /// Processor time of this process for an I/O.
    pub processor_us_per_io: f64,
    /// Energy of the processor packages for 10⁹ bytes.
    pub joules_per_gb: Option<f64>,
    /// The rate against that of the first transport.
    pub ratio_to_first: Option<Estimate>,
    /// I/Os that count.
    pub ios: u64,
    /// Runs that count.
    pub rounds: u32,
    /// The rate is as steady as was asked for.
    pub steady: bool,
    /// It was ended early.
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
    /// What a bench_device knows of it.
    pub fn of(name: impl Into<String>, kind: &'static str, identity: DriveInfo) -> Self {
        Self { name: name.into(), kind, identity, ..Self::default() }
    }

    /// Takes in what the drive has told, and the kernel's sensor: two sensors may differ, so both readings are of one.
    pub fn add_temperatures(&mut self, of_drive: [Option<Temperature>; 2], of_kernel: [Option<f64>; 2]) {
        let of_drive_c = of_drive.map(|told| told.map(|told| f64::from(told.celsius)));
        let source = of_drive[0].or(of_drive[1]).map(|told| match told.source {
            TemperatureSource::LogPage => "log-page",
            TemperatureSource::Smart => "smart",
        });
        let told = |both: [Option<f64>; 2]| both.iter().flatten().count();
        (self.temperature_c, self.temperature_source) = match (told(of_drive_c), told(of_kernel)) {
            (0, 0) => ([None; 2], None),
            (drive, kernel) if drive >= kernel => (of_drive_c, source),
            _ => (of_kernel, Some("kernel")),
        };
    }
}

/// Which row of a record.
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
    /// Takes rows in, and what follows from all of them.
    pub fn take(&mut self, rows: &[Row]) {
        let (identity, verify) = (&self.target.identity, self.method.verify);
        self.rows = rows.iter().map(|row| RecordRow::of(row, identity, verify)).collect();
        let figures =
            || self.rows.iter().filter_map(|row| row.figures.as_ref().map(|figures| (row, figures)));
        self.errors = self.rows.iter().map(|row| row.errors).sum();
        self.troubles = self.rows.iter().fold(ErrorCounters::NONE, |sum, row| sum.and(row.troubles));
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

    /// Blocks that were read back and were not right.
    pub fn wrong_blocks(&self) -> u64 {
        self.findings().wrong
    }

    /// What reading back has found, of all rows.
    pub fn findings(&self) -> Findings {
        let mut all = Findings::default();
        self.rows.iter().filter_map(|row| row.verify.as_ref()).for_each(|findings| all.add(findings));
        all
    }

    /// Whether nobody has let it come to figures: it says nothing of what was to be measured.
    pub fn is_ended_before_figures(&self) -> bool {
        self.interrupted && self.rows.iter().all(|row| row.figures.is_none())
    }

    /// The first row that has come to nothing.
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
            span_bytes: span(identity, row.part),
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
            troubles: row.troubles,
            verify: row.findings.clone(),
            figures,
        }
    }
}

/// Bytes of a part of a drive from its first byte on: whole blocks, and no more than there are.
fn span(identity: &DriveInfo, (offset_bytes, asked): (u64, Option<u64>)) -> Option<u64> {
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
