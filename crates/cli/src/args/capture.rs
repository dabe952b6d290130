//! Arguments of a capture of transfers, for `serve` and `bench`.
//!
//! Left out: the capture itself, which [`crate::recorder`] writes.

use super::quantity;
use clap::Args;
use std::path::{Path, PathBuf};
use units::ByteCount;

/// What is to be captured, and where to.
#[derive(Clone, Debug, Args)]
pub(crate) struct CaptureArguments {
    /// Write the host's transfers into a pcapng file, with their streams; see `uaskit decode`.
    #[arg(long, value_name = "FILE")]
    pub(crate) capture: Option<PathBuf>,
    /// Keep the first bytes of each transfer, so many; 0 keeps all. 1 KiB is all but blocks.
    #[arg(long, value_name = "SIZE", value_parser = quantity::snap, default_value = "1K", requires = "capture")]
    pub(crate) snap: u32,
    /// Begin another file when one has about this many bytes, 64 KiB at least: drive.pcapng, drive.1.pcapng, and on.
    #[arg(long, value_name = "SIZE", value_parser = quantity::capture_size, allow_negative_numbers = true, requires = "capture")]
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
