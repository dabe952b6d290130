//! Translation of medium requests to ATA commands and back.
//!
//! All read or write requests of one SCSI command become one ATA command over all of its blocks. A
//! read request completes when its sectors have arrived, so that data moves on to the host while
//! the rest follows; sectors of a write go to the drive as requests arrive, and all requests
//! complete together. A queued write is issued before its first request has arrived if it was
//! announced with its blocks. Every other request is one ATA command.
//!
//! Not modelled: compare and OR operations, which take as long as a read, followed by a write.

use crate::drive::{DriveCommand, DriveCommandKind, Mechanism, MediumAccess, SECTOR_BYTES, TAGS, Tag};
use crate::engine::OccupancyStats;
use crate::power::{Meter, Microwatts};
use crate::sata::{Attachment, Command, HostPortEvent, Note, Queueing, Rate};
use crate::vec_map::VecMap;
use bus::Fifo;
use device::command::CommandId;
use device::medium::{MediumOp, MediumRequest};
use std::collections::VecDeque;
use units::{BlockSize, Duration, Extent, Instant};

/// Parameters of the SATA side of a bridge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StorePart {
    /// The rate of the cable.
    pub rate: Rate,
    /// Propagation delay, including the link layers at both ends.
    pub latency: Duration,
    /// Maximum queued commands in flight, up to 32; 0 disables queuing.
    pub queued: u8,
    /// Read buffer size in sectors.
    pub buffer_sectors: u32,
    /// Sectors of a read that move on together, once all have arrived.
    pub piece_sectors: u32,
    /// Delay from DMA Activate to the data frame of a non-queued write.
    pub frame: Duration,
    /// Whether a read is issued only if all its data fits into the buffer beside that of other
    /// reads. Required where the host accepts data of one command at a time: the drive chooses its
    /// own order, and unclaimed data could fill the buffer before the data that the host waits for.
    pub reads_fit: bool,
}

/// The SATA side of a bridge, with a drive.
#[derive(Clone, Debug)]
pub struct Store<M> {
    part: StorePart,
    block_size: BlockSize,
    cable: Attachment<M>,
    /// Transfer length of announced commands, until they become jobs.
    announced: VecMap<CommandId, u32>,
    /// Jobs in flight or queued, by number.
    jobs: VecMap<u64, Job>,
    next_job: u64,
    /// Jobs that may get more requests.
    by_command: VecMap<CommandId, u64>,
    line: VecDeque<u64>,
    tags: [Option<u64>; TAGS],
    /// Number of tags in use, and number of writes among them.
    in_flight: usize,
    writes: usize,
    /// Whether the command in flight is non-queued.
    is_alone: bool,
    /// Complete chunks in the buffer that have not moved on, in sectors by command.
    held: VecMap<CommandId, u32>,
    done: VecDeque<MediumRequest>,
    turns: VecDeque<MediumAccess>,
    /// Time in which the drive was busy and idle.
    at_work: Meter<2>,
    /// Number of jobs over time.
    level: OccupancyStats,
    /// Requests outside the blocks of their ATA command: none, unless there is a bug.
    misplaced: u64,
}

/// An ATA command and its medium requests.
#[derive(Clone, Debug)]
struct Job {
    /// Arrival time.
    since: Instant,
    order: DriveCommand,
    /// Outstanding requests, each with the sector of the job at which it ends.
    parts: Fifo<(u64, MediumRequest)>,
    /// Sectors of the requests that have arrived.
    come: u64,
    /// Sectors that have moved to or from the drive.
    moved: u64,
    /// Sectors of a write that the drive wants and has not been given.
    wanted: u64,
    /// The command was released.
    is_orphan: bool,
}

impl<M: Mechanism> Store<M> {
    /// Creates a bridge with a drive behind it, with logical blocks of `block_size`.
    pub fn new(part: StorePart, mechanism: M, block_size: BlockSize) -> Self {
        Self {
            part,
            block_size,
            cable: Attachment::new(mechanism, part.rate, part.latency, part.buffer_sectors)
                .pausing(part.frame),
            announced: VecMap::new(),
            jobs: VecMap::new(),
            next_job: 0,
            by_command: VecMap::new(),
            line: VecDeque::new(),
            tags: [None; TAGS],
            in_flight: 0,
            writes: 0,
            is_alone: false,
            held: VecMap::new(),
            done: VecDeque::new(),
            turns: VecDeque::new(),
            at_work: Meter::new([Microwatts(0); 2]),
            level: OccupancyStats::default(),
            misplaced: 0,
        }
    }

    /// The cable, and the drive on it.
    pub const fn cable(&self) -> &Attachment<M> {
        &self.cable
    }

    /// Enables or disables notes of frames on the cable.
    pub fn take_notes(&mut self, is_taking: bool) {
        self.cable.take_notes(is_taking);
    }

    /// Returns the next note of a frame sent until `now`.
    pub fn poll_note(&mut self, now: Instant) -> Option<Note> {
        self.cable.poll_note(now)
    }

    /// Announces the total transfer length of a command.
    pub fn announce(&mut self, command: CommandId, bytes: u32) {
        self.announced.insert(command, bytes);
    }

    /// Issues an announced write before its data arrives, so that drive and host prepare in
    /// parallel. Ignored for non-queued commands, which would block others.
    pub fn foretell(&mut self, now: Instant, command: CommandId, op: MediumOp, extent: Extent) {
        if self.part.queued > 0 && is_piece(op) && !self.by_command.has(command) {
            self.begin(now, command, op, extent);
            self.advance(now);
        }
    }

    /// Accepts a medium request.
    pub fn take(&mut self, now: Instant, request: MediumRequest) {
        if matches!(request.op, MediumOp::Status | MediumOp::SaveState) {
            // The bridge knows by itself.
            return self.done.push_back(request);
        }
        let number = match self.by_command.get(request.id.command) {
            Some(number) if is_piece(request.op) => *number,
            _ => self.begin(now, request.id.command, request.op, request.extent),
        };
        let per_block = u64::from(self.block_size.bytes() / SECTOR_BYTES);
        if let Some(job) = self.jobs.get_mut(number) {
            self.misplaced += u64::from(!job.order.moves(&request, per_block));
            job.come += request.extent.blocks.0 * per_block;
            job.parts.push_back((job.come, request));
        }
        self.advance(now);
    }

    /// Releases buffered read data of a command that has left the bridge. Returns whether this
    /// unblocked the drive or a queued read.
    pub fn give(&mut self, now: Instant, command: CommandId, sectors: u32) -> bool {
        let Some(held) = self.held.get_mut(command) else { return false };
        let sectors = sectors.min(*held);
        *held -= sectors;
        if *held == 0 {
            self.held.remove(command);
        }
        let fits_now = self.part.reads_fit && !self.line.is_empty();
        let went_on = self.cable.take(now, sectors) || fits_now;
        if went_on {
            self.advance(now);
        }
        went_on
    }

    /// Stops waiting for data of an aborted or failed command; its outstanding requests still
    /// complete. The drive continues as if the command were over; a later request becomes a
    /// separate command.
    pub fn abandon(&mut self, now: Instant, command: CommandId) {
        self.announced.remove(command);
        if let Some(sectors) = self.held.remove(command) {
            self.cable.take(now, sectors);
        }
        if let Some(number) = self.by_command.get(command)
            && let Some(job) = self.jobs.get_mut(*number)
        {
            job.is_orphan = true;
        }
        self.advance(now);
    }

    /// Returns the commands that are announced, in flight or buffered; duplicates are possible.
    pub fn commands(&self) -> impl Iterator<Item = CommandId> {
        let announced = self.announced.iter().map(|(command, _)| command);
        let jobs = self.by_command.iter().map(|(command, _)| command);
        announced.chain(jobs).chain(self.held.iter().map(|(command, _)| command))
    }

    /// Releases a command. What is in flight completes unobserved, and its buffer space becomes
    /// free.
    pub fn release(&mut self, now: Instant, command: CommandId) {
        self.announced.remove(command);
        if let Some(sectors) = self.held.remove(command) {
            self.cable.take(now, sectors);
        }
        if let Some(number) = self.by_command.remove(command)
            && let Some(job) = self.jobs.get_mut(number)
        {
            job.is_orphan = true;
            job.parts.clear();
        }
        self.advance(now);
    }

    /// Returns the next completed request: its contents are to be moved now.
    pub fn poll_done(&mut self) -> Option<MediumRequest> {
        self.done.pop_front()
    }

    /// Returns the next access of the drive to its medium.
    pub fn poll_access(&mut self) -> Option<MediumAccess> {
        self.turns.pop_front()
    }

    /// Returns whether any job is outstanding.
    pub fn is_busy(&self) -> bool {
        !self.jobs.is_empty()
    }

    /// Returns how long the drive has been busy, up to `now`.
    pub fn at_work(&self, now: Instant) -> Duration {
        let [_, at_work] = self.at_work.times(now);
        at_work
    }

    /// Returns the busy-time meter of the drive.
    pub(crate) const fn meter(&self) -> &Meter<2> {
        &self.at_work
    }

    /// Checks Little's law for outstanding jobs, and that their number matches.
    pub(crate) fn is_consistent(&self, now: Instant) -> bool {
        self.level.is_consistent(now) && self.level.count() as usize == self.jobs.iter().count()
    }

    /// Requests outside the blocks of their ATA command: none, unless there is a bug.
    pub(crate) const fn misplaced(&self) -> u64 {
        self.misplaced
    }

    /// Returns the time of the next event, if there is one.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.cable.poll_timeout()
    }

    /// Handles the passing of time up to `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.cable.handle_timeout(now);
        self.advance(now);
    }

    /// Creates a job for a request and all later ones of the same command.
    fn begin(&mut self, now: Instant, command: CommandId, op: MediumOp, extent: Extent) -> u64 {
        let number = self.next_job;
        self.next_job += 1;
        let per_block = u64::from(self.block_size.bytes() / SECTOR_BYTES);
        let Extent { lba, blocks } = extent;
        let mut blocks = blocks.0;
        if is_piece(op)
            && let Some(bytes) = self.announced.remove(command)
        {
            blocks = blocks.max(u64::from(bytes / self.block_size.bytes()));
            self.by_command.insert(command, number);
        }
        let extent = Extent::new(lba.0 * per_block, blocks * per_block);
        let order = DriveCommand { tag: Tag(0), kind: kind_of(op), extent };
        let job =
            Job { since: now, order, parts: Fifo::new(), come: 0, moved: 0, wanted: 0, is_orphan: false };
        self.level.arrive(now);
        self.jobs.insert(number, job);
        self.line.push_back(number);
        number
    }

    fn advance(&mut self, now: Instant) {
        loop {
            self.start(now);
            self.supply(now);
            let Some(event) = self.cable.poll_event() else { break };
            match event {
                HostPortEvent::Came(tag, sectors) => self.came(now, tag, sectors),
                HostPortEvent::Wants(tag, sectors) => {
                    if let Some(job) = self.job(tag) {
                        job.wanted += u64::from(sectors);
                    }
                }
                HostPortEvent::Completed(tag) => self.end(now, tag),
                HostPortEvent::Accesses(turn) => self.turns.push_back(turn),
            }
        }
        if self.at_work.state() != usize::from(self.is_busy()) {
            self.at_work.switch(now, usize::from(self.is_busy()));
        }
    }

    fn job(&mut self, tag: Tag) -> Option<&mut Job> {
        let number = (*self.tags.get(usize::from(tag.0))?)?;
        self.jobs.get_mut(number)
    }

    /// Issues queued jobs to the drive while allowed.
    fn start(&mut self, now: Instant) {
        while let Some(number) = self.line.front().copied()
            && let Some(job) = self.jobs.get(number)
        {
            let moves = matches!(job.order.kind, DriveCommandKind::Read | DriveCommandKind::Write { .. });
            let is_queued = moves && self.part.queued > 0;
            let may = if is_queued {
                !self.is_alone && self.in_flight < usize::from(self.part.queued)
            } else {
                self.in_flight == 0
            };
            let may = may && self.fits(number);
            let Some(free) = self.tags.iter().position(Option::is_none).filter(|_| may) else { return };
            self.line.pop_front();
            let Some(job) = self.jobs.get_mut(number) else { return };
            self.tags[free] = Some(number);
            self.in_flight += 1;
            self.writes += usize::from(matches!(job.order.kind, DriveCommandKind::Write { .. }));
            self.is_alone = !is_queued;
            job.order.tag = Tag(free as u8);
            let queueing = if is_queued { Queueing::Queued } else { Queueing::Alone };
            self.cable.submit(now, Command { order: job.order, queueing });
        }
    }

    /// Returns whether the buffer has room for the data of a job.
    fn fits(&self, number: u64) -> bool {
        let reads = |number: &u64| {
            let order = self.jobs.get(*number)?.order;
            (order.kind == DriveCommandKind::Read).then_some(order.extent.blocks.0)
        };
        let Some(sectors) = reads(&number).filter(|_| self.part.reads_fit) else { return true };
        let in_flight: u64 = self.tags.iter().flatten().filter_map(reads).sum();
        // Buffered data of completed commands.
        let left = self.held.iter().filter(|(command, _)| !self.by_command.has(*command));
        let taken = in_flight + left.map(|(_, sectors)| u64::from(*sectors)).sum::<u64>();
        taken == 0 || taken + sectors <= u64::from(self.part.buffer_sectors)
    }

    /// Sends write data to the drive as far as it was requested and has arrived.
    fn supply(&mut self, now: Instant) {
        if self.writes == 0 {
            return;
        }
        for number in self.tags.iter().flatten() {
            let Some(job) = self.jobs.get_mut(*number) else { continue };
            let DriveCommandKind::Write { .. } = job.order.kind else { continue };
            let whole = job.order.extent.blocks.0;
            // A command that is over brings nothing more; the drive gets the rest all the same.
            let come = if job.is_orphan { whole } else { job.come.min(whole) };
            let sectors = job.wanted.min(come - job.moved.min(come));
            if sectors > 0 {
                job.wanted -= sectors;
                job.moved += sectors;
                self.cable.supply(now, job.order.tag, sectors as u32);
            }
        }
    }

    fn came(&mut self, now: Instant, tag: Tag, sectors: u32) {
        let per_block = u64::from(self.block_size.bytes() / SECTOR_BYTES);
        let number = self.tags.get(usize::from(tag.0)).copied().flatten();
        let Some(job) = number.and_then(|number| self.jobs.get_mut(number)) else { return };
        job.moved += u64::from(sectors);
        let stays = job.order.kind == DriveCommandKind::Read && !job.is_orphan;
        let piece = u64::from(self.part.piece_sectors.max(1));
        let has_all = job.moved >= job.order.extent.blocks.0;
        let goes_on = if has_all || !stays { job.moved } else { job.moved - job.moved % piece };
        let mut whole = 0;
        let mut owner = None;
        while let Some(&(end, request)) = job.parts.front()
            && end <= goes_on
        {
            job.parts.pop_front();
            if stays && request.op == MediumOp::Read {
                whole += (request.extent.blocks.0 * per_block) as u32;
                owner = Some(request.id.command);
            }
            self.done.push_back(request);
        }
        // A chunk takes buffer space once it is complete and waits to move on. If partial chunks of
        // others did so as well, chunks could wait for each other's space for ever.
        if let Some(owner) = owner {
            *self.held.get_or_default(owner) += whole;
        }
        self.cable.hold(whole);
        self.cable.take(now, sectors);
    }

    fn end(&mut self, now: Instant, tag: Tag) {
        let Some(number) = self.tags.get_mut(usize::from(tag.0)).and_then(Option::take) else { return };
        self.is_alone = false;
        self.in_flight -= 1;
        if let Some(mut job) = self.jobs.remove(number) {
            self.level.leave(now, job.since);
            self.writes -= usize::from(matches!(job.order.kind, DriveCommandKind::Write { .. }));
            self.by_command.retain(|_, other| *other != number);
            self.done.extend(std::iter::from_fn(|| job.parts.pop_front()).map(|(_, request)| request));
        }
    }
}

impl DriveCommand {
    /// Returns whether it covers the blocks of a request, `per_block` sectors each, in the same
    /// direction.
    fn moves(&self, request: &MediumRequest, per_block: u64) -> bool {
        let Extent { lba, blocks } = request.extent;
        let (first, end) = (lba.0 * per_block, (lba.0 + blocks.0) * per_block);
        let Extent { lba, blocks } = self.extent;
        self.kind == kind_of(request.op) && lba.0 <= first && end <= lba.0 + blocks.0
    }
}

/// Returns whether requests of this type are parts of one contiguous range of blocks.
const fn is_piece(op: MediumOp) -> bool {
    matches!(op, MediumOp::Read | MediumOp::Write { .. })
}

const fn kind_of(op: MediumOp) -> DriveCommandKind {
    match op {
        MediumOp::Read
        | MediumOp::Verify
        | MediumOp::Compare
        | MediumOp::CompareSame
        | MediumOp::Prefetch => DriveCommandKind::Read,
        MediumOp::Write { fua }
        | MediumOp::WriteAtomic { fua }
        | MediumOp::CompareAndWrite { fua }
        | MediumOp::Or { fua } => DriveCommandKind::Write { through: fua },
        MediumOp::WriteSame { .. } | MediumOp::WriteZeroes => DriveCommandKind::Write { through: false },
        MediumOp::Unmap => DriveCommandKind::Trim,
        MediumOp::Flush | MediumOp::SaveState | MediumOp::Status => DriveCommandKind::Flush,
    }
}

#[cfg(test)]
mod tests;
