//! The effect of each fitted number on the rows: 10 % less and 10 % more, in all of its places.
//!
//! Only runs that depend on the number ([`super::seen`]) are repeated, all at once, so that
//! processors stay busy. A number that cannot take the exact value, such as sectors per track,
//! takes the nearest grid value. Left out: joint changes of two numbers.
//!
//! Always true: rows that do not depend on a number are unchanged.

use super::decision::Decided;
use super::facts::Facts;
use super::fit::{Run, Runner};
use super::measurement::{Measurement, Outcome};
use super::plan::FreeNumber;
use super::seen;
use super::statistics::Statistics;
use super::verdict::{Row, Verdict};
use crate::parts::Catalogue;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A fitted number with the effects of 10 % less and 10 % more.
#[derive(Clone, Debug, PartialEq)]
pub struct Sensitivity {
    /// Its name.
    pub number: String,
    /// Less, and more; none where the number cannot have the value.
    pub changes: [Option<Change>; 2],
}

/// The effect of a changed number.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Repeated runs.
    pub runs: usize,
    /// Median of |error| of decidable figures.
    pub error_median: Option<f64>,
    /// Largest |error| of a figure, and its row.
    pub error_worst: Option<(f64, String)>,
    /// The figure that changes most: relative change, and its row. None if none changes.
    pub moved_most: Option<(f64, String)>,
    /// Claims that no longer hold.
    pub broken: Vec<String>,
}

/// The results of all measurements with unchanged numbers.
pub type Made = BTreeMap<Measurement, Result<Outcome, String>>;

/// Relative change of a number.
pub const CHANGE: f64 = 0.1;

impl Sensitivity {
    /// Of each number that was fitted on rows that are here.
    pub fn all(decided: &Decided, facts: Facts<'_>, made: &Made, runner: &mut dyn Runner) -> Vec<Self> {
        let seen = seen::numbers(facts, &decided.plan, made.keys().cloned());
        let numbers: Vec<&FreeNumber> = decided.fitted();
        let places = decided.plan.numbers().enumerate();
        let places: BTreeMap<String, usize> = places.map(|(place, number)| (number.name(), place)).collect();
        let mut runs = Vec::new();
        let mut cases = Vec::new();
        for number in numbers {
            let place = places.get(&number.name()).copied();
            let sees = |one: &&Measurement| {
                place.is_some_and(|place| seen.get(*one).is_some_and(|seen| seen.contains(&place)))
            };
            let changed = [1.0 - CHANGE, 1.0 + CHANGE].map(|factor| {
                let catalogue = Arc::new(number.near(factor, facts.catalogue)?);
                let first = runs.len();
                let run =
                    |one: &Measurement| Run { measurement: one.clone(), catalogue: Arc::clone(&catalogue) };
                runs.extend(made.keys().filter(sees).map(run));
                Some((catalogue, first..runs.len()))
            });
            cases.push((number, changed));
        }
        let outcomes = runner.outcomes(&runs);
        let before = rows(decided, facts, made);
        let change = |(catalogue, range): (Arc<Catalogue>, std::ops::Range<usize>)| {
            let mut after = made.clone();
            let again = runs.iter().zip(&outcomes).take(range.end).skip(range.start);
            let again = again.map(|(run, outcome)| (run.measurement.clone(), outcome.clone()));
            after.extend(again);
            let facts = Facts { catalogue: &catalogue, ..facts };
            Change::between(&before, &rows(decided, facts, &after), range.len())
        };
        let one = |(number, changed): (&FreeNumber, [Option<_>; 2])| Self {
            number: number.name(),
            changes: changed.map(|case| case.map(&change)),
        };
        cases.into_iter().map(one).collect()
    }
}

fn rows<'a>(decided: &'a Decided, facts: Facts<'_>, made: &Made) -> Vec<Row<'a>> {
    decided.evaluate(facts, |one| made.get(one).cloned().unwrap_or_else(|| Err("it was not measured".into())))
}

impl Change {
    fn between(before: &[Row<'_>], after: &[Row<'_>], runs: usize) -> Self {
        let Statistics { error_median, error_worst, .. } = Statistics::of(after);
        let mut moved_most: Option<(f64, String)> = None;
        let mut broken = Vec::new();
        for (before, after) in before.iter().zip(after) {
            let id = || after.decision.id.clone();
            match (before.verdict, after.verdict) {
                (Verdict::Figure { simulated: old, .. }, Verdict::Figure { simulated: new, .. }) => {
                    let moved = new / old - 1.0;
                    if moved != 0.0 && moved_most.as_ref().is_none_or(|(most, _)| moved.abs() > most.abs()) {
                        moved_most = Some((moved, id()));
                    }
                }
                (Verdict::Holds, Verdict::Fails | Verdict::Undecided) => broken.push(id()),
                _ => {}
            }
        }
        Self { runs, error_median, error_worst, moved_most, broken }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Stretch;
    use crate::setups::Setup;
    use crate::trial::{self, Terms};
    use units::Duration;

    /// Makes brief runs, and counts them.
    struct Brief<'a> {
        setups: &'a [Setup],
        runs: usize,
    }

    impl Brief<'_> {
        fn make(&self, one: &Measurement, catalogue: &Catalogue) -> Result<Outcome, String> {
            let stretch = Stretch {
                warm_up: Duration::ZERO,
                span: Duration::from_ms(1),
                requests: 12,
                bytes: 1 << 20,
                rounds: 1,
                caches: 0,
            };
            let facts = Facts { catalogue, setups: self.setups };
            let terms = Terms { stretch, ..Terms::USUAL };
            trial::outcome(facts, one, &terms).map_err(|error| error.to_string())
        }
    }

    impl Runner for Brief<'_> {
        fn outcomes(&mut self, runs: &[Run]) -> Vec<Result<Outcome, String>> {
            self.runs += runs.len();
            runs.iter().map(|run| self.make(&run.measurement, &run.catalogue)).collect()
        }
    }

    #[test]
    fn what_is_made_again_in_part_is_what_is_made_again_in_whole() {
        let catalogue = Catalogue::built_in().unwrap();
        let setups = Setup::built_in(&catalogue).unwrap();
        let facts = Facts { catalogue: &catalogue, setups: &setups };
        let mut decided = Decided::built_in().unwrap();
        decided.keep("Tom's");
        let mut brief = Brief { setups: &setups, runs: 0 };
        let of = |catalogue: &Catalogue| -> Made {
            let measurements = decided.measurements().into_iter();
            measurements.map(|one| (one.clone(), brief.make(&one, catalogue))).collect()
        };
        let made = of(&catalogue);
        let before = rows(&decided, facts, &made);
        let whole: Vec<_> = decided
            .fitted()
            .into_iter()
            .map(|number| {
                let changes = [1.0 - CHANGE, 1.0 + CHANGE].map(|factor| {
                    let changed = number.near(factor, &catalogue)?;
                    let facts = Facts { catalogue: &changed, ..facts };
                    Some(Change::between(&before, &rows(&decided, facts, &of(&changed)), 0))
                });
                Sensitivity { number: number.name(), changes }
            })
            .collect();
        let mut part = Sensitivity::all(&decided, facts, &made, &mut brief);
        let naive = whole.len() * 2 * made.len();
        assert!(brief.runs > 0 && brief.runs * 3 < naive * 2, "{} of {naive} runs", brief.runs);
        for change in part.iter_mut().flat_map(|one| &mut one.changes).flatten() {
            change.runs = 0;
        }
        assert_eq!(part, whole);
        assert!(part.iter().flat_map(|one| &one.changes).flatten().any(|change| change.moved_most.is_some()));
    }
}
