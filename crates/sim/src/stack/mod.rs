//! The storage stack of a host, from an application's requests to commands: what the class driver makes of them.
//!
//! A [`Stack`] stands on a world and has a disk of the initiator for each drive, which identifies it, cuts requests at
//! what the driver moves with one command, and has as many commands under way as the driver gives to its transport. Requests
//! that wait for that are in one line; a driver that merges ([`Packing::merges`](crate::machine::driven::Packing)) makes one of
//! neighbours there. What Turbo packs is packed below, by the initiator's own transport.
//!
//! ```text
//!   application ─ Request ─► line (merges) ─► Disk (cuts) ─ commands ─► world: core, transport, controller, link, drive
//!               ◄─ Ended ───────────────────────────────◄─ outcomes ──┘
//! ```
//!
//! Blocks that are written hold their number ([`crate::machine::FixedLatencyDrive::numbered`]), and what is read must hold that or have never been written.
//! Left out: caches of the system, flushes, more than one core, scheduling by place.
//!
//! Always true: each request that was taken ends once; no more than [`REQUESTS_MAX`] wait for a drive.

mod profile;
#[cfg(test)]
mod tests;

pub use profile::{DriverProfile, SOFTWARE_STREAMS_DEPTH, Streams};

use crate::machine::{FinishedCommand, Simulation, StopReason, numbers};
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

/// Requests that wait for a drive, at most.
pub const REQUESTS_MAX: usize = 4096;

/// What an application wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Comes back with the end.
    pub id: u64,
    /// In is a read, Out a write.
    pub direction: Direction,
    /// The first block.
    pub lba: u64,
    /// How many blocks; not 0.
    pub blocks: u32,
}

/// A request that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompletedRequest {
    /// Of which drive.
    pub drive: usize,
    /// The application's name for it.
    pub id: u64,
    /// When it was submitted.
    pub since: Instant,
    /// When it ended.
    pub at: Instant,
    /// How.
    pub result: Result<(), Error>,
}

/// Why there is no stack on a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackError {
    /// The world does not go on.
    Stopped(StopReason),
    /// A drive is no disk, or does not say what it is.
    Identify(IdentifyError),
    /// A drive does not answer, and nothing is going to happen any more.
    Stuck,
}

/// Applications' requests on a world.
#[derive(Debug)]
pub struct Stack<W> {
    machine: W,
    units: Vec<Unit>,
    ended: VecDeque<CompletedRequest>,
    /// Memory of commands that have ended.
    spare: Vec<Vec<u8>>,
}

/// A drive, as the class driver sees it.
#[derive(Debug)]
struct Unit {
    disk: Disk,
    /// What the identify sequence found, when it is over.
    identified: Option<Result<(), IdentifyError>>,
    block_size: BlockSize,
    /// Bytes of a piece, where a request has one under way at a time.
    serial_piece_bytes: Option<u32>,
    /// Bytes that neighbours may have together, if they are merged.
    merges: Option<u32>,
    /// Runs that the disk is given at once: as many as fill all its commands.
    runs_max: usize,
    waiting: VecDeque<Run>,
    given: BTreeMap<RequestId, Run>,
    last_run: u64,
    /// Commands under way, by slot.
    sent: Vec<Option<Sent>>,
    merged: u64,
    misplaced_blocks: u64,
}

/// Requests that are one for the disk: one, or neighbours.
#[derive(Debug)]
struct Run {
    direction: Direction,
    extent: Extent,
    /// Blocks that have been done, where the disk gets one piece after the other.
    done: u64,
    /// Since when what is left could have gone on: its first request came, or the piece before it ended.
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
    /// The first block that it reads, if it reads blocks.
    reads: Option<Lba>,
}

impl<W: Simulation> Stack<W> {
    /// A driver of this profile on the drives of a world that was powered on for it; each drive is surveyed.
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

    /// The world.
    pub const fn machine(&self) -> &W {
        &self.machine
    }

    /// The same, to be asked or disturbed. Commands of others must not be given to it.
    pub const fn machine_mut(&mut self) -> &mut W {
        &mut self.machine
    }

    /// The time.
    pub fn now(&self) -> Instant {
        self.machine.now()
    }

    /// Bytes of a block of a drive, and its blocks. `None` if there is no such drive.
    pub fn capacity(&self, drive: usize) -> Option<(BlockSize, BlockCount)> {
        let geometry = self.units.get(drive)?.disk.geometry()?;
        Some((geometry.block_size, geometry.capacity))
    }

    /// What the disk of a drive counts. `None` if there is no such drive.
    pub fn counts(&self, drive: usize) -> Option<Counts> {
        Some(self.units.get(drive)?.disk.counts())
    }

    /// Requests of a drive that became part of another one's run.
    pub fn merged(&self, drive: usize) -> u64 {
        self.units.get(drive).map_or(0, |unit| unit.merged)
    }

    /// Blocks of a drive that were read and held what belongs elsewhere. There are none, unless something is wrong.
    pub fn misplaced_blocks(&self, drive: usize) -> u64 {
        self.units.get(drive).map_or(0, |unit| unit.misplaced_blocks)
    }

    /// Takes a request on. It ends once.
    ///
    /// # Errors
    /// A [`RequestRefusal`]; nothing comes of it then.
    pub fn submit(&mut self, drive: usize, request: &Request) -> Result<(), RequestRefusal> {
        let now = self.machine.now();
        let unit = self.units.get_mut(drive).ok_or(RequestRefusal::Gone)?;
        unit.take(now, request)?;
        self.service_disk(drive);
        Ok(())
    }

    /// Lets things happen until a request ends. `None` if nothing is going to happen any more.
    ///
    /// # Errors
    /// If the world does not go on.
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

    /// The same, but no longer than up to a time: `None` when it has come.
    ///
    /// # Errors
    /// If the world does not go on.
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

    /// Lets one thing happen that is of a disk's concern, up to a time. Whether there was anything, or the time has come.
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

    /// A command has ended.
    fn handle_completed(&mut self, finished: FinishedCommand) {
        let FinishedCommand { drive, id, outcome, buffer } = finished;
        let now = self.machine.now();
        let Some(unit) = self.units.get_mut(drive) else { return };
        let sent =
            unit.sent.get_mut(usize::from(id.slot)).and_then(|sent| sent.take_if(|sent| sent.id == id));
        let Some(sent) = sent else { return };
        // Memory is used again, and holds what an earlier command left where this one has moved nothing: a read that the drive
        // answered with TASK SET FULL has moved none at all.
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

    /// Carries out what the disk of a drive wants, and gives it what it has room for.
    fn service_disk(&mut self, drive: usize) {
        let now = self.machine.now();
        loop {
            let unit = &mut self.units[drive];
            match unit.disk.poll_output() {
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
            // Each command has memory of its own.
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

    /// Takes a request into the line, or into one that is there.
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

    /// What of a run the disk gets at once: all that is left, or a piece.
    fn piece(&self, run: &Run) -> Extent {
        let left = run.extent.blocks.0 - run.done;
        let blocks_max =
            self.serial_piece_bytes.map_or(left, |bytes| u64::from(bytes / self.block_size.bytes()).max(1));
        Extent { lba: Lba(run.extent.lba.0 + run.done), blocks: BlockCount(left.min(blocks_max)) }
    }

    /// Gives the disk a run, if there is one and room for it. A disk that does not take it is gone.
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

    /// This and a neighbour of it, before or behind, if both together are no more than so many blocks.
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
            Self::Stopped(stopped) => write!(f, "the world does not go on: {stopped:?}"),
            Self::Identify(error) => write!(f, "a drive is no disk: {error}"),
            Self::Stuck => f.write_str("a drive does not answer"),
        }
    }
}

impl std::error::Error for StackError {}
