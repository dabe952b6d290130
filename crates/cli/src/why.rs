//! `uaskit why`: Linux's rules for one drive, with verdicts, evidence and advice.
//!
//! All findings come from `inspect::diagnose`; here they are printed: one drive with everything,
//! several with the answer and the findings. [`simulate`] applies the rules to simulated parts.

mod json;
mod simulate;
mod text;

use crate::args::WhyArguments;
use crate::failure::Failure;
use crate::messages::message;
use crate::sanitize::{self, escape, shown};
use crate::source;
use crate::stdout::Output;
use inspect::diagnose::{Absent, AbsentKind, CauseKind, Decision, Diagnoser, Diagnosis};
use inspect::inventory::{Inventory, Scope, UsbDevice};
use inspect::tree::Unread;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use study::plural::counted_len;

pub(crate) fn run(arguments: &WhyArguments, out: &mut Output<'_>) -> Result<(), Failure> {
    if let Some(setup) = &arguments.simulate {
        return simulate::run(setup, arguments.json, out);
    }
    let (files, drive) = source::files(&arguments.machine, arguments.drive.as_ref());
    let subject = source::open(&files)?;
    let log = arguments.log.as_deref().map(|file| {
        let unreadable = |error| Failure::unreadable(file, &error);
        std::path::absolute(file).and_then(std::fs::canonicalize).map_err(unreadable)
    });
    let log = log.transpose()?;
    let mut inventory = subject.inventory(Scope::Whole { log: None });
    if let Some(path) = &log {
        inventory.read_log(path);
    }
    if let (Some(file), Some(Err(unread))) = (&arguments.log, &inventory.log) {
        let failure = Failure::new(format!("cannot read {} as a kernel log", shown(file)));
        return Err(failure
            .because(words_of(*unread))
            .try_this("Name a text file, as written by dmesg > FILE or journalctl -k > FILE."));
    }
    if let (Some(file), Some(Ok(log))) = (&arguments.log, &inventory.log)
        && log.is_silent()
    {
        let file = escape(&shown(file));
        let has = match log.lines_read {
            0 => "is empty".to_owned(),
            lines => format!("has {}, none of them about USB", counted_len(lines, "line")),
        };
        message!("uaskit: {file} {has}, so kernel messages are unknown. `dmesg > FILE` may need sudo.");
    }
    let diagnoser = Diagnoser::of(&inventory);
    let absent = diagnoser.absent();
    let mut gone = absent_of(&absent, drive.as_deref());
    let devices = match meant(&inventory, drive.as_deref()) {
        Err(failure) if gone.is_empty() => return Err(failure),
        // A drive that is gone is answered all the same.
        Err(_) => Vec::new(),
        Ok(devices) => devices,
    };
    let drives: Vec<(&UsbDevice, Vec<Diagnosis>)> =
        devices.into_iter().map(|device| (device, diagnoser.diagnose(device))).collect();
    // A drive that is still attached says what its controller did.
    let is_reported = |one: &Absent| {
        let mut causes = drives.iter().flat_map(|(_, diagnoses)| diagnoses).flat_map(|one| &one.causes);
        one.kind == AbsentKind::Controller
            && causes
                .any(|cause| cause.kind == CauseKind::ControllerDied && cause.because.contains(&one.place))
    };
    gone.retain(|one| !is_reported(one));
    if arguments.json {
        out.print(&sanitize::json(&format!("{:#}\n", json::drives(&inventory, &drives, &absent))))?;
    } else {
        let text = text::answer(&inventory, &drives, &gone);
        out.print(&if arguments.markdown { text::markdown(&text) } else { text })?;
    }
    judged(&inventory, &drives, &absent)
}

/// Returns the absent devices; if a drive is named, only that one.
fn absent_of(absent: &[Absent], name: Option<&OsStr>) -> Vec<Absent> {
    let name = name.map(shown);
    let is_meant = |one: &Absent| {
        let Some(name) = &name else { return true };
        let id = one.id.map(|id| id.to_string());
        let node = format!("/dev/{} ", name.trim_start_matches("/dev/"));
        one.place == *name || id.as_ref() == Some(name) || one.because.contains(&node)
    };
    absent.iter().filter(|one| is_meant(one)).cloned().collect()
}

/// Whether the evidence was enough; a machine has all there is.
fn judged(
    inventory: &Inventory,
    drives: &[(&UsbDevice, Vec<Diagnosis>)],
    absent: &[Absent],
) -> Result<(), Failure> {
    let Some(report) = &inventory.report else { return Ok(()) };
    let is_known = |diagnosis: &Diagnosis| {
        let is_judged = !matches!(diagnosis.decision, Decision::NotShown | Decision::Supposed(_));
        is_judged || !diagnosis.causes.is_empty()
    };
    let is_answered = !report.foreign.is_empty()
        || !absent.is_empty()
        || drives.iter().any(|(_, diagnoses)| diagnoses.iter().any(is_known));
    if is_answered {
        return Ok(());
    }
    let commands: Vec<String> = report
        .missing(inventory, drives.first().map(|(device, _)| *device))
        .into_iter()
        .map(|missing| missing.command)
        .collect();
    let failure = Failure::unknown("the report lacks the deciding facts");
    Err(if commands.is_empty() {
        failure
    } else {
        failure.try_this(format!("Add the output of: {}", commands.join("; ")))
    })
}

const fn words_of(unread: Unread) -> &'static str {
    match unread {
        Unread::Absent => "no such file",
        Unread::Refused => "permission denied",
        Unread::Failed => "it is not a text file",
    }
}

/// The drives that are meant; all of them unless one is named.
fn meant<'a>(inventory: &'a Inventory, name: Option<&OsStr>) -> Result<Vec<&'a UsbDevice>, Failure> {
    let Some(name) = name else { return Ok(inventory.storage().collect()) };
    let text = shown(name);
    if text.trim().is_empty() {
        return Err(Failure::usage("the name of the drive is empty")
            .try_this("Name a port, disk or id, or leave the name out for all drives."));
    }
    // Names of udev, such as those in /dev/disk/by-id, lead to a node.
    let node = Some(name).filter(|name| name.as_bytes().starts_with(b"/dev/"));
    let node = node.and_then(|name| std::fs::canonicalize(name).ok());
    let found = inventory.find(node.as_deref().and_then(Path::to_str).unwrap_or(&text));
    if found.is_empty() {
        return Err(Failure::new(format!("no USB device `{text}`")).try_this(
            "See `uaskit list --all`. Name a drive by port (2-1.4), disk (/dev/sdb) or id (174c:55aa).",
        ));
    }
    match found.iter().find(|device| device.is_storage()) {
        Some(_) => Ok(found.into_iter().filter(|device| device.is_storage()).collect()),
        None => Err(Failure::new(format!("{text} is not a USB mass-storage device"))
            .because("none of its interfaces is mass storage")),
    }
}
