//! From power-on to commands over driver and controller.

use super::*;
use crate::xhci::Part;
use initiator::{CommandBlock, DataPhase, Outcome};
use target::Transports;
use units::{BlockSize, ByteRange};
use wire::scsi::lun::LunField;
use wire::uas::TaskAttribute;

const BLOCK: u32 = 4096;
const PARTS: [Part; 3] = [Part::CHIPSET, Part::CARD, Part::EARLY_CARD];

fn host(part: Part) -> Host {
    Host { part, config: ::xhci::Config::default() }
}

fn powered(part: Part, transports: Transports) -> Result<Driven<Nobody>, PowerOnError> {
    let plain = Plain::new(256, BlockSize::B4096, Duration::from_us(20), 4);
    Driven::power_on(host(part), Rate::Gen1, plain.device_with(transports, bus::Speed::Super), plain, None)
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

fn pattern(seed: u32, blocks: u16) -> Vec<u8> {
    (0..BLOCK * u32::from(blocks)).map(|at| (at / 7 + seed) as u8).collect()
}

fn ask<T: Transport>(world: &mut Driven<T>, command: &Command, buffer: Vec<u8>) -> Vec<u8> {
    world.submit(command, buffer).unwrap();
    let finished = world.run().unwrap().expect("the command ends");
    assert_eq!(finished.id, command.id);
    let Outcome::Answered(answer) = &finished.outcome else { panic!("{:?}", finished.outcome) };
    assert_eq!((answer.status, answer.moved), (wire::scsi::Status::Good, finished.buffer.len() as u32));
    finished.buffer
}

fn first<T: Transport>(world: &mut Driven<T>) {
    world.submit(&command(0, false, 0, 0), Vec::new()).unwrap();
    world.run().unwrap().expect("the command ends");
}

fn write_and_read<T: Transport>(mut world: Driven<T>) -> u64 {
    first(&mut world);
    for (seed, blocks) in (0..20).zip([1, 3, 40].into_iter().cycle()) {
        ask(&mut world, &command(1, true, seed * 5, blocks), pattern(seed, blocks));
        let read =
            ask(&mut world, &command(2, false, seed * 5, blocks), vec![0; pattern(seed, blocks).len()]);
        assert!(read == pattern(seed, blocks), "block {}", seed * 5);
    }
    assert_eq!(world.driver().counters(), ::xhci::Counters::default());
    assert_eq!(world.controller().counters().stale_progress, 0);
    assert_eq!(world.computer.memory.faults(), 0);
    world.digest()
}

#[test]
fn what_is_read_is_what_was_written_over_every_part() {
    for part in PARTS {
        let bot = || powered(part, Transports::BotOnly).unwrap().bot().unwrap();
        assert_eq!(write_and_read(bot()), write_and_read(bot()), "two worlds of one kind do not differ");
    }
    for part in [Part::CHIPSET, Part::CARD] {
        let uas = || powered(part, Transports::Dual).unwrap().uas(None).unwrap();
        assert_eq!(write_and_read(uas()), write_and_read(uas()), "two worlds of one kind do not differ");
    }
}

#[test]
fn a_part_without_streams_has_no_uas() {
    let world = powered(Part::EARLY_CARD, Transports::Dual).unwrap();
    assert_eq!(world.uas(None).err(), Some(PowerOnError::NotOffered));
}

fn on_uas(part: Part) -> Driven<initiator::Uas> {
    powered(part, Transports::Dual).unwrap().uas(None).unwrap()
}

fn on_bot(part: Part) -> Driven<initiator::Bot> {
    powered(part, Transports::BotOnly).unwrap().bot().unwrap()
}

/// Lets all commands end that are under way: their slots, in order.
fn drain<T: Transport>(world: &mut Driven<T>, commands: usize) -> Vec<u16> {
    let mut ended: Vec<_> =
        (0..commands).map(|_| world.run().unwrap().expect("each command ends").id.slot).collect();
    ended.sort_unstable();
    ended
}

/// After so many events one command is aborted; each ends once, and the next ones work.
fn abort_after<T: Transport>(mut world: Driven<T>, depth: u16, events: usize) {
    first(&mut world);
    for slot in 0..depth {
        let writes = slot.is_multiple_of(2);
        world.submit(&command(slot, writes, u32::from(slot) * 8, 4), pattern(slot.into(), 4)).unwrap();
    }
    for _ in 0..events {
        world.step();
    }
    world.abort(CommandId { slot: depth / 2, generation: 0 });
    assert_eq!(drain(&mut world, usize::from(depth)), (0..depth).collect::<Vec<_>>(), "{events}");
    ask(&mut world, &command(1, true, 100, 3), pattern(9, 3));
    assert!(ask(&mut world, &command(2, false, 100, 3), vec![0; 3 * BLOCK as usize]) == pattern(9, 3));
    assert_eq!(world.computer.memory.faults(), 0);
}

#[test]
fn whenever_a_command_is_aborted_each_ends_once_and_the_next_ones_work() {
    for events in (0..400).step_by(23) {
        abort_after(on_uas(Part::CHIPSET), 8, events);
        abort_after(on_bot(Part::EARLY_CARD), 1, events);
    }
}

#[test]
fn an_endpoint_that_halts_is_reset_and_works_again() {
    for events in (0..300).step_by(37) {
        let mut world = on_bot(Part::CARD);
        first(&mut world);
        world.submit(&command(0, false, 0, 4), vec![0; 4 * BLOCK as usize]).unwrap();
        for _ in 0..events {
            world.step();
        }
        // SET FEATURE (ENDPOINT_HALT) of bulk IN 1, as by the device itself.
        let setup = SetupPacket::from([0x02, 3, 0, 0, 0x81, 0, 0, 0]);
        world.drive.device.handle_control(setup, &[]);
        world.settle();
        assert_eq!(drain(&mut world, 1), [0]);
        ask(&mut world, &command(1, true, 100, 3), pattern(9, 3));
        assert!(ask(&mut world, &command(2, false, 100, 3), vec![0; 3 * BLOCK as usize]) == pattern(9, 3));
    }
}

#[test]
fn a_drive_that_is_pulled_out_ends_every_command() {
    for events in [0, 10, 100, 300] {
        let mut world = on_uas(Part::CHIPSET);
        first(&mut world);
        for slot in 0..8 {
            world.submit(&command(slot, false, u32::from(slot), 1), vec![0; BLOCK as usize]).unwrap();
        }
        for _ in 0..events {
            world.step();
        }
        world.unplug();
        assert_eq!(drain(&mut world, 8), (0..8).collect::<Vec<_>>(), "{events}");
        // The transfers ended before the device was told to be gone.
        while world.computer.device.is_some() && world.step() {}
        assert_eq!(world.submit(&command(1, false, 0, 1), Vec::new()), Err(Refusal::Gone));
    }
}
