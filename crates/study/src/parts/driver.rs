//! Drivers: what a host does for each command, and how many it lets be under way.
//!
//! A driver here is all that a system has between a program and the controller's registers: class driver, port driver, the
//! stack of the bus. Structure comes first (transport, streams, packing, lengths), costs second. Left out: what differs between
//! processors, which is a host's ([`HostPart`](super::HostPart)).

use super::PartModel;
use super::quantity::{Count, Quantity, Rate, Size, Time};
use super::schema::{FieldError, File, within};
use bus::Speed;
use serde::Deserialize;
use sim::machine::xhci::HostCosts;
use units::Duration;

/// A driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverPart {
    /// The system that it is of.
    pub os: Os,
    /// What it speaks.
    pub transport: DriverTransport,
    /// Where streams come from.
    pub streams: DriverStreams,
    /// Bytes of a transfer at SuperSpeed at most.
    pub transfer_bytes_max: u32,
    /// And at high and full speed.
    pub transfer_bytes_max_usb2: u32,
    /// Bytes at which the class driver above cuts requests, whatever the driver itself would take.
    pub class_bytes_max: Option<u32>,
    /// How the pieces of a request follow one another that is longer than a transfer.
    pub pieces: Pieces,
    /// Commands under way at most.
    pub depth: u16,
    /// Commands that wait in it, ready, behind the one that is under way over BOT.
    pub behind: u16,
    /// Whether what goes out is with the controller for one command at a time, over UAS.
    pub writes_in_turn: bool,
    /// How neighbours are packed into one command; none are if not told.
    pub packing: Option<Packing>,
    /// The least time between two interrupts.
    pub moderation: Duration,
    /// What it takes, on the host for which costs are told.
    pub costs: HostCosts,
    /// What a command takes in addition where streams are emulated.
    pub emulation: Duration,
    /// Controllers that it is for, by name; all if there is none.
    pub controllers: Vec<String>,
    /// The driver that has the drive where this one cannot.
    pub fallback: Option<String>,
}

/// A system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Os {
    /// Windows 7.
    Windows7,
    /// Windows 8.
    Windows8,
    /// Linux.
    Linux,
    /// Whatever the system: no USB is between.
    Any,
}

/// What a driver speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DriverTransport {
    /// Bulk-Only Transport.
    Bot,
    /// Bulk-Only Transport, with neighbours packed into long transfers.
    Turbo,
    /// USB Attached SCSI.
    Uas,
    /// ATA over a cable, without USB.
    Sata,
}

/// How the pieces of a request follow one another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pieces {
    /// All of them are commands at once, as many as the queue takes.
    #[default]
    AtOnce,
    /// Each waits for the end of the one before.
    InTurn,
}

/// Where the streams of a driver come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DriverStreams {
    /// It uses none.
    None,
    /// The controller's; without them it does not start.
    Hardware,
    /// The controller's, and where it has none they are emulated.
    Emulated,
}

/// How neighbours are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packing {
    /// Bytes that a pack may have.
    pub bytes_max: u32,
    /// How long a request that is alone waits for a neighbour.
    pub look_ahead: Duration,
    /// Which requests wait.
    pub waits: Waits,
    /// Whether requests that wait in the queue are merged as well, whatever their order.
    pub merges: bool,
}

/// Which requests wait for a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Waits {
    /// None: what is in the queue is packed.
    Never,
    /// Those that go on where the one before ended.
    AfterNeighbour,
    /// All.
    Always,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DriverFile {
    title: String,
    os: Os,
    transport: DriverTransport,
    streams: DriverStreams,
    #[serde(default)]
    controllers: Vec<String>,
    fallback: Option<String>,
    transfer: TransferTable,
    queue: QueueTable,
    packing: Option<PackingTable>,
    emulation: Option<EmulationTable>,
    interrupts: InterruptTable,
    costs: CostTable,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TransferTable {
    longest: Quantity<Size>,
    /// The same if not told.
    longest_usb2: Option<Quantity<Size>>,
    class: Option<Quantity<Size>>,
    /// At once, if not told.
    #[serde(default)]
    pieces: Pieces,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct QueueTable {
    depth: Quantity<Count>,
    /// None, if not told.
    behind: Option<Quantity<Count>>,
    /// At once, if not told.
    #[serde(default)]
    writes: Pieces,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PackingTable {
    longest: Quantity<Size>,
    /// What the driver may be told for `longest` at least and at most: said, and not used.
    range_least: Option<Quantity<Size>>,
    range_most: Option<Quantity<Size>>,
    look_ahead: Quantity<Time>,
    waits: Waits,
    /// No, if not told.
    #[serde(default)]
    merges: bool,
    /// What each pack takes.
    pack: Quantity<Time>,
    /// Between a pack and the memory of its requests.
    copy: Quantity<Rate>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EmulationTable {
    command: Quantity<Time>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InterruptTable {
    moderation: Quantity<Time>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CostTable {
    command: Quantity<Time>,
    transfer: Quantity<Time>,
    completion: Quantity<Time>,
    finish: Quantity<Time>,
    interrupt: Quantity<Time>,
    wake: Quantity<Time>,
    idle_after: Quantity<Time>,
}

impl DriverPart {
    /// Bytes of a command that moves data, at most: what the class driver and the driver both take, or a pack.
    pub fn command_bytes_max(&self, speed: Speed) -> u32 {
        let packs = self.packing.map_or(0, |packing| packing.bytes_max);
        self.request_bytes_max(speed).max(packs)
    }

    /// Bytes of a request that the driver gets: longer ones are cut by the class driver above it, or by itself.
    pub fn request_bytes_max(&self, speed: Speed) -> u32 {
        let longest =
            if speed == Speed::Super { self.transfer_bytes_max } else { self.transfer_bytes_max_usb2 };
        self.class_bytes_max.map_or(longest, |class| class.min(longest))
    }
}

impl File for DriverFile {
    fn title(&self) -> &str {
        &self.title
    }

    fn make(&self) -> Result<PartModel, FieldError> {
        if self.transport == DriverTransport::Turbo && self.packing.is_none() {
            return Err(FieldError::new(
                "transport",
                "`transport` is `turbo`, and a table `[packing]` was expected",
            ));
        }
        if self.transport != DriverTransport::Uas && self.streams != DriverStreams::None {
            return Err(FieldError::new("streams", "streams are of `uas` alone, and `none` was expected"));
        }
        if (self.streams == DriverStreams::Emulated) != self.emulation.is_some() {
            let what = "a table `[emulation]` was expected exactly where `streams` is `emulated`";
            return Err(FieldError::new("streams", what));
        }
        let longest = bytes("transfer.longest", &self.transfer.longest)?;
        let usb2 = self.transfer.longest_usb2.as_ref();
        let class = self.transfer.class.as_ref();
        let behind = self.queue.behind.as_ref();
        let pack = self.packing.as_ref().map_or(Duration::ZERO, |packing| packing.pack.duration());
        let copy = self
            .packing
            .as_ref()
            .map_or(Ok(0), |packing| within("packing.copy", &packing.copy, 1, 1_000_000))?;
        Ok(PartModel::Driver(DriverPart {
            os: self.os,
            transport: self.transport,
            streams: self.streams,
            transfer_bytes_max: longest,
            transfer_bytes_max_usb2: usb2.map_or(Ok(longest), |size| bytes("transfer.longest_usb2", size))?,
            class_bytes_max: class.map(|size| bytes("transfer.class", size)).transpose()?,
            pieces: self.transfer.pieces,
            depth: within("queue.depth", &self.queue.depth, 1, 256)?,
            behind: behind.map_or(Ok(0), |count| within("queue.behind", count, 0, 63))?,
            writes_in_turn: self.queue.writes == Pieces::InTurn,
            packing: self.packing.as_ref().map(PackingTable::packing).transpose()?,
            moderation: self.interrupts.moderation.duration(),
            costs: HostCosts { pack, copied_byte_ps: copy, ..self.costs.costs() },
            emulation: self.emulation.as_ref().map_or(Duration::ZERO, |table| table.command.duration()),
            controllers: self.controllers.clone(),
            fallback: self.fallback.clone(),
        }))
    }
}

impl PackingTable {
    fn packing(&self) -> Result<Packing, FieldError> {
        let bytes_max = bytes("packing.longest", &self.longest)?;
        let range = [&self.range_least, &self.range_most].map(|bound| bound.as_ref().map(Quantity::whole));
        let [least, most] = [range[0].unwrap_or(0), range[1].unwrap_or(u64::MAX)];
        if !(least..=most).contains(&u64::from(bytes_max)) {
            let what = format!("`packing.longest` is {bytes_max} bytes, and {least} to {most} was expected");
            return Err(FieldError::new("packing.longest", what));
        }
        Ok(Packing {
            bytes_max,
            look_ahead: self.look_ahead.duration(),
            waits: self.waits,
            merges: self.merges,
        })
    }
}

impl CostTable {
    const fn costs(&self) -> HostCosts {
        HostCosts {
            command: self.command.duration(),
            transfer: self.transfer.duration(),
            completion: self.completion.duration(),
            finish: self.finish.duration(),
            interrupt: self.interrupt.duration(),
            wake: self.wake.duration(),
            idle_after: self.idle_after.duration(),
            pack: Duration::ZERO,
            copied_byte_ps: 0,
        }
    }
}

fn bytes(place: &str, size: &Quantity<Size>) -> Result<u32, FieldError> {
    within(place, size, 512, 64 << 20)
}
