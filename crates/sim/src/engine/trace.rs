//! Notes of what components do, for people who look.

use std::fmt;
use units::Instant;

/// One note.
#[derive(Clone, Copy, Debug)]
pub struct TraceEntry<'a> {
    /// When.
    pub at: Instant,
    /// Who.
    pub component: &'static str,
    /// What, not yet made into text.
    pub text: fmt::Arguments<'a>,
}

/// Takes notes.
pub trait Trace {
    /// Takes one.
    fn record(&mut self, entry: TraceEntry<'_>);
}

impl fmt::Display for TraceEntry<'_> {
    /// Nanoseconds to the picosecond, who, what.
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
