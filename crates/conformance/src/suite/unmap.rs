//! UNMAP and WRITE SAME: what is read afterwards, and whether the neighbours are unharmed.
//!
//! Left out: anchored blocks, and GET LBA STATUS. Always true: a command that the drive does not have is not tested.

use crate::area::{WriteArea, cut, fill, verify, write_area};
use crate::exchange::ScsiAnswer;
use crate::probe::Probe;
use crate::properties::ProvisioningProperties;
use crate::queue::{StampedBlocks, StampedRun};
use crate::test::Verdict;
use wire::scsi::block::{UnmapDescriptor, UnmapList};
use wire::scsi::cdb::{CdbWidth, Unmap, WriteSame};
use wire::scsi::sense::AdditionalSense;

/// Blocks that are written before: a quarter on each side of those that a command is about.
const BLOCKS: u64 = 1024;

/// The blocks that a command is about.
const TARGET: StampedBlocks = StampedBlocks { lba: BLOCKS / 4, count: BLOCKS / 2, generation: 1 };

/// Content of the blocks that a command was about.
#[derive(Debug, Default)]
struct TargetContent {
    /// Blocks that are as they should be.
    right: u64,
    /// Blocks with the data that were there before.
    old: u64,
    /// The first block with other data.
    other: Option<u64>,
}

pub(super) fn unmap(probe: &mut Probe<'_>) -> Result<Verdict, Verdict> {
    let properties = ProvisioningProperties::read(probe)?;
    let area = write_area(probe, BLOCKS)?;
    let announces_unmap = properties.ways.map_or(properties.is_managed, |ways| ways.unmap);
    if !announces_unmap {
        return Ok(Verdict::NotTested("the drive does not announce UNMAP".into()));
    }
    let mut run = prepared(probe, area)?;
    let target = StampedBlocks { count: TARGET.count.min(properties.unmap_blocks_max), ..TARGET };
    let answer = send_unmap(probe, target.lba, target.count)?;
    if !answer.is_good() {
        return Ok(Verdict::Fail(format!("UNMAP is announced and fails: {}", answer.describe())));
    }
    let verdict = neighbours(probe, &mut run, target)?;
    if verdict != Verdict::Pass {
        return Ok(verdict);
    }
    let content = content(probe, &run, target, &vec![0; area.blocks.bytes as usize])?;
    let promises_zeros = properties.reads_zeros;
    if promises_zeros && let Some(lba) = content.other {
        return Ok(Verdict::Fail(format!("LBA {lba} is neither zeros, as announced, nor unchanged")));
    }
    if promises_zeros && content.old > 0 {
        // A drive may leave blocks mapped.
        let (old, count) = (content.old, target.count);
        return Ok(Verdict::Warning(format!("of {count} blocks that were unmapped {old} keep their data")));
    }
    Ok(match properties.ways {
        Some(ways) if ways.reads_zeros != properties.reads_zeros => {
            Verdict::Warning("READ CAPACITY (16) and the provisioning page disagree about LBPRZ".into())
        }
        Some(_) if !properties.is_managed => {
            Verdict::Warning("UNMAP works, and READ CAPACITY (16) says that it does not (LBPME)".into())
        }
        None => Verdict::Warning("LBPME is set, and there is no Logical Block Provisioning page".into()),
        Some(_) if !promises_zeros => {
            Verdict::Note("the drive does not promise what unmapped blocks hold (LBPRZ is 0)".into())
        }
        Some(_) => Verdict::Pass,
    })
}

pub(super) fn beyond_the_end(probe: &mut Probe<'_>) -> Result<Verdict, Verdict> {
    let area = write_area(probe, 1)?;
    let end = area.blocks.count;
    let block = vec![0; area.blocks.bytes as usize];
    let short = WriteSame { lba: end, blocks: 1, ..WriteSame::default() };
    let long = WriteSame { width: CdbWidth::Sixteen, ..short };
    let mut answers = vec![("UNMAP", send_unmap(probe, end, 1)?)];
    if u32::try_from(end).is_ok() {
        answers.push(("WRITE SAME (10)", probe.scsi_out(0, &short.encode(), &block)?));
    }
    answers.push(("WRITE SAME (16)", probe.scsi_out(0, &long.encode(), &block)?));
    answers.retain(|(_, answer)| !answer.is_unsupported());
    if answers.is_empty() {
        return Ok(Verdict::NotTested("the drive has neither UNMAP nor WRITE SAME".into()));
    }
    let is_wrong =
        |answer: &ScsiAnswer| !answer.is_refused(&[AdditionalSense::LOGICAL_BLOCK_ADDRESS_OUT_OF_RANGE]);
    let wrong = answers.iter().find(|(_, answer)| is_wrong(answer));
    Ok(wrong.map_or(Verdict::Pass, |(name, answer)| {
        Verdict::Fail(format!("{name} of LBA {end}: {}", answer.describe()))
    }))
}

pub(super) fn write_same_10(probe: &mut Probe<'_>) -> Result<Verdict, Verdict> {
    write_same(probe, WriteSame::default())
}

pub(super) fn write_same_16(probe: &mut Probe<'_>) -> Result<Verdict, Verdict> {
    write_same(probe, WriteSame { width: CdbWidth::Sixteen, ..WriteSame::default() })
}

/// Writes one block to all of the target.
fn write_same(probe: &mut Probe<'_>, command: WriteSame) -> Result<Verdict, Verdict> {
    const PATTERN: u8 = 0x5a;
    let area = write_area(probe, BLOCKS)?;
    let mut run = prepared(probe, area)?;
    let block = vec![PATTERN; area.blocks.bytes as usize];
    let command = WriteSame { lba: TARGET.lba, blocks: TARGET.count as u32, ..command };
    let answer = probe.scsi_out(0, &command.encode(), &block)?;
    if answer.is_unsupported() {
        return Ok(Verdict::NotTested("the drive does not have this command".into()));
    }
    same_content(probe, &mut run, &answer, &block)
}

/// Writes a block of zeros to all of the target, which may be unmapped instead.
pub(super) fn write_same_unmap(probe: &mut Probe<'_>) -> Result<Verdict, Verdict> {
    let properties = ProvisioningProperties::read(probe)?;
    let area = write_area(probe, BLOCKS)?;
    let width = match properties.ways {
        Some(ways) if ways.write_same_16 => CdbWidth::Sixteen,
        Some(ways) if ways.write_same_10 => CdbWidth::Ten,
        _ => {
            let words = "the drive does not announce WRITE SAME with UNMAP (LBPWS, LBPWS10)";
            return Ok(Verdict::NotTested(words.into()));
        }
    };
    let mut run = prepared(probe, area)?;
    let block = vec![0; area.blocks.bytes as usize];
    let (lba, blocks) = (TARGET.lba, TARGET.count as u32);
    let command = WriteSame { width, lba, blocks, unmap: true, ..WriteSame::default() };
    let answer = probe.scsi_out(0, &command.encode(), &block)?;
    let verdict = same_content(probe, &mut run, &answer, &block)?;
    // Without LBPRZ such blocks may hold anything.
    Ok(match verdict {
        Verdict::Fail(words) if answer.is_good() && !properties.reads_zeros && run.findings.is_empty() => {
            Verdict::Note(format!("LBPRZ is 0: {words}"))
        }
        verdict => verdict,
    })
}

/// Checks that a command has written this block to all of the target.
fn same_content(
    probe: &mut Probe<'_>,
    run: &mut StampedRun,
    answer: &ScsiAnswer,
    block: &[u8],
) -> Result<Verdict, Verdict> {
    if !answer.is_good() {
        return Ok(Verdict::Fail(answer.describe()));
    }
    let verdict = neighbours(probe, run, TARGET)?;
    if verdict != Verdict::Pass {
        return Ok(verdict);
    }
    let content = content(probe, run, TARGET, block)?;
    Ok(Verdict::of(content.right == TARGET.count, || {
        let (right, count, old) = (content.right, TARGET.count, content.old);
        format!("of {count} blocks {right} hold what was written, {old} their old data")
    }))
}

/// Writes the stamps that are there before a command.
fn prepared(probe: &mut Probe<'_>, area: WriteArea) -> Result<StampedRun, Verdict> {
    let mut run = area.run(2 * BLOCKS);
    fill(probe, &mut run, StampedBlocks { lba: 0, count: BLOCKS, generation: 1 })?;
    Ok(run)
}

/// Checks the blocks before and behind those that a command was about.
fn neighbours(
    probe: &mut Probe<'_>,
    run: &mut StampedRun,
    target: StampedBlocks,
) -> Result<Verdict, Verdict> {
    let end = target.lba + target.count;
    verify(probe, run, StampedBlocks { lba: 0, count: target.lba, generation: 1 })?;
    verify(probe, run, StampedBlocks { lba: end, count: BLOCKS - end, generation: 1 })?;
    Ok(match run.verdict() {
        Verdict::Fail(words) => Verdict::Fail(format!("other blocks were changed: {words}")),
        verdict => verdict,
    })
}

/// Reads the blocks that a command was about.
fn content(
    probe: &mut Probe<'_>,
    run: &StampedRun,
    target: StampedBlocks,
    right: &[u8],
) -> Result<TargetContent, Verdict> {
    let mut content = TargetContent::default();
    for part in cut(target, run.blocks.at_once()) {
        let bytes = probe.read_blocks(part.lba, part.count, run.blocks.bytes)?;
        let old = run.bytes_of(part);
        let pairs = bytes.chunks_exact(right.len()).zip(old.chunks_exact(right.len()));
        for (lba, (block, old)) in (part.lba..).zip(pairs) {
            if block == right {
                content.right += 1;
            } else if block == old {
                content.old += 1;
            } else {
                content.other.get_or_insert(lba);
            }
        }
    }
    Ok(content)
}

fn send_unmap(probe: &mut Probe<'_>, lba: u64, blocks: u64) -> Result<ScsiAnswer, String> {
    let mut list = [0; UnmapList::HEADER_LEN + UnmapDescriptor::LEN];
    let one = UnmapDescriptor { lba, blocks: blocks as u32 };
    UnmapList::encode(&[one], &mut list).map_err(|error| format!("UNMAP: {error:?}"))?;
    let command = Unmap { parameter_list_len: list.len() as u16, ..Unmap::default() };
    probe.scsi_out(0, &command.encode(), &list)
}
