//! The figures of a comparison, for people and for programs.
//!
//! Fields for programs are those of `docs/JSON.md`. Left out: charts, which are the page's. Always true: parts that are printed add up to
//! the whole that is printed beside them.

use super::CompareArguments;
use super::row::Row;
use crate::compare::components;
use report::TextTable;
use serde_json::{Map, Value, json};
use sim::engine::{LatencyStage, StageTimes};
use study::ceiling::{DriveFigures, Explained, Figures, Run};

/// Heads of the figures of both transports.
const FIGURES: [&str; 6] = ["BOT IOPS", "BOT MB/s", "BOT mean us", "UAS IOPS", "UAS MB/s", "UAS mean us"];

/// Both transports at each depth.
pub(super) fn table(rows: &[Row]) -> TextTable {
    let mut table = TextTable::new(["depth"].into_iter().chain(FIGURES).chain(["UAS : BOT"])).words([]);
    for Row { depth, bot, uas } in rows {
        let (bot, uas) = (&bot.total, &uas.total);
        let of = |figures: &Figures| {
            let mean = figures.mean.as_ps() as f64 / 1e6;
            [
                format!("{:.0}", figures.iops()),
                format!("{:.1}", figures.megabytes_per_second()),
                format!("{mean:.1}"),
            ]
        };
        let ratio = format!("{:.2}", uas.iops() / bot.iops());
        let cells = [vec![depth.to_string()], of(bot).to_vec(), of(uas).to_vec(), vec![ratio]].concat();
        table.row(cells);
    }
    table
}

/// Each drive at each depth.
pub(super) fn each_drive(rows: &[Row]) -> TextTable {
    let mut table = TextTable::new(["depth", "drive"].into_iter().chain(FIGURES)).words([]).keys(2);
    for Row { depth, bot, uas } in rows {
        for (number, drives) in (1..).zip(bot.drives.iter().zip(&uas.drives)) {
            let of = |figures: &DriveFigures| {
                let mean = figures.mean.as_ps() as f64 / 1e6;
                [
                    format!("{:.0}", figures.iops),
                    format!("{:.1}", figures.megabytes_per_second),
                    format!("{mean:.1}"),
                ]
            };
            let names = [depth.to_string(), number.to_string()];
            table.row(names.into_iter().chain(of(drives.0)).chain(of(drives.1)));
        }
    }
    table
}

/// Where the time of a command of the first drive goes, on average.
pub(super) fn explained(rows: &[Row]) -> TextTable {
    parts_of(rows, |explained| *explained)
}

/// Where that of the slowest goes.
pub(super) fn slowest(rows: &[Row]) -> TextTable {
    parts_of(rows, |explained| Explained { shares: explained.slowest, commands: 1, ..*explained })
}

/// The means of what is made of each run's.
fn parts_of(rows: &[Row], of: impl Fn(&Explained) -> Explained) -> TextTable {
    let of_row = |row: &Row| [("BOT", row.depth, row.bot.total), ("UAS", row.depth, row.uas.total)];
    let runs: Vec<_> = rows.iter().flat_map(of_row).collect();
    let is_met = |stage: &LatencyStage| {
        let is_met_by = |explained: &Explained| of(explained).shares.of(*stage).as_ps() > 0;
        runs.iter().any(|(.., run)| run.explained.as_ref().is_some_and(is_met_by))
    };
    let stages: Vec<_> = LatencyStage::ALL.into_iter().filter(is_met).collect();
    let names = stages.iter().map(|stage| stage.name());
    let mut table = TextTable::new(["depth", "", "ns"].into_iter().chain(names)).words([]).names([1]).keys(2);
    for (name, depth, run) in runs {
        let parts = mean_parts(&of(&run.explained.unwrap_or_default()), &stages);
        let cells = [parts.iter().sum::<u64>()].into_iter().chain(parts).map(|ns| ns.to_string());
        table.row([depth.to_string(), name.to_owned()].into_iter().chain(cells));
    }
    table
}

/// Builds the table of component statistics, for both transports at each depth.
pub(super) fn components(rows: &[Row]) -> TextTable {
    let heads = ["depth", ""].into_iter().chain(components::HEAD);
    let mut table = TextTable::new(heads).words([2, 7]).names([1]).keys(3);
    for row in rows {
        for (name, run) in [("BOT", &row.bot), ("UAS", &row.uas)] {
            for cells in components::lines(&run.components) {
                table.row([row.depth.to_string(), name.to_owned()].into_iter().chain(cells));
            }
        }
    }
    table
}

/// The mean nanoseconds in each stage, rounded so that they add up to the rounded whole.
fn mean_parts(explained: &Explained, stages: &[LatencyStage]) -> Vec<u64> {
    let &Explained { shares, commands, .. } = explained;
    let (mut ps, mut printed) = (0, 0);
    let part = |stage: &LatencyStage| {
        ps += shares.of(*stage).as_ps();
        let so_far = (ps + commands * 500) / (commands * 1000).max(1);
        so_far - std::mem::replace(&mut printed, so_far)
    };
    stages.iter().map(part).collect()
}

/// Everything, for programs.
pub(super) fn record(arguments: &CompareArguments, rows: &[Row], records: Option<u64>) -> Value {
    let rows: Vec<_> = rows
        .iter()
        .map(|row| json!({ "depth": row.depth, "bot": of_run(&row.bot), "uas": of_run(&row.uas) }))
        .collect();
    let mut record = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "setup": {
            "controller": arguments.controller_name(),
            "link": arguments.link().name(),
            "drives": arguments.drives,
            "hubs": arguments.hubs,
            "bytes": arguments.block().0,
            "writes": arguments.write,
            "latency_us": arguments.latency,
            "at_once": arguments.at_once,
            "seed": arguments.seed,
        },
        "rows": rows,
    });
    if let (Some(file), Some(records)) = (&arguments.capture, records) {
        record["capture"] = json!({ "file": file, "records": records });
    }
    record
}

fn of_run(Run { total: figures, drives, components: done }: &Run) -> Value {
    let of_drive = |drive: &DriveFigures| {
        json!({
            "iops": drive.iops,
            "megabytes_per_second": drive.megabytes_per_second,
            "mean_ns": drive.mean.as_ps() as f64 / 1e3,
            "commands": drive.commands,
        })
    };
    let mut run = json!({
        "iops": figures.iops(),
        "megabytes_per_second": figures.megabytes_per_second(),
        "mean_ns": figures.mean.as_ps() as f64 / 1e3,
        "commands": figures.commands,
        "elapsed_ns": figures.elapsed.as_ps() as f64 / 1e3,
        "commands_under_way": figures.depth,
        "events": figures.events,
        "digest": format!("{:016x}", figures.digest),
        "drives": drives.iter().map(of_drive).collect::<Vec<_>>(),
        "components": components::record(done),
    });
    if let Some(Explained { shares, commands, slowest }) = figures.explained {
        run["explained"] = json!({
            "commands": commands,
            "latency_ps": shares.total().as_ps(),
            "stages_ps": stages(&shares),
            "slowest": { "latency_ps": slowest.total().as_ps(), "stages_ps": stages(&slowest) },
        });
    }
    run
}

fn stages(shares: &StageTimes) -> Map<String, Value> {
    let stage = |stage: LatencyStage| (stage.name().to_owned(), shares.of(stage).as_ps().into());
    LatencyStage::ALL.into_iter().map(stage).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sim::engine::LatencyTracker;
    use units::Instant;

    #[test]
    fn rounded_parts_add_up_to_the_rounded_whole() {
        let mut journey = LatencyTracker::start(Instant::ZERO, LatencyStage::Link);
        journey.enter(Instant::from_ps(1_500), LatencyStage::Drive);
        journey.enter(Instant::from_ps(3_000), LatencyStage::Waiting);
        let (_, shares) = journey.end(Instant::from_ps(4_500));
        let stages = [LatencyStage::Link, LatencyStage::Drive, LatencyStage::Waiting];
        assert_eq!(
            mean_parts(&Explained { shares, commands: 1, ..Explained::default() }, &stages),
            [2, 1, 2]
        );
        assert_eq!(
            mean_parts(&Explained { shares, commands: 3, ..Explained::default() }, &stages),
            [1, 0, 1]
        );
    }
}
