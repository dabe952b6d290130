//! Commands of tests.

use bus::Direction;
use initiator::{Command, CommandBlock, CommandId, DataPhase};
use units::{ByteRange, Instant};
use wire::scsi::lun::LunField;
use wire::uas::TaskAttribute;

/// Bytes of a block.
pub const BLOCK: u32 = 512;

/// Returns READ (10), WRITE (10), or TEST UNIT READY where there are no blocks.
pub fn command(id: CommandId, writes: bool, blocks: (u32, u16), deadline: Instant) -> Command {
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
