//! Converts runs of link and protocols alone into a run to save.
//!
//! Of latencies it has the mean only. Left out: figures of each of several drives, which the record has.

use super::CompareArguments;
use super::row::Row;
use crate::compare::saved::{simulated, us};
use records::{ResultRow, Setup};
use serde_json::Value;
use std::collections::BTreeMap;
use study::ceiling::{Figures, Run};
use workload::AccessSpec;

pub(super) fn run(arguments: &CompareArguments, rows: &[Row], record: &Value) -> records::Run {
    let job = job(arguments);
    let results = rows.iter().flat_map(|row| {
        [("bot", &row.bot), ("uas", &row.uas)].map(|(transport, run)| ResultRow {
            transport: transport.to_owned(),
            job: job.clone(),
            depth: row.depth,
            figures: Ok(figures(run)),
        })
    });
    simulated(arguments.seed, setup(arguments), results.collect(), record)
}

/// Returns the name of the job, in the form of other saved runs.
fn job(arguments: &CompareArguments) -> String {
    // What is longer than this was refused before anything was measured.
    let bytes = u32::try_from(arguments.block().0).unwrap_or(u32::MAX);
    AccessSpec::all(bytes, if arguments.write { 0 } else { 100 }, 100).to_string()
}

fn setup(arguments: &CompareArguments) -> Setup {
    let facts = [
        ("controller", arguments.controller_name().to_owned()),
        ("link", arguments.link().name().to_owned()),
        ("drives", arguments.drives.to_string()),
        ("hubs", arguments.hubs.to_string()),
        ("commands", arguments.commands().to_string()),
    ];
    let facts = facts.map(|(name, fact)| (name.to_owned(), fact));
    Setup {
        name: "link and protocols alone".to_owned(),
        drive: format!(
            "fixed-latency drive, {} us per command, {} in parallel",
            arguments.latency, arguments.at_once
        ),
        facts: BTreeMap::from(facts),
    }
}

fn figures(run: &Run) -> records::Figures {
    let Figures { mean, commands, digest, .. } = run.total;
    records::Figures {
        iops: run.total.iops(),
        mb_per_s: run.total.megabytes_per_second(),
        mean_us: us(mean),
        ios: commands,
        digest: Some(format!("{digest:016x}")),
        ..records::Figures::default()
    }
}
