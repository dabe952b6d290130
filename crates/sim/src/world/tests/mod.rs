//! Both transports over packets: data right, times as they must be.

mod endings;

use super::*;
use crate::link::superspeed::Rate;
use crate::link::usb2;
use initiator::{CommandBlock, CommandId, DataPhase};
use units::{BlockSize, ByteRange};
use wire::scsi::lun::LunField;
use wire::uas::TaskAttribute;
use wire::usb::Direction;

/// One of each kind.
const CONNECTIONS: [Connection; 2] = [
    Connection::SuperSpeed(Rate::Gen1),
    Connection::Usb2 { rate: usb2::Rate::High, hubs: 1, pacing: PACING },
];
const PACING: usb2::Pacing = usb2::Pacing { gap: Duration::from_ns(500), after_nak: Duration::from_us(200) };

const BLOCK: u32 = 4096;
const BLOCKS: u32 = 256;

fn plain(latency: Duration, at_once: u16) -> Plain {
    Plain::new(BLOCKS, BlockSize::B4096, latency, at_once)
}

/// READ(10) or WRITE(10), or TEST UNIT READY where there are no blocks.
fn command(slot: u16, writes: bool, lba: u32, blocks: u16) -> Command {
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

fn pattern(seed: u32) -> Vec<u8> {
    (0..BLOCK * 3).map(|at| (at / 7 + seed) as u8).collect()
}

fn ask<T: Transport>(world: &mut World<T>, command: &Command, buffer: Vec<u8>) -> Vec<u8> {
    world.submit(command, buffer).unwrap();
    let finished = world.run().unwrap().expect("the command ends");
    assert_eq!(finished.id, command.id);
    let initiator::Outcome::Answered(answer) = &finished.outcome else { panic!("{:?}", finished.outcome) };
    assert_eq!((answer.status, answer.moved), (wire::scsi::Status::Good, finished.buffer.len() as u32));
    finished.buffer
}

/// The attention of a device that was just plugged in comes first.
fn first<T: Transport>(world: &mut World<T>) {
    world.submit(&command(0, false, 0, 0), Vec::new()).unwrap();
    world.run().unwrap().expect("the command ends");
}

fn write_and_read<T: Transport>(mut world: World<T>) -> u64 {
    first(&mut world);
    for seed in 0..20 {
        ask(&mut world, &command(1, true, seed * 5, 3), pattern(seed));
    }
    for seed in 0..20 {
        let read = ask(&mut world, &command(2, false, seed * 5, 3), vec![0; 3 * BLOCK as usize]);
        assert!(read == pattern(seed), "block {}", seed * 5);
    }
    world.digest()
}

#[test]
fn what_is_read_is_what_was_written_on_both_transports() {
    let plain = plain(Duration::from_us(20), 4);
    for connection in CONNECTIONS {
        let device = || plain.device_with(target::Transports::Dual, connection.speed());
        let on_uas = || World::new(connection, uas(device(), None).unwrap(), plain.clone());
        let on_bot = || World::new(connection, bot(device()).unwrap(), plain.clone());
        assert_eq!(
            write_and_read(on_uas()),
            write_and_read(on_uas()),
            "two worlds of one kind do not differ"
        );
        assert_ne!(write_and_read(on_uas()), write_and_read(on_bot()));
    }
}
