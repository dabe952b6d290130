//! One attachment of a device to a port, as the lines of the log describe it; and all of them, found by port, SCSI host or disk
//! without a search.
//!
//! Strings of a device are kept for people and decide nothing. Always true: the indices of [`Sessions`] have every port, host and
//! disk of every session, so a log of n lines needs a number of steps of the order of n log n. Left out: interfaces beyond the one
//! that became a SCSI host, and what the log says of file systems.

use super::{Extent, LogLine, announced_id};
use crate::inventory::LinkSpeed;
use quirks::DeviceId;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

/// One attachment of a device to a port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Session {
    /// The port, such as `2-1.4`.
    pub(crate) port: String,
    /// The number of the device on the bus.
    pub(crate) number: Option<u16>,
    /// Its speed, by the line that announces it.
    pub(crate) speed: Option<LinkSpeed>,
    /// The driver of the controller, such as `xhci_hcd`.
    pub(crate) controller_driver: Option<String>,
    /// idVendor and idProduct.
    pub(crate) id: Option<DeviceId>,
    /// bcdDevice.
    pub(crate) revision: Option<u16>,
    /// iManufacturer as text.
    pub(crate) manufacturer: Option<String>,
    /// iProduct as text.
    pub(crate) product: Option<String>,
    /// Whether it has a serial number, as far as the log has it.
    pub(crate) serial: Option<String>,
    /// `SerialNumber=0`: it has none.
    pub(crate) is_without_serial: bool,
    /// The driver that has made a SCSI host.
    pub(crate) driver: Option<&'static str>,
    /// usb-storage or uas was asked.
    pub(crate) is_storage: bool,
    /// The log has the line of its beginning.
    pub(crate) is_from_start: bool,
    /// uas has looked at it and does not bind to it.
    pub(crate) is_left_by_uas: bool,
    /// uas refused it with an error.
    pub(crate) is_refused: bool,
    /// Numbers of its SCSI hosts.
    pub(crate) hosts: Vec<u32>,
    /// Its logical units.
    pub(crate) units: Vec<Unit>,
    /// Ports, if it is a hub.
    pub(crate) hub_ports: u32,
    /// Ports of which it may have any: several drives were probed at once, and no line names the port of its SCSI host.
    pub(crate) one_of: Vec<String>,
    /// The first line.
    pub(crate) first: usize,
    /// The line that announces its ids.
    pub(crate) found: Option<usize>,
    /// The line that says that it was disconnected.
    pub(crate) ended: Option<usize>,
    began_ms: Option<u64>,
    ended_ms: Option<u64>,
}

/// A logical unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unit {
    /// Its address, such as `6:0:0:1`.
    pub(crate) address: String,
    /// Its block device, such as `sda`.
    pub(crate) node: Option<String>,
    /// Vendor and product of INQUIRY.
    pub(crate) vendor: Option<String>,
    /// Product of INQUIRY.
    pub(crate) model: Option<String>,
    /// Logical blocks and their bytes.
    pub(crate) capacity: Option<(u64, u32)>,
}

impl Session {
    pub(super) fn new(port: &str, first: usize, at: Option<f64>) -> Self {
        Self { port: port.to_owned(), first, began_ms: at.map(milliseconds), ..Self::default() }
    }

    /// A session of a SCSI host whose port no line names.
    pub(super) fn of_host(host: u32, first: usize, at: Option<f64>) -> Self {
        Self { hosts: vec![host], ..Self::new(&format!("host{host}"), first, at) }
    }

    /// A session of a disk of which the log has neither port nor host.
    pub(super) fn of_disk(node: &str, first: usize, at: Option<f64>) -> Self {
        let unit = Unit { node: Some(node.to_owned()), ..Unit::default() };
        Self { units: vec![unit], ..Self::new(&format!("disk-{node}"), first, at) }
    }

    /// Whether it was disconnected.
    pub(crate) const fn is_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// Whether the log names its port: a log may have lines of SCSI hosts and disks alone.
    pub(crate) fn is_located(&self) -> bool {
        self.port.starts_with(|first: char| first.is_ascii_digit())
    }

    /// Whether one of its units is, or was, that disk.
    pub(crate) fn has_disk(&self, node: &str) -> bool {
        self.units.iter().any(|unit| unit.node.as_deref() == Some(node))
    }

    /// The port of the root hub that it hangs on.
    pub(crate) fn root_port(&self) -> &str {
        self.port.split_once('.').map_or(&*self.port, |(root, _)| root)
    }

    /// Whether both were disconnected within a second.
    pub(crate) fn ended_with(&self, other: &Self) -> bool {
        self.ended_ms.zip(other.ended_ms).is_some_and(|(own, other)| own.abs_diff(other) <= 1000)
    }

    /// The number of its bus.
    pub(crate) fn bus(&self) -> Option<u16> {
        self.port.split_once('-').and_then(|(bus, _)| bus.parse().ok())
    }

    /// Seconds from the end of an earlier session to the begin of this one.
    pub(crate) fn seconds_after(&self, earlier: &Self) -> Option<u64> {
        Some(self.began_ms?.checked_sub(earlier.ended_ms?)? / 1000)
    }

    /// Maker and product.
    pub(crate) fn title(&self) -> String {
        let name = [self.manufacturer.as_deref(), self.product.as_deref()];
        name.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }
}

/// Sessions that are looked at for a SCSI host whose line names no port, the last ones: those that have none and were not
/// disconnected. Devices that are no drives are among them.
const WAITING_MAX: usize = 256;

/// The sessions, in the order of their first lines, with indices.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    all: Vec<Session>,
    by_port: BTreeMap<String, Vec<usize>>,
    by_host: BTreeMap<u32, Vec<usize>>,
    by_disk: BTreeMap<String, Vec<usize>>,
    /// Sessions without a SCSI host that were not disconnected.
    free: BTreeSet<usize>,
    are_announced: bool,
}

impl Deref for Sessions {
    type Target = [Session];

    fn deref(&self) -> &[Session] {
        &self.all
    }
}

impl Sessions {
    /// Adds a session and returns its place.
    pub(super) fn add(&mut self, session: Session) -> usize {
        let at = self.all.len();
        self.by_port.entry(session.port.clone()).or_default().push(at);
        for host in &session.hosts {
            self.by_host.entry(*host).or_default().push(at);
        }
        for node in session.units.iter().filter_map(|unit| unit.node.as_ref()) {
            self.by_disk.entry(node.clone()).or_default().push(at);
        }
        if session.hosts.is_empty() && !session.is_ended() {
            self.free.insert(at);
        }
        self.all.push(session);
        at
    }

    /// All of them.
    #[cfg(test)]
    pub(super) fn as_slice(&self) -> &[Session] {
        &self.all
    }

    /// The session at a place, to change what no index has: not its port, hosts, units or end.
    pub(super) fn get_mut(&mut self, at: usize) -> Option<&mut Session> {
        self.all.get_mut(at)
    }

    /// The sessions of a port, in order.
    pub(crate) fn at_port(&self, port: &str) -> &[usize] {
        self.by_port.get(port).map_or(&[], Vec::as_slice)
    }

    /// Every port that has sessions, sorted.
    pub(crate) fn ports(&self) -> impl Iterator<Item = &str> {
        self.by_port.keys().map(String::as_str)
    }

    /// The sessions of ports behind a hub.
    pub(crate) fn behind(&self, hub: &str) -> impl Iterator<Item = &Session> {
        let start = format!("{hub}.");
        let ports = self.by_port.range(start.clone()..).take_while(move |(port, _)| port.starts_with(&start));
        ports.flat_map(|(_, own)| own).filter_map(|at| self.all.get(*at))
    }

    pub(super) fn last_at(&self, port: &str) -> Option<usize> {
        self.at_port(port).last().copied()
    }

    pub(super) fn has_host(&self, host: u32) -> bool {
        self.by_host.contains_key(&host)
    }

    pub(super) fn first_with_host(&self, host: u32) -> Option<usize> {
        self.by_host.get(&host)?.iter().min().copied()
    }

    pub(super) fn last_with_host(&self, host: u32) -> Option<usize> {
        self.by_host.get(&host)?.iter().max().copied()
    }

    pub(super) fn last_with_disk(&self, disk: &str) -> Option<usize> {
        self.by_disk.get(disk)?.iter().max().copied()
    }

    /// Whether a session has ids: some kernels of routers print none at all.
    pub(super) const fn are_announced(&self) -> bool {
        self.are_announced
    }

    /// The last [`WAITING_MAX`] sessions without a SCSI host that were not disconnected, in order.
    pub(super) fn free(&self) -> impl Iterator<Item = (usize, &Session)> {
        let from = self.free.iter().rev().nth(WAITING_MAX - 1).copied().unwrap_or(0);
        self.free.range(from..).filter_map(|at| Some((*at, self.all.get(*at)?)))
    }

    /// Gives a session a SCSI host.
    pub(super) fn add_host(&mut self, at: usize, host: u32) {
        let Some(session) = self.all.get_mut(at) else { return };
        session.hosts.push(host);
        self.by_host.entry(host).or_default().push(at);
        self.free.remove(&at);
    }

    /// Gives a session a unit of which only the disk is known.
    pub(super) fn add_disk(&mut self, at: usize, node: &str) {
        let Some(session) = self.all.get_mut(at) else { return };
        session.units.push(Unit { node: Some(node.to_owned()), ..Unit::default() });
        self.by_disk.entry(node.to_owned()).or_default().push(at);
    }

    /// Adds what a line of the USB core says of the device.
    pub(super) fn note(&mut self, at: usize, index: usize, raw: &str, line: LogLine<'_>) {
        let Some(session) = self.all.get_mut(at) else { return };
        note(session, index, raw, line);
        self.are_announced |= session.id.is_some();
        if session.is_ended() {
            self.free.remove(&at);
        }
    }

    /// Adds what a line says of a SCSI host or a unit of it.
    pub(super) fn note_unit(&mut self, at: usize, line: LogLine<'_>) {
        let Some(session) = self.all.get_mut(at) else { return };
        if let Some(node) = note_unit(session, line) {
            self.by_disk.entry(node).or_default().push(at);
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "times are not negative, and saturate"
)]
fn milliseconds(seconds: f64) -> u64 {
    (seconds * 1000.0) as u64
}

/// `new SuperSpeed USB device number 4 using xhci_hcd`.
pub(super) fn note_new(session: &mut Session, number: u16, text: &str) {
    session.is_from_start = true;
    session.number = Some(number);
    session.speed = speed_of(text);
    session.controller_driver =
        text.split_once(" using ").and_then(|(_, driver)| driver.split(' ').next()).map(str::to_owned);
}

/// The speed that a device is announced with.
pub(crate) fn speed_of(text: &str) -> Option<LinkSpeed> {
    let name = text.trim_start_matches("new ").trim_start_matches("reset ").split(" USB device").next()?;
    let name = name.to_ascii_lowercase().replace('-', " ");
    Some(match name.as_str() {
        "low speed" => LinkSpeed::Low,
        "full speed" => LinkSpeed::Full,
        "high speed" => LinkSpeed::High,
        name if name.contains("gen 2x2") => LinkSpeed::Super { mbps: 20_000 },
        name if name.contains("gen 2") || name.contains("gen 1x2") => LinkSpeed::Super { mbps: 10_000 },
        name if name.contains("plus") => LinkSpeed::Super { mbps: 10_000 },
        name if name.starts_with("super") => LinkSpeed::Super { mbps: 5000 },
        _ => return None,
    })
}

/// A line of the USB core about the device.
pub(super) fn note(session: &mut Session, index: usize, raw: &str, line: LogLine<'_>) {
    let text = line.text;
    let name = |text: &str| Some(text.trim().to_owned()).filter(|name| !name.is_empty());
    if let Some(found) = text.strip_prefix("New USB device found, ") {
        session.id = announced_id(found);
        session.found = Some(index);
        let revision = found.split_once("bcdDevice=").map(|(_, digits)| digits.trim());
        session.revision = revision.and_then(|digits| {
            let digits: String = digits.chars().filter(char::is_ascii_hexdigit).take(4).collect();
            u16::from_str_radix(&digits, 16).ok()
        });
    } else if text.starts_with("New USB device strings: ") {
        session.is_without_serial = text.ends_with("SerialNumber=0");
    } else if let Some(product) = text.strip_prefix("Product: ") {
        session.product = name(product);
    } else if let Some(manufacturer) = text.strip_prefix("Manufacturer: ") {
        session.manufacturer = name(manufacturer);
    } else if let Some(serial) = text.strip_prefix("SerialNumber: ") {
        session.serial = name(serial);
    } else if text.starts_with("USB disconnect") {
        session.ended = Some(index);
        session.ended_ms = super::seconds(raw).map(milliseconds);
    } else if URB_FAILURES.iter().any(|words| text.starts_with(words)) {
        session.is_storage = true;
        session.driver.get_or_insert("uas");
    } else if is_about_uas(text) {
        session.is_storage = true;
        session.is_left_by_uas = true;
    } else if text.starts_with("reset ") && session.speed.is_none() {
        session.speed = speed_of(text);
        let number = text.split_once("device number ").map(|(_, number)| number.split(' ').next());
        session.number = number.flatten().and_then(|number| number.parse().ok());
    }
}

fn is_about_uas(text: &str) -> bool {
    let is_refusal = text.starts_with("USB controller ") && text.contains("required by the UAS driver");
    let is_list_refusal = text.starts_with("The driver for the USB controller ");
    text.starts_with("UAS is ") || is_refusal || is_list_refusal
}

/// Messages about a device that `uas` alone prints.
const URB_FAILURES: [&str; 4] = ["cmd cmplt err", "stat urb: ", "sense urb: ", "cmd urb: "];

/// Whether a line begins a session of a device that was there before the log.
pub(super) fn says_something(line: LogLine<'_>) -> bool {
    const BEGINNINGS: [&str; 19] = [
        "cannot reset (err",
        "Cannot enable.",
        "cannot disable (err",
        "disabled by hub (EMI?)",
        "unable to enumerate",
        "connect-debounce failed",
        "reset ",
        "New USB device found",
        "UAS is ",
        "USB controller ",
        "The driver for the USB controller ",
        "device descriptor read",
        "device not accepting",
        "cmd cmplt",
        "data cmplt",
        "stat urb: ",
        "sense urb: ",
        "cmd urb: ",
        "USB disconnect",
    ];
    line.begins(&BEGINNINGS)
}

/// A line of `uas` or `usb-storage` about an interface.
pub(super) fn note_interface(session: &mut Session, line: LogLine<'_>) {
    session.is_storage = true;
    session.is_refused |= line.text.contains("failed with error");
    // usb-storage prints it once `uas` has left the interface to it (`storage_probe`).
    if line.source.starts_with("usb-storage") && line.begins(&["USB Mass Storage device detected"]) {
        session.driver.get_or_insert("usb-storage");
    }
}

/// A line about a SCSI host or a unit of it; the disk that the unit has since.
pub(super) fn note_unit(session: &mut Session, line: LogLine<'_>) -> Option<String> {
    let (_, address) = line.source.split_once(' ')?;
    // It is printed in commands.
    let is_plain = address.bytes().all(|byte| byte.is_ascii_digit() || byte == b':');
    if address.split(':').count() != 4 || !is_plain {
        return None;
    }
    let at = session.units.iter().position(|unit| unit.address == address);
    if at.is_none() && session.units.len() < UNITS_MAX {
        session.units.push(Unit { address: address.to_owned(), ..Unit::default() });
    }
    let unit = match at {
        Some(at) => session.units.get_mut(at),
        None => session.units.last_mut().filter(|unit| unit.address == address),
    }?;
    let mut new_node = None;
    if let Some(node) = node_of(line) {
        let words: Vec<&str> = line.text.splitn(5, ' ').collect();
        if unit.node.is_none() {
            unit.node = Some(node.to_owned());
            new_node = unit.node.clone();
        }
        if let [_, blocks, bytes, rest @ ..] = words.as_slice()
            && rest.first().is_some_and(|word| word.starts_with("logical"))
            && let (Ok(blocks), Ok(bytes)) = (blocks.parse(), bytes.trim_end_matches("-byte").parse())
        {
            unit.capacity = Some((blocks, bytes));
        }
    } else if let Some(inquiry) = line.text.strip_prefix("Direct-Access").filter(|_| unit.vendor.is_none()) {
        let inquiry = inquiry.trim_start();
        let inquiry = inquiry.split(" PQ:").next().unwrap_or(inquiry).trim_end();
        let part = |from: usize, to: usize| {
            let text = inquiry.get(from..to.min(inquiry.len())).map(str::trim);
            text.filter(|text| !text.is_empty()).map(str::to_owned)
        };
        // Vendor of 8 letters, product of 16, revision of 4, parted by spaces (drivers/scsi/scsi_scan.c).
        unit.vendor = part(0, 8);
        unit.model = part(9, 25);
    }
    new_node
}

/// Logical units of one session; the kernel asks a drive for 511 at most (`max_report_luns` of Linux's scsi_scan.c).
const UNITS_MAX: usize = 511;

/// The disk that a line of a unit names: `[sdc] …`.
pub(super) fn node_of<'a>(line: LogLine<'a>) -> Option<&'a str> {
    let node = line.text.split(' ').next()?.strip_prefix('[')?.strip_suffix(']')?;
    let is_node =
        node.len() <= 8 && node.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    is_node.then_some(node)
}

/// The disk of which a file system or the page cache prints an error: `EXT4-fs error (device sda1)`, `Buffer I/O error on
/// dev sda1`; or the kernel that something is larger than it.
pub(super) fn disk_of_file_system<'a>(line: LogLine<'a>) -> Option<&'a str> {
    let text = line.text;
    if let Some(extent) = Extent::of(line) {
        return extent.disk();
    }
    let is_of_kernel =
        line.source.is_empty() || line.source.contains("-fs") || line.source.starts_with("Buffer");
    if let Some(node) = line.file_system_node() {
        return Some(node.trim_end_matches(|sign: char| sign.is_ascii_digit()));
    }
    let name = text
        .split_once("Buffer I/O error on dev ")
        .or_else(|| text.split_once("Buffer I/O error on device "))
        .or_else(|| text.split_once("Aborting journal on device "))
        .or_else(|| line.source.split_once("(device "))
        .or_else(|| text.split_once("(device "))
        .map(|(_, rest)| rest)?;
    let name = name.split([',', ')', ' ', '-']).next()?;
    let disk = name.trim_end_matches(|sign: char| sign.is_ascii_digit());
    is_of_kernel.then_some(disk)
}
