use super::*;
use crate::drive::solid::{Contents, FlashTimes, Solid, SolidPart};
use device::command::DataLocation;
use device::medium::MediumRequestId;
use proptest::prelude::*;
use units::{BlockCount, ByteRange, Lba};

/// Flash that takes 50 us for a page of 4 KiB, on one channel.
fn solid() -> Solid {
    let part = SolidPart {
        sectors: 1 << 20,
        command: Duration::from_us(5),
        channels: 1,
        dies_per_channel: 8,
        page_bytes: 4096,
        pages_per_block: 64,
        times: FlashTimes {
            read: Duration::from_us(50),
            program: Duration::from_us(500),
            erase: Duration::from_us(3000),
            byte: Duration::from_ns(5),
        },
        write_sectors: 2048,
        ahead_pages: 0,
        compresses: false,
        spare_per_mille: 280,
    };
    Solid::new(part, Contents::FRESH)
}

const PART: StorePart = StorePart {
    rate: Rate::Gen3,
    latency: Duration::from_ns(100),
    queued: 4,
    buffer_sectors: 32,
    piece_sectors: 1,
    frame: Duration::ZERO,
    reads_fit: false,
};

/// A unit that gives the room of what it has read back at once, if it is reported to.
#[derive(Debug)]
struct Unit {
    store: Store<Solid>,
    now: Instant,
    gives: bool,
    done: Vec<(Instant, MediumRequest)>,
}

impl Unit {
    fn new(part: StorePart) -> Self {
        let store = Store::new(part, solid(), BlockSize::B512);
        Self { store, now: Instant::ZERO, gives: true, done: Vec::new() }
    }

    fn ask(&mut self, slot: u16, part: u16, op: MediumOp, (lba, blocks): (u64, u64)) {
        let request = MediumRequest {
            id: MediumRequestId { command: command(slot), part },
            unit: 0,
            op,
            extent: Extent { lba: Lba(lba), blocks: BlockCount(blocks) },
            location: DataLocation::Buffer,
            range: ByteRange::new(0, 0),
        };
        self.store.take(self.now, request);
        self.listen();
    }

    /// A read of four pieces of eight blocks.
    fn read_in_pieces(&mut self, slot: u16, lba: u64) {
        self.store.announce(command(slot), 32 * 512);
        for part in 0..4 {
            self.ask(slot, part, MediumOp::Read, (lba + u64::from(part) * 8, 8));
        }
    }

    fn listen(&mut self) {
        while let Some(request) = self.store.poll_done() {
            self.done.push((self.now, request));
            if self.gives && request.op == MediumOp::Read {
                self.store.give(self.now, request.id.command, request.extent.blocks.0 as u32);
            }
        }
    }

    fn step(&mut self) -> bool {
        let Some(at) = self.store.poll_timeout() else { return false };
        assert!(at >= self.now, "nothing happens before now");
        self.now = at;
        self.store.handle_timeout(at);
        self.listen();
        true
    }

    fn rest(&mut self) {
        for _ in 0..1_000_000 {
            if !self.step() {
                return;
            }
        }
        panic!("it never rests: {:?}", self.store);
    }

    fn rest_until(&mut self, at: Instant) {
        while self.store.poll_timeout().is_some_and(|next| next <= at) {
            self.step();
        }
        self.now = at;
    }

    /// Which part of which command ended when, in order.
    fn ends(&self) -> Vec<(u16, u16)> {
        self.done.iter().map(|(_, request)| (request.id.command.slot, request.id.part)).collect()
    }
}

const fn command(slot: u16) -> CommandId {
    CommandId { slot, generation: 0 }
}

const WRITE: MediumOp = MediumOp::Write { fua: false };

#[test]
fn pieces_of_a_read_are_one_command_and_end_as_they_come() {
    let mut unit = Unit::new(PART);
    unit.read_in_pieces(0, 64);
    unit.rest();
    assert_eq!(unit.ends(), [(0, 0), (0, 1), (0, 2), (0, 3)]);
    assert!(unit.done[0].0 < unit.done[3].0);
    assert_eq!(unit.store.cable().books().payload_bytes, 32 * 512);
    // Command, accepted, and bits once; the rest is data and what sets them up.
    assert!(unit.store.cable().books().frames <= 3 + 2 * 4, "{:?}", unit.store.cable().books());
}

#[test]
fn pieces_of_a_write_begin_with_the_first_and_end_together() {
    let mut unit = Unit::new(PART);
    unit.store.announce(command(0), 32 * 512);
    unit.ask(0, 0, WRITE, (0, 16));
    unit.rest();
    assert_eq!(unit.store.cable().books().payload_bytes, 16 * 512);
    assert!(unit.done.is_empty());
    unit.ask(0, 1, WRITE, (16, 16));
    unit.rest();
    assert_eq!(unit.ends(), [(0, 0), (0, 1)]);
    assert_eq!(unit.done[0].0, unit.done[1].0);
}

/// When a write ends whose data come at 20 us, with the drive reported of it at once or not.
fn end_of_write(queued: u8, is_foretold: bool) -> Instant {
    let mut unit = Unit::new(StorePart { queued, ..PART });
    unit.store.announce(command(0), 16 * 512);
    if is_foretold {
        unit.store.foretell(unit.now, command(0), WRITE, Extent::new(0, 16));
    }
    unit.rest_until(Instant::ZERO + Duration::from_us(20));
    assert!(unit.done.is_empty());
    unit.ask(0, 0, WRITE, (0, 16));
    unit.rest();
    assert_eq!((unit.ends(), unit.store.cable().books().payload_bytes), (vec![(0, 0)], 16 * 512));
    unit.now
}

#[test]
fn an_announced_write_starts_when_its_data_arrives() {
    // The drive's controller takes 5 us for a command, which are over by then.
    let saved = end_of_write(4, false) - end_of_write(4, true);
    assert!(saved >= Duration::from_us(5), "{saved:?}");
}

#[test]
fn a_bridge_without_queuing_announces_no_write_before_its_data() {
    assert_eq!(end_of_write(0, true), end_of_write(0, false));
}

#[test]
fn a_write_is_predicted_once_and_a_started_one_not_again() {
    let mut unit = Unit::new(PART);
    unit.store.announce(command(0), 16 * 512);
    unit.store.foretell(unit.now, command(0), WRITE, Extent::new(0, 16));
    unit.ask(0, 0, WRITE, (0, 16));
    unit.store.foretell(unit.now, command(0), WRITE, Extent::new(0, 16));
    unit.rest();
    assert_eq!(unit.ends(), [(0, 0)]);
    assert_eq!(unit.store.cable().books().payload_bytes, 16 * 512);
    assert!(!unit.store.is_busy());
}

#[test]
fn a_bridge_issues_as_many_commands_as_it_queues() {
    let take = |queued| {
        let mut unit = Unit::new(StorePart { queued, ..PART });
        for slot in 0..8 {
            unit.ask(slot, 0, MediumOp::Read, (u64::from(slot) * 8, 8));
        }
        unit.rest();
        assert_eq!(unit.done.len(), 8);
        unit.now
    };
    let (alone, two, eight) = (take(0), take(2), take(8));
    assert!(two.as_ps() * 5 < alone.as_ps() * 3, "{two:?} {alone:?}");
    assert!(eight.as_ps() * 3 < two.as_ps() * 2, "{eight:?} {two:?}");
}

#[test]
fn a_flush_is_alone() {
    let mut unit = Unit::new(PART);
    unit.ask(0, 0, MediumOp::Read, (0, 8));
    unit.ask(1, 0, MediumOp::Flush, (0, 0));
    unit.ask(2, 0, MediumOp::Read, (8, 8));
    unit.rest();
    assert_eq!(unit.ends(), [(0, 0), (1, 0), (2, 0)]);
    let times: Vec<_> = unit.done.iter().map(|(at, _)| *at).collect();
    assert!(times[2] - times[1] > Duration::from_us(55), "{times:?}");
}

#[test]
fn a_host_that_takes_nothing_fills_the_buffer_and_no_more() {
    let mut unit = Unit::new(PART);
    unit.gives = false;
    unit.store.announce(command(0), 128 * 512);
    for part in 0..16 {
        unit.ask(0, part, MediumOp::Read, (u64::from(part) * 8, 8));
    }
    unit.rest();
    assert_eq!(unit.done.len(), 4, "32 sectors");
    unit.gives = true;
    unit.store.give(unit.now, command(0), 32);
    unit.listen();
    unit.rest();
    assert_eq!(unit.done.len(), 16);
    assert!(!unit.store.is_busy());
}

#[test]
fn what_is_only_looked_at_needs_no_host() {
    let mut unit = Unit::new(PART);
    unit.gives = false;
    unit.ask(0, 0, MediumOp::Verify, (0, 128));
    unit.rest();
    assert_eq!(unit.ends(), [(0, 0)]);
}

#[test]
fn a_write_that_is_given_up_does_not_hold_the_drive() {
    let mut unit = Unit::new(PART);
    unit.store.announce(command(0), 32 * 512);
    unit.ask(0, 0, WRITE, (0, 16));
    unit.store.release(unit.now, command(0));
    unit.ask(1, 0, MediumOp::Read, (64, 8));
    unit.rest();
    assert_eq!(unit.ends(), [(1, 0)]);
    assert!(!unit.store.is_busy());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn each_request_ends_once(
        requests in prop::collection::vec((0_usize..6, 0_u64..10_000, 1_u64..300, 0_u64..40), 1..80),
        queued in 0_u8..33,
    ) {
        let ops = [MediumOp::Read, WRITE, MediumOp::Write { fua: true }, MediumOp::Flush, MediumOp::Unmap, MediumOp::Verify];
        let mut unit = Unit::new(StorePart { queued, ..PART });
        for (slot, (op, lba, blocks, steps)) in (0..).zip(&requests) {
            unit.store.announce(command(slot), *blocks as u32 * 512);
            unit.ask(slot, 0, ops[*op], (*lba, *blocks));
            for _ in 0..*steps {
                unit.step();
            }
        }
        unit.rest();
        let mut slots: Vec<_> = unit.ends().into_iter().map(|(slot, _)| usize::from(slot)).collect();
        slots.sort_unstable();
        prop_assert_eq!(slots, (0..requests.len()).collect::<Vec<_>>());
        prop_assert!(!unit.store.is_busy());
    }
}

/// Three reads that fill the buffer each, of which the last is there before the second, whose dies
/// are busy with the first; they are taken in their order. Returns whether all end.
fn all_end(reads_fit: bool) -> bool {
    let mut unit = Unit::new(StorePart { reads_fit, ..PART });
    unit.gives = false;
    for (slot, lba) in [(0, 0), (1, 64), (2, 96)] {
        unit.read_in_pieces(slot, lba);
    }
    unit.rest();
    for owner in 0..3 {
        for _ in 0..8 {
            unit.store.give(unit.now, command(owner), 8);
            unit.listen();
            unit.rest();
        }
        if unit.ends().iter().filter(|(slot, _)| *slot == owner).count() < 4 {
            return false;
        }
    }
    true
}

#[test]
fn reads_that_fit_are_taken_one_after_the_other_and_others_would_stand_in_each_others_way() {
    assert!(all_end(true));
    assert!(!all_end(false));
}

#[test]
fn what_a_command_leaves_behind_makes_room() {
    let mut unit = Unit::new(PART);
    unit.gives = false;
    unit.store.announce(command(0), 32 * 512);
    unit.ask(0, 0, MediumOp::Read, (0, 32));
    unit.ask(1, 0, MediumOp::Read, (64, 32));
    unit.rest();
    assert_eq!(unit.ends(), [(0, 0)], "the buffer is full");
    unit.store.release(unit.now, command(0));
    unit.listen();
    unit.rest();
    assert_eq!(unit.ends(), [(0, 0), (1, 0)]);
}

#[test]
fn what_an_aborted_read_still_brings_needs_no_room_and_each_of_its_requests_ends() {
    let mut unit = Unit::new(StorePart { buffer_sectors: 16, ..PART });
    unit.gives = false;
    unit.read_in_pieces(1, 0);
    unit.rest();
    assert_eq!(unit.ends(), [(1, 0), (1, 1)], "the rest waits for room");
    unit.store.abandon(unit.now, command(1));
    unit.listen();
    unit.rest();
    assert_eq!(unit.ends(), [(1, 0), (1, 1), (1, 2), (1, 3)]);
    assert!(!unit.store.is_busy());
}

#[test]
fn what_comes_of_an_aborted_write_late_does_not_wait_for_the_rest() {
    let mut unit = Unit::new(PART);
    unit.store.announce(command(1), 32 * 512);
    unit.store.abandon(unit.now, command(1));
    unit.ask(1, 0, WRITE, (0, 8));
    unit.rest();
    assert_eq!(unit.ends(), [(1, 0)]);
    assert!(!unit.store.is_busy());
}

#[test]
fn a_write_that_is_aborted_in_the_middle_ends() {
    for queued in [0, 4] {
        let mut unit = Unit::new(StorePart { queued, ..PART });
        unit.store.announce(command(1), 32 * 512);
        unit.ask(1, 0, WRITE, (0, 8));
        unit.rest();
        assert_eq!(unit.ends(), [], "the drive waits for 24 blocks");
        unit.store.abandon(unit.now, command(1));
        unit.listen();
        unit.rest();
        assert_eq!(unit.ends(), [(1, 0)]);
        assert!(!unit.store.is_busy());
    }
}
