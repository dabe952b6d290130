//! Conversion from the system clock to the time of the state machines.

use std::time;
use units::{Duration, Instant};

/// Time since an attachment was created.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    zero: time::Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self { zero: time::Instant::now() }
    }

    pub(crate) fn now(&self) -> Instant {
        let ns = u64::try_from(self.zero.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Instant::ZERO + Duration::from_ns(ns)
    }
}

/// Converts a duration, rounded up so that waiting for it is enough.
pub(crate) const fn span(span: Duration) -> time::Duration {
    time::Duration::from_nanos(span.as_ns().saturating_add(1))
}
