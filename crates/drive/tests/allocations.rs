//! In steady state both ends together allocate nothing per command: counted for random 4 KiB reads and writes.

use bus::Speed;
use initiator::turbo::{LookAhead, Turbo, TurboConfig};
use initiator::{CommandId, Timeouts, Transport};
use testkit::command::{BLOCK, command};
use testkit::drive::{keep_in_flight, ram_drive};
use uaskit_drive::loopback::{Loopback, plug};
use units::{Duration, Instant};

const BLOCKS: u16 = 8;
const PLACES: u32 = 256;
const WARM_UP: u32 = 2_000;
const COMMANDS: u32 = 10_000;

/// Keeps so many commands in flight until `count` have ended.
fn run<T: Transport>(ends: &mut Loopback<T>, depth: u16, count: u32) {
    let mut place = 1u32;
    keep_in_flight(ends, depth, count, |ends, id| {
        // Visits every place once before it comes round.
        place = (place * 5 + 1) % PLACES;
        let deadline = Instant::ZERO + Duration::from_secs(30);
        let command = command(id, place.is_multiple_of(2), (place * u32::from(BLOCKS), BLOCKS), deadline);
        let mut buffer = ends.pool().take((u32::from(BLOCKS) * BLOCK) as usize);
        ends.submit(Instant::ZERO, &command, &mut buffer).expect("there is room");
    });
}

fn allocations_in_steady_state<T: Transport>(mut ends: Loopback<T>, depth: u16) -> u64 {
    let id = CommandId { slot: 0, generation: 0 };
    let first = command(id, false, (0, 0), Instant::ZERO + Duration::from_secs(1));
    ends.submit(Instant::ZERO, &first, &mut Vec::new()).expect("there is room");
    ends.run_once(Instant::ZERO);
    assert!(ends.poll().is_some_and(|over| !over.outcome.is_good()), "power on");
    run(&mut ends, depth, WARM_UP);
    allocation_counter::measure(|| run(&mut ends, depth, COMMANDS)).count_total
}

#[test]
fn uas_allocates_nothing_per_command() {
    for speed in [Speed::Super, Speed::High] {
        let mut drive = ram_drive(speed, 32);
        let uas = plug::uas(&mut drive, None, Timeouts::default()).expect("the drive has UAS");
        assert_eq!(allocations_in_steady_state(Loopback::new(uas, drive), 30), 0);
    }
}

#[test]
fn bot_and_turbo_allocate_nothing_per_command() {
    let mut drive = ram_drive(Speed::Super, 32);
    let bot = plug::bot(&mut drive, Timeouts::default()).expect("the drive has BOT");
    assert_eq!(allocations_in_steady_state(Loopback::new(bot, drive), 1), 0);
    let mut drive = ram_drive(Speed::Super, 32);
    let bot = plug::bot_config(&mut drive, Timeouts::default()).expect("the drive has BOT");
    let turbo = Turbo::new(TurboConfig { look_ahead: LookAhead::Never, ..TurboConfig::new(bot) });
    assert_eq!(allocations_in_steady_state(Loopback::new(turbo, drive), 16), 0);
}
