//! Where things are put: the cache that survives, the scratch directory that does not, logs in between.
//!
//! The cache is `target/interop` of the workspace, or `$UASKIT_INTEROP_CACHE`. Scratch directories live in
//! memory (`/dev/shm`) when that exists: a disk image there takes the host's disk out of every measurement.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{Error, Result, child::Leash};

/// A directory that goes away with its owner, or with this program. Its path is short enough for a socket.
#[derive(Debug)]
pub struct Scratch {
    directory: tempfile::TempDir,
    _leash: Leash,
}

impl Scratch {
    /// An empty directory, in memory where the system offers that.
    pub fn new() -> Result<Self> {
        let memory = Path::new("/dev/shm");
        let temporary = std::env::temp_dir();
        Self::below(if memory.is_dir() { memory } else { &temporary })
    }

    /// An empty directory on the disk, for what is large.
    pub fn on_disk() -> Result<Self> {
        Self::below(&std::env::temp_dir())
    }

    fn below(base: &Path) -> Result<Self> {
        let directory = tempfile::Builder::new()
            .prefix("uaskit-")
            .tempdir_in(base)
            .map_err(Error::io(format!("make a directory in {}", base.display())))?;
        let leash = Leash::new(r#"rm -rf "$1""#, directory.path().as_os_str())?;
        Ok(Self { directory, _leash: leash })
    }

    /// A name in the directory; nothing is created.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A sparse file of `bytes` zeroes.
    pub fn image(&self, name: &str, bytes: u64) -> Result<PathBuf> {
        let path = self.path(name);
        fs::File::create(&path)
            .and_then(|file| file.set_len(bytes))
            .map_err(Error::io(format!("create {} of {bytes} bytes", path.display())))?;
        Ok(path)
    }
}

/// The root of the workspace.
pub(crate) fn workspace() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// The build directory of the workspace.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace().join("target"), PathBuf::from)
}

/// The directory of what is kept from run to run, created.
pub(crate) fn cache() -> Result<PathBuf> {
    let path =
        std::env::var_os("UASKIT_INTEROP_CACHE").map_or_else(|| target().join("interop"), PathBuf::from);
    create(&path)?;
    Ok(path)
}

/// The file of that name in the directory of logs. Logs stay until the next run of the same scenario.
pub(crate) fn log(name: &str) -> Result<PathBuf> {
    let logs = cache()?.join("logs");
    create(&logs)?;
    Ok(logs.join(name))
}

pub(crate) fn create(path: &Path) -> Result<()> {
    fs::create_dir_all(path).map_err(Error::io(format!("create {}", path.display())))
}

/// Waits for the others who prepare what is in that directory, and keeps them out until the file is dropped: test programs and their
/// tests may run side by side.
pub(crate) fn lock(directory: &Path) -> Result<fs::File> {
    let path = directory.join("lock");
    let file = fs::File::create(&path).map_err(Error::io(format!("create {}", path.display())))?;
    file.lock().map_err(Error::io(format!("lock {}", path.display())))?;
    Ok(file)
}

/// The last lines of a log, for an error message.
pub(crate) fn tail(path: &Path) -> String {
    const LINES: usize = 25;
    let bytes = fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    let last = lines.get(lines.len().saturating_sub(LINES)..).unwrap_or_default();
    format!("--- end of {}:\n{}\n---", path.display(), last.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scratch_directory_goes_away_with_its_owner() {
        let scratch = Scratch::new().expect("a temporary directory");
        let image = scratch.image("disk", 1 << 20).expect("a sparse file");
        assert_eq!(fs::metadata(&image).expect("exists").len(), 1_048_576);
        drop(scratch);
        assert!(!image.exists());
    }

    #[test]
    fn one_at_a_time_prepares_a_directory() {
        let scratch = Scratch::new().expect("a temporary directory");
        let directory = scratch.directory.path();
        let held = lock(directory).expect("it is not locked");
        let other = fs::File::open(directory.join("lock")).expect("exists");
        assert!(other.try_lock().is_err());
        drop(held);
        assert!(other.try_lock().is_ok());
    }

    #[test]
    fn a_socket_in_a_scratch_directory_fits_its_address() {
        let scratch = Scratch::new().expect("a temporary directory");
        // sockaddr_un holds 108 bytes, with the closing zero.
        assert!(scratch.path("usbredir-second-drive.sock").as_os_str().len() < 108);
    }

    #[test]
    fn the_tail_of_a_long_log_is_its_last_lines() {
        let scratch = Scratch::new().expect("a temporary directory");
        let log = scratch.path("log");
        fs::write(&log, (0..100).map(|n| format!("line {n}\n")).collect::<String>()).expect("written");
        let text = tail(&log);
        assert!(text.contains("line 99") && text.contains("line 75") && !text.contains("line 74"), "{text}");
    }
}
