//! `uaskit diff --report`: two runs as a page.

use super::{remarks, summary, transports};
use crate::called;
use crate::failure::Failure;
use crate::history::title;
use crate::page::{command_line, course, hue, version, write};
use records::{Change, Diff, Saved, Verdict};
use report::{Axis, Bars, Cell, Fact, Figure, Group, Lines, Page, Picture, Point, Section, Series, Table};
use std::path::Path;

/// Rows that a picture has room for; tables have all of them.
const ROWS_MAX: usize = 60;
/// Jobs that have a picture of their own.
const JOBS_MAX: usize = 40;
/// Sentences on top at most.
const FINDINGS_MAX: usize = 12;

pub(super) fn show(file: &Path, before: &Saved, after: &Saved, diff: &Diff) -> Result<(), Failure> {
    let mut page = Page::new("Before and after")
        .lead(format!("Before: {}. After: {}.", title(before), title(after)))
        .findings(findings(diff))
        .section(rates(diff))
        .section(ratios(diff));
    for (name, one, other) in &diff.differences {
        page = page.fact(Fact::pair(name, format!("{} → {}", or_none(one), or_none(other))));
    }
    for (name, fact) in &after.run.setup.facts {
        if !diff.differences.iter().any(|(other, ..)| other == name) {
            page = page.fact(Fact::pair(name, fact));
        }
    }
    for (when, saved) in [("before", before), ("after", after)] {
        page =
            page.fact(Fact::Lines(format!("What was called {when}"), called::line(&saved.run.command_line)));
    }
    write(&page.fact(version()).fact(command_line()), file)
}

fn or_none(text: &str) -> &str {
    if text.is_empty() { "none" } else { text }
}

/// A row in words.
fn name(change: &Change) -> String {
    format!("{}, {}, depth {}", change.job, transports(change), change.depth)
}

/// All together, then what has changed, the most first.
fn findings(diff: &Diff) -> Vec<String> {
    let is_told = |change: &&Change| matches!(change.verdict, Verdict::Better | Verdict::Worse);
    let mut told: Vec<&Change> = diff.changes.iter().filter(is_told).collect();
    told.sort_by(|one, other| other.ratio.value.ln().abs().total_cmp(&one.ratio.value.ln().abs()));
    let sentence = |change: &&Change| {
        format!("{}: {}, {} times as many I/Os", name(change), change.verdict, change.ratio)
    };
    let all = told.iter().take(FINDINGS_MAX).map(sentence);
    [summary(diff)].into_iter().chain(all).chain(remarks(diff)).collect()
}

fn rates(diff: &Diff) -> Section {
    let row = |change: &Change| Group {
        label: name(change),
        values: change.mb_per_s.iter().map(|rate| Some(*rate)).collect(),
    };
    let bars = Bars {
        across: "job".into(),
        value: Axis::linear("MB/s"),
        series: vec![("before".into(), 5), ("after".into(), 0)],
        groups: diff.changes.iter().take(ROWS_MAX).map(row).collect(),
        is_stacked: false,
    };
    let head = ["row", "MB/s before", "after", "IOPS before", "after", "p99 before, µs", "after"];
    let table = diff.changes.iter().fold(Table::new(head), |table, change| {
        let pair = |pair: [f64; 2]| pair.map(Cell::Number);
        let p99 = change.p99_us.map(|us| us.map_or(Cell::Empty, Cell::Number));
        let cells = pair(change.mb_per_s).into_iter().chain(pair(change.iops)).chain(p99);
        table.row([Cell::text(name(change))].into_iter().chain(cells))
    });
    Section::new("Throughput")
        .figure(Figure::new("Rates before and after", summary(diff), Picture::Bars(bars)).table(table))
}

fn ratios(diff: &Diff) -> Section {
    let most = diff.same_within * 100.0;
    let head = ["row", "after : before", "from", "to", "verdict", "why"];
    let table = diff.changes.iter().fold(Table::new(head), |table, change| {
        let ends =
            change.ratio.interval.map(|ends| ends.map(Cell::Number)).unwrap_or([Cell::Empty, Cell::Empty]);
        let [low, high] = ends;
        let [verdict, why] = [change.verdict.word(), change.why.unwrap_or_default()].map(Cell::text);
        table.row([Cell::text(name(change)), change.ratio.value.into(), low, high, verdict, why])
    });
    let text = format!(
        "The same is within {most} % of 1; intervals hold for all rows together, 95 times of a hundred."
    );
    let mut section = Section::new("Ratios").lead(text.clone());
    let mut jobs: Vec<&str> = diff.changes.iter().map(|change| change.job.as_str()).collect();
    jobs.sort_unstable();
    jobs.dedup();
    for job in jobs.into_iter().take(JOBS_MAX) {
        section = section.figure(of_job(diff, job));
    }
    section.figure(Figure::new("All ratios", text, Picture::None).table(table))
}

/// The ratios of a job by depth.
fn of_job(diff: &Diff, job: &str) -> Figure {
    let of_job = || diff.changes.iter().filter(|change| change.job == job);
    let mut names: Vec<String> = of_job().map(transports).collect();
    names.sort();
    names.dedup();
    let series = names.iter().enumerate().map(|(nth, name)| {
        let point = |change: &Change| Point {
            x: f64::from(change.depth),
            y: change.ratio.value,
            interval: change.ratio.interval,
        };
        let points = of_job().filter(|change| transports(change) == *name).map(point).collect();
        Series::new(name, hue(name, nth), points)
    });
    let depths = of_job().map(|change| (f64::from(change.depth), change.depth.to_string()));
    let x = Axis::log("requests under way").labelled(depths);
    let lines = Lines::new(x, Axis::linear("after : before"), series.collect());
    Figure::new(job, course(&lines, "times"), Picture::Lines(lines))
}
