//! The blocks that tests of level 2 overwrite, and stamps in them, one command at a time.
//!
//! Left out: many commands at once ([`crate::queue`]). Always true: no block beyond the area is written.

use crate::blocks::AnnouncedBlocks;
use crate::probe::Probe;
use crate::properties::WriteProperties;
use crate::queue::{BlockJob, CommandQueue, StampedBlocks, StampedRun};
use crate::test::Verdict;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

/// Blocks that may be overwritten, from LBA 0 on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteArea {
    pub(crate) blocks: AnnouncedBlocks,
    pub(crate) count: u64,
}

impl WriteArea {
    /// Begins to write stamps that no earlier run has written.
    pub(crate) fn run(self, total: u64) -> StampedRun {
        StampedRun::new(self.blocks, RandomState::new().hash_one(0) as u32, total)
    }
}

/// Returns the blocks that may be overwritten, if these are at least `needed` ones.
///
/// # Errors
///
/// Why nothing can be tested.
pub(crate) fn write_area(probe: &mut Probe<'_>, needed: u64) -> Result<WriteArea, Verdict> {
    let blocks = probe.announced_blocks().map_err(Verdict::NotTested)?;
    if WriteProperties::read(probe)?.is_protected {
        return Err(Verdict::NotTested("the medium is write-protected".into()));
    }
    let count = blocks.count.min(probe.writes.bytes.0 / u64::from(blocks.bytes));
    if count < needed {
        let words = format!("it overwrites {}; there are, or --size allows, less", blocks.size(needed));
        return Err(Verdict::NotTested(words));
    }
    Ok(WriteArea { blocks, count })
}

/// Cuts blocks into commands of at most `at_once` ones.
pub(crate) fn cut(blocks: StampedBlocks, at_once: u64) -> impl Iterator<Item = StampedBlocks> {
    let StampedBlocks { lba: first, count, generation } = blocks;
    (0..count).step_by(at_once as usize).map(move |done| StampedBlocks {
        lba: first + done,
        count: at_once.min(count - done),
        generation,
    })
}

/// Writes blocks with their stamps, one command at a time.
pub(crate) fn fill(
    probe: &mut Probe<'_>,
    run: &mut StampedRun,
    blocks: StampedBlocks,
) -> Result<(), Verdict> {
    let jobs = cut(blocks, run.blocks.at_once()).map(BlockJob::Write);
    run.carry_out(probe, CommandQueue::One, jobs)
}

/// Reads blocks and compares them with their stamps, one command at a time.
pub(crate) fn verify(
    probe: &mut Probe<'_>,
    run: &mut StampedRun,
    blocks: StampedBlocks,
) -> Result<(), Verdict> {
    let jobs = cut(blocks, run.blocks.at_once()).map(BlockJob::Read);
    run.carry_out(probe, CommandQueue::One, jobs)
}
