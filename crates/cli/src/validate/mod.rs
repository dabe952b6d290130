//! `uaskit validate`: figures that others have published, beside those of simulated worlds of the same parts.
//!
//! Rows, their sources and how each is decided are data of `sim::published`; here measurements are made, each once, and the
//! verdicts shown.

mod record;
mod report;

use crate::compare::{self, table};
use crate::failure::Failure;
use clap::Args;
use comfy_table::Table;
use rayon::prelude::*;
use sim::parts::PartError;
use sim::published::{
    Count, Decided, Facts, FreeNumber, Measurement, Outcome, Role, Row, Statistics, Verdict,
};
use sim::setups::Setup;
use sim::trial::{self, Terms};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Hold simulated figures against published ones.
///
/// Each row of the published figures is decided by measurements in worlds of the parts that its article names: a figure stands beside
/// the published one with its error, a claim holds or fails, and what no run decides says why. Rows on which numbers of
/// parts were fitted are told apart from those that check. Numbers belong to parts; no row has code of its own.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  uaskit validate
  uaskit validate --json | jq '.rows[] | select(.verdict == \"fails\")'
  uaskit validate --only myce
  uaskit validate --sensitivity
  uaskit validate --report page.html
  uaskit validate --parts my-parts

Bars: |error| median 8 % at most, worst 20 %; all seventeen shapes (Q1 to Q17) hold. Exit codes: 0 all bars are met, 1 not, or
failed, 2 usage.")]
pub(crate) struct ValidateArguments {
    /// A folder with further parts; they take the place of others of the same name.
    #[arg(long, value_name = "DIR")]
    parts: Option<PathBuf>,
    /// Only rows whose id or source has this in it, whatever the case.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// What each fitted number does to the errors: 10 % less, 10 % more.
    #[arg(long)]
    sensitivity: bool,
    /// Where random places come from.
    #[arg(long, default_value = "1")]
    seed: u64,
    /// Worlds that run at once; as many as there are processors unless told. What comes out does not depend on it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Write all of it as charts into one HTML file that needs nothing but a browser.
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// The largest median of |error|, and the largest |error|.
const BARS: (f64, f64) = (0.08, 0.20);

/// What a number is changed by, to see what depends on it.
const CHANGE: f64 = 0.1;

/// A fitted number, and what the median of |error| is with a tenth less and a tenth more of it, in all its places.
struct Sensitivity {
    number: String,
    medians: [Option<f64>; 2],
}

pub(crate) fn run(arguments: &ValidateArguments) -> Result<(), Failure> {
    let catalogue = compare::catalogue(arguments.parts.as_deref())?;
    let setups = Setup::built_in(&catalogue).map_err(broken)?;
    let mut decided = Decided::built_in().map_err(broken)?;
    if let Some(only) = &arguments.only {
        decided.keep(only);
    }
    if decided.decisions.is_empty() {
        return Err(Failure::usage("no row is left").try_this("leave --only out, or shorten it"));
    }
    let threads = arguments.threads.map_or(0, usize::from);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|error| Failure::new("no threads for the worlds").because(error))?;
    let terms = Terms { seed: arguments.seed, ..Terms::USUAL };
    let facts = Facts { catalogue: &catalogue, setups: &setups };
    let rows = pool.install(|| evaluate(&decided, facts, &terms));
    let statistics = Statistics::of(&rows);
    let sensitivities = if arguments.sensitivity {
        pool.install(|| sensitivities(&decided, facts, &terms))
    } else {
        Vec::new()
    };
    if let Some(file) = &arguments.report {
        report::write(file, (&decided, &rows), &statistics, &sensitivities, terms.seed)?;
    }
    if arguments.json {
        println!("{:#}", record::record(&rows, (&statistics, places(&decided)), &sensitivities, terms.seed));
    } else {
        show(&decided, &rows, &statistics, &sensitivities);
    }
    let shapes = rows.iter().filter(|row| row.decision.is_shape());
    let all_hold = shapes.into_iter().all(|row| row.verdict == Verdict::Holds);
    let median = statistics.error_median.is_none_or(|median| median <= BARS.0);
    let worst = statistics.error_worst.as_ref().is_none_or(|(worst, _)| *worst <= BARS.1);
    if arguments.only.is_some() || all_hold && median && worst {
        return Ok(());
    }
    Err(Failure::new("a bar is not met").because("the last lines above say which"))
}

fn broken(error: PartError) -> Failure {
    Failure::new("what comes with the program is broken, which is a fault of ours").because(error)
}

/// Makes every measurement, and decides the rows.
fn evaluate<'a>(decided: &'a Decided, facts: Facts<'_>, terms: &Terms) -> Vec<Row<'a>> {
    let made: BTreeMap<Measurement, Result<Outcome, String>> = decided
        .measurements()
        .into_par_iter()
        .map(|one| {
            let outcome = trial::outcome(facts, &one, terms).map_err(|error| error.to_string());
            (one, outcome)
        })
        .collect();
    decided.evaluate(facts, |one| made.get(one).cloned().unwrap_or_else(|| Err("it was not made".into())))
}

/// What each fitted number does to the median of the errors.
fn sensitivities(decided: &Decided, facts: Facts<'_>, terms: &Terms) -> Vec<Sensitivity> {
    let one = |number: &FreeNumber| {
        let medians = [1.0 - CHANGE, 1.0 + CHANGE].map(|factor| {
            let changed = number.times(factor, facts.catalogue)?;
            let facts = Facts { catalogue: &changed, ..facts };
            Statistics::of(&evaluate(decided, facts, terms)).error_median
        });
        Sensitivity { number: number.name(), medians }
    };
    decided.fitted().into_iter().map(one).collect()
}

fn show(decided: &Decided, rows: &[Row<'_>], statistics: &Statistics, sensitivities: &[Sensitivity]) {
    println!("{}", figures(rows));
    println!("Claims\n{}", claims(rows));
    if !sensitivities.is_empty() {
        println!("Median of |error| if a fitted number changes\n{}", changes(sensitivities));
    }
    let Count { figures, holds, fails, undecided } = statistics.fit;
    println!(
        "Rows that numbers were fitted on: {figures} figures, {holds} hold, {fails} fail, {undecided} undecided"
    );
    let Count { figures, holds, fails, undecided } = statistics.check;
    println!("Rows that check: {figures} figures, {holds} hold, {fails} fail, {undecided} undecided");
    println!(
        "Numbers that were fitted: {}, in {} places, on {} rows",
        statistics.fitted_numbers,
        places(decided),
        statistics.fit.all()
    );
    if let (Some(median), Some((worst, id))) = (statistics.error_median, &statistics.error_worst) {
        println!(
            "|error| median {:.1} % of figures that runs decide (bar {:.0} %), {:.1} % with facts; worst {:.0} % of {id} (bar {:.0} %)",
            median * 100.0,
            BARS.0 * 100.0,
            statistics.error_median_with_facts.unwrap_or(median) * 100.0,
            worst * 100.0,
            BARS.1 * 100.0
        );
    }
    let shapes: Vec<_> = rows.iter().filter(|row| row.decision.is_shape()).collect();
    let held = shapes.iter().filter(|row| row.verdict == Verdict::Holds).count();
    println!("Shapes: {held} of {} hold", shapes.len());
}

/// Places in parts that fitted numbers are in.
fn places(decided: &Decided) -> usize {
    decided.fitted().into_iter().map(|number| number.places.len()).sum()
}

fn figures(rows: &[Row<'_>]) -> Table {
    let mut table = table::wrapped(&["row", "what", "published", "simulated", "error", ""]);
    for row in rows {
        let Verdict::Figure { published, simulated, error } = row.verdict else { continue };
        table.add_row([
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

fn claims(rows: &[Row<'_>]) -> Table {
    let mut table = table::wrapped(&["row", "what", "verdict", "why"]);
    for row in rows.iter().filter(|row| !matches!(row.verdict, Verdict::Figure { .. })) {
        let (id, title) = (row.decision.id.clone(), row.decision.title.clone());
        // What holds has its numbers in the record for programs.
        let why = if row.verdict == Verdict::Holds { "" } else { row.reason.as_str() };
        table.add_row([id, title, row.verdict.name().into(), why.into()]);
    }
    table
}

fn changes(sensitivities: &[Sensitivity]) -> Table {
    let mut table = table::empty(&["number", "a tenth less", "a tenth more"]);
    for Sensitivity { number, medians } in sensitivities {
        let shown =
            medians.map(|median| median.map_or("-".into(), |median| format!("{:.1} %", median * 100.0)));
        table.add_row([number.clone()].into_iter().chain(shown));
    }
    table::aligned(table)
}

const fn role(row: &Row<'_>) -> &'static str {
    match row.decision.role {
        Role::Fit(_) => "fitted on",
        Role::Check => "",
    }
}
