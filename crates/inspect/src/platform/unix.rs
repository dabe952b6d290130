//! Files and devices of Unix.

use rustix::fs::{OFlags, major, minor};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

/// The number of `/dev/kmsg` (Documentation/admin-guide/devices.txt).
const KMSG: (u32, u32) = (1, 11);

/// Opens for reading, without waiting for the other end of a pipe.
pub(crate) fn open_without_waiting(path: &Path) -> io::Result<File> {
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// Whether it is the kernel's buffer of records.
pub(crate) fn is_kernel_buffer(file: &File) -> io::Result<bool> {
    let metadata = file.metadata()?;
    let number = (major(metadata.rdev()), minor(metadata.rdev()));
    Ok(metadata.file_type().is_char_device() && number == KMSG)
}

/// Major and minor number of the block device whose node this is.
pub(crate) fn block_device_number(path: &Path) -> Option<(u32, u32)> {
    let found = fs::metadata(path).ok()?;
    found.file_type().is_block_device().then(|| (major(found.rdev()), minor(found.rdev())))
}

/// Makes a symbolic link.
pub(crate) fn symlink(target: &str, link: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, link)
}
