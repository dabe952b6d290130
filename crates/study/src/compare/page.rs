//! `--report`: a comparison as a page.
//!
//! Each job runs on each configuration with consecutive seeds from the requested one: random LBAs,
//! and with them figures, vary with the seed, and intervals are Student's over seeds. Stage times
//! are means over seeds as well. A run by block size, as in ATTO, accompanies the default jobs.
//! Always true: the figures of the first seed are those that are printed, and findings use the
//! means that are drawn.

use super::findings::{findings, means};
use super::runs::{self, JobRuns, RunRequest, SEEDS};
use super::{Comparison, Configuration, beyond, chart, platter, wire};
use crate::error::StudyError;
use crate::measure::Stretch;
use crate::page::{self, Measured};
use crate::parts::Catalogue;
use crate::progress::ProgressSink;
use crate::setups::Setup;
use crate::trial::Terms;
use report::{Cell, Fact, Page, Section, Table};
use workload::Job;

/// Bytes to move per block size.
const BLOCK_BYTES: u64 = 24 << 20;

/// Description of the intervals.
const INTERVALS: &str = "Error bars are 95 % confidence intervals (Student's t on logarithms of the rates of five seeds, which vary the random LBAs). \
     They do not show how accurate the model is; uaskit validate does.";

/// Content of a page, besides the runs.
pub struct PageContent<'a> {
    /// The setup.
    pub setup: &'a Setup,
    /// Its columns.
    pub columns: &'a [Configuration],
    /// Variants that options left out of the setup, and parts that stay around a replaced part.
    pub notes: &'a [String],
    /// Parts by name.
    pub catalogue: &'a Catalogue,
    /// How runs are measured.
    pub terms: &'a Terms,
    /// Description of replaced parts; empty if there are none.
    pub replaced: &'a str,
    /// Commands of each configuration on the four pipes.
    pub commands: Option<u32>,
    /// The constants of all parts, as in the record.
    pub constants: &'a serde_json::Value,
    /// The command that repeats the run.
    pub again: Fact,
}

/// Runs many block sizes once each, to accompany the default jobs.
///
/// # Errors
///
/// If a run fails.
pub fn block_runs(comparison: Comparison<'_>, sink: &dyn ProgressSink) -> Result<Vec<JobRuns>, StudyError> {
    let terms = &brief(comparison.terms);
    runs::gather(Comparison { terms, ..comparison }, &atto(), RunRequest::BLOCKS, sink)
}

/// Builds the page of a comparison from its runs, and from those by block size if any.
///
/// # Errors
///
/// If a run that is drawn fails.
pub fn page(
    content: &PageContent<'_>,
    gathered: &[JobRuns],
    by_block: &[JobRuns],
) -> Result<Page, StudyError> {
    let &PageContent { setup, columns, catalogue, terms, replaced: others, .. } = content;
    let comparison = Comparison { columns, catalogue, terms };
    let ways = page::ways(columns.iter().map(|column| (column.name.as_str(), column.transport())));
    let all: Vec<Measured> = gathered.iter().map(JobRuns::measured).collect();
    let blocks: Vec<Measured> = by_block.iter().map(JobRuns::measured).collect();
    let blocks = if blocks.is_empty() { &all } else { &blocks };
    let named =
        |name: &str| if others.is_empty() { name.to_owned() } else { format!("{name}, with {others}") };
    let mut found = findings(columns, &means(columns, gathered));
    found.extend(page::chosen(&all).into_iter().flat_map(|row| beyond::findings(&ways, row)));
    found.extend(chart::finding(columns, gathered));
    let mut page = Page::new(setup.title.clone())
        .lead(lead(columns, terms))
        .findings(found)
        .section(page::by_depth(&ways, &all, INTERVALS))
        .section(page::single(&ways, &all))
        .section(page::by_block(&ways, blocks));
    if let Some(row) = page::chosen(&all) {
        page = page.section(page::latencies(&ways, &all, row)).section(chart::stages(columns, gathered));
        let mut wire = Section::new("On the wire");
        if let Some(timeline) = wire::timeline(content.commands, comparison, &ways, &row.job)? {
            wire = wire.figure(timeline);
        }
        page = page.section(wire);
    }
    if let Some(order) = platter::figure(comparison)? {
        page = page.section(Section::new("Order on the platter").figure(order));
    }
    page = page.section(page::energy(&ways, &all)).section(chart::consumers(columns, gathered));
    let mut page = page.fact(page::version()).fact(Fact::pair("setup", named(&setup.name)));
    for note in content.notes {
        page = page.fact(Fact::pair("selection", note.clone()));
    }
    Ok(facts(page, content, gathered))
}

/// Terms for many block sizes: a few long requests suffice.
fn brief(terms: &Terms) -> Terms {
    let stretch = Stretch { bytes: terms.stretch.bytes.min(BLOCK_BYTES), ..terms.stretch };
    Terms { stretch, ..*terms }
}

/// Every second block size of ATTO.
fn atto() -> Vec<Job> {
    let jobs = workload::named("atto").map_or_else(Vec::new, |workload| workload.on_whole_drive().jobs);
    jobs.into_iter().filter(|job| job.bytes_max().trailing_zeros() % 2 == 1).collect()
}

fn lead(columns: &[Configuration], terms: &Terms) -> String {
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    let beside = if names.len() > 1 { " side by side" } else { "" };
    format!(
        "{}{beside}, simulated packet by packet. Results are identical on every machine. Figures are means over seeds {} to {}.",
        names.join(", "),
        terms.seed,
        terms.seed.saturating_add(SEEDS - 1)
    )
}

/// Adds setup and method.
fn facts(page: Page, content: &PageContent<'_>, gathered: &[JobRuns]) -> Page {
    let &PageContent { setup, columns, terms, .. } = content;
    let mut of_columns = Table::new([
        "",
        "transport",
        "driver",
        "host",
        "controller",
        "hubs",
        "bridge",
        "link",
        "drive",
        "queue depth",
    ]);
    for column in columns {
        let assembly = &column.assembly;
        let or_none = |name: &Option<String>| Cell::text(name.as_deref().unwrap_or("none"));
        of_columns = of_columns.row([
            Cell::text(&column.name),
            Cell::text(column.activation.to_string()),
            Cell::text(&column.activation.driver),
            Cell::text(&assembly.host),
            Cell::text(&assembly.controller),
            Cell::text(if assembly.hubs.is_empty() { "none".into() } else { assembly.hubs.join(", ") }),
            or_none(&assembly.bridge),
            Cell::text(column.activation.link_name().unwrap_or("none")),
            Cell::text(assembly.drive.as_str()),
            Cell::Number(f64::from(column.activation.depth)),
        ]);
    }
    let span = terms.stretch.span.as_ps() as f64 / 1e9;
    let constants = constants(content.constants);
    page.fact(Fact::pair("source of the setup", &setup.source))
        .fact(Fact::pair("seeds", format!("{} to {}", terms.seed, terms.seed.saturating_add(SEEDS - 1))))
        .fact(Fact::pair("digest", runs::digest(gathered)))
        .fact(Fact::pair(
            "each run",
            format!(
                "at least {} ms of virtual time, after a warm-up of {} ms",
                report::number(span),
                terms.stretch.warm_up.as_ps() as f64 / 1e9
            ),
        ))
        .fact(content.again.clone())
        .fact(Fact::Table("Configurations".into(), of_columns))
        .fact(Fact::Table("Constants of the parts".into(), constants))
        .fact(Fact::Table("Digests".into(), digests(columns, gathered, terms)))
}

/// Digests of the first seed, which suffices to compare two programs.
fn digests(columns: &[Configuration], gathered: &[JobRuns], terms: &Terms) -> Table {
    let mut digests = Table::new(["", "depth", "configuration", "seed", "digest", "requests", "events"]);
    for row in gathered {
        for (column, runs) in columns.iter().zip(&row.of) {
            if let Some(trial) = runs.trials.first() {
                digests = digests.row([
                    Cell::text(&row.job.label),
                    Cell::Number(f64::from(row.job.depth)),
                    Cell::text(&column.name),
                    Cell::text(terms.seed.to_string()),
                    Cell::text(format!("{:016x}", trial.digest)),
                    Cell::Number(trial.measured.requests as f64),
                    Cell::Number(trial.events as f64),
                ]);
            }
        }
    }
    digests
}

/// A table of every constant of every part, with its source.
fn constants(parts: &serde_json::Value) -> Table {
    let mut table = Table::new(["part", "constant", "value", "unit", "source"]);
    let word = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    for part in parts.as_array().into_iter().flatten() {
        for constant in part["constants"].as_array().into_iter().flatten() {
            let value = &constant["value"];
            let origin = if constant["fitted"].is_null() {
                word(&constant["source"])
            } else {
                format!("fitted to {}", word(&constant["fitted"]))
            };
            table = table.row([
                Cell::text(word(&part["name"])),
                Cell::text(word(&constant["place"])),
                value.as_f64().map_or_else(|| Cell::text(word(value)), Cell::Number),
                Cell::text(word(&constant["unit"])),
                Cell::text(origin),
            ]);
        }
    }
    table
}
