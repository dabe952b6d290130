//! Progress of long experiments, for a caller that shows it.

/// Starts a display for each batch of runs.
pub trait ProgressSink: Sync {
    /// Starts the display of a batch, which ends when the returned value is dropped.
    fn start(&self, what: &'static str, runs: usize) -> Box<dyn Progress>;
}

/// The display of one batch of runs.
pub trait Progress: Sync {
    /// Counts one completed run.
    fn advance(&self);
}
