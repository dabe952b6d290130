//! Loop devices: what each is made of.
//!
//! The kernel makes no link from a device to the loops that are made of it, and a loop does not claim its device: opening that exclusively
//! succeeds while a file system behind the loop is mounted. Only the loop itself names it, by path (`loop/backing_file`).
//!
//! Left out: paths of another mount namespace that lead to something else here. Always true: a loop that is attached counts, whether
//! something is mounted on it or not.

use super::device::BlockDevice;
use crate::tree::Tree;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Where sysfs has whole disks, loop devices among them.
const DISKS: &str = "/sys/block";

/// The suffix that the kernel adds to the path of a file, or of a node, that is gone.
const GONE: &[u8] = b" (deleted)";

/// A loop device that is attached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Loop {
    /// Its name, such as `loop0`.
    pub(super) name: String,
    /// The file or device that it is made of, as the kernel has its path.
    pub(super) backing: PathBuf,
}

impl Loop {
    /// All that are attached.
    pub(super) fn all(tree: &Tree) -> Vec<Self> {
        let names = tree.names(DISKS, |name| name.starts_with("loop"));
        names.into_iter().filter_map(|name| Self::of_name(tree, &name)).collect()
    }

    /// Reads the loop device of this name.
    pub(super) fn of_name(tree: &Tree, name: &str) -> Option<Self> {
        let path = tree.bytes(&format!("{DISKS}/{name}/loop/backing_file")).ok()?;
        let path = path.strip_suffix(b"\n").unwrap_or(&path).to_vec();
        Some(Self { name: name.to_owned(), backing: OsString::from_vec(path).into() })
    }

    /// Whether it is made of that device: by the number of the node that its path leads to; by name where there is none any more.
    pub(super) fn lies_on(&self, tree: &Tree, device: &BlockDevice) -> bool {
        match tree.device_number(&self.backing) {
            Some(number) => number == device.number,
            None => self.node() == Some(device.name.as_bytes()),
        }
    }

    /// The block device that it is made of; `None` if that is a file.
    pub(super) fn device_below(&self, tree: &Tree) -> Option<BlockDevice> {
        match tree.device_number(&self.backing) {
            Some(number) => BlockDevice::of_pair(tree, &number),
            None => BlockDevice::of_name(tree, std::str::from_utf8(self.node()?).ok()?),
        }
    }

    /// The name of its node, if its path is that of one.
    fn node(&self) -> Option<&[u8]> {
        let path = self.backing.as_os_str().as_bytes();
        node_of(path.strip_suffix(GONE).unwrap_or(path))
    }
}

/// The name of the device whose node has this path.
pub(super) fn node_name(path: &Path) -> Option<&[u8]> {
    node_of(path.as_os_str().as_bytes())
}

fn node_of(path: &[u8]) -> Option<&[u8]> {
    path.strip_prefix(b"/dev/")
}
