//! Progress of long tests on standard error: every ten seconds, how much is done and how long the rest may take.

use crate::messages::message;
use std::time::{Duration, Instant};

const INTERVAL: Duration = Duration::from_secs(10);

/// When a test was seen first, and when it was reported last.
#[derive(Debug)]
pub(super) struct Progress {
    test: &'static str,
    began: Instant,
    reported: Instant,
}

impl Progress {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self { test: "", began: now, reported: now }
    }

    /// Reports that `done` of `total` parts of a test are done.
    pub(super) fn report(&mut self, test: &'static str, done: u64, total: u64) {
        let now = Instant::now();
        if self.test != test {
            *self = Self { test, began: now, reported: now };
        }
        if now - self.reported >= INTERVAL {
            self.reported = now;
            message!("{}", line(test, done, total, now - self.began));
        }
    }
}

fn line(test: &str, done: u64, total: u64, took: Duration) -> String {
    let share = done as f64 / total.max(1) as f64;
    let left_s = if share > 0.0 { took.as_secs_f64() / share * (1.0 - share) } else { 0.0 };
    format!("{test}: {:.1} % done, {:.0} min left", share * 100.0, (left_s / 60.0).ceil())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_is_that_of_the_rest_at_the_same_rate() {
        assert_eq!(
            line("whole-blocks", 25, 100, Duration::from_secs(60)),
            "whole-blocks: 25.0 % done, 3 min left"
        );
        assert_eq!(line("whole-blocks", 0, 100, Duration::ZERO), "whole-blocks: 0.0 % done, 0 min left");
    }
}
