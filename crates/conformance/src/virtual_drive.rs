//! uaskit's own drive in memory, to be checked; honest, or one that lies.

use crate::bus::DriverBus;
use crate::record::{Record, RecordError};
use bus::Speed;
use device::command::Limits;
use device::lun::{LogicalUnit, LogicalUnitConfig};
use device::{Device, DeviceConfig, Transports};
use drive::loopback::LoopbackBus;
use drive::medium::{Lie, LieError, LyingMedium, Medium, RamMedium, RamTooLarge, VolatileRam};
use drive::{Drive, FAULTS_MAX, Fault};
use std::fmt;
use units::{BlockSize, ByteCount};

/// Bytes of the virtual drive unless given.
pub const VIRTUAL_BYTES: ByteCount = ByteCount(16 << 20);

/// A bus to a drive in memory.
pub type VirtualBus = DriverBus<LoopbackBus<dyn Medium + Send>>;

/// Why there is no virtual drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VirtualDriveError {
    /// Memory cannot be allocated.
    Memory(RamTooLarge),
    /// It cannot lie so.
    Lie(LieError),
    /// It cannot present the record.
    Record(RecordError),
}

/// Properties of a virtual drive, and in what it differs from an honest one.
#[derive(Clone, Debug)]
pub struct VirtualDriveConfig {
    /// The speed of its link.
    pub speed: Speed,
    /// The transports that it offers.
    pub transports: Transports,
    /// Its capacity as announced, in blocks of 512 bytes.
    pub announced: ByteCount,
    /// Lies about its blocks.
    pub lies: Vec<Lie>,
    /// Faults of what it sends, [`FAULTS_MAX`] at most; those beyond are left out.
    pub faults: Vec<Fault>,
    /// Whether it never reports a unit attention condition.
    pub loses_attentions: bool,
    /// The temperature that it reports, in degrees Celsius.
    pub temperature_c: u8,
}

impl VirtualDriveConfig {
    /// An honest drive of 16 MiB.
    pub const fn new(speed: Speed, transports: Transports) -> Self {
        const TEMPERATURE_C: u8 = 35;
        Self {
            speed,
            transports,
            announced: VIRTUAL_BYTES,
            lies: Vec::new(),
            faults: Vec::new(),
            loses_attentions: false,
            temperature_c: TEMPERATURE_C,
        }
    }

    /// Plugs the drive in. It has memory for what it keeps, and a volatile write cache.
    ///
    /// # Errors
    ///
    /// If memory cannot be allocated, or the lies do not fit the drive.
    pub fn plug(&self) -> Result<VirtualBus, VirtualDriveError> {
        let ram = RamMedium::new(Lie::stored_of(&self.lies, self.announced), BlockSize::B512)
            .map_err(VirtualDriveError::Memory)?;
        let cached = Box::new(VolatileRam::new(ram));
        let medium: Box<dyn Medium + Send> = if self.lies.is_empty() {
            cached
        } else {
            let blocks = BlockSize::B512.blocks_in(self.announced);
            Box::new(LyingMedium::new(cached, blocks, &self.lies).map_err(VirtualDriveError::Lie)?)
        };
        let unit = LogicalUnit::new(LogicalUnitConfig {
            loses_attentions: self.loses_attentions,
            temperature_c: Some(self.temperature_c),
            ..LogicalUnitConfig::new(BlockSize::B512, medium.capacity())
        });
        let limits = Limits { commands: 64, buffer_bytes: 16 << 20, segment_bytes: 1 << 20 };
        let config = DeviceConfig { transports: self.transports, limits, ..DeviceConfig::new(self.speed) };
        let mut drive = Drive::new(Device::new(config, vec![unit]), vec![medium]);
        for fault in self.faults.iter().take(FAULTS_MAX) {
            drive.plan_fault(*fault);
        }
        Ok(DriverBus::plug(drive))
    }
}

/// Plugs a virtual drive in that presents a record, with so many bytes for each unit.
///
/// # Errors
///
/// If memory cannot be allocated, or the device cannot be presented.
pub fn recorded_drive(record: &Record, bytes: ByteCount) -> Result<VirtualBus, VirtualDriveError> {
    let config = record.device(DeviceConfig::new(record.speed)).map_err(VirtualDriveError::Record)?;
    let (mut units, mut media) = (Vec::new(), Vec::new());
    for unit in &record.units {
        let ram = RamMedium::new(bytes, BlockSize::B512).map_err(VirtualDriveError::Memory)?;
        let medium: Box<dyn Medium + Send> = Box::new(ram);
        units.push(LogicalUnit::new(LogicalUnitConfig {
            removable: unit.is_removable(),
            recorded: Some(Box::new(unit.unit())),
            ..LogicalUnitConfig::new(BlockSize::B512, medium.capacity())
        }));
        media.push(medium);
    }
    Ok(DriverBus::plug(Drive::new(Device::new(config, units), media)))
}

impl fmt::Display for VirtualDriveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(error) => error.fmt(f),
            Self::Lie(error) => error.fmt(f),
            Self::Record(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for VirtualDriveError {}
