//! `uaskit history --report`: several runs as a page, the oldest at the left.
//!
//! Rates and latencies of each job, a line for each transport and depth; for a single run, [`single`] draws them over
//! depth. Left out: whether a change is significant, which `uaskit diff` decides. Invariant: a line is about one drive,
//! and connects no simulated run with a measured one.

mod single;

use super::title;

use crate::command_line;
use crate::failure::Failure;
use crate::page::{
    ReportRoute, command_line, course, each_once, featured_depth, in_easier, look, saved_routes, version,
    write,
};
use crate::sanitize::escape;
use records::{Figures, ResultRow, Saved};
use report::{Axis, Cell, Fact, Figure, Lines, Page, Picture, Point, Section, Series, Table};
use single::{JOBS_MAX, rate};
use std::collections::BTreeSet;
use std::path::Path;
use study::plural::counted_len;
use workload::Estimate;

/// Lines that a chart has room for. Of a job with more those of one depth are drawn.
const LINES_MAX: usize = 8;

/// A line through the runs: a transport and a depth.
type Line = (String, u16);

/// Smaller changes of a rate are not a finding.
const SAME: f64 = 0.05;

/// Writes the page; `runs` are in their order.
pub(super) fn show(file: &Path, runs: &[Saved]) -> Result<(), Failure> {
    let drives = by_drive(runs);
    let mut left = JOBS_MAX;
    let mut page = match runs {
        [one] => Page::new(title(one)).lead(
            "One saved run. To compare several runs on one page, use uaskit history --report without a filter or with a \
             wider one.",
        ),
        _ => Page::new("Runs").lead(format!("{}, oldest first.", counted_len(runs.len(), "run"))),
    };
    let mut findings: Vec<String> =
        drives.iter().filter_map(|(drive, runs)| Some(format!("{drive}: {}", change(runs)?))).collect();
    let mut sections = Vec::new();
    if let [one] = runs {
        sections = single::sections(&one.run);
    }
    for (drive, runs) in drives.iter().filter(|_| runs.len() != 1) {
        let jobs = jobs(runs);
        let ways = saved_routes(runs.iter().map(|saved| &saved.run));
        let charted = || jobs.iter().take(left);
        let rates = charted().filter_map(|job| of_job(job, runs, &ways, &RATE));
        sections.push(rates.fold(Section::new(format!("Throughput, run by run: {drive}")), Section::figure));
        let latencies = charted().filter_map(|job| of_job(job, runs, &ways, &LATENCY));
        let latency = Section::new(format!("99th percentile, run by run: {drive}"));
        sections.push(latencies.fold(latency, Section::figure));
        if jobs.len() > left {
            findings.push(format!("{drive}: no charts for {}", counted_len(jobs.len() - left, "more job")));
        }
        left = left.saturating_sub(jobs.len());
    }
    page = sections.into_iter().fold(page.findings(findings), Page::section);
    let head = ["run", "began", "label", "setup", "drive"];
    let table = runs.iter().fold(Table::new(head), |table, saved| {
        let (run, setup) = (&saved.run, &saved.run.setup);
        let label = run.label.clone().unwrap_or_default();
        let words =
            [saved.id.to_string(), saved.began.clone(), label, setup.name.clone(), setup.drive.clone()];
        table.row(words.map(Cell::Text))
    });
    page = page.fact(Fact::Table("Runs".into(), table));
    for saved in runs {
        let facts = saved.run.setup.facts.iter().map(|(name, fact)| format!("{name}: {fact}"));
        let called = format!("command: {}", command_line::line(&saved.run.command_line));
        page = page.fact(Fact::Lines(title(saved), facts.chain([called]).collect::<Vec<_>>().join("\n")));
    }
    write(&page.fact(version()).fact(command_line()), file)
}

/// Runs of one drive: a line goes from one of them to the next, and from no simulated one to a measured one.
fn by_drive(runs: &[Saved]) -> Vec<(String, Vec<&Saved>)> {
    let mut drives: Vec<(String, Vec<&Saved>)> = Vec::new();
    for saved in runs {
        let setup = &saved.run.setup;
        let name = if setup.drive.is_empty() { &setup.name } else { &setup.drive };
        let name = format!("{}, {}", escape(name), saved.run.kind);
        match drives.iter_mut().find(|(other, _)| *other == name) {
            Some((_, of_drive)) => of_drive.push(saved),
            None => drives.push((name, vec![saved])),
        }
    }
    drives
}

fn jobs<'a>(runs: &[&'a Saved]) -> Vec<&'a str> {
    each_once(runs.iter().flat_map(|saved| &saved.run.results).map(|row| row.job.as_str()))
}

/// Describes how the rates changed from the first run to the last one.
fn change(runs: &[&Saved]) -> Option<String> {
    let (first, last) = (runs.first()?, runs.last()?);
    let key = |row: &ResultRow| (row.job.clone(), row.transport.clone(), row.depth);
    let rate = |saved: &Saved, row: &ResultRow| {
        let same = saved.run.results.iter().find(|other| key(other) == key(row))?;
        same.figures.as_ref().ok().map(|figures| figures.mb_per_s)
    };
    let both = first.run.results.iter().filter_map(|row| Some((row, rate(first, row)?, rate(last, row)?)));
    let both: Vec<(&ResultRow, f64, f64)> = both.filter(|(_, before, _)| *before > 0.0).collect();
    if runs.len() < 2 || both.is_empty() {
        return None;
    }
    let ratio = |(_, before, after): &(&ResultRow, f64, f64)| after / before;
    let side = |is_on: &dyn Fn(f64) -> bool| both.iter().filter(|row| is_on(ratio(row))).count();
    let (more, less) = (side(&|ratio| ratio > 1.0 + SAME), side(&|ratio| ratio < 1.0 - SAME));
    let most = both.iter().max_by(|one, other| ratio(one).ln().abs().total_cmp(&ratio(other).ln().abs()))?;
    let (row, before, after) = most;
    let ends = [first, last].map(|saved| {
        saved.run.label.clone().map_or_else(|| format!("run {}", saved.id), |label| escape(&label))
    });
    Some(format!(
        "from {} to {}, out of {}, {more} rose and {less} fell by more than {:.0} %; the largest change is {}, {}, QD{}: {} to {} MB/s. `uaskit diff` separates changes from noise",
        ends[0],
        ends[1],
        counted_len(both.len(), "rate"),
        SAME * 100.0,
        escape(&row.job),
        escape(&row.transport),
        row.depth,
        report::mean(*before),
        report::mean(*after)
    ))
}

/// A figure that is drawn run by run, with its unit.
struct Drawn {
    axis: &'static str,
    unit: &'static str,
    value: fn(&Figures) -> Option<Estimate>,
}

const RATE: Drawn = Drawn { axis: "MB/s", unit: "MB/s", value: |figures| Some(rate(figures)) };
const LATENCY: Drawn = Drawn {
    axis: "latency, µs",
    unit: "µs",
    value: |figures| Some(Estimate { value: figures.p99_us?, interval: None }),
};

/// A job run by run; none where no run knows the figure.
fn of_job(job: &str, runs: &[&Saved], ways: &[ReportRoute], drawn: &Drawn) -> Option<Figure> {
    let rows = |saved: &&Saved| -> Vec<(Line, Figures)> {
        let of_job = saved.run.results.iter().filter(|row| row.job == job);
        let known = of_job.filter_map(|row| Some((row, row.figures.as_ref().ok()?.clone())));
        known.map(|(row, figures)| ((row.transport.clone(), row.depth), figures)).collect()
    };
    let all: Vec<Vec<(Line, Figures)>> = runs.iter().map(rows).collect();
    let mut lines: BTreeSet<&Line> = all.iter().flatten().map(|(line, _)| line).collect();
    let mut title = job.to_owned();
    if lines.len() > LINES_MAX {
        let depth = featured_depth(lines.iter().map(|(_, depth)| *depth))?;
        lines.retain(|(_, other)| *other == depth);
        title = format!("{job}, QD{depth}");
    }
    let series = lines.into_iter().map(|line| {
        let point = |(place, rows): (usize, &Vec<(Line, Figures)>)| {
            let (_, figures) = rows.iter().find(|(other, _)| other == line)?;
            let Estimate { value: y, interval } = (drawn.value)(figures)?;
            Some(Point { x: (place + 1) as f64, y, interval })
        };
        let points = all.iter().enumerate().filter_map(point).collect();
        let (transport, depth) = line;
        Series::new(format!("{transport}, QD{depth}"), look(ways, transport), points)
    });
    let series: Vec<Series> = series.filter(|series| !series.points.is_empty()).collect();
    if series.is_empty() {
        return None;
    }
    let label = |(place, saved): (usize, &&Saved)| {
        let name = saved.run.label.clone().unwrap_or_else(|| saved.id.to_string());
        ((place + 1) as f64, name)
    };
    let x = Axis::linear("run").labelled(runs.iter().enumerate().map(label));
    let lines = Lines::new(x, Axis::linear(drawn.axis), series);
    let (lines, unit) = in_easier(lines, drawn.unit);
    Some(Figure::new(title, course(&lines, unit), Picture::Lines(lines)))
}
