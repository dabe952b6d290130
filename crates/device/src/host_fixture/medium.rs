//! Memory as a medium, which a test can hold, reorder, and wear out.

use crate::medium::{MediumCompletion, MediumDone, MediumError, MediumOp, MediumRequest};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use units::Lba;

/// Bytes of a block.
pub(crate) const BLOCK: usize = 512;

/// The blocks of all units. A new one has `n % 256` in every byte of block `n`.
#[derive(Debug)]
pub(crate) struct Medium {
    pub(crate) is_held: bool,
    /// Pending requests, oldest first.
    pub(crate) requests: VecDeque<MediumRequest>,
    /// A block of which every use fails.
    pub(crate) bad: Option<u64>,
    units: Vec<Vec<u8>>,
}

impl Medium {
    pub(crate) fn new(units: usize, blocks: usize) -> Self {
        let unit: Vec<u8> = (0..blocks).flat_map(|block| [block as u8; BLOCK]).collect();
        Self { is_held: false, requests: VecDeque::new(), bad: None, units: alloc::vec![unit; units] }
    }

    /// Bytes of unit 0.
    pub(crate) fn blocks(&self, lba: usize, count: usize) -> &[u8] {
        &self.units[0][lba * BLOCK..(lba + count) * BLOCK]
    }

    /// The next request to be done, unless the medium is held.
    pub(super) fn next(&mut self) -> Option<MediumRequest> {
        if self.is_held { None } else { self.requests.pop_front() }
    }

    /// Does what a request asks, with the bytes that it names.
    pub(super) fn perform(&mut self, request: MediumRequest, buffer: &mut [u8]) -> MediumCompletion {
        let (first, count) = (request.extent.lba.0, request.extent.blocks.0);
        let bad = self.bad.filter(|bad| (first..first + count).contains(bad)).map(Lba);
        let (start, len) = (first as usize * BLOCK, count as usize * BLOCK);
        let blocks = &mut self.units[usize::from(request.unit)][start..start + len];
        let result = match (request.op, bad) {
            (MediumOp::Read, Some(lba)) => Err(MediumError::Unreadable { lba }),
            (MediumOp::Write { .. }, Some(lba)) => Err(MediumError::Unwritable { lba }),
            (MediumOp::Read, None) => {
                buffer.copy_from_slice(blocks);
                Ok(MediumDone::Done)
            }
            (MediumOp::Write { .. }, None) => {
                blocks.copy_from_slice(buffer);
                Ok(MediumDone::Done)
            }
            (MediumOp::Unmap, _) => {
                blocks.fill(0);
                Ok(MediumDone::Done)
            }
            (MediumOp::WriteSame { .. }, _) => {
                for block in blocks.chunks_exact_mut(BLOCK) {
                    block.copy_from_slice(buffer);
                }
                Ok(MediumDone::Done)
            }
            (MediumOp::Flush | MediumOp::Verify | MediumOp::Prefetch | MediumOp::SaveState, _) => {
                Ok(MediumDone::Done)
            }
            _ => Err(MediumError::Unsupported),
        };
        MediumCompletion { id: request.id, result }
    }
}
