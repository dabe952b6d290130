//! The unit of latencies in a chart: microseconds, or milliseconds from ten of them on.
//!
//! One per chart: its axis, table and tooltips agree.

use report::{Lines, Series};

/// A unit of latencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Microseconds.
    Us,
    /// Milliseconds.
    Ms,
}

/// Microseconds from which on milliseconds are used.
const MS_FROM_US: f64 = 10_000.0;

impl Unit {
    /// Chooses the unit for values in microseconds.
    pub fn of(us: impl IntoIterator<Item = f64>) -> Self {
        if us.into_iter().any(|us| us.is_finite() && us >= MS_FROM_US) { Self::Ms } else { Self::Us }
    }

    /// Returns the symbol.
    pub const fn sign(self) -> &'static str {
        match self {
            Self::Us => "µs",
            Self::Ms => "ms",
        }
    }

    /// Converts a value in microseconds.
    pub fn value(self, us: f64) -> f64 {
        match self {
            Self::Us => us,
            Self::Ms => us / 1000.0,
        }
    }

    /// Appends the unit to a name: `latency, ms`.
    pub fn name(self, what: &str) -> String {
        format!("{what}, {}", self.sign())
    }
}

/// Converts lines whose vertical axis is latency in microseconds.
pub fn in_unit(mut lines: Lines) -> (Lines, Unit) {
    let unit = Unit::of(lines.series.iter().flat_map(|series| &series.points).map(|point| point.y));
    for Series { points, .. } in &mut lines.series {
        for point in points {
            point.y = unit.value(point.y);
            point.interval = point.interval.map(|ends| ends.map(|end| unit.value(end)));
        }
    }
    lines.y.name = unit.name("latency");
    (lines, unit)
}

/// Converts lines if their unit is microseconds.
pub fn in_easier(lines: Lines, unit: &str) -> (Lines, &str) {
    if unit != Unit::Us.sign() {
        return (lines, unit);
    }
    let (lines, unit) = in_unit(lines);
    (lines, unit.sign())
}

#[cfg(test)]
mod tests {
    use super::*;
    use report::{Axis, Point};

    #[test]
    fn ten_milliseconds_make_a_chart_one_of_milliseconds() {
        let lines = |us: f64| {
            let points = vec![Point::new(1.0, 144.0).within([100.0, 200.0]), Point::new(2.0, us)];
            Lines::new(Axis::log("x"), Axis::linear("latency, µs"), vec![Series::new("bot", 1, points)])
        };
        let (short, unit) = in_unit(lines(9_999.0));
        assert_eq!(
            (short.y.name.as_str(), unit, short.series[0].points[1].y),
            ("latency, µs", Unit::Us, 9_999.0)
        );
        let (long, unit) = in_unit(lines(27_500.0));
        let first = long.series[0].points[0];
        assert_eq!((long.y.name.as_str(), unit, long.series[0].points[1].y), ("latency, ms", Unit::Ms, 27.5));
        assert_eq!((first.y, first.interval), (0.144, Some([0.1, 0.2])));
    }
}
