//! Why an image cannot be opened or created, in words that say what to do about it.
//!
//! An error names the file, what failed, and the system's reason. Left out: errors of single blocks, which are
//! completions of the medium.

use rustix::io::Errno;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use units::{BlockSize, ByteCount};
use wire::Legible;

/// Why an image cannot be used.
#[derive(Debug)]
pub struct OpenError {
    /// Which image.
    pub path: PathBuf,
    /// Reason why the image cannot be used.
    pub reason: OpenReason,
}

/// Why an image cannot be used.
#[derive(Debug)]
pub enum OpenReason {
    /// There is no such file.
    Missing,
    /// It is to be created, but is there.
    Exists,
    /// It is to be created, and the system refuses.
    NotCreated(io::Error),
    /// It is a directory.
    Directory,
    /// It is neither a regular file nor a block device.
    NotStorage,
    /// Another server has it open.
    Locked,
    /// A block device that is mounted or otherwise taken.
    Mounted,
    /// The file or its directory does not permit it.
    Denied,
    /// It lies on a file system that is mounted read-only.
    ReadOnlyFileSystem,
    /// It has no whole block.
    TooSmall {
        /// Bytes that it has.
        size: ByteCount,
        /// Bytes in one block.
        block_size: BlockSize,
    },
    /// It is to be a disc, and describes tracks in other files.
    CueSheet,
    /// It is to be a disc, and has raw sectors.
    RawSectors,
    /// It is to be a disc, and has more blocks than READ (12) can address.
    TooLargeForDisc,
    /// A WRITE ATOMIC was cut off when it was last open, and read-only it cannot be undone.
    Unfinished,
    /// A WRITE ATOMIC was cut off when it was last open, and cannot be undone.
    NotUndone {
        /// The file that holds the old blocks.
        journal: PathBuf,
        /// Reason why it cannot be undone.
        why: String,
    },
    /// Its file system cannot go past the page cache.
    NotDirect,
    /// `io_uring` was insisted on, and the system does not have it.
    NoRing(io::Error),
    /// Something else.
    Io(io::Error),
}

impl OpenError {
    pub(super) fn new(path: &Path, reason: OpenReason) -> Self {
        Self { path: path.to_path_buf(), reason }
    }
}

pub(super) fn reason_of(error: io::Error) -> OpenReason {
    match error.kind() {
        io::ErrorKind::NotFound => OpenReason::Missing,
        io::ErrorKind::AlreadyExists => OpenReason::Exists,
        io::ErrorKind::PermissionDenied => OpenReason::Denied,
        io::ErrorKind::ReadOnlyFilesystem => OpenReason::ReadOnlyFileSystem,
        _ if Errno::from_io_error(&error) == Some(Errno::BUSY) => OpenReason::Mounted,
        _ => OpenReason::Io(error),
    }
}

impl fmt::Display for OpenError {
    /// Writes what failed, why, and what to do about it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let does = match &self.reason {
            OpenReason::Exists | OpenReason::NotCreated(_) => "create",
            _ => "open",
        };
        write!(f, "cannot {does} {}: {}", Legible(self.path.as_os_str().as_encoded_bytes()), self.reason)
    }
}

impl fmt::Display for OpenReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("no such file; check the path, or create the image"),
            Self::Exists => f.write_str("it already exists"),
            Self::NotCreated(error) => {
                let why = match error.kind() {
                    io::ErrorKind::NotFound => "its directory does not exist",
                    io::ErrorKind::PermissionDenied => "permission denied in its directory",
                    io::ErrorKind::ReadOnlyFilesystem => "its file system is mounted read-only",
                    io::ErrorKind::FileTooLarge => "its file system does not support files of that size",
                    _ => return error.fmt(f),
                };
                write!(f, "{why}; choose another path or size")
            }
            Self::Directory => f.write_str("it is a directory; name an image file in it"),
            Self::NotStorage => f.write_str(
                "it is neither a regular file nor a block device, so it cannot hold blocks; choose another one",
            ),
            Self::Locked => {
                f.write_str("it is locked by another server; stop that server, or open it read-only in both")
            }
            Self::Mounted => f.write_str("the device is mounted or in use; unmount it, or open it read-only"),
            Self::Denied => {
                f.write_str("permission denied; grant access to it and its directory, or open it read-only")
            }
            Self::ReadOnlyFileSystem => {
                f.write_str("its file system is mounted read-only; open it read-only as well")
            }
            Self::TooSmall { size, block_size } => {
                write!(f, "its size of {size} is less than one block of {} bytes; enlarge it", block_size.bytes())
            }
            Self::CueSheet => f.write_str(
                "it is a cue sheet, and discs are served from ISO images; convert it and its BIN file, for example with bchunk",
            ),
            Self::RawSectors => f.write_str(
                "it has raw sectors of 2352 bytes (a BIN file), and discs are served from ISO images with 2048; convert \
                 it, for example with bchunk",
            ),
            Self::TooLargeForDisc => f.write_str("it is too large for a disc (maximum 8 TiB); serve it as a disk"),
            Self::Unfinished => f.write_str(
                "an interrupted WRITE ATOMIC must be rolled back; open it read-write once, then read-only",
            ),
            Self::NotUndone { journal, why } => write!(
                f,
                "cannot roll back an interrupted WRITE ATOMIC: {why}; repair that, or remove {} to keep the blocks \
                 as they are",
                Legible(journal.as_os_str().as_encoded_bytes())
            ),
            Self::NotDirect => f.write_str(
                "its file system does not support direct I/O; use buffered I/O, or another file system",
            ),
            Self::NoRing(error) => {
                write!(f, "io_uring is not available ({error}); allow it, or use the thread engine")
            }
            Self::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.reason {
            OpenReason::NotCreated(error) | OpenReason::NoRing(error) | OpenReason::Io(error) => Some(error),
            _ => None,
        }
    }
}
