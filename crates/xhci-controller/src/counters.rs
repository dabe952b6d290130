//! Counters of what was ignored, of errors and of work done.

/// Counters of ignored inputs and of errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Doorbells of slots and endpoints that do not exist or do not run.
    pub idle_doorbells: u32,
    /// Progress of TDs that are no longer outstanding.
    pub stale_progress: u32,
    /// Writes to read-only registers or at a wrong time.
    pub odd_writes: u32,
    /// Times that the event ring was full.
    pub rings_full: u32,
    /// Interrupts.
    pub interrupts: u64,
    /// Completed TDs.
    pub tds: u64,
}
