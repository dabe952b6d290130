//! Charts of latency: by percentile, as histograms, and over depth.
//!
//! Percentiles use a scale in nines. A percentile is shown only if at least ten requests are beyond
//! it.

use super::{
    FEW, Measured, ReportRoute, Unit, Values, by_label, chosen, course, describe_peaks, in_unit, over_depth,
    reach,
};
use report::{Axis, Bars, Cell, Figure, Group, Lines, Picture, Point, Section, Series, Shape, Table};

/// A latency distribution: values in microseconds with their counts, ascending.
#[derive(Clone, Debug, Default)]
pub struct Latency {
    counted: Vec<(f64, u64)>,
    requests: u64,
}

/// Requests that must be beyond a percentile.
const BEYOND: f64 = 10.0;

/// Points of curves and histograms.
const POINTS: usize = 60;
const BINS: usize = 48;

/// Reduces points for many routes, so that the page stays small.
fn fineness(of: usize, ways: usize) -> usize {
    if ways <= FEW { of } else { of / 2 }
}

impl Latency {
    /// Builds a distribution from values in microseconds with counts.
    pub fn of(values: impl IntoIterator<Item = (f64, u64)>) -> Self {
        let mut counted: Vec<(f64, u64)> =
            values.into_iter().filter(|(us, count)| us.is_finite() && *count > 0).collect();
        counted.sort_by(|one, other| one.0.total_cmp(&other.0));
        let requests = counted.iter().map(|(_, count)| count).sum();
        Self { counted, requests }
    }

    /// The mean in microseconds.
    pub fn mean_us(&self) -> f64 {
        self.counted.iter().map(|(us, count)| us * *count as f64).sum::<f64>() / self.requests.max(1) as f64
    }

    /// Returns a percentile.
    pub fn at(&self, share: f64) -> Option<f64> {
        let rank = (self.requests as f64 * share).ceil().max(1.0) as u64;
        let mut passed = 0;
        let found = self.counted.iter().find(|(_, count)| {
            passed += count;
            passed >= rank
        });
        found.or(self.counted.last()).map(|(us, _)| *us)
    }

    /// Returns a percentile if at least one request is beyond it: of a hundred requests, 99.9 %
    /// would equal the maximum.
    pub fn known(&self, share: f64) -> Option<f64> {
        let beyond = self.requests as f64 * (1.0 - share);
        self.at(share).filter(|_| share >= 1.0 || beyond >= 0.999)
    }

    /// Whether there are enough requests for a percentile.
    fn knows(&self, share: f64) -> bool {
        self.requests as f64 * (1.0 - share) >= BEYOND
    }

    fn curve(&self, points: usize) -> Vec<Point> {
        let shares = (0..=points).map(|nth| 1.0 - 10_f64.powf(-4.0 * nth as f64 / points as f64));
        shares
            .filter(|share| self.knows(*share))
            .filter_map(|share| Some(Point::new(share, self.at(share)?)))
            .collect()
    }

    /// Percentages of requests in bins that begin at these values.
    fn steps(&self, bins: &[f64]) -> Vec<Point> {
        let mut counts = vec![0_u64; bins.len()];
        for (us, count) in &self.counted {
            let nth = bins.partition_point(|begin| begin <= us).saturating_sub(1);
            counts[nth] += count;
        }
        let percent = |count: u64| count as f64 * 100.0 / self.requests.max(1) as f64;
        bins.iter().zip(counts).map(|(begin, count)| Point::new(*begin, percent(count))).collect()
    }
}

/// Percentiles in the table.
const PERCENTILES: [(f64, &str); 5] =
    [(0.5, "p50"), (0.9, "p90"), (0.99, "p99"), (0.999, "p99.9"), (0.9999, "p99.99")];

/// Charts the latencies of a row, and some percentiles over depth.
pub fn latencies(ways: &[ReportRoute], all: &[Measured], row: &Measured) -> Section {
    let mut section = Section::new("Latency");
    let known: Vec<(&ReportRoute, &Latency)> = ways
        .iter()
        .zip(&row.of)
        .filter_map(|(way, values)| Some((way, &values.as_ref()?.latency)))
        .filter(|(_, latency)| latency.requests > 0)
        .collect();
    if known.is_empty() {
        return section;
    }
    let title = format!("{}, QD{}", row.job.label, row.job.depth);
    let of = |shape: &dyn Fn(&Latency) -> Vec<Point>| {
        known
            .iter()
            .map(|(way, latency)| Series::new(&way.name, way.look, shape(latency)))
            .collect::<Vec<_>>()
    };
    let curves = Lines::new(
        Axis::nines("percentile"),
        Axis::log("latency, µs"),
        of(&|latency| latency.curve(fineness(POINTS, ways.len()))),
    );
    let (curves, unit) = in_unit(curves);
    let half = known.iter().filter_map(|(way, latency)| {
        let median = report::mean(unit.value(latency.at(0.5)?));
        Some(format!("{} {median} {}", way.name, unit.sign()))
    });
    let text = format!("Median latency: {}.", half.collect::<Vec<_>>().join(", "));
    let figure = Figure::new(
        format!("Latency percentiles: {title}"),
        text,
        Picture::Lines(curves.shaped(Shape::Curve)),
    );
    section = section.figure(figure.table(table(&known, unit)));
    let bins = bins(&known, fineness(BINS, ways.len()));
    let unit = Unit::of(bins.iter().copied());
    let step = |latency: &Latency| {
        let steps = latency.steps(&bins).into_iter();
        steps.map(|point| Point { x: unit.value(point.x), ..point }).collect()
    };
    let shares = Axis::linear("% of requests").counted_in("%");
    let hills = Lines::new(Axis::log(unit.name("latency")), shares, of(&step));
    let text = format!(
        "Latency histogram with at most 20 bins per doubling. {}",
        describe_peaks(&hills, unit.sign())
    );
    let figure =
        Figure::new(format!("Distribution: {title}"), text, Picture::Lines(hills.shaped(Shape::Steps)));
    section = section.figure(figure);
    if let Some((bars, table, unit)) = each_job(ways, all) {
        let text = format!(
            "Median latency of each job; the table has other percentiles. {}",
            reach(&bars, unit.sign())
        );
        section = section.figure(Figure::new("Latency of each job", text, Picture::Bars(bars)).table(table));
    }
    by_depth(ways, all, section)
}

/// Adds latency over queue depth, of the first kind of job that ran at several depths.
fn by_depth(ways: &[ReportRoute], all: &[Measured], mut section: Section) -> Section {
    let Some((label, rows)) = by_label(all).into_iter().find(|(_, rows)| rows.len() > 1) else {
        return section;
    };
    for (share, name) in [(0.5, "Median"), (0.99, "99th percentile")] {
        let value =
            |values: &Values| Some((Some(&values.latency).filter(|of| of.knows(share))?.at(share)?, None));
        let lines = over_depth(ways, rows, Axis::linear("latency, µs"), value);
        if !lines.series.is_empty() {
            let (lines, unit) = in_unit(lines);
            let text = course(&lines, unit.sign());
            section = section.figure(Figure::new(format!("{name}: {label}"), text, Picture::Lines(lines)));
        }
    }
    section
}

/// Medians of all kinds of jobs, if there are several, each at its detailed depth.
fn each_job(ways: &[ReportRoute], all: &[Measured]) -> Option<(Bars, Table, Unit)> {
    let rows: Vec<&Measured> = by_label(all).into_iter().filter_map(|(_, rows)| chosen(rows)).collect();
    if rows.len() < 2 {
        return None;
    }
    let label = |row: &Measured| format!("{}, QD{}", row.job.label, row.job.depth);
    let latency = |values: &Option<Values>| {
        values.as_ref().map(|values| values.latency.clone()).filter(|latency| latency.requests > 0)
    };
    let known: Vec<(&Measured, Vec<Option<Latency>>)> =
        rows.into_iter().map(|row| (row, row.of.iter().map(latency).collect())).collect();
    let medians = known.iter().flat_map(|(_, of)| of.iter().flatten()).filter_map(|latency| latency.at(0.5));
    let unit = Unit::of(medians);
    let mut table = head(["job", ""], unit);
    let mut groups = Vec::new();
    for (row, known) in known {
        for (way, latency) in ways.iter().zip(&known) {
            let Some(latency) = latency else { continue };
            table = table.row(
                [Cell::Text(label(row)), Cell::text(&way.name)].into_iter().chain(values(latency, unit)),
            );
        }
        let medians = known.iter().map(|latency| Some(unit.value(latency.as_ref()?.at(0.5)?)));
        groups.push(Group { label: label(row), values: medians.collect() });
    }
    let bars = Bars {
        across: String::new(),
        value: Axis::linear(unit.name("median latency")),
        series: ways.iter().map(|way| (way.name.clone(), way.look)).collect(),
        groups,
        is_stacked: false,
    };
    Some((bars, table, unit))
}

/// Creates a table of latencies with these first columns.
fn head<const N: usize>(names: [&str; N], unit: Unit) -> Table {
    let means = [unit.name("mean")].into_iter().chain(PERCENTILES.map(|(_, name)| unit.name(name)));
    let ends = [unit.name("max"), "requests".to_owned()];
    Table::new(names.map(String::from).into_iter().chain(means).chain(ends))
}

/// The cells after the first columns.
fn values(latency: &Latency, unit: Unit) -> impl Iterator<Item = Cell> {
    let cell = move |us: Option<f64>| us.map_or(Cell::Empty, |us| Cell::Mean(unit.value(us)));
    let shares = PERCENTILES.map(|(share, _)| cell(latency.at(share).filter(|_| latency.knows(share))));
    let ends = [cell(latency.counted.last().map(|(us, _)| *us)), Cell::Number(latency.requests as f64)];
    [cell(Some(latency.mean_us()))].into_iter().chain(shares).chain(ends)
}

fn table(known: &[(&ReportRoute, &Latency)], unit: Unit) -> Table {
    known.iter().fold(head([""], unit), |table, (way, latency)| {
        table.row([Cell::text(&way.name)].into_iter().chain(values(latency, unit)))
    })
}

/// Bin starts: logarithmic over the measured range, without the slowest one in ten thousand.
fn bins(known: &[(&ReportRoute, &Latency)], count: usize) -> Vec<f64> {
    let least = known.iter().filter_map(|(_, of)| of.at(0.0)).fold(f64::INFINITY, f64::min).max(0.001);
    let most = known.iter().filter_map(|(_, of)| of.at(0.9995)).fold(least, f64::max) * 1.05;
    // At least a twentieth of a doubling: a constant value would be a spike.
    let factor = (most / least).powf(1.0 / (count - 4) as f64).max(2_f64.powf(0.05));
    (0..count)
        .map(|nth| least * factor.powi(nth as i32 - 2))
        .take_while(|begin| *begin < most * factor * factor)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use workload::Estimate;
    use workload::{AccessSpec, Job};

    #[test]
    fn percentiles_match_the_requests() {
        let latency = Latency::of((1..=1000).map(|us| (f64::from(us), 1)));
        assert_eq!(
            [0.0, 0.5, 0.99, 1.0].map(|share| latency.at(share)),
            [1.0, 500.0, 990.0, 1000.0].map(Some)
        );
        assert!((latency.mean_us() - 500.5).abs() < 1e-9);
    }

    #[test]
    fn percentiles_need_enough_requests() {
        let latency = Latency::of([(100.0, 1000)]);
        assert_eq!((latency.knows(0.99), latency.knows(0.999)), (true, false));
        assert!(latency.curve(POINTS).iter().all(|point| point.x <= 0.99));
    }

    #[test]
    fn each_job_is_shown_at_its_detailed_depth() {
        let estimate = Estimate { value: 1.0, interval: None };
        let values = |us: f64| Values {
            iops: estimate,
            mb_per_s: estimate,
            latency: Latency::of([(us, 100)]),
            watts: None,
            joules_per_gb: None,
        };
        let row = |label: &str, depth, us: [Option<f64>; 2]| Measured {
            job: Job { label: label.into(), ..Job::of(AccessSpec::all(4096, 100, 100), depth) },
            of: us.map(|us| us.map(values)).to_vec(),
        };
        let ways =
            ["bot", "uas"].map(|name| ReportRoute { name: name.into(), look: report::Look::default() });
        let read = [1, 8, 32].map(|depth| row("read", depth, [Some(100.0), Some(f64::from(depth))]));
        assert_eq!(each_job(&ways, &read), None);
        let all = [&read[..], &[row("write", 1, [Some(7.0), None])]].concat();
        let (bars, table, _) = each_job(&ways, &all).expect("two jobs");
        assert_eq!(table.rows.len(), 3);
        let groups = bars.groups.iter().map(|group| (group.label.as_str(), group.values.clone()));
        let wanted = [("read, QD8", vec![Some(100.0), Some(8.0)]), ("write, QD1", vec![Some(7.0), None])];
        assert_eq!(groups.collect::<Vec<_>>(), wanted);
    }

    #[test]
    fn histograms_include_all_requests() {
        let latency = Latency::of((1..=300).map(|us| (f64::from(us), 3)));
        let way = ReportRoute { name: "uas".into(), look: report::Look::default() };
        let bins = bins(&[(&way, &latency)], BINS);
        let sum: f64 = latency.steps(&bins).iter().map(|point| point.y).sum();
        assert!((sum - 100.0).abs() < 1e-6 && bins.len() <= BINS, "{sum}");
    }
}
