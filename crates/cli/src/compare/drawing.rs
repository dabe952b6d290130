//! Diagrams as files of their own.

use crate::failure::Failure;
use std::path::Path;
use svg::Document;

/// Writes it into a file; an older one of that name is replaced.
pub(super) fn write(document: &Document, file: &Path) -> Result<(), Failure> {
    std::fs::write(file, format!("{document}\n"))
        .map_err(|error| Failure::new(format!("{} cannot be written", file.display())).because(error))
}
