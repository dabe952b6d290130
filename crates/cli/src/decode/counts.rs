//! Counters of a decoded capture, which both output formats print.

/// Commands of a capture.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CommandCounts {
    pub(super) seen: u64,
    /// Those that the filter passes.
    pub(super) shown: u64,
}

/// Data missing from the capture.
#[derive(Clone, Copy, Debug)]
pub(super) struct Losses {
    pub(super) damages: u64,
    /// Bytes that were not read.
    pub(super) bytes: u64,
    /// Packets that the capture program dropped.
    pub(super) dropped: u64,
    /// The number of places at which packets were dropped.
    pub(super) drops: u64,
}
