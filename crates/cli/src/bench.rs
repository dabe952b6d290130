//! `uaskit bench`: what to run, on what, and how the result is printed.
//!
//! Workloads come from names, flags or files; the target is made ready, after asking where data could be lost; then the
//! crate `bench` measures, and what was taken is given back before anything is printed. Figures go to standard output,
//! progress and questions to standard error.

pub(crate) mod confirm;
mod fit;
mod identity;
mod progress;
mod report;
mod saved;
mod target;

use crate::args::quantity;
use crate::args::{BenchArguments, PatternArgument};
use crate::failure::Failure;
use crate::messages::message;
use crate::output_file;
use crate::page;
use crate::recorder::{self, Capture};
use crate::sanitize::{self, shown};
use crate::stdout::{Output, terminal_columns};
use bench::backend::ErrorCounters;
use bench::measure::{self, CampaignObserver, Energy, Plan, RunConditions, Watchers};
use bench::record::{self, INTERVALS, Machine, Method, Record};
use inspect::tree::Tree;
use progress::View;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use study::plural::counted;
use target::BenchTarget;
use units::ByteCount;
use workload::{
    self, AccessSpec, Align, FILE_BYTES_MAX, Fill, Job, JobFileError, REQUEST_BYTES_MAX, Workload,
};

/// Length of a run unless given.
const RUN: Duration = Duration::from_secs(3);

/// The longest warm-up unless given.
const WARM_UP_MAX: Duration = Duration::from_secs(1);

/// Rounds before anything is called steady.
const ROUNDS_MIN: u32 = 3;

/// The workload unless given.
const USUAL_WORKLOAD: &str = "iometer-4k-read";

/// Runs that may take longer in all are announced.
const ANNOUNCED_SECONDS: f64 = 20.0;

/// Percent of reads of a mix unless given.
const USUAL_MIX: u8 = 50;

/// Bytes that a verified run uses by default: each round reads them back.
const VERIFIED_BYTES: u64 = 256 << 20;

pub(crate) fn run(arguments: &BenchArguments, out: &mut Output<'_>) -> Result<(), Failure> {
    target::is_named(arguments)?;
    let mut workloads = workloads(arguments)?;
    let writes = workloads.iter().any(Workload::writes);
    check_writes(arguments, writes)?;
    fit::check_asked(arguments, &workloads)?;
    output_file::check_distinct(&[
        ("--report", arguments.report.as_deref()),
        ("--capture", arguments.capture.file()),
        ("--save", arguments.keeping.file()),
    ])?;
    page::has_room(arguments.report.as_deref())?;
    arguments.capture.check_file()?;
    let keeper = arguments.keeping.keeper()?;
    let tree = arguments.machine.as_ref().map_or_else(usb::running_tree, Tree::at);
    // Before the question, so that Ctrl-C there does not leave a terminal half drawn.
    let mut bench_target = target::resolve(arguments, &tree, &mut workloads)?;
    if arguments.verify && !arguments.is_virtual && arguments.size.is_none() {
        keep_verified_short(arguments.has_named(), &mut workloads, bench_target.device.identity().bytes);
    }
    let capture = observe(arguments, &mut bench_target)?;
    let plan = plan(arguments);
    let mut view = View::new(arguments.quiet)?;
    bench_target.device.set_stop_flag(view.stopped());
    let mut record = begin(arguments, &plan, &workloads, &bench_target);
    let energy = Energy::new(Tree::running());
    let mut notes = notes(&workloads, arguments);
    let jobs: Vec<Job> = workloads.into_iter().flat_map(|workload| workload.jobs).collect();
    if !arguments.quiet {
        announce(&jobs, bench_target.routes.len(), &plan);
    }
    let watchers = Watchers { energy: &energy, observer: &mut view };
    let rows = measure::measure(&mut *bench_target.device, &bench_target.routes, &jobs, &plan, watchers);
    view.close();
    record.interrupted = view.is_over();
    record.target.identity = bench_target.device.identity();
    record.target.identity.notes.append(&mut notes);
    // The kernel driver is reattached before anything is printed; then the kernel reads the temperature again.
    let closed = bench_target.device.close();
    let of_kernel = [record.target.temperature_c[0], bench_target.temperature_c()];
    record.target.add_temperatures(bench_target.device.temperatures(), of_kernel);
    let changed_device = bench_target.device.changed_device().filter(|_| writes).map(ToString::to_string);
    drop(bench_target);
    let captured = capture.map(Capture::finish).transpose();
    record.captured = captured.as_ref().ok().copied().flatten();
    record.take(&rows);
    let printed = print(&record, arguments, out);
    // Figures that are not there must not be taken for those of a run.
    let has_figures = !record.is_ended_before_figures();
    if let Some(keeper) = keeper.as_ref().filter(|_| has_figures) {
        keeper.keep(&saved::run(&record)?)?;
    }
    if let Some(file) = arguments.report.as_ref().filter(|_| has_figures) {
        report::write(file, &record, &jobs, &rows)?;
    }
    printed?;
    closed.map_err(|error| Failure::new(error.to_string()))?;
    if let Some(captured) = captured? {
        message!("captured: {}", recorder::summary(captured));
    }
    verdict(&record, changed_device)
}

/// Checks the options that only a workload with writes needs.
fn check_writes(arguments: &BenchArguments, writes: bool) -> Result<(), Failure> {
    let options = [
        (arguments.verify, "--verify"),
        (arguments.random_data, "--random-data"),
        (arguments.zero_data, "--zero-data"),
        (arguments.yes && arguments.write.is_none(), "--yes"),
    ];
    match options.into_iter().find(|(is_given, _)| *is_given && !writes) {
        Some((_, option)) => {
            Err(Failure::usage(format!("{option} needs a workload that writes; this one only reads"))
                .try_this(format!("Leave {option} out, or choose another workload, as in --rw randwrite.")))
        }
        None => Ok(()),
    }
}

/// Returns notes on what makes the figures differ from those of the job file or of the named
/// workload elsewhere, or of the drive alone.
fn notes(workloads: &[Workload], arguments: &BenchArguments) -> Vec<String> {
    // With --cached a file's own notes on caching do not apply.
    let has_notes = arguments.has_named() || !arguments.cached;
    let of_workloads = workloads.iter().filter(|_| has_notes).flat_map(|workload| &workload.notes);
    let captured = "transfers were captured during the run, which slows it down";
    of_workloads.cloned().chain(arguments.capture.is_wanted().then(|| captured.to_owned())).collect()
}

/// Starts the capture of the drive's transfers, if requested.
fn observe(arguments: &BenchArguments, bench_target: &mut BenchTarget) -> Result<Option<Capture>, Failure> {
    let name = &bench_target.target.name;
    let Some((capture, recorder)) = arguments.capture.start(format!("uaskit bench, {name}"), None)? else {
        return Ok(None);
    };
    if let Some((what, _)) = arguments.capture.announcement() {
        message!("capturing to {what}");
    }
    let watched = bench_target.device.watch(Box::new(recorder));
    watched
        .map_err(|error| Failure::new(format!("cannot capture the transfers of {name}")).because(error))?;
    Ok(Some(capture))
}

/// Everything that is known before the first run.
fn begin(
    arguments: &BenchArguments,
    plan: &Plan,
    workloads: &[Workload],
    bench_target: &BenchTarget,
) -> Record {
    let target = bench_target.target.clone();
    let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Record {
        version: env!("CARGO_PKG_VERSION"),
        command_line: crate::command_line::words(),
        began_unix_s: began.as_secs(),
        machine: Machine::of(&Tree::running()),
        target,
        workloads: workloads.iter().map(|workload| workload.name.clone()).collect(),
        method: Method {
            run_s: plan.conditions.run.as_secs_f64(),
            warm_up_s: plan.conditions.warm_up.as_secs_f64(),
            rounds_min: plan.rounds.0,
            rounds_max: plan.rounds.1,
            steady_within_percent: plan.steady_within * 100.0,
            intervals: INTERVALS,
            seed: arguments.seed,
            verify: plan.verify,
        },
        interrupted: false,
        iops: None,
        iops_of: None,
        mb_per_s: None,
        errors: 0,
        error_counters: ErrorCounters::default(),
        captured: None,
        rows: Vec::new(),
    }
}

/// The workloads that the arguments name, with what the arguments say about all of their jobs.
fn workloads(arguments: &BenchArguments) -> Result<Vec<Workload>, Failure> {
    let mut workloads = match (&arguments.icf, &arguments.fio, arguments.rw) {
        (Some(file), _, _) => vec![job_file(file, workload::icf)?],
        (_, Some(file), _) => vec![job_file(file, workload::fio)?],
        (_, _, Some(pattern)) => vec![plain(arguments, pattern)?],
        _ if arguments.workloads.is_empty() => workload::named(USUAL_WORKLOAD).into_iter().collect(),
        _ => arguments.workloads.iter().filter_map(|name| workload::named(name)).collect(),
    };
    let depths = quantity::flat(&arguments.depth);
    if !depths.is_empty() {
        workloads = workloads.into_iter().map(|workload| workload.at_depths(&depths)).collect();
    }
    for job in workloads.iter_mut().flat_map(|workload| &mut workload.jobs) {
        job.span_bytes = arguments.size.map(|size| size.0).or(job.span_bytes);
        job.run = arguments.seconds.or(job.run);
        job.warm_up = arguments.warm_up.or(job.warm_up);
        if arguments.zero_data || arguments.random_data {
            job.fill = Some(if arguments.zero_data { Fill::Zero } else { Fill::Random });
        } else if arguments.verify && arguments.has_named() {
            // A named workload does not choose its data; stamps replace them.
            job.fill = None;
        }
    }
    Ok(workloads)
}

/// Limits a verified run to a part of the drive, with a note, unless a span was given. A named workload keeps its own
/// span if that is smaller. `drive_bytes` is 0 while the size is unknown.
fn keep_verified_short(has_named: bool, workloads: &mut [Workload], drive_bytes: u64) {
    for workload in workloads {
        let mut from = Vec::new();
        for job in &mut workload.jobs {
            let there =
                if drive_bytes == 0 { u64::MAX } else { drive_bytes.saturating_sub(job.offset_bytes) };
            let is_given = job.span_bytes.is_some() && !has_named;
            if !is_given && there.min(job.span_bytes.unwrap_or(u64::MAX)) > VERIFIED_BYTES {
                job.span_bytes = Some(VERIFIED_BYTES);
                from.push(job.offset_bytes);
            }
        }
        if let Some(first) = from.first() {
            let begin = if from.iter().all(|offset| offset == first) {
                match first {
                    0 => "the start of the drive".to_owned(),
                    offset => format!("byte {offset} of the drive"),
                }
            } else {
                "the offset of each job".to_owned()
            };
            let (name, part) = (&workload.name, ByteCount(VERIFIED_BYTES));
            workload.notes.push(format!(
                "{name} used only {part} from {begin}, since --verify reads back every block; use --size for more"
            ));
        }
    }
}

/// The workload of plain flags.
fn plain(arguments: &BenchArguments, pattern: PatternArgument) -> Result<Workload, Failure> {
    let length = |flag: &str, bytes: u64| match u32::try_from(bytes) {
        Ok(bytes) if (1..=REQUEST_BYTES_MAX).contains(&bytes) => Ok(bytes),
        _ => Err(Failure::usage(format!("{flag} {} is out of range", workload::short_bytes(bytes)))
            .because(format!("1 byte to {} are possible", ByteCount(REQUEST_BYTES_MAX.into())))),
    };
    let (reads, random) = pattern.percents(arguments.mix.unwrap_or(USUAL_MIX));
    let align = match arguments.align {
        None => Align::Length,
        Some(bytes) => Align::Bytes(length("--align", bytes.0)?),
    };
    let share = AccessSpec { align, ..AccessSpec::all(length("--bs", arguments.bs.0)?, reads, random) };
    let job = Job::of(share, 1);
    Ok(Workload { name: job.label.clone(), jobs: vec![job], notes: Vec::new() })
}

fn job_file(
    file: &Path,
    parse: fn(&str, &str) -> Result<Workload, JobFileError>,
) -> Result<Workload, Failure> {
    let name = shown(file);
    let unread = |error| Failure::new(format!("cannot read {name}")).because(error);
    let mut bytes = Vec::new();
    let opened = std::fs::File::open(file).map_err(unread)?;
    opened.take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(unread)?;
    parse(&name, &String::from_utf8_lossy(&bytes))
        .map_err(|error| Failure::usage(name.clone()).because(error))
}

fn plan(arguments: &BenchArguments) -> Plan {
    let run = arguments.seconds.unwrap_or(RUN);
    Plan {
        conditions: RunConditions {
            run,
            warm_up: arguments.warm_up.unwrap_or((run / 4).min(WARM_UP_MAX)),
            fill: Fill::Random,
            seed: arguments.seed,
        },
        rounds: (ROUNDS_MIN.min(arguments.rounds), arguments.rounds),
        steady_within: arguments.steady / 100.0,
        verify: arguments.verify,
        session: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u32,
    }
}

/// Announces how long the runs take, unless they are short or end by size.
fn announce(jobs: &[Job], routes: usize, plan: &Plan) {
    let of_job = |job: &Job| (job.run.unwrap_or(plan.conditions.run) + plan.conditions.warm_up).as_secs_f64();
    let round = jobs.iter().map(of_job).sum::<f64>() * routes as f64;
    let [least, most] = [plan.rounds.0, plan.rounds.1].map(|rounds| (round * f64::from(rounds)).ceil());
    if most > ANNOUNCED_SECONDS && !jobs.iter().any(|job| job.once) {
        message!("Measuring takes {least} to {most} s, until the figures are steady.");
    }
}

fn print(record: &Record, arguments: &BenchArguments, out: &mut Output<'_>) -> Result<(), Failure> {
    let text = if arguments.json {
        let json = serde_json::to_string_pretty(record);
        let json = json.map_err(|error| Failure::new("cannot print the figures").because(error))?;
        sanitize::json(&json) + "\n"
    } else if arguments.csv {
        record::csv(record)
    } else {
        let table = record::table(record, terminal_columns());
        sanitize::escape_lines(&format!("{}\n{table}\n", record::heading(record)))
    };
    out.print(&text)
}

/// Whether everything went well, and to the drive that its owner had agreed to.
fn verdict(record: &Record, changed_device: Option<String>) -> Result<(), Failure> {
    let wrong = record.wrong_blocks();
    if wrong > 0 {
        return Err(Failure::new(format!(
            "data miscompare: {} read back with other data than written",
            counted(wrong, "block")
        )));
    }
    if let Some(changed_device) = changed_device {
        return Err(target::not_overwritten(&record.target.name, changed_device));
    }
    if record.is_ended_before_figures() {
        return Err(Failure::interrupted("interrupted: nothing was measured"));
    }
    if record.rows.iter().all(|row| row.figures.is_none()) {
        // What has failed says more than that a transport is not offered.
        let failed = record.failed_row().and_then(|row| row.error.clone());
        let why = failed.or_else(|| record.rows.iter().find_map(|row| row.error.clone()));
        let failure = Failure::new("nothing was measured");
        return Err(why.into_iter().fold(failure, Failure::because));
    }
    if let Some(row) = record.failed_row() {
        let what = format!("{}, {}, depth {}: no figures", row.job, row.transport, row.depth);
        // A signal may come while a row is set up.
        let failure = if record.interrupted { Failure::interrupted(what) } else { Failure::new(what) };
        return Err(row.error.iter().fold(failure, Failure::because));
    }
    if record.errors > 0 {
        return Err(failed(record.errors, record.error_counters.lost_writes));
    }
    if record.interrupted {
        return Err(Failure::interrupted("interrupted before the run completed"));
    }
    Ok(())
}

/// So many requests have failed, writes that were lost later among them.
fn failed(errors: u64, lost_writes: u64) -> Failure {
    let failure = Failure::new(format!("{} failed", counted(errors, "request")));
    if lost_writes == 0 {
        return failure;
    }
    let verb = if lost_writes == 1 { "was" } else { "were" };
    let writes = counted(lost_writes, "write");
    failure.because(format!("{writes} {verb} acknowledged and later lost (deferred errors)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verified_run_without_a_span_uses_a_part_and_notes_it() {
        let limited = |offsets: &[u64], span_bytes, has_named, drive_bytes| {
            let job = Job { span_bytes, ..Job::of(AccessSpec::all(4096, 0, 100), 1) };
            let jobs = offsets.iter().map(|&offset_bytes| Job { offset_bytes, ..job.clone() }).collect();
            let mut workloads = [Workload { name: "one".into(), jobs, notes: Vec::new() }];
            keep_verified_short(has_named, &mut workloads, drive_bytes);
            let [Workload { jobs, notes, .. }] = workloads;
            (jobs[0].span_bytes, notes.concat())
        };
        let (part, large) = (Some(256 << 20), 1 << 40);
        let note = |begin| {
            format!(
                "one used only 256 MiB from {begin}, since --verify reads back every block; use --size for more"
            )
        };
        assert_eq!(limited(&[0, 0], None, false, large), (part, note("the start of the drive")));
        assert_eq!(limited(&[0], None, true, 0), (part, note("the start of the drive")), "not known yet");
        assert_eq!(limited(&[4096], None, false, large), (part, note("byte 4096 of the drive")));
        assert_eq!(limited(&[0, 4096], None, false, large), (part, note("the offset of each job")));
        // A named workload has a span, which is not a choice of the user.
        assert_eq!(limited(&[0], Some(1 << 30), true, large), (part, note("the start of the drive")));
        assert_eq!(limited(&[0], Some(1 << 30), false, large), (Some(1 << 30), String::new()));
        assert_eq!(limited(&[0], Some(100 << 20), true, large), (Some(100 << 20), String::new()));
        assert_eq!(limited(&[0], None, false, 256 << 20), (None, String::new()), "it is no larger");
    }

    #[test]
    fn writes_that_were_lost_later_are_reported_at_the_end() {
        assert_eq!(failed(1, 0).to_string(), "1 request failed");
        let text = failed(3, 2).to_string();
        assert!(
            text.starts_with("3 requests failed") && text.contains("2 writes were acknowledged"),
            "{text}"
        );
    }
}
