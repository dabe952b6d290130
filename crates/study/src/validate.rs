//! Validation: published figures beside those of simulated machines of the same parts.
//!
//! Rows, sources and decision rules are data of [`crate::published`]; this module makes each
//! measurement once and converts the results to a record for programs ([`record`]) or a page
//! ([`page`]).

pub mod doubts;
mod fails;
pub mod page;
pub mod record;
mod runs;

pub use runs::{Processors, digest};

use crate::published::fit::{Run, Runner};
use crate::published::{Decided, Facts, Made, Role, Row, Sensitivity, Statistics};
use std::sync::Arc;

/// The result of a measurement that was not requested.
const NOT_MADE: &str = "it was not measured";

/// The largest median of |error|, and the largest |error|.
pub const BARS: (f64, f64) = (0.08, 0.20);

/// The result of a validation.
#[derive(Clone, Copy)]
pub struct Validation<'a> {
    /// The rows with their decisions and numbers.
    pub decided: &'a Decided,
    /// The rows with their verdicts.
    pub rows: &'a [Row<'a>],
    /// Errors and counts over the rows.
    pub statistics: &'a Statistics,
    /// How rows change with fitted numbers; empty if that was not requested.
    pub sensitivities: &'a [Sensitivity],
    /// The measurements.
    pub made: &'a Made,
    /// The seed of the measurements.
    pub seed: u64,
}

/// Makes every measurement.
pub fn made(decided: &Decided, facts: Facts<'_>, processors: &mut Processors<'_>) -> Made {
    let catalogue = Arc::new(facts.catalogue.clone());
    let run = |measurement| Run { measurement, catalogue: Arc::clone(&catalogue) };
    let runs: Vec<_> = decided.measurements().into_iter().map(run).collect();
    let outcomes = processors.outcomes(&runs);
    runs.into_iter().map(|run| run.measurement).zip(outcomes).collect()
}

/// Decides each row from the measurements.
pub fn rows<'a>(decided: &'a Decided, facts: Facts<'_>, made: &Made) -> Vec<Row<'a>> {
    decided.evaluate(facts, |one| made.get(one).cloned().unwrap_or_else(|| Err(NOT_MADE.to_owned())))
}

/// Counts the places of fitted numbers in parts.
pub fn places(decided: &Decided) -> usize {
    decided.fitted().into_iter().map(|number| number.places.len()).sum()
}

/// Whether numbers were fitted on a row, and whether its comparison is reversed; empty for a plain check.
pub fn role(row: &Row<'_>) -> &'static str {
    match (&row.decision.role, row.is_turned()) {
        (Role::Fit(_), false) => "fitted to",
        (Role::Fit(_), true) => "fitted to, reversed",
        (Role::Check, false) => "",
        (Role::Check, true) => "reversed",
    }
}
