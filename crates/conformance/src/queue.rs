//! Commands on stamped blocks, as many at once as the transport allows.
//!
//! Over UAS with streams the next command starts whenever the oldest one has ended, so that all tags stay in use. Without streams, and
//! over BOT, there is one command at a time. Left out: error recovery.
//!
//! Always true: each block that is read is compared with the stamp of its last write.

use crate::blocks::{AnnouncedBlocks, FLUSH_LIMIT};
use crate::bus::SLOTS;
use crate::exchange::{AnnouncedData, PendingUas, UasExchange, command_iu};
use crate::findings::Findings;
use crate::probe::Probe;
use crate::test::Verdict;
use quirks::{Matching, UasPlan};
use std::collections::VecDeque;
use wire::scsi::cdb::{Cdb, Read, SynchronizeCache, Write};
use wire::scsi::lun::LunField;
use workload::stamp::{self, Stamp};

/// Bytes of the longest command over BOT: what Linux sends at once.
const BOT_BYTES: u32 = 512 << 10;

/// Transfers of one command over UAS.
const TRANSFERS: u16 = 3;

/// The way of commands to the drive.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CommandQueue<'a> {
    /// One at a time, over the transport that is selected.
    One,
    /// Over UAS, up to this tag.
    Tags(&'a UasPlan, u16),
}

impl CommandQueue<'_> {
    /// Returns the blocks of the longest command: over BOT, where commands follow each other, as many as a host sends at once.
    pub(crate) fn blocks_at_once(self, probe: &Probe<'_>, blocks: AnnouncedBlocks) -> u64 {
        match self {
            Self::One if probe.device().bot.is_some() => u64::from(BOT_BYTES / blocks.bytes),
            _ => blocks.at_once(),
        }
    }

    /// Has the drive write its cache to the medium. A drive need not have the command.
    pub(crate) fn flush(self, probe: &mut Probe<'_>) -> Result<(), String> {
        match self {
            Self::One => probe.synchronize_cache().map(drop),
            Self::Tags(plan, _) => probe.within(FLUSH_LIMIT, |probe| {
                let cdb = SynchronizeCache::default().encode();
                let exchange = probe.uas_command(plan, 1, LunField::default(), &cdb, AnnouncedData::None);
                exchange.scsi().map(drop).ok_or_else(|| format!("SYNCHRONIZE CACHE: {}", exchange.describe()))
            }),
        }
    }

    /// Returns how many commands are in flight at once.
    pub(crate) fn depth(self) -> u16 {
        match self {
            Self::Tags(plan, tag_max) if matches!(plan.matching, Matching::Streams { .. }) => {
                tag_max.min(SLOTS / TRANSFERS)
            }
            _ => 1,
        }
    }
}

/// Blocks with the stamp of one write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StampedBlocks {
    pub(crate) lba: u64,
    pub(crate) count: u64,
    pub(crate) generation: u32,
}

/// One command.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BlockJob {
    /// Writes the stamps.
    Write(StampedBlocks),
    /// Reads the blocks and compares them with their stamps.
    Read(StampedBlocks),
}

/// A run of commands, and what they found.
#[derive(Debug)]
pub(crate) struct StampedRun {
    pub(crate) blocks: AnnouncedBlocks,
    /// The session of its stamps.
    pub(crate) session: u32,
    pub(crate) findings: Findings,
    /// Blocks that were read and compared; one that is read twice counts twice.
    compared: u64,
    /// Blocks that were written or read, of how many.
    pub(crate) done: u64,
    pub(crate) total: u64,
    /// Whether it was asked to stop. What was in flight has ended.
    pub(crate) is_interrupted: bool,
}

impl StampedRun {
    /// Begins a run that writes and reads so many blocks.
    pub(crate) fn new(blocks: AnnouncedBlocks, session: u32, total: u64) -> Self {
        Self {
            blocks,
            session,
            findings: Findings::default(),
            compared: 0,
            done: 0,
            total,
            is_interrupted: false,
        }
    }

    /// Returns the bytes of blocks.
    pub(crate) fn bytes_of(&self, blocks: StampedBlocks) -> Vec<u8> {
        let stamp = Stamp { generation: blocks.generation, session: self.session };
        let mut bytes = vec![0; (blocks.count * u64::from(self.blocks.bytes)) as usize];
        for (lba, block) in (blocks.lba..).zip(bytes.chunks_exact_mut(self.blocks.bytes as usize)) {
            stamp::write(block, lba, stamp);
        }
        bytes
    }

    /// Compares what was read with the stamps.
    pub(crate) fn compare(&mut self, blocks: StampedBlocks, bytes: &[u8]) {
        let stamp = Stamp { generation: blocks.generation, session: self.session };
        for (lba, block) in (blocks.lba..).zip(bytes.chunks_exact(self.blocks.bytes as usize)) {
            if let Err(found) = stamp::check(block, lba, stamp) {
                self.findings.add(lba, block, found);
            }
        }
        self.compared += blocks.count;
    }

    /// Passes if all blocks that were read had their stamps.
    pub(crate) fn verdict(&mut self) -> Verdict {
        self.findings.verdict(self.compared)
    }
}

impl BlockJob {
    const fn blocks(self) -> StampedBlocks {
        match self {
            Self::Write(blocks) | Self::Read(blocks) => blocks,
        }
    }

    fn cdb(self) -> Cdb {
        let StampedBlocks { lba, count, .. } = self.blocks();
        match self {
            Self::Write(_) => Write { lba, blocks: count as u32, ..Write::default() }.encode(),
            Self::Read(_) => Read { lba, blocks: count as u32, ..Read::default() }.encode(),
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Write(_) => "WRITE",
            Self::Read(_) => "READ",
        }
    }
}

/// A command in flight.
struct StartedJob {
    job: BlockJob,
    tag: u16,
    pending: PendingUas<'static>,
}

impl StampedRun {
    /// Carries out commands of at most 64 KiB, or [`CommandQueue::blocks_at_once`].
    ///
    /// # Errors
    ///
    /// The verdict, if a command fails, or the test is interrupted; then what was in flight has ended.
    pub(crate) fn carry_out(
        &mut self,
        probe: &mut Probe<'_>,
        queue: CommandQueue<'_>,
        mut jobs: impl Iterator<Item = BlockJob>,
    ) -> Result<(), Verdict> {
        match queue {
            CommandQueue::One => jobs.try_for_each(|job| {
                self.carry_out_one(probe, job)?;
                self.check_interrupted()
            }),
            CommandQueue::Tags(plan, _) if queue.depth() == 1 => jobs.try_for_each(|job| {
                let written = self.written(job);
                let data = self.data_phase(job, &written);
                let exchange = probe.uas_command(plan, 1, LunField::default(), &job.cdb(), data);
                self.judge(job, 1, &exchange)?;
                self.advance(probe, job);
                self.check_interrupted()
            }),
            CommandQueue::Tags(plan, _) => self.carry_out_at_depth(probe, plan, queue.depth(), jobs),
        }
    }

    fn carry_out_one(&mut self, probe: &mut Probe<'_>, job: BlockJob) -> Result<(), Verdict> {
        let StampedBlocks { lba, count, .. } = job.blocks();
        match job {
            BlockJob::Write(_) => probe.write_blocks(lba, &self.written(job), self.blocks.bytes)?,
            BlockJob::Read(blocks) => {
                let bytes = probe.read_blocks(lba, count, self.blocks.bytes)?;
                self.compare(blocks, &bytes);
            }
        }
        self.advance(probe, job);
        Ok(())
    }

    fn carry_out_at_depth(
        &mut self,
        probe: &mut Probe<'_>,
        plan: &UasPlan,
        depth: u16,
        mut jobs: impl Iterator<Item = BlockJob>,
    ) -> Result<(), Verdict> {
        let mut free: VecDeque<u16> = (1..=depth).collect();
        let mut in_flight: VecDeque<StartedJob> = VecDeque::new();
        loop {
            while let Some(tag) = free.front().copied()
                && !self.is_interrupted
                && let Some(job) = jobs.next()
            {
                free.pop_front();
                let iu = command_iu(tag, LunField::default(), &job.cdb());
                let written = self.written(job);
                let pending = probe.uas_start(plan, tag, &iu, self.data_phase(job, &written));
                in_flight.push_back(StartedJob { job, tag, pending: pending.with_started_data() });
            }
            let Some(StartedJob { job, tag, mut pending }) = in_flight.pop_front() else {
                return self.check_interrupted();
            };
            pending.exchange.sent = probe.finish(pending.command).map(|completed| completed.status);
            let exchange = probe.uas_finish(plan, pending);
            self.judge(job, tag, &exchange)?;
            self.advance(probe, job);
            free.push_back(tag);
        }
    }

    /// Returns the bytes that a command sends.
    fn written(&self, job: BlockJob) -> Vec<u8> {
        match job {
            BlockJob::Write(blocks) => self.bytes_of(blocks),
            BlockJob::Read(_) => Vec::new(),
        }
    }

    const fn data_phase<'d>(&self, job: BlockJob, written: &'d [u8]) -> AnnouncedData<'d> {
        match job {
            BlockJob::Write(_) => AnnouncedData::Out(written),
            BlockJob::Read(blocks) => AnnouncedData::In(blocks.count as u32 * self.blocks.bytes),
        }
    }

    /// Handles the end of a command over UAS.
    fn judge(&mut self, job: BlockJob, tag: u16, exchange: &UasExchange) -> Result<(), Verdict> {
        let blocks = job.blocks();
        let fault = |what: String| {
            Err(Verdict::Fail(format!("{} of LBA {}, tag {tag}: {what}", job.name(), blocks.lba)))
        };
        let Some(answer) = exchange.scsi().filter(|_| exchange.tag() == Some(tag)) else {
            return fault(exchange.describe());
        };
        if !answer.is_good() {
            return fault(answer.describe());
        }
        if matches!(job, BlockJob::Read(_)) {
            let expected = blocks.count * u64::from(self.blocks.bytes);
            if answer.data.len() as u64 != expected {
                return fault(format!("{} bytes of {expected}", answer.data.len()));
            }
            self.compare(blocks, &answer.data);
        }
        Ok(())
    }

    /// Reports progress.
    fn advance(&mut self, probe: &mut Probe<'_>, job: BlockJob) {
        self.done += job.blocks().count;
        self.is_interrupted |= !probe.run.goes_on(self.done, self.total);
    }

    fn check_interrupted(&self) -> Result<(), Verdict> {
        if !self.is_interrupted {
            return Ok(());
        }
        Err(Verdict::NotTested(format!("interrupted after {} of {} blocks", self.done, self.total)))
    }
}
