//! Threads that carry out tasks: all of them where io_uring is forbidden, and beside a ring those that it has no
//! operation for or would hand to a thread of the kernel one by one.
//!
//! A thread takes several tasks at a time and makes their system calls one after the other. An event descriptor becomes
//! readable when it has made them all, or has worked for [`SIGNAL_INTERVAL`]: a wake-up costs more than a write
//! to the page cache.
//!
//! Always true: a task that was submitted is finished; dropping the pool waits for the tasks in progress.

use super::image::Image;
use super::task::Task;
use crate::medium::CompletedJob;
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Tasks that a thread takes at a time, at most.
const ROUND_MAX: usize = 32;

/// Tasks that queues have room for from the beginning, so that a busy hour later none grows.
pub(super) const ROOM: usize = 128;

/// How long finished tasks wait for the others of their round.
const SIGNAL_INTERVAL: Duration = Duration::from_micros(200);

/// Threads and the tasks they share.
#[derive(Debug)]
pub(super) struct Pool {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    /// Tasks for the next [`Pool::flush`].
    submitted: Vec<Task>,
}

#[derive(Debug)]
struct Shared {
    image: Arc<Image>,
    event: Arc<OwnedFd>,
    queues: Mutex<Queues>,
    /// There is a task, or it is time to go.
    wanted: Condvar,
}

#[derive(Debug)]
struct Queues {
    waiting: VecDeque<Task>,
    finished: VecDeque<CompletedJob>,
    /// Threads that wait for a task.
    idle: usize,
    closing: bool,
}

impl Pool {
    /// A pool of `count` threads that signal `event`.
    pub(super) fn new(image: Arc<Image>, event: Arc<OwnedFd>, count: usize) -> io::Result<Self> {
        let queues = Mutex::new(Queues {
            waiting: VecDeque::with_capacity(ROOM),
            finished: VecDeque::with_capacity(ROOM),
            idle: 0,
            closing: false,
        });
        let shared = Arc::new(Shared { image, event, queues, wanted: Condvar::new() });
        // Threads that were started are stopped by the drop if a later one cannot be.
        let mut pool = Self { shared, threads: Vec::new(), submitted: Vec::with_capacity(ROOM) };
        for index in 0..count {
            let shared = Arc::clone(&pool.shared);
            let name = format!("medium-{index}");
            pool.threads.push(thread::Builder::new().name(name).spawn(move || shared.serve(count))?);
        }
        Ok(pool)
    }

    /// Takes a task, which [`Self::flush`] hands to a thread.
    pub(super) fn submit(&mut self, task: Task) {
        self.submitted.push(task);
    }

    /// Passes submitted tasks to threads.
    pub(super) fn flush(&mut self) {
        if self.submitted.is_empty() {
            return;
        }
        let several = self.submitted.len() > 1;
        let mut queues = self.shared.lock();
        queues.waiting.extend(self.submitted.drain(..));
        let idle = queues.idle;
        drop(queues);
        match idle {
            0 => {}
            _ if several => self.shared.wanted.notify_all(),
            _ => self.shared.wanted.notify_one(),
        }
    }

    /// Moves what is over to `finished`.
    pub(super) fn reap(&self, finished: &mut VecDeque<CompletedJob>) {
        finished.append(&mut self.shared.lock().finished);
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.lock().closing = true;
        self.shared.wanted.notify_all();
        for thread in self.threads.drain(..) {
            // A thread that panicked has nothing more to say here.
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// The life of a thread, of `threads` like it. Its scratch memory goes from task to task.
    fn serve(&self, threads: usize) {
        let (mut scratch, mut round) = (Vec::new(), Vec::with_capacity(ROUND_MAX));
        while self.next_round(threads, &mut round) {
            let mut signalled = Instant::now();
            for mut task in round.drain(..) {
                task.lend(std::mem::take(&mut scratch));
                self.image.carry_out(&mut task);
                let (finished, lent) = task.finish();
                scratch = lent;
                self.lock().finished.push_back(finished);
                if signalled.elapsed() > SIGNAL_INTERVAL {
                    super::signal(&self.event);
                    signalled = Instant::now();
                }
            }
            super::signal(&self.event);
        }
    }

    /// Waits for tasks, and takes a thread's share of them. `false`: it is time to go.
    fn next_round(&self, threads: usize, round: &mut Vec<Task>) -> bool {
        let mut queues = self.lock();
        queues.idle += 1;
        let mut queues = self
            .wanted
            .wait_while(queues, |queues| queues.waiting.is_empty() && !queues.closing)
            .unwrap_or_else(PoisonError::into_inner);
        queues.idle -= 1;
        let share = queues.waiting.len().div_ceil(threads).min(ROUND_MAX);
        round.extend(queues.waiting.drain(..share));
        !round.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, Queues> {
        // Nothing is left half done under the lock, so a panic elsewhere does no harm here.
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
