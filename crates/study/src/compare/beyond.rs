//! Findings about latency and energy.
//!
//! Each is about the job of the detailed charts and names the best and the worst route. Always
//! true: a sentence has its figures.

use crate::page::{Measured, ReportRoute, Unit, Values};
use report::mean;

/// Findings on latency and energy of a job.
pub(super) fn findings(ways: &[ReportRoute], row: &Measured) -> Vec<String> {
    let job = format!("{} at QD{}", row.job.label, row.job.depth);
    let of = |value: &dyn Fn(&Values) -> Option<f64>| {
        let known = ways
            .iter()
            .zip(&row.of)
            .filter_map(|(way, values)| Some((way.name.as_str(), value(values.as_ref()?)?)));
        let mut known: Vec<(&str, f64)> = known.filter(|(_, value)| value.is_finite()).collect();
        known.sort_by(|one, other| one.1.total_cmp(&other.1));
        known
    };
    let medians = of(&|values| values.latency.at(0.5));
    let unit = Unit::of(medians.iter().map(|(_, us)| *us));
    let waits = ends(&medians, |us| format!("{} {}", mean(unit.value(us)), unit.sign()));
    let draws = ends(&of(&|values| values.joules_per_gb), |joules| format!("{} J", mean(joules)));
    let lines = [
        waits.map(|waits| format!("{job}: the median latency is {waits}")),
        draws.map(|draws| format!("{job}: the whole machine uses {draws} per 10⁹ bytes")),
    ];
    lines.into_iter().flatten().collect()
}

/// The least and the greatest with their routes; none for a single route.
fn ends(sorted: &[(&str, f64)], format_value: impl Fn(f64) -> String) -> Option<String> {
    let [(least, low), .., (most, high)] = sorted else { return None };
    Some(format!("{} over {least} and {} over {most}", format_value(*low), format_value(*high)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_are_named() {
        let microseconds = |value: f64| format!("{value} µs");
        let sorted = [("uasp", 12.0), ("turbo", 30.0), ("bot", 43.5)];
        assert_eq!(ends(&sorted, microseconds).as_deref(), Some("12 µs over uasp and 43.5 µs over bot"));
        assert_eq!(ends(&sorted[..1], microseconds), None);
    }
}
