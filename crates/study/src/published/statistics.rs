//! Statistics of an evaluation.
//!
//! Errors are of figures; fitted and check rows are counted separately. Always true: every row is
//! in exactly one count of its role.

use super::decision::Role;
use super::verdict::{Row, Verdict};

/// Statistics over rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Statistics {
    /// Fitted rows.
    pub fit: Count,
    /// Check rows.
    pub check: Count,
    /// Fitted numbers: one in several places counts once.
    pub fitted_numbers: usize,
    /// Median |error| of figures from runs.
    pub error_median: Option<f64>,
    /// The same with figures that follow from constants alone.
    pub error_median_with_facts: Option<f64>,
    /// The largest |error|, and its row.
    pub error_worst: Option<(f64, String)>,
}

/// Rows by verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Figures with a value.
    pub figures: usize,
    /// Claims that hold.
    pub holds: usize,
    /// Claims that fail.
    pub fails: usize,
    /// Undecided.
    pub undecided: usize,
}

impl Statistics {
    /// Of rows.
    pub fn of(rows: &[Row<'_>]) -> Self {
        let mut statistics = Self::default();
        let (mut errors, mut measured) = (Vec::new(), Vec::new());
        let mut numbers = std::collections::BTreeSet::new();
        for row in rows {
            let count = match &row.decision.role {
                Role::Fit(fitted) => {
                    numbers.extend(fitted);
                    &mut statistics.fit
                }
                Role::Check => &mut statistics.check,
            };
            match row.verdict {
                Verdict::Figure { error, .. } => {
                    count.figures += 1;
                    errors.push((error.abs(), row.decision.id.clone()));
                    if !row.decision.measurements().is_empty() {
                        measured.push((error.abs(), row.decision.id.clone()));
                    }
                }
                Verdict::Holds => count.holds += 1,
                Verdict::Fails => count.fails += 1,
                Verdict::Undecided => count.undecided += 1,
            }
        }
        statistics.fitted_numbers = numbers.len();
        for errors in [&mut errors, &mut measured] {
            errors.sort_by(|one, other| one.0.total_cmp(&other.0));
        }
        statistics.error_median = median(&measured);
        statistics.error_median_with_facts = median(&errors);
        statistics.error_worst = errors.pop();
        statistics
    }
}

/// Of sorted errors.
fn median(errors: &[(f64, String)]) -> Option<f64> {
    let middle = errors.len() / 2;
    let upper = errors.get(middle)?.0;
    Some(if errors.len() % 2 == 1 { upper } else { f64::midpoint(errors[middle - 1].0, upper) })
}

impl Count {
    /// All of them.
    pub const fn all(&self) -> usize {
        self.figures + self.holds + self.fails + self.undecided
    }
}
