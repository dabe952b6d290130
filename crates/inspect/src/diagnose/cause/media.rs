//! Errors that the drive itself reports: MEDIUM ERROR and HARDWARE ERROR (SPC-5 clause 4.4.8). USB delivered them intact.

use super::{Cause, CauseKind, Scene};
use crate::diagnose::advice;
use crate::log::{Entry, FailedCommand, SenseKey, command_name};

pub(super) fn failing(scene: &Scene<'_>) -> Option<Cause> {
    let is_bad = |command: &&FailedCommand| {
        matches!(command.sense, Some(SenseKey::MediumError | SenseKey::HardwareError))
    };
    let commands: Vec<&FailedCommand> = scene.commands().filter(is_bad).collect();
    let blocks: Vec<usize> =
        scene.own().filter(|(_, entry)| is_lost_block(entry)).map(|(index, _)| index).collect();
    let (because, lines) = match commands.first() {
        Some(command) => (sentence(command, commands.len()), command.lines.clone()),
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

fn sentence(command: &FailedCommand, count: usize) -> String {
    let key = match command.sense {
        Some(SenseKey::HardwareError) => "HARDWARE ERROR",
        _ => "MEDIUM ERROR",
    };
    let additional = match command.additional.as_str() {
        "" => String::new(),
        words => format!(" ({})", words.trim()),
    };
    let what =
        if command.cdb.is_empty() { String::new() } else { format!(" at {}", command_name(&command.cdb)) };
    let more = if count > 1 { format!(", {count} commands in all") } else { String::new() };
    format!("the drive itself reports {key}{additional}{what}{more}; USB is not the cause")
}

/// A block that could not be read or written because of the medium. `critical target error` may be a refused command.
fn is_lost_block(entry: &Entry<'_>) -> bool {
    entry.line.disk_in_error().is_some() && entry.line.text.contains("critical medium error")
}
