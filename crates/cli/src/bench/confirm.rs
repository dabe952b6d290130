//! Confirmation before data are overwritten: the device is named, not in use, and the user answers yes.
//!
//! The kernel driver is detached from a drive at a port, so that the drive must not be in use even for reads. Left out:
//! how use is detected, which [`inspect::block`] does. Invariant: nothing is overwritten where that check is impossible.

use crate::args::BenchArguments;
use crate::command_line::word;
use crate::failure::Failure;
use crate::in_use::{self, Checked, Storage, Unchecked};
use crate::messages::message;
use crate::sanitize::shown;
use inspect::block::{self, BlockDevice, Objection};
use inspect::inventory::{Disk, UsbDevice};
use inspect::tree::Tree;
use std::ffi::{OsStr, OsString};
use std::io::{BufRead, IsTerminal, Write};
use std::path::Path;
use units::{ByteCount, Capacity};
use usb::attachment;

/// The answer that confirms.
const YES: &str = "yes";

/// The user's words on the command line about overwriting.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Consent<'a> {
    /// The option that names the target.
    pub(crate) option: &'static str,
    /// The target, as that option names it.
    pub(crate) named: Option<&'a OsStr>,
    /// The part that is overwritten; all without it.
    pub(crate) size: Option<ByteCount>,
    /// Whether no question is asked.
    pub(crate) yes: bool,
    /// Whether the files are those of another machine.
    pub(crate) is_elsewhere: bool,
}

impl<'a> From<&'a BenchArguments> for Consent<'a> {
    fn from(arguments: &'a BenchArguments) -> Self {
        Self {
            option: "--write",
            named: arguments.write.as_deref(),
            size: arguments.size,
            yes: arguments.yes,
            is_elsewhere: arguments.machine.is_some(),
        }
    }
}

/// A target that a benchmark or a check would overwrite.
#[derive(Debug)]
pub(crate) struct WriteTarget {
    /// Its name on the command line.
    pub(super) named: OsString,
    /// The same as text.
    pub(super) name: String,
    /// For the question: make, serial number, size.
    pub(super) description: String,
    /// Its block devices, by which it may be named as well.
    pub(super) nodes: Vec<String>,
    /// Reasons against overwriting it.
    pub(super) objections: Vec<Objection>,
}

impl WriteTarget {
    /// A block device or a file.
    pub(super) fn of_path(path: &Path, tree: &Tree) -> Result<Self, Failure> {
        let name = shown(path);
        let Checked { storage, objections } =
            in_use::check(path, tree).map_err(|unchecked| match unchecked {
                Unchecked::Io(error) => Failure::new(format!("cannot open {name}")).because(error),
                Unchecked::NotInSysfs => refused(&name, unchecked.to_string()),
            })?;
        let description = match storage {
            Storage::File { path, bytes } => format!("the file {} of {}", shown(path), Capacity(bytes)),
            Storage::Device(device) => describe(&name, &device),
        };
        Ok(Self { named: path.as_os_str().to_owned(), description, name, nodes: Vec::new(), objections })
    }

    /// A logical unit of the drive at a USB port. Its disk would be overwritten; users of any disk of the drive would lose
    /// access during the run.
    pub(crate) fn of_port(device: &UsbDevice, lun: u8, tree: &Tree) -> Self {
        Self::of_port_by(device, lun, tree, |node| block::claim(tree, node))
    }

    /// The same, with how a node is claimed.
    fn of_port_by(
        device: &UsbDevice,
        lun: u8,
        tree: &Tree,
        claim: impl Fn(&Path) -> Result<(), Objection>,
    ) -> Self {
        let unit = if lun == 0 { String::new() } else { format!(", logical unit {lun}") };
        let mut write_target = Self {
            named: unit_name(&device.port, lun).into(),
            name: unit_name(&device.port, lun),
            description: crate::sanitize::escape(&format!("port {}{unit}, {}", device.port, device.title())),
            nodes: Vec::new(),
            objections: Vec::new(),
        };
        let attached = attachment::driven_disks(tree, device, lun);
        for disk in device.disks() {
            let Some(block) = disk.node.as_deref().and_then(|node| BlockDevice::of_name(tree, node)) else {
                continue;
            };
            let node = format!("/dev/{}", block.name);
            let is_attached = attached.iter().any(|one| one.address == disk.address);
            let objections = block::objections(tree, &block).into_iter();
            // Another unit loses nothing by being read-only.
            let counts =
                |objection: &Objection| is_attached || !matches!(objection, Objection::ReadOnly { .. });
            write_target.objections.extend(objections.filter(counts));
            write_target.objections.extend(claim(Path::new(&node)).err());
            if is_attached {
                write_target.description += &format!(", {}", describe(&node, &block));
                write_target.nodes.push(node);
            }
        }
        if write_target.nodes.is_empty() {
            write_target.description += &describe_without_node(device, attached.first().copied());
        }
        write_target
    }

    /// Checks that the kernel driver can be detached, as far as this is known: a user of the disk would lose it.
    pub(crate) fn check_unused(&self) -> Result<(), Failure> {
        let in_use = |objection: &&Objection| {
            !matches!(objection, Objection::ReadOnly { .. } | Objection::Unchecked { .. })
        };
        let all: Vec<String> = self.objections.iter().filter(in_use).map(Objection::to_string).collect();
        if all.is_empty() {
            return Ok(());
        }
        let what = format!("refusing to detach the kernel driver of {}", self.name);
        Err(Failure::refused(what).because(all.join("\n  ")))
    }

    /// Returns the checks that were not possible, for a benchmark that only reads. A benchmark that
    /// writes is refused then.
    pub(super) fn doubts(&self) -> impl Iterator<Item = String> {
        let doubts = self.objections.iter().filter(|all| matches!(all, Objection::Unchecked { .. }));
        doubts.map(|doubt| {
            format!("Whether {} is in use was checked in sysfs and procfs only: {doubt}.", self.name)
        })
    }

    /// Checks that it is named and not in use, so that the user can confirm.
    pub(crate) fn check<'a>(&self, consent: impl Into<Consent<'a>>) -> Result<(), Failure> {
        let name = &self.name;
        let Consent { option, named, .. } = consent.into();
        let Some(named) = named else {
            let failure = refused(name, "this workload writes and would destroy existing data".into());
            return Err(failure.try_this(format!("To overwrite it, add {option}={}.", word(&self.named))));
        };
        if is_blank(named) {
            let failure = refused(name, format!("{option} is empty"));
            return Err(failure.try_this(format!("To overwrite {name}, use {option}={}.", word(&self.named))));
        }
        // `sdb` is `/dev/sdb`, as TARGET is.
        let is_plain = Path::new(named).components().count() == 1 && !Path::new(named).exists();
        let node = Path::new("/dev").join(named);
        let is_named =
            |path: &Path| block::is_same_file(named, path) || is_plain && block::is_same_file(&node, path);
        if !is_named(Path::new(&self.named)) && !self.nodes.iter().any(|node| is_named(Path::new(node))) {
            let failure = refused(name, format!("{option} names {}, but the target is {name}", shown(named)));
            return Err(
                failure.try_this(format!("To overwrite the target, use {option}={}.", word(&self.named)))
            );
        }
        if !self.objections.is_empty() {
            let all: Vec<String> = self.objections.iter().map(Objection::to_string).collect();
            return Err(refused(name, all.join("\n  ")));
        }
        Ok(())
    }

    /// Asks the user to confirm.
    pub(crate) fn ask<'a>(&self, consent: impl Into<Consent<'a>>) -> Result<(), Failure> {
        let Consent { size, yes, is_elsewhere, .. } = consent.into();
        match size {
            Some(size) => message!("The first {size} of {} will be overwritten.", self.description),
            None => message!("Everything on {} will be overwritten.", self.description),
        }
        if !yes {
            self.ask_owner()?;
        }
        if is_elsewhere {
            return Err(refused(&self.name, "--machine names the files of another machine".into()));
        }
        Ok(())
    }

    fn ask_owner(&self) -> Result<(), Failure> {
        if !std::io::stdin().is_terminal() {
            let failure = refused(&self.name, "stdin is not a terminal, so you cannot confirm".into());
            return Err(failure.try_this("To overwrite it without confirmation, add --yes."));
        }
        let mut asked = std::io::stderr().lock();
        if write!(asked, "Type {YES} to continue: ").and_then(|()| asked.flush()).is_err() {
            return Err(refused(&self.name, "cannot print the question on standard error".into()));
        }
        let mut answer = String::new();
        // A closed terminal gives an empty line, which does not confirm.
        let _ = std::io::stdin().lock().read_line(&mut answer);
        if answer.trim() == YES { Ok(()) } else { Err(refused(&self.name, "you did not confirm".into())) }
    }
}

/// Whether a name is blank, as from an unset variable of a script.
pub(super) fn is_blank(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| name.trim().is_empty())
}

/// The name of a logical unit of the drive at a port; unit 0 is named by the port alone.
pub(super) fn unit_name(port: &str, lun: u8) -> String {
    if lun == 0 { port.to_owned() } else { format!("{port}:lun{lun}") }
}

fn refused(name: &str, why: String) -> Failure {
    Failure::refused(format!("refusing to overwrite {name}")).because(why)
}

/// A block device with all that identifies it.
pub(super) fn describe(name: &str, device: &BlockDevice) -> String {
    let model = crate::sanitize::escape(device.model.as_deref().unwrap_or("unknown make"));
    let serial = crate::sanitize::escape(device.serial.as_deref().unwrap_or("unknown"));
    let firmware = device
        .firmware
        .as_deref()
        .map(|firmware| format!(", firmware {}", crate::sanitize::escape(firmware)));
    let firmware = firmware.unwrap_or_default();
    format!("{name} ({model}, serial number {serial}{firmware}, {})", Capacity(device.bytes))
}

/// A drive without a block device, as without a driver: what its logical unit reports, else its descriptors.
fn describe_without_node(device: &UsbDevice, disk: Option<&Disk>) -> String {
    let of_unit = disk.and_then(|disk| disk.serial.as_deref());
    let serial = crate::sanitize::escape(of_unit.or(device.serial.as_deref()).unwrap_or("unknown"));
    let size = disk.and_then(|disk| disk.bytes).map(|bytes| format!(", {}", Capacity(bytes)));
    format!(", serial number {serial}{}", size.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use inspect::inventory::{Inventory, Scope};

    /// A command line.
    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        bench: BenchArguments,
    }

    /// Arguments that overwrite a port.
    fn writing(port: &str) -> BenchArguments {
        Line::parse_from(["bench", port, "--rw", "write", "--write", port]).bench
    }

    /// A recorded guest whose drive at port 3-3 has got a second unit, `sdz`.
    fn two_units() -> (tempfile::TempDir, Tree) {
        const GUEST: &str = include_str!("../../../inspect/tests/trees/guest.tree");
        const UNIT: &str = "/sys/devices/pci0000:00/0000:00:02.0/usb3/3-3/3-3:1.0/host3/target3:0:0/3:0:0:0";
        let second: String = GUEST
            .lines()
            .filter(|line| line.starts_with(UNIT))
            .map(|line| {
                line.replace("3:0:0:0", "3:0:0:1").replace("sdc", "sdz").replace("/sg2", "/sg9") + "\n"
            })
            .collect();
        let class = |unit: &str, node: &str| {
            let path = UNIT.replace("3:0:0:0", unit);
            format!("/sys/class/block/{node} -> ../..{}/block/{node}\n", path.trim_start_matches("/sys"))
        };
        let place = tempfile::tempdir().expect("a temporary directory");
        let text = format!("{GUEST}\n{second}{}{}", class("3:0:0:0", "sdc"), class("3:0:0:1", "sdz"));
        inspect::tree::expand(&text, place.path()).expect("it is a tree");
        let tree = Tree::at(place.path());
        (place, tree)
    }

    #[test]
    fn of_two_units_at_a_port_only_the_one_that_is_driven_is_named() {
        let (_place, tree) = two_units();
        let inventory = Inventory::read(&tree, Scope::Brief);
        let device = inventory.devices.iter().find(|device| device.port == "3-3").expect("it is recorded");
        assert_eq!(device.disks().count(), 2);
        let write_target = WriteTarget::of_port(device, 0, &tree);
        assert_eq!(write_target.nodes, ["/dev/sdc"]);
        assert!(
            write_target.description.contains("/dev/sdc") && !write_target.description.contains("sdz"),
            "{write_target:?}"
        );
        let second = WriteTarget::of_port(device, 1, &tree);
        assert_eq!(second.nodes, ["/dev/sdz"]);
        assert!(second.description.starts_with("port 3-3, logical unit 1, "), "{second:?}");
        assert!(second.description.contains("/dev/sdz") && !second.description.contains("sdc"), "{second:?}");
    }

    #[test]
    fn of_another_unit_than_0_the_port_is_not_name_enough() {
        let (_place, tree) = two_units();
        let inventory = Inventory::read(&tree, Scope::Brief);
        let device = inventory.devices.iter().find(|device| device.port == "3-3").expect("it is recorded");
        let [first, second] = [0, 1].map(|lun| WriteTarget::of_port_by(device, lun, &tree, |_| Ok(())));
        second.check(&writing("3-3:lun1")).expect("it is named, and free");
        for (write_target, named) in
            [(&second, "3-3"), (&second, "3-3:lun0"), (&second, "/dev/sdc"), (&first, "/dev/sdz")]
        {
            let refused = write_target.check(&writing(named)).expect_err("it is another").to_string();
            assert!(refused.contains("--write names") && refused.contains("but the target is"), "{refused}");
        }
        let refused = second.check(&writing("3-3")).expect_err("it is another").to_string();
        assert!(refused.contains("refusing to overwrite 3-3:lun1"), "{refused}");
        assert!(refused.contains("use --write=3-3:lun1"), "{refused}");
    }

    #[test]
    fn a_read_only_unit_does_not_block_another_unit() {
        let (place, tree) = two_units();
        let read_only = place.path().join("sys/class/block/sdz/ro");
        std::fs::write(read_only, "1\n").expect("written");
        let inventory = Inventory::read(&tree, Scope::Brief);
        let device = inventory.devices.iter().find(|device| device.port == "3-3").expect("it is recorded");
        let checked =
            |lun, named| WriteTarget::of_port_by(device, lun, &tree, |_| Ok(())).check(&writing(named));
        checked(0, "3-3").expect("the other one is read-only");
        checked(1, "3-3:lun1").expect_err("it is read-only");
    }

    #[test]
    fn a_drive_without_a_driver_is_identified_by_its_own_serial_number() {
        let (_place, tree) = two_units();
        let inventory = Inventory::read(&tree, Scope::Brief);
        let device = inventory.devices.iter().find(|device| device.port == "3-3").expect("it is recorded");
        let mut unbound = device.clone();
        for interface in &mut unbound.interfaces {
            (interface.driver, interface.disks) = (None, Vec::new());
        }
        unbound.serial = Some("0\u{1b}123".into());
        let described =
            |device: &UsbDevice| WriteTarget::of_port_by(device, 0, &tree, |_| Ok(())).description;
        assert_eq!(described(&unbound), format!("port 3-3, {}, serial number 0\\u{{1b}}123", device.title()));
        unbound.serial = None;
        assert!(described(&unbound).ends_with(", serial number unknown"), "{}", described(&unbound));
        // A unit that the kernel knows, and has no driver for.
        let mut nodeless = device.clone();
        for disk in nodeless.interfaces.iter_mut().flat_map(|interface| &mut interface.disks) {
            (disk.node, disk.serial, disk.bytes) = (None, Some("UNIT9".into()), Some(16 << 20));
        }
        assert!(described(&nodeless).ends_with(", serial number UNIT9, 16 MiB"), "{}", described(&nodeless));
    }

    #[test]
    fn an_unknown_user_blocks_writes_and_is_a_message_for_reads() {
        let (_place, tree) = two_units();
        let inventory = Inventory::read(&tree, Scope::Brief);
        let device = inventory.devices.iter().find(|device| device.port == "3-3").expect("it is recorded");
        let group = Some("disk".to_owned());
        let write_target = WriteTarget::of_port_by(device, 0, &tree, |node| {
            let path = node.display().to_string();
            Err(Objection::Unchecked { path, errno: rustix::io::Errno::ACCESS, group: group.clone() })
        });
        write_target.check_unused().expect("nothing is known to use it");
        let doubts: Vec<String> = write_target.doubts().collect();
        assert_eq!(doubts.len(), 2, "of each unit: {doubts:?}");
        assert!(
            doubts[0].starts_with(
                "Whether 3-3 is in use was checked in sysfs and procfs only: this user may not open /dev/sdc, so that it is not known"
            ) && doubts[0].ends_with("be root, or a member of the group `disk`."),
            "{doubts:?}"
        );
        let refused =
            write_target.check(&writing("3-3")).expect_err("it is not known who uses it").to_string();
        assert!(
            refused.contains("refusing to overwrite 3-3") && refused.contains("member of the group `disk`"),
            "{refused}"
        );
        // Nor is it where it can be checked.
        let free = WriteTarget::of_port_by(device, 0, &tree, |_| Ok(()));
        assert_eq!(free.doubts().count(), 0);
        free.check(&writing("3-3")).expect("it is named, and free");
    }

    #[test]
    fn who_uses_another_unit_of_the_port_would_lose_it() {
        let (place, tree) = two_units();
        let mounts = place.path().join("proc/self");
        std::fs::create_dir_all(&mounts).expect("made");
        std::fs::write(mounts.join("mountinfo"), "1 2 8:400 / /other rw - ext4 /dev/sdz rw\n")
            .expect("written");
        let inventory = Inventory::read(&tree, Scope::Brief);
        let device = inventory.devices.iter().find(|device| device.port == "3-3").expect("it is recorded");
        for lun in [0, 1] {
            let refused = WriteTarget::of_port(device, lun, &tree).check_unused().expect_err("it is mounted");
            assert!(refused.to_string().contains("sdz is mounted at /other"), "{refused}");
        }
    }
}
