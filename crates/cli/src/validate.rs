//! `uaskit validate`: figures that others have published, beside those of simulated worlds of the same parts.
//!
//! Rows, their sources and how each is decided are data of [`study::published`]; [`study::validate`] makes the measurements, each
//! once. Here is what the command line selects, and how verdicts are printed.

use crate::args::ValidateArguments;
use crate::compare::{self, table};
use crate::failure::Failure;
use crate::interrupt::{self, Saved};
use crate::page;
use crate::progress::ProgressLines;
use crate::sanitize;
use crate::stdout::Output;
use crate::threads;
use ::report::TextTable;
use study::parts::PartError;
use study::plural::counted_len;
use study::published::{Change, Count, Decided, Facts, Row, Sensitivity, Statistics, Verdict};
use study::setups::Setup;
use study::trial::Terms;
use study::validate::page as validation_page;
use study::validate::{BARS, Processors, Validation, doubts, made, places, record, role, rows};

pub(crate) fn run(arguments: &ValidateArguments, out: &mut Output<'_>) -> Result<(), Failure> {
    if arguments.save.is_some() {
        return Err(Failure::usage("a validation cannot be saved as a run")
            .because("its rows have the units of their articles, and rows of a run are rates")
            .try_this(
                "Store the output of --json or --report; it is reproducible for a version and a seed.",
            ));
    }
    page::has_room(arguments.report.as_deref())?;
    let catalogue = compare::parts::catalogue(arguments.parts.as_deref())?;
    let setups = Setup::built_in(&catalogue).map_err(broken)?;
    let mut decided = Decided::built_in().map_err(broken)?;
    if let Some(only) = &arguments.only {
        decided.keep(only);
    }
    if decided.decisions.is_empty() {
        return Err(Failure::usage("no row matches --only").try_this("leave --only out, or shorten it"));
    }
    let pool = threads::pool(arguments.threads)?;
    interrupt::watch(Saved::Nothing("run the same command again, or only some rows with --only TEXT"))?;
    let terms = Terms { seed: arguments.seed, ..Terms::USUAL };
    let progress = ProgressLines { quiet: arguments.quiet };
    let facts = Facts { catalogue: &catalogue, setups: &setups };
    let mut processors = Processors { setups: &setups, terms, what: "rows", progress: &progress };
    let made = pool.install(|| made(&decided, facts, &mut processors));
    let rows = rows(&decided, facts, &made);
    let statistics = Statistics::of(&rows);
    let sensitivities = if arguments.sensitivity {
        processors.what = "sensitivity";
        pool.install(|| Sensitivity::all(&decided, facts, &made, &mut processors))
    } else {
        Vec::new()
    };
    let validation = Validation {
        decided: &decided,
        rows: &rows,
        statistics: &statistics,
        sensitivities: &sensitivities,
        made: &made,
        seed: terms.seed,
    };
    if let Some(file) = &arguments.report {
        let again = page::command_line();
        page::write(&validation_page::page(again, validation), file)?;
    }
    if arguments.json {
        let record = record::record(validation);
        writeln!(out, "{}", sanitize::json(&format!("{record:#}")))?;
    } else {
        show(&decided, &rows, &statistics, &sensitivities, out)?;
    }
    let shapes = rows.iter().filter(|row| row.decision.is_shape());
    let all_hold = shapes.into_iter().all(|row| row.verdict == Verdict::Holds);
    let median = statistics.error_median.is_none_or(|median| median <= BARS.0);
    let worst = statistics.error_worst.as_ref().is_none_or(|(worst, _)| *worst <= BARS.1);
    if arguments.only.is_some() || all_hold && median && worst {
        return Ok(());
    }
    Err(Failure::new("a limit is not met").because("see the last lines above"))
}

fn broken(error: PartError) -> Failure {
    Failure::new("built-in data are invalid (a bug of uaskit)").because(error)
}

fn show(
    decided: &Decided,
    rows: &[Row<'_>],
    statistics: &Statistics,
    sensitivities: &[Sensitivity],
    out: &mut Output<'_>,
) -> Result<(), Failure> {
    let figures = figures(rows);
    if !figures.is_empty() {
        writeln!(out, "{}", table::wrapped(&figures))?;
    }
    doubts::turned(rows).iter().try_for_each(|sentence| writeln!(out, "{sentence}"))?;
    let claims = claims(rows);
    if !claims.is_empty() {
        writeln!(out, "Claims\n{}", table::wrapped(&claims))?;
    }
    doubts::by_little(rows).iter().try_for_each(|sentence| writeln!(out, "{sentence}"))?;
    if !sensitivities.is_empty() {
        writeln!(out, "{}", changes(sensitivities))?;
    }
    let Count { figures, holds, fails, undecided } = statistics.fit;
    writeln!(
        out,
        "Rows used for fitting: {}; claims: {holds} hold, {fails} fail, {undecided} undecided",
        counted_len(figures, "figure")
    )?;
    let Count { figures, holds, fails, undecided } = statistics.check;
    let figures = counted_len(figures, "figure");
    writeln!(
        out,
        "Rows that check:       {figures}; claims: {holds} hold, {fails} fail, {undecided} undecided"
    )?;
    writeln!(
        out,
        "Fitted constants: {}, in {}, to {}",
        statistics.fitted_numbers,
        counted_len(places(decided), "place"),
        counted_len(statistics.fit.all(), "row")
    )?;
    if let (Some(median), Some((worst, id))) = (statistics.error_median, &statistics.error_worst) {
        writeln!(
            out,
            "|error| of simulated figures: median {:.1} % (limit {:.0} %; {:.1} % with figures that follow from facts), largest {:.0} %, {id} (limit {:.0} %)",
            median * 100.0,
            BARS.0 * 100.0,
            statistics.error_median_with_facts.unwrap_or(median) * 100.0,
            worst * 100.0,
            BARS.1 * 100.0
        )?;
    }
    let shapes: Vec<_> = rows.iter().filter(|row| row.decision.is_shape()).collect();
    let held = shapes.iter().filter(|row| row.verdict == Verdict::Holds).count();
    if !shapes.is_empty() {
        writeln!(out, "Shapes: {held} of {} hold", shapes.len())?;
    }
    Ok(())
}

fn figures(rows: &[Row<'_>]) -> TextTable {
    let heads = ["row", "what", "published", "simulated", "error", ""];
    let mut table = TextTable::new(heads).words([1, 2, 5]).names([0]);
    for row in rows {
        let Verdict::Figure { published, simulated, error } = row.verdict else { continue };
        table.row([
            row.decision.id.clone(),
            row.decision.title.clone(),
            published.to_string(),
            format!("{simulated:.2}"),
            format!("{:+.1} %", error * 100.0),
            role(row).into(),
        ]);
    }
    table
}

fn claims(rows: &[Row<'_>]) -> TextTable {
    let mut table = TextTable::new(["row", "what", "verdict", "why"]).words([1, 3]).names([0, 2]);
    for row in rows.iter().filter(|row| !matches!(row.verdict, Verdict::Figure { .. })) {
        let (id, title) = (row.decision.id.clone(), row.decision.title.clone());
        // What holds has its numbers in the record for programs.
        let why = match row.verdict {
            Verdict::Holds => row.holds_by_little().map(doubts::by).unwrap_or_default(),
            _ => row.reason.clone(),
        };
        table.row([id, title, row.verdict.name().into(), why]);
    }
    table
}

fn changes(sensitivities: &[Sensitivity]) -> String {
    let columns = ["number", "", "median |error|", "worst", "moves most", "no longer holds"];
    let mut table = TextTable::new(columns).words([0, 3, 4, 5]).names([1]);
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    for Sensitivity { number, changes } in sensitivities {
        for (change, way) in changes.iter().zip(["-10 %", "+10 %"]) {
            let Some(Change { error_median, error_worst, moved_most, broken, .. }) = change else {
                table.row([number, way, "-", "-", "invalid value", ""]);
                continue;
            };
            let worst = error_worst.as_ref().map(|(error, id)| format!("{} {id}", percent(*error)));
            let moved = moved_most.as_ref().map(|(share, id)| format!("{id} {:+.1} %", share * 100.0));
            table.row([
                number.clone(),
                way.into(),
                error_median.map_or("-".into(), percent),
                worst.unwrap_or_else(|| "-".into()),
                moved.unwrap_or_else(|| "none".into()),
                broken.join(" "),
            ]);
        }
    }
    let runs: usize =
        sensitivities.iter().flat_map(|one| &one.changes).flatten().map(|change| change.runs).sum();
    let table = table::wrapped(&table);
    format!("Errors if a fitted constant changes by 10 % ({})\n{table}\n", counted_len(runs, "run"))
}
