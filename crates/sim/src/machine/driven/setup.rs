//! What a world is made of, as a value: a host, and what is plugged in where.
//!
//! ```
//! use uaskit_sim::machine::Commanded;
//! use uaskit_sim::machine::driven::{Drive, Host, Hub, Setup};
//! use units::Duration;
//!
//! // A hub with a UAS drive and a slow BOT drive, and a drive at a port of its own.
//! let setup = Setup::new(Host::chipset())
//!     .with(1, Hub::new(4).with(1, Drive::uas()).with(2, Drive::bot().latency(Duration::from_ms(5))))
//!     .with(2, Drive::uas());
//! let world = setup.power_on()?;
//! assert_eq!(world.drives(), 3);
//! # Ok::<(), sim::machine::driven::PowerOnError>(())
//! ```
//!
//! Left out: SuperSpeed links of different rates, drives of USB 2.0 behind a SuperSpeed hub, drives with more than one unit.
//!
//! Always true: what [`Setup::check`] lets pass can be built.

use super::core::HostCosts;
use crate::link::AnyRate;
use crate::link::hub::DELAY_MAX;
use crate::link::superspeed::{Rate, Sleep, TurnRound};
use crate::link::usb2::{self, Translators};
use crate::machine::FixedLatencyDrive;
use crate::xhc::Part;
use bus::Speed;
use device::{Device, Transports};
use initiator::turbo::{LookAhead, TRANSFER_BYTES};
use std::fmt;
use units::{BlockCount, BlockSize, Duration};
use wire::xhci::RouteString;
use xhci_driver::Config;
use xhci_driver::limit::DEVICES_MAX;

/// A world that is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// The host.
    pub host: Host,
    /// What all links run at, but for those of drives that are slower than their bus.
    pub rate: AnyRate,
    /// What a device takes from a packet to its answer, at SuperSpeed; what the host takes is the controller's.
    pub turn_round: TurnRound,
    /// How links at root ports sleep, if they may; those among hubs never do. What the host's end takes to wake one up is the
    /// controller's to say, and the time-outs are what the driver makes of that and of what the device says.
    pub sleep: Option<Sleep>,
    /// What is at its root ports of that kind, counted from 1.
    pub plugs: Vec<Plug>,
}

/// The host's parts of a world that is powered on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    /// The controller.
    pub part: Part,
    /// How its driver goes about it.
    pub config: Config,
    /// What the driver takes.
    pub costs: HostCosts,
    /// What the driver makes of neighbours over BOT.
    pub packing: Option<Packing>,
    /// Whether what goes out is with the controller for one command at a time, over UAS.
    pub writes_in_turn: bool,
}

/// A driver of BOT that packs requests for neighbouring blocks into one command, as `initiator::Turbo` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packing {
    /// Bytes of a pack at most.
    pub bytes_max: u32,
    /// Which requests wait for a neighbour while nothing is under way, and how long.
    pub look_ahead: LookAhead,
    /// Whether requests that wait above the transport are merged as well, whatever their order: see [`crate::stack`].
    pub merges: bool,
}

/// Something at a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plug {
    /// The port, from 1.
    pub port: u8,
    /// What is plugged in.
    pub node: Node,
}

/// What can be plugged in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// A hub, with all that is at its ports.
    Hub(Hub),
    /// A drive.
    Drive(Drive),
}

/// A hub of SuperSpeed, or of the rate of its bus of USB 2.0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hub {
    /// Its ports, 1 to 15.
    pub ports: u8,
    /// What it takes to pass a packet on at SuperSpeed, beside its header (wHubDelay, USB 3.2 clause 10.15.2.1).
    pub delay: Duration,
    /// What it has for drives of full speed if it is one of high speed.
    pub translators: Translators,
    /// What is at its ports.
    pub plugs: Vec<Plug>,
}

/// A drive: each request takes the same time. See [`FixedLatencyDrive`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drive {
    /// The transport that the host uses.
    pub protocol: Protocol,
    /// Commands that the transport has under way at most; as many as there are streams for unless told.
    pub depth: Option<u16>,
    /// Its streams: a power of two, 2 to 256.
    pub streams: u16,
    /// Its blocks.
    pub blocks: u32,
    /// Bytes of a block.
    pub block_size: BlockSize,
    /// What a request takes.
    pub latency: Duration,
    /// Requests that it serves at once.
    pub at_once: u16,
    /// How it keeps its blocks.
    pub keeping: BlockStorage,
    /// Its rate if that is not what all links run at: full speed on a bus of high speed, at a root port of its own or behind the translator of a
    /// hub.
    pub rate: Option<usb2::Rate>,
}

/// How a drive keeps its blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BlockStorage {
    /// In memory.
    #[default]
    Memory,
    /// In memory, behind a volatile cache.
    Cached,
    /// Not at all: each holds its own number, see [`FixedLatencyDrive::numbered`].
    Numbers,
}

/// A transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// One command at a time.
    Bot,
    /// With streams, or in turns on a bus that has none.
    Uas,
}

/// A place in a setup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortPath {
    /// The root port, from 1 among those that have the rate of the world.
    pub root: u8,
    /// The ports of the hubs on the way.
    pub route: RouteString,
}

/// Why a setup cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetupError {
    /// There is no drive.
    NoDrive,
    /// The host has so many ports of that kind.
    NoSuchRootPort {
        /// The port that was asked for.
        port: u8,
        /// How many there are.
        ports: u8,
    },
    /// A hub has so many ports.
    NoSuchHubPort {
        /// The hub.
        hub: PortPath,
        /// The port that was asked for.
        port: u8,
        /// How many there are.
        ports: u8,
    },
    /// Something is there already.
    Taken(PortPath),
    /// The drive is not of the rate of its link, and there is nothing between them.
    RateOfDrive(PortPath),
    /// The hub would have five hubs above it, and routes have room for five ports.
    TooDeep {
        /// The port at which it would be.
        at: PortPath,
    },
    /// Each hub and each drive needs a slot of the controller.
    TooManySlots {
        /// Hubs and drives.
        devices: usize,
        /// Slots of the controller that the driver uses.
        slots: usize,
    },
}

/// Ports of a hub that a route has names for.
pub(super) const HUB_PORTS_MAX: u8 = 15;

impl Host {
    /// A controller of a chipset, and our driver as it is.
    pub fn chipset() -> Self {
        Self::with(Part::CHIPSET)
    }

    /// A controller, and our driver as it is.
    pub fn with(part: Part) -> Self {
        Self { part, config: Config::default(), costs: HostCosts::FREE, packing: None, writes_in_turn: false }
    }

    /// The same with a driver that takes its time.
    #[must_use]
    pub const fn costing(self, costs: HostCosts) -> Self {
        Self { costs, ..self }
    }
}

impl Packing {
    /// Nothing is packed: requests only wait, ready, behind the one under way.
    pub const NONE: Self = Self { bytes_max: 0, look_ahead: LookAhead::Never, merges: false };

    /// 1 MiB, and every request waits for 100 us.
    pub const TURBO: Self = Self {
        bytes_max: TRANSFER_BYTES,
        look_ahead: LookAhead::Always(Duration::from_us(100)),
        merges: false,
    };
}

impl Setup {
    /// A host with nothing at its ports, and links of 5 Gb/s.
    pub const fn new(host: Host) -> Self {
        let rate = AnyRate::SuperSpeed(Rate::Gen1);
        Self { host, rate, turn_round: TurnRound::DEVICE_ONLY, sleep: None, plugs: Vec::new() }
    }

    /// The same with links of another rate.
    #[must_use]
    pub fn at(mut self, rate: impl Into<AnyRate>) -> Self {
        self.rate = rate.into();
        self
    }

    /// The same with devices that answer within this, at SuperSpeed.
    ///
    /// # Panics
    /// If it is more than the standard allows: see [`TurnRound::new`].
    #[must_use]
    pub const fn answering(mut self, response: Duration) -> Self {
        self.turn_round = TurnRound::new(Duration::ZERO, response);
        self
    }

    /// The same with links that may sleep.
    #[must_use]
    pub const fn sleeping(mut self, sleep: Sleep) -> Self {
        self.sleep = Some(sleep);
        self
    }

    /// The same with something at a root port.
    #[must_use]
    pub fn with(mut self, port: u8, node: impl Into<Node>) -> Self {
        self.plugs.push(Plug { port, node: node.into() });
        self
    }

    /// The drives, in the order in which they are counted, and where they are.
    pub fn drives(&self) -> Vec<(PortPath, Drive)> {
        let mut all = Vec::new();
        let nodes = self.nodes();
        all.extend(nodes.into_iter().filter_map(|(spot, node)| match node {
            Node::Drive(drive) => Some((spot, *drive)),
            Node::Hub(_) => None,
        }));
        all
    }

    /// Everything, hubs before what is behind them.
    pub(super) fn nodes(&self) -> Vec<(PortPath, &Node)> {
        let mut all = Vec::new();
        for Plug { port, node } in &self.plugs {
            collect(PortPath { root: *port, route: RouteString::ROOT }, node, &mut all);
        }
        all
    }

    const fn is_usb3(&self) -> bool {
        matches!(self.rate, AnyRate::SuperSpeed(_))
    }

    /// Root ports of the controller that come before those of the world's rate: ports of USB 2.0 are the first ones.
    pub(super) const fn ports_before(&self) -> u8 {
        if self.is_usb3() { self.host.part.ports_usb2 } else { 0 }
    }

    /// Whether it can be built.
    ///
    /// # Errors
    /// See [`SetupError`].
    pub fn check(&self) -> Result<(), SetupError> {
        let part = &self.host.part;
        let ports = if self.is_usb3() { part.ports_usb3 } else { part.ports_usb2 };
        let mut taken = Vec::new();
        for Plug { port, node } in &self.plugs {
            let spot = PortPath { root: *port, route: RouteString::ROOT };
            if *port == 0 || *port > ports {
                return Err(SetupError::NoSuchRootPort { port: *port, ports });
            }
            check_node(spot, node, &mut taken)?;
        }
        let slots = usize::from(self.host.part.slots.min(DEVICES_MAX));
        if taken.len() > slots {
            return Err(SetupError::TooManySlots { devices: taken.len(), slots });
        }
        let drives = self.drives();
        if let Some((spot, _)) = drives.iter().find(|(_, drive)| !self.suits(drive)) {
            return Err(SetupError::RateOfDrive(*spot));
        }
        if drives.is_empty() { Err(SetupError::NoDrive) } else { Ok(()) }
    }

    /// What a drive's own link runs at.
    pub fn rate_of(&self, drive: &Drive) -> AnyRate {
        drive.rate.map_or(self.rate, AnyRate::Usb2)
    }

    /// Whether the rate of a drive has a place among those of all links.
    fn suits(&self, drive: &Drive) -> bool {
        let slow = AnyRate::Usb2(usb2::Rate::Full);
        let own = self.rate_of(drive);
        own == self.rate || own == slow && self.rate == AnyRate::Usb2(usb2::Rate::High)
    }
}

fn collect<'a>(spot: PortPath, node: &'a Node, all: &mut Vec<(PortPath, &'a Node)>) {
    all.push((spot, node));
    let Node::Hub(hub) = node else { return };
    for Plug { port, node } in &hub.plugs {
        if let Some(route) = spot.route.via(*port) {
            collect(PortPath { route, ..spot }, node, all);
        }
    }
}

fn check_node(spot: PortPath, node: &Node, taken: &mut Vec<PortPath>) -> Result<(), SetupError> {
    if taken.contains(&spot) {
        return Err(SetupError::Taken(spot));
    }
    taken.push(spot);
    let Node::Hub(hub) = node else { return Ok(()) };
    if spot.route.via(1).is_none() {
        return Err(SetupError::TooDeep { at: spot });
    }
    for Plug { port, node } in &hub.plugs {
        let is_there = *port <= hub.ports.min(HUB_PORTS_MAX);
        let no_such = SetupError::NoSuchHubPort { hub: spot, port: *port, ports: hub.ports };
        let route = spot.route.via(*port).filter(|_| is_there).ok_or(no_such)?;
        check_node(PortPath { route, ..spot }, node, taken)?;
    }
    Ok(())
}

impl Hub {
    /// A hub with nothing at its ports, of which there are so many, and with the longest delay that is allowed.
    pub const fn new(ports: u8) -> Self {
        Self { ports, delay: DELAY_MAX, translators: Translators::One, plugs: Vec::new() }
    }

    /// The same with another delay.
    #[must_use]
    pub const fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// The same with other translators.
    #[must_use]
    pub const fn translating(mut self, translators: Translators) -> Self {
        self.translators = translators;
        self
    }

    /// The same with something at a port.
    #[must_use]
    pub fn with(mut self, port: u8, node: impl Into<Node>) -> Self {
        self.plugs.push(Plug { port, node: node.into() });
        self
    }
}

impl Drive {
    /// A drive of 512 KiB in blocks of 512 bytes that takes 60 us for a request and serves 32 at once, on UAS.
    pub const fn uas() -> Self {
        Self {
            protocol: Protocol::Uas,
            depth: None,
            streams: 32,
            blocks: 1 << 10,
            block_size: BlockSize::B512,
            latency: Duration::from_us(60),
            at_once: 32,
            keeping: BlockStorage::Memory,
            rate: None,
        }
    }

    /// The same on BOT.
    pub const fn bot() -> Self {
        Self { protocol: Protocol::Bot, ..Self::uas() }
    }

    /// The same with another latency.
    #[must_use]
    pub const fn latency(self, latency: Duration) -> Self {
        Self { latency, ..self }
    }

    /// The same of full speed on a bus of high speed.
    #[must_use]
    pub const fn full_speed(self) -> Self {
        Self { rate: Some(usb2::Rate::Full), ..self }
    }

    /// The same with other blocks.
    #[must_use]
    pub const fn blocks(self, blocks: u32, block_size: BlockSize) -> Self {
        Self { blocks, block_size, ..self }
    }

    /// The same with blocks that hold their own number.
    #[must_use]
    pub const fn numbered(self) -> Self {
        Self { keeping: BlockStorage::Numbers, ..self }
    }

    /// Its medium, on which nothing was written.
    pub fn plain(&self) -> FixedLatencyDrive {
        let (blocks, block_size) = (self.blocks, self.block_size);
        let plain = match self.keeping {
            BlockStorage::Numbers => FixedLatencyDrive::numbered(BlockCount(blocks.into()), block_size),
            BlockStorage::Memory | BlockStorage::Cached => {
                FixedLatencyDrive::new(blocks, block_size, Duration::ZERO, 1)
            }
        };
        let plain = plain.serving(self.latency, self.at_once).with_streams(self.streams);
        if self.keeping == BlockStorage::Cached { plain.with_volatile_cache() } else { plain }
    }

    /// The device: one for BOT offers nothing else, one for UAS offers both.
    pub fn device(&self, plain: &FixedLatencyDrive, speed: Speed) -> Device {
        let transports = match self.protocol {
            Protocol::Bot => Transports::BotOnly,
            Protocol::Uas => Transports::Dual,
        };
        plain.device_with(transports, speed)
    }
}

impl From<Hub> for Node {
    fn from(hub: Hub) -> Self {
        Self::Hub(hub)
    }
}

impl From<Drive> for Node {
    fn from(drive: Drive) -> Self {
        Self::Drive(drive)
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bot => "BOT",
            Self::Uas => "UAS",
        })
    }
}

impl fmt::Display for PortPath {
    /// `root port 1, then 3, 2`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "root port {}", self.root)?;
        for (tier, port) in (0..).map_while(|tiers| Some((tiers, self.route.port_after(tiers)?))) {
            write!(f, "{} {port}", if tier == 0 { ", then" } else { "," })?;
        }
        Ok(())
    }
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoDrive => f.write_str("there is no drive"),
            Self::NoSuchRootPort { port, ports } => {
                write!(f, "there is no root port {port}: the controller has {ports} of this kind")
            }
            Self::NoSuchHubPort { hub, port, ports } => {
                write!(f, "the hub at {hub} has no port {port}: it has {ports}, and 15 is the last one")
            }
            Self::Taken(spot) => write!(f, "two things are at {spot}"),
            Self::RateOfDrive(spot) => {
                write!(
                    f,
                    "a drive at {spot} is neither as fast as its bus nor of full speed on one of high speed"
                )
            }
            Self::TooDeep { at } => write!(f, "a hub at {at} would be the sixth on the way"),
            Self::TooManySlots { devices, slots } => {
                write!(f, "{devices} hubs and drives need a slot each, and the controller has {slots}")
            }
        }
    }
}

impl std::error::Error for SetupError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn setup(node: impl Into<Node>) -> Setup {
        Setup::new(Host::chipset()).with(1, node)
    }

    fn at(bits: u32) -> PortPath {
        PortPath { root: 1, route: RouteString::from_bits(bits) }
    }

    #[test]
    fn drives_are_counted_as_they_were_told() {
        let hub = Hub::new(4).with(3, Drive::bot()).with(1, Hub::new(2).with(2, Drive::uas()));
        let drives = setup(hub).with(2, Drive::uas()).drives();
        let spots: Vec<_> = drives.iter().map(|(spot, drive)| format!("{} {spot}", drive.protocol)).collect();
        assert_eq!(spots, ["BOT root port 1, then 3", "UAS root port 1, then 1, 2", "UAS root port 2"]);
    }

    #[test]
    fn what_cannot_be_plugged_in_is_told_with_its_place() {
        let drive = Drive::uas;
        let no_root = SetupError::NoSuchRootPort { port: 3, ports: 2 };
        assert_eq!(setup(drive()).with(3, drive()).check(), Err(no_root));
        let no_port = |port, ports| Err(SetupError::NoSuchHubPort { hub: at(0), port, ports });
        assert_eq!(setup(Hub::new(4).with(5, drive())).check(), no_port(5, 4));
        assert_eq!(setup(Hub::new(4).with(0, drive())).check(), no_port(0, 4));
        assert_eq!(setup(Hub::new(20).with(16, drive())).check(), no_port(16, 20));
        assert_eq!(setup(drive()).with(1, drive()).check(), Err(SetupError::Taken(at(0))));
        let twice = Hub::new(4).with(2, drive()).with(2, Hub::new(1));
        assert_eq!(setup(twice).check(), Err(SetupError::Taken(at(2))));
        assert_eq!(setup(Hub::new(4)).check(), Err(SetupError::NoDrive));
    }

    #[test]
    fn a_sixth_hub_is_refused_and_a_drive_behind_the_fifth_is_not() {
        let chain =
            |hubs: u8| (0..hubs).fold(Node::from(Drive::uas()), |node, _| Hub::new(1).with(1, node).into());
        assert_eq!(setup(chain(5)).check(), Ok(()));
        assert_eq!(setup(chain(6)).check(), Err(SetupError::TooDeep { at: at(0x11111) }));
    }

    #[test]
    fn each_hub_and_each_drive_needs_a_slot() {
        let full = |drives: u8| {
            let hub = |ports: u8| (1..=ports).fold(Hub::new(15), |hub, port| hub.with(port, Drive::bot()));
            let last = (4, drives - 45);
            (1..=3)
                .map(|port| (port, 15))
                .chain([last])
                .fold(Hub::new(15), |top, (port, drives)| top.with(port, hub(drives)))
        };
        assert_eq!(setup(full(59)).check(), Ok(()));
        assert_eq!(setup(full(60)).check(), Err(SetupError::TooManySlots { devices: 65, slots: 64 }));
    }
}
