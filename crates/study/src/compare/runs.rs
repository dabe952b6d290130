//! Runs of a comparison: each job on each configuration with one or more seeds, optionally with
//! latencies.
//!
//! Always true: the first seed is the requested one, unaffected by the others.

use super::{Comparison, Configuration, Row, chart, one};
use crate::error::StudyError;
use crate::page::{Latency, Measured, Values};
use crate::parts::Catalogue;
use crate::progress::ProgressSink;
use crate::trial::{Terms, Trial, TrialObservers};
use rayon::prelude::*;
use sim::engine::Digest;
use std::rc::Rc;
use units::Duration;
use workload::{Estimate, Job};

/// Seeds of reports and saved runs.
pub const SEEDS: u64 = 5;

/// Options of a run besides the terms.
#[derive(Clone, Copy, Debug)]
pub struct RunRequest {
    /// Number of seeds, from the one of the terms on.
    pub seeds: u64,
    /// Explain stage times of the detailed jobs with all seeds.
    pub explains: bool,
    /// Record latencies.
    pub latencies: bool,
    /// Label of the progress display; none hides it.
    pub progress_label: Option<&'static str>,
}

/// Results of a job.
pub struct JobRuns {
    /// The job.
    pub job: Job,
    /// One per configuration.
    pub of: Vec<Runs>,
}

/// Results of a job on a configuration.
#[derive(Default)]
pub struct Runs {
    /// One per seed, at least one.
    pub trials: Vec<Trial>,
    /// Latencies of all seeds, if recorded.
    latencies: Vec<Duration>,
}

impl RunRequest {
    /// One seed, figures only.
    pub const ONCE: Self = Self { seeds: 1, explains: false, latencies: false, progress_label: None };

    /// For a report.
    pub const REPORT: Self =
        Self { seeds: SEEDS, explains: true, latencies: true, progress_label: Some("report") };

    /// For the block sizes of a report.
    pub const BLOCKS: Self = Self { progress_label: Some("blocks"), ..Self::ONCE };

    /// For a saved run without a report: several seeds, so that it can be compared with its spread.
    pub const SAVED: Self =
        Self { seeds: SEEDS, latencies: true, progress_label: Some("runs"), ..Self::ONCE };
}

/// Runs a job on a configuration with one seed. Returns the latencies as well if an observer records
/// them.
pub fn look(
    column: &Configuration,
    job: &Job,
    catalogue: &Catalogue,
    terms: &Terms,
    observers: TrialObservers,
) -> Result<Runs, StudyError> {
    let latencies = observers.latencies.clone();
    let trial = one(column, job, catalogue, terms, observers)?;
    Ok(Runs { trials: vec![trial], latencies: latencies.map_or_else(Vec::new, |latencies| latencies.take()) })
}

/// Runs each job on each configuration with each seed, on the current thread pool.
pub fn gather(
    comparison: Comparison<'_>,
    jobs: &[Job],
    wanted: RunRequest,
    sink: &dyn ProgressSink,
) -> Result<Vec<JobRuns>, StudyError> {
    let Comparison { columns, catalogue, terms } = comparison;
    let runs = jobs.len() * columns.len() * wanted.seeds as usize;
    let progress = wanted.progress_label.map(|what| sink.start(what, runs));
    let detailed =
        if wanted.explains { chart::detailed(&jobs.iter().collect::<Vec<_>>()).concat() } else { Vec::new() };
    let run = |(job, is_detailed): (&Job, bool), column: &Configuration, nth: u64| {
        let explains = is_detailed || nth == 0 && terms.explains;
        let terms = Terms { seed: terms.seed.wrapping_add(nth), explains, ..*terms };
        let latencies = wanted.latencies.then(Rc::default);
        let observers = TrialObservers { latencies, ..TrialObservers::default() };
        let runs = look(column, job, catalogue, &terms, observers);
        progress.iter().for_each(|progress| progress.advance());
        runs
    };
    let row = |(place, job): (usize, &Job)| {
        let is_detailed = detailed.contains(&place);
        let of = columns.par_iter().map(|column| {
            let seeds = (0..wanted.seeds).into_par_iter().map(|nth| run((job, is_detailed), column, nth));
            let runs: Vec<Runs> = seeds.collect::<Result<_, StudyError>>()?;
            Ok(runs.into_iter().fold(Runs::default(), Runs::and))
        });
        Ok(JobRuns { job: job.clone(), of: of.collect::<Result<_, StudyError>>()? })
    };
    jobs.par_iter().enumerate().map(row).collect()
}

impl JobRuns {
    /// Returns the figures of the first seed, with stage times on request.
    pub fn row(&self, explains: bool) -> Row {
        let first = |runs: &Runs| {
            let trial = runs.trials[0].clone();
            Trial { explained: trial.explained.filter(|_| explains), ..trial }
        };
        Row { job: self.job.clone(), trials: self.of.iter().map(first).collect() }
    }

    /// Converts to the input of the common charts.
    pub fn measured(&self) -> Measured {
        Measured { job: self.job.clone(), of: self.of.iter().map(|runs| Some(runs.values())).collect() }
    }
}

impl Runs {
    /// Merges the runs of other seeds.
    fn and(mut self, others: Self) -> Self {
        self.trials.extend(others.trials);
        self.latencies.extend(others.latencies);
        self
    }

    /// Returns a figure of each seed.
    pub fn each(&self, value: fn(&Trial) -> f64) -> Vec<f64> {
        self.trials.iter().map(value).collect()
    }

    /// Returns the latencies of all seeds.
    pub fn latency(&self) -> Latency {
        Latency::of(self.latencies.iter().map(|latency| (us(*latency), 1)))
    }

    /// Returns a digest over all seeds; that of the run if there is one.
    pub fn digest(&self) -> u64 {
        match self.trials.as_slice() {
            [one] => one.digest,
            all => mixed(all.iter()),
        }
    }

    /// The mean rate over seeds, in millions of bytes a second.
    pub(super) fn mb_per_s(&self) -> Estimate {
        Estimate::of(&self.each(|trial| trial.measured.megabytes_per_second()))
    }

    fn values(&self) -> Values {
        let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len().max(1) as f64;
        Values {
            iops: Estimate::of(&self.each(|trial| trial.measured.iops())),
            mb_per_s: self.mb_per_s(),
            latency: self.latency(),
            watts: Some(mean(self.each(|trial| trial.spent.mean_watts()))),
            joules_per_gb: Some(mean(
                self.each(|trial| trial.spent.joules_per_gigabyte(trial.measured.bytes)),
            )),
        }
    }
}

/// A time in microseconds.
pub fn us(time: Duration) -> f64 {
    time.as_ps() as f64 / 1e6
}

/// Returns a digest of all runs in order.
pub fn digest(gathered: &[JobRuns]) -> String {
    let trials = gathered.iter().flat_map(|row| row.of.iter().flat_map(|runs| &runs.trials));
    format!("{:016x}", mixed(trials))
}

fn mixed<'a>(trials: impl Iterator<Item = &'a Trial>) -> u64 {
    let mut digest = Digest::default();
    trials.for_each(|trial| digest.mix(trial.digest));
    digest.value()
}
