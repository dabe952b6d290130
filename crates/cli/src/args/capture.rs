//! Arguments of a capture of transfers, for `serve` and `bench`.
//!
//! Left out: the capture itself, which [`crate::recorder`] writes.

use super::quantity;
use clap::Args;
use std::path::{Path, PathBuf};
use units::ByteCount;

/// Transfers to capture, and the file.
#[derive(Clone, Debug, Args)]
pub(crate) struct CaptureArguments {
    /// Write the host's transfers with their streams to a pcapng file; see `uaskit decode`. The first transfer replaces
    /// an older capture.
    #[arg(long, value_name = "FILE")]
    pub(crate) capture: Option<PathBuf>,
    /// Bytes of each transfer that the capture keeps; 0 keeps all. 1K covers everything except block data.
    #[arg(long, value_name = "SIZE", value_parser = quantity::snap, default_value = "1K")]
    pub(crate) snap: u32,
    /// Start a new file after about SIZE bytes, at least 64K: drive.pcapng, drive.1.pcapng, … Default: one file.
    #[arg(long, value_name = "SIZE", value_parser = quantity::capture_size, allow_negative_numbers = true)]
    pub(crate) capture_size: Option<ByteCount>,
}

impl CaptureArguments {
    /// Whether a capture was requested.
    pub(crate) const fn is_wanted(&self) -> bool {
        self.capture.is_some()
    }

    /// Where it goes, if one is wanted.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.capture.as_deref()
    }
}
