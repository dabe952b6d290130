//! Medium requests to ATA commands and back.
//!
//! The requests of one command that read or write become one ATA command over all of its blocks,
//! however the target cuts them: of a read each part ends when its sectors have come, so that they
//! can go on to the host while others follow; of a write sectors go to the drive as parts come, and
//! all parts end together. A queued write is given to the drive before its first part has come, if
//! it was foretold. Everything else is an ATA command each.
//!
//! Not modelled: comparing and oring, which take as long as a read, and a write after it.

use crate::drive::{DriveCommand, DriveCommandKind, Mechanism, MediumAccess, SECTOR_BYTES, TAGS, Tag};
use crate::engine::OccupancyStats;
use crate::power::{Meter, Microwatts};
use crate::sata::{Attachment, Command, HostPortEvent, Note, Queueing, Rate};
use crate::vec_map::VecMap;
use bus::Line;
use device::command::CommandId;
use device::medium::{MediumOp, MediumRequest};
use std::collections::VecDeque;
use units::{BlockSize, Duration, Extent, Instant};

/// What the SATA side of a bridge is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StorePart {
    /// The rate of the cable.
    pub rate: Rate,
    /// From one end of it to the other, link layers included.
    pub latency: Duration,
    /// Queued commands in flight at most, 32 at most; 0 if all are given alone.
    pub queued: u8,
    /// Sectors that it can hold that have come from the drive and have not gone on.
    pub buffer_sectors: u32,
    /// Sectors of a read that go on together, once they have all come.
    pub piece_sectors: u32,
    /// From the drive's leave to send a data frame of a write that is alone, to that frame.
    pub frame: Duration,
    /// Whether a read goes to the drive only while all that it brings has room beside what others
    /// bring. So it must be where the host takes the data of one command at a time: the drive sends
    /// in an separate order, and what no one takes yet would fill the buffer before that which is
    /// waited for.
    pub reads_fit: bool,
}

/// The SATA side of a bridge, with a drive.
#[derive(Clone, Debug)]
pub struct Store<M> {
    part: StorePart,
    block_size: BlockSize,
    cable: Attachment<M>,
    /// Bytes that a command moves in all, until it becomes a job.
    announced: VecMap<CommandId, u32>,
    /// Under way or in line, by their number.
    jobs: VecMap<u64, Job>,
    next_job: u64,
    /// Jobs of which other parts may come.
    by_command: VecMap<CommandId, u64>,
    line: VecDeque<u64>,
    tags: [Option<u64>; TAGS],
    /// How many of those are taken, and how many of them by writes.
    in_flight: usize,
    writes: usize,
    /// Whether what is in flight is alone.
    is_alone: bool,
    /// Sectors of whole pieces in the buffer that have not gone on, by whose they are.
    held: VecMap<CommandId, u32>,
    done: VecDeque<MediumRequest>,
    turns: VecDeque<MediumAccess>,
    /// Whether the drive has anything to do. What it draws then is the machine's.
    at_work: Meter<2>,
    /// Jobs, from when they came to their end at the drive.
    level: OccupancyStats,
    /// Requests whose blocks the ATA command of their SCSI command does not move.
    misplaced: u64,
}

/// An ATA command and what it is for.
#[derive(Clone, Debug)]
struct Job {
    /// When it came.
    since: Instant,
    order: DriveCommand,
    /// Requests that have not ended, with the sector of the job at which each ends.
    parts: Line<(u64, MediumRequest)>,
    /// Sectors of parts that have come.
    come: u64,
    /// Sectors that have moved to or from the drive.
    moved: u64,
    /// Sectors of a write that the drive wants and has not been given.
    wanted: u64,
    /// No one waits for it any more.
    is_orphan: bool,
}

impl<M: Mechanism> Store<M> {
    /// A drive behind a bridge, offered in blocks of this size.
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

    /// Notes each frame on the cable from now on, or no more.
    pub fn take_notes(&mut self, is_taking: bool) {
        self.cable.take_notes(is_taking);
    }

    /// The next frame that was sent by now, as text.
    pub fn poll_note(&mut self, now: Instant) -> Option<Note> {
        self.cable.poll_note(now)
    }

    /// A command will move so many bytes in all.
    pub fn announce(&mut self, command: CommandId, bytes: u32) {
        self.announced.insert(command, bytes);
    }

    /// A command that was announced will write these blocks. The drive hears of it before there is
    /// anything to write, so that both get ready at once; but not of one that would be alone, and
    /// keep others from it.
    pub fn foretell(&mut self, now: Instant, command: CommandId, (op, extent): (MediumOp, Extent)) {
        if self.part.queued > 0 && is_piece(op) && !self.by_command.has(command) {
            self.begin(now, command, (op, extent));
            self.advance(now);
        }
    }

    /// Takes a request.
    pub fn take(&mut self, now: Instant, request: MediumRequest) {
        if matches!(request.op, MediumOp::Status | MediumOp::SaveState) {
            // The bridge knows by itself.
            return self.done.push_back(request);
        }
        let number = match self.by_command.get(request.id.command) {
            Some(number) if is_piece(request.op) => *number,
            _ => self.begin(now, request.id.command, (request.op, request.extent)),
        };
        let per_block = u64::from(self.block_size.bytes() / SECTOR_BYTES);
        if let Some(job) = self.jobs.get_mut(number) {
            self.misplaced += u64::from(!job.order.moves(&request, per_block));
            job.come += request.extent.blocks.0 * per_block;
            job.parts.push_back((job.come, request));
        }
        self.advance(now);
    }

    /// Of what was read for a command so many sectors have left the bridge. Whether anything came
    /// of that: the drive, or a read in line, had waited for the room.
    pub fn give(&mut self, now: Instant, command: CommandId, sectors: u32) -> bool {
        let Some(held) = self.held.get_mut(command) else { return false };
        let sectors = sectors.min(*held);
        *held -= sectors;
        if *held == 0 {
            self.held.remove(command);
        }
        let takes_on = self.part.reads_fit && !self.line.is_empty();
        let went_on = self.cable.take(now, sectors) || takes_on;
        if went_on {
            self.advance(now);
        }
        went_on
    }

    /// A command brings nothing more, and no one takes what was read for it, but its requests are
    /// still to be reported of: it was aborted, or has failed. The drive goes on as if it were
    /// over; a request that comes all the same is a command by itself.
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

    /// Commands that were announced or have something here; some of them more than once.
    pub fn commands(&self) -> impl Iterator<Item = CommandId> {
        let announced = self.announced.iter().map(|(command, _)| command);
        let jobs = self.by_command.iter().map(|(command, _)| command);
        announced.chain(jobs).chain(self.held.iter().map(|(command, _)| command))
    }

    /// The command is over. What of it is in flight goes on, and no one waits for it; what has not
    /// left the bridge makes room.
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

    /// A request that has been done: its contents are to be moved now.
    pub fn poll_done(&mut self) -> Option<MediumRequest> {
        self.done.pop_front()
    }

    /// What the drive turned to.
    pub fn poll_access(&mut self) -> Option<MediumAccess> {
        self.turns.pop_front()
    }

    /// Whether anything is in progress.
    pub fn is_busy(&self) -> bool {
        !self.jobs.is_empty()
    }

    /// How long the drive has had something to do, up to now.
    pub fn at_work(&self, now: Instant) -> Duration {
        let [_, at_work] = self.at_work.times(now);
        at_work
    }

    /// The books of when the drive has had something to do, and when not.
    pub(crate) const fn meter(&self) -> &Meter<2> {
        &self.at_work
    }

    /// How many commands it has for the drive, in flight and in line, over time: their books agree,
    /// and so does what is there.
    pub(crate) fn is_consistent(&self, now: Instant) -> bool {
        self.level.is_consistent(now) && self.level.count() as usize == self.jobs.iter().count()
    }

    /// Requests whose blocks the ATA command of their SCSI command does not move: none, unless
    /// something is wrong.
    pub(crate) const fn misplaced(&self) -> u64 {
        self.misplaced
    }

    /// When it goes on.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.cable.poll_timeout()
    }

    /// It is that late.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.cable.handle_timeout(now);
        self.advance(now);
    }

    /// Makes a job of a request, and of what will come of the same command.
    fn begin(&mut self, now: Instant, command: CommandId, (op, extent): (MediumOp, Extent)) -> u64 {
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
            Job { since: now, order, parts: Line::new(), come: 0, moved: 0, wanted: 0, is_orphan: false };
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

    /// Gives the drive what is first in line, as long as it may.
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

    /// Whether a job may begin, as far as room for what it brings goes.
    fn fits(&self, number: u64) -> bool {
        let reads = |number: &u64| {
            let order = self.jobs.get(*number)?.order;
            (order.kind == DriveCommandKind::Read).then_some(order.extent.blocks.0)
        };
        let Some(sectors) = reads(&number).filter(|_| self.part.reads_fit) else { return true };
        let in_flight: u64 = self.tags.iter().flatten().filter_map(reads).sum();
        // Of those that the drive is done with, what has not gone on.
        let left = self.held.iter().filter(|(command, _)| !self.by_command.has(*command));
        let taken = in_flight + left.map(|(_, sectors)| u64::from(*sectors)).sum::<u64>();
        taken == 0 || taken + sectors <= u64::from(self.part.buffer_sectors)
    }

    /// Gives the drive sectors of writes that it wants and that have come.
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
        // A piece takes room when it is whole and waits to go on. If what has come of others did so
        // as well, pieces could wait for each other's room for ever.
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
    /// Whether it moves the blocks of a request, each of so many sectors, in its direction.
    fn moves(&self, request: &MediumRequest, per_block: u64) -> bool {
        let Extent { lba, blocks } = request.extent;
        let (first, end) = (lba.0 * per_block, (lba.0 + blocks.0) * per_block);
        let Extent { lba, blocks } = self.extent;
        self.kind == kind_of(request.op) && lba.0 <= first && end <= lba.0 + blocks.0
    }
}

/// Whether requests of one command are pieces of one run of blocks.
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
