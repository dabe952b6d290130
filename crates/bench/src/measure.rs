//! Runs jobs on routes in alternation until the figures are steady, and combines the runs.
//!
//! A round runs a job once on each route, one after another, so that changes of the machine affect
//! all of them. Rounds repeat until the 95 % interval of each route's rate is narrow enough, or up
//! to a maximum. Latencies of all rounds are merged. An interrupted round counts only if there is
//! no complete one: its time is shorter, and the start of a run is not representative. A route that
//! cannot be opened reports why, and the others continue.

mod energy;
mod run;
mod run_plan;

pub use energy::Energy;
pub use run::{
    FailedRun, Failures, Progress, ProgressSink, Run, RunConditions, RunContext, RunError, read_back, run,
};
pub use workload::Estimate;

use crate::backend::{BenchDevice, BufferLayout, DeviceError, ErrorCounters, Route};
use crate::verify::{Findings, LEDGER_BLOCKS_MAX, Ledger};
use fastrand::Rng;
use hdrhistogram::Histogram;
use std::fmt;
use std::time::Duration;
use workload::{Accesses, Fill, Job};

/// How to measure jobs.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Conditions of each run.
    pub conditions: RunConditions,
    /// Minimum and maximum of rounds.
    pub rounds: (u32, u32),
    /// Stop once half of each route's interval is within this fraction of its rate.
    pub steady_within: f64,
    /// Stamp writes and read them back.
    pub verify: bool,
    /// Distinguishes writes of this campaign from those of earlier ones.
    pub session: u32,
}

/// A job on one route.
#[derive(Clone, Debug)]
pub struct Row {
    /// The route.
    pub route: Route,
    /// The job.
    pub label: String,
    /// Its depth.
    pub depth: u16,
    /// First byte and length of the used part of the drive; the whole drive if absent.
    pub part: (u64, Option<u64>),
    /// Data written, if any; with [`Plan::verify`] stamps.
    pub fill: Option<Fill>,
    /// Failed accesses, with or without figures.
    pub failures: Failures,
    /// Low-level errors, likewise.
    pub error_counters: ErrorCounters,
    /// Verification results, likewise.
    pub findings: Option<Findings>,
    /// The figures, or why there are none.
    pub figures: Result<Figures, MeasureError>,
}

/// Combined results of a job's runs on one route.
#[derive(Clone, Debug)]
pub struct Figures {
    /// I/Os per second.
    pub iops: Estimate,
    /// I/Os per second of each counted round.
    pub iops_of_rounds: Vec<f64>,
    /// Megabytes (10⁶ bytes) per second.
    pub mb_per_s: f64,
    /// Latencies of all rounds, in nanoseconds.
    pub latency: Histogram<u64>,
    /// Processor time of this process per I/O, in microseconds.
    pub processor_us_per_io: f64,
    /// Energy of the processor packages per 10⁹ bytes.
    pub joules_per_gb: Option<f64>,
    /// Ratio to the first route with figures; `None` for that one.
    pub ratio: Option<Estimate>,
    /// Total I/Os.
    pub ios: u64,
    /// Counted rounds.
    pub rounds: u32,
    /// The interval is as narrow as requested.
    pub is_steady: bool,
    /// Interrupted early.
    pub interrupted: bool,
}

/// Why a row has no figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MeasureError {
    /// The route cannot be opened.
    Route(DeviceError),
    /// A run failed.
    Run(RunError),
    /// Interrupted before anything was counted.
    Interrupted,
    /// Too many blocks to verify.
    TooManyBlocks {
        /// Number of blocks.
        blocks: u64,
    },
}

/// Observes a campaign.
pub trait CampaignObserver: ProgressSink {
    /// A run begins.
    fn begin(&mut self, job: &Job, route: Route, round: u32);

    /// Whether to stop.
    fn is_over(&self) -> bool;

    /// The rows of a job are complete.
    fn rows(&mut self, rows: &[Row]) {
        let _ = rows;
    }
}

/// The runs of a job on one route so far.
struct RouteRuns {
    route: Route,
    runs: Vec<Run>,
    findings: Option<Findings>,
    failures: Failures,
    error_counters: ErrorCounters,
    error: Option<MeasureError>,
}

/// The energy counters and the observer of a campaign.
pub struct Watchers<'a> {
    /// Reads the energy counters of the machine.
    pub energy: &'a Energy,
    /// Shows the progress, and may stop the campaign.
    pub observer: &'a mut dyn CampaignObserver,
}

/// Runs jobs on routes and returns a row for each pair, grouped by job. Rows not begun before an
/// interruption are absent.
pub fn measure(
    bench_device: &mut dyn BenchDevice,
    routes: &[Route],
    jobs: &[Job],
    plan: &Plan,
    watch: Watchers<'_>,
) -> Vec<Row> {
    let Watchers { energy, observer } = watch;
    let mut campaign = Campaign {
        bench_device,
        routes,
        plan,
        energy,
        observer,
        room: shared_layout(jobs),
        session: plan.session,
    };
    let mut rows = Vec::new();
    for (number, job) in jobs.iter().enumerate() {
        if campaign.observer.is_over() {
            break;
        }
        let of_job = campaign.run_job(number, job);
        campaign.observer.rows(&of_job);
        rows.extend(of_job);
    }
    rows
}

/// Minimum length of an interrupted round that counts if there is no other: the time to notice the
/// interruption.
const CUT_OFF_MIN: Duration = run::TICK;

/// Buffer bytes that all jobs may share, although only one needs them: a part of usbfs's default
/// limit.
const SHARED_BUFFER_BYTES_MAX: u64 = 8 << 20;

fn layout_of(job: &Job) -> BufferLayout {
    BufferLayout { slots: job.depth, bytes: job.bytes_max() }
}

fn shared_layout(jobs: &[Job]) -> Option<BufferLayout> {
    let wider = |one: BufferLayout, other: BufferLayout| BufferLayout {
        slots: one.slots.max(other.slots),
        bytes: one.bytes.max(other.bytes),
    };
    let room = jobs.iter().map(layout_of).reduce(wider)?;
    (u64::from(room.slots) * u64::from(room.bytes) <= SHARED_BUFFER_BYTES_MAX).then_some(room)
}

/// A campaign: what to measure, how, and who observes.
struct Campaign<'r, 'o> {
    bench_device: &'r mut dyn BenchDevice,
    routes: &'r [Route],
    plan: &'r Plan,
    energy: &'r Energy,
    observer: &'o mut dyn CampaignObserver,
    /// A layout large enough for every job, if affordable: a route then stays open from job to job.
    room: Option<BufferLayout>,
    /// Of the last run: stamps of different runs never match.
    session: u32,
}

impl Campaign<'_, '_> {
    /// Runs all rounds of a job. Each run uses other LBAs, since data read earlier may be in the
    /// drive's cache. Each round begins with another route.
    fn run_job(&mut self, number: usize, job: &Job) -> Vec<Row> {
        let mut all_runs: Vec<RouteRuns> = self.routes.iter().map(|&route| RouteRuns::new(route)).collect();
        let (least, most) = self.plan.rounds;
        for round in 1..=most.max(1) {
            let count = all_runs.len();
            for turn in (0..count).map(|turn| (turn + round as usize - 1) % count) {
                let route_runs = &mut all_runs[turn];
                if route_runs.error.is_some() {
                    continue;
                }
                if self.observer.is_over() {
                    break;
                }
                let seed = seed_of(self.plan.conditions.seed, [number as u64, round.into(), turn as u64]);
                let conditions = RunConditions { seed, ..self.plan.conditions };
                self.observer.begin(job, route_runs.route, round);
                // Figures of earlier rounds would hide that the drive was lost.
                route_runs.error = self.run_round(route_runs, job, &conditions).err();
            }
            let is_done = |route_runs: &RouteRuns| {
                route_runs.error.is_some() || route_runs.is_steady(self.plan.steady_within)
            };
            if self.observer.is_over() || (round >= least && all_runs.iter().all(is_done)) {
                break;
            }
        }
        combine(all_runs, job, self.plan)
    }

    /// Makes one run and reads back what it wrote.
    fn run_round(
        &mut self,
        route_runs: &mut RouteRuns,
        job: &Job,
        conditions: &RunConditions,
    ) -> Result<(), MeasureError> {
        let room = self.room.unwrap_or_else(|| layout_of(job));
        let room = if self.plan.verify { run::with_read_back_buffers(room) } else { room };
        let runner = self.bench_device.open_route(route_runs.route, room).map_err(MeasureError::Route)?;
        let mut ledger = match self.plan.verify && job.writes() {
            false => None,
            true => {
                let accesses = Accesses::new(job, runner.block_size(), runner.capacity(), 0);
                let extent = accesses.map_err(|error| MeasureError::Run(RunError::Job(error)))?.extent();
                self.session = self.session.wrapping_add(1);
                let ledger = Ledger::new(extent, runner.block_size(), self.session);
                Some(ledger.ok_or(MeasureError::TooManyBlocks { blocks: extent.blocks.0 })?)
            }
        };
        let (watch, energy) = (&mut *self.observer, Some(self.energy));
        let context = RunContext { ledger: ledger.as_mut(), watch, energy };
        let ran = run(runner, job, conditions, context);
        let ran = ran.map_err(|broken| route_runs.add_failed(&broken)).map(|run| route_runs.take(run));
        let Some(ledger) = &mut ledger else { return ran };
        let back = ran.and_then(|()| {
            read_back(runner, ledger, self.observer).map_err(|broken| route_runs.add_failed(&broken))
        });
        // Keep results from before the failure of either.
        route_runs.findings.get_or_insert_default().add(&ledger.findings());
        let (failures, error_counters) = back?;
        route_runs.count(&failures, error_counters);
        Ok(())
    }
}

/// Derives the seed of one run from job, round and route: distinct and reproducible.
fn seed_of(seed: u64, place: [u64; 3]) -> u64 {
    place.into_iter().fold(seed, |seed, number| Rng::with_seed(seed ^ number).u64(..))
}

impl RouteRuns {
    const fn new(route: Route) -> Self {
        let failures = Failures { count: 0, kinds: Vec::new() };
        Self {
            route,
            runs: Vec::new(),
            findings: None,
            failures,
            error_counters: ErrorCounters::NONE,
            error: None,
        }
    }

    /// Adds a completed run.
    fn take(&mut self, run: Run) {
        self.count(&run.failures, run.error_counters);
        self.runs.push(run);
    }

    /// Adds a failed run and returns its error.
    fn add_failed(&mut self, broken: &FailedRun) -> MeasureError {
        self.count(&broken.failures, broken.error_counters);
        MeasureError::Run(broken.why.clone())
    }

    fn count(&mut self, failures: &Failures, error_counters: ErrorCounters) {
        self.failures.add(failures);
        self.error_counters = self.error_counters.and(error_counters);
    }

    /// Returns the counted runs: complete ones, else a sufficiently long interrupted one.
    fn counted(&self) -> impl Iterator<Item = &Run> {
        let has_whole = self.runs.iter().any(|run| !run.interrupted);
        let says_enough = |run: &Run| run.ios > 0 && run.elapsed >= CUT_OFF_MIN;
        self.runs.iter().filter(move |run| if has_whole { !run.interrupted } else { says_enough(run) })
    }

    /// Returns I/Os per second of each counted run.
    fn rates(&self) -> Vec<f64> {
        let rate = |run: &Run| run.ios as f64 / run.elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
        self.counted().filter(|run| !run.elapsed.is_zero()).map(rate).collect()
    }

    fn is_steady(&self, within: f64) -> bool {
        Estimate::of(&self.rates()).relative_half_width().is_some_and(|half| half <= within)
    }

    fn figures(&self, first: Option<&[f64]>, plan: &Plan) -> Result<Figures, MeasureError> {
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        let rounds = self.counted().count() as u32;
        if rounds == 0 {
            return Err(MeasureError::Interrupted);
        }
        let is_steady = self.is_steady(plan.steady_within);
        let rates = self.rates();
        let mut latency = run::histogram();
        let (mut ios, mut bytes, mut processor, mut elapsed) = (0, 0, Duration::ZERO, Duration::ZERO);
        for run in self.counted() {
            // All histograms have the same bounds, so adding cannot fail.
            let _ = latency.add(&run.latency);
            (ios, bytes) = (ios + run.ios, bytes + run.bytes);
            (processor, elapsed) = (processor + run.processor, elapsed + run.elapsed);
        }
        let joules = self.counted().map(|run| run.joules).sum::<Option<f64>>();
        let iops = Estimate::of(&rates);
        let bytes_per_io = bytes as f64 / (ios as f64).max(1.0);
        Ok(Figures {
            iops,
            iops_of_rounds: rates.clone(),
            mb_per_s: iops.value * bytes_per_io / 1e6,
            latency,
            processor_us_per_io: processor.as_secs_f64() * 1e6 / (ios as f64).max(1.0),
            joules_per_gb: joules.filter(|_| bytes > 0).map(|joules| joules / (bytes as f64 / 1e9)),
            ratio: first.map(|first| Estimate::of_ratio(&rates, first)),
            ios,
            rounds,
            is_steady,
            interrupted: self.runs.iter().any(|run| run.interrupted),
        })
    }
}

fn combine(all_runs: Vec<RouteRuns>, job: &Job, plan: &Plan) -> Vec<Row> {
    let mut first: Option<Vec<f64>> = None;
    let mut rows = Vec::new();
    // A route that was not begun has no row.
    for route_runs in
        all_runs.into_iter().filter(|route_runs| route_runs.error.is_some() || !route_runs.runs.is_empty())
    {
        let (route, rates) = (route_runs.route, route_runs.rates());
        let figures = route_runs.figures(first.as_deref(), plan);
        if figures.is_ok() && first.is_none() {
            first = Some(rates);
        }
        let RouteRuns { failures, error_counters, findings, .. } = route_runs;
        let (label, depth, part) = (job.label.clone(), job.depth, (job.offset_bytes, job.span_bytes));
        let fill = job.writes().then(|| job.fill.unwrap_or(plan.conditions.fill));
        rows.push(Row { route, label, depth, part, fill, failures, error_counters, findings, figures });
    }
    rows
}

impl MeasureError {
    /// Whether something failed: a transport that is not offered and an interruption by the user are no failures.
    pub const fn is_failure(&self) -> bool {
        !matches!(self, Self::Route(DeviceError { is_not_offered: true, .. }) | Self::Interrupted)
    }
}

impl fmt::Display for MeasureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Route(error) => error.fmt(f),
            Self::Run(error) => error.fmt(f),
            Self::Interrupted => f.write_str("interrupted before anything was counted"),
            Self::TooManyBlocks { blocks } => {
                write!(f, "cannot verify {blocks} blocks (maximum {LEDGER_BLOCKS_MAX}); reduce --size")
            }
        }
    }
}

impl std::error::Error for MeasureError {}

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;
