//! In steady state a drive allocates nothing per command: counted on its thread, for random 4 KiB reads and writes over
//! UAS with streams at depth 30, on memory and on a file.
//!
//! Left out: what comes once, which the first commands have had; other threads, of which a ring needs none.

use bus::EndpointAddress;
use device::device::{COMMAND, DATA_IN, DATA_OUT, STATUS};
use drive::Drive;
use drive::medium::{Engine, FileMedium, FileOptions, Medium, NbdMedium, RamMedium};
use std::hint::black_box;
use std::io::IoSlice;
use testkit::host::{Data, Host, Random, STREAMS, Scratch, cdb_16, drive};
use testkit::nbd::{NbdConfig, NbdServer};
use uaskit_server::usbredir::{Limits, SLICES_MAX, Session};
use units::{BlockSize, ByteCount};
use wire::scsi::Status;
use wire::uas::{CommandIu, TaskAttribute};

const DEPTH: u16 = 30;
const COMMANDS: u64 = 10_000;
const WARM_UP: u64 = 2_000;
const MEDIUM_BYTES: u64 = 8 << 20;
const TRANSFER_BYTES: u32 = 4096;
const TRANSFER_BLOCKS: u16 = 8;

/// Keeps the depth until so many commands have ended; random places, reads and writes in turn at random.
fn run(host: &mut Host, random: &mut Random, commands: u64) {
    let start = |host: &mut Host, random: &mut Random, tag: u16| {
        let transfers = MEDIUM_BYTES / u64::from(TRANSFER_BYTES);
        let lba = random.below(transfers) * u64::from(TRANSFER_BLOCKS);
        if random.below(2) == 0 {
            host.start(tag, cdb_16(0x88, false, lba, TRANSFER_BLOCKS), Data::In(TRANSFER_BYTES));
        } else {
            let mut memory = host.take(TRANSFER_BYTES as usize);
            memory[..8].copy_from_slice(&lba.to_be_bytes());
            let data = Data::Out(memory, TRANSFER_BYTES);
            host.start(tag, cdb_16(0x8a, false, lba, TRANSFER_BLOCKS), data);
        }
    };
    for tag in 1..=DEPTH {
        start(host, random, tag);
    }
    for ended in 1..=commands + u64::from(DEPTH) {
        let over = host.wait();
        assert_eq!(over.status, Status::Good);
        host.put(over.data);
        if ended <= commands {
            start(host, random, over.tag);
        }
    }
}

fn allocations_in_steady_state(medium: Box<dyn Medium + Send>) -> u64 {
    let mut host = Host::plug(medium);
    let mut random = Random(1);
    // More at once than is measured, so that there is memory for any mixture later.
    for tag in 1..=STREAMS {
        host.start(tag, cdb_16(0x88, false, 0, TRANSFER_BLOCKS), Data::In(TRANSFER_BYTES));
    }
    for _ in 1..=STREAMS {
        let over = host.wait();
        host.put(over.data);
    }
    run(&mut host, &mut random, WARM_UP);
    allocation_counter::measure(|| run(&mut host, &mut random, COMMANDS)).count_total
}

#[test]
fn the_counter_counts() {
    let measured = allocation_counter::measure(|| drop(black_box(Box::new(1))));
    assert_eq!(measured.count_total, 1);
}

#[test]
fn commands_on_memory_allocate_nothing() {
    let medium = RamMedium::new(ByteCount(MEDIUM_BYTES), BlockSize::B512).unwrap();
    assert_eq!(allocations_in_steady_state(Box::new(medium)), 0);
}

#[test]
fn commands_on_an_nbd_server_allocate_nothing() {
    let path = std::env::temp_dir().join(format!("uaskit-nbd-allocations-{}", std::process::id()));
    let server = NbdServer::start(&path, NbdConfig::new(MEDIUM_BYTES as usize));
    let address = server.address().parse().expect("it is an address");
    let medium = NbdMedium::open(&address, BlockSize::B512, false).expect("it can be opened");
    assert_eq!(allocations_in_steady_state(Box::new(medium)), 0);
}

#[test]
fn commands_on_a_file_allocate_nothing() {
    let scratch = Scratch::new();
    let path = scratch.image(ByteCount(MEDIUM_BYTES));
    let options = FileOptions { engine: Engine::Ring, ..FileOptions::default() };
    match FileMedium::open(&path, &options) {
        Ok(medium) => assert_eq!(allocations_in_steady_state(Box::new(medium)), 0),
        Err(error) => eprintln!("skipped: {error}"),
    }
}

// The same from the bytes of a usbredir client to the bytes for it.

/// A packet with a 64-bit id.
fn packet(kind: u32, id: u64, body: &[u8]) -> Vec<u8> {
    let head = [&kind.to_le_bytes()[..], &(body.len() as u32).to_le_bytes(), &id.to_le_bytes(), body];
    head.concat()
}

/// A bulk packet: for Out with its payload, for In with none but the length that is wanted.
fn bulk(endpoint: EndpointAddress, tag: u16, length: u32, payload: &[u8]) -> Vec<u8> {
    let stream = if endpoint == COMMAND { 0 } else { u32::from(tag) };
    let (low, high) = (length as u16, (length >> 16) as u16);
    let mut body = vec![endpoint.into(), 0];
    body.extend(low.to_le_bytes());
    body.extend(stream.to_le_bytes());
    body.extend(high.to_le_bytes());
    body.extend(payload);
    packet(101, u64::from(tag) * 1000 + u64::from(u8::from(endpoint)), &body)
}

/// Commands on all tags, reads and writes.
fn burst() -> Vec<u8> {
    let mut bytes = Vec::new();
    for tag in 1..=DEPTH {
        let read = tag % 3 != 0;
        let lba = u64::from(tag) * 16;
        bytes.extend(bulk(STATUS, tag, 112, &[]));
        if read {
            bytes.extend(bulk(DATA_IN, tag, TRANSFER_BYTES, &[]));
        } else {
            bytes.extend(bulk(DATA_OUT, tag, TRANSFER_BYTES, &[tag as u8; TRANSFER_BYTES as usize]));
        }
        let cdb = cdb_16(if read { 0x88 } else { 0x8a }, false, lba, TRANSFER_BLOCKS);
        let attribute = TaskAttribute::Simple;
        let iu = CommandIu { tag, attribute, priority: 0, lun: [0; 8], cdb: &cdb, additional_cdb: &[] };
        bytes.extend(bulk(COMMAND, tag, 32, &iu.encode()));
    }
    bytes
}

/// Gives bytes to the session and sends what comes of them, until nothing is in flight; bytes that were sent.
fn exchange(session: &mut Session, drive: &mut Drive, bytes: &[u8]) -> usize {
    let mut taken = 0;
    let mut sent = 0;
    while taken < bytes.len() || drive.at_media() > 0 || session.outgoing_bytes() > 0 {
        taken += session.receive(&bytes[taken..], drive).expect("the client keeps to the protocol");
        drive.run_once();
        session.collect(drive);
        while session.outgoing_bytes() > 0 {
            let mut slices = [IoSlice::new(&[]); SLICES_MAX];
            let count = session.slices(&mut slices);
            let some = slices[..count].iter().map(|slice| slice.len()).sum();
            session.sent(some, drive.pool());
            sent += some;
        }
    }
    sent
}

#[test]
fn commands_over_usbredir_allocate_nothing() {
    let medium = RamMedium::new(ByteCount(MEDIUM_BYTES), BlockSize::B512).unwrap();
    let mut drive = drive(Box::new(medium));
    let mut session = Session::new(Limits::default(), "uaskit", &drive);
    let mut hello = vec![0, 0, 0, 0, 68, 0, 0, 0, 0, 0, 0, 0];
    hello.resize(12 + 64, 0);
    hello.extend(0xff_u32.to_le_bytes());
    exchange(&mut session, &mut drive, &hello);
    // SET_CONFIGURATION 1, SET_INTERFACE to alternate setting 1, streams on the three pipes that have them.
    exchange(&mut session, &mut drive, &packet(6, 1, &[1]));
    exchange(&mut session, &mut drive, &packet(9, 2, &[0, 1]));
    let pipes: u32 = [STATUS, DATA_IN, DATA_OUT].iter().map(|pipe| 1 << pipe.index()).sum();
    let streams = [pipes.to_le_bytes(), u32::from(STREAMS).to_le_bytes()].concat();
    exchange(&mut session, &mut drive, &packet(18, 3, &streams));

    let burst = burst();
    // The first brings the unit attention, so fewer bytes come back.
    for _ in 0..3 {
        exchange(&mut session, &mut drive, &burst);
    }
    let bursts = COMMANDS / u64::from(DEPTH);
    let before = drive.counters();
    let mut sent = 0;
    let measured = allocation_counter::measure(|| {
        for _ in 0..bursts {
            sent += exchange(&mut session, &mut drive, &burst);
        }
    });
    assert_eq!(measured.count_total, 0);
    assert_eq!(drive.counters().reads - before.reads, bursts * 20);
    assert_eq!(drive.counters().writes - before.writes, bursts * 10);
    // Three packets of 26 bytes for each command, 16 bytes of status, and the data of the reads.
    assert_eq!(sent as u64, bursts * (30 * (3 * 26 + 16) + 20 * u64::from(TRANSFER_BYTES)));
}
