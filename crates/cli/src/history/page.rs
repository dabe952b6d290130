//! `uaskit history --report`: several runs as a page, the oldest at the left.

use super::title;
use crate::failure::Failure;
use crate::page::{command_line, course, hue, version, write};
use records::{Figures, Saved};
use report::{Axis, Cell, Fact, Figure, Lines, Page, Picture, Point, Section, Series, Table};
use std::collections::BTreeSet;
use std::path::Path;

/// Jobs that have a picture of their own.
const JOBS_MAX: usize = 40;

/// A line through the runs: a transport and a depth.
type Way = (String, u16);

/// Writes the page; `runs` are in their order.
pub(super) fn show(file: &Path, runs: &[Saved]) -> Result<(), Failure> {
    let mut jobs: Vec<&str> = Vec::new();
    for row in runs.iter().flat_map(|saved| &saved.run.results) {
        if !jobs.contains(&row.job.as_str()) {
            jobs.push(&row.job);
        }
    }
    let mut page = Page::new("Runs").lead(format!("{} runs, the oldest first.", runs.len()));
    let left_off = jobs.len().saturating_sub(JOBS_MAX);
    if left_off > 0 {
        page = page.findings(vec![format!("{left_off} jobs more have no picture here")]);
    }
    let figures = jobs.iter().take(JOBS_MAX).map(|job| of_job(job, runs));
    page = page.section(figures.fold(Section::new("Throughput, run by run"), Section::figure));
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
        let called = format!("called: {}", saved.run.command_line.join(" "));
        page = page.fact(Fact::Lines(title(saved), facts.chain([called]).collect::<Vec<_>>().join("\n")));
    }
    write(&page.fact(version()).fact(command_line()), file)
}

fn of_job(job: &str, runs: &[Saved]) -> Figure {
    let rows = |saved: &'_ Saved| -> Vec<(Way, Figures)> {
        let of_job = saved.run.results.iter().filter(|row| row.job == job);
        let known = of_job.filter_map(|row| Some((row, row.figures.as_ref().ok()?.clone())));
        known.map(|(row, figures)| ((row.transport.clone(), row.depth), figures)).collect()
    };
    let all: Vec<Vec<(Way, Figures)>> = runs.iter().map(rows).collect();
    let ways: BTreeSet<&Way> = all.iter().flatten().map(|(way, _)| way).collect();
    let series = ways.into_iter().enumerate().map(|(nth, way)| {
        let point = |(place, rows): (usize, &Vec<(Way, Figures)>)| {
            let (_, figures) = rows.iter().find(|(other, _)| other == way)?;
            // Bytes for an I/O are the same in all rounds.
            let scale = figures.mb_per_s / figures.iops;
            let interval = figures.iops_interval.filter(|_| scale.is_finite());
            let interval = interval.map(|ends| ends.map(|end| end * scale));
            Some(Point { x: (place + 1) as f64, y: figures.mb_per_s, interval })
        };
        let points = all.iter().enumerate().filter_map(point).collect();
        let (transport, depth) = way;
        Series::new(format!("{transport}, depth {depth}"), hue(transport, nth), points)
    });
    let series: Vec<Series> = series.collect();
    let label = |(place, saved): (usize, &Saved)| {
        let name = saved.run.label.clone().unwrap_or_else(|| saved.id.to_string());
        ((place + 1) as f64, name)
    };
    let x = Axis::linear("run").labelled(runs.iter().enumerate().map(label));
    let lines = Lines::new(x, Axis::linear("MB/s"), series);
    Figure::new(job, course(&lines, "MB/s"), Picture::Lines(lines))
}
