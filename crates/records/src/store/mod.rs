//! The file itself: opened, looked at, added to, asked.
//!
//! A file is looked at before SQLite opens it, since SQLite would take an empty file of somebody else's, and its tables are held against
//! their schema before anything is read from them. Writing is a transaction for a run, in SQLite's own journal, synchronous down to the
//! folder: what [`Store::save`] has returned is on the disk. Reading an older file leads a copy of it on, in memory.

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

/// How long another process is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// Bytes of one value at most, whatever a file says.
const VALUE_BYTES_MAX: i32 = 64 << 20;

/// The number of a run in its file; never given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct RunId(pub i64);

/// A file of runs.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    connection: Connection,
}

impl Store {
    /// Opens a file to add to it: makes it if there is none, and leads an older one on. Its folder must be there.
    ///
    /// # Errors
    /// If it has no folder, is not ours, newer, damaged, held by others for long, or cannot be written. It is as it was then.
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

    /// Opens a file to read it. It may be of an older schema, and stays so.
    ///
    /// # Errors
    /// If there is none, or it is not ours, newer, damaged, held by others for long, or cannot be read.
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

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// The path from the root: SQLite has names of its own for what is no file.
fn absolute(path: &Path) -> Result<PathBuf, StoreError> {
    std::path::absolute(path).map_err(|error| StoreError::unreachable(path, error))
}

/// Whether there is surely nothing; what cannot be looked at may be there.
fn is_absent(folder: &Path) -> bool {
    fs::metadata(folder).is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

/// Whether there is a file, which may be empty; what is not ours is an error. Nothing but its beginning is read.
fn look(path: &Path) -> Result<bool, StoreError> {
    let unreachable = |error| StoreError::unreachable(path, error);
    let about = match fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        about => about.map_err(unreachable)?,
    };
    if !about.is_file() {
        return Err(StoreError::foreign(path, "it is not a file"));
    }
    let mut begins = Vec::new();
    let file = File::open(path).map_err(unreachable)?;
    file.take(Header::LEN as u64).read_to_end(&mut begins).map_err(unreachable)?;
    if begins.is_empty() {
        return Ok(true);
    }
    let header = Header::decode(&begins).ok_or_else(|| StoreError::foreign(path, "it is no SQLite file"))?;
    if header.application_id != schema::APPLICATION_ID {
        return Err(StoreError::foreign(path, "it is an SQLite file of another program"));
    }
    if header.user_version > schema::NEWEST {
        return Err(StoreError::Newer { path: path.into(), schema: header.user_version });
    }
    Ok(true)
}

/// A connection that trusts nothing in the file.
fn connect(path: &Path, how: OpenFlags) -> Result<Connection, StoreError> {
    let of = StoreError::of(path);
    // What cannot be written to is opened all the same, to be read. Writing is what ends a transaction that was cut off, too.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | how;
    let connection = Connection::open_with_flags(path, flags).map_err(&of)?;
    let prepare = || -> rusqlite::Result<()> {
        connection.busy_timeout(PATIENCE)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
        connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, VALUE_BYTES_MAX)?;
        connection.pragma_update(None, "foreign_keys", true)?;
        // FULL, and the folder too when the journal is taken away.
        connection.pragma_update(None, "synchronous", "EXTRA")
    };
    prepare().map_err(&of)?;
    Ok(connection)
}

/// The schema of a file that is whole; zero of an empty one.
fn verify(connection: &Connection, path: &Path) -> Result<u32, StoreError> {
    let of = StoreError::of(path);
    let schema = schema::of(connection).map_err(&of)?;
    if schema > schema::NEWEST {
        return Err(StoreError::Newer { path: path.into(), schema });
    }
    if !schema::is(connection, schema).map_err(&of)? {
        return Err(StoreError::damaged(path, format!("its tables are not those of schema {schema}")));
    }
    let checked = connection.query_row("PRAGMA quick_check(1)", (), |row| row.get::<_, String>(0));
    match checked.map_err(&of)?.as_str() {
        "ok" => Ok(schema),
        wrong => Err(StoreError::damaged(path, wrong)),
    }
}

/// A copy in memory, of the newest schema.
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
