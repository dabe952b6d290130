//! No medium: what a unit has whose medium was taken out.
//!
//! The unit lets no command through then; what was let through before and comes late is refused here, so that nothing
//! of an old command ever reaches another medium.

use super::{CompletedJob, Job, Medium};
use device::medium::MediumError;
use std::io;
use units::{BlockCount, BlockSize};

/// The place of a medium that is not there.
#[derive(Clone, Copy, Debug)]
pub struct EmptySlot {
    /// The length of the blocks that the unit has.
    pub block_size: BlockSize,
}

impl Medium for EmptySlot {
    fn submit(&mut self, job: Job) -> Option<CompletedJob> {
        Some(job.finish(Err(MediumError::Absent)))
    }

    fn capacity(&self) -> BlockCount {
        BlockCount(0)
    }

    fn block_size(&self) -> BlockSize {
        self.block_size
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn writes_atomically(&self) -> bool {
        false
    }

    fn keeps_state(&self) -> bool {
        false
    }

    fn save_state(&mut self, _state: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn load_state(&self) -> io::Result<Option<Vec<u8>>> {
        Ok(None)
    }

    fn describe(&self) -> String {
        "no medium".into()
    }
}

#[cfg(test)]
mod tests {
    use super::super::suite;
    use super::*;
    use device::medium::MediumOp;
    use units::Extent;

    #[test]
    fn what_comes_late_is_refused() {
        let mut empty = EmptySlot { block_size: BlockSize::B512 };
        assert_eq!(suite::bare(&mut empty, MediumOp::Flush, Extent::default()), Err(MediumError::Absent));
        assert_eq!(suite::read(&mut empty, Extent::new(0, 1)), Err(MediumError::Absent));
    }
}
