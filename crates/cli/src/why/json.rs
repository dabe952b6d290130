//! Diagnoses for programs: one object, whose fields are only added to.
//!
//! It has the drives that are attached with their verdicts, and what the log speaks of and is not there. Left out: limits that a
//! report exceeds, which the text states.

use crate::list::json::{absent, device, other_systems, transport_word};
use inspect::diagnose::{
    Absent, Advice, Cause, Check, Decision, Diagnosis, Expected, Health, Judgement, Reading, Step, Verdict,
};
use inspect::inventory::{ConfigChoice, Inventory, UsbDevice};
use serde_json::{Value, json};

/// All drives, and the kernel that they are attached to.
pub(super) fn drives(
    inventory: &Inventory,
    drives: &[(&UsbDevice, Vec<Diagnosis>)],
    gone: &[Absent],
) -> Value {
    let drives = drives.iter().map(|(drive, diagnoses)| {
        let diagnoses: Vec<Value> = diagnoses.iter().map(diagnosis).collect();
        json!({ "device": device(drive), "diagnoses": diagnoses })
    });
    let gone = gone.iter().map(|one| {
        let mut value = absent(one);
        value["readings"] = one.readings.iter().map(reading).collect();
        value["advice"] = one.advice.iter().map(advice).collect();
        value
    });
    json!({
        "kernel": kernel(inventory),
        "drives": drives.collect::<Vec<_>>(),
        "absent": gone.collect::<Vec<_>>(),
        "other_systems": other_systems(inventory),
    })
}

fn kernel(inventory: &Inventory) -> Value {
    let word = |choice| match choice {
        ConfigChoice::BuiltIn => "y",
        ConfigChoice::Module => "m",
        ConfigChoice::Off => "n",
    };
    let config = inventory.drivers.config.as_ref().map(|config| {
        json!({
            "place": config.path,
            "usb_uas": word(config.uas),
            "usb_storage": config.usb_storage.map(word),
        })
    });
    json!({
        "release": inventory.release,
        "version": inventory.kernel().map(|found| found.version.to_string()),
        "config": config,
    })
}

fn diagnosis(diagnosis: &Diagnosis) -> Value {
    let (decision, rule) = match diagnosis.decision {
        Decision::AllMet => ("all-met", None),
        Decision::Decided(rule) => ("decided", Some(rule)),
        Decision::LeftAlone(rule) => ("left-alone", Some(rule)),
        Decision::Supposed(rule) => ("supposed", Some(rule)),
        Decision::Unexplained => ("unexplained", None),
        Decision::TakenAway => ("taken-away", None),
        Decision::NotTaken => ("not-taken", None),
        Decision::NotShown => ("not-shown", None),
    };
    json!({
        "interface": diagnosis.interface,
        "transport": transport_word(&diagnosis.transport),
        "expected": match diagnosis.expected {
            Expected::Uas => "uas",
            Expected::UsbStorage => "bot",
            Expected::NoDriver => "none",
        },
        "agrees": diagnosis.agrees(),
        "decision": decision,
        "rule": rule.map(|rule| rule.name()),
        "rules": diagnosis.judgements.iter().map(judgement).collect::<Vec<_>>(),
        "quirks": quirks(diagnosis),
        "causes": diagnosis.causes.iter().map(cause).collect::<Vec<_>>(),
        "checks": diagnosis.checks.iter().map(check).collect::<Vec<_>>(),
        "advice": diagnosis.advice.iter().map(advice).collect::<Vec<_>>(),
    })
}

fn judgement(judgement: &Judgement) -> Value {
    json!({
        "rule": judgement.rule.name(),
        "verdict": match judgement.verdict {
            Verdict::Met => "met",
            Verdict::Refused => "refused",
            Verdict::Unknown => "unknown",
            Verdict::NotAsked => "not-asked",
        },
        "because": judgement.because,
        "readings": judgement.readings.iter().map(reading).collect::<Vec<_>>(),
        "root_adds": judgement.root_adds,
        "advice": judgement.advice.iter().map(advice).collect::<Vec<_>>(),
    })
}

fn cause(cause: &Cause) -> Value {
    json!({
        "cause": cause.kind.name(),
        "because": cause.because,
        "readings": cause.readings.iter().map(reading).collect::<Vec<_>>(),
        "advice": cause.advice.iter().map(advice).collect::<Vec<_>>(),
    })
}

fn check(check: &Check) -> Value {
    json!({
        "check": check.kind.name(),
        "health": match check.health {
            Health::Good => "good",
            Health::Concern => "concern",
            Health::Unknown => "unknown",
        },
        "because": check.because,
        "readings": check.readings.iter().map(reading).collect::<Vec<_>>(),
        "root_adds": check.root_adds,
        "advice": check.advice.iter().map(advice).collect::<Vec<_>>(),
    })
}

fn quirks(diagnosis: &Diagnosis) -> Value {
    let (quirks, in_force) = (&diagnosis.quirks, diagnosis.in_force());
    let built_in = &quirks.built_in;
    json!({
        "in_force": in_force.to_string(),
        "letters": in_force.letters(),
        "table": built_in.row.map(|row| row.name),
        "coded": built_in.coded.map(|rule| rule.reason()),
        "storage_table": built_in.storage_row.map(|row| row.name),
        "storage_letters": quirks.storage().letters(),
        "user": quirks.user.map(|flags| flags.letters()),
    })
}

fn reading(reading: &Reading) -> Value {
    json!({ "place": reading.place, "found": reading.found })
}

fn advice(advice: &Advice) -> Value {
    let steps = |steps: &[Step]| -> Vec<Value> {
        steps.iter().map(|step| json!({ "place": step.place, "line": step.line })).collect()
    };
    json!({
        "purpose": advice.purpose,
        "cautions": advice.cautions,
        "cost": advice.cost,
        "steps": steps(&advice.steps),
        "back": steps(&advice.back),
    })
}
