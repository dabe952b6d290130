//! Before anything is overwritten: the device is named, nobody uses it, and its owner says yes.

use super::arguments::BenchArguments;
use crate::failure::Failure;
use host::block::{self, BlockDevice, Objection};
use host::inventory::UsbDevice;
use host::tree::Tree;
use std::io::{BufRead, IsTerminal, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use workload::short_bytes;

/// What the user says to go on.
const YES: &str = "yes";

/// Whoever would lose data.
#[derive(Debug)]
pub(super) struct Victim {
    /// What the command line calls it.
    pub(super) name: String,
    /// For the question: make, serial number, size.
    pub(super) description: String,
    /// Its block devices, by which it may be named as well.
    pub(super) nodes: Vec<String>,
    /// What speaks against it.
    pub(super) objections: Vec<Objection>,
}

impl Victim {
    /// A block device or a file.
    pub(super) fn of_path(path: &Path, tree: &Tree) -> Result<Self, Failure> {
        let name = path.display().to_string();
        let unseen = |error| Failure::new(format!("{name}: cannot be looked at")).because(error);
        let metadata = std::fs::metadata(path).map_err(unseen)?;
        if !metadata.file_type().is_block_device() {
            let path = path.canonicalize().map_err(unseen)?;
            let objections = block::objections_to_file(tree, &path);
            let description = format!("the file {} of {}", path.display(), short_bytes(metadata.len()));
            return Ok(Self { name, description, nodes: Vec::new(), objections });
        }
        let device = BlockDevice::of_number(tree, metadata.rdev());
        let device = device.ok_or_else(|| {
            refused(&name, "sysfs does not know this device, so that nobody can tell who uses it".into())
        })?;
        let mut objections = block::objections(tree, &device);
        objections.extend(block::claim(path).err());
        Ok(Self { description: describe(&name, &device), name, nodes: Vec::new(), objections })
    }

    /// The drive at a USB port, with all of its disks.
    pub(super) fn of_port(device: &UsbDevice, tree: &Tree) -> Self {
        let mut victim = Self {
            name: device.port.clone(),
            description: crate::list::tame(&format!("port {}, {}", device.port, device.title())),
            nodes: Vec::new(),
            objections: Vec::new(),
        };
        let disks = device.disks().filter_map(|disk| BlockDevice::of_name(tree, disk.node.as_deref()?));
        for disk in disks {
            let node = format!("/dev/{}", disk.name);
            victim.description += &format!(", {}", describe(&node, &disk));
            victim.objections.extend(block::objections(tree, &disk));
            victim.objections.extend(block::claim(Path::new(&node)).err());
            victim.nodes.push(node);
        }
        victim
    }

    /// Whether its driver may be taken off: somebody who uses it would lose it.
    pub(super) fn check_unused(&self) -> Result<(), Failure> {
        let in_use = |objection: &&Objection| !matches!(objection, Objection::ReadOnly { .. });
        let all: Vec<String> = self.objections.iter().filter(in_use).map(Objection::to_string).collect();
        if all.is_empty() {
            return Ok(());
        }
        Err(Failure::refused(format!("{} is not taken from its driver", self.name)).because(all.join("\n  ")))
    }

    /// Whether it may be overwritten: named, free, and agreed to.
    pub(super) fn ask(&self, arguments: &BenchArguments) -> Result<(), Failure> {
        let name = &self.name;
        let Some(named) = &arguments.write else {
            let failure = refused(name, "the workload writes, and what is there would be lost".into());
            return Err(failure.try_this(format!("If that is meant, add --write={name}.")));
        };
        if !is_same(named, name) && !self.nodes.iter().any(|node| is_same(named, node)) {
            let failure = refused(name, format!("--write names {named}, and that is another one"));
            return Err(failure.try_this(format!("If it is meant, write --write={name}.")));
        }
        if !self.objections.is_empty() {
            let all: Vec<String> = self.objections.iter().map(Objection::to_string).collect();
            return Err(refused(name, all.join("\n  ")));
        }
        if !arguments.quiet || !arguments.yes {
            eprintln!("Everything on {} will be overwritten.", self.description);
        }
        if arguments.yes { Ok(()) } else { self.ask_owner() }
    }

    fn ask_owner(&self) -> Result<(), Failure> {
        if !std::io::stdin().is_terminal() {
            let failure = refused(&self.name, "nobody can be asked, since this is no terminal".into());
            return Err(failure.try_this("If it is meant, add --yes."));
        }
        eprint!("Type {YES} to go on: ");
        let mut answer = String::new();
        // A terminal that is gone says nothing, and nothing is no.
        let _ = std::io::stderr().flush();
        let _ = std::io::stdin().lock().read_line(&mut answer);
        if answer.trim() == YES { Ok(()) } else { Err(refused(&self.name, "it was not agreed to".into())) }
    }
}

fn refused(name: &str, why: String) -> Failure {
    Failure::refused(format!("{name} is not overwritten")).because(why)
}

/// A block device with all that tells it from others.
pub(super) fn describe(name: &str, device: &BlockDevice) -> String {
    let model = crate::list::tame(device.model.as_deref().unwrap_or("unknown make"));
    let serial = crate::list::tame(device.serial.as_deref().unwrap_or("unknown"));
    let firmware =
        device.firmware.as_deref().map(|firmware| format!(", firmware {}", crate::list::tame(firmware)));
    let firmware = firmware.unwrap_or_default();
    format!("{name} ({model}, serial number {serial}{firmware}, {})", short_bytes(device.bytes))
}

/// Whether two words name the same thing: the same word, or paths of the same node.
fn is_same(one: &str, other: &str) -> bool {
    let node = |path: &str| std::fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    one == other || node(one).is_some_and(|found| node(other) == Some(found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_node_may_have_two_paths() {
        assert!(is_same("/dev/null", "/dev/../dev/null"));
        assert!(is_same("2-1", "2-1"));
        assert!(!is_same("/dev/null", "/dev/zero"));
        assert!(!is_same("/nowhere/a", "/nowhere/b"));
    }
}
