//! What a measurement came to: pairs of rates, their ratio, and the bar that the ratio must reach.
//!
//! Two things are measured in turns, pair by pair, so that whatever slows the machine down meets both. The ratio is
//! taken within a pair; the median of the ratios is held against the bar.

use serde::Serialize;
use std::fmt;

/// One thing measured against another, round by round.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Figure {
    /// What was measured, such as `RAM, 4K random read`.
    pub(super) what: String,
    /// Rates of what it is held against, one for each round.
    pub(super) reference: Vec<f64>,
    /// Its own rates.
    pub(super) measured: Vec<f64>,
    /// The least that the median ratio may be.
    pub(super) bar: f64,
}

/// The middle of a few numbers, and how far they go to both sides.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Spread {
    pub(super) min: f64,
    pub(super) median: f64,
    pub(super) max: f64,
}

impl Figure {
    /// Nothing measured yet.
    pub(super) fn new(what: impl Into<String>, bar: f64) -> Self {
        Self { what: what.into(), reference: Vec::new(), measured: Vec::new(), bar }
    }

    /// Adds a round.
    pub(super) fn push(&mut self, reference: f64, measured: f64) {
        self.reference.push(reference);
        self.measured.push(measured);
    }

    /// Measured by reference, within each round.
    pub(super) fn ratio(&self) -> Spread {
        let pairs = self.measured.iter().zip(&self.reference);
        Spread::of(pairs.map(|(measured, reference)| measured / reference).collect())
    }

    /// Whether the bar is reached.
    pub(super) fn passes(&self) -> bool {
        self.ratio().median >= self.bar
    }

    /// The line above the lines of figures.
    pub(super) fn heading(reference: &str, measured: &str) -> String {
        format!("{:36} {reference:>12} {measured:>12}   ratio min / median / max   bar", "")
    }
}

impl Spread {
    /// Of some numbers; none are not a number.
    pub(super) fn of(mut numbers: Vec<f64>) -> Self {
        numbers.sort_by(f64::total_cmp);
        let at = |index: usize| numbers.get(index).copied().unwrap_or(f64::NAN);
        let (middle, last) = (numbers.len() / 2, numbers.len().saturating_sub(1));
        let median = if last % 2 == 0 { at(middle) } else { (at(middle - 1) + at(middle)) / 2.0 };
        Self { min: at(0), median, max: at(last) }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let median = |rates: &Vec<f64>| Spread::of(rates.clone()).median;
        let Spread { min, median: middle, max } = self.ratio();
        let verdict = if self.passes() { "" } else { "   TOO SLOW" };
        write!(
            f,
            "{:36} {:>12.0} {:>12.0}        {min:4.2} / {middle:4.2} / {max:4.2}      {:4.2}{verdict}",
            self.what,
            median(&self.reference),
            median(&self.measured),
            self.bar
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_or_between_the_two_middles() {
        assert_eq!(Spread::of(vec![3.0, 1.0, 2.0]), Spread { min: 1.0, median: 2.0, max: 3.0 });
        assert_eq!(Spread::of(vec![4.0, 1.0, 2.0, 3.0]), Spread { min: 1.0, median: 2.5, max: 4.0 });
        assert!(Spread::of(Vec::new()).median.is_nan());
    }

    #[test]
    fn the_ratio_is_taken_within_each_round() {
        let mut figure = Figure::new("a", 0.7);
        figure.push(100.0, 70.0);
        figure.push(50.0, 45.0);
        figure.push(10.0, 5.0);
        assert_eq!(figure.ratio(), Spread { min: 0.5, median: 0.7, max: 0.9 });
        assert!(figure.passes());
        figure.bar = 0.71;
        assert!(!figure.passes() && figure.to_string().ends_with("TOO SLOW"));
    }

    #[test]
    fn nothing_measured_does_not_pass() {
        assert!(!Figure::new("a", 0.0).passes());
    }
}
