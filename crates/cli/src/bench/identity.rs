//! The identity of a file or block device when the user confirmed, compared with the one that is open.
//!
//! The next disk gets the device name of one that was unplugged. The comparison follows the open, so that it is about the
//! open device. Left out: a drive at a port, whose bench device compares identities each time that it opens a route.

use super::confirm::describe;
use crate::sanitize::shown;
use inspect::block::BlockDevice;
use inspect::tree::Tree;
use std::fs::Metadata;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use units::Capacity;

/// A file or a block device, and no other.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum DeviceIdentity {
    /// By its file system and its inode.
    File { device: u64, number: u64, bytes: u64 },
    Device {
        device: Box<BlockDevice>,
        /// Goes up with each disk and each medium that comes (since Linux 5.15).
        sequence: Option<u64>,
    },
}

impl DeviceIdentity {
    /// Returns the identity of the file or block device at a path; `None` if its metadata cannot be
    /// read.
    pub(super) fn of(path: &Path, tree: &Tree) -> Option<Self> {
        let metadata = std::fs::metadata(path).ok()?;
        let is_block = metadata.file_type().is_block_device();
        let device = is_block.then(|| BlockDevice::of_number(tree, metadata.rdev())).flatten();
        Some(device.map_or_else(|| Self::of_file(&metadata), |device| Self::of_device(device, tree)))
    }

    fn of_file(metadata: &Metadata) -> Self {
        Self::File { device: metadata.dev(), number: metadata.ino(), bytes: metadata.len() }
    }

    fn of_device(device: BlockDevice, tree: &Tree) -> Self {
        let sequence = device.sequence(tree);
        Self::Device { device: Box::new(device), sequence }
    }

    /// Reads the sequence number again, right before the question: an open can make the kernel detect the medium.
    pub(super) fn noticed(self, tree: &Tree) -> Self {
        match self {
            Self::Device { device, .. } => Self::of_device(*device, tree),
            file @ Self::File { .. } => file,
        }
    }

    /// Whether both are the same device. A property that one side lacks is not a difference.
    fn is(&self, now: &Self) -> bool {
        let same = |one: &Option<String>, other: &Option<String>| {
            one.as_ref().zip(other.as_ref()).is_none_or(|(one, other)| one == other)
        };
        match (self, now) {
            (Self::File { device, number, .. }, Self::File { device: other, number: another, .. }) => {
                (device, number) == (other, another)
            }
            (Self::Device { device, sequence }, Self::Device { device: other, sequence: another }) => {
                (&device.number, device.bytes) == (&other.number, other.bytes)
                    && same(&device.model, &other.model)
                    && same(&device.serial, &other.serial)
                    && sequence.zip(*another).is_none_or(|(one, other)| one == other)
            }
            _ => false,
        }
    }

    /// Checks that the opened path still leads to the same device.
    ///
    /// # Errors
    /// Names the confirmed device and the one that is there.
    pub(super) fn check(&self, path: &Path, now: Option<&Self>) -> Result<(), String> {
        match now {
            Some(now) if self.is(now) => Ok(()),
            Some(now) => Err(format!(
                "the device has changed since you confirmed: it was {}, it is {}",
                self.describe(path),
                now.describe(path)
            )),
            None => {
                Err(format!("the device has disappeared since you confirmed: it was {}", self.describe(path)))
            }
        }
    }

    fn describe(&self, path: &Path) -> String {
        match self {
            Self::File { number, bytes, .. } => format!("file (inode {number}) of {}", Capacity(*bytes)),
            Self::Device { device, sequence } => {
                let sequence = sequence.map(|number| format!(", disk sequence number {number}"));
                describe(&shown(path), device) + &sequence.unwrap_or_default()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk(serial: Option<&str>, bytes: u64, sequence: Option<u64>) -> DeviceIdentity {
        let device = BlockDevice {
            name: "sdb".into(),
            disk: "sdb".into(),
            disk_path: "/sys/devices/usb2/2-1/2-1:1.0/host6/target6:0:0/6:0:0:0/block/sdb".into(),
            number: "8:16".into(),
            model: Some("Stick".into()),
            serial: serial.map(str::to_owned),
            firmware: None,
            bytes,
            read_only: false,
            usb_port: Some("2-1".into()),
        };
        DeviceIdentity::Device { device: Box::new(device), sequence }
    }

    #[test]
    fn another_disk_of_the_same_name_is_no_disk_that_was_agreed_to() {
        let path = Path::new("/dev/sdb");
        let agreed = disk(Some("A"), 16 << 20, Some(7));
        let check = |now: &DeviceIdentity| agreed.check(path, Some(now));
        assert_eq!(check(&disk(Some("A"), 16 << 20, Some(7))), Ok(()));
        let text = check(&disk(Some("B"), 16 << 20, Some(7))).expect_err("another serial number");
        assert_eq!(
            text,
            "the device has changed since you confirmed: it was /dev/sdb (Stick, serial number A, 16 MiB), disk sequence \
             number 7, it is /dev/sdb (Stick, serial number B, 16 MiB), disk sequence number 7"
        );
        check(&disk(Some("A"), 32 << 20, Some(7))).expect_err("another size");
        // Two that are alike, or another medium in the same reader.
        check(&disk(Some("A"), 16 << 20, Some(8))).expect_err("it came later");
        // Not known on one side.
        assert_eq!(check(&disk(None, 16 << 20, None)), Ok(()));
        check(&DeviceIdentity::File { device: 1, number: 2, bytes: 16 << 20 }).expect_err("a file");
        assert!(agreed.check(path, None).expect_err("it is gone").contains("has disappeared"));
    }
}
