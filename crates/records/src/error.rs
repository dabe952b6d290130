//! Errors of a file of runs.

use crate::schema;
use rusqlite::ErrorCode;
use std::fmt;
use std::path::{Path, PathBuf};

/// Why a file cannot be read or written.
#[derive(Debug)]
#[non_exhaustive]
pub enum StoreError {
    /// The file does not exist.
    Absent {
        /// The file.
        path: PathBuf,
    },
    /// The directory of the file does not exist.
    NoFolder {
        /// The directory.
        folder: PathBuf,
    },
    /// The file is something else.
    Foreign {
        /// The file.
        path: PathBuf,
        /// Reason why it is not a file of uaskit runs.
        why: String,
    },
    /// A newer version of this program wrote it.
    Newer {
        /// The file.
        path: PathBuf,
        /// Its schema.
        schema: u32,
    },
    /// The file is damaged.
    Damaged {
        /// The file.
        path: PathBuf,
        /// Description of the damage.
        why: String,
    },
    /// Another process keeps the file locked.
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// The system denies access.
    Unreachable {
        /// The file.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// The run cannot be saved: a figure is not a number, or a limit is exceeded.
    Unfit {
        /// The reason.
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

    /// Classifies an SQLite error.
    pub(crate) fn of(path: &Path) -> impl Fn(rusqlite::Error) -> Self + use<> {
        let path = path.to_path_buf();
        move |error| match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy { path: path.clone() },
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
                Self::unreachable(&path, "it is not writable")
            }
            Some(ErrorCode::CannotOpen) => {
                Self::unreachable(&path, "the file or its directory is not writable")
            }
            Some(ErrorCode::DiskFull | ErrorCode::SystemIoFailure | ErrorCode::OutOfMemory) => {
                Self::unreachable(&path, error)
            }
            // Wrong column type, missing table, corrupt B-tree.
            _ => Self::damaged(&path, error),
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent { path } => write!(f, "no saved runs at {}: file not found", path.display()),
            Self::NoFolder { folder } => write!(f, "directory {} does not exist", folder.display()),
            Self::Foreign { path, why } => {
                write!(f, "{} is not a file of uaskit runs: {why}", path.display())
            }
            Self::Newer { path, schema } => write!(
                f,
                "{} was written by a newer version of uaskit: schema {schema}, supported up to {}",
                path.display(),
                schema::NEWEST
            ),
            Self::Damaged { path, why } => write!(f, "{} is damaged: {why}", path.display()),
            Self::Busy { path } => write!(f, "{} is locked by another process", path.display()),
            Self::Unreachable { path, why } => write!(f, "cannot access {}: {why}", path.display()),
            Self::Unfit { why } => write!(f, "cannot save the run: {why}"),
        }
    }
}

impl std::error::Error for StoreError {}
