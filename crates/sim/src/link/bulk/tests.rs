//! Both ends over a link: scripts with times worked out by hand, ceilings, and random orders.

mod bursts;
mod damage;
mod endings;
mod marks;
mod proposals;

use super::*;
use crate::link::superspeed::{Side, TurnRound};
use crate::link::wire::{Wire, assert_script};
use bus::{Pipe, StreamId, TransferId};
use proptest::prelude::*;
use units::Duration;
use wire::usb::{Direction, EndpointAddress};

const IN: EndpointAddress = EndpointAddress::at::<1>(Direction::In);
const OUT: EndpointAddress = EndpointAddress::at::<2>(Direction::Out);

const fn plain(address: EndpointAddress, burst: u8) -> Endpoint {
    Endpoint::bulk(address, 1024, burst, 0)
}

const fn streamed(address: EndpointAddress) -> Endpoint {
    Endpoint::bulk(address, 1024, 16, 32)
}

const fn transfer(id: u64, bytes: u32) -> Transfer {
    Transfer { id: TransferId(id), bytes }
}

fn on(address: EndpointAddress, stream: u16) -> Pipe {
    Pipe { endpoint: address, stream: StreamId::new(stream) }
}

const BULK_IN: EndpointAddress = EndpointAddress::at::<3>(Direction::In);
const BULK_OUT: EndpointAddress = EndpointAddress::at::<4>(Direction::Out);

/// With streams and without, in both directions.
fn four_kinds(burst: u8) -> [Endpoint; 4] {
    let [into, out] = [IN, OUT].map(|address| Endpoint { burst, ..streamed(address) });
    [into, out, plain(BULK_IN, burst), plain(BULK_OUT, burst)]
}

/// A pipe of one of them.
fn pipe_of(kind: usize, stream: u16) -> Pipe {
    [on(IN, stream), on(OUT, stream), Pipe::plain(BULK_IN), Pipe::plain(BULK_OUT)][kind]
}

// A header packet takes 40 ns, a full data packet 2,112 ns, LGOOD and LCRD together 32 ns. Skips
// are due after 354 symbols: 4 ns each before what follows at once. The host answers 100 ns after
// what it answers has come, the device 200 ns.

#[test]
fn a_read_of_4_kib_is_one_burst_acknowledged_packet_by_packet() {
    let mut wire = Wire::new(&[plain(IN, 16)]);
    wire.both(Pipe::plain(IN), transfer(1, 4096));
    wire.run();
    assert_script(
        &wire,
        &[
            "    0    40 -> ACK 1 IN expects 0, takes 4",
            // Heard at 240, and LGOOD and LCRD have gone by then.
            "  240  2352 <- DATA 1 IN number 0, 1024 bytes",
            // Three skips for 1,056 symbols and the 16 before.
            " 2364  4476 <- DATA 1 IN number 1, 1024 bytes",
            " 2452  2492 -> ACK 1 IN expects 1, takes 3",
            // LGOOD and LCRD for the acknowledgement after the packet on the lane, and three skips.
            " 4520  6632 <- DATA 1 IN number 2, 1024 bytes",
            " 4576  4616 -> ACK 1 IN expects 2, takes 2",
            " 6676  8788 <- DATA 1 IN number 3, 1024 bytes, the last",
            " 6732  6772 -> ACK 1 IN expects 3, takes 1",
            " 8888  8928 -> ACK 1 IN expects 4, takes 0",
        ],
    );
    assert_eq!(wire.ended(Side::Host), [(1, 4096, End::Full)]);
    assert_eq!(wire.ended(Side::Device), [(1, 4096, End::Full)]);
}

#[test]
fn a_burst_is_cut_by_what_the_endpoint_takes() {
    let mut wire = Wire::new(&[plain(IN, 2)]);
    wire.both(Pipe::plain(IN), transfer(1, 3072));
    wire.run();
    let takes: Vec<_> = wire.script.iter().filter_map(|line| line.split("takes ").nth(1)).collect();
    // Two at most are in flight: after the first has come there is room for one more beside the
    // second, then for none.
    assert_eq!(takes, ["2", "2", "1", "0"]);
    assert_eq!(wire.ended(Side::Host), [(1, 3072, End::Full)]);
}

#[test]
fn a_read_over_streams_begins_with_prime_and_the_device_s_choice() {
    let mut wire = Wire::new(&[streamed(IN)]);
    wire.link_pair.host.queue(on(IN, 3), transfer(1, 2048)).unwrap();
    wire.link_pair.device.queue(on(IN, 3), transfer(1, 2048)).unwrap();
    wire.run();
    assert_script(
        &wire,
        &[
            "    0    40 -> ACK 1 IN stream Prime expects 0, takes 1",
            "  240   280 <- NRDY 1 IN stream Prime",
            "  280   320 <- ERDY 1 IN stream 3 for 2",
            "  420   460 -> ACK 1 IN stream 3 expects 0, takes 2",
            "  660  2772 <- DATA 1 IN stream 3 number 0, 1024 bytes",
            " 2784  4896 <- DATA 1 IN stream 3 number 1, 1024 bytes, the last",
            " 2872  2912 -> ACK 1 IN stream 3 expects 1, takes 1",
            " 4996  5036 -> ACK 1 IN stream 3 expects 2, takes 0",
        ],
    );
}

#[test]
fn an_endpoint_that_is_not_ready_twice_says_nrdy_and_erdy_each_time() {
    let mut wire = Wire::new(&[streamed(IN)]);
    wire.both(on(IN, 3), transfer(1, 1024));
    wire.link_pair.device.refuse(IN, 2);
    wire.run();
    assert_script(
        &wire,
        &[
            "    0    40 -> ACK 1 IN stream Prime expects 0, takes 1",
            "  240   280 <- NRDY 1 IN stream Prime",
            "  280   320 <- ERDY 1 IN stream 3 for 1",
            "  420   460 -> ACK 1 IN stream 3 expects 0, takes 1",
            "  660   700 <- NRDY 1 IN stream 3",
            "  700   740 <- ERDY 1 IN stream 3 for 1",
            "  840   880 -> ACK 1 IN stream 3 expects 0, takes 1",
            " 1080  1120 <- NRDY 1 IN stream 3",
            " 1120  1160 <- ERDY 1 IN stream 3 for 1",
            " 1260  1300 -> ACK 1 IN stream 3 expects 0, takes 1",
            " 1500  3612 <- DATA 1 IN stream 3 number 0, 1024 bytes, the last",
            " 3712  3752 -> ACK 1 IN stream 3 expects 1, takes 0",
        ],
    );
    assert_eq!(wire.ended(Side::Host), [(1, 1024, End::Full)]);
}

#[test]
fn whatever_is_not_ready_for_a_while_moves_in_the_end() {
    for kind in 0..4 {
        for (times, bytes) in [(1, 0), (2, 16), (7, 5000), (32, 40 << 10)] {
            let mut wire = Wire::new(&four_kinds(4));
            let pipe = pipe_of(kind, 5);
            wire.both(pipe, transfer(1, bytes));
            wire.link_pair.device.refuse(pipe.endpoint, times);
            wire.run();
            assert_eq!(wire.ended(Side::Host), [(1, bytes, End::Full)], "{kind} {times}");
            assert_eq!(wire.ended(Side::Device), [(1, bytes, End::Full)], "{kind} {times}");
            let refused = wire.script.iter().filter(|line| line.contains("NRDY") && !line.contains("Prime"));
            assert_eq!(refused.count(), usize::from(times), "{kind}");
        }
    }
}

#[test]
fn a_prime_for_another_stream_lets_a_refused_one_wait() {
    let mut wire = Wire::new(&[streamed(IN)]);
    wire.link_pair.host.queue(on(IN, 1), transfer(1, 16)).unwrap();
    wire.link_pair.device.queue(on(IN, 2), transfer(2, 16)).unwrap();
    wire.run();
    let said: Vec<_> = wire.script.iter().map(|line| &line[12..]).collect();
    assert_eq!(
        said,
        [
            "-> ACK 1 IN stream Prime expects 0, takes 1",
            "<- NRDY 1 IN stream Prime",
            "<- ERDY 1 IN stream 2 for 1",
            "-> ACK 1 IN stream NoStream expects 0, takes 0",
            "<- NRDY 1 IN stream NoStream",
        ]
    );
    wire.script.clear();
    wire.link_pair.host.queue(on(IN, 2), transfer(3, 16)).unwrap();
    wire.run();
    assert_eq!(wire.ended(Side::Host), [(3, 16, End::Full)]);
    assert!(wire.script[0].contains("Prime"));
}

#[test]
fn a_write_over_streams_says_prime_with_an_empty_packet() {
    let mut wire = Wire::new(&[streamed(OUT)]);
    wire.both(on(OUT, 3), transfer(1, 2048));
    wire.run();
    assert_script(
        &wire,
        &[
            "    0    64 -> DATA 2 OUT stream Prime number 0, 0 bytes, the last",
            "  264   304 <- NRDY 2 OUT stream Prime",
            "  304   344 <- ERDY 2 OUT stream 3 for 2",
            "  444  2556 -> DATA 2 OUT stream 3 number 0, 1024 bytes",
            " 2568  4680 -> DATA 2 OUT stream 3 number 1, 1024 bytes, the last",
            " 2756  2796 <- ACK 2 OUT stream 3 expects 1, takes 1",
            " 4880  4920 <- ACK 2 OUT stream 3 expects 2, takes 0",
        ],
    );
}

#[test]
fn what_a_device_without_room_refuses_comes_again_after_erdy() {
    let mut wire = Wire::new(&[plain(OUT, 16)]);
    wire.link_pair.host.queue(Pipe::plain(OUT), transfer(1, 3000)).unwrap();
    wire.run();
    // The second packet was in flight when the first was refused; both come again.
    assert_script(
        &wire,
        &[
            "    0  2112 -> DATA 2 OUT number 0, 1024 bytes",
            " 2120  4232 -> DATA 2 OUT number 1, 1024 bytes",
            " 2312  2352 <- NRDY 2 OUT",
        ],
    );
    wire.link_pair.device.queue(Pipe::plain(OUT), transfer(1, 1024)).unwrap();
    wire.run();
    assert_eq!(wire.ended(Side::Host), []);
    wire.link_pair.device.queue(Pipe::plain(OUT), transfer(2, 4096)).unwrap();
    wire.run();
    assert_eq!(wire.ended(Side::Host), [(1, 3000, End::Full)]);
    assert_eq!(wire.ended(Side::Device), [(1, 1024, End::Full), (2, 1976, End::Short)]);
}

#[test]
fn more_than_the_host_asked_for_is_an_overflow() {
    let mut wire = Wire::new(&[plain(IN, 16)]);
    wire.link_pair.host.queue(Pipe::plain(IN), transfer(1, 100)).unwrap();
    wire.link_pair.device.queue(Pipe::plain(IN), transfer(1, 101)).unwrap();
    wire.run();
    assert_eq!(wire.ended(Side::Host), [(1, 100, End::Overflow)]);
}

/// Megabytes per second of one endpoint that always has more to move.
fn rate_of(address: EndpointAddress, turn_round: TurnRound) -> f64 {
    let mut wire = Wire::between(turn_round, &[plain(address, 16)]);
    for id in 0..32 {
        wire.both(Pipe::plain(address), transfer(id, 1 << 20));
    }
    wire.run();
    assert_eq!(wire.ended(Side::Host).len(), 32);
    f64::from(32 << 20) / (wire.engine.now().as_ps() as f64 / 1e6)
}

#[test]
fn bursts_that_go_on_reach_what_the_link_carries() {
    // 1,024 bytes in 1,072 symbols, their skips, and a timestamp in each bus interval. A device
    // that is slow lets its host wait after each of 32 transfers.
    let slow = TurnRound::new(TurnRound::HOST_MAX, TurnRound::DEVICE_MAX);
    for (address, turn_round) in [(IN, slow), (OUT, slow), (IN, TurnRound::NONE), (OUT, TurnRound::NONE)] {
        let rate = rate_of(address, turn_round);
        assert!((474.0..474.95).contains(&rate), "{rate} MB/s");
    }
}

#[test]
fn a_burst_of_one_packet_waits_for_each_turn_of_both_ends() {
    let moved = |turn_round| {
        let mut wire = Wire::between(turn_round, &[plain(IN, 1)]);
        wire.both(Pipe::plain(IN), transfer(1, 64 << 10));
        wire.run();
        wire.engine.now()
    };
    let slow = TurnRound::new(TurnRound::HOST_MAX, TurnRound::DEVICE_MAX);
    let quick = TurnRound::new(Duration::from_ns(1_000), Duration::from_ns(100));
    // The last acknowledgement is heard as well.
    assert_eq!(moved(slow).since(moved(quick)), Duration::from_ns(64 * (2_000 + 300) + 300));
}

#[test]
fn two_endpoints_share_a_direction_burst_by_burst() {
    let other = EndpointAddress::at::<3>(Direction::In);
    let mut wire = Wire::new(&[plain(IN, 16), plain(other, 16)]);
    wire.both(Pipe::plain(IN), transfer(1, 1 << 20));
    wire.both(Pipe::plain(other), transfer(2, 16 << 10));
    wire.run();
    // The short one is done after a burst of the long one, not after all of it.
    assert_eq!(wire.ended(Side::Host), [(2, 16 << 10, End::Full), (1, 1 << 20, End::Full)]);
}

#[test]
fn an_invalid_packet_is_a_violation() {
    let ack = |expects: u8| {
        let expects = (0..expects).fold(Sequence::default(), |sequence, _| sequence.next());
        Message::Ack { endpoint: IN, stream: None, expects, packets: 1, is_pending: false, is_retry: false }
    };
    let mut device = DevicePort::new(&[plain(IN, 16)]);
    assert!(device.receive(&ack(1)).is_err());
    let mut host = HostPort::new(&[plain(IN, 16)]);
    assert!(host.receive(&ack(0)).is_err());
    let data = |address| Message::Data {
        endpoint: address,
        stream: None,
        sequence: Sequence::default(),
        piece: Some(PacketPayload { transfer: TransferId(0), offset: 0, bytes: 1 }),
        is_last: true,
    };
    assert!(host.receive(&data(IN)).is_err(), "nothing was asked for");
    assert!(host.receive(&data(OUT)).is_err(), "there is no such endpoint");
}

/// A transfer on one of four pipes, and when each end gets it.
fn arrivals() -> impl Strategy<Value = Vec<(usize, u32, u64, u64)>> {
    let bytes = prop_oneof![0_u32..3000, Just(1024), Just(4096), 0_u32..70_000];
    prop::collection::vec((0_usize..4, bytes, 0_u64..60, 0_u64..60), 0..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn whatever_order_each_end_gets_its_transfers_in_each_ends_once(arrivals in arrivals(), burst in 1_u8..=16) {
        let mut wire = Wire::new(&four_kinds(burst));
        // A separate pipe for each, since what lies behind another there could end with it; a few
        // on the plain ones.
        let pipes: Vec<_> = arrivals.iter().enumerate().map(|(nth, &(kind, ..))| {
            pipe_of(kind, u16::try_from(nth % 32).unwrap() + 1)
        }).collect();
        for round in 0..60 {
            for (nth, (&pipe, &(_, bytes, host_at, device_at))) in pipes.iter().zip(&arrivals).enumerate() {
                // In order on each pipe, so that what meets is of one size.
                let is_turn = |at: u64| at == round;
                let earlier = |which: fn(&(usize, u32, u64, u64)) -> u64| {
                    pipes[..nth].iter().zip(&arrivals).filter(|(other, _)| **other == pipe).map(|(_, arrival)| which(arrival)).max().unwrap_or(0)
                };
                let made = Transfer { id: TransferId(nth as u64), bytes };
                if is_turn(host_at.max(earlier(|arrival| arrival.2))) {
                    wire.link_pair.host.queue(pipe, made).unwrap();
                }
                if is_turn(device_at.max(earlier(|arrival| arrival.3))) {
                    wire.link_pair.device.queue(pipe, made).unwrap();
                }
            }
            wire.send_all();
            for _ in 0..20 {
                wire.step();
            }
        }
        wire.run();
        for side in [Side::Host, Side::Device] {
            let mut ended = wire.ended(side);
            ended.sort_unstable_by_key(|&(id, ..)| id);
            let expected: Vec<_> = arrivals.iter().zip(0..).map(|(&(_, bytes, ..), id)| (id, bytes, End::Full)).collect();
            prop_assert_eq!(ended, expected, "{:?}\n{}", side, wire.script.join("\n"));
        }
    }
}
