//! A processor that serves jobs one at a time, in order.
//!
//! Bridge firmware handles each command on arrival and on completion; a host core builds commands,
//! takes interrupts and completions and calls the application back. Each job takes time and the
//! others queue: behind most bridges this, not the link or SATA, limits small requests. Left out:
//! concurrent hardware, priorities.
//!
//! `enqueue` never fails; the caller stops the machine when [`Processor::is_full`].
//!
//! Invariants: jobs are served in FIFO order; one job is served at a time.

use super::OccupancyStats;
use std::collections::VecDeque;
use units::{Duration, Instant};

/// Queue length at which a processor counts as full ([`Processor::is_full`]). A core with 32
/// drives, 32 commands each and three transfers per command has several thousand jobs; a bridge has
/// twice its tags.
pub const LINE_MAX: usize = 1 << 16;

/// A processor with jobs of type `J`.
#[derive(Clone, Debug)]
pub struct Processor<J> {
    line: VecDeque<Waiting<J>>,
    /// Completion time of the first job, or never. Cached, since it is read far more often than it
    /// changes.
    next_at: Instant,
    level: OccupancyStats,
    busy: Duration,
}

/// Later than any job.
const NEVER: Instant = Instant::from_ps(u64::MAX);

#[derive(Clone, Debug)]
struct Waiting<J> {
    since: Instant,
    done_at: Instant,
    job: J,
}

impl<J> Processor<J> {
    /// Creates an idle processor.
    pub fn new() -> Self {
        Self { line: VecDeque::new(), next_at: NEVER, level: OccupancyStats::default(), busy: Duration::ZERO }
    }

    /// Appends a job that takes `cost`.
    pub fn enqueue(&mut self, now: Instant, cost: Duration, job: J) {
        let free_at = self.line.back().map_or(now, |last| now.max(last.done_at));
        self.level.arrive(now);
        self.busy += cost;
        self.line.push_back(Waiting { since: now, done_at: free_at + cost, job });
        self.look_at_first();
    }

    /// Returns the next job that has completed by `now`.
    #[inline]
    pub fn poll_done(&mut self, now: Instant) -> Option<J> {
        if self.next_at > now { None } else { self.take_first(now) }
    }

    fn take_first(&mut self, now: Instant) -> Option<J> {
        let Waiting { since, job, .. } = self.line.pop_front()?;
        self.look_at_first();
        self.level.leave(now, since);
        Some(job)
    }

    /// Removes the first job for which the predicate holds. Later jobs do not move forward in time.
    pub fn withdraw(&mut self, now: Instant, is_it: impl Fn(&J) -> bool) -> Option<J> {
        let place = self.line.iter().position(|waiting| is_it(&waiting.job))?;
        let Waiting { since, job, .. } = self.line.remove(place)?;
        self.look_at_first();
        self.level.leave(now, since);
        Some(job)
    }

    /// Returns the completion time of the next job.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Instant> {
        (self.next_at < NEVER).then_some(self.next_at)
    }

    fn look_at_first(&mut self) {
        self.next_at = self.line.front().map_or(NEVER, |first| first.done_at);
    }

    /// Returns whether the queue has reached [`LINE_MAX`].
    #[inline]
    pub fn is_full(&self) -> bool {
        self.line.len() >= LINE_MAX
    }

    /// Returns the occupancy statistics of the queue.
    pub const fn level(&self) -> &OccupancyStats {
        &self.level
    }

    /// Iterates over the queued jobs, oldest first.
    pub fn jobs(&self) -> impl Iterator<Item = &J> {
        self.line.iter().map(|waiting| &waiting.job)
    }

    /// Like [`Self::jobs`], mutable. The service times do not change.
    pub fn jobs_mut(&mut self) -> impl Iterator<Item = &mut J> {
        self.line.iter_mut().map(|waiting| &mut waiting.job)
    }

    /// Returns the busy time up to `now`.
    pub fn worked(&self, now: Instant) -> Duration {
        let ahead = self.line.back().map_or(Duration::ZERO, |last| last.done_at - now.min(last.done_at));
        Duration::from_ps(self.busy.as_ps() - ahead.as_ps())
    }

    /// Returns the busy time including all queued jobs.
    pub const fn busy(&self) -> Duration {
        self.busy
    }
}

impl<J> Default for Processor<J> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(us: u64) -> Instant {
        Instant::from_ps(us * 1_000_000)
    }

    #[test]
    fn jobs_run_one_after_the_other() {
        let mut processor = Processor::new();
        processor.enqueue(at(0), Duration::from_us(10), 'a');
        processor.enqueue(at(2), Duration::from_us(5), 'b');
        assert_eq!((processor.poll_timeout(), processor.poll_done(at(9))), (Some(at(10)), None));
        assert_eq!((processor.poll_done(at(10)), processor.poll_done(at(10))), (Some('a'), None));
        assert_eq!((processor.poll_timeout(), processor.poll_done(at(15))), (Some(at(15)), Some('b')));
        processor.enqueue(at(100), Duration::from_us(1), 'c');
        assert_eq!(processor.poll_timeout(), Some(at(101)));
        assert_eq!(processor.busy(), Duration::from_us(16));
        assert!(processor.level().is_consistent(at(100)));
    }
}
