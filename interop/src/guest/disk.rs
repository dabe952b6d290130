//! A USB disk as the guest's kernel shows it in sysfs.

use crate::{Error, Result};

/// A USB disk of the guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    /// Its block device, such as `sda`.
    pub name: String,
    /// Its generic device, such as `sg0`; `-` without the sg module.
    pub generic: String,
    /// The driver that is bound to its interface: `uas` or `usb-storage`.
    pub driver: String,
    /// The commands that the kernel keeps in flight at most.
    pub queue_depth: u32,
    /// Its capacity in bytes; 0 until the kernel has read it, or without a medium.
    pub bytes: u64,
    /// The speed of its bus in Mbit/s: 12, 480, 5000.
    pub speed_mbps: u32,
    /// Where it is plugged in, such as `2-1`.
    pub port: String,
    /// Its logical unit number.
    pub lun: u64,
    /// The serial number of the USB device.
    pub serial: String,
}

impl Disk {
    /// The block device's path.
    pub fn path(&self) -> String {
        format!("/dev/{}", self.name)
    }

    /// The generic device's path.
    pub fn generic_path(&self) -> String {
        format!("/dev/{}", self.generic)
    }

    /// Reads one line of `disks.sh`.
    pub(super) fn parse(line: &str) -> Result<Self> {
        /// The kernel's unit of `size`, whatever the logical block is.
        const SECTOR_BYTES: u64 = 512;
        let nonsense = || Error::unexpected("list the guest's disks", line);
        let number = |word: &str| word.parse::<u64>().map_err(|_| nonsense());
        let small = |word: &str| word.parse::<u32>().map_err(|_| nonsense());
        let fields: Vec<&str> = line.splitn(9, '|').collect();
        let [name, generic, driver, depth, sectors, speed, port, lun, serial] = fields[..] else {
            return Err(nonsense());
        };
        Ok(Self {
            name: name.into(),
            generic: generic.into(),
            driver: driver.into(),
            queue_depth: small(depth)?,
            bytes: number(sectors)? * SECTOR_BYTES,
            speed_mbps: small(speed)?,
            port: port.into(),
            lun: number(lun)?,
            serial: serial.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_sysfs_is_a_disk() {
        let disk = Disk::parse("sda|sg0|uas|30|131072|5000|2-1|1|A1B2").expect("whole");
        assert_eq!(disk.path(), "/dev/sda");
        assert_eq!(disk.generic_path(), "/dev/sg0");
        assert_eq!((disk.driver.as_str(), disk.queue_depth), ("uas", 30));
        assert_eq!((disk.bytes, disk.speed_mbps), (67_108_864, 5000));
        assert_eq!((disk.port.as_str(), disk.lun, disk.serial.as_str()), ("2-1", 1, "A1B2"));
    }

    #[test]
    fn a_line_without_all_fields_is_refused() {
        for line in ["", "sda|sg0|uas|30", "sda|sg0|uas|deep|131072|5000|2-1|0|A1B2"] {
            assert!(Disk::parse(line).is_err(), "{line:?}");
        }
    }
}
