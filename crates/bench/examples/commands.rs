//! A number of commands through the protocol machines in memory, for a profiler that counts instructions.
//!
//! `commands initiator|session read|write COUNT`: 4 KiB at random places. `initiator` is disk, transport, drive and back
//! at depth 32; `session` is the bytes of a usbredir client at depth 30 and those for it. Everything that is to be counted
//! is in one function: `valgrind --tool=callgrind --toggle-collect=commands::counted`. Counts do not depend on what else the
//! machine does. Left out: sockets, files, time.

use bus::{EndpointAddress, Speed};
use device::device::{COMMAND, DATA_IN, DATA_OUT, STATUS};
use device::lun::{LogicalUnit, LogicalUnitConfig, limits};
use device::{Device, DeviceConfig, command};
use drive::Drive;
use drive::medium::RamMedium;
use server::usbredir::{Limits, SLICES_MAX, Session};
use std::io::IoSlice;
use std::time::Duration;
use uaskit_bench::backend::{BenchDevice, BufferLayout, MemoryDevice, Route, Runner};
use units::{BlockSize, ByteCount, Extent};
use workload::{Access, AccessKind};

const MEDIUM: ByteCount = ByteCount(64 << 20);
const BYTES: u32 = 4096;
const BLOCKS: u64 = MEDIUM.0 / BYTES as u64;
const UNIT_BLOCKS: u64 = BYTES as u64 / 512;
const DEPTH: u16 = 32;
const TAGS: u16 = 30;
const STREAMS: u16 = 32;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [part, kind, count] = &arguments[..] else { panic!("initiator|session read|write COUNT") };
    let kind = if kind == "read" { AccessKind::Read } else { AccessKind::Write };
    let count = count.parse().expect("a number");
    match part.as_str() {
        "initiator" => initiator(kind, count),
        _ => session(kind, count),
    }
}

fn initiator(kind: AccessKind, count: u64) {
    let mut bench_device = MemoryDevice::new(MEDIUM, BlockSize::B512, Speed::Super).expect("memory");
    let runner =
        bench_device.open_route(Route::Uas, BufferLayout { slots: DEPTH, bytes: BYTES }).expect("UAS");
    runner.prepare(DEPTH, BYTES).expect("memory");
    let mut random = fastrand::Rng::with_seed(1);
    let mut start = |runner: &mut dyn Runner, slot: u16| {
        let extent = Extent::new(random.u64(..BLOCKS) * UNIT_BLOCKS, UNIT_BLOCKS);
        runner.start(slot, Access { kind, extent });
    };
    (0..DEPTH).for_each(|slot| start(runner, slot));
    round(runner, &mut start, 2000);
    counted(|| round(runner, &mut start, count));
}

fn round(runner: &mut dyn Runner, start: &mut impl FnMut(&mut dyn Runner, u16), count: u64) {
    let mut commands = 0;
    while commands < count {
        runner.run_once(Duration::ZERO).expect("it goes on");
        while let Some(ended) = runner.poll() {
            assert!(ended.result.is_ok());
            commands += 1;
            start(runner, ended.slot);
        }
    }
}

fn session(kind: AccessKind, count: u64) {
    let mut drive = drive();
    let mut session = Session::new(Limits::default(), "uaskit", &drive);
    let mut hello = vec![0, 0, 0, 0, 68, 0, 0, 0, 0, 0, 0, 0];
    hello.resize(12 + 64, 0);
    hello.extend(0xff_u32.to_le_bytes());
    exchange(&mut session, &mut drive, &hello);
    exchange(&mut session, &mut drive, &packet(6, 1, &[1]));
    exchange(&mut session, &mut drive, &packet(9, 2, &[0, 1]));
    let pipes: u32 = [STATUS, DATA_IN, DATA_OUT].iter().map(|pipe| 1 << pipe.index()).sum();
    let streams = [pipes.to_le_bytes(), u32::from(STREAMS).to_le_bytes()].concat();
    exchange(&mut session, &mut drive, &packet(18, 3, &streams));
    // The first brings the unit attention. Then the places are written, so that reads read.
    exchange(&mut session, &mut drive, &burst(AccessKind::Write, 0));
    (0..32).for_each(|seed| exchange(&mut session, &mut drive, &burst(AccessKind::Write, seed)));
    let bursts: Vec<Vec<u8>> = (0..32).map(|seed| burst(kind, seed)).collect();
    bursts.iter().for_each(|burst| exchange(&mut session, &mut drive, burst));
    let mut bursts = bursts.iter().cycle();
    counted(|| {
        for _ in 0..count / u64::from(TAGS) {
            exchange(&mut session, &mut drive, bursts.next().expect("they come round"));
        }
    });
}

#[inline(never)]
fn counted(mut what: impl FnMut()) {
    what();
}

fn drive() -> Drive {
    let medium = RamMedium::new(MEDIUM, BlockSize::B512).expect("memory");
    let unit = LogicalUnit::new(LogicalUnitConfig {
        serial: "COUNT0000001".into(),
        ..LogicalUnitConfig::new(BlockSize::B512, units::BlockCount(MEDIUM.0 / 512))
    });
    let config = DeviceConfig {
        streams: STREAMS,
        serial: "COUNT0000001".into(),
        limits: command::Limits {
            commands: STREAMS + 1,
            buffer_bytes: 64 << 20,
            segment_bytes: limits::TRANSFER_BYTES_MAX,
        },
        ..DeviceConfig::new(Speed::Super)
    };
    Drive::new(Device::new(config, vec![unit]), vec![Box::new(medium)])
}

/// A packet with a 64-bit id.
fn packet(kind: u32, id: u64, body: &[u8]) -> Vec<u8> {
    [&kind.to_le_bytes()[..], &(body.len() as u32).to_le_bytes(), &id.to_le_bytes(), body].concat()
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

/// A command on each tag.
fn burst(kind: AccessKind, seed: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut bytes = Vec::new();
    for tag in 1..=TAGS {
        let lba = (random.u64(..BLOCKS) * UNIT_BLOCKS) as u32;
        bytes.extend(bulk(STATUS, tag, 112, &[]));
        let opcode = match kind {
            AccessKind::Read => {
                bytes.extend(bulk(DATA_IN, tag, BYTES, &[]));
                0x28
            }
            AccessKind::Write => {
                bytes.extend(bulk(DATA_OUT, tag, BYTES, &[tag as u8; BYTES as usize]));
                0x2a
            }
        };
        let mut iu = [0; 32];
        iu[0] = 1;
        iu[2..4].copy_from_slice(&tag.to_be_bytes());
        iu[16] = opcode;
        iu[18..22].copy_from_slice(&lba.to_be_bytes());
        iu[24] = UNIT_BLOCKS as u8;
        bytes.extend(bulk(COMMAND, tag, 32, &iu));
    }
    bytes
}

/// Gives bytes to the session and takes its output, until nothing is in flight.
fn exchange(session: &mut Session, drive: &mut Drive, bytes: &[u8]) {
    let mut taken = 0;
    while taken < bytes.len() || drive.at_media() > 0 || session.outgoing_bytes() > 0 {
        taken += session.receive(&bytes[taken..], drive).expect("the client keeps to the protocol");
        drive.run_once();
        session.collect(drive);
        while session.outgoing_bytes() > 0 {
            let mut slices = [IoSlice::new(&[]); SLICES_MAX];
            let count = session.slices(&mut slices);
            let some = slices[..count].iter().map(|slice| slice.len()).sum();
            session.sent(some, drive.pool());
        }
    }
}
