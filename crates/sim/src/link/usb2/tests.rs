//! Both ends over a bus: scripts with times worked out by hand, ceilings, faults, and random orders.

use super::*;
use crate::engine::{Engine, Event};
use crate::link::Joint;
use crate::link::bulk::{End, Endpoint, Progress, Transfer};
use crate::link::control::{ControlAnswer, ControlEnd, ControlEvent, ControlTransfer};
use crate::link::superspeed::Side;
use bus::{Pipe, TransferId};
use initiator::BusRequest;
use proptest::prelude::*;
use units::Instant;
use wire::usb::{Direction, EndpointAddress, SetupPacket};

#[derive(Clone, Copy, Debug)]
enum Happens {
    /// The bus goes on.
    Bus,
    /// The script does.
    Script,
}

impl Event for Happens {
    fn mark(&self) -> u64 {
        *self as u64
    }
}

/// A host and a device with a bus between them.
struct Wire {
    engine: Engine<Happens>,
    joint: Joint,
    script: Vec<String>,
    /// The script without its times.
    said: Vec<String>,
    progress: [Vec<Progress>; 2],
    /// What becomes of the packets that are sent next.
    fates: Vec<Fate>,
}

const IN: EndpointAddress = EndpointAddress::at::<1>(Direction::In);
const OUT: EndpointAddress = EndpointAddress::at::<2>(Direction::Out);
const STATUS: EndpointAddress = EndpointAddress::at::<3>(Direction::In);
const COMMAND: EndpointAddress = EndpointAddress::at::<4>(Direction::Out);

const fn transfer(id: u64, bytes: u32) -> Transfer {
    Transfer { id: TransferId(id), bytes }
}

impl Wire {
    fn new(rate: Rate, addresses: &[EndpointAddress], hubs: u8) -> Self {
        let endpoint = |&address| Endpoint::bulk(address, rate.packet_bytes(), 1, 0);
        let endpoints: Vec<_> = addresses.iter().map(endpoint).collect();
        let host = HostPort::new(rate, &endpoints, Pacing::default());
        Self {
            engine: Engine::new(),
            joint: Joint::on_bus(Bus::new(rate, hubs), host, DevicePort::new(rate, &endpoints)),
            script: Vec::new(),
            said: Vec::new(),
            progress: [Vec::new(), Vec::new()],
            fates: Vec::new(),
        }
    }

    fn high(addresses: &[EndpointAddress]) -> Self {
        Self::new(Rate::High, addresses, 0)
    }

    fn host(&mut self, address: EndpointAddress, id: u64, bytes: u32) {
        self.joint.host.queue(Pipe::plain(address), transfer(id, bytes)).unwrap();
    }

    fn device(&mut self, address: EndpointAddress, id: u64, bytes: u32) {
        self.joint.device.queue(Pipe::plain(address), transfer(id, bytes)).unwrap();
    }

    fn both(&mut self, address: EndpointAddress, id: u64, bytes: u32) {
        self.host(address, id, bytes);
        self.device(address, id, bytes);
    }

    /// Goes on to the next moment of the bus, and says whether there is one. What moved since is in `progress`.
    fn step(&mut self, mut fate: impl FnMut(Side, &Packet) -> Fate) -> bool {
        let Some(at) = self.joint.due_at(self.engine.now()) else { return false };
        self.engine.at(at, Happens::Bus).unwrap();
        self.engine.next().unwrap();
        for sent in self.joint.step(self.engine.now(), &mut fate).into_iter().flatten() {
            let arrow = if sent.from == Side::Host { "->" } else { "<-" };
            let (begins, ends) = (sent.begins.as_ps() / 1000, sent.ends.as_ps() / 1000);
            let fate = match sent.fate {
                Fate::Arrives => "",
                Fate::Damaged => ", damaged",
                Fate::Lost => ", lost",
            };
            self.script.push(format!("{begins:>6} {ends:>6} {arrow} {}{fate}", sent.packet));
            self.said.push(format!("{arrow} {}{fate}", sent.packet));
        }
        self.progress[0].extend(std::iter::from_fn(|| self.joint.host.poll_progress()));
        self.progress[1].extend(std::iter::from_fn(|| self.joint.device.poll_progress()));
        true
    }

    /// One step, with the fates of the script.
    fn go(&mut self) -> bool {
        let mut fates = std::mem::take(&mut self.fates);
        let goes_on = self.step(|_, _| if fates.is_empty() { Fate::Arrives } else { fates.remove(0) });
        self.fates = fates;
        goes_on
    }

    /// Goes on until nothing is left to do.
    fn run(&mut self) {
        while self.go() {}
    }

    /// Goes on until then.
    fn run_until(&mut self, at: Instant) {
        while self.joint.due_at(self.engine.now()).is_some_and(|due_at| due_at <= at) {
            self.go();
        }
        self.engine.at(at, Happens::Script).unwrap();
        self.engine.next().unwrap();
    }

    /// Goes on until a transfer ends at a side.
    fn until_ended(&mut self, side: Side, id: u64) {
        while !self.ended(side).iter().any(|&(ended, ..)| ended == id) {
            assert!(self.go(), "transfer {id} does not end\n{}", self.script.join("\n"));
        }
    }

    fn ended(&self, side: Side) -> Vec<(u64, u32, End)> {
        let ended = |progress: &Progress| Some((progress.id.0, progress.moved, progress.ended?));
        self.progress[side as usize].iter().filter_map(ended).collect()
    }
}

const fn us(us: u64) -> Instant {
    Instant::from_ps(us * 1_000_000)
}

fn assert_script(wire: &Wire, expected: &[&str]) {
    assert_eq!(wire.script, expected, "\n{}\n", wire.script.join("\n"));
}

// A byte takes 16.67 ns. A token has 19 of them, data of n bytes 19 + n, a handshake 17; the start of frame 19.

/// READ(10) of 4 KiB: when each packet begins and ends, in nanoseconds.
const READ_4K_IN_TURNS: [&str; 41] = [
    // Bytes 19 to 38 of the microframe.
    "   316    633 -> OUT 4",
    "   633   1483 -> DATA0 32 bytes",
    // It has been taken, and there is no room for another command yet.
    "  1483   1766 <- NYET",
    // Bytes 106 to 125. READ READY is there by now.
    "  1766   2083 -> IN 3",
    "  2083   2466 <- DATA0 4 bytes",
    "  2466   2750 -> ACK",
    // The host waits for data now, and for the next status. 567 bytes each, 9.45 us.
    "  2750   3066 -> IN 1",
    "  3066  11916 <- DATA0 512 bytes",
    " 11916  12200 -> ACK",
    // No status yet: 36 bytes, 0.6 us, and not again for 10 us.
    " 12200  12516 -> IN 3",
    " 12516  12800 <- NAK",
    " 12800  13116 -> IN 1",
    " 13116  21966 <- DATA1 512 bytes",
    " 21966  22250 -> ACK",
    " 22250  22566 -> IN 1",
    " 22566  31416 <- DATA0 512 bytes",
    " 31416  31700 -> ACK",
    " 31700  32016 -> IN 3",
    " 32016  32300 <- NAK",
    " 32300  32616 -> IN 1",
    " 32616  41466 <- DATA1 512 bytes",
    " 41466  41750 -> ACK",
    " 41750  42066 -> IN 1",
    " 42066  50916 <- DATA0 512 bytes",
    " 50916  51200 -> ACK",
    " 51200  51516 -> IN 3",
    " 51516  51800 <- NAK",
    " 51800  52116 -> IN 1",
    " 52116  60966 <- DATA1 512 bytes",
    " 60966  61250 -> ACK",
    " 61250  61566 -> IN 1",
    " 61566  70416 <- DATA0 512 bytes",
    " 70416  70700 -> ACK",
    " 70700  71016 -> IN 3",
    " 71016  71300 <- NAK",
    " 71300  71616 -> IN 1",
    " 71616  80466 <- DATA1 512 bytes",
    " 80466  80750 -> ACK",
    // 10 us after the NAK. The SENSE IU of 16 bytes has waited for it.
    " 81300  81616 -> IN 3",
    " 81616  82200 <- DATA1 16 bytes",
    " 82200  82483 -> ACK",
];

#[test]
fn a_read_of_4_kib_over_uas_in_turns_packet_by_packet() {
    let mut wire = Wire::high(&[STATUS, COMMAND, IN]);
    // The drive waits for a command; the host waits for a status and sends one: COMMAND IU with READ(10).
    wire.device(COMMAND, 1, 32);
    wire.host(STATUS, 1, 112);
    wire.host(COMMAND, 2, 32);
    wire.until_ended(Side::Device, 1);
    // READ READY, and the data.
    wire.device(STATUS, 2, 4);
    wire.device(IN, 3, 4096);
    wire.until_ended(Side::Host, 1);
    wire.host(STATUS, 3, 112);
    wire.host(IN, 4, 4096);
    wire.until_ended(Side::Device, 3);
    // SENSE IU, GOOD.
    wire.device(STATUS, 4, 16);
    wire.run();
    assert_script(&wire, &READ_4K_IN_TURNS);
    assert_eq!(
        wire.ended(Side::Host),
        [(2, 32, End::Full), (1, 4, End::Short), (4, 4096, End::Full), (3, 16, End::Short)]
    );
}

#[test]
fn a_device_without_room_is_asked_with_ping_until_it_has() {
    let mut wire = Wire::high(&[OUT]);
    wire.host(OUT, 1, 512);
    wire.run_until(us(25));
    wire.device(OUT, 1, 512);
    wire.run();
    assert_script(
        &wire,
        &[
            "   316    633 -> OUT 2",
            "   633   9483 -> DATA0 512 bytes",
            "  9483   9766 <- NAK",
            " 19766  20083 -> PING 2",
            " 20083  20366 <- NAK",
            // 10 us later the device has got room.
            " 30366  30683 -> PING 2",
            " 30683  30966 <- ACK",
            " 30966  31283 -> OUT 2",
            " 31283  40133 -> DATA0 512 bytes",
            " 40133  40416 <- NYET",
        ],
    );
    assert_eq!(wire.ended(Side::Host), [(1, 512, End::Full)]);
}

#[test]
fn an_endpoint_that_is_not_ready_says_nak_so_many_times_and_moves_then() {
    for address in [IN, OUT] {
        let mut wire = Wire::high(&[address]);
        wire.both(address, 1, 512);
        wire.joint.device.refuse(address, 5);
        wire.run();
        let naks = wire.said.iter().filter(|line| line.contains("NAK")).count();
        assert_eq!((naks, wire.ended(Side::Host)), (5, vec![(1, 512, End::Full)]));
        assert_eq!(wire.ended(Side::Device), [(1, 512, End::Full)]);
    }
}

#[test]
fn at_full_speed_data_is_sent_again_after_nak_and_nobody_pings() {
    let mut wire = Wire::new(Rate::Full, &[OUT], 0);
    wire.host(OUT, 1, 64);
    wire.run_until(us(60));
    wire.device(OUT, 1, 64);
    wire.run();
    assert_script(
        &wire,
        &[
            // A byte takes 666.7 ns. A token and the start of frame have 5, data 69, a handshake 3.
            "  3333   6666 -> OUT 2",
            "  6666  52666 -> DATA0 64 bytes",
            " 52666  54666 <- NAK",
            " 64666  68000 -> OUT 2",
            " 68000 114000 -> DATA0 64 bytes",
            "114000 116000 <- ACK",
        ],
    );
}

#[test]
fn an_in_packet_whose_ack_was_lost_comes_again_and_is_not_taken_twice() {
    let mut wire = Wire::high(&[IN]);
    wire.both(IN, 1, 600);
    wire.fates = vec![Fate::Arrives, Fate::Arrives, Fate::Lost];
    wire.run();
    assert_eq!(
        wire.said,
        [
            "-> IN 1",
            "<- DATA0 512 bytes",
            "-> ACK, lost",
            "-> IN 1",
            "<- DATA0 512 bytes",
            "-> ACK",
            "-> IN 1",
            "<- DATA1 88 bytes",
            "-> ACK",
        ]
    );
    assert_eq!(wire.ended(Side::Host), [(1, 600, End::Full)]);
    assert_eq!(wire.ended(Side::Device), [(1, 600, End::Full)]);
}

#[test]
fn an_out_packet_whose_handshake_was_lost_is_sent_again_and_not_taken_twice() {
    let mut wire = Wire::high(&[OUT]);
    wire.both(OUT, 1, 31);
    wire.fates = vec![Fate::Arrives, Fate::Arrives, Fate::Lost];
    wire.run();
    assert_script(
        &wire,
        &[
            "   316    633 -> OUT 2",
            "   633   1466 -> DATA0 31 bytes",
            "  1466   1750 <- NYET, lost",
            // 736 bit times, 1.533 us.
            "  3283   3600 -> OUT 2",
            "  3600   4433 -> DATA0 31 bytes",
            // The device has no room any more, but it knows the packet.
            "  4433   4716 <- ACK",
        ],
    );
    assert_eq!(wire.ended(Side::Host), [(1, 31, End::Full)]);
    assert_eq!(wire.ended(Side::Device), [(1, 31, End::Full)]);
}

#[test]
fn damaged_data_is_not_acknowledged_and_comes_again() {
    let mut wire = Wire::high(&[IN]);
    wire.both(IN, 1, 100);
    wire.fates = vec![Fate::Arrives, Fate::Damaged];
    wire.run();
    assert_eq!(
        wire.said,
        ["-> IN 1", "<- DATA0 100 bytes, damaged", "-> IN 1", "<- DATA0 100 bytes", "-> ACK"]
    );
    assert_eq!(wire.ended(Side::Host), [(1, 100, End::Full)]);
}

#[test]
fn what_is_not_answered_three_times_fails_and_halts_the_host_s_end() {
    let mut wire = Wire::high(&[OUT]);
    wire.both(OUT, 1, 512);
    wire.host(OUT, 2, 512);
    // Token and data, three times.
    wire.fates = vec![Fate::Lost; 6];
    wire.run();
    assert_eq!(wire.ended(Side::Host), [(1, 0, End::Failed)]);
    assert_eq!(wire.said.len(), 6);
    assert_eq!(wire.joint.host.poll_halt(), Some(OUT));
    // A reset, and the next one goes where the first did not.
    wire.joint.host.reset(OUT);
    wire.joint.device.clear_halt(OUT);
    wire.joint.host.resume(OUT);
    wire.run();
    assert_eq!(wire.ended(Side::Host), [(1, 0, End::Failed), (2, 512, End::Full)]);
    assert_eq!(wire.ended(Side::Device), [(1, 512, End::Full)]);
}

#[test]
fn an_answer_between_two_failures_makes_the_count_begin_anew() {
    let mut wire = Wire::high(&[OUT]);
    wire.host(OUT, 1, 512);
    let (lost, nak) = ([Fate::Lost; 4], [Fate::Arrives; 3]);
    // Twice nothing, NAK, and PING twice without an answer.
    wire.fates = [&lost[..], &nak, &[Fate::Lost; 2]].concat();
    wire.run_until(us(60));
    wire.device(OUT, 1, 512);
    wire.run();
    assert_eq!(wire.ended(Side::Host), [(1, 512, End::Full)]);
}

#[test]
fn a_stall_halts_until_both_ends_are_made_new_and_then_data0_comes() {
    let mut wire = Wire::high(&[IN]);
    wire.both(IN, 1, 512);
    wire.host(IN, 2, 512);
    wire.until_ended(Side::Device, 1);
    wire.joint.device.halt(IN);
    wire.run();
    assert_eq!(wire.said[3..], ["-> IN 1", "<- STALL"]);
    assert_eq!(wire.ended(Side::Host), [(1, 512, End::Full), (2, 0, End::Stalled)]);
    assert_eq!(wire.joint.host.poll_halt(), Some(IN));
    wire.joint.host.reset(IN);
    wire.joint.device.clear_halt(IN);
    wire.joint.host.resume(IN);
    wire.both(IN, 3, 10);
    wire.run();
    assert_eq!(wire.said[5..], ["-> IN 1", "<- DATA0 10 bytes", "-> ACK"]);
}

#[test]
fn a_transfer_of_whole_packets_that_is_short_ends_with_an_empty_one() {
    let mut wire = Wire::high(&[IN]);
    wire.host(IN, 1, 4096);
    wire.device(IN, 1, 1024);
    wire.device(IN, 2, 0);
    wire.run();
    assert_eq!(wire.said.iter().filter(|said| said.contains("DATA")).count(), 3);
    assert_eq!(wire.ended(Side::Host), [(1, 1024, End::Short)]);
}

#[test]
fn more_than_the_host_has_room_for_halts_it_and_is_not_acknowledged() {
    let mut wire = Wire::high(&[IN]);
    wire.host(IN, 1, 100);
    wire.device(IN, 1, 101);
    wire.run();
    assert_eq!(wire.said, ["-> IN 1", "<- DATA0 101 bytes"]);
    assert_eq!(wire.ended(Side::Host), [(1, 0, End::Overflow)]);
    assert!(wire.joint.host.is_halted(IN));
}

#[test]
fn a_transfer_is_taken_back_between_two_packets() {
    let mut wire = Wire::high(&[IN]);
    wire.both(IN, 1, 4096);
    wire.run_until(us(15));
    wire.joint.host.stop(IN);
    assert!(!wire.joint.host.is_quiet(IN), "the second packet is under way");
    let taken = wire.joint.host.withdraw(Pipe::plain(IN), TransferId(1));
    assert_eq!(taken, Err(crate::link::bulk::NotWithdrawn::UnderWay));
    wire.run();
    assert!(wire.joint.host.is_quiet(IN));
    assert_eq!(wire.joint.host.withdraw(Pipe::plain(IN), TransferId(1)), Ok(1024));
    // The device takes back what it has left, and both go on with the next packet number.
    assert!(wire.joint.device.withdraw(Pipe::plain(IN), TransferId(1)));
    wire.joint.host.resume(IN);
    wire.both(IN, 2, 3);
    wire.run();
    assert_eq!(wire.ended(Side::Host), [(2, 3, End::Full)]);
}

#[test]
fn an_endpoint_that_the_device_does_not_have_is_not_answered() {
    let endpoint = Endpoint::bulk(IN, 512, 1, 0);
    let host = HostPort::new(Rate::High, &[endpoint], Pacing::default());
    let mut wire = Wire::high(&[]);
    wire.joint = Joint::on_bus(Bus::new(Rate::High, 0), host, DevicePort::new(Rate::High, &[]));
    wire.host(IN, 1, 512);
    wire.run();
    assert_eq!(wire.said, ["-> IN 1"; 3]);
    assert_eq!(wire.ended(Side::Host), [(1, 0, End::Failed)]);
}

#[test]
fn a_hub_delays_what_the_device_hears_and_what_it_says() {
    let mut wire = Wire::new(Rate::High, &[IN], 1);
    wire.both(IN, 1, 4);
    wire.run();
    assert_script(
        &wire,
        &[
            "   316    633 -> IN 1",
            // Twice 38 bit times of 2.083 ns.
            "   791   1175 <- DATA0 4 bytes",
            "  1175   1458 -> ACK",
        ],
    );
}

fn setup(direction: Direction, length: u16) -> SetupPacket {
    let clear_halt = BusRequest::ClearHalt(IN).setup().unwrap();
    SetupPacket { direction, length, ..clear_halt }
}

/// A control transfer that the device answers as soon as it is asked: how it ends, and bytes of its data at each end.
fn control(wire: &mut Wire, setup: SetupPacket, answer: ControlAnswer) -> (Option<ControlEnd>, u16, u16) {
    wire.joint.host.control(ControlTransfer { id: TransferId(1), setup }).unwrap();
    let (mut end, mut moved, mut taken) = (None, 0, 0);
    while wire.go() {
        while let Some(event) = wire.joint.device.poll_control() {
            match event {
                ControlEvent::Asked(setup) => wire.joint.device.answer(setup, answer),
                ControlEvent::Moved(piece) => taken += piece.bytes,
            }
        }
        while let Some(progress) = wire.joint.host.poll_control() {
            moved = progress.moved;
            assert!(end.is_none(), "it ends once");
            end = progress.ended;
        }
    }
    (end, moved, taken)
}

#[test]
fn a_request_without_data_is_a_setup_and_an_empty_packet() {
    let mut wire = Wire::high(&[]);
    let ended = control(&mut wire, setup(Direction::Out, 0), ControlAnswer::Done(0));
    assert_eq!(ended, (Some(ControlEnd::Done), 0, 0));
    assert_script(
        &wire,
        &[
            "   316    633 -> SETUP 0",
            "   633   1083 -> DATA0 8 bytes",
            "  1083   1366 <- ACK",
            "  1366   1683 -> IN 0",
            "  1683   2000 <- DATA1 0 bytes",
            "  2000   2283 -> ACK",
        ],
    );
}

#[test]
fn data_for_the_host_begins_with_data1_and_its_status_goes_the_other_way() {
    let mut wire = Wire::high(&[]);
    let ended = control(&mut wire, setup(Direction::In, 255), ControlAnswer::Done(100));
    assert_eq!(ended, (Some(ControlEnd::Done), 100, 0));
    let data: Vec<_> = wire.said.iter().filter(|said| said.contains("DATA")).collect();
    assert_eq!(data, ["-> DATA0 8 bytes", "<- DATA1 64 bytes", "<- DATA0 36 bytes", "-> DATA1 0 bytes"]);
}

#[test]
fn a_refused_request_stalls_and_the_next_is_taken() {
    let mut wire = Wire::high(&[]);
    for direction in [Direction::In, Direction::Out] {
        let ended = control(&mut wire, setup(direction, 0), ControlAnswer::Stall);
        assert_eq!(ended, (Some(ControlEnd::Stalled), 0, 0));
    }
    let ended = control(&mut wire, setup(Direction::Out, 0), ControlAnswer::Done(0));
    assert_eq!(ended, (Some(ControlEnd::Done), 0, 0));
}

#[test]
fn a_request_that_nobody_hears_fails() {
    let mut wire = Wire::high(&[]);
    wire.fates = vec![Fate::Lost; 6];
    let ended = control(&mut wire, setup(Direction::Out, 0), ControlAnswer::Done(0));
    assert_eq!(ended, (Some(ControlEnd::Failed), 0, 0));
    assert_eq!(wire.said.len(), 6);
}

/// Bytes that an endpoint moves that always has more to move, and the frames that this takes.
fn moved_by(rate: Rate, address: EndpointAddress) -> (u64, u64) {
    let mut wire = Wire::new(rate, &[address], 0);
    let bytes = u32::from(rate.packet_bytes()) * 2048;
    for id in 0..4 {
        wire.both(address, id, bytes);
    }
    while wire.step(|_, _| Fate::Arrives) {
        wire.script.clear();
    }
    assert_eq!(wire.ended(Side::Host).len(), 4);
    (4 * u64::from(bytes), wire.engine.now().as_ps().div_ceil(rate.frame().as_ps()))
}

#[test]
fn endpoints_reach_what_the_bus_carries() {
    for address in [IN, OUT] {
        // 8,192 packets, of which thirteen fit into a microframe and nineteen into a frame.
        assert_eq!(moved_by(Rate::High, address), (8192 * 512, 631));
        assert_eq!(moved_by(Rate::Full, address), (8192 * 64, 432));
    }
}

#[test]
fn two_endpoints_share_the_bus_packet_by_packet() {
    let mut wire = Wire::high(&[IN, OUT]);
    wire.both(IN, 1, 64 << 10);
    wire.both(OUT, 2, 64 << 10);
    wire.run();
    let is_token = |said: &&String| said.contains("-> IN") || said.contains("-> OUT");
    let tokens: Vec<_> = wire.said.iter().filter(is_token).collect();
    assert_eq!(tokens, [["-> OUT 2", "-> IN 1"]; 128].concat());
}

/// A transfer on one of four endpoints, and when each end gets it.
fn arrivals() -> impl Strategy<Value = Vec<(usize, u32, u64, u64)>> {
    let bytes = prop_oneof![0_u32..1500, Just(512), Just(4096), 0_u32..10_000];
    prop::collection::vec((0_usize..4, bytes, 0_u64..60, 0_u64..60), 0..24)
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![6 => Just(Fate::Arrives), 1 => Just(Fate::Damaged), 1 => Just(Fate::Lost)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn whatever_is_lost_a_control_transfer_ends_once_with_all_its_data(
        rate in prop_oneof![Just(Rate::Full), Just(Rate::High)],
        is_in in prop::bool::ANY,
        length in 0_u16..300,
        fates in prop::collection::vec(fate(), 0..40),
    ) {
        let mut wire = Wire::new(rate, &[], 0);
        // Losses one by one, so that no packet is tried three times.
        wire.fates = fates.into_iter().flat_map(|fate| [Fate::Arrives, Fate::Arrives, fate, Fate::Arrives, Fate::Arrives, Fate::Arrives]).collect();
        let direction = if is_in { Direction::In } else { Direction::Out };
        let (end, moved, taken) = control(&mut wire, setup(direction, length), ControlAnswer::Done(length));
        let taken = if is_in { length } else { taken };
        prop_assert_eq!((end, moved, taken), (Some(ControlEnd::Done), length, length), "{}", wire.script.join("\n"));
    }

    #[test]
    fn whatever_is_lost_each_transfer_ends_once_and_its_data_is_in_order(
        rate in prop_oneof![Just(Rate::Full), Just(Rate::High)],
        arrivals in arrivals(),
        fates in prop::collection::vec(fate(), 1..200),
    ) {
        let mut wire = Wire::new(rate, &[IN, OUT, STATUS, COMMAND], 0);
        let addresses = [IN, OUT, STATUS, COMMAND];
        // No transaction may fail three times in a row, or its transfer would end.
        let (mut fates, mut in_a_row, mut is_spoilt, mut asked) = (fates.into_iter().cycle(), [0_u8; 4], [false; 4], 0);
        let mut fate = |_, packet: &Packet| {
            if let Packet::Token(ask) = packet {
                asked = addresses.iter().position(|address| *address == ask.endpoint()).unwrap_or(0);
                in_a_row[asked] = if std::mem::take(&mut is_spoilt[asked]) { in_a_row[asked] + 1 } else { 0 };
            }
            let fate = if in_a_row[asked] == 2 { Fate::Arrives } else { fates.next().unwrap_or_default() };
            is_spoilt[asked] |= fate != Fate::Arrives;
            fate
        };
        // On each endpoint in order, so that what meets is of one size.
        let mut rounds: [Vec<(u64, usize)>; 2] = [Vec::new(), Vec::new()];
        for (nth, &(kind, _, host_at, device_at)) in arrivals.iter().enumerate() {
            for (rounds, at) in rounds.iter_mut().zip([host_at, device_at]) {
                let earlier = rounds.iter().filter(|(_, other)| arrivals[*other].0 == kind).map(|(at, _)| *at).max();
                rounds.push((at.max(earlier.unwrap_or(0)), nth));
            }
        }
        for round in 0..60 {
            for &(_, nth) in rounds[0].iter().filter(|(at, _)| *at == round) {
                wire.host(addresses[arrivals[nth].0], nth as u64, arrivals[nth].1);
            }
            for &(_, nth) in rounds[1].iter().filter(|(at, _)| *at == round) {
                wire.device(addresses[arrivals[nth].0], nth as u64, arrivals[nth].1);
            }
            for _ in 0..20 {
                wire.step(&mut fate);
            }
        }
        while wire.step(&mut fate) {}
        // A device learns that its last packet was taken, though the ACK was lost, when it is asked again.
        wire.both(IN, 100, 0);
        wire.both(STATUS, 101, 0);
        wire.run();
        let mut expected: Vec<_> = arrivals.iter().zip(0..).map(|(&(_, bytes, ..), id)| (id, bytes, End::Full)).collect();
        expected.extend([(100, 0, End::Full), (101, 0, End::Full)]);
        expected.sort_unstable_by_key(|&(id, ..)| id);
        for side in [Side::Host, Side::Device] {
            let mut ended = wire.ended(side);
            ended.sort_unstable_by_key(|&(id, ..)| id);
            prop_assert_eq!(&ended, &expected, "{:?}\n{}", side, wire.script.join("\n"));
            // A receiver gets each piece of the sender's transfer once, in order.
            for &(id, bytes, _) in &expected {
                let pieces = wire.progress[side as usize].iter().filter_map(|progress| progress.piece);
                let mut at = 0;
                let mut count = 0;
                for piece in pieces.filter(|piece| piece.transfer == TransferId(id)) {
                    prop_assert_eq!(piece.offset, at);
                    at += u32::from(piece.bytes);
                    count += 1;
                }
                prop_assert!(count == 0 || at == bytes);
            }
        }
    }
}
