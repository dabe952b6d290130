//! The numbers that are fitted, on which rows, and within which bounds: `fit.toml`.
//!
//! ```toml
//! [[stage]]
//! name = "a disk of 7,200 turns a minute"
//! why = "what it moves at its edge"
//! rows = ["P098"]
//!
//! [[stage.number]]
//! places = ["hdd/disk-7200 platters.outer_track"]
//! unit = "sectors"
//! least = 1600
//! most = 3200
//! step = 8
//! prior = 2000
//! because = "data sheets of this class"
//! ```
//!
//! A number may be in several places, of which each then has the same value: parts that share a stack, or sides that are one
//! firmware. It takes whole steps from its least value, since no row carries more digits than that. Its prior is where a fit
//! starts, what it stays near where rows do not care, and what it is where none of its rows may be seen. Left out: fitting,
//! which is [`super::fit`].
//!
//! Always true: a plan that was checked names rows that runs decide, and numbers that are there, each once, in their units.

use super::decision::{Decision, DecisionKind};
use super::parameter::ParameterPath;
use crate::parts::schema::{self, Fault};
use crate::parts::{Catalogue, Origin, PartError, PartKind};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use toml::Spanned;

/// All that is fitted, in the order in which it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Numbers that are fitted together.
    pub stages: Vec<FitStage>,
}

/// Numbers that are fitted together, on the same rows.
#[derive(Clone, Debug, PartialEq)]
pub struct FitStage {
    /// Its name.
    pub name: String,
    /// Why these numbers, on these rows.
    pub why: String,
    /// The rows, by id.
    pub rows: Vec<String>,
    /// The numbers.
    pub numbers: Vec<FreeNumber>,
    /// The lines of its rows.
    lines: Vec<usize>,
}

/// A number that rows are to determine.
#[derive(Clone, Debug, PartialEq)]
pub struct FreeNumber {
    /// Where it is; the first gives it its name.
    pub places: Vec<ParameterPath>,
    /// The unit, in all of them.
    pub unit: String,
    /// Values that it may have.
    pub grid: Grid,
    /// Where it starts, in steps from the least.
    pub prior: u32,
    /// Why it starts there.
    pub because: String,
    /// The lines of its places.
    lines: Vec<usize>,
    /// The line of its unit.
    unit_line: usize,
}

/// Values a step apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grid {
    /// The first.
    pub least: f64,
    /// The difference between neighbouring values.
    pub step: f64,
    /// The last, in steps from the first.
    pub steps: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanFile {
    #[serde(default)]
    stage: Vec<StageTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StageTable {
    name: Spanned<String>,
    why: String,
    rows: Vec<Spanned<String>>,
    number: Vec<NumberTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NumberTable {
    places: Vec<Spanned<String>>,
    unit: Spanned<String>,
    least: f64,
    most: Spanned<f64>,
    step: Spanned<f64>,
    prior: Spanned<f64>,
    because: String,
}

/// A text that is being read.
struct Reading<'a>(&'a str);

const FILE: &str = "published/fit.toml";
const PLAN: &str = include_str!("../../published/fit.toml");

/// Steps of a number at most: more digits than a row can carry.
const STEPS_MAX: u32 = 4096;

impl Plan {
    /// Reads the plan that comes with the project.
    ///
    /// # Errors
    /// If it cannot be read: a fault of ours, which a test looks for.
    pub fn built_in() -> Result<Self, PartError> {
        Self::read(PLAN)
    }

    /// Reads the text of a plan.
    ///
    /// # Errors
    /// See [`PartError`].
    pub fn read(text: &str) -> Result<Self, PartError> {
        let PlanFile { stage } = schema::parse(text).map_err(in_plan)?;
        let reading = Reading(text);
        let stages = stage.into_iter().map(|stage| reading.stage(stage));
        Ok(Self { stages: stages.collect::<Result<_, _>>().map_err(in_plan)? })
    }

    /// All numbers, in the order of their stages.
    pub fn numbers(&self) -> impl Iterator<Item = &FreeNumber> {
        self.stages.iter().flat_map(|stage| &stage.numbers)
    }

    /// The names of the numbers that are fitted on a row.
    pub fn fitted_on(&self, row: &str) -> Vec<String> {
        let stages = self.stages.iter().filter(|stage| stage.rows.iter().any(|known| known == row));
        stages.flat_map(|stage| &stage.numbers).map(FreeNumber::name).collect()
    }

    /// Looks up what it names.
    ///
    /// # Errors
    /// The first row or number that is not there, or cannot be fitted so, with its line.
    pub fn check(&self, catalogue: &Catalogue, decisions: &[Decision]) -> Result<(), PartError> {
        let mut places = BTreeSet::new();
        for stage in &self.stages {
            for (row, line) in stage.rows.iter().zip(&stage.lines) {
                check_row(row, decisions).map_err(|what| in_plan(fault(*line, what)))?;
            }
            for number in &stage.numbers {
                for (place, line) in number.places.iter().zip(&number.lines) {
                    let known = place.find(catalogue).ok_or_else(|| format!("no such number: `{place}`"));
                    let known = known.map_err(|what| in_plan(fault(*line, what)))?;
                    if known.unit != number.unit {
                        let what =
                            format!("the unit of `{place}` is `{}`, not `{}`", known.unit, number.unit);
                        return Err(in_plan(fault(number.unit_line, what)));
                    }
                    if !places.insert(place) {
                        return Err(in_plan(fault(*line, format!("`{place}` is fitted twice"))));
                    }
                }
            }
        }
        Ok(())
    }

    /// Where the files of parts say of a number that it was fitted, and this does not, or on other rows; and the other way
    /// round.
    pub fn at_odds_with(&self, catalogue: &Catalogue) -> Vec<String> {
        let mut odds = Vec::new();
        let mut planned: BTreeSet<&ParameterPath> =
            self.numbers().flat_map(|number| &number.places).collect();
        for entry in catalogue.entries() {
            for constant in &entry.constants {
                let Origin::Fitted(said) = &constant.origin else { continue };
                let place = ParameterPath {
                    kind: entry.kind(),
                    part: entry.name.clone(),
                    number: constant.place.clone(),
                };
                let mut stages = self.stages.iter();
                let Some(stage) =
                    stages.find(|stage| stage.numbers.iter().any(|it| it.places.contains(&place)))
                else {
                    odds.push(format!("{place} says that it was fitted, and {FILE} does not have it"));
                    continue;
                };
                planned.remove(&place);
                if stage.rows != *said {
                    odds.push(format!(
                        "{place} says that it was fitted on {said:?}, and {FILE} {:?}",
                        stage.rows
                    ));
                }
            }
        }
        odds.extend(planned.into_iter().map(|place| format!("{place} does not say that it was fitted")));
        odds
    }
}

impl FitStage {
    /// Whether a row is one of its.
    pub fn has(&self, row: &str) -> bool {
        self.rows.iter().any(|known| known == row)
    }
}

impl FreeNumber {
    /// Returns its name: its first place.
    pub fn name(&self) -> String {
        self.places.first().map(ToString::to_string).unwrap_or_default()
    }

    /// Whether parts have this value in all its places.
    pub fn is(&self, value: f64, catalogue: &Catalogue) -> bool {
        let has = |place: &ParameterPath| {
            place.find(catalogue).is_some_and(|known| (known.value - value).abs() < 1e-9)
        };
        self.places.iter().all(has)
    }

    /// Parts with it so many times as large, in all its places, or with what its grid has nearest to that where it cannot be
    /// so; none if that cannot be either.
    pub fn near(&self, factor: f64, catalogue: &Catalogue) -> Option<Catalogue> {
        let on_grid = |value: f64| {
            let Grid { least, step, .. } = self.grid;
            // What is less than a step away moves by one, or nothing would change.
            let steps = ((value * factor - least) / step).round();
            let held = ((value - least) / step).round();
            let moved = if steps == held { held + (factor - 1.0).signum() } else { steps };
            least + moved * step
        };
        self.changed(|value| value * factor, catalogue).or_else(|| self.changed(on_grid, catalogue))
    }

    fn changed(&self, of: impl Fn(f64) -> f64, catalogue: &Catalogue) -> Option<Catalogue> {
        let mut values: BTreeMap<(PartKind, &str), Vec<(&str, f64)>> = BTreeMap::new();
        for place in &self.places {
            let value = of(place.find(catalogue)?.value);
            values.entry((place.kind, &place.part)).or_default().push((&place.number, value));
        }
        let mut changed = catalogue.clone();
        values.into_iter().try_for_each(|((kind, part), values)| changed.change(kind, part, &values)).ok()?;
        Some(changed)
    }

    /// Its value, so many steps from the least.
    pub fn value(&self, steps: u32) -> f64 {
        self.grid.value(steps)
    }

    /// Its value before any row is seen.
    pub fn prior_value(&self) -> f64 {
        self.value(self.prior)
    }
}

impl Grid {
    /// The value so many steps from the first. What is left of binary fractions behind the sixth digit is cut off.
    pub fn value(&self, steps: u32) -> f64 {
        const DIGITS: f64 = 1e6;
        ((self.least + f64::from(steps) * self.step) * DIGITS).round() / DIGITS
    }

    /// The last.
    pub fn most(&self) -> f64 {
        self.value(self.steps)
    }
}

impl Reading<'_> {
    fn stage(&self, StageTable { name, why, rows, number }: StageTable) -> Result<FitStage, Fault> {
        if rows.is_empty() || number.is_empty() {
            return Err(fault(self.line(&name), "a stage needs rows and numbers".into()));
        }
        let numbers = number.into_iter().map(|number| self.number(number)).collect::<Result<_, _>>()?;
        let (lines, rows) = rows.into_iter().map(|row| (self.line(&row), row.into_inner())).unzip();
        Ok(FitStage { name: name.into_inner(), why, rows, numbers, lines })
    }

    fn number(&self, table: NumberTable) -> Result<FreeNumber, Fault> {
        let NumberTable { places, unit, least, most, step, prior, because } = table;
        let unit_line = self.line(&unit);
        if places.is_empty() {
            return Err(fault(unit_line, "a number is in one place at least".into()));
        }
        let lines = places.iter().map(|place| self.line(place)).collect();
        let read = |place: Spanned<String>| {
            let line = self.line(&place);
            place.get_ref().parse().map_err(|what| fault(line, what))
        };
        let places = places.into_iter().map(read).collect::<Result<_, _>>()?;
        let off = |spanned: &Spanned<f64>, what: &str| fault(self.line(spanned), what.to_owned());
        if !(step.get_ref().is_finite() && *step.get_ref() > 0.0) {
            return Err(off(&step, "expected a positive step"));
        }
        let steps_to = |value: &Spanned<f64>| whole_steps((value.get_ref() - least) / step.get_ref());
        let steps = steps_to(&most).filter(|steps| *steps > 0);
        let steps = steps
            .ok_or_else(|| off(&most, &format!("expected 1 to {STEPS_MAX} whole steps from `least`")))?;
        let on_grid = steps_to(&prior).filter(|prior| *prior <= steps);
        let grid = Grid { least, step: step.into_inner(), steps };
        let prior = on_grid.ok_or_else(|| off(&prior, "expected whole steps from `least`, up to `most`"))?;
        Ok(FreeNumber { places, unit: unit.into_inner(), grid, prior, because, lines, unit_line })
    }

    /// The line in which something begins, from 1.
    fn line<T>(&self, spanned: &Spanned<T>) -> usize {
        self.0.get(..spanned.span().start).unwrap_or("").matches('\n').count() + 1
    }
}

fn check_row(row: &str, decisions: &[Decision]) -> Result<(), String> {
    let decision = decisions.iter().find(|decision| decision.id == row);
    let decision = decision.ok_or_else(|| format!("no such row: `{row}`"))?;
    match decision.kind {
        _ if decision.is_shape() => {
            Err(format!("`{row}` is a shape, which checks and belongs to no article"))
        }
        DecisionKind::Undecidable(_) => Err(format!("no run decides `{row}`")),
        _ if decision.measurements().is_empty() => Err(format!("`{row}` does not depend on a run")),
        _ => Ok(()),
    }
}

fn whole_steps(steps: f64) -> Option<u32> {
    let whole = steps.round();
    ((steps - whole).abs() < 1e-6 && (0.0..=f64::from(STEPS_MAX)).contains(&whole)).then_some(whole as u32)
}

fn in_plan(Fault { line, what }: Fault) -> PartError {
    PartError { file: FILE.into(), line, what }
}

const fn fault(line: usize, what: String) -> Fault {
    Fault { line: Some(line), what }
}
