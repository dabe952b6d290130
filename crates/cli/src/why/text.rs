//! A diagnosis for people: the answer first, then the rules, the checks, and what can be done.
//!
//! What a device or a file says is escaped, so that it cannot play with the terminal.

use crate::harmless::tame;
use inspect::diagnose::{
    Advice, Check, Decision, Diagnosis, Expected, Health, Judgement, Reading, Rule, Step, Verdict,
};
use inspect::inventory::{Transport, UsbDevice, bridge_family};
use quirks::quirk::Flag;
use std::fmt::Write;

/// Several drives: for each the answer, and the checks that are to be looked at.
pub(super) fn drives(drives: &[(&UsbDevice, Vec<Diagnosis>)]) -> String {
    let mut text = String::new();
    for (device, diagnoses) in drives {
        text += &headline(device);
        for diagnosis in diagnoses {
            text += &format!("   {}\n", tame(&answer(device, diagnosis)));
            let concerns = diagnosis.checks.iter().filter(|check| check.health == Health::Concern);
            text.extend(
                concerns.map(|check| format!("   LOOK {}: {}\n", check.kind.name(), tame(&check.because))),
            );
        }
    }
    text + "\nEvery rule with its evidence, and what can be done: uaskit why PORT\n"
}

/// All interfaces of a drive, with everything.
pub(super) fn drive(device: &UsbDevice, diagnoses: &[Diagnosis]) -> String {
    let mut text = headline(device);
    for diagnosis in diagnoses {
        if diagnoses.len() > 1 {
            text += &format!("\nInterface {}\n", tame(&diagnosis.interface));
        }
        text += &one(device, diagnosis);
    }
    text
}

fn headline(device: &UsbDevice) -> String {
    let family = bridge_family(device.id).map_or_else(String::new, |family| format!(", {family}"));
    let disks = device.disks().filter_map(|disk| Some(format!(", /dev/{}", disk.node.as_ref()?)));
    let (port, title) = (&device.port, device.title());
    let line =
        format!("{port}: {} {title}{family}, {}{}", device.id, device.speed, disks.collect::<String>());
    tame(&line) + "\n"
}

fn one(device: &UsbDevice, diagnosis: &Diagnosis) -> String {
    let mut text = tame(&answer(device, diagnosis)) + "\n\nLinux's rules, in their order\n";
    for judgement in &diagnosis.judgements {
        text += &judged(judgement, decides(diagnosis, judgement));
    }
    let in_force = diagnosis.in_force();
    text += &match diagnosis.transport {
        Transport::Uas { .. } if in_force.contains(Flag::IgnoreUas) => {
            format!("\nQuirks by the rules, which the kernel did not go by: {in_force}\n")
        }
        _ => format!("\nQuirks in force: {in_force}\n"),
    };
    let on_bot = diagnosis.quirks.storage();
    if on_bot != diagnosis.in_force() {
        text += &format!("On usb-storage they would be: {on_bot}\n");
    }
    text += "\nChecks\n";
    text.extend(diagnosis.checks.iter().map(checked));
    let of_rules = diagnosis.judgements.iter().flat_map(|judgement| &judgement.advice);
    let of_checks = diagnosis.checks.iter().flat_map(|check| &check.advice);
    let mut given: Vec<&Advice> = Vec::new();
    for advice in of_rules.chain(of_checks).chain(&diagnosis.advice) {
        if !given.contains(&advice) {
            given.push(advice);
        }
    }
    text.extend(given.into_iter().map(advised));
    text
}

/// One sentence that answers the question.
fn answer(device: &UsbDevice, diagnosis: &Diagnosis) -> String {
    let because = |rule| {
        let judgement = diagnosis.judgement(rule);
        judgement.map_or_else(String::new, |judgement| judgement.because.clone())
    };
    let depth = device.disks().find_map(|disk| disk.queue_depth);
    let depth = match depth {
        None => String::new(),
        Some(1) => ", one command at a time".to_owned(),
        Some(depth) => format!(", {depth} commands deep"),
    };
    let now = match &diagnosis.transport {
        Transport::Uas { streams: true } => format!("It is on UAS with streams{depth}"),
        Transport::Uas { streams: false } => format!("It is on UAS without streams{depth}"),
        Transport::Bot => format!("It is on BOT{depth}"),
        Transport::Claimed => "A program has it (usbfs)".to_owned(),
        Transport::Other(driver) => format!("The driver {driver} has it"),
        Transport::None => "It has no driver".to_owned(),
    };
    let reason = match diagnosis.decision {
        Decision::AllMet => "every rule is met".to_owned(),
        Decision::Decided(rule) => because(rule),
        Decision::LeftAlone(rule) => format!(
            "{}, and usb-storage leaves it alone, since usb-storage.quirks= has the letter i for {}",
            because(rule),
            device.id
        ),
        Decision::Supposed(rule) => {
            let (title, because) = (rule.title(), because(rule));
            format!("nothing that could be read explains it. Not known is whether {title}: {because}")
        }
        Decision::TakenAway => {
            return format!("{now}; by the rules {} would have it.", driver(diagnosis.expected));
        }
        Decision::NotTaken => {
            "usb-storage should have it, and is not loaded, gave up, or was not given it back by a \
                               program that had claimed it"
                .to_owned()
        }
        Decision::Unexplained => format!(
            "by the rules {} would have it: quirks have changed since it was plugged in, or this kernel has other rules",
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
    let (title, because) = (judgement.rule.title(), tame(&judgement.because));
    let mut text = format!(" {mark}{number} {verdict:<9}  {title}: {because}\n");
    if judgement.verdict != Verdict::NotAsked {
        text += &seen(&judgement.readings, judgement.root_adds.as_deref());
    }
    text
}

fn checked(check: &Check) -> String {
    let health = match check.health {
        Health::Good => "good",
        Health::Concern => "LOOK",
        Health::Unknown => "unknown",
    };
    let line = format!("   {:<9}{health:<8} {}\n", check.kind.name(), tame(&check.because));
    if check.health == Health::Good {
        line
    } else {
        line + &seen(&check.readings, check.root_adds.as_deref())
    }
}

fn seen(readings: &[Reading], root_adds: Option<&str>) -> String {
    let mut text = String::new();
    for reading in readings {
        let (place, found) = (tame(&reading.place), tame(&reading.found));
        let _ = writeln!(text, "                {place}: {found}");
    }
    if let Some(more) = root_adds {
        let _ = writeln!(text, "                root could tell more: {}", tame(more));
    }
    text
}

fn advised(advice: &Advice) -> String {
    let mut text = format!("\n{}\n", tame(&advice.purpose));
    text.extend(advice.cautions.iter().map(|caution| format!("   Mind: {}.\n", tame(caution))));
    text.extend(advice.steps.iter().map(|step| stepped(step, "   ")));
    if !advice.back.is_empty() {
        text += "   To take it back\n";
        text.extend(advice.back.iter().map(|step| stepped(step, "      ")));
    }
    text
}

fn stepped(step: &Step, indent: &str) -> String {
    format!("{indent}{}\n{indent}   {}\n", tame(&step.place), tame(&step.line))
}
