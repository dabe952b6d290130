//! Converts a benchmark into a run to save.

use crate::failure::Failure;
use bench::record::{Record, RecordRow, RowFigures};
use records::{Figures, ResultRow, Run, RunKind, Setup};
use std::collections::BTreeMap;

pub(super) fn run(record: &Record) -> Result<Run, Failure> {
    let json =
        serde_json::to_string(record).map_err(|error| Failure::new("cannot save the run").because(error))?;
    Ok(Run {
        label: None,
        kind: RunKind::Measured,
        began_unix_s: record.began_unix_s,
        version: record.version.to_owned(),
        command_line: record.command_line.clone(),
        seed: record.method.seed,
        interrupted: record.interrupted,
        setup: setup(record),
        results: record.rows.iter().map(row).collect(),
        notes: record.target.identity.notes.clone(),
        record: json,
    })
}

/// The facts that stay the same until the user changes something.
fn setup(record: &Record) -> Setup {
    let (target, method, machine) = (&record.target, &record.method, &record.machine);
    let identity = &target.identity;
    let model = identity.model.clone().unwrap_or_else(|| "unknown make".to_owned());
    let serial = identity.serial.as_ref().map(|serial| format!(", serial number {serial}"));
    let facts = [
        ("kind", Some(target.kind.to_owned())),
        ("firmware", identity.firmware.clone()),
        ("bytes", Some(identity.bytes.to_string())),
        ("block bytes", Some(identity.block_bytes.to_string())),
        ("requests", Some(identity.engine.clone())),
        ("USB port", target.usb_port.clone()),
        ("USB id", target.usb_id.clone()),
        ("link", target.usb_speed.clone()),
        ("controller", target.controller.clone()),
        ("driver", target.driver.clone()),
        ("kernel", machine.kernel.clone()),
        ("processor", machine.processor.as_ref().map(|name| format!("{} x {name}", machine.processors))),
        ("run", Some(format!("{} s after {} s", method.run_s, method.warm_up_s))),
        ("verified", Some(method.verify.to_string())),
    ];
    let facts: BTreeMap<String, String> =
        facts.into_iter().filter_map(|(name, fact)| Some((name.to_owned(), fact?))).collect();
    Setup { name: target.name.clone(), drive: model + &serial.unwrap_or_default(), facts }
}

fn row(row: &RecordRow) -> ResultRow {
    let nothing = || row.error.clone().unwrap_or_else(|| "nothing was measured".to_owned());
    ResultRow {
        transport: row.transport.to_owned(),
        job: row.job.clone(),
        depth: row.depth,
        figures: row.figures.as_ref().map(|figures| of(row, figures)).ok_or_else(nothing),
    }
}

fn of(row: &RecordRow, figures: &RowFigures) -> Figures {
    Figures {
        iops: figures.iops,
        iops_interval: figures.iops_interval,
        iops_of_rounds: figures.iops_of_rounds.clone(),
        mb_per_s: figures.mb_per_s,
        mean_us: figures.mean_us,
        p50_us: Some(figures.p50_us),
        p99_us: Some(figures.p99_us),
        p999_us: Some(figures.p999_us),
        max_us: Some(figures.max_us),
        percentiles_us: figures.percentiles_us.clone(),
        ios: figures.ios,
        errors: row.errors,
        digest: None,
    }
}
