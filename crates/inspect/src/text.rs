//! Reports as people paste them: text of `dmesg`, `lsusb` and the like becomes the inventory that a machine gives.
//!
//! [`noise`](decode) is removed once; a file is parted into sections by format; a reader for each format adds facts, each
//! with its line; facts about one device are joined and written as the files of a recorded machine, which
//! [`Inventory::read`] reads. What no text says is absent there, and [`Report`] knows which text would say it.
//!
//! Always true: nothing is made up: an attribute that no text has is not there; limits are those of a recorded machine.
//! Left out: strings of other languages, logs in other encodings than UTF-8 and UTF-16.

mod apple_log;
mod bos;
mod bsd;
mod build;
mod excerpt;
mod facts;
mod foreign;
mod lsusb;
mod lsusb_py;
mod lsusb_verbose;
mod noise;
mod pci;
mod section;
mod smartctl;
mod system;
mod umockdev;
mod usb_devices;
mod utf16;

pub use excerpt::{
    Gap, HEAD_BYTES_MAX, HEAD_LINES_MAX, LINE_BYTES_MAX, LeftOut, TAIL_BYTES_MAX, TAIL_LINES_MAX,
};
pub use facts::{DEVICES_MAX, Source};
pub(crate) use noise::is_wide;
pub use noise::{Line, decode, lines};

pub(crate) use build::UNNAMED_CONTROLLER;

use crate::diagnose::Reading;
use crate::inventory::{Inventory, Scope, UsbDevice, is_needed_of_log};
use crate::tree::Tree;
use facts::Facts;
use quirks::DeviceId;
use section::{Reader, sections};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead};
use utf16::Utf16Reader;

/// A file of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Its name.
    pub name: String,
    /// Its text.
    pub text: String,
    /// Lines that were dropped while it was read.
    pub gaps: Vec<Gap>,
    /// Lines that were dropped because there were too many.
    pub left_out: Option<LeftOut>,
    /// Lines of the file that are not blank, those that were dropped among them.
    pub filled_lines: usize,
}

impl Document {
    /// A file that was read whole.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        let text = text.into();
        let filled_lines = text.lines().filter(|line| !line.trim().is_empty()).count();
        Self { name: name.into(), text, gaps: Vec::new(), left_out: None, filled_lines }
    }

    /// Takes a file that is in memory; a long one is taken line by line, as [`Self::read`] does.
    pub fn of_bytes(name: impl Into<String>, bytes: &[u8]) -> Self {
        let name = name.into();
        if bytes.len() > HEAD_BYTES_MAX
            && let Ok(document) = Self::read(name.as_str(), &mut &*bytes)
        {
            return document;
        }
        Self::new(name, decode(bytes))
    }

    /// Reads a file line by line, without what no format needs, so that memory does not grow with it. UTF-16 is decoded.
    ///
    /// # Errors
    /// Of the reader.
    pub fn read(name: impl Into<String>, reader: &mut impl BufRead) -> io::Result<Self> {
        const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();
        let begin = reader.fill_buf()?;
        let excerpt = if is_wide(begin) {
            excerpt::excerpt(&mut Utf16Reader::new(reader)?, is_needed_of_log)?
        } else {
            let mark = if begin.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
            reader.consume(mark);
            excerpt::excerpt(reader, is_needed_of_log)?
        };
        let excerpt::Excerpt { text, gaps, left_out, filled: filled_lines } = excerpt;
        Ok(Self { name: name.into(), text, gaps, left_out, filled_lines })
    }

    /// Its lines without noise, with their numbers in the file.
    pub fn lines(&self) -> Vec<Line<'_>> {
        let mut lines = lines(&self.text);
        let mut gaps = self.gaps.iter().peekable();
        let mut dropped = 0;
        for (at, line) in lines.iter_mut().enumerate() {
            while let Some(gap) = gaps.next_if(|gap| gap.before <= at) {
                dropped += gap.lines;
            }
            line.number += dropped;
        }
        section::name_values(&mut lines);
        lines
    }
}

/// A format of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TextKind {
    /// `dmesg`, `journalctl -k`, syslog.
    KernelLog,
    /// `lsusb`.
    Lsusb,
    /// `lsusb -t`.
    LsusbTree,
    /// `lsusb -v`.
    LsusbVerbose,
    /// `lsusb.py`, which is `lsusb` on Synology's systems.
    LsusbPy,
    /// `/sys/kernel/debug/usb/devices`, `usb-devices`.
    UsbDevices,
    /// `lspci -nn`, `-k`.
    Lspci,
    /// `uname -a`.
    Uname,
    /// `/proc/cmdline`.
    CommandLine,
    /// A file of modprobe's.
    Modprobe,
    /// `lsmod`.
    Lsmod,
    /// Attributes of sysfs with their paths.
    Attributes,
    /// A record of umockdev.
    Umockdev,
    /// `smartctl`.
    Smartctl,
    /// USB Device Tree Viewer, `pnputil`.
    Windows,
    /// `system_profiler`, `ioreg`.
    Apple,
    /// `dmesg` of FreeBSD, OpenBSD or NetBSD.
    Bsd,
}

/// The health of a disk, by smartctl.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SmartHealth {
    /// The drive does not expect to fail.
    Passed,
    /// It does, or has bad sectors.
    Failing,
    /// SMART did not get through.
    NoAnswer,
    /// smartctl does not know the bridge; the drive was not asked.
    UnknownBridge,
}

/// A line of smartctl.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SmartText {
    /// The health that it reports.
    pub health: SmartHealth,
    /// Where.
    pub source: Source,
}

/// Another system than Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForeignSystem {
    /// Windows.
    Windows,
    /// macOS.
    MacOs,
    /// FreeBSD.
    FreeBsd,
    /// OpenBSD or NetBSD.
    OtherBsd,
}

/// A drive on another system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignDrive {
    /// The system.
    pub system: ForeignSystem,
    /// idVendor and idProduct; zeros where the text has none.
    pub id: DeviceId,
    /// The name in the text, where it has no ids.
    pub name: Option<String>,
    /// Its driver.
    pub driver: Option<String>,
    /// `UAS` or `BOT`, by the driver.
    pub transport: Option<&'static str>,
    /// Its speed.
    pub speed: Option<&'static str>,
    /// The last error that the system reports of it.
    pub error: Option<String>,
    /// Where it was read.
    pub source: Source,
}

impl ForeignDrive {
    /// A drive of which no more is known.
    fn new(system: ForeignSystem, id: DeviceId, source: Source) -> Self {
        Self { system, id, name: None, driver: None, transport: None, speed: None, error: None, source }
    }
}

/// The contents of a report in text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Formats that were found.
    pub kinds: BTreeSet<TextKind>,
    /// Drives of other systems.
    pub foreign: Vec<ForeignDrive>,
    /// Lines of smartctl.
    pub smart: Vec<SmartText>,
    /// Ports of drives that have no serial number, by a text.
    pub without_serial: Vec<String>,
    /// Ports of drives whose descriptors lack endpoints.
    pub short: Vec<String>,
    /// Files of which lines were left out because there were too many.
    pub left_out: Vec<(String, LeftOut)>,
    /// The texts name more devices than [`DEVICES_MAX`], the last of which alone are considered.
    pub has_more_devices: bool,
    sources: BTreeMap<String, Source>,
    log: Vec<(String, Source)>,
    /// Places in `log`, sorted by the line without the blanks at its end.
    log_by_line: Vec<usize>,
    /// The time of the last line of the log, in seconds of that log.
    pub(crate) log_end: Option<f64>,
}

/// Something that no text of a report has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The missing fact.
    pub what: &'static str,
    /// The command whose output has it.
    pub command: String,
}

/// Reads texts as one machine. Serial numbers are masked, equal ones by equal masks.
pub fn read(documents: &[Document]) -> Inventory {
    let mut facts = Facts::default();
    let mut kinds = BTreeSet::new();
    for document in documents {
        let lines = document.lines();
        for (kind, from, to) in sections(&lines) {
            let Some(lines) = lines.get(from..to) else { continue };
            let reader = Reader { file: &document.name, lines };
            if lines.iter().any(|line| !line.text.trim().is_empty())
                && read_section(kind, &reader, &mut facts)
            {
                kinds.insert(kind);
            }
        }
    }
    let build::Built { record, mut report, unknown_drivers, .. } = build::machine(facts);
    report.kinds = kinds;
    let left_out = |document: &Document| Some((document.name.clone(), document.left_out?));
    report.left_out = documents.iter().filter_map(left_out).collect();
    let mut inventory = Inventory::read(&Tree::of(record), Scope::Whole { log: None });
    for interface in inventory.devices.iter_mut().flat_map(|device| &mut device.interfaces) {
        interface.is_driver_known = !unknown_drivers.contains(&interface.name);
    }
    inventory.report = Some(report);
    inventory
}

/// Reads one section; whether it had anything of its format.
fn read_section(kind: TextKind, reader: &Reader<'_>, facts: &mut Facts) -> bool {
    match kind {
        TextKind::KernelLog => return build::read_log(reader, facts),
        TextKind::Lsusb => lsusb::read(reader, facts),
        TextKind::LsusbTree => lsusb::read_tree(reader, facts),
        TextKind::LsusbVerbose => lsusb_verbose::read(reader, facts),
        TextKind::LsusbPy => lsusb_py::read(reader, facts),
        TextKind::UsbDevices => usb_devices::read(reader, facts),
        TextKind::Lspci => pci::read(reader, facts),
        TextKind::Umockdev => umockdev::read(reader, facts),
        TextKind::Smartctl => smartctl::read(reader, facts),
        TextKind::Windows | TextKind::Apple => foreign::read(kind, reader, facts),
        TextKind::Bsd => bsd::read(reader, facts),
        _ => system::read(kind, reader, facts),
    }
    true
}

impl Report {
    /// Takes the lines of the log.
    fn set_log(&mut self, log: Vec<(String, Source)>) {
        self.log_by_line = (0..log.len()).collect();
        self.log_by_line.sort_by_key(|at| log.get(*at).map(|(line, _)| line.trim_end()));
        self.log = log;
    }

    /// The source of the last line of the log that has this text.
    fn source_of_line(&self, text: &str) -> Option<&Source> {
        let line = |at: &usize| self.log.get(*at).map(|(line, _)| line.trim_end());
        let end = self.log_by_line.partition_point(|at| line(at) <= Some(text.trim_end()));
        let last = self.log_by_line.get(..end)?.last()?;
        self.log.get(*last).filter(|_| line(last) == Some(text.trim_end())).map(|(_, source)| source)
    }

    /// The reading with the line of the text that it comes from.
    pub(crate) fn cite(&self, reading: &mut Reading) {
        if let Some(source) = self.sources.get(&reading.place) {
            reading.place = place(source);
        } else if let Some(source) = self.source_of_line(&reading.found) {
            reading.place = place(source);
        } else if ["empty", "does not exist", "no such link"].contains(&reading.found.as_str()) {
            // Absence from a text says nothing about the machine.
            "not in the report".clone_into(&mut reading.found);
        }
    }

    /// Lists what the texts lack for a full answer about a drive, with the command that shows it.
    pub fn missing(&self, inventory: &Inventory, device: Option<&UsbDevice>) -> Vec<Missing> {
        let mut all = Vec::new();
        let mut lacks = |what, command: String| all.push(Missing { what, command });
        if let Some(command) = self.foreign_command() {
            if self.foreign.is_empty() {
                lacks("the drives and their drivers", command.to_owned());
                return all;
            }
            return self.foreign_missing(command);
        }
        if !self.kinds.contains(&TextKind::KernelLog) {
            lacks("the kernel's log", "sudo dmesg".to_owned());
        }
        let Some(device) = device else {
            if !self.kinds.contains(&TextKind::LsusbTree) {
                lacks("which devices are attached", "lsusb -t".to_owned());
            }
            return all;
        };
        if device.id == DeviceId::new(0, 0) {
            lacks("the ids of the drive", "lsusb".to_owned());
        }
        if device.interfaces.iter().any(|interface| !interface.is_driver_known) {
            lacks("the driver and the speed", "lsusb -t".to_owned());
        }
        let is_short = self.short.contains(&device.port);
        if device.described().is_none() || is_short {
            let all = device.id == DeviceId::new(0, 0);
            lacks(
                "the descriptors",
                if all { "sudo lsusb -v".to_owned() } else { format!("sudo lsusb -v -d {}", device.id) },
            );
        }
        let controller = inventory.controller_of(device);
        if device.speed.is_super() && controller.is_none_or(|controller| controller.pci.is_none()) {
            lacks("the host controller", "lspci -nnk".to_owned());
        }
        if inventory.release.is_none() {
            lacks("the kernel's version", "uname -r".to_owned());
        }
        if inventory.quirks.in_force.is_none() {
            lacks(
                "the quirks in force",
                "grep . /proc/cmdline /sys/module/usb_storage/parameters/quirks".to_owned(),
            );
        }
        all
    }
}

impl Report {
    /// Returns what a text of another system lacks of its drives.
    fn foreign_missing(&self, command: &str) -> Vec<Missing> {
        let lacks = |what, command: &str| Missing { what, command: command.to_owned() };
        let mut all = Vec::new();
        if self.foreign.iter().any(|drive| drive.driver.is_none()) {
            let of_mac = "ioreg -r -c IOUSBMassStorageUASDriver; ioreg -r -c IOUSBMassStorageDriver";
            let is_mac = self.kinds.contains(&TextKind::Apple);
            all.push(lacks("the driver", if is_mac { of_mac } else { command }));
        }
        if self.kinds.contains(&TextKind::Apple) {
            if self.foreign.iter().any(|drive| drive.speed.is_none()) {
                all.push(lacks("the speed", "system_profiler SPUSBDataType SPUSBHostDataType"));
            }
            all.push(lacks("errors of the drive", "log show --last 1h --predicate 'process == \"kernel\"'"));
        } else if self.kinds.contains(&TextKind::Windows) {
            if self.foreign.iter().any(|drive| drive.speed.is_none()) {
                all.push(lacks("the speed, which USB Device Tree Viewer shows", command));
            }
            all.push(lacks("errors of the drive", "wevtutil qe System /f:text /rd:true /c:200"));
        }
        all
    }

    /// Returns the command that shows the drives of another system, if the text is of one.
    fn foreign_command(&self) -> Option<&'static str> {
        let of = |kind, command| self.kinds.contains(&kind).then_some(command);
        of(TextKind::Windows, "pnputil /enum-devices /connected /ids /drivers")
            .or_else(|| of(TextKind::Apple, "system_profiler SPUSBDataType SPUSBHostDataType"))
            .or_else(|| of(TextKind::Bsd, "dmesg; usbconfig list"))
    }
}

fn place(source: &Source) -> String {
    format!("{} line {}", source.file, source.line)
}

#[cfg(test)]
mod tests;
