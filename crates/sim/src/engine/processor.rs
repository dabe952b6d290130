//! A processor that does one thing at a time.
//!
//! The firmware of a bridge looks at each command when it comes, and once more when it ends; a core of a host builds each
//! command, takes interrupts and completions, and tells the application. All of it takes some time, and while one thing is
//! done the others wait in line: that, and neither the link nor SATA, is what bounds small requests behind most bridges.
//! Left out: what hardware does beside it, and priorities.
//!
//! A processor takes whatever it is given; who gives it more than [`LINE_MAX`] things has to see to it that it stops.
//!
//! Always true: what was given first is done first; no two things are done at once.

use super::OccupancyStats;
use std::collections::VecDeque;
use units::{Duration, Instant};

/// The most things in line before it is too many ([`Processor::is_full`]). A core of 32 drives with 32 commands each, of three
/// transfers, has some thousands; a bridge has twice as many as its tags.
pub const LINE_MAX: usize = 1 << 16;

/// A processor with things of type `J` in line.
#[derive(Clone, Debug)]
pub struct Processor<J> {
    line: VecDeque<Waiting<J>>,
    /// When it is done with the first of them, or never: this is asked far more often than anything is done.
    next_at: Instant,
    level: OccupancyStats,
    busy: Duration,
}

/// Later than all that is done.
const NEVER: Instant = Instant::from_ps(u64::MAX);

#[derive(Clone, Debug)]
struct Waiting<J> {
    since: Instant,
    done_at: Instant,
    job: J,
}

impl<J> Processor<J> {
    /// A processor with nothing to do.
    pub fn new() -> Self {
        Self { line: VecDeque::new(), next_at: NEVER, level: OccupancyStats::default(), busy: Duration::ZERO }
    }

    /// Gives it something that takes so long.
    pub fn enqueue(&mut self, now: Instant, cost: Duration, job: J) {
        let free_at = self.line.back().map_or(now, |last| now.max(last.done_at));
        self.level.arrive(now);
        self.busy += cost;
        self.line.push_back(Waiting { since: now, done_at: free_at + cost, job });
        self.look_at_first();
    }

    /// What has been done by now.
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

    /// Takes the first thing of which this is true out of the line. What is behind it comes no earlier.
    pub fn withdraw(&mut self, now: Instant, is_it: impl Fn(&J) -> bool) -> Option<J> {
        let place = self.line.iter().position(|waiting| is_it(&waiting.job))?;
        let Waiting { since, job, .. } = self.line.remove(place)?;
        self.look_at_first();
        self.level.leave(now, since);
        Some(job)
    }

    /// When it is done with the next.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Instant> {
        (self.next_at < NEVER).then_some(self.next_at)
    }

    fn look_at_first(&mut self) {
        self.next_at = self.line.front().map_or(NEVER, |first| first.done_at);
    }

    /// Whether as many are in line as may be.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.line.len() >= LINE_MAX
    }

    /// How many are in line.
    pub const fn level(&self) -> &OccupancyStats {
        &self.level
    }

    /// What is in line, oldest first.
    pub fn jobs(&self) -> impl Iterator<Item = &J> {
        self.line.iter().map(|waiting| &waiting.job)
    }

    /// The same, to be changed. What each takes stays as it was given.
    pub fn jobs_mut(&mut self) -> impl Iterator<Item = &mut J> {
        self.line.iter_mut().map(|waiting| &mut waiting.job)
    }

    /// How long it has worked up to now.
    pub fn worked(&self, now: Instant) -> Duration {
        let ahead = self.line.back().map_or(Duration::ZERO, |last| last.done_at - now.min(last.done_at));
        Duration::from_ps(self.busy.as_ps() - ahead.as_ps())
    }

    /// How long it has worked, or will have when it is done with all in line.
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
    fn one_thing_is_done_after_the_other() {
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
