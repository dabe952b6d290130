//! Diagnoses for programs: one object, whose fields are only added to.

use crate::list::json::{device, transport_word};
use host::diagnose::quirk::Flags;
use host::diagnose::{
    Advice, Check, Decision, Diagnosis, Expected, Health, Judgement, Quirks, Reading, Step, Verdict,
};
use host::inventory::UsbDevice;
use serde_json::{Value, json};

/// All drives.
pub(super) fn drives(drives: &[(&UsbDevice, Vec<Diagnosis>)]) -> Value {
    let drives = drives.iter().map(|(drive, diagnoses)| {
        let diagnoses: Vec<Value> = diagnoses.iter().map(diagnosis).collect();
        json!({ "device": device(drive), "diagnoses": diagnoses })
    });
    json!({ "drives": drives.collect::<Vec<_>>() })
}

fn diagnosis(diagnosis: &Diagnosis) -> Value {
    let (decision, rule) = match diagnosis.decision {
        Decision::AllMet => ("all-met", None),
        Decision::Decided(rule) => ("decided", Some(rule)),
        Decision::Supposed(rule) => ("supposed", Some(rule)),
        Decision::Unexplained => ("unexplained", None),
        Decision::TakenAway => ("taken-away", None),
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
        "quirks": quirks(&diagnosis.quirks),
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

fn quirks(quirks: &Quirks) -> Value {
    json!({
        "in_force": quirks.in_force().to_string(),
        "letters": quirks.in_force().letters(),
        "table": quirks.row.map(|row| row.name),
        "coded": quirks.coded.map(|rule| rule.reason()),
        "user": quirks.user.map(Flags::letters),
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
        "steps": steps(&advice.steps),
        "back": steps(&advice.back),
    })
}
