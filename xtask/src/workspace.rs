//! Where the repository is, and which of its files are its own.

use anyhow::{Context, Result};
use ignore::WalkBuilder;
use std::path::{Path, PathBuf};

/// The top of the repository: the folder that holds `xtask/`.
pub(crate) fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_path_buf()
}

/// Every file that is not ignored, as a path from `root` with `/` between its parts, sorted.
pub(crate) fn files(root: &Path) -> Result<Vec<String>> {
    let mut files = Vec::new();
    let walk = WalkBuilder::new(root).hidden(false).filter_entry(|entry| entry.file_name() != ".git").build();
    for entry in walk {
        let entry = entry.context("walk the repository")?;
        if entry.file_type().is_some_and(|kind| kind.is_file()) {
            let path = entry.path().strip_prefix(root).unwrap_or(entry.path());
            files.push(path.to_string_lossy().replace('\\', "/"));
        }
    }
    files.sort();
    Ok(files)
}
