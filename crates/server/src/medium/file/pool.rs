//! Threads that carry out tasks: all of them where io_uring is forbidden, and beside a ring the few that it has no
//! operation for.
//!
//! A thread takes a task and makes its system calls one after the other. An event descriptor becomes readable whenever
//! a task is over.
//!
//! Always true: a task that was submitted is finished; dropping the pool waits for the tasks under way.

use super::image::Image;
use super::task::Task;
use crate::medium::Finished;
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

/// Threads and the tasks they share.
#[derive(Debug)]
pub(super) struct Pool {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    image: Arc<Image>,
    event: Arc<OwnedFd>,
    queues: Mutex<Queues>,
    /// There is a task, or it is time to go.
    wanted: Condvar,
}

#[derive(Debug, Default)]
struct Queues {
    waiting: VecDeque<Task>,
    finished: VecDeque<Finished>,
    closing: bool,
}

impl Pool {
    /// A pool of `count` threads that signal `event`.
    pub(super) fn new(image: Arc<Image>, event: Arc<OwnedFd>, count: usize) -> io::Result<Self> {
        let shared = Arc::new(Shared { image, event, queues: Mutex::default(), wanted: Condvar::new() });
        // Threads that were started are stopped by the drop if a later one cannot be.
        let mut pool = Self { shared, threads: Vec::new() };
        for index in 0..count {
            let shared = Arc::clone(&pool.shared);
            let name = format!("medium-{index}");
            pool.threads.push(thread::Builder::new().name(name).spawn(move || shared.serve())?);
        }
        Ok(pool)
    }

    pub(super) fn submit(&self, task: Task) {
        self.shared.lock().waiting.push_back(task);
        self.shared.wanted.notify_one();
    }

    /// Moves what is over to `finished`.
    pub(super) fn reap(&self, finished: &mut VecDeque<Finished>) {
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
    /// The life of a thread. Its scratch memory goes from task to task.
    fn serve(&self) {
        let mut scratch = Vec::new();
        while let Some(mut task) = self.next() {
            task.lend(std::mem::take(&mut scratch));
            while let Some(step) = task.step() {
                let outcome = self.image.perform(&step, &mut task);
                task.handle(outcome);
            }
            let (finished, lent) = task.finish();
            scratch = lent;
            self.lock().finished.push_back(finished);
            super::signal(&self.event);
        }
    }

    fn next(&self) -> Option<Task> {
        let queues = self.lock();
        let mut queues = self
            .wanted
            .wait_while(queues, |queues| queues.waiting.is_empty() && !queues.closing)
            .unwrap_or_else(PoisonError::into_inner);
        if queues.closing { None } else { queues.waiting.pop_front() }
    }

    fn lock(&self) -> MutexGuard<'_, Queues> {
        // Nothing is left half done under the lock, so a panic elsewhere does no harm here.
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
