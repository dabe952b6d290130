//! A medium in memory that has a queue: what it is asked is done when it is asked for what it has done.
//!
//! Memory answers on the spot, and a drive on it is done with each command before the next one comes: no two would ever be under
//! way, whatever the depth. With a queue in front, all commands that the host has sent are with the drive until its next
//! turn, as with a drive that takes time. Left out: the time.
//!
//! A drive that knows what comes next does not begin with it only then. Some lines of each job's blocks are fetched when the job
//! comes, and some more before the one ahead of it is done, so that memory works while the protocol does.
//!
//! Always true: jobs end in the order in which they came.

use bus::Fifo;
use server::medium::{Finished, Job, Medium, RamMedium};
use std::hint::cold_path;
use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use target::medium::{MediumDone, MediumError};
use units::{BlockCount, BlockSize};

/// Memory behind a queue.
#[derive(Debug)]
pub(super) struct Queued {
    medium: RamMedium,
    waiting: Fifo<Job>,
    /// What came of the first of those, so many as it has done.
    done: Fifo<Result<MediumDone, MediumError>>,
}

/// Lines of a job's blocks that are fetched when it comes: fewer than a processor has under way.
const LINES_AT_FIRST: Range<usize> = 0..24;
/// Those that are fetched when it is next. The rest of a block of 4 KiB comes by itself while these are copied.
const LINES_BEFORE: Range<usize> = 24..48;

impl Queued {
    /// With nothing in the queue.
    pub(super) const fn new(medium: RamMedium) -> Self {
        Self { medium, waiting: Fifo::new(), done: Fifo::new() }
    }

    /// Does all that waits, one after the other.
    fn carry_out_all(&mut self) {
        for index in 0..self.waiting.len() {
            if let Some(next) = self.waiting.get(index + 1) {
                self.medium.expect(next.request.extent, LINES_BEFORE);
            }
            let Some(Job { request, buffer }) = self.waiting.get_mut(index) else { return };
            // A result that is moved is read when its block is on its way to memory, and waits for all of it: see [`Fifo`].
            match self.medium.perform(request, buffer) {
                Ok(MediumDone::Done) => self.done.push_with(|| Ok(MediumDone::Done)),
                other => {
                    cold_path();
                    self.done.push_back(other);
                }
            }
        }
    }
}

impl Medium for Queued {
    fn submit(&mut self, job: Job) -> Option<Finished> {
        self.medium.expect(job.request.extent, LINES_AT_FIRST);
        self.waiting.push_back(job);
        None
    }

    fn flush_submissions(&mut self) {}

    fn poll(&mut self) -> Option<Finished> {
        if self.done.is_empty() {
            self.carry_out_all();
        }
        Some(self.waiting.pop_front()?.finish(self.done.pop_front()?))
    }

    /// Whoever has memory does not sleep before it.
    fn event_fd(&self) -> Option<BorrowedFd<'_>> {
        None
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
