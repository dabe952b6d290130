//! The write cache: FUA, flushes, and what is left after a power loss.
//!
//! Left out: power losses of a real drive, which needs a person. Always true: no more is asked of a drive than it announces.

use crate::area::{cut, fill, verify, write_area};
use crate::bus::Transfer;
use crate::exchange::{AnnouncedData, command_iu};
use crate::limits::WriteLimits;
use crate::probe::Probe;
use crate::properties::WriteProperties;
use crate::queue::{StampedBlocks, StampedRun};
use crate::test::Verdict;
use bus::TransferStatus;
use wire::bot::Cbw;
use wire::scsi::cdb::{Read, Write};
use wire::scsi::lun::LunField;
use wire::usb::Direction;
use workload::stamp::{self, BlockContent, Stamp};

/// Blocks that tests of the cache write.
const BLOCKS: u64 = 256;

pub(super) fn fua(probe: &mut Probe<'_>) -> Result<Verdict, Verdict> {
    let area = write_area(probe, BLOCKS)?;
    let properties = WriteProperties::read(probe)?;
    let mut run = area.run(2 * BLOCKS);
    let all = StampedBlocks { lba: 0, count: area.blocks.at_once(), generation: 1 };
    let cdb = Write { blocks: all.count as u32, fua: true, ..Write::default() }.encode();
    let answer = probe.scsi_out(0, &cdb, &run.bytes_of(all))?;
    if !answer.is_good() && !properties.has_fua && answer.is_unsupported() {
        return Ok(Verdict::Note("the drive has no FUA, and refuses it".into()));
    }
    if !answer.is_good() {
        return Ok(Verdict::Fail(format!("WRITE with FUA: {}", answer.describe())));
    }
    verify(probe, &mut run, all)?;
    let cdb = Read { blocks: all.count as u32, fua: true, ..Read::default() }.encode();
    let answer = probe.scsi(0, &cdb, all.count as u32 * area.blocks.bytes)?;
    if answer.is_good() {
        run.compare(all, &answer.data);
    } else if properties.has_fua || !answer.is_unsupported() {
        return Ok(Verdict::Fail(format!("READ with FUA: {}", answer.describe())));
    }
    let verdict = run.verdict();
    if verdict == Verdict::Pass && !properties.has_fua {
        return Ok(Verdict::Note("the drive announces no FUA (DPOFUA is 0), and accepts it".into()));
    }
    Ok(verdict)
}

pub(super) fn flush(probe: &mut Probe<'_>) -> Result<Verdict, Verdict> {
    let area = write_area(probe, BLOCKS)?;
    let properties = WriteProperties::read(probe)?;
    let mut run = area.run(2 * BLOCKS);
    let all = StampedBlocks { lba: 0, count: BLOCKS, generation: 1 };
    fill(probe, &mut run, all)?;
    let answer = probe.synchronize_cache()?;
    let is_refused = !answer.is_good();
    if is_refused && (properties.write_cache == Some(true) || !answer.is_unsupported()) {
        return Ok(Verdict::Fail(answer.describe()));
    }
    verify(probe, &mut run, all)?;
    let verdict = run.verdict();
    Ok(match (verdict, properties.write_cache) {
        (Verdict::Pass, None) if is_refused => {
            Verdict::Note("the drive has neither a Caching page nor SYNCHRONIZE CACHE".into())
        }
        (Verdict::Pass, None) => {
            Verdict::Note("the drive has no Caching page: Linux assumes that it has no write cache".into())
        }
        (verdict, _) => verdict,
    })
}

/// A promise of what a power loss leaves of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Promise {
    /// The new data: they were flushed.
    Flushed,
    /// The new data: they were written with FUA.
    ForcedUnitAccess,
    /// The new data: the drive announces no write cache.
    WrittenThrough,
    /// The old data or the new ones, each block as a whole: they may have been in a cache.
    Either,
    /// The same: power was lost before the command had ended.
    CutOff,
}

impl Promise {
    const fn name(self) -> &'static str {
        match self {
            Self::Flushed => "flushed",
            Self::ForcedUnitAccess => "written with FUA",
            Self::WrittenThrough => "written by a drive that announces no write cache",
            Self::Either => "not flushed",
            Self::CutOff => "of a WRITE that was cut off",
        }
    }

    const fn allows_old(self) -> bool {
        matches!(self, Self::Either | Self::CutOff)
    }
}

pub(super) fn power_loss(probe: &mut Probe<'_>) -> Result<Verdict, Verdict> {
    let WriteLimits { seed, power_cycles: cycles, .. } = probe.writes;
    let area = write_area(probe, BLOCKS)?;
    // Nothing is written if power cannot be cut.
    if !probe.lose_power(seed) {
        let words = "power of a real drive is cut by a person; this needs --attended, which is to come";
        return Err(Verdict::NotTested(words.into()));
    }
    if !probe.begin_scsi() {
        return Ok(Verdict::Fail("the device does not get ready after a power loss".into()));
    }
    let properties = WriteProperties::read(probe)?;
    let mut run = area.run(u64::from(cycles) * 3 * BLOCKS);
    for cycle in 0..cycles {
        let seed = seed.wrapping_add(cycle.into());
        if let Err(words) = one_power_loss(probe, &mut run, properties, cycle, seed)? {
            return Ok(Verdict::Fail(format!("power loss {} of {cycles} (seed {seed}): {words}", cycle + 1)));
        }
    }
    Ok(Verdict::Pass)
}

/// Writes old data and flushes them; writes new data, of which a part is flushed, a part written with FUA and a part in flight; cuts
/// power, and reads. Returns what is wrong.
fn one_power_loss(
    probe: &mut Probe<'_>,
    run: &mut StampedRun,
    properties: WriteProperties,
    cycle: u32,
    seed: u64,
) -> Result<Result<(), String>, Verdict> {
    let (old, new) = (2 * cycle + 1, 2 * cycle + 2);
    let quarter = BLOCKS / 4;
    let part = |index: u64, count: u64| StampedBlocks { lba: index * quarter, count, generation: new };
    fill(probe, run, StampedBlocks { lba: 0, count: BLOCKS, generation: old })?;
    let is_flushed = probe.synchronize_cache()?.is_good();
    fill(probe, run, part(0, quarter))?;
    let is_flushed = probe.synchronize_cache()?.is_good() && is_flushed;
    if properties.has_fua {
        write_with_fua(probe, run, part(1, quarter))?;
    } else {
        fill(probe, run, part(1, quarter))?;
    }
    fill(probe, run, part(2, quarter))?;
    begin_write(probe, run, part(3, quarter.min(run.blocks.at_once())));
    if !probe.lose_power(seed) || !probe.begin_scsi() {
        return Ok(Err("the device does not get ready afterwards".into()));
    }
    let volatile = match properties.write_cache {
        Some(false) => Promise::WrittenThrough,
        _ => Promise::Either,
    };
    let first = if is_flushed { Promise::Flushed } else { volatile };
    let second = if properties.has_fua { Promise::ForcedUnitAccess } else { volatile };
    // Without a flush blocks may be of any age.
    let oldest = if is_flushed { old } else { 0 };
    for (index, promise) in (0..).zip([first, second, volatile, Promise::CutOff]) {
        let blocks = part(index, quarter);
        if let Err(words) = left_over(probe, run, blocks, promise, oldest)? {
            return Ok(Err(words));
        }
    }
    Ok(Ok(()))
}

fn write_with_fua(probe: &mut Probe<'_>, run: &StampedRun, blocks: StampedBlocks) -> Result<(), Verdict> {
    for blocks in cut(blocks, run.blocks.at_once()) {
        let bytes = run.bytes_of(blocks);
        let cdb =
            Write { lba: blocks.lba, blocks: blocks.count as u32, fua: true, ..Write::default() }.encode();
        let answer = probe.scsi_out(0, &cdb, &bytes)?;
        if !answer.is_good() {
            return Err(Verdict::Fail(format!("WRITE with FUA: {}", answer.describe())));
        }
    }
    Ok(())
}

/// Sends a WRITE and the first half of its data. It stays in flight.
fn begin_write(probe: &mut Probe<'_>, run: &StampedRun, blocks: StampedBlocks) {
    let bytes = run.bytes_of(blocks);
    let sent = &bytes[..bytes.len() / 2];
    let cdb = Write { lba: blocks.lba, blocks: blocks.count as u32, ..Write::default() }.encode();
    match (probe.device().bot, probe.device().uas) {
        (Some(plan), _) => {
            let cbw = Cbw::new(probe.tag(), bytes.len() as u32, Direction::Out, 0, &cdb);
            if probe.send(plan.bulk_out.plain(), &cbw.encode()) == TransferStatus::Done {
                probe.start(plan.bulk_out.plain(), Transfer::Send(sent));
            }
        }
        (None, Some(plan)) => {
            let iu = command_iu(1, LunField::default(), &cdb);
            probe.uas_start(&plan, 1, &iu, AnnouncedData::Out(sent));
        }
        (None, None) => {}
    }
}

/// Compares blocks after a power loss with what was promised of them. Returns what is wrong.
fn left_over(
    probe: &mut Probe<'_>,
    run: &StampedRun,
    blocks: StampedBlocks,
    promise: Promise,
    oldest: u32,
) -> Result<Result<(), String>, Verdict> {
    let stamp = Stamp { generation: blocks.generation, session: run.session };
    for part in cut(blocks, run.blocks.at_once()) {
        let bytes = probe.read_blocks(part.lba, part.count, run.blocks.bytes)?;
        for (lba, block) in (part.lba..).zip(bytes.chunks_exact(run.blocks.bytes as usize)) {
            let Err(found) = stamp::check(block, lba, stamp) else { continue };
            let found = match found {
                BlockContent::OtherGeneration { generation }
                    if promise.allows_old() && generation >= oldest =>
                {
                    continue;
                }
                BlockContent::OtherGeneration { generation } if generation < oldest => {
                    "holds data from before the last flush"
                }
                BlockContent::OtherGeneration { .. } => "holds old data",
                BlockContent::Damaged => "is torn: neither old nor new",
                BlockContent::Misplaced { .. } => "holds another block",
                BlockContent::OtherSession | BlockContent::NoStamp if promise.allows_old() && oldest == 0 => {
                    continue;
                }
                BlockContent::OtherSession | BlockContent::NoStamp => "holds data from before this run",
            };
            return Ok(Err(format!("LBA {lba}, {}, {found}", promise.name())));
        }
    }
    Ok(Ok(()))
}
