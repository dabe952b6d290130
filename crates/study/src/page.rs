//! Charts of a report page for results of any drive and transport, simulated or real.
//!
//! Commands convert their results to [`ReportRoute`]s and [`Measured`]; charts of throughput,
//! latency and energy are built from those. Left out: charts specific to one command.

mod latency;
mod summary;
mod throughput;
mod unit;

pub use latency::{Latency, latencies};
pub use summary::{course, describe_peaks, reach};
pub use throughput::{by_block, by_depth, single};
pub use unit::{Unit, in_easier, in_unit};

use report::{Axis, Fact, Figure, Lines, Look, Picture, Point, Section, Series};
use std::collections::BTreeSet;
use workload::{Estimate, Job};

/// Routes for which a page has detailed charts: separate ones for bytes and I/Os, and fine curves.
const FEW: usize = 6;

/// A route to a drive: its name and its look in every chart.
#[derive(Clone, Debug)]
pub struct ReportRoute {
    /// Name in legends and tables.
    pub name: String,
    /// Colour and mark, the same in every chart.
    pub look: Look,
}

/// Results of a job on each route.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The job that ran.
    pub job: Job,
    /// One per route; none without figures.
    pub of: Vec<Option<Values>>,
}

/// The figures of a job on a route.
#[derive(Clone, Debug)]
pub struct Values {
    /// Requests per second.
    pub iops: Estimate,
    /// 10⁶ bytes per second.
    pub mb_per_s: Estimate,
    /// Latencies of single requests.
    pub latency: Latency,
    /// Of the whole machine.
    pub watts: Option<f64>,
    /// Energy of the whole machine per 10⁹ bytes.
    pub joules_per_gb: Option<f64>,
}

/// The colour of a transport, the same on every page; others continue from `nth`.
pub fn hue(transport: &str, nth: usize) -> u8 {
    match transport {
        "uas" => 0,
        "bot" => 1,
        "turbo" => 2,
        "sata" | "kernel" => 5,
        _ => [3, 4, 6, 7][nth % 4],
    }
}

/// Assigns distinct colours while there are enough, then repeats colours with other marks.
pub fn ways<'a>(all: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<ReportRoute> {
    let mut ways: Vec<ReportRoute> = Vec::new();
    for (nth, (name, transport)) in all.enumerate() {
        let wanted = [hue(transport, nth), 3, 4, 6, 7, 2, 5];
        let is_free = |look: &Look| ways.iter().all(|way| way.look != *look);
        let mut looks = (0..=u8::MAX).flat_map(|round| wanted.map(|hue| Look { hue, round }));
        let look = looks.find(is_free).unwrap_or_default();
        ways.push(ReportRoute { name: name.into(), look });
    }
    ways
}

/// Groups consecutive rows with one label.
pub fn by_label(all: &[Measured]) -> Vec<(&str, &[Measured])> {
    let chunks = all.chunk_by(|one, next| one.job.label == next.job.label);
    chunks.filter_map(|chunk| Some((chunk.first()?.job.label.as_str(), chunk))).collect()
}

/// Removes duplicates, keeping the first of each.
pub fn each_once<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut each = Vec::new();
    for one in all {
        if !each.contains(&one) {
            each.push(one);
        }
    }
    each
}

/// The depth of the detailed charts: several requests in flight, but without much queueing.
pub fn featured_depth(depths: impl Iterator<Item = u16> + Clone) -> Option<u16> {
    depths.clone().filter(|depth| *depth <= 8).max().or_else(|| depths.min())
}

/// The row of the detailed charts, of the first kind of job.
pub fn chosen(all: &[Measured]) -> Option<&Measured> {
    let (_, rows) = *by_label(all).first()?;
    let depth = featured_depth(rows.iter().map(|row| row.job.depth))?;
    rows.iter().find(|row| row.job.depth == depth)
}

/// The horizontal axis of depths.
pub fn depth_axis(depths: impl Iterator<Item = u16>) -> Axis {
    let depths: BTreeSet<u16> = depths.collect();
    let labels = depths.into_iter().map(|depth| (f64::from(depth), depth.to_string()));
    Axis::log("queue depth").labelled(labels)
}

/// Charts a value of each route over depth.
pub fn over_depth(
    ways: &[ReportRoute],
    rows: &[Measured],
    y: Axis,
    value: impl Fn(&Values) -> Option<(f64, Option<[f64; 2]>)>,
) -> Lines {
    let x = depth_axis(rows.iter().map(|row| row.job.depth));
    let of = |(nth, way): (usize, &ReportRoute)| {
        let point = |row: &Measured| {
            let (y, interval) = value(row.of.get(nth)?.as_ref()?)?;
            Some(Point { x: f64::from(row.job.depth), y, interval })
        };
        let mut points: Vec<Point> = rows.iter().filter_map(point).collect();
        points.sort_by(|one, other| one.x.total_cmp(&other.x));
        Series::new(&way.name, way.look, points)
    };
    let series = ways.iter().enumerate().map(of).filter(|series| !series.points.is_empty());
    Lines::new(x, y, series.collect())
}

/// Charts of energy, where known.
pub fn energy(ways: &[ReportRoute], all: &[Measured]) -> Section {
    let mut section = Section::new("Power and energy");
    let Some((label, rows)) = by_label(all).into_iter().find(|(_, rows)| rows.len() > 1) else {
        return section;
    };
    let per_gb = over_depth(ways, rows, Axis::linear("J/GB"), |values| Some((values.joules_per_gb?, None)));
    let watts = over_depth(ways, rows, Axis::linear("W"), |values| Some((values.watts?, None)));
    for (what, unit, lines) in [("Energy per 10⁹ bytes", "J/GB", per_gb), ("Mean power", "W", watts)] {
        if !lines.series.is_empty() {
            let text = course(&lines, unit);
            section = section.figure(Figure::new(format!("{what}: {label}"), text, Picture::Lines(lines)));
        }
    }
    section
}

/// Formats seconds since 1970: `2026-01-31 09:05 UTC`.
pub fn date(unix_s: u64) -> String {
    let (minutes, mut days) = (unix_s / 60 % 1440, unix_s / 86_400);
    let is_leap = |year: u64| year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    // Four centuries have a constant length, so the loop over years is short.
    let mut year = 1970 + days / 146_097 * 400;
    days %= 146_097;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while days >= lengths[month] {
        days -= lengths[month];
        month += 1;
    }
    let month = month + 1;
    format!("{year}-{month:02}-{:02} {:02}:{:02} UTC", days + 1, minutes / 60, minutes % 60)
}

/// The program version, as a fact.
pub fn version() -> Fact {
    Fact::pair("uaskit", env!("CARGO_PKG_VERSION"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transports_keep_distinct_colours() {
        let all = [("uasp", "uas"), ("bot", "bot"), ("uas-linux", "uas"), ("sata", "sata")];
        let hues: Vec<u8> = ways(all.into_iter()).iter().map(|way| way.look.hue).collect();
        assert_eq!(hues, [0, 1, 3, 5]);
    }

    #[test]
    fn two_dozen_routes_have_distinct_looks() {
        let names: Vec<String> = (0..24).map(|nth| format!("way {nth}")).collect();
        let all =
            names.iter().enumerate().map(|(nth, name)| (name.as_str(), ["bot", "uas", "turbo"][nth % 3]));
        let looks: Vec<Look> = ways(all).into_iter().map(|way| way.look).collect();
        assert!(looks.iter().enumerate().all(|(nth, look)| !looks[..nth].contains(look)), "{looks:?}");
        assert!(looks.iter().all(|look| look.round < 4), "{looks:?}");
        assert_eq!(looks[..3], [1, 0, 2].map(Look::from));
    }

    #[test]
    fn timestamps_are_formatted() {
        let all =
            [(0, "1970-01-01 00:00"), (951_782_399, "2000-02-28 23:59"), (951_868_799, "2000-02-29 23:59")];
        let later = [
            (1_795_352_742, "2026-11-22 13:05"),
            (4_107_542_400, "2100-03-01 00:00"),
            (13_569_465_600, "2400-01-01 00:00"),
        ];
        for (unix_s, text) in all.into_iter().chain(later) {
            assert_eq!(date(unix_s), format!("{text} UTC"));
        }
    }
}
