//! The host controller: death, and events of streams that its driver does not know (drivers/usb/host/xhci*.c).
//!
//! A line counts for the controller that prints it; a death explains all that follows it. Always true: a controller that was removed did
//! not die; names of a controller and its driver are printed in commands, so a name that a shell would run is not taken. Left out: what
//! the controller's devices print of it.

use super::{Cause, CauseKind, Scene, since_boot_words};
use crate::diagnose::advice;
use crate::inventory::LinkSpeed;
use crate::log::{Entry, History, is_of_controller};

/// `xhci_hc_died`, `usb_hc_died`, and what comes before them.
const DEATHS: [&str; 7] = [
    "HC died; cleaning up",
    "assume dead",
    "not responding to stop endpoint command",
    "Host halt failed",
    "can't setup: -",
    "init 0000:",
    HOST_SYSTEM_ERROR,
];

/// `xhci_irq` halts a controller that reports it, and prints nothing else.
const HOST_SYSTEM_ERROR: &str = "WARNING: Host System Error";

/// Lines of a controller about streams and rings, in the words of kernels 4.4 to 7.3.
const STREAM_EVENTS: [&str; 3] =
    ["for unknown stream ring", "for disabled endpoint or incorrect stream ring", "incorrect stream ring"];

/// Lines of a controller that say that it and its driver disagree.
const RING_ERRORS: [&str; 9] = [
    "ERROR unknown event type",
    "Mismatch between completed Set TR Deq Ptr command",
    "Stopped on No-op or Link TRB",
    "Timeout while waiting for setup device command",
    "Abort failed to stop command ring",
    "with no TDs queued",
    "not part of current TD",
    "HC probably busted",
    "Set TR Deq Ptr command",
];

/// Whether a line is printed by that controller.
fn is_by(entry: &Entry<'_>, controller: Option<&str>) -> bool {
    let Some((driver, name)) = entry.line.source.rsplit_once(' ') else { return false };
    // Both are printed in commands.
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b":._-".contains(&byte);
    if !driver.bytes().chain(name.bytes()).all(is_plain) {
        return false;
    }
    is_of_controller(entry.line.source) && controller.is_none_or(|controller| controller == name)
}

/// Whether a line of a controller says that it died.
pub(in crate::diagnose) fn is_controller_death(entry: &Entry<'_>) -> bool {
    is_by(entry, None) && is_death(entry)
}

/// Whether a line of a controller is about a stream that its driver does not know.
pub(in crate::diagnose) fn is_stream_event(entry: &Entry<'_>) -> bool {
    is_by(entry, None) && STREAM_EVENTS.iter().any(|words| entry.line.text.contains(words))
}

/// Whether a line of a controller says that it and its driver disagree about a transfer.
pub(in crate::diagnose) fn is_ring_error(entry: &Entry<'_>) -> bool {
    is_by(entry, None) && RING_ERRORS.iter().any(|words| entry.line.text.contains(words))
}

fn is_death(entry: &Entry<'_>) -> bool {
    DEATHS.iter().any(|words| entry.line.text.contains(words))
}

/// Lines between what a controller prints at its removal and the removal.
const REMOVAL_LINES_MAX: usize = 64;

/// Seconds between them: a dead controller may be unbound later to restart it.
const REMOVAL_S: f64 = 10.0;

/// Whether a controller was removed with its dock or card, or unbound (`usb_hcd_pci_remove`): then it did not die by itself, and
/// what it prints of its death follows from that.
pub(in crate::diagnose) fn is_removed(history: &History<'_>, death: &Entry<'_>) -> bool {
    let from = death.index.saturating_sub(REMOVAL_LINES_MAX);
    history.entries.iter().skip(from).take(2 * REMOVAL_LINES_MAX + 1).any(|entry| {
        entry.line.source == death.line.source
            && entry.line.begins(&["remove, state"])
            && entry.at.zip(death.at).is_none_or(|(removal, death)| (removal - death).abs() <= REMOVAL_S)
    })
}

pub(super) fn died(scene: &Scene<'_>) -> Option<Cause> {
    let first = scene.first();
    let entries = lines_since(scene, first);
    let by = |(_, entry): &(usize, &Entry<'_>)| {
        is_by(entry, scene.controller.as_deref()) && is_death(entry) && !is_removed(scene.history, entry)
    };
    let lines: Vec<usize> = entries.filter(by).map(|(index, _)| index).collect();
    let last = *lines.last()?;
    let entry = scene.history.entries.get(last)?;
    let name = entry.line.source.rsplit_once(' ').map_or(entry.line.source, |(_, name)| name);
    let commands = scene.commands().filter(|command| command.lines.first().is_some_and(|line| *line < last));
    let node = scene.node();
    let drive = node.map_or_else(|| "the drive".to_owned(), |node| format!("/dev/{node}"));
    let busy =
        if commands.count() > 0 { format!(" while {drive} had commands in flight") } else { String::new() };
    let is_back = lines_since(scene, last)
        .filter(|(_, later)| later.line.source == entry.line.source)
        .any(|(_, later)| later.line.begins(&["new USB bus registered"]));
    let back = if is_back { ", and it has been started again since" } else { "" };
    let is_bus_error = |(_, entry): (usize, &Entry<'_>)| {
        is_by(entry, Some(name)) && entry.line.text.contains(HOST_SYSTEM_ERROR)
    };
    let why = match lines_since(scene, first).any(is_bus_error) {
        true => ", after a Host System Error: it could not reach memory",
        false => "",
    };
    let because = format!(
        "the host controller {name} died{}{busy}{why}; all of its devices went with it{back}",
        since_boot_words(entry)
    );
    let driver = entry.line.source.rsplit_once(' ').map_or("xhci_hcd", |(driver, _)| driver);
    let cause = scene.cause(CauseKind::ControllerDied, because, &lines);
    let mut advice = Vec::new();
    if !is_back {
        advice.push(advice::restart_controller(name, driver));
    }
    if scene.is_on_uas() && scene.evidence.speaks_bot_or_unknown() {
        advice.push(advice::keep_off_uas(scene.evidence));
    }
    advice.push(advice::newer_kernel_or_firmware());
    Some(Cause { advice, ..cause })
}

/// Lines of controllers from a line on.
fn lines_since<'a>(scene: &Scene<'a>, first: usize) -> impl Iterator<Item = (usize, &'a Entry<'a>)> {
    let all: &'a [usize] = &scene.history.of_controllers;
    let from = all.partition_point(|line| *line < first);
    scene.history.entries_at(all.get(from..).unwrap_or_default())
}

/// The controller of the lines about unknown streams, if they are of one.
fn only_with_stream_events<'a>(scene: &Scene<'a>) -> Option<&'a str> {
    let history: &'a History<'a> = scene.history;
    let entries = history.entries_at(&history.of_controllers).map(|(_, entry)| entry);
    let events = entries.filter(|entry| is_stream_event(entry) || is_ring_error(entry));
    let mut names = events.filter_map(|entry| Some(entry.line.source.rsplit_once(' ')?.1));
    let first = names.next()?;
    names.all(|name| name == first).then_some(first)
}

pub(super) fn stream_events(scene: &Scene<'_>) -> Option<Cause> {
    let speed = scene.evidence.device.speed;
    if !scene.is_on_uas() || !(speed.is_super() || speed == LinkSpeed::Unknown) {
        return None;
    }
    let first = scene.first();
    let entries = lines_since(scene, first);
    let is_one =
        |entry: &Entry<'_>, words: &[&str]| words.iter().any(|words| entry.line.text.contains(words));
    // Without a port the only controller that has such lines is meant.
    let name = scene.controller.as_deref().or_else(|| only_with_stream_events(scene)).unwrap_or_default();
    let by: Vec<(usize, &Entry<'_>)> = entries.filter(|(_, entry)| is_by(entry, Some(name))).collect();
    let of_streams: Vec<usize> =
        by.iter().filter(|(_, entry)| is_one(entry, &STREAM_EVENTS)).map(|(index, _)| *index).collect();
    let of_rings: Vec<usize> =
        by.iter().filter(|(_, entry)| is_one(entry, &RING_ERRORS)).map(|(index, _)| *index).collect();
    if of_streams.is_empty() && of_rings.is_empty() {
        return None;
    }
    let because = format!(
        "the controller {name} reported {} that its driver could not match to a stream or ring",
        match of_streams.len() + of_rings.len() {
            1 => "an event".to_owned(),
            count => format!("{count} events"),
        }
    );
    let lines: Vec<usize> = of_streams.into_iter().chain(of_rings).collect();
    let cause = scene.cause(CauseKind::StreamEvents, because, &lines);
    let mut advice = vec![advice::newer_kernel_or_firmware(), advice::other_controller()];
    if scene.evidence.speaks_bot_or_unknown() {
        advice.push(advice::keep_off_uas(scene.evidence));
    }
    Some(Cause { advice, ..cause })
}
