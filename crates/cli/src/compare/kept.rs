//! A comparison as a run that is kept.

use super::choice::Column;
use super::run::Row;
use records::{Figures, Kind, ResultRow, Run};
use serde_json::Value;
use sim::assembly::AssemblyError;
use sim::setups::Setup;
use sim::trial::{Terms, Trial};
use std::collections::BTreeMap;

pub(super) fn run(setup: &Setup, (columns, rows): (&[Column], &[Row]), terms: &Terms, record: &Value) -> Run {
    let mut drives: Vec<&str> = columns.iter().map(|column| column.assembly.drive.as_str()).collect();
    drives.dedup();
    let span = terms.stretch.span.as_ps() as f64 / 1e12;
    let mut facts: BTreeMap<String, String> = columns.iter().flat_map(parts).collect();
    facts.insert("virtual time".to_owned(), format!("{span} s"));
    let setup = records::Setup { name: setup.name.clone(), drive: drives.join(", "), facts };
    simulated(terms.seed, setup, rows.iter().flat_map(|row| results(columns, row)).collect(), record)
}

/// A run in virtual time; when it began its keeper knows.
pub(super) fn simulated(
    seed: u64,
    setup: records::Setup,
    results: Vec<ResultRow>,
    record: &Value,
) -> records::Run {
    Run {
        label: None,
        kind: Kind::Simulated,
        began_unix_s: 0,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command_line: crate::called::words(),
        seed,
        interrupted: false,
        setup,
        results,
        record: record.to_string(),
    }
}

/// Microseconds.
pub(super) fn us(time: units::Duration) -> f64 {
    time.as_ps() as f64 / 1e6
}

/// What a column is made of: its name and the kind of part, the part.
fn parts(column: &Column) -> impl Iterator<Item = (String, String)> {
    let assembly = &column.assembly;
    let parts = [
        ("host", Some(assembly.host.clone())),
        ("driver", Some(column.activation.driver.clone())),
        ("controller", Some(assembly.controller.clone())),
        ("hubs", Some(assembly.hubs.join(", ")).filter(|hubs| !hubs.is_empty())),
        ("bridge", assembly.bridge.clone()),
        ("link", assembly.link.clone()),
        ("drive", Some(assembly.drive.as_str().to_owned())),
        ("runs", Some(column.activation.to_string())),
    ];
    parts.into_iter().filter_map(|(kind, part)| Some((format!("{}, {kind}", column.name), part?)))
}

fn results<'a>(columns: &'a [Column], row: &'a Row) -> impl Iterator<Item = ResultRow> + 'a {
    columns.iter().zip(&row.trials).map(|(column, trial)| ResultRow {
        transport: column.name.clone(),
        job: row.job.label.clone(),
        depth: row.job.depth,
        figures: trial.as_ref().map(figures).ok_or_else(|| AssemblyError::HubOfUsb2.to_string()),
    })
}

fn figures(trial: &Trial) -> Figures {
    let Trial { measured, digest, .. } = trial;
    Figures {
        iops: measured.iops(),
        mb_per_s: measured.megabytes_per_second(),
        mean_us: us(measured.mean),
        max_us: Some(us(measured.longest)),
        ios: measured.requests,
        digest: Some(format!("{digest:016x}")),
        ..Figures::default()
    }
}
