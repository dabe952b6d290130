//! `--against --report`: a measurement and its simulation, as a page.
//!
//! Left out: rows whose access pattern or transport is unknown, which the page names. Invariant: an error is simulated
//! over measured, less one.

use super::{Record, list};
use crate::compare::choice::Configuration;
use crate::failure::Failure;
use crate::page;
use crate::sanitize::escape;
use report::{Axis, Bars, Cell, Dot, DotSeries, Fact, Figure, Group, Page, Picture, Scatter, Section, Table};
use std::path::Path;
use study::compare::Comparison;
use study::compare::Row;

/// How far off a figure may be, for zones about the line: the bars of `uaskit validate`.
const ZONES: [f64; 2] = [0.2, 0.08];

/// One measured row, and what stands beside it.
struct Pair<'a> {
    name: String,
    column: &'a Configuration,
    measured: f64,
    simulated: f64,
}

impl Pair<'_> {
    fn error(&self) -> f64 {
        self.simulated / self.measured - 1.0
    }
}

pub(super) fn write(
    record: &Record,
    comparison: Comparison<'_>,
    rows: &[Row],
    file: &Path,
) -> Result<(), Failure> {
    let Comparison { columns, terms, .. } = comparison;
    let pairs = pairs(record, columns, rows);
    let mut page = Page::new(format!("{}, measured and simulated", escape(&record.target)))
        .lead(
            "Measured figures beside those of a simulation of the same jobs; MB/s are 10⁶ bytes per second.",
        )
        .findings(findings_of(record, &pairs))
        .section(Section::new("Side by side").figure(beside(record, &pairs)).figure(scatter(columns, &pairs)))
        .fact(page::version())
        .fact(Fact::pair("measured", escape(&record.target)));
    for column in columns {
        let assembly = &column.assembly;
        let parts = [&assembly.host, &column.activation.driver, &assembly.controller];
        let parts = parts.into_iter().chain(&assembly.hubs).chain(&assembly.bridge).map(String::as_str);
        let parts = parts.chain(column.activation.link_name()).chain([assembly.drive.as_str()]);
        let parts: Vec<&str> = parts.collect();
        page = page.fact(Fact::pair(&column.name, parts.join(", ")));
    }
    page::write(&page.fact(Fact::pair("seed", terms.seed.to_string())).fact(page::command_line()), file)
}

/// Every measured figure with each simulated one beside it.
fn pairs<'a>(record: &Record, columns: &'a [Configuration], rows: &[Row]) -> Vec<Pair<'a>> {
    record
        .rows
        .iter()
        .flat_map(|row| {
            let name = format!("{}, {}, QD{}", row.job.label, escape(&row.transport), row.job.depth);
            let pair = move |(place, simulated): (usize, f64)| Pair {
                name: name.clone(),
                column: &columns[place],
                measured: row.megabytes_per_second,
                simulated,
            };
            record.simulated(row, columns, rows).into_iter().map(pair)
        })
        .collect()
}

/// How far simulated figures are from measured ones, the most important finding first.
pub(super) fn findings(record: &Record, columns: &[Configuration], rows: &[Row]) -> Vec<String> {
    findings_of(record, &pairs(record, columns, rows))
}

fn findings_of(record: &Record, pairs: &[Pair<'_>]) -> Vec<String> {
    let mut all = Vec::new();
    if record.is_virtual {
        all.push(VIRTUAL.to_owned());
        return with_unknown(record, all);
    }
    let mut sorted: Vec<&Pair<'_>> = pairs.iter().collect();
    sorted.sort_by(|one, other| one.error().abs().total_cmp(&other.error().abs()));
    let percent = |pair: &Pair<'_>| format!("{:+.1} %", pair.error() * 100.0);
    if let Some(worst) = sorted.last() {
        let middle = sorted[sorted.len() / 2];
        if sorted.len() > 1 {
            all.push(format!(
                "Half of the {} simulated figures are within {:.1} % of the measurement.",
                sorted.len(),
                middle.error().abs() * 100.0
            ));
        }
        all.push(format!(
            "The largest error is {1}, with {0}: {2}.",
            worst.column.name,
            percent(worst),
            worst.name
        ));
    }
    with_unknown(record, all)
}

/// Why the record of a virtual drive has no errors.
const VIRTUAL: &str = "The record is of a virtual drive, whose medium is in memory and which has no link: its rates \
                       are those of the processor that measured, and no error is stated.";

fn with_unknown(record: &Record, mut all: Vec<String>) -> Vec<String> {
    if !record.unknown.is_empty() {
        all.push(format!("Left out, because their access pattern is unknown: {}.", list(&record.unknown)));
    }
    all
}

fn beside(record: &Record, pairs: &[Pair<'_>]) -> Figure {
    let label = |pair: &Pair<'_>| format!("{}: {}", pair.column.name, pair.name);
    let mut table = Table::new(["setup", "job", "measured, MB/s", "simulated", "error, %"]);
    let mut groups = Vec::new();
    for pair in pairs {
        groups.push(Group { label: label(pair), values: vec![Some(pair.measured), Some(pair.simulated)] });
        table = table.row([
            Cell::text(&pair.column.name),
            Cell::text(&pair.name),
            Cell::Number(pair.measured),
            Cell::Number(pair.simulated),
            match record.is_virtual {
                true => Cell::text("-"),
                false => Cell::Number((pair.error() * 1000.0).round() / 10.0),
            },
        ]);
    }
    groups.truncate(GROUPS_MAX);
    let bars = Bars {
        across: "setup and job".into(),
        value: Axis::linear("MB/s"),
        series: vec![("measured".into(), 5.into()), ("simulated".into(), 0.into())],
        groups,
        is_stacked: false,
    };
    let text = match pairs.len().saturating_sub(GROUPS_MAX) {
        0 => "Measured figures, each above the simulated one.".to_owned(),
        more => {
            format!("The first measured figures, each above the simulated one; {more} more are in the table.")
        }
    };
    let text = format!("{text} {}", page::reach(&bars, "MB/s"));
    Figure::new("MB/s", text, Picture::Bars(bars)).table(table)
}

/// Groups that a picture has room for.
const GROUPS_MAX: usize = 60;

fn scatter(columns: &[Configuration], pairs: &[Pair<'_>]) -> Figure {
    let ways = page::ways(columns.iter().map(|column| (column.name.as_str(), column.transport())));
    let swarms = ways.into_iter().map(|way| {
        let of_way = pairs.iter().filter(|pair| pair.column.name == way.name);
        let dot = |pair: &Pair<'_>| Dot {
            name: pair.name.clone(),
            source: "measured".into(),
            x: pair.measured,
            y: pair.simulated,
        };
        DotSeries { name: way.name.clone(), look: way.look, dots: of_way.map(dot).collect() }
    });
    let swarms = swarms.filter(|swarm| !swarm.dots.is_empty()).collect();
    let scatter = Scatter {
        x: Axis::log("measured, MB/s"),
        y: Axis::log("simulated, MB/s"),
        swarms,
        zones: ZONES.to_vec(),
    };
    let text = "On the line both are equal; zones are ±8 % and ±20 %.";
    Figure::new("Measured and simulated", text, Picture::Scatter(scatter))
}
