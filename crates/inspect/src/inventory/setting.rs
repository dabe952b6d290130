//! The user's settings of `usb-storage.quirks=`, in the places where they can be made.
//!
//! `/sys/module/usb_storage/parameters/quirks` is what is in force. It comes from the kernel command line and from
//! `options` of modprobe's files; the command line comes last and wins, as does the last of several in one line. The kernel
//! takes 127 characters and refuses the whole of a longer one. Where `usb-storage` is built into the kernel modprobe's
//! files are not read for it.

use super::arguments::arguments;
use super::mistake::SettingMistake;
use crate::tree::Tree;

/// Where the quirks in force can be read and written.
pub const PARAMETER: &str = "/sys/module/usb_storage/parameters/quirks";

/// The parameters that the boot loader passed to the kernel.
pub const COMMAND_LINE: &str = "/proc/cmdline";

/// `usb-storage.quirks=`, wherever it is set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuirkSettings {
    /// The value in force; `None` if the module is not loaded.
    pub in_force: Option<String>,
    /// Where it is set for the next boot or load; the last one wins.
    pub places: Vec<SettingPlace>,
    /// Where it is set without effect: in modprobe's files, of what is built into the kernel.
    pub unheard: Vec<SettingPlace>,
    /// Words and lines that were meant for it and do nothing.
    pub mistakes: Vec<SettingMistake>,
}

/// One place where quirks are set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingPlace {
    /// The file.
    pub path: String,
    /// The word or line in it.
    pub line: String,
    /// The text after the last `quirks=`, without quotes.
    pub value: String,
    /// Where in the line the value begins.
    value_at: usize,
}

impl SettingPlace {
    /// A line whose argument of that name says it.
    fn of(path: &str, line: &str, is_name: impl Fn(&str) -> bool) -> Option<Self> {
        let said =
            arguments(line).filter(|argument| is_name(argument.name) && argument.value.is_some()).last()?;
        let (value, value_at) = (said.value?.to_owned(), said.value_at);
        Some(Self { path: path.to_owned(), line: line.to_owned(), value, value_at })
    }

    /// The line with another value.
    pub fn with(&self, value: &str) -> String {
        let before = self.line.get(..self.value_at).unwrap_or_default();
        let behind = self.line.get(self.value_at + self.value.len()..).unwrap_or_default();
        format!("{before}{value}{behind}")
    }

    /// The name of the file without its directory.
    pub fn file_name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }
}

impl QuirkSettings {
    pub(super) fn read(tree: &Tree, is_built_in: bool) -> Self {
        let lines = modprobe_lines(tree, |line| option(line, "").is_some());
        let of_modprobe = lines.iter().filter_map(|(line, path)| option(line, path)).collect();
        let (mut places, unheard) =
            if is_built_in { (Vec::new(), of_modprobe) } else { (of_modprobe, Vec::new()) };
        places.extend(command_line(tree));
        let mistakes = SettingMistake::read(tree);
        Self { in_force: tree.text(PARAMETER).ok(), places, unheard, mistakes }
    }

    /// Returns the value in force, or the one that will be once the module is loaded.
    pub fn value(&self) -> &str {
        self.in_force.as_deref().unwrap_or_else(|| self.at_boot())
    }

    /// Returns the value that files and command line set for the next boot.
    pub fn at_boot(&self) -> &str {
        self.places.last().map_or("", |place| place.value.as_str())
    }

    /// Where [`value`](Self::value) was read.
    pub fn path(&self) -> &str {
        match (&self.in_force, self.places.last()) {
            (None, Some(place)) => &place.path,
            _ => PARAMETER,
        }
    }
}

/// The words of the kernel command line that say it, as one line of them.
fn command_line(tree: &Tree) -> Vec<SettingPlace> {
    let lines = tree.lines(COMMAND_LINE, |line| arguments(line).any(|word| is_ours(word.name)));
    let lines = lines.unwrap_or_default();
    let words = lines.iter().flat_map(|line| arguments(line));
    words.filter_map(|word| SettingPlace::of(COMMAND_LINE, word.text, is_ours)).collect()
}

/// The kernel takes `-` and `_` for the same in the name of a module.
fn is_ours(name: &str) -> bool {
    name.replace('-', "_") == "usb_storage.quirks"
}

/// `options usb-storage … quirks=VALUE …`.
fn option(line: &str, path: &str) -> Option<SettingPlace> {
    let mut words = line.split_whitespace();
    let is_options = words.next() == Some("options");
    let is_module = words.next().is_some_and(|module| module.replace('-', "_") == "usb_storage");
    if is_options && is_module { SettingPlace::of(path, line, |name| name == "quirks") } else { None }
}

/// The lines of modprobe's files that are wanted, joined where they go on, with their files; a file of an earlier directory hides one of the
/// same name in a later directory (modprobe.d(5)).
pub(super) fn modprobe_lines(tree: &Tree, keep: impl Fn(&str) -> bool) -> Vec<(String, String)> {
    const DIRECTORIES: &[&str] = &[
        "/etc/modprobe.d",
        "/run/modprobe.d",
        "/usr/local/lib/modprobe.d",
        "/usr/lib/modprobe.d",
        "/lib/modprobe.d",
    ];
    let mut files: Vec<(String, String)> = Vec::new();
    for directory in DIRECTORIES {
        for name in tree.names(directory, |name| name.ends_with(".conf")) {
            if files.iter().all(|(known, _)| *known != name) {
                let path = format!("{directory}/{name}");
                files.push((name, path));
            }
        }
    }
    files.sort();
    let wanted = |line: &str| keep(line.trim());
    let lines = files.into_iter().flat_map(|(_, path)| {
        let lines = tree.joined_lines(&path, wanted).unwrap_or_default();
        lines.into_iter().map(move |line| (line.trim().to_owned(), path.clone()))
    });
    lines.collect()
}
