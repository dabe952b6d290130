//! A medium that answers when, in what order, and how the test says.

use device::medium::{MediumCompletion, MediumError, MediumOp};
use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard};
use uaskit_drive::medium::{CompletedJob, Job, Medium, RamMedium};
use units::{BlockCount, BlockSize, ByteCount};

#[derive(Debug)]
pub(crate) struct HeldMedium(Arc<Mutex<State>>);

/// The test's hand on the medium.
#[derive(Clone, Debug)]
pub(crate) struct Hand(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    ram: RamMedium,
    held: VecDeque<Job>,
    done: VecDeque<CompletedJob>,
    /// Nothing is held any more.
    released: bool,
}

pub(crate) fn held_medium(blocks: u8) -> (HeldMedium, Hand) {
    let size = ByteCount(u64::from(blocks) * 512);
    let ram = RamMedium::new(size, BlockSize::B512).expect("a few blocks");
    let state = State { ram, held: VecDeque::new(), done: VecDeque::new(), released: false };
    let state = Arc::new(Mutex::new(state));
    (HeldMedium(Arc::clone(&state)), Hand(state))
}

impl State {
    fn perform(&mut self, job: Job, fails: bool) {
        let request = job.request;
        let error = match request.op {
            _ if !fails => None,
            MediumOp::Read => Some(MediumError::Unreadable { lba: request.extent.lba }),
            MediumOp::Write { .. } => Some(MediumError::Unwritable { lba: request.extent.lba }),
            _ => None,
        };
        let finished = match error {
            Some(error) => {
                let completion = MediumCompletion { id: request.id, result: Err(error) };
                CompletedJob { completion, buffer: job.buffer }
            }
            None => self.ram.submit(job).expect("memory answers at once"),
        };
        self.done.push_back(finished);
    }
}

impl Hand {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("one thread")
    }

    /// Answers one of the requests that are held.
    pub(crate) fn answer(&self, position: usize, fails: bool) {
        let mut state = self.state();
        let held = state.held.len();
        if let Some(job) = position.checked_rem(held).and_then(|at| state.held.remove(at)) {
            state.perform(job, fails);
        }
    }

    /// The same blocks for a drive that has lost its power: what was held is lost, and completions are dropped.
    pub(crate) fn power_up(&self) -> HeldMedium {
        let mut state = self.state();
        state.held.clear();
        state.done.clear();
        HeldMedium(Arc::clone(&self.0))
    }

    /// Answers everything, in order, from now on.
    pub(crate) fn release(&self) {
        let mut state = self.state();
        state.released = true;
        while let Some(job) = state.held.pop_front() {
            state.perform(job, false);
        }
    }
}

impl HeldMedium {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("one thread")
    }
}

impl Medium for HeldMedium {
    fn submit(&mut self, job: Job) -> Option<CompletedJob> {
        let mut state = self.state();
        match state.released {
            true => state.perform(job, false),
            false => state.held.push_back(job),
        }
        None
    }

    fn flush_submissions(&mut self) {}

    fn poll(&mut self) -> Option<CompletedJob> {
        self.state().done.pop_front()
    }

    fn event_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn capacity(&self) -> BlockCount {
        self.state().ram.capacity()
    }

    fn block_size(&self) -> BlockSize {
        BlockSize::B512
    }

    fn is_read_only(&self) -> bool {
        false
    }

    fn writes_atomically(&self) -> bool {
        true
    }

    fn keeps_state(&self) -> bool {
        true
    }

    fn save_state(&mut self, state: &[u8]) -> io::Result<()> {
        self.state().ram.save_state(state)
    }

    fn load_state(&self) -> io::Result<Option<Vec<u8>>> {
        self.state().ram.load_state()
    }

    fn describe(&self) -> String {
        "held".into()
    }
}
