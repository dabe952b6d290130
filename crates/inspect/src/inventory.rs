//! A machine's USB storage: controllers, buses, hubs, devices, interfaces, drivers, disks, modules, quirks in force.
//!
//! Everything comes out of one [`Tree`], so a recorded machine gives the same inventory as the running one. Values are
//! kept beside the path that they were read from, since a diagnosis has to say where it looked. What is missing is
//! `None`; nothing of it is an error. Left out: what sysfs does not have, such as the strings of other languages.

mod arguments;
mod board;
mod controller;
mod descriptors;
mod device;
mod disk;
mod driver;
mod family;
mod forbidden;
mod kernel_config;
mod kernel_log;
mod log_index;
mod mistake;
mod port;
mod setting;
mod transport;
mod words;

use board::BoardFiles;
pub use board::{Board, Supply};
pub(crate) use board::{MODEL as BOARD_MODEL, THROTTLED};
pub use controller::{Controller, StreamArrays};
pub use descriptors::active_configuration;
pub use device::{AbleSpeeds, Interface, Lanes, LinkSpeed, TableSize, UsbDevice};
#[cfg(unix)]
pub(crate) use disk::serial as unit_serial;
pub use disk::{Disk, UnmapCommand, UnmapSupport};
pub use driver::{Drivers, Module};
pub use family::{bridge_family, is_storage_id};
pub use forbidden::{Forbidding, ForbiddingMeans};
pub use kernel_config::{ConfigChoice, KernelConfig};
pub use kernel_log::{KernelLog, PortErrors};
pub(crate) use kernel_log::{is_about_drives, is_needed_of_log, is_refused_discard, of_port as port_sources};
pub use mistake::SettingMistake;
pub use port::Port;
pub use quirks::DeviceId;
pub use setting::{COMMAND_LINE, PARAMETER, QuirkSettings, SettingPlace};
pub use transport::Transport;

use crate::text::Report;
use crate::tree::{Tree, Unread};
use quirks::quirk::KernelVersion;
use std::path::Path;

/// Where sysfs has all USB devices and interfaces, as links.
pub const DEVICES: &str = "/sys/bus/usb/devices";

/// Where the kernel shows its release.
const RELEASE: &str = "/proc/sys/kernel/osrelease";

/// Where a distribution notes the upstream version of its kernel: Ubuntu, and Debian within `uname -v`.
const BUILDS: [&str; 2] = ["/proc/version_signature", "/proc/version"];

/// The version of a kernel, and where it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelFound<'a> {
    /// The version.
    pub version: KernelVersion,
    /// The file.
    pub path: &'a str,
    /// Its text about the version.
    pub text: &'a str,
}

/// A machine, as far as USB storage is concerned.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inventory {
    /// The kernel's release, as `uname -r` prints it.
    pub release: Option<String>,
    /// The file in which a distribution notes the upstream version of its kernel, and its text.
    pub build: Option<(&'static str, String)>,
    /// Host controllers, in the order of their buses.
    pub controllers: Vec<Controller>,
    /// Root hubs, hubs and devices, each after the hub that it is plugged into.
    pub devices: Vec<UsbDevice>,
    /// The drivers `uas` and `usb-storage`.
    pub drivers: Drivers,
    /// Settings of `usb-storage.quirks=`.
    pub quirks: QuirkSettings,
    /// The kernel's log, or why it was not read.
    pub log: Option<Result<KernelLog, Unread>>,
    /// The board, if its device tree names it or it knows its supply.
    pub board: Option<Board>,
    /// Contents of the report, if it was read from pasted text; `None` of a machine, of which everything can be read.
    pub report: Option<Report>,
}

/// How much is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope<'a> {
    /// Data of a list; quick, unless a drive has no driver: then the index of modules and the kernel's configuration are read as well.
    Brief,
    /// The same and the kernel's log, which speaks of drives that are gone.
    List,
    /// Data of a diagnosis as well: the kernel's log, its configuration, the index of its modules, and what drives say that they can
    /// which may be faster than their link.
    Whole {
        /// The log's path in the tree; `None` for `/dev/kmsg`.
        log: Option<&'a str>,
    },
}

impl Inventory {
    /// Reads the machine below the tree's root.
    pub fn read(tree: &Tree, scope: Scope<'_>) -> Self {
        let release = tree.text(RELEASE).ok().filter(|release| is_file_name(release));
        let (devices, controllers) = device::read_all(tree);
        let mut inventory = Self { controllers, devices, ..Self::default() };
        let is_forsaken = |device: &UsbDevice| {
            device.taken_by().is_none() && Interface::storage_of(device).any(|one| one.driver.is_none())
        };
        let asks_for_modules =
            matches!(scope, Scope::Whole { .. }) || inventory.devices.iter().any(is_forsaken);
        inventory.drivers = Drivers::read(tree, asks_for_modules, release.as_deref());
        inventory.quirks = QuirkSettings::read(tree, inventory.drivers.usb_storage_is_built_in);
        inventory.release = release;
        inventory.build = BUILDS.into_iter().find_map(|path| {
            let text = tree.text(path).ok()?;
            KernelVersion::of_build(&text).map(|_| (path, text))
        });
        if scope == Scope::List {
            inventory.log = Some(KernelLog::read(tree, kernel_log::PATH));
        }
        if let Scope::Whole { log } = scope {
            inventory.devices.iter_mut().for_each(|device| device.ask_for_speeds(tree));
            inventory.board = Board::read(&BoardFiles {
                bytes: &|path| tree.bytes(path).ok(),
                names: &|path| tree.names(path, |_| true),
            });
            inventory.log = Some(KernelLog::read(tree, log.unwrap_or(kernel_log::PATH)));
        }
        inventory
    }

    /// Has the kernel's log come out of another file, one of this machine whichever it is about: of a machine that was recorded
    /// without its log, for one.
    pub fn read_log(&mut self, file: &Path) {
        self.log = Some(KernelLog::read_file(file));
    }

    /// The version of the kernel, by whose tables quirks are judged: that of its release, or where that cannot be read, that of
    /// its configuration. A release of Debian or Ubuntu may lack the patch level, which their note of the build has.
    pub fn kernel(&self) -> Option<KernelFound<'_>> {
        let release = self.release.as_deref().map(|text| (RELEASE, text));
        let config = self.drivers.config.as_ref();
        let config = config.and_then(|config| Some((config.path.as_str(), config.version.as_deref()?)));
        let named = [release, config].into_iter().flatten().find_map(|(path, text)| {
            Some(KernelFound { version: KernelVersion::of_release(text)?, path, text })
        })?;
        let build = self.build.as_ref().and_then(|(path, text)| {
            Some(KernelFound { version: KernelVersion::of_build(text)?, path, text })
        });
        let is_same = |build: &KernelFound<'_>| build.version.is_of_branch(named.version);
        Some(build.filter(is_same).filter(|_| named.version.patch.is_none()).unwrap_or(named))
    }

    /// The kernel's log, if it was asked for and could be read.
    pub fn readable_log(&self) -> Option<&KernelLog> {
        self.log.as_ref()?.as_ref().ok()
    }

    /// Whether it was read from text, in which things may be missing that the machine has.
    pub const fn is_from_text(&self) -> bool {
        self.report.is_some()
    }

    /// Whether it was read from text that does not have the quirks in force: a user may have set some.
    pub const fn lacks_quirks_in_force(&self) -> bool {
        self.is_from_text() && self.quirks.in_force.is_none()
    }

    /// The controller of a device's bus.
    pub fn controller_of(&self, device: &UsbDevice) -> Option<&Controller> {
        self.controllers.iter().find(|controller| controller.buses.contains(&device.bus))
    }

    /// The hub that a device is plugged into.
    pub fn hub_of(&self, device: &UsbDevice) -> Option<&UsbDevice> {
        let parent = device.parent()?;
        self.devices.iter().find(|other| other.port == parent)
    }

    /// Devices with a mass storage interface.
    pub fn storage(&self) -> impl Iterator<Item = &UsbDevice> {
        self.devices.iter().filter(|device| device.is_storage())
    }

    /// The devices that a user means by a port (`2-1.4`), a disk (`/dev/sdb`, `sdb`, `sdb1`), a node of usbfs
    /// (`/dev/bus/usb/002/003`) or an id (`174c:55aa`).
    pub fn find(&self, name: &str) -> Vec<&UsbDevice> {
        let node = name.strip_prefix("/dev/").unwrap_or(name);
        let port = name.strip_prefix(DEVICES).map_or(name, |rest| rest.trim_matches('/'));
        let port = port.split(':').next().filter(|port| port.contains('-')).unwrap_or(port);
        let id: Option<DeviceId> = name.parse().ok();
        let is_meant = |device: &&UsbDevice| {
            device.port == port
                || id == Some(device.id)
                || device.node() == name
                || device.disks().any(|disk| disk.is_node(node))
        };
        self.devices.iter().filter(is_meant).collect()
    }
}

/// Whether a name that was read may become part of a path.
fn is_file_name(name: &str) -> bool {
    const NAME_BYTES_MAX: usize = 255;
    let is_safe = |letter: char| letter.is_ascii_alphanumeric() || "._-+~".contains(letter);
    !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.chars().all(is_safe) && !name.starts_with('.')
}

#[cfg(test)]
mod tests;
