//! Charts of throughput: over depth, by block size, and for jobs with one depth.

use super::{FEW, Measured, ReportRoute, Unit, Values, by_label, course, over_depth, reach};
use report::{Axis, Bars, Cell, Figure, Group, Picture, Section, Table};
use std::collections::BTreeMap;
use workload::Estimate;
use workload::{AccessSpec, Job, short_bytes};

/// Bytes and I/Os of each kind of job with several depths, side by side; for many routes on one
/// axis if all blocks are alike.
pub fn by_depth(ways: &[ReportRoute], all: &[Measured], intervals: &str) -> Section {
    let mut section = Section::new("Throughput by queue depth").lead(intervals);
    for (label, rows) in by_label(all).into_iter().filter(|(_, rows)| rows.len() > 1) {
        let of = |values: &Values| Some((values.mb_per_s.value, values.mb_per_s.interval));
        let mut megabytes = over_depth(ways, rows, Axis::linear("MB/s"), of);
        if let Some(bytes) = one_size(rows).filter(|_| ways.len() > FEW) {
            megabytes.y = megabytes.y.also_in("IOPS", 1e6 / f64::from(bytes));
            let title = format!("{label}: MB/s and IOPS");
            section = section.figure(figure(title, megabytes, "MB/s", table(ways, rows)));
            continue;
        }
        let of = |values: &Values| Some((values.iops.value, values.iops.interval));
        let ios = over_depth(ways, rows, Axis::linear("IOPS"), of);
        for (lines, unit) in [(megabytes, "MB/s"), (ios, "IOPS")] {
            section = section.figure(figure(format!("{label}: {unit}"), lines, unit, table(ways, rows)));
        }
    }
    section
}

/// The length of all requests, if they are alike.
fn one_size(rows: &[Measured]) -> Option<u32> {
    let mut all = rows.iter().flat_map(|row| &row.job.specs).map(|share| share.bytes);
    let first = all.next()?;
    all.all(|bytes| bytes == first).then_some(first)
}

fn figure(title: String, lines: report::Lines, unit: &str, table: Table) -> Figure {
    let text = course(&lines, unit);
    Figure::new(title, text, Picture::Lines(lines)).table(table)
}

/// A table of all rates, a row per depth and route.
fn table(ways: &[ReportRoute], rows: &[Measured]) -> Table {
    let means = rows.iter().flat_map(|row| row.of.iter().flatten()).map(|values| values.latency.mean_us());
    let unit = Unit::of(means);
    let head = ["", "depth", "MB/s", "from", "to", "IOPS", "from", "to"].map(String::from);
    let mut table = Table::new(head.into_iter().chain([unit.name("mean latency")]));
    for row in rows {
        for (way, values) in ways.iter().zip(&row.of) {
            let Some(values) = values else { continue };
            let cells = |estimate: &Estimate| {
                let [low, high] = estimate.interval.map_or([None; 2], |ends| ends.map(Some));
                [Some(estimate.value), low, high].map(|value| value.map_or(Cell::Empty, Cell::Mean))
            };
            let names = [Cell::text(&way.name), Cell::Number(f64::from(row.job.depth))];
            let latency = Cell::Mean(unit.value(values.latency.mean_us()));
            let rates = cells(&values.mb_per_s).into_iter().chain(cells(&values.iops));
            table = table.row(names.into_iter().chain(rates).chain([latency]));
        }
    }
    table
}

/// Jobs with a single depth, side by side.
pub fn single(ways: &[ReportRoute], all: &[Measured]) -> Section {
    let section = Section::new("Jobs with one queue depth");
    let rows: Vec<&Measured> = by_label(all)
        .into_iter()
        .filter_map(|(_, rows)| if let [row] = rows { Some(row) } else { None })
        .collect();
    let is_block = |row: &&Measured| {
        block(&row.job).is_none_or(|of| blocks(all).get(&of.0).is_none_or(|rows| rows.len() < BLOCKS_LEAST))
    };
    let rows: Vec<&Measured> = rows.into_iter().filter(is_block).collect();
    if rows.is_empty() {
        return section;
    }
    let groups = rows.iter().map(|row| {
        let label = format!("{}, QD{}", row.job.label, row.job.depth);
        group(label, row)
    });
    let bars = bars(ways, "", groups.collect());
    let text =
        format!("MB/s (10⁶ bytes per second) at the only queue depth of each job: {}", reach(&bars, "MB/s"));
    section.figure(Figure::new("MB/s by job", text, Picture::Bars(bars)))
}

/// Minimum number of sizes in a series of blocks.
const BLOCKS_LEAST: usize = 3;

/// Read percentage, random percentage, depth.
type JobKind = (u8, u8, u16);

/// Kind and size of a job, if all of its requests are alike.
fn block(job: &Job) -> Option<(JobKind, u32)> {
    let [AccessSpec { bytes, read_percent, random_percent, .. }] = job.specs[..] else { return None };
    Some(((read_percent, random_percent, job.depth), bytes))
}

/// Groups jobs that differ only in request size.
fn blocks(all: &[Measured]) -> BTreeMap<JobKind, BTreeMap<u32, &Measured>> {
    let mut kinds: BTreeMap<JobKind, BTreeMap<u32, &Measured>> = BTreeMap::new();
    for row in all {
        if let Some((kind, bytes)) = block(&row.job) {
            kinds.entry(kind).or_default().insert(bytes, row);
        }
    }
    kinds
}

/// Bars by block size, as in ATTO.
pub fn by_block(ways: &[ReportRoute], all: &[Measured]) -> Section {
    let mut section = Section::new("Throughput by block size");
    for ((reads, random, depth), rows) in blocks(all).into_iter().rev() {
        if rows.len() < BLOCKS_LEAST {
            continue;
        }
        let share = AccessSpec::all(0, reads, random).to_string();
        let kind = share.trim_start_matches('0').trim();
        let groups: Vec<Group> =
            rows.iter().map(|(bytes, row)| group(short_bytes(u64::from(*bytes)), row)).collect();
        let bars = bars(ways, "block, bytes", groups);
        let most = bars.groups.last().map(|group| (group.label.clone(), group.values.clone()));
        let text = most.map_or_else(String::new, |(label, values)| {
            let each = ways
                .iter()
                .zip(values)
                .filter_map(|(way, value)| Some(format!("{} {}", way.name, report::mean(value?))));
            format!("Queue depth {depth}. MB/s with {label} blocks: {}.", each.collect::<Vec<_>>().join(", "))
        });
        let title = format!("{}{} by block size", kind[..1].to_uppercase(), &kind[1..]);
        section = section.figure(Figure::new(title, text, Picture::Bars(bars)));
    }
    section
}

fn group(label: String, row: &Measured) -> Group {
    let values = row.of.iter().map(|values| values.as_ref().map(|values| values.mb_per_s.value));
    Group { label, values: values.collect() }
}

fn bars(ways: &[ReportRoute], across: &str, groups: Vec<Group>) -> Bars {
    let series = ways.iter().map(|way| (way.name.clone(), way.look)).collect();
    Bars { across: across.into(), value: Axis::linear("MB/s"), series, groups, is_stacked: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use report::{Look, Page};

    #[test]
    fn many_ways_have_both_rates_on_one_axis_where_blocks_are_alike() {
        let values = |nth: usize| Values {
            iops: Estimate { value: nth as f64, interval: None },
            mb_per_s: Estimate { value: nth as f64, interval: None },
            latency: crate::page::Latency::of([(80.0, 100)]),
            watts: None,
            joules_per_gb: None,
        };
        let section = |count: usize| {
            let ways: Vec<ReportRoute> =
                (0..count).map(|nth| ReportRoute { name: nth.to_string(), look: Look::default() }).collect();
            let row = |label: &str, depth, sizes: &[u32]| Measured {
                job: Job {
                    label: label.into(),
                    specs: sizes.iter().map(|bytes| AccessSpec::all(*bytes, 100, 100)).collect(),
                    ..Job::of(AccessSpec::all(4096, 100, 100), depth)
                },
                of: (1..=count).map(|nth| Some(values(nth))).collect(),
            };
            let rows = [("read", &[4096][..]), ("mix", &[512, 4096])];
            let all: Vec<Measured> =
                rows.iter().flat_map(|(label, sizes)| [1, 2].map(|depth| row(label, depth, sizes))).collect();
            Page::new("p").section(by_depth(&ways, &all, "Intervals.")).html().expect("it has room")
        };
        let titles = |page: &str| -> Vec<String> {
            page.split("<h3 ")
                .skip(1)
                .map(|rest| rest[rest.find('>').unwrap_or(0) + 1..rest.find("</h3>").unwrap_or(0)].to_owned())
                .collect()
        };
        assert_eq!(titles(&section(2)), ["read: MB/s", "read: IOPS", "mix: MB/s", "mix: IOPS"]);
        let many = section(7);
        assert_eq!(titles(&many), ["read: MB/s and IOPS", "mix: MB/s", "mix: IOPS"]);
        assert!(many.contains("\nMB/s (IOPS)\n"), "an axis has both");
        assert!(many.contains(", 244 IOPS"), "and values have");
    }
}
