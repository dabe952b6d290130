//! Progress of long tests on standard error: every ten seconds, how much is done and how long the rest may take.

use crate::messages::message;
use std::time::{Duration, Instant};

const INTERVAL: Duration = Duration::from_secs(10);

/// When a test was seen first, and when it was reported last.
#[derive(Debug)]
pub(super) struct Progress {
    test: &'static str,
    began: Instant,
    /// Parts that were done when it was seen first: a run may be continued.
    first: u64,
    reported: Instant,
}

impl Progress {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self { test: "", began: now, first: 0, reported: now }
    }

    /// Reports that `done` of `total` parts of a test are done.
    pub(super) fn report(&mut self, test: &'static str, done: u64, total: u64) {
        let now = Instant::now();
        if self.test != test {
            *self = Self { test, began: now, first: done, reported: now };
        }
        if now - self.reported >= INTERVAL {
            self.reported = now;
            message!("{}", line(test, [self.first, done, total], now - self.began));
        }
    }
}

/// Of so many parts, what was done at the beginning and is done now.
fn line(test: &str, [first, done, total]: [u64; 3], took: Duration) -> String {
    let share = done as f64 / total.max(1) as f64;
    let (moved, left) = (done.saturating_sub(first), total.saturating_sub(done));
    let left_s = if moved > 0 { took.as_secs_f64() / moved as f64 * left as f64 } else { 0.0 };
    format!("{test}: {:.1} % done, {:.0} min left", share * 100.0, (left_s / 60.0).ceil())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_is_that_of_the_rest_at_the_same_rate() {
        assert_eq!(
            line("whole-blocks", [0, 25, 100], Duration::from_secs(60)),
            "whole-blocks: 25.0 % done, 3 min left"
        );
        let continued = line("whole-blocks", [50, 75, 100], Duration::from_secs(60));
        assert_eq!(continued, "whole-blocks: 75.0 % done, 1 min left");
        let begun = line("whole-blocks", [0, 0, 100], Duration::ZERO);
        assert_eq!(begun, "whole-blocks: 0.0 % done, 0 min left");
    }
}
