//! A disc in an optical drive, from both transports of the initiator to the image: what a host asks first, reads to the padded end,
//! and nothing allocated for a read.

use bus::{Direction, Speed};
use device::lun::UnitType;
use initiator::{Command, CommandBlock, CommandId, DataPhase, Timeouts, Transport};
use std::fs;
use testkit::drive::{drive_with, keep_in_flight};
use testkit::host::Scratch;
use uaskit_drive::Drive;
use uaskit_drive::loopback::{Loopback, plug};
use uaskit_drive::medium::{FileMedium, FileOptions, OpenReason, RamMedium};
use units::{BlockSize, ByteCount, ByteRange, Instant};
use wire::scsi::lun::LunField;
use wire::uas::TaskAttribute;

const DEADLINE: Instant = Instant::from_ps(30_000_000_000_000);

fn optical(medium: Box<dyn uaskit_drive::medium::Medium + Send>) -> Drive {
    drive_with(medium, |unit| {
        (unit.unit_type, unit.removable, unit.read_only) = (UnitType::Optical, true, true);
        (unit.durable, unit.atomic_writes) = (false, false);
    })
}

fn command(slot: u16, generation: u32, cdb: &[u8], bytes: u32) -> Command {
    let range = ByteRange::new(0, bytes);
    Command {
        id: CommandId { slot, generation },
        lun: LunField([0; 8]),
        attribute: TaskAttribute::Simple,
        cdb: CommandBlock::new(cdb).expect("it has bytes"),
        data_phase: (bytes > 0).then_some(DataPhase { direction: Direction::In, range }),
        deadline: DEADLINE,
    }
}

/// Runs a command; its data, or `None` if it failed.
fn run<T: Transport>(ends: &mut Loopback<T>, cdb: &[u8], bytes: u32) -> Option<Vec<u8>> {
    let mut buffer = vec![0xee; bytes as usize];
    ends.submit(Instant::ZERO, &command(0, 0, cdb, bytes), &mut buffer).expect("there is room");
    let over = loop {
        ends.run_once(Instant::ZERO);
        if let Some(over) = ends.poll() {
            break over;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    };
    over.outcome.is_good().then_some(over.buffer)
}

/// Asks what Linux's `sr` asks, and reads to the end of a disc of five blocks of which the last is padded.
fn asks_and_reads<T: Transport>(mut ends: Loopback<T>, stored: &[u8]) {
    assert_eq!(run(&mut ends, &[0; 6], 0), None, "power on");
    let event = run(&mut ends, &[0x4a, 1, 0, 0, 0x10, 0, 0, 0, 8, 0], 8).expect("it is polled");
    assert_eq!(event[..8], [0, 6, 4, 0x10, 0, 2, 0, 0]);
    let profile = run(&mut ends, &[0x46, 0, 0, 0, 0, 0, 0, 0, 8, 0], 8).expect("it has features");
    assert_eq!(profile[6..8], [0, 0x08]);
    let capacity = run(&mut ends, &[0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0], 8).expect("it has a disc");
    assert_eq!(capacity[..8], [0, 0, 0, 4, 0, 0, 8, 0]);
    let toc = run(&mut ends, &[0x43, 0, 0, 0, 0, 0, 0xaa, 0, 12, 0], 12).expect("it has a lead-out");
    assert_eq!(toc[..12], [0, 10, 1, 1, 0, 0x14, 0xaa, 0, 0, 0, 0, 5]);
    let read = run(&mut ends, &[0x28, 0, 0, 0, 0, 0, 0, 0, 5, 0], 5 * 2048).expect("all of it is read");
    assert!(read[..stored.len()] == *stored && read[stored.len()..].iter().all(|&byte| byte == 0));
    let last = run(&mut ends, &[0xbe, 0, 0, 0, 0, 4, 0, 0, 1, 0x10, 0, 0], 2048).expect("READ CD");
    assert_eq!(last, read[4 * 2048..]);
    assert_eq!(run(&mut ends, &[0x28, 0, 0, 0, 0, 5, 0, 0, 1, 0], 2048), None, "past the end");
}

#[test]
fn a_padded_image_is_read_to_its_end_over_both_transports() {
    let scratch = Scratch::new();
    let image = scratch.image(ByteCount(0));
    let stored: Vec<u8> = (0..4 * 2048 + 77).map(|at: u32| (at / 3) as u8 | 1).collect();
    fs::write(&image, &stored).expect("there is room");
    let options = FileOptions { disc: true, block_size: BlockSize::B2048, ..FileOptions::default() };
    let open = || optical(Box::new(FileMedium::open(&image, &options).expect("it is an image")));
    let (mut over_uas, mut over_bot) = (open(), open());
    let uas = plug::uas(&mut over_uas, None, Timeouts::default()).expect("the drive has UAS");
    asks_and_reads(Loopback::new(uas, over_uas), &stored);
    let bot = plug::bot(&mut over_bot, Timeouts::default()).expect("the drive has BOT");
    asks_and_reads(Loopback::new(bot, over_bot), &stored);
    let text = uaskit_drive::medium::Medium::describe(&FileMedium::open(&image, &options).expect("again"));
    assert!(text.contains("last block padded with zeroes (1971 bytes)"), "{text}");
}

#[test]
fn raw_sectors_and_cue_sheets_are_no_discs() {
    let scratch = Scratch::new();
    let image = scratch.image(ByteCount(0));
    let mut raw = vec![0xff; 2352];
    (raw[0], raw[11]) = (0, 0);
    fs::write(&image, &raw).expect("there is room");
    let options = FileOptions { disc: true, block_size: BlockSize::B2048, ..FileOptions::default() };
    let error = FileMedium::open(&image, &options).expect_err("it has raw sectors");
    assert!(matches!(error.reason, OpenReason::RawSectors), "{error}");
    let cue = image.with_extension("CUE");
    fs::write(&cue, "FILE").expect("there is room");
    let error = FileMedium::open(&cue, &options).expect_err("it is a cue sheet");
    assert!(matches!(error.reason, OpenReason::CueSheet), "{error}");
    assert!(FileMedium::open(&image, &FileOptions::default()).is_ok(), "a disk may hold anything");
}

/// Keeps so many reads in flight until `count` have ended.
fn read_on<T: Transport>(ends: &mut Loopback<T>, depth: u16, count: u32) {
    keep_in_flight(ends, depth, count, |ends, CommandId { slot, generation }| {
        let lba = (generation * 7 % 500) as u16;
        let [high, low] = lba.to_be_bytes();
        let read = command(slot, generation, &[0x28, 0, 0, 0, high, low, 0, 0, 8, 0], 8 * 2048);
        let mut buffer = ends.pool().take(8 * 2048);
        ends.submit(Instant::ZERO, &read, &mut buffer).expect("there is room");
    });
}

#[test]
fn a_read_of_a_disc_allocates_nothing() {
    let ram = || RamMedium::new(ByteCount(2 << 20), BlockSize::B2048).expect("2 MiB");
    let mut drive = optical(Box::new(ram()));
    assert_eq!(drive.device().config().speed, Speed::Super);
    let uas = plug::uas(&mut drive, None, Timeouts::default()).expect("the drive has UAS");
    let mut ends = Loopback::new(uas, drive);
    assert_eq!(run(&mut ends, &[0; 6], 0), None, "power on");
    read_on(&mut ends, 30, 2_000);
    assert_eq!(allocation_counter::measure(|| read_on(&mut ends, 30, 10_000)).count_total, 0);
    let mut drive = optical(Box::new(ram()));
    let bot = plug::bot(&mut drive, Timeouts::default()).expect("the drive has BOT");
    let mut ends = Loopback::new(bot, drive);
    assert_eq!(run(&mut ends, &[0; 6], 0), None, "power on");
    read_on(&mut ends, 1, 2_000);
    assert_eq!(allocation_counter::measure(|| read_on(&mut ends, 1, 10_000)).count_total, 0);
}

#[test]
fn a_disc_that_is_locked_in_is_asked_for_by_an_event() {
    let medium = RamMedium::new(ByteCount(1 << 20), BlockSize::B2048).expect("1 MiB");
    let mut drive = optical(Box::new(medium));
    let bot = plug::bot(&mut drive, Timeouts::default()).expect("the drive has BOT");
    let mut ends = Loopback::new(bot, drive);
    assert_eq!(run(&mut ends, &[0; 6], 0), None, "power on");
    assert!(run(&mut ends, &[0x1e, 0, 0, 0, 1, 0], 0).is_some());
    let mut drive = ends.into_drive();
    assert_eq!(drive.eject_medium(0, false), Err(uaskit_drive::SlotError::Prevented));
    drive.bus_reset();
    let bot = plug::bot(&mut drive, Timeouts::default()).expect("the drive has BOT");
    let mut ends = Loopback::new(bot, drive);
    let event = run(&mut ends, &[0x4a, 1, 0, 0, 0x10, 0, 0, 0, 8, 0], 8).expect("it is polled");
    assert_eq!(event[4..8], [1, 2, 0, 0]);
}
