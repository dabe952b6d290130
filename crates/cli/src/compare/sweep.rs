//! `--sweep`: a grid of parts and workloads, on all processors, as lines that can be continued.
//!
//! [`grid`] makes a plan of points out of what is asked, in one order whatever the machine. Each point becomes one line ([`Point::line`]).
//! Lines go into a file in the order of the plan ([`records`]), so that a file which was cut off anywhere is a beginning of the
//! whole, and a shard is every nth point of it. [`csv`] makes tables of lines.
//!
//! Always true: the same plan makes the same bytes, in one run, in several, or in shards that are merged.

mod csv;
mod grid;
mod records;

pub(crate) use csv::write as write_csv;
pub(crate) use records::{Header, Records, merge};

use super::table::fitted;
use super::{CompareArguments, parts};
use crate::args::GridArguments;
use crate::failure::Failure;
use crate::interrupt::{self, Saved};
use crate::messages::message;
use crate::output_file;
use crate::sanitize::shown;
use crate::stdout::Output;
use grid::Grid;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use sim::engine::Digest;
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use study::compare::Point;
use study::parts::Catalogue;
use study::plural::counted_len;
use study::trial::Terms;

/// Why `--save` has no place for a grid, and where its records go.
pub(super) fn not_kept() -> Failure {
    Failure::usage("a sweep is not saved as a run")
        .because("it has a setup for each point, where a run has one")
        .try_this(
            "Its records are lines of JSON: --out FILE.jsonl keeps them, and --csv FILE.csv makes a table of them.",
        )
}

impl GridArguments {
    /// Checks that the files of a sweep can be written, before anything runs.
    pub(super) fn check_files(&self) -> Result<(), Failure> {
        self.out.as_deref().map_or(Ok(()), output_file::check_writable)?;
        self.csv
            .as_deref()
            .map_or(Ok(()), |file| output_file::check_replaceable(file, output_file::Kind::Table))
    }
}

/// Runs the grid, or what is left of it.
pub(super) fn run(arguments: &CompareArguments, out: &mut Output<'_>) -> Result<(), Failure> {
    arguments.check_outputs()?;
    let catalogue = parts::catalogue(arguments.parts.as_deref())?;
    let grid = Grid::read(arguments.grid.sweep.as_deref().unwrap_or_default(), arguments, &catalogue)?;
    let (setup, columns) = arguments.columns(&catalogue)?;
    let points = grid.points(&columns, &catalogue)?;
    let terms = Terms { explains: false, ..arguments.terms() };
    let header = Header::new(&points, plan(&points, &catalogue, &terms), arguments.grid.shard, |header| {
        header.setup.clone_from(&setup.name);
        header.sweep = arguments.grid.sweep.clone().unwrap_or_default();
    });
    let Some(file) = &arguments.grid.out else {
        interrupt::watch(Saved::Nothing("add --out FILE.jsonl to save each point and to continue later"))?;
        let lines = Mutex::new(Vec::new());
        work(arguments, &points, &catalogue, &terms, |line| {
            lock(&lines).push(line.to_owned());
            Ok(())
        })?;
        let lines = lines.into_inner().unwrap_or_default();
        return if arguments.json {
            out.print(&crate::sanitize::json(&(lines.join("\n") + "\n")))
        } else {
            out.print(&format!("{}\n", fitted(&csv::table(&lines))))
        };
    };
    let mut records = Records::open(file, &header)?;
    let own: Vec<&Point> = points.iter().filter(|point| header.shard.has(point.number)).collect();
    let begun = records.count();
    let left: Vec<Point> = own.iter().skip(begun).copied().cloned().collect();
    if begun > 0 {
        message!("{}: {begun} of {} there; going on", shown(file), counted_len(own.len(), "point"));
    }
    interrupt::watch(Saved::Points { count: begun, of: own.len(), file: file.clone() })?;
    work(arguments, &left, &catalogue, &terms, |line| interrupt::save_point(|| records.append(line)))?;
    if let Some(table) = &arguments.grid.csv {
        let lines = Records::read(file)?.1;
        write_csv(table, lines.values().map(String::as_str))?;
    }
    writeln!(out, "{}: {} of {}", shown(file), counted_len(own.len(), "point"), points.len())
}

/// A number for everything that figures depend on.
fn plan(points: &[Point], catalogue: &Catalogue, terms: &Terms) -> u64 {
    let mut digest = Digest::new();
    let mut mix = |text: &str| {
        digest.mix(text.len() as u64);
        for chunk in text.as_bytes().chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            digest.mix(u64::from_le_bytes(word));
        }
    };
    mix(env!("CARGO_PKG_VERSION"));
    mix(&format!("{terms:?}"));
    catalogue.entries().for_each(|entry| mix(&parts::record(entry).to_string()));
    points.iter().for_each(|point| mix(&format!("{:?} {:?} {}", point.assembly, point.job, point.seed)));
    digest.value()
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Lines that are ready, and the one that is to be written next.
struct Order<W> {
    next: usize,
    ready: BTreeMap<usize, String>,
    write: W,
    failed: Option<Failure>,
}

/// Runs points on all processors, and hands their lines on in the order of the points.
fn work(
    arguments: &CompareArguments,
    points: &[Point],
    catalogue: &Catalogue,
    terms: &Terms,
    write: impl FnMut(&str) -> Result<(), Failure> + Send,
) -> Result<(), Failure> {
    let bar = progress(points.len(), std::io::stderr().is_terminal());
    let order = Mutex::new(Order { next: 0, ready: BTreeMap::new(), write, failed: None });
    let next = AtomicUsize::new(0);
    arguments.pool()?.broadcast(|_| {
        while let Some((number, point)) = take(&next, points) {
            let line = point.line(catalogue, terms);
            let mut order = lock(&order);
            if order.failed.is_some() {
                return;
            }
            order.put(number, line);
            bar.inc(1);
        }
    });
    bar.finish_and_clear();
    let failed = order.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner).failed;
    failed.map_or(Ok(()), Err)
}

/// The next point that no thread has taken.
fn take<'a>(next: &AtomicUsize, points: &'a [Point]) -> Option<(usize, &'a Point)> {
    let number = next.fetch_add(1, Ordering::Relaxed);
    Some((number, points.get(number)?))
}

impl<W: FnMut(&str) -> Result<(), Failure>> Order<W> {
    fn put(&mut self, number: usize, line: String) {
        self.ready.insert(number, line);
        while let Some(line) = self.ready.remove(&self.next) {
            self.next += 1;
            if let Err(failure) = (self.write)(&line) {
                self.failed = Some(failure);
                return;
            }
        }
    }
}

/// Shows how far it is and how long it takes yet, on a terminal.
fn progress(points: usize, is_shown: bool) -> ProgressBar {
    let target = if is_shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let style = ProgressStyle::with_template("{wide_bar} {pos} of {len} points, {eta} left");
    let bar = ProgressBar::with_draw_target(Some(points as u64), target);
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_written_in_order_whichever_thread_is_first() {
        let mut out = Vec::new();
        let mut order = Order {
            next: 0,
            ready: BTreeMap::new(),
            failed: None,
            write: |line: &str| {
                out.push(line.to_owned());
                Ok(())
            },
        };
        for number in [2, 0, 3, 1] {
            order.put(number, number.to_string());
        }
        assert_eq!(out, ["0", "1", "2", "3"]);
    }
}
