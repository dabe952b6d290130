//! Diagrams as separate files.

use crate::failure::Failure;
use crate::output_file;
use std::path::Path;
use svg::Document;

/// Writes it into a file; an older one of that name is replaced.
pub(super) fn write(document: &Document, file: &Path) -> Result<(), Failure> {
    output_file::write(file, output_file::Kind::Picture, format!("{document}\n").as_bytes())
}
