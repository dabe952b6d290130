//! `why --simulate`: the same rules for the parts of a setup, and the throughput of each transport.
//!
//! Which transport runs follows from what parts have ([`study::parts::Activation`]); the figures are of short runs in worlds of them. Where the
//! driver leaves a better or another transport out, drivers of the same system that would bring one run as well. Left out: what a user
//! may configure, and checks of a real machine.

use crate::compare::{self, table::fitted};
use crate::failure::Failure;
use crate::sanitize;
use crate::stdout::Output;
use rayon::prelude::*;
use report::TextTable;
use serde_json::{Value, json};
use std::fmt::Write;
use study::parts::{Activation, Carried, Catalogue, PartKind};
use study::setups::{Assembly, Setup};
use study::trial::{self, Terms};
use workload::{AccessSpec, Job};

/// The runs: label, access specification, depth.
const RUNS: [(&str, AccessSpec, u16); 3] = [
    ("4K random read, QD1", AccessSpec::all(4096, 100, 100), 1),
    ("4K random read, QD8", AccessSpec::all(4096, 100, 100), 8),
    ("512K sequential read, QD2", AccessSpec::all(512 << 10, 100, 0), 2),
];

/// One transport that the parts can have.
struct ReportRoute {
    activation: Activation,
    /// By run, in 10⁶ bytes a second; none if it cannot be simulated.
    figures: [Option<f64>; RUNS.len()],
}

/// One variant: what it has, and what there could be, by transport.
struct Answer {
    variant: String,
    assembly: Assembly,
    activation: Activation,
    ways: Vec<ReportRoute>,
}

pub(super) fn run(name: &str, as_json: bool, out: &mut Output<'_>) -> Result<(), Failure> {
    let catalogue = compare::parts::catalogue(None)?;
    let setup = compare::choice::setup(name, &catalogue)?;
    let variants: Vec<_> =
        setup.variants.iter().filter(|variant| variant.assembly.bridge.is_some()).collect();
    if variants.is_empty() {
        return Err(Failure::usage(format!("setup {name} has no USB drive")));
    }
    let answers = variants.par_iter().map(|variant| {
        let assembly = &variant.assembly;
        let activation = assembly.activation(&catalogue).map_err(|error| {
            Failure::usage(format!(
                "setup {1}, variant {0}: these parts cannot be connected",
                variant.name, setup.name
            ))
            .because(error)
        })?;
        let ways = ways(assembly, &activation, &catalogue).into_par_iter();
        let ways = ways.map(|(assembly, activation)| ReportRoute {
            figures: RUNS.map(|(_, share, depth)| rate(&assembly, &catalogue, share, depth)),
            activation,
        });
        let (variant, assembly) = (variant.name.clone(), assembly.clone());
        Ok(Answer { variant, assembly, activation, ways: ways.collect() })
    });
    let answers = answers.collect::<Result<Vec<_>, Failure>>()?;
    match as_json {
        true => out.print(&sanitize::json(&format!("{:#}\n", record(&setup, &answers)))),
        false => out.print(&text(&setup, &answers, &catalogue)),
    }
}

/// Returns the given assembly and, for each transport that it does not bring, the first driver of
/// the same system that does; sorted by transport.
fn ways(assembly: &Assembly, activation: &Activation, catalogue: &Catalogue) -> Vec<(Assembly, Activation)> {
    let mut all = vec![(assembly.clone(), activation.clone())];
    let Some(os) = catalogue.driver(&assembly.driver).map(|driver| driver.os) else { return all };
    let others = catalogue.entries().filter(|entry| entry.kind() == PartKind::Driver);
    for name in others.map(|entry| &entry.name) {
        let other = Assembly { driver: name.clone(), ..assembly.clone() };
        let Ok(activated) = other.activation(catalogue) else { continue };
        let is_own =
            activated.driver == *name && catalogue.driver(name).is_some_and(|driver| driver.os == os);
        let is_known = all.iter().any(|(_, known)| word(known.transport) == word(activated.transport));
        if is_own && !is_known {
            all.push((other, activated));
        }
    }
    all.sort_by_key(|(_, activation)| word(activation.transport));
    all
}

const fn word(transport: Carried) -> &'static str {
    match transport {
        Carried::Bot => "bot",
        Carried::Turbo => "turbo",
        Carried::Uas(_) => "uas",
        Carried::Sata => "sata",
    }
}

fn rate(assembly: &Assembly, catalogue: &Catalogue, share: AccessSpec, depth: u16) -> Option<f64> {
    let job = Job { span_bytes: Some(trial::DATA_SET_BYTES), ..Job::of(share, depth) };
    let trial = trial::run(assembly, catalogue, &job, &Terms::USUAL).ok()?;
    Some(trial.measured.megabytes_per_second())
}

fn text(setup: &Setup, answers: &[Answer], catalogue: &Catalogue) -> String {
    let mut text = format!("{}: {}\n", setup.name, setup.title);
    for Answer { variant, assembly, activation, ways } in answers {
        let title = |kind, name: &str| {
            catalogue.find(kind, name).map_or(name.to_owned(), |entry| entry.title.clone())
        };
        let bridge =
            assembly.bridge.as_deref().map_or_else(String::new, |bridge| title(PartKind::Bridge, bridge));
        let controller = title(PartKind::Controller, &assembly.controller);
        let _ = writeln!(text, "\n{variant}: {bridge}, at {controller}\n   {activation}\n");
        for (number, reason) in activation.reasons.iter().enumerate() {
            let decides = activation.decisive() == Some(reason);
            let (mark, verdict) =
                (if decides { "→" } else { " " }, if reason.is_met { "met" } else { "NOT MET" });
            let (number, question) = (number + 1, reason.rule.question());
            let _ = writeln!(
                text,
                " {mark}{number} {verdict:<9}  {}: {question}\n              {}",
                reason.driver, reason.because
            );
        }
        text += "\nSimulated throughput of each transport, MB/s (10^6 bytes)\n";
        text += &table(activation, ways);
    }
    let name = &setup.name;
    text + &format!(
        "\nAll figures: uaskit compare --setup {name}; accuracy of the simulation: uaskit validate\n"
    )
}

fn table(runs: &Activation, ways: &[ReportRoute]) -> String {
    let head: Vec<_> = ["transport", "driver"].into_iter().chain(RUNS.map(|(label, ..)| label)).collect();
    let mut table = TextTable::new(head).words([0, 1]).keys(2);
    for ReportRoute { activation, figures } in ways {
        let mark = if activation == runs { " (in use)" } else { "" };
        let names = [activation.transport.to_string(), format!("{}{mark}", activation.driver)];
        let figures = figures.map(|figure| figure.map_or("-".into(), |figure| format!("{figure:.1}")));
        table.row(names.into_iter().chain(figures));
    }
    fitted(&table) + "\n"
}

fn record(setup: &Setup, answers: &[Answer]) -> Value {
    let of_way = |ReportRoute { activation, figures }: &ReportRoute| {
        let runs = RUNS.iter().zip(figures).map(|((label, _, depth), figure)| {
            json!({ "workload": label, "depth": depth, "megabytes_per_second": figure })
        });
        json!({
            "transport": word(activation.transport),
            "streams": activation.transport.to_string(),
            "driver": activation.driver,
            "runs": runs.collect::<Vec<_>>(),
        })
    };
    let of_answer = |Answer { variant, assembly, activation, ways }: &Answer| {
        let rules = activation.reasons.iter().map(
            |reason| json!({ "driver": reason.driver, "is_met": reason.is_met, "because": reason.because }),
        );
        json!({
            "variant": variant,
            "controller": assembly.controller,
            "bridge": assembly.bridge,
            "drive": assembly.drive.as_str(),
            "asked_driver": assembly.driver,
            "driver": activation.driver,
            "transport": word(activation.transport),
            "answer": activation.to_string(),
            "rules": rules.collect::<Vec<_>>(),
            "ways": ways.iter().map(of_way).collect::<Vec<_>>(),
        })
    };
    json!({ "setup": setup.name, "title": setup.title, "variants": answers.iter().map(of_answer).collect::<Vec<_>>() })
}
