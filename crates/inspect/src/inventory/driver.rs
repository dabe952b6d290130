//! The drivers `uas` and `usb-storage`: registered, there to be loaded, forbidden, or absent.
//!
//! A registered driver has a directory below `/sys/bus/usb/drivers`, whether it is a module or built in. For others
//! the index of modules, the kernel's configuration and modprobe's files are looked at. `uas` needs `usb-storage`.

use super::forbidden::{Forbidding, ForbiddingMeans};
use super::kernel_config::{ConfigChoice, KernelConfig};
use crate::tree::{Tree, Unread};

/// Both drivers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drivers {
    /// Where `uas` is.
    pub uas: Module,
    /// Where `usb-storage` is.
    pub usb_storage: Module,
    /// The configuration of this kernel, if it could be read.
    pub config: Option<KernelConfig>,
    /// Where it was looked for in vain, and why in vain; empty if it was found, or not looked for.
    pub config_unread: Vec<(String, Unread)>,
    /// Whether `uas` is a part of the kernel, as far as that is known.
    pub uas_is_built_in: bool,
    /// The same of `usb-storage`.
    pub usb_storage_is_built_in: bool,
    /// Settings that keep either from being loaded.
    pub forbidden: Vec<Forbidding>,
}

/// Where a driver is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Module {
    /// It is registered; the path shows it.
    Registered(String),
    /// It is a module that could be loaded; the path is that of the index.
    Loadable(String),
    /// The index of modules does not have it.
    Absent(String),
    /// It was not looked for, or there is no index.
    #[default]
    Unknown,
}

impl Drivers {
    /// Reads what is registered, and if `asked`, what could be, for which `release` names the index of modules.
    pub(super) fn read(tree: &Tree, asked: bool, release: Option<&str>) -> Self {
        let release = release.filter(|_| asked);
        let config = asked.then(|| KernelConfig::read(tree, release));
        let (config, config_unread) = match config {
            Some(Ok(config)) => (Some(config), Vec::new()),
            Some(Err(unread)) => (None, unread),
            None => (None, Vec::new()),
        };
        let uas_choice = config.as_ref().map(|config| config.uas);
        // What is built in needs nothing that is a module.
        let needed = uas_choice.filter(|uas| *uas == ConfigChoice::BuiltIn);
        let usb_storage_choice = config.as_ref().and_then(|config| config.usb_storage).or(needed);
        let uas_is_built_in = is_built_in(tree, "uas", release, uas_choice);
        let usb_storage_is_built_in = is_built_in(tree, "usb_storage", release, usb_storage_choice);
        let is_module =
            |driver: &str| if driver == "uas" { !uas_is_built_in } else { !usb_storage_is_built_in };
        let forbidden = if asked { Forbidding::read(tree, is_module) } else { Vec::new() };
        Self {
            uas: Module::find(tree, "uas", release),
            usb_storage: Module::find(tree, "usb-storage", release),
            config,
            config_unread,
            uas_is_built_in,
            usb_storage_is_built_in,
            forbidden,
        }
    }

    /// Whether this kernel has no `usb-storage` and can have none.
    pub fn is_without_usb_storage(&self) -> bool {
        let is_off = |config: &KernelConfig| config.usb_storage == Some(ConfigChoice::Off);
        // What is registered is there, whatever a file says.
        !self.has_usb_storage() && self.config.as_ref().is_some_and(is_off)
    }

    /// Whether `usb-storage` is registered.
    pub fn has_usb_storage(&self) -> bool {
        matches!(self.usb_storage, Module::Registered(_))
    }

    /// Lists what keeps `driver` from being loaded, each with what remains of its word without that. `uas` is not loaded without
    /// `usb-storage`, which a blacklist does not keep from a module that needs it.
    pub fn in_the_way_of(&self, driver: &str) -> Vec<(&Forbidding, Option<String>)> {
        let needs_usb_storage = driver == "uas" && !self.has_usb_storage();
        let is_needed = |one: &Forbidding, other: &str| {
            let is_kept_from_all = one.means != ForbiddingMeans::Blacklist;
            other == driver || needs_usb_storage && is_kept_from_all && other == "usb-storage"
        };
        let in_the_way =
            self.forbidden.iter().filter(|one| one.drivers.iter().any(|other| is_needed(one, other)));
        in_the_way.map(|one| (one, one.without(|other| is_needed(one, other)))).collect()
    }
}

impl Module {
    fn find(tree: &Tree, name: &str, release: Option<&str>) -> Self {
        let driver = format!("/sys/bus/usb/drivers/{name}");
        if tree.exists(&driver) {
            return Self::Registered(driver);
        }
        let Some(release) = release else { return Self::Unknown };
        let index = format!("/lib/modules/{release}/modules.dep");
        let file = format!("/{name}.ko");
        let has_file = |line: &str| line.split(':').next().is_some_and(|path| path.contains(&file));
        match tree.lines(&index, has_file) {
            Ok(lines) if lines.is_empty() => Self::Absent(index),
            Ok(_) => Self::Loadable(index),
            Err(_) => Self::Unknown,
        }
    }
}

/// Whether a module of that name is a part of the kernel. Its state is shown of one that was loaded (kernel/module/sysfs.c), while the
/// parameters of one that is built in are below the same directory.
fn is_built_in(tree: &Tree, name: &str, release: Option<&str>, choice: Option<ConfigChoice>) -> bool {
    let directory = format!("/sys/module/{name}");
    if tree.text(&format!("{directory}/initstate")).is_ok() {
        return false;
    }
    if let Some(choice) = choice {
        return choice == ConfigChoice::BuiltIn;
    }
    let file = format!("/{}.ko", name.replace('_', "-"));
    let index = release.map(|release| format!("/lib/modules/{release}/modules.builtin"));
    let listed = index.and_then(|index| tree.lines(&index, |line| line.ends_with(&file)).ok());
    listed.map_or_else(|| tree.exists(&directory), |lines| !lines.is_empty())
}
