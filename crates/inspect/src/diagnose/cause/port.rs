//! The port: devices that do not answer, come and go, or lose their link (drivers/usb/core/hub.c).
//!
//! A disconnect may be a hand; several of the same ids, each followed by a return, are not. Error numbers are explained as
//! USB uses them. Left out: ports of other controllers than the drive's own.

use super::{Cause, CauseKind, Scene, times};
use crate::diagnose::advice;
use crate::inventory::LinkSpeed;
use crate::log::{Entry, LogLine, Session};

/// Messages of the USB core about a device that it cannot enumerate.
const ENUMERATION_ERRORS: [&str; 7] = [
    "device descriptor read",
    "device not accepting address",
    "Device not responding to setup address",
    "unable to enumerate",
    "can't set config",
    "unable to read config index",
    "can't read configurations",
];

const LINK_LOSSES: [&str; 5] = [
    "disabled by hub (EMI?)",
    "Cannot enable.",
    "cannot enable.",
    "cannot reset (err",
    "cannot disable (err",
];

/// Seconds within which a drive that disconnected by itself is back.
const BACK_WITHIN_S: u64 = 600;

/// Returns that make a drive a flapping one: a hand may do it once.
const RETURNS_MIN: usize = 2;

/// Whether a line says that a device could not be enumerated.
fn is_enumeration_error(line: LogLine<'_>) -> bool {
    line.begins(&ENUMERATION_ERRORS)
}

/// The error number at the end of a line, with its name and what it means for USB
/// (Documentation/driver-api/usb/error-codes.rst).
pub fn errno_meaning(text: &str) -> Option<&'static str> {
    let number = text.match_indices('-').find_map(|(at, _)| {
        let rest = text.get(at + 1..)?;
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        let before = text.get(..at)?;
        let is_error = ["error ", "err ", "err = ", "status ", "errno ", "status: ", "error: "];
        is_error.iter().any(|word| before.ends_with(word)).then(|| digits.parse::<u32>().ok()).flatten()
    })?;
    Some(match number {
        5 => "-5 EIO: input/output error",
        12 => "-12 ENOMEM: memory or streams could not be allocated",
        19 => "-19 ENODEV: the device is gone",
        22 => "-22 EINVAL: the request was refused as invalid",
        28 => "-28 ENOSPC: no bandwidth or slot is left",
        32 => "-32 EPIPE: the device stalled the request",
        62 => "-62 ETIME: no response, a signal error",
        71 => "-71 EPROTO: a signal error on the link",
        75 => "-75 EOVERFLOW: more data than requested",
        84 => "-84 EILSEQ: a CRC error on the link",
        108 => "-108 ESHUTDOWN: the device or its controller is gone",
        110 => "-110 ETIMEDOUT: no response in time",
        _ => return None,
    })
}

pub(super) fn probe_failed(scene: &Scene<'_>) -> Option<Cause> {
    if scene.evidence.driver().is_some() {
        return None;
    }
    let is_refusal = |(_, entry): &(usize, &Entry<'_>)| {
        let line = entry.line;
        line.interface_of("uas").is_some() && line.text.contains("failed with error")
    };
    let (index, entry) = scene.own().filter(is_refusal).last()?;
    let meaning = errno_meaning(entry.line.text).unwrap_or("an error");
    let because = format!("uas refused the interface: {meaning}");
    let mut cause = scene.cause(CauseKind::ProbeFailed, because, &[index]);
    if scene.evidence.speaks_bot_or_unknown() {
        cause.advice.push(advice::keep_off_uas(scene.evidence));
    }
    cause.advice.push(advice::other_controller());
    cause.advice.push(advice::newer_kernel_or_firmware());
    Some(cause)
}

pub(super) fn flapping(scene: &Scene<'_>) -> Option<Cause> {
    let sessions: Vec<&Session> =
        scene.sessions.iter().filter_map(|at| scene.history.sessions.get(*at)).collect();
    let returns = sessions.windows(2).filter_map(|pair| {
        let [earlier, later] = pair else { return None };
        let gap = later.seconds_after(earlier);
        let line = earlier.ended.filter(|_| gap.is_none_or(|gap| gap <= BACK_WITHIN_S))?;
        Some((line, gap))
    });
    let returns: Vec<(usize, Option<u64>)> = returns.collect();
    if returns.len() < RETURNS_MIN {
        return None;
    }
    let lines: Vec<usize> = sessions.iter().filter_map(|session| session.ended).collect();
    let each = if returns.len() == lines.len() { "each time" } else { "most times" };
    let longest = returns.iter().filter_map(|(_, gap)| *gap).max();
    let within = match longest {
        Some(0) => format!(" and was back within a second {each}"),
        Some(seconds) => format!(" and was back within {seconds} s {each}"),
        None => format!(" and came back {each}"),
    };
    let because = format!("the drive disconnected {} without being unplugged{within}", times(lines.len()));
    let cause = scene.cause(CauseKind::Flapping, because, &lines);
    Some(Cause { advice: vec![advice::cable_and_port(), advice::no_autosuspend(scene.evidence)], ..cause })
}

pub(super) fn enumeration(scene: &Scene<'_>) -> Option<Cause> {
    let is_own = |entry: &Entry<'_>| is_enumeration_error(entry.line);
    let lines: Vec<(usize, &Entry<'_>)> = scene.own().filter(|(_, entry)| is_own(entry)).collect();
    lines.last()?;
    let meaning = lines
        .iter()
        .rev()
        .find_map(|(_, entry)| errno_meaning(entry.line.text))
        .map_or_else(String::new, |meaning| format!(" ({meaning})"));
    let when = if scene.failed_reset().is_some() || scene.resets() > 0 {
        "after a reset"
    } else {
        "while it was enumerated"
    };
    let because = format!("the device did not answer {when}, {}{meaning}", times(lines.len()));
    let lines: Vec<usize> = lines.iter().map(|(index, _)| *index).collect();
    let cause = scene.cause(CauseKind::Enumeration, because, &lines);
    Some(Cause { advice: vec![advice::cable_and_port(), advice::more_power()], ..cause })
}

pub(super) fn link(scene: &Scene<'_>) -> Option<Cause> {
    let device = scene.evidence.device;
    let halves = crate::inventory::port_sources(device);
    let is_own = |entry: &Entry<'_>| {
        let source = entry.line.source;
        let of_port = || crate::log::port_of_hub_line(source).is_some_and(|port| port == device.port);
        entry.line.begins(&LINK_LOSSES) && (halves.iter().any(|half| source == half) || of_port())
    };
    let entries = scene.history.entries.iter().enumerate();
    let lines: Vec<usize> = entries.filter(|(_, entry)| is_own(entry)).map(|(index, _)| index).collect();
    if lines.is_empty() {
        return None;
    }
    let because = format!("the hub lost the link at the port or could not enable it, {}", times(lines.len()));
    let cause = scene.cause(CauseKind::Link, because, &lines);
    Some(Cause { advice: vec![advice::cable_and_port()], ..cause })
}

pub(super) fn link_power(scene: &Scene<'_>) -> Option<Cause> {
    const WORDS: [&str; 6] = [
        "Disable of device-initiated U",
        "Enable of device-initiated U",
        "Disable of host-initiated U",
        "Set SEL for device-initiated U",
        "LPM exit latency is zeroed",
        "Failed to set U",
    ];
    let is_failure = |entry: &Entry<'_>| entry.line.begins(&WORDS);
    let lines: Vec<usize> =
        scene.own().filter(|(_, entry)| is_failure(entry)).map(|(index, _)| index).collect();
    if lines.is_empty() {
        return None;
    }
    let because =
        format!("link power management failed, {}: U1 or U2 could not be changed", times(lines.len()));
    let cause = scene.cause(CauseKind::LinkPower, because, &lines);
    Some(Cause { advice: vec![advice::no_link_power(scene.evidence)], ..cause })
}

/// The same drive at a higher speed before, by its ids: another one that left before it came is taken for it.
pub(super) fn slower(scene: &Scene<'_>) -> Option<Cause> {
    let sessions = &scene.history.sessions;
    let at = *scene.sessions.last()?;
    let now = sessions.get(at)?;
    let speed = now.speed?;
    let is_same = |other: &Session| other.id.is_some() && other.id == now.id;
    // Another one that is still attached is another drive.
    let is_before = |other: &Session| other.ended.is_some_and(|end| end <= now.first);
    let is_faster = |other: &Session| other.speed.is_some_and(|before| megabits(before) > megabits(speed));
    let earlier = sessions.get(..at)?.iter().rev();
    let earlier =
        earlier.filter(|other| is_same(other) && is_before(other)).find(|other| is_faster(other))?;
    let before = earlier.speed?;
    let place = if earlier.port == now.port { String::new() } else { format!(" at {}", earlier.port) };
    let because = format!("it is connected at {speed}, and was connected at {before}{place} before");
    let lines = [earlier.first, now.first];
    let cause = scene.cause(CauseKind::Slower, because, &lines);
    Some(Cause { advice: vec![advice::faster_link()], ..cause })
}

/// Mb/s of a link.
const fn megabits(speed: LinkSpeed) -> u32 {
    match speed {
        LinkSpeed::Unknown => 0,
        LinkSpeed::Low => 1,
        LinkSpeed::Full => 12,
        LinkSpeed::High => 480,
        LinkSpeed::Super { mbps } => mbps,
    }
}

/// Errors that the driver of a hub prints when the hub itself does not answer.
const HUB_ERRORS: [&str; 6] = [
    "hub_port_status failed (err",
    "hub_ext_port_status failed (err",
    "hub_hub_status failed (err",
    "get_hub_status failed",
    "cannot reset port ",
    "cannot disable port ",
];

/// The hub that does not answer, by a line of its driver or of the USB core: `hub 1-1:1.0: hub_port_status failed (err = -71)`,
/// `usb 1-1: clear tt 1 (9022) error -71`.
pub(in crate::diagnose) fn hub_in_error<'a>(line: LogLine<'a>) -> Option<&'a str> {
    if line.begins(&HUB_ERRORS) {
        let hub = line.source.strip_prefix("hub ")?.split(':').next()?;
        // A root hub is its controller.
        return Some(hub).filter(|hub| !hub.ends_with("-0"));
    }
    line.source.strip_prefix("usb ").filter(|_| line.begins(&["clear tt "]))
}

/// The hub that the drive is behind.
pub(super) fn hub(scene: &Scene<'_>) -> Option<Cause> {
    let port = &scene.evidence.device.port;
    let is_above = |hub: &str| port.strip_prefix(hub).is_some_and(|rest| rest.starts_with('.'));
    let entries = scene.history.entries.iter().enumerate().skip(scene.first());
    let is_error = |(_, entry): &(usize, &Entry<'_>)| hub_in_error(entry.line).is_some_and(is_above);
    let found: Vec<(usize, &Entry<'_>)> = entries.filter(is_error).collect();
    let (_, first) = found.first()?;
    let name = hub_in_error(first.line)?;
    let meaning = errno_meaning(first.line.text).map_or_else(String::new, |meaning| format!(" ({meaning})"));
    let because =
        format!("the hub at {name} that it is behind does not answer, {}{meaning}", times(found.len()));
    let lines: Vec<usize> = found.iter().map(|(index, _)| *index).collect();
    let cause = scene.cause(CauseKind::Hub, because, &lines);
    Some(Cause { advice: vec![advice::failing_hub()], ..cause })
}
