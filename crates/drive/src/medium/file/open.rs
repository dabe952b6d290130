//! Opening and creating images.
//!
//! An image is a regular file, best a sparse one, or a block device. It is locked while it is open: exclusively by the
//! one who writes, shared by those who only read. A block device that is mounted is refused for writing.
//!
//! Bytes of the image after the last whole block are not part of the drive and are never changed; of a disc they begin a
//! block that is padded with zeroes.

use super::error::{OpenError, OpenReason, reason_of};
use super::image::{Image, beside};
use super::journal::{self, Journal};
use super::options::FileOptions;
use crate::medium::Geometry;
use device::lun::mmc::disc;
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};
use units::{BlockSize, ByteCount};

/// Creates a sparse image of `size` bytes.
///
/// # Errors
/// If it exists, or the system refuses; then there is none.
pub fn create_image(path: &Path, size: ByteCount) -> Result<(), OpenError> {
    let failed = |error: io::Error| {
        OpenError::new(
            path,
            match error.kind() {
                io::ErrorKind::AlreadyExists => OpenReason::Exists,
                _ => OpenReason::NotCreated(error),
            },
        )
    };
    let file = File::create_new(path).map_err(failed)?;
    file.set_len(size.0).and_then(|()| file.sync_all()).map_err(|error| {
        // Where that fails too, an empty image stays.
        let _ = std::fs::remove_file(path);
        failed(error)
    })
}

impl Image {
    /// Opens and locks it.
    pub(super) fn open(path: &Path, options: &FileOptions) -> Result<Self, OpenError> {
        Self::open_inner(path, options).map_err(|reason| OpenError::new(path, reason))
    }

    fn open_inner(path: &Path, options: &FileOptions) -> Result<Self, OpenReason> {
        let &FileOptions { block_size, direct, disc, .. } = options;
        let read_only = options.read_only || disc;
        // Looked at first, because opening a pipe waits for its other end.
        let kind = std::fs::metadata(path).map_err(reason_of)?.file_type();
        if kind.is_dir() {
            return Err(OpenReason::Directory);
        }
        if disc && path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("cue")) {
            return Err(OpenReason::CueSheet);
        }
        if !kind.is_file() && !kind.is_block_device() {
            return Err(OpenReason::NotStorage);
        }
        let mut flags = if direct { OFlags::DIRECT } else { OFlags::empty() };
        if kind.is_block_device() && !read_only {
            flags |= OFlags::EXCL;
        }
        let mut options = OpenOptions::new();
        options.read(true).write(!read_only).custom_flags(flags.bits() as i32);
        let opened = options.open(path).map_err(reason_of);
        let mut file = opened.map_err(|reason| match reason {
            OpenReason::Io(error) if direct && Errno::from_io_error(&error) == Some(Errno::INVAL) => {
                OpenReason::NotDirect
            }
            reason => reason,
        })?;
        lock(&file, read_only)?;
        // A file that the kernel generates while it is read has no known size.
        let size = ByteCount(file.seek(SeekFrom::End(0)).map_err(|_| OpenReason::NotStorage)?);
        let geometry =
            if disc { disc_geometry(&file, size, block_size)? } else { Geometry::of(size, block_size) };
        if geometry.capacity.0 == 0 {
            return Err(OpenReason::TooSmall { size, block_size });
        }
        let journal = match kind.is_file().then(|| beside(path, ".atomic")) {
            None => None,
            Some(path) => {
                // What it would write has no alignment.
                let fixed = read_only || direct;
                journal::recover(&path, &file, fixed)?;
                (!fixed && journal::is_free(&path)).then(|| Journal::new(path))
            }
        };
        Ok(Self {
            // A node of a device lies in memory as well; what it stands for does not.
            in_memory: kind.is_file() && lies_in_memory(&file),
            file,
            path: path.to_path_buf(),
            geometry,
            read_only,
            direct,
            tail_bytes: size.0.saturating_sub(geometry.stored_end()),
            disc,
            has_companions: kind.is_file(),
            journal,
            #[cfg(test)]
            faults: super::image::faults::Faults::default(),
        })
    }
}

/// How many blocks a disc has.
fn disc_geometry(file: &File, size: ByteCount, block_size: BlockSize) -> Result<Geometry, OpenReason> {
    /// Begins each sector of a CD, and no image of user data.
    const SYNCHRONIZATION: [u8; 12] = [0, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 0];
    let mut begin = [0; SYNCHRONIZATION.len()];
    // An image that is shorter, or whose first block cannot be read, is not raw; reading it will say more.
    if file.read_exact_at(&mut begin, 0).is_ok() && begin == SYNCHRONIZATION {
        return Err(OpenReason::RawSectors);
    }
    let geometry = Geometry::padded(size, block_size);
    if geometry.capacity.0 > disc::BLOCKS_MAX { Err(OpenReason::TooLargeForDisc) } else { Ok(geometry) }
}

/// Whether its file system is in memory, which never waits; `false` if that is unknown.
fn lies_in_memory(file: &File) -> bool {
    // linux/magic.h
    const TMPFS: u32 = 0x0102_1994;
    const RAMFS: u32 = 0x8584_58f6;
    // A signed word on some machines and an unsigned one on others.
    rustix::fs::fstatfs(file).is_ok_and(|file_system| matches!(file_system.f_type as u32, TMPFS | RAMFS))
}

/// Locks it, with retries: for a server that was killed the kernel still finishes pending work, and holds on
/// to the file until then.
fn lock(file: &File, shared: bool) -> Result<(), OpenReason> {
    let deadline = Instant::now() + LOCK_TIMEOUT;
    loop {
        match if shared { file.try_lock_shared() } else { file.try_lock() } {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => thread::sleep(LOCK_PERIOD),
            Err(TryLockError::WouldBlock) => return Err(OpenReason::Locked),
            Err(TryLockError::Error(error)) => return Err(OpenReason::Io(error)),
        }
    }
}

/// How long another server may keep the lock before it is taken for alive.
const LOCK_TIMEOUT: Duration = Duration::from_millis(500);
const LOCK_PERIOD: Duration = Duration::from_millis(5);
