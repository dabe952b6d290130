//! Errors around a guest, with what the reader needs to know to fix them.
//!
//! `Debug` prints the same text as `Display`: a test that returns `Err` prints it with `Debug`, and the tail
//! of a console is no use with its line ends escaped.

use std::{fmt, io, time::Duration};

/// The result of everything in this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// A failure of the harness, of the guest, or of what is tested.
pub enum Error {
    /// Parts that must be installed first.
    Missing {
        /// The packages, and why each is needed.
        reasons: String,
        /// The command line that installs them.
        remedy: String,
    },
    /// A Debian suite cannot be read from here: what needs it is skipped.
    Unreachable {
        /// The suite.
        what: String,
        /// The output of apt.
        reason: String,
    },
    /// The operating system refused something.
    Io {
        /// The attempted operation.
        what: String,
        /// Its answer.
        source: io::Error,
    },
    /// A command ended with a failure.
    Command {
        /// The command as one would type it.
        line: String,
        /// Its exit status.
        status: String,
        /// Its output.
        output: String,
    },
    /// Something did not happen in time.
    Timeout {
        /// The awaited event.
        what: String,
        /// For how long.
        limit: Duration,
        /// Known facts about the other side, such as the tail of its console.
        evidence: String,
    },
    /// The other side ended, or said something that makes no sense here.
    Unexpected {
        /// The attempted operation.
        what: String,
        /// The observed result.
        evidence: String,
    },
}

impl Error {
    /// Names what was tried when the operating system refused: `.map_err(Error::io("create the image"))`.
    pub fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { what: what.into(), source }
    }

    /// Something was seen that makes no sense here.
    pub fn unexpected(what: impl Into<String>, evidence: impl Into<String>) -> Self {
        Self::Unexpected { what: what.into(), evidence: evidence.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { reasons, remedy } => write!(f, "missing:\n{reasons}install with:\n  {remedy}"),
            Self::Unreachable { what, reason } => write!(f, "{what} is unreachable: {reason}"),
            Self::Io { what, source } => write!(f, "{what}: {source}"),
            Self::Command { line, status, output } => write!(f, "`{line}` ended with {status}\n{output}"),
            Self::Timeout { what, limit, evidence } => write!(f, "{what}: not within {limit:?}\n{evidence}"),
            Self::Unexpected { what, evidence } => write!(f, "{what}: {evidence}"),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
