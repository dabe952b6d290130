//! Signals that end a command in good order.
//!
//! SIGINT (Ctrl-C), SIGTERM, and SIGHUP, which a terminal sends when it goes away, unless SIGHUP is
//! ignored when the program starts, as under nohup(1). Left out: what a command does then.

use crate::failure::Failure;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The signals, as of now: to be called before handlers are installed.
pub(crate) fn that_end() -> Vec<i32> {
    // Without /proc it is not known, and a command that ends in good order does no harm.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let hangup = (!ignores_hangup(&status)).then_some(SIGHUP);
    [SIGINT, SIGTERM].into_iter().chain(hangup).collect()
}

/// A flag that these signals and some more set.
pub(crate) fn stop_flag(more: &[i32]) -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in that_end().iter().chain(more) {
        signal_hook::flag::register(*signal, Arc::clone(&stop))
            .map_err(|error| Failure::new("cannot install signal handlers").because(error))?;
    }
    Ok(stop)
}

/// Whether a process ignores SIGHUP, by its `/proc/PID/status`. The mask is hexadecimal, and the
/// lowest bit is signal 1.
fn ignores_hangup(status: &str) -> bool {
    const _: () = assert!(SIGHUP == 1, "the lowest bit of the mask");
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask % 2 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hangup_is_the_lowest_bit_of_the_ignored_signals() {
        let status =
            |mask: &str| format!("Name:\tx\nSigBlk:\t0000000000000001\nSigIgn:\t{mask}\nSigCgt:\t1\n");
        assert!(ignores_hangup(&status("0000000000000001")));
        assert!(ignores_hangup(&status("0000000000001003")));
        assert!(!ignores_hangup(&status("0000000000001002")));
        assert!(!ignores_hangup(&status("x")));
        assert!(!ignores_hangup(""));
    }
}
