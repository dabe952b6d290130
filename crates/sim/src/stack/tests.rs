//! Requests over each kind of driver.

use super::*;
use crate::engine::Random;
use crate::machine::xhci::{Drive, DriveParts, HostCosts, Packing, Setup, XhciMachine};
use crate::machine::{FixedLatencyDrive, HostTransfer, Observer};
use crate::xhc::Part;
use device::Transports;
use device::command::Limits;
use initiator::turbo::LookAhead;
use std::cell::RefCell;
use std::rc::Rc;
use units::Duration;

const KIB: u32 = 1 << 10;
/// Blocks of 4 KiB.
const BLOCKS: u32 = 4096;

/// Commands passed to the transport, and their bus traffic.
#[derive(Debug, Default)]
struct Log {
    bytes: Vec<u32>,
    in_flight: usize,
    most: usize,
    /// Command wrappers of BOT.
    wrappers: usize,
}

impl Observer for Log {
    fn began(&mut self, _: Instant, command: &Command) {
        self.bytes.push(command.transfer_len());
        self.in_flight += 1;
        self.most = self.most.max(self.in_flight);
    }

    fn ended(&mut self, _: Instant, _: CommandId, _: &Outcome) {
        self.in_flight -= 1;
    }

    fn submitted(&mut self, _: Instant, transfer: &HostTransfer, _: &[u8]) {
        self.wrappers += usize::from(transfer.command.is_none() && transfer.length == 31);
    }
}

/// A drive with 20 us latency that serves 8 requests at once.
fn stack_on(profile: &DriverProfile) -> (Stack<XhciMachine>, Rc<RefCell<Log>>) {
    let drive = Drive { protocol: profile.transport, at_once: 8, ..Drive::uas() };
    let drive = drive.blocks(BLOCKS, BlockSize::B4096).latency(Duration::from_us(20));
    let machine = Setup::new(profile.host(Part::CHIPSET)).with(1, drive).power_on().unwrap();
    let mut stack = Stack::new(machine, profile).unwrap();
    let log = Rc::new(RefCell::new(Log::default()));
    stack.machine_mut().observe(0, Box::new(Rc::clone(&log)));
    (stack, log)
}

fn read(id: u64, lba: u64, blocks: u32) -> Request {
    Request { id, direction: Direction::In, lba, blocks }
}

fn write(id: u64, lba: u64, blocks: u32) -> Request {
    Request { direction: Direction::Out, ..read(id, lba, blocks) }
}

/// Submits all at once and waits for all; returns the elapsed time.
fn run(stack: &mut Stack<XhciMachine>, requests: &[Request]) -> Duration {
    let began = stack.now();
    requests.iter().for_each(|request| stack.submit(0, request).unwrap());
    let mut ended: Vec<_> = requests.iter().map(|_| stack.next().unwrap().expect("each ends")).collect();
    assert!(ended.iter().all(|ended| ended.result == Ok(())), "{ended:?}");
    ended.sort_by_key(|ended| ended.id);
    let mut ids: Vec<_> = requests.iter().map(|request| request.id).collect();
    ids.sort_unstable();
    assert_eq!(ended.iter().map(|ended| ended.id).collect::<Vec<_>>(), ids);
    assert_eq!(stack.misplaced_blocks(0), 0);
    stack.now() - began
}

#[test]
fn a_request_of_2_mib_over_bot_is_32_commands_one_after_the_other() {
    let (mut stack, log) = stack_on(&DriverProfile::BOT);
    run(&mut stack, &[read(1, 0, 512)]);
    let log = log.borrow();
    assert_eq!(log.bytes, [64 * KIB; 32]);
    assert_eq!((log.most, log.wrappers), (1, 32));
}

#[test]
fn over_uas_the_pieces_of_one_request_overlap() {
    let (mut stack, log) = stack_on(&DriverProfile::UAS);
    run(&mut stack, &[read(1, 0, 512)]);
    let log = log.borrow();
    assert_eq!((log.bytes.as_slice(), log.most), ([512 * KIB; 4].as_slice(), 4));
}

#[test]
fn pieces_in_turn_leave_the_rest_of_the_queue_to_other_requests() {
    let in_turn = DriverProfile { pieces_in_turn: true, ..DriverProfile::UAS };
    let (mut stack, log) = stack_on(&in_turn);
    run(&mut stack, &[write(1, 0, 320)]);
    assert_eq!(
        (log.borrow().bytes.as_slice(), log.borrow().most),
        ([512 * KIB, 512 * KIB, 256 * KIB].as_slice(), 1)
    );
    run(&mut stack, &[read(2, 0, 320), read(3, 1000, 320)]);
    assert_eq!((log.borrow().bytes.len(), log.borrow().most), (9, 2));
}

#[test]
fn driver_streams_carry_two_commands() {
    let more = Duration::from_us(50);
    let own = DriverProfile { streams: Streams::Software(more), ..DriverProfile::UAS };
    let requests: Vec<_> = (0..8).map(|id| read(id, 100 * id, 1)).collect();
    let [two, many] = [own, DriverProfile::UAS].map(|profile| {
        let (mut stack, log) = stack_on(&profile);
        let took = run(&mut stack, &requests);
        (log.borrow().most, took)
    });
    assert_eq!((two.0, many.0), (2, 8));
    assert!(two.1 > Duration::from_us(8 * 50), "each costs more: {}", two.1);
}

#[test]
fn turbo_packs_neighbours_into_one_command() {
    let (mut stack, log) = stack_on(&DriverProfile::TURBO);
    let all = |request: fn(u64, u64, u32) -> Request| -> Vec<_> {
        (0..16).map(|id| request(id, 40 + id, 1)).collect()
    };
    run(&mut stack, &all(write));
    assert_eq!((log.borrow().bytes.len(), log.borrow().wrappers), (16, 1));
    run(&mut stack, &all(read));
    assert_eq!((log.borrow().bytes.len(), log.borrow().wrappers), (32, 2));
}

#[test]
fn turbo_moves_1_mib_at_once() {
    let (mut stack, log) = stack_on(&DriverProfile::TURBO);
    run(&mut stack, &[write(1, 0, 512)]);
    assert_eq!((log.borrow().bytes.as_slice(), log.borrow().wrappers), ([KIB * KIB; 2].as_slice(), 2));
}

#[test]
fn turbo_waits_at_most_its_look_ahead() {
    let looks = |look_ahead| {
        let packing = Some(Packing { look_ahead, ..Packing::TURBO });
        // Interrupts come at once, so that none of them hides the time.
        let (mut stack, _) =
            stack_on(&DriverProfile { packing, moderation: Duration::ZERO, ..DriverProfile::TURBO });
        run(&mut stack, &[read(1, 7, 1)])
    };
    let ahead = Duration::from_us(28);
    let longer = looks(LookAhead::Always(ahead)).as_ps() - looks(LookAhead::Never).as_ps();
    // One of them may come upon the answer to a timestamp: LGOOD and LCRD, 16 symbols of 2 ns.
    assert!(longer.abs_diff(ahead.as_ps()) <= 32_000, "{longer}");
}

#[test]
fn turbo_does_not_wait_when_what_comes_next_is_no_neighbour() {
    let looks = |look_ahead| {
        let packing = Some(Packing { look_ahead, ..Packing::TURBO });
        let (mut stack, _) = stack_on(&DriverProfile { packing, ..DriverProfile::TURBO });
        run(&mut stack, &[read(1, 7, 1), read(2, 100, 1)])
    };
    // The first has another one behind it; the second waits while the first is in flight.
    assert_eq!(looks(LookAhead::Always(Duration::from_us(5))), looks(LookAhead::Never));
}

#[test]
fn a_driver_that_merges_makes_one_command_of_neighbours_in_its_line() {
    let packing = Some(Packing { merges: true, look_ahead: LookAhead::Never, bytes_max: 16 * KIB });
    let (mut stack, log) = stack_on(&DriverProfile { packing, depth: 1, ..DriverProfile::TURBO });
    // The first is in flight at once; 5, 4, 6 and 3 are merged, 2 would make the run too long, and
    // 9 is not adjacent.
    let places = [0, 5, 4, 6, 3, 2, 9];
    let requests: Vec<_> = (0..).zip(places).map(|(id, lba)| write(id, lba, 1)).collect();
    run(&mut stack, &requests);
    assert_eq!(log.borrow().bytes, [4 * KIB, 16 * KIB, 4 * KIB, 4 * KIB]);
    assert_eq!(stack.merged(0), 3);
    run(&mut stack, &[read(0, 0, 10)]);
}

const COSTS: HostCosts = HostCosts {
    command: Duration::from_us(5),
    transfer: Duration::from_us(2),
    completion: Duration::from_us(3),
    finish: Duration::from_us(4),
    interrupt: Duration::from_us(10),
    wake: Duration::from_us(20),
    idle_after: Duration::from_us(10),
    pack: Duration::ZERO,
    copied_byte_ps: 0,
};

#[test]
fn reads_return_written_data_with_every_driver() {
    let merging = Packing { merges: true, ..Packing::TURBO };
    let profiles = [
        DriverProfile::BOT,
        DriverProfile::UAS,
        DriverProfile::TURBO,
        DriverProfile { packing: Some(merging), depth: 2, ..DriverProfile::TURBO },
        DriverProfile { streams: Streams::Software(Duration::from_us(3)), ..DriverProfile::UAS },
    ];
    for profile in profiles {
        let profile = DriverProfile { costs: COSTS, ..profile };
        let digest = |seed| {
            let (mut stack, _) = stack_on(&profile);
            let mut random = Random::new(seed, "requests");
            for _ in 0..20 {
                let requests: Vec<_> = (0..1 + random.below(24))
                    .map(|id| {
                        let (lba, blocks) = (random.below(64), 1 + random.below(20) as u32);
                        if random.below(2) == 0 { read(id, lba, blocks) } else { write(id, lba, blocks) }
                    })
                    .collect();
                run(&mut stack, &requests);
            }
            stack.machine().digest()
        };
        assert_eq!(digest(7), digest(7), "equal machines have equal digests");
        assert_ne!(digest(7), digest(8));
    }
}

/// A drive that accepts `commands` and answers more with TASK SET FULL.
fn stack_on_a_drive_of(commands: u16) -> Stack<XhciMachine> {
    let occupant = |_, _: &Drive| {
        let limits = Limits { commands, buffer_bytes: 1 << 20, segment_bytes: 64 << 10 };
        let plain =
            FixedLatencyDrive::numbered(BlockCount(BLOCKS.into()), BlockSize::B4096).with_limits(limits);
        DriveParts { device: plain.device_with(Transports::Dual, bus::Speed::Super), plain, enclosure: None }
    };
    let host = DriverProfile::UAS.host(Part::CHIPSET);
    let machine = Setup::new(host).with(1, Drive::uas()).power_on_with(occupant, Vec::new()).unwrap();
    Stack::new(machine, &DriverProfile::UAS).unwrap()
}

#[test]
fn a_read_that_ends_with_task_set_full_has_read_no_block() {
    let mut stack = stack_on_a_drive_of(2);
    // What it wrote and read is in the memory of the commands that come after it.
    run(&mut stack, &[write(0, 0, 1), read(1, 0, 1)]);
    let requests: Vec<_> = (0..4).map(|id| read(id, 100 * (id + 1), 1)).collect();
    run(&mut stack, &requests);
    assert!(stack.counts(0).unwrap().busy > 0, "the drive was never full");
}

#[test]
fn a_read_of_wrong_blocks_is_counted() {
    let mut stack = stack_on_a_drive_of(2);
    stack.submit(0, &read(0, 7, 2)).unwrap();
    // The driver takes the answer for one about other blocks.
    stack.units[0].sent.iter_mut().flatten().for_each(|sent| sent.reads = Some(Lba(8)));
    assert_eq!(stack.next().unwrap().map(|ended| ended.result), Some(Ok(())));
    assert_eq!(stack.misplaced_blocks(0), 2);
}

#[test]
fn a_request_that_the_drive_has_no_blocks_for_is_refused() {
    let (mut stack, _) = stack_on(&DriverProfile::UAS);
    assert_eq!(stack.capacity(0), Some((BlockSize::B4096, BlockCount(BLOCKS.into()))));
    for (lba, blocks) in [(0, 0), (u64::from(BLOCKS), 1), (u64::MAX, 2)] {
        assert_eq!(stack.submit(0, &read(1, lba, blocks)), Err(RequestRefusal::OutOfRange));
    }
    assert_eq!(stack.submit(1, &read(1, 0, 1)), Err(RequestRefusal::Gone));
    assert_eq!(stack.next(), Ok(None));
}

#[test]
fn the_request_queue_is_bounded() {
    let (mut stack, _) = stack_on(&DriverProfile::BOT);
    let taken = (0..).take_while(|id| stack.submit(0, &read(*id, 1, 1)).is_ok()).count();
    assert_eq!(taken, REQUESTS_MAX + 1);
    assert_eq!(stack.submit(0, &read(0, 1, 1)), Err(RequestRefusal::Full));
}

#[test]
fn detaching_completes_every_request_once() {
    for profile in [DriverProfile::BOT, DriverProfile::TURBO, DriverProfile::UAS] {
        let (mut stack, _) = stack_on(&DriverProfile { costs: COSTS, ..profile });
        (0..100).for_each(|id| stack.submit(0, &read(id, 10 * id, 4)).unwrap());
        for _ in 0..3 {
            assert!(stack.next().unwrap().unwrap().result.is_ok());
        }
        stack.machine_mut().unplug(0);
        let ends: Vec<_> = std::iter::from_fn(|| stack.next().unwrap()).collect();
        assert_eq!(ends.len(), 97, "{:?}", profile.transport);
        // Commands in flight at that time may have completed.
        let failed = ends.iter().filter(|end| end.result.is_err()).count();
        assert!(failed >= 97 - usize::from(profile.depth()), "{failed}");
    }
}

#[test]
fn next_until_ends_when_the_time_has_come() {
    let (mut stack, _) = stack_on(&DriverProfile::BOT);
    stack.submit(0, &read(1, 0, 1)).unwrap();
    let until = stack.now() + Duration::from_us(3);
    assert_eq!((stack.next_until(until), stack.now()), (Ok(None), until));
    assert!(stack.next_until(until + Duration::from_ms(1)).unwrap().is_some());
}
