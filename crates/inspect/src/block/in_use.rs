//! Whether a device may be overwritten, or taken from its driver.
//!
//! Either destroys data in use. So a device is refused if anything of the system uses it: a file
//! system, swap, a device mapper, RAID or loop on top of it, the running system itself, any program that has opened it exclusively. A
//! disk is asked about with its partitions, a partition with its disk, a loop with the device that it is made of. Names of files are compared byte for byte, since they need not be
//! UTF-8; an [`Objection`] has them as text. Left out: data that is not in use at the moment;
//! only the owner knows about those, and is asked.
//!
//! Always true: what cannot be read speaks neither for nor against; the exclusive open ([`claim`]) decides in the end. Files show the
//! mounts of this process's namespace and no program that has a device to itself: where the device may not be opened, that is reported.

use super::device::BlockDevice;
use super::loops::{Loop, node_name};
use crate::tree::Tree;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use wire::Legible;

/// Mount points whose disk the system runs from.
const SYSTEM_PLACES: &[&str] = &["/", "/usr", "/var", "/etc", "/boot", "/boot/efi", "/efi"];

/// Why a device is not to be overwritten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Objection {
    /// It, or a part of it, is mounted.
    Mounted {
        /// The mounted device.
        device: String,
        /// Where.
        at: String,
    },
    /// It, or a part of it, is swapped to.
    Swap {
        /// The device that is swapped to.
        device: String,
    },
    /// Another device is made of it.
    Held {
        /// The device that another is made of.
        device: String,
        /// The device that is made of it, with its name where it has one.
        by: String,
    },
    /// The system runs from this disk.
    System {
        /// The disk.
        disk: String,
        /// The mount point on it, or the kernel parameter that names the root on it.
        place: String,
    },
    /// The kernel takes no writes for it.
    ReadOnly {
        /// The device.
        device: String,
    },
    /// A loop device is made of the file.
    Loop {
        /// Which.
        device: String,
    },
    /// A program has it open exclusively.
    Claimed {
        /// Its path.
        path: String,
    },
    /// It cannot be opened here, so that the kernel cannot be asked. Files, which know less, have been.
    Unchecked {
        /// Its path.
        path: String,
        /// Why it cannot be opened.
        errno: Errno,
        /// The group whose members may open it, if there is one with a name.
        group: Option<String>,
    },
}

/// The facts that are not known of a device that was not opened.
const UNCHECKED: &str =
    "so that it is not known whether a volume, another program or a mount of another namespace has it";

/// A line of `/proc/self/mountinfo` (proc(5)).
struct Mount {
    number: String,
    at: PathBuf,
    source: PathBuf,
}

/// Lists the objections to overwriting a device, as far as files show.
pub fn objections(tree: &Tree, device: &BlockDevice) -> Vec<Objection> {
    let mounts = mounts(tree);
    let swaps = swaps(tree);
    let pools = pools(tree);
    let loops = Loop::all(tree);
    let mut found = Vec::new();
    let mut above = None;
    for layer in device.layers(tree) {
        for relative in layer.relatives(tree) {
            let name = &relative.name;
            for mount in mounts.iter().filter(|mount| mount.is_of(&relative)) {
                found.push(Objection::Mounted { device: name.clone(), at: text(&mount.at) });
            }
            if swaps.iter().any(|swap| is_node(swap, name)) {
                found.push(Objection::Swap { device: name.clone() });
            }
            for by in relative.holders(tree) {
                found.push(Objection::Held { device: name.clone(), by });
            }
            // The loop by which it was come to is what is asked about.
            let others = loops.iter().filter(|found| above.as_ref() != Some(&found.name));
            found.extend(others.filter_map(|found| loop_on(tree, found, &relative)));
            if pools.iter().any(|member| member == name) {
                found.push(Objection::Held { device: name.clone(), by: "a btrfs file system".into() });
            }
        }
        if let Some(place) = system_place(tree, &mounts, &layer.disk) {
            found.push(Objection::System { disk: layer.disk.clone(), place });
        }
        above = Some(layer.disk);
    }
    if device.read_only {
        found.push(Objection::ReadOnly { device: device.name.clone() });
    }
    found
}

/// The loop devices that are made of a device, its partitions or its disk. The kernel lets any program open that exclusively, so that
/// [`claim`] does not know of them.
pub fn loops_on(tree: &Tree, device: &BlockDevice) -> Vec<Objection> {
    let loops = Loop::all(tree);
    let on = |relative: BlockDevice| loops.iter().filter_map(move |found| loop_on(tree, found, &relative));
    device.relatives(tree).into_iter().flat_map(on).collect()
}

fn loop_on(tree: &Tree, found: &Loop, device: &BlockDevice) -> Option<Objection> {
    let held = || Objection::Held { device: device.name.clone(), by: found.name.clone() };
    found.lies_on(tree, device).then(held)
}

/// Lists the objections to overwriting a plain file, by its absolute path.
pub fn objections_to_file(tree: &Tree, path: &Path) -> Vec<Objection> {
    let mut found = Vec::new();
    if swaps(tree).iter().any(|swap| is_same_file(swap, path)) {
        found.push(Objection::Swap { device: text(path) });
    }
    let loops = Loop::all(tree).into_iter().filter(|found| is_same_file(&found.backing, path));
    found.extend(loops.map(|found| Objection::Loop { device: found.name }));
    found
}

/// Whether two paths lead to the same file: they are the same byte for byte, or it has both names, or a mount shows it in two places.
pub fn is_same_file(one: impl AsRef<Path>, other: impl AsRef<Path>) -> bool {
    let (one, other) = (one.as_ref(), other.as_ref());
    let node = |path: &Path| std::fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    one.as_os_str() == other.as_os_str() || node(one).is_some_and(|found| node(other) == Some(found))
}

/// A path as text.
fn text(path: &Path) -> String {
    Legible(path.as_os_str().as_bytes()).to_string()
}

fn path_of(name: Vec<u8>) -> PathBuf {
    OsString::from_vec(name).into()
}

/// Whether a path is that of a device's node.
fn is_node(path: &Path, name: &str) -> bool {
    node_name(path) == Some(name.as_bytes())
}

/// Opens a block device exclusively (`O_EXCL`), and closes it again: whether the kernel lets us.
///
/// # Errors
/// That a program has it, or that it is not known. Other failures to open are left to who opens it in earnest.
pub fn claim(tree: &Tree, path: &Path) -> Result<(), Objection> {
    let flags = OFlags::RDONLY | OFlags::EXCL | OFlags::CLOEXEC;
    match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(_) => Ok(()),
        Err(errno) => unclaimed(tree, path, errno).map_or(Ok(()), Err),
    }
}

/// Returns the objection that follows from the error of opening a device, if any.
fn unclaimed(tree: &Tree, path: &Path, errno: Errno) -> Option<Objection> {
    let name = text(path);
    match errno {
        Errno::BUSY => Some(Objection::Claimed { path: name }),
        // The disk of another machine has no node here.
        Errno::NOENT if !tree.is_running() => None,
        Errno::ACCESS | Errno::PERM | Errno::NOENT => {
            Some(Objection::Unchecked { path: name, errno, group: group_of(tree, path) })
        }
        _ => None,
    }
}

/// The name of a file's group (group(5)), if its members may read it.
fn group_of(tree: &Tree, path: &Path) -> Option<String> {
    let file = std::fs::metadata(path).ok().filter(|file| file.mode() & Mode::RGRP.bits() != 0)?;
    let number = file.gid().to_string();
    let lines = tree.lines("/etc/group", |line| line.split(':').nth(2) == Some(&number)).ok()?;
    lines.first()?.split(':').next().map(str::to_owned)
}

impl Mount {
    fn parse(line: &[u8]) -> Option<Self> {
        let mut words = line.split(|byte| *byte == b' ');
        let number = Legible(words.nth(2)?).to_string();
        let at = unescaped(words.nth(1)?);
        // As many fields as the kernel likes, then a dash, the kind of file system and its source.
        words.find(|word| *word == b"-")?;
        let source = unescaped(words.nth(1)?);
        Some(Self { number, at, source })
    }

    /// By number; by name where the file system has an anonymous device number (btrfs).
    fn is_of(&self, device: &BlockDevice) -> bool {
        (!device.number.is_empty() && self.number == device.number) || is_node(&self.source, &device.name)
    }
}

fn mounts(tree: &Tree) -> Vec<Mount> {
    let lines = tree.byte_lines("/proc/self/mountinfo").unwrap_or_default();
    lines.iter().filter_map(|line| Mount::parse(line)).collect()
}

/// Lists the swap areas: devices and files, by path.
fn swaps(tree: &Tree) -> Vec<PathBuf> {
    let lines = tree.byte_lines("/proc/swaps").unwrap_or_default();
    let names = lines.iter().filter_map(|line| line.split(u8::is_ascii_whitespace).next());
    names.filter(|name| name.starts_with(b"/")).map(unescaped).collect()
}

/// Members of btrfs file systems, of which a mount names one only.
fn pools(tree: &Tree) -> Vec<String> {
    let systems = tree.names("/sys/fs/btrfs", |name| name.contains('-'));
    systems
        .iter()
        .flat_map(|system| tree.names(&format!("/sys/fs/btrfs/{system}/devices"), |_| true))
        .collect()
}

/// Returns the part of the system that lies on a disk, if any.
fn system_place(tree: &Tree, mounts: &[Mount], disk: &str) -> Option<String> {
    let lies_there = |device: Option<BlockDevice>| {
        device.is_some_and(|device| device.disks_below(tree).iter().any(|below| below == disk))
    };
    let places =
        mounts.iter().filter(|mount| SYSTEM_PLACES.iter().any(|place| mount.at.as_os_str() == *place));
    for mount in places {
        let by_number = BlockDevice::of_pair(tree, &mount.number);
        let by_name = || BlockDevice::of_name(tree, mount.source.to_str()?.strip_prefix("/dev/")?);
        if lies_there(by_number.or_else(by_name)) {
            return Some(text(&mount.at));
        }
    }
    let command_line = tree.text("/proc/cmdline").unwrap_or_default();
    let root = command_line.split_whitespace().find_map(|word| word.strip_prefix("root=/dev/"))?;
    lies_there(BlockDevice::of_name(tree, root)).then(|| "root= of the kernel's command line".to_owned())
}

/// Octal escapes, which stand for white space and backslashes in names (proc(5)).
fn unescaped(name: &[u8]) -> PathBuf {
    let octal = |digits: &[u8; 3]| {
        let digits = digits.iter().map(|digit| char::from(*digit).to_digit(8));
        u8::try_from(digits.reduce(|value, digit| Some(value? * 8 + digit?))??).ok()
    };
    let (mut plain, mut rest) = (Vec::new(), name);
    while let Some((byte, after)) = rest.split_first() {
        let escaped = after.split_first_chunk().filter(|_| *byte == b'\\');
        let escaped = escaped.and_then(|(digits, after)| Some((octal(digits)?, after)));
        let (byte, after) = escaped.unwrap_or((*byte, after));
        plain.push(byte);
        rest = after;
    }
    path_of(plain)
}

impl fmt::Display for Objection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mounted { device, at } => write!(f, "{device} is mounted at {at}; unmount it first"),
            Self::Swap { device } => write!(f, "{device} is swapped to; swapoff it first"),
            Self::Held { device, by } => write!(f, "{by} is made of {device}; take that apart first"),
            Self::System { disk, place } => write!(f, "the system runs from {disk} ({place} lies there)"),
            Self::ReadOnly { device } => write!(f, "{device} is read-only"),
            Self::Loop { device } => write!(f, "{device} is made of it; detach that first"),
            Self::Claimed { path } => write!(f, "{path} is open exclusively"),
            Self::Unchecked { path, errno: Errno::ACCESS, group } => {
                write!(f, "this user may not open {path}, {UNCHECKED}: be root")?;
                group.as_ref().map_or(Ok(()), |group| write!(f, ", or a member of the group `{group}`"))
            }
            Self::Unchecked { path, errno, .. } => {
                write!(
                    f,
                    "{path} cannot be opened here ({errno}), {UNCHECKED}: be where it can, outside of a container"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    /// A machine made up in a directory.
    struct Machine(tempfile::TempDir);

    impl Machine {
        /// The system on `sda` and, by a device mapper, on `sdc`; a stick `sdb` with two unused partitions.
        fn new() -> Self {
            let machine = Self(tempfile::tempdir().expect("a directory"));
            for (disk, number, partitions) in [("sda", "8:0", 2), ("sdb", "8:16", 2), ("sdc", "8:32", 1)] {
                machine.device(&format!("/sys/devices/usb2/2-1/host6/block/{disk}"), disk, number);
                for partition in 1..=partitions {
                    let minor: u32 = number[2..].parse().expect("a number");
                    let (name, number) = (format!("{disk}{partition}"), format!("8:{}", minor + partition));
                    let path = format!("/sys/devices/usb2/2-1/host6/block/{disk}/{name}");
                    machine.device(&path, &name, &number);
                    machine.write(&format!("{path}/partition"), partition.to_string());
                }
            }
            machine.device("/sys/devices/virtual/block/dm-0", "dm-0", "253:0");
            machine.write("/sys/devices/virtual/block/dm-0/dm/name", "vg-var");
            machine.write("/sys/devices/virtual/block/dm-0/slaves/sdc1/x", "");
            machine.write("/sys/devices/usb2/2-1/host6/block/sdc/sdc1/holders/dm-0/x", "");
            machine.write("/sys/devices/usb2/2-1/idVendor", "174c");
            machine.write("/sys/devices/usb2/2-1/serial", "0123");
            machine.write("/sys/devices/usb2/2-1/host6/block/sdb/device/model", "Stick");
            machine.write("/proc/swaps", "Filename Type Size\n");
            machine.mounts("8:1 / / rw - ext4 /dev/sda1\n253:0 / /var rw - ext4 /dev/mapper/vg-var\n");
            machine
        }

        fn write(&self, path: &str, text: impl AsRef<[u8]>) {
            let path = self.0.path().join(path.trim_start_matches('/'));
            fs::create_dir_all(path.parent().expect("a directory")).expect("made");
            fs::write(path, text).expect("written");
        }

        fn device(&self, path: &str, name: &str, number: &str) {
            self.write(&format!("{path}/dev"), number);
            self.write(&format!("{path}/size"), "2048");
            let path = path.trim_start_matches("/sys/");
            let links = [format!("class/block/{name}"), format!("dev/block/{number}")];
            let of_disks = path.ends_with(&format!("block/{name}")).then(|| (format!("block/{name}"), ".."));
            for link in links.map(|link| (link, "../..")).into_iter().chain(of_disks) {
                let (link, up) = (self.0.path().join("sys").join(link.0), link.1);
                fs::create_dir_all(link.parent().expect("a directory")).expect("made");
                symlink(format!("{up}/{path}"), link).expect("linked");
            }
        }

        /// A disk that is a loop, with what it is made of.
        fn looped(&self, name: &str, number: &str, backing: &str) {
            let path = format!("/sys/devices/virtual/block/{name}");
            self.device(&path, name, number);
            self.write(&format!("{path}/loop/backing_file"), format!("{backing}\n"));
        }

        /// `NUMBER ROOT PLACE …` a line; the first two columns are of no concern.
        fn mounts(&self, lines: &str) {
            self.write(
                "/proc/self/mountinfo",
                lines.lines().map(|line| format!("1 2 {line}\n")).collect::<String>(),
            );
        }

        fn objections(&self, name: &str) -> Vec<String> {
            let tree = Tree::at(self.0.path());
            let device = BlockDevice::of_name(&tree, name).expect("it is there");
            objections(&tree, &device).iter().map(Objection::to_string).collect()
        }
    }

    #[test]
    fn an_unused_disk_is_free() {
        let machine = Machine::new();
        assert_eq!(machine.objections("sdb"), [""; 0]);
        assert_eq!(machine.objections("sdb1"), [""; 0]);
        let tree = Tree::at(machine.0.path());
        let stick = BlockDevice::of_pair(&tree, "8:17").expect("a partition");
        assert_eq!((stick.name.as_str(), stick.disk.as_str(), stick.bytes), ("sdb1", "sdb", 1 << 20));
        assert_eq!((stick.model.as_deref(), stick.serial.as_deref()), (Some("Stick"), Some("0123")));
        assert_eq!(stick.usb_port.as_deref(), Some("2-1"));
    }

    #[test]
    fn a_mounted_partition_speaks_for_its_disk() {
        let machine = Machine::new();
        machine.mounts("8:18 / /media/a\\040b rw - vfat /dev/sdb2\n");
        assert_eq!(machine.objections("sdb"), ["sdb2 is mounted at /media/a b; unmount it first"]);
        assert_eq!(machine.objections("sdb1"), [""; 0]);
        machine.mounts("8:16 / /mnt rw - ext4 /dev/sdb\n");
        assert_eq!(machine.objections("sdb1"), ["sdb is mounted at /mnt; unmount it first"]);
    }

    #[test]
    fn a_file_system_with_an_anonymous_number_is_found_by_name() {
        let machine = Machine::new();
        machine.mounts("0:31 /@ /mnt rw - btrfs /dev/sdb1\n");
        assert_eq!(machine.objections("sdb"), ["sdb1 is mounted at /mnt; unmount it first"]);
        machine.mounts("");
        machine.write("/sys/fs/btrfs/1-2/devices/sdb2/x", "");
        assert_eq!(machine.objections("sdb"), ["a btrfs file system is made of sdb2; take that apart first"]);
    }

    #[test]
    fn the_disk_of_the_system_is_refused_with_all_of_its_partitions() {
        let machine = Machine::new();
        let system = "the system runs from sda (/ lies there)";
        assert_eq!(machine.objections("sda"), ["sda1 is mounted at /; unmount it first", system]);
        assert_eq!(machine.objections("sda2"), [system]);
        // By way of a device mapper.
        assert_eq!(
            machine.objections("sdc"),
            [
                "dm-0 (vg-var) is made of sdc1; take that apart first",
                "the system runs from sdc (/var lies there)"
            ]
        );
        machine.mounts("");
        machine.write("/proc/cmdline", "quiet root=/dev/sdb2 ro");
        assert_eq!(
            machine.objections("sdb1"),
            ["the system runs from sdb (root= of the kernel's command line lies there)"]
        );
    }

    #[test]
    fn swap_and_write_protection_are_reported() {
        let machine = Machine::new();
        machine.write("/proc/swaps", "Filename Type\n/dev/sdb1 partition 1 2 3\n/swap\\040file file 1 2 3\n");
        machine.write("/sys/devices/usb2/2-1/host6/block/sdb/ro", "1");
        assert_eq!(machine.objections("sdb"), ["sdb1 is swapped to; swapoff it first", "sdb is read-only"]);
        let tree = Tree::at(machine.0.path());
        let swapped = objections_to_file(&tree, Path::new("/swap file"));
        assert_eq!(swapped, [Objection::Swap { device: "/swap file".into() }]);
    }

    #[test]
    fn a_refused_open_is_reported_with_what_to_do() {
        let machine = Machine::new();
        machine.write("/dev/sdb", "");
        let node = machine.0.path().join("dev/sdb");
        let group = fs::metadata(&node).expect("it was written").gid();
        let may = |mode| fs::set_permissions(&node, Permissions::from_mode(mode)).expect("it is ours");
        may(0o660);
        machine.write("/etc/group", format!("x:y:no number:\n\nstorage:x:{group}:somebody\n"));
        let tree = Tree::at(machine.0.path());
        let objection = |errno| unclaimed(&tree, &node, errno).map(|objection| objection.to_string());
        let path = node.display();
        let refused = format!(
            "this user may not open {path}, so that it is not known whether a volume, another program or a mount of another \
             namespace has it: be root, or a member of the group `storage`"
        );
        assert_eq!(objection(Errno::ACCESS), Some(refused));
        let forbidden = objection(Errno::PERM).expect("it is not known");
        assert!(forbidden.contains("(Operation not permitted (os error 1))"), "{forbidden}");
        assert!(forbidden.ends_with("be where it can, outside of a container"), "{forbidden}");
        assert_eq!(objection(Errno::BUSY), Some(format!("{path} is open exclusively")));
        // Those are for who opens it in earnest.
        assert_eq!((objection(Errno::NOMEDIUM), objection(Errno::IO)), (None, None));
        may(0o600);
        assert!(objection(Errno::ACCESS).is_some_and(|text| text.ends_with(": be root")));
        may(0o660);
        machine.write("/etc/group", "");
        assert!(objection(Errno::ACCESS).is_some_and(|text| text.ends_with(": be root")));
    }

    #[test]
    fn a_node_that_is_not_there_says_something_of_the_running_machine_only() {
        let nowhere = Path::new("/dev/no such node");
        assert_eq!(claim(&Tree::at("/nowhere"), nowhere), Ok(()));
        let refused = claim(&Tree::running(), nowhere).expect_err("an unknown device is refused");
        assert_eq!(
            refused,
            Objection::Unchecked { path: "/dev/no such node".into(), errno: Errno::NOENT, group: None }
        );
    }

    #[test]
    fn a_file_behind_a_loop_device_is_in_use() {
        let machine = Machine::new();
        machine.write("/sys/block/loop3/loop/backing_file", "/images/a.img\n");
        let tree = Tree::at(machine.0.path());
        assert_eq!(
            objections_to_file(&tree, Path::new("/images/a.img")),
            [Objection::Loop { device: "loop3".into() }]
        );
        assert_eq!(objections_to_file(&tree, Path::new("/images/b.img")), []);
    }

    #[test]
    fn a_loop_that_is_attached_uses_its_device() {
        let machine = Machine::new();
        machine.looped("loop0", "7:0", "/dev/sdb2");
        machine.write("/sys/devices/virtual/block/loop1/size", "0");
        let made = "loop0 is made of sdb2; take that apart first";
        assert_eq!(machine.objections("sdb"), [made]);
        assert_eq!(machine.objections("sdb2"), [made]);
        assert_eq!(machine.objections("sdb1"), [""; 0]);
        // The node is gone, and the loop is not.
        machine.write("/sys/devices/virtual/block/loop0/loop/backing_file", "/dev/sdb (deleted)\n");
        let made = "loop0 is made of sdb; take that apart first";
        assert_eq!(machine.objections("sdb"), [made]);
        assert_eq!(machine.objections("sdb1"), [made]);
        for other in ["/dev/sdbc\n", "/images/dev/sdb\n", "/dev/sdb2 \n", "/dev/\n", "\n", ""] {
            machine.write("/sys/devices/virtual/block/loop0/loop/backing_file", other);
            assert_eq!(machine.objections("sdb"), [""; 0], "{other:?}");
        }
    }

    #[test]
    fn what_a_loop_is_made_of_is_overwritten_with_it() {
        let machine = Machine::new();
        machine.looped("loop0", "7:0", "/dev/sdb");
        assert_eq!(machine.objections("loop0"), [""; 0]);
        machine.mounts("8:18 / /mnt rw - ext4 /dev/sdb2\n");
        assert_eq!(machine.objections("loop0"), ["sdb2 is mounted at /mnt; unmount it first"]);
        machine.mounts("8:1 / / rw - ext4 /dev/sda1\n");
        // By way of another, of a spare partition of the system's disk; and of a second one on the same blocks.
        machine.looped("loop1", "7:1", "/dev/sda2");
        machine.looped("loop2", "7:2", "/dev/loop1");
        machine.looped("loop3", "7:3", "/dev/sda2");
        let system = "the system runs from sda (/ lies there)";
        let other = "loop3 is made of sda2; take that apart first";
        assert_eq!(machine.objections("loop2"), [other, system]);
        machine.looped("loop4", "7:4", "/images/a.img");
        assert_eq!(machine.objections("loop4"), [""; 0]);
        // No kernel makes these.
        machine.looped("loop5", "7:5", "/dev/loop6");
        machine.looped("loop6", "7:6", "/dev/loop5");
        assert_eq!(machine.objections("loop5"), ["loop6 is made of loop5; take that apart first"]);
    }

    #[test]
    fn the_system_on_a_partition_of_an_array_or_of_a_loop_runs_from_the_disks_below() {
        let machine = Machine::new();
        machine.mounts("259:0 / / rw - ext4 /dev/md0p1\n");
        let array = "/sys/devices/virtual/block/md0";
        machine.device(array, "md0", "9:0");
        for (partition, number) in [("md0p1", "259:0"), ("md0p2", "259:1")] {
            machine.device(&format!("{array}/{partition}"), partition, number);
            machine.write(&format!("{array}/{partition}/partition"), &partition[4..]);
        }
        machine.write(&format!("{array}/slaves/sdb1/x"), "");
        assert_eq!(machine.objections("sdb2"), ["the system runs from sdb (/ lies there)"]);
        assert_eq!(machine.objections("md0p2"), ["the system runs from md0 (/ lies there)"]);
        machine.mounts("7:0 / /usr rw - ext4 /dev/loop0\n");
        machine.looped("loop0", "7:0", "/dev/sdb1");
        assert_eq!(machine.objections("sdb2"), ["the system runs from sdb (/usr lies there)"]);
    }

    #[test]
    fn hostile_files_do_no_harm() {
        let machine = Machine::new();
        machine.write("/proc/self/mountinfo", " - \n1 2 3\n1 2 8:16 / - x\n\\\\0 - \\\n");
        machine.write("/proc/swaps", "/\\9\\\n/dev/sdb\\04\n");
        assert_eq!(machine.objections("sdb"), [""; 0]);
        for (escaped, name) in [
            (&b"a\\040b\\"[..], &b"a b\\"[..]),
            ("\\ü\\134".as_bytes(), "\\ü\\".as_bytes()),
            (b"\\377\\400\\+77\\04", b"\xff\\400\\+77\\04"),
        ] {
            assert_eq!(unescaped(escaped).as_os_str().as_bytes(), name);
        }
    }

    #[test]
    fn names_that_are_no_utf_8_are_compared_byte_for_byte_and_printed_as_text() {
        let machine = Machine::new();
        let tree = Tree::at(machine.0.path());
        let path = |name: &[u8]| path_of(name.to_vec());
        machine.write(
            "/proc/self/mountinfo",
            b"1 2 8:18 / /media/a\xff\\040\xc3 rw shared:1 - vfat /dev/sdb2 rw\n",
        );
        assert_eq!(machine.objections("sdb"), ["sdb2 is mounted at /media/a\\xff \\xc3; unmount it first"]);
        machine.mounts("");
        // A no-break space, which is no end of a name, and one byte of its two.
        machine.write("/proc/swaps", b"Filename\n/swap/\xff\xc2\xa0 file 1 2 3\n/swap/\xc2\\134\tfile 1\n");
        for (name, shown) in
            [(&b"/swap/\xff\xc2\xa0"[..], "/swap/\\xff\u{a0}"), (b"/swap/\xc2\\", "/swap/\\xc2\\\\")]
        {
            assert_eq!(objections_to_file(&tree, &path(name)), [Objection::Swap { device: shown.into() }]);
        }
        assert_eq!(objections_to_file(&tree, &path(b"/swap/\xfe\xc2\xa0")), []);
        assert_eq!(objections_to_file(&tree, &path(b"/swap/\xff")), []);
        machine.write("/sys/block/loop3/loop/backing_file", b"/images/\xff \n");
        let is_loop = [Objection::Loop { device: "loop3".into() }];
        assert_eq!(objections_to_file(&tree, &path(b"/images/\xff ")), is_loop);
        for other in [&b"/images/\xff"[..], b"/images/\xfe ", "/images/\u{fffd} ".as_bytes()] {
            assert_eq!(objections_to_file(&tree, &path(other)), []);
        }
    }

    #[test]
    fn a_file_is_the_same_by_either_of_its_names_and_by_no_other() {
        let place = tempfile::tempdir().expect("a directory");
        let [one, other, none] =
            [b"a\xff", b"a\xfe", b"a\xfd"].map(|name| place.path().join(path_of(name.to_vec())));
        fs::write(&one, "1").expect("written");
        symlink(&one, &other).expect("linked");
        fs::write(place.path().join("a\u{fffd}"), "1").expect("written");
        assert!(is_same_file(&one, &other) && is_same_file(&none, &none));
        assert!(!is_same_file(&one, place.path().join("a\u{fffd}")) && !is_same_file(&one, &none));
    }
}
