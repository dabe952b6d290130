//! Jobs on a few threads: each thread takes the next job when it has finished one.

use anyhow::{Result, bail};
use std::sync::Mutex;
use std::thread;

/// Returns the number of processors of this machine.
pub(crate) fn processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Runs each job on one of so many threads, the first ones first. Returns the results in the order of the jobs.
///
/// # Errors
///
/// The first job that could not run, or that panicked.
pub(crate) fn run<J: Sync, R: Send>(
    jobs: &[J],
    threads: usize,
    job: impl Fn(&J) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let waiting = Mutex::new(jobs.iter().enumerate());
    let next = || waiting.lock().ok().and_then(|mut jobs| jobs.next());
    let worker = || -> Result<Vec<(usize, R)>> {
        std::iter::from_fn(next).map(|(number, next)| Ok((number, job(next)?))).collect()
    };
    let mut results: Vec<(usize, R)> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(worker)).collect();
        let ended =
            workers.into_iter().map(|worker| worker.join().unwrap_or_else(|_| bail!("a job panicked")));
        ended.collect::<Result<Vec<_>>>()
    })?
    .into_iter()
    .flatten()
    .collect();
    results.sort_by_key(|(number, _)| *number);
    Ok(results.into_iter().map(|(_, result)| result).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_have_the_order_of_the_jobs() {
        let jobs: Vec<u64> = (0..50).collect();
        let results = run(&jobs, 3, |job| {
            thread::sleep(std::time::Duration::from_micros(job * 7 % 50));
            Ok(job * 2)
        });
        assert_eq!(results.unwrap(), jobs.iter().map(|job| job * 2).collect::<Vec<_>>());
    }

    #[test]
    fn a_job_that_cannot_run_is_an_error() {
        assert!(run(&[1, 2], 2, |job| if *job == 2 { bail!("no") } else { Ok(()) }).is_err());
    }
}
