//! One run: a job on a runner, at its depth, for a time or until its part of the drive was moved once.
//!
//! The warm-up comes first and counts for nothing, until the first access ends at its end or later. From that end on accesses count, until
//! the first that ends when the time is over or later. The time of a rate so lies between ends of accesses: else each run would lose a part of
//! one, always the same, since all begin with an idle drive; and a drive that stalls when the time is over has all of that counted. Then
//! those under way are waited for, and count for nothing again. Where all was moved nothing is under way any more, and if that was within
//! the warm-up, all of it counts, as with fio. The latency of an access is from just before it is started to when
//! its end is seen. An access that fails is counted as a failure and is no I/O. After writes comes a flush, which counts for nothing
//! either: a drive tells of what it has lost of its cache by then. A write that is lost so is a failure. Where a [`Ledger`] is kept, writes are
//! stamped, reads are checked, and no access overlaps one under way.
//!
//! Always true: nothing is allocated per access in steady state; the caller is asked some times a second whether to go on.

use super::energy::{Energy, Meter};
use super::run_plan::RunPlan;
use crate::backend::{AccessError, BufferLayout, CompletedAccess, DeviceError, ErrorCounters, Runner};
use crate::payload::Payload;
use crate::verify::Ledger;
use hdrhistogram::Histogram;
use initiator::disk;
use rustix::time::ClockId;
use std::fmt;
use std::time::{Duration, Instant};
use units::Extent;
use workload::{Access, AccessKind, Accesses, Fill, Job, JobError};

/// How long a runner waits before it looks around.
const POLL_TIMEOUT: Duration = Duration::from_millis(20);

/// How often the caller is asked.
pub(super) const TICK: Duration = Duration::from_millis(50);

/// How long what is under way at the end is waited for where somebody waits for it; else for as long as its runner may try.
const INTERRUPTED_DRAIN_MAX: Duration = Duration::from_secs(10);

/// Kinds of failures that are kept apart; all are counted.
const FAILURE_KINDS_MAX: usize = 16;

/// The longest latency that is told from longer ones, in nanoseconds.
const LATENCY_NS_MAX: u64 = 120_000_000_000;

/// Places that are drawn anew since they overlap an access under way, before the slot waits.
const DRAWS_MAX: u32 = 16;

/// How what was written is read back.
const READ_BACK_BYTES: u32 = 64 << 10;
const READ_BACK_DEPTH: u16 = 4;

/// How one run is made.
#[derive(Clone, Copy, Debug)]
pub struct RunConditions {
    /// What counts, and until one more access has ended.
    pub run: Duration,
    /// What comes before it.
    pub warm_up: Duration,
    /// What is written.
    pub fill: Fill,
    /// Where places and payload come from.
    pub seed: u64,
}

/// What one run has brought.
#[derive(Clone, Debug)]
pub struct Run {
    /// Accesses that ended well within the time.
    pub ios: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The time, from an end of accesses, or the begin where there is no warm-up, to the last one that counts.
    pub elapsed: Duration,
    /// Their latencies, in nanoseconds.
    pub latency: Histogram<u64>,
    /// Processor time of this process meanwhile.
    pub processor: Duration,
    /// Energy of the processor packages meanwhile.
    pub joules: Option<f64>,
    /// What failed, in the warm-up and at the end as well.
    pub failures: Failures,
    /// What went wrong below, likewise.
    pub troubles: ErrorCounters,
    /// The caller has ended it early.
    pub interrupted: bool,
}

/// Accesses that failed, by reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failures {
    /// All of them.
    pub count: u64,
    /// The first kinds, each with how many there were.
    pub kinds: Vec<(AccessError, u64)>,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Since its begin, warm-up included.
    pub elapsed: Duration,
    /// How long it will be.
    pub whole: Duration,
    /// Accesses that have ended well.
    pub ios: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Accesses that have failed.
    pub failures: u64,
}

/// Whoever looks at a run.
pub trait ProgressSink {
    /// How far it is; `false` ends it.
    fn tick(&mut self, progress: Progress) -> bool;
}

/// Why there are no figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunError {
    /// The job does not fit the drive.
    Job(JobError),
    /// The runner cannot go on.
    BenchDevice(DeviceError),
    /// The drive is gone, or cannot be brought to work again.
    Gone(AccessError),
    /// Accesses do not end.
    Stuck {
        /// How many.
        in_flight: usize,
    },
    /// The flush after writes does not end.
    Unflushed,
}

/// A run that has come to nothing, and what went wrong until then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedRun {
    /// Why.
    pub why: RunError,
    /// What failed.
    pub failures: Failures,
    /// What went wrong below.
    pub troubles: ErrorCounters,
}

/// Runs a job.
///
/// # Errors
/// Why there are no figures.
pub fn run(
    runner: &mut dyn Runner,
    job: &Job,
    conditions: &RunConditions,
    context: RunContext<'_>,
) -> Result<Run, Box<FailedRun>> {
    let accesses =
        Accesses::new(job, runner.block_size(), runner.capacity(), conditions.seed).map_err(RunError::Job)?;
    runner.prepare(job.depth, job.bytes_max()).map_err(RunError::BenchDevice)?;
    let fill = job.fill.unwrap_or(conditions.fill);
    let payload = Payload::new(fill, job.bytes_max(), job.reads(), conditions.seed);
    let mut load = Load::new(runner, context, job.depth);
    if job.writes() {
        (0..job.depth).for_each(|slot| payload.prepare(load.runner.memory(slot)));
    }
    let accesses = (accesses, load.runner.block_size().bytes());
    let run_plan = RunPlan::new(job, conditions, accesses, payload);
    let ended = load.measure(run_plan);
    load.told(ended)
}

/// Reads everything back that a ledger has stamped. The runner must have room for it.
///
/// # Errors
/// Why that was not possible.
pub fn read_back(
    runner: &mut dyn Runner,
    ledger: &mut Ledger,
    watch: &mut dyn ProgressSink,
) -> Result<(Failures, ErrorCounters), Box<FailedRun>> {
    runner.prepare(READ_BACK_DEPTH, READ_BACK_BYTES).map_err(RunError::BenchDevice)?;
    let blocks_max = u64::from(READ_BACK_BYTES / runner.block_size().bytes());
    ledger.begin_reading_back();
    let mut load =
        Load::new(runner, RunContext { ledger: Some(ledger), watch, energy: None }, READ_BACK_DEPTH);
    let ended = load.read_back(blocks_max);
    load.told(ended).map(|()| (load.take_failures(), load.error_counters()))
}

/// BufferLayout for a job, and for reading back what it has written.
pub(super) fn with_read_back_buffers(room: BufferLayout) -> BufferLayout {
    BufferLayout { slots: room.slots.max(READ_BACK_DEPTH), bytes: room.bytes.max(READ_BACK_BYTES) }
}

/// Who and what is there besides the runner.
pub struct RunContext<'a> {
    /// What blocks must hold, if that is checked.
    pub ledger: Option<&'a mut Ledger>,
    /// Whoever looks on.
    pub watch: &'a mut dyn ProgressSink,
    /// Meters of energy.
    pub energy: Option<&'a Energy>,
}

/// Accesses under way.
struct Load<'r, 's> {
    runner: &'r mut dyn Runner,
    context: RunContext<'s>,
    meter: Option<Meter<'s>>,
    idle: Vec<u16>,
    in_flight: Vec<Option<(Access, Instant)>>,
    /// The slot of the flush under way.
    flush: Option<u16>,
    began: Instant,
    /// When one of them has ended last.
    heard: Instant,
    ticked: Instant,
    block_bytes: u64,
    latency: Histogram<u64>,
    ios: u64,
    bytes: u64,
    failures: Failures,
    /// What the runner had told before.
    initial_error_counters: ErrorCounters,
    final_fault: Option<AccessError>,
    /// Lost writes that are among the failures.
    lost_reported: u64,
}

impl<'r, 's> Load<'r, 's> {
    fn new(runner: &'r mut dyn Runner, context: RunContext<'s>, depth: u16) -> Self {
        let now = runner.now();
        Self {
            block_bytes: runner.block_size().bytes().into(),
            initial_error_counters: runner.initial_error_counters(),
            runner,
            meter: context.energy.map(|energy| Meter::new(energy, now)),
            context,
            idle: (0..depth).rev().collect(),
            in_flight: vec![None; depth.into()],
            flush: None,
            began: now,
            heard: now,
            ticked: now,
            latency: histogram(),
            ios: 0,
            bytes: 0,
            failures: Failures::default(),
            final_fault: None,
            lost_reported: 0,
        }
    }

    /// What has ended so, with what went wrong until then if it broke off.
    fn told<T>(&mut self, ended: Result<T, RunError>) -> Result<T, Box<FailedRun>> {
        ended.map_err(|why| {
            let failures = self.take_failures();
            Box::new(FailedRun { why, failures, troubles: self.error_counters() })
        })
    }

    /// All that failed, lost writes that nobody has kept among them.
    fn take_failures(&mut self) -> Failures {
        self.count_lost_writes();
        self.failures.count += self.error_counters().lost_writes.saturating_sub(self.lost_reported);
        std::mem::take(&mut self.failures)
    }

    fn error_counters(&self) -> ErrorCounters {
        self.runner.error_counters().since(self.initial_error_counters)
    }

    /// Writes over the memory that is to be read into: it may still hold what the blocks should have.
    fn poison(&mut self, slot: u16, extent: Extent) {
        let bytes = (extent.blocks.0 * self.block_bytes) as usize;
        if let Some(memory) = self.runner.memory(slot).get_mut(..bytes) {
            memory.fill(0x5a);
        }
    }

    fn read_back(&mut self, blocks_max: u64) -> Result<(), RunError> {
        let (mut next, mut goes_on) = (0, true);
        while goes_on && self.fill_from_ledger(&mut next, blocks_max) {
            self.check_that_they_end(None)?;
            self.run_once()?;
            goes_on = self.tick(Duration::ZERO);
        }
        self.drain(goes_on, Duration::ZERO)
    }

    /// Starts to read stamped blocks from `next` on in all slots that have nothing under way; `false` if there are no more.
    fn fill_from_ledger(&mut self, next: &mut u64, blocks_max: u64) -> bool {
        while let Some(slot) = self.idle.pop() {
            let ledger = self.context.ledger.as_ref();
            let Some(extent) = ledger.and_then(|ledger| ledger.next_written(*next, blocks_max)) else {
                self.idle.push(slot);
                return false;
            };
            *next = extent.lba.0 + extent.blocks.0;
            self.poison(slot, extent);
            self.start(slot, Access { kind: AccessKind::Read, extent });
        }
        true
    }

    fn measure(&mut self, mut run_plan: RunPlan) -> Result<Run, RunError> {
        let begin = self.marks(self.began);
        let mut from = None;
        let mut goes_on = true;
        loop {
            let now = self.runner.now();
            if run_plan.is_complete() && self.is_quiet() {
                from.get_or_insert(begin);
                break;
            }
            if from.is_none() && self.heard - self.began >= run_plan.warm_up {
                self.forget();
                from = Some(self.marks(self.heard));
            }
            if self.is_over(now, from.as_ref().map(|from| from.at), &run_plan) || !goes_on {
                break;
            }
            self.fill(&mut run_plan);
            self.run_once()?;
            goes_on = self.tick(run_plan.whole(now - self.began));
        }
        let to = self.marks(self.heard);
        let whole = run_plan.whole(to.at - self.began);
        let (ios, bytes, latency) = (self.ios, self.bytes, std::mem::replace(&mut self.latency, histogram()));
        self.drain(goes_on, whole)?;
        if run_plan.writes {
            self.flush(goes_on, whole)?;
        }
        // CompletedAccess within the warm-up: nothing counts.
        let counted = from.is_some();
        let from = from.unwrap_or(to);
        Ok(Run {
            ios: if counted { ios } else { 0 },
            bytes: if counted { bytes } else { 0 },
            elapsed: to.at - from.at,
            latency: if counted { latency } else { histogram() },
            processor: to.processor.saturating_sub(from.processor),
            joules: from.joules.zip(to.joules).map(|(from, to)| to - from),
            failures: self.take_failures(),
            troubles: self.error_counters(),
            interrupted: !goes_on,
        })
    }

    /// Whether enough was counted: one has ended when the time was over. A rate of nothing says nothing, so that a run that is shorter than
    /// an access, or during which the processor was somebody else's, goes on until then. Once its time is over, or if it has no time to
    /// keep, it is over as well when none ends any more.
    fn is_over(&self, now: Instant, from: Option<Instant>, run_plan: &RunPlan) -> bool {
        let is_counted = |wanted| from.is_some_and(|from| self.heard > from && self.heard - from >= wanted);
        let is_time_over = run_plan.run.is_none_or(|wanted| now - self.began >= run_plan.warm_up + wanted);
        let is_silent = || now - self.heard >= self.runner.access_max();
        run_plan.run.is_some_and(is_counted) || (is_time_over && is_silent())
    }

    /// The warm-up is over.
    fn forget(&mut self) {
        (self.ios, self.bytes) = (0, 0);
        self.latency.reset();
    }

    /// Starts accesses in all slots that have none.
    fn fill(&mut self, run_plan: &mut RunPlan) {
        while !run_plan.is_complete()
            && let Some(slot) = self.idle.pop()
        {
            let drawn = self.draw(&mut run_plan.accesses);
            let Some(access) =
                drawn.filter(|access| run_plan.takes(access.extent.blocks.0 * self.block_bytes))
            else {
                return self.idle.push(slot);
            };
            let bytes = (access.extent.blocks.0 * self.block_bytes) as usize;
            if access.kind == AccessKind::Write {
                let memory = &mut self.runner.memory(slot)[..bytes];
                match &mut self.context.ledger {
                    Some(ledger) => ledger.stamp(access.extent, memory),
                    None => run_plan.payload.renew(memory),
                }
            }
            self.start(slot, access);
        }
    }

    /// The next access; with a ledger, one that does not overlap those under way.
    fn draw(&self, accesses: &mut Accesses) -> Option<Access> {
        if self.context.ledger.is_none() {
            return Some(accesses.draw());
        }
        let is_taken =
            |extent: Extent| self.in_flight.iter().flatten().any(|(other, _)| other.extent.overlaps(extent));
        (0..DRAWS_MAX).map(|_| accesses.draw()).find(|access| !is_taken(access.extent))
    }

    fn start(&mut self, slot: u16, access: Access) {
        self.in_flight[usize::from(slot)] = Some((access, self.runner.now()));
        self.runner.start(slot, access);
    }

    /// Waits, and takes what has ended.
    fn run_once(&mut self) -> Result<(), RunError> {
        self.runner.run_once(POLL_TIMEOUT).map_err(RunError::BenchDevice)?;
        let now = self.runner.now();
        while let Some(ended) = self.runner.poll() {
            self.end(now, ended);
        }
        self.count_lost_writes();
        self.final_fault.map_or(Ok(()), |fault| Err(RunError::Gone(fault)))
    }

    /// Counts writes that had ended well, and have not.
    fn count_lost_writes(&mut self) {
        while let Some(lost) = self.runner.poll_lost() {
            self.lost_reported += 1;
            self.failures.count(AccessError::Disk(disk::Error::LostWrite(lost)), 1);
        }
    }

    fn end(&mut self, now: Instant, ended: CompletedAccess) {
        if self.flush == Some(ended.slot) {
            return self.end_flush(ended);
        }
        let Some((access, started)) = self.in_flight[usize::from(ended.slot)].take() else { return };
        self.idle.push(ended.slot);
        self.heard = now;
        let bytes = access.extent.blocks.0 * self.block_bytes;
        if let Some(ledger) = &mut self.context.ledger {
            match access.kind {
                AccessKind::Write => ledger.written(access.extent, ended.result.is_ok()),
                AccessKind::Read if ended.result.is_ok() => {
                    ledger.check(access.extent, &self.runner.memory(ended.slot)[..bytes as usize]);
                }
                AccessKind::Read => {}
            }
        }
        match ended.result {
            Ok(()) => {
                self.ios += 1;
                self.bytes += bytes;
                self.latency.saturating_record((now - started).as_nanos() as u64);
            }
            Err(fault) => {
                self.failures.count(fault, 1);
                // What follows it in the same turn is of no more weight.
                self.final_fault = self.final_fault.or(Some(fault).filter(AccessError::is_final));
            }
        }
    }

    /// Asks whether to go on, if it is time.
    fn tick(&mut self, whole: Duration) -> bool {
        let now = self.runner.now();
        if now - self.ticked < TICK {
            return true;
        }
        self.ticked = now;
        if let Some(meter) = &mut self.meter {
            meter.keep_up(now);
        }
        let progress = Progress {
            elapsed: now - self.began,
            whole,
            ios: self.ios,
            bytes: self.bytes,
            failures: self.failures.count,
        };
        self.context.watch.tick(progress)
    }

    /// Waits for what is under way. As long as somebody has time for it, one may take its whole patience after another.
    fn drain(&mut self, mut goes_on: bool, whole: Duration) -> Result<(), RunError> {
        let soon = |load: &Self| load.runner.now() + INTERRUPTED_DRAIN_MAX;
        let mut until = (!goes_on).then(|| soon(self));
        while !self.is_quiet() {
            self.check_that_they_end(until)?;
            self.run_once()?;
            if goes_on && !self.tick(whole) {
                (goes_on, until) = (false, Some(soon(self)));
            }
        }
        Ok(())
    }

    /// Fails if none has ended for longer than one may take, or if that was to be by now.
    fn check_that_they_end(&self, until: Option<Instant>) -> Result<(), RunError> {
        let now = self.runner.now();
        if until.is_some_and(|until| now >= until) || now - self.heard >= self.runner.access_max() {
            return Err(RunError::Stuck { in_flight: self.in_flight.iter().flatten().count() });
        }
        Ok(())
    }

    /// Brings what was written to the medium, so that what is lost on the way is heard of.
    fn flush(&mut self, goes_on: bool, whole: Duration) -> Result<(), RunError> {
        let Some(slot) = self.idle.pop() else { return Ok(()) };
        let began = self.runner.now();
        let mut patience = if goes_on { self.runner.flush_max() } else { INTERRUPTED_DRAIN_MAX };
        self.flush = Some(slot);
        self.runner.start_flush(slot);
        while self.flush.is_some() {
            let waited = self.runner.now() - began;
            if waited >= patience {
                return Err(RunError::Unflushed);
            }
            self.run_once()?;
            if !self.tick(whole) {
                patience = patience.min(waited + INTERRUPTED_DRAIN_MAX);
            }
        }
        Ok(())
    }

    fn end_flush(&mut self, ended: CompletedAccess) {
        self.idle.extend(self.flush.take());
        match ended.result {
            // Whoever tells of one at the flush has told of each by itself.
            Ok(()) | Err(AccessError::Disk(disk::Error::LostWrite(_))) => {}
            Err(fault) => {
                let fault = fault.of_flush();
                self.failures.count(fault, 1);
                self.final_fault = self.final_fault.or(Some(fault).filter(AccessError::is_final));
            }
        }
    }

    /// Of a moment that has just been.
    fn marks(&mut self, at: Instant) -> Marks {
        let spent = rustix::time::clock_gettime(ClockId::ProcessCPUTime);
        let processor = Duration::new(spent.tv_sec as u64, spent.tv_nsec as u32);
        Marks { at, processor, joules: self.meter.as_mut().and_then(|meter| meter.joules(self.runner.now())) }
    }

    fn is_quiet(&self) -> bool {
        self.idle.len() == self.in_flight.len()
    }
}

/// Clocks and meters at one moment.
#[derive(Clone, Copy, Debug)]
struct Marks {
    at: Instant,
    processor: Duration,
    joules: Option<f64>,
}

impl Failures {
    fn count(&mut self, fault: AccessError, count: u64) {
        self.count += count;
        if let Some((_, known)) = self.kinds.iter_mut().find(|(known, _)| *known == fault) {
            *known += count;
        } else if self.kinds.len() < FAILURE_KINDS_MAX {
            self.kinds.push((fault, count));
        }
    }

    /// Adds those of another run.
    pub fn add(&mut self, other: &Self) {
        let told: u64 = other.kinds.iter().map(|(_, count)| count).sum();
        other.kinds.iter().for_each(|(fault, count)| self.count(*fault, *count));
        self.count += other.count - told;
    }
}

/// Latencies to three digits.
pub(super) fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3)
        .expect("the bounds are in order and three digits are allowed")
}

impl From<RunError> for Box<FailedRun> {
    /// Of a run that did not begin.
    fn from(why: RunError) -> Self {
        Self::new(FailedRun { why, failures: Failures::default(), troubles: ErrorCounters::NONE })
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Job(error) => error.fmt(f),
            Self::BenchDevice(error) => error.fmt(f),
            Self::Gone(fault) => write!(f, "the drive is lost: {fault}"),
            Self::Stuck { in_flight } => write!(f, "{in_flight} requests do not end"),
            Self::Unflushed => f.write_str("the flush after writes does not end"),
        }
    }
}

impl std::error::Error for RunError {}
