//! Flash dies and channels: scheduling.
//!
//! A die executes one operation at a time. A read loads the page register and waits for the
//! channel; a program receives the page over the channel first. Reads go before programs that have
//! not started. Both follow ONFI parts without cache commands (ONFI 4.x clauses 5.12 and 5.16).

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use units::{Duration, Instant};

/// Flash operation times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlashTimes {
    /// A page into the register of its die (tR).
    pub read: Duration,
    /// A page from the register into flash (tPROG).
    pub program: Duration,
    /// A block (tBERS).
    pub erase: Duration,
    /// A byte over a channel.
    pub byte: Duration,
}

/// Work for a die.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Job {
    /// Of a page, and how many bytes go over the channel.
    Read {
        page: u64,
        bytes: u32,
    },
    /// A page; its number among all that were programmed.
    Program {
        number: u64,
    },
    /// A page is read, to be programmed elsewhere on the same die.
    Move,
    /// The same page is programmed there.
    Moved,
    Erase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Rests,
    /// The flash works.
    Works(Job),
    /// The register is full, or waits to be filled.
    Waits(Job),
    /// The channel is in use for it.
    Transfers(Job),
}

#[derive(Clone, Debug)]
struct Die {
    state: State,
    reads: VecDeque<Job>,
    others: VecDeque<Job>,
}

#[derive(Clone, Debug, Default)]
struct Channel {
    user: Option<usize>,
    waiting: VecDeque<usize>,
}

/// All dies of a drive.
#[derive(Clone, Debug)]
pub(super) struct Dies {
    times: FlashTimes,
    page_bytes: u32,
    dies: Vec<Die>,
    channels: Vec<Channel>,
    /// When a die's flash or its channel is done.
    ends: BinaryHeap<Reverse<(Instant, usize)>>,
}

impl Dies {
    pub(super) fn new(times: FlashTimes, page_bytes: u32, channels: usize, dies: usize) -> Self {
        let die = Die { state: State::Rests, reads: VecDeque::new(), others: VecDeque::new() };
        Self {
            times,
            page_bytes,
            dies: vec![die; dies.max(1)],
            channels: vec![Channel::default(); channels.clamp(1, dies.max(1))],
            ends: BinaryHeap::new(),
        }
    }

    pub(super) fn count(&self) -> usize {
        self.dies.len()
    }

    pub(super) fn next_at(&self) -> Option<Instant> {
        self.ends.peek().map(|Reverse((at, _))| *at)
    }

    pub(super) fn give(&mut self, now: Instant, die: usize, job: Job) {
        match job {
            Job::Read { .. } => self.dies[die].reads.push_back(job),
            _ => self.dies[die].others.push_back(job),
        }
        if self.dies[die].state == State::Rests {
            self.begin(now, die);
        }
    }

    /// Returns the next job that has been done by now.
    pub(super) fn done(&mut self, now: Instant) -> Option<Job> {
        while let Some(&Reverse((at, die))) = self.ends.peek() {
            if at > now {
                return None;
            }
            self.ends.pop();
            if let Some(job) = self.end_of_phase(at, die) {
                self.begin(at, die);
                return Some(job);
            }
        }
        None
    }

    /// A die takes what waits.
    fn begin(&mut self, now: Instant, index: usize) {
        let die = &mut self.dies[index];
        let Some(job) = die.reads.pop_front().or_else(|| die.others.pop_front()) else {
            die.state = State::Rests;
            return;
        };
        match job {
            Job::Read { .. } | Job::Move => self.work(now, index, job, self.times.read),
            Job::Erase => self.work(now, index, job, self.times.erase),
            Job::Moved => self.work(now, index, job, self.times.program),
            Job::Program { .. } => self.ask_channel(now, index, job),
        }
    }

    fn work(&mut self, now: Instant, index: usize, job: Job, time: Duration) {
        self.dies[index].state = State::Works(job);
        self.ends.push(Reverse((now + time, index)));
    }

    fn ask_channel(&mut self, now: Instant, index: usize, job: Job) {
        self.dies[index].state = State::Waits(job);
        let channels = self.channels.len();
        let channel = &mut self.channels[index % channels];
        channel.waiting.push_back(index);
        self.use_channel(now, index % channels);
    }

    fn use_channel(&mut self, now: Instant, index: usize) {
        let channel = &mut self.channels[index];
        if channel.user.is_some() {
            return;
        }
        let Some(die) = channel.waiting.pop_front() else { return };
        channel.user = Some(die);
        if let State::Waits(job) = self.dies[die].state {
            let bytes = match job {
                Job::Read { bytes, .. } => bytes,
                // Out and in again.
                Job::Move => 2 * self.page_bytes,
                _ => self.page_bytes,
            };
            let time = Duration::from_ps(self.times.byte.as_ps() * u64::from(bytes));
            self.dies[die].state = State::Transfers(job);
            self.ends.push(Reverse((now + time, die)));
        }
    }

    /// A die's flash or its channel is done: the job, if nothing of it is left.
    fn end_of_phase(&mut self, now: Instant, index: usize) -> Option<Job> {
        match self.dies[index].state {
            State::Works(job @ Job::Read { .. }) => {
                self.ask_channel(now, index, job);
                None
            }
            State::Works(Job::Move) => {
                self.ask_channel(now, index, Job::Move);
                None
            }
            State::Works(job) => Some(job),
            State::Transfers(job) => {
                let channel = index % self.channels.len();
                self.channels[channel].user = None;
                self.use_channel(now, channel);
                match job {
                    Job::Read { .. } => Some(job),
                    Job::Move => {
                        self.work(now, index, Job::Moved, self.times.program);
                        None
                    }
                    _ => {
                        self.work(now, index, job, self.times.program);
                        None
                    }
                }
            }
            State::Rests | State::Waits(_) => None,
        }
    }
}
