//! Commands that were aborted: what was asked of the drive when it stopped answering.
//!
//! A batch is what the error handler aborts before it resets the device. If its first command is no read or write, that
//! command is the trouble and the others waited behind it; if all are reads and writes, the transport is.

use super::{Cause, CauseKind, Scene};
use crate::diagnose::advice;
use crate::log::{CommandClass, FailedCommand, command_name};

/// Lines between two aborts of a batch: each abort has its CDB, and other units may print between them.
const BATCH_LINES_MAX: usize = 12;

pub(super) fn aborted(scene: &Scene<'_>) -> Option<Cause> {
    let own = scene
        .history
        .commands
        .iter()
        .filter(|(session, _)| session.is_some_and(|session| scene.sessions.contains(&session)));
    let own: Vec<&FailedCommand> =
        own.map(|(_, command)| command).filter(|one| one.sense.is_none()).collect();
    let aborted: Vec<&FailedCommand> = own.iter().copied().filter(|command| command.is_aborted).collect();
    // Logs lose lines: a CDB without its abort counts where no abort has a CDB.
    let is_known = aborted.iter().any(|command| !command.cdb.is_empty());
    let first_abort = *aborted.first()?;
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

fn of_transport(scene: &Scene<'_>, first: &FailedCommand, all: &[&FailedCommand]) -> Cause {
    let name = if first.cdb.is_empty() { "commands".to_owned() } else { command_name(&first.cdb) };
    let because = match all.len() {
        1 => format!("{name} was aborted: the transport lost it"),
        count => format!("{count} commands were aborted, {name} first: the transport lost them"),
    };
    let mut cause = scene.cause(CauseKind::Transport, because, &first.lines);
    cause.advice = vec![advice::cable_and_port()];
    if scene.is_on_uas() && scene.evidence.speaks_bot_or_unknown() {
        cause.advice.push(advice::keep_off_uas(scene.evidence));
    }
    cause
}
