//! Trouble at the port, counted in the kernel's log.

use super::{Check, CheckKind, Health};
use crate::diagnose::advice;
use crate::diagnose::cause::{Cause, sessions_of};
use crate::diagnose::evidence::{Evidence, Reading};
use crate::inventory::KernelLog;
use crate::log::History;

pub(super) fn check(evidence: &Evidence<'_>, history: Option<&History<'_>>, causes: &[Cause]) -> Check {
    let kind = CheckKind::Resets;
    let Some((log, history)) = evidence.log().zip(history) else {
        let check = kind.says(Health::Unknown, "the kernel log could not be read");
        return if evidence.log_is_refused() {
            check.root_adds(
                "the kernel's log: resets, disconnects, errors since boot; or give a file with --log",
            )
        } else {
            check
        };
    };
    if log.is_silent() {
        // Unknown, not good: it was cleared, has gone on since, or was never read by the command that wrote the file.
        return kind
            .says(Health::Unknown, "the kernel log has no line about USB")
            .seen(Reading::new(&log.path, "no line about USB"));
    }
    // Nothing but UAS uses streams; the kernel names their controller alone, so that another drive of it may be meant.
    let uses_streams = evidence.device.speed.is_super() && evidence.speaks_uas();
    let errors = log.errors(evidence.device, evidence.controller.filter(|_| uses_streams));
    let counts = [
        (errors.resets, "resets"),
        (errors.disconnects, "disconnects"),
        (errors.aborts, "aborted commands"),
        (errors.enumeration_errors, "enumeration errors"),
        (errors.power, "power errors"),
        (errors.link_losses, "link losses"),
        (errors.io_errors, "block errors"),
        (errors.unknown_streams, "events of unknown streams"),
    ];
    let counted: Vec<String> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{what}: {count}"))
        .collect();
    if counted.is_empty() {
        return without_errors(evidence, log, history);
    }
    // Being unplugged is no trouble by itself.
    let only_unplugged = errors.disconnects > 0 && counted.len() == 1;
    let health = if only_unplugged { Health::Good } else { Health::Concern };
    let check = kind.says(health, counted.join(", "));
    let check = errors.examples.iter().fold(check, |check, line| check.seen(Reading::new(&log.path, line)));
    let check = if log.has_plug(evidence.device) {
        check
    } else {
        check.seen(Reading::new(
            &log.path,
            "the log lacks the attachment of this drive: some may belong to another drive",
        ))
    };
    if only_unplugged || !causes.is_empty() {
        return check;
    }
    let check = check.advise(advice::other_port(
        "Look at cable, port and power first",
        "another cable, another port, its own power supply",
        "most resets end there",
    ));
    if evidence.driver() == Some("uas") && evidence.speaks_bot() {
        check.advise(advice::keep_off_uas(evidence))
    } else {
        check
    }
}

/// Judges a log in which nothing was counted: good only if lines are about this drive.
fn without_errors(evidence: &Evidence<'_>, log: &KernelLog, history: &History<'_>) -> Check {
    let kind = CheckKind::Resets;
    if log.is_unreadable(history) {
        return kind
            .says(Health::Unknown, "the lines of that log could not be parsed")
            .seen(Reading::new(&log.path, history.entries.first().map_or("", |entry| entry.raw)));
    }
    if sessions_of(history, evidence.inventory, evidence.device).is_empty()
        && evidence.inventory.is_from_text()
    {
        return kind
            .says(Health::Unknown, "the kernel's log has no line about this drive")
            .seen(Reading::new(&log.path, "no line about its port"));
    }
    if evidence.inventory.is_from_text()
        && let Some(because) = too_short(history, evidence)
    {
        return kind.says(Health::Unknown, because).seen(Reading::new(&log.path, "no line of that kind"));
    }
    kind.says(Health::Good, "none in the kernel log").seen(Reading::new(&log.path, "no line of that kind"))
}

/// Seconds after which a drive without a failure counts as one that works.
const WATCHED_S: f64 = 300.0;

/// Why an excerpt of a log says too little: it ends soon after the drive was plugged in, or has no times.
fn too_short(history: &History<'_>, evidence: &Evidence<'_>) -> Option<String> {
    let own = sessions_of(history, evidence.inventory, evidence.device);
    let first = own.last().and_then(|at| history.sessions.get(*at))?.first;
    let began = history.entries.get(first).and_then(|entry| entry.at);
    let ended = evidence.inventory.report.as_ref().and_then(|report| report.log_end);
    let Some((began, ended)) = began.zip(ended) else {
        return Some(
            "the log has no failure; its duration is unknown, since it has no timestamps".to_owned(),
        );
    };
    let watched = ended - began;
    (watched < WATCHED_S)
        .then(|| format!("no failure in the {:.0} s of the log after the drive appeared", watched.max(0.0)))
}
