//! A drive with one unit, for tests: everything is as in a real one, but for the names.

use ::drive::Drive;
use ::drive::medium::Medium;
use bus::Speed;
use device::command::Limits;
use device::lun::{LogicalUnit, LogicalUnitConfig};
use device::{Device, DeviceConfig, Transports};

/// A drive that finds the state of its unit at its medium.
pub fn drive_on(medium: Box<dyn Medium + Send>) -> Drive {
    drive_with(medium, |_| {})
}

/// The same with another configuration of the unit.
pub fn drive_with(medium: Box<dyn Medium + Send>, change: impl FnOnce(&mut LogicalUnitConfig)) -> Drive {
    drive_of(medium, change, |_| {})
}

/// The same with another configuration of the device, too.
pub fn drive_of(
    medium: Box<dyn Medium + Send>,
    change: impl FnOnce(&mut LogicalUnitConfig),
    change_device: impl FnOnce(&mut DeviceConfig),
) -> Drive {
    let mut config = LogicalUnitConfig {
        vendor: "uaskit".into(),
        product: "Virtual Drive".into(),
        revision: "1".into(),
        serial: "0123456789AB".into(),
        naa: 0x3000_0000_0000_0001,
        block_size: medium.block_size(),
        capacity: medium.capacity(),
        transfer_bytes_optimal: device::lun::limits::TRANSFER_BYTES_OPTIMAL_MAX,
        read_only: medium.is_read_only(),
        removable: false,
        rotational: false,
        temperature_c: None,
        durable: true,
        atomic_writes: medium.writes_atomically(),
        durable_state: medium.load_state().expect("a medium of tests loads"),
    };
    change(&mut config);
    let mut device = DeviceConfig {
        speed: Speed::Super,
        transports: Transports::Dual,
        streams: 32,
        bus_power_ma: 0,
        bot_short_data: Default::default(),
        vendor_id: 0x1209,
        product_id: 1,
        release: 0x100,
        manufacturer: "uaskit".into(),
        product: "Virtual Drive".into(),
        serial: "0123456789AB".into(),
        limits: Limits { commands: 64, buffer_bytes: 16 << 20, segment_bytes: 8 << 20 },
    };
    change_device(&mut device);
    Drive::new(Device::new(device, vec![LogicalUnit::new(config)]), vec![medium])
}
