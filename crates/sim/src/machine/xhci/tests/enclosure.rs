//! A device in an enclosure, in a complete machine.

use super::super::*;
use crate::bridge::{Chip, StorePart, Times};
use crate::drive::solid::{Contents, FlashTimes, Solid, SolidPart};
use crate::fault::Faults;
use crate::machine::{FixedLatencyDrive, Simulation, numbers};
use crate::sata::Rate;
use device::Transports;
use device::command::Limits;
use initiator::{Command, CommandBlock, DataPhase};
use units::{BlockCount, BlockSize, ByteRange, Duration, Lba};
use wire::scsi::cdb::{Cdb, CdbWidth, Read, Write};
use wire::scsi::lun::LunField;
use wire::usb::Direction;

const SECTORS: u64 = 1 << 28;

fn solid() -> Solid {
    let part = SolidPart {
        sectors: SECTORS,
        command: Duration::from_us(5),
        channels: 8,
        dies_per_channel: 4,
        page_bytes: 8192,
        pages_per_block: 64,
        times: FlashTimes {
            read: Duration::from_us(50),
            program: Duration::from_us(500),
            erase: Duration::from_us(3000),
            byte: Duration::from_ns(5),
        },
        write_sectors: 2048,
        ahead_pages: 16,
        compresses: false,
        spare_per_mille: 280,
    };
    Solid::new(part, Contents::FRESH)
}

pub(super) const BRIDGE: Chip = Chip {
    streams: 32,
    limits: Limits { commands: 32, buffer_bytes: 1 << 20, segment_bytes: 16 << 10 },
    bot: Times { command: Duration::from_us(10), status: Duration::from_us(5) },
    uas: Times { command: Duration::from_us(10), status: Duration::from_us(5) },
    sector: Duration::ZERO,
    store: StorePart {
        rate: Rate::Gen3,
        latency: Duration::from_ns(100),
        queued: 32,
        buffer_sectors: 256,
        piece_sectors: 1,
        frame: Duration::ZERO,
        reads_fit: false,
    },
};

pub(super) fn power_on(bridge: &Chip, protocol: Protocol) -> XhciMachine {
    let drive = match protocol {
        Protocol::Bot => Drive::bot(),
        Protocol::Uas => Drive::uas(),
    };
    let occupant = |_, _: &Drive| {
        let plain =
            FixedLatencyDrive::numbered(BlockCount(SECTORS), BlockSize::B512).with_limits(bridge.limits);
        let enclosure = Enclosure::new(bridge, protocol, solid().into(), BlockSize::B512);
        let device = plain.device_with(Transports::Dual, bus::Speed::Super);
        DriveParts { device, plain, enclosure: Some(Box::new(enclosure)) }
    };
    Setup::new(Host::chipset()).with(1, drive).power_on_with(occupant, Vec::new()).unwrap()
}

pub(super) fn command(slot: u16, direction: Direction, lba: u64, blocks: u32, now: Instant) -> Command {
    let cdb: Cdb = match direction {
        Direction::In => Read { width: CdbWidth::Ten, lba, blocks, ..Read::default() }.encode(),
        Direction::Out => Write { width: CdbWidth::Ten, lba, blocks, ..Write::default() }.encode(),
    };
    Command {
        id: CommandId { slot, generation: 0 },
        lun: LunField([0; 8]),
        attribute: wire::uas::TaskAttribute::Simple,
        cdb: CommandBlock::from(cdb),
        data_phase: Some(DataPhase { direction, range: ByteRange::new(0, blocks * 512) }),
        deadline: now + Duration::from_secs(30),
    }
}

/// Memory for a command, with what is to be written.
pub(super) fn memory(direction: Direction, lba: u64, blocks: u32) -> Vec<u8> {
    let mut buffer = vec![0; blocks as usize * 512];
    for (number, block) in (lba..).zip(buffer.chunks_exact_mut(512)) {
        if direction == Direction::Out {
            block[..16].copy_from_slice(&numbers::number(Lba(number)));
        }
    }
    buffer
}

/// Returns the latency and data of a command on an idle, awake system.
fn latency(machine: &mut XhciMachine, direction: Direction, lba: u64, blocks: u32) -> (Duration, Vec<u8>) {
    let began = machine.now();
    let buffer = memory(direction, lba, blocks);
    machine.submit(0, &command(0, direction, lba, blocks, began), buffer).unwrap();
    let finished = machine.run().unwrap().unwrap();
    assert!(finished.outcome.is_good(), "{:?}", finished.outcome);
    (machine.now() - began, finished.buffer)
}

pub(super) fn greet(machine: &mut XhciMachine) {
    for _ in 0..3 {
        let test_unit_ready = Command {
            cdb: CommandBlock::new(&[0; 6]).unwrap(),
            data_phase: None,
            ..command(0, Direction::In, 0, 1, machine.now())
        };
        machine.submit(0, &test_unit_ready, Vec::new()).unwrap();
        if machine.run().unwrap().unwrap().outcome.is_good() {
            return;
        }
    }
    panic!("the unit is never ready");
}

#[test]
fn each_part_adds_its_latency() {
    for protocol in [Protocol::Bot, Protocol::Uas] {
        let mut machine = power_on(&BRIDGE, protocol);
        greet(&mut machine);
        let (before, bytes) = latency(&mut machine, Direction::In, 1 << 20, 8);
        assert_eq!(bytes[7 * 512..][..16], numbers::number(Lba((1 << 20) + 7)));
        // The firmware 15 us, the drive 5 + 50 + 40.96 for the page on its channel, its 4 KiB 7 on
        // the cable and 9 on the bus; the rest is what packets and controller take around that.
        assert!(before > Duration::from_us(127) && before < Duration::from_us(150), "{protocol}: {before}");
        let slower = Times { command: Duration::from_us(30), ..BRIDGE.bot };
        let mut machine = power_on(&Chip { bot: slower, uas: slower, ..BRIDGE }, protocol);
        greet(&mut machine);
        let (after, _) = latency(&mut machine, Direction::In, 1 << 20, 8);
        let more = (after.as_ps() - before.as_ps()).abs_diff(Duration::from_us(20).as_ps());
        assert!(more < Duration::from_us(1).as_ps(), "{protocol}: {before} {after}");
    }
}

#[test]
fn writes_go_to_their_own_blocks() {
    for protocol in [Protocol::Bot, Protocol::Uas] {
        let mut machine = power_on(&BRIDGE, protocol);
        greet(&mut machine);
        latency(&mut machine, Direction::Out, 12345, 300);
        latency(&mut machine, Direction::Out, 1 << 27, 8);
        assert_eq!(machine.misplaced_blocks(0), 0);
    }
}

/// The commands that went over the cable between two times.
fn ata_commands(machine: &mut XhciMachine) -> Vec<String> {
    let now = machine.now();
    let enclosure = machine.enclosure(0).unwrap();
    let notes = std::iter::from_fn(|| enclosure.poll_note(now)).map(|note| note.text);
    notes.filter(|text| text.contains("FPDMA")).collect()
}

#[test]
fn a_write_that_ends_with_task_set_full_leaves_the_next_command_alone() {
    let limits = Limits { commands: 1, ..BRIDGE.limits };
    let mut machine = power_on(&Chip { limits, ..BRIDGE }, Protocol::Uas);
    greet(&mut machine);
    let began = machine.now();
    for (slot, direction, lba) in [(0, Direction::In, 0), (1, Direction::Out, 800)] {
        let buffer = memory(direction, lba, 8);
        machine.submit(0, &command(slot, direction, lba, 8, began), buffer).unwrap();
    }
    let ends = [0, 1].map(|_| machine.run().unwrap().unwrap());
    assert_eq!(ends.iter().filter(|end| end.outcome.is_good()).count(), 1, "{ends:?}");
    machine.enclosure(0).unwrap().take_notes(true);
    latency(&mut machine, Direction::In, 160, 8);
    assert_eq!(ata_commands(&mut machine), ["host: READ FPDMA QUEUED, tag 0, 8 sectors from 160 on"]);
    assert_eq!(machine.audit(), Ok(()));
}

#[test]
fn bridge_memory_bounds_the_rate() {
    // 512 bytes in 2.56 us are 200 MB/s.
    let slow = Chip { sector: Duration::from_ns(2560), ..BRIDGE };
    for direction in [Direction::In, Direction::Out] {
        let mut machine = power_on(&slow, Protocol::Bot);
        greet(&mut machine);
        let (span, _) = latency(&mut machine, direction, 0, 2048);
        let rate = (1u64 << 20) as f64 / (span.as_ps() as f64 / 1e12) / 1e6;
        assert!((185.0..200.0).contains(&rate), "{direction:?}: {rate}");
    }
}

#[test]
fn commands_in_flight_overlap_in_the_drive() {
    let mut machine = power_on(&BRIDGE, Protocol::Uas);
    greet(&mut machine);
    let began = machine.now();
    for slot in 0..8 {
        let lba = u64::from(slot) * 16;
        machine.submit(0, &command(slot, Direction::In, lba, 8, began), vec![0; 4096]).unwrap();
    }
    for _ in 0..8 {
        assert!(machine.run().unwrap().unwrap().outcome.is_good());
    }
    let span = machine.now() - began;
    assert!(span < Duration::from_us(250), "{span}: one after the other it would be 8 times 115 us");
}

#[test]
fn a_slow_request_does_not_delay_others() {
    for (direction, sector) in
        [(Direction::In, 0), (Direction::Out, 0), (Direction::In, 512), (Direction::Out, 512)]
    {
        let bridge = Chip { sector: Duration::from_ns(sector), ..BRIDGE };
        let mut machine = power_on(&bridge, Protocol::Uas);
        greet(&mut machine);
        let mut machine = machine.with_faults([Faults::scripted(7, "slow@1".parse().unwrap())]);
        let began = machine.now();
        for slot in 0..3 {
            let (lba, deadline) = (u64::from(slot) * 16, began + Duration::from_secs(100));
            let asked = Command { deadline, ..command(slot, direction, lba, 8, began) };
            machine.submit(0, &asked, memory(direction, lba, 8)).unwrap();
        }
        let mut ends = [0, 0, 0].map(|_| {
            let finished = machine.run().unwrap().unwrap();
            assert!(finished.outcome.is_good(), "{:?}", finished.outcome);
            (finished.id.slot, machine.now() - began)
        });
        ends[..2].sort_unstable();
        let [(first, _), (second, soon), (last, late)] = ends;
        assert_eq!((first, second, last), (0, 2, 1), "{direction:?}");
        assert!(soon < Duration::from_ms(1), "{soon}");
        assert!(late > Duration::from_secs(35) && late < Duration::from_secs(71), "{late}");
    }
}

#[test]
fn a_small_bridge_buffer_does_not_deadlock() {
    let store = StorePart { buffer_sectors: 64, ..BRIDGE.store };
    let small = Chip { store, sector: Duration::from_ns(512), ..BRIDGE };
    for direction in [Direction::In, Direction::Out] {
        let mut machine = power_on(&small, Protocol::Uas);
        greet(&mut machine);
        let began = machine.now();
        for slot in 0..8 {
            let lba = u64::from(slot) * 512;
            let mut buffer = vec![0; 256 << 10];
            for (number, block) in (lba..).zip(buffer.chunks_exact_mut(512)) {
                block[..16].copy_from_slice(&numbers::number(Lba(number)));
            }
            machine.submit(0, &command(slot, direction, lba, 512, began), buffer).unwrap();
        }
        for _ in 0..8 {
            let finished = machine.run().unwrap().unwrap();
            let store = format!("{:?}", machine.enclosure(0).unwrap());
            assert!(finished.outcome.is_good(), "{direction:?} {:?}: {store}", finished.outcome);
        }
    }
}
