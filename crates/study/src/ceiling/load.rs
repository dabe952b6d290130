//! The load of a measurement: its parameters, their limits, and the machine and commands that follow
//! from them.
//!
//! Left out: running it, and its results. Always true: a checked load has whole blocks and more
//! commands than are in flight.

use super::error::CeilingError;
use device::Transports;
use initiator::{Bot, Command, CommandBlock, CommandId, DataPhase, Uas};
use sim::check::AUDIT_INTERVAL_COMMANDS;
use sim::engine::Random;
use sim::link::{AnyRate, Connection, usb2};
use sim::machine::xhci::{Drive, Host, Hub, Protocol, Setup};
use sim::machine::{self, FixedLatencyDrive, Plugged};
use units::{BlockCount, BlockSize, ByteRange, Duration, Instant, Lba};
use wire::scsi::cdb::{Cdb, CdbWidth, Read, Write};
use wire::scsi::lun::LunField;
use wire::usb::Direction;

/// Parameters of a measurement.
#[derive(Clone, Debug)]
pub struct Load {
    /// The controller and how its driver goes about it, with a SuperSpeed link alone; `None` for neither: transfers are on
    /// the link as soon as they are wanted.
    pub host: Option<Host>,
    /// The connection of the drive.
    pub connection: Connection,
    /// Whether to write.
    pub writes: bool,
    /// Bytes per command: whole blocks of 512, at most [`Load::bytes_max`].
    pub bytes: u32,
    /// Drives, and hubs between them and the host. More than one drive needs a controller.
    pub drives: Drives,
    /// Queue depth per drive, at most [`DEPTH_MAX`]. What the transport does not accept waits.
    pub depth: u16,
    /// Total commands over all drives, counted after as many as are in flight. It exceeds the
    /// number in flight, since that many can complete at once.
    pub commands: u32,
    /// Drive latency per command.
    pub latency: Duration,
    /// Commands that the drive serves concurrently.
    pub at_once: u16,
    /// Random seed of LBAs.
    pub seed: u64,
}

/// Number of drives, and the hubs in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drives {
    /// Number of drives.
    pub count: u8,
    /// Hubs in a row behind the first root port, with the drives at the last one; without hubs each
    /// drive has a root port. On USB 2.0 they are high-speed, and full-speed drives are behind the
    /// last hub's transaction translator.
    pub hubs: u8,
}

const FULL: AnyRate = AnyRate::Usb2(usb2::Rate::Full);

/// Ports of a hub here: as many as a route string can address.
const HUB_PORTS: u8 = 15;
/// Maximum queue depth: what 64 streams carry.
pub const DEPTH_MAX: u16 = 62;
const DEPTH_OF_32_STREAMS: u16 = 30;

/// Block size. Each block holds its number, so that misplaced data is detected.
pub(super) const BLOCK_SIZE: BlockSize = BlockSize::B512;
/// Bytes of a block.
pub(super) const BLOCK_BYTES: u32 = BLOCK_SIZE.bytes();
/// Size of the medium: 512 KiB, or one command if that is larger. LBAs do not affect the latency of
/// this drive.
const MEDIUM_BLOCKS: u32 = 1 << 10;
/// Longer than any command takes, so that no command times out.
pub(super) const COMMAND_TIMEOUT: Duration = Duration::from_secs(3600);

impl Load {
    /// Returns the maximum bytes of a command: one transfer of the driver, or the drive's limit.
    pub const fn bytes_max(&self) -> u32 {
        match self.host {
            Some(_) => ::xhci_driver::limit::TRANSFER_BYTES_MAX,
            None => device::lun::limits::TRANSFER_BYTES_MAX,
        }
    }

    /// Returns the commands in flight over all drives.
    pub fn in_flight(&self) -> u32 {
        u32::from(self.depth) * u32::from(self.drives.count)
    }

    /// Scales the audit interval, since an audit checks all drives.
    pub(super) fn audited_every(&self) -> u32 {
        AUDIT_INTERVAL_COMMANDS * u32::from(self.drives.count).max(1)
    }

    pub(super) fn check(&self) -> Result<(), CeilingError> {
        let (most, in_flight) = (self.bytes_max(), self.in_flight());
        match () {
            () if self.bytes > most => Err(CeilingError::TooLong(most)),
            () if self.blocks().is_none() => Err(CeilingError::Load),
            () if self.commands <= in_flight => Err(CeilingError::TooFew(in_flight)),
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

    /// A drive with BOT only.
    pub(super) fn bot(&self) -> Result<(Plugged<Bot>, FixedLatencyDrive), CeilingError> {
        let plain = self.plain();
        let plugged = machine::bot(plain.device_with(Transports::BotOnly, self.connection.speed()))
            .map_err(CeilingError::Plug)?;
        Ok((plugged, plain))
    }

    /// A drive with both transports.
    pub(super) fn uas(&self) -> Result<(Plugged<Uas>, FixedLatencyDrive), CeilingError> {
        let plain = self.plain();
        let plugged = machine::uas(plain.device_with(Transports::Dual, self.connection.speed()), None)
            .map_err(CeilingError::Plug)?;
        Ok((plugged, plain))
    }

    /// The machine for a load.
    pub(super) fn setup(&self, host: Host, protocol: Protocol) -> Setup {
        let (rate, hubs) = match self.connection {
            Connection::SuperSpeed(rate) => (AnyRate::SuperSpeed(rate), self.drives.hubs),
            // The controller adds its own.
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

    pub(super) fn medium_blocks(&self) -> u32 {
        MEDIUM_BLOCKS.max(self.blocks().unwrap_or(0).into())
    }

    /// Blocks per command.
    fn blocks(&self) -> Option<u16> {
        let blocks = u16::try_from(self.bytes / BLOCK_BYTES).ok()?;
        (blocks > 0 && self.bytes.is_multiple_of(BLOCK_BYTES) && self.commands > 0).then_some(blocks)
    }

    /// A random LBA for a command.
    pub(super) fn place(&self, random: &mut Random) -> Option<Lba> {
        let blocks = self.blocks()?;
        let places = u64::from(self.medium_blocks() / u32::from(blocks));
        Some(Lba(random.below(places) * u64::from(blocks)))
    }

    pub(super) fn command(&self, slot: u16, now: Instant, lba: Lba) -> Option<Command> {
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
            deadline: now + COMMAND_TIMEOUT,
        })
    }
}

impl Drives {
    /// One drive at a root port.
    pub const ONE: Self = Self { count: 1, hubs: 0 };
}
