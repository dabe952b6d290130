//! USB-to-SATA bridges.
//!
//! A bridge has a processor, which handles each command at start and end and may have to copy
//! payload; a number of command slots; a buffer; and a SATA port. Left out: bridges with two
//! drives, errors, and bursts below 16 packets.

use super::fields::{FieldError, File, sectors, within};
use super::quantity::{Count, Current, Quantity, Rate, Size, Time};
use super::wires::{Fastest, LinkPart};
use device::Transports;
use quirks::{DeviceId, Identity, Names};
use serde::Deserialize;
use sim::bridge::StorePart;
use sim::drive::SECTOR_BYTES;
use sim::link::superspeed::TurnRound;
use sim::sata;
use units::Duration;

/// A bridge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BridgePart {
    /// idVendor and idProduct of its enclosures.
    pub id: DeviceId,
    /// bcdDevice.
    pub revision: u16,
    /// bMaxPower in milliamperes; 0 if self-powered.
    pub max_power_ma: u16,
    /// Supported transports.
    pub transports: Transports,
    /// UAS streams; 0 without UAS.
    pub streams: u16,
    /// UAS queue depth.
    pub commands: u16,
    /// Response time to a packet of the host.
    pub response: Duration,
    /// The highest rate of its port, where known.
    pub fastest: Option<LinkPart>,
    /// Buffer size in bytes.
    pub buffer_bytes: u32,
    /// Bytes of a write that are forwarded together.
    pub write_piece_bytes: u32,
    /// Processor costs.
    pub firmware: FirmwareCosts,
    /// SATA port. Over BOT commands are not queued.
    pub store: StorePart,
}

/// Processor costs of a bridge, sequential.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FirmwareCosts {
    /// From CBW to the drive's command.
    pub bot_command: Duration,
    /// From completion to CSW.
    pub bot_status: Duration,
    /// From COMMAND IU to the drive's command.
    pub uas_command: Duration,
    /// From completion to SENSE IU.
    pub uas_status: Duration,
    /// Per byte copied through the buffer, in picoseconds.
    pub byte_ps: u64,
}

/// A transport with separate costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BridgeSide {
    /// Bulk-Only Transport.
    Bot,
    /// USB Attached SCSI.
    Uas,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BridgeFile {
    title: String,
    /// `174c:5106`.
    id: String,
    /// `0100`.
    revision: String,
    power: PowerTable,
    bot: CommandTable,
    uas: Option<UasTable>,
    usb: UsbTable,
    buffer: BufferTable,
    sata: SataTable,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PowerTable {
    current: Quantity<Current>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CommandTable {
    command: Quantity<Time>,
    status: Quantity<Time>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UasTable {
    streams: Quantity<Count>,
    commands: Quantity<Count>,
    command: Quantity<Time>,
    status: Quantity<Time>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UsbTable {
    response: Quantity<Time>,
    /// Defaults to unknown.
    fastest: Option<Fastest>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BufferTable {
    size: Quantity<Size>,
    /// Bytes of a read that are forwarded together; at most half of the buffer.
    read_piece: Quantity<Size>,
    /// The same for a write.
    write_piece: Quantity<Size>,
    /// Copy rate through the buffer.
    rate: Quantity<Rate>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SataTable {
    rate: SataRate,
    latency: Quantity<Time>,
    queued: Quantity<Count>,
    /// From the drive's request for data of an unqueued write to the data frame.
    frame: Quantity<Time>,
}

/// SATA rate names in files.
#[derive(Clone, Copy, Deserialize)]
pub(super) enum SataRate {
    #[serde(rename = "3 Gb/s")]
    Three,
    #[serde(rename = "6 Gb/s")]
    Six,
}

impl BridgePart {
    /// Returns the USB identity, which bridges may share.
    pub const fn identity(&self) -> Identity<'static> {
        Identity { id: self.id, revision: self.revision, names: Names { manufacturer: None, product: None } }
    }

    /// Returns the processor costs of a command: start and end.
    pub const fn costs(&self, side: BridgeSide) -> (Duration, Duration) {
        match side {
            BridgeSide::Bot => (self.firmware.bot_command, self.firmware.bot_status),
            BridgeSide::Uas => (self.firmware.uas_command, self.firmware.uas_status),
        }
    }
}

impl File for BridgeFile {
    type Part = BridgePart;

    fn title(&self) -> &str {
        &self.title
    }

    fn make(&self) -> Result<Self::Part, FieldError> {
        let uas = self.uas.as_ref();
        let time =
            |time: fn(&UasTable) -> &Quantity<Time>| uas.map_or(Duration::ZERO, |uas| time(uas).duration());
        let most = TurnRound::DEVICE_MAX.as_ps();
        let buffer_bytes: u32 = within("buffer.size", &self.buffer.size, 4 << 10, 64 << 20)?;
        let piece = |place: &str, size: &Quantity<Size>| {
            within::<u32, _>(place, size, 2 << 10, u64::from(buffer_bytes / 2))
        };
        Ok(BridgePart {
            id: DeviceId::new(hex("id", self.id.get(..4))?, hex("id", self.id.get(5..))?),
            revision: hex("revision", Some(&self.revision))?,
            max_power_ma: within("power.current", &self.power.current, 0, 900)?,
            transports: if uas.is_some() { Transports::Dual } else { Transports::BotOnly },
            streams: uas.map_or(Ok(0), UasTable::streams)?,
            commands: uas.map_or(Ok(1), |uas| within("uas.commands", &uas.commands, 1, 256))?,
            response: Duration::from_ps(within("usb.response", &self.usb.response, 0, most)?),
            fastest: self.usb.fastest.as_ref().map(|fastest| fastest.rate("usb.fastest")).transpose()?,
            buffer_bytes,
            write_piece_bytes: piece("buffer.write_piece", &self.buffer.write_piece)?,
            firmware: FirmwareCosts {
                bot_command: self.bot.command.duration(),
                bot_status: self.bot.status.duration(),
                uas_command: time(|uas| &uas.command),
                uas_status: time(|uas| &uas.status),
                byte_ps: within("buffer.rate", &self.buffer.rate, 1, 1_000_000)?,
            },
            store: StorePart {
                rate: self.sata.rate.rate(),
                latency: self.sata.latency.duration(),
                queued: within("sata.queued", &self.sata.queued, 0, 32)?,
                piece_sectors: piece("buffer.read_piece", &self.buffer.read_piece)? / SECTOR_BYTES,
                frame: self.sata.frame.duration(),
                reads_fit: false,
                buffer_sectors: sectors("buffer.size", &self.buffer.size)?,
            },
        })
    }
}

impl UasTable {
    fn streams(&self) -> Result<u16, FieldError> {
        let streams: u16 = within("uas.streams", &self.streams, 2, 1 << 15)?;
        if streams.is_power_of_two() {
            return Ok(streams);
        }
        let what = format!("`uas.streams` is {streams}, expected a power of two");
        Err(FieldError::new("uas.streams", what))
    }
}

impl SataRate {
    pub(super) const fn rate(self) -> sata::Rate {
        match self {
            Self::Three => sata::Rate::Gen2,
            Self::Six => sata::Rate::Gen3,
        }
    }
}

fn hex(place: &str, digits: Option<&str>) -> Result<u16, FieldError> {
    let four = digits.filter(|digits| digits.len() == 4);
    four.and_then(|digits| u16::from_str_radix(digits, 16).ok()).ok_or_else(|| {
        let what = format!("`{place}` needs four hexadecimal digits per id");
        FieldError::new(place, what)
    })
}
