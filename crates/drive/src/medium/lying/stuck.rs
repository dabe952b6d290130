//! Blocks that return one old block, whatever is written to them.
//!
//! They hold the first block that is written to any of them; until then they are as they were. Left out: comparisons, and
//! writes without a block of payload for each block.
//!
//! Always true: a read that does not touch them is unchanged.

use super::super::lie::STUCK_BLOCKS;
use super::{CompletedJob, Job};
use device::medium::{MediumOp, MediumRequest};
use std::ops::Range;
use units::Lba;

/// The stuck blocks.
#[derive(Debug)]
pub(super) struct StuckBlocks {
    lbas: Range<u64>,
    block_bytes: usize,
    /// Their content.
    held: Option<Vec<u8>>,
    /// Reads in flight that touch them.
    reads: Vec<MediumRequest>,
}

impl StuckBlocks {
    /// The blocks from this one on are stuck.
    pub(super) const fn new(first: Lba, block_bytes: u32) -> Self {
        let lbas = first.0..first.0.saturating_add(STUCK_BLOCKS);
        Self { lbas, block_bytes: block_bytes as usize, held: None, reads: Vec::new() }
    }

    /// Looks at a job that is submitted.
    pub(super) fn note(&mut self, job: &Job) {
        let Some(touched) = self.touched(&job.request) else { return };
        match job.request.op {
            MediumOp::Read => self.reads.push(job.request),
            MediumOp::Write { .. } | MediumOp::WriteAtomic { .. } if self.held.is_none() => {
                let payload = job.buffer.get(job.request.range.as_usize()).unwrap_or_default();
                let at = (touched.start - job.request.extent.lba.0) as usize;
                self.held = payload.chunks_exact(self.block_bytes).nth(at).map(<[u8]>::to_vec);
            }
            _ => {}
        }
    }

    /// Replaces the stuck blocks in the data of a completed read.
    pub(super) fn alter(&mut self, finished: &mut CompletedJob) {
        let Some(index) = self.reads.iter().position(|read| read.id == finished.completion.id) else {
            return;
        };
        let read = self.reads.swap_remove(index);
        let (Some(held), Some(touched)) = (&self.held, self.touched(&read)) else { return };
        let Some(payload) = finished.buffer.get_mut(read.range.as_usize()) else { return };
        for (lba, block) in (read.extent.lba.0..).zip(payload.chunks_exact_mut(self.block_bytes)) {
            if touched.contains(&lba) {
                block.copy_from_slice(held);
            }
        }
    }

    /// The stuck blocks that a request touches.
    fn touched(&self, request: &MediumRequest) -> Option<Range<u64>> {
        let first = request.extent.lba.0;
        let end = first.saturating_add(request.extent.blocks.0);
        let touched = first.max(self.lbas.start)..end.min(self.lbas.end);
        (!touched.is_empty()).then_some(touched)
    }
}
