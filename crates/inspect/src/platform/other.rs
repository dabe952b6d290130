//! The same where there are no devices and no symbolic links.

use std::fs::File;
use std::io;
use std::path::Path;

/// Opens for reading.
pub(crate) fn open_without_waiting(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// No file is the kernel's buffer of records.
pub(crate) fn is_kernel_buffer(_file: &File) -> io::Result<bool> {
    Ok(false)
}

/// Fails: links of a recorded tree cannot be made here.
pub(crate) fn symlink(_target: &str, _link: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
