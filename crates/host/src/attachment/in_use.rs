//! Whether the system uses a disk, so that its driver must not be taken away.
//!
//! The kernel itself is asked: a block device that is mounted, swapped to, part of a volume or opened by one who wants
//! it alone cannot be opened for exclusive use. Without the right to open it, the list of mounts is looked through, and
//! those who hold it in sysfs. On the way what was written to the device is sent to it.

use crate::inventory::Disk;
use crate::tree::Tree;
use rustix::fs::OFlags;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;

/// What uses a disk; `None` if nothing does.
pub(super) fn user_of(tree: &Tree, disk: &Disk) -> Option<String> {
    let node = disk.node.as_deref()?;
    let flags = (OFlags::EXCL | OFlags::NONBLOCK | OFlags::CLOEXEC).bits() as i32;
    match OpenOptions::new().read(true).custom_flags(flags).open(format!("/dev/{node}")) {
        // A driver that goes drops what was not sent yet. A disk without a medium fails here, and has nothing to lose.
        Ok(device) => {
            let _ = device.sync_all();
            None
        }
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
            Some(mount_of(tree, node).map_or_else(|| "something holds it".to_owned(), said))
        }
        Err(_) => mount_of(tree, node).map(said).or_else(|| holder_of(tree, node)),
    }
}

fn said(place: String) -> String {
    format!("it is mounted at {place}")
}

/// Where the disk, or a partition of it, is mounted.
fn mount_of(tree: &Tree, node: &str) -> Option<String> {
    let source = format!("/dev/{node}");
    let is_part = |rest: &str| rest.chars().all(|letter| letter.is_ascii_digit());
    let is_of = |line: &str| {
        line.split(' ').next().and_then(|device| device.strip_prefix(&source)).is_some_and(is_part)
    };
    let lines = tree.lines("/proc/self/mounts", is_of).ok()?;
    lines.first()?.split(' ').nth(1).map(str::to_owned)
}

/// A volume that the disk is part of.
fn holder_of(tree: &Tree, node: &str) -> Option<String> {
    let holders = tree.names(&format!("/sys/class/block/{node}/holders"), |_| true);
    holders.first().map(|holder| format!("it is part of {holder}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_mounted_partition_is_found() {
        let place = tempfile::tempdir().expect("a temporary directory");
        fs::create_dir_all(place.path().join("proc/self")).expect("made");
        let mounts = "/dev/sdab1 /other ext4 rw 0 0\n/dev/sda2 /media/stick vfat rw 0 0\n";
        fs::write(place.path().join("proc/self/mounts"), mounts).expect("written");
        let tree = Tree::at(place.path());
        assert_eq!(mount_of(&tree, "sda"), Some("/media/stick".into()));
        assert_eq!(mount_of(&tree, "sdb"), None);
    }

    #[test]
    fn a_disk_that_is_part_of_a_volume_is_found() {
        let place = tempfile::tempdir().expect("a temporary directory");
        fs::create_dir_all(place.path().join("sys/class/block/sda/holders/md0")).expect("made");
        let tree = Tree::at(place.path());
        assert_eq!(holder_of(&tree, "sda"), Some("it is part of md0".into()));
        assert_eq!(holder_of(&tree, "sdb"), None);
    }
}
