//! Commands and expectations for tests of all machines.

use super::{FixedLatencyDrive, Simulation};
use initiator::{Command, CommandBlock, CommandId, DataPhase, Outcome};
use units::{BlockSize, ByteRange, Duration, Instant};
use wire::scsi::lun::LunField;
use wire::uas::TaskAttribute;
use wire::usb::Direction;

pub(super) const BLOCK: u32 = 4096;
pub(super) const BLOCKS: u32 = 256;

pub(super) fn plain(latency: Duration, at_once: u16) -> FixedLatencyDrive {
    FixedLatencyDrive::new(BLOCKS, BlockSize::B4096, latency, at_once)
}

/// READ(10) or WRITE(10), or TEST UNIT READY where there are no blocks.
pub(super) fn command(slot: u16, writes: bool, lba: u32, blocks: u16) -> Command {
    let [l0, l1, l2, l3] = lba.to_be_bytes();
    let [b0, b1] = blocks.to_be_bytes();
    let (operation_code, direction) = if writes { (0x2a, Direction::Out) } else { (0x28, Direction::In) };
    let cdb: &[u8] = if blocks == 0 { &[0; 6] } else { &[operation_code, 0, l0, l1, l2, l3, 0, b0, b1, 0] };
    let range = ByteRange::new(0, u32::from(blocks) * BLOCK);
    Command {
        id: CommandId { slot, generation: 0 },
        lun: LunField([0; 8]),
        attribute: TaskAttribute::Simple,
        cdb: CommandBlock::new(cdb).unwrap(),
        data_phase: (blocks > 0).then_some(DataPhase { direction, range }),
        deadline: Instant::ZERO + Duration::from_secs(30),
    }
}

/// Test data for `blocks`.
pub(super) fn pattern(seed: u32, blocks: u16) -> Vec<u8> {
    (0..BLOCK * u32::from(blocks)).map(|at| (at / 7 + seed) as u8).collect()
}

/// An empty buffer for `blocks`.
pub(super) fn room(blocks: u16) -> Vec<u8> {
    vec![0; usize::from(blocks) * BLOCK as usize]
}

/// Runs a command that must succeed; returns its buffer.
pub(super) fn ask(
    machine: &mut impl Simulation,
    drive: usize,
    command: &Command,
    buffer: Vec<u8>,
) -> Vec<u8> {
    machine.submit(drive, command, buffer).unwrap();
    let finished = machine.run().unwrap().expect("the command ends");
    assert_eq!((finished.drive, finished.id), (drive, command.id));
    let Outcome::Answered(answer) = &finished.outcome else { panic!("{:?}", finished.outcome) };
    assert_eq!((answer.status, answer.moved), (wire::scsi::Status::Good, finished.buffer.len() as u32));
    finished.buffer
}

/// Consumes the unit attention of a new device.
pub(super) fn first(machine: &mut impl Simulation, drive: usize) {
    machine.submit(drive, &command(0, false, 0, 0), Vec::new()).unwrap();
    machine.run().unwrap().expect("the command ends");
}

/// Writes and reads back; returns the digest.
pub(super) fn write_and_read(machine: &mut impl Simulation, drive: usize) -> u64 {
    first(machine, drive);
    let all = || (0..20).zip([1, 3, 40].into_iter().cycle());
    for (seed, blocks) in all() {
        ask(machine, drive, &command(1, true, seed * 5, blocks), pattern(seed, blocks));
        let read = ask(machine, drive, &command(2, false, seed * 5, blocks), room(blocks));
        assert!(read == pattern(seed, blocks), "block {}", seed * 5);
    }
    machine.digest()
}
