//! How far a row is off: what a fit makes small.
//!
//! The loss of a figure is the square of its error, as a validation prints it. That of a claim is the square of what it misses,
//! as a share of its larger side, and none if it holds by one percent: so a claim pulls only where it fails, or nearly does.
//! A row that has no value has the loss of an error of a hundred percent.

use super::super::decision::{Decision, DecisionKind};
use super::super::formula::{Claim, Comparison};
use super::super::verdict::Known;

/// The loss of a row that has no value.
const UNDECIDED: f64 = 1.0;

/// A claim holds by this share before it pulls no more.
const MARGIN: f64 = 0.01;

/// The loss of one row.
pub(super) fn of(decision: &Decision, known: &Known<'_>) -> f64 {
    match &decision.kind {
        DecisionKind::Figure { published, formula, .. } => {
            formula.value(known).map_or(UNDECIDED, |value| published.error(value).powi(2))
        }
        DecisionKind::Claims(claims) => {
            let of = |claim: &Claim| {
                claim.judge(known).map_or(UNDECIDED, |(left, right, _)| missed(claim, left, right).powi(2))
            };
            claims.iter().map(of).sum()
        }
        DecisionKind::Undecidable(_) => 0.0,
    }
}

/// Returns by how much a claim fails. Numbers below one are shares or ratios, whose difference says enough by itself.
fn missed(claim: &Claim, left: f64, right: f64) -> f64 {
    let more = (left - right) / left.abs().max(right.abs()).max(1.0);
    match claim.comparison {
        Comparison::Less | Comparison::AtMost => (more + MARGIN).max(0.0),
        Comparison::Equal => more.abs(),
        Comparison::AtLeast | Comparison::More => (MARGIN - more).max(0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_that_holds_well_is_no_loss_and_one_that_fails_is_what_it_misses() {
        let of = |text, left, right| missed(&Claim::read(text).unwrap(), left, right);
        assert_eq!((of("1 < 2", 80.0, 100.0), of("2 > 1", 100.0, 80.0)), (0.0, 0.0));
        assert!((of("1 < 2", 100.0, 80.0) - 0.21).abs() < 1e-9);
        assert!((of("2 > 1", 80.0, 100.0) - 0.21).abs() < 1e-9);
        assert!((of("1 <= 2", 0.15, 0.05) - 0.11).abs() < 1e-9);
        assert!((of("1 = 2", 90.0, 100.0) - 0.1).abs() < 1e-9);
        assert!((of("1 < 2", 100.0, 100.0) - 0.01).abs() < 1e-9);
    }
}
