//! What came out of a comparison, in sentences.
//!
//! Each sentence is a rule over figures; where a figure is missing, so is the sentence. Always true: nothing is said that the table
//! or the page beside it does not show: figures are of one seed or means, as they are there.

use super::choice::Column;
use super::run::{Row, pair};
use crate::page::Measured;
use workload::Job;

/// What counts as no difference, as a share.
const SAME: f64 = 0.05;

/// What counts as nearly all, as a share.
const ENOUGH: f64 = 0.9;

/// What is shown of a job, of each column in millions of bytes a second.
pub(super) struct Told<'a> {
    job: &'a Job,
    mb_per_s: Vec<Option<f64>>,
}

impl<'a> From<&'a Row> for Told<'a> {
    fn from(row: &'a Row) -> Self {
        let mb_per_s = row.trials.iter().map(|trial| Some(trial.as_ref()?.measured.megabytes_per_second()));
        Self { job: &row.job, mb_per_s: mb_per_s.collect() }
    }
}

impl<'a> From<&'a Measured> for Told<'a> {
    fn from(row: &'a Measured) -> Self {
        let mb_per_s = row.of.iter().map(|values| Some(values.as_ref()?.mb_per_s.value));
        Self { job: &row.job, mb_per_s: mb_per_s.collect() }
    }
}

/// The findings, the most important first.
pub(super) fn findings(columns: &[Column], rows: &[Told<'_>]) -> Vec<String> {
    let mut all: Vec<_> = columns.iter().filter_map(why_no_better).collect();
    let labels = rows.iter().map(|row| row.job.label.as_str());
    let mut seen: Vec<&str> = Vec::new();
    for label in labels {
        if !seen.contains(&label) {
            seen.push(label);
            let of_label: Vec<_> = rows.iter().filter(|row| row.job.label == label).collect();
            all.extend(between(columns, &of_label));
            all.extend(by_depth(columns, &of_label));
        }
    }
    all
}

fn why_no_better(column: &Column) -> Option<String> {
    let reason = column.activation.decisive()?;
    let asked = &column.assembly.driver;
    (*asked != column.activation.driver).then(|| {
        format!(
            "{}: {} has the drive and not {asked}, since {}",
            column.name, column.activation.driver, reason.because
        )
    })
}

fn figure(row: &Told<'_>, column: usize) -> Option<f64> {
    *row.mb_per_s.get(column)?
}

/// How transports stand to each other where fewest requests are under way, and where most are.
fn between(columns: &[Column], rows: &[&Told<'_>]) -> Option<String> {
    let (bot, uas) = pair(columns)?;
    let (first, last) = (rows.first()?, rows.last()?);
    let ratio = |row: &Told<'_>| Some(figure(row, uas)? / figure(row, bot)?);
    let (alone, together) = (ratio(first)?, ratio(last)?);
    let (bot, uas) = (&columns[bot].name, &columns[uas].name);
    let label = &first.job.label;
    if rows.len() == 1 {
        let depth = first.job.depth;
        return Some(format!("{label} at depth {depth}: {uas} moves {} as {bot}", times(alone)));
    }
    let (shallow, deep) = (first.job.depth, last.job.depth);
    Some(format!(
        "{label}: {uas} moves {} as {bot} at depth {shallow}, {} at depth {deep}",
        times(alone),
        times(together)
    ))
}

/// What each column gains from depth.
fn by_depth(columns: &[Column], rows: &[&Told<'_>]) -> Option<String> {
    let (first, last) = (rows.first()?, rows.last()?);
    if rows.len() < 2 {
        return None;
    }
    let (shallow, deep, label) = (first.job.depth, last.job.depth, &first.job.label);
    let (mut gains, mut flat) = (Vec::new(), Vec::new());
    for (number, column) in columns.iter().enumerate() {
        let figures: Vec<f64> = rows.iter().filter_map(|row| figure(row, number)).collect();
        let (Some(begin), Some(end), true) = (figures.first(), figures.last(), figures.len() == rows.len())
        else {
            continue;
        };
        if (end / begin - 1.0).abs() <= SAME {
            flat.push(column.name.as_str());
            continue;
        }
        // The depth from which on little is left to gain; where there is little to gain at all, no depth is worth a word.
        let enough = figures
            .iter()
            .position(|figure| *figure >= end * ENOUGH)
            .filter(|at| (1..figures.len() - 1).contains(at));
        let by = enough
            .map_or_else(String::new, |at| format!(", nearly all of it by depth {}", rows[at].job.depth));
        gains.push(format!("{} makes {:.1} times as much{by}", column.name, end / begin));
    }
    if !flat.is_empty() {
        gains.push(format!("nothing changes for {}", flat.join(", ")));
    }
    (!gains.is_empty()).then(|| format!("{label}, from depth {shallow} to {deep}: {}", gains.join("; ")))
}

fn times(ratio: f64) -> String {
    if (ratio - 1.0).abs() <= SAME { "as much".into() } else { format!("{ratio:.2} times as much") }
}
