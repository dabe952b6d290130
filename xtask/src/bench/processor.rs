//! One processor for everybody, and how long a process has run on it.

use anyhow::{Context, Result};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::fs;
use std::time::Duration;

/// Keeps this thread, and every process that it starts from now on, on one processor: the last one it may use.
pub(super) fn pin() -> Result<usize> {
    let allowed = sched_getaffinity(None).context("ask which processors are ours")?;
    let last = (0..CpuSet::MAX_CPU).rev().find(|&cpu| allowed.is_set(cpu)).context("no processor is ours")?;
    let mut one = CpuSet::new();
    one.set(last);
    sched_setaffinity(None, &one).with_context(|| format!("stay on processor {last}"))?;
    Ok(last)
}

/// The time that all threads of a process have spent on a processor.
pub(super) fn busy_time(pid: u32) -> Result<Duration> {
    let place = format!("/proc/{pid}/task");
    let mut busy = Duration::ZERO;
    for task in fs::read_dir(&place).with_context(|| format!("list {place}"))? {
        let path = task?.path().join("schedstat");
        let text = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        let nanoseconds = text.split(' ').next().and_then(|word| word.parse().ok());
        busy += Duration::from_nanos(nanoseconds.with_context(|| format!("{} says {text}", path.display()))?);
    }
    Ok(busy)
}
