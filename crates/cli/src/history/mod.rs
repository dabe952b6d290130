//! `uaskit history`: the runs that were saved, all of them or one.
//!
//! What is in the file, and what is not as it should be, is for the crate `records` to say. Left out: what has become better, which
//! `uaskit diff` tells. Several of them as a page: [`page`]. Always true: nothing is changed unless `--delete` names a run.

mod page;

use crate::called;
use crate::compare::table::{aligned, empty};
use crate::failure::Failure;
use crate::harmless::{self, shown, tame};
use crate::save::{failure, listing, place};
use crate::stdout::print;
use crate::unprinted::aside;
use clap::Args;
use comfy_table::CellAlignment;
use records::{Filter, ResultRow, RunId, Saved, Selector, Store, Summary};
use serde_json::{Value, to_value};
use std::path::{Path, PathBuf};

/// Show the runs that were saved, the newest first, or one of them.
///
/// `uaskit bench --save` and `uaskit compare --save` add to them. A run is called by its number, by its label (of several the newest), or
/// from the end: `last`, `last~1`. Reading changes nothing, whatever the version of the file.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  uaskit bench --virtual --save --label before
  uaskit history
  uaskit history --drive 'Portable SSD' --limit 5 --json
  uaskit history last
  uaskit history --drive 'Portable SSD' --report runs.html
  uaskit history before --export > record.json
  uaskit history 12 --delete

Exit codes: 0 ok, 1 failed, 2 usage.")]
pub(crate) struct HistoryArguments {
    /// Which run: its number, its label, `last` or `last~N`; all of them unless given.
    run: Option<Selector>,
    /// Runs of setups whose name has this in it.
    #[arg(long, value_name = "TEXT", conflicts_with = "run")]
    setup: Option<String>,
    /// Runs of drives whose name or serial number has this in it.
    #[arg(long, value_name = "TEXT", conflicts_with = "run")]
    drive: Option<String>,
    /// Runs whose label has this in it.
    #[arg(long, value_name = "TEXT", conflicts_with = "run")]
    label: Option<String>,
    /// So many at most.
    #[arg(long, value_name = "N", default_value_t = 20, conflicts_with = "run",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(Filter::LIMIT_MAX)))]
    limit: u32,
    /// Print the run as it was printed by --json then, with everything that was known.
    #[arg(long, requires = "run", conflicts_with = "json")]
    export: bool,
    /// Take the run out of the file for good.
    #[arg(long, requires = "run", conflicts_with_all = ["json", "export"])]
    delete: bool,
    /// Write a page with a chart of each job, run by run, into this file; an older one is replaced.
    #[arg(long, value_name = "FILE.html", conflicts_with_all = ["run", "json"])]
    report: Option<PathBuf>,
    /// Another file of runs than that in your data folder.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &HistoryArguments) -> Result<(), Failure> {
    let path = place(arguments.file.as_deref())?;
    let store = Store::to_read(&path).map_err(failure)?;
    let Some(selector) = &arguments.run else { return list(arguments, &store) };
    let saved = saved(&store, selector)?;
    if arguments.delete {
        drop(store);
        return delete(&path, saved.id);
    }
    let text = match () {
        () if arguments.export => harmless::json(&saved.run.record) + "\n",
        () if arguments.json => harmless::json(&format!("{:#}\n", json(to_value(&saved))?)),
        () => one(&saved),
    };
    print(&text)
}

/// The run that is meant.
pub(crate) fn saved(store: &Store, selector: &Selector) -> Result<Saved, Failure> {
    let found = store.find(selector).map_err(failure)?;
    let saved = found.map(|id| store.run(id)).transpose().map_err(failure)?.flatten();
    saved.ok_or_else(|| {
        let what = match selector {
            Selector::Last(back) => {
                format!("there is no run {back} before the last one in {}", shown(store.path()))
            }
            Selector::Named(name) => format!("no run is called `{name}` in {}", shown(store.path())),
        };
        Failure::usage(what).try_this(format!("See {}", listing(store.path())))
    })
}

/// A value that was made for programs.
pub(crate) fn json(value: serde_json::Result<Value>) -> Result<Value, Failure> {
    value.map_err(|error| Failure::new("cannot print the runs").because(error))
}

fn delete(path: &Path, id: RunId) -> Result<(), Failure> {
    let mut store = Store::to_write(path).map_err(failure)?;
    match store.delete(id).map_err(failure)? {
        true => aside!("run {id} is deleted from {}", shown(path)),
        false => return Err(Failure::new(format!("run {id} is gone already"))),
    }
    Ok(())
}

fn list(arguments: &HistoryArguments, store: &Store) -> Result<(), Failure> {
    let HistoryArguments { setup, drive, label, limit, .. } = arguments;
    let filter = Filter { setup: setup.clone(), drive: drive.clone(), label: label.clone(), limit: *limit };
    let runs = store.runs(&filter).map_err(failure)?;
    if arguments.json {
        return print(&harmless::json(&format!("{:#}\n", json(to_value(&runs))?)));
    }
    if let Some(file) = &arguments.report {
        let saved = runs.iter().rev().map(|summary| store.run(summary.run));
        let saved: Vec<Saved> =
            saved.filter_map(Result::transpose).collect::<Result<_, _>>().map_err(failure)?;
        return page::show(file, &saved);
    }
    if runs.is_empty() {
        return print(&format!("No such run in {}.\n", shown(store.path())));
    }
    print(&format!("{}\n{}\n", shown(store.path()), table(&runs)))
}

fn table(runs: &[Summary]) -> comfy_table::Table {
    let mut table = empty(&["run", "began", "label", "setup", "drive", "transports", "rows", "MB/s at most"]);
    for run in runs {
        let setup = match run.kind {
            records::Kind::Measured => tame(&run.setup),
            records::Kind::Simulated => format!("{}, simulated", tame(&run.setup)),
        };
        let ended = if run.interrupted { ", ended early" } else { "" };
        table.add_row([
            run.run.to_string(),
            run.began.clone(),
            run.label.as_deref().map(tame).unwrap_or_default(),
            setup,
            tame(&run.drive),
            tame(&run.transports.join(" ")),
            format!("{}{ended}", run.rows),
            run.mb_per_s_max.map_or_else(|| "-".into(), |most| format!("{most:.1}")),
        ]);
    }
    at_left(aligned(table), 1..6)
}

/// Columns of words.
pub(crate) fn at_left(mut table: comfy_table::Table, columns: std::ops::Range<usize>) -> comfy_table::Table {
    for column in columns {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Left);
        }
    }
    table
}

/// A run and its setup in words.
pub(crate) fn title(saved: &Saved) -> String {
    let run = &saved.run;
    let label = run.label.as_deref().map(|label| format!(" ({})", tame(label))).unwrap_or_default();
    let (setup, drive) = (tame(&run.setup.name), tame(&run.setup.drive));
    format!("run {}{label}, {}, {}: {setup}, {drive}", saved.id, saved.began, run.kind)
}

fn one(saved: &Saved) -> String {
    let run = &saved.run;
    let mut text = title(saved) + "\n";
    for (name, fact) in &run.setup.facts {
        text += &format!("  {}: {}\n", tame(name), tame(fact));
    }
    for note in &run.notes {
        text += &format!("  note: {}\n", tame(note));
    }
    let called = tame(&called::line(&run.command_line));
    text += &format!("  called: {called}\n  seed {}, uaskit {}\n", run.seed, tame(&run.version));
    let mut table =
        empty(&["", "transport", "depth", "IOPS", "rounds", "MB/s", "mean us", "p99 us", "max us", "errors"]);
    for row in &run.results {
        table.add_row(cells(row));
    }
    text + &at_left(aligned(table), 0..2).to_string() + "\n"
}

fn cells(row: &ResultRow) -> Vec<String> {
    let us = |us: Option<f64>| us.map_or_else(|| "-".to_owned(), |us| format!("{us:.1}"));
    let mut cells = vec![tame(&row.job), tame(&row.transport), row.depth.to_string()];
    match &row.figures {
        Err(error) => cells.push(tame(error)),
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
