//! A drive with fixed latency that serves some requests in parallel.
//!
//! Not modelled on a product. Blocks are in memory and change when their request completes; or
//! there are too many for that, and each holds its own number ([`FixedLatencyDrive::numbered`]).
//! With a volatile cache, a power loss may lose each block that was neither flushed nor written
//! through. Left out: compare and OR operations and persistent state, which are rejected.
//!
//! Invariants: an accepted request completes once; flushed data survives
//! [`FixedLatencyDrive::lose_power`].

use super::numbers::{self, Numbered};
use crate::check::{Invariant, Ledger, ViolationSubject};
use crate::engine::{OccupancyStats, Random};
use crate::fault::{FaultKind, Faults, SeededBug};
use crate::power::{Meter, Microwatts};
use bus::Speed;
use device::bot::ShortData;
use device::command::Limits;
use device::lun::{LogicalUnit, LogicalUnitConfig};
use device::medium::{MediumCompletion, MediumDone, MediumError, MediumOp, MediumRequest};
use device::{Device, DeviceConfig, Transports};
use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use units::{BlockCount, BlockSize, Duration, Extent, Instant, Lba};

/// A drive in memory with fixed latency.
#[derive(Clone, Debug)]
pub struct FixedLatencyDrive {
    bytes: Vec<u8>,
    /// Self-numbered blocks, instead of `bytes`.
    numbered: Option<Numbered>,
    block_size: BlockSize,
    latency: Duration,
    streams: u16,
    limits: Limits,
    cache: Option<Cache>,
    /// When each server is free, earliest first.
    free_at: VecDeque<Instant>,
    /// Requests in completion order.
    requests: VecDeque<Waiting>,
    level: OccupancyStats,
    /// Idle, busy.
    meter: Meter<2>,
}

/// Power including the bridge: idle, busy. Assumed, not measured.
const DRAWS: [Microwatts; 2] = [Microwatts::from_milliwatts(700), Microwatts::from_milliwatts(2_300)];

/// The blocks that a buffer references instead of a copy.
#[derive(Clone, Copy, Debug)]
pub(super) enum BlockRef {
    /// Bytes of the medium from this offset on.
    Bytes(usize),
    /// Self-numbered blocks from this one on.
    Numbers(Lba),
}

/// State of a volatile cache.
#[derive(Clone, Debug)]
struct Cache {
    /// Contents of the medium.
    durable: Vec<u8>,
    /// Blocks that differ from the medium.
    unflushed: BTreeSet<u64>,
}

/// A request and its completion time.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    done_at: Instant,
    since: Instant,
    request: MediumRequest,
}

/// Minimum extra latency of [`FaultKind::Slow`], and the maximum on top: longer than a host's
/// timeout.
const SLOW: Duration = Duration::from_secs(35);

impl FixedLatencyDrive {
    /// Limits of its device.
    pub const LIMITS: Limits = Limits { commands: 64, buffer_bytes: 64 << 20, segment_bytes: 1 << 20 };

    /// Creates a drive of `blocks` without a cache. Each request takes `latency`; `at_once` are
    /// served in parallel, at least one.
    pub fn new(blocks: u32, block_size: BlockSize, latency: Duration, at_once: u16) -> Self {
        let plain = Self {
            bytes: vec![0; blocks as usize * block_size.bytes() as usize],
            numbered: None,
            block_size,
            latency: Duration::ZERO,
            streams: 32,
            limits: Self::LIMITS,
            cache: None,
            free_at: VecDeque::new(),
            requests: VecDeque::new(),
            level: OccupancyStats::default(),
            meter: Meter::new(DRAWS),
        };
        plain.serving(latency, at_once)
    }

    /// Creates a drive of any size that stores no data: each block starts with its own number and
    /// must be written with that. The rest of a block is ignored.
    pub fn numbered(blocks: BlockCount, block_size: BlockSize) -> Self {
        let numbered = Some(Numbered::new(blocks.0));
        Self { numbered, ..Self::new(0, block_size, Duration::ZERO, 1) }
    }

    /// Sets latency and parallelism, at least one.
    #[must_use]
    pub fn serving(mut self, latency: Duration, at_once: u16) -> Self {
        self.latency = latency;
        self.free_at = vec![Instant::ZERO; usize::from(at_once.max(1))].into();
        self
    }

    /// Returns the blocks that were written with another number, if blocks are self-numbered.
    pub fn misplaced_blocks(&self) -> u64 {
        self.numbered.map_or(0, |numbered| numbered.misplaced_blocks)
    }

    /// Adds a volatile cache.
    #[must_use]
    pub fn with_volatile_cache(mut self) -> Self {
        self.cache = Some(Cache { durable: self.bytes.clone(), unflushed: BTreeSet::new() });
        self
    }

    /// Sets the number of streams: a power of two, 2 to 256.
    #[must_use]
    pub const fn with_streams(mut self, streams: u16) -> Self {
        self.streams = streams;
        self
    }

    /// Sets the limits of the device.
    #[must_use]
    pub const fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Returns the capacity.
    pub fn capacity(&self) -> BlockCount {
        if let Some(numbered) = self.numbered {
            return BlockCount(numbered.blocks);
        }
        BlockCount(self.bytes.len() as u64 / u64::from(self.block_size.bytes()))
    }

    /// Returns the block size.
    pub const fn block_size(&self) -> BlockSize {
        self.block_size
    }

    /// Creates a device with this medium as its only logical unit: both transports, 32 streams by
    /// default, SuperSpeed.
    pub fn device(&self) -> Device {
        self.device_with(Transports::Dual, Speed::Super)
    }

    /// Like [`Self::device`], with these transports at this speed.
    pub fn device_with(&self, transports: Transports, speed: Speed) -> Device {
        let unit = LogicalUnit::new(LogicalUnitConfig {
            product: "Plain Drive".into(),
            durable: true,
            ..LogicalUnitConfig::new(self.block_size(), self.capacity())
        });
        let config = DeviceConfig {
            transports,
            streams: self.streams,
            product: "Plain Drive".into(),
            limits: self.limits,
            bot_short_data: ShortData::Stall,
            ..DeviceConfig::new(speed)
        };
        Device::new(config, vec![unit])
    }

    /// Applies a power loss: waiting requests are dropped, and each unflushed block has its old or
    /// its new content. The clock restarts at zero.
    pub fn lose_power(&mut self, mut random: Random) {
        self.rest();
        let Some(cache) = &mut self.cache else { return };
        let block_bytes = self.block_size.bytes() as usize;
        for block in std::mem::take(&mut cache.unflushed) {
            let start = block as usize * block_bytes;
            let range = start..start + block_bytes;
            if random.per_million(500_000) {
                self.bytes[range.clone()].copy_from_slice(&cache.durable[range]);
            } else {
                cache.durable[range.clone()].copy_from_slice(&self.bytes[range]);
            }
        }
    }

    /// Drops waiting requests and resets the clock.
    pub(super) fn rest(&mut self) {
        self.requests.clear();
        self.free_at.iter_mut().for_each(|free_at| *free_at = Instant::ZERO);
        self.level = OccupancyStats::default();
        self.meter = Meter::new(DRAWS);
    }

    /// Returns the queue statistics.
    pub(super) const fn level(&self) -> &OccupancyStats {
        &self.level
    }

    /// Accepts a request; returns its completion time.
    pub(super) fn take(&mut self, now: Instant, request: MediumRequest, faults: &mut Faults) -> Instant {
        let mut latency = self.latency;
        if let Some(random) = faults.draw(FaultKind::Slow) {
            latency += Self::slow(random);
        }
        match self.requests.is_empty() {
            true if faults.triggers(SeededBug::UnbookedTime) => self.meter.switch_without_books(now, 1),
            true => self.meter.switch(now, 1),
            false => {}
        }
        self.level.arrive(now);
        let since = if faults.triggers(SeededBug::LongStay) { before(now) } else { now };
        let Some(first) = self.free_at.pop_front() else { return now };
        let done_at = now.max(first) + latency;
        insert_sorted(&mut self.free_at, done_at, |free_at| *free_at);
        insert_sorted(&mut self.requests, Waiting { done_at, since, request }, |waiting| waiting.done_at);
        if faults.triggers(SeededBug::PastEvent) { before(now) } else { done_at }
    }

    /// Returns the extra latency of [`FaultKind::Slow`].
    pub(super) fn slow(mut random: Random) -> Duration {
        SLOW + Duration::from_ps(random.below(SLOW.as_ps()))
    }

    /// Returns the next request that has completed by now.
    pub(super) fn next(&mut self, now: Instant) -> Option<MediumRequest> {
        let due = self.requests.front().is_some_and(|waiting| waiting.done_at <= now);
        let Waiting { since, request, .. } = due.then(|| self.requests.pop_front()).flatten()?;
        self.level.leave(now, since);
        if self.requests.is_empty() {
            self.meter.switch(now, 0);
        }
        Some(request)
    }

    /// Returns whether requests are queued.
    pub(super) fn is_busy(&self) -> bool {
        !self.requests.is_empty()
    }

    /// Returns the power meter: idle, busy.
    pub(super) const fn meter(&self) -> &Meter<2> {
        &self.meter
    }

    /// Checks the queue statistics and the power meter.
    pub(super) fn audit(&self, now: Instant, ledger: &mut Ledger) {
        ledger.audit_meter(now, &self.meter, "the drive");
        if !self.level.is_consistent(now) || self.level.count() as usize != self.requests.len() {
            ledger.report_violation(
                Invariant::Little,
                now,
                ViolationSubject::Queue("the queue at the medium"),
            );
        }
    }

    /// Returns a reference to the blocks of an extent, valid until a write, and its length in
    /// bytes. `None` if the blocks do not exist.
    pub(super) fn block_ref(&self, extent: Extent) -> Option<(BlockRef, usize)> {
        let Some(numbered) = &self.numbered else {
            let range = self.range(extent)?;
            return Some((BlockRef::Bytes(range.start), range.len()));
        };
        let Extent { lba, blocks } = extent;
        let bytes = blocks.0.checked_mul(u64::from(self.block_size.bytes()))?;
        numbered.has(extent).then_some((BlockRef::Numbers(lba), usize::try_from(bytes).ok()?))
    }

    /// Returns bytes of referenced blocks; generated ones are placed in `scratch`.
    pub(super) fn borrowed<'a>(
        &'a self,
        borrowed: BlockRef,
        range: Range<usize>,
        scratch: &'a mut Vec<u8>,
    ) -> &'a [u8] {
        match borrowed {
            BlockRef::Bytes(place) => {
                self.bytes.get(place + range.start..place + range.end).unwrap_or_default()
            }
            BlockRef::Numbers(lba) => {
                scratch.clear();
                scratch.resize(range.len(), 0);
                numbers::put_from(lba, range.start, scratch, self.block_size);
                scratch
            }
        }
    }

    /// Copies referenced blocks from their first byte on.
    pub(super) fn copy_blocks(&self, borrowed: BlockRef, bytes: &mut [u8]) {
        match borrowed {
            BlockRef::Bytes(place) => bytes.copy_from_slice(&self.bytes[place..place + bytes.len()]),
            BlockRef::Numbers(lba) => numbers::put(lba, bytes, self.block_size),
        }
    }

    /// Returns whether writes change block contents.
    pub(super) const fn changes(&self) -> bool {
        self.numbered.is_none()
    }

    /// Executes a request on its command's buffer.
    pub(crate) fn perform(
        &mut self,
        request: &MediumRequest,
        buffer: &mut [u8],
        faults: &mut Faults,
    ) -> MediumCompletion {
        let id = request.id;
        if let Some(mut random) = faults.draw(FaultKind::MediumError)
            && let Some(error) = self.fail(request, buffer, &mut random)
        {
            return MediumCompletion { id, result: Err(error) };
        }
        MediumCompletion { id, result: self.done(request, buffer) }
    }

    /// Fails at a random block; those before it succeed.
    fn fail(&mut self, request: &MediumRequest, buffer: &[u8], random: &mut Random) -> Option<MediumError> {
        let Extent { lba, blocks } = request.extent;
        let good = random.below(blocks.0);
        let bad = Lba(lba.0 + good);
        match request.op {
            MediumOp::Read => Some(MediumError::Unreadable { lba: bad }),
            MediumOp::Write { fua } => {
                let memory = buffer.get(request.range.as_usize())?;
                let extent = Extent { lba, blocks: BlockCount(good) };
                self.write(extent, memory, fua)?;
                Some(MediumError::Unwritable { lba: bad })
            }
            _ => None,
        }
    }

    fn done(&mut self, request: &MediumRequest, buffer: &mut [u8]) -> Result<MediumDone, MediumError> {
        let extent = request.extent;
        if let Some(numbered) = &mut self.numbered {
            return numbered.done(request, self.block_size, buffer);
        }
        let range = self.range(extent).ok_or(MediumError::Shrunk)?;
        let memory = buffer.get_mut(request.range.as_usize());
        match (request.op, memory) {
            (MediumOp::Read, Some(memory)) => memory[..range.len()].copy_from_slice(&self.bytes[range]),
            (MediumOp::Write { fua }, Some(memory)) => {
                self.write(extent, memory, fua).ok_or(MediumError::Shrunk)?;
            }
            (MediumOp::WriteSame { .. }, Some(memory)) => {
                let repeated = memory.repeat(extent.blocks.0 as usize);
                self.write(extent, &repeated, false).ok_or(MediumError::Shrunk)?;
            }
            (MediumOp::WriteZeroes | MediumOp::Unmap, _) => {
                self.write(extent, &vec![0; range.len()], false).ok_or(MediumError::Shrunk)?;
            }
            (MediumOp::Flush, _) => self.flush(),
            (MediumOp::Prefetch | MediumOp::Verify, _) => {}
            _ => return Err(MediumError::Unsupported),
        }
        Ok(MediumDone::Done)
    }

    /// Writes an extent; `through` the cache or into it.
    fn write(&mut self, extent: Extent, memory: &[u8], through: bool) -> Option<()> {
        let range = self.range(extent)?;
        let memory = memory.get(..range.len())?;
        self.bytes[range.clone()].copy_from_slice(memory);
        if let Some(cache) = &mut self.cache {
            let blocks = extent.lba.0..extent.lba.0 + extent.blocks.0;
            if through {
                cache.durable[range].copy_from_slice(memory);
                cache.unflushed.retain(|block| !blocks.contains(block));
            } else {
                cache.unflushed.extend(blocks);
            }
        }
        Some(())
    }

    fn flush(&mut self) {
        let Some(cache) = &mut self.cache else { return };
        let block_bytes = self.block_size.bytes() as usize;
        for block in std::mem::take(&mut cache.unflushed) {
            let start = block as usize * block_bytes;
            let range = start..start + block_bytes;
            cache.durable[range.clone()].copy_from_slice(&self.bytes[range]);
        }
    }

    fn range(&self, extent: Extent) -> Option<Range<usize>> {
        let block_bytes = u64::from(self.block_size.bytes());
        let start = usize::try_from(extent.lba.0.checked_mul(block_bytes)?).ok()?;
        let len = usize::try_from(extent.blocks.0.checked_mul(block_bytes)?).ok()?;
        let range = start..start.checked_add(len)?;
        (range.end <= self.bytes.len()).then_some(range)
    }
}

/// Returns a time just before `now`, at which no request can have arrived.
fn before(now: Instant) -> Instant {
    Instant::from_ps(now.as_ps().saturating_sub(1))
}

/// Inserts into a list sorted by time, after equal elements. Latencies are equal, so the position
/// is nearly always the end.
fn insert_sorted<T>(line: &mut VecDeque<T>, one: T, at: impl Fn(&T) -> Instant) {
    let place = line.iter().rposition(|other| at(other) <= at(&one));
    line.insert(place.map_or(0, |place| place + 1), one);
}

#[cfg(test)]
mod tests {
    use super::*;
    use device::command::{CommandId, DataLocation};
    use device::medium::MediumRequestId;
    use units::ByteRange;

    const BLOCK: u32 = 512;

    fn request(op: MediumOp, lba: u64, blocks: u32) -> MediumRequest {
        let id = MediumRequestId { command: CommandId { slot: 0, generation: 0 }, part: 0 };
        let range = ByteRange::new(0, blocks * BLOCK);
        MediumRequest {
            id,
            unit: 0,
            op,
            extent: Extent::new(lba, blocks.into()),
            location: DataLocation::Buffer,
            range,
        }
    }

    fn drive() -> FixedLatencyDrive {
        FixedLatencyDrive::new(8, BlockSize::B512, Duration::from_us(10), 2).with_volatile_cache()
    }

    fn write(plain: &mut FixedLatencyDrive, lba: u64, fua: bool, byte: u8) {
        let request = request(MediumOp::Write { fua }, lba, 1);
        let completion = plain.perform(&request, &mut [byte; 512], &mut Faults::never());
        assert_eq!(completion.result, Ok(MediumDone::Done));
    }

    fn first_byte(plain: &mut FixedLatencyDrive, lba: u64) -> u8 {
        let mut memory = [0xee; 512];
        let completion = plain.perform(&request(MediumOp::Read, lba, 1), &mut memory, &mut Faults::never());
        assert_eq!(completion.result, Ok(MediumDone::Done));
        memory[0]
    }

    #[test]
    fn a_power_loss_may_take_what_is_in_the_cache_only() {
        let mut seen = [false; 2];
        for seed in 0..32 {
            let mut plain = drive();
            write(&mut plain, 0, false, 1);
            let flushed = plain.perform(&request(MediumOp::Flush, 0, 0), &mut [], &mut Faults::never());
            assert_eq!(flushed.result, Ok(MediumDone::Done));
            write(&mut plain, 0, false, 2);
            write(&mut plain, 1, true, 3);
            plain.lose_power(Random::new(seed, "power"));
            let first = first_byte(&mut plain, 0);
            assert!([1, 2].contains(&first), "{first}");
            seen[usize::from(first) - 1] = true;
            assert_eq!(first_byte(&mut plain, 1), 3);
        }
        assert_eq!(seen, [true; 2], "both come about");
    }

    #[test]
    fn without_a_cache_nothing_is_lost() {
        let mut plain = FixedLatencyDrive::new(8, BlockSize::B512, Duration::from_us(10), 2);
        write(&mut plain, 0, false, 1);
        plain.lose_power(Random::new(1, "power"));
        assert_eq!(first_byte(&mut plain, 0), 1);
    }

    #[test]
    fn a_block_that_is_written_elsewhere_is_noticed() {
        let mut plain = FixedLatencyDrive::numbered(BlockCount(1 << 40), BlockSize::B512);
        let lba = 0x12_3456_789a;
        let mut memory = [0; 512];
        let read = request(MediumOp::Read, lba, 1);
        plain.perform(&read, &mut memory, &mut Faults::never());
        assert_eq!(memory[..8], [0x9a, 0x78, 0x56, 0x34, 0x12, 0, 0, 0]);
        for (place, misplaced_blocks) in [(lba, 0), (lba + 1, 1)] {
            let write = request(MediumOp::Write { fua: false }, place, 1);
            plain.perform(&write, &mut memory, &mut Faults::never());
            assert_eq!(plain.misplaced_blocks(), misplaced_blocks);
        }
    }

    #[test]
    fn a_slow_request_is_overtaken() {
        let mut plain = drive();
        let mut faults = Faults::scripted(1, "slow@0".parse().unwrap());
        let slow = plain.take(Instant::ZERO, request(MediumOp::Read, 0, 1), &mut faults);
        let quick = plain.take(Instant::ZERO, request(MediumOp::Read, 1, 1), &mut faults);
        assert!(slow > Instant::ZERO + SLOW);
        assert_eq!(quick, Instant::ZERO + Duration::from_us(10));
        assert_eq!(plain.next(quick).map(|request| request.extent.lba), Some(Lba(1)));
        assert!(plain.next(quick).is_none());
        assert_eq!(plain.next(slow).map(|request| request.extent.lba), Some(Lba(0)));
        let mut ledger = Ledger::default();
        plain.audit(slow, &mut ledger);
        assert_eq!(ledger.violation(), None);
    }

    #[test]
    fn a_block_that_cannot_be_written_is_named_and_what_is_before_it_was_written() {
        for seed in 0..16 {
            let mut plain = drive();
            let mut faults = Faults::scripted(seed, "medium-error@0".parse().unwrap());
            let request = request(MediumOp::Write { fua: false }, 2, 3);
            let completion = plain.perform(&request, &mut [9; 3 * 512], &mut faults);
            let Err(MediumError::Unwritable { lba }) = completion.result else { panic!("{completion:?}") };
            let written = (2..5).map(|lba| first_byte(&mut plain, lba) == 9);
            assert_eq!(written.collect::<Vec<_>>(), (2..5).map(|at| at < lba.0).collect::<Vec<_>>());
        }
    }
}
