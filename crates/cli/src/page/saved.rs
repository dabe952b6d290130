//! Parts that pages of saved runs share: the colours of transports, and latency percentiles.
//!
//! A transport has the colour that the run's own page gives it, since both count transports in the same order.

use super::{ReportRoute, in_unit, ways};
use records::{Figures, Run};
use report::{Axis, Lines, Look, Point, Series, Shape};

/// The transports of runs, each with its colour. A simulated run says what carries a column; of a measured one the name does.
pub(crate) fn saved_routes<'a>(runs: impl IntoIterator<Item = &'a Run>) -> Vec<ReportRoute> {
    let mut known: Vec<(&str, &str)> = Vec::new();
    for run in runs {
        for name in run.transports() {
            let carried = run.setup.facts.get(&format!("{name}, transport"));
            if !known.iter().any(|(other, _)| *other == name) {
                known.push((name, carried.map_or(name, String::as_str)));
            }
        }
    }
    ways(known.into_iter())
}

/// How a transport among these looks.
pub(crate) fn look(ways: &[ReportRoute], name: &str) -> Look {
    ways.iter().find(|way| way.name == name).map(|way| way.look).unwrap_or_default()
}

/// Latency percentiles: one curve for each run, with its look and whether it is dashed. A run without a recorded latency
/// distribution has no curve.
pub(crate) fn by_share<'a>(of: impl IntoIterator<Item = (String, Look, bool, &'a Figures)>) -> Lines {
    let curve = |(name, look, is_dashed, figures): (String, Look, bool, &Figures)| {
        let point = |[percent, us]: &[f64; 2]| Point::new(percent / 100.0, *us);
        let points: Vec<Point> =
            figures.percentiles_us.iter().map(point).filter(|point| point.x < 1.0).collect();
        Series { is_dashed, ..Series::new(name, look, points) }
    };
    let series = of.into_iter().map(curve).filter(|series| !series.points.is_empty());
    let lines = Lines::new(Axis::nines("percentile"), Axis::log("latency, µs"), series.collect());
    in_unit(lines.shaped(Shape::Curve)).0
}

#[cfg(test)]
mod tests {
    use super::*;
    use records::{ResultRow, RunKind, Setup};
    use std::collections::BTreeMap;

    fn run(transports: &[&str], facts: &[(&str, &str)]) -> Run {
        let row = |transport: &&str| ResultRow {
            transport: (*transport).into(),
            job: "j".into(),
            depth: 1,
            figures: Err("it was refused".into()),
        };
        let facts = facts.iter().map(|(name, fact)| ((*name).to_owned(), (*fact).to_owned()));
        Run {
            label: None,
            kind: RunKind::Simulated,
            began_unix_s: 0,
            version: "0".into(),
            command_line: Vec::new(),
            seed: 1,
            interrupted: false,
            setup: Setup { facts: facts.collect::<BTreeMap<_, _>>(), ..Setup::default() },
            results: transports.iter().map(row).collect(),
            notes: Vec::new(),
            record: "{}".into(),
        }
    }

    #[test]
    fn a_column_has_the_colour_of_what_carries_it() {
        let simulated =
            run(&["sata", "bot", "uasp"], &[("uasp, transport", "uas"), ("bot, transport", "bot")]);
        let ways = saved_routes([&simulated, &run(&["bot", "turbo"], &[])]);
        let hues = ["sata", "bot", "uasp", "turbo"].map(|name| look(&ways, name).hue);
        assert_eq!(hues, [5, 1, 0, 2]);
    }

    #[test]
    fn a_curve_ends_before_the_last_request_and_is_not_there_without_shares() {
        let known = Figures {
            percentiles_us: vec![[50.0, 80.0], [99.0, 120.0], [100.0, 400.0]],
            ..Figures::default()
        };
        let unknown = Figures::default();
        let lines =
            by_share([("uas".into(), 0.into(), false, &known), ("bot".into(), 1.into(), true, &unknown)]);
        assert_eq!(lines.series.len(), 1);
        assert_eq!(lines.series[0].points, [Point::new(0.5, 80.0), Point::new(0.99, 120.0)]);
    }
}
