//! `--raw --report`: link and protocols alone, as a page.
//!
//! There is one seed and no interval: only LBAs are random, on which a plain drive does not depend.

use super::CompareArguments;
use super::row::Row;
use crate::failure::Failure;
use crate::page::{self, course, hue, reach};
use report::{Axis, Bars, Cell, Fact, Figure, Group, Lines, Page, Picture, Point, Section, Series, Table};
use sim::engine::LatencyStage;
use std::path::Path;
use study::ceiling::{Explained, Figures, Run};
use study::compare::findings::{short, than};
use study::compare::stage_look;
use study::plural::counted;

/// A way's name, and which run of a row is its.
type ReportRoute = (&'static str, fn(&Row) -> &Run);

const WAYS: [ReportRoute; 2] = [("bot", |row| &row.bot), ("uas", |row| &row.uas)];

pub(super) fn write(arguments: &CompareArguments, rows: &[Row], file: &Path) -> Result<(), Failure> {
    let throughput = Section::new("Throughput by queue depth")
        .figure(figure("Bytes", "MB/s", rows, Figures::megabytes_per_second))
        .figure(figure("I/Os", "IOPS", rows, Figures::iops))
        .figure(figure("Mean latency", "µs", rows, |figures| figures.mean.as_ps() as f64 / 1e6));
    let mut page = Page::new("Link and protocols alone, over BOT and UAS")
        .lead(format!(
            "{}. Simulated packet by packet; results are identical on every machine. Seed {}.",
            arguments.title(),
            arguments.seed
        ))
        .findings(findings(rows))
        .section(throughput)
        .section(Section::new("Where the time goes").figure(stages(rows)));
    if arguments.drives > 1 {
        let text = "All drives are alike and differ only in their port.";
        let figure = Figure::new("MB/s of each drive", text, Picture::None).table(drives(rows));
        page = page.section(Section::new("Each drive").figure(figure));
    }
    let page = page
        .fact(page::version())
        .fact(Fact::pair("controller", arguments.controller_name()))
        .fact(Fact::pair("link", arguments.link().name()))
        .fact(Fact::pair(
            "drives",
            format!("{}, behind {}", arguments.drives, counted(arguments.hubs.into(), "hub")),
        ))
        .fact(Fact::pair(
            "drive",
            format!("{} us per command, {} in parallel", arguments.latency, arguments.at_once),
        ))
        .fact(Fact::pair("seed", arguments.seed.to_string()))
        .fact(page::command_line())
        .fact(Fact::Table("Digests".into(), digests(rows)));
    page::write(&page, file)
}

const WITHOUT: &str = "Without driver and bridge";

/// How UAS compares to BOT at the lowest depth and at the highest.
pub(super) fn findings(rows: &[Row]) -> Vec<String> {
    let ratio = |row: &Row| row.uas.total.iops() / row.bot.total.iops();
    let [first, .., last] = rows else {
        let alone = rows.first().map(|row| format!("{} at QD{}", than(ratio(row), "BOT"), row.depth));
        return alone.into_iter().map(|alone| format!("{WITHOUT}, UAS {alone}")).collect();
    };
    let (deep, shallow) = (than(ratio(last), "BOT"), short(ratio(first)));
    vec![format!("{WITHOUT}, UAS {deep} at QD{} ({shallow} at QD{})", last.depth, first.depth)]
}

/// A figure of both ways by depth.
fn figure(title: &str, unit: &str, rows: &[Row], value: fn(&Figures) -> f64) -> Figure {
    let x = page::depth_axis(rows.iter().map(|row| row.depth));
    let series = WAYS.iter().enumerate().map(|(nth, (name, of))| {
        let points = rows.iter().map(|row| Point::new(f64::from(row.depth), value(&of(row).total)));
        Series::new(*name, hue(name, nth), points.collect())
    });
    let lines = Lines::new(x, Axis::linear(unit), series.collect());
    let (lines, unit) = page::in_easier(lines, unit);
    Figure::new(format!("{title}: {unit}"), course(&lines, unit), Picture::Lines(lines))
}

fn stages(rows: &[Row]) -> Figure {
    let is_one_of_several = rows.iter().any(|row| row.uas.drives.len() > 1);
    let mut groups = Vec::new();
    for (name, of) in WAYS {
        for row in rows {
            let Some(Explained { shares, commands, .. }) = of(row).total.explained else { continue };
            let us = |stage| Some(shares.of(stage).as_ps() as f64 / commands.max(1) as f64 / 1e6);
            groups.push(Group {
                label: format!("{name}, QD{}", row.depth),
                values: LatencyStage::ALL.map(us).to_vec(),
            });
        }
    }
    let bars = Bars {
        across: String::new(),
        value: Axis::linear("mean time of a command, µs"),
        series: LatencyStage::ALL.map(|stage| (stage.name().to_owned(), stage_look(stage))).to_vec(),
        groups,
        is_stacked: true,
    };
    let text = format!(
        "Mean time of a command{} in each stage; stages add up to the total. {}",
        if is_one_of_several { " of the first drive" } else { "" },
        reach(&bars, "µs")
    );
    Figure::new("Stages of a command", text, Picture::Bars(bars))
}

fn drives(rows: &[Row]) -> Table {
    let mut table = Table::new(["", "depth", "drive", "MB/s", "IOPS", "mean latency, µs"]);
    for row in rows {
        for (name, of) in WAYS {
            for (number, drive) in (1..).zip(&of(row).drives) {
                table = table.row([
                    Cell::text(name),
                    Cell::Number(f64::from(row.depth)),
                    Cell::Number(f64::from(number)),
                    Cell::Number(drive.megabytes_per_second),
                    Cell::Number(drive.iops),
                    Cell::Number(drive.mean.as_ps() as f64 / 1e6),
                ]);
            }
        }
    }
    table
}

fn digests(rows: &[Row]) -> Table {
    let mut table = Table::new(["", "depth", "digest", "commands", "events"]);
    for row in rows {
        for (name, of) in WAYS {
            let Run { total, .. } = of(row);
            table = table.row([
                Cell::text(name),
                Cell::Number(f64::from(row.depth)),
                Cell::text(format!("{:016x}", total.digest)),
                Cell::Number(total.commands as f64),
                Cell::Number(total.events as f64),
            ]);
        }
    }
    table
}
