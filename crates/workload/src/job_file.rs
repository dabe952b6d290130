//! What the parsers of job files share: how they refuse, and their limits.
//!
//! A file that says something that is not understood would be measured as something else than its author meant, so
//! every such line is an error that names the line, repeats it, and says what to do.

use std::fmt;
use units::ByteCount;

/// Bytes of a job file; real ones have a few thousand.
pub const FILE_BYTES_MAX: usize = 256 << 10;

/// Characters of a line that an error repeats.
const SHOWN_CHARACTERS_MAX: usize = 120;

/// A line that is not understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobFileError {
    /// Which line, from 1.
    pub line: usize,
    /// What it says, without what could play with a terminal, cut where it is long.
    pub text: String,
    /// What is the matter with it.
    pub reason: String,
    /// What to do.
    pub remedy: String,
}

impl JobFileError {
    pub(super) fn new(line: usize, text: &str, reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        let shown = text.trim().chars().take(SHOWN_CHARACTERS_MAX);
        let text: String = shown.map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
        let text = text.trim().to_owned();
        Self { line, text, reason: reason.into(), remedy: remedy.into() }
    }

    /// What is a mark of the editor and none of the author: a byte order mark.
    pub(super) fn without_mark(text: &str) -> &str {
        text.strip_prefix('\u{feff}').unwrap_or(text)
    }

    /// The file as a whole is too long.
    pub(super) fn check_length(text: &str) -> Result<(), Self> {
        if text.len() <= FILE_BYTES_MAX {
            return Ok(());
        }
        let reason = format!("the file has more than {}", ByteCount(FILE_BYTES_MAX as u64));
        Err(Self::new(1, "", reason, "leave one test in it"))
    }
}

impl fmt::Display for JobFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, text, reason, remedy } = self;
        // Where nothing is to be seen, the line says nothing either.
        match text.as_str() {
            "" => write!(f, "line {line}: {reason}; {remedy}"),
            text => write!(f, "line {line}: `{text}`: {reason}; {remedy}"),
        }
    }
}

impl std::error::Error for JobFileError {}

/// A name of others without what could play with a terminal, cut where it is long.
pub(super) fn tame(name: &str) -> String {
    name.trim()
        .chars()
        .take(LABEL_CHARACTERS_MAX)
        .map(|letter| if letter.is_control() { ' ' } else { letter })
        .collect()
}

/// Characters of a name that a table has room for.
const LABEL_CHARACTERS_MAX: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_in_which_nothing_is_to_be_seen_is_left_out() {
        let told = |text| JobFileError::new(3, text, "why", "what to do").to_string();
        assert_eq!(told("a\tb\u{7}"), "line 3: `a b`: why; what to do");
        assert_eq!([told(""), told("\0\0 \0")], ["line 3: why; what to do"; 2]);
    }

    #[test]
    fn a_file_that_is_too_long_is_told_without_its_first_line() {
        let told = |len| JobFileError::check_length(&"x".repeat(len)).map_err(|error| error.to_string());
        assert_eq!(told(262_144), Ok(()));
        let expected = "line 1: the file has more than 256 KiB; leave one test in it".to_owned();
        assert_eq!(told(262_145), Err(expected));
    }
}
