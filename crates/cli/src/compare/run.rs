//! Measures each column of a comparison under each job, in simulations on all processors, and prints the results.
//!
//! Invariant: figures are in virtual time, and depend neither on the number of threads nor on observers.

use super::choice::{Configuration, Selection};
use super::components;
use super::power;
use super::request::{gather, jobs};
use super::table::fitted;
use super::{
    CompareArguments, LinkArgument, against, observers, parts, platter, print_findings, print_notes, saved,
    timeline,
};
use crate::failure::Failure;
use crate::page;
use crate::progress::ProgressLines;
use crate::sanitize;
use crate::stdout::{Output, wrapped};
use ::report::TextTable;
use serde_json::{Value, json};
use sim::engine::LatencyStage;
use study::compare::Comparison;
use study::compare::Row;
use study::compare::findings::{findings, first_seed};
use study::compare::page::{self as page_content, PageContent};
use study::compare::pairs;
use study::parts::{Catalogue, Entry, PartKind};
use study::setups::DriveName;
use study::trial::{Terms, Trial};
use units::Duration;

pub(super) fn run(arguments: &CompareArguments, out: &mut Output<'_>) -> Result<(), Failure> {
    arguments.check_outputs()?;
    let keeper = arguments.keeping.keeper()?;
    let catalogue = parts::catalogue(arguments.parts.as_deref())?;
    let selection = arguments.columns(&catalogue)?;
    let Selection { setup, columns, notes } = &selection;
    let terms = arguments.terms();
    let comparison = Comparison { columns, catalogue: &catalogue, terms: &terms };
    if let Some(file) = &arguments.timeline {
        return timeline::show(arguments, file.as_deref(), comparison, out);
    }
    if let Some(file) = &arguments.platter {
        return platter::show(file.as_deref(), comparison, out);
    }
    if let Some(file) = &arguments.against {
        return against::show(arguments, file, comparison, notes, out);
    }
    let jobs = jobs(arguments)?;
    let observed = observers::measure(arguments, &jobs, comparison, out)?;
    let gathered = observed.map_or_else(|| gather(arguments, comparison, &jobs, arguments.wanted()), Ok)?;
    let rows: Vec<Row> = gathered.iter().map(|row| row.row(arguments.explain)).collect();
    let record = || record(&selection, &rows, &catalogue, &terms);
    if arguments.json {
        writeln!(out, "{}", sanitize::json(&format!("{:#}", record())))?;
    } else {
        show(arguments, &selection, comparison, &rows, out)?;
    }
    if let Some(keeper) = keeper {
        keeper.keep(&saved::run(setup, comparison, &gathered, &record()))?;
    }
    let Some(file) = arguments.report.as_deref() else { return Ok(()) };
    let blocks = if arguments.is_usual() {
        arguments
            .pool()?
            .install(|| page_content::block_runs(comparison, &ProgressLines { quiet: arguments.quiet }))?
    } else {
        Vec::new()
    };
    let content = PageContent {
        setup,
        columns,
        notes,
        catalogue: &catalogue,
        terms: &terms,
        replaced: &arguments.replaced_parts(),
        commands: arguments.commands,
        constants: &record()["parts"],
        again: page::command_line(),
    };
    page::write(&page_content::page(&content, &gathered, &blocks)?, file)
}

/// Everything, for people.
fn show(
    arguments: &CompareArguments,
    selection: &Selection,
    comparison: Comparison<'_>,
    rows: &[Row],
    out: &mut Output<'_>,
) -> Result<(), Failure> {
    let Comparison { columns, catalogue, .. } = comparison;
    writeln!(out, "{}", selection.setup.title)?;
    print_notes(out, &selection.notes)?;
    writeln!(out)?;
    print_findings(out, &findings(columns, &first_seed(columns, rows)), arguments.findings)?;
    for column in columns {
        writeln!(out, "{}", wrapped(&format!("{}: {}", column.name, column.activation), "  "))?;
        writeln!(out, "{}", wrapped(&format!("    {}", parts_of(column, catalogue)), "    "))?;
    }
    writeln!(out, "\nMB/s (10^6 bytes) by queue depth\n{}", fitted(&table(columns, rows)))?;
    if let Some(chart) = chart(columns, rows) {
        writeln!(out, "{chart}")?;
    }
    writeln!(out, "{}\n{}", power::title(rows), fitted(&power::table(columns, rows)))?;
    if let Some(links) = power::links(columns, rows) {
        writeln!(out, "Time that links spent in U1, in U2 and leaving them, percent\n{}", fitted(&links))?;
    }
    if arguments.explain {
        writeln!(
            out,
            "Mean time of a command in each stage, us; stages add up to the total\n{}",
            fitted(&stages(columns, rows))
        )?;
    }
    if arguments.components {
        writeln!(out, "Load of the components\n{}", fitted(&done(columns, rows)))?;
    }
    if arguments.wanted().seeds > 1 {
        let others = if arguments.report.is_some() { "the page" } else { "the saved run" };
        writeln!(out, "These figures are of seed {}; {others} has means over five seeds.", arguments.seed)?;
    }
    Ok(())
}

impl LinkArgument {
    /// The part of this name.
    pub(super) const fn part(self) -> &'static str {
        match self {
            Self::Gen1 => "gen1",
            Self::Gen2 => "gen2",
            Self::Gen2x2 => "gen2x2",
            Self::High => "high",
            Self::Full => "full",
        }
    }
}

/// The parts of a column.
fn parts_of(column: &Configuration, catalogue: &Catalogue) -> String {
    let title =
        |kind, name: &str| catalogue.find(kind, name).map_or(name.to_owned(), |entry| entry.title.clone());
    let assembly = &column.assembly;
    let mut parts =
        vec![title(PartKind::Host, &assembly.host), title(PartKind::Driver, &column.activation.driver)];
    match &assembly.bridge {
        Some(bridge) => {
            parts.push(title(PartKind::Controller, &assembly.controller));
            parts.extend(assembly.hubs.iter().map(|hub| title(PartKind::Hub, hub)));
            parts.push(title(PartKind::Bridge, bridge));
        }
        None => parts.push(title(PartKind::Sata, &assembly.controller)),
    }
    parts.push(match &assembly.drive {
        DriveName::Ssd(name) => title(PartKind::Ssd, name),
        DriveName::Hdd(name) => title(PartKind::Hdd, name),
    });
    parts.join("; ")
}

fn table(columns: &[Configuration], rows: &[Row]) -> TextTable {
    // A reader of many ways finds the pairs in the findings.
    let ratio = pairs(columns).next();
    let mut head = vec!["", "depth"];
    head.extend(columns.iter().map(|column| column.name.as_str()));
    let names = ratio.map(|(bot, uas)| format!("{} : {}", columns[uas].name, columns[bot].name));
    head.extend(names.as_deref());
    let mut table = TextTable::new(head).keys(2);
    let mut last = "";
    for row in rows {
        let label = if row.job.label == last { "" } else { row.job.label.as_str() };
        last = &row.job.label;
        let mut cells = vec![label.to_owned(), row.job.depth.to_string()];
        let figure = |trial: &Trial| trial.measured.megabytes_per_second();
        cells.extend(row.trials.iter().map(|trial| format!("{:.1}", figure(trial))));
        if let Some((bot, uas)) = ratio {
            cells.push(format!("{:.2}", figure(&row.trials[uas]) / figure(&row.trials[bot])));
        }
        table.row(cells);
    }
    table
}

/// Where the time of a command goes, and in which stage most of it is spent.
fn stages(columns: &[Configuration], rows: &[Row]) -> TextTable {
    let mut head = vec!["", "depth", "", "total"];
    head.extend(LatencyStage::ALL.map(LatencyStage::name));
    head.push("longest stage");
    let mut table = TextTable::new(head).words([0, 2]).keys(3);
    for row in rows {
        for (column, trial) in columns.iter().zip(&row.trials) {
            let Some((shares, commands)) = trial.explained else { continue };
            let mean = |all: Duration| format!("{:.1}", all.as_ps() as f64 / commands.max(1) as f64 / 1e6);
            let mut cells = vec![row.job.label.clone(), row.job.depth.to_string(), column.name.clone()];
            cells.push(mean(shares.total()));
            cells.extend(LatencyStage::ALL.map(|stage| mean(shares.of(stage))));
            cells.push(shares.largest().name().into());
            table.row(cells);
        }
    }
    table
}

/// Builds the table of component statistics.
fn done(columns: &[Configuration], rows: &[Row]) -> TextTable {
    let heads = ["", "depth", ""].into_iter().chain(components::HEAD);
    let mut table = TextTable::new(heads).words([0, 2, 3, 8]).keys(4);
    for row in rows {
        for (column, trial) in columns.iter().zip(&row.trials) {
            for cells in components::lines(&trial.components) {
                let run = [row.job.label.clone(), row.job.depth.to_string(), column.name.clone()];
                table.row(run.into_iter().chain(cells));
            }
        }
    }
    table
}

/// The first job that has several depths, as bars. None if there is no such job.
fn chart(columns: &[Configuration], rows: &[Row]) -> Option<String> {
    const WIDTH: f64 = 48.0;
    let label = &rows.first()?.job.label;
    let rows: Vec<_> = rows.iter().filter(|row| row.job.label == *label).collect();
    let all = rows.iter().flat_map(|row| &row.trials);
    let most = all.map(|trial| trial.measured.megabytes_per_second()).fold(0.0, f64::max);
    if rows.len() < 2 || most <= 0.0 {
        return None;
    }
    let width = columns.iter().map(|column| column.name.len()).max().unwrap_or(0);
    let mut chart = format!("{label}, MB/s by queue depth\n");
    for (number, column) in columns.iter().enumerate() {
        for (first, row) in rows.iter().enumerate() {
            let figure = row.trials[number].measured.megabytes_per_second();
            let name = if first == 0 { column.name.as_str() } else { "" };
            let bar = "█".repeat((figure / most * WIDTH).round().max(1.0) as usize);
            let decimals = if most < 10.0 { 1 } else { 0 };
            chart += &format!("{name:>width$} {:>3} {bar} {figure:.decimals$}\n", row.job.depth);
        }
    }
    Some(chart)
}

/// Everything, for programs.
pub(super) fn record(selection: &Selection, rows: &[Row], catalogue: &Catalogue, terms: &Terms) -> Value {
    let Selection { setup, columns, notes } = selection;
    let of_column = |column: &Configuration| {
        let assembly = &column.assembly;
        json!({
            "name": column.name,
            "driver": column.activation.driver,
            "asked_driver": assembly.driver,
            "host": assembly.host,
            "controller": assembly.controller,
            "hubs": assembly.hubs,
            "bridge": assembly.bridge,
            "link": column.activation.link_name(),
            "power_states": assembly.power_states,
            "drive": assembly.drive.as_str(),
            "transport": column.activation.to_string(),
            "commands_at_once": column.activation.depth,
            "command_bytes_max": column.activation.command_bytes_max,
        })
    };
    let of_row = |row: &Row| {
        let results = columns.iter().zip(&row.trials).map(|(column, trial)| {
            let Trial { measured, events, digest, spent, overhead, components: done, explained } = trial;
            let stages = explained.map(|(shares, commands)| {
                let of = |stage: LatencyStage| (stage.name().to_owned(), shares.of(stage).as_ps().into());
                let all: serde_json::Map<_, Value> = LatencyStage::ALL.into_iter().map(of).collect();
                json!({ "commands": commands, "latency_ps": shares.total().as_ps(), "stages_ps": all })
            });
            let figures = json!({
                "explained": stages,
                "components": components::record(done),
                "power": power::record(spent, measured.bytes),
                "unit_bytes_of_command": overhead.unit_bytes(),
                "ready_units_of_command": overhead.ready_units(),
                "megabytes_per_second": measured.megabytes_per_second(),
                "iops": measured.iops(),
                "mean_ns": measured.mean.as_ps() as f64 / 1e3,
                "longest_ns": measured.longest.as_ps() as f64 / 1e3,
                "requests": measured.requests,
                "elapsed_ns": measured.elapsed.as_ps() as f64 / 1e3,
                "events": events,
                "digest": format!("{digest:016x}"),
            });
            (column.name.clone(), figures)
        });
        json!({
            "workload": row.job.label,
            "depth": row.job.depth,
            "results": results.collect::<serde_json::Map<_, _>>(),
        })
    };
    let used = |kind, name: &str| columns.iter().any(|column| column.uses(kind, name, catalogue));
    let constants = catalogue.entries().filter(|entry| used(entry.kind(), &entry.name)).map(Entry::to_json);
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "setup": setup.name,
        "title": setup.title,
        "source": setup.source,
        "notes": notes,
        "seed": terms.seed,
        "span_seconds": terms.stretch.span.as_ps() as f64 / 1e12,
        "columns": columns.iter().map(of_column).collect::<Vec<_>>(),
        "rows": rows.iter().map(of_row).collect::<Vec<_>>(),
        "parts": constants.collect::<Vec<_>>(),
    })
}
