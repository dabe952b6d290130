#![doc = include_str!("../README.md")]
//!
//! ## Design
//!
//! [`AtomicFile`] is written beside the file that it replaces, and takes its name in one step
//! (rename(2)): a reader finds the old contents or the new ones. Until then it has no name where
//! the file system supports that (`O_TMPFILE`), so that a killed process leaves nothing behind, or
//! a fresh random name, so that no leftover of another process is in the way.
//!
//! A directory that others can write to may hold a link at any path that they can predict (CWE-59).
//! So nothing here follows a link in the last component of a path: a file is created with `O_EXCL`,
//! an existing one is opened with
//! `O_NOFOLLOW`, and a rename replaces the link itself. A caller that wants a link followed resolves it first
//! ([`std::fs::canonicalize`]).
//!
//! Left out: links in directories above the file, and systems other than Linux.

use rustix::fs::{AtFlags, CWD, OFlags, linkat};
use rustix::io::Errno;
use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Random names that are tried before the error of the last one is returned.
const NAMES_MAX: usize = 16;

/// Links to the open files of this process (proc(5)). A file without a name gets one through these.
const OPEN_FILES: &str = "/proc/self/fd";

/// A new file that replaces another one when it is complete. Dropping it leaves the other one as it
/// is, and no trace.
#[derive(Debug)]
pub struct AtomicFile {
    target: PathBuf,
    file: File,
    /// The random name, if it has one.
    name: Option<PathBuf>,
}

impl AtomicFile {
    /// Creates an empty file in the directory of `target`, with these permissions as far as the
    /// umask leaves them.
    ///
    /// # Errors
    /// The directory does not exist or takes no file.
    pub fn create(target: &Path, mode: u32) -> io::Result<Self> {
        let target = target.to_path_buf();
        if let Some(file) = unnamed(&target, mode) {
            return Ok(Self { target, file, name: None });
        }
        let (file, name) = with_random_name(&target, |name| create_new(name, mode))?;
        Ok(Self { target, file, name: Some(name) })
    }

    /// The file, to be written.
    pub const fn file(&self) -> &File {
        &self.file
    }

    /// Replaces the target. A link there is replaced, not followed.
    ///
    /// # Errors
    /// Returns the system error. The target is unchanged then.
    pub fn commit(mut self) -> io::Result<()> {
        let name = match self.name.take() {
            Some(name) => name,
            None => with_random_name(&self.target, |name| link(&self.file, name))?.1,
        };
        // Set, so that the file goes away if the rename fails.
        let name = self.name.insert(name);
        fs::rename(name, &self.target)?;
        self.name = None;
        Ok(())
    }

    /// Replaces the target like [`AtomicFile::commit`], so that a power loss leaves the old file or
    /// the new one.
    ///
    /// # Errors
    /// Returns the system error. If only the directory cannot be synced, the target is replaced all the
    /// same.
    pub fn commit_durably(self) -> io::Result<()> {
        self.file.sync_all()?;
        let target = self.target.clone();
        self.commit()?;
        sync_directory_of(&target)
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            // A file that is gone already is as good.
            let _ = fs::remove_file(name);
        }
    }
}

/// Creates a file for reading and writing, where nothing exists yet, not even a link.
///
/// # Errors
/// [`ErrorKind::AlreadyExists`] if something exists, or what the system returned.
pub fn create_new(path: &Path, mode: u32) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW.bits().cast_signed();
    File::options().read(true).write(true).create_new(true).mode(mode).custom_flags(flags).open(path)
}

/// Opens an existing regular file for reading. Neither follows a link nor waits for the writer of a
/// FIFO.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] if it is a link or not a regular file, or what the system returned.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let refused = |why| io::Error::new(ErrorKind::InvalidInput, why);
    let file =
        File::options().read(true).custom_flags(flags).open(path).map_err(
            |error| match Errno::from_io_error(&error) {
                Some(Errno::LOOP) => refused("it is a symbolic link, which is not followed here"),
                _ => error,
            },
        )?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(refused("it is not a regular file")) }
}

/// Makes names that were created or removed in the directory of `path` durable.
///
/// # Errors
/// Returns the system error.
pub fn sync_directory_of(path: &Path) -> io::Result<()> {
    File::open(directory_of(path))?.sync_all()
}

/// The directory that `path` lies in.
pub fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A file without a name in the directory of `target`, if the system supports it.
fn unnamed(target: &Path, mode: u32) -> Option<File> {
    if !Path::new(OPEN_FILES).exists() {
        return None;
    }
    let flags = OFlags::TMPFILE.bits().cast_signed();
    File::options().read(true).write(true).mode(mode).custom_flags(flags).open(directory_of(target)).ok()
}

/// Gives a file that has no name one that does not exist yet.
fn link(file: &File, name: &Path) -> io::Result<()> {
    let own = format!("{OPEN_FILES}/{}", file.as_raw_fd());
    Ok(linkat(CWD, &own, CWD, name, AtFlags::SYMLINK_FOLLOW)?)
}

/// Calls `make` with random names beside `target` until one of them is free.
fn with_random_name<T>(
    target: &Path,
    mut make: impl FnMut(&Path) -> io::Result<T>,
) -> io::Result<(T, PathBuf)> {
    let mut attempts = 1;
    loop {
        // Its keys are random, and different each time.
        let number = RandomState::new().build_hasher().finish();
        let name = directory_of(target).join(format!(".uaskit-{number:016x}.tmp"));
        match make(&name) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists && attempts < NAMES_MAX => attempts += 1,
            made => return made.map(|made| (made, name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn replace(target: &Path, bytes: &[u8]) -> io::Result<()> {
        let file = AtomicFile::create(target, 0o666)?;
        file.file().write_all(bytes)?;
        file.commit()
    }

    fn entries(directory: &Path) -> usize {
        fs::read_dir(directory).unwrap().count()
    }

    #[test]
    fn a_file_is_replaced_on_commit_and_not_before() {
        let place = tempfile::tempdir().unwrap();
        let target = place.path().join("target");
        fs::write(&target, "old").unwrap();
        let file = AtomicFile::create(&target, 0o666).unwrap();
        file.file().write_all(b"new").unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"old");
        file.commit_durably().unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"new");
        assert_eq!(entries(place.path()), 1);
    }

    #[test]
    fn a_file_that_is_dropped_leaves_no_trace() {
        let place = tempfile::tempdir().unwrap();
        let target = place.path().join("target");
        drop(AtomicFile::create(&target, 0o666).unwrap());
        let (file, name) = with_random_name(&target, |name| create_new(name, 0o600)).unwrap();
        drop(AtomicFile { target, file, name: Some(name) });
        assert_eq!(entries(place.path()), 0);
    }

    #[test]
    fn a_file_system_without_unnamed_files_gets_a_random_name() {
        let place = tempfile::tempdir().unwrap();
        let target = place.path().join("target");
        let (file, name) = with_random_name(&target, |name| create_new(name, 0o600)).unwrap();
        file.metadata().unwrap();
        AtomicFile { target: target.clone(), file, name: Some(name) }.commit().unwrap();
        assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(entries(place.path()), 1);
    }

    #[test]
    fn a_name_that_is_taken_is_not_used() {
        let place = tempfile::tempdir().unwrap();
        let mut names = Vec::new();
        let made = with_random_name(&place.path().join("target"), |name| {
            names.push(name.to_path_buf());
            if names.len() < 3 { Err(ErrorKind::AlreadyExists.into()) } else { Ok(()) }
        });
        assert_eq!(made.unwrap().1, names[2]);
        assert!(names[0] != names[1] && names[1] != names[2]);
        let full = || with_random_name(place.path(), |_| Err::<(), _>(ErrorKind::AlreadyExists.into()));
        assert_eq!(full().unwrap_err().kind(), ErrorKind::AlreadyExists);
    }

    #[test]
    fn a_link_at_the_target_is_replaced_and_what_it_leads_to_is_not() {
        let place = tempfile::tempdir().unwrap();
        let [target, protected] = ["target", "protected"].map(|name| place.path().join(name));
        fs::write(&protected, "precious").unwrap();
        symlink(&protected, &target).unwrap();
        replace(&target, b"new").unwrap();
        assert_eq!(
            (fs::read(&protected).unwrap(), fs::read(&target).unwrap()),
            (b"precious".to_vec(), b"new".to_vec())
        );
        assert!(!target.is_symlink());
    }

    #[test]
    fn a_failed_commit_leaves_the_target_and_no_trace() {
        let place = tempfile::tempdir().unwrap();
        let target = place.path().join("directory");
        fs::create_dir(&target).unwrap();
        assert!(replace(&target, b"new").is_err());
        assert!(target.is_dir());
        assert_eq!(entries(place.path()), 1);
        assert!(AtomicFile::create(&place.path().join("none/target"), 0o666).is_err());
    }

    #[test]
    fn a_new_file_does_not_follow_a_link() {
        let place = tempfile::tempdir().unwrap();
        let [new, protected] = ["new", "protected"].map(|name| place.path().join(name));
        symlink(&protected, &new).unwrap();
        assert_eq!(create_new(&new, 0o600).unwrap_err().kind(), ErrorKind::AlreadyExists);
        assert!(!protected.exists());
    }

    #[test]
    fn only_a_regular_file_is_opened() {
        let place = tempfile::tempdir().unwrap();
        let [plain, linked, fifo] = ["plain", "linked", "fifo"].map(|name| place.path().join(name));
        fs::write(&plain, "text").unwrap();
        symlink(&plain, &linked).unwrap();
        rustix::fs::mkfifoat(CWD, &fifo, rustix::fs::Mode::RWXU).unwrap();
        let mut text = String::new();
        open_regular(&plain).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "text");
        let refused = |path: &Path| open_regular(path).unwrap_err();
        assert_eq!(refused(&linked).to_string(), "it is a symbolic link, which is not followed here");
        for path in [&fifo, place.path()] {
            assert_eq!(refused(path).to_string(), "it is not a regular file");
        }
        assert_eq!(refused(&place.path().join("none")).kind(), ErrorKind::NotFound);
    }
}
