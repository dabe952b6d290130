//! Result of a measurement: pairs of rates, their ratio, and the bar that the ratio must reach.
//!
//! Two things are measured alternately, pair by pair, so that whatever slows the machine down affects both. The ratio is
//! taken within a pair; the median of the ratios is held against the bar.

use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

/// One thing measured against another, round by round.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Figure {
    /// Name of the measurement, such as `RAM, 4K random read`.
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
}

/// A table of figures: medians of both rates, and the ratio.
pub(super) fn table<'a>(sides: [&str; 2], figures: impl IntoIterator<Item = &'a Figure>) -> Table {
    let [reference, measured] = sides;
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY);
    table.set_header(["", reference, measured, "ratio", "min", "max", "bar", ""]);
    for figure in figures {
        let Figure { what, reference, measured, bar } = figure;
        let rate = |rates: &[f64]| format!("{:.0}", Spread::of(rates.to_vec()).median);
        let Spread { min, median, max } = figure.ratio();
        let [min, median, max] = [min, median, max].map(|ratio| format!("{ratio:.2}"));
        let bar = if *bar > 0.0 { format!("{bar:.2}") } else { "-".into() };
        let verdict = if figure.passes() { "" } else { "TOO SLOW" };
        table.add_row([what, &rate(reference), &rate(measured), &median, &min, &max, &bar, verdict]);
    }
    align(&mut table);
    table
}

/// Numbers to the right.
pub(super) fn align(table: &mut Table) {
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
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
        assert!(!figure.passes());
    }

    #[test]
    fn nothing_measured_does_not_pass() {
        assert!(!Figure::new("a", 0.0).passes());
    }
}
