//! A diagnosis for people: the answer first, then the rules, the checks, and what can be done.
//!
//! Text from a device or a file is escaped, so that it cannot control the terminal.

use crate::list::lines::{exceeded_limits, foreign, nothing};
use crate::sanitize::escape;
use inspect::diagnose::{
    Absent, AbsentKind, Advice, Check, CheckKind, Decision, Diagnosis, Expected, Health, Judgement, Reading,
    Rule, Step, Verdict,
};
use inspect::inventory::{Inventory, LinkSpeed, Transport, UsbDevice, bridge_family};
use inspect::text::{Report, SmartHealth};
use quirks::quirk::Flag;
use std::fmt::Write;

/// Everything: drives that are there, then those that are gone, then what a report lacks.
pub(super) fn answer(
    inventory: &Inventory,
    drives: &[(&UsbDevice, Vec<Diagnosis>)],
    gone: &[Absent],
) -> String {
    // A drive that failed comes before one that was plugged in at its place and has not.
    let is_well = drives.iter().flat_map(|(_, diagnoses)| diagnoses).all(|one| one.causes.is_empty());
    let is_first = |one: &Absent| is_well && one.kind == AbsentKind::Dropped;
    let is_replaced =
        |one: &Absent| is_first(one) && drives.iter().any(|(device, _)| device.port == one.place);
    let (replaced, gone): (Vec<&Absent>, Vec<&Absent>) = gone.iter().partition(|one| is_replaced(one));
    let mut first = String::new();
    for one in &replaced {
        first += &absent(one, !first.is_empty());
    }
    if !first.is_empty() {
        first += "\n";
    }
    let mut text = match drives {
        [] if gone.is_empty() => nothing(inventory),
        [] => String::new(),
        [(device, diagnoses)] => drive(device, diagnoses, !inventory.lacks_quirks_in_force()),
        several => self::drives(several),
    };
    text.insert_str(0, &first);
    for one in &gone {
        text += &absent(one, !text.is_empty());
    }
    let Some(report) = &inventory.report else { return text + &exceeded_limits(inventory) };
    for one in &report.foreign {
        text += &format!("{}\n", foreign(one));
    }
    text += &smart(report);
    for (file, lines) in &report.left_out {
        let file = escape(file);
        text += &format!(
            "\nNot read: of lines {} to {} of {file} those about USB; they are too many. Give a part: sed -n {},{}p {file}\n",
            lines.first, lines.last, lines.first, lines.last
        );
    }
    text += &exceeded_limits(inventory);
    let device = drives.first().map(|(device, _)| *device);
    let missing = report.missing(inventory, device);
    let is_only_gone = drives.is_empty() && !gone.is_empty();
    if !missing.is_empty() && !is_only_gone {
        text += "\nMissing from the report\n";
        for one in missing {
            text += &format!("   unknown: {}; `{}` shows it\n", one.what, escape(&one.command));
        }
    }
    text
}

/// Formats the SMART health that smartctl has reported.
fn smart(report: &Report) -> String {
    let mut text = String::new();
    for one in &report.smart {
        let what = match one.health {
            SmartHealth::Failing => "SMART reports a failing drive: back up its data and replace it",
            SmartHealth::NoAnswer => "smartctl got no answer through the bridge",
            SmartHealth::UnknownBridge => {
                "smartctl does not know the bridge: run it with -d sat, or for NVMe with -d sntjmicron, sntasmedia or sntrealtek"
            }
            SmartHealth::Passed => continue,
        };
        let (file, line) = (escape(&one.source.file), one.source.line);
        text += &format!("\n{what}\n   {file} line {line}: {}\n", escape(&one.source.text));
    }
    text
}

/// The answer as Markdown: the first sentences in bold, the rest as it is.
pub(super) fn markdown(text: &str) -> String {
    let (head, rest) = text.split_once("\n\n").unwrap_or((text, ""));
    let head: Vec<String> = head.lines().map(|line| format!("**{}**  ", line.replace('*', "\\*"))).collect();
    let rest = rest.trim_end().replace("```", "` ` `");
    format!("{}\n\n```text\n{rest}\n```\n", head.join("\n"))
}

/// A drive, port or controller that is gone.
fn absent(one: &Absent, is_after: bool) -> String {
    let mut text = if is_after { "\n".to_owned() } else { String::new() };
    text += &format!("{}: {}.\n", escape(&one.place), escape(&one.because));
    text += &evidence(&one.readings);
    text + &actions(one.advice.iter())
}

fn evidence(readings: &[Reading]) -> String {
    if readings.is_empty() {
        return String::new();
    }
    let mut text = "\nEvidence\n".to_owned();
    for reading in readings {
        let _ = writeln!(text, "   {}: {}", escape(&reading.place), escape(&reading.found));
    }
    text
}

/// Numbered, most likely and least harmful first.
fn actions<'a>(advice: impl Iterator<Item = &'a Advice>) -> String {
    let mut given: Vec<&Advice> = Vec::new();
    for one in advice {
        if !given.contains(&one) {
            given.push(one);
        }
    }
    // What only wins something comes last.
    given.sort_by_key(|one| one.is_wish);
    let text: String = given.into_iter().enumerate().map(|(at, one)| advised(at + 1, one)).collect();
    if text.is_empty() { text } else { format!("\nWhat to do\n{text}") }
}

/// Several drives: for each the answer, and the checks that are to be looked at.
fn drives(drives: &[(&UsbDevice, Vec<Diagnosis>)]) -> String {
    let mut text = String::new();
    for (device, diagnoses) in drives {
        text += &headline(device);
        for diagnosis in diagnoses {
            text += &format!("   {}\n", escape(&sentence(device, diagnosis)));
            let concerns = diagnosis.checks.iter().filter(|check| check.health == Health::Concern);
            text.extend(
                concerns
                    .map(|check| format!("   WARNING {}: {}\n", check.kind.name(), escape(&check.because))),
            );
        }
    }
    let troubled =
        drives.iter().flat_map(|(device, diagnoses)| diagnoses.iter().map(move |one| (device, one)));
    let mut troubled = troubled.filter(|(_, diagnosis)| !diagnosis.causes.is_empty());
    if let (Some((device, diagnosis)), None) = (troubled.next(), troubled.next()) {
        text += &format!("\n{}: its evidence and what to do\n", escape(&device.port));
        text += &of_causes(diagnosis);
    }
    let port = drives.first().map_or("", |(device, _)| device.port.as_str());
    text + &format!(
        "\nAll rules with evidence, and what to do: add a port to this command, such as {}\n",
        escape(port)
    )
}

/// All interfaces of a drive, with everything.
fn drive(device: &UsbDevice, diagnoses: &[Diagnosis], are_quirks_known: bool) -> String {
    let mut text = headline(device);
    for diagnosis in diagnoses {
        if diagnoses.len() > 1 {
            text += &format!("\nInterface {}\n", escape(&diagnosis.interface));
        }
        text += &one(device, diagnosis, are_quirks_known);
    }
    text
}

fn headline(device: &UsbDevice) -> String {
    let id = match device.id.to_string() {
        // Not every text has them.
        id if id == "0000:0000" => "ids unknown".to_owned(),
        id => id,
    };
    let family = bridge_family(device.id).map_or_else(String::new, |family| format!(", {family}"));
    let disks = device.disks().filter_map(|disk| Some(format!(", /dev/{}", disk.node.as_ref()?)));
    let (port, title) = (&device.port, device.title());
    let line = format!("{port}: {id} {title}{family}, {}{}", device.speed, disks.collect::<String>());
    escape(&line) + "\n"
}

fn one(device: &UsbDevice, diagnosis: &Diagnosis, are_quirks_known: bool) -> String {
    let mut text = escape(&sentence(device, diagnosis)) + "\n";
    let warning = diagnosis.checks.iter().find(|check| is_warned(check));
    if let Some(check) = warning.filter(|_| diagnosis.causes.is_empty()) {
        text += &format!("WARNING {}: {}.\n", check.kind.name(), escape(&check.because));
    }
    for cause in diagnosis.causes.iter().skip(1) {
        text += &format!("Also: {}.\n", escape(&cause.because));
    }
    text += &evidence(&readings_of_causes(diagnosis));
    let of_causes = diagnosis.causes.iter().flat_map(|cause| &cause.advice);
    let of_rules = diagnosis.judgements.iter().flat_map(|judgement| &judgement.advice);
    let of_checks = diagnosis.checks.iter().flat_map(|check| &check.advice);
    text += &actions(of_causes.chain(of_rules).chain(of_checks).chain(&diagnosis.advice));
    text += "\nLinux's rules, in the kernel's order\n";
    for judgement in &diagnosis.judgements {
        text += &judged(judgement, decides(diagnosis, judgement));
    }
    let in_force = diagnosis.in_force();
    text += &match diagnosis.transport {
        Transport::Uas { .. } if in_force.contains(Flag::IgnoreUas) => {
            format!("\nQuirks by Linux's rules, which this kernel did not apply: {in_force}\n")
        }
        _ if are_quirks_known => format!("\nQuirks in force: {in_force}\n"),
        _ => format!("\nBuilt-in quirks: {in_force}\n"),
    };
    let on_bot = diagnosis.quirks.storage();
    if on_bot != diagnosis.in_force() {
        text += &format!("Quirks with usb-storage: {on_bot}\n");
    }
    text += "\nChecks\n";
    text.extend(diagnosis.checks.iter().map(checked));
    text
}

/// Formats the evidence for the causes, and the advice about them.
fn of_causes(diagnosis: &Diagnosis) -> String {
    evidence(&readings_of_causes(diagnosis))
        + &actions(diagnosis.causes.iter().flat_map(|cause| &cause.advice))
}

fn readings_of_causes(diagnosis: &Diagnosis) -> Vec<Reading> {
    diagnosis.causes.iter().flat_map(|cause| cause.readings.clone()).collect()
}

/// The trouble first, if there is any, then the transport and its reason.
fn sentence(device: &UsbDevice, diagnosis: &Diagnosis) -> String {
    let transport = transport(device, diagnosis);
    match diagnosis.causes.first() {
        Some(cause) => format!("{}. {transport}", capital(&cause.because)),
        None => transport,
    }
}

/// Whether a report has no log, so that nothing is known of the drive's errors. A machine's log that only root may read exists.
fn is_unwatched(diagnosis: &Diagnosis) -> bool {
    let mut checks = diagnosis.checks.iter();
    checks.any(|check| {
        check.kind == CheckKind::Resets
            && check.health == Health::Unknown
            && check.root_adds.is_none()
            && check.readings.is_empty()
    })
}

/// Whether the drive failed, or a setting does not do what it was meant to.
fn has_failed(diagnosis: &Diagnosis) -> bool {
    !diagnosis.causes.is_empty() || diagnosis.checks.iter().any(is_warned)
}

/// Whether a check reports something that did not work as it was meant to.
fn is_warned(check: &Check) -> bool {
    check.health == Health::Concern && matches!(check.kind, CheckKind::Settings | CheckKind::Resets)
}

fn capital(text: &str) -> String {
    let mut signs = text.chars();
    signs.next().map_or_else(String::new, |first| first.to_uppercase().collect::<String>() + signs.as_str())
}

/// The transport, and why it is that one.
fn transport(device: &UsbDevice, diagnosis: &Diagnosis) -> String {
    let because = |rule| {
        let judgement = diagnosis.judgement(rule);
        judgement.map_or_else(String::new, |judgement| judgement.because.clone())
    };
    let depth = device.disks().find_map(|disk| disk.queue_depth);
    let depth = match depth {
        None => String::new(),
        Some(1) => ", queue depth 1".to_owned(),
        Some(depth) => format!(", queue depth {depth}"),
    };
    let now = match &diagnosis.transport {
        Transport::Uas { streams: true } => format!("It uses UAS with streams{depth}"),
        // A text may not have the speed.
        Transport::Uas { .. } if device.speed == LinkSpeed::Unknown => format!("It uses UAS{depth}"),
        Transport::Uas { streams: false } => format!("It uses UAS without streams{depth}"),
        Transport::Bot => format!("It uses BOT{depth}"),
        Transport::Claimed => "A program has claimed it (usbfs)".to_owned(),
        Transport::Other(driver) => format!("Driver {driver} is bound to it"),
        Transport::None => "It has no driver".to_owned(),
        Transport::Unknown => "The report does not name its driver".to_owned(),
    };
    let now = if diagnosis.is_without_unit { format!("{now} but has no disk") } else { now };
    let reason = match diagnosis.decision {
        Decision::AllMet if has_failed(diagnosis) => return format!("{now}."),
        Decision::AllMet if diagnosis.judgements.iter().any(|one| one.verdict == Verdict::Unknown) => {
            "uas has bound to it".to_owned()
        }
        Decision::AllMet if is_unwatched(diagnosis) => {
            "every rule is met; whether it fails is unknown without the kernel's log".to_owned()
        }
        Decision::AllMet => "every rule is met".to_owned(),
        Decision::NotShown => {
            return format!("{now}; as far as the report shows, {} would bind to it.", driver(diagnosis.expected));
        }
        Decision::Decided(rule) if diagnosis.transport == Transport::Unknown => {
            return format!("It cannot use UAS: {}.", because(rule));
        }
        Decision::Decided(rule) => because(rule),
        Decision::LeftAlone(rule) => format!(
            "{}, and usb-storage ignores it, since usb-storage.quirks= has the letter i for {}",
            because(rule),
            device.id
        ),
        Decision::Supposed(rule) => {
            let (title, because) = (rule.title(), because(rule));
            if because.starts_with("the text ") {
                return format!("{now}; the report does not show why. Unknown: whether {title} ({because}).");
            }
            format!("the reason is unknown, since it could not be read whether {title} ({because})")
        }
        Decision::TakenAway => {
            return format!("{now}; by Linux's rules {} would bind to it.", driver(diagnosis.expected));
        }
        Decision::NotTaken => {
            "usb-storage should be bound to it, but is not loaded, has failed, or was not reattached after a program \
             had claimed the interface"
                .to_owned()
        }
        Decision::Unexplained => format!(
            "by Linux's rules {} would bind to it; quirks have changed since it was attached, or this kernel's rules differ",
            driver(diagnosis.expected)
        ),
    };
    let alone = diagnosis.transport == Transport::None && !diagnosis.speaks_bot;
    let is_question = matches!(diagnosis.decision, Decision::Decided(rule) if rule.is_question());
    let no_fallback =
        if alone && is_question { ", and it has no Bulk-Only setting to fall back to" } else { "" };
    format!("{now}: {reason}{no_fallback}.")
}

const fn driver(expected: Expected) -> &'static str {
    match expected {
        Expected::Uas => "uas",
        Expected::UsbStorage => "usb-storage",
        Expected::NoDriver => "no driver",
    }
}

fn decides(diagnosis: &Diagnosis, judgement: &Judgement) -> bool {
    match diagnosis.decision {
        Decision::Decided(rule) | Decision::LeftAlone(rule) | Decision::Supposed(rule) => {
            rule == judgement.rule
        }
        _ => false,
    }
}

fn judged(judgement: &Judgement, decides: bool) -> String {
    // The one that comes before the kernel's has no number.
    let number = Rule::ALL.iter().position(|rule| *rule == judgement.rule);
    let number = number.map_or_else(|| " ".to_owned(), |number| number.to_string());
    let verdict = match judgement.verdict {
        Verdict::Met => "met",
        Verdict::Refused => "NOT MET",
        Verdict::Unknown => "unknown",
        Verdict::NotAsked => "not asked",
    };
    let mark = if decides { "→" } else { " " };
    let (title, because) = (judgement.rule.title(), escape(&judgement.because));
    let mut text = format!(" {mark}{number} {verdict:<9}  {title}: {because}\n");
    if judgement.verdict != Verdict::NotAsked {
        text += &seen(&judgement.readings, judgement.root_adds.as_deref());
    }
    text
}

fn checked(check: &Check) -> String {
    let health = match check.health {
        Health::Good => "good",
        Health::Concern => "WARNING",
        Health::Unknown => "unknown",
    };
    let line = format!("   {:<9}{health:<8} {}\n", check.kind.name(), escape(&check.because));
    if check.health == Health::Good {
        line
    } else {
        line + &seen(&check.readings, check.root_adds.as_deref())
    }
}

fn seen(readings: &[Reading], root_adds: Option<&str>) -> String {
    let mut text = String::new();
    for reading in readings {
        let (place, found) = (escape(&reading.place), escape(&reading.found));
        let _ = writeln!(text, "                {place}: {found}");
    }
    if let Some(more) = root_adds {
        let _ = writeln!(text, "                only root can read: {}", escape(more));
    }
    text
}

fn advised(number: usize, advice: &Advice) -> String {
    let gap = if number > 1 { "\n" } else { "" };
    let mut text = format!("{gap}{number}. {}\n", escape(&advice.purpose));
    text.extend(advice.cost.iter().map(|cost| format!("   Cost: {}.\n", escape(cost))));
    text.extend(advice.cautions.iter().map(|caution| format!("   Note: {}.\n", escape(caution))));
    text.extend(advice.steps.iter().map(|step| stepped(step, "   ")));
    if !advice.back.is_empty() {
        text += "   To undo it\n";
        text.extend(advice.back.iter().map(|step| stepped(step, "      ")));
    }
    text
}

fn stepped(step: &Step, indent: &str) -> String {
    format!("{indent}{}\n{indent}   {}\n", escape(&step.place), escape(&step.line))
}
