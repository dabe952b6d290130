use super::fixture::{BLOCKS, FakeObserver, Fixture};
use super::*;
use crate::backend::{AccessError, BufferLayout, MemoryDevice};
use bus::Speed;
use device::medium::MediumError;
use initiator::disk::{Error, LostWrite};
use inspect::tree::Tree;
use units::{BlockSize, ByteCount, Lba};
use wire::scsi::sense::{AdditionalSense, SenseKey};
use workload::AccessSpec;

fn plan(rounds: (u32, u32)) -> Plan {
    Plan {
        conditions: RunConditions {
            run: Duration::from_millis(30),
            warm_up: Duration::from_millis(10),
            fill: Fill::Random,
            seed: 1,
        },
        rounds,
        steady_within: 0.05,
        verify: false,
        session: 1,
    }
}

fn rows(
    fixture: &mut dyn BenchDevice,
    routes: &[Route],
    job: Job,
    plan: &Plan,
    fake_observer: &mut FakeObserver,
) -> Vec<Row> {
    measure(
        fixture,
        routes,
        &[job],
        plan,
        Watchers { energy: &Energy::new(Tree::at("/nowhere")), observer: fake_observer },
    )
}

fn random(read_percent: u8, depth: u16) -> Job {
    Job::of(AccessSpec::all(4096, read_percent, 100), depth)
}

#[test]
fn known_speed_is_measured_correctly() {
    let (mut fixture, mut fake_observer) = (Fixture::new(), FakeObserver::default());
    fixture.service = Duration::from_millis(1);
    let rows = rows(&mut fixture, &[Route::Kernel], random(100, 1), &plan((3, 3)), &mut fake_observer);
    let figures = rows[0].figures.as_ref().expect("figures");
    assert!((999.0..=1040.0).contains(&figures.iops.value), "{:?}", figures.iops);
    assert!((figures.mb_per_s / figures.iops.value - 0.004_096).abs() < 1e-9);
    assert!(figures.latency.min() >= 999_000 && figures.rounds == 3 && figures.ios >= 3);
    assert!(figures.ratio.is_none() && figures.joules_per_gb.is_none());
    assert_eq!((rows[0].failures.count, fake_observer.seen), (0, 1));
}

#[test]
fn a_round_lasts_at_least_one_access() {
    let (mut fixture, mut fake_observer) = (Fixture::new(), FakeObserver::default());
    fixture.service = Duration::from_millis(70);
    let rows = rows(&mut fixture, &[Route::Kernel], random(100, 1), &plan((3, 3)), &mut fake_observer);
    let figures = rows[0].figures.as_ref().expect("figures");
    assert!(figures.iops_of_rounds.len() == 3 && figures.ios >= 3, "{figures:?}");
    assert!(figures.iops_of_rounds.iter().all(|rate| (10.0..30.0).contains(rate)), "{figures:?}");
}

/// The row of a job of this depth on a drive where so many end together, this long after those before. Three rounds of three seconds
/// after three quarters of one.
fn paced(depth: u16, batch: usize, service: Duration, change: impl FnOnce(&mut Fixture)) -> Row {
    let (mut fixture, mut fake_observer) = (Fixture::new(), FakeObserver::default());
    (fixture.service, fixture.batch) = (service, Some(batch));
    change(&mut fixture);
    let mut plan = plan((3, 3));
    (plan.conditions.run, plan.conditions.warm_up) = (Duration::from_secs(3), Duration::from_millis(750));
    rows(&mut fixture, &[Route::Kernel], random(50, depth), &plan, &mut fake_observer).remove(0)
}

#[test]
fn slow_requests_and_batches_are_measured_correctly() {
    // 8 MiB at 38 and at 36 MB/s, and what fits neither the warm-up nor the time.
    for service in [220_753, 233_017, 70_001, 999_999, 2_000_003].map(Duration::from_micros) {
        for (depth, batch) in [(1, 1), (4, 1), (4, 4), (32, 14)] {
            let figures = paced(depth, batch, service, |_| ()).figures.expect("figures");
            let truth = batch as f64 / service.as_secs_f64();
            for rate in figures.iops_of_rounds {
                assert!((rate / truth - 1.0).abs() < 0.001, "{depth}, {batch}, {service:?}: {rate} {truth}");
            }
            assert_eq!(figures.ios % batch as u64, 0, "whole batches");
            assert_eq!(figures.latency.len(), figures.ios);
        }
    }
}

#[test]
fn a_stall_at_the_end_of_the_time_is_counted() {
    // In the first round, 2.75 of its three seconds are over when the drive is silent for seven.
    let row =
        paced(1, 1, Duration::from_millis(10), |fixture| fixture.stall = Some((350, Duration::from_secs(7))));
    let rates = row.figures.expect("figures").iops_of_rounds;
    assert!((rates[0] - 275.0 / 9.75).abs() < 0.01, "{rates:?}");
    assert!(rates[1..].iter().all(|rate| (rate - 100.0).abs() < 0.01), "{rates:?}");
}

/// A machine of 100 W, whose counter wraps after 262 kJ, as an Intel's does.
struct Heater(std::path::PathBuf);

impl Heater {
    fn show(&self, name: &str, text: &str) {
        std::fs::create_dir_all(&self.0).expect("made");
        std::fs::write(self.0.join(name), text).expect("written");
    }
}

impl ProgressSink for Heater {
    fn tick(&mut self, progress: Progress) -> bool {
        let microjoules = progress.elapsed.as_micros() * 100 % 262_143_328_850;
        self.show("energy_uj", &microjoules.to_string());
        true
    }
}

#[test]
fn energy_is_complete_over_hours() {
    let place = tempfile::tempdir().expect("a directory");
    let mut heater = Heater(place.path().join("sys/class/powercap/intel-rapl:0"));
    heater.show("name", "package-0");
    heater.show("max_energy_range_uj", "262143328850");
    heater.show("energy_uj", "0");
    let energy = Energy::new(Tree::at(place.path()));
    let mut fixture = Fixture::new();
    fixture.service = Duration::from_secs(5);
    fixture.open_route(Route::Kernel, BufferLayout { slots: 1, bytes: 4096 }).expect("it is up");
    let conditions = RunConditions { run: Duration::from_secs(2 * 3600), ..plan((1, 1)).conditions };
    let context = RunContext { ledger: None, watch: &mut heater, energy: Some(&energy) };
    let run = run(&mut fixture, &random(100, 1), &conditions, context).expect("it ends");
    let joules = run.joules.expect("they can be read");
    assert!((joules / 720e3 - 1.0).abs() < 0.002, "{joules}");
}

/// A job that moves 64 KiB once, four requests of 4 KiB at a time, on a drive that takes a millisecond for these.
fn once(change: impl FnOnce(&mut Job), plan: &Plan) -> Row {
    let (mut fixture, mut fake_observer) = (Fixture::new(), FakeObserver::default());
    fixture.service = Duration::from_millis(1);
    let mut job = Job { once: true, span_bytes: Some(64 << 10), ..Job::of(AccessSpec::all(4096, 50, 0), 4) };
    change(&mut job);
    rows(&mut fixture, &[Route::Kernel], job, plan, &mut fake_observer).remove(0)
}

#[test]
fn a_span_moved_once_counts_from_first_to_last_access() {
    let ios_and_rate = |change: fn(&mut Job)| {
        let figures = once(change, &plan((3, 3))).figures.expect("figures");
        assert_eq!(figures.rounds, 3);
        (figures.ios, figures.iops.value.round())
    };
    // Neither the time nor the warm-up of the plan is its own.
    assert_eq!(ios_and_rate(|_| ()), (3 * 16, 4000.0));
    // What does not fit any more is not begun.
    assert_eq!(ios_and_rate(|job| job.span_bytes = Some(30 << 10)).0, 3 * 7);
    assert_eq!(ios_and_rate(|job| job.specs = vec![AccessSpec::all(24 << 10, 100, 100)]).0, 3 * 2);
    // The time of the job may end before.
    assert_eq!(ios_and_rate(|job| job.run = Some(Duration::from_millis(2))).0, 3 * 8);
    assert_eq!(ios_and_rate(|job| job.run = Some(Duration::from_secs(2))), (3 * 16, 4000.0));
    // What is dropped is of it, unless that would be all.
    assert_eq!(ios_and_rate(|job| job.warm_up = Some(Duration::from_millis(1))), (3 * 12, 4000.0));
    assert_eq!(ios_and_rate(|job| job.warm_up = Some(Duration::from_secs(1))), (3 * 16, 4000.0));
}

#[test]
fn a_span_written_once_is_read_back_completely() {
    let verify = Plan { verify: true, ..plan((1, 1)) };
    let row = once(|job| job.specs = vec![AccessSpec::all(4096, 0, 0)], &verify);
    let findings = row.findings.expect("findings");
    assert_eq!((findings.written, findings.checked, findings.wrong), (128, 128, 0));
    assert_eq!((findings.to_read_back, findings.read_back, findings.not_read_back), (128, 128, 0));
    assert_eq!(row.figures.expect("figures").ios, 16);
}

#[test]
fn stuck_accesses_of_a_span_time_out() {
    let (mut fixture, mut fake_observer) = (Fixture::new(), FakeObserver::default());
    (fixture.service, fixture.access_max) = (Duration::from_secs(1), Duration::from_secs(400));
    fixture.stuck = Some(16);
    let began = fixture.now;
    let job = Job { once: true, span_bytes: Some(64 << 10), ..random(100, 4) };
    let rows = rows(&mut fixture, &[Route::Kernel], job, &plan((1, 1)), &mut fake_observer);
    let error = rows[0].figures.as_ref().expect_err("it does not end");
    assert_eq!(error.to_string(), "1 requests did not complete in time");
    assert!((400..=820).contains(&(fixture.now - began).as_secs()), "{:?}", fixture.now - began);
}

#[test]
fn routes_alternate_and_are_compared_with_the_first() {
    let (mut fixture, mut fake_observer) = (Fixture::new(), FakeObserver::default());
    let routes = [Route::Bot, Route::Turbo, Route::Uas];
    fixture.missing = vec![Route::Turbo];
    let rows = rows(&mut fixture, &routes, random(100, 4), &plan((2, 2)), &mut fake_observer);
    // No route comes first each time.
    assert_eq!(fixture.open_route, [Route::Bot, Route::Turbo, Route::Uas, Route::Uas, Route::Bot]);
    assert_eq!(fake_observer.begun[3..], [(Route::Uas, 2), (Route::Bot, 2)]);
    assert!(rows[0].figures.as_ref().is_ok_and(|figures| figures.ratio.is_none()));
    let missing = rows[1].figures.as_ref().expect_err("it is not there");
    assert_eq!((missing.to_string().as_str(), missing.is_failure()), ("this route is not offered", false));
    let ratio = rows[2].figures.as_ref().ok().and_then(|figures| figures.ratio).expect("a ratio");
    let [low, high] = ratio.interval.expect("two rounds");
    assert!(low <= ratio.value && ratio.value <= high && ratio.value > 0.0, "{ratio:?}");
}

#[test]
fn a_route_that_cannot_be_opened_fails_its_row() {
    for (fails_from, rounds) in [(1, 1), (2, 3)] {
        let (mut fixture, mut fake_observer) = (Fixture::new(), FakeObserver::default());
        fixture.fails_from = Some(fails_from);
        let rows =
            rows(&mut fixture, &[Route::Bot], random(100, 4), &plan((rounds, rounds)), &mut fake_observer);
        let error = rows[0].figures.as_ref().expect_err("it is not up");
        assert_eq!((error.to_string().as_str(), error.is_failure()), ("there is no memory", true));
    }
}

#[test]
fn rounds_end_when_the_figures_are_steady() {
    let (mut fixture, mut fake_observer) = (Fixture::new(), FakeObserver::default());
    let steady = Plan { steady_within: 100.0, ..plan((2, 9)) };
    let shown = rows(&mut fixture, &[Route::Kernel], random(100, 1), &steady, &mut fake_observer);
    assert!(shown[0].figures.as_ref().is_ok_and(|figures| figures.rounds == 2 && figures.is_steady));
    let never = Plan { steady_within: 0.0, ..plan((2, 4)) };
    fixture.drift = Duration::from_micros(5);
    let shown = rows(&mut fixture, &[Route::Kernel], random(100, 1), &never, &mut fake_observer);
    assert!(shown[0].figures.as_ref().is_ok_and(|figures| figures.rounds == 4 && !figures.is_steady));
}

#[test]
fn failures_are_counted_and_are_no_ios() {
    let (mut fixture, mut fake_observer) = (Fixture::new(), FakeObserver::default());
    fixture.bad = Some(0);
    let job = Job { span_bytes: Some(4096), ..random(0, 1) };
    let rows = rows(&mut fixture, &[Route::Kernel], job, &plan((1, 1)), &mut fake_observer);
    let figures = rows[0].figures.as_ref().expect("figures");
    assert_eq!((figures.ios, figures.iops.value), (0, 0.0));
    let Row { failures, error_counters, .. } = &rows[0];
    assert!(failures.count > 10 && error_counters.retries > 0, "{failures:?} {error_counters:?}");
    let bad = AccessError::Medium(MediumError::Unwritable { lba: Lba(0) });
    assert_eq!(failures.kinds, [(bad, failures.count)]);
}

/// A deferred error at a block.
fn lost(lba: u64) -> LostWrite {
    LostWrite { key: SenseKey::MediumError, additional: AdditionalSense::WRITE_ERROR, lba: Some(Lba(lba)) }
}

#[test]
fn only_writes_are_flushed_after_the_run() {
    let (mut fixture, mut fake_observer) = (Fixture::new(), FakeObserver::default());
    fixture.service = Duration::from_millis(1);
    fixture.flush.1 = Duration::from_secs(60);
    let shown = rows(&mut fixture, &[Route::Kernel], random(0, 1), &plan((3, 3)), &mut fake_observer);
    let figures = shown[0].figures.as_ref().expect("figures");
    assert!((999.0..=1040.0).contains(&figures.iops.value), "{:?}", figures.iops);
    assert_eq!((fixture.flushes, shown[0].failures.count), (3, 0));
    rows(&mut fixture, &[Route::Kernel], random(100, 1), &plan((2, 2)), &mut fake_observer);
    assert_eq!(fixture.flushes, 3);
}

#[test]
fn a_lost_write_counts_as_one_failure() {
    let (mut fixture, mut fake_observer) = (Fixture::new(), FakeObserver::default());
    (fixture.loses, fixture.unkept) = (vec![lost(77), lost(78), lost(77)], 2);
    fixture.flush.0 = Err(AccessError::Disk(Error::LostWrite(lost(77))));
    let rows = rows(&mut fixture, &[Route::Uas], random(0, 4), &plan((1, 1)), &mut fake_observer);
    let Row { failures, error_counters, figures, .. } = &rows[0];
    assert!(figures.is_ok() && error_counters.lost_writes == 5, "{figures:?} {error_counters:?}");
    let of = |lba| AccessError::Disk(Error::LostWrite(lost(lba)));
    assert_eq!((failures.count, &failures.kinds[..]), (5, &[(of(77), 2), (of(78), 1)][..]));
    let text = failures.kinds[1].0.to_string();
    assert_eq!(text, "an earlier write was lost: MEDIUM ERROR: WRITE ERROR at LBA 78");
}

#[test]
fn a_failed_flush_is_a_failure_and_a_stuck_one_ends_the_row() {
    let (mut fixture, mut fake_observer) = (Fixture::new(), FakeObserver::default());
    let bad = MediumError::Unwritable { lba: Lba(0) };
    fixture.flush.0 = Err(AccessError::Medium(bad));
    let shown = rows(&mut fixture, &[Route::Kernel], random(50, 4), &plan((2, 2)), &mut fake_observer);
    assert_eq!(shown[0].failures.kinds, [(AccessError::MediumFlush(bad), 2)]);
    let text = shown[0].failures.kinds[0].0.to_string();
    assert_eq!(text, "flush after writes: the kernel could not write all data");
    (fixture.flush.0, fixture.stuck_flush) = (Ok(()), true);
    fixture.service = Duration::from_secs(30);
    let shown = rows(&mut fixture, &[Route::Kernel], random(0, 1), &plan((1, 1)), &mut fake_observer);
    let error = shown[0].figures.as_ref().expect_err("it does not end");
    assert_eq!((error.to_string().as_str(), error.is_failure()), ("flush after writes timed out", true));
}

#[test]
fn a_detached_drive_ends_its_row() {
    let (mut fixture, mut fake_observer) = (Fixture::new(), FakeObserver::default());
    fixture.gone_after = Some(100);
    let rows = rows(&mut fixture, &[Route::Kernel], random(100, 4), &plan((3, 9)), &mut fake_observer);
    let error = rows[0].figures.as_ref().expect_err("it is gone");
    assert_eq!(error.to_string(), "lost the drive: the unit is gone");
    assert_eq!(fixture.open_route.len(), 1);
    let Row { failures, error_counters, .. } = &rows[0];
    assert!(
        error.is_failure() && failures.count > 0 && error_counters.retries > 0,
        "{failures:?} {error_counters:?}"
    );
}

#[test]
fn a_stuck_access_ends_after_its_maximum_time() {
    // Somebody who ends it while it is waited for does not wait much longer.
    for (ticks_left, waited) in [(None, 400..=405), (Some(4), 10..=16)] {
        let (mut fixture, mut fake_observer) =
            (Fixture::new(), FakeObserver { ticks_left, ..FakeObserver::default() });
        (fixture.service, fixture.access_max) = (Duration::from_secs(1), Duration::from_secs(400));
        fixture.stuck = Some(2);
        let began = fixture.now;
        let rows = rows(&mut fixture, &[Route::Kernel], random(100, 2), &plan((1, 1)), &mut fake_observer);
        let error = rows[0].figures.as_ref().expect_err("it does not end");
        assert_eq!(error.to_string(), "1 requests did not complete in time");
        assert!(waited.contains(&(fixture.now - began).as_secs()), "{:?}", fixture.now - began);
    }
}

#[test]
fn read_back_times_out_like_a_run() {
    // 128 writes, four in a second, and eight reads, of which one does not end. All may be read while it is waited for; somebody who
    // ends it does not wait much longer.
    for (ticks_left, waited, checked) in [(None, 434..=437, 896), (Some(34), 44..=46, 384)] {
        let (mut fixture, mut fake_observer) =
            (Fixture::new(), FakeObserver { ticks_left, ..FakeObserver::default() });
        (fixture.service, fixture.access_max) = (Duration::from_secs(1), Duration::from_secs(400));
        fixture.stuck = Some(128 + 2);
        let began = fixture.now;
        let job = Job { once: true, ..Job::of(AccessSpec::all(4096, 0, 0), 4) };
        let verify = Plan { verify: true, ..plan((1, 1)) };
        let rows = rows(&mut fixture, &[Route::Kernel], job, &verify, &mut fake_observer);
        let error = rows[0].figures.as_ref().expect_err("it does not end");
        assert_eq!(error.to_string(), "1 requests did not complete in time");
        assert!(waited.contains(&(fixture.now - began).as_secs()), "{:?}", fixture.now - began);
        let findings = rows[0].findings.clone().expect("findings");
        assert_eq!((findings.written, findings.checked, findings.wrong), (1024, checked, 0));
    }
}

#[test]
fn each_access_has_its_full_timeout() {
    let (mut fixture, mut fake_observer) = (Fixture::new(), FakeObserver::default());
    (fixture.service, fixture.access_max) = (Duration::from_secs(200), Duration::from_secs(300));
    fixture.is_serial = true;
    let rows = rows(&mut fixture, &[Route::Bot], random(100, 4), &plan((1, 1)), &mut fake_observer);
    assert!(rows[0].figures.as_ref().is_ok_and(|figures| figures.ios == 1), "{:?}", rows[0].figures);
}

#[test]
fn an_interruption_keeps_the_figures_so_far() {
    let (mut fixture, mut fake_observer) = (Fixture::new(), FakeObserver::default());
    fake_observer.ticks_left = Some(2);
    let mut plan = plan((3, 9));
    plan.conditions.run = Duration::from_secs(3600);
    let jobs = [random(100, 1), random(100, 2)];
    let rows = measure(
        &mut fixture,
        &[Route::Kernel],
        &jobs,
        &plan,
        Watchers { energy: &Energy::new(Tree::at("/nowhere")), observer: &mut fake_observer },
    );
    assert_eq!(rows.len(), 1);
    assert!(rows[0].figures.as_ref().is_ok_and(|figures| figures.interrupted && figures.ios > 100));
}

/// The row of a job at depth 1 on a drive that takes a millisecond, ended at the tick of this number: one comes all 50 ms. Runs are of
/// 100 ms after 10 ms.
fn ended_at(tick: u32) -> Row {
    let (mut fixture, mut fake_observer) =
        (Fixture::new(), FakeObserver { ticks_left: Some(tick), ..FakeObserver::default() });
    fixture.service = Duration::from_millis(1);
    let mut plan = plan((3, 9));
    plan.conditions.run = Duration::from_millis(100);
    plan.steady_within = 0.0;
    rows(&mut fixture, &[Route::Kernel], random(100, 1), &plan, &mut fake_observer).remove(0)
}

#[test]
fn an_interrupted_round_counts_only_without_a_complete_one() {
    // Each run has two ticks. The second one of a run finds it 90 ms long, the first 40 ms.
    let alone = ended_at(2).figures.expect("figures");
    assert_eq!((alone.rounds, alone.iops_of_rounds.len(), alone.interrupted), (1, 1, true));
    assert!((90..=100).contains(&alone.ios), "{}", alone.ios);
    for tick in [3, 4] {
        let first = ended_at(tick).figures.expect("figures");
        assert_eq!((first.rounds, first.iops_of_rounds.len(), first.interrupted), (1, 1, true));
        assert!((99..=101).contains(&first.ios) && first.latency.len() == first.ios, "{}", first.ios);
        assert_eq!(first.iops.interval, None, "of one round there is none");
    }
    let second = ended_at(5).figures.expect("figures");
    assert!(second.iops_of_rounds.len() == 2 && second.iops.interval.is_some(), "{second:?}");
}

#[test]
fn an_early_interruption_has_no_figures() {
    let too_soon = ended_at(1);
    let error = too_soon.figures.expect_err("40 ms are too few");
    assert_eq!((&error, error.is_failure()), (&MeasureError::Interrupted, false));
    assert!(too_soon.error_counters.retries > 0, "errors are reported");
    let (mut fixture, mut fake_observer) =
        (Fixture::new(), FakeObserver { ticks_left: Some(2), ..FakeObserver::default() });
    let mut plan = plan((1, 1));
    plan.conditions.warm_up = Duration::from_secs(1);
    let of_warm_up =
        rows(&mut fixture, &[Route::Kernel], random(100, 4), &plan, &mut fake_observer).remove(0);
    assert_eq!(of_warm_up.figures.expect_err("it was the warm-up"), MeasureError::Interrupted);
    // Nothing has completed in it.
    let (mut fixture, mut fake_observer) =
        (Fixture::new(), FakeObserver { ticks_left: Some(3), ..FakeObserver::default() });
    fixture.bad = Some(0);
    plan.conditions =
        RunConditions { warm_up: Duration::ZERO, run: Duration::from_secs(3600), ..plan.conditions };
    let job = Job { span_bytes: Some(4096), ..random(0, 1) };
    let failed = rows(&mut fixture, &[Route::Kernel], job, &plan, &mut fake_observer).remove(0);
    assert_eq!(failed.figures.expect_err("no I/O"), MeasureError::Interrupted);
    assert!(failed.failures.count > 10);
}

#[test]
fn a_job_that_does_not_fit_is_an_error() {
    let (mut fixture, mut fake_observer) = (Fixture::new(), FakeObserver::default());
    let job = Job::of(AccessSpec::all(1 << 20, 100, 0), 1);
    let rows = rows(&mut fixture, &[Route::Kernel], job, &plan((1, 1)), &mut fake_observer);
    let error = rows[0].figures.as_ref().expect_err("the drive is smaller");
    assert_eq!(error.to_string(), "the used part of 524288 bytes is smaller than one access of 1048576");
}

#[test]
fn runs_use_different_lbas() {
    let (mut fixture, mut fake_observer) = (Fixture::new(), FakeObserver::default());
    let jobs = [random(100, 1), random(100, 2)];
    let energy = Energy::new(Tree::at("/nowhere"));
    let mut places = || {
        fixture.first_places.clear();
        measure(
            &mut fixture,
            &[Route::Bot, Route::Uas],
            &jobs,
            &plan((2, 2)),
            Watchers { energy: &energy, observer: &mut fake_observer },
        );
        fixture.first_places.clone()
    };
    let first = places();
    let distinct: std::collections::BTreeSet<_> = first.iter().collect();
    assert_eq!((first.len(), distinct.len()), (8, 8), "{first:?}");
    // The seed of the plan says which.
    assert_eq!(places(), first);
}

#[test]
fn a_failed_run_reports_wrong_blocks() {
    let (mut fixture, mut fake_observer) = (Fixture::new(), FakeObserver::default());
    (fixture.forgets, fixture.gone_after) = (Some(77), Some(4000));
    let verify = Plan { verify: true, ..plan((1, 1)) };
    let job = Job { span_bytes: Some(64 * 1024), ..Job::of(AccessSpec::all(512, 50, 100), 4) };
    let rows = rows(&mut fixture, &[Route::Kernel], job, &verify, &mut fake_observer);
    assert!(rows[0].figures.is_err(), "it is gone before the end");
    let findings = rows[0].findings.clone().expect("findings");
    assert!(findings.wrong > 0 && findings.first_wrong[0].lba == 77, "{findings:?}");
    // Nothing was read back, whatever was read meanwhile.
    assert!(findings.checked > 0 && findings.to_read_back > 0, "{findings:?}");
    assert_eq!((findings.read_back, findings.not_read_back), (0, findings.to_read_back));
}

#[test]
fn incomplete_read_back_is_reported() {
    let verify = Plan { verify: true, ..plan((1, 1)) };
    let job = Job { once: true, ..Job::of(AccessSpec::all(4096, 0, 0), 4) };
    let findings = |fixture: &mut Fixture, mut fake_observer: FakeObserver| {
        let rows = rows(fixture, &[Route::Kernel], job.clone(), &verify, &mut fake_observer);
        let findings = rows[0].findings.clone().expect("findings");
        assert_eq!(findings.to_read_back, findings.read_back + findings.not_read_back, "{findings:?}");
        (findings.read_back, findings.not_read_back, findings.written)
    };
    assert_eq!(findings(&mut Fixture::new(), FakeObserver::default()), (BLOCKS, 0, BLOCKS));
    // 128 writes of 20 ms each, and eight reads, in the middle of which somebody ends it.
    let ended = (40..60).any(|ticks| {
        let mut slow = Fixture::new();
        (slow.is_serial, slow.service) = (true, Duration::from_millis(20));
        let fake_observer = FakeObserver { ticks_left: Some(ticks), ..FakeObserver::default() };
        let (read_back, missing, written) = findings(&mut slow, fake_observer);
        read_back > 0 && missing > 0 && (read_back + missing, written) == (BLOCKS, BLOCKS)
    });
    assert!(ended);
    // All that one read was to bring.
    let mut broken = Fixture::new();
    broken.unreadable = Some(77);
    assert_eq!(findings(&mut broken, FakeObserver::default()).1, 128);
    let mut bad = Fixture::new();
    bad.bad = Some(77);
    assert_eq!(findings(&mut bad, FakeObserver::default()), (BLOCKS - 8, 8, BLOCKS - 8));
}

#[test]
fn a_good_drive_passes_verification_without_overlaps() {
    let (mut fixture, mut fake_observer) = (Fixture::new(), FakeObserver::default());
    let verify = Plan { verify: true, ..plan((2, 2)) };
    let job = Job::of(AccessSpec { align: workload::Align::Block, ..AccessSpec::all(4096, 30, 80) }, 8);
    let rows = rows(&mut fixture, &[Route::Kernel], job, &verify, &mut fake_observer);
    let findings = rows[0].findings.clone().expect("findings");
    assert!(findings.written > 100 && findings.checked >= BLOCKS / 2 && findings.wrong == 0, "{findings:?}");
    assert!(!fixture.overlapped);
}

#[test]
fn a_lost_write_is_detected() {
    let (mut fixture, mut fake_observer) = (Fixture::new(), FakeObserver::default());
    fixture.forgets = Some(77);
    let verify = Plan { verify: true, ..plan((1, 1)) };
    let job = Job { span_bytes: Some(64 * 1024), ..Job::of(AccessSpec::all(512, 0, 0), 4) };
    let rows = rows(&mut fixture, &[Route::Kernel], job, &verify, &mut fake_observer);
    let findings = rows[0].findings.clone().expect("findings");
    assert_eq!((findings.wrong, findings.first_wrong[0].lba), (1, 77));
}

#[test]
fn a_stale_buffer_does_not_pass_verification() {
    let (mut fixture, mut fake_observer) = (Fixture::new(), FakeObserver::default());
    fixture.brings_nothing = true;
    let verify = Plan { verify: true, ..plan((1, 1)) };
    // One slot, so that the last block that was written is in the memory that is read into.
    let job = Job { span_bytes: Some(512), ..Job::of(AccessSpec::all(512, 0, 0), 1) };
    let rows = rows(&mut fixture, &[Route::Kernel], job, &verify, &mut fake_observer);
    let findings = rows[0].findings.clone().expect("findings");
    assert_eq!((findings.checked, findings.wrong), (1, 1), "{findings:?}");
}

#[test]
fn stamps_of_an_earlier_run_do_not_pass() {
    let (mut fixture, mut fake_observer) = (Fixture::new(), FakeObserver::default());
    let verify = Plan { verify: true, ..plan((1, 1)) };
    let job = Job { span_bytes: Some(64 * 1024), ..Job::of(AccessSpec::all(512, 0, 0), 4) };
    rows(&mut fixture, &[Route::Bot], job.clone(), &verify, &mut fake_observer);
    // From here on it keeps what it has.
    fixture.forgets = Some(77);
    let rows = rows(&mut fixture, &[Route::Uas], job, &Plan { session: 2, ..verify }, &mut fake_observer);
    let findings = rows[0].findings.clone().expect("findings");
    assert_eq!(findings.first_wrong[0].found, crate::verify::BlockContent::OtherSession);
}

#[test]
fn nothing_is_allocated_per_request() {
    let mut bench_device =
        MemoryDevice::new(ByteCount(16 << 20), BlockSize::B512, Speed::Super).expect("16 MiB");
    let energy = Energy::new(Tree::at("/nowhere"));
    let (small, large) = ((4096, 32), (2 << 20, 8));
    for (route, read_percent, (bytes, depth)) in [
        (Route::Uas, 100, small),
        (Route::Uas, 50, small),
        (Route::Bot, 50, small),
        // Far more than a drive keeps by itself, and after what was of another length.
        (Route::Uas, 100, large),
        (Route::Uas, 50, large),
        (Route::Turbo, 50, large),
        (Route::Bot, 50, large),
        (Route::Uas, 50, (256 << 10, 100)),
        (Route::Uas, 50, large),
    ] {
        let job = Job::of(AccessSpec::all(bytes, read_percent, 100), depth);
        let runner =
            bench_device.open_route(route, BufferLayout { slots: depth, bytes }).expect("it is offered");
        let mut allocations_and_ios = |milliseconds| {
            let mut fake_observer = FakeObserver::default();
            let conditions =
                RunConditions { run: Duration::from_millis(milliseconds), ..plan((1, 1)).conditions };
            let context = RunContext { ledger: None, watch: &mut fake_observer, energy: Some(&energy) };
            let mut ios = 0;
            let counted = allocation_counter::measure(|| {
                ios = run(runner, &job, &conditions, context).map_or(0, |run| run.ios);
            });
            (counted.count_total, ios)
        };
        allocations_and_ios(50);
        let (short, long) = (allocations_and_ios(20), allocations_and_ios(200));
        // Each run makes its memory at the beginning; a longer one makes no more, but for chance: of a mix more may lie at one end at once
        // than ever before.
        let (more, chance) = if bytes > 4096 { (40, 20) } else { (1000, 4) };
        assert!(long.1 > short.1 + more, "{route}, {bytes}: {short:?} {long:?}");
        assert!(long.0 <= short.0 + chance, "{route}, {bytes}: {short:?} {long:?}");
    }
}
