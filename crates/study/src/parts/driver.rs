//! Drivers: host cost per command, and queue depth.
//!
//! A driver here includes everything that a system has between an application and the controller's
//! registers: class driver, port driver, bus stack. Structure comes first (transport, streams,
//! packing, lengths), costs second. Left out: differences between processors, which belong to a
//! host ([`HostPart`](super::HostPart)).

use super::fields::{FieldError, File, within};
use super::quantity::{Count, Quantity, Rate, Size, Time};
use bus::Speed;
use serde::Deserialize;
use sim::machine::xhci::HostCosts;
use units::Duration;

/// A driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverPart {
    /// Operating system.
    pub os: Os,
    /// Transport.
    pub transport: DriverTransport,
    /// Source of streams.
    pub streams: DriverStreams,
    /// Maximum bytes of a transfer at SuperSpeed.
    pub transfer_bytes_max: u32,
    /// The same at high and full speed.
    pub transfer_bytes_max_usb2: u32,
    /// Bytes at which the class driver above splits requests.
    pub class_bytes_max: Option<u32>,
    /// How the parts of a split request are issued.
    pub pieces: Pieces,
    /// Maximum queue depth.
    pub depth: u16,
    /// Prepared commands waiting behind the one in flight over BOT.
    pub behind: u16,
    /// Over UAS, whether data-out is given to the controller for one command at a time.
    pub writes_in_turn: bool,
    /// Packing of adjacent requests; none if not given.
    pub packing: Option<Packing>,
    /// Minimum time between two interrupts.
    pub moderation: Duration,
    /// Costs on the reference host.
    pub costs: HostCosts,
    /// Additional cost per command with emulated streams.
    pub emulation: Duration,
    /// Names of supported controllers; all if empty.
    pub controllers: Vec<String>,
    /// The fallback driver.
    pub fallback: Option<String>,
}

/// An operating system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Os {
    /// Windows 7.
    Windows7,
    /// Windows 8.
    Windows8,
    /// Linux.
    Linux,
    /// Any: no USB in between.
    Any,
}

/// The transport of a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DriverTransport {
    /// Bulk-Only Transport.
    Bot,
    /// Bulk-Only Transport with adjacent requests packed into long transfers.
    Turbo,
    /// USB Attached SCSI.
    Uas,
    /// ATA over a native cable.
    Sata,
}

/// How the parts of a split request are issued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pieces {
    /// All at once, as far as the queue permits.
    #[default]
    AtOnce,
    /// One after another.
    InTurn,
}

/// The source of a driver's streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DriverStreams {
    /// It uses none.
    None,
    /// The controller's; required.
    Hardware,
    /// The controller's, or emulated if it has none.
    Emulated,
}

/// Packing of adjacent requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packing {
    /// Maximum bytes of a pack.
    pub bytes_max: u32,
    /// How long a single request waits for an adjacent one.
    pub look_ahead: Duration,
    /// Which requests wait.
    pub waits: Waits,
    /// Whether waiting requests are merged as well, in any order.
    pub merges: bool,
}

/// Which requests wait for an adjacent one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Waits {
    /// None: only queued requests are packed.
    Never,
    /// Those that continue the previous request.
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
    /// Defaults to the same.
    longest_usb2: Option<Quantity<Size>>,
    class: Option<Quantity<Size>>,
    /// Defaults to all at once.
    #[serde(default)]
    pieces: Pieces,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct QueueTable {
    depth: Quantity<Count>,
    /// Defaults to none.
    behind: Option<Quantity<Count>>,
    /// Defaults to all at once.
    #[serde(default)]
    writes: Pieces,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PackingTable {
    longest: Quantity<Size>,
    /// The configurable range of `longest`; documented, not used.
    range_least: Option<Quantity<Size>>,
    range_most: Option<Quantity<Size>>,
    look_ahead: Quantity<Time>,
    waits: Waits,
    /// Defaults to no.
    #[serde(default)]
    merges: bool,
    /// Cost of each pack.
    pack: Quantity<Time>,
    /// Copy between a pack and the buffers of its requests.
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
    /// Maximum bytes of a data command: what both the class driver and the driver accept, or a
    /// pack.
    pub fn command_bytes_max(&self, speed: Speed) -> u32 {
        let packs = self.packing.map_or(0, |packing| packing.bytes_max);
        self.request_bytes_max(speed).max(packs)
    }

    /// Maximum bytes of a request given to the driver; longer ones are split by the class driver or
    /// by itself.
    pub fn request_bytes_max(&self, speed: Speed) -> u32 {
        let longest =
            if speed == Speed::Super { self.transfer_bytes_max } else { self.transfer_bytes_max_usb2 };
        self.class_bytes_max.map_or(longest, |class| class.min(longest))
    }
}

impl File for DriverFile {
    type Part = DriverPart;

    fn title(&self) -> &str {
        &self.title
    }

    fn make(&self) -> Result<Self::Part, FieldError> {
        if self.transport == DriverTransport::Turbo && self.packing.is_none() {
            return Err(FieldError::new("transport", "`transport = \"turbo\"` needs a table `[packing]`"));
        }
        if self.transport != DriverTransport::Uas && self.streams != DriverStreams::None {
            return Err(FieldError::new("streams", "only `uas` has streams; expected `none`"));
        }
        if (self.streams == DriverStreams::Emulated) != self.emulation.is_some() {
            let what = "table `[emulation]` is required with `streams = \"emulated\"`, and invalid otherwise";
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
        Ok(DriverPart {
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
        })
    }
}

impl PackingTable {
    fn packing(&self) -> Result<Packing, FieldError> {
        let bytes_max = bytes("packing.longest", &self.longest)?;
        let range = [&self.range_least, &self.range_most].map(|bound| bound.as_ref().map(Quantity::whole));
        let [least, most] = [range[0].unwrap_or(0), range[1].unwrap_or(u64::MAX)];
        if !(least..=most).contains(&u64::from(bytes_max)) {
            let what = format!("`packing.longest` is {bytes_max} bytes, expected {least} to {most}");
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
