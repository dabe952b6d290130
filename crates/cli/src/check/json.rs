//! The scorecard for programs: one object, whose fields are only added to.

use super::target::Checked;
use conformance::Outcome;
use serde_json::{Value, json};

pub(super) fn document(checked: &Checked) -> Value {
    let count = |verdict| checked.scorecard.count(None, verdict);
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "target": checked.name,
        "speed": checked.speed.to_string(),
        "passed": count("pass"),
        "failed": count("fail"),
        "warnings": count("warning"),
        "notes": count("note"),
        "not_tested": count("not tested"),
        "tests": checked.scorecard.outcomes.iter().map(outcome).collect::<Vec<_>>(),
    })
}

fn outcome(outcome: &Outcome) -> Value {
    let Outcome { test, verdict, steps, took } = outcome;
    let is_evidence = !verdict.is_harmless();
    let mut value = json!({
        "id": test.id,
        "group": test.group.name(),
        "title": test.title,
        "clause": test.clause,
        "verdict": verdict.name(),
        "found": verdict.words(),
        "means": is_evidence.then_some(test.means),
        "duration_s": took.as_secs_f64(),
    });
    if is_evidence {
        let steps = steps.iter().map(|step| json!({ "action": step.action, "answer": step.answer }));
        value["steps"] = steps.collect();
    }
    value
}
