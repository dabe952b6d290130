//! A simulated disk built from the parts of a setup, powered on and ready for requests.
//!
//! Numbers come from the catalogue's parts; the active transport follows from them
//! ([`Activation`]). On USB 2.0 links hubs are high-speed, and a full-speed drive is behind the
//! last hub's transaction translator. Left out: several drives.
//!
//! Always true: setups with the same parts build the same machine; nothing here depends on the name
//! of a setup or a figure.

use crate::measure::{Disk, MeasureError};
use crate::parts::{
    Activation, BridgePart, Carried, Catalogue, ChainError, FirmwareCosts, HostPart, HubPart, LinkPart,
    Matched, Pieces, Waits,
};
use crate::setups::{Assembly, DriveName};
use bus::Speed;
use device::command::Limits;
use initiator::turbo::LookAhead;
use sim::ahci::AhciMachine;
use sim::bridge::{Chip, StorePart, Times};
use sim::check::Violation;
use sim::components::Components;
use sim::drive::disk::Disk as HardDisk;
use sim::drive::solid::{Contents, Solid};
use sim::drive::{AnyDrive, Deferred, Mechanism, SECTOR_BYTES};
use sim::engine::Trace;
use sim::link::superspeed::Sleep;
use sim::link::usb2;
use sim::machine::xhci::{
    Drive, DriveParts, Enclosure, HostCosts, Hub, Node, Packing, PowerOnError, Protocol, Setup, XhciMachine,
};
use sim::machine::{FixedLatencyDrive, Observer, Simulation};
use sim::power::machine::{Activity, PowerDraws};
use sim::stack::{DriverProfile, Request, Stack, StackError, Streams};
use std::fmt;
use units::{BlockCount, BlockSize, Duration, Extent, Instant};
use wire::usb::Direction;

/// A powered-on disk.
#[derive(Debug)]
pub struct Assembled {
    stack: OnStack,
    /// The active transport and the reasons for it.
    pub activation: Activation,
    /// Capacity in blocks of [`BLOCK_SIZE`].
    pub capacity: BlockCount,
    /// Power draw of its parts.
    pub draws: PowerDraws,
}

/// Block size of all drives here.
pub const BLOCK_SIZE: BlockSize = BlockSize::B512;

/// Behind USB, or native.
#[derive(Debug)]
enum OnStack {
    Usb(Box<Stack<XhciMachine>>),
    Native(Box<Stack<AhciMachine>>),
}

/// Why a disk cannot be built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AssemblyError {
    /// The parts cannot be connected.
    Chain(ChainError),
    /// A part is not in the catalogue.
    Unknown(String),
    /// Power-on failed.
    PowerOn(PowerOnError),
    /// The driver found no disk.
    Stack(StackError),
}

/// Data phases that the target keeps in memory; those of bridges are in [`StorePart::buffer_sectors`].
const STAGING_BYTES: u32 = 64 << 20;

impl Assembled {
    /// Powers on an assembly.
    ///
    /// # Errors
    ///
    /// See [`AssemblyError`].
    pub fn power_on(
        assembly: &Assembly,
        catalogue: &Catalogue,
        contents: Contents,
    ) -> Result<Self, AssemblyError> {
        Self::power_on_watched(assembly, catalogue, contents, None)
    }

    /// Powers on an assembly with an observer of the drive from enumeration on, if it has USB.
    ///
    /// # Errors
    ///
    /// See [`AssemblyError`].
    pub fn power_on_watched(
        assembly: &Assembly,
        catalogue: &Catalogue,
        contents: Contents,
        observer: Option<Box<dyn Observer>>,
    ) -> Result<Self, AssemblyError> {
        let activation = assembly.activation(catalogue).map_err(AssemblyError::Chain)?;
        let parts = Parts { assembly, catalogue, activation: &activation };
        let mechanism = parts.drive(contents)?;
        let capacity = BlockCount(mechanism.sectors());
        let draws = parts.draws()?;
        let stack = match activation.transport {
            Carried::Sata => OnStack::Native(Box::new(parts.native(mechanism)?)),
            _ => OnStack::Usb(Box::new(parts.usb(mechanism, observer)?)),
        };
        Ok(Self { stack, activation, capacity, draws })
    }

    /// Returns virtual time, events and digest so far.
    pub fn books(&self) -> (Instant, u64, u64) {
        match &self.stack {
            OnStack::Usb(stack) => books(stack.machine()),
            OnStack::Native(stack) => books(stack.machine()),
        }
    }

    /// Checks all invariants.
    ///
    /// # Errors
    ///
    /// The first violation.
    pub fn audit(&mut self) -> Result<(), Violation> {
        match &mut self.stack {
            OnStack::Usb(stack) => stack.machine_mut().audit(),
            OnStack::Native(stack) => stack.machine_mut().audit(),
        }
    }

    /// Returns the counters of the parts so far.
    pub fn components(&self) -> Components {
        match &self.stack {
            OnStack::Usb(stack) => stack.machine().components(),
            OnStack::Native(stack) => stack.machine().components(),
        }
    }

    /// Returns the busy times of the parts so far.
    pub fn activity(&mut self) -> Activity {
        match &mut self.stack {
            OnStack::Usb(stack) => {
                let world = stack.machine_mut();
                let now = world.now();
                let link = world.link(0).map(|link| (link.meter(now).times(now), link.carried_for()));
                let core = world.core().busy(now);
                let enclosure = world.enclosure(0);
                let (bridge, drive) = enclosure.map_or((Duration::ZERO, Duration::ZERO), |enclosure| {
                    (enclosure.at_work(now), enclosure.store().at_work(now))
                });
                // USB 2.0 buses have no counters.
                let controller = link.map_or(bridge, |(_, carried)| carried);
                let link = link.map(|(states, _)| states);
                Activity { core, controller, bridge: Some(bridge), drive, link }
            }
            OnStack::Native(stack) => {
                let [core, drive] = stack.machine().at_work();
                Activity { core, controller: drive, drive, ..Activity::default() }
            }
        }
    }

    /// Returns the USB machine, if there is one.
    pub fn usb(&mut self) -> Option<&mut XhciMachine> {
        match &mut self.stack {
            OnStack::Usb(stack) => Some(stack.machine_mut()),
            OnStack::Native(_) => None,
        }
    }

    /// Observes commands from now on, and behind USB transfers and packets.
    pub fn observe(&mut self, observer: Box<dyn Observer>) {
        match &mut self.stack {
            OnStack::Usb(stack) => stack.machine_mut().observe(0, observer),
            OnStack::Native(stack) => stack.machine_mut().observe(0, observer),
        }
    }

    /// Traces packets, TRBs and SATA frames from now on.
    pub fn trace_to(&mut self, trace: Box<dyn Trace>) {
        match &mut self.stack {
            OnStack::Usb(stack) => stack.machine_mut().trace_to(trace),
            OnStack::Native(stack) => stack.machine_mut().trace_to(trace),
        }
    }

    /// Stops tracing.
    pub fn take_trace(&mut self) -> Option<Box<dyn Trace>> {
        match &mut self.stack {
            OnStack::Usb(stack) => stack.machine_mut().take_trace(),
            OnStack::Native(stack) => stack.machine_mut().take_trace(),
        }
    }

    fn misplaced_blocks(&self) -> u64 {
        match &self.stack {
            OnStack::Usb(stack) => stack.misplaced_blocks(0) + stack.machine().misplaced_blocks(0),
            OnStack::Native(stack) => stack.misplaced_blocks(0) + stack.machine().misplaced_blocks(0),
        }
    }
}

fn books(world: &impl Simulation) -> (Instant, u64, u64) {
    (world.now(), world.happened(), world.digest())
}

/// Parts, looked up.
struct Parts<'a> {
    assembly: &'a Assembly,
    catalogue: &'a Catalogue,
    activation: &'a Activation,
}

impl Parts<'_> {
    fn drive(&self, contents: Contents) -> Result<AnyDrive, AssemblyError> {
        let name = &self.assembly.drive;
        let drive = match name {
            DriveName::Ssd(name) => {
                self.catalogue.ssd(name).map(|part| Solid::new(part.clone(), contents).into())
            }
            DriveName::Hdd(name) => self.catalogue.hdd(name).map(|part| HardDisk::new(part.clone()).into()),
        };
        drive.ok_or_else(|| AssemblyError::Unknown(name.as_str().into()))
    }

    fn draws(&self) -> Result<PowerDraws, AssemblyError> {
        let host = known(&self.assembly.host, self.catalogue.host(&self.assembly.host))?;
        let power = *known(&host.power, self.catalogue.power(&host.power))?;
        let drive = match self.assembly.drive {
            DriveName::Ssd(_) => power.ssd,
            DriveName::Hdd(_) => power.hdd,
        };
        Ok(PowerDraws::new(host.cores, power, drive))
    }

    fn native(&self, mechanism: AnyDrive) -> Result<Stack<AhciMachine>, AssemblyError> {
        let of = known(&self.assembly.controller, self.catalogue.sata(&self.assembly.controller))?;
        let store = StorePart {
            rate: of.rate,
            latency: of.latency,
            queued: of.queued,
            buffer_sectors: u32::MAX,
            piece_sectors: 1,
            frame: Duration::ZERO,
            reads_fit: false,
        };
        let profile = self.profile()?;
        let costs = HostCosts { command: profile.costs.command + of.command, ..profile.costs };
        let plain = FixedLatencyDrive::numbered(BlockCount(mechanism.sectors()), BLOCK_SIZE);
        let world = AhciMachine::new(costs, store, mechanism, plain);
        Stack::new(world, &profile).map_err(AssemblyError::Stack)
    }

    fn usb(
        &self,
        mechanism: AnyDrive,
        observer: Option<Box<dyn Observer>>,
    ) -> Result<Stack<XhciMachine>, AssemblyError> {
        let assembly = self.assembly;
        let link = self.activation.link.as_ref().map(|link| link.rate);
        let rate: LinkPart = known(assembly.link.as_deref().unwrap_or_default(), link)?;
        let bridge = assembly.bridge.as_deref().unwrap_or_default();
        let bridge = known(bridge, self.catalogue.bridge(bridge))?;
        let controller = known(&assembly.controller, self.catalogue.controller(&assembly.controller))?;
        let profile = self.profile()?;
        let (mut chip, protocol) = (chip(bridge), profile.transport);
        // Without streams the data of one command move at a time.
        chip.store.reads_fit = rate.speed() != Speed::Super;
        let plain = FixedLatencyDrive::numbered(BlockCount(mechanism.sectors()), BLOCK_SIZE);
        let plain = plain.with_limits(chip.limits).with_streams(chip.streams);
        let device = plain.device_with(bridge.transports, rate.speed());
        let enclosure = Enclosure::new(&chip, protocol, mechanism, BLOCK_SIZE);
        let mut occupant = Some(DriveParts { device, plain, enclosure: Some(Box::new(enclosure)) });
        let drive = match protocol {
            Protocol::Bot => Drive::bot(),
            Protocol::Uas => Drive { depth: Some(profile.depth()), ..Drive::uas() },
        };
        let (drive, bus) = match rate {
            LinkPart::Usb2(usb2::Rate::Full) if !assembly.hubs.is_empty() => {
                (drive.full_speed(), LinkPart::Usb2(usb2::Rate::High))
            }
            _ => (drive, rate),
        };
        let node = self.behind_hubs(drive.into())?;
        let host = profile.host(controller.part);
        let sleep = assembly.power_states.then_some(Sleep::LINUX);
        let setup = Setup { sleep, ..Setup::new(host).at(bus).answering(bridge.response).with(1, node) };
        let take = |_, drive: &Drive| occupant.take().unwrap_or_else(|| DriveParts::of(drive, rate.speed()));
        let world = setup
            .power_on_with(take, observer.map(|observer| (0, observer)).into_iter().collect())
            .map_err(AssemblyError::PowerOn)?;
        Stack::new(world, &profile).map_err(AssemblyError::Stack)
    }

    /// Returns the node at the root port: the first hub, if there are any.
    fn behind_hubs(&self, mut node: Node) -> Result<Node, AssemblyError> {
        for name in self.assembly.hubs.iter().rev() {
            let HubPart { ports, delay, translators, .. } = *known(name, self.catalogue.hub(name))?;
            node = Hub { delay, ..Hub::new(ports) }.translating(translators).with(1, node).into();
        }
        Ok(node)
    }

    /// The driver that has the drive, on this host.
    fn profile(&self) -> Result<DriverProfile, AssemblyError> {
        let name = &self.activation.driver;
        let driver = known(name, self.catalogue.driver(name))?;
        let host = known(&self.assembly.host, self.catalogue.host(&self.assembly.host))?;
        let (transport, streams) = match self.activation.transport {
            Carried::Bot | Carried::Turbo => (Protocol::Bot, Streams::None),
            Carried::Uas(Matched::Emulated) => {
                (Protocol::Uas, Streams::Software(here(host, driver.emulation)))
            }
            Carried::Uas(_) | Carried::Sata => (Protocol::Uas, Streams::Hardware),
        };
        let packing = match self.activation.transport {
            Carried::Turbo => driver.packing.map(packing),
            Carried::Bot if driver.behind > 0 => Some(Packing::NONE),
            _ => None,
        };
        let behind = if self.activation.transport == Carried::Bot { driver.behind } else { 0 };
        Ok(DriverProfile {
            transport,
            transfer_bytes_max: self.activation.request_bytes_max,
            pieces_in_turn: driver.pieces == Pieces::InTurn,
            depth: self.activation.depth + behind,
            writes_in_turn: driver.writes_in_turn,
            streams,
            packing,
            moderation: driver.moderation,
            costs: host.costs(&driver.costs),
        })
    }
}

fn here(host: &HostPart, cost: Duration) -> Duration {
    host.costs(&HostCosts { command: cost, ..HostCosts::FREE }).command
}

fn packing(of: crate::parts::Packing) -> Packing {
    let look_ahead = match of.waits {
        Waits::Never => LookAhead::Never,
        Waits::AfterNeighbour => LookAhead::AfterNeighbour(of.look_ahead),
        Waits::Always => LookAhead::Always(of.look_ahead),
    };
    Packing { bytes_max: of.bytes_max, look_ahead, merges: of.merges }
}

/// Returns the chip of a bridge of the catalogue: its limits and the times that it takes.
pub(crate) fn chip(of: &BridgePart) -> Chip {
    let segment_bytes = of.write_piece_bytes.min(of.store.piece_sectors * SECTOR_BYTES);
    let FirmwareCosts { bot_command, bot_status, uas_command, uas_status, byte_ps } = of.firmware;
    Chip {
        // The device model needs a number; a bridge without UAS never reports it.
        streams: of.streams.max(2),
        limits: Limits { commands: of.commands, buffer_bytes: STAGING_BYTES, segment_bytes },
        bot: Times { command: bot_command, status: bot_status },
        uas: Times { command: uas_command, status: uas_status },
        sector: Duration::from_ps(byte_ps * u64::from(BLOCK_SIZE.bytes())),
        store: of.store,
    }
}

fn known<T>(name: &str, part: Option<T>) -> Result<T, AssemblyError> {
    part.ok_or_else(|| AssemblyError::Unknown(name.into()))
}

impl Disk for Assembled {
    fn now(&self) -> Instant {
        self.books().0
    }

    fn submit(&mut self, number: u16, direction: Direction, extent: Extent) -> Result<(), MeasureError> {
        let blocks = u32::try_from(extent.blocks.0).unwrap_or(u32::MAX);
        let request = Request { id: number.into(), direction, lba: extent.lba.0, blocks };
        let taken = match &mut self.stack {
            OnStack::Usb(stack) => stack.submit(0, &request),
            OnStack::Native(stack) => stack.submit(0, &request),
        };
        taken.map_err(MeasureError::Refused)
    }

    fn next(&mut self) -> Result<Option<u16>, MeasureError> {
        let ended = match &mut self.stack {
            OnStack::Usb(stack) => stack.next(),
            OnStack::Native(stack) => stack.next(),
        };
        let Some(ended) = ended.map_err(MeasureError::Stopped)? else { return Ok(None) };
        ended.result.map_err(MeasureError::Failed)?;
        if self.misplaced_blocks() > 0 {
            return Err(MeasureError::Contents);
        }
        Ok(Some(u16::try_from(ended.id).unwrap_or(u16::MAX)))
    }

    fn deferred(&mut self) -> Deferred {
        let store = match &mut self.stack {
            OnStack::Usb(stack) => stack.machine_mut().enclosure(0).map(|enclosure| enclosure.store()),
            OnStack::Native(stack) => Some(stack.machine().store()),
        };
        store.map_or(Deferred::default(), |store| store.cable().mechanism().deferred())
    }
}

impl fmt::Display for AssemblyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Chain(error) => error.fmt(f),
            Self::Unknown(name) => write!(f, "no such part: `{name}`"),
            Self::PowerOn(error) => error.fmt(f),
            Self::Stack(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for AssemblyError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{DiskSize, Stretch, measure};
    use crate::setups;
    use workload::{AccessSpec, Job};

    fn rate(setup: &str, variant: &str, share: AccessSpec, depth: u16) -> f64 {
        let catalogue = Catalogue::built_in().unwrap();
        let setups = setups::Setup::built_in(&catalogue).unwrap();
        let setup = setups.iter().find(|known| known.name == setup).unwrap();
        let assembly = &setup.variant(variant).unwrap().assembly;
        let mut disk = Assembled::power_on(assembly, &catalogue, Contents::FRESH).unwrap();
        let size = DiskSize { block_size: BLOCK_SIZE, capacity: disk.capacity };
        measure(&mut disk, &Job::of(share, depth), size, &Stretch::USUAL, 1).unwrap().megabytes_per_second()
    }

    #[test]
    fn transports_scale_differently() {
        let read = AccessSpec::all(4096, 100, 100);
        let [bot_1, bot_8] = [1, 8].map(|depth| rate("myce", "bot", read, depth));
        let [uas_1, uas_8] = [1, 8].map(|depth| rate("myce", "uasp", read, depth));
        let sata = rate("myce", "sata", read, 1);
        assert!((bot_8 / bot_1 - 1.0).abs() < 0.05, "one command at a time: {bot_1} {bot_8}");
        assert!(uas_8 > 2.5 * uas_1, "commands overlap: {uas_1} {uas_8}");
        assert!(sata > bot_1 && sata > uas_1, "{sata} {bot_1} {uas_1}");
    }

    #[test]
    fn usb_2_is_slower_than_its_bus_and_takes_turns_with_uas() {
        let read = AccessSpec::all(128 << 10, 100, 0);
        let bot = rate("toms", "usb2-bot", read, 1);
        // What hosts leave of the bus in practice.
        assert!((32.0..=44.0).contains(&bot), "{bot}");
        let [uas_1, uas_4] = [1, 4].map(|depth| rate("toms", "usb2-uasp", read, depth));
        assert!(uas_1 < uas_4 && uas_4 <= 53.248, "{uas_1} {uas_4}");
    }
}
