//! Measures a workload on a disk: a closed loop without its start-up.
//!
//! A number of requests is kept in flight, as by IOMeter and fio. Filling pipes and caches is not
//! counted. The run ends after enough requests and enough virtual time, so that short requests are
//! many and long ones not few; or after enough bytes.
//!
//! Left out: think time, rates, and concurrent programs.
//!
//! Always true: counted requests completed within the measured time; one seed gives one figure.

use initiator::disk::{Error, RequestRefusal};
use sim::drive::{Deferred, SECTOR_BYTES};
use sim::machine::StopReason;
use std::fmt;
use units::{BlockCount, BlockSize, Duration, Extent, Instant};
use wire::usb::Direction;
use workload::{AccessKind, Accesses, Job, JobError};

/// Accepts block requests: a class driver with everything below.
pub trait Disk {
    /// Returns the virtual time.
    fn now(&self) -> Instant;

    /// Submits a request under a free number. It may be delayed.
    ///
    /// # Errors
    ///
    /// If it is not accepted.
    fn submit(&mut self, number: u16, direction: Direction, extent: Extent) -> Result<(), MeasureError>;

    /// Advances until a request completes, and returns it. `None` if there are no more events.
    ///
    /// # Errors
    ///
    /// If the simulation failed.
    fn next(&mut self) -> Result<Option<u16>, MeasureError>;

    /// Starts the measured time.
    fn begin(&mut self) {}

    /// Returns the deferred writes: while they grow, the disk is faster than in steady state.
    fn deferred(&mut self) -> Deferred {
        Deferred::default()
    }
}

/// Length of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Virtual time to drop at the start, and at least as many requests as are in flight; with
    /// writes, until the disk defers no more of them than before, within [`SETTLING_MAX`]. If zero,
    /// counting starts with the first request.
    pub warm_up: Duration,
    /// Minimum of measured virtual time.
    pub span: Duration,
    /// Minimum of counted requests; also the maximum once `bytes` are moved.
    pub requests: u32,
    /// Bytes that suffice, whatever the time.
    pub bytes: u64,
    /// Minimum number of times that each request in flight is replaced: long ones that complete
    /// together would otherwise dominate.
    pub rounds: u32,
    /// How many times the deferred writes are replaced, within [`SETTLING_MAX`]: the arm sweeps
    /// over them, and is faster at times.
    pub caches: u32,
}

/// Results.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Completed requests.
    pub requests: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Measured virtual time.
    pub elapsed: Duration,
    /// Mean latency.
    pub mean: Duration,
    /// Maximum latency.
    pub longest: Duration,
}

/// Why there is no figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MeasureError {
    /// The job does not fit the disk.
    Job(JobError),
    /// The simulation stopped.
    Stopped(StopReason),
    /// The class driver rejected a request.
    Refused(RequestRefusal),
    /// A request failed.
    Failed(Error),
    /// No more events while requests are in flight.
    Stuck,
    /// Data was read from or written to the wrong place.
    Contents,
}

/// Maximum settling time: a job that writes so rarely leaves the disk enough time.
pub const SETTLING_MAX: Duration = Duration::from_secs(300);

/// A disk has settled if its deferred writes grew by less than this fraction while as many were
/// written as it can defer: the remaining error of writes.
const SETTLED_PART: u64 = 40;

impl Stretch {
    /// Long enough that other seeds agree within half a percent, and that caches and buffers leave
    /// their initial state.
    pub const USUAL: Self = Self {
        warm_up: Duration::from_ms(20),
        span: Duration::from_ms(100),
        requests: 400,
        bytes: 32 << 20,
        rounds: 24,
        caches: 2,
    };
}

impl Measured {
    /// Returns requests per second.
    pub fn iops(&self) -> f64 {
        self.requests as f64 / self.seconds()
    }

    /// Returns megabytes (10⁶ bytes) per second.
    pub fn megabytes_per_second(&self) -> f64 {
        self.bytes as f64 / 1e6 / self.seconds()
    }

    fn seconds(&self) -> f64 {
        self.elapsed.as_ps() as f64 / 1e12
    }
}

/// The size of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskSize {
    /// Bytes of a block.
    pub block_size: BlockSize,
    /// Blocks.
    pub capacity: BlockCount,
}

/// Runs a job on a disk of this size.
///
/// # Errors
///
/// See [`MeasureError`].
pub fn measure(
    disk: &mut dyn Disk,
    job: &Job,
    size: DiskSize,
    stretch: &Stretch,
    seed: u64,
) -> Result<Measured, MeasureError> {
    let DiskSize { block_size, capacity } = size;
    let accesses = Accesses::new(job, block_size, capacity, seed).map_err(MeasureError::Job)?;
    let since = vec![Under::default(); usize::from(job.depth.max(1))];
    let mut turns = Turns { accesses, since };
    for number in 0..job.depth.max(1) {
        turns.submit(disk, number)?;
    }
    let until = disk.now() + stretch.warm_up;
    for _ in 0..job.depth.max(1) {
        turns.next(disk)?;
    }
    while disk.now() < until {
        turns.next(disk)?;
    }
    let room = if job.writes() { room_of(disk.deferred(), block_size) } else { 0 };
    let mut count = match stretch.warm_up {
        Duration::ZERO => Count::begin(disk),
        _ => turns.settle(disk, room, block_size)?,
    };
    let caches_bytes = room * u64::from(stretch.caches);
    while !stretch.is_enough(&count.sum, job.depth)
        || count.written < caches_bytes && count.sum.elapsed < SETTLING_MAX
    {
        turns.count(disk, &mut count, block_size)?;
    }
    Ok(count.ended())
}

/// Blocks that a disk can defer.
fn room_of(deferred: Deferred, block_size: BlockSize) -> u64 {
    (deferred.room * u64::from(SECTOR_BYTES)).div_ceil(u64::from(block_size.bytes()))
}

impl Stretch {
    fn is_enough(&self, sum: &Measured, depth: u16) -> bool {
        if sum.requests < u64::from(self.rounds) * u64::from(depth) {
            return false;
        }
        let is_long = sum.elapsed >= self.span || sum.bytes >= self.bytes;
        // Of long requests a few suffice.
        is_long && (sum.requests >= u64::from(self.requests) || sum.bytes >= self.bytes)
    }
}

/// A request in flight.
#[derive(Clone, Copy, Debug, Default)]
struct Under {
    since: Instant,
    blocks: u64,
    is_write: bool,
}

/// A completed request.
struct Completed {
    blocks: u64,
    is_write: bool,
    stay: Duration,
}

/// Counters from a point in time.
struct Count {
    began: Instant,
    sum: Measured,
    /// Total latency.
    stays: Duration,
    /// Blocks written.
    written: u64,
}

impl Count {
    fn begin(disk: &mut dyn Disk) -> Self {
        disk.begin();
        let sum = Measured {
            requests: 0,
            bytes: 0,
            elapsed: Duration::ZERO,
            mean: Duration::ZERO,
            longest: Duration::ZERO,
        };
        Self { began: disk.now(), sum, stays: Duration::ZERO, written: 0 }
    }

    fn ended(self) -> Measured {
        Measured { mean: Duration::from_ps(self.stays.as_ps() / self.sum.requests.max(1)), ..self.sum }
    }
}

struct Turns {
    accesses: Accesses,
    since: Vec<Under>,
}

impl Turns {
    fn submit(&mut self, disk: &mut dyn Disk, number: u16) -> Result<(), MeasureError> {
        let access = self.accesses.draw();
        let direction = match access.kind {
            AccessKind::Read => Direction::In,
            AccessKind::Write => Direction::Out,
        };
        let (blocks, is_write) = (access.extent.blocks.0, direction == Direction::Out);
        self.since[usize::from(number)] = Under { since: disk.now(), blocks, is_write };
        disk.submit(number, direction, access.extent)
    }

    /// Advances until a disk defers no more writes than before, and returns the counters since. If
    /// it does not settle they are empty.
    fn settle(
        &mut self,
        disk: &mut dyn Disk,
        room: u64,
        block_size: BlockSize,
    ) -> Result<Count, MeasureError> {
        let by = disk.now() + SETTLING_MAX;
        loop {
            let before = disk.deferred();
            let mut count = Count::begin(disk);
            while count.written < room && disk.now() < by {
                self.count(disk, &mut count, block_size)?;
            }
            let now = disk.deferred();
            if now.held <= before.held + now.room / SETTLED_PART {
                return Ok(count);
            }
            if disk.now() >= by {
                return Ok(Count::begin(disk));
            }
        }
    }

    /// Like [`Self::next`], counted.
    fn count(
        &mut self,
        disk: &mut dyn Disk,
        count: &mut Count,
        block_size: BlockSize,
    ) -> Result<(), MeasureError> {
        let Completed { blocks, is_write, stay } = self.next(disk)?;
        let sum = &mut count.sum;
        sum.requests += 1;
        sum.bytes += blocks * u64::from(block_size.bytes());
        sum.elapsed = disk.now() - count.began;
        sum.longest = sum.longest.max(stay);
        count.stays += stay;
        count.written += if is_write { blocks } else { 0 };
        Ok(())
    }

    /// Completes a request and submits another.
    fn next(&mut self, disk: &mut dyn Disk) -> Result<Completed, MeasureError> {
        let number = disk.next()?.ok_or(MeasureError::Stuck)?;
        let Under { since, blocks, is_write } = self.since[usize::from(number)];
        let stay = disk.now() - since;
        self.submit(disk, number)?;
        Ok(Completed { blocks, is_write, stay })
    }
}

impl fmt::Display for MeasureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Job(error) => error.fmt(f),
            Self::Stopped(stopped) => stopped.fmt(f),
            Self::Refused(refusal) => write!(f, "the driver rejected a request: {refusal:?}"),
            Self::Failed(error) => {
                write!(f, "a request failed without injected faults (simulator bug): {error:?}")
            }
            Self::Stuck => f.write_str("the simulation has stopped with requests in flight (simulator bug)"),
            Self::Contents => f.write_str("blocks were read or written in the wrong place (simulator bug)"),
        }
    }
}

impl std::error::Error for MeasureError {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;
    use workload::AccessSpec;

    /// Takes 10 us for each request, one after the other; the first ones take a hundred times as long.
    struct Line {
        now: Instant,
        waiting: VecDeque<u16>,
        ended: u64,
        slow: u64,
        /// Sectors kept of each, and what there is room for.
        keeps: u64,
        room: u64,
    }

    impl Default for Line {
        fn default() -> Self {
            Self { now: Instant::ZERO, waiting: VecDeque::new(), ended: 0, slow: 10, keeps: 0, room: 0 }
        }
    }

    impl Disk for Line {
        fn now(&self) -> Instant {
            self.now
        }

        fn submit(&mut self, number: u16, _: Direction, _: Extent) -> Result<(), MeasureError> {
            self.waiting.push_back(number);
            Ok(())
        }

        fn next(&mut self) -> Result<Option<u16>, MeasureError> {
            self.ended += 1;
            self.now = self.now + Duration::from_us(if self.ended <= self.slow { 1000 } else { 10 });
            Ok(self.waiting.pop_front())
        }

        fn deferred(&mut self) -> Deferred {
            Deferred { held: self.room.min(self.ended * self.keeps), room: self.room }
        }
    }

    const SIZE: DiskSize = DiskSize { block_size: BlockSize::B512, capacity: BlockCount(1 << 20) };

    #[test]
    fn long_requests_are_replaced_several_times() {
        let job = Job::of(AccessSpec::all(4 << 20, 100, 100), 8);
        let stretch = Stretch { bytes: 1, rounds: 5, ..Stretch::USUAL };
        assert_eq!(measure(&mut Line::default(), &job, SIZE, &stretch, 1).unwrap().requests, 5 * 8);
    }

    #[test]
    fn settling_is_not_counted() {
        // 80 sectors have room. Those requests are slow here, of which more and more are kept, and none of them is counted.
        let counted = |reads, warm_up, (keeps, slow)| {
            let job = Job::of(AccessSpec::all(4096, reads, 100), 1);
            let stretch = Stretch { warm_up, bytes: 64 << 20, ..Stretch::USUAL };
            let mut line = Line { room: 80, keeps, slow, ..Line::default() };
            measure(&mut line, &job, SIZE, &stretch, 1).unwrap().longest
        };
        let [slow, quick, little] = [1000, 10, 1].map(Duration::from_us);
        assert_eq!(counted(0, little, (8, 10)), quick, "all of each is kept: ten fill it");
        assert_eq!(
            counted(0, little, (1, 80)),
            quick,
            "an eighth of each: ten writes find it growing eight times"
        );
        assert_eq!(
            counted(0, little, (0, 80)),
            slow,
            "nothing is kept, and what is as slow at the beginning stays so"
        );
        assert_eq!(counted(100, little, (8, 10)), slow, "there are no writes");
        assert_eq!(counted(0, Duration::ZERO, (8, 10)), slow, "the first requests are wanted");
    }

    #[test]
    fn deferred_writes_are_counted_for_a_full_cache() {
        let requests = |caches, reads| {
            let job = Job::of(AccessSpec::all(4096, reads, 100), 1);
            let stretch = Stretch { caches, ..Stretch::USUAL };
            let mut line = Line { room: 1 << 20, slow: 0, ..Line::default() };
            measure(&mut line, &job, SIZE, &stretch, 1).unwrap().requests
        };
        // Eight blocks each; else 32 MiB are enough.
        assert_eq!([requests(1, 0), requests(2, 0), requests(1, 100)], [1 << 17, 1 << 18, 8192]);
    }

    #[test]
    fn the_warm_state_is_counted() {
        let job = Job::of(AccessSpec::all(4096, 100, 100), 4);
        let stretch = Stretch { warm_up: Duration::from_ms(11), bytes: 64 << 20, ..Stretch::USUAL };
        let measured = measure(&mut Line::default(), &job, SIZE, &stretch, 1).unwrap();
        assert!((measured.iops() - 100_000.0).abs() < 1.0, "{measured:?}");
        assert_eq!((measured.mean, measured.longest), (Duration::from_us(40), Duration::from_us(40)));
        assert_eq!(measured.elapsed, Duration::from_ms(100));
    }
}
