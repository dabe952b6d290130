//! Drives that are gone, things that were never enumerated, and SCSI disks whose port no line names.
//!
//! Each is diagnosed as a drive that is attached, from its last session. Always true: a piece of advice whose command needs ids is
//! given where the log has them. Left out: devices that are no drives.

use super::{Absent, AbsentKind};
use crate::diagnose::advice::{self, Advice};
use crate::diagnose::cause::{self, Cause, CauseKind, Scene};
use crate::diagnose::evidence::{Evidence, Reading};
use crate::inventory::{Interface, Inventory, LinkSpeed, UsbDevice};
use crate::log::{History, Session};
use quirks::DeviceId;
use std::collections::BTreeSet;
use wire::usb::ClassCode;

pub(super) fn is_drive(session: &Session) -> bool {
    session.is_storage
        || session.driver.is_some()
        || !session.hosts.is_empty()
        || session.id.is_some_and(crate::inventory::is_storage_id)
}

/// Judges the last device of a port at which nothing is attached; `shown` are the sessions of the drives that are attached.
pub(super) fn at_port(
    inventory: &Inventory,
    history: &History<'_>,
    path: &str,
    port: &str,
    shown: &BTreeSet<usize>,
) -> Option<Absent> {
    let devices = history.devices_at(port);
    let sessions = devices.last().into_iter().flatten().filter_map(|at| history.sessions.get(*at));
    let sessions: Vec<&Session> = sessions.collect();
    // A machine knows its disks: those of other buses are not reported.
    if !inventory.is_from_text() && sessions.iter().any(|session| !session.is_located()) {
        return None;
    }
    let drive = sessions.iter().rev().find(|session| is_drive(session)).copied();
    let last = *sessions.last()?;
    // One that failed to come back has sessions without ids after the one that had them.
    let is_attached = inventory.devices.iter().any(|device| device.port == port);
    let session = drive.or_else(|| Some(last).filter(|last| last.id.is_none() || is_attached))?;
    let device = device_of(session);
    let diagnosed = Evidence::gather(inventory, &device);
    let evidence = diagnosed.first()?;
    let scene = Scene::of(evidence, history, path);
    let causes = cause::of_scene(&scene);
    if !session.is_located() {
        if session.driver.is_none() && is_of_network(history) {
            return None;
        }
        let is_shown = scene.sessions.iter().any(|at| shown.contains(at));
        return without_port(session, &scene, causes).filter(|_| !is_shown);
    }
    if drive.is_none() {
        return not_answering(port, &causes, history, path);
    }
    Some(dropped(session, &scene, causes))
}

/// Devices that a port had before the last one: a drive that failed is reported although something else is there now, and a device
/// that switched from a drive to another mode.
pub(super) fn replaced(inventory: &Inventory, history: &History<'_>, path: &str, port: &str) -> Vec<Absent> {
    let devices = history.devices_at(port);
    let of = |pair: &[Vec<usize>]| {
        let [own, next] = pair else { return None };
        let sessions = || own.iter().rev().filter_map(|at| history.sessions.get(*at));
        let session = sessions().find(|session| is_drive(session) && session.is_located())?;
        let next: Vec<&Session> = next.iter().filter_map(|at| history.sessions.get(*at)).collect();
        let device = device_of(session);
        let diagnosed = Evidence::gather(inventory, &device);
        let evidence = diagnosed.first()?;
        let scene = Scene::of_sessions(evidence, history, path, own.clone());
        let mut causes = cause::of_scene(&scene);
        causes.retain(|cause| is_of_drive_alone(cause.kind));
        if causes.is_empty() {
            return switched(session, &next, &scene);
        }
        causes.iter().any(|cause| cause.kind.ends_a_drive()).then(|| dropped(session, &scene, causes))
    };
    devices.windows(2).filter_map(of).collect()
}

/// Whether a cause rests on lines about the drive alone: those of port, hub, controller and board may be about what came after it.
const fn is_of_drive_alone(kind: CauseKind) -> bool {
    !matches!(
        kind,
        CauseKind::ControllerDied
            | CauseKind::OverCurrent
            | CauseKind::Undervoltage
            | CauseKind::UndervoltageAlone
            | CauseKind::StreamEvents
            | CauseKind::Hub
            | CauseKind::Link
    )
}

/// A device that comes back with other ids of the same maker at once: a modem or network adapter that shows its drivers as a disc
/// first, and that `usb_modeswitch` or its own firmware switches.
fn switched(session: &Session, next: &[&Session], scene: &Scene<'_>) -> Option<Absent> {
    /// A hand does not plug in another device as fast.
    const AT_ONCE_S: u64 = 3;
    const SWITCHED_S: u64 = 30;
    let end = scene.history.entries.get(session.ended?)?;
    let other = next.iter().find(|other| other.id.is_some())?;
    let (own, id) = session.id.zip(other.id)?;
    let is_disc =
        session.units.iter().filter_map(|unit| unit.node.as_deref()).all(|node| node.starts_with("sr"));
    let gap = other.seconds_after(session);
    let limit = if is_disc && !is_drive(other) { SWITCHED_S } else { AT_ONCE_S };
    if own.vendor != id.vendor || own == id || gap.is_none_or(|gap| gap > limit) {
        return None;
    }
    let title = if other.title().is_empty() { String::new() } else { format!(" {}", other.title()) };
    let found = other.found.and_then(|line| scene.history.entries.get(line));
    Some(Absent {
        place: session.port.clone(),
        kind: AbsentKind::Switched,
        id: Some(own),
        because: format!(
            "{own} {}switched to another mode and came back as {id}{title}; nothing failed, and no drive is missing",
            if session.title().is_empty() { String::new() } else { format!("{} ", session.title()) }
        ),
        causes: Vec::new(),
        readings: [Some(end), found].into_iter().flatten().map(|entry| scene.reading_of(entry)).collect(),
        advice: vec![advice::keep_mode()],
    })
}

/// Something that the log does not name: it was never enumerated, or it stopped answering before the log names it.
fn not_answering(port: &str, causes: &[Cause], history: &History<'_>, path: &str) -> Option<Absent> {
    // Controllers and hubs are reported by themselves.
    let first = causes.first().filter(|first| first.kind != CauseKind::ControllerDied)?;
    if causes.iter().all(|cause| cause.kind == CauseKind::Hub) {
        return None;
    }
    let main = causes.iter().find(|cause| matches!(cause.kind, CauseKind::Enumeration | CauseKind::Link));
    let sessions: Vec<&Session> = history.at_port(port).map(|(_, session)| session).collect();
    let own = |words: &[&str]| {
        let mut entries = history.entries.iter();
        entries.any(|entry| entry.line.source.strip_prefix("usb ") == Some(port) && entry.line.begins(words))
    };
    // A device that the kernel resets, one that disconnects by its number and one that keeps its number was enumerated before.
    let is_announced = sessions.iter().any(|session| session.is_from_start);
    let is_link_alone = main.is_some_and(|main| main.kind == CauseKind::Link) && !is_announced;
    let was_there = own(&["reset "])
        || is_link_alone
        || sessions.first().is_some_and(|first| first.is_ended())
        || keeps_number(history, port);
    let tries = sessions.iter().filter(|session| session.is_from_start).count();
    let tries = if tries > 1 { format!(" ({tries} attempts)") } else { String::new() };
    let why = causes.iter().map(|cause| cause.because.as_str()).collect::<Vec<_>>().join("; ");
    let because = match (main, was_there) {
        (Some(_), false) => {
            format!("something is plugged in at {port} that was never enumerated{tries}: {why}")
        }
        (Some(_), true) => {
            format!("the device at {port} stopped answering and was not enumerated again{tries}: {why}")
        }
        (None, _) => {
            let id = sessions.last().and_then(|last| last.id);
            let id = id.map_or_else(String::new, |id| format!(" ({id})"));
            format!("the device at {port}{id}: {why}")
        }
    };
    let last = history
        .entries
        .iter()
        .rev()
        .find(|entry| crate::log::port_of_hub_line(entry.line.source).is_some_and(|of| of == port));
    let mut readings = main.unwrap_or(first).readings.clone();
    readings.extend(last.map(|entry| Reading::new(path, entry.raw)).filter(|one| !readings.contains(one)));
    let advice = match main {
        Some(_) if first.kind == CauseKind::Hub => vec![advice::failing_hub(), advice::cable_and_port()],
        Some(_) => vec![advice::cable_and_port(), advice::more_power(), advice::power_cycle()],
        None => usable(causes.iter().flat_map(|cause| cause.advice.clone()), true),
    };
    Some(Absent {
        place: port.to_owned(),
        kind: if main.is_some() && !was_there { AbsentKind::NeverEnumerated } else { AbsentKind::Dropped },
        id: None,
        because,
        causes: causes.iter().map(|cause| cause.kind).collect(),
        readings,
        advice,
    })
}

/// Whether disks of the log come over a network (iSCSI), so that one without a port need not be a USB drive.
fn is_of_network(history: &History<'_>) -> bool {
    history.entries.iter().any(|entry| entry.line.begins(&["session recovery timed out"]))
}

/// Whether the device of a port is refused twice with the same number: one that is new gets another for each attempt.
fn keeps_number(history: &History<'_>, port: &str) -> bool {
    let of_port = history.entries.iter().filter(|entry| entry.line.source.strip_prefix("usb ") == Some(port));
    let numbers: Vec<&str> = of_port
        .filter_map(|entry| entry.line.text.strip_prefix("device not accepting address ")?.split(',').next())
        .collect();
    numbers.windows(2).any(|pair| pair.first() == pair.last())
}

/// A SCSI disk whose port no line names.
fn without_port(session: &Session, scene: &Scene<'_>, causes: Vec<Cause>) -> Option<Absent> {
    let first = causes.first()?;
    // The controller is reported by itself, with the disks that it took along.
    if first.kind == CauseKind::ControllerDied {
        return None;
    }
    let node = session.units.iter().find_map(|unit| unit.node.as_deref());
    let host = session.hosts.first().map_or_else(String::new, |host| format!("SCSI host {host}"));
    let place = node.map_or(host, |node| format!("/dev/{node}"));
    let what = match (session.driver, first.kind, session.one_of.as_slice()) {
        (Some("uas"), _, [_, ..]) => {
            format!("; it is on UAS, at one of the ports {}", session.one_of.join(", "))
        }
        (Some("uas"), ..) => "; it is on UAS, at a port that the log does not name".to_owned(),
        (_, CauseKind::DriveFailing, _) => String::new(),
        _ => "; the log does not show whether it is a USB drive".to_owned(),
    };
    let mut readings: Vec<Reading> = causes.iter().flat_map(|cause| cause.readings.clone()).collect();
    readings.extend(scene.failed_reset());
    readings.dedup();
    Some(Absent {
        because: format!("{}{what}", first.because),
        place,
        kind: AbsentKind::WithoutPort,
        id: None,
        causes: causes.iter().map(|cause| cause.kind).collect(),
        readings,
        advice: usable(causes.into_iter().flat_map(|cause| cause.advice), true),
    })
}

/// Each piece of advice once, without those that need ids that the log does not have, and how to find them in their place.
fn usable(advice: impl Iterator<Item = Advice>, is_without_id: bool) -> Vec<Advice> {
    let mut all: Vec<Advice> = Vec::new();
    for one in advice {
        let one = if is_without_id && one.needs_id() { advice::find_port() } else { one };
        if !all.contains(&one) {
            all.push(one);
        }
    }
    all
}

/// A drive that was there.
fn dropped(session: &Session, scene: &Scene<'_>, causes: Vec<Cause>) -> Absent {
    let node = session.units.iter().find_map(|unit| unit.node.as_deref());
    let (place, id) = (session.port.clone(), session.id);
    let what = match (id, session.title()) {
        (Some(id), title) if title.is_empty() => id.to_string(),
        (Some(id), title) => format!("{id} {title}"),
        (None, _) => "a drive".to_owned(),
    };
    let node = node.map_or_else(String::new, |node| format!(" as /dev/{node}"));
    let driver = match session.driver {
        Some("uas") => " on UAS",
        Some(_) => " on BOT",
        None => "",
    };
    let failed = scene.failed_reset();
    let reset = if failed.is_some() { ", and its reset failed" } else { "" };
    let end = session.ended.and_then(|end| scene.history.entries.get(end));
    let when = end.map_or_else(String::new, cause::since_boot_words);
    let kinds = causes.iter().map(|cause| cause.kind).collect();
    let why = causes.iter().find(|cause| cause.kind.ends_a_drive()).map(|cause| cause.because.clone());
    let kind = if why.is_none() && failed.is_none() { AbsentKind::Unplugged } else { AbsentKind::Dropped };
    let fate = match (why, reset) {
        (Some(why), reset) => format!(" until it stopped answering: {why}{reset}"),
        (None, "") if end.is_none() => UNSEEN_END.to_owned(),
        (None, "") => format!(" until it was disconnected{when}; {}", before(scene, causes.first())),
        (None, _) => " until its reset failed".to_owned(),
    };
    let mut readings: Vec<Reading> = causes.iter().flat_map(|cause| cause.readings.clone()).collect();
    readings.extend(failed);
    readings.extend(end.map(|entry| scene.reading_of(entry)));
    readings.dedup();
    let together = lost_together(session, scene, &causes);
    let mut advice: Vec<Advice> = Vec::new();
    if !together.is_empty() {
        advice.push(advice::what_they_share());
    }
    let is_of_drive = causes.first().is_none_or(|cause| cause.kind > CauseKind::DriveFailing);
    if kind == AbsentKind::Dropped && is_of_drive {
        advice.push(advice::power_cycle());
    }
    if kind == AbsentKind::Dropped && causes.is_empty() {
        advice.push(advice::cable_and_port());
    }
    if kind == AbsentKind::Unplugged && end.is_none() {
        advice.push(advice::log_of_another_machine());
    }
    if kind == AbsentKind::Unplugged {
        advice.push(advice::if_not_unplugged());
    }
    let of_causes = usable(causes.into_iter().flat_map(|cause| cause.advice), id.is_none());
    let of_causes: Vec<Advice> = of_causes.into_iter().filter(|one| !advice.contains(one)).collect();
    advice.extend(of_causes);
    Absent {
        place,
        kind,
        id,
        because: format!("{what} was here{node}{driver}{fate}{}{together}", with_hub(session, scene)),
        causes: kinds,
        readings,
        advice,
    }
}

/// Of a drive that the log has connected.
const UNSEEN_END: &str =
    "; it is not among the devices now, and the log does not show that it was disconnected";

/// Returns what the log shows before a drive disconnected without an error.
fn before(scene: &Scene<'_>, cause: Option<&Cause>) -> String {
    if let Some(cause) = cause {
        return cause.because.clone();
    }
    match (scene.resets(), scene.in_flight_at_end()) {
        (0, 0) => "the log shows no failure before that".to_owned(),
        (0, 1) => "a command was in flight, and the log shows no failure before that".to_owned(),
        (0, commands) => {
            format!("{commands} commands were in flight, and the log shows no failure before that")
        }
        (resets, _) => format!("the kernel had reset it {} before", cause::times(resets)),
    }
}

/// The hub that disconnected right before a drive did.
fn with_hub(session: &Session, scene: &Scene<'_>) -> String {
    const LINES_MAX: usize = 64;
    let is_hub = |hub: &Session| {
        let is_above = session.port.strip_prefix(&hub.port).is_some_and(|rest| rest.starts_with('.'));
        let is_near = hub.ended.zip(session.ended).is_some_and(|(hub, own)| hub.abs_diff(own) <= LINES_MAX);
        is_above && is_near
    };
    let hub = scene.history.sessions.iter().find(|hub| is_hub(hub));
    hub.map_or_else(String::new, |hub| format!("; its hub at {} disconnected with it", hub.port))
}

/// The devices at other ports of the machine that disconnected at the same time: what they share has failed, or was switched
/// off. A controller that died has its own cause.
fn lost_together(session: &Session, scene: &Scene<'_>, causes: &[Cause]) -> String {
    const NAMED_MAX: usize = 4;
    if causes.iter().any(|cause| cause.kind == CauseKind::ControllerDied) {
        return String::new();
    }
    let is_lost = |other: &&Session| {
        other.hub_ports == 0 && other.root_port() != session.root_port() && other.ended_with(session)
    };
    let others = scene.history.sessions.iter().filter(is_lost).map(|other| other.port.as_str());
    let others: Vec<&str> = others.collect::<BTreeSet<_>>().into_iter().collect();
    let (last, before) = match others.split_at_checked(NAMED_MAX) {
        Some((named, more @ [_, ..])) => (format!("{} other ports", more.len()), named),
        _ => match others.split_last() {
            Some((last, before)) => ((*last).to_owned(), before),
            None => return String::new(),
        },
    };
    let named = if before.is_empty() { last } else { format!("{} and {last}", before.join(", ")) };
    format!("; devices at {named} disconnected within the same second")
}

/// A device as its session describes it.
fn device_of(session: &Session) -> UsbDevice {
    let path = format!("{}/{}", crate::inventory::DEVICES, session.port);
    let class = if session.driver == Some("uas") { ClassCode::UAS } else { ClassCode::BOT };
    let name = format!("{}:1.0", session.port);
    let disks = session.units.iter().map(|unit| crate::inventory::Disk {
        address: unit.address.clone(),
        node: unit.node.clone(),
        vendor: unit.vendor.clone(),
        model: unit.model.clone(),
        ..crate::inventory::Disk::default()
    });
    let interface = Interface {
        path: format!("{path}/{name}"),
        name,
        number: 0,
        alternate: u8::from(session.driver == Some("uas")),
        class,
        driver: session.driver.map(str::to_owned),
        is_driver_known: true,
        scatter_gather: None,
        disks: disks.collect(),
    };
    UsbDevice {
        port: session.port.clone(),
        path,
        bus: session.bus().unwrap_or_default(),
        number: session.number.unwrap_or_default(),
        id: session.id.unwrap_or(DeviceId::new(0, 0)),
        revision: session.revision.unwrap_or_default(),
        usb_version: None,
        manufacturer: session.manufacturer.clone(),
        product: session.product.clone(),
        serial: session.serial.clone(),
        speed: session.speed.unwrap_or(LinkSpeed::Unknown),
        max_power_ma: None,
        configuration: None,
        offered: Vec::new(),
        authorized: None,
        hub_ports: 0,
        plugged: None,
        lanes: None,
        able: None,
        driver: None,
        interfaces: vec![interface],
    }
}
