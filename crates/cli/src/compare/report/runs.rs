//! Runs of a report: each job on each column, with several seeds, and how long each request took.

use crate::compare::CompareArguments;
use crate::compare::choice::Column;
use crate::compare::run::one;
use crate::failure::Failure;
use crate::page::{Latency, Measured, Values};
use bench::measure::Estimate;
use rayon::prelude::*;
use sim::engine::Digest;
use sim::parts::Catalogue;
use sim::trial::{Terms, Trial, Watch};
use std::cell::RefCell;
use std::rc::Rc;
use units::Duration;
use workload::Job;

/// What came of a job.
pub(super) struct Gathered {
    pub(super) job: Job,
    /// Of each column; none where the parts cannot do it.
    pub(super) of: Vec<Option<Runs>>,
}

/// What came of a job on a column.
pub(super) struct Runs {
    /// By seed; the first says where the time goes.
    pub(super) trials: Vec<Trial>,
    /// Of the requests of all seeds.
    latencies: Vec<Duration>,
}

/// Runs each job on each column with so many seeds, on all processors.
pub(super) fn gather(
    arguments: &CompareArguments,
    (columns, catalogue, terms): (&[Column], &Catalogue, &Terms),
    jobs: &[Job],
    seeds: u64,
) -> Result<Vec<Gathered>, Failure> {
    let run = |job: &Job, column: &Column, nth: u64| -> Result<Option<(Trial, Vec<Duration>)>, Failure> {
        let terms = Terms { seed: terms.seed.wrapping_add(nth), explains: nth == 0, ..*terms };
        let latencies = Rc::new(RefCell::new(Vec::new()));
        let watch = Watch { latencies: Some(Rc::clone(&latencies)), ..Watch::default() };
        let trial = one(column, job, (catalogue, &terms), watch)?;
        Ok(trial.map(|trial| (trial, latencies.take())))
    };
    let row = |job: &Job| {
        let of = columns.par_iter().map(|column| {
            let runs: Vec<_> =
                (0..seeds).into_par_iter().map(|nth| run(job, column, nth)).collect::<Result<_, _>>()?;
            let mut trials = Vec::new();
            let mut latencies = Vec::new();
            for (trial, of_run) in runs.into_iter().flatten() {
                trials.push(trial);
                latencies.extend(of_run);
            }
            Ok((!trials.is_empty()).then_some(Runs { trials, latencies }))
        });
        Ok(Gathered { job: job.clone(), of: of.collect::<Result<_, Failure>>()? })
    };
    arguments.pool()?.install(|| jobs.par_iter().map(row).collect())
}

impl Gathered {
    /// For the charts that all pages have.
    pub(super) fn measured(&self) -> Measured {
        Measured {
            job: self.job.clone(),
            of: self.of.iter().map(|runs| Some(runs.as_ref()?.values())).collect(),
        }
    }
}

impl Runs {
    fn values(&self) -> Values {
        let of = |value: fn(&Trial) -> f64| self.trials.iter().map(value).collect::<Vec<f64>>();
        let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len().max(1) as f64;
        Values {
            iops: Estimate::of(&of(|trial| trial.measured.iops())),
            mb_per_s: Estimate::of(&of(|trial| trial.measured.megabytes_per_second())),
            latency: Latency::of(self.latencies.iter().map(|latency| (latency.as_ps() as f64 / 1e6, 1))),
            watts: Some(mean(of(|trial| trial.spent.mean_watts()))),
            joules_per_gb: Some(mean(of(|trial| trial.spent.joules_per_gigabyte(trial.measured.bytes)))),
        }
    }
}

/// One digest of all runs, in their order.
pub(super) fn digest(gathered: &[Gathered]) -> String {
    let mut digest = Digest::default();
    let trials = gathered.iter().flat_map(|row| row.of.iter().flatten().flat_map(|runs| &runs.trials));
    trials.for_each(|trial| digest.mix(trial.digest));
    format!("{:016x}", digest.value())
}
