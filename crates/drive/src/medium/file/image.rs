//! An open image, and its system calls made by a thread.
//!
//! The unit's state lies beside the image, in `IMAGE.state`. It is replaced as a whole
//! ([`AtomicFile`]), so that a power loss leaves the old state or the new one. Neither reading nor
//! replacing it follows a symbolic link.

use super::journal::Journal;
use super::task::{Allocation, FileOperation, Memory, Task};
use crate::medium::{Geometry, STATE_BYTES_MAX};
use atomic_file::AtomicFile;
use rustix::fs::{Advice, FallocateFlags, SeekFrom};
use rustix::io::{Errno, ReadWriteFlags};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IoSlice, Read, Seek, Write};
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use units::ByteCount;

/// A file or block device that holds the blocks of a unit.
#[derive(Debug)]
pub(super) struct Image {
    pub(super) file: File,
    pub(super) path: PathBuf,
    pub(super) geometry: Geometry,
    pub(super) read_only: bool,
    /// Past the page cache.
    pub(super) direct: bool,
    /// On a file system of memory.
    pub(super) in_memory: bool,
    /// Whether it is a CD, DVD or BD.
    pub(super) disc: bool,
    /// Bytes after the last block.
    pub(super) tail_bytes: u64,
    /// Whether files may lie beside it: a block device's node lies where nothing outlives the machine's power.
    pub(super) has_companions: bool,
    /// For atomic writes. None where there is nothing to write, or no place for it.
    pub(super) journal: Option<Journal>,
    /// Faults that a test injects.
    #[cfg(test)]
    pub(super) faults: faults::Faults,
}

impl Image {
    /// Makes all calls of a task, one after the other, and waits for each. It is over then.
    pub(super) fn carry_out(&self, task: &mut Task) {
        while let Some(step) = task.step() {
            let outcome = self.perform(&step, task);
            task.handle(outcome);
        }
    }

    /// Makes the system call, and waits for it.
    pub(super) fn perform(&self, step: &FileOperation, task: &mut Task) -> Result<u64, Errno> {
        if let Some(errno) = self.fault(step) {
            return Err(errno);
        }
        match step {
            FileOperation::Read { at, memory, range } => {
                let bytes = &mut task.memory(*memory)[range.clone()];
                count(self.file.read_at(bytes, *at))
            }
            FileOperation::Write { at, memory, range, durable: false } => {
                count(self.file.write_at(&task.memory(*memory)[range.clone()], *at))
            }
            FileOperation::Write { at, memory, range, durable: true } => {
                let bytes = IoSlice::new(&task.memory(*memory)[range.clone()]);
                let written = rustix::io::pwritev2(&self.file, &[bytes], *at, ReadWriteFlags::DSYNC)?;
                Ok(written as u64)
            }
            FileOperation::Sync => rustix::fs::fdatasync(&self.file).map(|()| 0),
            FileOperation::Allocate { how, at, len } => {
                rustix::fs::fallocate(&self.file, how.flags(), *at, *len).map(|()| 0)
            }
            FileOperation::Advise { at, len } => {
                rustix::fs::fadvise(&self.file, *at, NonZeroU64::new(*len), Advice::WillNeed).map(|()| 0)
            }
            FileOperation::SeekMapped { at } => rustix::fs::seek(&self.file, SeekFrom::Data(*at)),
            FileOperation::SeekHole { at } => rustix::fs::seek(&self.file, SeekFrom::Hole(*at)),
            FileOperation::KeepState => count(self.keep_state(task.memory(Memory::Buffer)).map(|()| 0)),
            FileOperation::KeepRecord => {
                count(self.journal()?.keep(task.memory(Memory::Scratch)).map(|()| 0))
            }
            FileOperation::ClearRecord => count(self.journal()?.clear().map(|()| 0)),
        }
    }

    /// Makes the call of a write, unless it would have to wait. `EOPNOTSUPP`: the file system always may have to.
    pub(super) fn write_at_once(&self, step: &FileOperation, task: &mut Task) -> Result<u64, Errno> {
        let FileOperation::Write { at, memory, range, durable: false } = step else {
            return Err(Errno::AGAIN);
        };
        let bytes = IoSlice::new(&task.memory(*memory)[range.clone()]);
        let written = rustix::io::pwritev2(&self.file, &[bytes], *at, ReadWriteFlags::NOWAIT);
        let outcome = written.map(|count| count as u64);
        match outcome {
            // The thread that repeats the call gets the injected fault.
            Err(Errno::AGAIN | Errno::OPNOTSUPP) => outcome,
            _ => self.fault(step).map_or(outcome, Err),
        }
    }

    fn journal(&self) -> Result<&Journal, Errno> {
        self.journal.as_ref().ok_or(Errno::OPNOTSUPP)
    }

    /// Bytes that it has now.
    pub(super) fn len(&self) -> io::Result<ByteCount> {
        (&self.file).seek(io::SeekFrom::End(0)).map(ByteCount)
    }

    /// Replaces the unit's state as a whole.
    pub(super) fn keep_state(&self, state: &[u8]) -> io::Result<()> {
        if self.read_only {
            return Err(io::ErrorKind::ReadOnlyFilesystem.into());
        }
        if !self.has_companions {
            return Err(io::ErrorKind::Unsupported.into());
        }
        if state.len() > STATE_BYTES_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let file = AtomicFile::create(&beside(&self.path, ".state"), 0o666)?;
        file.file().write_all(state)?;
        file.commit_durably()
    }

    /// The unit's last saved state.
    pub(super) fn load_state(&self) -> io::Result<Option<Vec<u8>>> {
        if !self.has_companions {
            return Ok(None);
        }
        let file = match atomic_file::open_regular(&beside(&self.path, ".state")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let mut state = Vec::new();
        file.take(STATE_BYTES_MAX as u64 + 1).read_to_end(&mut state)?;
        if state.len() > STATE_BYTES_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(Some(state))
    }

    /// Returns the error that a test injects into the step, if there is one.
    #[cfg(test)]
    pub(super) fn fault(&self, step: &FileOperation) -> Option<Errno> {
        self.faults.meet(step)
    }

    /// Nothing fails on purpose.
    #[cfg(not(test))]
    #[expect(clippy::unused_self, reason = "it looks at the image in tests")]
    pub(super) const fn fault(&self, _step: &FileOperation) -> Option<Errno> {
        None
    }
}

impl Drop for Image {
    /// Gives up the lock by name: the kernel may hold on to the file a moment longer than we do.
    fn drop(&mut self) {
        if let Some(journal) = &self.journal {
            journal.close();
        }
        // Nothing could be done about an error, and closing the file gives up the lock as well.
        let _ = self.file.unlock();
    }
}

impl Allocation {
    pub(super) const fn flags(self) -> FallocateFlags {
        match self {
            Self::Zero => FallocateFlags::ZERO_RANGE.union(FallocateFlags::KEEP_SIZE),
            Self::Punch => FallocateFlags::PUNCH_HOLE.union(FallocateFlags::KEEP_SIZE),
            Self::Reserve => FallocateFlags::KEEP_SIZE,
        }
    }
}

fn count<N: TryInto<u64>>(outcome: io::Result<N>) -> Result<u64, Errno> {
    match outcome {
        Ok(count) => count.try_into().map_err(|_| Errno::OVERFLOW),
        Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => Err(Errno::ROFS),
        Err(error) => Err(Errno::from_io_error(&error).unwrap_or(Errno::IO)),
    }
}

/// The path with something appended to its last name.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

#[cfg(test)]
pub(super) mod faults {
    //! Errors that no healthy file system shows.

    use super::super::task::{Allocation, FileOperation};
    use rustix::io::Errno;
    use std::ops::Range;
    use std::sync::Mutex;

    #[derive(Clone, Debug)]
    pub(in super::super) enum Fault {
        /// Reading or writing any of these bytes fails.
        BadBytes(Range<u64>),
        /// Writing any of these bytes fails.
        BadWrites(Range<u64>),
        /// The file system does not know this allocation.
        NoAllocation(Allocation),
        /// Nor writes that are durable one by one.
        NoDurableWrites,
        /// There is no space left.
        NoSpace,
    }

    #[derive(Debug, Default)]
    pub(in super::super) struct Faults {
        set: Mutex<Vec<Fault>>,
        steps: Mutex<Vec<FileOperation>>,
    }

    impl Faults {
        pub(in super::super) fn set(&self, faults: &[Fault]) {
            *self.set.lock().unwrap() = faults.to_vec();
        }

        /// The steps that were begun since this was last asked.
        pub(in super::super) fn take_steps(&self) -> Vec<FileOperation> {
            std::mem::take(&mut *self.steps.lock().unwrap())
        }

        pub(super) fn meet(&self, step: &FileOperation) -> Option<Errno> {
            self.steps.lock().unwrap().push(step.clone());
            self.set.lock().unwrap().iter().find_map(|fault| fault.meet(step))
        }
    }

    impl Fault {
        fn meet(&self, step: &FileOperation) -> Option<Errno> {
            match (self, step) {
                (
                    Self::BadBytes(bad),
                    FileOperation::Read { at, range, .. } | FileOperation::Write { at, range, .. },
                ) => (*at < bad.end && bad.start < at + range.len() as u64).then_some(Errno::IO),
                (Self::BadWrites(bad), FileOperation::Write { at, range, .. }) => {
                    (*at < bad.end && bad.start < at + range.len() as u64).then_some(Errno::IO)
                }
                (Self::NoAllocation(unknown), FileOperation::Allocate { how, .. }) => {
                    (unknown == how).then_some(Errno::OPNOTSUPP)
                }
                (Self::NoDurableWrites, FileOperation::Write { durable: true, .. }) => Some(Errno::OPNOTSUPP),
                (Self::NoSpace, FileOperation::Write { .. }) => Some(Errno::NOSPC),
                _ => None,
            }
        }
    }
}
