//! uaskit's own drive in memory, to be checked.

use crate::bus::DriverBus;
use bus::Speed;
use device::command::Limits;
use device::lun::{LogicalUnit, LogicalUnitConfig};
use device::{Device, DeviceConfig, Transports};
use drive::Drive;
use drive::loopback::LoopbackBus;
use drive::medium::{Medium, RamMedium, RamTooLarge};

use units::{BlockSize, ByteCount};

/// Bytes of the medium.
const MEDIUM_BYTES: ByteCount = ByteCount(16 << 20);

/// A bus to a drive in memory.
pub type VirtualBus = DriverBus<LoopbackBus<RamMedium>>;

/// Plugs a virtual drive in.
///
/// # Errors
///
/// If memory cannot be allocated.
pub fn virtual_drive(speed: Speed, transports: Transports) -> Result<VirtualBus, RamTooLarge> {
    let medium = RamMedium::new(MEDIUM_BYTES, BlockSize::B512)?;
    let unit = LogicalUnit::new(LogicalUnitConfig::new(BlockSize::B512, medium.capacity()));
    let limits = Limits { commands: 64, buffer_bytes: 16 << 20, segment_bytes: 1 << 20 };
    let config = DeviceConfig { transports, limits, ..DeviceConfig::new(speed) };
    Ok(DriverBus::plug(Drive::new(Device::new(config, vec![unit]), vec![Box::new(medium)])))
}
