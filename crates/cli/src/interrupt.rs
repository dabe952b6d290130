//! Ctrl-C during a simulation: what of it is saved, and how to go on.
//!
//! `compare`, `validate` and sweeps hold nothing that must be given back, so SIGINT and SIGTERM end the process at once, with
//! the exit code of one that SIGINT has ended. A record that is being appended is appended first. Left out: `bench` and
//! `serve`, which stop in an orderly way by themselves.
//!
//! Always true: a signal that was ignored when the program started, as in a background job of a script, stays ignored.

use crate::failure::Failure;
use crate::messages::message;
use crate::sanitize::shown;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{fmt, fs, process, thread};
use study::plural::counted_len;

/// The exit code of a process that SIGINT has ended.
pub(crate) const EXIT_CODE: u8 = 130;

/// Saved results of a simulation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Saved {
    /// Nothing, and what to do to save something.
    Nothing(&'static str),
    /// Points of a sweep, in a file.
    Points { count: usize, of: usize, file: PathBuf },
}

static SAVED: Mutex<Option<Saved>> = Mutex::new(None);

/// Reports from now on what is saved when the process is interrupted.
pub(crate) fn watch(saved: Saved) -> Result<(), Failure> {
    *lock() = Some(saved);
    let ignored = ignored(&fs::read_to_string("/proc/self/status").unwrap_or_default());
    let caught: Vec<_> = [SIGINT, SIGTERM].into_iter().filter(|signal| ignored & bit(*signal) == 0).collect();
    let mut signals = Signals::new(caught)
        .map_err(|error| Failure::new("cannot install signal handlers").because(error))?;
    thread::spawn(move || {
        if signals.forever().next().is_some() {
            // A thread that appends a record holds the lock until the record is whole.
            let saved = lock();
            if io::stderr().is_terminal() {
                // The line of the progress bar.
                let _ = io::stderr().write_all(b"\r\x1b[2K");
            }
            if let Some(saved) = &*saved {
                message!("uaskit: {saved}");
            }
            process::exit(EXIT_CODE.into());
        }
    });
    Ok(())
}

/// Saves another point; no interruption comes between.
pub(crate) fn save_point(append: impl FnOnce() -> Result<(), Failure>) -> Result<(), Failure> {
    let mut saved = lock();
    append()?;
    if let Some(Saved::Points { count, .. }) = &mut *saved {
        *count += 1;
    }
    Ok(())
}

fn lock() -> MutexGuard<'static, Option<Saved>> {
    SAVED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The mask of ignored signals, of `/proc/self/status`; none where there is no such file.
fn ignored(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// The place of a signal in a mask.
const fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

impl fmt::Display for Saved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing(advice) => write!(f, "interrupted: nothing is saved; {advice}"),
            Self::Points { count, of, file } => write!(
                f,
                "interrupted: {count} of {} are saved in {}; run the same command again to continue",
                counted_len(*of, "point"),
                shown(file)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interruption_says_what_is_saved_and_how_to_go_on() {
        let points = Saved::Points { count: 12, of: 40, file: "grid.jsonl".into() };
        assert_eq!(
            points.to_string(),
            "interrupted: 12 of 40 points are saved in grid.jsonl; run the same command again to continue"
        );
        let nothing = Saved::Nothing("run the same command again");
        assert_eq!(nothing.to_string(), "interrupted: nothing is saved; run the same command again");
    }

    #[test]
    fn signals_that_are_ignored_are_read_from_the_status() {
        let mask = ignored("Name:\tuaskit\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000001002\n");
        assert_eq!((mask & bit(SIGINT), mask & bit(SIGTERM)), (2, 0));
        assert_eq!(ignored(""), 0);
    }
}
