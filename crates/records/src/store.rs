//! The store: opening, checking, saving and querying.
//!
//! The header is checked before SQLite opens the file, since SQLite would adopt an empty file of
//! somebody else, and tables are checked against their schema before anything is read. Each save is
//! a transaction in SQLite's own journal, synchronous including the directory: a saved run is on
//! disk. Reading an older file migrates a copy of it in memory.

mod read;
mod select;
mod write;

pub use read::{Saved, Summary};
pub use select::{Filter, Selector};

use crate::error::StoreError;
use crate::schema::{self, Header};
use rusqlite::backup::Backup;
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};
use serde::Serialize;
use std::fmt;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long to wait for another process.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum bytes of one value.
const VALUE_BYTES_MAX: i32 = 64 << 20;

/// The number of a run in its file; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct RunId(pub i64);

/// A file of runs.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    connection: Connection,
}

impl Store {
    /// Opens a file for writing: creates or migrates it as needed. Its directory must exist.
    ///
    /// # Errors
    ///
    /// If the directory is missing, or the file is foreign, newer, damaged, locked for long, or not
    /// writable. The file is then unchanged.
    pub fn to_write(path: &Path) -> Result<Self, StoreError> {
        let path = absolute(path)?;
        if let Some(folder) = path.parent().filter(|folder| is_absent(folder)) {
            return Err(StoreError::NoFolder { folder: folder.into() });
        }
        look(&path)?;
        let mut connection = connect(&path, OpenFlags::SQLITE_OPEN_CREATE)?;
        let of = StoreError::of(&path);
        let transaction =
            connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(&of)?;
        let from = verify(&transaction, &path)?;
        if from < schema::NEWEST {
            schema::migrate(&transaction, from, schema::NEWEST).map_err(&of)?;
        }
        transaction.commit().map_err(&of)?;
        Ok(Self { path, connection })
    }

    /// Opens a file for reading. An older schema stays unchanged.
    ///
    /// # Errors
    ///
    /// If the file is missing, foreign, newer, damaged, locked for long, or not readable.
    pub fn to_read(path: &Path) -> Result<Self, StoreError> {
        let path = absolute(path)?;
        if !look(&path)? {
            return Err(StoreError::Absent { path });
        }
        let connection = connect(&path, OpenFlags::empty())?;
        let schema = verify(&connection, &path)?;
        let connection =
            if schema == schema::NEWEST { connection } else { migrated_copy(&connection, &path)? };
        Ok(Self { path, connection })
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Returns the absolute path: SQLite gives some relative names a special meaning.
fn absolute(path: &Path) -> Result<PathBuf, StoreError> {
    std::path::absolute(path).map_err(|error| StoreError::unreachable(path, error))
}

/// Whether the file is certainly absent; one that cannot be examined may exist.
fn is_absent(folder: &Path) -> bool {
    fs::metadata(folder).is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

/// Checks the header, and whether the file has content; a foreign file is an error.
fn look(path: &Path) -> Result<bool, StoreError> {
    let unreachable = |error| StoreError::unreachable(path, error);
    let about = match fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        about => about.map_err(unreachable)?,
    };
    if !about.is_file() {
        return Err(StoreError::foreign(path, "not a regular file"));
    }
    let mut begins = Vec::new();
    let file = File::open(path).map_err(unreachable)?;
    file.take(Header::LEN as u64).read_to_end(&mut begins).map_err(unreachable)?;
    if begins.is_empty() {
        return Ok(true);
    }
    let header = Header::decode(&begins).ok_or_else(|| StoreError::foreign(path, "not an SQLite file"))?;
    if header.application_id != schema::APPLICATION_ID {
        return Err(StoreError::foreign(path, "an SQLite file of another program"));
    }
    if header.user_version > schema::NEWEST {
        return Err(StoreError::Newer { path: path.into(), schema: header.user_version });
    }
    Ok(true)
}

/// Opens a connection that trusts nothing in the file.
fn connect(path: &Path, how: OpenFlags) -> Result<Connection, StoreError> {
    let of = StoreError::of(path);
    // A read-only file is opened for reading. Only writing completes an interrupted transaction,
    // too.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | how;
    let connection = Connection::open_with_flags(path, flags).map_err(&of)?;
    let prepare = || -> rusqlite::Result<()> {
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
        connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, VALUE_BYTES_MAX)?;
        connection.pragma_update(None, "foreign_keys", true)?;
        // FULL, including the directory when the journal is removed.
        connection.pragma_update(None, "synchronous", "EXTRA")
    };
    prepare().map_err(&of)?;
    Ok(connection)
}

/// Returns the schema of an intact file; zero if it is empty.
fn verify(connection: &Connection, path: &Path) -> Result<u32, StoreError> {
    let of = StoreError::of(path);
    let schema = schema::of(connection).map_err(&of)?;
    if schema > schema::NEWEST {
        return Err(StoreError::Newer { path: path.into(), schema });
    }
    if !schema::is(connection, schema).map_err(&of)? {
        return Err(StoreError::damaged(path, format!("its tables do not match schema {schema}")));
    }
    let checked = connection.query_row("PRAGMA quick_check(1)", (), |row| row.get::<_, String>(0));
    match checked.map_err(&of)?.as_str() {
        "ok" => Ok(schema),
        wrong => Err(StoreError::damaged(path, wrong)),
    }
}

/// Copies the file into memory with the newest schema.
fn migrated_copy(connection: &Connection, path: &Path) -> Result<Connection, StoreError> {
    let copy = || -> rusqlite::Result<Connection> {
        let mut memory = Connection::open_in_memory()?;
        Backup::new(connection, &mut memory)?.run_to_completion(1 << 10, Duration::ZERO, None)?;
        let schema = schema::of(&memory)?;
        schema::migrate(&memory, schema, schema::NEWEST)?;
        Ok(memory)
    };
    copy().map_err(StoreError::of(path))
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests;
