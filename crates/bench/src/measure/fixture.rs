//! A drive with scripted behaviour, for tests of measurements.

use super::{CampaignObserver, Job, Progress, ProgressSink, Row};
use crate::backend::{
    AccessError, BenchDevice, BufferLayout, CompletedAccess, DeviceError, DriveInfo, ErrorCounters, Route,
    Runner,
};
use device::medium::MediumError;
use initiator::disk::LostWrite;
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use units::{BlockCount, BlockSize, Lba};
use workload::{Access, AccessKind};

/// Blocks of the drive.
pub(super) const BLOCKS: u64 = 1024;

/// A drive in memory with injectable faults.
#[derive(Debug)]
pub(super) struct Fixture {
    pub(super) memory: Vec<u8>,
    slots: Vec<Vec<u8>>,
    ended: VecDeque<CompletedAccess>,
    /// Duration of a poll.
    pub(super) service: Duration,
    /// Added to that each time the route is opened.
    pub(super) drift: Duration,
    /// Simulated time, independent of the load of the machine.
    pub(super) now: Instant,
    /// Writes of this block fail.
    pub(super) bad: Option<u64>,
    /// Reads of this block fail.
    pub(super) unreadable: Option<u64>,
    /// Writes of this block are lost.
    pub(super) forgets: Option<u64>,
    /// Reads succeed without transferring data.
    pub(super) brings_nothing: bool,
    /// Result and duration of each flush.
    pub(super) flush: (Result<(), AccessError>, Duration),
    /// Writes reported lost at the next flush.
    pub(super) loses: Vec<LostWrite>,
    /// How many of those are not listed.
    pub(super) unkept: u64,
    /// Flushes never complete.
    pub(super) stuck_flush: bool,
    /// Flushes so far.
    pub(super) flushes: u32,
    lost: VecDeque<LostWrite>,
    lost_writes: u64,
    /// The access of this number, from 1, never completes.
    pub(super) stuck: Option<u64>,
    /// The reported maximum duration of an access.
    pub(super) access_max: Duration,
    /// At most one access completes per poll.
    pub(super) is_serial: bool,
    may_end: bool,
    /// How many complete together, the service time after the previous ones or after submission; no
    /// poll exceeds its timeout.
    pub(super) batch: Option<usize>,
    /// When the next of these complete.
    due: Option<Instant>,
    /// How many of these may complete now.
    ready: usize,
    /// Extra time of the first completions after the access of this number, from 1.
    pub(super) stall: Option<(u64, Duration)>,
    /// After this many accesses nothing completes.
    pub(super) gone_after: Option<u64>,
    /// It can be opened fewer times than this.
    pub(super) fails_from: Option<usize>,
    /// Routes that are not offered.
    pub(super) missing: Vec<Route>,
    /// Routes in the order in which they were opened.
    pub(super) open_route: Vec<Route>,
    started: u64,
    /// The first blocks accessed each time it was opened.
    pub(super) first_places: Vec<Vec<u64>>,
    in_flight: Vec<Access>,
    /// Whether two accesses in flight overlapped.
    pub(super) overlapped: bool,
}

impl Fixture {
    pub(super) fn new() -> Self {
        Self {
            memory: vec![0; BLOCKS as usize * 512],
            slots: Vec::new(),
            ended: VecDeque::new(),
            service: Duration::from_micros(20),
            drift: Duration::ZERO,
            now: Instant::now(),
            bad: None,
            unreadable: None,
            forgets: None,
            brings_nothing: false,
            flush: (Ok(()), Duration::ZERO),
            loses: Vec::new(),
            unkept: 0,
            stuck_flush: false,
            flushes: 0,
            lost: VecDeque::new(),
            lost_writes: 0,
            stuck: None,
            access_max: Duration::from_secs(300),
            is_serial: false,
            may_end: false,
            batch: None,
            due: None,
            ready: 0,
            stall: None,
            gone_after: None,
            fails_from: None,
            missing: Vec::new(),
            open_route: Vec::new(),
            started: 0,
            first_places: Vec::new(),
            in_flight: Vec::new(),
            overlapped: false,
        }
    }
}

impl BenchDevice for Fixture {
    fn open_route(&mut self, route: Route, _layout: BufferLayout) -> Result<&mut dyn Runner, DeviceError> {
        self.open_route.push(route);
        self.first_places.push(Vec::new());
        self.service += self.drift;
        if self.missing.contains(&route) {
            return Err(DeviceError::not_offered("this route is not offered"));
        }
        let is_time = self.fails_from.is_some_and(|round| self.open_route.len() >= round);
        if is_time { Err(DeviceError::new("there is no memory")) } else { Ok(self) }
    }

    fn identity(&self) -> DriveInfo {
        DriveInfo::default()
    }
}

impl Runner for Fixture {
    fn block_size(&self) -> BlockSize {
        BlockSize::B512
    }

    fn capacity(&self) -> BlockCount {
        BlockCount(BLOCKS)
    }

    fn prepare(&mut self, depth: u16, bytes: u32) -> Result<(), DeviceError> {
        // As at a port, buffers keep their content.
        self.slots.resize_with(depth.into(), Vec::new);
        self.slots.iter_mut().for_each(|slot| slot.resize(bytes as usize, 0));
        Ok(())
    }

    fn memory(&mut self, slot: u16) -> &mut [u8] {
        &mut self.slots[usize::from(slot)]
    }

    fn start(&mut self, slot: u16, access: Access) {
        self.started += 1;
        self.overlapped |= self.in_flight.iter().any(|other| other.extent.overlaps(access.extent));
        self.in_flight.push(access);
        if let Some(places) = self.first_places.last_mut().filter(|places| places.len() < 4) {
            places.push(access.extent.lba.0);
        }
        let (from, len) = (access.extent.lba.0 as usize * 512, access.extent.blocks.0 as usize * 512);
        let place = &mut self.memory[from..from + len];
        let touches = |block: Option<u64>| {
            block.is_some_and(|block| access.extent.overlaps(units::Extent::new(block, 1)))
        };
        let mut result = Ok(());
        match access.kind {
            AccessKind::Read if touches(self.unreadable) => {
                let lba = Lba(self.unreadable.unwrap_or_default());
                result = Err(AccessError::Medium(MediumError::Unreadable { lba }));
            }
            AccessKind::Read if self.brings_nothing => {}
            AccessKind::Read => self.slots[usize::from(slot)][..len].copy_from_slice(place),
            AccessKind::Write if touches(self.bad) => {
                result = Err(AccessError::Medium(MediumError::Unwritable {
                    lba: Lba(self.bad.unwrap_or_default()),
                }));
            }
            AccessKind::Write if touches(self.forgets) => {}
            AccessKind::Write => place.copy_from_slice(&self.slots[usize::from(slot)][..len]),
        }
        if self.gone_after.is_some_and(|most| self.started > most) {
            result = Err(AccessError::Disk(initiator::disk::Error::Gone));
        }
        if self.stuck != Some(self.started) {
            self.ended.push_back(CompletedAccess { slot, result });
        }
    }

    fn start_flush(&mut self, slot: u16) {
        assert!(self.in_flight.is_empty(), "a flush follows completed writes");
        self.flushes += 1;
        self.lost_writes += self.loses.len() as u64 + self.unkept;
        self.lost.extend(self.loses.drain(..));
        self.now += self.flush.1;
        if !self.stuck_flush {
            self.ended.push_back(CompletedAccess { slot, result: self.flush.0 });
        }
    }

    fn poll_lost(&mut self) -> Option<LostWrite> {
        self.lost.pop_front()
    }

    fn run_once(&mut self, timeout: Duration) -> Result<(), DeviceError> {
        if let Some(batch) = self.batch {
            let stall = self.stall.take_if(|(number, _)| self.started >= *number);
            let (now, more) = (self.now, stall.map_or(Duration::ZERO, |(_, more)| more));
            let due = *self.due.get_or_insert(now + self.service) + more;
            self.now = due.min(now + timeout);
            self.due = Some(due).filter(|due| self.now < *due);
            self.ready = if self.due.is_none() { batch } else { 0 };
            return Ok(());
        }
        self.now += self.service;
        self.may_end = true;
        Ok(())
    }

    fn poll(&mut self) -> Option<CompletedAccess> {
        self.in_flight.clear();
        if self.is_serial && !std::mem::take(&mut self.may_end) {
            return None;
        }
        if self.batch.is_some() {
            self.ready = self.ready.checked_sub(1)?;
        }
        self.ended.pop_front()
    }

    fn now(&self) -> Instant {
        self.now
    }

    fn access_max(&self) -> Duration {
        self.access_max
    }

    fn error_counters(&self) -> ErrorCounters {
        ErrorCounters {
            retries: self.started / 10,
            lost_writes: self.lost_writes,
            ..ErrorCounters::default()
        }
    }
}

/// A progress observer that stops after a number of ticks.
#[derive(Debug, Default)]
pub(super) struct FakeObserver {
    pub(super) begun: Vec<(Route, u32)>,
    pub(super) ticks_left: Option<u32>,
    pub(super) seen: usize,
}

impl ProgressSink for FakeObserver {
    fn tick(&mut self, _progress: Progress) -> bool {
        if let Some(left) = &mut self.ticks_left {
            *left = left.saturating_sub(1);
        }
        !self.is_over()
    }
}

impl CampaignObserver for FakeObserver {
    fn begin(&mut self, _job: &Job, route: Route, round: u32) {
        self.begun.push((route, round));
    }

    fn is_over(&self) -> bool {
        self.ticks_left == Some(0)
    }

    fn rows(&mut self, rows: &[Row]) {
        self.seen += rows.len();
    }
}
