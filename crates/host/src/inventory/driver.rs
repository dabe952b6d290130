//! The drivers `uas` and `usb-storage`: registered, there to be loaded, forbidden, or absent.
//!
//! A registered driver has a directory below `/sys/bus/usb/drivers`, whether it is a module or built in. For others
//! the index of modules, the kernel's configuration and modprobe's files are looked at.

use super::setting::{COMMAND_LINE, modprobe_lines};
use crate::tree::Tree;

/// Both drivers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drivers {
    /// Where `uas` is.
    pub uas: Module,
    /// Where `usb-storage` is.
    pub usb_storage: Module,
    /// CONFIG_USB_UAS of this kernel, if its configuration could be read.
    pub config: Option<(ConfigChoice, String)>,
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

/// What a kernel's configuration says of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigChoice {
    /// `=y`
    BuiltIn,
    /// `=m`
    Module,
    /// Not set.
    Off,
}

impl Drivers {
    /// `release` names the index of modules; without it only what is registered is seen.
    pub(super) fn read(tree: &Tree, release: Option<&str>) -> Self {
        let config = release.and_then(|release| configuration(tree, release));
        let forbidden = release.and_then(|_| {
            let line = modprobe_lines(tree, forbids_uas).into_iter().next();
            line.or_else(|| forbidden_at_boot(tree))
        });
        Self {
            uas: Module::find(tree, "uas", release),
            usb_storage: Module::find(tree, "usb-storage", release),
            config,
            forbidden,
        }
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

fn configuration(tree: &Tree, release: &str) -> Option<(ConfigChoice, String)> {
    const OPTION: &str = "CONFIG_USB_UAS";
    let paths = [format!("/boot/config-{release}"), format!("/lib/modules/{release}/config")];
    let read = |path: String| Some((tree.lines(&path, |line| line.contains(OPTION)).ok()?, path));
    let (lines, path) = paths.into_iter().find_map(read)?;
    let choice = lines.iter().find_map(|line| match line.strip_prefix(OPTION) {
        Some("=y") => Some(ConfigChoice::BuiltIn),
        Some("=m") => Some(ConfigChoice::Module),
        _ => line.starts_with("# CONFIG_USB_UAS is not set").then_some(ConfigChoice::Off),
    });
    // An option whose own conditions are not met is not even mentioned.
    Some((choice.unwrap_or(ConfigChoice::Off), path))
}

/// The word of the kernel command line that forbids the module, to modprobe or to the kernel itself.
fn forbidden_at_boot(tree: &Tree) -> Option<(String, String)> {
    let lines = tree.lines(COMMAND_LINE, |line| line.split_whitespace().any(is_forbidding)).ok()?;
    let word = lines.iter().flat_map(|line| line.split_whitespace()).find(|word| is_forbidding(word))?;
    Some((word.to_owned(), COMMAND_LINE.to_owned()))
}

/// `modprobe.blacklist=` or `module_blacklist=` with `uas` among its names.
fn is_forbidding(word: &str) -> bool {
    let names = ["modprobe.blacklist=", "module_blacklist="].iter().find_map(|key| word.strip_prefix(key));
    names.is_some_and(|names| names.split(',').any(|name| name == "uas"))
}

fn forbids_uas(line: &str) -> bool {
    let mut words = line.split_whitespace();
    match (words.next(), words.next()) {
        (Some("blacklist"), Some("uas")) => true,
        (Some("install"), Some("uas")) => words.next().is_some_and(|command| {
            ["true", "false", ":"].contains(&command.rsplit('/').next().unwrap_or(command))
        }),
        _ => false,
    }
}
