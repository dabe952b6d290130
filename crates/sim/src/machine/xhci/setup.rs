//! The description of a machine: a host, and what is plugged in where.
//!
//! ```
//! use uaskit_sim::machine::Simulation;
//! use uaskit_sim::machine::xhci::{Drive, Host, Hub, Setup};
//! use units::Duration;
//!
//! // A hub with a UAS drive and a slow BOT drive, and a drive at a separate port.
//! let setup = Setup::new(Host::chipset())
//!     .with(1, Hub::new(4).with(1, Drive::uas()).with(2, Drive::bot().latency(Duration::from_ms(5))))
//!     .with(2, Drive::uas());
//! let machine = setup.power_on()?;
//! assert_eq!(machine.drives(), 3);
//! # Ok::<(), uaskit_sim::machine::xhci::PowerOnError>(())
//! ```
//!
//! Left out: mixed SuperSpeed rates, USB 2.0 drives behind SuperSpeed hubs, drives with several
//! logical units.
//!
//! Invariant: a setup that passes [`Setup::check`] can be built.

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

/// The description of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// The host.
    pub host: Host,
    /// Rate of all links, except those of drives with a slower rate.
    pub rate: AnyRate,
    /// Response time of devices at SuperSpeed; that of the host is the controller's.
    pub turn_round: TurnRound,
    /// Link power management at root ports; links below hubs stay in U0. The host's exit latency is
    /// the controller's, and the driver derives the timeouts.
    pub sleep: Option<Sleep>,
    /// Devices at root ports of this rate, counted from 1.
    pub plugs: Vec<Plug>,
}

/// The parts of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    /// The controller.
    pub part: Part,
    /// Driver configuration.
    pub config: Config,
    /// CPU costs of the driver.
    pub costs: HostCosts,
    /// Packing of adjacent requests over BOT.
    pub packing: Option<Packing>,
    /// Whether data-out is limited to one command at a time, over UAS.
    pub writes_in_turn: bool,
}

/// Packing of requests for adjacent blocks into one BOT command, as in `initiator::Turbo`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packing {
    /// Bytes of a pack at most.
    pub bytes_max: u32,
    /// Which requests wait for an adjacent one while the transport is idle, and for how long.
    pub look_ahead: LookAhead,
    /// Whether requests in the queue above the transport are merged too, in any order: see
    /// [`crate::stack`].
    pub merges: bool,
}

/// A device at a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plug {
    /// The port, from 1.
    pub port: u8,
    /// The device.
    pub node: Node,
}

/// A hub or a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// A hub with the devices at its ports.
    Hub(Hub),
    /// A drive.
    Drive(Drive),
}

/// A hub, SuperSpeed or of the rate of its USB 2.0 bus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hub {
    /// Number of ports, 1 to 15.
    pub ports: u8,
    /// Forwarding delay at SuperSpeed, beyond the header (wHubDelay, USB 3.2 clause 10.15.2.1).
    pub delay: Duration,
    /// Transaction translators of a high-speed hub.
    pub translators: Translators,
    /// Devices at its ports.
    pub plugs: Vec<Plug>,
}

/// A drive with constant latency. See [`FixedLatencyDrive`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drive {
    /// Transport that the host uses.
    pub protocol: Protocol,
    /// Commands in flight at most; `None` for as many as there are streams.
    pub depth: Option<u16>,
    /// Streams: a power of two, 2 to 256.
    pub streams: u16,
    /// Number of blocks.
    pub blocks: u32,
    /// Block size.
    pub block_size: BlockSize,
    /// Latency of a request.
    pub latency: Duration,
    /// Requests served in parallel.
    pub at_once: u16,
    /// Storage of its blocks.
    pub keeping: BlockStorage,
    /// Rate, if it differs from the links: full speed on a high-speed bus, at a root port or behind
    /// a transaction translator.
    pub rate: Option<usb2::Rate>,
}

/// Storage of a drive's blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BlockStorage {
    /// In memory.
    #[default]
    Memory,
    /// In memory, behind a volatile cache.
    Cached,
    /// None: blocks are self-numbered, see [`FixedLatencyDrive::numbered`].
    Numbers,
}

/// A transport protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Bulk-Only: one command at a time.
    Bot,
    /// USB Attached SCSI, with streams if the bus has them.
    Uas,
}

/// The position of a port in a setup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortPath {
    /// Root port, from 1 among those of the machine's rate.
    pub root: u8,
    /// Ports of the hubs in the path.
    pub route: RouteString,
}

/// Why a setup cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetupError {
    /// The setup has no drive.
    NoDrive,
    /// The root port does not exist.
    NoSuchRootPort {
        /// The requested port.
        port: u8,
        /// Number of ports.
        ports: u8,
    },
    /// The hub port does not exist.
    NoSuchHubPort {
        /// The hub.
        hub: PortPath,
        /// The requested port.
        port: u8,
        /// Number of ports.
        ports: u8,
    },
    /// The port is already used.
    Taken(PortPath),
    /// The drive's rate does not fit its link, and there is no translator.
    RateOfDrive(PortPath),
    /// The hub would be on tier 6; routes have five ports.
    TooDeep {
        /// The port of the hub.
        at: PortPath,
    },
    /// Each hub and drive needs a device slot.
    TooManySlots {
        /// Number of hubs and drives.
        devices: usize,
        /// Slots of the controller that the driver uses.
        slots: usize,
    },
}

/// Highest hub port that a route string can name.
pub(super) const HUB_PORTS_MAX: u8 = 15;

impl Host {
    /// Creates a host with a chipset controller and the default driver.
    pub fn chipset() -> Self {
        Self::with(Part::CHIPSET)
    }

    /// Creates a host with a controller and the default driver.
    pub fn with(part: Part) -> Self {
        Self { part, config: Config::default(), costs: HostCosts::FREE, packing: None, writes_in_turn: false }
    }

    /// Sets the CPU costs.
    #[must_use]
    pub const fn costing(self, costs: HostCosts) -> Self {
        Self { costs, ..self }
    }
}

impl Packing {
    /// No packing: requests only wait behind the one in flight.
    pub const NONE: Self = Self { bytes_max: 0, look_ahead: LookAhead::Never, merges: false };

    /// 1 MiB, and every request waits up to 100 us.
    pub const TURBO: Self = Self {
        bytes_max: TRANSFER_BYTES,
        look_ahead: LookAhead::Always(Duration::from_us(100)),
        merges: false,
    };
}

impl Setup {
    /// Creates a setup without devices, with links at 5 Gb/s.
    pub const fn new(host: Host) -> Self {
        let rate = AnyRate::SuperSpeed(Rate::Gen1);
        Self { host, rate, turn_round: TurnRound::DEVICE_ONLY, sleep: None, plugs: Vec::new() }
    }

    /// Sets the rate of the links.
    #[must_use]
    pub fn at(mut self, rate: impl Into<AnyRate>) -> Self {
        self.rate = rate.into();
        self
    }

    /// Sets the response time of devices at SuperSpeed.
    ///
    /// # Panics
    /// If it exceeds the standard's limit: see [`TurnRound::new`].
    #[must_use]
    pub const fn answering(mut self, response: Duration) -> Self {
        self.turn_round = TurnRound::new(Duration::ZERO, response);
        self
    }

    /// Enables link power management.
    #[must_use]
    pub const fn sleeping(mut self, sleep: Sleep) -> Self {
        self.sleep = Some(sleep);
        self
    }

    /// Plugs a device into a root port.
    #[must_use]
    pub fn with(mut self, port: u8, node: impl Into<Node>) -> Self {
        self.plugs.push(Plug { port, node: node.into() });
        self
    }

    /// Returns the drives in numeric order, and their positions.
    pub fn drives(&self) -> Vec<(PortPath, Drive)> {
        let mut all = Vec::new();
        let nodes = self.nodes();
        all.extend(nodes.into_iter().filter_map(|(spot, node)| match node {
            Node::Drive(drive) => Some((spot, *drive)),
            Node::Hub(_) => None,
        }));
        all
    }

    /// Returns all devices, hubs before their children.
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

    /// Returns the root ports before those of the machine's rate: USB 2.0 ports come first.
    pub(super) const fn ports_before(&self) -> u8 {
        if self.is_usb3() { self.host.part.model.ports_usb2 } else { 0 }
    }

    /// Checks that the machine can be built.
    ///
    /// # Errors
    /// See [`SetupError`].
    pub fn check(&self) -> Result<(), SetupError> {
        let part = &self.host.part;
        let ports = if self.is_usb3() { part.model.ports_usb3 } else { part.model.ports_usb2 };
        let mut taken = Vec::new();
        for Plug { port, node } in &self.plugs {
            let spot = PortPath { root: *port, route: RouteString::ROOT };
            if *port == 0 || *port > ports {
                return Err(SetupError::NoSuchRootPort { port: *port, ports });
            }
            check_node(spot, node, &mut taken)?;
        }
        let slots = usize::from(self.host.part.model.slots.min(DEVICES_MAX));
        if taken.len() > slots {
            return Err(SetupError::TooManySlots { devices: taken.len(), slots });
        }
        let drives = self.drives();
        if let Some((spot, _)) = drives.iter().find(|(_, drive)| !self.suits(drive)) {
            return Err(SetupError::RateOfDrive(*spot));
        }
        if drives.is_empty() { Err(SetupError::NoDrive) } else { Ok(()) }
    }

    /// Returns the rate of a drive's link.
    pub fn rate_of(&self, drive: &Drive) -> AnyRate {
        drive.rate.map_or(self.rate, AnyRate::Usb2)
    }

    /// Returns whether a drive's rate fits the links.
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
    /// Creates a hub without devices, with the maximum forwarding delay.
    pub const fn new(ports: u8) -> Self {
        Self { ports, delay: DELAY_MAX, translators: Translators::One, plugs: Vec::new() }
    }

    /// Sets the forwarding delay.
    #[must_use]
    pub const fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Sets the transaction translators.
    #[must_use]
    pub const fn translating(mut self, translators: Translators) -> Self {
        self.translators = translators;
        self
    }

    /// Plugs a device into a port.
    #[must_use]
    pub fn with(mut self, port: u8, node: impl Into<Node>) -> Self {
        self.plugs.push(Plug { port, node: node.into() });
        self
    }
}

impl Drive {
    /// A UAS drive of 512 KiB in 512-byte blocks, with 60 us latency and 32 requests in parallel.
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

    /// Like [`Self::uas`], over BOT.
    pub const fn bot() -> Self {
        Self { protocol: Protocol::Bot, ..Self::uas() }
    }

    /// Sets the latency.
    #[must_use]
    pub const fn latency(self, latency: Duration) -> Self {
        Self { latency, ..self }
    }

    /// Makes it a full-speed drive on a high-speed bus.
    #[must_use]
    pub const fn full_speed(self) -> Self {
        Self { rate: Some(usb2::Rate::Full), ..self }
    }

    /// Sets the blocks.
    #[must_use]
    pub const fn blocks(self, blocks: u32, block_size: BlockSize) -> Self {
        Self { blocks, block_size, ..self }
    }

    /// Makes the blocks self-numbered.
    #[must_use]
    pub const fn numbered(self) -> Self {
        Self { keeping: BlockStorage::Numbers, ..self }
    }

    /// Creates its medium.
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

    /// Creates its device: BOT only, or both transports for UAS.
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
            Self::NoDrive => f.write_str("the setup has no drive"),
            Self::NoSuchRootPort { port, ports } => {
                write!(f, "no root port {port}: the controller has {ports} of this kind")
            }
            Self::NoSuchHubPort { hub, port, ports } => {
                write!(f, "the hub at {hub} has no port {port}: it has {ports} (maximum 15)")
            }
            Self::Taken(spot) => write!(f, "{spot} is used twice"),
            Self::RateOfDrive(spot) => {
                write!(
                    f,
                    "the drive at {spot} matches neither the rate of its link nor full speed on a high-speed bus"
                )
            }
            Self::TooDeep { at } => {
                write!(f, "the hub at {at} would be on tier 6 (maximum 5 hubs in a path)")
            }
            Self::TooManySlots { devices, slots } => {
                write!(f, "{devices} hubs and drives need a device slot each, but the controller has {slots}")
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
    fn drives_are_numbered_in_the_order_of_the_description() {
        let hub = Hub::new(4).with(3, Drive::bot()).with(1, Hub::new(2).with(2, Drive::uas()));
        let drives = setup(hub).with(2, Drive::uas()).drives();
        let spots: Vec<_> = drives.iter().map(|(spot, drive)| format!("{} {spot}", drive.protocol)).collect();
        assert_eq!(spots, ["BOT root port 1, then 3", "UAS root port 1, then 1, 2", "UAS root port 2"]);
    }

    #[test]
    fn an_invalid_plug_is_reported_with_its_position() {
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
