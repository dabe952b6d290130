//! Causes of failures of a drive that the kernel's log shows, most likely first.
//!
//! A cause is named only where lines attributed to this drive, its port, its controller or the board's supply show it: a
//! CDB and sense data decide before counts of resets do (`sd`, `scsi_error.c`, `uas.c`, `hub.c`, `xhci-ring.c` of Linux).
//! Order is by how far a cause explains the others: a dead controller explains aborted commands, never the reverse.
//! Always true: a cause has at least one line as evidence. Left out: what the log does not have.

mod command;
mod controller;
mod media;
mod port;
mod power;

pub(super) use controller::{is_controller_death, is_removed, is_ring_error, is_stream_event};
pub use port::errno_meaning;
pub(super) use port::hub_in_error;
pub(super) use power::is_sag;

use super::advice::Advice;
use super::check::CheckKind;
use super::evidence::{Evidence, Reading};
use crate::inventory::{Inventory, UsbDevice};
use crate::log::{Entry, FailedCommand, History, Session};
use quirks::command::command_name;

/// A kind of trouble; the first of several explains most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CauseKind {
    /// The host controller died.
    ControllerDied,
    /// A port drew too much current.
    OverCurrent,
    /// The board's supply was too low right before a failure of the drive.
    Undervoltage,
    /// The drive reports MEDIUM ERROR or HARDWARE ERROR.
    DriveFailing,
    /// A poll for SMART or power mode was aborted first.
    Poll,
    /// UNMAP or its like was aborted.
    Trim,
    /// Another command than a read or write was aborted first.
    Command,
    /// The device gave an answer that no disk may give.
    MalformedAnswer,
    /// A request, the partition table or the file system goes beyond the end of the disk.
    Capacity,
    /// The drive answered a read, a write, a flush or a TRIM with another error.
    Refused,
    /// `uas` refused the interface with an error.
    ProbeFailed,
    /// The controller reported events of streams that its driver did not know.
    StreamEvents,
    /// The hub that it is behind does not answer.
    Hub,
    /// The drive disconnects and comes back again and again.
    Flapping,
    /// The device does not answer while it is enumerated.
    Enumeration,
    /// The hub disabled the port, or could not enable it.
    Link,
    /// Link power management failed.
    LinkPower,
    /// A driver has it, and no disk appeared: a command that identifies it was lost.
    NoDisk,
    /// Reads and writes were aborted: the transport.
    Transport,
    /// A file system reports errors that follow from a failure which the log does not show.
    FileSystem,
    /// The board's supply was too low, and no failure followed.
    UndervoltageAlone,
    /// It is connected at a lower speed than before.
    Slower,
    /// The drive refused TRIM, which costs nothing.
    TrimRefused,
    /// A slot without a medium, which is no fault.
    NoMedium,
}

impl CauseKind {
    /// Its name for programs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ControllerDied => "controller-died",
            Self::OverCurrent => "over-current",
            Self::Undervoltage => "undervoltage",
            Self::DriveFailing => "drive-failing",
            Self::Poll => "poll",
            Self::Trim => "trim",
            Self::Command => "command",
            Self::MalformedAnswer => "malformed-answer",
            Self::Capacity => "capacity",
            Self::Refused => "refused",
            Self::ProbeFailed => "probe-failed",
            Self::StreamEvents => "stream-events",
            Self::Hub => "hub",
            Self::Flapping => "flapping",
            Self::Enumeration => "enumeration",
            Self::Link => "link",
            Self::LinkPower => "link-power",
            Self::NoDisk => "no-disk",
            Self::Transport => "transport",
            Self::FileSystem => "file-system",
            Self::UndervoltageAlone => "undervoltage-alone",
            Self::Slower => "slower",
            Self::TrimRefused => "trim-refused",
            Self::NoMedium => "no-medium",
        }
    }

    /// Whether it may be the result of missing power or a dead controller.
    const fn is_symptom(self) -> bool {
        matches!(
            self,
            Self::StreamEvents
                | Self::Hub
                | Self::Flapping
                | Self::Enumeration
                | Self::Link
                | Self::LinkPower
                | Self::NoDisk
                | Self::Transport
        )
    }

    /// Whether settings that only win something should wait until it is dealt with.
    pub const fn is_serious(self) -> bool {
        !matches!(
            self,
            Self::Enumeration
                | Self::LinkPower
                | Self::UndervoltageAlone
                | Self::Slower
                | Self::TrimRefused
                | Self::NoMedium
        )
    }

    /// Whether a drive may be gone because of it.
    pub(super) const fn ends_a_drive(self) -> bool {
        !matches!(self, Self::Capacity | Self::Slower | Self::TrimRefused | Self::NoMedium)
    }

    /// The check that reports it.
    pub const fn check(self) -> CheckKind {
        match self {
            Self::OverCurrent | Self::Undervoltage | Self::UndervoltageAlone => CheckKind::Power,
            Self::DriveFailing | Self::MalformedAnswer | Self::Capacity | Self::Refused | Self::NoMedium => {
                CheckKind::Media
            }
            Self::Poll => CheckKind::Smart,
            Self::Trim | Self::TrimRefused => CheckKind::Trim,
            Self::LinkPower | Self::Slower => CheckKind::Link,
            _ => CheckKind::Resets,
        }
    }
}

/// Trouble that lines of the log show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// Its kind.
    pub kind: CauseKind,
    /// The event, in a sentence without a full stop.
    pub because: String,
    /// The lines.
    pub readings: Vec<Reading>,
    /// Advice, most likely and least harmful first.
    pub advice: Vec<Advice>,
}

/// Lines of evidence that a cause shows.
const READINGS_MAX: usize = 4;

/// A drive in a log: its sessions, and the lines about them.
pub(super) struct Scene<'a> {
    pub(super) evidence: &'a Evidence<'a>,
    pub(super) history: &'a History<'a>,
    /// Sessions of this drive, by index.
    pub(super) sessions: Vec<usize>,
    /// The lines about it, in order.
    own: Vec<usize>,
    /// The controller of its bus.
    pub(super) controller: Option<String>,
    path: &'a str,
}

impl<'a> Scene<'a> {
    pub(super) fn of(evidence: &'a Evidence<'a>, history: &'a History<'a>, path: &'a str) -> Self {
        let sessions = sessions_of(history, evidence.inventory, evidence.device);
        Self::of_sessions(evidence, history, path, sessions)
    }

    /// A drive that had these sessions.
    pub(super) fn of_sessions(
        evidence: &'a Evidence<'a>,
        history: &'a History<'a>,
        path: &'a str,
        sessions: Vec<usize>,
    ) -> Self {
        let device = evidence.device;
        // A controller that no text names has a made-up name.
        let is_named = |name: &String| !name.starts_with(crate::text::UNNAMED_CONTROLLER);
        let controller = evidence.controller.map(|controller| controller.name.clone()).filter(is_named);
        let controller = controller.or_else(|| history.controller_of(device.bus).map(str::to_owned));
        let own = own_lines(device, history, &sessions);
        Self { evidence, history, sessions, own, controller, path }
    }

    fn cause(&self, kind: CauseKind, because: impl Into<String>, lines: &[usize]) -> Cause {
        let mut readings: Vec<Reading> = Vec::new();
        for reading in lines.iter().filter_map(|line| self.reading(*line)) {
            // Without times, lines repeat.
            if readings.len() < READINGS_MAX && !readings.contains(&reading) {
                readings.push(reading);
            }
        }
        Cause { kind, because: because.into(), readings, advice: Vec::new() }
    }

    fn reading(&self, line: usize) -> Option<Reading> {
        self.history.entries.get(line).map(|entry| Reading::new(self.path, entry.raw))
    }

    /// The node of its first disk that has one.
    fn node(&self) -> Option<&'a str> {
        self.evidence.device.disks().find_map(|disk| disk.node.as_deref())
    }

    /// Lines about this drive.
    fn own(&self) -> impl Iterator<Item = (usize, &Entry<'a>)> {
        self.history.entries_at(&self.own)
    }

    fn is_own(&self, entry: &Entry<'_>) -> bool {
        self.own.binary_search(&entry.index).is_ok()
    }

    /// Commands of this drive that failed.
    fn commands(&self) -> impl Iterator<Item = &FailedCommand> {
        let of_line = |line: &usize| self.history.command_at(*line);
        self.own.iter().filter_map(of_line)
    }

    /// The first line of the drive's first session.
    fn first(&self) -> usize {
        let first = self.sessions.first().and_then(|at| self.history.sessions.get(*at));
        first.filter(|one| one.is_from_start).map_or(0, |one| one.first)
    }

    /// The line that says that the drive did not come back after a reset.
    pub(super) fn failed_reset(&self) -> Option<Reading> {
        let is_failure = |(_, entry): &(usize, &Entry<'_>)| {
            let text = entry.line.text;
            text.starts_with("uas_eh_device_reset_handler FAILED") || text.starts_with("Device offlined")
        };
        self.own().find(is_failure).map(|(_, entry)| self.reading_of(entry))
    }

    /// Whether a command was given up after the drive had disconnected: never what went wrong first.
    fn is_after_end(&self, command: &FailedCommand) -> bool {
        self.is_line_after_end(command.lines.first().copied().unwrap_or_default())
    }

    /// Whether a line is about the drive after it had disconnected.
    fn is_line_after_end(&self, line: usize) -> bool {
        let session = self.history.entries.get(line).and_then(|entry| entry.session);
        let session = session.and_then(|at| self.history.sessions.get(at));
        session.and_then(|session| session.ended).is_some_and(|end| line > end)
    }

    /// Commands that the drive had not completed when it disconnected.
    pub(super) fn in_flight_at_end(&self) -> usize {
        self.commands().filter(|command| command.loss.is_some() && self.is_after_end(command)).count()
    }

    /// Resets of the drive.
    pub(super) fn resets(&self) -> usize {
        self.own().filter(|(_, entry)| entry.line.begins(&["reset "])).count()
    }

    /// Logical blocks of its disks and their bytes, by the log.
    fn capacities(&self) -> impl Iterator<Item = (u64, u32)> {
        let sessions = self.sessions.iter().filter_map(|at| self.history.sessions.get(*at));
        sessions.flat_map(|session| &session.units).filter_map(|unit| unit.capacity)
    }

    /// Whether one of its units became a disk.
    fn has_disk(&self) -> bool {
        let of_session = |session: &Session| session.units.iter().any(|unit| unit.node.is_some());
        self.evidence.device.disks().any(|disk| disk.node.is_some())
            || self.sessions.iter().filter_map(|at| self.history.sessions.get(*at)).any(of_session)
    }

    /// A line as evidence.
    pub(super) fn reading_of(&self, entry: &Entry<'_>) -> Reading {
        Reading::new(self.path, entry.raw)
    }

    /// Whether the drive is on `uas`, or was.
    fn is_on_uas(&self) -> bool {
        self.evidence.driver() == Some("uas")
            || self
                .sessions
                .iter()
                .filter_map(|at| self.history.sessions.get(*at))
                .any(|one| one.driver == Some("uas"))
    }
}

/// The name of a command, for a sentence.
fn name_of(command: &FailedCommand) -> String {
    if command.cdb.is_empty() { "a command".to_owned() } else { command_name(&command.cdb) }
}

/// The lines of some sessions, and of none those about what the device's disks are called and addressed by now.
fn own_lines(device: &UsbDevice, history: &History<'_>, sessions: &[usize]) -> Vec<usize> {
    let of_sessions = sessions.iter().flat_map(|session| history.lines_of(Some(*session)));
    let mut own: Vec<usize> = of_sessions.copied().collect();
    // From which line on the drive is known to be the one that is there now.
    let plugged = sessions.iter().rev().filter_map(|at| history.sessions.get(*at));
    let plugged = plugged.filter(|session| session.is_from_start).map(|session| session.first).next();
    let hosts: Vec<u32> =
        device.disks().filter_map(|disk| disk.address.split(':').next()?.parse().ok()).collect();
    let nodes: Vec<&str> = device.disks().filter_map(|disk| disk.node.as_deref()).collect();
    let is_named = |entry: &Entry<'_>| {
        entry.host.is_some_and(|host| hosts.contains(&host))
            || entry.line.disk_in_error().is_some_and(|disk| nodes.contains(&disk))
    };
    if !hosts.is_empty() || !nodes.is_empty() {
        let others = history.entries_at(history.lines_of(None));
        let others = others.skip_while(|(index, _)| *index < plugged.unwrap_or(0));
        own.extend(others.filter(|(_, entry)| is_named(entry)).map(|(index, _)| index));
    }
    own.sort_unstable();
    own.dedup();
    own
}

/// The sessions of a device: those of its port, without those of another device that was there before. Where the log names no
/// port, a disk of that name, or the only SCSI host of `uas` for the only drive on UAS.
pub(super) fn sessions_of(history: &History<'_>, inventory: &Inventory, device: &UsbDevice) -> Vec<usize> {
    if history.at_port(&device.port).next().is_none()
        && let Some(at) = without_port(history, inventory, device)
    {
        return vec![at];
    }
    let mut own = Vec::new();
    for sessions in history.devices_at(&device.port) {
        let id = sessions.iter().find_map(|at| history.sessions.get(*at)?.id);
        match id {
            Some(id) if id == device.id => own = sessions,
            Some(_) => own.clear(),
            None => own.extend(sessions),
        }
    }
    own
}

/// The session without a port that is a device's.
fn without_port(history: &History<'_>, inventory: &Inventory, device: &UsbDevice) -> Option<usize> {
    let on_uas = |device: &UsbDevice| {
        device.interfaces.iter().any(|interface| interface.driver.as_deref() == Some("uas"))
    };
    let sessions = || history.sessions.iter().enumerate().filter(|(_, session)| !session.is_located());
    let by_disk = sessions().find(|(_, session)| {
        device.disks().filter_map(|disk| disk.node.as_deref()).any(|node| session.has_disk(node))
    });
    let mut of_uas = sessions().filter(|(_, session)| session.driver == Some("uas"));
    let only = of_uas.next().filter(|_| of_uas.next().is_none());
    let is_only_drive = on_uas(device) && inventory.storage().filter(|other| on_uas(other)).count() == 1;
    by_disk.or_else(|| only.filter(|_| is_only_drive)).map(|(at, _)| at)
}

/// Every cause, the one that explains most first.
pub(super) fn find(evidence: &Evidence<'_>, history: Option<&History<'_>>) -> Vec<Cause> {
    let Some((log, history)) = evidence.log().zip(history) else { return Vec::new() };
    of_scene(&Scene::of(evidence, history, &log.path))
}

pub(super) fn of_scene(scene: &Scene<'_>) -> Vec<Cause> {
    let mut causes: Vec<Cause> = [
        controller::died(scene),
        power::over_current(scene),
        power::undervoltage(scene),
        media::failing(scene),
        media::without_reason(scene),
        command::lost(scene),
        media::malformed(scene),
        media::capacity(scene),
        media::refused(scene),
        port::probe_failed(scene),
        controller::stream_events(scene),
        port::flapping(scene),
        port::enumeration(scene),
        port::link(scene),
        port::link_power(scene),
        port::hub(scene),
        port::slower(scene),
        media::no_medium(scene),
    ]
    .into_iter()
    .flatten()
    .collect();
    if !causes.iter().any(|cause| cause.kind.ends_a_drive() || cause.kind == CauseKind::NoMedium) {
        causes.extend(command::file_system(scene));
    }
    causes.sort_by_key(|cause| cause.kind);
    replace_explained(&mut causes);
    causes
}

/// A cause that explains others replaces them.
fn replace_explained(causes: &mut Vec<Cause>) {
    // Reads of an empty slot fail.
    if causes.iter().any(|cause| cause.kind == CauseKind::NoMedium) {
        causes.retain(|cause| !matches!(cause.kind, CauseKind::Transport | CauseKind::NoDisk));
    }
    match causes.first().map(|cause| cause.kind) {
        Some(CauseKind::ControllerDied | CauseKind::OverCurrent | CauseKind::Undervoltage) => {
            causes.retain(|cause| !cause.kind.is_symptom());
        }
        Some(CauseKind::DriveFailing) => {
            causes.retain(|cause| !matches!(cause.kind, CauseKind::Transport | CauseKind::Refused));
        }
        // The block layer counts what the drive refused as errors of blocks.
        Some(CauseKind::Refused) => causes.retain(|cause| cause.kind != CauseKind::Transport),
        // What the kernel cannot use it reports as failed reads and writes, or as a disk of no blocks.
        Some(CauseKind::MalformedAnswer) => causes.retain(|cause| {
            !matches!(
                cause.kind,
                CauseKind::Capacity
                    | CauseKind::Refused
                    | CauseKind::NoMedium
                    | CauseKind::NoDisk
                    | CauseKind::Transport
            )
        }),
        // Blocks beyond the end are refused.
        Some(CauseKind::Capacity) => causes.retain(|cause| cause.kind != CauseKind::Refused),
        _ => {}
    }
}

/// Seconds since boot of a line, for people; empty without them.
pub(super) fn since_boot_words(entry: &Entry<'_>) -> String {
    // Dates count in tens of thousands of seconds and mean nothing to a reader.
    let since_boot = crate::log::since_boot(entry.raw);
    since_boot.map_or_else(String::new, |seconds| format!(" {} s after boot", thousands(seconds)))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "seconds since boot are small")]
fn thousands(seconds: f64) -> String {
    let digits = (seconds as u64).to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `once`, `twice`, `5 times`.
pub(super) fn times(count: usize) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        count => format!("{count} times"),
    }
}
