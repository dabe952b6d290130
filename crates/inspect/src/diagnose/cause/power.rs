//! Power: the board's supply (drivers/hwmon/raspberrypi-hwmon.c, older firmware drivers), and ports that draw too much.

use super::{Cause, CauseKind, Scene, times};
use crate::diagnose::advice;
use crate::diagnose::evidence::Reading;
use crate::log::{Entry, port_of_hub_line};

/// Seconds from a sag of the supply to a failure that it explains.
const SAG_TO_FAILURE_S: f64 = 5.0;

pub(super) fn undervoltage(scene: &Scene<'_>) -> Option<Cause> {
    let sags: Vec<(usize, &Entry<'_>)> =
        scene.history.entries.iter().enumerate().filter(|(_, entry)| is_sag(entry)).collect();
    if sags.is_empty() {
        return of_board(scene);
    }
    let failures: Vec<(usize, &Entry<'_>)> = scene.own().filter(|(_, entry)| is_failure(entry)).collect();
    let followers: Vec<Option<usize>> = sags.iter().map(|(_, sag)| follower(sag, &failures)).collect();
    let followed = followers.iter().flatten().count();
    let count = times(sags.len());
    let when: Vec<String> = sags
        .iter()
        .filter_map(|(_, entry)| crate::log::since_boot(entry.raw))
        .take(4)
        .map(|seconds| format!("{seconds:.1} s"))
        .collect();
    let when = if when.is_empty() { String::new() } else { format!(", at {}", when.join(" and ")) };
    let (kind, because) = match followed {
        0 => (CauseKind::UndervoltageAlone, format!("the board's supply voltage was too low {count}{when}")),
        followed => {
            let each = if followed == sags.len() && followed > 1 {
                "each time right before a failure of the drive".to_owned()
            } else {
                let count = if sags.len() == 1 { String::new() } else { format!("{} ", times(followed)) };
                format!("{count}right before a failure of the drive")
            };
            (CauseKind::Undervoltage, format!("the board's supply voltage was too low {count}{when}, {each}"))
        }
    };
    let pairs = sags.iter().zip(followers);
    let lines: Vec<usize> = pairs.flat_map(|(sag, failure)| [Some(sag.0), failure]).flatten().collect();
    let cause = scene.cause(kind, because, &lines);
    Some(Cause { advice: vec![advice::better_supply(), advice::powered_hub()], ..cause })
}

/// The failure that a sag explains: the first within [`SAG_TO_FAILURE_S`].
fn follower(sag: &Entry<'_>, failures: &[(usize, &Entry<'_>)]) -> Option<usize> {
    let later = failures.get(failures.partition_point(|failure| failure.0 <= sag.index)..)?;
    let is_near = |failure: &&(usize, &Entry<'_>)| match (sag.at, failure.1.at) {
        (Some(sag), Some(failure)) => (0.0..=SAG_TO_FAILURE_S).contains(&(failure - sag)),
        // Without times, the next line counts.
        _ => failure.0 == sag.index + 1,
    };
    later.iter().take(FAILURES_MAX).find(is_near).map(|failure| failure.0)
}

/// Failures that are looked at behind a sag: times increase, unless logs of several boots were joined.
const FAILURES_MAX: usize = 256;

/// A board that reports a supply that is or was too low, and a drive that failed.
fn of_board(scene: &Scene<'_>) -> Option<Cause> {
    let supply = scene.evidence.inventory.board.as_ref()?.supply.as_ref().filter(|supply| supply.was_low)?;
    let (index, _) = scene.own().find(|(_, entry)| is_failure(entry) && !entry.line.begins(&["USB disc"]))?;
    let because = if supply.is_low {
        "the board's supply voltage is too low now, and the drive failed"
    } else {
        "the board's supply voltage was too low since boot, and the drive failed; the report does not show whether at the same time"
    };
    let mut cause = scene.cause(CauseKind::Undervoltage, because, &[index]);
    cause.readings.insert(0, Reading::new(&supply.path, &supply.text));
    cause.advice = vec![advice::better_supply(), advice::powered_hub()];
    Some(cause)
}

/// `hwmon hwmon1: Undervoltage detected!`, and `Under-voltage detected! (0x00050005)` of older kernels.
pub(in crate::diagnose) fn is_sag(entry: &Entry<'_>) -> bool {
    let line = entry.line;
    let is_of_board =
        line.source.starts_with("hwmon") || line.source.is_empty() || line.source.contains("rpi");
    is_of_board && line.begins(&["Undervoltage detected", "Under-voltage detected"])
}

fn is_failure(entry: &Entry<'_>) -> bool {
    let line = entry.line;
    let command = line.of_command();
    line.begins(&["reset ", "USB disconnect", "device descriptor read"])
        || command.starts_with("uas_eh_abort_handler")
        || super::command::is_failed_transfer(line)
        || line.disk_in_error().is_some()
}

pub(super) fn over_current(scene: &Scene<'_>) -> Option<Cause> {
    let device = scene.evidence.device;
    let parent = device.parent();
    let is_own = |entry: &Entry<'_>| {
        let line = entry.line;
        if !line.begins(&["over-current"]) {
            return false;
        }
        let of_port = port_of_hub_line(line.source).is_some_and(|port| port == device.port);
        // `hub 2-1:1.0: over-current condition on port 3`, and of the whole hub `hub 2-1:1.0: over-current condition`.
        let hub = line.source.strip_prefix("hub ").and_then(|name| name.split(':').next());
        let hub = hub.map(|hub| match hub.split_once('-') {
            Some((bus, "0")) => format!("usb{bus}"),
            _ => hub.to_owned(),
        });
        let port = line.text.rsplit_once("port ").map(|(_, port)| port.trim());
        let own_port = device.port.rsplit(['.', '-']).next();
        let of_hub = hub.is_some() && hub == parent && (port.is_none() || port == own_port);
        of_port || of_hub
    };
    let entries = scene.history.entries.iter().enumerate();
    let lines: Vec<usize> = entries.filter(|(_, entry)| is_own(entry)).map(|(index, _)| index).collect();
    if lines.is_empty() {
        return None;
    }
    let because = format!("the port switched off because too much current was drawn, {}", times(lines.len()));
    let cause = scene.cause(CauseKind::OverCurrent, because, &lines);
    Some(Cause { advice: vec![advice::more_power()], ..cause })
}
