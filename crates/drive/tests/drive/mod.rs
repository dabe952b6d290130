//! A drive for the tests, on whatever medium.
#![allow(dead_code, reason = "each test uses a part of it")]

use bus::Direction;
use bus::Speed;
use device::command::Limits;
use device::lun::{LogicalUnit, LogicalUnitConfig};
use device::{Device, DeviceConfig};
use initiator::{Command, CommandBlock, CommandId, DataPhase};
use uaskit_drive::Drive;
use uaskit_drive::medium::Medium;
use units::{BlockSize, ByteRange, Instant};
use wire::scsi::lun::LunField;
use wire::uas::TaskAttribute;

/// Bytes of a block.
pub(crate) const BLOCK: u32 = 512;

/// A drive that offers both transports, with so many streams at super speed.
pub(crate) fn drive(speed: Speed, streams: u16, medium: Box<dyn Medium + Send>) -> Drive {
    let unit = LogicalUnit::new(LogicalUnitConfig {
        durable: true,
        atomic_writes: true,
        ..LogicalUnitConfig::new(BlockSize::B512, medium.capacity())
    });
    let config = DeviceConfig {
        streams,
        limits: Limits { commands: 64, buffer_bytes: 16 << 20, segment_bytes: 4096 },
        ..DeviceConfig::new(speed)
    };
    Drive::new(Device::new(config, vec![unit]), vec![medium])
}

/// READ(10), WRITE(10), or TEST UNIT READY where there are no blocks.
pub(crate) fn command(id: CommandId, writes: bool, blocks: (u32, u16), deadline: Instant) -> Command {
    let [l0, l1, l2, l3] = blocks.0.to_be_bytes();
    let [b0, b1] = blocks.1.to_be_bytes();
    let (operation_code, direction) = if writes { (0x2a, Direction::Out) } else { (0x28, Direction::In) };
    let cdb: &[u8] = match blocks.1 {
        0 => &[0; 6],
        _ => &[operation_code, 0, l0, l1, l2, l3, 0, b0, b1, 0],
    };
    let range = ByteRange::new(0, u32::from(blocks.1) * BLOCK);
    Command {
        id,
        lun: LunField([0; 8]),
        attribute: TaskAttribute::Simple,
        cdb: CommandBlock::new(cdb).expect("ten bytes"),
        data_phase: (blocks.1 > 0).then_some(DataPhase { direction, range }),
        deadline,
    }
}
