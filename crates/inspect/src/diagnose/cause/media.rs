//! Errors that the drive itself reports by sense data (SPC-5 clause 4.4.8): USB delivered them intact.
//!
//! MEDIUM ERROR and HARDWARE ERROR mean that the drive fails. NOT READY, ABORTED COMMAND and ILLEGAL REQUEST count at reads,
//! writes and TRIM alone: elsewhere they mean that the drive does not support what was asked, which the kernel expects.

use super::{Cause, CauseKind, Scene};
use crate::diagnose::advice::{self, Advice};
use crate::inventory::is_refused_discard;
use crate::log::{Entry, FailedCommand, SenseKey};
use quirks::command::{CommandClass, CommandRow, command_name};

pub(super) fn failing(scene: &Scene<'_>) -> Option<Cause> {
    let is_bad = |command: &&FailedCommand| {
        matches!(command.sense, Some(SenseKey::MediumError | SenseKey::HardwareError))
    };
    let commands: Vec<&FailedCommand> = scene.commands().filter(is_bad).collect();
    let blocks: Vec<usize> =
        scene.own().filter(|(_, entry)| is_lost_block(entry)).map(|(index, _)| index).collect();
    let (because, lines) = match commands.first() {
        Some(command) => {
            (format!("{}; USB is not the cause", sentence(command, commands.len())), command.lines.clone())
        }
        None if blocks.is_empty() => return None,
        None => (
            "the drive itself reports MEDIUM ERROR: a block cannot be read or written".to_owned(),
            Vec::new(),
        ),
    };
    let lines: Vec<usize> = lines.into_iter().chain(blocks).collect();
    let node = scene.evidence.device.disks().find_map(|disk| disk.node.clone());
    let cause = scene.cause(CauseKind::DriveFailing, because, &lines);
    Some(Cause { advice: advice::failing_drive(node.as_deref()), ..cause })
}

/// Reads, writes and TRIM that the drive answered with another error.
pub(super) fn refused(scene: &Scene<'_>) -> Option<Cause> {
    let class = |command: &FailedCommand| CommandRow::of(&command.cdb).map(|row| row.class);
    let is_refusal = |command: &&FailedCommand| {
        matches!(
            command.sense,
            Some(SenseKey::NotReady | SenseKey::AbortedCommand | SenseKey::IllegalRequest)
        ) && matches!(
            class(command),
            Some(CommandClass::Transfer | CommandClass::Trim | CommandClass::WriteSame)
        )
    };
    let commands: Vec<&FailedCommand> = scene.commands().filter(is_refusal).collect();
    let Some(command) = commands.first() else {
        return refused_discard(scene).or_else(|| without_capacity(scene));
    };
    let (kind, advice) = match (class(command), command.sense) {
        (Some(CommandClass::Trim), _) => (CauseKind::TrimRefused, vec![advice::stop_trim(scene.evidence)]),
        (Some(CommandClass::WriteSame), _) => {
            (CauseKind::Command, vec![advice::letter(scene.evidence, 'k', "Send no WRITE SAME")])
        }
        (_, key) => (CauseKind::Refused, of_transfer(scene, command, key)),
    };
    let because = match kind {
        CauseKind::TrimRefused => format!("{TRIM_REFUSED} ({})", answer(command)),
        _ if is_fua(command) => {
            format!(
                "{}: it does not support FUA, which the write asked for",
                sentence(command, commands.len())
            )
        }
        _ => sentence(command, commands.len()),
    };
    Some(Cause { advice, ..scene.cause(kind, because, &command.lines) })
}

fn of_transfer(scene: &Scene<'_>, command: &FailedCommand, key: Option<SenseKey>) -> Vec<Advice> {
    let additional = command.additional.to_ascii_lowercase();
    let address = scene.evidence.device.disks().map(|disk| disk.address.as_str()).next().unwrap_or_default();
    match key {
        _ if is_fua(command) => vec![advice::no_fua(address), advice::drive_firmware()],
        Some(SenseKey::NotReady)
            if additional.contains("medium not present") || additional.contains("asc=0x3a") =>
        {
            vec![advice::insert_medium()]
        }
        Some(SenseKey::NotReady) => vec![advice::power_cycle(), advice::more_power(), advice::reseat()],
        Some(SenseKey::IllegalRequest) => vec![advice::compare_capacity(), advice::power_cycle()],
        _ => vec![advice::reseat(), advice::power_cycle(), advice::drive_firmware()],
    }
}

/// Whether a write that the drive refused had the FUA bit (SBC-4 clause 5.39).
fn is_fua(command: &FailedCommand) -> bool {
    let is_write = matches!(command.cdb.first(), Some(0x2a | 0x8a | 0xaa));
    let has_bit = command.cdb.get(1).is_some_and(|byte| byte % 16 >= 8);
    let additional = command.additional.to_ascii_lowercase();
    let is_field = additional.contains("invalid field in cdb") || additional.contains("asc=0x24");
    is_write && has_bit && is_field && command.sense == Some(SenseKey::IllegalRequest)
}

/// A DISCARD that failed, of which the block layer alone prints a line.
fn refused_discard(scene: &Scene<'_>) -> Option<Cause> {
    let is_one = |entry: &Entry<'_>| {
        is_refused_discard(entry.line)
            && entry.line.text.contains("critical target error")
            && entry.line.text.contains("(DISCARD)")
    };
    let lines: Vec<usize> = scene.own().filter(|(_, entry)| is_one(entry)).map(|(index, _)| index).collect();
    lines.first()?;
    let cause = scene.cause(CauseKind::TrimRefused, TRIM_REFUSED, &lines);
    Some(Cause { advice: vec![advice::stop_trim(scene.evidence)], ..cause })
}

const TRIM_REFUSED: &str = "the drive refused TRIM; no data is lost, and the kernel sends it no more";

/// A drive that answers READ CAPACITY with an error, so that its disk has no blocks (`read_capacity_10` of Linux's sd.c). A
/// slot without a card is none.
fn without_capacity(scene: &Scene<'_>) -> Option<Cause> {
    let is_capacity = |cdb: &[u8]| cdb.first() == Some(&0x25) || cdb.starts_with(&[0x9e, 0x10]);
    let is_empty_slot = |command: &FailedCommand| {
        let additional = command.additional.to_ascii_lowercase();
        additional.contains("medium not present") || additional.contains("asc=0x3a")
    };
    let is_refusal = |command: &&FailedCommand| {
        matches!(command.sense, Some(SenseKey::NotReady | SenseKey::AbortedCommand | SenseKey::Other))
            && is_capacity(&command.cdb)
            && !is_empty_slot(command)
    };
    let commands: Vec<&FailedCommand> = scene.commands().filter(is_refusal).collect();
    let command = commands.last()?;
    let has_no_blocks = |entry: &Entry<'_>| {
        let text = entry.line.of_command();
        text.starts_with("0 ") && text.contains("-byte logical blocks")
    };
    let empty: Vec<usize> =
        scene.own().filter(|(_, entry)| has_no_blocks(entry)).map(|(index, _)| index).collect();
    empty.first()?;
    let because = format!("the disk has no capacity: the drive answered {}", answer(command));
    let lines: Vec<usize> = command.lines.iter().copied().take(3).chain(empty).collect();
    let mut advice = vec![advice::power_cycle(), advice::cable_and_port()];
    if scene.is_on_uas() && scene.evidence.speaks_bot_or_unknown() {
        advice.push(advice::keep_off_uas(scene.evidence));
    }
    advice.push(advice::reseat());
    Some(Cause { advice, ..scene.cause(CauseKind::NoDisk, because, &lines) })
}

/// `READ(10) with MEDIUM ERROR (Unrecovered read error)`.
fn answer(command: &FailedCommand) -> String {
    let key = command.sense.map_or("an error", SenseKey::name);
    let name = if command.cdb.is_empty() { "a command".to_owned() } else { command_name(&command.cdb) };
    format!("{name} with {key}{}", additional(command))
}

fn additional(command: &FailedCommand) -> String {
    match command.additional.trim() {
        "" => String::new(),
        words => format!(" ({words})"),
    }
}

fn sentence(command: &FailedCommand, count: usize) -> String {
    let key = command.sense.map_or("an error", SenseKey::name);
    let what =
        if command.cdb.is_empty() { String::new() } else { format!(" at {}", command_name(&command.cdb)) };
    let more = if count > 1 { format!(", {count} commands in all") } else { String::new() };
    format!("the drive itself reports {key}{}{what}{more}", additional(command))
}

/// A block that could not be read or written because of the medium. `critical target error` may be a refused command.
fn is_lost_block(entry: &Entry<'_>) -> bool {
    entry.line.disk_in_error().is_some() && entry.line.text.contains("critical medium error")
}
