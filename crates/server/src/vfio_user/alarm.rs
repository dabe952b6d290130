//! A timer that wakes the loop, to the microsecond.

use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use rustix::io::read;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// A descriptor that becomes readable at a time.
#[derive(Debug)]
pub(super) struct Alarm {
    timer: OwnedFd,
    /// When it is set to.
    at: Option<Instant>,
}

impl Alarm {
    /// Creates a timer whose end is an event with `token`.
    pub(super) fn new(registry: &Registry, token: Token) -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK.union(TimerfdFlags::CLOEXEC);
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        registry.register(&mut SourceFd(&timer.as_raw_fd()), token, Interest::READABLE)?;
        Ok(Self { timer, at: None })
    }

    /// Sets it, unless it goes off early enough: the loop does nothing before its time.
    pub(super) fn set(&mut self, left: Duration) -> io::Result<()> {
        let at = Instant::now() + left;
        if self.at.is_some_and(|set| set <= at) {
            return Ok(());
        }
        let value = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        let once = Itimerspec { it_interval: Timespec::default(), it_value: value };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once)?;
        self.at = Some(at);
        Ok(())
    }

    /// It has gone off.
    pub(super) fn clear(&mut self) {
        self.at = None;
        // Its count is of no interest.
        let _ = read(&self.timer, &mut [0; 8]);
    }
}
