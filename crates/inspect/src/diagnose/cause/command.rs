//! Commands that the drive did not complete: what was asked of it when it stopped answering.
//!
//! A batch is what the error handler gives up before it resets the device. If its first command is no read or write, that
//! command is the cause and the others waited behind it; if all are reads and writes, the transport is. What each command
//! means is in [`quirks::command`].

use super::{Cause, CauseKind, Scene, errno_meaning, name_of, times};
use crate::diagnose::advice::{self, Advice};
use crate::log::{Entry, FailedCommand, LogLine, Loss};
use quirks::command::{CommandClass, CommandRow, Remedy, command_name};

/// Lines between two commands of a batch: each has its CDB, and other units may print between them.
const BATCH_LINES_MAX: usize = 12;

pub(super) fn lost(scene: &Scene<'_>) -> Option<Cause> {
    let own: Vec<&FailedCommand> = scene.commands().filter(|one| one.sense.is_none()).collect();
    let is_lost = |command: &&FailedCommand| {
        command.loss.is_some_and(|loss| loss != Loss::Gone) && !scene.is_after_end(command)
    };
    let lost: Vec<&FailedCommand> = own.iter().copied().filter(is_lost).collect();
    // Logs lose lines: a CDB without its abort counts where no abort has a CDB.
    let is_known = lost.iter().any(|command| !command.cdb.is_empty());
    let Some(first_lost) = lost.first().copied() else {
        return polled(scene)
            .or_else(|| gone(scene, &own))
            .or_else(|| of_link(scene))
            .or_else(|| offlined(scene));
    };
    let commands: Vec<&FailedCommand> = if is_known {
        lost
    } else {
        let known = own.iter().copied().filter(|command| command.loss.is_some() || !command.cdb.is_empty());
        let known: Vec<&FailedCommand> = known.filter(|command| !command.cdb.is_empty()).collect();
        if known.is_empty() { lost } else { known }
    };
    let first = commands.first().copied().unwrap_or(first_lost);
    let special = first_of_batches(&commands).find_map(|command| {
        let row = CommandRow::of(&command.cdb)?;
        let is_special = !matches!(row.class, CommandClass::Transfer | CommandClass::Other);
        is_special.then_some((command, row))
    });
    Some(match special {
        Some((command, row)) => of_command(scene, command, row),
        None => polled(scene).unwrap_or_else(|| of_transport(scene, first, &commands)),
    })
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

fn of_command(scene: &Scene<'_>, command: &FailedCommand, row: CommandRow) -> Cause {
    let name = command_name(&command.cdb);
    let evidence = scene.evidence;
    let is_without_disk = !scene.has_disk();
    let kind = match row.class {
        CommandClass::Identify | CommandClass::ReportOpcodes if is_without_disk => CauseKind::NoDisk,
        CommandClass::Poll => CauseKind::Poll,
        CommandClass::Trim => CauseKind::Trim,
        _ => CauseKind::Command,
    };
    let mut advice = match (row.remedy, row.quirk.and_then(quirks::quirk::Flag::letter)) {
        (Remedy::StopPoller, Some(_)) if evidence.quirks.uas().contains(quirks::quirk::Flag::NoAta1x) => {
            vec![advice::stop_poller()]
        }
        (Remedy::StopPoller, Some(_)) => vec![advice::stop_poller(), advice::block_ata(evidence)],
        (Remedy::StopPoller, None) => vec![advice::stop_poller()],
        (Remedy::StopTrim, _) => vec![advice::stop_trim(evidence)],
        (Remedy::NoSpinDown, _) => vec![advice::no_spin_down(), advice::more_power()],
        (Remedy::PowerCycle, _) => vec![advice::power_cycle(), advice::drive_firmware()],
        (Remedy::Quirk, Some(letter)) => vec![advice::letter(evidence, letter, &format!("Send no {name}"))],
        _ => vec![advice::cable_and_port(), advice::power_cycle()],
    };
    if kind == CauseKind::NoDisk && scene.is_on_uas() && evidence.speaks_bot_or_unknown() {
        advice.push(advice::keep_off_uas(evidence));
    }
    let how = match command.loss {
        Some(Loss::Aborted) | None => "was aborted",
        Some(Loss::TimedOut) => "timed out",
        Some(_) => "failed",
    };
    let meaning = if row.meaning.is_empty() { String::new() } else { format!(": {}", row.meaning) };
    let because = match kind {
        CauseKind::NoDisk => {
            format!("no disk appeared: {name}, which the kernel sends to every new drive, {how}")
        }
        _ => format!("the command that {how} first was {name}{meaning}"),
    };
    Cause { advice, ..scene.cause(kind, because, &command.lines) }
}

/// Finds polls of udisks and smartd that failed, where the kernel reset the drive.
fn polled(scene: &Scene<'_>) -> Option<Cause> {
    let is_poll = |entry: &Entry<'_>| {
        let text = entry.line.text;
        let is_poller = entry.line.source.ends_with(']')
            && ["udisksd[", "smartd["].iter().any(|program| entry.line.source.contains(program));
        is_poller
            && (text.contains("Error sending ATA command")
                || text.contains("Error updating SMART data")
                || text.contains("failed to read SMART"))
    };
    let poll = scene.history.entries.iter().position(is_poll)?;
    let entries =
        scene.own().filter(|(_, entry)| entry.line.begins(&["reset "]) || is_failed_transfer(entry.line));
    let reset = entries.map(|(index, _)| index).next()?;
    let because = "polls for SMART or power mode fail and the kernel resets the drive".to_owned();
    let cause = scene.cause(CauseKind::Poll, because, &[poll, reset]);
    Some(Cause { advice: vec![advice::stop_poller(), advice::block_ata(scene.evidence)], ..cause })
}

/// Commands that were given up because the device was not there any more, where the log does not have why.
fn gone(scene: &Scene<'_>, own: &[&FailedCommand]) -> Option<Cause> {
    let first = own.iter().find(|command| command.loss == Some(Loss::Gone))?;
    let mut sessions = scene.sessions.iter().filter_map(|at| scene.history.sessions.get(*at));
    if scene.resets() > 0 || sessions.any(|session| session.is_ended() || session.is_from_start) {
        return None;
    }
    let mut entries = first.lines.iter().filter_map(|line| scene.history.entries.get(*line));
    let because = if entries.any(is_host_error_of_flush) {
        "the last flush ended with a host error, as it does once a drive is gone; what happened is before this part of the log"
    } else {
        "the disk was gone already: its commands were given up without being sent (DID_NO_CONNECT); what happened is before this part of the log"
    };
    let cause = scene.cause(CauseKind::Transport, because, &first.lines);
    Some(Cause { advice: vec![advice::longer_log(), advice::cable_and_port()], ..cause })
}

/// Whether a line is about a flush that the host could not send or complete.
fn is_host_error_of_flush(entry: &Entry<'_>) -> bool {
    let text = entry.line.of_command();
    text.starts_with("Synchronize Cache(")
        && ["hostbyte=DID_ERROR", "hostbyte=0x07"].iter().any(|result| text.contains(result))
}

/// Transfers that failed, resets and unreadable blocks without a lost command in the log.
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
    let is_lost = |entry: &Entry<'_>| {
        let of_block_layer = entry.line.disk_in_error().is_some()
            && entry.line.text.contains("I/O error")
            && !crate::inventory::is_refused_discard(entry.line);
        of_block_layer || entry.line.vdev_in_error().is_some()
    };
    // What fails after a disconnect fails because of it.
    let lost = scene.own().filter(|(index, entry)| is_lost(entry) && !scene.is_line_after_end(*index));
    let lost: Vec<usize> = lost.map(|(index, _)| index).collect();
    let resets = reset_lines(scene);
    let reset = format!("the kernel reset the drive {}{}", times(resets.len()), spacing(scene, &resets));
    let because = match (resets.len(), lost.len()) {
        (0 | 1, 0) => return None,
        (0, lost) => format!("{} failed in the transport", counted(lost, "block request")),
        (_, 0) => reset,
        (_, lost) => format!("{reset}, and {} failed", counted(lost, "block request")),
    };
    let lines: Vec<usize> = resets.into_iter().take(2).chain(lost).collect();
    let mut cause = scene.cause(CauseKind::Transport, because, &lines);
    cause.advice = transport_advice(scene);
    Some(cause)
}

/// Returns what resets show that come as far apart as a command may take (`SD_TIMEOUT` of Linux's sd.h, and the time to reset).
fn spacing(scene: &Scene<'_>, resets: &[usize]) -> &'static str {
    const TIMEOUT_S: std::ops::RangeInclusive<f64> = 29.0..=36.0;
    const GAPS_MIN: usize = 2;
    let at: Vec<Option<f64>> =
        resets.iter().map(|line| scene.history.entries.get(*line).and_then(|entry| entry.at)).collect();
    let gaps: Vec<f64> =
        at.windows(2).filter_map(|pair| Some((*pair.get(1)?)? - (*pair.first()?)?)).collect();
    let timed_out = gaps.iter().filter(|gap| TIMEOUT_S.contains(gap)).count();
    // The error handler may reset twice for one command.
    if timed_out < GAPS_MIN || timed_out * 3 < gaps.len() * 2 {
        return "";
    }
    ", about 30 s apart: before each a command timed out"
}

/// Resets of the drive, without those of a machine that wakes up.
fn reset_lines(scene: &Scene<'_>) -> Vec<usize> {
    let Some(log) = scene.evidence.log() else { return Vec::new() };
    let errors = log.errors(scene.evidence.device, None);
    // Lines at this port may be about a drive that was there before.
    let is_reset = |index: &usize| errors.reset_lines.binary_search(index).is_ok();
    scene.own().map(|(index, _)| index).filter(is_reset).collect()
}

/// The disk was taken offline, and the log does not have why.
fn offlined(scene: &Scene<'_>) -> Option<Cause> {
    const WORDS: [&str; 2] = ["Device offlined", "rejecting I/O to offline device"];
    let is_one = |(index, entry): &(usize, &Entry<'_>)| {
        WORDS.iter().any(|words| entry.line.of_command().starts_with(words))
            && !scene.is_line_after_end(*index)
    };
    let lines: Vec<usize> = scene.own().filter(is_one).map(|(index, _)| index).collect();
    lines.first()?;
    let because = "the kernel took the disk offline, since the drive did not answer after its resets; what happened first is before this part of the log";
    let cause = scene.cause(CauseKind::Transport, because, &lines);
    Some(Cause {
        advice: vec![advice::longer_log(), advice::power_cycle(), advice::cable_and_port()],
        ..cause
    })
}

/// Returns the loss of a file system or the page cache, where nothing else shows what happened to the drive.
pub(super) fn file_system(scene: &Scene<'_>) -> Option<Cause> {
    let is_one = |(_, entry): &(usize, &Entry<'_>)| entry.line.is_file_system_error();
    let lines: Vec<usize> = scene.own().filter(is_one).map(|(index, _)| index).collect();
    lines.first()?;
    let node = scene.node();
    let disk = node.map_or_else(|| "the disk".to_owned(), |node| format!("/dev/{node}"));
    let because = format!(
        "a file system or the page cache on {disk} reports errors, {}; they follow from what happened to the drive before, and no other error in the log names this disk",
        times(lines.len())
    );
    let cause = scene.cause(CauseKind::FileSystem, because, &lines);
    Some(Cause { advice: vec![advice::longer_log()], ..cause })
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
    let name = name_of(first);
    let how = match first.loss {
        Some(Loss::TimedOut) => "timed out",
        Some(Loss::Transport) => "failed",
        _ => {
            if all.len() == 1 {
                "was aborted"
            } else {
                "were aborted"
            }
        }
    };
    let spacing = spacing(scene, &reset_lines(scene)).trim_start_matches(", ");
    let spacing = if spacing.is_empty() { String::new() } else { format!("; resets come {spacing}") };
    let changed = scene.own().find(|(_, entry)| entry.line.begins(&["device firmware changed"]));
    let after = if changed.is_some() {
        "; after the reset it answered with other descriptors, and Linux dropped it"
    } else {
        ""
    };
    let because = match all.len() {
        1 => format!("{name} {how}: the transport lost it{spacing}{after}"),
        count => format!("{count} commands {how}, {name} first: the transport lost them{spacing}{after}"),
    };
    let lines: Vec<usize> = first.lines.iter().copied().chain(changed.map(|(index, _)| index)).collect();
    let mut cause = scene.cause(CauseKind::Transport, because, &lines);
    cause.advice = transport_advice(scene);
    if changed.is_some() {
        cause.advice.push(advice::drive_firmware());
    }
    cause
}
