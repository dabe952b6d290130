//! Messages of the kernel's log about a port: resets, disconnects, errors, refusals.
//!
//! `/dev/kmsg` goes back to boot or to where the buffer has been overwritten, and is for root where
//! `kernel.dmesg_restrict` is set. A file that `dmesg` or `journalctl -k` wrote does as well.
//!
//! A line is taken apart by [`LogLine`]: what a device is called says nothing. A port has had other drives before, and numbers of SCSI hosts and names of disks have been others': which lines are
//! about the drive that is there now is the business of [`Since`].

use super::log_index::LogIndex;
use super::{Controller, UsbDevice, words};
use crate::log::{History, LogLine};
use crate::tree::{LogText, Tree, Unread, log_of};
use std::collections::BTreeSet;
use std::path::Path;
use wire::Legible;

/// The log of the running kernel.
pub(super) const PATH: &str = "/dev/kmsg";

/// The lines of the log that are about USB storage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelLog {
    /// The file, as text.
    pub path: String,
    /// Lines that it has in all, as far as it was looked at; in a recorded machine those that were recorded.
    pub lines_read: usize,
    /// Lines about USB that are not considered, since later ones are as many as [`LOG_LINES_MAX`](crate::tree::LOG_LINES_MAX).
    pub lines_left_out: usize,
    lines: Vec<String>,
    index: LogIndex,
}

/// Errors at one port, counted by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortErrors {
    /// `reset … USB device`: an error handler's last resort. The normal end of a suspend of the machine is not counted.
    pub resets: usize,
    /// The lines of those resets.
    pub(crate) reset_lines: Vec<usize>,
    /// `USB disconnect`.
    pub disconnects: usize,
    /// Commands that `uas` gave up.
    pub aborts: usize,
    /// Errors while the device was being recognised.
    pub enumeration_errors: usize,
    /// Ports that were switched off by their hub, or did not come up: mostly the cable.
    pub link_losses: usize,
    /// Blocks that could not be read or written.
    pub io_errors: usize,
    /// Events of streams that the controller's driver did not know; the line names the controller alone.
    pub unknown_streams: usize,
    /// Too much current was drawn, or there is not enough.
    pub power: usize,
    /// One line of each kind, the last.
    pub examples: Vec<String>,
}

impl KernelLog {
    pub(super) fn read(tree: &Tree, path: &str) -> Result<Self, Unread> {
        Self::of(path.to_owned(), |is_wanted| tree.log(path, is_wanted))
    }

    pub(super) fn read_file(file: &Path) -> Result<Self, Unread> {
        let path = Legible(file.as_os_str().as_encoded_bytes()).to_string();
        Self::of(path, |is_wanted| log_of(file, is_wanted))
    }

    fn of(
        path: String,
        read: impl FnOnce(&dyn Fn(&str) -> bool) -> Result<LogText, Unread>,
    ) -> Result<Self, Unread> {
        let LogText { lines, lines_read, lines_left_out } = read(&is_wanted)?;
        let index = LogIndex::of(&lines);
        Ok(Self { path, lines_read, lines_left_out, lines, index })
    }

    fn line(&self, at: usize) -> LogLine<'_> {
        self.index.line(at, self.raw(at))
    }

    fn raw(&self, at: usize) -> &str {
        self.lines.get(at).map_or("", String::as_str)
    }

    /// The log with sessions of devices and failed commands.
    pub(crate) fn history(&self) -> History<'_> {
        History::of(&self.lines)
    }

    /// Whether lines are about USB, and not one could be taken apart.
    pub(crate) fn is_unreadable(&self, history: &History<'_>) -> bool {
        let is_known = |source: &str| KNOWN_SOURCES.iter().any(|known| source.starts_with(known));
        let names_usb = |line: &String| ["usb ", "uas"].iter().any(|word| line.contains(word));
        history.sessions.is_empty()
            && history.buses.is_empty()
            && self.lines.iter().any(names_usb)
            && !history.entries.iter().any(|entry| is_known(entry.line.source))
    }

    /// Whether it says nothing about USB at all: a machine with a drive has such lines from its start on.
    pub fn is_silent(&self) -> bool {
        (0..self.lines.len()).all(|at| Turn::of(self.line(at)).is_some())
    }

    /// The last line about a device or its hub's port that says `words` first, since the device was plugged in.
    pub fn last(&self, device: &UsbDevice, words: &str) -> Option<&str> {
        let sources = of_port(device);
        let lines = sources.iter().flat_map(|source| self.index.of_source(source)).copied();
        self.last_of(device, lines.filter(|at| self.line(*at).begins(&[words])))
    }

    /// The last line about a driver at an interface of a device, since the device was plugged in.
    pub fn last_of_driver(&self, device: &UsbDevice, driver: &str) -> Option<&str> {
        let start = format!("{driver} {}", device.port);
        let lines = self.index.of_sources(&start).chain(self.index.of_source(driver).iter().copied());
        let is_meant = |at: &usize| {
            let interface = self.line(*at).interface_of(driver);
            interface.and_then(|interface| interface.split(':').next()) == Some(device.port.as_str())
        };
        self.last_of(device, lines.filter(is_meant))
    }

    /// The last of some lines since the device was plugged in.
    fn last_of(&self, device: &UsbDevice, lines: impl Iterator<Item = usize>) -> Option<&str> {
        let last = lines.max()?;
        (last >= Since::find(self, device).plugged).then(|| self.raw(last))
    }

    /// Whether it has the line of the device being plugged in, so that lines about others at its port are left out.
    pub fn has_plug(&self, device: &UsbDevice) -> bool {
        Since::find(self, device).is_known
    }

    /// Counts the errors at the port of a device, and those with streams at a controller whose streams it uses.
    pub fn errors(&self, device: &UsbDevice, streams_of: Option<&Controller>) -> PortErrors {
        let mut errors = PortErrors::default();
        let mut examples: [Option<&str>; 8] = [None; 8];
        let since = Since::find(self, device);
        let (port, units) = (of_port(device), of_units(device));
        let mut sleep = Sleep::Awake;
        let lines = self.lines_that_may_count(device, streams_of, port.iter().chain(&units));
        for at in lines.into_iter().filter(|at| *at >= since.first) {
            let (raw, line) = (self.raw(at), self.line(at));
            if let Some(turn) = Turn::of(line) {
                sleep = sleep.after(turn);
                continue;
            }
            let is_by = |sources: &[String]| sources.iter().any(|source| line.source == source);
            let is_of_streams = streams_of.is_some_and(|controller| is_unknown_stream(line, controller));
            let is_of_disk = is_by(&units) || is_in_error(line, device);
            if !is_by(&port) && !(at >= since.plugged && (is_of_streams || is_of_disk)) {
                continue;
            }
            let kind = if is_of_streams { Some(Kind::Stream) } else { Kind::of(line) };
            let ends_a_sleep = sleep != Sleep::Awake && matches!(kind, Some(Kind::Reset));
            sleep = sleep.after_a_line(ends_a_sleep);
            let kind = kind.filter(|_| !ends_a_sleep);
            if matches!(kind, Some(Kind::Reset)) {
                errors.reset_lines.push(at);
            }
            let (count, example) = match kind {
                Some(Kind::Reset) => (&mut errors.resets, 0),
                Some(Kind::Disconnect) => (&mut errors.disconnects, 1),
                Some(Kind::Abort) => (&mut errors.aborts, 2),
                Some(Kind::Enumeration) => (&mut errors.enumeration_errors, 3),
                Some(Kind::Power) => (&mut errors.power, 4),
                Some(Kind::Link) => (&mut errors.link_losses, 5),
                Some(Kind::Blocks) => (&mut errors.io_errors, 6),
                Some(Kind::Stream) => (&mut errors.unknown_streams, 7),
                None => continue,
            };
            *count += 1;
            if let Some(example) = examples.get_mut(example) {
                *example = Some(raw);
            }
        }
        errors.examples = examples.into_iter().flatten().map(str::to_owned).collect();
        errors
    }

    /// Lines of some sources, of the disks of a device and of its controller, and those about sleep, in order.
    fn lines_that_may_count<'a>(
        &self,
        device: &UsbDevice,
        streams_of: Option<&Controller>,
        sources: impl Iterator<Item = &'a String>,
    ) -> BTreeSet<usize> {
        let of_sources = sources.flat_map(|source| self.index.of_source(source)).copied();
        let nodes = device.disks().filter_map(|disk| disk.node.as_deref());
        let of_disks = nodes.flat_map(|node| self.index.of_disk_in_error(node)).copied();
        let of_controller = streams_of.into_iter().flat_map(|one| self.index.of_name(&one.name));
        let of_sleep = self.index.of_source(SLEEP_SOURCE).iter().copied();
        of_sources.chain(of_disks).chain(of_controller).chain(of_sleep).collect()
    }
}

/// Whether a line is kept: about USB, without serial numbers, or about sleep of the machine.
fn is_wanted(line: &str) -> bool {
    let is_about_usb =
        is_about_drives(line) && !["SerialNumber:", "ommand line:"].iter().any(|word| line.contains(word));
    if !is_about_usb && !line.contains("PM: ") {
        return false;
    }
    let line = LogLine::of(line);
    (is_about_usb && !line.is_name()) || Turn::of(line).is_some()
}

/// Sources of lines about USB.
const KNOWN_SOURCES: [&str; 8] = ["usb ", "usb-storage", "uas", "hub ", "xhci", "ehci", "usbcore", "sd "];

/// Lists the sources of lines about the port of a device, whatever is plugged in there.
pub(crate) fn of_port(device: &UsbDevice) -> Vec<String> {
    // A port has another half of the other speed in the same socket, which a bad cable shows at as well.
    let halves = device.plugged.iter().flat_map(|port| {
        let own = port.path.rsplit('/').next();
        own.into_iter().chain(port.peer.as_deref()).map(|half| format!("usb {half}"))
    });
    [format!("usb {}", device.port)].into_iter().chain(halves).collect()
}

/// Lists the sources of lines about what its SCSI host has now: addresses that others may have had before.
fn of_units(device: &UsbDevice) -> Vec<String> {
    // `sd 6:0:0:0: [sda] … uas_eh_abort_handler` names the unit alone, `scsi host6: …` its SCSI host.
    let units = device.disks().flat_map(|disk| {
        let host = disk.address.split(':').next().unwrap_or_default();
        [format!("sd {}", disk.address), format!("scsi {}", disk.address), format!("scsi host{host}")]
    });
    units.collect()
}

/// Whether a block of one of its disks could not be read or written. The block layer names the disk alone, by the name that it
/// has now.
fn is_in_error(line: LogLine<'_>, device: &UsbDevice) -> bool {
    line.disk_in_error().is_some_and(|name| device.disks().any(|disk| disk.node.as_deref() == Some(name)))
}

/// Whether xhci-ring.c says, with a slot and an endpoint, that it has no ring for the stream of an event; versions put their
/// own words before it.
fn is_unknown_stream(line: LogLine<'_>, controller: &Controller) -> bool {
    let of_controller = line.source.rsplit_once(' ').is_some_and(|(_, name)| name == controller.name);
    of_controller
        && ["for unknown stream ring", "incorrect stream ring"].iter().any(|words| line.text.contains(words))
}

/// Whether a line may be about a USB drive, its port, its controller or its power.
pub(crate) fn is_about_drives(line: &str) -> bool {
    words::DRIVES.is_in(line.as_bytes())
}

/// Whether a line of a log may be needed: for its drives, or for what the machine is and when it slept.
pub(crate) fn is_needed_of_log(line: &[u8]) -> bool {
    words::NEEDED.is_in(line)
}

enum Kind {
    Reset,
    Disconnect,
    Abort,
    Enumeration,
    Power,
    Link,
    Blocks,
    Stream,
}

impl Kind {
    /// The kind of a line about a port, a unit or a disk.
    fn of(line: LogLine<'_>) -> Option<Self> {
        let command = line.of_command();
        if line.begins(&["over-current", "not enough power"]) || is_power_complaint(line.text) {
            Some(Self::Power)
        } else if line.begins(&["reset "]) && line.text.contains(" USB device") {
            Some(Self::Reset)
        } else if line.begins(&["USB disconnect"]) {
            Some(Self::Disconnect)
        } else if ABORTS.iter().any(|words| command.starts_with(words)) {
            Some(Self::Abort)
        } else if line.begins(&ENUMERATION_ERRORS) {
            Some(Self::Enumeration)
        } else if line.begins(&LINK_LOSSES) {
            Some(Self::Link)
        } else if line.disk_in_error().is_some() && !is_refused_discard(line) {
            Some(Self::Blocks)
        } else {
            None
        }
    }
}

/// Whether a DISCARD or WRITE ZEROES failed: the drive refused to free blocks, and none are lost.
pub(crate) fn is_refused_discard(line: LogLine<'_>) -> bool {
    line.disk_in_error().is_some()
        && ["(DISCARD)", "(WRITE_ZEROES)"].iter().any(|operation| line.text.contains(operation))
}

/// Whether there is less power than a configuration wants: it was not chosen by the kernel, or set by hand.
fn is_power_complaint(text: &str) -> bool {
    let of = |start: &str, end: &str| text.starts_with(start) && text.contains(end);
    of("rejected ", "insufficient available bus power") || of("new config #", "exceeds power limit")
}

const ABORTS: [&str; 5] = [
    "uas_eh_abort_handler",
    "uas_eh_device_reset_handler FAILED",
    "cmd cmplt err",
    "data cmplt err",
    "uas_zap_pending",
];

const ENUMERATION_ERRORS: [&str; 5] = [
    "device descriptor read",
    "device not accepting address",
    "Device not responding to setup address",
    "unable to enumerate",
    "can't set config",
];

const LINK_LOSSES: [&str; 4] =
    ["disabled by hub (EMI?)", "Cannot enable.", "cannot enable.", "cannot reset (err"];

/// From which of its lines on a log is about a device that is there now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Since {
    /// The first after those of another drive at the port: one that falls off the bus and comes back is the same drive.
    first: usize,
    /// The line of the last time that it was plugged in, or came back.
    plugged: usize,
    /// Whether the log has that one. If not, all lines are taken for its own.
    is_known: bool,
}

impl Since {
    fn find(log: &KernelLog, device: &UsbDevice) -> Self {
        let port = format!("usb {}", device.port);
        let own: Vec<_> = log.index.of_source(&port).iter().map(|at| (*at, log.line(*at))).collect();
        let plugged = own.iter().rfind(|(_, line)| line.new_number() == Some(device.number));
        let Some(&(plugged, _)) = plugged else { return Self { first: 0, plugged: 0, is_known: false } };
        // Before it, what was there last and is known to be another drive, or not known to be this one.
        let mut first = 0;
        let mut plug = Some(Plug::Unknown);
        for (at, line) in own.into_iter().take_while(|(at, _)| *at < plugged) {
            if line.new_number().is_some() {
                // Without a disconnect it was never recognised: one attempt of several, or another drive.
                if plug == Some(Plug::Other) {
                    first = at;
                }
                plug = Some(Plug::Unknown);
            } else if let Some(ids) = line.text.strip_prefix("New USB device found, ") {
                plug = Some(Plug::of(ids, device));
            } else if line.begins(&["USB disconnect"]) {
                if plug.is_some_and(|plug| plug != Plug::Same) {
                    first = at + 1;
                }
                plug = None;
            }
        }
        if plug == Some(Plug::Other) {
            first = plugged;
        }
        Self { first, plugged, is_known: true }
    }
}

/// A device that was plugged in once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plug {
    /// A drive with these ids.
    Same,
    /// One with others.
    Other,
    /// Its ids are not known.
    Unknown,
}

impl Plug {
    /// By what the kernel announces: `idVendor=152d, idProduct=0578, bcdDevice= 1.00`.
    fn of(announced: &str, device: &UsbDevice) -> Self {
        let own = format!("idVendor={:04x}, idProduct={:04x}", device.id.vendor, device.id.product);
        if announced.starts_with(&own) { Self::Same } else { Self::Other }
    }
}

/// The source of lines about sleep of the machine.
const SLEEP_SOURCE: &str = "PM";

/// A message of kernel/power about a suspend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Entry,
    Exit,
}

impl Turn {
    fn of(line: LogLine<'_>) -> Option<Self> {
        let words = Some(line.text).filter(|_| line.source == SLEEP_SOURCE)?;
        let words = words.strip_prefix("hibernation: ").unwrap_or(words);
        let is = |end: &str| {
            ["suspend ", "hibernation "]
                .iter()
                .any(|kind| words.strip_prefix(kind).is_some_and(|rest| rest.starts_with(end)))
        };
        if is("entry") { Some(Self::Entry) } else { is("exit").then_some(Self::Exit) }
    }
}

/// Whether the machine sleeps: a port is reset when it wakes up, before the end of the suspend is logged or right after that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sleep {
    Awake,
    Asleep,
    /// The port was reset already.
    Waking,
    /// The suspend is over, and there was no line about the device since.
    Woken,
}

impl Sleep {
    const fn after(self, turn: Turn) -> Self {
        match (turn, self) {
            (Turn::Entry, _) => Self::Asleep,
            (Turn::Exit, Self::Waking) => Self::Awake,
            (Turn::Exit, _) => Self::Woken,
        }
    }

    /// After a line about the device.
    const fn after_a_line(self, is_its_reset: bool) -> Self {
        match self {
            Self::Asleep if is_its_reset => Self::Waking,
            Self::Asleep | Self::Waking => self,
            Self::Awake | Self::Woken => Self::Awake,
        }
    }
}
