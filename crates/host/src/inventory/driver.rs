//! The drivers `uas` and `usb-storage`: registered, there to be loaded, forbidden, or absent.
//!
//! A registered driver has a directory below `/sys/bus/usb/drivers`, whether it is a module or built in. For others
//! the index of modules, the kernel's configuration and modprobe's files are looked at.

use super::arguments::{Argument, arguments};
use super::kernel_config::{ConfigChoice, KernelConfig};
use super::setting::{COMMAND_LINE, modprobe_lines};
use crate::tree::{Tree, Unread};

/// Both drivers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drivers {
    /// Where `uas` is.
    pub uas: Module,
    /// Where `usb-storage` is.
    pub usb_storage: Module,
    /// What this kernel was built with, if its configuration could be read.
    pub config: Option<KernelConfig>,
    /// Where it was looked for in vain, and why in vain; empty if it was found, or not looked for.
    pub config_unread: Vec<(String, Unread)>,
    /// A line of modprobe's files, or a word of the kernel command line, that forbids `uas`, and its file.
    pub forbidden: Option<(String, String)>,
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
    /// Nobody has looked, or there is no index.
    #[default]
    Unknown,
}

impl Drivers {
    /// What is registered, and if it is `asked` for, what could be, for which `release` names the index of modules.
    pub(super) fn read(tree: &Tree, asked: bool, release: Option<&str>) -> Self {
        let release = release.filter(|_| asked);
        let config = asked.then(|| KernelConfig::read(tree, release));
        let (config, config_unread) = match config {
            Some(Ok(config)) => (Some(config), Vec::new()),
            Some(Err(unread)) => (None, unread),
            None => (None, Vec::new()),
        };
        let forbidden = release.and_then(|_| {
            let line = modprobe_lines(tree, forbids_uas).into_iter().next();
            line.or_else(|| forbidden_at_boot(tree))
        });
        Self {
            uas: Module::find(tree, "uas", release),
            usb_storage: Module::find(tree, "usb-storage", release),
            config,
            config_unread,
            forbidden,
        }
    }

    /// Whether this kernel has no `usb-storage` and can have none.
    pub fn is_without_usb_storage(&self) -> bool {
        let is_off = |config: &KernelConfig| config.usb_storage == Some(ConfigChoice::Off);
        // What is registered is there, whatever a file says.
        !matches!(self.usb_storage, Module::Registered(_)) && self.config.as_ref().is_some_and(is_off)
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

/// The word of the kernel command line that forbids the module, to modprobe or to the kernel itself.
fn forbidden_at_boot(tree: &Tree) -> Option<(String, String)> {
    let lines = tree.lines(COMMAND_LINE, |line| arguments(line).any(|word| is_forbidding(&word))).ok()?;
    let word = lines.iter().flat_map(|line| arguments(line)).find(is_forbidding)?;
    Some((word.text.to_owned(), COMMAND_LINE.to_owned()))
}

/// `modprobe.blacklist=` or `module_blacklist=` with `uas` among its names. The latter is read by the kernel, which leaves
/// quotes out; modprobe, which reads the former, takes them for letters (kmod, libkmod/libkmod-config.c).
fn is_forbidding(word: &Argument<'_>) -> bool {
    let names = match word.name.replace('-', "_").as_str() {
        "module_blacklist" => word.value,
        // A quote before the whole word goes to the first name.
        "modprobe.blacklist" if !word.text.starts_with('"') => {
            word.text.split_once('=').map(|(_, names)| names)
        }
        _ => None,
    };
    names.is_some_and(|names| names.split(',').any(|name| name == "uas"))
}

/// Whether a line keeps `uas` from being loaded: by name, or by a command in place of loading it that does not load it
/// itself (modprobe.d(5)).
fn forbids_uas(line: &str) -> bool {
    let mut words = line.split_whitespace();
    match (words.next(), words.next()) {
        (Some("blacklist"), Some("uas")) => true,
        (Some("install"), Some("uas")) => {
            let mut command = words.peekable();
            command.peek().is_some() && !command.any(loads_modules)
        }
        _ => false,
    }
}

/// Whether a word of a command has a program in it that loads modules.
fn loads_modules(word: &str) -> bool {
    let is_of_path = |letter: char| letter.is_ascii_alphanumeric() || "/._-".contains(letter);
    let mut paths = word.split(|letter| !is_of_path(letter));
    paths.any(|path| ["modprobe", "insmod"].contains(&path.rsplit('/').next().unwrap_or(path)))
}
