//! `uaskit diff --report`: two runs as a page.
//!
//! A transport has the colour that it has on the pages of its runs; what was before has an interrupted line.

use super::{notes, remarks, summary, transports};
use crate::command_line;
use crate::failure::Failure;
use crate::history::title;
use crate::page::{
    ReportRoute, by_share, course, depth_axis, each_once, featured_depth, in_unit, look, made_again, reach,
    saved_routes, version, write,
};
use records::{Change, Diff, Figures, Saved, Verdict};
use report::{
    Axis, Bars, Cell, Fact, Figure, Group, Level, Lines, Look, Page, Picture, Point, Section, Series, Table,
};
use std::path::Path;

/// Rows that a picture has room for; tables have all of them.
const ROWS_MAX: usize = 60;
/// Jobs that have their own picture.
const JOBS_MAX: usize = 30;
/// Jobs whose latencies have pictures, two each.
const LATENCIES_MAX: usize = 12;

/// Writes the page; `again` is the command line that repeats it.
pub(super) fn show(
    file: &Path,
    before: &Saved,
    after: &Saved,
    diff: &Diff,
    again: String,
) -> Result<(), Failure> {
    let ways = saved_routes([&before.run, &after.run]);
    let mut page = Page::new("Before and after")
        .lead(format!("Before: {}. After: {}.", title(before), title(after)))
        .findings(findings(diff))
        .section(rates(diff, &ways))
        .section(ratios(diff, &ways))
        .section(latencies([before, after], diff, &ways));
    for (name, one, other) in &diff.differences {
        page = page.fact(Fact::pair(name, format!("{} → {}", or_none(one), or_none(other))));
    }
    for (name, fact) in &after.run.setup.facts {
        if !diff.differences.iter().any(|(other, ..)| other == name) {
            page = page.fact(Fact::pair(name, fact));
        }
    }
    for (when, saved) in [("before", before), ("after", after)] {
        page = page
            .fact(Fact::Lines(format!("Command line {when}"), command_line::line(&saved.run.command_line)));
    }
    write(&page.fact(version()).fact(made_again(again)), file)
}

fn or_none(text: &str) -> &str {
    if text.is_empty() { "none" } else { text }
}

/// A row in words.
fn name(change: &Change) -> String {
    format!("{}, {}, depth {}", change.job, transports(change), change.depth)
}

/// All together, then what has changed, the most first; depths of a job with the same verdict in one sentence.
fn findings(diff: &Diff) -> Vec<String> {
    let is_changed = |change: &&Change| matches!(change.verdict, Verdict::Better | Verdict::Worse);
    let mut groups: Vec<Vec<&Change>> = Vec::new();
    for change in diff.changes.iter().filter(is_changed) {
        let key = |of: &Change| (of.job.clone(), of.transports.clone(), of.verdict.word());
        match groups.iter_mut().find(|alike| alike.iter().any(|one| key(one) == key(change))) {
            Some(alike) => alike.push(change),
            None => groups.push(vec![change]),
        }
    }
    let far = |alike: &[&Change]| alike.iter().map(|one| one.ratio.value.ln().abs()).fold(0.0, f64::max);
    groups.sort_by(|one, other| far(other).total_cmp(&far(one)));
    let all = groups.iter().map(|alike| sentence(alike));
    [summary(diff)].into_iter().chain(all).chain(notes(diff)).chain(remarks(diff)).collect()
}

/// Rows of one job and transport with one verdict, in words.
fn sentence(alike: &[&Change]) -> String {
    let [first, .., last] = alike else {
        return alike.first().map_or_else(String::new, |change| {
            format!("{}: {}, IOPS ratio {}", name(change), change.verdict, change.ratio)
        });
    };
    let ratios = || alike.iter().map(|change| change.ratio.value);
    let ends = [ratios().fold(f64::INFINITY, f64::min), ratios().fold(0.0, f64::max)];
    let [low, high] = ends.map(|ratio| format!("{ratio:.3}"));
    let times = if low == high { low } else { format!("{low} to {high}") };
    let depths: Vec<String> = alike.iter().map(|change| change.depth.to_string()).collect();
    let verdict = first.verdict;
    let transports = transports(last);
    format!("{}, {transports}, QD{}: {verdict}, IOPS ratio {times}", first.job, depths.join(", "))
}

/// Rates by depth where a job has several, beside each other where it has one, and all of them as a table.
fn rates(diff: &Diff, ways: &[ReportRoute]) -> Section {
    let mut section = Section::new("Throughput").lead("Dashed lines are the run before.");
    let mut single = Vec::new();
    for job in jobs(diff).into_iter().take(JOBS_MAX) {
        let of_job = of_job(diff, job);
        let lines = by_depth(&of_job, ways, Axis::linear("MB/s"), |change, side| Some(change.mb_per_s[side]));
        if lines.series.iter().all(|series| series.points.len() < 2) {
            single.extend(of_job);
            continue;
        }
        section = section.figure(Figure::new(job, course(&lines, "MB/s"), Picture::Lines(lines)));
    }
    if !single.is_empty() {
        let bars = beside(&single);
        let text = format!("Rates of jobs with one queue depth: {}", reach(&bars, "MB/s"));
        section = section.figure(Figure::new("Jobs with one queue depth", text, Picture::Bars(bars)));
    }
    let head = ["row", "MB/s before", "after", "IOPS before", "after", "p99 before, µs", "after"];
    let table = diff.changes.iter().fold(Table::new(head), |table, change| {
        let pair = |pair: [f64; 2]| pair.map(Cell::Number);
        let p99 = change.p99_us.map(|us| us.map_or(Cell::Empty, Cell::Number));
        let cells = pair(change.mb_per_s).into_iter().chain(pair(change.iops)).chain(p99);
        table.row([Cell::text(name(change))].into_iter().chain(cells))
    });
    section.figure(Figure::new("All rates", summary(diff), Picture::None).table(table))
}

fn beside(changes: &[&Change]) -> Bars {
    let row = |change: &&Change| Group {
        label: name(change),
        values: change.mb_per_s.iter().map(|rate| Some(*rate)).collect(),
    };
    Bars {
        across: "job".into(),
        value: Axis::linear("MB/s"),
        series: vec![("before".into(), 5.into()), ("after".into(), 0.into())],
        groups: changes.iter().take(ROWS_MAX).map(row).collect(),
        is_stacked: false,
    }
}

fn ratios(diff: &Diff, ways: &[ReportRoute]) -> Section {
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
        "The band shows which ratios count as the same: within {most} % of 1. Intervals hold for all rows together with 95 % confidence."
    );
    let mut section = Section::new("Ratios").lead(text.clone());
    for job in jobs(diff).into_iter().take(JOBS_MAX) {
        section = section.figure(ratios_of_job(diff, job, ways));
    }
    section.figure(Figure::new("All ratios", text, Picture::None).table(table))
}

fn jobs(diff: &Diff) -> Vec<&str> {
    each_once(diff.changes.iter().map(|change| change.job.as_str()))
}

fn of_job<'a>(diff: &'a Diff, job: &str) -> Vec<&'a Change> {
    diff.changes.iter().filter(|change| change.job == job).collect()
}

/// Transports of a job, before and after, each pair once.
fn pairs<'a>(changes: &[&'a Change]) -> Vec<&'a [String; 2]> {
    let mut pairs: Vec<&[String; 2]> = changes.iter().map(|change| &change.transports).collect();
    pairs.sort();
    pairs.dedup();
    pairs
}

/// Places across for all depths of a job.
fn depths(changes: &[&Change]) -> Axis {
    depth_axis(changes.iter().map(|change| change.depth))
}

/// The ratios of a job by depth. Half as much is as far from 1 as twice as much.
fn ratios_of_job(diff: &Diff, job: &str, ways: &[ReportRoute]) -> Figure {
    let of_job = of_job(diff, job);
    let series = pairs(&of_job).into_iter().map(|pair| {
        let point = |change: &&Change| Point {
            x: f64::from(change.depth),
            y: change.ratio.value,
            interval: change.ratio.interval,
        };
        let of_pair = of_job.iter().filter(|change| change.transports == *pair);
        let name = of_pair.clone().next().map_or_else(String::new, |change| transports(change));
        Series::new(name, look(ways, &pair[1]), of_pair.map(point).collect())
    });
    let most = 1.0 + diff.same_within;
    let level = Level { value: 1.0, zone: [1.0 / most, most] };
    let lines =
        Lines::new(depths(&of_job), Axis::log("after : before").counted_in("times"), series.collect())
            .against(level);
    Figure::new(job, course(&lines, "times"), Picture::Lines(lines))
}

/// How long requests took before and after, for each job: 99 of a hundred by depth, and all of them at one depth.
fn latencies(runs: [&Saved; 2], diff: &Diff, ways: &[ReportRoute]) -> Section {
    let mut section =
        Section::new("Latency").lead("Dashed lines are the run before. Latencies are shown but not judged.");
    for job in jobs(diff).into_iter().take(LATENCIES_MAX) {
        let of_job = of_job(diff, job);
        let by_depth =
            by_depth(&of_job, ways, Axis::linear("latency, µs"), |change, side| change.p99_us[side]);
        if by_depth.series.iter().any(|series| series.points.len() > 1) {
            let (by_depth, unit) = in_unit(by_depth);
            let text = course(&by_depth, unit.sign());
            section = section.figure(Figure::new(
                format!("99th percentile: {job}"),
                text,
                Picture::Lines(by_depth),
            ));
        }
        let Some(depth) = featured_depth(of_job.iter().map(|change| change.depth)) else { continue };
        let chosen = of_job.iter().filter(|change| change.depth == depth);
        let curves = by_share(chosen.flat_map(|change| sides(runs, change, ways)));
        if !curves.series.is_empty() {
            let title = format!("Latency percentiles: {job}, QD{depth}");
            let text = "Latency by percentile of the requests.";
            section = section.figure(Figure::new(title, text, Picture::Lines(curves)));
        }
    }
    section
}

/// A value of a job by depth, before and after.
fn by_depth(
    of_job: &[&Change],
    ways: &[ReportRoute],
    y: Axis,
    value: impl Fn(&Change, usize) -> Option<f64>,
) -> Lines {
    let mut series = Vec::new();
    for pair in pairs(of_job) {
        for (side, when) in WHEN.into_iter().enumerate() {
            let of_pair = of_job.iter().filter(|change| change.transports == *pair);
            let points =
                of_pair.filter_map(|change| Some(Point::new(f64::from(change.depth), value(change, side)?)));
            let name = format!("{} {when}", pair[side]);
            let line = Series::new(name, look(ways, &pair[side]), points.collect());
            series.push(if side == 0 { line.dashed() } else { line });
        }
    }
    series.retain(|series| !series.points.is_empty());
    Lines::new(depths(of_job), y, series)
}

const WHEN: [&str; 2] = ["before", "after"];

/// The figures of a row before and after, with name, colour, and whether it was before.
fn sides<'a>(
    runs: [&'a Saved; 2],
    change: &Change,
    ways: &[ReportRoute],
) -> Vec<(String, Look, bool, &'a Figures)> {
    let of = |side: usize| {
        let transport = &change.transports[side];
        let is_it = |row: &&records::ResultRow| {
            (&row.job, row.depth, &row.transport) == (&change.job, change.depth, transport)
        };
        let row = runs[side].run.results.iter().find(is_it)?;
        let name = format!("{transport} {}", WHEN[side]);
        Some((name, look(ways, transport), side == 0, row.figures.as_ref().ok()?))
    };
    (0..2).filter_map(of).collect()
}
