//! A medium in memory that has a queue: nothing is told of a job before it is asked for.
//!
//! Memory answers on the spot, and a drive on it is done with each command before the next one comes: no two would ever be under
//! way, whatever the depth. With a queue in front, all commands that the host has sent are with the drive until its next
//! turn, as with a drive that takes time. Left out: the time.
//!
//! Memory works while the protocol does. A write whose turn it is goes past the caches at once, and is on its way while the next command
//! comes; of what is to be read some lines are fetched when the job comes, and some more before the one ahead of it is done, as by
//! a drive that knows what comes next and does not begin with it only then.
//!
//! Always true: jobs are done, and end, in the order in which they came; none ends before all can see what it has written.

use bus::Fifo;
use device::medium::{MediumDone, MediumError, MediumOp};
use drive::medium::{CompletedJob, Job, Medium, RamMedium, StreamedRam};
use std::hint::cold_path;
use std::io;
use std::ops::Range;
use units::{BlockCount, BlockSize};

/// Memory behind a queue.
#[derive(Debug)]
pub(super) struct QueuedMedium {
    medium: StreamedRam,
    waiting: Fifo<Job>,
    /// What came of the first of those, so many as it has done.
    done: Fifo<Result<MediumDone, MediumError>>,
}

/// Lines of a job's blocks that are fetched when it comes: fewer than a processor has under way.
const LINES_AT_FIRST: Range<usize> = 0..24;
/// Those that are fetched when it is next. The rest of a block of 4 KiB comes by itself while these are copied.
const LINES_BEFORE: Range<usize> = 24..48;

impl QueuedMedium {
    /// With nothing in the queue.
    pub(super) fn new(medium: RamMedium) -> Self {
        Self { medium: StreamedRam::new(medium), waiting: Fifo::new(), done: Fifo::new() }
    }

    /// Does all that waits and is not done, one after the other.
    fn carry_out_all(&mut self) {
        for index in self.done.len()..self.waiting.len() {
            if let Some(next) = self.waiting.get(index + 1) {
                self.medium.expect(next.request.extent, LINES_BEFORE);
            }
            let Some(Job { request, buffer }) = self.waiting.get_mut(index) else { return };
            note(&mut self.done, self.medium.perform(request, buffer));
        }
    }
}

/// Notes what came of a job. A result that is moved is read when its block is on its way to memory, and waits for all of it: see
/// [`Fifo`].
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
            self.carry_out_all();
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
    fn jobs_are_done_in_their_order_whichever_are_done_when_they_come() {
        // Of a small one all are done when they are asked for.
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
