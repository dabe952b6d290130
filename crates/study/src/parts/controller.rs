//! USB host controllers.
//!
//! Fields are the parameters of [`sim::xhc`], and the drivers that can use the streams: some
//! controllers offer streams that work only with a specific driver. Left out: driver costs.

use super::fields::{FieldError, File, within};
use super::quantity::{Count, Quantity, Rate, Size, Time};
use super::wires::{Fastest, LinkPart};
use serde::Deserialize;
use sim::link::usb2::Pacing;
use sim::xhc::Part;
use units::Duration;
use wire::xhci::ContextSize;
use xhci_controller::{Misbehaviour, Model, PciExpress};

/// A host controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerPart {
    /// Model parameters.
    pub part: Part,
    /// PCI vendor and device id.
    pub pci: (u16, u16),
    /// Names of drivers that can use its streams; all if not given.
    pub streams_only: Option<Vec<String>>,
    /// Whether it supports scatter-gather lists.
    pub scatter_gather: bool,
    /// The highest rate of its ports, where known.
    pub fastest: Option<LinkPart>,
}

/// The streams that a driver can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamsOf {
    /// Working ones.
    Work,
    /// None: the controller offers none.
    Missing,
    /// None: those offered do not work with this driver.
    Broken,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ControllerFile {
    title: String,
    /// `1b21:1042`.
    pci: String,
    version: Version,
    contexts_of_64_bytes: bool,
    /// Default if not given.
    scatter_gather: Option<bool>,
    streams: StreamTable,
    ports: PortTable,
    memory: MemoryTable,
    times: TimeTable,
    usb2: Usb2Table,
}

/// The xHCI version.
#[derive(Clone, Copy, Deserialize)]
enum Version {
    #[serde(rename = "0.96")]
    V096,
    #[serde(rename = "1.0")]
    V100,
    #[serde(rename = "1.1")]
    V110,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StreamTable {
    /// Size of the primary stream array; 0 means no streams.
    entries: Quantity<Count>,
    only: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PortTable {
    usb2: Quantity<Count>,
    usb3: Quantity<Count>,
    /// Defaults to unknown.
    fastest: Option<Fastest>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MemoryTable {
    register_write: Quantity<Time>,
    read: Quantity<Time>,
    write: Quantity<Time>,
    /// Payload from the bus to memory.
    inward: Quantity<Rate>,
    /// Payload from memory to the bus.
    outward: Quantity<Rate>,
    buffer: Quantity<Size>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TimeTable {
    packet_gap: Quantity<Time>,
    response: Quantity<Time>,
    command: Quantity<Time>,
    transfers_ahead: Quantity<Count>,
    next_trb_out: Quantity<Time>,
    /// Interrupt moderation interval; without, interrupts are immediate.
    interrupt_grid: Option<Quantity<Time>>,
}

/// On a USB 2.0 bus.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Usb2Table {
    /// Between two transactions.
    gap: Quantity<Time>,
    /// From a NAK until the endpoint is asked again.
    after_nak: Quantity<Time>,
}

impl ControllerPart {
    /// Returns the streams that a driver can use.
    pub fn streams_of(&self, driver: &str) -> StreamsOf {
        let knows = |only: &Vec<String>| only.iter().any(|name| name == driver);
        if self.part.model.primary_streams_exponent == 0 {
            StreamsOf::Missing
        } else if self.streams_only.as_ref().is_none_or(knows) {
            StreamsOf::Work
        } else {
            StreamsOf::Broken
        }
    }
}

impl File for ControllerFile {
    type Part = ControllerPart;

    fn title(&self) -> &str {
        &self.title
    }

    fn make(&self) -> Result<Self::Part, FieldError> {
        let (memory, times) = (&self.memory, &self.times);
        let attachment = PciExpress {
            register_write: memory.register_write.duration(),
            memory_read: memory.read.duration(),
            memory_write: memory.write.duration(),
            inward_byte_ps: within("memory.inward", &memory.inward, 1, 1_000_000)?,
            outward_byte_ps: within("memory.outward", &memory.outward, 1, 1_000_000)?,
        };
        within::<u64, _>("times.response", &times.response, 0, 3_000_000)?;
        let model = Model {
            version: self.version.code(),
            ports_usb2: within("ports.usb2", &self.ports.usb2, 1, 15)?,
            ports_usb3: within("ports.usb3", &self.ports.usb3, 0, 15)?,
            contexts: if self.contexts_of_64_bytes { ContextSize::Bytes64 } else { ContextSize::Bytes32 },
            primary_streams_exponent: self.primary_streams_exponent()?,
            attachment,
            buffer_bytes: within("memory.buffer", &memory.buffer, 1 << 10, 1 << 24)?,
            command: times.command.duration(),
            interrupt_grid: times.interrupt_grid.as_ref().map_or(Duration::ZERO, Quantity::duration),
            tds_ahead: within("times.transfers_ahead", &times.transfers_ahead, 1, 256)?,
            next_trb_out: times.next_trb_out.duration(),
            misbehaviour: Misbehaviour::NONE,
            ..Model::CHIPSET
        };
        let part = Part {
            name: "of the catalogue",
            model,
            packet_gap: times.packet_gap.duration(),
            response: times.response.duration(),
            pacing: Pacing { gap: self.usb2.gap.duration(), after_nak: self.usb2.after_nak.duration() },
            ..Part::CHIPSET
        };
        Ok(ControllerPart {
            part,
            pci: self.pci()?,
            streams_only: self.streams.only.clone(),
            scatter_gather: self.scatter_gather.unwrap_or(true),
            fastest: self.ports.fastest.as_ref().map(|fastest| fastest.rate("ports.fastest")).transpose()?,
        })
    }
}

impl ControllerFile {
    /// An exponent of n means 2^(n+1) entries.
    fn primary_streams_exponent(&self) -> Result<u8, FieldError> {
        let entries: u32 = within("streams.entries", &self.streams.entries, 0, 1 << 16)?;
        match entries {
            0 => Ok(0),
            4.. if entries.is_power_of_two() => Ok(entries.ilog2() as u8 - 1),
            _ => {
                let what = format!("`streams.entries` is {entries}, expected 0 or a power of two from 4");
                Err(FieldError::new("streams.entries", what))
            }
        }
    }

    fn pci(&self) -> Result<(u16, u16), FieldError> {
        let ids = self.pci.split_once(':').and_then(|(vendor, device)| {
            Some((u16::from_str_radix(vendor, 16).ok()?, u16::from_str_radix(device, 16).ok()?))
        });
        ids.ok_or_else(|| {
            FieldError::new("pci", format!("`pci` is `{}`, expected two ids such as `1b21:1042`", self.pci))
        })
    }
}

impl Version {
    const fn code(self) -> u16 {
        match self {
            Self::V096 => 0x0096,
            Self::V100 => 0x0100,
            Self::V110 => 0x0110,
        }
    }
}
