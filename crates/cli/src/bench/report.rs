//! `--report`: a benchmark as a page.
//!
//! Intervals are those of the record, over rounds. Left out: what only simulated worlds know, such as where the time goes.

use crate::failure::Failure;
use crate::page::{self, Latency, Measured, ReportRoute, Values};
use crate::recorder;
use bench::measure::{Estimate, Figures, Row};
use bench::record::{Method, Record};
use bench::verify::Findings;
use report::{Axis, Cell, Fact, Figure, Page, Picture, Section, Table, number};
use std::path::Path;
use std::time::Duration;
use study::plural::{counted, counted_len};
use workload::Job;

pub(super) fn write(file: &Path, record: &Record, jobs: &[Job], rows: &[Row]) -> Result<(), Failure> {
    let mut names: Vec<&str> = Vec::new();
    for row in rows {
        if !names.contains(&row.route.word()) {
            names.push(row.route.word());
        }
    }
    let ways = page::ways(names.iter().map(|name| (*name, *name)));
    let all = measured(&ways, jobs, rows);
    let intervals = format!("Error bars: {}.", record.method.intervals);
    let mut page = Page::new(title(record))
        .lead("Measured, not simulated; figures exclude the warm-up of each run.")
        .findings(findings(record, &ways, &all))
        .section(page::by_depth(&ways, &all, &intervals))
        .section(page::single(&ways, &all))
        .section(page::by_block(&ways, &all));
    if let Some(row) = page::chosen(&all) {
        page = page.section(page::latencies(&ways, &all, row));
    }
    page = page.section(page::energy(&ways, &all)).section(processor(&ways, jobs, rows));
    page::write(&facts(page.section(all_rows(record)), record, jobs), file)
}

fn title(record: &Record) -> String {
    let target = &record.target;
    format!("{}: {}", target.name, record.workloads.join(", "))
}

/// Rows by job, in the order of the jobs.
fn measured(ways: &[ReportRoute], jobs: &[Job], rows: &[Row]) -> Vec<Measured> {
    let of = |job: &Job| {
        let of_way = |way: &ReportRoute| {
            let row = rows.iter().find(|row| is_of(row, job) && row.route.word() == way.name)?;
            row.figures.as_ref().ok().map(values)
        };
        Measured { job: job.clone(), of: ways.iter().map(of_way).collect() }
    };
    let all = jobs.iter().map(of);
    all.filter(|measured| measured.of.iter().any(Option::is_some)).collect()
}

fn is_of(row: &Row, job: &Job) -> bool {
    (row.label.as_str(), row.depth) == (job.label.as_str(), job.depth)
}

fn values(figures: &Figures) -> Values {
    let each = figures.mb_per_s / figures.iops.value.max(f64::MIN_POSITIVE);
    let interval = figures.iops.interval.map(|ends| ends.map(|end| end * each));
    let counted = figures.latency.iter_recorded();
    let latency =
        Latency::of(counted.map(|step| (step.value_iterated_to() as f64 / 1000.0, step.count_at_value())));
    Values {
        iops: figures.iops,
        mb_per_s: Estimate { value: figures.mb_per_s, interval },
        latency,
        watts: None,
        joules_per_gb: figures.joules_per_gb,
    }
}

/// Sentences on what did not go well, at most; the table has all rows.
const WRONG_MAX: usize = 12;

/// Returns findings in this order: an interruption, failures, comparisons of the other routes with
/// the first one by descending difference, dropped events, notes.
fn findings(record: &Record, ways: &[ReportRoute], all: &[Measured]) -> Vec<String> {
    let mut found = Vec::new();
    if record.interrupted {
        found.push("The run was interrupted; figures are incomplete.".into());
    }
    found.extend(wrong(record));
    if let [first, others @ ..] = ways {
        let of_label = |(label, _): (&str, _)| -> Vec<(f64, String)> {
            let compared = others.iter().filter_map(|other| apart(record, label, &other.name, &first.name));
            compared.collect()
        };
        let mut compared: Vec<(f64, String)> = page::by_label(all).into_iter().flat_map(of_label).collect();
        compared.sort_by(|one, other| other.0.total_cmp(&one.0));
        found.extend(compared.into_iter().map(|(_, sentence)| sentence));
    }
    let dropped = record.captured.map_or(0, |captured| captured.dropped);
    if dropped > 0 {
        let events = counted(dropped, "event");
        found.push(format!("The capture lacks {events}, since its queue was full."));
    }
    found.extend(record.target.identity.notes.iter().map(|note| format!("Note: {note}.")));
    found
}

/// Where the rates of two ways differ by more than chance: at which depths, and where most, and how far they are apart there. Ratios are
/// those of the rounds.
fn apart(record: &Record, label: &str, of: &str, to: &str) -> Option<(f64, String)> {
    let rows = record.rows.iter().filter(|row| row.job == label && row.transport == of);
    let ratios: Vec<(u16, Estimate)> =
        rows.filter_map(|row| Some((row.depth, row.figures.as_ref()?.ratio_to_first?))).collect();
    let is_sure =
        |(_, ratio): &&(u16, Estimate)| ratio.interval.is_some_and(|[low, high]| low > 1.0 || high < 1.0);
    let sure: Vec<&(u16, Estimate)> = ratios.iter().filter(is_sure).collect();
    let far = |ratio: &Estimate| ratio.value.ln().abs();
    let most = sure.iter().max_by(|one, two| far(&one.1).total_cmp(&far(&two.1)));
    if ratios.is_empty() {
        return None;
    }
    let two = |value: f64| number((value * 100.0).round() / 100.0);
    Some(match most {
        Some((depth, Estimate { value, interval })) => {
            let interval =
                interval.map_or_else(String::new, |[low, high]| format!(" ({} to {})", two(low), two(high)));
            let differ = match ratios.len() {
                1 => String::new(),
                count => format!("; they differ at {} of {count} depths", sure.len()),
            };
            let times = two(*value);
            (
                value.ln().abs(),
                format!("{label}: {of} is {times}x{interval} as fast as {to} at QD{depth}{differ}"),
            )
        }
        None => (
            0.0,
            format!(
                "{label}: no significant difference between {of} and {to}; run more or longer rounds to resolve small ones"
            ),
        ),
    })
}

/// Returns a sentence for each row that failed, and the number of rows that did not become steady.
fn wrong(record: &Record) -> Vec<String> {
    let mut found = Vec::new();
    for row in &record.rows {
        let what = format!("{}, {}, QD{}", row.job, row.transport, row.depth);
        match (&row.error, &row.figures) {
            (Some(error), _) => found.push(format!("{what}: no figures: {error}")),
            (None, Some(_)) if row.errors > 0 => {
                found.push(format!("{what}: {} failed", counted(row.errors, "request")))
            }
            _ => {}
        }
    }
    if let more @ 1.. = found.len().saturating_sub(WRONG_MAX) {
        found.truncate(WRONG_MAX);
        found.push(format!("{} failed", counted_len(more, "more row")));
    }
    let shaky =
        record.rows.iter().filter(|row| row.figures.as_ref().is_some_and(|figures| !figures.steady)).count();
    if shaky > 0 {
        found.push(format!(
            "{shaky} of {} did not become steady within --rounds",
            counted_len(record.rows.len(), "row")
        ));
    }
    found
}

/// Processor time of this program for an I/O.
fn processor(ways: &[ReportRoute], jobs: &[Job], rows: &[Row]) -> Section {
    let section = Section::new("Processor time");
    let kind = jobs.first().map(|job| &job.label);
    let of_kind: Vec<&Row> = rows.iter().filter(|row| Some(&row.label) == kind).collect();
    let series = ways.iter().map(|way| {
        let of_way = of_kind.iter().filter(|row| row.route.word() == way.name);
        let points = of_way.filter_map(|row| {
            let figures = row.figures.as_ref().ok()?;
            Some(report::Point::new(f64::from(row.depth), figures.processor_us_per_io))
        });
        report::Series::new(&way.name, way.look, points.collect())
    });
    let series: Vec<_> = series.filter(|series| series.points.len() > 1).collect();
    if series.is_empty() {
        return section;
    }
    let x = page::depth_axis(of_kind.iter().map(|row| row.depth));
    let lines = report::Lines::new(x, Axis::linear("processor time per I/O, µs"), series);
    let text = page::course(&lines, "µs");
    let title = format!("Processor time of uaskit: {}", kind.map_or("", String::as_str));
    section.figure(Figure::new(title, text, Picture::Lines(lines)))
}

/// Each row of the record.
fn all_rows(record: &Record) -> Section {
    let head = [
        "job",
        "transport",
        "depth",
        "IOPS",
        "from",
        "to",
        "MB/s",
        "p50, µs",
        "p99, µs",
        "p99.9, µs",
        "max, µs",
        "rounds",
        "errors",
    ];
    let mut table = Table::new(head);
    for row in &record.rows {
        let Some(figures) = &row.figures else { continue };
        let ends = figures.iops_interval.map_or([None; 2], |ends| ends.map(Some));
        let names = [
            Cell::text(&row.job),
            Cell::text(row.transport),
            Cell::Number(f64::from(row.depth)),
            Cell::Number(figures.iops),
        ];
        let rest = [
            figures.mb_per_s,
            figures.p50_us,
            figures.p99_us,
            figures.p999_us,
            figures.max_us,
            f64::from(figures.rounds),
            row.errors as f64,
        ];
        table = table.row(names.into_iter().chain(ends.map(Cell::from)).chain(rest.map(Cell::Number)));
    }
    Section::new("All rows")
        .figure(Figure::new("All rows", "One row per job and transport.", Picture::None).table(table))
}

/// How much of what was written was read back, and what that has shown.
fn verified(findings: &Findings) -> String {
    let Findings { to_read_back, not_read_back, wrong, .. } = *findings;
    let read_back = match (to_read_back, not_read_back) {
        (0, _) => return "nothing was written".to_owned(),
        (_, 0) => "every block was read back".to_owned(),
        (all, missing) => format!("{missing} of {} were NOT read back", counted(all, "block")),
    };
    if wrong == 0 {
        read_back
    } else {
        format!("{read_back}; data miscompare in {}", counted(wrong, "block"))
    }
}

fn facts(mut page: Page, record: &Record, jobs: &[Job]) -> Page {
    let Method { run_s, warm_up_s, rounds_min, rounds_max, steady_within_percent, seed, verify, .. } =
        record.method;
    let (target, machine) = (&record.target, &record.machine);
    let has_own = |job: &Job| job.once || job.run.is_some_and(|run| run != Duration::from_secs_f64(run_s));
    let unless = if jobs.iter().any(has_own) { " (unless the job says otherwise)" } else { "" };
    let known = [
        ("target", Some(target.name.clone())),
        ("kind", Some(target.kind.to_owned())),
        ("USB port", target.usb_port.clone()),
        ("logical unit", target.lun.map(|lun| lun.to_string())),
        ("USB id", target.usb_id.clone()),
        ("link", target.usb_speed.clone()),
        ("controller", target.controller.clone()),
        ("driver", target.driver.clone()),
        ("kernel", machine.kernel.clone()),
        ("processor", machine.processor.as_ref().map(|name| format!("{} × {name}", machine.processors))),
        ("began", Some(page::date(record.began_unix_s))),
        (
            "runs",
            Some(format!(
                "{rounds_min} to {rounds_max} runs of {run_s} s after a warm-up of {warm_up_s} s{unless}, until the interval is within ±{steady_within_percent} %"
            )),
        ),
        ("seed", Some(seed.to_string())),
        ("captured", record.captured.map(recorder::summary)),
        ("verified", Some(if verify { verified(&record.findings()) } else { "no".to_owned() })),
    ];
    page = page.fact(page::version());
    for (name, value) in known {
        if let Some(value) = value {
            page = page.fact(Fact::pair(name, value));
        }
    }
    page = page.fact(page::command_line());
    match serde_json::to_string_pretty(&record.target) {
        Ok(identity) => page.fact(Fact::Lines("Properties of the target".into(), identity)),
        Err(_) => page,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_was_read_back_only_if_none_is_missing() {
        let text = |to_read_back, read_back, wrong| {
            let not_read_back = to_read_back - read_back;
            verified(&Findings { to_read_back, read_back, not_read_back, wrong, ..Findings::default() })
        };
        assert_eq!(text(0, 0, 0), "nothing was written");
        assert_eq!(text(9, 9, 0), "every block was read back");
        assert_eq!(text(9, 9, 2), "every block was read back; data miscompare in 2 blocks");
        assert_eq!(text(9, 7, 0), "2 of 9 blocks were NOT read back");
        assert_eq!(text(9, 7, 1), "2 of 9 blocks were NOT read back; data miscompare in 1 block");
    }
}
