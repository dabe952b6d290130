//! What can go wrong with a file of runs, and whose fault it is.

use crate::schema;
use rusqlite::ErrorCode;
use std::fmt;
use std::path::{Path, PathBuf};

/// Why a file cannot be read or written.
#[derive(Debug)]
#[non_exhaustive]
pub enum StoreError {
    /// There is no such file.
    Absent {
        /// The file.
        path: PathBuf,
    },
    /// The folder that it would be in is not there.
    NoFolder {
        /// The folder.
        folder: PathBuf,
    },
    /// It is something else.
    Foreign {
        /// The file.
        path: PathBuf,
        /// What about it is not ours.
        why: String,
    },
    /// A newer version of this program has written it.
    Newer {
        /// The file.
        path: PathBuf,
        /// Its schema.
        schema: u32,
    },
    /// It is ours, and not as we left it.
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Another process has it, and does not let go.
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// The system does not let us.
    Unreachable {
        /// The file.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// The run cannot be kept: a figure is no number, or there is too much of something.
    Unfit {
        /// What.
        why: String,
    },
}

impl StoreError {
    pub(crate) fn foreign(path: &Path, why: impl Into<String>) -> Self {
        Self::Foreign { path: path.into(), why: why.into() }
    }

    pub(crate) fn damaged(path: &Path, why: impl fmt::Display) -> Self {
        Self::Damaged { path: path.into(), why: why.to_string() }
    }

    pub(crate) fn unreachable(path: &Path, why: impl fmt::Display) -> Self {
        Self::Unreachable { path: path.into(), why: why.to_string() }
    }

    /// What an error of SQLite means, of this file.
    pub(crate) fn of(path: &Path) -> impl Fn(rusqlite::Error) -> Self + use<> {
        let path = path.to_path_buf();
        move |error| match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy { path: path.clone() },
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
                Self::unreachable(&path, "it cannot be written to")
            }
            Some(ErrorCode::CannotOpen) => {
                Self::unreachable(&path, "it, or its folder, cannot be written to")
            }
            Some(ErrorCode::DiskFull | ErrorCode::SystemIoFailure | ErrorCode::OutOfMemory) => {
                Self::unreachable(&path, error)
            }
            // A row that is not what its column says, a table that is not there, a tree that does not hang together.
            _ => Self::damaged(&path, error),
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent { path } => write!(f, "there are no runs at {}", path.display()),
            Self::NoFolder { folder } => write!(f, "there is no folder {}", folder.display()),
            Self::Foreign { path, why } => write!(f, "{} is no file of runs: {why}", path.display()),
            Self::Newer { path, schema } => write!(
                f,
                "{} is of a newer version of this program: its schema is {schema}, {} is known",
                path.display(),
                schema::NEWEST
            ),
            Self::Damaged { path, why } => write!(f, "{} is damaged: {why}", path.display()),
            Self::Busy { path } => write!(f, "{} is held by another process", path.display()),
            Self::Unreachable { path, why } => write!(f, "{} cannot be used: {why}", path.display()),
            Self::Unfit { why } => write!(f, "the run cannot be kept: {why}"),
        }
    }
}

impl std::error::Error for StoreError {}
