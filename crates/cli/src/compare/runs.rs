//! Runs of a comparison: each job on each column, with one seed or several, and how long each request took if anybody asks.
//!
//! Always true: the first seed is the one that was asked for, and others change nothing about its run.

use super::CompareArguments;
use super::choice::Column;
use super::report;
use super::run::{Row, one};
use crate::failure::Failure;
use crate::page::{Latency, Measured, Values};
use crate::progress;
use bench::measure::Estimate;
use indicatif::ProgressBar;
use rayon::prelude::*;
use sim::engine::Digest;
use std::cell::RefCell;
use std::rc::Rc;
use study::parts::Catalogue;
use study::trial::{Terms, Trial, Watch};
use units::Duration;
use workload::Job;

/// Seeds of what is reported or kept.
pub(super) const SEEDS: u64 = 5;

/// What is asked of runs besides their terms.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// From the one of the terms on.
    pub(super) seeds: u64,
    /// Where the time goes in the jobs of which a report tells it, with all seeds, whatever the terms say.
    pub(super) explains: bool,
    /// How long each request took.
    pub(super) latencies: bool,
    /// What the runs are for, in a word, if somebody waits for them; nothing is shown of others.
    pub(super) told: Option<&'static str>,
}

/// What came of a job.
pub(super) struct Gathered {
    pub(super) job: Job,
    /// Of each column.
    pub(super) of: Vec<Runs>,
}

/// What came of a job on a column.
#[derive(Default)]
pub(super) struct Runs {
    /// By seed, at least one.
    pub(super) trials: Vec<Trial>,
    /// Of the requests of all seeds; none if nobody asked.
    latencies: Vec<Duration>,
}

impl Wanted {
    /// One run of each, and its figures.
    pub(super) const ONCE: Self = Self { seeds: 1, explains: false, latencies: false, told: None };

    /// What a report shows.
    pub(super) const REPORT: Self =
        Self { seeds: SEEDS, explains: true, latencies: true, told: Some("report") };

    /// What a report shows of blocks.
    pub(super) const BLOCKS: Self = Self { told: Some("blocks"), ..Self::ONCE };

    /// What is kept of a run without a report: as many seeds, so that it can be held against another with the spread of both.
    pub(super) const KEPT: Self = Self { seeds: SEEDS, latencies: true, told: Some("runs"), ..Self::ONCE };
}

/// A job on a column with one seed, and how long its requests took if that is wanted.
pub(super) fn look(
    column: &Column,
    job: &Job,
    (catalogue, terms): (&Catalogue, &Terms),
    (watch, has_latencies): (Watch, bool),
) -> Result<Runs, Failure> {
    let latencies = Rc::new(RefCell::new(Vec::new()));
    let kept = has_latencies.then(|| Rc::clone(&latencies));
    let trial = one(column, job, (catalogue, terms), Watch { latencies: kept, ..watch })?;
    Ok(Runs { trials: vec![trial], latencies: latencies.take() })
}

/// Runs each job on each column with each seed, on all processors.
pub(super) fn gather(
    arguments: &CompareArguments,
    (columns, catalogue, terms): (&[Column], &Catalogue, &Terms),
    jobs: &[Job],
    wanted: Wanted,
) -> Result<Vec<Gathered>, Failure> {
    let bar =
        wanted.told.map(|what| progress::of_runs(what, jobs.len() * columns.len() * wanted.seeds as usize));
    let told = if wanted.explains { report::explained(jobs) } else { Vec::new() };
    let run = |(job, is_told): (&Job, bool), column: &Column, nth: u64| {
        let explains = is_told || nth == 0 && terms.explains;
        let terms = Terms { seed: terms.seed.wrapping_add(nth), explains, ..*terms };
        let runs = look(column, job, (catalogue, &terms), (Watch::default(), wanted.latencies));
        bar.iter().for_each(|bar| bar.inc(1));
        runs
    };
    let row = |(place, job): (usize, &Job)| {
        let is_told = told.contains(&place);
        let of = columns.par_iter().map(|column| {
            let seeds = (0..wanted.seeds).into_par_iter().map(|nth| run((job, is_told), column, nth));
            let runs: Vec<Runs> = seeds.collect::<Result<_, Failure>>()?;
            Ok(runs.into_iter().fold(Runs::default(), Runs::and))
        });
        Ok(Gathered { job: job.clone(), of: of.collect::<Result<_, Failure>>()? })
    };
    let gathered = arguments.pool()?.install(|| jobs.par_iter().enumerate().map(row).collect());
    bar.iter().for_each(ProgressBar::finish_and_clear);
    gathered
}

impl Gathered {
    /// The figures of the first seed; they say where the time goes if they are asked to.
    pub(super) fn row(&self, explains: bool) -> Row {
        let first = |runs: &Runs| {
            let trial = runs.trials[0].clone();
            Trial { explained: trial.explained.filter(|_| explains), ..trial }
        };
        Row { job: self.job.clone(), trials: self.of.iter().map(first).collect() }
    }

    /// For the charts that all pages have.
    pub(super) fn measured(&self) -> Measured {
        Measured { job: self.job.clone(), of: self.of.iter().map(|runs| Some(runs.values())).collect() }
    }
}

impl Runs {
    /// These and the runs of other seeds.
    fn and(mut self, others: Self) -> Self {
        self.trials.extend(others.trials);
        self.latencies.extend(others.latencies);
        self
    }

    /// A figure of each seed.
    pub(super) fn each(&self, value: fn(&Trial) -> f64) -> Vec<f64> {
        self.trials.iter().map(value).collect()
    }

    /// Of the requests of all seeds.
    pub(super) fn latency(&self) -> Latency {
        Latency::of(self.latencies.iter().map(|latency| (super::kept::us(*latency), 1)))
    }

    /// One number for what has happened with all seeds: that of the run, if there is one.
    pub(super) fn digest(&self) -> u64 {
        match self.trials.as_slice() {
            [one] => one.digest,
            all => mixed(all.iter()),
        }
    }

    fn values(&self) -> Values {
        let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len().max(1) as f64;
        Values {
            iops: Estimate::of(&self.each(|trial| trial.measured.iops())),
            mb_per_s: Estimate::of(&self.each(|trial| trial.measured.megabytes_per_second())),
            latency: self.latency(),
            watts: Some(mean(self.each(|trial| trial.spent.mean_watts()))),
            joules_per_gb: Some(mean(
                self.each(|trial| trial.spent.joules_per_gigabyte(trial.measured.bytes)),
            )),
        }
    }
}

/// One digest of all runs, in their order.
pub(super) fn digest(gathered: &[Gathered]) -> String {
    let trials = gathered.iter().flat_map(|row| row.of.iter().flat_map(|runs| &runs.trials));
    format!("{:016x}", mixed(trials))
}

fn mixed<'a>(trials: impl Iterator<Item = &'a Trial>) -> u64 {
    let mut digest = Digest::default();
    trials.for_each(|trial| digest.mix(trial.digest));
    digest.value()
}
