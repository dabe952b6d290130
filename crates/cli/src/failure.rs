//! How a command fails: what happened, why, what to do.

use crate::interrupt;
use crate::sanitize::shown;
use std::path::Path;
use std::process::ExitCode;
use std::{fmt, io};
use study::error::StudyError;

/// Why a command did not do what it was asked for.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: Kind,
    what: String,
    why: Option<String>,
    remedy: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Failed,
    Usage,
    Refused,
    Unknown,
    Damaged,
    /// The reader of standard output has closed it.
    ClosedPipe,
    Interrupted,
}

impl Failure {
    /// Something did not work.
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { kind: Kind::Failed, what: what.into(), why: None, remedy: None }
    }

    /// The arguments make no sense together.
    pub(crate) fn usage(what: impl Into<String>) -> Self {
        Self { kind: Kind::Usage, ..Self::new(what) }
    }

    /// The question cannot be answered with what there is.
    pub(crate) fn unknown(what: impl Into<String>) -> Self {
        Self { kind: Kind::Unknown, ..Self::new(what) }
    }

    /// It could destroy something.
    pub(crate) fn refused(what: impl Into<String>) -> Self {
        Self { kind: Kind::Refused, ..Self::new(what) }
    }

    /// The input is damaged: what could be read of it was used.
    pub(crate) fn damaged(what: impl Into<String>) -> Self {
        Self { kind: Kind::Damaged, ..Self::new(what) }
    }

    /// A signal ended it before it was done.
    pub(crate) fn interrupted(what: impl Into<String>) -> Self {
        Self { kind: Kind::Interrupted, ..Self::new(what) }
    }

    /// Standard output cannot be written.
    pub(crate) fn output(error: io::Error) -> Self {
        let kind = if error.kind() == io::ErrorKind::BrokenPipe { Kind::ClosedPipe } else { Kind::Failed };
        let failure = Self { kind, ..Self::new("standard output cannot be written").because(&error) };
        match error.kind() {
            io::ErrorKind::StorageFull => failure.try_this("Free space there, or write to another file."),
            _ => failure,
        }
    }

    /// A file or folder cannot be read.
    pub(crate) fn unreadable(path: &Path, error: &io::Error) -> Self {
        let failure = Self::new(format!("cannot read {}", shown(path))).because(error);
        match error.kind() {
            io::ErrorKind::NotFound => failure.try_this("Check the path: there is no such file or folder."),
            io::ErrorKind::IsADirectory => failure.try_this("Name a file in that folder."),
            io::ErrorKind::NotADirectory => failure.try_this("Name a folder, not a file."),
            io::ErrorKind::PermissionDenied => {
                failure.try_this("Check its permissions (`ls -l`), or read it as root.")
            }
            _ => failure,
        }
    }

    /// Whether the reader of standard output has closed it, which ends the program quietly.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        self.kind == Kind::ClosedPipe
    }

    /// Adds the reason.
    pub(crate) fn because(self, why: impl fmt::Display) -> Self {
        Self { why: Some(why.to_string()), ..self }
    }

    /// Adds what the user can do.
    pub(crate) fn try_this(self, remedy: impl Into<String>) -> Self {
        Self { remedy: Some(remedy.into()), ..self }
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        match self.kind {
            Kind::Failed => ExitCode::from(1),
            Kind::Usage => ExitCode::from(2),
            Kind::Refused => ExitCode::from(3),
            Kind::Unknown => ExitCode::from(4),
            Kind::Damaged => ExitCode::from(5),
            Kind::ClosedPipe => ExitCode::SUCCESS,
            Kind::Interrupted => ExitCode::from(interrupt::EXIT_CODE),
        }
    }
}

impl From<StudyError> for Failure {
    fn from(StudyError { is_usage, what, why, remedy }: StudyError) -> Self {
        Self { kind: if is_usage { Kind::Usage } else { Kind::Failed }, what, why, remedy }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        if let Some(why) = &self.why {
            write!(f, ": {why}")?;
        }
        if let Some(remedy) = &self.remedy {
            write!(f, "\n  {remedy}")?;
        }
        Ok(())
    }
}
