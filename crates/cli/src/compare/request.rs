//! Parameters of a comparison: jobs, duration, seeds and number of threads.

use super::CompareArguments;
use crate::failure::Failure;
use crate::nearest;
use crate::progress::ProgressLines;
use crate::threads;
use rayon::ThreadPool;
use study::compare::Comparison;
use study::compare::runs::{self, JobRuns, RunRequest};
use study::measure::Stretch;
use study::trial::Terms;
use units::ByteCount;
use workload::{AccessSpec, Job};

const K: u32 = 1 << 10;

/// Runs each job on each column, on as many threads as the arguments allow.
pub(super) fn gather(
    arguments: &CompareArguments,
    comparison: Comparison<'_>,
    jobs: &[Job],
    wanted: RunRequest,
) -> Result<Vec<JobRuns>, Failure> {
    Ok(arguments
        .pool()?
        .install(|| runs::gather(comparison, jobs, wanted, &ProgressLines { quiet: arguments.quiet }))?)
}

/// Returns the jobs that the arguments request; by default those that articles about transports
/// measure.
pub(super) fn jobs(arguments: &CompareArguments) -> Result<Vec<Job>, Failure> {
    let depths = arguments.depths();
    let depths = depths.as_deref();
    if let Some(name) = &arguments.choice.workload {
        // Simulated drives have their own data set, and the payload does not matter to them.
        let workload = workload::named(name).map(workload::Workload::on_whole_drive).ok_or_else(|| {
            let names = workload::NAMES.iter().map(|(name, _)| *name);
            Failure::usage(format!("no such workload: `{name}`")).try_this(nearest::hint(
                name,
                "workloads",
                names,
            ))
        })?;
        let jobs = match depths {
            Some(depths) => workload.at_depths(depths).jobs,
            None => workload.jobs,
        };
        return Ok(jobs);
    }
    let read_percent = if arguments.write { 0 } else { 100 };
    if arguments.block.is_some() || arguments.write || depths.is_some() {
        let block = arguments.block.unwrap_or(ByteCount(4096));
        let bytes = u32::try_from(block.0).map_err(|_| {
            Failure::usage(format!("a request of {block} is too large")).because("the maximum is below 4 GiB")
        })?;
        let share = AccessSpec::all(bytes, read_percent, 100);
        return Ok(depths
            .unwrap_or(&[1, 2, 4, 8, 16, 32])
            .iter()
            .map(|depth| Job::of(share, *depth))
            .collect());
    }
    if arguments.is_observed() {
        // Two that overlap are what there is to see.
        return Ok(vec![Job::of(AccessSpec::all(4 * K, 100, 100), 2)]);
    }
    let usual = [
        (AccessSpec::all(4 * K, 100, 100), &[1, 2, 4, 8, 16, 32][..]),
        (AccessSpec::all(4 * K, 0, 100), &[1, 2, 4, 8, 16, 32]),
        (AccessSpec::all(512 * K, 100, 0), &[1, 2, 4]),
        (AccessSpec::all(512 * K, 0, 0), &[1, 2, 4]),
        (AccessSpec::all(2048 * K, 100, 0), &[1, 2, 4]),
        (AccessSpec::all(2048 * K, 0, 0), &[1, 2, 4]),
        (AccessSpec::all(8 * K, 80, 80), &[64]),
    ];
    let each = |(share, depths): (AccessSpec, &[u16])| {
        depths.iter().map(move |depth| Job::of(share, *depth)).collect()
    };
    Ok(usual.into_iter().flat_map::<Vec<Job>, _>(each).collect())
}

impl CompareArguments {
    /// Whether no argument says what to measure.
    pub(super) fn is_usual(&self) -> bool {
        self.choice.workload.is_none() && self.block.is_none() && self.depth.is_none() && !self.write
    }

    /// Returns the terms of the trials: everything requested except the workload.
    pub(super) fn terms(&self) -> Terms {
        let usual = Terms { seed: self.seed, explains: self.explain, ..Terms::USUAL };
        let Some(span) = self.seconds else { return usual };
        // Whatever comes in that time; a short one has a short beginning.
        let warm_up = usual.stretch.warm_up.min(span);
        Terms {
            stretch: Stretch { warm_up, span, requests: 1, bytes: u64::MAX, rounds: 0, caches: 0 },
            ..usual
        }
    }

    /// Returns the requested kind of runs: for a report, for saved results, or a single one.
    pub(super) const fn wanted(&self) -> RunRequest {
        match () {
            () if self.report.is_some() => RunRequest::REPORT,
            () if self.keeping.is_asked() => RunRequest::SAVED,
            () => RunRequest::ONCE,
        }
    }

    /// Threads for simulations; by default one per processor.
    pub(super) fn pool(&self) -> Result<ThreadPool, Failure> {
        threads::pool(self.threads)
    }

    const fn is_observed(&self) -> bool {
        self.trace.is_some() || self.capture.is_some() || self.timeline.is_some()
    }
}
