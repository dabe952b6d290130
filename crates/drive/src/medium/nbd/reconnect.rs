//! When a lost server is called again.
//!
//! At once, then after pauses that double up to [`PAUSE_MAX`], for as long as it takes. Commands wait for
//! [`COMMAND_TIMEOUT`](super::COMMAND_TIMEOUT); this does not.

use std::time::{Duration, Instant};

/// The pause after the first attempt that failed.
const PAUSE_MIN: Duration = Duration::from_millis(50);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// Attempts to connect since the connection was lost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reconnect {
    /// When to try next.
    pub(super) next: Instant,
    pause: Duration,
}

impl Reconnect {
    /// The connection is lost now.
    pub(super) const fn new(now: Instant) -> Self {
        Self { next: now, pause: PAUSE_MIN }
    }

    /// An attempt has failed now.
    pub(super) fn failed(&mut self, now: Instant) {
        self.next = now + self.pause;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_their_limit() {
        let begin = Instant::now();
        let mut reconnect = Reconnect::new(begin);
        assert_eq!(reconnect.next, begin);
        let pauses: Vec<u128> = (0..8)
            .map(|_| {
                reconnect.failed(begin);
                reconnect.next.duration_since(begin).as_millis()
            })
            .collect();
        assert_eq!(pauses, [50, 100, 200, 400, 800, 1600, 2000, 2000]);
    }
}
