//! Errors of writing and reading captures, each with the name of its file.

use std::fmt;
use std::io;

/// A capture could not be written.
#[derive(Debug)]
pub struct WriteError {
    /// The file, as the caller names it.
    pub file: String,
    /// Why.
    pub cause: io::Error,
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the capture {} cannot be written: {}", self.file, self.cause)
    }
}

/// A capture could not be read.
#[derive(Debug)]
pub struct ReadError {
    /// The file, as the caller names it.
    pub file: String,
    /// Why.
    pub cause: io::Error,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the capture {} cannot be read: {}", self.file, self.cause)
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}

impl std::error::Error for WriteError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}
