//! Diagrams as files of their own.

use crate::failure::Failure;
use crate::outlet;
use std::path::Path;
use svg::Document;

/// Writes it into a file; an older one of that name is replaced.
pub(super) fn write(document: &Document, file: &Path) -> Result<(), Failure> {
    outlet::write(file, outlet::Kind::Picture, format!("{document}\n").as_bytes())
}
