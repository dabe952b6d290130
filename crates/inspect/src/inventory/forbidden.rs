//! Settings that keep drivers from being loaded: lines of modprobe's files, and words of the kernel command line.
//!
//! A blacklist, in a file or by `modprobe.blacklist=`, keeps a module from being loaded for a device that comes; loading it by
//! name works all the same, and so has a module that needs it. A command of `install` that loads nothing is run in place of loading
//! it in every case (modprobe.d(5), kmod's `kmod_module_probe_insert_module`). `module_blacklist=` is the kernel's own: it refuses
//! the module until it is started without the word (`blacklisted` in kernel/module). None of them keeps back what is built into the
//! kernel. Left out: patterns in place of names.

use super::arguments::{Argument, arguments};
use super::setting::{COMMAND_LINE, modprobe_lines};
use crate::tree::Tree;

/// A line, or a word of the kernel command line, that keeps drivers from being loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forbidding {
    /// The file.
    pub path: String,
    /// The line of it, or the word.
    pub line: String,
    /// How it does so.
    pub means: ForbiddingMeans,
    /// The drivers that it names, `uas` or `usb-storage` or both.
    pub drivers: Vec<&'static str>,
}

/// How something keeps a driver from being loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForbiddingMeans {
    /// It is not loaded for devices.
    Blacklist,
    /// A command that loads nothing is run in its place.
    Command,
    /// The kernel refuses it.
    Kernel,
}

impl Forbidding {
    /// All there are for those drivers that are no part of the kernel: those of modprobe's files first.
    pub(super) fn read(tree: &Tree, is_module: impl Fn(&str) -> bool) -> Vec<Self> {
        let lines = modprobe_lines(tree, |line| said(line).is_some());
        let of_line = |(line, path): (String, String)| {
            let (means, driver) = said(&line)?;
            Some(Self { path, line, means, drivers: vec![driver] })
        };
        let mut all: Vec<Self> = lines.into_iter().filter_map(of_line).collect();
        all.extend(at_boot(tree));
        for one in &mut all {
            one.drivers.retain(|driver| is_module(driver));
        }
        all.retain(|one| !one.drivers.is_empty());
        all
    }

    /// Returns the word without the drivers that are `allowed`; `None` if nothing is left, as of a line, which names one.
    pub fn without(&self, allowed: impl Fn(&str) -> bool) -> Option<String> {
        let word = arguments(&self.line).next().filter(|_| self.path == COMMAND_LINE)?;
        let (_, names) = names(&word)?;
        let is_kept = |name: &&str| !driver(name).is_some_and(&allowed);
        let rest = names.split(',').filter(is_kept).collect::<Vec<_>>().join(",");
        // What is before the names has none of ours in it.
        (!rest.is_empty()).then(|| self.line.replacen(names, &rest, 1))
    }
}

/// The driver of that name. Modules have it with `_`.
fn driver(name: &str) -> Option<&'static str> {
    match name {
        "uas" => Some("uas"),
        "usb_storage" => Some("usb-storage"),
        _ => None,
    }
}

/// The words of the kernel command line that forbid. Of `module_blacklist=` the last one counts; without it, the one before would.
fn at_boot(tree: &Tree) -> Vec<Forbidding> {
    let lines = tree.lines(COMMAND_LINE, |line| arguments(line).any(|word| names(&word).is_some()));
    let lines = lines.unwrap_or_default();
    let words = lines.iter().flat_map(|line| arguments(line)).filter_map(|word| {
        let (means, names) = names(&word)?;
        let drivers = names.split(',').filter_map(driver).collect();
        Some(Forbidding { path: COMMAND_LINE.to_owned(), line: word.text.to_owned(), means, drivers })
    });
    let mut words: Vec<Forbidding> = words.collect();
    let last = words.iter().rfind(|word| word.means == ForbiddingMeans::Kernel);
    let counts = last.map(|word| word.drivers.clone()).unwrap_or_default();
    for word in words.iter_mut().filter(|word| word.means == ForbiddingMeans::Kernel) {
        word.drivers.retain(|driver| counts.contains(driver));
    }
    words
}

/// The names after `modprobe.blacklist=` or `module_blacklist=`, which both take letter for letter, `-` being none of a module's.
/// The latter is read by the kernel, which leaves quotes out; modprobe, which reads the former, takes them for letters (kmod,
/// libkmod/libkmod-config.c).
fn names<'a>(word: &Argument<'a>) -> Option<(ForbiddingMeans, &'a str)> {
    match word.name.replace('-', "_").as_str() {
        "module_blacklist" => Some((ForbiddingMeans::Kernel, word.value?)),
        // A quote before the whole word goes to the first name.
        "modprobe.blacklist" if !word.text.starts_with('"') => {
            word.text.split_once('=').map(|(_, names)| (ForbiddingMeans::Blacklist, names))
        }
        _ => None,
    }
}

/// How a line of modprobe's keeps which driver from being loaded: by name, or by a command in place of loading it that does not load
/// it itself (modprobe.d(5)). It takes `-` and `_` for the same.
fn said(line: &str) -> Option<(ForbiddingMeans, &'static str)> {
    let mut words = line.split_whitespace();
    let verb = words.next()?;
    let driver = driver(&words.next()?.replace('-', "_"))?;
    match verb {
        "blacklist" => Some((ForbiddingMeans::Blacklist, driver)),
        "install" => {
            let mut command = words.peekable();
            let is_forbidding = command.peek().is_some() && !command.any(loads_modules);
            is_forbidding.then_some((ForbiddingMeans::Command, driver))
        }
        _ => None,
    }
}

/// Whether a word of a command has a program in it that loads modules.
fn loads_modules(word: &str) -> bool {
    let is_of_path = |letter: char| letter.is_ascii_alphanumeric() || "/._-".contains(letter);
    let mut paths = word.split(|letter| !is_of_path(letter));
    paths.any(|path| ["modprobe", "insmod"].contains(&path.rsplit('/').next().unwrap_or(path)))
}
