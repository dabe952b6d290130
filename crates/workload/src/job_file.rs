//! Errors and limits shared by the job file parsers.
//!
//! A file with an unsupported option would measure something else than its author meant, so every
//! such line is an error that names the line, quotes it, and says what to do.

use std::fmt;
use units::ByteCount;

/// Maximum bytes of a job file; real ones have a few thousand.
pub const FILE_BYTES_MAX: usize = 256 << 10;

/// Maximum characters of a quoted line.
const SHOWN_CHARACTERS_MAX: usize = 120;

/// A line that is not supported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobFileError {
    /// Line number, from 1.
    pub line: usize,
    /// The line, sanitized for terminals and truncated.
    pub text: String,
    /// Reason why the line is not supported.
    pub reason: String,
    /// Remedy for the user.
    pub remedy: String,
}

impl JobFileError {
    pub(super) fn new(line: usize, text: &str, reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        let shown = text.trim().chars().take(SHOWN_CHARACTERS_MAX);
        let text: String = shown.map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
        let text = text.trim().to_owned();
        Self { line, text, reason: reason.into(), remedy: remedy.into() }
    }

    /// Skips a byte order mark.
    pub(super) fn without_mark(text: &str) -> &str {
        text.strip_prefix('\u{feff}').unwrap_or(text)
    }

    /// Checks the length of the file.
    pub(super) fn check_length(text: &str) -> Result<(), Self> {
        if text.len() <= FILE_BYTES_MAX {
            return Ok(());
        }
        let reason = format!("the file has more than {}", ByteCount(FILE_BYTES_MAX as u64));
        Err(Self::new(1, "", reason, "keep one test in it"))
    }
}

impl fmt::Display for JobFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, text, reason, remedy } = self;
        // An empty line is not quoted.
        match text.as_str() {
            "" => write!(f, "line {line}: {reason}; {remedy}"),
            text => write!(f, "line {line}: `{text}`: {reason}; {remedy}"),
        }
    }
}

impl std::error::Error for JobFileError {}

/// Sanitizes a foreign name for terminals and truncates it.
pub(super) fn tame(name: &str) -> String {
    name.trim()
        .chars()
        .take(LABEL_CHARACTERS_MAX)
        .map(|letter| if letter.is_control() { ' ' } else { letter })
        .collect()
}

/// Maximum characters of a name in a table.
const LABEL_CHARACTERS_MAX: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_in_which_nothing_is_to_be_seen_is_left_out() {
        let printed = |text| JobFileError::new(3, text, "why", "what to do").to_string();
        assert_eq!(printed("a\tb\u{7}"), "line 3: `a b`: why; what to do");
        assert_eq!([printed(""), printed("\0\0 \0")], ["line 3: why; what to do"; 2]);
    }

    #[test]
    fn a_file_that_is_too_long_is_an_error_without_its_first_line() {
        let checked = |len| JobFileError::check_length(&"x".repeat(len)).map_err(|error| error.to_string());
        assert_eq!(checked(262_144), Ok(()));
        let expected = "line 1: the file has more than 256 KiB; keep one test in it".to_owned();
        assert_eq!(checked(262_145), Err(expected));
    }
}
