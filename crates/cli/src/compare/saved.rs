//! Converts a comparison into a run to save.

use super::choice::Configuration;
use bench::record::PERCENTS;
use records::{Figures, ResultRow, Run, RunKind};
use serde_json::Value;
use std::collections::BTreeMap;
use study::compare::Comparison;
pub(super) use study::compare::runs::us;
use study::compare::runs::{JobRuns, Runs};
use study::setups::Setup;
use workload::Estimate;

pub(super) fn run(setup: &Setup, comparison: Comparison<'_>, rows: &[JobRuns], record: &Value) -> Run {
    let Comparison { columns, terms, .. } = comparison;
    let mut drives: Vec<&str> = columns.iter().map(|column| column.assembly.drive.as_str()).collect();
    drives.dedup();
    let span = terms.stretch.span.as_ps() as f64 / 1e12;
    let mut facts: BTreeMap<String, String> = columns.iter().flat_map(parts).collect();
    facts.insert("virtual time".to_owned(), format!("{span} s"));
    let seeds = rows.iter().flat_map(|row| &row.of).map(|runs| runs.trials.len()).max();
    if let Some(seeds @ 2..) = seeds {
        facts.insert("seeds".to_owned(), seeds.to_string());
    }
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
        kind: RunKind::Simulated,
        began_unix_s: 0,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command_line: crate::command_line::words(),
        seed,
        interrupted: false,
        setup,
        results,
        notes: Vec::new(),
        record: record.to_string(),
    }
}

/// Returns the parts of a column, each after the column's name and the kind of part.
fn parts(column: &Configuration) -> impl Iterator<Item = (String, String)> {
    let assembly = &column.assembly;
    let parts = [
        ("host", Some(assembly.host.clone())),
        ("transport", Some(column.transport().to_owned())),
        ("driver", Some(column.activation.driver.clone())),
        ("controller", Some(assembly.controller.clone())),
        ("hubs", Some(assembly.hubs.join(", ")).filter(|hubs| !hubs.is_empty())),
        ("bridge", assembly.bridge.clone()),
        ("link", column.activation.link_name().map(str::to_owned)),
        ("drive", Some(assembly.drive.as_str().to_owned())),
        ("link sleeps", assembly.power_states.then(|| "U1 and U2".to_owned())),
        ("runs", Some(column.activation.to_string())),
    ];
    parts.into_iter().filter_map(|(kind, part)| Some((format!("{}, {kind}", column.name), part?)))
}

fn results<'a>(columns: &'a [Configuration], row: &'a JobRuns) -> impl Iterator<Item = ResultRow> + 'a {
    columns.iter().zip(&row.of).map(|(column, runs)| ResultRow {
        transport: column.name.clone(),
        job: row.job.label.clone(),
        depth: row.job.depth,
        figures: Ok(figures(runs)),
    })
}

/// Means over seeds, of which each is a round if there are several; latencies of the requests of all of them.
fn figures(runs: &Runs) -> Figures {
    let of_seeds = runs.each(|trial| trial.measured.iops());
    let iops = Estimate::of(&of_seeds);
    let latency = runs.latency();
    let known = |percent: f64| Some([percent, latency.known(percent / 100.0)?]);
    let all = || runs.trials.iter().map(|trial| &trial.measured);
    let requests = all().map(|measured| measured.requests).sum::<u64>();
    let sum_us: f64 = all().map(|measured| us(measured.mean) * measured.requests as f64).sum();
    Figures {
        iops: iops.value,
        iops_interval: iops.interval,
        iops_of_rounds: if of_seeds.len() > 1 { of_seeds } else { Vec::new() },
        mb_per_s: Estimate::of(&runs.each(|trial| trial.measured.megabytes_per_second())).value,
        mean_us: sum_us / requests.max(1) as f64,
        p50_us: latency.known(0.5),
        p99_us: latency.known(0.99),
        p999_us: latency.known(0.999),
        max_us: all().map(|measured| us(measured.longest)).max_by(f64::total_cmp),
        percentiles_us: PERCENTS.into_iter().filter_map(known).collect(),
        ios: requests,
        errors: 0,
        digest: Some(format!("{:016x}", runs.digest())),
    }
}
