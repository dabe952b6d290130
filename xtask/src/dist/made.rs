//! Files that a build made, and their architecture.
//!
//! Left out: how they are made. Always true: the files exist.

use std::path::PathBuf;

/// Files that a build made, and their architecture.
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
