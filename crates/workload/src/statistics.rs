//! Means and intervals of repeated runs.
//!
//! Rates are compared by their logarithms: a disturbed run is slower by a factor, and a ratio and
//! its inverse are then equally far from one. Intervals are Student's, 95 %, two-sided: the mean of
//! the logarithms plus or minus t times its standard error. Ratios are taken per round, since both
//! runs of a round are from the same minute. Left out: intervals of one run, which do not exist.

use serde::Serialize;

/// A value with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// The geometric mean.
    pub value: f64,
    /// The interval, from two runs on.
    pub interval: Option<[f64; 2]>,
}

/// Of 0.975, by degrees of freedom from 1; beyond the table the normal distribution's is close.
const STUDENT_T: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];
const NORMAL_Z: f64 = 1.960;

impl Estimate {
    /// Estimates repeated values. A value that is not positive has no logarithm: then the value is
    /// zero, without interval.
    pub fn of(values: &[f64]) -> Self {
        if values.is_empty() || values.iter().any(|value| !(value.is_finite() && *value > 0.0)) {
            return Self { value: 0.0, interval: None };
        }
        let logarithms: Vec<f64> = values.iter().map(|value| value.ln()).collect();
        let count = logarithms.len() as f64;
        let mean = logarithms.iter().sum::<f64>() / count;
        let interval = (values.len() > 1).then(|| {
            let squares: f64 = logarithms.iter().map(|value| (value - mean).powi(2)).sum();
            let error = (squares / (count - 1.0) / count).sqrt();
            let half = STUDENT_T.get(values.len() - 2).copied().unwrap_or(NORMAL_Z) * error;
            [(mean - half).exp(), (mean + half).exp()]
        });
        Self { value: mean.exp(), interval }
    }

    /// Estimates the ratio of two values from the same rounds.
    pub fn of_ratio(ours: &[f64], first: &[f64]) -> Self {
        let ratios: Vec<f64> = ours.iter().zip(first).map(|(ours, first)| ours / first).collect();
        Self::of(&ratios)
    }

    /// Half of the interval, relative to the value.
    pub fn relative_half_width(&self) -> Option<f64> {
        let [low, high] = self.interval?;
        Some((high / low).ln() / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_run_has_a_value_and_no_interval() {
        assert_eq!(Estimate::of(&[1000.0]).interval, None);
        assert!((Estimate::of(&[1000.0]).value - 1000.0).abs() < 1e-6);
        assert_eq!(Estimate::of(&[]), Estimate { value: 0.0, interval: None });
        assert_eq!(Estimate::of(&[5.0, 0.0]).interval, None);
    }

    #[test]
    fn the_interval_is_students() {
        // Logarithms 0, 1, 2: mean 1, deviation 1, error 1/√3, t of two degrees 4.303.
        let values = [1.0, std::f64::consts::E, std::f64::consts::E.powi(2)];
        let estimate = Estimate::of(&values);
        let [low, high] = estimate.interval.expect("three runs");
        let half = 4.303 / 3.0_f64.sqrt();
        assert!((estimate.value.ln() - 1.0).abs() < 1e-9);
        assert!((low.ln() - (1.0 - half)).abs() < 1e-9 && (high.ln() - (1.0 + half)).abs() < 1e-9);
        assert!((estimate.relative_half_width().expect("three runs") - half).abs() < 1e-9);
    }

    #[test]
    fn a_ratio_is_taken_round_by_round() {
        // The machine slows down from round to round; the ratio stays.
        let estimate = Estimate::of_ratio(&[300.0, 150.0, 75.0], &[200.0, 100.0, 50.0]);
        let [low, high] = estimate.interval.expect("three rounds");
        assert!((estimate.value - 1.5).abs() < 1e-9 && (high - low).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn an_interval_holds_its_value(values in prop::collection::vec(1e-3..1e9_f64, 2..40)) {
            let estimate = Estimate::of(&values);
            let [low, high] = estimate.interval.expect("two and more");
            prop_assert!(low <= estimate.value * (1.0 + 1e-9) && estimate.value <= high * (1.0 + 1e-9));
            let (least, most) = values.iter().fold((f64::MAX, 0.0_f64), |(l, m), v| (l.min(*v), m.max(*v)));
            prop_assert!(estimate.value >= least * 0.999 && estimate.value <= most * 1.001);
        }
    }
}
