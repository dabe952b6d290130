//! A drive with one unit, for tests: everything is as in a real one, but for the names.

use ::drive::Drive;
use ::drive::loopback::Loopback;
use ::drive::medium::{Medium, RamMedium};
use bus::Speed;
use device::command::Limits;
use device::lun::{LogicalUnit, LogicalUnitConfig};
use device::{Device, DeviceConfig};
use initiator::{CommandId, Transport};
use units::{BlockSize, ByteCount, Instant};

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
        read_only: medium.is_read_only(),
        durable: true,
        atomic_writes: medium.writes_atomically(),
        durable_state: medium.load_state().expect("a medium of tests loads"),
        ..LogicalUnitConfig::new(medium.block_size(), medium.capacity())
    };
    change(&mut config);
    let mut device = DeviceConfig {
        limits: Limits { commands: 64, buffer_bytes: 16 << 20, segment_bytes: 8 << 20 },
        ..DeviceConfig::new(Speed::Super)
    };
    change_device(&mut device);
    Drive::new(Device::new(device, vec![LogicalUnit::new(config)]), vec![medium])
}

/// A drive with one unit of blocks of 512 bytes, which offers both transports, with so many streams at super speed.
pub fn drive_at(speed: Speed, streams: u16, medium: Box<dyn Medium + Send>) -> Drive {
    let change = |unit: &mut LogicalUnitConfig| (unit.atomic_writes, unit.durable_state) = (true, None);
    drive_of(medium, change, |device| {
        (device.speed, device.streams, device.limits.segment_bytes) = (speed, streams, 4096);
    })
}

/// The same in 1 MiB of memory.
pub fn ram_drive(speed: Speed, streams: u16) -> Drive {
    let medium = RamMedium::new(ByteCount(1 << 20), BlockSize::B512).expect("1 MiB");
    drive_at(speed, streams, Box::new(medium))
}

/// Keeps `depth` commands in flight until `count` have ended, and ends the rest. `start` submits the command with an id; each must
/// end with GOOD.
pub fn keep_in_flight<T: Transport>(
    ends: &mut Loopback<T>,
    depth: u16,
    count: u32,
    mut start: impl FnMut(&mut Loopback<T>, CommandId),
) {
    (0..depth).for_each(|slot| start(ends, CommandId { slot, generation: 0 }));
    for ended in 1..=count + u32::from(depth) {
        ends.run_once(Instant::ZERO);
        let over = ends.poll().expect("a command has ended");
        assert!(over.outcome.is_good());
        ends.pool().put(over.buffer);
        if ended <= count {
            start(ends, CommandId { slot: over.id.slot, generation: ended });
        }
    }
}
