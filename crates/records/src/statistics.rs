//! Student's t: how far a mean may be off, at any confidence.
//!
//! For whole degrees of freedom the distribution is a finite sum (Abramowitz and Stegun, 26.7.3 and 26.7.4). Two means of different spread
//! are compared as Welch does it; his degrees of freedom are rounded down, which makes intervals wider, not narrower.

/// Degrees of freedom beyond which differences are invisible.
const DEGREES_MAX: f64 = 1000.0;

/// Mean of repeated values, with its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Mean {
    pub(crate) value: f64,
    /// Square of the standard error, and degrees of freedom; none for one value.
    pub(crate) spread: Option<(f64, f64)>,
}

impl Mean {
    /// Returns none without values.
    pub(crate) fn of(values: &[f64]) -> Option<Self> {
        let count = values.len() as f64;
        let value = (!values.is_empty()).then(|| values.iter().sum::<f64>() / count)?;
        let squares: f64 = values.iter().map(|one| (one - value).powi(2)).sum();
        let spread = (values.len() > 1).then(|| (squares / (count - 1.0) / count, count - 1.0));
        Some(Self { value, spread })
    }
}

/// Half of the interval of the difference of two means; none if one has no spread.
pub(crate) fn half_width(one: &Mean, other: &Mean, confidence: f64) -> Option<f64> {
    let ((one, of_one), (other, of_other)) = (one.spread?, other.spread?);
    let square = one + other;
    if square <= 0.0 {
        return Some(0.0);
    }
    let degrees = square.powi(2) / (one.powi(2) / of_one + other.powi(2) / of_other);
    Some(student_t(degrees.clamp(1.0, DEGREES_MAX) as u32, confidence) * square.sqrt())
}

/// The t between whose negative and positive this part of the distribution lies.
pub(crate) fn student_t(degrees: u32, confidence: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1e9);
    // Bisection; a hundred steps exceed the digits of a number.
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if within(degrees, middle) < confidence { low = middle } else { high = middle }
    }
    high
}

/// The part of the distribution between -t and t.
fn within(degrees: u32, t: f64) -> f64 {
    let angle = (t / f64::from(degrees).sqrt()).atan();
    let (sine, cosine) = angle.sin_cos();
    let is_odd = degrees % 2 == 1;
    // Each term is the one before it times (k - 1) / k and the square of the cosine.
    let (mut term, first) = if is_odd { (cosine, 3) } else { (1.0, 2) };
    let mut sum = if degrees == 1 { 0.0 } else { term };
    let mut k = first;
    while k + 2 <= degrees {
        term *= f64::from(k - 1) / f64::from(k) * cosine * cosine;
        sum += term;
        k += 2;
    }
    if is_odd { (angle + sine * sum) * std::f64::consts::FRAC_2_PI } else { sine * sum }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t_is_that_of_the_tables() {
        for (degrees, confidence, t) in [
            (1, 0.95, 12.706),
            (2, 0.95, 4.303),
            (3, 0.95, 3.182),
            (4, 0.99, 4.604),
            (5, 0.95, 2.571),
            (5, 0.999, 6.869),
            (10, 0.95, 2.228),
            (30, 0.95, 2.042),
            (120, 0.95, 1.980),
            (1000, 0.95, 1.962),
        ] {
            assert!((student_t(degrees, confidence) - t).abs() < 6e-4, "{degrees} {confidence}");
        }
    }

    #[test]
    fn a_difference_has_the_interval_of_welch() {
        // Variances 1 and 4 of three values each: square 5/3, degrees (5/3)² / ((1/3)²/2 + (4/3)²/2) = 2.94, so 2.
        let (one, other) = (Mean::of(&[1.0, 2.0, 3.0]).unwrap(), Mean::of(&[2.0, 4.0, 6.0]).unwrap());
        let half = half_width(&one, &other, 0.95).unwrap();
        assert!((half - 4.303 * (5.0_f64 / 3.0).sqrt()).abs() < 1e-3, "{half}");
    }

    #[test]
    fn one_value_has_no_spread() {
        let (one, two) = (Mean::of(&[1.0]).unwrap(), Mean::of(&[1.0, 2.0]).unwrap());
        assert_eq!(half_width(&one, &two, 0.95), None);
        assert_eq!(Mean::of(&[]), None);
    }
}
