//! `--sweep`: a grid of parts and workloads, on all processors, as lines that can be continued.
//!
//! [`grid`] parses what is asked, [`records`] opens files, and [`csv`] makes tables of lines. Points, their order and the contents of
//! files are those of [`study::sweep`].

mod csv;
mod grid;
mod records;

pub(crate) use csv::write as write_csv;
pub(crate) use records::merge;

use super::choice::Selection;
use super::table::fitted;
use super::{CompareArguments, parts};
use crate::args::GridArguments;
use crate::failure::Failure;
use crate::interrupt::{self, Saved};
use crate::messages::message;
use crate::output_file;
use crate::progress;
use crate::sanitize::shown;
use crate::stdout::Output;
use records::Records;
use study::compare::Point;
use study::parts::Catalogue;
use study::plural::counted_len;
use study::sweep::records::Header;
use study::sweep::{self, plan_digest};
use study::trial::Terms;

impl GridArguments {
    /// Checks that the files of a sweep can be written, before anything runs.
    pub(super) fn check_files(&self) -> Result<(), Failure> {
        self.out.as_deref().map_or(Ok(()), output_file::check_writable)?;
        self.csv
            .as_deref()
            .map_or(Ok(()), |file| output_file::check_replaceable(file, output_file::Kind::Table))
    }
}

/// Runs the grid, or the rest of it.
pub(super) fn run(arguments: &CompareArguments, out: &mut Output<'_>) -> Result<(), Failure> {
    arguments.check_outputs()?;
    let catalogue = parts::catalogue(arguments.parts.as_deref())?;
    let grid = grid::of_arguments(arguments, &catalogue)?;
    let Selection { setup, columns, notes } = arguments.columns(&catalogue)?;
    for note in &notes {
        message!("{note}");
    }
    let points = grid.points(&columns, &catalogue)?;
    let terms = Terms { explains: false, ..arguments.terms() };
    let Some(file) = &arguments.grid.out else {
        interrupt::watch(Saved::Nothing("add --out FILE.jsonl to save each point and to continue later"))?;
        let mut lines = Vec::new();
        work(arguments, &points, &catalogue, &terms, |line| {
            lines.push(line.to_owned());
            Ok(())
        })?;
        return if arguments.json {
            out.print(&crate::sanitize::json(&(lines.join("\n") + "\n")))
        } else {
            out.print(&format!("{}\n", fitted(&csv::table(&lines))))
        };
    };
    let header = Header {
        setup: setup.name,
        sweep: arguments.grid.sweep.clone().unwrap_or_default(),
        points: points.len(),
        plan: plan_digest(&points, &catalogue, &terms),
        shard: arguments.grid.shard,
    };
    let mut records = Records::open(file, &header)?;
    let own: Vec<&Point> = header.own(&points).collect();
    let begun = records.begun;
    let left: Vec<Point> = own.iter().skip(begun).copied().cloned().collect();
    if begun > 0 {
        message!("{}: continuing after {begun} of {}", shown(file), counted_len(own.len(), "point"));
    }
    interrupt::watch(Saved::Points { count: begun, of: own.len(), file: file.clone() })?;
    work(arguments, &left, &catalogue, &terms, |line| interrupt::save_point(|| records.append(line)))?;
    if let Some(table) = &arguments.grid.csv {
        let lines = records::read(file)?.1;
        write_csv(table, lines.values().map(String::as_str))?;
    }
    writeln!(out, "{}: {} of {}", shown(file), counted_len(own.len(), "point"), points.len())
}

/// Runs points on the threads that the arguments allow, and shows progress.
fn work(
    arguments: &CompareArguments,
    points: &[Point],
    catalogue: &Catalogue,
    terms: &Terms,
    mut write: impl FnMut(&str) -> Result<(), Failure> + Send,
) -> Result<(), Failure> {
    let bar = progress::bar("{wide_bar} {pos} of {len} points, {eta} left", points.len(), arguments.quiet);
    let done = arguments.pool()?.install(|| {
        sweep::run(points, catalogue, terms, |line| {
            bar.inc(1);
            write(line)
        })
    });
    bar.finish_and_clear();
    done
}
