//! Capacity: whether the blocks that a drive announces are there (level 3). All data are overwritten.
//!
//! Each block that is written holds its LBA and the number of this run ([`workload::stamp`]), so that no table is needed:
//! the content in place of that stamp says what has happened. The pass over all blocks is in `every_block`. Left out: faults that
//! show later, or warm.

use super::every_block;
use crate::blocks::AnnouncedBlocks;
use crate::probe::Probe;
use crate::test::{Group, Run, Test, Verdict};
use std::collections::hash_map::RandomState;
use std::fmt::Write as _;
use std::hash::BuildHasher;
use wire::scsi::cdb::Unmap;
use workload::stamp::{self, BlockContent, Stamp};

const CLAUSE: &str = "SBC-3 clause 4.5";

pub(super) const TESTS: &[Test] = &[
    Test {
        id: "whole-probe",
        group: Group::Capacity,
        title: "Blocks written at powers of two are read back, and the last one",
        clause: CLAUSE,
        means: "The drive has less memory than it announces; files beyond it destroy others, or are lost.",
        run: Run::Scsi(probe_powers),
    },
    Test {
        id: "whole-blocks",
        group: Group::Capacity,
        title: "Every block, written in order, is read back",
        clause: CLAUSE,
        means: "The drive loses or mixes up data; it is not fit for use.",
        run: Run::Scsi(every_block::run),
    },
    Test {
        id: "whole-unmap",
        group: Group::Capacity,
        title: "Blocks that were unmapped read as zeros, if the drive promises it (LBPRZ)",
        clause: "SBC-3 clauses 4.7.4.4, 5.28",
        means: "TRIM has no effect: deleted files remain on the drive.",
        run: Run::Scsi(unmapped),
    },
];

/// The stamp of this run: distinct from that of an earlier one.
fn new_stamp() -> Stamp {
    Stamp { generation: 1, session: RandomState::new().hash_one(0) as u32 }
}

/// LBAs that are probed: 0, the powers of two, the last.
fn places(count: u64) -> Vec<u64> {
    let powers = (0..u64::BITS).map(|power| 1 << power).take_while(|lba| *lba < count);
    let mut places: Vec<u64> = std::iter::once(0).chain(powers).chain([count - 1]).collect();
    places.sort_unstable();
    places.dedup();
    places
}

fn write_one(probe: &mut Probe<'_>, blocks: AnnouncedBlocks, lba: u64, stamp: Stamp) -> Result<(), String> {
    let mut block = vec![0; blocks.bytes as usize];
    stamp::write(&mut block, lba, stamp);
    probe.write_blocks(lba, &block, blocks.bytes)
}

/// Returns the content of a block, if it is not its stamp.
fn look_at(
    probe: &mut Probe<'_>,
    blocks: AnnouncedBlocks,
    lba: u64,
    stamp: Stamp,
) -> Result<Result<(), BlockContent>, String> {
    let block = probe.read_blocks(lba, 1, blocks.bytes)?;
    Ok(stamp::check(&block, lba, stamp))
}

/// Probes once for a run that is continued later: the blocks that it writes are part of the run.
fn probe_powers(probe: &mut Probe<'_>) -> Result<Verdict, String> {
    if let Some(saved) = probe.run.store().and_then(|store| store.saved()) {
        return Ok(saved.probe_fault.clone().map_or(Verdict::Pass, Verdict::Fail));
    }
    let verdict = probe_places(probe)?;
    let fault = matches!(verdict, Verdict::Fail(_)).then(|| verdict.words().unwrap_or_default().to_owned());
    if let Some(store) = probe.run.store() {
        store.keep_probe_fault(fault);
    }
    Ok(verdict)
}

fn probe_places(probe: &mut Probe<'_>) -> Result<Verdict, String> {
    let blocks = probe.announced_blocks()?;
    let (stamp, places) = (new_stamp(), places(blocks.count));
    for lba in &places {
        if let Err(why) = write_one(probe, blocks, *lba, stamp) {
            return Ok(Verdict::Fail(why));
        }
    }
    // A drive need not have it.
    probe.synchronize_cache()?;
    let mut good = 0;
    for lba in places {
        let found = match look_at(probe, blocks, lba, stamp) {
            Ok(Ok(())) => {
                good = lba;
                continue;
            }
            Ok(Err(found)) => found,
            Err(why) => return Ok(Verdict::Fail(why)),
        };
        return Ok(Verdict::Fail(match found {
            // The place that is overwritten first is 0, by the smallest power of two past the end.
            BlockContent::Misplaced { belongs_to } => wrapped(probe, blocks, lba, belongs_to, stamp)?,
            BlockContent::NoStamp => {
                let first = first_lost(probe, blocks, good, lba, stamp)?;
                format!(
                    "writes from LBA {first} on are acknowledged and lost: of {} that are announced the drive keeps {}",
                    blocks.size(blocks.count),
                    blocks.size(first)
                )
            }
            found => format!("LBA {lba} {}", describe(found)),
        }));
    }
    Ok(Verdict::Pass)
}

/// Blocks wrap around: finds the smallest power of two that is stored over LBA 0.
fn wrapped(
    probe: &mut Probe<'_>,
    blocks: AnnouncedBlocks,
    lba: u64,
    belongs_to: u64,
    stamp: Stamp,
) -> Result<String, String> {
    let mut text = format!("LBA {lba} holds the data of LBA {belongs_to}");
    let powers = (0..u64::BITS).map(|power| 1 << power).take_while(|lba| *lba < blocks.count);
    for power in powers {
        write_one(probe, blocks, 0, stamp)?;
        write_one(probe, blocks, power, stamp)?;
        if look_at(probe, blocks, 0, stamp)? == Err(BlockContent::Misplaced { belongs_to: power }) {
            let _ = write!(
                text,
                ": blocks wrap around after {}, of {} that are announced",
                blocks.size(power),
                blocks.size(blocks.count)
            );
            break;
        }
    }
    Ok(text)
}

/// The first block that is lost, between one that is stored and one that is not.
fn first_lost(
    probe: &mut Probe<'_>,
    blocks: AnnouncedBlocks,
    mut good: u64,
    mut lost: u64,
    stamp: Stamp,
) -> Result<u64, String> {
    while lost - good > 1 {
        let middle = good.midpoint(lost);
        write_one(probe, blocks, middle, stamp)?;
        probe.synchronize_cache()?;
        match look_at(probe, blocks, middle, stamp)? {
            Ok(()) => good = middle,
            Err(_) => lost = middle,
        }
    }
    Ok(lost)
}

fn unmapped(probe: &mut Probe<'_>) -> Result<Verdict, String> {
    const EXTENT_LIST_BYTES: u16 = 24;
    let blocks = probe.announced_blocks()?;
    let Some(long) = probe.capacity_16()? else {
        return Ok(Verdict::NotTested("the drive does not have READ CAPACITY (16)".into()));
    };
    if !long.provisioning_management || !long.provisioning_reads_zeroes {
        return Ok(Verdict::NotTested("the drive does not promise that unmapped blocks are zeros".into()));
    }
    let count = blocks.at_once().min(blocks.count);
    let written = vec![0xa5; count as usize * blocks.bytes as usize];
    if let Err(why) = probe.write_blocks(0, &written, blocks.bytes) {
        return Ok(Verdict::Fail(why));
    }
    let mut list = [0; EXTENT_LIST_BYTES as usize];
    // Lengths of what follows, then one extent: LBA 0, and so many blocks.
    (list[1], list[3]) = (22, 16);
    list[16..20].copy_from_slice(&(count as u32).to_be_bytes());
    let unmap = Unmap { parameter_list_len: EXTENT_LIST_BYTES, ..Unmap::default() };
    let answer = probe.scsi_out(0, &unmap.encode(), &list)?;
    if !answer.is_good() {
        return Ok(Verdict::Fail(format!("UNMAP of {count} blocks: {}", answer.describe())));
    }
    let read = match probe.read_blocks(0, count, blocks.bytes) {
        Ok(read) => read,
        Err(why) => return Ok(Verdict::Fail(why)),
    };
    let left = read.chunks_exact(blocks.bytes as usize).filter(|block| block.iter().any(|byte| *byte != 0));
    // A drive may leave blocks mapped.
    Ok(match left.count() {
        0 => Verdict::Pass,
        left => Verdict::Warning(format!("of {count} blocks that were unmapped {left} keep their data")),
    })
}

fn describe(found: BlockContent) -> String {
    match found {
        BlockContent::NoStamp => "does not hold what was written".into(),
        BlockContent::OtherGeneration { .. } | BlockContent::OtherSession => {
            "holds data from before this run".into()
        }
        BlockContent::Misplaced { belongs_to } => format!("holds the data of LBA {belongs_to}"),
        BlockContent::Damaged => "is damaged".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_places_are_zero_the_powers_of_two_and_the_last() {
        assert_eq!(places(1), [0]);
        assert_eq!(places(8), [0, 1, 2, 4, 7]);
        assert_eq!(places(1 << 35).len(), 37);
    }
}
