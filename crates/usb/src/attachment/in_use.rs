//! Detection of disks in use by the system, whose driver must not be detached.
//!
//! The kernel is asked: a block device that is mounted, swapped to, part of a volume or opened
//! exclusively cannot be opened for exclusive use. Loop devices on top are found by sysfs files
//! only. Without permission to open it, files are used for the others as well ([`block`]), which
//! are incomplete: a caller that is going to write uses [`block::claim`] before, which reports
//! that. Opening also flushes pending writes to the device.

use inspect::block::{self, BlockDevice, Objection};
use inspect::inventory::Disk;
use inspect::tree::Tree;
use rustix::fs::OFlags;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;

/// Describes the user of a disk; returns `None` if nothing uses it.
pub(super) fn user_of(tree: &Tree, disk: &Disk) -> Option<String> {
    let node = disk.node.as_deref()?;
    let flags = (OFlags::EXCL | OFlags::NONBLOCK | OFlags::CLOEXEC).bits() as i32;
    match OpenOptions::new().read(true).custom_flags(flags).open(format!("/dev/{node}")) {
        // A driver that goes drops what was not sent yet. A disk without a medium fails here, and
        // has nothing to lose.
        Ok(device) => {
            let _ = device.sync_all();
            block::loops_on(tree, &BlockDevice::of_name(tree, node)?).into_iter().find_map(word_of)
        }
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
            Some(user_by_files(tree, node).unwrap_or_else(|| "something holds it".to_owned()))
        }
        Err(_) => user_by_files(tree, node),
    }
}

/// The first that files name of those who use the disk, or a part of it.
fn user_by_files(tree: &Tree, node: &str) -> Option<String> {
    let device = BlockDevice::of_name(tree, node)?;
    block::objections(tree, &device).into_iter().find_map(word_of)
}

/// Describes the user of a disk in a few words; returns `None` if its data are not at risk.
fn word_of(objection: Objection) -> Option<String> {
    match objection {
        Objection::Mounted { at, .. } => Some(format!("it is mounted at {at}")),
        Objection::Held { by, .. } => Some(format!("it is part of {by}")),
        // No one loses anything by that.
        Objection::ReadOnly { .. } => None,
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A machine with these directories and this list of mounts.
    fn machine(directories: &[&str], mounts: &str) -> tempfile::TempDir {
        let place = tempfile::tempdir().expect("a temporary directory");
        for directory in directories.iter().chain(&["proc/self"]) {
            fs::create_dir_all(place.path().join(directory)).expect("made");
        }
        fs::write(place.path().join("proc/self/mountinfo"), mounts).expect("written");
        place
    }

    #[test]
    fn a_mounted_partition_is_found() {
        let partition = "sys/class/block/sda/sda2";
        let mounts =
            "1 2 8:200 / /other rw - ext4 /dev/sdab1 rw\n1 2 8:2 / /media/stick rw - vfat /dev/sda2 rw\n";
        let place = machine(&[partition, "sys/class/block/sda2", "sys/class/block/sdb"], mounts);
        fs::write(place.path().join(partition).join("partition"), "2").expect("written");
        let tree = Tree::at(place.path());
        assert_eq!(user_by_files(&tree, "sda"), Some("it is mounted at /media/stick".into()));
        assert_eq!(user_by_files(&tree, "sdb"), None);
    }

    #[test]
    fn a_disk_that_is_part_of_a_volume_is_found() {
        let place = machine(&["sys/class/block/sda/holders/md0", "sys/class/block/sdb"], "");
        let tree = Tree::at(place.path());
        assert_eq!(user_by_files(&tree, "sda"), Some("it is part of md0".into()));
        assert_eq!(user_by_files(&tree, "sdb"), None);
    }

    #[test]
    fn a_disk_that_can_be_opened_is_in_use_where_a_loop_is_made_of_it() {
        // A node that can be opened for no one else anywhere stands for the disk's.
        let disk = Disk { node: Some("null".into()), ..Disk::default() };
        let place = machine(&["sys/class/block/null", "sys/block/loop2/loop"], "");
        let tree = Tree::at(place.path());
        assert_eq!(user_of(&tree, &disk), None);
        fs::write(place.path().join("sys/block/loop2/loop/backing_file"), "/dev/null\n").expect("written");
        assert_eq!(user_of(&tree, &disk), Some("it is part of loop2".into()));
    }

    #[test]
    fn a_disk_with_a_partition_that_is_swapped_to_is_found() {
        let partition = "sys/class/block/sda/sda1";
        let place = machine(&[partition, "sys/class/block/sda1"], "");
        fs::write(place.path().join(partition).join("partition"), "1").expect("written");
        fs::write(place.path().join("proc/swaps"), "Filename Type\n/dev/sda1 partition 1 2 3\n")
            .expect("written");
        let tree = Tree::at(place.path());
        assert_eq!(user_by_files(&tree, "sda"), Some("sda1 is swapped to; swapoff it first".into()));
    }
}
