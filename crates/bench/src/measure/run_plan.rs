//! The accesses of one run, and when it ends.
//!
//! A run ends after its time; a job that moves its span once ([`Job::once`]) ends when as many
//! bytes were started as the span has and all of them have completed, warm-up included, as in fio.
//! Always true: no access is started that would exceed those bytes.

use super::run::RunConditions;
use crate::payload::Payload;
use std::time::Duration;
use workload::{Accesses, Job};

/// The plan of one run.
pub(super) struct RunPlan {
    pub(super) accesses: Accesses,
    pub(super) payload: Payload,
    pub(super) warm_up: Duration,
    /// Measured time; unlimited while there is data to move, unless given.
    pub(super) run: Option<Duration>,
    pub(super) writes: bool,
    once: Option<Once>,
}

/// Total bytes to move.
#[derive(Clone, Copy, Debug)]
struct Once {
    all: u64,
    left: u64,
}

impl RunPlan {
    pub(super) fn new(
        job: &Job,
        conditions: &RunConditions,
        accesses: Accesses,
        block_bytes: u32,
        payload: Payload,
    ) -> Self {
        let all = accesses.extent().blocks.0 * u64::from(block_bytes);
        let (run, warm_up) =
            if job.once { (None, Duration::ZERO) } else { (Some(conditions.run), conditions.warm_up) };
        Self {
            accesses,
            payload,
            warm_up: job.warm_up.unwrap_or(warm_up),
            run: job.run.or(run),
            writes: job.writes(),
            once: job.once.then_some(Once { all, left: all }),
        }
    }

    /// Whether an access of this size is still part of the run. After one that is not, none is.
    pub(super) fn accepts(&mut self, bytes: u64) -> bool {
        let Some(once) = &mut self.once else { return true };
        let left = once.left.checked_sub(bytes);
        once.left = left.unwrap_or(0);
        left.is_some()
    }

    /// Whether all bytes to move were started.
    pub(super) fn is_complete(&self) -> bool {
        self.once.is_some_and(|once| once.left == 0)
    }

    /// The expected length of the run, judged after this time; never zero.
    pub(super) fn expected_length(&self, elapsed: Duration) -> Duration {
        let by_time = self.run.map(|run| self.warm_up + run);
        let by_bytes = self.once.and_then(|Once { all, left }| {
            let times = all as f64 / all.saturating_sub(left).max(1) as f64;
            Duration::try_from_secs_f64(elapsed.as_secs_f64() * times).ok()
        });
        let least = by_time.into_iter().chain(by_bytes).min();
        least.unwrap_or(elapsed).max(Duration::from_nanos(1))
    }
}
