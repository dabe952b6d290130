//! Everything about one run, as a line of text: `seed=7 wire=uas rate=gen1 streams=16 … faults=status-lost@3`.
//!
//! A seed makes a case by dice ([`Case::of_seed`]). The line says what came of them, so that a case outlives a change of the
//! dice, and so that it can be made smaller. Always true: a case that was read is within the limits here, whatever the line
//! said.

use super::parts::{self, Parts};
use device::command::Limits;
use device::{Device, Transports};
use sim::bridge::Chip;
use sim::engine::Random;
use sim::fault::{FaultKind, FaultRates, FaultScript, Faults};
use sim::link::superspeed::{self, Sleep};
use sim::link::usb2::{self, Pacing, Translators};
use sim::link::{AnyRate, Connection};
use sim::machine::FixedLatencyDrive;
use sim::machine::xhci::{
    BlockStorage, Drive, Enclosure, Host, HostCosts, Hub, Node, Packing, Protocol, Setup,
};
use sim::xhc::Part;
use std::fmt;
use std::str::FromStr;
use units::{BlockCount, BlockSize, Duration};

/// A world, what is asked of its drive, and what goes wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// What all else that is random comes from.
    pub seed: u64,
    /// The transport.
    pub wire: CaseTransport,
    /// The link. UAS is in turns where it is one of USB 2.0.
    pub rate: AnyRate,
    /// The host's controller.
    pub controller: CaseController,
    /// Drives behind the last hub that are asked, 1 to 3; of two, one is there in any case.
    pub drives: u8,
    /// Hubs between that and the drive, 0 to 4; another drive is beside it then. Where there is no controller there are none.
    pub hubs: u8,
    /// Whether the first drive and the third are of full speed where hubs are of high speed, and how many translators these have.
    pub translated: FullSpeedDrives,
    /// When the link at the root port sleeps; never on a bus of USB 2.0 or behind hubs.
    pub nap: LinkSleep,
    /// Whether faults strike from the first packet on, while devices are brought up; where there is no controller that takes no packets.
    pub is_early: bool,
    /// What the drives are made of; where there is no controller they are plain.
    pub parts: Parts,
    /// Whether the driver takes its time on the host's core; where there is no controller it takes none.
    pub is_costing: bool,
    /// Streams of the device: a power of two, 2 to 256.
    pub streams: u16,
    /// Commands that a drive takes at once before it answers TASK SET FULL, 2 to 64; what its parts have unless said.
    pub commands: Option<u16>,
    /// Whether an application asks for blocks through the storage stack first; where there is a controller.
    pub is_stacked: bool,
    /// Commands in flight, and requests: 1 to 64.
    pub depth: u16,
    /// Bytes of a command at most.
    pub transfer_bytes: u32,
    /// Bytes of a block.
    pub block: BlockSize,
    /// Blocks of the drive: 1 to 4,096.
    pub blocks: u32,
    /// What the drive takes for a request, in microseconds.
    pub latency_us: u32,
    /// Requests that the drive serves at once.
    pub at_once: u16,
    /// Whether the drive has a volatile cache.
    pub is_cached: bool,
    /// Requests in all, before the blocks are read back.
    pub requests: u32,
    /// Blocks of a request at most.
    pub longest: u32,
    /// Of a hundred requests, how many are what.
    pub mix: Mix,
    /// What ends the life of the device when all requests have ended.
    pub finale: SessionEnd,
    /// The faults; `None` throws dice, at rates that the seed gives.
    pub faults: Option<FaultScript>,
}

/// The transport of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaseTransport {
    /// UAS with streams.
    Uas,
    /// BOT.
    Bot,
    /// BOT with neighbours packed.
    Turbo,
}

/// What is between the transport and the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaseController {
    /// Nothing.
    None,
    /// A driver and a controller in a chipset.
    Chipset,
    /// The same on a card.
    Card,
    /// The same on an early card, which has no streams.
    EarlyCard,
}

/// Which drives on a bus of high speed are of full speed, behind translators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FullSpeedDrives {
    /// None.
    None,
    /// Some; each hub has one translator.
    One,
    /// Some; each hub has one for each port.
    Each,
}

/// When a link sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkSleep {
    /// Never.
    Never,
    /// When nothing crosses and the drive has nothing to do.
    Idle,
    /// When nothing crosses, whatever the drive does.
    AtWork,
}

/// What ends a life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionEnd {
    /// The device is pulled out.
    Unplug,
    /// The power fails.
    PowerLoss,
}

/// Requests of a hundred; what is left are writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mix {
    /// Reads.
    pub reads: u8,
    /// Writes through a cache (FUA).
    pub through: u8,
    /// Flushes.
    pub flushes: u8,
    /// Blocks that are unmapped, or zeroed.
    pub zeroes: u8,
    /// Requests that are taken back while they are under way.
    pub aborts: u8,
    /// Of a hundred requests of any kind, how many go where one of the last went, so that reads meet writes.
    pub again: u8,
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseError {
    /// The part that is not understood.
    pub part: String,
}

/// Blocks of a drive at most.
const BLOCKS_MAX: u32 = 4096;
/// Drives that are asked at most.
const DRIVES_MAX: u8 = 3;
/// Hubs in a row at most.
const HUBS_MAX: u8 = 4;
/// Requests at most.
const REQUESTS_MAX: u32 = 1_000_000;

impl Case {
    /// The case that dice make of a seed.
    pub fn of_seed(seed: u64) -> Self {
        let mut random = Random::new(seed, "case");
        let mut pick = |choices: &[u32]| choices[random.below(choices.len() as u64) as usize];
        let block = BlockSize::from_bytes(pick(&[512, 512, 4096])).unwrap_or(BlockSize::B512);
        let longest = pick(&[1, 4, 8, 32]);
        let block_bytes = block.bytes();
        let mut queue = Random::new(seed, "queue");
        // Deeper than the tags of SATA, and so than what most bridges take.
        let deep = (queue.below(8) == 0).then(|| 33 + queue.below(30) as u16);
        let commands = (queue.below(4) == 0).then(|| [2, 4, 8, 48, 64][queue.below(5) as usize]);
        let mut line = Random::new(seed, "line");
        let is_packed = line.below(3) == 0;
        // What is slow is seldom.
        let usb2 = match line.below(16) {
            0..3 => Some(usb2::Rate::High),
            3 => Some(usb2::Rate::Full),
            _ => None,
        };
        let wire = match pick(&[0, 0, 1]) {
            0 => CaseTransport::Uas,
            _ if is_packed => CaseTransport::Turbo,
            _ => CaseTransport::Bot,
        };
        let rates = [superspeed::Rate::Gen1, superspeed::Rate::Gen2, superspeed::Rate::Gen2x2];
        let super_speed = AnyRate::SuperSpeed(rates[pick(&[0, 0, 1, 2]) as usize]);
        Self {
            seed,
            wire,
            rate: usb2.map_or(super_speed, AnyRate::Usb2),
            controller: match line.below(8) {
                0..2 => CaseController::Chipset,
                2 => CaseController::Card,
                3 if wire == CaseTransport::Uas && usb2.is_none() => CaseController::Card,
                3 => CaseController::EarlyCard,
                _ => CaseController::None,
            },
            hubs: [0, 0, 1, 2][Random::new(seed, "hubs").below(4) as usize],
            drives: 1 + Random::new(seed, "drives").below(DRIVES_MAX.into()) as u8,
            translated: [FullSpeedDrives::None, FullSpeedDrives::One, FullSpeedDrives::Each]
                [Random::new(seed, "translated").below(3) as usize],
            nap: [LinkSleep::Never, LinkSleep::Never, LinkSleep::Idle, LinkSleep::AtWork]
                [Random::new(seed, "nap").below(4) as usize],
            is_early: Random::new(seed, "early").below(4) == 0,
            parts: Parts::of_seed(seed),
            is_costing: Random::new(seed, "costs").below(4) == 0,
            commands,
            is_stacked: queue.below(4) == 0,
            streams: (pick(&[2, 4, 16, 32, 64]) as u16).max(deep.map_or(2, |_| 64)),
            depth: (pick(&[1, 2, 4, 8, 16, 30]) as u16).max(deep.unwrap_or(1)),
            transfer_bytes: pick(&[block_bytes, 4096.max(block_bytes), 16 << 10, 64 << 10]),
            block,
            blocks: pick(&[16, 64, 256]).max(longest),
            latency_us: pick(&[0, 1, 10, 60, 1000]),
            at_once: pick(&[1, 2, 4, 32]) as u16,
            is_cached: pick(&[0, 1, 1]) == 1,
            requests: pick(&[20, 60, 120]),
            longest,
            mix: Mix {
                reads: pick(&[20, 40, 60]) as u8,
                through: pick(&[0, 5, 10]) as u8,
                flushes: pick(&[0, 3, 10]) as u8,
                zeroes: pick(&[0, 0, 5]) as u8,
                aborts: pick(&[0, 0, 0, 5]) as u8,
                again: [0, 40, 70][Random::new(seed, "again").below(3) as usize],
            },
            finale: if pick(&[0, 1, 1]) == 0 { SessionEnd::Unplug } else { SessionEnd::PowerLoss },
            faults: None,
        }
        .bounded()
    }

    /// What goes wrong with a drive. What ends the life of all that is behind a root port is the first drive's.
    pub fn faults(&self, drive: u8) -> Faults {
        let seed = self.seed ^ u64::from(drive) << u32::BITS;
        let faults = match &self.faults {
            Some(script) => Faults::scripted(seed, script.clone()),
            None if drive == 0 => Faults::diced(seed, rates(seed)),
            None => Faults::diced(seed, rates(seed).while_alive()),
        };
        faults.of_drive(drive)
    }

    /// The same with these faults instead of dice.
    #[must_use]
    pub fn with_faults(mut self, script: FaultScript) -> Self {
        self.faults = Some(script);
        self
    }

    /// The drive, before anything was written.
    pub fn plain(&self) -> FixedLatencyDrive {
        let latency = Duration::from_us(self.latency_us.into());
        let plain =
            FixedLatencyDrive::new(self.blocks, self.block, latency, self.at_once).with_streams(self.streams);
        let plain = plain.with_limits(self.limits());
        if self.is_cached { plain.with_volatile_cache() } else { plain }
    }

    /// The same of blocks that hold their numbers, for the storage stack.
    pub(super) fn numbered(&self) -> FixedLatencyDrive {
        let latency = Duration::from_us(self.latency_us.into());
        let plain = FixedLatencyDrive::numbered(BlockCount(self.blocks.into()), self.block)
            .serving(latency, self.at_once);
        plain.with_streams(self.streams).with_limits(self.limits())
    }

    /// What a device takes at once.
    fn limits(&self) -> Limits {
        let limits = self.bridge().map_or(FixedLatencyDrive::LIMITS, |bridge| bridge.limits);
        Limits { commands: self.commands.unwrap_or(limits.commands), ..limits }
    }

    /// Whether more commands may be sent to a drive than it takes at once.
    pub(super) fn is_crowded(&self) -> bool {
        self.depth > self.limits().commands
    }

    /// The bridge that drives are behind, if they are made of parts.
    fn bridge(&self) -> Option<Chip> {
        self.parts.chip().filter(|_| self.controller != CaseController::None)
    }

    /// What is behind the endpoints of a drive that is made of parts, as new.
    pub(super) fn enclosure(&self, drive: usize) -> Option<Box<Enclosure>> {
        let mut chip = self.bridge()?;
        // Without streams the data of one command move at a time.
        chip.store.reads_fit = self.is_on_bus() || self.own_rate(drive).is_some();
        let protocol = self.protocol();
        Some(Box::new(Enclosure::new(&chip, protocol, self.parts.drive()?, self.block)))
    }

    const fn protocol(&self) -> Protocol {
        match self.wire {
            CaseTransport::Uas => Protocol::Uas,
            CaseTransport::Bot | CaseTransport::Turbo => Protocol::Bot,
        }
    }

    /// Its device, as it leaves the factory.
    pub(super) fn device(&self, plain: &FixedLatencyDrive, drive: usize) -> Device {
        let rate = self.own_rate(drive).map_or(self.rate, AnyRate::Usb2);
        plain.device_with(Transports::Dual, rate.speed())
    }

    /// The rate of a drive if that is not the one of all links.
    fn own_rate(&self, drive: usize) -> Option<usb2::Rate> {
        let has_translator = self.translators().is_some() && self.controller != CaseController::None;
        (has_translator && drive.is_multiple_of(2)).then_some(usb2::Rate::Full)
    }

    /// Whether some drives are behind translators.
    pub(super) fn is_translated(&self) -> bool {
        self.own_rate(0).is_some()
    }

    /// What hubs have for drives of full speed, if there are some.
    fn translators(&self) -> Option<Translators> {
        let has_some = self.hubs > 0 && self.rate == AnyRate::Usb2(usb2::Rate::High);
        match self.translated {
            FullSpeedDrives::One if has_some => Some(Translators::One),
            FullSpeedDrives::Each if has_some => Some(Translators::Each),
            _ => None,
        }
    }

    /// How the device is connected where there is no controller: without hubs.
    pub(super) const fn connection(&self) -> Connection {
        match self.rate {
            AnyRate::SuperSpeed(rate) => Connection::SuperSpeed(rate),
            AnyRate::Usb2(rate) => Connection::Usb2 { rate, hubs: 0, pacing: PACING },
        }
    }

    /// How the link sleeps, if it does.
    pub(super) fn sleep(&self) -> Option<Sleep> {
        let refuses = match self.nap {
            LinkSleep::Never => return None,
            LinkSleep::Idle => true,
            LinkSleep::AtWork => false,
        };
        (!self.is_on_bus()).then_some(Sleep { device_refuses_at_work: refuses, ..Sleep::LINUX })
    }

    /// Whether it is on a bus of USB 2.0, on which initiator and target may notice what SuperSpeed puts right by itself.
    pub(super) const fn is_on_bus(&self) -> bool {
        matches!(self.rate, AnyRate::Usb2(_))
    }

    /// The setup of a world with a controller, if it is one.
    pub(super) fn setup(&self) -> Option<Setup> {
        let part = Part { pacing: PACING, ..self.controller.part()? };
        let packing = (self.wire == CaseTransport::Turbo).then_some(Packing::TURBO);
        let drive = Drive {
            protocol: self.protocol(),
            depth: Some(self.depth),
            streams: self.streams,
            blocks: self.blocks,
            block_size: self.block,
            latency: Duration::from_us(self.latency_us.into()),
            at_once: self.at_once,
            keeping: if self.is_cached { BlockStorage::Cached } else { BlockStorage::Memory },
            rate: None,
        };
        let drive = |number: u8| Drive { rate: self.own_rate(number.into()), ..drive };
        let node = match self.hubs {
            0 => Node::Drive(drive(0)),
            hubs => {
                let hub = || Hub::new(4).translating(self.translators().unwrap_or_default());
                let ports = 1..=self.drives.max(2);
                let last = Node::Hub(ports.fold(hub(), |hub, port| hub.with(port, drive(port - 1))));
                (1..hubs).fold(last, |node, _| Node::Hub(hub().with(1, node)))
            }
        };
        let costs = if self.is_costing { parts::costs(self.wire) } else { HostCosts::FREE };
        let host = Host { packing, costs, ..Host::with(part) };
        let sleep = self.sleep();
        Some(Setup { sleep, ..Setup::new(host).at(self.rate).with(1, node) })
    }

    /// Drives that are asked.
    pub(super) const fn asked(&self) -> u8 {
        match (self.controller, self.hubs) {
            (CaseController::None, _) | (_, 0) => 1,
            _ => self.drives,
        }
    }

    /// Within the limits.
    fn bounded(mut self) -> Self {
        if self.wire == CaseTransport::Uas
            && self.controller == CaseController::EarlyCard
            && !self.is_on_bus()
        {
            self.controller = CaseController::Card;
        }
        if self.controller == CaseController::None {
            (self.parts, self.is_costing, self.is_stacked) = (Parts::Plain, false, false);
        }
        self.hubs = self.hubs.min(HUBS_MAX);
        self.drives = self.drives.clamp(1, DRIVES_MAX);
        self.streams = self.streams.clamp(2, 256).next_power_of_two().min(256);
        self.commands = self.commands.map(|commands| commands.clamp(2, 64));
        self.depth = self.depth.clamp(1, 64);
        self.transfer_bytes = self.transfer_bytes.clamp(self.block.bytes(), 1 << 20);
        self.blocks = self.blocks.clamp(1, BLOCKS_MAX);
        self.longest = self.longest.clamp(1, self.blocks);
        self.at_once = self.at_once.clamp(1, 256);
        self.requests = self.requests.min(REQUESTS_MAX);
        self
    }

    /// Takes one `name=value`.
    fn take(&mut self, name: &str, value: &str) -> Option<()> {
        match name {
            "seed" => self.seed = value.parse().ok()?,
            "wire" => self.wire = of_name(value, &WIRES)?,
            "rate" => self.rate = of_name(value, &RATES)?,
            "controller" => self.controller = of_name(value, &CONTROLLERS)?,
            "hubs" => self.hubs = value.parse().ok()?,
            "drives" => self.drives = value.parse().ok()?,
            "translated" => self.translated = of_name(value, &TRANSLATED)?,
            "nap" => self.nap = of_name(value, &NAPS)?,
            "early" => self.is_early = of_name(value, &YES_NO)?,
            "parts" => self.parts = of_name(value, &parts::NAMES)?,
            "costs" => self.is_costing = of_name(value, &YES_NO)?,
            "commands" if value == USUAL => self.commands = None,
            "commands" => self.commands = Some(value.parse().ok()?),
            "stack" => self.is_stacked = of_name(value, &YES_NO)?,
            "streams" => self.streams = value.parse().ok()?,
            "depth" => self.depth = value.parse().ok()?,
            "transfer" => self.transfer_bytes = value.parse().ok()?,
            "block" => self.block = BlockSize::from_bytes(value.parse().ok()?)?,
            "blocks" => self.blocks = value.parse().ok()?,
            "latency-us" => self.latency_us = value.parse().ok()?,
            "at-once" => self.at_once = value.parse().ok()?,
            "cache" => self.is_cached = of_name(value, &YES_NO)?,
            "requests" => self.requests = value.parse().ok()?,
            "longest" => self.longest = value.parse().ok()?,
            "reads" => self.mix.reads = value.parse().ok()?,
            "through" => self.mix.through = value.parse().ok()?,
            "flushes" => self.mix.flushes = value.parse().ok()?,
            "zeroes" => self.mix.zeroes = value.parse().ok()?,
            "aborts" => self.mix.aborts = value.parse().ok()?,
            "again" => self.mix.again = value.parse().ok()?,
            "finale" => self.finale = of_name(value, &FINALES)?,
            "faults" if value == DICE => self.faults = None,
            "faults" => self.faults = Some(value.parse().ok()?),
            _ => return None,
        }
        Some(())
    }
}

impl CaseController {
    const fn part(self) -> Option<Part> {
        match self {
            Self::None => None,
            Self::Chipset => Some(Part::CHIPSET),
            Self::Card => Some(Part::CARD),
            Self::EarlyCard => Some(Part::EARLY_CARD),
        }
    }
}

/// What a controller adds on a bus of USB 2.0. It has patience: what is not ready is asked again after four milliseconds.
const PACING: Pacing = Pacing { gap: Duration::ZERO, after_nak: Duration::from_ms(4) };

/// How often what strikes in the world of a seed. In one of four nothing does.
fn rates(seed: u64) -> FaultRates {
    let mut random = Random::new(seed, "rates");
    let mut rates = FaultRates::NEVER;
    if random.below(4) == 0 {
        return rates;
    }
    for kind in FaultKind::ALL {
        if random.below(3) > 0 {
            continue;
        }
        // Some strikes in a run: there are a hundred statuses or so, and some thousand packets.
        let often = match kind {
            ender if ender.ends_life() => 400,
            FaultKind::HeaderDamaged | FaultKind::PayloadDamaged => 10_000,
            FaultKind::PacketLost => 2_000,
            _ => 30_000,
        };
        rates = rates.with(kind, 1 + random.below(often) as u32);
    }
    rates
}

const YES_NO: [(&str, bool); 2] = [("yes", true), ("no", false)];
const WIRES: [(&str, CaseTransport); 3] =
    [("uas", CaseTransport::Uas), ("bot", CaseTransport::Bot), ("turbo", CaseTransport::Turbo)];
const RATES: [(&str, AnyRate); 5] = [
    ("gen1", AnyRate::SuperSpeed(superspeed::Rate::Gen1)),
    ("gen2", AnyRate::SuperSpeed(superspeed::Rate::Gen2)),
    ("gen2x2", AnyRate::SuperSpeed(superspeed::Rate::Gen2x2)),
    ("high", AnyRate::Usb2(usb2::Rate::High)),
    ("full", AnyRate::Usb2(usb2::Rate::Full)),
];
const CONTROLLERS: [(&str, CaseController); 4] = [
    ("none", CaseController::None),
    ("chipset", CaseController::Chipset),
    ("card", CaseController::Card),
    ("early-card", CaseController::EarlyCard),
];
const TRANSLATED: [(&str, FullSpeedDrives); 3] =
    [("none", FullSpeedDrives::None), ("one", FullSpeedDrives::One), ("each", FullSpeedDrives::Each)];
const NAPS: [(&str, LinkSleep); 3] =
    [("never", LinkSleep::Never), ("idle", LinkSleep::Idle), ("at-work", LinkSleep::AtWork)];
const FINALES: [(&str, SessionEnd); 2] =
    [("unplug", SessionEnd::Unplug), ("power-loss", SessionEnd::PowerLoss)];
/// As many commands as the parts of a drive take.
const USUAL: &str = "usual";
/// Faults that dice bring about.
const DICE: &str = "dice";

fn of_name<V: Copy>(name: &str, all: &[(&str, V)]) -> Option<V> {
    all.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
}

fn name_of<V: PartialEq + Copy>(value: V, all: &[(&'static str, V)]) -> &'static str {
    all.iter().find(|(_, known)| *known == value).map_or("", |(name, _)| name)
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "seed={} wire={} rate={} controller={} hubs={} drives={} translated={} nap={} early={} parts={} costs={} commands={} stack={} streams={} depth={} transfer={} block={} blocks={} latency-us={} at-once={}",
            self.seed,
            name_of(self.wire, &WIRES),
            name_of(self.rate, &RATES),
            name_of(self.controller, &CONTROLLERS),
            self.hubs,
            self.drives,
            name_of(self.translated, &TRANSLATED),
            name_of(self.nap, &NAPS),
            name_of(self.is_early, &YES_NO),
            name_of(self.parts, &parts::NAMES),
            name_of(self.is_costing, &YES_NO),
            self.commands.map_or_else(|| USUAL.into(), |commands| commands.to_string()),
            name_of(self.is_stacked, &YES_NO),
            self.streams,
            self.depth,
            self.transfer_bytes,
            self.block.bytes(),
            self.blocks,
            self.latency_us,
            self.at_once,
        )?;
        let Mix { reads, through, flushes, zeroes, aborts, again } = self.mix;
        write!(
            f,
            " cache={} requests={} longest={} reads={reads} through={through} flushes={flushes} zeroes={zeroes}",
            name_of(self.is_cached, &YES_NO),
            self.requests,
            self.longest,
        )?;
        write!(f, " aborts={aborts} again={again} finale={} faults=", name_of(self.finale, &FINALES))?;
        match &self.faults {
            Some(script) => script.fmt(f),
            None => f.write_str(DICE),
        }
    }
}

impl FromStr for Case {
    type Err = CaseError;

    /// What a line does not say is as the seed 0 has it, but for faults while devices are brought up, parts, what a driver takes, how many
    /// commands a drive takes, and the storage stack, which are said.
    fn from_str(line: &str) -> Result<Self, CaseError> {
        let seed_0 = Self::of_seed(0);
        let mut case = Self {
            is_early: false,
            parts: Parts::Plain,
            is_costing: false,
            commands: None,
            is_stacked: false,
            ..seed_0
        };
        for part in line.split_whitespace() {
            let taken = part.split_once('=').and_then(|(name, value)| case.take(name, value));
            taken.ok_or_else(|| CaseError { part: part.into() })?;
        }
        Ok(case.bounded())
    }
}

impl fmt::Display for CaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is no part of a case", self.part)
    }
}

impl std::error::Error for CaseError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_all_of_a_case() {
        for seed in 0..500 {
            let case = Case::of_seed(seed);
            assert_eq!(case.to_string().parse(), Ok(case));
        }
        let case = Case::of_seed(3).with_faults("slow@1,unplug@7".parse().unwrap());
        assert!(case.to_string().ends_with(" faults=slow@1,unplug@7"));
        assert_eq!(case.to_string().parse(), Ok(case));
    }

    #[test]
    fn a_line_may_say_little_and_is_kept_within_limits() {
        let case: Case = "wire=bot depth=1000 blocks=3 longest=9 streams=3".parse().unwrap();
        assert_eq!(
            (case.wire, case.depth, case.blocks, case.longest, case.streams),
            (CaseTransport::Bot, 64, 3, 3, 4)
        );
        for wrong in ["wire", "wire=usb", "speed=9", "depth=x", "faults=hot@1", "block=513"] {
            assert_eq!(wrong.parse::<Case>(), Err(CaseError { part: wrong.into() }));
        }
    }

    #[test]
    fn seeds_make_all_kinds_of_cases() {
        let cases: Vec<_> = (0..200).map(Case::of_seed).collect();
        let calm = cases.iter().filter(|case| rates(case.seed) == FaultRates::NEVER).count();
        assert!((30..90).contains(&calm), "{calm}");
        let count = |is_so: &dyn Fn(&&Case) -> bool| cases.iter().filter(is_so).count();
        assert!((25..80).contains(&count(&|case| case.wire == CaseTransport::Bot)));
        assert!((10..50).contains(&count(&|case| case.wire == CaseTransport::Turbo)));
        assert!((20..60).contains(&count(&|case| case.rate == AnyRate::Usb2(usb2::Rate::High))));
        assert!((5..30).contains(&count(&|case| case.rate == AnyRate::Usb2(usb2::Rate::Full))));
        assert!((10..40).contains(&count(&|case| case.depth > 32)));
        assert!((5..60).contains(&count(&|case| case.is_stacked)));
        assert!((20..60).contains(&count(&|case| case.is_crowded())));
        for kind in FaultKind::ALL {
            let count = cases.iter().filter(|case| rates(case.seed).of(kind) > 0).count();
            assert!((20..100).contains(&count), "{kind}: {count}");
        }
    }
}
