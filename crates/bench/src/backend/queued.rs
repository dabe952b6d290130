//! A medium in memory with a queue: nothing completes at submission.
//!
//! Memory completes immediately, so a drive on it would finish each command before the next arrives
//! and never have two in flight, whatever the depth. With a queue in front, all commands that the
//! host has sent stay with the drive until its next poll, as with a real drive. Left out: time.
//!
//! The protocol code runs while memory works. A write bypasses the caches, and completes while the
//! next command arrives; for a read some cache lines are prefetched when the job arrives and some
//! when it is next, as by a drive that reads ahead.
//!
//! Always true: jobs execute and complete in order of arrival; none completes before its writes are
//! visible.

use bus::Fifo;
use device::medium::{MediumDone, MediumError, MediumOp};
use drive::medium::{CompletedJob, Job, Medium, RamMedium, StreamedRam};
use std::hint::cold_path;
use std::io;
use std::ops::Range;
use units::{BlockCount, BlockSize};

/// A memory medium behind a queue.
#[derive(Debug)]
pub(super) struct QueuedMedium {
    medium: StreamedRam,
    waiting: Fifo<Job>,
    /// Results of the jobs at the front that were executed.
    done: Fifo<Result<MediumDone, MediumError>>,
}

/// Cache lines of a job's blocks to prefetch on arrival: fewer than a processor can have
/// outstanding.
const LINES_AT_FIRST: Range<usize> = 0..24;
/// Those to prefetch when the job is next. The hardware prefetcher fetches the rest of a 4 KiB
/// block.
const LINES_BEFORE: Range<usize> = 24..48;

impl QueuedMedium {
    /// Creates an empty queue.
    pub(super) fn new(medium: RamMedium) -> Self {
        Self { medium: StreamedRam::new(medium), waiting: Fifo::new(), done: Fifo::new() }
    }

    /// Executes all waiting jobs in order.
    fn execute_all(&mut self) {
        for index in self.done.len()..self.waiting.len() {
            if let Some(next) = self.waiting.get(index + 1) {
                self.medium.expect(next.request.extent, LINES_BEFORE);
            }
            let Some(Job { request, buffer }) = self.waiting.get_mut(index) else { return };
            note(&mut self.done, self.medium.perform(request, buffer));
        }
    }
}

/// Records a result. A result that is moved is read while its cache line is in flight, and stalls:
/// see [`Fifo`].
#[inline]
fn note(done: &mut Fifo<Result<MediumDone, MediumError>>, result: Result<MediumDone, MediumError>) {
    match result {
        Ok(MediumDone::Done) => done.push_with(|| Ok(MediumDone::Done)),
        other => {
            cold_path();
            done.push_back(other);
        }
    }
}

impl Medium for QueuedMedium {
    fn submit(&mut self, mut job: Job) -> Option<CompletedJob> {
        let is_next = self.done.len() == self.waiting.len();
        if is_next && self.medium.streams() && matches!(job.request.op, MediumOp::Write { .. }) {
            note(&mut self.done, self.medium.perform(&job.request, &mut job.buffer));
        } else {
            self.medium.expect(job.request.extent, LINES_AT_FIRST);
        }
        self.waiting.push_back(job);
        None
    }

    fn poll(&mut self) -> Option<CompletedJob> {
        if self.done.is_empty() {
            self.execute_all();
        }
        self.medium.settle();
        Some(self.waiting.pop_front()?.finish(self.done.pop_front()?))
    }

    fn capacity(&self) -> BlockCount {
        self.medium.capacity()
    }

    fn block_size(&self) -> BlockSize {
        self.medium.block_size()
    }

    fn is_read_only(&self) -> bool {
        self.medium.is_read_only()
    }

    fn writes_atomically(&self) -> bool {
        self.medium.writes_atomically()
    }

    fn keeps_state(&self) -> bool {
        self.medium.keeps_state()
    }

    fn save_state(&mut self, state: &[u8]) -> io::Result<()> {
        self.medium.save_state(state)
    }

    fn load_state(&self) -> io::Result<Option<Vec<u8>>> {
        self.medium.load_state()
    }

    fn describe(&self) -> String {
        self.medium.describe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use device::command::{CommandId, DataLocation};
    use device::medium::{MediumRequest, MediumRequestId};
    use units::{ByteCount, ByteRange, Extent};

    fn job(part: u16, op: MediumOp, lba: u64, byte: u8) -> Job {
        let id = MediumRequestId { command: CommandId { slot: 0, generation: 0 }, part };
        let (extent, range) = (Extent::new(lba, 1), ByteRange::new(0, 512));
        let request = MediumRequest { id, unit: 0, op, extent, location: DataLocation::Buffer, range };
        Job { request, buffer: vec![byte; 512] }
    }

    #[test]
    fn jobs_complete_in_order_of_arrival() {
        // With a small medium all are done when polled.
        for mib in [1, 64] {
            let medium = RamMedium::new(ByteCount(mib << 20), BlockSize::B512).expect("there is memory");
            let mut queued = QueuedMedium::new(medium);
            let (read, write) = (MediumOp::Read, MediumOp::Write { fua: false });
            let jobs = [
                (write, 1),
                (write, 2),
                (read, 0xee),
                (write, 3),
                (read, 0xee),
                (MediumOp::Unmap, 0),
                (read, 0xee),
            ];
            for (part, (op, byte)) in jobs.into_iter().enumerate() {
                assert!(queued.submit(job(part as u16, op, 9, byte)).is_none());
            }
            let ended: Vec<CompletedJob> = std::iter::from_fn(|| queued.poll()).collect();
            let parts: Vec<u16> = ended.iter().map(|finished| finished.completion.id.part).collect();
            assert_eq!(parts, [0, 1, 2, 3, 4, 5, 6]);
            let bytes: Vec<u8> = [2, 4, 6].into_iter().map(|part: usize| ended[part].buffer[511]).collect();
            assert_eq!(bytes, [2, 3, 0], "{mib} MiB");
        }
    }
}
