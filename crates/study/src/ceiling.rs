//! The same commands over each transport, on a plain drive: what the link and the two protocols are worth by themselves.
//!
//! A closed loop: so many commands are wanted at once, at random places, and each that ends is followed by another. The host is a
//! driver and a controller of whose times the controller's count; or there is neither, and what comes out is what link
//! and protocols allow at most. BOT takes one command at a time, whatever is asked for: the others wait in their order, and their
//! time counts from when they were wanted, as whoever wants them sees it. Behind a controller there may be several drives, each
//! with a loop of its own.

mod command_time;
mod error;

pub use command_time::Explained;
pub use error::CeilingError;

use crate::explain::Explain;
use command_time::{CommandTime, CommandTimes, StartedCommand};
use device::Transports;
use initiator::{Bot, Command, CommandBlock, CommandId, DataPhase, Outcome, Transport, Uas};
use sim::check::AUDIT_INTERVAL_COMMANDS;
use sim::components::Components;
use sim::engine::{Random, StageTimes, Trace};
use sim::link::superspeed::Traffic;
use sim::link::{AnyRate, Connection, usb2};
pub use sim::machine::xhci::Protocol;
use sim::machine::xhci::{Drive, DriveParts, Host, Hub, Setup, XhciMachine};
use sim::machine::{
    self, DirectMachine, FinishedCommand, FixedLatencyDrive, Observer, Plugged, Simulation, StopReason,
    numbers,
};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use units::{BlockCount, BlockSize, ByteRange, Duration, Instant, Lba};
use wire::scsi::Status;
use wire::scsi::cdb::{Cdb, CdbWidth, Read, Write};
use wire::scsi::lun::LunField;
use wire::usb::Direction;

/// What is asked of the drive.
#[derive(Clone, Debug)]
pub struct Load {
    /// The controller and how its driver goes about it, with a SuperSpeed link alone; `None` for neither: transfers are on
    /// the link as soon as they are wanted.
    pub host: Option<Host>,
    /// What the drive is connected by.
    pub connection: Connection,
    /// Whether blocks are written.
    pub writes: bool,
    /// Bytes of a command: whole blocks of 512, [`Load::bytes_max`] at most.
    pub bytes: u32,
    /// Drives, and hubs between them and the host. More than one drive needs a controller.
    pub drives: Drives,
    /// Commands that are wanted at once of each drive, at most [`DEPTH_MAX`]. What the transport does not take waits.
    pub depth: u16,
    /// Commands in all, over all drives, after as many as are under way to begin with. They are more than these, since as many can end
    /// at one time.
    pub commands: u32,
    /// What the drive takes for a command.
    pub latency: Duration,
    /// Commands that the drive serves at once.
    pub at_once: u16,
    /// Where the random places come from.
    pub seed: u64,
}

/// What came out.
#[derive(Clone, Copy, Debug)]
pub struct Figures {
    /// Commands that have ended.
    pub commands: u64,
    /// Virtual time that they took together.
    pub elapsed: Duration,
    /// Bytes that they moved.
    pub bytes: u64,
    /// Mean time of a command, from when it was wanted.
    pub mean: Duration,
    /// Commands that the transport has, on average.
    pub depth: f64,
    /// What the lanes of a SuperSpeed link carried: the host's, the device's.
    pub traffic: Option<[Traffic; 2]>,
    /// Events that happened.
    pub events: u64,
    /// The digest of all that happened.
    pub digest: u64,
    /// Where the time of the first drive's commands went, if that was to be explained.
    pub explained: Option<Explained>,
}

/// How many drives there are, and what is between them and the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drives {
    /// How many.
    pub count: u8,
    /// Hubs in a row behind the first root port, the drives at the last one; without, each drive has a root port of its own. On a bus of
    /// USB 2.0 they are of high speed, and drives of full speed are behind the translator of the last.
    pub hubs: u8,
}

/// What came out of a load, together and by drive.
#[derive(Clone, Debug)]
pub struct Run {
    /// All drives together.
    pub total: Figures,
    /// Each drive.
    pub drives: Vec<DriveFigures>,
    /// What each component has done meanwhile.
    pub components: Components,
}

/// What came out of one drive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DriveFigures {
    /// Commands that have ended.
    pub commands: u64,
    /// Their mean time, from when they were wanted.
    pub mean: Duration,
    /// Commands in a second.
    pub iops: f64,
    /// Megabytes (10⁶ bytes) in a second.
    pub megabytes_per_second: f64,
}

/// Who looks on while a load runs. Nobody by default, which costs nothing.
#[derive(Default)]
pub struct LoadObservers {
    /// Is told everything of a drive from the enumeration on: the first of the first drive, and so on.
    pub observers: Vec<Box<dyn Observer>>,
    /// Gets the notes of so many commands.
    pub trace: Option<(Box<dyn Trace>, u32)>,
    /// Whether to say where the time of the first drive's commands goes.
    pub explain: bool,
}

const FULL: AnyRate = AnyRate::Usb2(usb2::Rate::Full);

/// Ports of a hub here: as many as a route has names for.
const HUB_PORTS: u8 = 15;
/// The most commands under way: what 64 streams carry.
pub const DEPTH_MAX: u16 = 62;
const DEPTH_OF_32_STREAMS: u16 = 30;

/// Of the drive. Each block holds its number, by which what was read or written in the wrong place shows.
const BLOCK_SIZE: BlockSize = BlockSize::B512;
/// Bytes of a block.
const BLOCK_BYTES: u32 = BLOCK_SIZE.bytes();
/// The medium: 512 KiB, and where commands are longer than that one of them. What lies where plays no part in how long a plain
/// drive takes.
const MEDIUM_BLOCKS: u32 = 1 << 10;
/// Commands that are too old are the transport's business; none is here.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Measures a transport.
///
/// # Errors
/// See [`CeilingError`].
pub fn measure(load: &Load, protocol: Protocol, observers: LoadObservers) -> Result<Run, CeilingError> {
    load.check()?;
    if let Some(host) = load.host {
        let (world, observers) = load.power_on(host, protocol, observers)?;
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

/// Measures UAS, with nobody looking on.
///
/// # Errors
/// See [`CeilingError`].
pub fn uas(load: &Load) -> Result<Figures, CeilingError> {
    measure(load, Protocol::Uas, LoadObservers::default()).map(|run| run.total)
}

/// Measures BOT, with nobody looking on.
///
/// # Errors
/// See [`CeilingError`].
pub fn bot(load: &Load) -> Result<Figures, CeilingError> {
    measure(load, Protocol::Bot, LoadObservers::default()).map(|run| run.total)
}

impl Figures {
    /// Commands per second.
    pub fn iops(&self) -> f64 {
        self.commands as f64 / self.seconds()
    }

    /// Megabytes (10⁶ bytes) per second.
    pub fn megabytes_per_second(&self) -> f64 {
        self.bytes as f64 / 1e6 / self.seconds()
    }

    fn seconds(&self) -> f64 {
        self.elapsed.as_ps() as f64 / 1e12
    }
}

impl Load {
    /// Bytes of a command at most: what the driver gives to its controller in one transfer, or else what the drive takes.
    pub const fn bytes_max(&self) -> u32 {
        match self.host {
            Some(_) => ::xhci_driver::limit::TRANSFER_BYTES_MAX,
            None => device::lun::limits::TRANSFER_BYTES_MAX,
        }
    }

    /// Commands under way at once, with all drives together.
    pub fn under_way(&self) -> u32 {
        u32::from(self.depth) * u32::from(self.drives.count)
    }

    /// An audit looks at all drives.
    fn audited_every(&self) -> u32 {
        AUDIT_INTERVAL_COMMANDS * u32::from(self.drives.count).max(1)
    }

    fn check(&self) -> Result<(), CeilingError> {
        let (most, under_way) = (self.bytes_max(), self.under_way());
        match () {
            () if self.bytes > most => Err(CeilingError::TooLong(most)),
            () if self.blocks().is_none() => Err(CeilingError::Load),
            () if self.commands <= under_way => Err(CeilingError::TooFew(under_way)),
            () => Ok(()),
        }
    }

    fn plain(&self) -> FixedLatencyDrive {
        let plain = FixedLatencyDrive::numbered(BlockCount(self.medium_blocks().into()), BLOCK_SIZE);
        plain.serving(self.latency, self.at_once).with_streams(self.streams())
    }

    const fn streams(&self) -> u16 {
        if self.depth > DEPTH_OF_32_STREAMS { 64 } else { 32 }
    }

    /// A drive that offers BOT alone.
    fn bot(&self) -> Result<(Plugged<Bot>, FixedLatencyDrive), CeilingError> {
        let plain = self.plain();
        let plugged = machine::bot(plain.device_with(Transports::BotOnly, self.connection.speed()))
            .map_err(CeilingError::Plug)?;
        Ok((plugged, plain))
    }

    /// A drive that offers both.
    fn uas(&self) -> Result<(Plugged<Uas>, FixedLatencyDrive), CeilingError> {
        let plain = self.plain();
        let plugged = machine::uas(plain.device_with(Transports::Dual, self.connection.speed()), None)
            .map_err(CeilingError::Plug)?;
        Ok((plugged, plain))
    }

    /// The world that a load is for.
    fn setup(&self, host: Host, protocol: Protocol) -> Setup {
        let (rate, hubs) = match self.connection {
            Connection::SuperSpeed(rate) => (AnyRate::SuperSpeed(rate), self.drives.hubs),
            // What the controller adds is its own.
            Connection::Usb2 { rate, hubs, .. } => (AnyRate::Usb2(rate), hubs.max(self.drives.hubs)),
        };
        let drive = match protocol {
            Protocol::Bot => Drive::bot(),
            Protocol::Uas => Drive::uas(),
        };
        let (streams, latency, at_once) = (self.streams(), self.latency, self.at_once);
        let drive = Drive { streams, at_once, ..drive.latency(latency) };
        let drive = drive.blocks(self.medium_blocks(), BLOCK_SIZE).numbered();
        let ports = 1..=self.drives.count;
        if hubs == 0 {
            return ports.fold(Setup::new(host).at(rate), |setup, port| setup.with(port, drive));
        }
        let (bus, drive) = match rate {
            FULL => (AnyRate::Usb2(usb2::Rate::High), drive.full_speed()),
            _ => (rate, drive),
        };
        let last = ports.fold(Hub::new(HUB_PORTS), |hub, port| hub.with(port, drive));
        let first = (1..hubs).fold(last, |hub, _| Hub::new(HUB_PORTS).with(1, hub));
        Setup::new(host).at(bus).with(1, first)
    }

    /// A host and drives that are on, and who still wants to look.
    fn power_on(
        &self,
        host: Host,
        protocol: Protocol,
        observers: LoadObservers,
    ) -> Result<(XhciMachine, LoadObservers), CeilingError> {
        let LoadObservers { observers, trace, explain } = observers;
        let observers = observers.into_iter().enumerate().collect();
        let setup = self.setup(host, protocol);
        let occupy = |_: usize, drive: &Drive| DriveParts::of(drive, setup.rate_of(drive).speed());
        let world = setup.power_on_with(occupy, observers).map_err(CeilingError::PowerOn)?;
        Ok((world, LoadObservers { observers: Vec::new(), trace, explain }))
    }

    fn medium_blocks(&self) -> u32 {
        MEDIUM_BLOCKS.max(self.blocks().unwrap_or(0).into())
    }

    /// Blocks of a command.
    fn blocks(&self) -> Option<u16> {
        let blocks = u16::try_from(self.bytes / BLOCK_BYTES).ok()?;
        (blocks > 0 && self.bytes.is_multiple_of(BLOCK_BYTES) && self.commands > 0).then_some(blocks)
    }

    /// A place for a command.
    fn place(&self, random: &mut Random) -> Option<Lba> {
        let blocks = self.blocks()?;
        let places = u64::from(self.medium_blocks() / u32::from(blocks));
        Some(Lba(random.below(places) * u64::from(blocks)))
    }

    fn command(&self, slot: u16, now: Instant, lba: Lba) -> Option<Command> {
        let (lba, blocks) = (lba.0, self.blocks()?.into());
        let cdb: Cdb = if self.writes {
            Write { width: CdbWidth::Ten, lba, blocks, ..Write::default() }.encode()
        } else {
            Read { width: CdbWidth::Ten, lba, blocks, ..Read::default() }.encode()
        };
        let direction = if self.writes { Direction::Out } else { Direction::In };
        Some(Command {
            id: CommandId { slot, generation: 0 },
            lun: LunField([0; 8]),
            attribute: wire::uas::TaskAttribute::Simple,
            cdb: CommandBlock::from(cdb),
            data_phase: Some(DataPhase { direction, range: ByteRange::new(0, self.bytes) }),
            deadline: now + PATIENCE,
        })
    }
}

/// A load that runs, as long as somebody wants it to.
pub struct Measurement<W> {
    load: Load,
    turns: Loop<W>,
    /// What was there when it began to count.
    began: Instant,
    events: u64,
    components: Components,
    /// By drive.
    tallies: Vec<CommandTimes>,
    /// Commands until the books are compared again.
    until_audit: u32,
    explained: Option<Explained>,
}

/// A load on a world.
struct Loop<W> {
    world: W,
    random: Random,
    /// The command of each slot, by drive.
    begun: Vec<Vec<StartedCommand>>,
    /// Since when the commands are wanted that the transport does not take yet, by drive.
    waiting: Vec<VecDeque<Instant>>,
    /// Memory of commands that have ended.
    spare: Vec<Vec<u8>>,
    explain: Option<Rc<RefCell<Explain>>>,
    /// Commands whose notes are still wanted.
    noted: u32,
}

impl Measurement<XhciMachine> {
    /// Begins to measure UAS with streams over a driver and a controller, with nobody looking on.
    ///
    /// # Errors
    /// See [`CeilingError`].
    pub fn uas(load: &Load, host: Host) -> Result<Self, CeilingError> {
        let (world, observers) = load.power_on(host, Protocol::Uas, LoadObservers::default())?;
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
        // What fills the pipes is not counted.
        for _ in 0..load.under_way() {
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

    /// Goes on until so many more commands have ended.
    ///
    /// # Errors
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

    /// What has come out so far, of all drives together.
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

    /// What components have done meanwhile.
    fn components(&self) -> Components {
        self.turns.world.components().since(&self.components)
    }

    /// The same by drive.
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

    /// A world whose books are broken has no figures.
    fn audit(&mut self) -> Result<(), CeilingError> {
        self.world.audit().map_err(|violation| CeilingError::Stopped(StopReason::Broken(violation)))
    }

    /// Where the time of the command went that has just ended, if it is to be explained. Of several that end at one time each is asked
    /// after by itself, in the order in which they ended.
    fn take_shares(&mut self, drive: usize) -> Option<StageTimes> {
        let explain = self.explain.as_ref().filter(|_| drive == 0)?;
        explain.borrow_mut().poll().map(|explained| explained.shares)
    }

    /// A drive that was just plugged in says so to the first command.
    fn greet(&mut self, drive: usize) -> Result<(), CeilingError> {
        let command = Command {
            id: CommandId { slot: 0, generation: 0 },
            lun: LunField([0; 8]),
            attribute: wire::uas::TaskAttribute::Simple,
            // TEST UNIT READY (SPC-4 clause 6.47).
            cdb: CommandBlock::new(&[0; 6]).ok_or(CeilingError::Load)?,
            data_phase: None,
            deadline: self.world.now() + PATIENCE,
        };
        let _ = self.world.submit(drive, &command, Vec::new());
        self.world.run().map_err(CeilingError::Stopped)?.ok_or(CeilingError::Stuck)?;
        self.take_shares(drive);
        Ok(())
    }

    /// Gives the transport a command that is wanted since then.
    fn submit(&mut self, load: &Load, drive: usize, slot: u16, wanted: Instant) -> Result<(), CeilingError> {
        let now = self.world.now();
        let lba = load.place(&mut self.random).ok_or(CeilingError::Load)?;
        let command = load.command(slot, now, lba).ok_or(CeilingError::Load)?;
        let mut buffer = self.spare.pop().unwrap_or_else(|| vec![0; load.bytes as usize]);
        if load.writes {
            numbers::put(lba, &mut buffer, BLOCK_SIZE);
        }
        self.begun[drive][usize::from(slot)] = StartedCommand { lba, wanted, at: now };
        // The transport refuses nothing within its depth.
        self.world.submit(drive, &command, buffer).map_err(|_| CeilingError::Stuck)
    }

    /// A command ends, and another is wanted; the one that waits longest takes its place. Of which drive, and how long it took.
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

impl Drives {
    /// A drive at a root port.
    pub const ONE: Self = Self { count: 1, hubs: 0 };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain;
    use sim::engine::LatencyStage;
    use sim::link::superspeed::Rate;
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

    /// What is counted begins later where more is wanted at once, and with that the ordered sets that come by.
    fn are_as_long(runs: &[Figures]) -> bool {
        let first = runs[0].elapsed.as_ps();
        runs.iter().all(|run| run.elapsed.as_ps().abs_diff(first) < first / 10_000)
    }

    #[test]
    fn bot_is_flat_and_uas_grows_with_depth_until_the_link_is_full() {
        let [bot_1, uas_1] = both(&load(1, 4096));
        let [bot_4, uas_4] = both(&load(4, 4096));
        let [bot_30, uas_30] = both(&load(30, 4096));
        assert!(are_as_long(&[bot_1, bot_4, bot_30]));
        assert!((uas_4.iops() / uas_1.iops() - 4.0).abs() < 0.01);
        // 4 KiB and a status take a lane at least 8.8 us.
        assert!((100_000.0..113_000.0).contains(&uas_30.iops()), "{}", uas_30.iops());
    }

    #[test]
    fn at_depth_1_a_command_takes_its_packets_and_the_drive() {
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
    fn bot_gains_by_longer_commands_what_uas_has_by_depth() {
        let rates = |bytes| {
            both(&Load { commands: 200, ..load(4, bytes) }).map(|figures| figures.megabytes_per_second())
        };
        let [bot_64k, uas_64k] = rates(64 << 10);
        let [bot_1m, uas_1m] = rates(1 << 20);
        assert!(bot_64k < 340.0 && bot_1m > 450.0, "{bot_64k}, {bot_1m}");
        assert!(uas_64k > 465.0 && uas_1m <= 475.0, "{uas_64k}, {uas_1m}");
    }

    #[test]
    fn no_lane_carries_more_than_its_symbols_and_nothing_is_lost() {
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
    fn at_high_speed_both_fill_the_bus_and_uas_pays_for_its_turns() {
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
    fn at_high_speed_a_short_command_gains_by_depth_until_the_bus_is_full() {
        let of =
            |depth| both(&Load { connection: usb2::Rate::High.into(), commands: 500, ..load(depth, 4096) });
        let ([bot_1, uas_1], [bot_8, uas_8]) = (of(1), of(8));
        assert!(are_as_long(&[bot_1, bot_8]));
        assert!(uas_8.iops() > 1.5 * uas_1.iops(), "{} of {}", uas_8.iops(), uas_1.iops());
        // Eight packets of 567 bytes, a command of 87, READY and SENSE of 59 and 71: at least 79.2 us of the bus.
        assert!(uas_8.iops() < 12_626.0, "{}", uas_8.iops());
    }

    #[test]
    fn full_speed_carries_both_as_well() {
        let load = Load { connection: usb2::Rate::Full.into(), commands: 50, ..load(4, 4096) };
        for figures in both(&load) {
            let rate = figures.megabytes_per_second();
            assert!((1.0..1.216).contains(&rate), "{rate} MB/s");
        }
    }

    #[test]
    fn as_many_are_under_way_as_were_asked_for() {
        for depth in [1, 7, 30] {
            // Little's law: the stays of those that ended in the span, which begins and ends full.
            let figures = uas(&load(depth, 4096)).unwrap();
            assert!((figures.depth / f64::from(depth) - 1.0).abs() < 0.01, "{}", figures.depth);
        }
    }

    #[test]
    fn what_waits_for_the_one_command_of_bot_waits_in_its_latency() {
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
    fn shares_add_up_to_the_time_of_all_commands() {
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
        // What was under way when they came is not explained.
        let depth = u32::from(measurement.load.depth) as usize;
        assert!(exact + depth >= commands as usize, "{exact} of {commands}");
    }

    #[test]
    fn shares_of_each_command_add_up_to_its_own_time() {
        for connection in [Rate::Gen1.into(), usb2::Rate::High.into()] {
            for (depth, bytes, writes) in [(1, 4096, false), (8, 512, true), (8, 64 << 10, false)] {
                let load = Load { connection, writes, ..load(depth, bytes) };
                let bot = load.bot().unwrap();
                go_on_by_the_clock(Measurement::bare(&load, bot.0, bot.1, LoadObservers::default()), 100);
                let uas = load.uas().unwrap();
                go_on_by_the_clock(Measurement::bare(&load, uas.0, uas.1, LoadObservers::default()), 100);
                for protocol in [Protocol::Bot, Protocol::Uas] {
                    let world =
                        load.power_on(Host::with(Part::CARD), protocol, LoadObservers::default()).unwrap();
                    go_on_by_the_clock(Measurement::begin(&load, world.0, world.1), 100);
                }
            }
        }
    }

    #[test]
    fn shares_of_one_drive_of_several_add_up_to_the_time_of_its_own_commands() {
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
    fn a_command_is_as_long_as_the_driver_or_the_drive_takes_and_no_longer() {
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
    fn what_may_end_at_one_time_is_not_measured() {
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
    fn looking_on_changes_nothing() {
        struct Nobody;
        impl Observer for Nobody {}
        let load = Load { commands: 300, ..load(30, 4096) };
        for protocol in [Protocol::Bot, Protocol::Uas] {
            let trace: Box<dyn Trace> = Box::new(Vec::new());
            let observers =
                LoadObservers { observers: vec![Box::new(Nobody)], trace: Some((trace, 5)), explain: true };
            let watched = measure(&load, protocol, observers).unwrap().total;
            let alone = measure(&load, protocol, LoadObservers::default()).unwrap().total;
            assert_eq!((watched.digest, watched.events), (alone.digest, alone.events));
        }
    }

    #[test]
    fn each_drive_is_looked_on_at_by_its_own_observer() {
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
    fn one_seed_is_one_world() {
        let digest = |seed| uas(&Load { seed, commands: 100, ..load(8, 4096) }).unwrap().digest;
        assert_eq!(digest(1), digest(1));
        assert_eq!(digest(1), GOLDEN, "the same on every machine");
        assert_ne!(digest(1), digest(2), "commands go elsewhere, and take as long");
    }

    #[test]
    fn what_lies_elsewhere_is_noticed() {
        // Blocks of zeroes hold no numbers.
        let load = load(2, 4096);
        let plain = FixedLatencyDrive::new(load.medium_blocks(), BLOCK_SIZE, Duration::from_us(1), 1);
        let plugged = machine::uas(plain.device(), None).unwrap();
        let ended = Measurement::bare(&load, plugged, plain, LoadObservers::default()).map(|_| ());
        assert_eq!(ended, Err(CeilingError::Contents));
    }

    #[test]
    fn a_world_whose_books_are_broken_has_no_figures() {
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
        assert!(violation.to_string().contains("a lane carries no more than it can"), "{violation}");
    }

    #[test]
    fn components_say_what_they_have_done() {
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
    fn books_are_compared_on_the_way_and_not_when_all_is_over() {
        use sim::fault::{Faults, SeededBug};
        let load = load(8, 64 << 10);
        let (plugged, plain) = load.uas().unwrap();
        let mut measurement = Measurement::bare(&load, plugged, plain, LoadObservers::default()).unwrap();
        *measurement.turns.world.faults() = Faults::never().with_bug(Some(SeededBug::Haste));
        assert_eq!(measurement.go_on(AUDIT_INTERVAL_COMMANDS - 1), Ok(()));
        assert!(matches!(measurement.go_on(1), Err(CeilingError::Stopped(StopReason::Broken(_)))));
    }

    #[test]
    fn a_load_that_makes_no_sense_is_refused() {
        for wrong in [Load { bytes: 0, ..load(1, 512) }, load(1, 513), Load { commands: 0, ..load(1, 512) }] {
            assert_eq!(uas(&wrong).err(), Some(CeilingError::Load), "{wrong:?}");
        }
    }

    fn driven(part: Part, load: Load) -> [Figures; 2] {
        both(&Load { host: Some(Host::with(part)), ..load })
    }

    #[test]
    fn a_controller_costs_its_accesses_and_its_moderation_and_no_more() {
        let [bot_none, uas_none] = both(&load(1, 4096));
        let [bot, uas] = driven(Part::CHIPSET, load(1, 4096));
        for (with, without) in [(bot, bot_none), (uas, uas_none)] {
            let more = with.mean.as_ns() - without.mean.as_ns();
            // Doorbells, reads of TRBs and of what goes out, events; and over BOT the status, which comes right behind
            // the data, waits until 40 us after the interrupt for these.
            assert!((1_500..60_000).contains(&more), "{more} ns");
        }
        let [_, full_none] = both(&load(30, 4096));
        let [_, full] = driven(Part::CHIPSET, load(30, 4096));
        assert!(
            (0.85..1.02).contains(&(full.iops() / full_none.iops())),
            "{} of {}",
            full.iops(),
            full_none.iops()
        );
    }

    #[test]
    fn a_card_with_one_lane_moves_what_its_lane_does() {
        for writes in [false, true] {
            let long = Load { commands: 200, writes, ..load(8, 64 << 10) };
            let [_, chipset] = driven(Part::CHIPSET, long.clone());
            let [_, card] = driven(Part::CARD, long);
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
            let [bot, uas] = driven(part, long).map(|figures| figures.megabytes_per_second());
            assert!(bot < uas && uas > most - 2.0 && uas <= most, "{bot} {uas}");
        }
    }

    #[test]
    fn one_seed_is_one_world_with_a_controller() {
        let digest =
            |seed| driven(Part::CARD, Load { seed, commands: 100, ..load(8, 4096) }).map(|f| f.digest);
        assert_eq!(digest(1), digest(1));
    }

    const GOLDEN: u64 = 7_015_620_166_303_737_135;
}
