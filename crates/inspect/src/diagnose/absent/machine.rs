//! Controllers, ports, hubs and the board's supply, as far as no drive stands for them.
//!
//! A controller is dead until its bus is registered again. Always true: what a drive's own causes name is not reported again. Left
//! out: PCIe and Thunderbolt, whose lines do not name a drive.

use super::{Absent, AbsentKind};
use crate::diagnose::advice;
use crate::diagnose::cause::{self, CauseKind};
use crate::diagnose::evidence::Reading;
use crate::inventory::Inventory;
use crate::log::{Entry, History, Session};
use std::collections::{BTreeMap, BTreeSet};

/// Lines between the end of a controller and those of its devices.
const LOST_LINES_MAX: usize = 64;

/// Controllers that died and were not registered again; those that were, where `with_restarted` says so.
pub(super) fn dead_controllers(history: &History<'_>, path: &str, with_restarted: bool) -> Vec<Absent> {
    let mut dead: Vec<(String, usize)> = Vec::new();
    let mut restarted: Vec<String> = Vec::new();
    for (index, entry) in history.entries.iter().enumerate() {
        let Some((_, name)) = entry.line.source.rsplit_once(' ') else { continue };
        if cause::is_controller_death(entry) && !cause::is_removed(history, entry) {
            dead.retain(|(other, _)| other != name);
            dead.push((name.to_owned(), index));
        } else if entry.line.text.contains("new USB bus registered") {
            if with_restarted && dead.iter().any(|(other, _)| other == name) {
                restarted.push(name.to_owned());
            }
            dead.retain(|(other, _)| with_restarted || other != name);
        }
    }
    let of = |(name, index): (String, usize)| {
        let is_restarted = restarted.contains(&name);
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
            because: if is_restarted {
                format!("the host controller {name} {what}{when}{with}; it was started again since")
            } else {
                format!("the host controller {name} {what}{when}{with}; none of its devices is usable")
            },
            readings: readings.collect(),
            advice: if is_restarted {
                vec![advice::newer_kernel_or_firmware(), advice::find_port()]
            } else {
                vec![advice::restart_controller(&name, driver), advice::newer_kernel_or_firmware()]
            },
            place: name,
            kind: AbsentKind::Controller,
            id: None,
            causes: vec![CauseKind::ControllerDied],
        })
    };
    dead.into_iter().filter_map(of).collect()
}

/// Controllers that were removed with everything behind them: a dock, or a card, that is not there any more.
pub(super) fn removed_controllers(history: &History<'_>, path: &str) -> Vec<Absent> {
    let mut removed: Vec<(&str, usize)> = Vec::new();
    let mut died: Vec<&str> = Vec::new();
    for (index, entry) in history.entries.iter().enumerate() {
        let Some((_, name)) = entry.line.source.rsplit_once(' ') else { continue };
        if cause::is_controller_death(entry) && !cause::is_removed(history, entry) && !died.contains(&name) {
            died.push(name);
        }
        // One that died first was unbound to restart it.
        if entry.line.begins(&["remove, state"]) && !died.contains(&name) {
            removed.retain(|(other, _)| *other != name);
            removed.push((name, index));
        } else if entry.line.text.contains("new USB bus registered") {
            removed.retain(|(other, _)| *other != name);
        }
    }
    let of = |(name, index): (&str, usize)| {
        let entry = history.entries.get(index)?;
        let lost = history.sessions.iter().filter(|session| {
            let is_near = session.ended.is_some_and(|end| end.abs_diff(index) < LOST_LINES_MAX);
            is_near && session.is_located()
        });
        let lost: Vec<String> = lost.map(name_of).collect();
        let with =
            if lost.is_empty() { String::new() } else { format!("; with it went {}", lost.join(", ")) };
        Some(Absent {
            because: format!(
                "the host controller {name} was removed{}: a dock or card that was unplugged, or lost its link{with}",
                cause::since_boot_words(entry)
            ),
            readings: vec![Reading::new(path, entry.raw)],
            advice: vec![advice::dock_link()],
            place: name.to_owned(),
            kind: AbsentKind::Controller,
            id: None,
            causes: Vec::new(),
        })
    };
    removed.into_iter().filter_map(of).collect()
}

/// Drives whose session ended at a death.
pub(super) fn lost_drives(history: &History<'_>, death: usize) -> Vec<String> {
    let is_lost = |session: &&Session| {
        super::drive::is_drive(session)
            && session.ended.is_some_and(|end| end > death && end < death + LOST_LINES_MAX)
    };
    // A disk whose port no line names: its commands are given up at the death.
    let is_near = |line: &usize| line.abs_diff(death) < LOST_LINES_MAX;
    let given_up = history.commands.iter().filter(|(_, command)| command.lines.iter().any(is_near));
    let given_up: BTreeSet<usize> = given_up.filter_map(|(session, _)| *session).collect();
    let is_lost_disk = |(at, session): &(usize, &Session)| !session.is_located() && given_up.contains(at);
    let disks = history.sessions.iter().enumerate().filter(is_lost_disk).map(|(_, session)| session);
    history.sessions.iter().filter(is_lost).chain(disks).map(name_of).collect()
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

/// Controllers with events of streams that their driver does not know, where no drive is named.
pub(super) fn stream_events(history: &History<'_>, path: &str, known: &[Absent]) -> Vec<Absent> {
    let mut events: BTreeMap<&str, Vec<&Entry<'_>>> = BTreeMap::new();
    let is_event = |entry: &&Entry<'_>| cause::is_stream_event(entry) || cause::is_ring_error(entry);
    for entry in history.entries.iter().filter(is_event) {
        if let Some((_, name)) = entry.line.source.rsplit_once(' ') {
            events.entry(name).or_default().push(entry);
        }
    }
    let is_known = |name: &str| {
        let mut known = known.iter();
        known.any(|one| one.place == name || one.causes.contains(&CauseKind::StreamEvents))
    };
    let of = |(name, entries): (&str, Vec<&Entry<'_>>)| Absent {
        place: name.to_owned(),
        kind: AbsentKind::Controller,
        id: None,
        because: {
            let count =
                if entries.len() == 1 { "an event".to_owned() } else { format!("{} events", entries.len()) };
            if entries.iter().any(|entry| cause::is_stream_event(entry)) {
                format!(
                    "the host controller {name} reported {count} of streams that its driver does not know; a drive on UAS behind it lost transfers"
                )
            } else {
                format!(
                    "the host controller {name} reported {count} that its driver cannot match to a transfer; the log does not show of which device"
                )
            }
        },
        causes: vec![CauseKind::StreamEvents],
        readings: entries.iter().take(4).map(|entry| Reading::new(path, entry.raw)).collect(),
        advice: vec![advice::newer_kernel_or_firmware(), advice::other_controller(), advice::find_port()],
    };
    events.into_iter().filter(|(name, _)| !is_known(name)).map(of).collect()
}

/// The board's supply, where no drive shows it.
pub(super) fn supply(
    inventory: &Inventory,
    history: &History<'_>,
    path: &str,
    known: &[Absent],
) -> Option<Absent> {
    let is_power = |kind: &CauseKind| matches!(kind, CauseKind::Undervoltage | CauseKind::UndervoltageAlone);
    if known.iter().any(|one| one.causes.iter().any(is_power)) || inventory.storage().next().is_some() {
        return None;
    }
    let sags: Vec<&Entry<'_>> = history.entries.iter().filter(|entry| cause::is_sag(entry)).collect();
    sags.first()?;
    Some(Absent {
        place: "power supply".to_owned(),
        kind: AbsentKind::Supply,
        id: None,
        because: format!("the board's supply voltage was too low {}", cause::times(sags.len())),
        causes: vec![CauseKind::UndervoltageAlone],
        readings: sags.iter().take(4).map(|entry| Reading::new(path, entry.raw)).collect(),
        advice: vec![advice::better_supply(), advice::powered_hub()],
    })
}

/// Ports that switched off and at which the log has no device.
pub(super) fn over_currents(
    inventory: &Inventory,
    history: &History<'_>,
    path: &str,
    known: &[Absent],
) -> Vec<Absent> {
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
            causes: vec![CauseKind::OverCurrent],
            readings: vec![Reading::new(path, entry.raw)],
            advice: vec![advice::more_power()],
        });
    }
    all
}

/// Hubs that do not answer their driver, where no drive behind them is reported.
pub(super) fn failing_hubs(history: &History<'_>, path: &str, known: &[Absent]) -> Vec<Absent> {
    let mut errors: BTreeMap<&str, Vec<&Entry<'_>>> = BTreeMap::new();
    for entry in &history.entries {
        if let Some(hub) = cause::hub_in_error(entry.line) {
            errors.entry(hub).or_default().push(entry);
        }
    }
    let is_known = |hub: &str| {
        known.iter().any(|one| {
            one.place == hub || one.causes.contains(&CauseKind::Hub) || one.kind == AbsentKind::Controller
        })
    };
    let of = |(hub, entries): (&str, Vec<&Entry<'_>>)| {
        let meaning = entries.iter().find_map(|entry| cause::errno_meaning(entry.line.text));
        let meaning = meaning.map_or_else(String::new, |meaning| format!(" ({meaning})"));
        Absent {
            place: hub.to_owned(),
            kind: AbsentKind::Hub,
            id: history.at_port(hub).filter_map(|(_, session)| session.id).last(),
            because: format!(
                "the hub at {hub} does not answer, {}{meaning}; every device behind it is affected",
                cause::times(entries.len())
            ),
            causes: vec![CauseKind::Hub],
            readings: entries.iter().take(4).map(|entry| Reading::new(path, entry.raw)).collect(),
            advice: vec![advice::failing_hub()],
        }
    };
    errors.into_iter().filter(|(hub, _)| !is_known(hub)).map(of).collect()
}

/// A hub or dock that disconnected with the devices behind it.
pub(super) fn lost_hub(inventory: &Inventory, history: &History<'_>, path: &str) -> Option<Absent> {
    const BEHIND_MIN: usize = 2;
    let ended = |session: &Session| session.ended.and_then(|end| history.entries.get(end));
    let behind = |hub: &Session| history.sessions.behind(&hub.port).filter(|one| one.is_ended()).count();
    let is_back = |session: &Session| inventory.devices.iter().any(|device| device.port == session.port);
    let gone = history.sessions.iter().filter(|session| session.is_ended() && !is_back(session));
    let (hub, count) = gone
        .map(|hub| (hub, behind(hub)))
        .filter(|(_, count)| *count >= BEHIND_MIN)
        .max_by_key(|(_, count)| *count)?;
    let end = ended(hub)?;
    Some(Absent {
        place: hub.port.clone(),
        kind: AbsentKind::Hub,
        id: hub.id,
        because: format!(
            "the hub or dock at {} disconnected{}, with {count} devices behind it",
            hub.port,
            cause::since_boot_words(end)
        ),
        causes: Vec::new(),
        readings: vec![Reading::new(path, end.raw)],
        advice: vec![advice::hub_power()],
    })
}
