//! A drive for the tests, on whatever medium.
#![allow(dead_code, reason = "each test uses a part of it")]

use bus::Direction;
use bus::Speed;
use device::command::Limits;
use device::lun::{LogicalUnit, LogicalUnitConfig};
use device::{Device, DeviceConfig, Transports};
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
        vendor: "uaskit".into(),
        product: "Virtual Drive".into(),
        revision: "1".into(),
        serial: "0123456789AB".into(),
        naa: 0x3000_0000_0000_0001,
        block_size: BlockSize::B512,
        capacity: medium.capacity(),
        transfer_bytes_optimal: device::lun::limits::TRANSFER_BYTES_OPTIMAL_MAX,
        read_only: false,
        removable: false,
        rotational: false,
        temperature_c: None,
        durable: true,
        atomic_writes: true,
        durable_state: None,
    });
    let config = DeviceConfig {
        speed,
        transports: Transports::Dual,
        streams,
        bus_power_ma: 0,
        bot_short_data: Default::default(),
        vendor_id: 0x1209,
        product_id: 1,
        release: 0x100,
        manufacturer: "uaskit".into(),
        product: "Virtual Drive".into(),
        serial: "0123456789AB".into(),
        limits: Limits { commands: 64, buffer_bytes: 16 << 20, segment_bytes: 4096 },
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
