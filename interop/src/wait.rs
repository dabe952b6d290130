//! Waiting with a limit.

use std::time::{Duration, Instant};

use crate::{Error, Result};

/// The moment at which a wait gives up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    at: Instant,
    limit: Duration,
}

impl Deadline {
    pub(crate) fn after(limit: Duration) -> Self {
        Self { at: Instant::now() + limit, limit }
    }

    pub(crate) fn limit(&self) -> Duration {
        self.limit
    }

    /// Returns the time that is left, `None` once the deadline has passed. Never zero, which a
    /// socket would take for "no limit".
    pub(crate) fn remaining(&self) -> Option<Duration> {
        let left = self.at.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }
}

/// Asks `probe` until it answers; `evidence` says what is known when it never does.
pub(crate) fn until<T>(
    what: &str,
    limit: Duration,
    evidence: impl Fn() -> String,
    mut probe: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    const PAUSE: Duration = Duration::from_millis(10);
    let deadline = Deadline::after(limit);
    loop {
        if let Some(found) = probe()? {
            return Ok(found);
        }
        if deadline.remaining().is_none() {
            return Err(Error::Timeout { what: what.into(), limit, evidence: evidence() });
        }
        std::thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_ends_the_wait() {
        let mut asked = 0;
        let found = until("the third answer", Duration::from_secs(5), String::new, || {
            asked += 1;
            Ok((asked == 3).then_some(asked))
        });
        assert_eq!(found.expect("answers at the third time"), 3);
    }

    #[test]
    fn the_error_of_a_timed_out_wait_has_what_it_waited_for_and_what_is_known() {
        let never = until("godot", Duration::from_millis(1), || "an empty road".into(), || Ok(None::<()>));
        let text = never.expect_err("never answers").to_string();
        assert!(text.contains("godot") && text.contains("an empty road"), "{text}");
    }
}
