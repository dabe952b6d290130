//! The kernel's log as a history: which device was at which port from when to when, and which line is about which.
//!
//! A `Session` is one attachment of a device to a port, from `new … USB device number N` to `USB disconnect`. Lines of a
//! port, an interface, a SCSI host, a unit or a disk belong to the session that had it at that line. Linux does not name the
//! port in `scsi host0: uas`; the host then belongs to the last session that was recognised and has none.
//!
//! Always true: what a device is called decides nothing (see `LogLine`); a line belongs to one session at most; memory
//! is bounded by the lines that the log keeps. Left out: other classes than mass storage.

mod command;
mod extent;
mod hosts;
mod line;
mod malformed;
mod portless;
mod session;
mod stamp;

pub use command::SenseKey;
pub(crate) use command::{FailedCommand, FailedCommands, Loss};
pub(crate) use extent::{Extent, ExtentKind};
pub(crate) use line::LogLine;
pub(crate) use malformed::MalformedAnswer;
pub(crate) use session::{Session, Sessions};
pub(crate) use stamp::{seconds, since_boot};

use quirks::DeviceId;

/// A line of the log with what it is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<'a> {
    /// Its place in the log.
    pub(crate) index: usize,
    /// The whole line.
    pub(crate) raw: &'a str,
    /// Its source and text.
    pub(crate) line: LogLine<'a>,
    /// Its time.
    pub(crate) at: Option<f64>,
    /// The SCSI host that prints it.
    pub(crate) host: Option<u32>,
    /// The session that it is about.
    pub(crate) session: Option<usize>,
}

/// A log, taken apart.
#[derive(Debug, Default)]
pub(crate) struct History<'a> {
    pub(crate) entries: Vec<Entry<'a>>,
    pub(crate) sessions: Sessions,
    /// Buses and the controllers that registered them.
    pub(crate) buses: Vec<(u16, String)>,
    /// Commands that failed, each with its session, in the order of their first lines.
    pub(crate) commands: Vec<(Option<usize>, FailedCommand)>,
    /// Lines that controllers of USB print.
    pub(crate) of_controllers: Vec<usize>,
    /// Lines about a port that its hub prints.
    pub(crate) of_hub_ports: Vec<usize>,
    /// Lines about what is larger than the disk or partition that contains it.
    pub(crate) of_extents: Vec<usize>,
    /// Lines without a session, then those of each session.
    by_session: Vec<usize>,
    /// SCSI hosts of `uas` that may be those of several sessions, [`AMBIGUOUS_MAX`] of them.
    ambiguous: Vec<AmbiguousHost>,
}

/// SCSI hosts of which the possible ports are kept: drives that are probed at once.
const AMBIGUOUS_MAX: usize = 256;

/// A SCSI host, and the sessions that waited for one when it was made.
#[derive(Debug)]
struct AmbiguousHost {
    host: u32,
    sessions: Vec<usize>,
}

impl<'a> History<'a> {
    /// Takes the lines of a log apart.
    pub(crate) fn of<L: AsRef<str> + ?Sized + 'a>(lines: impl IntoIterator<Item = &'a L>) -> Self {
        let mut history = Self::default();
        let mut commands = FailedCommands::default();
        let mut split = None;
        for (index, raw) in lines.into_iter().map(AsRef::as_ref).enumerate() {
            let line =
                split.and_then(|unit| LogLine::continued(raw, unit)).unwrap_or_else(|| LogLine::of(raw));
            split = line.is_split().then_some(line.source);
            let session = history.session_of(index, raw, line);
            let host = host_of(line.source);
            history.entries.push(Entry { index, raw, line, at: seconds(raw), host, session });
            if is_of_unit(line.source) {
                commands.take(index, line);
            }
        }
        history.attribute_hosts();
        portless::add(&mut history);
        history.mark();
        let sessions = commands.all.iter().map(|command| {
            let first = command.lines.first().and_then(|line| history.entries.get(*line));
            first.and_then(|entry| entry.session)
        });
        history.commands = sessions.collect::<Vec<_>>().into_iter().zip(commands.all).collect();
        history
    }

    /// Sorts lines by what they are about, so that no drive is looked for in all of them.
    fn mark(&mut self) {
        let of = |is_one: fn(&Entry<'_>) -> bool, entries: &[Entry<'_>]| -> Vec<usize> {
            entries.iter().filter(|entry| is_one(entry)).map(|entry| entry.index).collect()
        };
        self.of_controllers = of(|entry| is_of_controller(entry.line.source), &self.entries);
        self.of_hub_ports = of(|entry| port_of_hub_line(entry.line.source).is_some(), &self.entries);
        self.of_extents = of(|entry| Extent::of(entry.line).is_some(), &self.entries);
        self.by_session = (0..self.entries.len()).collect();
        let Self { by_session, entries, .. } = self;
        by_session.sort_by_key(|at| entries.get(*at).and_then(|entry| entry.session));
    }

    /// The lines of a session, or those of none.
    pub(crate) fn lines_of(&self, session: Option<usize>) -> &[usize] {
        let of = |at: &usize| self.entries.get(*at).and_then(|entry| entry.session);
        let from = self.by_session.partition_point(|at| of(at) < session);
        let to = self.by_session.partition_point(|at| of(at) <= session);
        self.by_session.get(from..to).unwrap_or_default()
    }

    /// The failed command whose first line that is.
    pub(crate) fn command_at(&self, line: usize) -> Option<&FailedCommand> {
        let first = |(_, command): &(Option<usize>, FailedCommand)| command.lines.first().copied();
        let at = self.commands.binary_search_by_key(&Some(line), first).ok()?;
        self.commands.get(at).map(|(_, command)| command)
    }

    /// The entries at some places.
    pub(crate) fn entries_at(&self, lines: &[usize]) -> impl Iterator<Item = (usize, &Entry<'a>)> {
        lines.iter().filter_map(|line| Some((*line, self.entries.get(*line)?)))
    }

    /// The only USB drive that is there, for ZFS, which may name no disk.
    fn only_drive(&self) -> Option<usize> {
        let is_drive = |session: &Session| session.driver.is_some() && !session.is_ended();
        let mut drives = self.sessions.iter().enumerate().filter(|(_, session)| is_drive(session));
        drives.next().map(|(at, _)| at).filter(|_| drives.next().is_none())
    }

    /// The drive that ZFS names: by its disk, or `only`.
    fn of_vdev(&self, vdev: &str, only: Option<usize>) -> Option<usize> {
        let name = vdev.strip_prefix("/dev/")?;
        if name.contains("/usb-") {
            return only;
        }
        let disk = name.trim_end_matches(|sign: char| sign.is_ascii_digit());
        self.sessions.last_with_disk(disk)
    }

    /// The sessions of a port, in order.
    pub(crate) fn at_port(&self, port: &str) -> impl Iterator<Item = (usize, &Session)> {
        self.sessions.at_port(port).iter().filter_map(|at| Some((*at, self.sessions.get(*at)?)))
    }

    /// The devices that a port had one after the other, each with its sessions. One that fails to come back has sessions without
    /// ids, which are its own; two of the same kind count as one, since the log is kept without names.
    pub(crate) fn devices_at(&self, port: &str) -> Vec<Vec<usize>> {
        let mut devices: Vec<Vec<usize>> = Vec::new();
        let mut last: Option<DeviceId> = None;
        for (at, session) in self.at_port(port) {
            let is_other = last.zip(session.id).is_some_and(|(last, own)| last != own);
            match devices.last_mut().filter(|_| !is_other) {
                Some(device) => device.push(at),
                None => devices.push(vec![at]),
            }
            last = session.id.or(last);
        }
        devices
    }

    /// The controller of a bus, by its last registration.
    pub(crate) fn controller_of(&self, bus: u16) -> Option<&str> {
        self.buses.iter().rfind(|(number, _)| *number == bus).map(|(_, name)| name.as_str())
    }

    /// Takes a line into the sessions, and returns the one that it is about.
    fn session_of(&mut self, index: usize, raw: &str, line: LogLine<'_>) -> Option<usize> {
        self.note_bus(line);
        if let Some(port) = port_of(line.source) {
            return self.of_port(index, raw, line, port);
        }
        if let Some(port) = port_of_hub_line(line.source) {
            return self.of_port(index, raw, line, &port);
        }
        if let Some(port) = interface_port(line) {
            let at = self.sessions.last_at(port).unwrap_or_else(|| self.begin(index, raw, port));
            if let Some(session) = self.sessions.get_mut(at) {
                session::note_interface(session, line);
            }
            return Some(at);
        }
        if let Some(port) = line.source.strip_prefix("hub ").and_then(|name| name.split(':').next()) {
            let ports = line
                .text
                .strip_suffix(" ports detected")
                .or_else(|| line.text.strip_suffix(" port detected"));
            let at = self.sessions.last_at(port)?;
            if let (Some(ports), Some(hub)) =
                (ports.and_then(|ports| ports.parse().ok()), self.sessions.get_mut(at))
            {
                hub.hub_ports = ports;
            }
            return Some(at);
        }
        if let Some(host) = host_of(line.source) {
            return self.of_host(index, raw, host, line);
        }
        let disk = line.disk_in_error().or_else(|| session::disk_of_file_system(line))?;
        self.sessions.last_with_disk(disk)
    }

    fn of_port(&mut self, index: usize, raw: &str, line: LogLine<'_>, port: &str) -> Option<usize> {
        let last = self.sessions.last_at(port);
        // Some syslogs have every line twice.
        let is_repeated = |number: u16| {
            last.and_then(|at| self.sessions.get(at))
                .is_some_and(|one| one.number == Some(number) && !one.is_ended())
        };
        if let Some(number) = line.new_number().filter(|number| !is_repeated(*number)) {
            let at = self.begin(index, raw, port);
            if let Some(session) = self.sessions.get_mut(at) {
                session::note_new(session, number, line.text);
            }
            return Some(at);
        }
        let session = match last {
            Some(session) if !self.sessions[session].is_ended() => session,
            // Lines of the hub's port after a disconnect are about what was there.
            Some(session) if line.source.contains("-port") => session,
            _ if session::says_something(line) => self.begin(index, raw, port),
            other => return other,
        };
        self.sessions.note(session, index, raw, line);
        Some(session)
    }

    fn of_host(&mut self, index: usize, raw: &str, host: u32, line: LogLine<'_>) -> Option<usize> {
        if let Some(driver) = driver_of_host(line) {
            let port = line.text.split(' ').nth(1).and_then(|name| name.split(':').next());
            let port = port.filter(|port| is_port(port));
            let named =
                port.map(|port| self.sessions.last_at(port).unwrap_or_else(|| self.begin(index, raw, port)));
            let at = named.or_else(|| self.waiting_for(host, driver))?;
            self.sessions.add_host(at, host);
            if let Some(session) = self.sessions.get_mut(at) {
                session.driver = Some(driver);
            }
            return Some(at);
        }
        let at = self.sessions.last_with_host(host)?;
        self.sessions.note_unit(at, line);
        Some(at)
    }

    fn begin(&mut self, index: usize, raw: &str, port: &str) -> usize {
        self.sessions.add(Session::new(port, index, seconds(raw)))
    }

    fn note_bus(&mut self, line: LogLine<'_>) {
        let controller = || line.source.rsplit_once(' ').map(|(_, name)| name.to_owned());
        let number = |text: &str| text.split(|sign: char| !sign.is_ascii_digit()).next()?.parse().ok();
        let assigned = line.text.split_once("assigned bus number ");
        if let (Some(bus), Some(name)) = (assigned.and_then(|(_, text)| number(text)), controller()) {
            self.buses.push((bus, name));
        }
        // A root hub has its controller's name as its serial number.
        let root = line.source.strip_prefix("usb usb").and_then(|bus| bus.parse().ok());
        if let (Some(bus), Some(name)) = (root, line.text.strip_prefix("SerialNumber: ")) {
            self.buses.push((bus, name.trim().to_owned()));
        }
    }
}

/// The port that a line of the USB core is about: `usb 2-1`, `usb usb2-port1`, `usb 2-1-port3`, `hub 2-0:1.0` has none.
fn port_of(source: &str) -> Option<&str> {
    source.strip_prefix("usb ").filter(|name| is_port(name))
}

fn is_port(name: &str) -> bool {
    name.split_once('-').is_some_and(|(bus, ports)| {
        bus.bytes().all(|digit| digit.is_ascii_digit())
            && !bus.is_empty()
            && ports.bytes().all(|digit| digit.is_ascii_digit() || digit == b'.')
    })
}

/// The port below a hub that a line of that hub's port is about: `usb usb2-port1` is 2-1, `usb 4-2-port1` is 4-2.1.
pub(crate) fn port_of_hub_line(source: &str) -> Option<String> {
    let name = source.strip_prefix("usb ")?;
    let (hub, port) = name.split_once("-port")?;
    port.parse::<u32>().ok()?;
    match hub.strip_prefix("usb") {
        Some(bus) => Some(format!("{bus}-{port}")),
        None => Some(format!("{hub}.{port}")),
    }
}

/// The port of the interface that `uas` or `usb-storage` prints a line about.
fn interface_port<'a>(line: LogLine<'a>) -> Option<&'a str> {
    let interface = line.interface_of("uas").or_else(|| line.interface_of("usb-storage"))?;
    interface.split(':').next().filter(|port| port.contains('-'))
}

/// The SCSI host of `scsi host0`, `scsi0`, `scsi 0:0:0:0`, `sd 0:0:0:0`.
pub(crate) fn host_of(source: &str) -> Option<u32> {
    let number = |text: &str| text.parse().ok();
    if let Some(rest) = source.strip_prefix("scsi host").or_else(|| source.strip_prefix("scsi")) {
        let rest = rest.trim();
        return rest.split(':').next().and_then(number);
    }
    is_of_unit(source).then(|| source.split_once(' ')?.1.split(':').next().and_then(number)).flatten()
}

fn is_of_unit(source: &str) -> bool {
    ["sd ", "sr ", "scsi ", "sg "].iter().any(|driver| source.starts_with(driver))
}

/// The driver of a new SCSI host: `uas`, or `usb-storage 2-1:1.0`.
fn driver_of_host(line: LogLine<'_>) -> Option<&'static str> {
    if is_of_unit(line.source) && !line.source.starts_with("scsi host") {
        return None;
    }
    match line.text.split(' ').next()? {
        "uas" => Some("uas"),
        "usb-storage" => Some("usb-storage"),
        _ => None,
    }
}

/// Whether a source is a host controller of USB with its driver, such as `xhci_hcd 0000:00:14.0`.
pub(crate) fn is_of_controller(source: &str) -> bool {
    let driver = source.rsplit_once(' ').map(|(driver, _)| driver);
    driver.is_some_and(|driver| {
        ["hcd", "xhci", "ehci", "ohci", "uhci", "dwc"].iter().any(|part| driver.contains(part))
    })
}

/// The ids in `New USB device found, idVendor=152d, idProduct=0578`.
pub(crate) fn announced_id(text: &str) -> Option<DeviceId> {
    let of = |name: &str| {
        let digits = text.split_once(name)?.1.get(..4)?;
        u16::from_str_radix(digits, 16).ok()
    };
    Some(DeviceId::new(of("idVendor=")?, of("idProduct=")?))
}

#[cfg(test)]
mod tests;
