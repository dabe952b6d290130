//! Tasks carried out by the kernel, through io_uring: one system call starts any number of operations.
//!
//! A task in flight has a slot; the number of the slot is the `user_data` of its operation. Tasks beyond the slots
//! wait in our own queue, so neither of the kernel's queues ever overflows. The ring signals an event descriptor
//! with each completion that comes later; what was over at once, such as a read from the page cache, is found by
//! looking.
//!
//! A module with `unsafe`. What makes it sound: memory that the kernel works on belongs to a task in a slot, whose vectors are
//! neither touched nor freed until the completion of its one operation has been seen; dropping the ring waits for those
//! completions, and leaks the memory if it cannot.
#![allow(unsafe_code)]

use super::image::Image;
use super::task::{FileOperation, Memory, Task};
use crate::medium::CompletedJob;
use io_uring::types::{Fd, FsyncFlags};
use io_uring::{IoUring, Probe, opcode, squeue};
use rustix::fs::Advice;
use rustix::io::{Errno, ReadWriteFlags};
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

/// Operations in flight at once.
const SLOTS: u32 = 128;

/// Scratch buffers kept for reuse.
const SCRATCH_POOL_MAX: usize = 8;

/// Bytes that one piece of advice covers at most; the field has 32 bits.
const ADVICE_BYTES_MAX: u64 = 1 << 30;

/// A ring on one image.
pub(super) struct Ring {
    ring: IoUring,
    image: Arc<Image>,
    slots: Vec<Option<Task>>,
    free: Vec<u16>,
    waiting: VecDeque<Task>,
    scratch_pool: Vec<Vec<u8>>,
    /// Tasks that were over before their next operation was started.
    over: VecDeque<CompletedJob>,
    /// Outcomes taken from the completion queue, on their way to their tasks.
    outcomes: Vec<(u64, i32)>,
}

impl Ring {
    /// A ring that signals `event`.
    ///
    /// # Errors
    /// If the system has none (`ENOSYS`), forbids it (`EPERM`), or has one too old for the operations used here.
    pub(super) fn new(image: Arc<Image>, event: &OwnedFd) -> io::Result<Self> {
        let ring = IoUring::new(SLOTS)?;
        let mut probe = Probe::new();
        ring.submitter().register_probe(&mut probe)?;
        let used = [
            opcode::Read::CODE,
            opcode::Write::CODE,
            opcode::Fsync::CODE,
            opcode::Fallocate::CODE,
            opcode::Fadvise::CODE,
        ];
        if !used.into_iter().all(|code| probe.is_supported(code)) {
            return Err(Errno::OPNOTSUPP.into());
        }
        // Not the asynchronous kind, which leaves out what is completed in this very thread: a page that had to be read
        // first is, and it may be just before the thread waits.
        ring.submitter().register_eventfd(event.as_raw_fd())?;
        Ok(Self {
            ring,
            image,
            slots: (0..SLOTS).map(|_| None).collect(),
            free: (0..SLOTS as u16).rev().collect(),
            waiting: VecDeque::with_capacity(SLOTS as usize),
            scratch_pool: Vec::with_capacity(SCRATCH_POOL_MAX),
            over: VecDeque::with_capacity(SLOTS as usize),
            outcomes: Vec::with_capacity(2 * SLOTS as usize),
        })
    }

    /// Whether there is an operation for every step of the task.
    pub(super) fn can(task: &Task) -> bool {
        !task.wants_thread()
    }

    /// Takes a task. Its first operation is started by [`flush`](Self::flush).
    pub(super) fn submit(&mut self, task: Task) {
        match self.free.pop() {
            Some(slot) => self.occupy(slot, task),
            None => self.waiting.push_back(task),
        }
    }

    /// Starts the operations that were submitted; `false` if the kernel wants to be asked again.
    pub(super) fn flush(&mut self) -> bool {
        while !self.ring.submission().is_empty() {
            match self.ring.submit() {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        true
    }

    /// Moves what is over to `finished`, and starts what follows from it; `false` as for [`flush`](Self::flush).
    pub(super) fn reap(&mut self, finished: &mut VecDeque<CompletedJob>) -> bool {
        loop {
            self.collect_outcomes();
            let is_last = self.outcomes.is_empty();
            self.advance_all();
            finished.append(&mut self.over);
            if is_last {
                return true;
            }
            // What follows may be over at once as well, and need not wait for another turn.
            if !self.flush() {
                return false;
            }
        }
    }

    /// Passes results to their tasks, and starts what follows.
    fn advance_all(&mut self) {
        let mut outcomes = std::mem::take(&mut self.outcomes);
        for (slot, result) in outcomes.drain(..) {
            let Some(mut task) = self.slots.get_mut(slot as usize).and_then(Option::take) else { continue };
            task.handle(outcome_of(result));
            self.advance(slot as u16, task);
        }
        self.outcomes = outcomes;
    }

    fn collect_outcomes(&mut self) {
        self.outcomes.extend(self.ring.completion().map(|entry| (entry.user_data(), entry.result())));
    }

    fn occupy(&mut self, slot: u16, mut task: Task) {
        let scratch = if task.scratch_bytes() > 0 { self.scratch_pool.pop() } else { None };
        task.lend(scratch.unwrap_or_default());
        self.advance(slot, task);
    }

    /// Puts the task's next operation into the submission queue, or ends it and gives its slot to one that waits.
    fn advance(&mut self, slot: u16, mut task: Task) {
        loop {
            let Some(step) = task.step() else {
                self.end(task);
                let Some(mut next) = self.waiting.pop_front() else {
                    self.free.push(slot);
                    return;
                };
                let scratch = if next.scratch_bytes() > 0 { self.scratch_pool.pop() } else { None };
                next.lend(scratch.unwrap_or_default());
                task = next;
                continue;
            };
            let pushed = match self.image.fault(&step) {
                Some(errno) => Err(errno),
                None => self.push(slot, &step, &mut task),
            };
            match pushed {
                Ok(()) => break,
                Err(errno) => task.handle(Err(errno)),
            }
        }
        self.slots[usize::from(slot)] = Some(task);
    }

    fn end(&mut self, task: Task) {
        let (finished, scratch) = task.finish();
        if scratch.capacity() > 0 && self.scratch_pool.len() < SCRATCH_POOL_MAX {
            self.scratch_pool.push(scratch);
        }
        self.over.push_back(finished);
    }

    fn push(&mut self, slot: u16, step: &FileOperation, task: &mut Task) -> Result<(), Errno> {
        let entry = self.entry(step, task)?.user_data(u64::from(slot));
        // SAFETY: the entry points into vectors of `task` only, at a range within their bounds. The caller puts the
        // task into the slot that `user_data` names, where it stays untouched until the completion has been seen.
        // Moving it there moves the vectors, not the bytes that they own. `Drop` waits for the completion. The file
        // descriptor is the image's, which `self.image` keeps open.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        // There are no more slots than entries, and a slot has one operation at a time.
        pushed.map_err(|_| Errno::AGAIN)
    }

    /// The step as an entry of the submission queue.
    fn entry(&self, step: &FileOperation, task: &mut Task) -> Result<squeue::Entry, Errno> {
        let fd = Fd(self.image.file.as_raw_fd());
        Ok(match step {
            FileOperation::Read { at, memory, range } => {
                let (start, len) = region(task, *memory, range)?;
                opcode::Read::new(fd, start, len).offset(*at).build()
            }
            FileOperation::Write { at, memory, range, durable } => {
                let (start, len) = region(task, *memory, range)?;
                let flags = if *durable { ReadWriteFlags::DSYNC } else { ReadWriteFlags::empty() };
                opcode::Write::new(fd, start, len).offset(*at).rw_flags(flags.bits() as i32).build()
            }
            FileOperation::Sync => opcode::Fsync::new(fd).flags(FsyncFlags::DATASYNC).build(),
            FileOperation::Allocate { how, at, len } => {
                opcode::Fallocate::new(fd, *len).offset(*at).mode(how.flags().bits() as i32).build()
            }
            FileOperation::Advise { at, len } => {
                let len = (*len).min(ADVICE_BYTES_MAX) as i64;
                opcode::Fadvise::new(fd, len, Advice::WillNeed as i32).offset(*at).build()
            }
            // See `can`.
            FileOperation::SeekMapped { .. }
            | FileOperation::SeekHole { .. }
            | FileOperation::KeepState
            | FileOperation::KeepRecord
            | FileOperation::ClearRecord => return Err(Errno::NOSYS),
        })
    }

    fn in_flight(&self) -> usize {
        self.slots.iter().filter(|slot| slot.is_some()).count()
    }
}

/// Start and length of a region of a task's memory.
fn region(task: &mut Task, memory: Memory, range: &Range<usize>) -> Result<(*mut u8, u32), Errno> {
    let bytes = task.memory(memory).get_mut(range.clone()).ok_or(Errno::FAULT)?;
    let len = u32::try_from(bytes.len()).map_err(|_| Errno::INVAL)?;
    Ok((bytes.as_mut_ptr(), len))
}

const fn outcome_of(result: i32) -> Result<u64, Errno> {
    if result < 0 { Err(Errno::from_raw_os_error(-result)) } else { Ok(result as u64) }
}

impl Drop for Ring {
    /// Waits until the kernel has released all memory. What was submitted is done, what would follow from it is not.
    fn drop(&mut self) {
        while self.in_flight() > 0 {
            if let Err(error) = self.ring.submit_and_wait(1)
                && error.kind() != io::ErrorKind::Interrupted
            {
                // The kernel may still write to this memory, so it must never be used for anything else.
                std::mem::forget(std::mem::take(&mut self.slots));
                return;
            }
            self.collect_outcomes();
            while let Some((slot, _)) = self.outcomes.pop() {
                if let Some(slot) = self.slots.get_mut(slot as usize) {
                    *slot = None;
                }
            }
        }
    }
}

impl fmt::Debug for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring")
            .field("in_flight", &self.in_flight())
            .field("waiting", &self.waiting.len())
            .finish()
    }
}
