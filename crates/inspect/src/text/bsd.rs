//! `dmesg` of FreeBSD, OpenBSD and NetBSD: which unit of `umass` a drive is, and what CAM reports of it.
//!
//! `umass` speaks Bulk-Only: none of the three has UAS. Linux's rules are not applied. Left out: their quirks.

use super::facts::Facts;
use super::section::Reader;
use super::{ForeignDrive, ForeignSystem, Source};
use quirks::DeviceId;
use std::collections::BTreeMap;

/// Letters of an error that are kept.
const ERROR_LETTERS_MAX: usize = 160;

/// Whether a line attaches `umass`, in the words of these systems: `umass0 on uhub0`, `umass0 at uhub0 port 3 …`.
pub(super) fn is_attach(text: &str) -> bool {
    let message = message(text);
    let is_of_cam = message.starts_with('(') && message.contains(":umass-sim");
    is_of_cam
        || unit_of(message).is_some()
            && [" on uhub", " at uhub", "-sim", "SCSI over Bulk-Only"]
                .iter()
                .any(|words| message.contains(words))
}

/// A line without its time and the name of the machine.
fn message(text: &str) -> &str {
    match text.find("kernel: ") {
        Some(at) => text.get(at + "kernel: ".len()..).unwrap_or_default(),
        None => text.trim_start(),
    }
}

/// `umass0` at the start of a message.
fn unit_of(message: &str) -> Option<&str> {
    let rest = message.strip_prefix("umass")?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    (digits > 0).then(|| message.get(..5 + digits)).flatten()
}

/// Reads the log.
pub(super) fn read(reader: &Reader<'_>, facts: &mut Facts) {
    let is_free_bsd = reader
        .lines
        .iter()
        .any(|line| ["umass-sim", "usbus", "ugen"].iter().any(|word| line.text.contains(word)));
    let system = if is_free_bsd { ForeignSystem::FreeBsd } else { ForeignSystem::OtherBsd };
    let mut command = String::new();
    let mut disks: BTreeMap<String, String> = BTreeMap::new();
    for line in reader.lines {
        let message = message(&line.text);
        if let Some(unit) = unit_of(message) {
            let name = part(message, '<', '>').or_else(|| part(message, '"', '"'));
            let known = facts.foreign.iter_mut().find(|drive| drive.driver.as_deref() == Some(unit));
            match known {
                Some(drive) => drive.name = drive.name.take().or_else(|| name.map(str::to_owned)),
                None => drop(facts.add_foreign(ForeignDrive {
                    name: name.map(str::to_owned),
                    ..on_unit(system, unit, reader.source(line))
                })),
            }
        } else if let Some((disk, text)) = message.split_once(' ') {
            note_disk(disk, text, &mut disks, facts);
        }
        if let Some((path, text)) = message.strip_prefix('(').and_then(|rest| rest.split_once("): ")) {
            note_error(path, text, &mut command, reader.source(line), facts);
        }
    }
}

/// A drive on a unit of `umass`.
fn on_unit(system: ForeignSystem, unit: &str, source: Source) -> ForeignDrive {
    ForeignDrive {
        driver: Some(unit.to_owned()),
        transport: Some("BOT"),
        ..ForeignDrive::new(system, DeviceId::new(0, 0), source)
    }
}

/// `da0 at umass-sim0 bus 0 …`, `da0: <name>`, `da0: 400.000MB/s transfers`.
fn note_disk(disk: &str, text: &str, disks: &mut BTreeMap<String, String>, facts: &mut Facts) {
    const SPEEDS: [(&str, &str); 3] =
        [("1.000MB/s", "12 Mb/s"), ("40.000MB/s", "480 Mb/s"), ("400.000MB/s", "5 Gb/s")];
    if let Some((number, _)) = text.strip_prefix("at umass-sim").and_then(|rest| rest.split_once(' ')) {
        disks.insert(format!("{disk}:"), format!("umass{number}"));
        return;
    }
    let Some(unit) = disks.get(disk) else { return };
    let drive = facts.foreign.iter_mut().find(|drive| drive.driver.as_ref() == Some(unit));
    if let Some(drive) = drive {
        if let Some((_, error)) = text.split_once("query device size failed: ") {
            drive.error = Some(format!("{error} at READ CAPACITY").chars().take(ERROR_LETTERS_MAX).collect());
        }
        drive.name = drive.name.take().or_else(|| part(text, '<', '>').map(str::to_owned));
        let speed = SPEEDS.iter().find(|(rate, _)| text.starts_with(rate)).map(|(_, speed)| *speed);
        drive.speed = drive.speed.or(speed);
    }
}

/// `(da0:umass-sim0:0:0:0): CAM status: …`: the command, then its status, then its sense data.
fn note_error(path: &str, text: &str, command: &mut String, source: Source, facts: &mut Facts) {
    let Some(number) = path.split_once("umass-sim").and_then(|(_, rest)| rest.split(':').next()) else {
        return;
    };
    if let Some((name, _)) = text.split_once(". CDB:") {
        name.clone_into(command);
        return;
    }
    let status =
        ["CAM status: ", "CAM Status: ", "SCSI sense: "].iter().find_map(|start| text.strip_prefix(start));
    // Older versions print the sense key without a word before it.
    let status = status.or_else(|| Some(text).filter(|text| text.contains(" asc:")));
    let Some(status) = status.filter(|status| !status.starts_with("SCSI Status Error")) else { return };
    let unit = format!("umass{number}");
    let known = facts.foreign.iter().position(|drive| drive.driver.as_deref() == Some(&unit));
    let at = known.or_else(|| {
        // A log may begin after the drive was attached.
        let node = path.split(':').next().filter(|node| !node.starts_with("probe"));
        facts.add_foreign(ForeignDrive {
            name: node.map(|node| format!("/dev/{node}")),
            ..on_unit(ForeignSystem::FreeBsd, &unit, source)
        })
    });
    if let Some(drive) = at.and_then(|at| facts.foreign.get_mut(at)) {
        let at = if command.is_empty() { String::new() } else { format!(" at {command}") };
        drive.error = Some(format!("{}{at}", status.trim()).chars().take(ERROR_LETTERS_MAX).collect());
    }
}

/// Returns the text between two signs.
fn part(text: &str, open: char, close: char) -> Option<&str> {
    let (_, rest) = text.split_once(open)?;
    let name = rest.split_once(close)?.0.split(", class").next()?;
    (!name.is_empty() && !name.starts_with("Bulk-In")).then_some(name)
}
