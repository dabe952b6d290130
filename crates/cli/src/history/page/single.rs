//! One run: its rates and latencies over depth, a line for each transport, or beside each other where a job has one depth.

use crate::page::{
    ReportRoute, by_share, course, depth_axis, each_once, featured_depth, in_unit, reach, saved_routes,
};
use crate::sanitize::escape;
use records::{Figures, ResultRow, Run};
use report::{Axis, Bars, Cell, Figure, Group, Lines, Picture, Point, Section, Series, Table};
use workload::Estimate;

/// Jobs that have their own pictures, two each.
pub(super) const JOBS_MAX: usize = 30;

pub(super) fn sections(run: &Run) -> Vec<Section> {
    let ways = saved_routes([run]);
    let jobs: Vec<&str> =
        each_once(run.results.iter().map(|row| row.job.as_str())).into_iter().take(JOBS_MAX).collect();
    let mut throughput = Section::new("Throughput by queue depth");
    let mut latency = Section::new("Latency");
    let mut alone = Vec::new();
    for job in jobs {
        let of_job = rows(run, job);
        let Some(first) = of_job.first() else { continue };
        if of_job.iter().all(|row| row.depth == first.depth) {
            alone.push(of_job);
            continue;
        }
        let lines = over_depth(&of_job, &ways, Axis::linear("MB/s"), &|figures| Some(rate(figures)));
        let text = course(&lines, "MB/s");
        let figure = Figure::new(format!("{}: MB/s", escape(job)), text, Picture::Lines(lines));
        throughput = throughput.figure(figure.table(table(&of_job)));
        let p99 = |figures: &Figures| Some(Estimate { value: figures.p99_us?, interval: None });
        let (lines, unit) = in_unit(over_depth(&of_job, &ways, Axis::linear("latency, µs"), &p99));
        if !lines.series.is_empty() {
            let text = course(&lines, unit.sign());
            latency = latency.figure(Figure::new(
                format!("99th percentile: {}", escape(job)),
                text,
                Picture::Lines(lines),
            ));
        }
        latency = by_share_of(&of_job, &ways).into_iter().fold(latency, Section::figure);
    }
    let mut single = Section::new("Jobs with one queue depth");
    if !alone.is_empty() {
        single = single.figure(bars(&alone, &ways));
        for of_job in &alone {
            latency = by_share_of(of_job, &ways).into_iter().fold(latency, Section::figure);
        }
    }
    vec![throughput, single, latency]
}

/// Rows of a job that have figures.
fn rows<'a>(run: &'a Run, job: &str) -> Vec<&'a ResultRow> {
    run.results.iter().filter(|row| row.job == job && row.figures.is_ok()).collect()
}

fn over_depth(
    of_job: &[&ResultRow],
    ways: &[ReportRoute],
    y: Axis,
    value: &dyn Fn(&Figures) -> Option<Estimate>,
) -> Lines {
    let x = depth_axis(of_job.iter().map(|row| row.depth));
    let series = ways.iter().map(|way| {
        let point = |row: &&&ResultRow| {
            let Estimate { value: y, interval } = value(row.figures.as_ref().ok()?)?;
            Some(Point { x: f64::from(row.depth), y, interval })
        };
        let of_way = of_job.iter().filter(|row| row.transport == way.name);
        let mut points: Vec<Point> = of_way.filter_map(|row| point(&row)).collect();
        points.sort_by(|one, other| one.x.total_cmp(&other.x));
        Series::new(&way.name, way.look, points)
    });
    Lines::new(x, y, series.filter(|series| !series.points.is_empty()).collect())
}

/// Latency percentiles at the depth that the page details; `None` where the run has none.
fn by_share_of(of_job: &[&ResultRow], ways: &[ReportRoute]) -> Option<Figure> {
    let depth = featured_depth(of_job.iter().map(|row| row.depth))?;
    let at_depth = ways.iter().filter_map(|way| {
        let row = of_job.iter().find(|row| row.transport == way.name && row.depth == depth)?;
        Some((way.name.clone(), way.look, false, row.figures.as_ref().ok()?))
    });
    let curves = by_share(at_depth);
    let title = format!("Latency percentiles: {}, QD{depth}", escape(&of_job.first()?.job));
    let text = "Latency by percentile of the requests.";
    (!curves.series.is_empty()).then(|| Figure::new(title, text, Picture::Lines(curves)))
}

/// Jobs of one depth each.
fn bars(jobs: &[Vec<&ResultRow>], ways: &[ReportRoute]) -> Figure {
    let group = |of_job: &&Vec<&ResultRow>| {
        let first = of_job.first()?;
        let of = |way: &ReportRoute| {
            let row = of_job.iter().find(|row| row.transport == way.name)?;
            Some(row.figures.as_ref().ok()?.mb_per_s)
        };
        let label = format!("{}, QD{}", escape(&first.job), first.depth);
        Some(Group { label, values: ways.iter().map(of).collect() })
    };
    let bars = Bars {
        across: String::new(),
        value: Axis::linear("MB/s"),
        series: ways.iter().map(|way| (way.name.clone(), way.look)).collect(),
        groups: jobs.iter().filter_map(|of_job| group(&of_job)).collect(),
        is_stacked: false,
    };
    let all: Vec<&ResultRow> = jobs.iter().flatten().copied().collect();
    let text = format!("10⁶ bytes per second at the only queue depth of each job: {}", reach(&bars, "MB/s"));
    Figure::new("MB/s of jobs with one queue depth", text, Picture::Bars(bars)).table(table(&all))
}

/// Builds a table of rates, with a row for each depth and transport.
fn table(rows: &[&ResultRow]) -> Table {
    let head = ["job", "transport", "depth", "MB/s", "IOPS", "from", "to", "99th percentile, µs"];
    rows.iter().fold(Table::new(head), |table, row| {
        let Ok(figures) = &row.figures else { return table };
        let ends = figures.iops_interval.map_or([None; 2], |ends| ends.map(Some));
        let values = [Some(figures.mb_per_s), Some(figures.iops), ends[0], ends[1], figures.p99_us];
        let names =
            [Cell::text(escape(&row.job)), Cell::text(&row.transport), Cell::Number(f64::from(row.depth))];
        table.row(names.into_iter().chain(values.map(|value| value.map_or(Cell::Empty, Cell::Mean))))
    })
}

/// Millions of bytes in a second, with their interval.
pub(super) fn rate(figures: &Figures) -> Estimate {
    // Bytes for an I/O are the same in all rounds.
    let scale = figures.mb_per_s / figures.iops;
    let interval = figures.iops_interval.filter(|_| scale.is_finite());
    Estimate { value: figures.mb_per_s, interval: interval.map(|ends| ends.map(|end| end * scale)) }
}
