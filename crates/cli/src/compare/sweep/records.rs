//! Files of records of a sweep: opened, locked, continued, merged.
//!
//! The contents of a file are those of [`study::sweep::records`]. Always true: nothing is appended
//! to a file of another plan; one process at a time appends to a file.

use crate::failure::Failure;
use crate::output_file;
use crate::sanitize::shown;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use study::plural::counted_len;
use study::sweep::records::{self, Continuation, Header, LINE_BYTES_MAX, Merge, MergeError, RecordError};

/// A file that is appended to.
#[derive(Debug)]
pub(super) struct Records {
    path: PathBuf,
    file: File,
    /// Points that it had when it was opened.
    pub(super) begun: usize,
}

fn other(path: &Path) -> Failure {
    Failure::new(format!("{} belongs to another sweep", shown(path)))
        .because("its first line differs")
        .try_this("Use another file, or repeat the command that created this one.")
}

/// Converts an error of a file of records to a failure.
fn failure(path: &Path, error: RecordError) -> Failure {
    let invalid = |line| Failure::new(format!("{}, line {line} is not a record of a sweep", shown(path)));
    match error {
        RecordError::Read(error) => Failure::unreadable(path, &error),
        RecordError::Line(number, why) => invalid(number).because(why),
        RecordError::Empty => invalid(1).because("the file is empty"),
        RecordError::OtherSweep => other(path),
    }
}

impl Records {
    /// Opens a file to continue it, or starts one.
    pub(super) fn open(path: &Path, header: &Header) -> Result<Self, Failure> {
        let unwritable = |error| output_file::unwritable(path, &error);
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
        let mut file = file.map_err(unwritable)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let why = "another sweep appends to it";
                return Err(Failure::new(format!("{} is in use", shown(path))).because(why));
            }
            // Some file systems have no locks.
            Err(TryLockError::Error(_)) => {}
        }
        let continuation = records::continuation(BufReader::new(&file), header);
        let Continuation { bytes, points } = continuation.map_err(|error| failure(path, error))?;
        if bytes == 0 {
            check_beginning(&mut file, path, &header.line())?;
        }
        file.set_len(bytes).map_err(unwritable)?;
        file.seek(SeekFrom::Start(bytes)).map_err(unwritable)?;
        let mut records = Self { path: path.into(), file, begun: points };
        if bytes == 0 {
            records.append(&header.line())?;
        }
        Ok(records)
    }

    /// Appends a line in one write, so that an interrupted run leaves whole lines, except perhaps the last.
    pub(super) fn append(&mut self, line: &str) -> Result<(), Failure> {
        let written = self.file.write_all(format!("{line}\n").as_bytes());
        written.map_err(|error| output_file::unwritable(&self.path, &error))
    }
}

/// A file without a complete line is ours if it has a beginning of the header.
fn check_beginning(file: &mut File, path: &Path, head: &str) -> Result<(), Failure> {
    file.seek(SeekFrom::Start(0)).map_err(|error| Failure::unreadable(path, &error))?;
    let mut begun = Vec::new();
    file.take(LINE_BYTES_MAX).read_to_end(&mut begun).map_err(|error| Failure::unreadable(path, &error))?;
    if head.as_bytes().starts_with(&begun) { Ok(()) } else { Err(other(path)) }
}

/// Reads the header of a file and its lines by point.
pub(super) fn read(path: &Path) -> Result<(Header, BTreeMap<usize, String>), Failure> {
    let file = File::open(path).map_err(|error| Failure::unreadable(path, &error))?;
    records::read(BufReader::new(file)).map_err(|error| failure(path, error))
}

/// Merges the shards of one sweep: the header of the whole, and all lines in order.
pub(crate) fn merge(files: &[PathBuf]) -> Result<Vec<String>, Failure> {
    let mut merge = Merge::default();
    for path in files {
        let (header, records) = read(path)?;
        merge.add(header, records).map_err(|error| unmerged(error, path, files))?;
    }
    merge.finish().map_err(|error| unmerged(error, Path::new(""), files))
}

fn unmerged(error: MergeError, path: &Path, files: &[PathBuf]) -> Failure {
    let cannot = || Failure::new(format!("cannot merge {}", shown(path)));
    match error {
        MergeError::OtherSweep => {
            let first = files.first().map(shown).unwrap_or_default();
            cannot().because(format!("it belongs to another sweep than {first}"))
        }
        MergeError::Conflict(point) => {
            cannot().because(format!("its record of point {point} differs from that of an earlier file"))
        }
        MergeError::Missing { count, first, of } => Failure::new(format!(
            "{count} of {} are missing, the first is point {first}",
            counted_len(of, "point")
        ))
        .try_this("Run the incomplete shards again; they continue where they ended."),
        MergeError::Empty => Failure::usage("no files to merge"),
    }
}
