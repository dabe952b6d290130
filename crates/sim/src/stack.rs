//! The host's storage stack: a class driver turns application requests into commands.
//!
//! A [`Stack`] runs on a machine and has a disk of the initiator per drive, which identifies it,
//! splits requests at the driver's transfer limit and keeps as many commands in flight as the
//! driver passes to its transport. Requests above that wait in a queue; a driver that merges
//! ([`Packing::merges`](crate::machine::xhci::Packing)) joins neighbours there. Turbo packs below,
//! in the initiator's transport.
//!
//! ```text
//!   application ─ Request ─► line (merges) ─► Disk (cuts) ─ commands ─► world: core, transport, controller, link, drive
//!               ◄─ Ended ───────────────────────────────◄─ outcomes ──┘
//! ```
//!
//! Written blocks hold their number ([`crate::machine::FixedLatencyDrive::numbered`]), and a read
//! must return that number or zeroes. Left out: system caches, flushes, more than one core,
//! elevator scheduling.
//!
//! Invariants: each accepted request completes once; at most [`REQUESTS_MAX`] wait per drive.

mod profile;
#[cfg(test)]
mod tests;

pub use profile::{DriverProfile, SOFTWARE_STREAMS_DEPTH, Streams};

use crate::machine::{FinishedCommand, Simulation, StopReason, numbers};
use bus::Front;
use initiator::disk::{
    Counts, Disk, DiskConfig, Error, IdentifyError, Memory, Operation, Output, RequestId, RequestRefusal,
    RetryLimits,
};
use initiator::{Command, CommandId, DataPhase, Outcome};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use units::{BlockCount, BlockSize, ByteRange, Extent, Instant, Lba};
use wire::scsi::lun::LunField;
use wire::usb::Direction;

/// Waiting requests per drive at most.
pub const REQUESTS_MAX: usize = 4096;

/// An application request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Returned with the completion.
    pub id: u64,
    /// `In` reads, `Out` writes.
    pub direction: Direction,
    /// The first block.
    pub lba: u64,
    /// Number of blocks, at least 1.
    pub blocks: u32,
}

/// A completed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompletedRequest {
    /// Number of the drive.
    pub drive: usize,
    /// The application's id.
    pub id: u64,
    /// Submission time.
    pub since: Instant,
    /// Completion time.
    pub at: Instant,
    /// Result.
    pub result: Result<(), Error>,
}

/// Why a stack cannot start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackError {
    /// The simulation stopped.
    Stopped(StopReason),
    /// A drive is not a disk or did not identify itself.
    Identify(IdentifyError),
    /// A drive does not answer and no events are pending.
    Stuck,
}

/// A storage stack on a machine.
#[derive(Debug)]
pub struct Stack<W> {
    machine: W,
    units: Vec<Unit>,
    ended: VecDeque<CompletedRequest>,
    /// Buffers of completed commands.
    spare: Vec<Vec<u8>>,
}

/// A drive as the class driver sees it.
#[derive(Debug)]
struct Unit {
    disk: Disk,
    /// Result of the identification once it has completed.
    identified: Option<Result<(), IdentifyError>>,
    block_size: BlockSize,
    /// Bytes of a piece, if pieces of a request run one at a time.
    serial_piece_bytes: Option<u32>,
    /// Bytes of a merged run at most, if the driver merges.
    merges: Option<u32>,
    /// Runs passed to the disk at once: enough to fill all its commands.
    runs_max: usize,
    waiting: VecDeque<Run>,
    given: BTreeMap<RequestId, Run>,
    last_run: u64,
    /// Commands in flight by slot.
    sent: Vec<Option<Sent>>,
    merged: u64,
    misplaced_blocks: u64,
}

/// Requests that the disk sees as one: a single request or merged neighbours.
#[derive(Debug)]
struct Run {
    direction: Direction,
    extent: Extent,
    /// Blocks completed, if pieces run one at a time.
    done: u64,
    /// Since when the rest could proceed: arrival of the first request, or completion of the
    /// previous piece.
    ready: Instant,
    first: Member,
    others: Vec<Member>,
}

#[derive(Clone, Copy, Debug)]
struct Member {
    id: u64,
    since: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    id: CommandId,
    memory: Memory,
    /// First block of a read.
    reads: Option<Lba>,
}

impl<W: Simulation> Stack<W> {
    /// Starts a driver with this profile on a powered-on machine and identifies each drive.
    ///
    /// # Errors
    /// See [`StackError`].
    pub fn new(machine: W, profile: &DriverProfile) -> Result<Self, StackError> {
        let units = (0..machine.drives()).map(|drive| Unit::new(profile, machine.depth(drive))).collect();
        let mut stack = Self { machine, units, ended: VecDeque::new(), spare: Vec::new() };
        for drive in 0..stack.units.len() {
            stack.units[drive].disk.start(stack.machine.now());
            stack.service_disk(drive);
            stack.identify(drive)?;
        }
        Ok(stack)
    }

    fn identify(&mut self, drive: usize) -> Result<(), StackError> {
        loop {
            if let Some(identified) = self.units[drive].identified {
                identified.map_err(StackError::Identify)?;
                let geometry = self.units[drive].disk.geometry().ok_or(StackError::Stuck)?;
                self.units[drive].block_size = geometry.block_size;
                return Ok(());
            }
            if !self.step(None).map_err(StackError::Stopped)? {
                return Err(StackError::Stuck);
            }
        }
    }

    /// Returns the machine.
    pub const fn machine(&self) -> &W {
        &self.machine
    }

    /// Returns the machine, mutable. Do not submit commands to it directly.
    pub const fn machine_mut(&mut self) -> &mut W {
        &mut self.machine
    }

    /// Returns the current time.
    pub fn now(&self) -> Instant {
        self.machine.now()
    }

    /// Returns block size and capacity of a drive. `None` if there is no such drive.
    pub fn capacity(&self, drive: usize) -> Option<(BlockSize, BlockCount)> {
        let geometry = self.units.get(drive)?.disk.geometry()?;
        Some((geometry.block_size, geometry.capacity))
    }

    /// Returns the disk counters of a drive. `None` if there is no such drive.
    pub fn counts(&self, drive: usize) -> Option<Counts> {
        Some(self.units.get(drive)?.disk.counts())
    }

    /// Returns the requests of a drive that were merged into another one's run.
    pub fn merged(&self, drive: usize) -> u64 {
        self.units.get(drive).map_or(0, |unit| unit.merged)
    }

    /// Returns the blocks that were read and held other content. Non-zero means a bug.
    pub fn misplaced_blocks(&self, drive: usize) -> u64 {
        self.units.get(drive).map_or(0, |unit| unit.misplaced_blocks)
    }

    /// Accepts a request, which completes once.
    ///
    /// # Errors
    /// A [`RequestRefusal`]; the request has no effect.
    pub fn submit(&mut self, drive: usize, request: &Request) -> Result<(), RequestRefusal> {
        let now = self.machine.now();
        let unit = self.units.get_mut(drive).ok_or(RequestRefusal::Gone)?;
        unit.take(now, request)?;
        self.service_disk(drive);
        Ok(())
    }

    /// Runs until a request completes. `None` if no events are pending.
    ///
    /// # Errors
    /// If the simulation stops.
    #[expect(clippy::should_implement_trait, reason = "requests are submitted between the ends of others")]
    pub fn next(&mut self) -> Result<Option<CompletedRequest>, StopReason> {
        loop {
            if let Some(ended) = self.ended.pop_front() {
                return Ok(Some(ended));
            }
            if !self.step(None)? {
                return Ok(self.ended.pop_front());
            }
        }
    }

    /// Like [`Self::next`], up to a time: `None` when it is reached.
    ///
    /// # Errors
    /// If the simulation stops.
    pub fn next_until(&mut self, until: Instant) -> Result<Option<CompletedRequest>, StopReason> {
        loop {
            if let Some(ended) = self.ended.pop_front() {
                return Ok(Some(ended));
            }
            if self.machine.now() >= until || !self.step(Some(until))? {
                return Ok(self.ended.pop_front());
            }
        }
    }

    /// Runs until something concerns a disk, up to a time. Returns false if no events are pending
    /// and no time was given.
    fn step(&mut self, until: Option<Instant>) -> Result<bool, StopReason> {
        let wakes = self.units.iter().filter_map(|unit| Some(unit.disk.poll_timeout()?.at));
        let due = wakes.chain(until).min();
        if let Some(finished) = self.machine.run_until(due)? {
            self.handle_completed(finished);
            return Ok(true);
        }
        let now = self.machine.now();
        for drive in 0..self.units.len() {
            self.units[drive].disk.handle_timeout(now);
            self.service_disk(drive);
        }
        Ok(due.is_some())
    }

    /// Handles a completed command.
    fn handle_completed(&mut self, finished: FinishedCommand) {
        let FinishedCommand { drive, id, outcome, buffer } = finished;
        let now = self.machine.now();
        let Some(unit) = self.units.get_mut(drive) else { return };
        let sent =
            unit.sent.get_mut(usize::from(id.slot)).and_then(|sent| sent.take_if(|sent| sent.id == id));
        let Some(sent) = sent else { return };
        // Buffers are reused and hold old data where this command moved nothing: a read answered
        // with TASK SET FULL has moved none.
        if let (Some(lba), Outcome::Answered(answer)) = (sent.reads, &outcome) {
            let moved = buffer.get(..answer.moved as usize).unwrap_or(&buffer);
            unit.misplaced_blocks += numbers::misplaced_among(lba, moved, unit.block_size);
        }
        let answer = if sent.memory == Memory::Answer { &buffer[..] } else { &[] };
        unit.disk.handle_outcome(now, id, &outcome, answer);
        if !buffer.is_empty() {
            self.spare.push(buffer);
        }
        self.service_disk(drive);
    }

    /// Executes the outputs of a disk and passes waiting runs to it.
    fn service_disk(&mut self, drive: usize) {
        let now = self.machine.now();
        loop {
            let unit = &mut self.units[drive];
            match unit.disk.poll_output().map(Front::take) {
                Some(Output::Submit(command, memory)) => self.send(drive, &command, memory),
                Some(Output::Finished(id, result)) => {
                    let Some(mut run) = unit.given.remove(&id) else { continue };
                    let result = result.map(|_| ());
                    run.done += unit.piece(&run).blocks.0;
                    run.ready = now;
                    if result.is_ok() && run.done < run.extent.blocks.0 {
                        unit.waiting.push_front(run);
                        continue;
                    }
                    self.ended.extend(run.members().map(|Member { id, since }| CompletedRequest {
                        drive,
                        id,
                        since,
                        at: now,
                        result,
                    }));
                }
                Some(Output::Identified(result)) => unit.identified = Some(result),
                // Nothing is aborted, and caches are not flushed.
                Some(Output::Abort(_) | Output::Lost(_)) => {}
                None => {
                    let Some(given) = unit.give(now) else { return };
                    let Err(run) = given else { continue };
                    let gone = |Member { id, since }| CompletedRequest {
                        drive,
                        id,
                        since,
                        at: now,
                        result: Err(Error::Gone),
                    };
                    self.ended.extend(run.members().map(gone));
                }
            }
        }
    }

    fn send(&mut self, drive: usize, command: &Command, memory: Memory) {
        let unit = &mut self.units[drive];
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.resize(command.transfer_len() as usize, 0);
        let (mut command, mut reads) = (*command, None);
        let now = self.machine.now();
        let ready = match memory {
            Memory::Request(id) => unit.given.get(&id).map_or(now, |run| run.ready),
            _ => now,
        };
        if let Some(DataPhase { direction, range }) = command.data_phase {
            let lba = match memory {
                Memory::Request(id) => unit
                    .given
                    .get(&id)
                    .map(|run| Lba(unit.piece(run).lba.0 + u64::from(range.start / unit.block_size.bytes()))),
                _ => None,
            };
            match direction {
                Direction::In => reads = lba,
                Direction::Out => {
                    lba.into_iter().for_each(|lba| numbers::put(lba, &mut buffer, unit.block_size))
                }
            }
            // Each command has its own buffer.
            command.data_phase = Some(DataPhase { direction, range: ByteRange::new(0, range.len) });
        }
        let slot = usize::from(command.id.slot);
        if slot >= unit.sent.len() {
            unit.sent.resize(slot + 1, None);
        }
        match self.machine.submit(drive, &command, buffer) {
            Ok(()) => {
                self.machine.queued_since(drive, ready, command.id);
                unit.sent[slot] = Some(Sent { id: command.id, memory, reads });
            }
            Err(refusal) => unit.disk.handle_refusal(now, command.id, refusal),
        }
    }
}

impl Unit {
    fn new(profile: &DriverProfile, depth: usize) -> Self {
        let depth = profile.depth().min(u16::try_from(depth).unwrap_or(u16::MAX)).max(1);
        let config = DiskConfig {
            lun: LunField([0; 8]),
            depth,
            requests_max: depth,
            transfer_bytes_max: profile.transfer_bytes_max,
            report_luns: false,
            retry_limits: RetryLimits::DEFAULT,
        };
        Self {
            disk: Disk::new(config),
            identified: None,
            block_size: BlockSize::default(),
            serial_piece_bytes: profile.pieces_in_turn.then_some(profile.transfer_bytes_max),
            merges: profile.packing.filter(|packing| packing.merges).map(|packing| packing.bytes_max),
            runs_max: usize::from(depth),
            waiting: VecDeque::new(),
            given: BTreeMap::new(),
            last_run: 0,
            sent: Vec::new(),
            merged: 0,
            misplaced_blocks: 0,
        }
    }

    /// Queues a request, or merges it into a queued run.
    fn take(&mut self, now: Instant, request: &Request) -> Result<(), RequestRefusal> {
        let extent = Extent { lba: Lba(request.lba), blocks: BlockCount(request.blocks.into()) };
        let geometry = self.disk.geometry().ok_or(RequestRefusal::NotIdentified)?;
        if request.blocks == 0 || !extent.fits(geometry.capacity) {
            return Err(RequestRefusal::OutOfRange);
        }
        let bytes = request.blocks.checked_mul(self.block_size.bytes()).ok_or(RequestRefusal::TooLong)?;
        let member = Member { id: request.id, since: now };
        if let Some(bytes_max) = self.merges.filter(|max| bytes <= *max) {
            let blocks_max = u64::from(bytes_max / self.block_size.bytes());
            let mut alike =
                self.waiting.iter_mut().filter(|run| run.direction == request.direction && run.done == 0);
            if let Some((whole, run)) = alike.find_map(|run| Some((run.with(extent, blocks_max)?, run))) {
                run.extent = whole;
                run.others.push(member);
                self.merged += 1;
                return Ok(());
            }
        }
        if self.waiting.len() >= REQUESTS_MAX {
            return Err(RequestRefusal::Full);
        }
        let direction = request.direction;
        let run = Run { direction, extent, done: 0, ready: now, first: member, others: Vec::new() };
        self.waiting.push_back(run);
        Ok(())
    }

    /// Returns the part of a run that the disk gets at once: all that is left, or a piece.
    fn piece(&self, run: &Run) -> Extent {
        let left = run.extent.blocks.0 - run.done;
        let blocks_max =
            self.serial_piece_bytes.map_or(left, |bytes| u64::from(bytes / self.block_size.bytes()).max(1));
        Extent { lba: Lba(run.extent.lba.0 + run.done), blocks: BlockCount(left.min(blocks_max)) }
    }

    /// Passes a run to the disk if there is one and room for it. A disk that refuses it is gone.
    fn give(&mut self, now: Instant) -> Option<Result<(), Run>> {
        if self.given.len() >= self.runs_max {
            return None;
        }
        let run = self.waiting.pop_front()?;
        self.last_run += 1;
        let id = RequestId(self.last_run);
        let operation = match run.direction {
            Direction::In => Operation::Read { fua: false, dpo: false, may_be_short: false },
            Direction::Out => Operation::Write { fua: false, dpo: false },
        };
        let request = initiator::disk::Request { id, operation, extent: self.piece(&run) };
        if self.disk.submit(now, request).is_err() {
            return Some(Err(run));
        }
        self.given.insert(id, run);
        Some(Ok(()))
    }
}

impl Run {
    fn members(&self) -> impl Iterator<Item = Member> {
        std::iter::once(self.first).chain(self.others.iter().copied())
    }

    /// Returns the extent of this run with an adjacent one, if both fit into `blocks_max`.
    fn with(&self, other: Extent, blocks_max: u64) -> Option<Extent> {
        let end = |extent: Extent| extent.lba.0 + extent.blocks.0;
        let lba = match () {
            () if end(self.extent) == other.lba.0 => self.extent.lba,
            () if end(other) == self.extent.lba.0 => other.lba,
            () => return None,
        };
        let blocks = self.extent.blocks.0 + other.blocks.0;
        (blocks <= blocks_max).then_some(Extent { lba, blocks: BlockCount(blocks) })
    }
}

impl fmt::Display for StackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped(stopped) => write!(f, "simulation stopped: {stopped}"),
            Self::Identify(error) => write!(f, "cannot identify a drive as a disk: {error}"),
            Self::Stuck => f.write_str("a drive does not answer"),
        }
    }
}

impl std::error::Error for StackError {}
