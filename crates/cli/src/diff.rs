//! `uaskit diff`: what is better and what is worse, of two runs, as text or as a page ([`page`]).
//!
//! The rule is that of the crate `records`. Left out: what runs are and how they come into the file. Always true: nothing is changed.

mod page;

use crate::args::DiffArguments;
use crate::compare::table::fitted;
use crate::failure::Failure;
use crate::history::{json, saved, title};
use crate::sanitize::{self, escape};
use crate::save::{calling, failure, listing, place};
use crate::stdout::Output;
use records::{Change, Diff, Note, RunId, Saved, Store, Verdict};
use report::TextTable;
use serde_json::{json, to_value};
use std::ffi::OsStr;
use std::path::Path;

/// The line that makes a page of the same two runs, whatever is saved meanwhile.
fn again(arguments: &DiffArguments, file: &Path, ids: [RunId; 2], path: &Path) -> String {
    let [before, after] = ids.map(|id| id.to_string());
    let same = arguments.same.to_string();
    let words = ["diff", &before, &after, "--same", &same, "--report"].map(OsStr::new);
    calling(&[&words[..], &[file.as_os_str()]].concat(), path)
}

pub(crate) fn run(arguments: &DiffArguments, out: &mut Output<'_>) -> Result<(), Failure> {
    let path = place(arguments.file.as_deref())?;
    let store = Store::to_read(&path).map_err(failure)?;
    let (before, after) = (saved(&store, &arguments.before)?, saved(&store, &arguments.after)?);
    if before.id == after.id {
        let what = format!("both names select the same run: {}", title(&before));
        return Err(Failure::usage(what).try_this(format!("Name two runs; list them: {}", listing(&path))));
    }
    let diff = records::diff(&before.run, &after.run, arguments.same / 100.0);
    if let Some(file) = &arguments.report {
        page::show(file, &before, &after, &diff, again(arguments, file, [before.id, after.id], &path))?;
    }
    if arguments.json {
        let [one, other] = [&before, &after].map(|saved| json(to_value(saved)));
        let both = json!({ "before": one?, "after": other?, "diff": json(to_value(&diff))? });
        return out.print(&sanitize::json(&format!("{both:#}\n")));
    }
    out.print(&text(&before, &after, &diff))
}

fn text(before: &Saved, after: &Saved, diff: &Diff) -> String {
    let mut text = format!("before: {}\nafter:  {}\n", title(before), title(after));
    for (name, one, other) in &diff.differences {
        text += &format!("  {}: {} → {}\n", escape(name), or_none(one), or_none(other));
    }
    for note in notes(diff) {
        text += &format!("  {note}\n");
    }
    if !diff.changes.is_empty() {
        text += &format!("{}\n", fitted(&table(diff)));
        for remark in remarks(diff) {
            text += &format!("{remark}\n");
        }
    }
    for only in &diff.only {
        let which = if only.is_after { "after" } else { "before" };
        let row = format!("{}, {}, depth {}", escape(&only.job), escape(&only.transport), only.depth);
        let why = only
            .error
            .as_deref()
            .map(|why| format!("; the other run failed: {}", escape(why)))
            .unwrap_or_default();
        text += &format!("only in the run {which}: {row}{why}\n");
    }
    text + &summary(diff) + "\n"
}

fn or_none(text: &str) -> String {
    if text.is_empty() { "none".to_owned() } else { escape(text) }
}

fn table(diff: &Diff) -> TextTable {
    let p99 = ["p99 us before", "p99 us after"];
    let iops = ["IOPS before", "IOPS after"];
    let heads = ["", "transport", "depth", iops[0], iops[1], p99[0], p99[1], "ratio", ""];
    let table = TextTable::new(heads).words([0, 1]).names([8]).keys(3);
    let mut table = table.leave_out_first(&[p99, iops].concat()).keeps_lines();
    for change in &diff.changes {
        let us = |us: Option<f64>| us.map_or_else(|| "-".to_owned(), five_digits);
        table.row([
            escape(&change.job),
            transports(change),
            change.depth.to_string(),
            five_digits(change.iops[0]),
            five_digits(change.iops[1]),
            us(change.p99_us[0]),
            us(change.p99_us[1]),
            change.ratio.to_string(),
            change.verdict.to_string(),
        ]);
    }
    table
}

/// Enough digits to compute the ratio, with three decimals, from the printed figures.
fn five_digits(value: f64) -> String {
    let decimals = (0..4).find(|decimals| value.abs() >= 10_f64.powi(4 - decimals)).unwrap_or(4);
    format!("{value:.*}", decimals as usize)
}

fn transports(change: &Change) -> String {
    let [before, after] = &change.transports;
    if before == after { escape(before) } else { format!("{} → {}", escape(before), escape(after)) }
}

/// Returns the notes, each with the runs that it applies to.
fn notes(diff: &Diff) -> Vec<String> {
    let line = |note: &Note| {
        let of = match (note.before, note.after) {
            (true, false) => "the run before",
            (false, true) => "the run after",
            _ => "both runs",
        };
        format!("note on {of}: {}", escape(&note.text))
    };
    diff.notes.iter().map(line).collect()
}

/// Why rows were judged as they were, each reason once.
fn remarks(diff: &Diff) -> Vec<String> {
    let mut reasons: Vec<(Verdict, &str, usize)> = Vec::new();
    for change in &diff.changes {
        let Some(why) = change.why else { continue };
        match reasons.iter_mut().find(|reason| (reason.0, reason.1) == (change.verdict, why)) {
            Some(reason) => reason.2 += 1,
            None => reasons.push((change.verdict, why, 1)),
        }
    }
    reasons.into_iter().map(|(verdict, why, count)| format!("{count} {verdict}: {why}")).collect()
}

fn summary(diff: &Diff) -> String {
    let count = |verdict| diff.changes.iter().filter(|change| change.verdict == verdict).count();
    let of = |verdict: Verdict| format!("{} {verdict}", count(verdict));
    let all = [Verdict::Better, Verdict::Worse, Verdict::Same, Verdict::Unclear].map(of).join(", ");
    let same = format!("{all} (the same: within {:.1} %)", diff.same_within * 100.0);
    match diff.notes.iter().filter(|note| note.is_of_one()).count() {
        0 => same,
        1 => same + "; a difference may come from a condition that is noted on one run only",
        _ => same + "; a difference may come from conditions that are noted on one run only",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_has_the_ratio_that_is_printed() {
        let digits = [0.0, 2.4567, 12.3456, 987.654, 7194.23, 24_504.2, 1_234_567.8].map(five_digits);
        assert_eq!(digits, ["0.0000", "2.4567", "12.346", "987.65", "7194.2", "24504", "1234568"]);
    }
}
