//! Block devices as sysfs describes them: name, whole disk, make, and what else lies on the same disk.
//!
//! Everything is read through a [`Tree`], so that tests can make machines up. A device mapper, a RAID or a loop is a separate device
//! here, with others below.

use super::loops::Loop;
use crate::inventory::unit_serial;
use crate::tree::Tree;

/// Where sysfs has all block devices, as links.
const CLASS: &str = "/sys/class/block";

/// Ancestors of a disk that are asked whether they are the USB device; hubs lie above it.
const ANCESTORS_MAX: usize = 12;

/// A block device: a disk, or a partition of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockDevice {
    /// Its name, such as `sdb1`.
    pub name: String,
    /// The disk that it is or lies on, such as `sdb`.
    pub disk: String,
    /// The directory of that disk in sysfs.
    pub disk_path: String,
    /// Device number, `8:17`.
    pub number: String,
    /// Vendor and product.
    pub model: Option<String>,
    /// Serial number: the unit's own, else that of its USB device.
    pub serial: Option<String>,
    /// The revision of its firmware.
    pub firmware: Option<String>,
    /// Bytes that it has.
    pub bytes: u64,
    /// The kernel takes no writes for it.
    pub read_only: bool,
    /// The port of the USB device that it belongs to.
    pub usb_port: Option<String>,
}

impl BlockDevice {
    /// The device with this number, as `st_rdev` has it.
    pub fn of_number(tree: &Tree, number: u64) -> Option<Self> {
        let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
        Self::of_pair(tree, &format!("{major}:{minor}"))
    }

    /// The device with this number, as the kernel writes it: `8:17`.
    pub fn of_pair(tree: &Tree, pair: &str) -> Option<Self> {
        let name = tree.link_name(&format!("/sys/dev/block/{pair}"))?;
        Self::of_name(tree, &name)
    }

    /// The device of this name.
    pub fn of_name(tree: &Tree, name: &str) -> Option<Self> {
        /// The kernel's unit of `size`, whatever the logical block is.
        const SECTOR_BYTES: u64 = 512;
        let path = path_of(tree, name);
        if !tree.exists(&path) {
            return None;
        }
        let is_partition = tree.exists(&format!("{path}/partition"));
        let disk_path = match path.rsplit_once('/') {
            Some((parent, _)) if is_partition => parent.to_owned(),
            _ => path.clone(),
        };
        let text =
            |name: &str| tree.text(&format!("{disk_path}/{name}")).ok().filter(|text| !text.is_empty());
        let words: Vec<String> = ["device/vendor", "device/model"].into_iter().filter_map(text).collect();
        let usb = usb_device(tree, &disk_path);
        let of_usb = || usb.as_ref().and_then(|path| tree.text(&format!("{path}/serial")).ok());
        Some(Self {
            name: name.to_owned(),
            disk: disk_path.rsplit('/').next().unwrap_or(name).to_owned(),
            number: tree.text(&format!("{path}/dev")).unwrap_or_default(),
            model: (!words.is_empty()).then(|| words.join(" ")),
            serial: unit_serial(tree, &format!("{disk_path}/device/vpd_pg80"))
                .or_else(|| text("device/serial"))
                .or_else(|| text("serial"))
                .or_else(of_usb),
            firmware: text("device/rev").or_else(|| text("device/firmware_rev")),
            bytes: tree.number(&format!("{path}/size")).unwrap_or(0).saturating_mul(SECTOR_BYTES),
            read_only: tree.number(&format!("{path}/ro")) == Some(1),
            usb_port: usb.as_ref().and_then(|path| path.rsplit('/').next()).map(str::to_owned),
            disk_path,
        })
    }

    /// Whether it is a whole disk.
    pub fn is_disk(&self) -> bool {
        self.name == self.disk
    }

    /// The number of its disk among all disks and media that have come since the system began, where the kernel counts (5.15).
    pub fn sequence(&self, tree: &Tree) -> Option<u64> {
        tree.number(&format!("{}/diskseq", self.disk_path))
    }

    /// Lists the devices that share blocks with it: itself, a disk's partitions, a partition's disk.
    pub fn relatives(&self, tree: &Tree) -> Vec<Self> {
        let mut all = vec![self.clone()];
        if self.is_disk() {
            let is_partition = |name: &str| tree.exists(&format!("{}/{name}/partition", self.disk_path));
            let names = tree.names(&self.disk_path, is_partition);
            all.extend(names.iter().filter_map(|name| Self::of_name(tree, name)));
        } else {
            all.extend(Self::of_name(tree, &self.disk));
        }
        all
    }

    /// The devices that are made of it: device mapper with their names, RAID, caches.
    pub fn holders(&self, tree: &Tree) -> Vec<String> {
        let holders = tree.names(&format!("{}/holders", path_of(tree, &self.name)), |_| true);
        let titled = |holder: String| match tree.text(&format!("{}/dm/name", path_of(tree, &holder))) {
            Ok(title) => format!("{holder} ({title})"),
            Err(_) => holder,
        };
        holders.into_iter().map(titled).collect()
    }

    /// The disks that it lies on, by name: its own, those which that is made of, and so on to the last.
    pub fn disks_below(&self, tree: &Tree) -> Vec<String> {
        let mut disks = vec![self.disk.clone()];
        // Each disk is looked at once; there are no more than names in a directory.
        let mut at = 0;
        while let Some(disk) = disks.get(at).cloned() {
            at += 1;
            // A partition is made of nothing but its disk.
            let slaves = tree.names(&format!("{}/slaves", path_of(tree, &disk)), |_| true);
            let slaves = slaves.iter().filter_map(|name| Self::of_name(tree, name));
            let backing = Loop::of_name(tree, &disk).and_then(|found| found.device_below(tree));
            for below in slaves.chain(backing) {
                if !disks.contains(&below.disk) {
                    disks.push(below.disk);
                }
            }
        }
        disks
    }

    /// The device itself; if its disk is a loop of a device, that one, and so on: what is written to one is written to all.
    pub(super) fn layers(&self, tree: &Tree) -> Vec<Self> {
        let mut layers = vec![self.clone()];
        while let Some(below) =
            layers.last().and_then(|last| Loop::of_name(tree, &last.disk)?.device_below(tree))
        {
            if layers.iter().any(|layer| layer.disk == below.disk) {
                break;
            }
            layers.push(below);
        }
        layers
    }

    /// Degrees Celsius, where the kernel has a sensor for it (`drivetemp`, NVMe).
    pub fn temperature_c(&self, tree: &Tree) -> Option<f64> {
        let directory = |path: &str| {
            let sensors = tree.names(path, |name| name.starts_with("hwmon"));
            sensors.iter().find_map(|sensor| tree.number(&format!("{path}/{sensor}/temp1_input")))
        };
        let device = format!("{}/device", self.disk_path);
        let thousandths = directory(&format!("{device}/hwmon")).or_else(|| directory(&device))?;
        Some(thousandths as f64 / 1000.0)
    }
}

fn path_of(tree: &Tree, name: &str) -> String {
    let link = format!("{CLASS}/{name}");
    tree.link(&link).unwrap_or(link)
}

fn usb_device(tree: &Tree, disk: &str) -> Option<String> {
    let mut path = disk;
    for _ in 0..ANCESTORS_MAX {
        (path, _) = path.rsplit_once('/')?;
        if tree.exists(&format!("{path}/idVendor")) {
            return Some(path.to_owned());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_sensor_of_the_disk_has_its_temperature() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let disk = place.path().join("sys/devices/usb2/2-1/2-1:1.0/host0/block/sda");
        fs::create_dir_all(place.path().join("sys/class/block")).expect("made");
        fs::create_dir_all(&disk).expect("made");
        symlink("../../devices/usb2/2-1/2-1:1.0/host0/block/sda", place.path().join("sys/class/block/sda"))
            .expect("a link");
        let tree = Tree::at(place.path());
        let device = BlockDevice::of_name(&tree, "sda").expect("it is there");
        assert_eq!(device.temperature_c(&tree), None);
        // Of the driver drivetemp, for SCSI disks; of NVMe the sensor is beside the disk.
        for sensor in ["device/hwmon/hwmon3", "device/hwmon4"] {
            let sensor = disk.join(sensor);
            fs::create_dir_all(&sensor).expect("made");
            fs::write(sensor.join("temp1_input"), "41500\n").expect("written");
            assert_eq!(device.temperature_c(&tree), Some(41.5), "{}", sensor.display());
            fs::remove_dir_all(sensor).expect("removed");
        }
    }
}
