//! Trace entries of what components do.

use std::fmt;
use units::Instant;

/// A trace entry.
#[derive(Clone, Copy, Debug)]
pub struct TraceEntry<'a> {
    /// Time.
    pub at: Instant,
    /// Component.
    pub component: &'static str,
    /// Text, not yet formatted.
    pub text: fmt::Arguments<'a>,
}

/// A sink for trace entries.
pub trait Trace {
    /// Records an entry.
    fn record(&mut self, entry: TraceEntry<'_>);
}

impl fmt::Display for TraceEntry<'_> {
    /// Time in nanoseconds with picosecond resolution, component, text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ps = self.at.as_ps();
        write!(f, "{:>12}.{:03} ns  {:<12} {}", ps / 1000, ps % 1000, self.component, self.text)
    }
}

impl fmt::Debug for dyn Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Trace")
    }
}

impl Trace for Vec<String> {
    fn record(&mut self, entry: TraceEntry<'_>) {
        self.push(entry.to_string());
    }
}
