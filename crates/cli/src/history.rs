//! `uaskit history`: the runs that were saved, all of them or one.
//!
//! The crate `records` defines the contents of the file and detects faults in it. Left out: what
//! has become better, which `uaskit diff` prints. Several of them as a page: [`page`]. Always true:
//! nothing is changed unless `--delete` names a run.

mod page;

use crate::args::HistoryArguments;
use crate::command_line;
use crate::compare::table::fitted;
use crate::failure::Failure;
use crate::messages::message;
use crate::sanitize::{self, escape, shown};
use crate::save::{failure, listing, place, saving};
use crate::stdout::Output;
use records::{Filter, ResultRow, RunId, Saved, Selector, Store, Summary};
use report::TextTable;
use serde_json::{Value, to_value};
use std::path::Path;

pub(crate) fn run(arguments: &HistoryArguments, out: &mut Output<'_>) -> Result<(), Failure> {
    let path = place(arguments.file.as_deref())?;
    let store = Store::to_read(&path).map_err(failure)?;
    let Some(selector) = &arguments.run else { return list(arguments, &store, out) };
    let saved = saved(&store, selector)?;
    if arguments.delete {
        drop(store);
        return delete(&path, saved.id);
    }
    let text = match () {
        () if arguments.export => sanitize::json(&saved.run.record) + "\n",
        () if arguments.json => sanitize::json(&format!("{:#}\n", json(to_value(&saved))?)),
        () => one(&saved),
    };
    out.print(&text)
}

/// The run that is meant.
pub(crate) fn saved(store: &Store, selector: &Selector) -> Result<Saved, Failure> {
    let found = store.find(selector).map_err(failure)?;
    let saved = found.map(|id| store.run(id)).transpose().map_err(failure)?.flatten();
    let Some(saved) = saved else { return Err(not_found(store, selector)?) };
    Ok(saved)
}

/// Why there is no such run: there is none at all, or none of this name.
fn not_found(store: &Store, selector: &Selector) -> Result<Failure, Failure> {
    let path = shown(store.path());
    if is_empty(store)? {
        return Ok(Failure::usage(format!("{path} has no runs")).try_this(saving(store.path())));
    }
    let what = match selector {
        Selector::Last(back) => format!("{path} has no run last~{back}"),
        Selector::Named(name) => format!("no run in {path} has the number or label `{name}`"),
    };
    Ok(Failure::usage(what).try_this(format!("List the runs: {}", listing(store.path()))))
}

/// Whether a file has no runs at all.
fn is_empty(store: &Store) -> Result<bool, Failure> {
    store.find(&Selector::Last(0)).map_err(failure).map(|last| last.is_none())
}

/// A value that was made for programs.
pub(crate) fn json(value: serde_json::Result<Value>) -> Result<Value, Failure> {
    value.map_err(|error| Failure::new("cannot print the runs").because(error))
}

fn delete(path: &Path, id: RunId) -> Result<(), Failure> {
    let mut store = Store::to_write(path).map_err(failure)?;
    match store.delete(id).map_err(failure)? {
        true => message!("deleted run {id} from {}", shown(path)),
        false => return Err(Failure::new(format!("run {id} was already deleted"))),
    }
    Ok(())
}

fn list(arguments: &HistoryArguments, store: &Store, out: &mut Output<'_>) -> Result<(), Failure> {
    let HistoryArguments { setup, drive, label, limit, .. } = arguments;
    let filter = Filter { setup: setup.clone(), drive: drive.clone(), label: label.clone(), limit: *limit };
    let runs = store.runs(&filter).map_err(failure)?;
    if arguments.json {
        return out.print(&sanitize::json(&format!("{:#}\n", json(to_value(&runs))?)));
    }
    if runs.is_empty() {
        let path = shown(store.path());
        return out.print(&match is_empty(store)? {
            true => format!("{path} has no runs.\n{}\n", saving(store.path())),
            false => format!("No run in {path} matches.\nList all runs: {}\n", listing(store.path())),
        });
    }
    if let Some(file) = &arguments.report {
        let saved = runs.iter().rev().map(|summary| store.run(summary.run));
        let saved: Vec<Saved> =
            saved.filter_map(Result::transpose).collect::<Result<_, _>>().map_err(failure)?;
        return page::show(file, &saved);
    }
    out.print(&format!("{}\n{}\n", shown(store.path()), fitted(&table(&runs))))
}

fn table(runs: &[Summary]) -> TextTable {
    let heads = ["run", "began", "label", "setup", "drive", "transports", "rows", "MB/s max"];
    let table = TextTable::new(heads).words([1, 2, 3, 4, 5, 6]);
    let mut table = table.leave_out_first(&["rows", "transports", "setup", "label"]);
    for run in runs {
        let setup = match run.kind {
            records::RunKind::Measured => escape(&run.setup),
            records::RunKind::Simulated => format!("{}, simulated", escape(&run.setup)),
        };
        let ended = if run.interrupted { ", interrupted" } else { "" };
        table.row([
            run.run.to_string(),
            run.began.clone(),
            run.label.as_deref().map(escape).unwrap_or_default(),
            setup,
            escape(&run.drive),
            escape(&run.transports.join(" ")),
            format!("{}{ended}", run.rows),
            run.mb_per_s_max.map_or_else(|| "-".into(), |most| format!("{most:.1}")),
        ]);
    }
    table
}

/// A run and its setup in words.
pub(crate) fn title(saved: &Saved) -> String {
    let run = &saved.run;
    let label = run.label.as_deref().map(|label| format!(" ({})", escape(label))).unwrap_or_default();
    let (setup, drive) = (escape(&run.setup.name), escape(&run.setup.drive));
    format!("run {}{label}, {}, {}: {setup}, {drive}", saved.id, saved.began, run.kind)
}

fn one(saved: &Saved) -> String {
    let run = &saved.run;
    let mut text = title(saved) + "\n";
    for (name, fact) in &run.setup.facts {
        text += &format!("  {}: {}\n", escape(name), escape(fact));
    }
    for note in &run.notes {
        text += &format!("  note: {}\n", escape(note));
    }
    let called = escape(&command_line::line(&run.command_line));
    text += &format!("  command: {called}\n  seed {}, uaskit {}\n", run.seed, escape(&run.version));
    text + &fitted(&results(&run.results)) + "\n" + &failed(&run.results)
}

/// Rows of a run with figures.
fn results(rows: &[ResultRow]) -> TextTable {
    let heads = ["", "transport", "depth", "IOPS", "rounds", "MB/s", "mean us", "p99 us", "max us", "errors"];
    let table = TextTable::new(heads).words([0, 1]).keys(3);
    let mut table = table.leave_out_first(&["rounds", "max us", "mean us", "p99 us"]).keeps_lines();
    rows.iter().for_each(|row| table.row(cells(row)));
    table
}

/// Why rows have no figures, a line each.
fn failed(rows: &[ResultRow]) -> String {
    let line = |row: &ResultRow| {
        let error = row.figures.as_ref().err()?;
        Some(format!(
            "{}, {}, depth {}: no figures: {}\n",
            escape(&row.job),
            escape(&row.transport),
            row.depth,
            escape(error)
        ))
    };
    rows.iter().filter_map(line).collect()
}

fn cells(row: &ResultRow) -> Vec<String> {
    let us = |us: Option<f64>| us.map_or_else(|| "-".to_owned(), |us| format!("{us:.1}"));
    let mut cells = vec![escape(&row.job), escape(&row.transport), row.depth.to_string()];
    match &row.figures {
        Err(_) => cells.push("none".to_owned()),
        Ok(figures) => cells.extend([
            format!("{:.1}", figures.iops),
            figures.iops_of_rounds.len().to_string(),
            format!("{:.1}", figures.mb_per_s),
            format!("{:.1}", figures.mean_us),
            us(figures.p99_us),
            us(figures.max_us),
            figures.errors.to_string(),
        ]),
    }
    cells
}
