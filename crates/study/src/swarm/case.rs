//! A complete run as a line of text: `seed=7 wire=uas rate=gen1 streams=16 … faults=status-lost@3`.
//!
//! A seed determines a case ([`Case::of_seed`]). The line states the result, so that a case
//! survives changes of the generator and can be shrunk. Always true: a parsed case is within the
//! limits here, whatever the line says.

mod line;

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
use units::{BlockCount, BlockSize, Duration};

/// A machine, its workload, and its faults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// Seed of all other randomness.
    pub seed: u64,
    /// Transport.
    pub wire: CaseTransport,
    /// Link rate. UAS has no streams on USB 2.0 links.
    pub rate: AnyRate,
    /// Host controller.
    pub controller: CaseController,
    /// Drives behind the last hub that are used, 1 to 3; of two, one always exists.
    pub drives: u8,
    /// Hubs between controller and drive, 0 to 4, with another drive beside it. None without a
    /// controller.
    pub hubs: u8,
    /// Whether the first and third drive are full-speed behind high-speed hubs, and how many
    /// translators those have.
    pub translated: FullSpeedDrives,
    /// When the root port's link sleeps; never on USB 2.0 or behind hubs.
    pub nap: LinkSleep,
    /// Whether faults begin at enumeration; only with a controller.
    pub is_early: bool,
    /// Model of the drives; fixed-latency without a controller.
    pub parts: Parts,
    /// Whether the driver takes host core time; not without a controller.
    pub is_costing: bool,
    /// Streams: a power of two, 2 to 256.
    pub streams: u16,
    /// Commands that a drive accepts before TASK SET FULL, 2 to 64; the default of its parts unless
    /// set.
    pub commands: Option<u16>,
    /// Whether an application uses the storage stack first; only with a controller.
    pub is_stacked: bool,
    /// Queue depth: 1 to 64.
    pub depth: u16,
    /// Maximum bytes of a command.
    pub transfer_bytes: u32,
    /// Block size.
    pub block: BlockSize,
    /// Capacity in blocks: 1 to 4,096.
    pub blocks: u32,
    /// Drive latency in microseconds.
    pub latency_us: u32,
    /// Requests that the drive serves concurrently.
    pub at_once: u16,
    /// Whether the drive has a volatile cache.
    pub is_cached: bool,
    /// Total requests before reading back.
    pub requests: u32,
    /// Maximum blocks of a request.
    pub longest: u32,
    /// Percentages of request types.
    pub mix: Mix,
    /// How a session ends when all requests have completed.
    pub finale: SessionEnd,
    /// Scripted faults; `None` for random ones with rates derived from the seed.
    pub faults: Option<FaultScript>,
}

/// The transport of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaseTransport {
    /// UAS.
    Uas,
    /// BOT.
    Bot,
    /// BOT with packed adjacent requests.
    Turbo,
}

/// The host between transport and link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaseController {
    /// Nothing.
    None,
    /// A chipset controller with its driver.
    Chipset,
    /// An add-in card with its driver.
    Card,
    /// An early add-in card without streams.
    EarlyCard,
}

/// Which drives on a high-speed bus are full-speed, behind translators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FullSpeedDrives {
    /// None.
    None,
    /// Some; one translator per hub.
    One,
    /// Some; one translator per port.
    Each,
}

/// When a link sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkSleep {
    /// Never.
    Never,
    /// When link and drive are idle.
    Idle,
    /// When the link is idle.
    AtWork,
}

/// How a session ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionEnd {
    /// Detach.
    Unplug,
    /// Power loss.
    PowerLoss,
}

/// Percentages of request types; the rest are writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mix {
    /// Reads.
    pub reads: u8,
    /// Write-through (FUA).
    pub through: u8,
    /// Flushes.
    pub flushes: u8,
    /// UNMAP or WRITE SAME with zeroes.
    pub zeroes: u8,
    /// Requests aborted while in flight.
    pub aborts: u8,
    /// Percentage of requests near a recent one, so that reads meet writes.
    pub again: u8,
}

/// An error in a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseError {
    /// The part that is not valid.
    pub part: String,
}

/// Maximum blocks of a drive.
const BLOCKS_MAX: u32 = 4096;
/// Maximum drives used.
const DRIVES_MAX: u8 = 3;
/// Maximum hubs in a row.
const HUBS_MAX: u8 = 4;
/// Maximum requests.
const REQUESTS_MAX: u32 = 1_000_000;

impl Case {
    /// Generates the case of a seed.
    pub fn of_seed(seed: u64) -> Self {
        let mut random = Random::new(seed, "case");
        let mut pick = |choices: &[u32]| choices[random.below(choices.len() as u64) as usize];
        let block = BlockSize::from_bytes(pick(&[512, 512, 4096])).unwrap_or(BlockSize::B512);
        let longest = pick(&[1, 4, 8, 32]);
        let block_bytes = block.bytes();
        let mut queue = Random::new(seed, "queue");
        // Deeper than NCQ, and so than most bridges accept.
        let deep = (queue.below(8) == 0).then(|| 33 + queue.below(30) as u16);
        let commands = (queue.below(4) == 0).then(|| [2, 4, 8, 48, 64][queue.below(5) as usize]);
        let mut line = Random::new(seed, "line");
        let is_packed = line.below(3) == 0;
        // Slow features are rare.
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

    /// Returns the faults of a drive. Those that end everything behind a root port belong to the
    /// first drive.
    pub fn faults(&self, drive: u8) -> Faults {
        let seed = self.seed ^ u64::from(drive) << u32::BITS;
        let faults = match &self.faults {
            Some(script) => Faults::scripted(seed, script.clone()),
            None if drive == 0 => Faults::diced(seed, rates(seed)),
            None => Faults::diced(seed, rates(seed).while_alive()),
        };
        faults.of_drive(drive)
    }

    /// Replaces random faults by a script.
    #[must_use]
    pub fn with_faults(mut self, script: FaultScript) -> Self {
        self.faults = Some(script);
        self
    }

    /// Returns the drive before any write.
    pub fn plain(&self) -> FixedLatencyDrive {
        let latency = Duration::from_us(self.latency_us.into());
        let plain =
            FixedLatencyDrive::new(self.blocks, self.block, latency, self.at_once).with_streams(self.streams);
        let plain = plain.with_limits(self.limits());
        if self.is_cached { plain.with_volatile_cache() } else { plain }
    }

    /// Returns the drive with blocks that hold their numbers, for the storage stack.
    pub(super) fn numbered(&self) -> FixedLatencyDrive {
        let latency = Duration::from_us(self.latency_us.into());
        let plain = FixedLatencyDrive::numbered(BlockCount(self.blocks.into()), self.block)
            .serving(latency, self.at_once);
        plain.with_streams(self.streams).with_limits(self.limits())
    }

    /// Returns the limits of a device.
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

    /// Returns the enclosure behind the endpoints of a drive that is made of parts, as new.
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

    /// Returns the translators that hubs have for drives of full speed, if there are some.
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

/// Delays that a controller adds on a bus of USB 2.0: after a NAK it tries again after four milliseconds.
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
        // A few strikes in a run, which has about a hundred statuses and a few thousand packets.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_round_trips_through_its_line() {
        for seed in 0..500 {
            let case = Case::of_seed(seed);
            assert_eq!(case.to_string().parse(), Ok(case));
        }
        let case = Case::of_seed(3).with_faults("slow@1,unplug@7".parse().unwrap());
        assert!(case.to_string().ends_with(" faults=slow@1,unplug@7"));
        assert_eq!(case.to_string().parse(), Ok(case));
    }

    #[test]
    fn missing_values_have_defaults_within_limits() {
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
