//! What a build made, and for what.
//!
//! Left out: how. Always true: the files exist.

use std::path::PathBuf;

/// What was made, and for what.
pub(super) struct Made {
    /// As the package and the program say it.
    pub(super) version: String,
    /// Debian's name of the architecture.
    pub(super) architecture: String,
    /// The folder that holds the files.
    pub(super) output: PathBuf,
    pub(super) archive: PathBuf,
    pub(super) debian: PathBuf,
    pub(super) sums: PathBuf,
}
