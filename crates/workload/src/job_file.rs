//! What the parsers of job files share: how they refuse, and their limits.
//!
//! A file that says something that is not understood would be measured as something else than its author meant, so
//! every such line is an error that names the line, repeats it, and says what to do.

use std::fmt;

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
        let text = shown.map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
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
        let reason = format!("the file has {} bytes, {FILE_BYTES_MAX} are the most", text.len());
        Err(Self::new(1, text.lines().next().unwrap_or_default(), reason, "leave one test in it"))
    }
}

impl fmt::Display for JobFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: `{}`: {}; {}", self.line, self.text, self.reason, self.remedy)
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
