//! One run: a job on a runner at its depth, for a time or until its span was moved once.
//!
//! The warm-up is not counted and ends with the first completion after its time. From then on
//! accesses count, until the first completion after the measured time. So rates are taken between
//! completions: otherwise each run would lose part of an access, since all begin with an idle
//! drive, and a drive that stalls at the end of the time is measured with the whole stall. Accesses
//! in flight at the end are awaited and not counted. A job that moved everything has nothing in
//! flight; if that happened within the warm-up, all of it counts, as with fio. Latency is from just
//! before submission to when the completion is seen. A failed access counts as a failure, not as an
//! I/O. After writes comes an uncounted flush, by which a drive reports lost cached writes; those
//! are failures. With a [`Ledger`], writes are stamped, reads are checked, and no access overlaps
//! one in flight.
//!
//! Always true: nothing is allocated per access in steady state; the caller is asked several times
//! a second whether to continue.

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

/// How long a runner waits for a completion.
const POLL_TIMEOUT: Duration = Duration::from_millis(20);

/// How often the progress sink is called.
pub(super) const TICK: Duration = Duration::from_millis(50);

/// How long to wait for accesses in flight after an interruption; otherwise as long as the runner
/// may retry.
const INTERRUPTED_DRAIN_MAX: Duration = Duration::from_secs(10);

/// Distinct failures that are kept; all are counted.
const FAILURE_KINDS_MAX: usize = 16;

/// The longest recorded latency in nanoseconds.
const LATENCY_NS_MAX: u64 = 120_000_000_000;

/// How often an LBA that overlaps an access in flight is redrawn before the slot waits.
const DRAWS_MAX: u32 = 16;

/// How written data is read back.
const READ_BACK_BYTES: u32 = 64 << 10;
const READ_BACK_DEPTH: u16 = 4;

/// Conditions of one run.
#[derive(Clone, Copy, Debug)]
pub struct RunConditions {
    /// Measured time, until one more access completes.
    pub run: Duration,
    /// Warm-up time.
    pub warm_up: Duration,
    /// Payload of writes.
    pub fill: Fill,
    /// Random seed for LBAs and payload.
    pub seed: u64,
}

/// Results of one run.
#[derive(Clone, Debug)]
pub struct Run {
    /// Successful accesses within the measured time.
    pub ios: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Measured time: between completions, or from the start where there is no warm-up.
    pub elapsed: Duration,
    /// Latencies in nanoseconds.
    pub latency: Histogram<u64>,
    /// Processor time of this process over that time.
    pub processor: Duration,
    /// Energy of the processor packages over that time.
    pub joules: Option<f64>,
    /// Failures, those of warm-up and drain included.
    pub failures: Failures,
    /// Low-level errors, likewise.
    pub error_counters: ErrorCounters,
    /// Interrupted early.
    pub interrupted: bool,
}

/// Failed accesses, by reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failures {
    /// Total.
    pub count: u64,
    /// The first distinct reasons with their counts.
    pub kinds: Vec<(AccessError, u64)>,
}

/// Progress of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Time since the start, warm-up included.
    pub elapsed: Duration,
    /// Expected length.
    pub whole: Duration,
    /// Successful accesses.
    pub ios: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Failed accesses.
    pub failures: u64,
}

/// Receives the progress of a run.
pub trait ProgressSink {
    /// Reports progress; `false` ends the run.
    fn tick(&mut self, progress: Progress) -> bool;
}

/// Why a run has no figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunError {
    /// The job does not fit the drive.
    Job(JobError),
    /// The runner is no longer usable.
    BenchDevice(DeviceError),
    /// The drive is gone or could not be recovered.
    Gone(AccessError),
    /// Accesses do not complete.
    Stuck {
        /// Number of accesses.
        in_flight: usize,
    },
    /// The flush after writes does not complete.
    Unflushed,
}

/// A failed run with its errors so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedRun {
    /// Why it failed.
    pub why: RunError,
    /// Failed accesses.
    pub failures: Failures,
    /// Low-level errors.
    pub error_counters: ErrorCounters,
}

/// Runs a job.
///
/// # Errors
///
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
    let block_bytes = load.runner.block_size().bytes();
    let run_plan = RunPlan::new(job, conditions, accesses, block_bytes, payload);
    let ended = load.measure(run_plan);
    load.with_errors(ended)
}

/// Reads back everything that a ledger has stamped. The runner's buffers must be large enough.
///
/// # Errors
///
/// Why reading failed.
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
    load.with_errors(ended).map(|()| (load.take_failures(), load.error_counters()))
}

/// Extends a job's layout so that its writes can be read back.
pub(super) fn with_read_back_buffers(room: BufferLayout) -> BufferLayout {
    BufferLayout { slots: room.slots.max(READ_BACK_DEPTH), bytes: room.bytes.max(READ_BACK_BYTES) }
}

/// The resources of a run besides the runner.
pub struct RunContext<'a> {
    /// Expected block contents, if verified.
    pub ledger: Option<&'a mut Ledger>,
    /// Receives progress.
    pub watch: &'a mut dyn ProgressSink,
    /// Energy counters.
    pub energy: Option<&'a Energy>,
}

/// Accesses in flight.
struct Load<'r, 's> {
    runner: &'r mut dyn Runner,
    context: RunContext<'s>,
    meter: Option<Meter<'s>>,
    idle: Vec<u16>,
    in_flight: Vec<Option<(Access, Instant)>>,
    /// The slot of the flush in flight.
    flush: Option<u16>,
    began: Instant,
    /// When an access completed last.
    heard: Instant,
    ticked: Instant,
    block_bytes: u64,
    latency: Histogram<u64>,
    ios: u64,
    bytes: u64,
    failures: Failures,
    /// Error counters at the start.
    initial_error_counters: ErrorCounters,
    final_fault: Option<AccessError>,
    /// Lost writes already among the failures.
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

    /// Adds failures and counters to an error.
    fn with_errors<T>(&mut self, ended: Result<T, RunError>) -> Result<T, Box<FailedRun>> {
        ended.map_err(|why| {
            let failures = self.take_failures();
            Box::new(FailedRun { why, failures, error_counters: self.error_counters() })
        })
    }

    /// Takes all failures, unlisted lost writes included.
    fn take_failures(&mut self) -> Failures {
        self.count_lost_writes();
        self.failures.count += self.error_counters().lost_writes.saturating_sub(self.lost_reported);
        std::mem::take(&mut self.failures)
    }

    fn error_counters(&self) -> ErrorCounters {
        self.runner.error_counters().since(self.initial_error_counters)
    }

    /// Overwrites the buffer to read into: it may still hold the expected data.
    fn poison(&mut self, slot: u16, extent: Extent) {
        let bytes = (extent.blocks.0 * self.block_bytes) as usize;
        if let Some(memory) = self.runner.memory(slot).get_mut(..bytes) {
            memory.fill(0x5a);
        }
    }

    fn read_back(&mut self, blocks_max: u64) -> Result<(), RunError> {
        let (mut next, mut goes_on) = (0, true);
        while goes_on && self.fill_from_ledger(&mut next, blocks_max) {
            self.check_progress(None)?;
            self.run_once()?;
            goes_on = self.tick(Duration::ZERO);
        }
        self.drain(goes_on, Duration::ZERO)
    }

    /// Starts reads of stamped blocks from `next` on in all idle slots; `false` if there are no
    /// more.
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
                self.end_warm_up();
                from = Some(self.marks(self.heard));
            }
            if self.is_over(now, from.as_ref().map(|from| from.at), &run_plan) || !goes_on {
                break;
            }
            self.fill(&mut run_plan);
            self.run_once()?;
            goes_on = self.tick(run_plan.expected_length(now - self.began));
        }
        let to = self.marks(self.heard);
        let whole = run_plan.expected_length(to.at - self.began);
        let (ios, bytes, latency) = (self.ios, self.bytes, std::mem::replace(&mut self.latency, histogram()));
        self.drain(goes_on, whole)?;
        if run_plan.writes {
            self.flush(goes_on, whole)?;
        }
        // Ended within the warm-up: everything counts.
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
            error_counters: self.error_counters(),
            interrupted: !goes_on,
        })
    }

    /// Whether enough was counted: an access completed after the time was over. A rate of zero says
    /// nothing, so a run shorter than one access goes on until then. Once the time is over, or if
    /// there is none, it also ends when accesses stop completing.
    fn is_over(&self, now: Instant, from: Option<Instant>, run_plan: &RunPlan) -> bool {
        let is_counted = |wanted| from.is_some_and(|from| self.heard > from && self.heard - from >= wanted);
        let is_time_over = run_plan.run.is_none_or(|wanted| now - self.began >= run_plan.warm_up + wanted);
        let is_silent = || now - self.heard >= self.runner.access_max();
        run_plan.run.is_some_and(is_counted) || (is_time_over && is_silent())
    }

    /// Ends the warm-up.
    fn end_warm_up(&mut self) {
        (self.ios, self.bytes) = (0, 0);
        self.latency.reset();
    }

    /// Starts accesses in all idle slots.
    fn fill(&mut self, run_plan: &mut RunPlan) {
        while !run_plan.is_complete()
            && let Some(slot) = self.idle.pop()
        {
            let drawn = self.draw(&mut run_plan.accesses);
            let Some(access) =
                drawn.filter(|access| run_plan.accepts(access.extent.blocks.0 * self.block_bytes))
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

    /// Draws the next access; with a ledger, one that overlaps none in flight.
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

    /// Waits, and processes completions.
    fn run_once(&mut self) -> Result<(), RunError> {
        self.runner.run_once(POLL_TIMEOUT).map_err(RunError::BenchDevice)?;
        let now = self.runner.now();
        while let Some(ended) = self.runner.poll() {
            self.end(now, ended);
        }
        self.count_lost_writes();
        self.final_fault.map_or(Ok(()), |fault| Err(RunError::Gone(fault)))
    }

    /// Counts acknowledged writes that were lost later.
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
                // Later errors of the same poll matter less.
                self.final_fault = self.final_fault.or(Some(fault).filter(AccessError::is_final));
            }
        }
    }

    /// Reports progress when due; `false` to stop.
    fn tick(&mut self, whole: Duration) -> bool {
        let now = self.runner.now();
        if now - self.ticked < TICK {
            return true;
        }
        self.ticked = now;
        if let Some(meter) = &mut self.meter {
            meter.update(now);
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

    /// Waits for accesses in flight, each for the runner's full timeout unless interrupted.
    fn drain(&mut self, mut goes_on: bool, whole: Duration) -> Result<(), RunError> {
        let soon = |load: &Self| load.runner.now() + INTERRUPTED_DRAIN_MAX;
        let mut until = (!goes_on).then(|| soon(self));
        while !self.is_quiet() {
            self.check_progress(until)?;
            self.run_once()?;
            if goes_on && !self.tick(whole) {
                (goes_on, until) = (false, Some(soon(self)));
            }
        }
        Ok(())
    }

    /// Fails if nothing has completed for longer than one access may take, or past the deadline.
    fn check_progress(&self, until: Option<Instant>) -> Result<(), RunError> {
        let now = self.runner.now();
        if until.is_some_and(|until| now >= until) || now - self.heard >= self.runner.access_max() {
            return Err(RunError::Stuck { in_flight: self.in_flight.iter().flatten().count() });
        }
        Ok(())
    }

    /// Flushes, so that lost cached writes are reported.
    fn flush(&mut self, goes_on: bool, whole: Duration) -> Result<(), RunError> {
        let Some(slot) = self.idle.pop() else { return Ok(()) };
        let began = self.runner.now();
        let mut flush_max = if goes_on { self.runner.flush_max() } else { INTERRUPTED_DRAIN_MAX };
        self.flush = Some(slot);
        self.runner.start_flush(slot);
        while self.flush.is_some() {
            let waited = self.runner.now() - began;
            if waited >= flush_max {
                return Err(RunError::Unflushed);
            }
            self.run_once()?;
            if !self.tick(whole) {
                flush_max = flush_max.min(waited + INTERRUPTED_DRAIN_MAX);
            }
        }
        Ok(())
    }

    fn end_flush(&mut self, ended: CompletedAccess) {
        self.idle.extend(self.flush.take());
        match ended.result {
            // Lost writes reported at the flush were also reported one by one.
            Ok(()) | Err(AccessError::Disk(disk::Error::LostWrite(_))) => {}
            Err(fault) => {
                let fault = fault.of_flush();
                self.failures.count(fault, 1);
                self.final_fault = self.final_fault.or(Some(fault).filter(AccessError::is_final));
            }
        }
    }

    /// Reads clocks and meters for a moment that has just passed.
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
        let named: u64 = other.kinds.iter().map(|(_, count)| count).sum();
        other.kinds.iter().for_each(|(fault, count)| self.count(*fault, *count));
        self.count += other.count - named;
    }
}

/// A latency histogram with three significant digits.
pub(super) fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3)
        .expect("the bounds are in order and three digits are allowed")
}

impl From<RunError> for Box<FailedRun> {
    /// A failure before the run began.
    fn from(why: RunError) -> Self {
        Self::new(FailedRun { why, failures: Failures::default(), error_counters: ErrorCounters::NONE })
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Job(error) => error.fmt(f),
            Self::BenchDevice(error) => error.fmt(f),
            Self::Gone(fault) => write!(f, "lost the drive: {fault}"),
            Self::Stuck { in_flight } => write!(f, "{in_flight} requests did not complete in time"),
            Self::Unflushed => f.write_str("flush after writes timed out"),
        }
    }
}

impl std::error::Error for RunError {}
