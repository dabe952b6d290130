//! The scorecard for people.

use super::target::Checked;
use crate::stdout::broken;
use conformance::{Group, Outcome, Test};
use std::fmt::Write;
use study::plural::counted;

/// Where the words behind a label begin.
const INDENT: &str = "        ";

/// Columns of output that is not a terminal.
const COLUMNS: usize = 100;

/// The tests, for `--list`.
pub(super) fn tests(tests: &[Test]) -> String {
    let mut text = String::new();
    for test in tests {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{:<24} {} ({})", test.id, test.title, test.clause);
    }
    text
}

/// One line that judges, one for each group, then what was found.
pub(super) fn scorecard(checked: &Checked, steps: bool, columns: Option<usize>) -> String {
    let mut text = format!("{}\n\n", headline(checked));
    for group in Group::ALL {
        let count = |verdict| checked.scorecard.count(Some(group), verdict);
        let numbers: Vec<String> = ["pass", "fail", "warning", "note", "not tested"]
            .into_iter()
            .filter(|verdict| count(verdict) > 0)
            .map(|verdict| format!("{} {verdict}", count(verdict)))
            .collect();
        if !numbers.is_empty() {
            let _ = writeln!(text, "{:<20} {}", group.name(), numbers.join(", "));
        }
    }
    for verdict in ["fail", "warning", "note"] {
        for outcome in checked.scorecard.outcomes.iter().filter(|one| one.verdict.name() == verdict) {
            text += &finding(outcome, steps, columns.unwrap_or(COLUMNS));
        }
    }
    text += &not_tested(checked);
    text
}

fn headline(checked: &Checked) -> String {
    let count = |verdict| checked.scorecard.count(None, verdict) as u64;
    let on = format!("{} ({})", checked.name, checked.speed);
    let run = count("pass") + count("fail") + count("warning") + count("note");
    if run == 0 {
        return format!("Nothing was tested on {on}.");
    }
    match (count("fail"), count("warning")) {
        (0, 0) => format!("{on}: no fault found by {}.", counted(run, "test")),
        (0, warnings) => format!("{on}: no test failed; {}.", counted(warnings, "warning")),
        (failed, _) => format!("{on}: {} of {run} failed.", counted(failed, "test")),
    }
}

fn finding(outcome: &Outcome, steps: bool, columns: usize) -> String {
    let Outcome { test, verdict, .. } = outcome;
    let mut text = format!("\n{} {}\n", verdict.name().to_uppercase(), test.id);
    let mut line = |label: &str, words: &str| {
        text += &broken(&format!("  {label:<6}{words}\n"), INDENT, columns);
    };
    line("rule", &format!("{} ({})", test.title, test.clause));
    line("found", verdict.words().unwrap_or_default());
    if !verdict.is_harmless() {
        line("means", test.means);
    }
    if steps {
        for step in &outcome.steps {
            line("step", &step.to_string());
        }
    } else if !verdict.is_harmless() {
        line("more", &format!("add `--only {} --steps` to see each transfer", test.id));
    }
    text
}

/// Returns the reasons for which tests were not run, each with the number of tests.
fn not_tested(checked: &Checked) -> String {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for outcome in checked.scorecard.outcomes.iter().filter(|one| one.verdict.name() == "not tested") {
        let why = outcome.verdict.words().unwrap_or_default();
        match reasons.iter_mut().find(|(reason, _)| *reason == why) {
            Some((_, ids)) => ids.push(outcome.test.id),
            None => reasons.push((why, vec![outcome.test.id])),
        }
    }
    let mut text = String::new();
    for (why, ids) in reasons {
        let _ = write!(text, "\nNot tested: {why} ({})\n", counted(ids.len() as u64, "test"));
    }
    text
}
