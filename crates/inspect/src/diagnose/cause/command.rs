//! Commands that were aborted: what was asked of the drive when it stopped answering.
//!
//! A batch is what the error handler aborts before it resets the device. If its first command is no read or write, that
//! command is the trouble and the others waited behind it; if all are reads and writes, the transport is.

use super::{Cause, CauseKind, Scene, errno_meaning, times};
use crate::diagnose::advice::{self, Advice};
use crate::log::{CommandClass, Entry, FailedCommand, LogLine, command_name};

/// Lines between two aborts of a batch: each abort has its CDB, and other units may print between them.
const BATCH_LINES_MAX: usize = 12;

pub(super) fn aborted(scene: &Scene<'_>) -> Option<Cause> {
    let own: Vec<&FailedCommand> = scene.commands().filter(|one| one.sense.is_none()).collect();
    let aborted: Vec<&FailedCommand> = own.iter().copied().filter(|command| command.is_aborted).collect();
    // Logs lose lines: a CDB without its abort counts where no abort has a CDB.
    let is_known = aborted.iter().any(|command| !command.cdb.is_empty());
    let Some(first_abort) = aborted.first().copied() else { return of_link(scene) };
    let commands: Vec<&FailedCommand> = if is_known {
        aborted
    } else {
        let known = own.iter().copied().filter(|command| command.is_aborted || !command.cdb.is_empty());
        let known: Vec<&FailedCommand> = known.filter(|command| !command.cdb.is_empty()).collect();
        if known.is_empty() { aborted } else { known }
    };
    let first = commands.first().copied().unwrap_or(first_abort);
    let special = first_of_batches(&commands).find(|command| {
        !matches!(CommandClass::of(&command.cdb), CommandClass::Transfer | CommandClass::Other)
    });
    match special {
        Some(command) => Some(of_command(scene, command)),
        None => Some(of_transport(scene, first, &commands)),
    }
}

/// The first command of each batch.
fn first_of_batches<'a>(commands: &'a [&'a FailedCommand]) -> impl Iterator<Item = &'a FailedCommand> {
    let mut last: Option<usize> = None;
    commands.iter().copied().filter(move |command| {
        let line = command.lines.first().copied().unwrap_or_default();
        let is_first = last.is_none_or(|last| line > last + BATCH_LINES_MAX);
        last = command.lines.last().copied().or(Some(line));
        is_first
    })
}

fn of_command(scene: &Scene<'_>, command: &FailedCommand) -> Cause {
    let name = command_name(&command.cdb);
    let evidence = scene.evidence;
    let (kind, why, advice) = match CommandClass::of(&command.cdb) {
        CommandClass::Poll => (
            CauseKind::Poll,
            ": a poll for SMART or power mode",
            vec![advice::stop_poller(), advice::block_ata(evidence)],
        ),
        CommandClass::Trim => (
            CauseKind::Trim,
            ": TRIM, as fstrim or the mount option discard sends it",
            vec![advice::stop_trim(evidence)],
        ),
        CommandClass::WriteSame => {
            (CauseKind::Command, "", vec![advice::letter(evidence, 'k', "Send no WRITE SAME")])
        }
        CommandClass::ReportOpcodes => (
            CauseKind::Command,
            "",
            vec![advice::letter(evidence, 'f', "Send no REPORT SUPPORTED OPERATION CODES")],
        ),
        CommandClass::SynchronizeCache => (
            CauseKind::Command,
            ": the drive did not finish flushing its cache",
            vec![advice::power_cycle(), advice::drive_firmware()],
        ),
        CommandClass::StartStop => (
            CauseKind::Command,
            ": the drive did not start or stop in time",
            vec![advice::no_spin_down(), advice::more_power()],
        ),
        CommandClass::LogSense => {
            (CauseKind::Poll, ": a poll for temperature or health", vec![advice::stop_poller()])
        }
        _ => (CauseKind::Command, "", vec![advice::cable_and_port(), advice::power_cycle()]),
    };
    let because = format!("the command that was aborted first was {name}{why}");
    let mut cause = scene.cause(kind, because, &command.lines);
    cause.advice = advice;
    let is_blocked = evidence.quirks.uas().contains(quirks::quirk::Flag::NoAta1x);
    if kind == CauseKind::Poll && is_blocked {
        cause.advice.truncate(1);
    }
    cause
}

/// Transfers that failed, resets and unreadable blocks without an aborted command in the log.
fn of_link(scene: &Scene<'_>) -> Option<Cause> {
    let is_failure = |entry: &Entry<'_>| is_failed_transfer(entry.line);
    let failed: Vec<(usize, &Entry<'_>)> = scene.own().filter(|(_, entry)| is_failure(entry)).collect();
    if let Some((index, entry)) = failed.first() {
        let meaning =
            errno_meaning(entry.line.text).map_or_else(String::new, |meaning| format!(" ({meaning})"));
        let because = format!("{} failed on the link{meaning}", counted(failed.len(), "transfer"));
        let mut cause = scene.cause(CauseKind::Transport, because, &[*index]);
        cause.advice = transport_advice(scene);
        return Some(cause);
    }
    let errors = scene.evidence.log()?.errors(scene.evidence.device, None);
    let is_lost = |entry: &Entry<'_>| {
        entry.line.disk_in_error().is_some()
            && entry.line.text.contains("I/O error")
            && !crate::inventory::is_refused_discard(entry.line)
    };
    let lost: Vec<usize> = scene.own().filter(|(_, entry)| is_lost(entry)).map(|(index, _)| index).collect();
    let resets: Vec<usize> =
        scene.own().filter(|(_, entry)| entry.line.begins(&["reset "])).map(|(index, _)| index).collect();
    let because = match (errors.resets, lost.len()) {
        (0 | 1, 0) => return None,
        (0, lost) => format!("{} failed in the transport", counted(lost, "block request")),
        (resets, 0) => format!("the kernel reset the drive {resets} times"),
        (resets, lost) => {
            format!(
                "the kernel reset the drive {}, and {} failed",
                times(resets),
                counted(lost, "block request")
            )
        }
    };
    let lines: Vec<usize> = resets.into_iter().take(2).chain(lost).collect();
    let mut cause = scene.cause(CauseKind::Transport, because, &lines);
    cause.advice = transport_advice(scene);
    Some(cause)
}

/// Whether a line of `uas` says that a transfer failed.
pub(super) fn is_failed_transfer(line: LogLine<'_>) -> bool {
    const WORDS: [&str; 5] = ["cmd cmplt err", "data cmplt err", "stat urb: ", "sense urb: ", "cmd urb: "];
    WORDS.iter().any(|words| line.of_command().starts_with(words))
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("one {what}") } else { format!("{count} {what}s") }
}

fn transport_advice(scene: &Scene<'_>) -> Vec<Advice> {
    let mut advice = vec![advice::cable_and_port()];
    if scene.is_on_uas() && scene.evidence.speaks_bot_or_unknown() {
        advice.push(advice::keep_off_uas(scene.evidence));
    }
    advice
}

fn of_transport(scene: &Scene<'_>, first: &FailedCommand, all: &[&FailedCommand]) -> Cause {
    let name = if first.cdb.is_empty() { "a command".to_owned() } else { command_name(&first.cdb) };
    let because = match all.len() {
        1 => format!("{name} was aborted: the transport lost it"),
        count => format!("{count} commands were aborted, {name} first: the transport lost them"),
    };
    let mut cause = scene.cause(CauseKind::Transport, because, &first.lines);
    cause.advice = transport_advice(scene);
    cause
}
