//! One measurement written as `setup/variant workload depth`: from names to a figure.
//!
//! The data set is that of the articles' IOMeter runs, 10 GB of repetitive data. The order on a
//! platter is that of four reads of one track that arrive during the seek to it. Energy is summed
//! from the start of the measured time.
//!
//! Always true: results depend on parts, workload, depth and seed alone.

use crate::assembly::{Assembled, AssemblyError, BLOCK_SIZE};
use crate::explain::Explain;
use crate::measure::{Disk, DiskSize, MeasureError, Measured, Stretch, measure};
use crate::overhead::Overhead;
use crate::parts::{Carried, Catalogue};
use crate::published::{AccessPattern, Facts, Measurement, Outcome, PayloadDirection, Workload};
use crate::setups::{Assembly, DriveName};
use sim::check::AUDIT_INTERVAL_COMMANDS;
use sim::components::Components;
use sim::drive::Deferred;
use sim::drive::solid::Contents;
use sim::engine::{StageTimes, Trace};
use sim::machine::{Observer, Simulation, StopReason};
use sim::power::machine::{EnergyRecorder, EnergyUse};
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use units::{Duration, Extent, Instant};
use wire::usb::Direction;
use workload::{AccessSpec, Job};

/// Conditions of a run besides the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Random seed of LBAs.
    pub seed: u64,
    /// Length of the run.
    pub stretch: Stretch,
    /// Content of the drive, and payload.
    pub contents: Contents,
    /// Whether to explain stage times.
    pub explains: bool,
}

/// Results of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// The figures.
    pub measured: Measured,
    /// Events.
    pub events: u64,
    /// Digest of all events.
    pub digest: u64,
    /// Energy.
    pub spent: EnergyUse,
    /// UAS overhead besides payload.
    pub overhead: Overhead,
    /// Counters of the parts during the measured time.
    pub components: Components,
    /// Total stage times of commands with their number, if requested. For requests of one command
    /// these are the counted requests in order of completion; for longer ones all commands
    /// completed meanwhile.
    pub explained: Option<(StageTimes, u64)>,
}

/// Observers of a running job. None by default, at no cost.
#[derive(Default)]
pub struct TrialObservers {
    /// Observes the drive from enumeration on.
    pub observer: Option<Box<dyn Observer>>,
    /// Observes the drive from the first request on.
    pub late_observer: Option<Box<dyn Observer>>,
    /// Receives the trace until this many requests have completed.
    pub trace: Option<(Box<dyn Trace>, u32)>,
    /// Receives the latency of each counted request in order of completion; at most
    /// [`LATENCIES_MAX`].
    pub latencies: Option<Rc<RefCell<Vec<Duration>>>>,
}

/// Why a measurement has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrialError {
    /// The variant does not exist.
    Unknown(String),
    /// The parts cannot be built.
    Assembly(AssemblyError),
    /// The run failed.
    Measure(MeasureError),
    /// The order on a platter needs a hard disk.
    NoPlatter,
}

/// Maximum of recorded latencies: the first ones.
pub const LATENCIES_MAX: usize = 1 << 20;

/// Bytes of the data set (P018).
pub const DATA_SET_BYTES: u64 = 10_000_000_000;

impl Terms {
    /// Terms of the published runs. Repetitive data compress to a seventh: 4 KiB of one pattern
    /// shrink to little more than a mapping unit, plus the drive's metadata. Chosen, not measured.
    pub const USUAL: Self = Self {
        seed: 1,
        stretch: Stretch::USUAL,
        contents: Contents { compressed_per_mille: 140, worn_sectors: 0 },
        explains: false,
    };
}

/// Runs a job on parts.
///
/// # Errors
///
/// See [`TrialError`].
pub fn run(
    assembly: &Assembly,
    catalogue: &Catalogue,
    job: &Job,
    terms: &Terms,
) -> Result<Trial, TrialError> {
    run_observed(assembly, catalogue, job, terms, TrialObservers::default())
}

/// Runs a job with observers, which do not affect it. Native SATA has no USB to observe.
///
/// # Errors
///
/// See [`TrialError`].
pub fn run_observed(
    assembly: &Assembly,
    catalogue: &Catalogue,
    job: &Job,
    terms: &Terms,
    observers: TrialObservers,
) -> Result<Trial, TrialError> {
    let disk = Assembled::power_on_watched(assembly, catalogue, terms.contents, observers.observer);
    let mut disk = disk.map_err(TrialError::Assembly)?;
    let overhead = Rc::new(RefCell::new(Overhead::default()));
    if matches!(disk.activation.transport, Carried::Uas(_))
        && let Some(world) = disk.usb()
    {
        world.observe(0, Box::new(Rc::clone(&overhead)));
    }
    let explain = terms.explains.then(|| {
        let explain = Rc::new(RefCell::new(Explain::default()));
        disk.observe(Box::new(Rc::clone(&explain)));
        explain
    });
    let size = DiskSize { block_size: BLOCK_SIZE, capacity: disk.capacity };
    if let (Some(world), Some(observer)) = (disk.usb(), observers.late_observer) {
        world.observe(0, observer);
    }
    let traced = observers.trace.map(|(trace, requests)| {
        disk.trace_to(trace);
        requests
    });
    let mut metered = Metered::new(disk, traced);
    metered.latencies = observers.latencies;
    metered.explain = explain;
    let measured = measure(&mut metered, job, size, &terms.stretch, terms.seed);
    let measured = measured.map_err(TrialError::Measure)?;
    metered.audit().map_err(TrialError::Measure)?;
    let spent = metered.spent();
    let components = metered.disk.components().since(&metered.before);
    let (_, events, digest) = metered.disk.books();
    let explained = metered.explain.is_some().then_some(metered.explained);
    let overhead = *overhead.borrow();
    Ok(Trial { measured, events, digest, spent, overhead, components, explained })
}

/// A disk with energy and latency accounting.
struct Metered {
    disk: Assembled,
    bill: EnergyRecorder,
    /// Counters at the start of the measured time.
    before: Components,
    /// Requests still to be traced.
    traced: Option<u32>,
    /// Requests until the next audit.
    until_audit: u32,
    /// Latencies, if requested, and submission times by request number.
    latencies: Option<Rc<RefCell<Vec<Duration>>>>,
    in_flight: Vec<Asked>,
    /// Explains commands, if requested, with the sums over counted requests.
    explain: Option<Rc<RefCell<Explain>>>,
    explained: (StageTimes, u64),
}

/// A request, by its number.
#[derive(Clone, Copy, Debug, Default)]
struct Asked {
    since: Instant,
    /// It is one command.
    is_one: bool,
}

impl Metered {
    fn new(mut disk: Assembled, traced: Option<u32>) -> Self {
        let bill = EnergyRecorder::new(disk.draws, disk.now(), disk.activity());
        let (before, latencies, in_flight) = (disk.components(), None, Vec::new());
        let (explain, explained) = (None, Default::default());
        let until_audit = AUDIT_INTERVAL_COMMANDS;
        Self { disk, bill, before, traced, until_audit, latencies, in_flight, explain, explained }
    }

    /// Checks all invariants: a violation invalidates the figures.
    fn audit(&mut self) -> Result<(), MeasureError> {
        self.until_audit = AUDIT_INTERVAL_COMMANDS;
        self.disk.audit().map_err(|violation| MeasureError::Stopped(StopReason::Broken(violation)))
    }

    fn spent(&mut self) -> EnergyUse {
        self.bill.spent(self.disk.now(), self.disk.activity())
    }

    /// Adds the explained command of a completed request. Requests that complete together are taken
    /// in order.
    fn explain(&mut self, request: Asked) {
        let Some(explain) = &self.explain else { return };
        let mut explain = explain.borrow_mut();
        let (shares, commands) = &mut self.explained;
        while let Some(one) = explain.poll() {
            shares.add(&one.shares);
            *commands += 1;
            if request.is_one {
                return;
            }
        }
    }
}

impl Disk for Metered {
    fn now(&self) -> Instant {
        self.disk.now()
    }

    fn submit(&mut self, number: u16, direction: Direction, extent: Extent) -> Result<(), MeasureError> {
        let place = usize::from(number);
        if self.in_flight.len() <= place {
            self.in_flight.resize(place + 1, Asked::default());
        }
        let bytes = extent.blocks.0 * u64::from(BLOCK_SIZE.bytes());
        let is_one = bytes <= self.disk.activation.command_bytes_max.into();
        self.in_flight[place] = Asked { since: self.disk.now(), is_one };
        self.disk.submit(number, direction, extent)
    }

    fn next(&mut self) -> Result<Option<u16>, MeasureError> {
        let ended = self.disk.next()?;
        self.until_audit = self.until_audit.saturating_sub(1);
        if self.until_audit == 0 {
            self.audit()?;
        }
        let now = self.disk.now();
        if self.bill.is_due(now) {
            self.bill.read(now, self.disk.activity());
        }
        if let Some(request) = ended.and_then(|number| self.in_flight.get(usize::from(number)).copied()) {
            if let Some(latencies) = &self.latencies {
                let mut latencies = latencies.borrow_mut();
                if latencies.len() < LATENCIES_MAX {
                    latencies.push(now - request.since);
                }
            }
            self.explain(request);
        }
        self.traced = self.traced.map(|left| left.saturating_sub(1));
        if self.traced == Some(0) {
            self.traced = None;
            self.disk.take_trace();
        }
        Ok(ended)
    }

    fn deferred(&mut self) -> Deferred {
        self.disk.deferred()
    }

    fn begin(&mut self) {
        if let Some(latencies) = &self.latencies {
            latencies.borrow_mut().clear();
        }
        self.explained = Default::default();
        self.bill = EnergyRecorder::new(self.disk.draws, self.disk.now(), self.disk.activity());
        self.before = self.disk.components();
    }
}

/// Makes a measurement of a published row.
///
/// # Errors
///
/// See [`TrialError`].
pub fn outcome(facts: Facts<'_>, measurement: &Measurement, terms: &Terms) -> Result<Outcome, TrialError> {
    let Measurement { setup, variant, workload, depth } = measurement;
    let of =
        facts.variant(setup, variant).ok_or_else(|| TrialError::Unknown(format!("{setup}/{variant}")))?;
    let Some(job) = job(workload, *depth) else {
        let order = Some(platter(&of.assembly, facts.catalogue, terms)?.order());
        return Ok(Outcome { order, ..Outcome::default() });
    };
    let Trial { measured, spent, overhead, .. } = run(&of.assembly, facts.catalogue, &job, terms)?;
    Ok(Outcome {
        bytes_per_second: measured.megabytes_per_second() * 1e6,
        requests_per_second: measured.iops(),
        latency_ns: measured.mean.as_ps() as f64 / 1e3,
        watts_peak: Some(spent.peak_watts()),
        unit_bytes: overhead.unit_bytes(),
        ready_units: overhead.ready_units(),
        ..Outcome::default()
    })
}

/// Positions of four reads on a track, in hundredths from where the head arrives: requests 1 to 4,
/// of which 3 passes first, then 2, 4 and 1 (P013).
const PLACES: [u64; 4] = [80, 30, 10, 50];
/// The cylinder of that track, away from the arm's initial position.
const CYLINDER: u64 = 1000;
/// Sectors of each read.
const READ_SECTORS: u64 = 8;

/// The order in which a disk served requests on one track.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// Of the track.
    pub cylinder: u64,
    /// Positions of the requests, from request 1 on, in hundredths of the track from where the head
    /// arrives.
    pub places: Vec<u64>,
    /// Duration of a revolution.
    pub rotation: Duration,
    /// The requests in order of completion; number 0 is one at the start of the track that the disk
    /// was serving when the others arrived.
    pub served: Vec<Served>,
}

/// A served request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// Its number.
    pub number: u16,
    /// Completion time, from the submission of all.
    pub at: Duration,
}

impl Service {
    /// Returns the order as the digits of a number: 3241.
    pub fn order(&self) -> u32 {
        self.served.iter().fold(0, |order, served| order * 10 + u32::from(served.number))
    }
}

/// Returns how a disk serves four reads on one track, which arrive while it serves another at the
/// start of the track.
///
/// # Errors
///
/// See [`TrialError`].
pub fn platter(assembly: &Assembly, catalogue: &Catalogue, terms: &Terms) -> Result<Service, TrialError> {
    let DriveName::Hdd(name) = &assembly.drive else { return Err(TrialError::NoPlatter) };
    let part = catalogue.hdd(name).ok_or_else(|| TrialError::Unknown(name.clone()))?;
    let track = part.zones.first().map_or(0, |zone| u64::from(zone.sectors_per_track));
    let begins = CYLINDER * u64::from(part.surfaces) * track;
    let disk = Assembled::power_on(assembly, catalogue, terms.contents);
    let mut disk = disk.map_err(TrialError::Assembly)?;
    let places = [0].into_iter().chain(PLACES.map(|hundredths| track * hundredths / 100));
    for (number, place) in (0..).zip(places) {
        let extent = Extent::new(begins + place, READ_SECTORS);
        disk.submit(number, Direction::In, extent).map_err(TrialError::Measure)?;
    }
    let began = disk.now();
    let mut served = Vec::new();
    for _ in 0..=PLACES.len() {
        let stuck = TrialError::Measure(MeasureError::Stuck);
        let number = disk.next().map_err(TrialError::Measure)?.ok_or(stuck)?;
        served.push(Served { number, at: disk.now() - began });
    }
    Ok(Service { cylinder: CYLINDER, places: PLACES.to_vec(), rotation: part.rotation, served })
}

/// Converts a workload to a job. `None` if it is not a loop of requests.
pub fn job(workload: &Workload, depth: u16) -> Option<Job> {
    let share = match *workload {
        Workload::Blocks { bytes, access, way } => {
            let reads = if way == PayloadDirection::Read { 100 } else { 0 };
            let random = if access == AccessPattern::Random { 100 } else { 0 };
            AccessSpec::all(bytes, reads, random)
        }
        Workload::Workstation => AccessSpec::all(8 << 10, 80, 80),
        Workload::Platter => return None,
    };
    Some(Job { span_bytes: Some(DATA_SET_BYTES), ..Job::of(share, depth) })
}

impl fmt::Display for TrialError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name) => write!(f, "no such setup: `{name}`"),
            Self::Assembly(error) => error.fmt(f),
            Self::Measure(error) => error.fmt(f),
            Self::NoPlatter => f.write_str("only a hard disk has a platter order"),
        }
    }
}

impl std::error::Error for TrialError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setups::Setup;
    use sim::engine::LatencyStage;

    fn order(variant: &str) -> u32 {
        let catalogue = Catalogue::built_in().unwrap();
        let setups = Setup::built_in(&catalogue).unwrap();
        let toms = setups.iter().find(|setup| setup.name == "toms").unwrap();
        platter(&toms.variant(variant).unwrap().assembly, &catalogue, &Terms::USUAL).unwrap().order()
    }

    #[test]
    fn uas_reorders_reads_of_a_track_and_bot_does_not() {
        assert_eq!((order("disk-uasp"), order("hdd-bot")), (3241, 1234));
    }

    #[test]
    fn stage_times_include_the_bridge() {
        let catalogue = Catalogue::built_in().unwrap();
        let setups = Setup::built_in(&catalogue).unwrap();
        let myce = setups.iter().find(|setup| setup.name == "myce").unwrap();
        let job = Job { span_bytes: Some(DATA_SET_BYTES), ..Job::of(AccessSpec::all(4096, 100, 100), 1) };
        for variant in ["bot", "uasp"] {
            let assembly = &myce.variant(variant).unwrap().assembly;
            let plain = run(assembly, &catalogue, &job, &Terms::USUAL).unwrap();
            let explained =
                run(assembly, &catalogue, &job, &Terms { explains: true, ..Terms::USUAL }).unwrap();
            assert_eq!(
                (plain.digest, plain.measured),
                (explained.digest, explained.measured),
                "who looks on changes nothing"
            );
            let (shares, commands) = explained.explained.unwrap();
            let [mean, bridge] =
                [shares.total(), shares.of(LatencyStage::Bridge)].map(|all| all.as_ps() / commands);
            // The firmware's two times in the file of the bridge, one after the other.
            let costs = catalogue.bridge("asm1051e").unwrap().firmware;
            let (command, status) = match variant {
                "bot" => (costs.bot_command, costs.bot_status),
                _ => (costs.uas_command, costs.uas_status),
            };
            assert!(bridge.abs_diff((command + status).as_ps()) < 1_000_000, "{variant}: {bridge}");
            assert!(mean.abs_diff(explained.measured.mean.as_ps()) < mean / 50, "{variant}: {mean}");
        }
    }

    #[test]
    fn stage_times_of_each_command_add_up() {
        let catalogue = Catalogue::built_in().unwrap();
        let setups = Setup::built_in(&catalogue).unwrap();
        let myce = setups.iter().find(|setup| setup.name == "myce").unwrap();
        for (variant, bytes, depth) in [
            ("bot", 4096, 4),
            ("bot", 2 << 20, 1),
            ("uasp", 4096, 16),
            ("uasp", 2 << 20, 2),
            ("turbo", 64 << 10, 4),
        ] {
            let job =
                Job { span_bytes: Some(DATA_SET_BYTES), ..Job::of(AccessSpec::all(bytes, 50, 50), depth) };
            let (explain, clock) = (Rc::default(), Rc::default());
            let seen = TrialObservers {
                observer: Some(Box::new(Rc::clone(&clock))),
                late_observer: Some(Box::new(Rc::clone(&explain))),
                ..TrialObservers::default()
            };
            let assembly = &myce.variant(variant).unwrap().assembly;
            let trial = run_observed(assembly, &catalogue, &job, &Terms::USUAL, seen).unwrap();
            let exact = crate::explain::tests::assert_exact(&explain, &clock);
            assert!(exact as u64 >= trial.measured.requests, "{variant}: {exact}");
        }
    }

    #[test]
    fn work_for_a_pack_counts_for_each_command() {
        let catalogue = Catalogue::built_in().unwrap();
        let setups = Setup::built_in(&catalogue).unwrap();
        let myce = setups.iter().find(|setup| setup.name == "myce").unwrap();
        let turbo = &myce.variant("turbo").unwrap().assembly;
        for depth in [1, 4] {
            let job = Job {
                span_bytes: Some(DATA_SET_BYTES),
                ..Job::of(AccessSpec::all(512 << 10, 100, 0), depth)
            };
            let terms = Terms { explains: true, ..Terms::USUAL };
            let (shares, commands) = run(turbo, &catalogue, &job, &terms).unwrap().explained.unwrap();
            let us = |stage| shares.of(stage).as_ps() as f64 / commands as f64 / 1e6;
            // 512 KiB take 1,160 us on the link at least, of 1,500 in all; a pack has the drive read meanwhile.
            let busy = us(LatencyStage::Drive) + us(LatencyStage::Link);
            assert!(busy > 1000.0 && us(LatencyStage::Bridge) > 1.0, "{depth}: {shares:?}");
        }
    }

    #[test]
    fn native_sata_has_driver_and_drive_stages_only() {
        let catalogue = Catalogue::built_in().unwrap();
        let setups = Setup::built_in(&catalogue).unwrap();
        let sata =
            &setups.iter().find(|setup| setup.name == "myce").unwrap().variant("sata").unwrap().assembly;
        for depth in [1, 8, 64] {
            let job =
                Job { span_bytes: Some(DATA_SET_BYTES), ..Job::of(AccessSpec::all(4096, 100, 100), depth) };
            let plain = run(sata, &catalogue, &job, &Terms::USUAL).unwrap();
            let explained = run(sata, &catalogue, &job, &Terms { explains: true, ..Terms::USUAL }).unwrap();
            assert_eq!((plain.digest, plain.measured), (explained.digest, explained.measured));
            let (shares, commands) = explained.explained.unwrap();
            let us = |stage| shares.of(stage).as_ps() as f64 / commands as f64 / 1e6;
            let mean = shares.total().as_ps() / commands;
            assert_eq!(
                (commands, mean),
                (explained.measured.requests, explained.measured.mean.as_ps()),
                "{depth}"
            );
            let elsewhere =
                [LatencyStage::Controller, LatencyStage::Link, LatencyStage::Bridge, LatencyStage::Waiting];
            assert!(elsewhere.iter().all(|stage| us(*stage) == 0.0), "{depth}: {shares:?}");
            assert!(
                us(LatencyStage::Driver) > 0.0 && us(LatencyStage::Drive) > us(LatencyStage::Driver),
                "{depth}: {shares:?}"
            );
            // The port takes 32; the others wait above it.
            assert_eq!(us(LatencyStage::Queue) > 1.0, depth > 32, "{depth}: {shares:?}");
        }
    }

    #[test]
    fn queueing_above_the_transport_is_a_stage() {
        let catalogue = Catalogue::built_in().unwrap();
        let setups = Setup::built_in(&catalogue).unwrap();
        let of = |setup: &str, variant: &str| {
            let setup = setups.iter().find(|known| known.name == setup).unwrap();
            let job =
                Job { span_bytes: Some(DATA_SET_BYTES), ..Job::of(AccessSpec::all(4096, 100, 100), 16) };
            let terms = Terms { explains: true, ..Terms::USUAL };
            run(&setup.variant(variant).unwrap().assembly, &catalogue, &job, &terms).unwrap()
        };
        // The queue of a transport that takes one or two at a time, against one that takes all of the sixteen.
        for (setup, variant, least) in
            [("myce", "bot", 0.9), ("hardware-fr", "intel-win8-uasp", 0.8), ("myce", "uasp", 0.0)]
        {
            let Trial { measured, explained, .. } = of(setup, variant);
            let (shares, commands) = explained.unwrap();
            // One request is one command here, so that its stages are the program's own latency, to the picosecond.
            assert_eq!(commands, measured.requests, "{variant}");
            assert_eq!(shares.total().as_ps() / commands, measured.mean.as_ps(), "{variant}");
            let queued = shares.of(LatencyStage::Queue).as_ps() as f64 / shares.total().as_ps() as f64;
            assert!(queued >= least && (least > 0.0 || queued < 0.05), "{variant}: {queued}");
        }
    }

    #[test]
    fn reads_larger_than_the_bridge_buffer_complete() {
        let catalogue = Catalogue::built_in().unwrap();
        let setups = Setup::built_in(&catalogue).unwrap();
        let toms = setups.iter().find(|setup| setup.name == "toms").unwrap();
        let usb2 = &toms.variant("usb2-uasp").unwrap().assembly;
        let held = catalogue.bridge("asm1051").unwrap().buffer_bytes;
        for bytes in [held / 2, held, held * 2] {
            let job =
                Job { span_bytes: Some(DATA_SET_BYTES), ..Job::of(AccessSpec::all(bytes, 100, 100), 8) };
            let rate = run(usb2, &catalogue, &job, &Terms::USUAL).unwrap().measured.megabytes_per_second();
            assert!((30.0..53.3).contains(&rate), "{bytes}: {rate}");
        }
    }

    #[test]
    fn an_awake_link_stays_in_u0_and_power_adds_up() {
        let catalogue = Catalogue::built_in().unwrap();
        let setups = Setup::built_in(&catalogue).unwrap();
        let myce = setups.iter().find(|setup| setup.name == "myce").unwrap();
        let job = Job { span_bytes: Some(DATA_SET_BYTES), ..Job::of(AccessSpec::all(4096, 100, 100), 4) };
        let of =
            |variant| run(&myce.variant(variant).unwrap().assembly, &catalogue, &job, &Terms::USUAL).unwrap();
        let Trial { measured, spent, .. } = of("uasp");
        assert_eq!(spent.elapsed, measured.elapsed);
        assert_eq!(spent.activity.link.unwrap()[0], measured.elapsed);
        let at_work = [spent.activity.core, spent.activity.controller, spent.activity.drive];
        assert!(
            at_work.iter().all(|time| *time > Duration::ZERO && *time <= measured.elapsed),
            "{at_work:?}"
        );
        assert!(spent.total().joules() > 0.0 && spent.peak_watts() > 0.0);
        let cable = of("sata").spent;
        assert_eq!((cable.activity.link, cable.activity.bridge), (None, None));
        assert!(cable.activity.core > Duration::ZERO && cable.activity.drive > Duration::ZERO);
    }

    #[test]
    fn an_ssd_has_no_platter_order() {
        let catalogue = Catalogue::built_in().unwrap();
        let setups = Setup::built_in(&catalogue).unwrap();
        let facts = Facts { catalogue: &catalogue, setups: &setups };
        let one = &Measurement::all("myce/uasp platter qd4").unwrap()[0];
        assert_eq!(outcome(facts, one, &Terms::USUAL), Err(TrialError::NoPlatter));
    }

    #[test]
    fn latencies_cover_the_counted_requests() {
        let catalogue = Catalogue::built_in().unwrap();
        let setups = Setup::built_in(&catalogue).unwrap();
        let myce = setups.iter().find(|setup| setup.name == "myce").unwrap();
        let job = Job { span_bytes: Some(DATA_SET_BYTES), ..Job::of(AccessSpec::all(4096, 100, 100), 4) };
        let latencies = Rc::new(RefCell::new(Vec::new()));
        let seen = TrialObservers { latencies: Some(Rc::clone(&latencies)), ..TrialObservers::default() };
        let Trial { measured, .. } =
            run_observed(&myce.variant("uasp").unwrap().assembly, &catalogue, &job, &Terms::USUAL, seen)
                .unwrap();
        let latencies = latencies.take();
        assert_eq!(latencies.len() as u64, measured.requests);
        assert_eq!(latencies.iter().max(), Some(&measured.longest));
        let sum: u64 = latencies.iter().map(|latency| latency.as_ps()).sum();
        assert_eq!(sum / measured.requests, measured.mean.as_ps());
    }

    #[test]
    fn equal_seeds_have_equal_figures() {
        let catalogue = Catalogue::built_in().unwrap();
        let setups = Setup::built_in(&catalogue).unwrap();
        let facts = Facts { catalogue: &catalogue, setups: &setups };
        let one = &Measurement::all("myce/uasp 4K random read qd4").unwrap()[0];
        let of = |seed| outcome(facts, one, &Terms { seed, ..Terms::USUAL }).unwrap().latency_ns;
        assert!(of(1) == of(1) && of(1) != of(2), "{} {}", of(1), of(2));
    }
}
