//! Numbers of parts out of published rows: the plan, carried out.
//!
//! The stages of a [`Plan`] are gone through in their order, and again until nothing changes any more. A stage looks for the values
//! of its numbers, from where they are, with which its rows are off least (`loss`, `search`); the first time they are at their
//! priors, so that what a file says has no say. To be far from its prior costs a number a little, the whole of its bounds as much
//! as an error of one percent in one row: it decides where rows do not. A number is identified if, moved by a quarter of its
//! bounds either way, with the others of its stage free to make up for it, it costs its rows that much or more.
//!
//! Nothing runs here: the caller supplies a [`Runner`]. A run is asked for once for each set of values that its parts can have
//! seen, whatever stages and fits ask for it. Left out: how sure a value is, beyond that.
//!
//! Always true: what is found depends on plan, rows and runs alone, and not on what files of parts hold in the places of the plan.

mod leave_out;
mod loss;
mod search;

pub use leave_out::{LeftOut, LeftOutRow};

use super::decision::{Decided, Decision};
use super::facts::Facts;
use super::measurement::{Measurement, Outcome};
use super::parameter::ParameterPath;
use super::plan::{FitStage, FreeNumber, Plan};
use super::seen;
use super::verdict::{Known, Row};
use crate::parts::{Catalogue, PartError, PartKind};
use search::{Point, Search};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// An executor of runs.
pub trait Runner {
    /// Returns the outcome of each of these runs, in their order.
    fn outcomes(&mut self, runs: &[Run]) -> Vec<Result<Outcome, String>>;

    /// Begins a stage; for progress output.
    fn begin(&mut self, _what: &str) {}
}

/// A run that is to be made.
#[derive(Clone, Debug)]
pub struct Run {
    /// The measurement to make.
    pub measurement: Measurement,
    /// On parts with these numbers.
    pub catalogue: Arc<Catalogue>,
}

/// The result of a fit.
#[derive(Clone, Debug, PartialEq)]
pub struct Fitted {
    /// The value of each number of the plan, in its order.
    pub values: Vec<f64>,
    /// The same in steps from the least of each.
    point: Point,
    /// How often all stages were gone through.
    pub passes: u32,
    /// Whether the last time changed nothing.
    pub settled: bool,
}

/// Rows, parts and a plan, with all runs that were made.
pub struct Fitting<'a, 'r> {
    facts: Facts<'a>,
    decided: &'a Decided,
    runner: &'r mut dyn Runner,
    last: Vec<u32>,
    /// Which numbers the parts of a measurement have.
    seen: BTreeMap<Measurement, Vec<usize>>,
    made: BTreeMap<Key, Result<Outcome, String>>,
}

/// A measurement, and the values of numbers that its parts have.
type Key = (Measurement, Vec<u32>);

/// Where a fit has come to.
struct Settled {
    point: Point,
    passes: u32,
    settled: bool,
}

/// A stage without the rows that may not be seen.
struct Task<'a> {
    name: &'a str,
    rows: Vec<&'a Decision>,
    /// Its numbers.
    numbers: std::ops::Range<usize>,
}

/// How often stages are gone through at most.
const PASSES_MAX: u32 = 6;

/// The first stride of a search, as a share of a number's bounds: one in so many; of later passes, which begin where others ended.
const FIRST_STRIDE: u32 = 8;
const LATER_STRIDE: u32 = 64;

/// The cost of a distance from a prior of the whole of the bounds; and the least cost to its rows that identifies a number: the
/// loss of an error of one percent.
const SLIGHT: f64 = 1e-4;

impl<'a, 'r> Fitting<'a, 'r> {
    /// Prepares a fit.
    ///
    /// # Errors
    /// See [`Plan::check`].
    pub fn new(
        facts: Facts<'a>,
        decided: &'a Decided,
        runner: &'r mut dyn Runner,
    ) -> Result<Self, PartError> {
        let Decided { plan, decisions, .. } = decided;
        plan.check(facts.catalogue, decisions)?;
        let last = plan.numbers().map(|number| number.grid.steps).collect();
        let seen = seen::numbers(facts, plan, decided.measurements());
        Ok(Self { facts, decided, runner, last, seen, made: BTreeMap::new() })
    }

    /// Fits all numbers on all rows.
    pub fn fit(&mut self) -> Fitted {
        let tasks = tasks(self.decided, |_| true);
        let Settled { point, passes, settled } = self.settle(&tasks);
        Fitted { values: self.values(&point), point, passes, settled }
    }

    /// Whether their rows determine each number of the plan, in its order; what others are their priors say. It takes longer than
    /// the fit.
    pub fn identified(&mut self, fitted: &Fitted) -> Vec<bool> {
        let mut identified = vec![false; fitted.point.len()];
        for task in &tasks(self.decided, |_| true) {
            self.runner.begin(&format!("how sure: {}", task.name));
            for number in task.numbers.clone() {
                identified[number] = self.is_identified(task, &fitted.point, number);
            }
        }
        identified
    }

    /// Runs that were made so far.
    pub fn runs(&self) -> usize {
        self.made.len()
    }

    /// All rows, with the numbers of the plan so.
    ///
    /// # Errors
    /// If a number cannot be so.
    pub fn rows(&mut self, values: &[f64]) -> Result<Vec<Row<'a>>, PartError> {
        let catalogue = self.decided.plan.catalogue_with(self.facts.catalogue, values)?;
        Ok(self.rows_of(&Arc::new(catalogue)))
    }

    /// All rows, with the numbers as the files of parts have them.
    pub fn rows_of_files(&mut self) -> Vec<Row<'a>> {
        self.rows_of(&Arc::new(self.facts.catalogue.clone()))
    }

    fn rows_of(&mut self, catalogue: &Arc<Catalogue>) -> Vec<Row<'a>> {
        self.runner.begin("all rows");
        let run = |measurement| Run { measurement, catalogue: Arc::clone(catalogue) };
        let runs: Vec<_> = self.decided.measurements().into_iter().map(run).collect();
        let outcomes = self.runner.outcomes(&runs);
        let made: BTreeMap<_, _> = runs.into_iter().map(|run| run.measurement).zip(outcomes).collect();
        let facts = Facts { catalogue, ..self.facts };
        let outcome = |one: &Measurement| made.get(one).cloned().unwrap_or_else(|| Err(NOT_MADE.into()));
        self.decided.evaluate(facts, outcome)
    }

    /// Goes through the stages until nothing changes.
    fn settle(&mut self, tasks: &[Task<'_>]) -> Settled {
        let mut point: Point = self.decided.plan.numbers().map(|number| number.prior).collect();
        let (mut passes, mut settled) = (0, false);
        while passes < PASSES_MAX && !settled {
            passes += 1;
            settled = true;
            for task in tasks {
                self.runner.begin(task.name);
                let found = self.search(task, &point, if passes == 1 { FIRST_STRIDE } else { LATER_STRIDE });
                settled &= found == point;
                point = found;
            }
        }
        Settled { point, passes, settled }
    }

    /// The values at a point.
    fn values(&self, point: &[u32]) -> Vec<f64> {
        self.decided.plan.numbers().zip(point).map(|(number, at)| number.value(*at)).collect()
    }

    /// A point with the best values of a stage's numbers.
    fn search(&mut self, task: &Task<'_>, from: &[u32], parts: u32) -> Point {
        if task.rows.is_empty() {
            return from.to_vec();
        }
        let held: Vec<bool> = (0..from.len()).map(|number| !task.numbers.contains(&number)).collect();
        self.search_holding(task, from, &held, parts).0
    }

    fn search_holding(&mut self, task: &Task<'_>, from: &[u32], held: &[bool], parts: u32) -> (Point, f64) {
        let last = self.last.clone();
        let search = Search { last: &last, held, parts };
        search.from(from, &mut |points| {
            let losses = self.losses(task, points);
            points.iter().zip(losses).map(|(point, loss)| loss + self.away(task, point)).collect()
        })
    }

    /// Whether its rows determine a number.
    fn is_identified(&mut self, task: &Task<'_>, point: &[u32], number: usize) -> bool {
        let best = self.losses(task, &[point.to_vec()])[0];
        let (at, last) = (point[number], self.last[number]);
        let quarter = last.div_ceil(4);
        // At a bound, the other way alone says it.
        let [less, more] = [at.checked_sub(quarter), Some(at + quarter).filter(|to| *to <= last)];
        [less, more].into_iter().flatten().all(|to| {
            let mut from = point.to_vec();
            from[number] = to;
            let free = |other: usize| task.numbers.contains(&other) && other != number;
            let held: Vec<bool> = (0..from.len()).map(|other| !free(other)).collect();
            let (elsewhere, _) = self.search_holding(task, &from, &held, 8);
            self.losses(task, &[elsewhere])[0] >= best + SLIGHT
        })
    }

    /// Returns the cost of the distances of a stage's numbers from their priors.
    fn away(&self, task: &Task<'_>, point: &[u32]) -> f64 {
        let numbers = self.decided.plan.numbers().zip(point).enumerate();
        let of = |(_, (number, at)): (usize, (&FreeNumber, &u32))| {
            (f64::from(at.abs_diff(number.prior)) / f64::from(number.grid.steps)).powi(2)
        };
        SLIGHT * numbers.filter(|(index, _)| task.numbers.contains(index)).map(of).sum::<f64>()
    }

    /// The losses of a stage's rows at some points, which differ in its numbers alone.
    fn losses(&mut self, task: &Task<'_>, points: &[Point]) -> Vec<f64> {
        let needed: BTreeSet<Measurement> = task.rows.iter().flat_map(|row| row.measurements()).collect();
        let catalogues: Vec<_> = points.iter().map(|point| self.catalogue(point).map(Arc::new)).collect();
        let mut keys: BTreeSet<Key> = BTreeSet::new();
        let mut runs = Vec::new();
        for (point, catalogue) in points.iter().zip(&catalogues) {
            let Some(catalogue) = catalogue else { continue };
            for measurement in &needed {
                let key = self.key(measurement, point);
                if !self.made.contains_key(&key) && keys.insert(key.clone()) {
                    let run = Run { measurement: measurement.clone(), catalogue: Arc::clone(catalogue) };
                    runs.push((key, run));
                }
            }
        }
        let (keys, runs): (Vec<_>, Vec<_>) = runs.into_iter().unzip();
        if !runs.is_empty() {
            let outcomes = self.runner.outcomes(&runs);
            self.made.extend(keys.into_iter().zip(outcomes));
        }
        let pairs = points.iter().zip(&catalogues);
        pairs
            .map(|(point, catalogue)| match catalogue {
                Some(catalogue) => self.loss(task, point, catalogue, &needed),
                None => f64::INFINITY,
            })
            .collect()
    }

    fn loss(
        &self,
        task: &Task<'_>,
        point: &[u32],
        catalogue: &Catalogue,
        needed: &BTreeSet<Measurement>,
    ) -> f64 {
        let outcome = |one: &Measurement| {
            let made = self.made.get(&self.key(one, point)).cloned();
            (one.clone(), made.unwrap_or_else(|| Err(NOT_MADE.into())))
        };
        let outcomes = needed.iter().map(outcome).collect();
        let known = Known { names: &self.decided.names, facts: Facts { catalogue, ..self.facts }, outcomes };
        task.rows.iter().map(|row| loss::of(row, &known)).sum()
    }

    fn key(&self, measurement: &Measurement, point: &[u32]) -> Key {
        let seen = self.seen.get(measurement).map_or(&[][..], Vec::as_slice);
        (measurement.clone(), seen.iter().map(|number| point[*number]).collect())
    }

    /// The parts with these values; none if they cannot be so.
    fn catalogue(&self, point: &[u32]) -> Option<Catalogue> {
        let plan = &self.decided.plan;
        plan.catalogue_with(self.facts.catalogue, &self.values(point)).ok()
    }
}

const NOT_MADE: &str = "it was not measured";

impl Plan {
    /// Parts with these values of its numbers, in its order.
    ///
    /// # Errors
    /// If a number cannot be so.
    pub fn catalogue_with(&self, catalogue: &Catalogue, values: &[f64]) -> Result<Catalogue, PartError> {
        let mut changes: BTreeMap<(PartKind, &str), Vec<(&str, f64)>> = BTreeMap::new();
        for (number, value) in self.numbers().zip(values) {
            for ParameterPath { kind, part, number } in &number.places {
                changes.entry((*kind, part)).or_default().push((number, *value));
            }
        }
        let mut changed = catalogue.clone();
        for ((kind, part), numbers) in changes {
            changed.change(kind, part, &numbers)?;
        }
        Ok(changed)
    }
}

/// Stages with those of their rows that may be seen.
fn tasks(decided: &Decided, may: impl Fn(&Decision) -> bool) -> Vec<Task<'_>> {
    let mut first = 0;
    let task = |stage: &'_ FitStage| {
        let numbers = first..first + stage.numbers.len();
        first = numbers.end;
        numbers
    };
    let ranges: Vec<_> = decided.plan.stages.iter().map(task).collect();
    let stages = decided.plan.stages.iter().zip(ranges);
    let of = |stage: &FitStage| {
        let rows = decided.decisions.iter();
        rows.filter(|row| stage.has(&row.id) && may(row)).collect()
    };
    stages.map(|(stage, numbers)| Task { name: &stage.name, rows: of(stage), numbers }).collect()
}

#[cfg(test)]
mod tests;
