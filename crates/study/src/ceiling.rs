//! The maximum throughput of each transport: the same commands over link and protocol with a
//! fixed-latency drive.
//!
//! A closed loop keeps a number of commands outstanding at random LBAs. The host is a driver and a
//! controller of which only the controller takes time; or there is neither, and the result is the
//! limit of link and protocol. BOT carries one command at a time, whatever the depth: the others
//! wait in order, and their latency includes the wait, as an application sees it. A controller may
//! have several drives, each with its own loop.

mod command_time;
mod error;
mod load;

pub use command_time::Explained;
pub use error::CeilingError;
pub use load::{DEPTH_MAX, Drives, Load};

use crate::explain::Explain;
use command_time::{CommandTime, CommandTimes, StartedCommand};
use initiator::{Command, CommandBlock, CommandId, Outcome, Transport};
use load::{BLOCK_SIZE, COMMAND_TIMEOUT};
use sim::components::Components;
use sim::engine::{Random, StageTimes, Trace};
use sim::link::superspeed::Traffic;
pub use sim::machine::xhci::Protocol;
use sim::machine::xhci::{Drive, DriveParts, Host, XhciMachine};
use sim::machine::{
    DirectMachine, FinishedCommand, FixedLatencyDrive, Observer, Plugged, Simulation, StopReason, numbers,
};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use units::{Duration, Instant};
use wire::scsi::Status;
use wire::scsi::lun::LunField;

/// Results.
#[derive(Clone, Copy, Debug)]
pub struct Figures {
    /// Completed commands.
    pub commands: u64,
    /// Virtual time of the measurement.
    pub elapsed: Duration,
    /// Bytes moved.
    pub bytes: u64,
    /// Mean latency, from submission by the application.
    pub mean: Duration,
    /// Mean number of commands that the transport holds.
    pub depth: f64,
    /// Counters of the SuperSpeed lanes: the host's, the device's.
    pub traffic: Option<[Traffic; 2]>,
    /// Events.
    pub events: u64,
    /// Digest of all events.
    pub digest: u64,
    /// Stage times of the first drive's commands, if requested.
    pub explained: Option<Explained>,
}

/// Results of a load, in total and per drive.
#[derive(Clone, Debug)]
pub struct Run {
    /// Total.
    pub total: Figures,
    /// Per drive.
    pub drives: Vec<DriveFigures>,
    /// Counters of the components.
    pub components: Components,
}

/// Results of one drive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DriveFigures {
    /// Completed commands.
    pub commands: u64,
    /// Mean latency, from submission by the application.
    pub mean: Duration,
    /// Commands per second.
    pub iops: f64,
    /// Megabytes (10⁶ bytes) per second.
    pub megabytes_per_second: f64,
}

/// Observers of a running load. None by default, at no cost.
#[derive(Default)]
pub struct LoadObservers {
    /// Transfer observers from enumeration on, by drive.
    pub observers: Vec<Box<dyn Observer>>,
    /// Receives the trace of this many commands.
    pub trace: Option<(Box<dyn Trace>, u32)>,
    /// Whether to explain the stage times of the first drive's commands.
    pub explain: bool,
}

/// Measures a transport.
///
/// # Errors
///
/// See [`CeilingError`].
pub fn measure(load: &Load, protocol: Protocol, observers: LoadObservers) -> Result<Run, CeilingError> {
    load.check()?;
    if let Some(host) = load.host {
        let (world, observers) = power_on(load, host, protocol, observers)?;
        return Measurement::begin(load, world, observers)?.whole();
    }
    if load.drives != Drives::ONE {
        return Err(CeilingError::OneDrive);
    }
    match protocol {
        Protocol::Bot => {
            let (plugged, plain) = load.bot()?;
            Measurement::bare(load, plugged, plain, observers)?.whole()
        }
        Protocol::Uas => {
            let (plugged, plain) = load.uas()?;
            Measurement::bare(load, plugged, plain, observers)?.whole()
        }
    }
}

/// Measures UAS without observers.
///
/// # Errors
///
/// See [`CeilingError`].
pub fn uas(load: &Load) -> Result<Figures, CeilingError> {
    measure(load, Protocol::Uas, LoadObservers::default()).map(|run| run.total)
}

/// Measures BOT without observers.
///
/// # Errors
///
/// See [`CeilingError`].
pub fn bot(load: &Load) -> Result<Figures, CeilingError> {
    measure(load, Protocol::Bot, LoadObservers::default()).map(|run| run.total)
}

impl Figures {
    /// Returns commands per second.
    pub fn iops(&self) -> f64 {
        self.commands as f64 / self.seconds()
    }

    /// Returns megabytes (10⁶ bytes) per second.
    pub fn megabytes_per_second(&self) -> f64 {
        self.bytes as f64 / 1e6 / self.seconds()
    }

    fn seconds(&self) -> f64 {
        self.elapsed.as_ps() as f64 / 1e12
    }
}

/// Powers a load's machine on. Returns it and the remaining observers.
fn power_on(
    load: &Load,
    host: Host,
    protocol: Protocol,
    observers: LoadObservers,
) -> Result<(XhciMachine, LoadObservers), CeilingError> {
    let LoadObservers { observers, trace, explain } = observers;
    let observers = observers.into_iter().enumerate().collect();
    let setup = load.setup(host, protocol);
    let occupy = |_: usize, drive: &Drive| DriveParts::of(drive, setup.rate_of(drive).speed());
    let world = setup.power_on_with(occupy, observers).map_err(CeilingError::PowerOn)?;
    Ok((world, LoadObservers { observers: Vec::new(), trace, explain }))
}

/// A running measurement.
pub struct Measurement<W> {
    load: Load,
    turns: Loop<W>,
    /// Counters when counting began.
    began: Instant,
    events: u64,
    components: Components,
    /// Per drive.
    tallies: Vec<CommandTimes>,
    /// Commands until the next audit.
    until_audit: u32,
    explained: Option<Explained>,
}

/// A load on a machine.
struct Loop<W> {
    world: W,
    random: Random,
    /// The command of each slot, per drive.
    begun: Vec<Vec<StartedCommand>>,
    /// Submission times of commands that the transport does not accept yet, per drive.
    waiting: Vec<VecDeque<Instant>>,
    /// Buffers of completed commands.
    spare: Vec<Vec<u8>>,
    explain: Option<Rc<RefCell<Explain>>>,
    /// Commands still to be traced.
    noted: u32,
}

impl Measurement<XhciMachine> {
    /// Starts measuring UAS with streams over driver and controller, without observers.
    ///
    /// # Errors
    ///
    /// See [`CeilingError`].
    pub fn uas(load: &Load, host: Host) -> Result<Self, CeilingError> {
        let (world, observers) = power_on(load, host, Protocol::Uas, LoadObservers::default())?;
        Self::begin(load, world, observers)
    }
}

impl<T: Transport> Measurement<DirectMachine<T>> {
    /// Without driver and controller.
    fn bare(
        load: &Load,
        plugged: Plugged<T>,
        plain: FixedLatencyDrive,
        mut observers: LoadObservers,
    ) -> Result<Self, CeilingError> {
        if let Some(observer) = observers.observers.first_mut() {
            plugged.enumeration.iter().for_each(|exchange| observer.control(Instant::ZERO, exchange));
        }
        Self::begin(load, DirectMachine::new(load.connection, plugged, plain), observers)
    }
}

impl<W: Simulation> Measurement<W> {
    fn begin(load: &Load, world: W, observers: LoadObservers) -> Result<Self, CeilingError> {
        let drives = world.drives();
        let depth_of = |drive| u16::try_from(world.depth(drive)).unwrap_or(u16::MAX);
        let depths: Vec<_> = (0..drives).map(|drive| load.depth.min(depth_of(drive)).max(1)).collect();
        let mut turns = Loop::new(world, load.seed, observers, &depths);
        (0..drives).try_for_each(|drive| turns.greet(drive))?;
        for (drive, &depth) in depths.iter().enumerate() {
            let now = turns.world.now();
            (0..depth).try_for_each(|slot| turns.submit(load, drive, slot, now))?;
            let waiting = load.depth.saturating_sub(depth).into();
            turns.waiting[drive].extend(std::iter::repeat_n(now, waiting));
        }
        // Filling the pipes is not counted.
        for _ in 0..load.in_flight() {
            let (drive, _) = turns.next(load)?;
            turns.take_shares(drive);
        }
        turns.audit()?;
        Ok(Self {
            load: load.clone(),
            began: turns.world.now(),
            events: turns.world.happened(),
            components: turns.world.components(),
            tallies: vec![CommandTimes::default(); drives],
            until_audit: load.audited_every(),
            explained: turns.explain.as_ref().map(|_| Explained::default()),
            turns,
        })
    }

    /// Continues until this many more commands have completed.
    ///
    /// # Errors
    ///
    /// See [`CeilingError`].
    pub fn go_on(&mut self, commands: u32) -> Result<(), CeilingError> {
        for _ in 0..commands {
            let (drive, time) = self.turns.next(&self.load)?;
            self.until_audit = self.until_audit.saturating_sub(1);
            if self.until_audit == 0 {
                self.until_audit = self.load.audited_every();
                self.turns.audit()?;
            }
            let tally = &mut self.tallies[drive];
            tally.stays += time.waited + time.held;
            tally.held += time.held;
            tally.commands += 1;
            if let (Some(all), Some(mut one)) = (&mut self.explained, self.turns.take_shares(drive)) {
                one.add(&time.queued());
                all.add(one);
            }
        }
        Ok(())
    }

    /// Returns the totals over all drives so far.
    pub fn figures(&self) -> Figures {
        let elapsed = self.turns.world.now() - self.began;
        let traffic = self.components().links.first().map(|lanes| lanes.map(|lane| lane.traffic));
        let mut all = CommandTimes::default();
        for tally in &self.tallies {
            all.commands += tally.commands;
            all.stays += tally.stays;
            all.held += tally.held;
        }
        Figures {
            commands: all.commands,
            elapsed,
            bytes: all.commands * u64::from(self.load.bytes),
            mean: all.mean(),
            depth: all.held.as_ps() as f64 / elapsed.as_ps() as f64,
            traffic,
            events: self.turns.world.happened() - self.events,
            digest: self.turns.world.digest(),
            explained: self.explained,
        }
    }

    /// Returns the counters of the components since counting began.
    fn components(&self) -> Components {
        self.turns.world.components().since(&self.components)
    }

    /// Returns the results per drive so far.
    pub fn drives(&self) -> Vec<DriveFigures> {
        let seconds = (self.turns.world.now() - self.began).as_ps() as f64 / 1e12;
        let of = |tally: &CommandTimes| DriveFigures {
            commands: tally.commands,
            mean: tally.mean(),
            iops: tally.commands as f64 / seconds,
            megabytes_per_second: (tally.commands * u64::from(self.load.bytes)) as f64 / 1e6 / seconds,
        };
        self.tallies.iter().map(of).collect()
    }

    fn whole(mut self) -> Result<Run, CeilingError> {
        self.go_on(self.load.commands)?;
        self.turns.audit()?;
        Ok(Run { total: self.figures(), drives: self.drives(), components: self.components() })
    }
}

impl<W: Simulation> Loop<W> {
    fn new(mut world: W, seed: u64, observers: LoadObservers, depths: &[u16]) -> Self {
        let LoadObservers { observers, trace, explain } = observers;
        observers.into_iter().enumerate().for_each(|(drive, observer)| world.observe(drive, observer));
        let explain = explain.then(|| Rc::new(RefCell::new(Explain::default())));
        explain.iter().for_each(|explain| world.observe(0, Box::new(Rc::clone(explain))));
        let noted = trace.as_ref().map_or(0, |(_, commands)| *commands);
        trace.into_iter().for_each(|(trace, _)| world.trace_to(trace));
        Self {
            world,
            random: Random::new(seed, "places"),
            begun: depths.iter().map(|depth| vec![StartedCommand::default(); usize::from(*depth)]).collect(),
            waiting: vec![VecDeque::new(); depths.len()],
            spare: Vec::new(),
            explain,
            noted,
        }
    }

    /// Checks all invariants: a violation invalidates the figures.
    fn audit(&mut self) -> Result<(), CeilingError> {
        self.world.audit().map_err(|violation| CeilingError::Stopped(StopReason::Broken(violation)))
    }

    /// Takes the stage times of the command that just completed, if requested. Commands that
    /// complete together are taken in order of completion.
    fn take_shares(&mut self, drive: usize) -> Option<StageTimes> {
        let explain = self.explain.as_ref().filter(|_| drive == 0)?;
        explain.borrow_mut().poll().map(|explained| explained.shares)
    }

    /// Consumes the unit attention of a newly attached drive.
    fn greet(&mut self, drive: usize) -> Result<(), CeilingError> {
        let command = Command {
            id: CommandId { slot: 0, generation: 0 },
            lun: LunField([0; 8]),
            attribute: wire::uas::TaskAttribute::Simple,
            // TEST UNIT READY (SPC-4 clause 6.47).
            cdb: CommandBlock::new(&[0; 6]).ok_or(CeilingError::Load)?,
            data_phase: None,
            deadline: self.world.now() + COMMAND_TIMEOUT,
        };
        let _ = self.world.submit(drive, &command, Vec::new());
        self.world.run().map_err(CeilingError::Stopped)?.ok_or(CeilingError::Stuck)?;
        self.take_shares(drive);
        Ok(())
    }

    /// Submits a command that the application wanted since `wanted`.
    fn submit(&mut self, load: &Load, drive: usize, slot: u16, wanted: Instant) -> Result<(), CeilingError> {
        let now = self.world.now();
        let lba = load.place(&mut self.random).ok_or(CeilingError::Load)?;
        let command = load.command(slot, now, lba).ok_or(CeilingError::Load)?;
        let mut buffer = self.spare.pop().unwrap_or_else(|| vec![0; load.bytes as usize]);
        if load.writes {
            numbers::put(lba, &mut buffer, BLOCK_SIZE);
        }
        self.begun[drive][usize::from(slot)] = StartedCommand { lba, wanted, at: now };
        // Within its depth the transport rejects nothing.
        self.world.submit(drive, &command, buffer).map_err(|_| CeilingError::Stuck)
    }

    /// Completes a command and submits the one that waits longest. Returns the drive and the
    /// latency.
    fn next(&mut self, load: &Load) -> Result<(usize, CommandTime), CeilingError> {
        let finished = self.world.run().map_err(CeilingError::Stopped)?.ok_or(CeilingError::Stuck)?;
        let FinishedCommand { drive, id, outcome, buffer } = finished;
        match &outcome {
            Outcome::Answered(answer) if answer.status == Status::Good && answer.moved == load.bytes => {}
            _ => return Err(CeilingError::Failed(outcome)),
        }
        let StartedCommand { lba, wanted, at } = self.begun[drive][usize::from(id.slot)];
        let is_right = match load.writes {
            false => numbers::are_right(lba, &buffer, BLOCK_SIZE),
            true => self.world.misplaced_blocks(drive) == 0,
        };
        if !is_right {
            return Err(CeilingError::Contents);
        }
        self.spare.push(buffer);
        self.noted = self.noted.saturating_sub(1);
        if self.noted == 0 {
            self.world.take_trace();
        }
        let now = self.world.now();
        self.waiting[drive].push_back(now);
        let next = self.waiting[drive].pop_front().unwrap_or(now);
        self.submit(load, drive, id.slot, next)?;
        Ok((drive, CommandTime { waited: at - wanted, held: now - at }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain;
    use sim::check::AUDIT_INTERVAL_COMMANDS;
    use sim::engine::LatencyStage;
    use sim::link::superspeed::Rate;
    use sim::link::usb2;
    use sim::xhc::Part;

    fn load(depth: u16, bytes: u32) -> Load {
        Load {
            host: None,
            connection: Rate::Gen1.into(),
            writes: false,
            bytes,
            drives: Drives::ONE,
            depth,
            commands: 2_000,
            latency: Duration::from_us(60),
            at_once: 32,
            seed: 1,
        }
    }

    fn both(load: &Load) -> [Figures; 2] {
        [bot(load).unwrap(), uas(load).unwrap()]
    }

    /// Returns whether counted times agree to 0.01 %: at a higher depth counting begins later, with other ordered sets.
    fn are_as_long(runs: &[Figures]) -> bool {
        let first = runs[0].elapsed.as_ps();
        runs.iter().all(|run| run.elapsed.as_ps().abs_diff(first) < first / 10_000)
    }

    #[test]
    fn bot_is_flat_and_uas_scales_until_the_link_saturates() {
        let [bot_1, uas_1] = both(&load(1, 4096));
        let [bot_4, uas_4] = both(&load(4, 4096));
        let [bot_30, uas_30] = both(&load(30, 4096));
        assert!(are_as_long(&[bot_1, bot_4, bot_30]));
        assert!((uas_4.iops() / uas_1.iops() - 4.0).abs() < 0.01);
        // 4 KiB and a status take a lane at least 8.8 us.
        assert!((100_000.0..113_000.0).contains(&uas_30.iops()), "{}", uas_30.iops());
    }

    #[test]
    fn latency_at_depth_1_is_packets_plus_drive() {
        for writes in [false, true] {
            for figures in both(&Load { writes, ..load(1, 4096) }) {
                // Four data packets of 2,112 ns, a command and a status, what acknowledges and asks, and a turn of
                // 200 ns of the device or 100 ns of the host for each that waits for the other.
                let packets = figures.mean.as_ns() - 60_000;
                assert!((9_300..12_000).contains(&packets), "{packets} ns");
            }
        }
    }

    #[test]
    fn bot_gains_with_command_size_as_uas_with_depth() {
        let rates = |bytes| {
            both(&Load { commands: 200, ..load(4, bytes) }).map(|figures| figures.megabytes_per_second())
        };
        let [bot_64k, uas_64k] = rates(64 << 10);
        let [bot_1m, uas_1m] = rates(1 << 20);
        assert!(bot_64k < 340.0 && bot_1m > 450.0, "{bot_64k}, {bot_1m}");
        assert!(uas_64k > 465.0 && uas_1m <= 475.0, "{uas_64k}, {uas_1m}");
    }

    #[test]
    fn lanes_stay_within_their_symbol_rate() {
        for writes in [false, true] {
            for figures in both(&Load { writes, ..load(30, 4096) }) {
                let traffic = figures.traffic.unwrap();
                for Traffic { packets, commands, skips, .. } in traffic {
                    let busy = Rate::Gen1.symbols(u32::try_from(packets + commands + skips).unwrap());
                    // What began before the span may end in it.
                    assert!(busy <= figures.elapsed + Duration::from_us(3), "{busy} of {}", figures.elapsed);
                }
                let moved = traffic[usize::from(!writes)].payload;
                assert!(moved >= figures.bytes - 30 * 4096, "{moved} of {}", figures.bytes);
            }
        }
    }

    #[test]
    fn both_transports_saturate_a_high_speed_bus() {
        for writes in [false, true] {
            let load =
                Load { connection: usb2::Rate::High.into(), writes, commands: 300, ..load(30, 64 << 10) };
            let [bot, uas] = both(&load).map(|figures| figures.megabytes_per_second());
            // The ceiling is 53.248, thirteen packets in a microframe. BOT waits for the drive with each command; what UAS asks
            // for statuses meanwhile takes the place of the thirteenth.
            assert!((40.0..51.0).contains(&bot), "{bot} MB/s");
            assert!((49.0..=49.2).contains(&uas), "{uas} MB/s");
        }
    }

    #[test]
    fn short_commands_scale_at_high_speed_until_saturation() {
        let of =
            |depth| both(&Load { connection: usb2::Rate::High.into(), commands: 500, ..load(depth, 4096) });
        let ([bot_1, uas_1], [bot_8, uas_8]) = (of(1), of(8));
        assert!(are_as_long(&[bot_1, bot_8]));
        assert!(uas_8.iops() > 1.5 * uas_1.iops(), "{} of {}", uas_8.iops(), uas_1.iops());
        // Eight packets of 567 bytes, a command of 87, READY and SENSE of 59 and 71: at least 79.2 us of the bus.
        assert!(uas_8.iops() < 12_626.0, "{}", uas_8.iops());
    }

    #[test]
    fn full_speed_carries_both_transports() {
        let load = Load { connection: usb2::Rate::Full.into(), commands: 50, ..load(4, 4096) };
        for figures in both(&load) {
            let rate = figures.megabytes_per_second();
            assert!((1.0..1.216).contains(&rate), "{rate} MB/s");
        }
    }

    #[test]
    fn the_requested_depth_is_in_flight() {
        for depth in [1, 7, 30] {
            // Little's law: the stays of those that ended in the span, which begins and ends full.
            let figures = uas(&load(depth, 4096)).unwrap();
            assert!((figures.depth / f64::from(depth) - 1.0).abs() < 0.01, "{}", figures.depth);
        }
    }

    #[test]
    fn bot_latency_includes_the_queue() {
        let alone = bot(&load(1, 4096)).unwrap();
        for depth in [4, 30] {
            let figures = bot(&load(depth, 4096)).unwrap();
            assert!((figures.depth - 1.0).abs() < 0.01, "{}", figures.depth);
            // As many as are wanted go before each.
            let expected = alone.mean.as_ps() * u64::from(depth);
            let off = figures.mean.as_ps().abs_diff(expected);
            assert!(off < expected / 1000, "{depth}: {} of {expected}", figures.mean);
        }
    }

    #[test]
    fn stage_times_add_up_to_total_latency() {
        for (protocol, depth, writes) in [
            (Protocol::Bot, 1, false),
            (Protocol::Bot, 1, true),
            (Protocol::Bot, 8, false),
            (Protocol::Uas, 1, false),
            (Protocol::Uas, 1, true),
            (Protocol::Uas, 30, false),
            (Protocol::Uas, 30, true),
        ] {
            let load = Load { writes, commands: 500, ..load(depth, 4096) };
            let watched =
                measure(&load, protocol, LoadObservers { explain: true, ..LoadObservers::default() })
                    .unwrap();
            let watched = watched.total;
            let Explained { shares, commands, slowest } = watched.explained.unwrap();
            assert_eq!(commands, 500);
            assert!(slowest.total() >= watched.mean, "{protocol:?} {writes}: {slowest:?}");
            // The mean is cut down to a whole picosecond.
            assert_eq!(shares.total().as_ps() / 500, watched.mean.as_ps(), "{protocol:?} {writes}");
            assert_eq!(shares.of(LatencyStage::Drive), Duration::from_us(60 * 500), "{protocol:?} {writes}");
            let stage = match protocol {
                Protocol::Bot => LatencyStage::Queue,
                Protocol::Uas => LatencyStage::Waiting,
            };
            let waits = shares.of(stage).as_ps() / 500;
            assert_eq!(waits > 1_000_000, depth > 1, "{protocol:?} {writes}: {waits} ps");
        }
    }

    #[test]
    fn the_slowest_command_is_the_first_of_those_that_took_longest() {
        use sim::engine::LatencyTracker;
        let took = |stage, ps| LatencyTracker::start(Instant::ZERO, stage).end(Instant::from_ps(ps)).1;
        let mut all = Explained::default();
        for (stage, ps) in [
            (LatencyStage::Link, 5),
            (LatencyStage::Drive, 9),
            (LatencyStage::Queue, 9),
            (LatencyStage::Waiting, 1),
        ] {
            all.add(took(stage, ps));
        }
        assert_eq!((all.commands, all.shares.total()), (4, Duration::from_ps(24)));
        assert_eq!(all.slowest, took(LatencyStage::Drive, 9));
    }

    /// Goes on for so many commands, and holds the shares of each against a clock.
    fn go_on_by_the_clock<W: Simulation>(measurement: Result<Measurement<W>, CeilingError>, commands: u32) {
        let (mut measurement, explain, clock) = (measurement.unwrap(), Rc::default(), Rc::default());
        measurement.turns.world.observe(0, Box::new(Rc::clone(&explain)));
        measurement.turns.world.observe(0, Box::new(Rc::clone(&clock)));
        measurement.go_on(commands).unwrap();
        let exact = explain::tests::assert_exact(&explain, &clock);
        // Commands that were in flight when the observers were attached are not explained.
        let depth = u32::from(measurement.load.depth) as usize;
        assert!(exact + depth >= commands as usize, "{exact} of {commands}");
    }

    #[test]
    fn stage_times_of_each_command_add_up() {
        for connection in [Rate::Gen1.into(), usb2::Rate::High.into()] {
            for (depth, bytes, writes) in [(1, 4096, false), (8, 512, true), (8, 64 << 10, false)] {
                let load = Load { connection, writes, ..load(depth, bytes) };
                let bot = load.bot().unwrap();
                go_on_by_the_clock(Measurement::bare(&load, bot.0, bot.1, LoadObservers::default()), 100);
                let uas = load.uas().unwrap();
                go_on_by_the_clock(Measurement::bare(&load, uas.0, uas.1, LoadObservers::default()), 100);
                for protocol in [Protocol::Bot, Protocol::Uas] {
                    let world =
                        power_on(&load, Host::with(Part::CARD), protocol, LoadObservers::default()).unwrap();
                    go_on_by_the_clock(Measurement::begin(&load, world.0, world.1), 100);
                }
            }
        }
    }

    #[test]
    fn stage_times_of_one_of_several_drives_add_up() {
        for protocol in [Protocol::Bot, Protocol::Uas] {
            for hubs in [0, 1] {
                let drives = Drives { count: 2, hubs };
                let load = Load {
                    host: Some(Host::with(Part::CHIPSET)),
                    drives,
                    commands: 301,
                    ..load(4, 64 << 10)
                };
                let observers = LoadObservers { explain: true, ..LoadObservers::default() };
                let Run { total, drives, .. } = measure(&load, protocol, observers).unwrap();
                let Explained { shares, commands, .. } = total.explained.unwrap();
                assert_eq!(commands, drives[0].commands, "{protocol:?} {hubs}");
                assert!((100..=200).contains(&commands), "{commands}");
                assert_eq!(shares.total().as_ps() / commands, drives[0].mean.as_ps(), "{protocol:?} {hubs}");
            }
        }
    }

    #[test]
    fn command_size_is_limited_by_driver_and_drive() {
        let of = |host, bytes| {
            let load = Load { host, commands: 2, ..load(1, bytes) };
            measure(&load, Protocol::Uas, LoadObservers::default()).map(|run| run.total.bytes)
        };
        let chipset = Some(Host::with(Part::CHIPSET));
        assert_eq!(of(chipset, 4 << 20), Ok(8 << 20));
        assert_eq!(of(chipset, (4 << 20) + 512), Err(CeilingError::TooLong(4_194_304)));
        assert_eq!(of(None, 8 << 20), Ok(16 << 20));
        assert_eq!(of(None, (8 << 20) + 512), Err(CeilingError::TooLong(8_388_608)));
    }

    #[test]
    fn too_few_commands_are_rejected() {
        for depth in [1, 8, 30] {
            let of = |commands| {
                let load = Load { commands, latency: Duration::ZERO, ..load(depth, 512) };
                [Protocol::Bot, Protocol::Uas]
                    .map(|protocol| measure(&load, protocol, LoadObservers::default()))
            };
            for few in [1, u32::from(depth)] {
                assert!(
                    of(few).iter().all(|run| run.as_ref().err() == Some(&CeilingError::TooFew(depth.into())))
                );
            }
            for run in of(u32::from(depth) + 1) {
                let figures = run.unwrap().total;
                assert!(figures.elapsed > Duration::ZERO && figures.iops().is_finite(), "{depth}");
            }
        }
    }

    #[test]
    fn observers_do_not_change_the_run() {
        struct Silent;
        impl Observer for Silent {}
        let load = Load { commands: 300, ..load(30, 4096) };
        for protocol in [Protocol::Bot, Protocol::Uas] {
            let trace: Box<dyn Trace> = Box::new(Vec::new());
            let observers =
                LoadObservers { observers: vec![Box::new(Silent)], trace: Some((trace, 5)), explain: true };
            let watched = measure(&load, protocol, observers).unwrap().total;
            let alone = measure(&load, protocol, LoadObservers::default()).unwrap().total;
            assert_eq!((watched.digest, watched.events), (alone.digest, alone.events));
        }
    }

    #[test]
    fn each_drive_has_its_observer() {
        #[derive(Default)]
        struct Counts(u64);
        impl Observer for Counts {
            fn ended(&mut self, _: Instant, _: CommandId, outcome: &Outcome) {
                self.0 +=
                    u64::from(matches!(outcome, Outcome::Answered(answer) if answer.status == Status::Good));
            }
        }
        let load = Load {
            host: Some(Host::with(Part::CHIPSET)),
            drives: Drives { count: 2, hubs: 1 },
            commands: 301,
            ..load(4, 64 << 10)
        };
        let counts: [Rc<RefCell<Counts>>; 2] = Default::default();
        let observers = counts.iter().map(|one| Box::new(Rc::clone(one)) as Box<dyn Observer>).collect();
        let run =
            measure(&load, Protocol::Uas, LoadObservers { observers, ..LoadObservers::default() }).unwrap();
        for (figures, seen) in run.drives.iter().zip(&counts) {
            // As many as are wanted at once are not measured.
            let seen = seen.borrow().0;
            assert!((figures.commands..=figures.commands + 8).contains(&seen), "{seen} {}", figures.commands);
        }
        let alone = measure(&load, Protocol::Uas, LoadObservers::default()).unwrap();
        assert_eq!((run.total.digest, run.total.events), (alone.total.digest, alone.total.events));
    }

    #[test]
    fn equal_seeds_have_equal_digests() {
        let digest = |seed| uas(&Load { seed, commands: 100, ..load(8, 4096) }).unwrap().digest;
        assert_eq!(digest(1), digest(1));
        assert_eq!(digest(1), GOLDEN, "the same on every machine");
        assert_ne!(digest(1), digest(2), "commands go elsewhere, and take as long");
    }

    #[test]
    fn misplaced_data_is_detected() {
        // Blocks of zeroes hold no numbers.
        let load = load(2, 4096);
        let plain = FixedLatencyDrive::new(load.medium_blocks(), BLOCK_SIZE, Duration::from_us(1), 1);
        let plugged = sim::machine::uas(plain.device(), None).unwrap();
        let ended = Measurement::bare(&load, plugged, plain, LoadObservers::default()).map(|_| ());
        assert_eq!(ended, Err(CeilingError::Contents));
    }

    #[test]
    fn a_violation_invalidates_the_figures() {
        use sim::check::Invariant;
        use sim::fault::{Faults, SeededBug};
        let load = load(8, 64 << 10);
        let ended = |bug| {
            let (plugged, plain) = load.uas().unwrap();
            let world = DirectMachine::new(load.connection, plugged, plain);
            let world = world.with_faults(Faults::never().with_bug(bug));
            Measurement::begin(&load, world, LoadObservers::default()).and_then(Measurement::whole)
        };
        assert!(ended(None).is_ok());
        let Err(CeilingError::Stopped(StopReason::Broken(violation))) = ended(Some(SeededBug::Haste)) else {
            panic!("a lane that took no time was not noticed");
        };
        assert_eq!(violation.invariant, Invariant::Capacity);
        assert!(violation.to_string().contains("a lane does not exceed its capacity"), "{violation}");
    }

    #[test]
    fn components_count_their_work() {
        let load = Load { host: Some(Host::with(Part::CHIPSET)), commands: 400, ..load(8, 4096) };
        let run = measure(&load, Protocol::Uas, LoadObservers::default()).unwrap();
        let (all, components) = (run.total, &run.components);
        assert_eq!(components.span, all.elapsed);
        let [[host, device]] = components.links[..] else { panic!("one link") };
        assert_eq!(Some([host.traffic, device.traffic]), all.traffic);
        assert!(components.share(host.busy) < components.share(device.busy));
        let payload = device.busy.as_ps() as f64 / Rate::Gen1.symbols(1).as_ps() as f64;
        assert!(payload > device.traffic.payload as f64, "more symbols than bytes of payload");
        // Data and status of each command, and a command; and one request at the medium.
        let controller = components.controller.unwrap();
        assert!((1190..=1210).contains(&controller.tds), "{}", controller.tds);
        assert!((1..=controller.tds).contains(&controller.interrupts));
        let [medium] = components.media[..] else { panic!("one medium") };
        assert!((395..=405).contains(&medium.arrived), "{}", medium.arrived);
        // Little's law: 60 us each.
        let expected = medium.arrived as f64 * 60e6 / components.span.as_ps() as f64;
        assert!((components.mean(medium) / expected - 1.0).abs() < 0.02, "{}", components.mean(medium));
        assert!(medium.most <= 8 && components.core.is_none(), "nothing takes the driver time");
    }

    #[test]
    fn audits_run_during_the_measurement() {
        use sim::fault::{Faults, SeededBug};
        let load = load(8, 64 << 10);
        let (plugged, plain) = load.uas().unwrap();
        let mut measurement = Measurement::bare(&load, plugged, plain, LoadObservers::default()).unwrap();
        *measurement.turns.world.faults() = Faults::never().with_bug(Some(SeededBug::Haste));
        assert_eq!(measurement.go_on(AUDIT_INTERVAL_COMMANDS - 1), Ok(()));
        assert!(matches!(measurement.go_on(1), Err(CeilingError::Stopped(StopReason::Broken(_)))));
    }

    #[test]
    fn invalid_loads_are_rejected() {
        for wrong in [Load { bytes: 0, ..load(1, 512) }, load(1, 513), Load { commands: 0, ..load(1, 512) }] {
            assert_eq!(uas(&wrong).err(), Some(CeilingError::Load), "{wrong:?}");
        }
    }

    fn with_controller(part: Part, load: Load) -> [Figures; 2] {
        both(&Load { host: Some(Host::with(part)), ..load })
    }

    #[test]
    fn controller_overhead_is_accesses_and_moderation() {
        let [bot_none, uas_none] = both(&load(1, 4096));
        let [bot, uas] = with_controller(Part::CHIPSET, load(1, 4096));
        for (with, without) in [(bot, bot_none), (uas, uas_none)] {
            let more = with.mean.as_ns() - without.mean.as_ns();
            // Doorbells, reads of TRBs and of what goes out, events; and over BOT the status, which comes right behind
            // the data, waits until 40 us after the interrupt for these.
            assert!((1_500..60_000).contains(&more), "{more} ns");
        }
        let [_, full_none] = both(&load(30, 4096));
        let [_, full] = with_controller(Part::CHIPSET, load(30, 4096));
        assert!(
            (0.85..1.02).contains(&(full.iops() / full_none.iops())),
            "{} of {}",
            full.iops(),
            full_none.iops()
        );
    }

    #[test]
    fn a_one_lane_card_is_limited_by_its_lane() {
        for writes in [false, true] {
            let long = Load { commands: 200, writes, ..load(8, 64 << 10) };
            let [_, chipset] = with_controller(Part::CHIPSET, long.clone());
            let [_, card] = with_controller(Part::CARD, long);
            let [fast, slow] = [chipset, card].map(|figures| figures.megabytes_per_second());
            assert!((430.0..475.0).contains(&fast), "{fast}");
            assert!((390.0..411.0).contains(&slow), "{slow}");
        }
    }

    #[test]
    fn a_controller_that_pauses_between_packets_writes_no_more_than_450_megabytes_a_second() {
        let part = Part { packet_gap: Duration::from_ns(100), ..Part::CHIPSET };
        // What USB 3.2 says of bulk transfers, and what is left of the link when all that is not data is amortised.
        for (bytes, most) in [(64 << 10, 450.0), (1 << 20, 453.8)] {
            let long = Load { commands: 100, writes: true, ..load(8, bytes) };
            let [bot, uas] = with_controller(part, long).map(|figures| figures.megabytes_per_second());
            assert!(bot < uas && uas > most - 2.0 && uas <= most, "{bot} {uas}");
        }
    }

    #[test]
    fn equal_seeds_have_equal_digests_with_a_controller() {
        let digest = |seed| {
            with_controller(Part::CARD, Load { seed, commands: 100, ..load(8, 4096) }).map(|f| f.digest)
        };
        assert_eq!(digest(1), digest(1));
    }

    const GOLDEN: u64 = 7_015_620_166_303_737_135;
}
