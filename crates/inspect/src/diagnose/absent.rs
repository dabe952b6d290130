//! Drives that the log speaks of and that are not there: never enumerated, dropped, unplugged, lost with their controller.
//!
//! A drive that is gone is diagnosed as one that is attached: a device is made of its last session, and the causes are looked
//! for in the same lines. Ports without any session are reported where a hub's line is about over-current. Always true:
//! nothing is reported of a port at which a device is attached now; devices that are no drives are not reported, unless
//! they never got as far as saying what they are.

use super::advice::{self, Advice};
use super::cause::{self, Cause, CauseKind, Scene};
use super::evidence::{Evidence, Reading};
use crate::inventory::{Interface, Inventory, LinkSpeed, UsbDevice};
use crate::log::{History, Session};
use quirks::DeviceId;
use wire::usb::ClassCode;

/// Why a drive or a controller is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AbsentKind {
    /// The host controller died or did not start.
    Controller,
    /// A drive was there and the log shows trouble.
    Dropped,
    /// Something is plugged in and was never enumerated.
    NeverEnumerated,
    /// A port switched off.
    OverCurrent,
    /// A drive was disconnected and the log shows no trouble.
    Unplugged,
}

impl AbsentKind {
    /// Its name for programs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Controller => "controller",
            Self::Dropped => "dropped",
            Self::NeverEnumerated => "never-enumerated",
            Self::OverCurrent => "over-current",
            Self::Unplugged => "unplugged",
        }
    }
}

/// A drive, port or controller that is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Absent {
    /// The port, or the name of the controller.
    pub place: String,
    /// Why.
    pub kind: AbsentKind,
    /// idVendor and idProduct, where the log has them.
    pub id: Option<DeviceId>,
    /// What happened, in a sentence without a full stop.
    pub because: String,
    /// The lines.
    pub readings: Vec<Reading>,
    /// What to do.
    pub advice: Vec<Advice>,
}

/// Everything that the log speaks of and that is not there.
pub fn absent(inventory: &Inventory) -> Vec<Absent> {
    let Some(log) = inventory.readable_log() else { return Vec::new() };
    let history = log.history();
    let mut all = controllers(&history, &log.path);
    let mut ports: Vec<&str> = history.sessions.iter().map(|session| session.port.as_str()).collect();
    ports.sort_unstable();
    ports.dedup();
    for port in ports {
        if inventory.devices.iter().any(|device| device.port == port) {
            continue;
        }
        all.extend(at_port(inventory, &history, &log.path, port));
    }
    all.extend(over_currents(inventory, &history, &log.path, &all));
    if let Some(report) = &inventory.report {
        all.iter_mut().flat_map(|one| &mut one.readings).for_each(|reading| report.cite(reading));
    }
    all.sort_by(|one, other| (one.kind, &one.place).cmp(&(other.kind, &other.place)));
    all
}

/// Controllers that died and were not registered again.
fn controllers(history: &History<'_>, path: &str) -> Vec<Absent> {
    let mut dead: Vec<(String, usize)> = Vec::new();
    for (index, entry) in history.entries.iter().enumerate() {
        let Some((_, name)) = entry.line.source.rsplit_once(' ') else { continue };
        if cause::is_controller_death(entry) {
            dead.retain(|(other, _)| other != name);
            dead.push((name.to_owned(), index));
        } else if entry.line.text.contains("new USB bus registered") {
            dead.retain(|(other, _)| other != name);
        }
    }
    let of = |(name, index): (String, usize)| {
        let entry = history.entries.get(index)?;
        let driver = entry.line.source.split(' ').next().unwrap_or("xhci_hcd");
        let is_start = ["can't setup", "init 0000:"].iter().any(|words| entry.line.text.contains(words));
        let drives = lost_drives(history, index);
        let what = if is_start { "did not start" } else { "died" };
        let when = cause::since_boot_words(entry);
        let with =
            if drives.is_empty() { String::new() } else { format!("; with it went {}", drives.join(", ")) };
        let readings = history
            .entries
            .iter()
            .filter(|entry| entry.line.source.ends_with(&name) && cause::is_controller_death(entry))
            .take(4)
            .map(|entry| Reading::new(path, entry.raw));
        Some(Absent {
            because: format!("the host controller {name} {what}{when}{with}; none of its devices is usable"),
            readings: readings.collect(),
            advice: vec![advice::restart_controller(&name, driver), advice::newer_kernel_or_firmware()],
            place: name,
            kind: AbsentKind::Controller,
            id: None,
        })
    };
    dead.into_iter().filter_map(of).collect()
}

/// Drives whose session ended at a death.
fn lost_drives(history: &History<'_>, death: usize) -> Vec<String> {
    const LINES_MAX: usize = 64;
    let is_lost = |session: &&Session| {
        is_drive(session) && session.ended.is_some_and(|end| end > death && end < death + LINES_MAX)
    };
    history.sessions.iter().filter(is_lost).map(name_of).collect()
}

/// `/dev/sda (174c:55aa)`, or the ids alone.
fn name_of(session: &Session) -> String {
    let node = session.units.iter().find_map(|unit| unit.node.as_deref());
    match (node, session.id) {
        (Some(node), Some(id)) => format!("/dev/{node} ({id})"),
        (Some(node), None) => format!("/dev/{node}"),
        (None, Some(id)) => id.to_string(),
        (None, None) => format!("the device at {}", session.port),
    }
}

fn is_drive(session: &Session) -> bool {
    session.is_storage
        || session.driver.is_some()
        || !session.hosts.is_empty()
        || session.id.is_some_and(crate::inventory::is_storage_id)
}

fn at_port(inventory: &Inventory, history: &History<'_>, path: &str, port: &str) -> Option<Absent> {
    let sessions: Vec<&Session> = history.at_port(port).map(|(_, session)| session).collect();
    let drive = sessions.iter().rev().find(|session| is_drive(session)).copied();
    let last = *sessions.last()?;
    // One that failed to come back has sessions without ids after the one that had them.
    let session = drive.or_else(|| Some(last).filter(|last| last.id.is_none()))?;
    let device = device_of(session);
    let diagnosed = Evidence::gather(inventory, &device);
    let evidence = diagnosed.first()?;
    let scene = Scene::of(evidence, history, path);
    let causes = cause::of_scene(&scene);
    if drive.is_none() {
        return never_enumerated(port, &causes, history, path);
    }
    Some(dropped(session, &scene, causes))
}

/// Something that never said what it is.
fn never_enumerated(port: &str, causes: &[Cause], history: &History<'_>, path: &str) -> Option<Absent> {
    let main = causes.iter().find(|cause| matches!(cause.kind, CauseKind::Enumeration | CauseKind::Link))?;
    let tries = history.at_port(port).filter(|(_, session)| session.number.is_some()).count();
    let tries = if tries > 1 { format!(" ({tries} attempts)") } else { String::new() };
    let last = history
        .entries
        .iter()
        .rev()
        .find(|entry| crate::log::port_of_hub_line(entry.line.source).is_some_and(|of| of == port));
    let mut readings = main.readings.clone();
    readings.extend(last.map(|entry| Reading::new(path, entry.raw)).filter(|one| !readings.contains(one)));
    let causes = causes.iter().map(|cause| cause.because.as_str()).collect::<Vec<_>>().join("; ");
    Some(Absent {
        place: port.to_owned(),
        kind: AbsentKind::NeverEnumerated,
        id: None,
        because: format!("something is plugged in at {port} that was never enumerated{tries}: {causes}"),
        readings,
        advice: vec![advice::cable_and_port(), advice::more_power(), advice::power_cycle()],
    })
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
    let why = causes.first().map(|cause| cause.because.clone());
    let kind = if why.is_none() && failed.is_none() { AbsentKind::Unplugged } else { AbsentKind::Dropped };
    let why = match (why, reset) {
        (Some(why), reset) => format!("it stopped answering: {why}{reset}"),
        (None, "") => format!("it was disconnected{when}; the log shows no trouble before that"),
        (None, _) => "its reset failed".to_owned(),
    };
    let mut readings: Vec<Reading> = causes.iter().flat_map(|cause| cause.readings.clone()).collect();
    readings.extend(failed);
    readings.extend(end.map(|entry| scene.reading_of(entry)));
    readings.dedup();
    let mut advice: Vec<Advice> = Vec::new();
    let is_of_drive = causes.first().is_none_or(|cause| cause.kind > CauseKind::DriveFailing);
    if kind == AbsentKind::Dropped && is_of_drive {
        advice.push(advice::power_cycle());
    }
    for one in causes.into_iter().flat_map(|cause| cause.advice) {
        if !advice.contains(&one) {
            advice.push(one);
        }
    }
    Absent {
        place,
        kind,
        id,
        because: format!("{what} was here{node}{driver} until {why}"),
        readings,
        advice,
    }
}

/// Ports that switched off and at which the log has no device.
fn over_currents(inventory: &Inventory, history: &History<'_>, path: &str, known: &[Absent]) -> Vec<Absent> {
    let mut all: Vec<Absent> = Vec::new();
    for entry in history.entries.iter().filter(|entry| entry.line.begins(&["over-current"])) {
        let source = entry.line.source;
        let of_hub = source.strip_prefix("hub ").and_then(|name| name.split(':').next()).map(|hub| {
            let port = entry.line.text.rsplit_once("port ").map_or("?", |(_, port)| port.trim());
            match hub.split_once('-') {
                Some((bus, "0")) => format!("{bus}-{port}"),
                _ => format!("{hub}.{port}"),
            }
        });
        let Some(place) = crate::log::port_of_hub_line(source).or(of_hub) else { continue };
        let is_known = known.iter().chain(&all).any(|one| one.place == place);
        if is_known || inventory.devices.iter().any(|device| device.port == place) {
            continue;
        }
        all.push(Absent {
            because: format!("port {place} switched off because too much current was drawn"),
            place,
            kind: AbsentKind::OverCurrent,
            id: None,
            readings: vec![Reading::new(path, entry.raw)],
            advice: vec![advice::more_power()],
        });
    }
    all
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
        able: None,
        driver: None,
        interfaces: vec![interface],
    }
}
