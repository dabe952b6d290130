//! Power and energy of each column of a comparison, by job.
//!
//! Figures are those of `sim::power::machine`; here they are shown. Always true: a peak says over which time it is one.

use super::choice::Configuration;
use report::TextTable;
use serde_json::{Map, Value, json};
use sim::power::machine::{Consumer, EnergyUse, WINDOW};
use study::compare::Row;
use study::trial::Trial;

/// Returns the title of the table, which says over which time a peak is averaged.
pub(super) fn title(rows: &[Row]) -> String {
    let of_what = "Power of the whole machine in W, and energy in J per 10^9 bytes";
    match shorter(rows) {
        Shorter::All => of_what.to_owned(),
        Shorter::Some => {
            format!("{of_what}; peaks are means over 1 s, or over a shorter run")
        }
        Shorter::None => format!("{of_what}; peaks are means over 1 s"),
    }
}

/// Which runs are shorter than the window of a peak.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shorter {
    All,
    Some,
    None,
}

fn shorter(rows: &[Row]) -> Shorter {
    let trials = || rows.iter().flat_map(|row| &row.trials);
    match trials().filter(|trial| trial.spent.window < WINDOW).count() {
        0 => Shorter::None,
        short if short == trials().count() => Shorter::All,
        _ => Shorter::Some,
    }
}

/// Mean and peak power of each column, and its energy per gigabyte, at the lowest and at the highest queue depth.
pub(super) fn table(columns: &[Configuration], rows: &[Row]) -> TextTable {
    let has_peaks = shorter(rows) != Shorter::All;
    let mut head = vec![String::new(), "depth".into()];
    for Configuration { name, .. } in columns {
        head.push(format!("{name} W"));
        if has_peaks {
            head.push(format!("{name} peak"));
        }
        head.push(format!("{name} J/GB"));
    }
    let mut table = TextTable::new(head).keys(2);
    for (label, of_label) in by_label(rows) {
        let ends = [of_label.first(), of_label.last().filter(|_| of_label.len() > 1)];
        for (nth, row) in ends.into_iter().flatten().enumerate() {
            let label = if nth == 0 { label } else { "" };
            let mut cells = vec![label.to_owned(), row.job.depth.to_string()];
            for trial in &row.trials {
                let [mean, peak, per_gigabyte] = figures(trial);
                cells.push(mean);
                cells.extend(has_peaks.then_some(peak));
                cells.push(per_gigabyte);
            }
            table.row(cells);
        }
    }
    table
}

/// How long each column's link was in which state, if any may sleep.
pub(super) fn links(columns: &[Configuration], rows: &[Row]) -> Option<TextTable> {
    let sleeps = |column: &Configuration| column.assembly.power_states;
    if !columns.iter().any(sleeps) {
        return None;
    }
    let mut head = vec![String::new(), "depth".into()];
    for Configuration { name, .. } in columns.iter().filter(|column| sleeps(column)) {
        head.extend(["U1", "U2", "exit"].map(|state| format!("{name} {state}")));
    }
    let mut table = TextTable::new(head).keys(2);
    for (nth, label, row) in
        by_label(rows).flat_map(|(label, rows)| (0..).zip(rows).map(move |(nth, row)| (nth, label, row)))
    {
        let label = if nth == 0 { label } else { "" };
        let mut cells = vec![label.to_owned(), row.job.depth.to_string()];
        let trials = columns.iter().zip(&row.trials).filter(|(column, _)| sleeps(column));
        for (_, trial) in trials {
            let times = trial.spent.activity.link;
            cells.extend(times.map_or(["-"; 3].map(String::from), shares));
        }
        table.row(cells);
    }
    Some(table)
}

/// U1, U2 and the way back, in percent of all.
fn shares(times: [units::Duration; 4]) -> [String; 3] {
    let all: u64 = times.iter().map(|time| time.as_ps()).sum();
    let [_, asleep @ ..] = times;
    asleep.map(|time| format!("{:.1}", 100.0 * time.as_ps() as f64 / all.max(1) as f64))
}

/// Rows that follow each other with one label.
fn by_label(rows: &[Row]) -> impl Iterator<Item = (&str, &[Row])> {
    rows.chunk_by(|one, next| one.job.label == next.job.label)
        .filter_map(|chunk| chunk.first().map(|first| (first.job.label.as_str(), chunk)))
}

fn figures(Trial { measured, spent, .. }: &Trial) -> [String; 3] {
    [
        format!("{:.1}", spent.mean_watts()),
        format!("{:.1}", spent.peak_watts()),
        format!("{:.0}", spent.joules_per_gigabyte(measured.bytes)),
    ]
}

/// All of it, for programs.
pub(super) fn record(spent: &EnergyUse, bytes: u64) -> Value {
    let joules = Consumer::ALL.into_iter().zip(spent.energy);
    let joules: Map<_, _> =
        joules.map(|(of, energy)| (of.name().to_owned(), json!(energy.joules()))).collect();
    let ns = |time: units::Duration| time.as_ps() as f64 / 1e3;
    let activity = &spent.activity;
    json!({
        "mean_watts": spent.mean_watts(),
        "peak_watts": spent.peak_watts(),
        "peak_window_ns": ns(spent.window),
        "joules": spent.total().joules(),
        "joules_per_gigabyte": spent.joules_per_gigabyte(bytes),
        "joules_by_part": joules,
        "at_work_ns": {
            "core": ns(activity.core),
            "controller": ns(activity.controller),
            "bridge": activity.bridge.map(ns),
            "drive": ns(activity.drive),
        },
        "link_ns": activity.link.map(|[u0, u1, u2, exit]| {
            json!({ "u0": ns(u0), "u1": ns(u1), "u2": ns(u2), "exit": ns(exit) })
        }),
    })
}
