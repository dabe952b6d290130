//! In steady state a drive allocates nothing per command: counted on its thread, for random 4 KiB reads and writes over
//! UAS with streams at depth 30, on memory and on a file.
//!
//! Left out: what comes once, which the first commands have had; other threads, of which a ring needs none.

mod host;

use host::{Data, Host, Random, STREAMS, Scratch, cdb_16};
use server::medium::{Engine, FileMedium, FileOptions, Medium, RamMedium};
use std::hint::black_box;
use units::{BlockSize, ByteCount};
use wire::scsi::Status;

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

fn allocations_in_steady_state(medium: Box<dyn Medium>) -> u64 {
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
fn commands_on_a_file_allocate_nothing() {
    let scratch = Scratch::new();
    let path = scratch.image(ByteCount(MEDIUM_BYTES));
    let options = FileOptions { engine: Engine::Ring, ..FileOptions::default() };
    match FileMedium::open(&path, &options) {
        Ok(medium) => assert_eq!(allocations_in_steady_state(Box::new(medium)), 0),
        Err(error) => eprintln!("skipped: {error}"),
    }
}
