//! Scripts for the drive: the device is whole, the medium is in memory, only the host is played.

mod settings;
mod short_data;

use bus::{EndpointAddress, Pipe, StreamId, TransferStatus};
use device::Verdict;
use device::command::{CommandId, DataLocation};
use device::device::{COMMAND, DATA_IN, DATA_OUT, STATUS};
use device::medium::{MediumOp, MediumRequest};
use testkit::drive::{drive_on, drive_with};
use uaskit_drive::medium::{FileMedium, FileOptions, Job, Medium, RamMedium, create_image};
use uaskit_drive::{Body, Drive, HostTransfer, SlotError};
use units::{BlockSize, ByteCount};
use wire::uas::{CommandIu, SenseIu, TaskAttribute};
use wire::usb::{Direction, Recipient, RequestKind, SetupPacket};

const BLOCKS: u64 = 2048;

fn drive() -> Drive {
    let medium = RamMedium::new(ByteCount(BLOCKS * 512), BlockSize::B512).expect("it is well-formed");
    configured(drive_on(Box::new(medium)))
}

/// The host has selected UAS and read the power-on unit attention.
fn configured(mut drive: Drive) -> Drive {
    for (request, recipient, value) in
        [(5, Recipient::Device, 1), (9, Recipient::Device, 1), (11, Recipient::Interface, 1)]
    {
        let (direction, kind) = (Direction::Out, RequestKind::Standard);
        let setup = SetupPacket { direction, kind, recipient, request, value, index: 0, length: 0 };
        assert_eq!(drive.control(setup, &[]), Verdict::Done);
    }
    assert_eq!(run(&mut drive, 1, &[0; 6], None).0[6], 0x02, "the power-on unit attention comes first");
    drive
}

fn on(endpoint: EndpointAddress, tag: u16) -> Pipe {
    Pipe { endpoint, stream: StreamId::new(tag).filter(|_| endpoint != COMMAND) }
}

enum Data<'a> {
    In(u32),
    Out(&'a [u8]),
}

/// Queues status, data and command as Linux does.
fn queue(drive: &mut Drive, tag: u16, cdb: &[u8], data: Option<Data<'_>>) {
    let mut transfer = |kind: u64, pipe, length, payload| {
        drive
            .submit(HostTransfer { id: u64::from(tag) * 4 + kind, pipe, length, payload })
            .expect("it is well-formed");
    };
    transfer(0, on(STATUS, tag), 112, Vec::new());
    match data {
        Some(Data::In(length)) => transfer(1, on(DATA_IN, tag), length, Vec::new()),
        Some(Data::Out(bytes)) => transfer(1, on(DATA_OUT, tag), bytes.len() as u32, bytes.to_vec()),
        None => {}
    }
    let mut padded = [0; 16];
    padded[..cdb.len()].copy_from_slice(cdb);
    let attribute = TaskAttribute::Simple;
    let iu = CommandIu { tag, attribute, priority: 0, lun: [0; 8], cdb: &padded, additional_cdb: &[] };
    transfer(2, on(COMMAND, tag), 32, iu.encode().to_vec());
}

/// Runs one command and gives its SENSE IU and its data.
fn run(drive: &mut Drive, tag: u16, cdb: &[u8], data: Option<Data<'_>>) -> (Vec<u8>, Vec<u8>) {
    queue(drive, tag, cdb, data);
    drive.run_once();
    let (mut status, mut read) = (Vec::new(), Vec::new());
    while let Some(completion) = drive.poll() {
        let bytes = match completion.body {
            Body::Empty => Vec::new(),
            Body::Inline(inline) => inline.as_bytes().to_vec(),
            Body::Buffer(memory) => memory[..completion.actual as usize].to_vec(),
        };
        match completion.id % 4 {
            0 => status = bytes,
            1 => read = bytes,
            _ => {}
        }
    }
    (status, read)
}

fn read_10(lba: u32, blocks: u16) -> [u8; 10] {
    let (a, n) = (lba.to_be_bytes(), blocks.to_be_bytes());
    [0x28, 0, a[0], a[1], a[2], a[3], 0, n[0], n[1], 0]
}

fn write_10(lba: u32, blocks: u16) -> [u8; 10] {
    let mut cdb = read_10(lba, blocks);
    cdb[0] = 0x2a;
    cdb
}

#[test]
fn what_is_written_is_read_back() {
    let mut drive = drive();
    let written: Vec<u8> = (0..4096u32).map(|byte| byte as u8 ^ 0x5a).collect();
    let (status, _) = run(&mut drive, 3, &write_10(100, 8), Some(Data::Out(&written)));
    assert_eq!(SenseIu::decode(&status).unwrap().status, wire::scsi::Status::Good);
    let (status, read) = run(&mut drive, 4, &read_10(100, 8), Some(Data::In(4096)));
    assert_eq!(SenseIu::decode(&status).unwrap().tag, 4);
    assert_eq!(read, written);
    assert_eq!(drive.counters().read_bytes, 4096);
    assert_eq!((drive.outstanding(), drive.payload_bytes()), (0, 0));
}

#[test]
fn a_sanitize_that_was_cut_off_goes_on_without_a_host() {
    let mut medium = RamMedium::new(ByteCount(BLOCKS * 512), BlockSize::B512).unwrap();
    let bytes = vec![7; 512];
    let request = MediumRequest {
        id: device::medium::MediumRequestId { command: CommandId { slot: 0, generation: 0 }, part: 0 },
        unit: 0,
        op: MediumOp::Write { fua: false },
        extent: units::Extent::new(5, 1),
        location: DataLocation::Buffer,
        range: units::ByteRange::new(0, 512),
    };
    medium.submit(Job { request, buffer: bytes }).unwrap();
    // A block erase that is not over.
    let mut state = b"ukds\x01\0\0\0".to_vec();
    let body = [3, 0, 10, 0x48, 0x02, 0, 0, 0, 0, 0, 0, 0, 0];
    let checksum =
        body.iter().fold(0x811c_9dc5_u32, |sum, &byte| (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    state.extend(checksum.to_be_bytes());
    state.extend(body);
    medium.save_state(&state).unwrap();
    let mut drive = drive_on(Box::new(medium));
    drive.run_once();
    assert!(drive.device().is_idle());
    let saved = drive.media()[0].load_state().unwrap().unwrap();
    assert_ne!(saved, state);
    let (_, read) = run(&mut configured(drive), 4, &read_10(5, 1), Some(Data::In(512)));
    assert_eq!(read, [0; 512]);
}

#[test]
fn the_memory_of_a_write_goes_to_the_medium_and_that_of_a_read_to_the_host() {
    let mut drive = drive();
    let mut memory = drive.pool().take(4096);
    memory[0] = 0x77;
    let place = memory.as_ptr();
    let (id, length) = (9, 4096);
    drive.submit(HostTransfer { id, pipe: on(DATA_OUT, 2), length, payload: memory }).unwrap();
    queue(&mut drive, 2, &write_10(0, 8), None);
    assert!(std::iter::from_fn(|| drive.poll()).any(|completion| completion.id == 9));
    queue(&mut drive, 5, &read_10(0, 8), Some(Data::In(4096)));
    let body = std::iter::from_fn(|| drive.poll()).find(|completion| completion.id == 21).unwrap().body;
    let Body::Buffer(read) = body else { panic!("no memory came: {body:?}") };
    // The pool had one piece of memory, which went with the write, came back, and went with the read.
    assert_eq!((read.as_ptr(), read[0]), (place, 0x77));
}

#[test]
fn a_cancelled_transfer_completes_once() {
    let mut drive = drive();
    drive.submit(HostTransfer { id: 7, pipe: on(STATUS, 1), length: 112, payload: Vec::new() }).unwrap();
    assert!(drive.cancel(7));
    assert!(!drive.cancel(7));
    let completion = drive.poll().unwrap();
    assert_eq!((completion.id, completion.status), (7, TransferStatus::Cancelled));
    assert!(drive.poll().is_none());
}

#[test]
fn a_host_that_goes_takes_its_transfers_along_and_leaves_the_disk() {
    let mut drive = drive();
    run(&mut drive, 3, &write_10(5, 1), Some(Data::Out(&[9; 512])));
    drive.submit(HostTransfer { id: 7, pipe: on(STATUS, 1), length: 112, payload: Vec::new() }).unwrap();
    drive.nexus_loss();
    assert_eq!(drive.outstanding(), 0);
    assert_eq!(drive.device().transport(), device::ActiveTransport::None);
    let (_, read) = run(&mut configured(drive), 4, &read_10(5, 1), Some(Data::In(512)));
    assert_eq!(read, [9; 512]);
}

fn card(blocks: u64) -> Box<RamMedium> {
    Box::new(RamMedium::new(ByteCount(blocks * 512), BlockSize::B512).expect("it is well-formed"))
}

/// A slot with a card in it.
fn slot() -> Drive {
    configured(drive_with(card(BLOCKS), |config| config.removable = true))
}

/// Sense key, code and qualifier of TEST UNIT READY; zeroes for GOOD.
fn readiness(drive: &mut Drive) -> (u8, u8, u8) {
    let (status, _) = run(drive, 1, &[0; 6], None);
    let sense = SenseIu::decode(&status).expect("it is well-formed").sense;
    if sense.is_empty() { (0, 0, 0) } else { (sense[2] & 0x0f, sense[12], sense[13]) }
}

#[test]
fn a_medium_goes_and_another_comes() {
    let mut drive = slot();
    assert_eq!(drive.eject_medium(0, false), Ok(()));
    assert!(drive.take_medium(0).is_some());
    assert_eq!(readiness(&mut drive), (0x02, 0x3a, 0x00));
    assert_eq!(drive.eject_medium(0, false), Err(SlotError::Empty));
    drive.insert_medium(0, card(4096)).unwrap();
    assert_eq!(readiness(&mut drive), (0x06, 0x28, 0x00));
    assert_eq!(readiness(&mut drive), (0, 0, 0));
    let (_, capacity) = run(&mut drive, 2, &[0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0], Some(Data::In(8)));
    assert_eq!(capacity[..4], [0, 0, 0x0f, 0xff]);
    assert_eq!(drive.insert_medium(0, card(8)).unwrap_err().0, SlotError::Occupied);
}

#[test]
fn a_medium_that_the_host_holds_on_to_goes_by_force_only() {
    let mut drive = slot();
    run(&mut drive, 2, &[0x1e, 0, 0, 0, 1, 0], None);
    assert_eq!(drive.eject_medium(0, false), Err(SlotError::Prevented));
    assert_eq!(drive.eject_medium(0, true), Ok(()));
}

#[test]
fn a_fixed_medium_stays_and_units_must_exist() {
    let mut drive = drive();
    assert_eq!(drive.eject_medium(0, true), Err(SlotError::Fixed));
    assert_eq!(drive.eject_medium(1, true), Err(SlotError::NoUnit));
    let mut drive = slot();
    drive.eject_medium(0, false).unwrap();
    drive.take_medium(0).unwrap();
    let other = RamMedium::new(ByteCount(1 << 20), BlockSize::B4096).unwrap();
    assert_eq!(drive.insert_medium(0, Box::new(other)).unwrap_err().0, SlotError::BlockSize);
}

#[test]
fn a_write_that_waits_for_its_data_keeps_the_slot_from_the_next_medium() {
    let mut drive = slot();
    queue(&mut drive, 3, &write_10(0, 1), None);
    drive.eject_medium(0, false).unwrap();
    assert!(drive.take_medium(0).is_none(), "the write is in flight");
    let payload = vec![7; 512];
    drive.submit(HostTransfer { id: 13, pipe: on(DATA_OUT, 3), length: 512, payload }).unwrap();
    drive.run_once();
    assert!(drive.take_medium(0).is_some());
}

#[test]
fn an_image_that_has_grown_is_reported_when_its_owner_says_so() {
    let path = std::env::temp_dir().join(format!("uaskit-grown-{}", std::process::id()));
    create_image(&path, ByteCount(1 << 20)).unwrap();
    let medium = FileMedium::open(&path, &FileOptions::default()).unwrap();
    let mut drive = configured(drive_on(Box::new(medium)));
    std::fs::File::options().write(true).open(&path).unwrap().set_len(2 << 20).unwrap();
    assert_eq!(drive.measure_medium(0), Ok(units::BlockCount(4096)));
    assert_eq!(readiness(&mut drive), (0x06, 0x2a, 0x09));
    let (_, capacity) = run(&mut drive, 2, &[0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0], Some(Data::In(8)));
    assert_eq!(capacity[..4], [0, 0, 0x0f, 0xff]);
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_status_that_is_to_be_lost_is_lost_once() {
    let mut drive = drive();
    drive.plan_fault("lose-status@2".parse().unwrap());
    assert_eq!(readiness(&mut drive), (0, 0, 0));
    queue(&mut drive, 1, &[0; 6], None);
    drive.run_once();
    let ended: Vec<u64> = std::iter::from_fn(|| drive.poll()).map(|completion| completion.id).collect();
    assert_eq!(ended, [6], "the command was taken, its status does not come");
    assert!(drive.cancel(4));
    assert_eq!(drive.poll().unwrap().status, TransferStatus::Cancelled);
    assert_eq!(readiness(&mut drive), (0, 0, 0));
}

#[test]
fn a_status_waits_behind_the_halt_that_was_asked_for() {
    let mut drive = drive();
    drive.plan_fault("stall-status@1".parse().unwrap());
    queue(&mut drive, 1, &[0; 6], None);
    drive.run_once();
    let ended = |drive: &mut Drive| -> Vec<_> {
        std::iter::from_fn(|| drive.poll()).map(|completion| (completion.id, completion.status)).collect()
    };
    assert_eq!(ended(&mut drive), [(6, TransferStatus::Done), (4, TransferStatus::Stall)]);
    let (direction, kind, recipient) = (Direction::Out, RequestKind::Standard, Recipient::Endpoint);
    let setup = SetupPacket {
        direction,
        kind,
        recipient,
        request: 1,
        value: 0,
        index: u8::from(STATUS).into(),
        length: 0,
    };
    assert_eq!(drive.control(setup, &[]), Verdict::Done);
    drive.submit(HostTransfer { id: 4, pipe: on(STATUS, 1), length: 112, payload: Vec::new() }).unwrap();
    assert_eq!(ended(&mut drive), [(4, TransferStatus::Short)]);
}

#[test]
fn data_that_are_to_be_lost_do_not_come() {
    let mut drive = drive();
    drive.plan_fault("lose-data@1".parse().unwrap());
    drive.plan_fault("stall-data@2".parse().unwrap());
    let ended = |drive: &mut Drive| -> Vec<_> {
        std::iter::from_fn(|| drive.poll()).map(|completion| (completion.id, completion.status)).collect()
    };
    let read = [0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0];
    queue(&mut drive, 1, &read, Some(Data::In(512)));
    drive.run_once();
    // The device ends what is left of the data phase, which is all of it.
    let expected = [(6, TransferStatus::Done), (5, TransferStatus::Short), (4, TransferStatus::Short)];
    assert_eq!(ended(&mut drive), expected);
    queue(&mut drive, 2, &read, Some(Data::In(512)));
    drive.run_once();
    let expected = [(10, TransferStatus::Done), (9, TransferStatus::Stall), (8, TransferStatus::Short)];
    assert_eq!(ended(&mut drive), expected);
}
