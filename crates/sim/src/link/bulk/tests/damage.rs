//! Packets that arrive damaged or not at all: what it costs, to the symbol, and that nothing else
//! is lost.
//!
//! Ports take no time here, so that each time is the link's.

use super::*;
use crate::link::Fate;
use std::collections::BTreeMap;
use units::{Duration, Instant};

/// Transfers by kind of pipe, stream and bytes, of which the nth packet that crosses suffers
/// `fates[n]`.
fn moved(sizes: &[(usize, u16, u32)], fates: BTreeMap<usize, Fate>, burst: u8) -> Wire {
    let mut wire = Wire::at_once(&four_kinds(burst));
    wire.fates = fates;
    for (&(kind, stream, bytes), id) in sizes.iter().zip(0..) {
        wire.both(pipe_of(kind, stream), transfer(id, bytes));
    }
    wire.run();
    wire
}

/// A read of four packets, of which the nth that crosses suffers.
fn read(nth: usize, fate: Fate) -> Wire {
    let mut wire = Wire::at_once(&[plain(IN, 16)]);
    wire.fates.insert(nth, fate);
    wire.both(Pipe::plain(IN), transfer(1, 4096));
    wire.run();
    assert_eq!(wire.ended(Side::Host), [(1, 4096, End::Full)]);
    assert_eq!(wire.ended(Side::Device), [(1, 4096, End::Full)]);
    wire
}

#[test]
fn a_damaged_header_is_sent_again_after_lbad_and_lrty() {
    let wire = read(0, Fate::HeaderDamaged);
    assert_script(
        &wire,
        &[
            "    0    40 -> ACK 1 IN expects 0, takes 4",
            // LBAD comes back from 40 to 56, LRTY goes from 56 to 72.
            "   72   112 -> ACK 1 IN expects 0, takes 4",
            "  144  2256 <- DATA 1 IN number 0, 1024 bytes",
            " 2268  4380 <- DATA 1 IN number 1, 1024 bytes",
            " 2288  2328 -> ACK 1 IN expects 1, takes 3",
            " 4424  6536 <- DATA 1 IN number 2, 1024 bytes",
            " 4412  4452 -> ACK 1 IN expects 2, takes 2",
            " 6580  8692 <- DATA 1 IN number 3, 1024 bytes, the last",
            " 6568  6608 -> ACK 1 IN expects 3, takes 1",
            " 8724  8764 -> ACK 1 IN expects 4, takes 0",
        ],
    );
}

#[test]
fn what_was_sent_after_a_damaged_packet_comes_again_in_order() {
    let wire = read(1, Fate::HeaderDamaged);
    assert_script(
        &wire,
        &[
            "    0    40 -> ACK 1 IN expects 0, takes 4",
            "   72  2184 <- DATA 1 IN number 0, 1024 bytes",
            // LBAD is back at 2200, in the middle of this, to which no one listens.
            " 2196  4308 <- DATA 1 IN number 1, 1024 bytes",
            // Three skips, 12 ns, and LRTY, 16 ns.
            " 4336  6448 <- DATA 1 IN number 0, 1024 bytes",
            " 6460  8572 <- DATA 1 IN number 1, 1024 bytes",
            " 6480  6520 -> ACK 1 IN expects 1, takes 3",
            " 8616 10728 <- DATA 1 IN number 2, 1024 bytes",
            " 8604  8644 -> ACK 1 IN expects 2, takes 2",
            "10772 12884 <- DATA 1 IN number 3, 1024 bytes, the last",
            "10760 10800 -> ACK 1 IN expects 3, takes 1",
            "12916 12956 -> ACK 1 IN expects 4, takes 0",
        ],
    );
}

#[test]
fn a_damaged_payload_is_asked_for_again_and_what_followed_it_is_not_taken() {
    let wire = read(2, Fate::PayloadDamaged);
    assert_script(
        &wire,
        &[
            "    0    40 -> ACK 1 IN expects 0, takes 4",
            "   72  2184 <- DATA 1 IN number 0, 1024 bytes",
            " 2196  4308 <- DATA 1 IN number 1, 1024 bytes",
            " 2216  2256 -> ACK 1 IN expects 1, takes 3",
            // On its way when the host asks again, and given up.
            " 4352  6464 <- DATA 1 IN number 2, 1024 bytes",
            " 4340  4380 -> ACK 1 IN expects 1 again, takes 3",
            // LGOOD and LCRD, and three skips.
            " 6508  8620 <- DATA 1 IN number 1, 1024 bytes",
            " 8632 10744 <- DATA 1 IN number 2, 1024 bytes",
            " 8652  8692 -> ACK 1 IN expects 2, takes 2",
            "10788 12900 <- DATA 1 IN number 3, 1024 bytes, the last",
            "10776 10816 -> ACK 1 IN expects 3, takes 1",
            "12932 12972 -> ACK 1 IN expects 4, takes 0",
        ],
    );
}

#[test]
fn a_damaged_last_packet_is_asked_for_again() {
    let wire = read(6, Fate::PayloadDamaged);
    let said: Vec<_> = wire.script[6..].iter().map(|line| &line[12..]).collect();
    assert_eq!(
        said,
        [
            "<- DATA 1 IN number 3, 1024 bytes, the last",
            "-> ACK 1 IN expects 3, takes 1",
            "-> ACK 1 IN expects 3 again, takes 1",
            "<- DATA 1 IN number 3, 1024 bytes, the last",
            "-> ACK 1 IN expects 4, takes 0",
        ]
    );
}

#[test]
fn a_write_goes_back_to_what_was_damaged() {
    let mut wire = Wire::at_once(&[plain(OUT, 16)]);
    wire.fates.insert(0, Fate::PayloadDamaged);
    wire.both(Pipe::plain(OUT), transfer(1, 3072));
    wire.run();
    assert_script(
        &wire,
        &[
            "    0  2112 -> DATA 2 OUT number 0, 1024 bytes",
            " 2120  4232 -> DATA 2 OUT number 1, 1024 bytes",
            " 2144  2184 <- ACK 2 OUT expects 0 again, takes 3",
            " 4280  6392 -> DATA 2 OUT number 0, 1024 bytes",
            " 6400  8512 -> DATA 2 OUT number 1, 1024 bytes",
            " 6424  6464 <- ACK 2 OUT expects 1, takes 2",
            " 8560 10672 -> DATA 2 OUT number 2, 1024 bytes, the last",
            " 8544  8584 <- ACK 2 OUT expects 2, takes 1",
            "10704 10744 <- ACK 2 OUT expects 3, takes 0",
        ],
    );
}

#[test]
fn the_first_packet_of_a_stream_may_be_damaged() {
    for (address, nth) in [(IN, 4), (OUT, 3)] {
        let mut wire = Wire::at_once(&[streamed(address)]);
        wire.fates.insert(nth, Fate::PayloadDamaged);
        wire.both(on(address, 3), transfer(1, 2048));
        wire.run();
        assert!(wire.script[nth].contains("number 0, 1024 bytes"), "{}", wire.script[nth]);
        assert!(wire.script.iter().any(|line| line.contains("expects 0 again, takes 2")));
        assert_eq!(wire.ended(Side::Host), [(1, 2048, End::Full)]);
        assert_eq!(wire.ended(Side::Device), [(1, 2048, End::Full)]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn whatever_is_damaged_each_transfer_moves_whole(
        sizes in prop::collection::vec((0_usize..4, 1_u16..4, 0_u32..20_000), 1..12),
        fates in prop::collection::btree_map(0_usize..150, prop_oneof![Just(Fate::HeaderDamaged), Just(Fate::PayloadDamaged)], 0..40),
        burst in 1_u8..=16,
    ) {
        let wire = moved(&sizes, fates, burst);
        for side in [Side::Host, Side::Device] {
            let mut ended = wire.ended(side);
            ended.sort_unstable_by_key(|&(id, ..)| id);
            let expected: Vec<_> = sizes.iter().zip(0..).map(|(&(.., bytes), id)| (id, bytes, End::Full)).collect();
            prop_assert_eq!(ended, expected, "{:?}\n{}", side, wire.script.join("\n"));
        }
    }
}

// A host waits 7.6 ms for an answer, from when it was lost.

#[test]
fn a_lost_request_is_repeated_after_7_6_ms() {
    let mut wire = Wire::at_once(&[plain(IN, 16)]);
    wire.fates.insert(0, Fate::Lost);
    wire.both(Pipe::plain(IN), transfer(1, 100));
    wire.run();
    assert_script(
        &wire,
        &[
            "    0    40 -> ACK 1 IN expects 0, takes 1",
            "7600000 7600040 -> ACK 1 IN expects 0 again, takes 1",
            "7600072 7600336 <- DATA 1 IN number 0, 100 bytes, the last",
            "7600368 7600408 -> ACK 1 IN expects 1, takes 0",
        ],
    );
}

#[test]
fn data_that_is_lost_in_a_burst_is_missed_with_the_next_packet() {
    let wire = read(2, Fate::Lost);
    assert!(wire.script[6].ends_with("-> ACK 1 IN expects 1 again, takes 3"), "{}", wire.script.join("\n"));
    // What followed comes again, and no time-out is waited for. One is looked at when it is over.
    assert!(wire.script.last().unwrap().starts_with("15056"));
}

#[test]
fn an_acknowledgement_that_is_lost_is_made_good_by_the_next() {
    let wire = read(3, Fate::Lost);
    assert_eq!(wire.script.len(), 9);
}

#[test]
fn a_write_whose_last_acknowledgement_is_lost_is_not_taken_twice() {
    let mut wire = Wire::at_once(&[plain(OUT, 16)]);
    wire.fates.insert(2, Fate::Lost);
    wire.both(Pipe::plain(OUT), transfer(1, 1024));
    wire.link_pair.device.queue(Pipe::plain(OUT), transfer(2, 1024)).unwrap();
    wire.fates.insert(1, Fate::Lost);
    wire.run();
    let said: Vec<_> = wire.script.iter().map(|line| line.split_once(['-', '<']).unwrap().1).collect();
    assert_eq!(
        said,
        [
            "> DATA 2 OUT number 0, 1024 bytes, the last",
            "- ACK 2 OUT expects 1, takes 1",
            "> DATA 2 OUT number 0, 1024 bytes, the last",
            "> DATA 2 OUT number 0, 1024 bytes, the last",
            "- ACK 2 OUT expects 1, takes 1",
        ]
    );
    assert_eq!(wire.ended(Side::Host), [(1, 1024, End::Full)]);
    assert_eq!(wire.ended(Side::Device), [(1, 1024, End::Full)]);
}

#[test]
fn three_failed_tries_fail_the_transfer_and_halt_the_endpoint() {
    for address in [IN, OUT] {
        let mut wire = Wire::at_once(&[plain(address, 16)]);
        wire.fates = (0..3).map(|nth| (nth, Fate::Lost)).collect();
        wire.both(Pipe::plain(address), transfer(1, 100));
        wire.run();
        assert_eq!(wire.script.len(), 3, "{}", wire.script.join("\n"));
        assert_eq!(wire.engine.now(), Instant::ZERO + Duration::from_us(3 * 7_600));
        assert_eq!(wire.ended(Side::Host), [(1, 0, End::Failed)]);
        assert_eq!(wire.link_pair.host.poll_halt(), Some(address));
        assert!(wire.link_pair.host.has_failed(address));
        wire.link_pair.host.queue(Pipe::plain(address), transfer(2, 100)).unwrap();
        wire.link_pair.host.reset_for_retry(address);
        wire.link_pair.host.resume(address);
        wire.run();
        assert_eq!(wire.ended(Side::Host)[1..], [(2, 100, End::Full)], "{}", wire.script.join("\n"));
    }
}

#[test]
fn what_a_device_sent_before_three_failed_tries_is_sent_again() {
    for packets in 1..=3 {
        let mut wire = Wire::at_once(&[plain(IN, 16)]);
        // The data, and the host asking for it again, twice.
        wire.fates = (1..packets + 3).map(|nth| (nth, Fate::Lost)).collect();
        wire.both(Pipe::plain(IN), transfer(1, 1024 * packets as u32));
        wire.run();
        assert_eq!(wire.ended(Side::Host), [(1, 0, End::Failed)]);
        wire.link_pair.host.queue(Pipe::plain(IN), transfer(2, 1024 * packets as u32)).unwrap();
        wire.link_pair.host.reset_for_retry(IN);
        wire.link_pair.host.resume(IN);
        wire.run();
        let script = wire.script.join("\n");
        assert_eq!(wire.ended(Side::Host)[1..], [(2, 1024 * packets as u32, End::Full)], "{script}");
        assert_eq!(wire.ended(Side::Device), [(1, 1024 * packets as u32, End::Full)], "{script}");
    }
}

#[test]
fn a_device_repeats_erdy_that_was_lost_after_500_ms() {
    for endpoint in [plain(OUT, 16), streamed(OUT)] {
        let stream = (endpoint.streams > 0).then(|| StreamId::new(3).unwrap());
        let pipe = Pipe { endpoint: OUT, stream };
        let mut wire = Wire::at_once(&[endpoint]);
        wire.link_pair.host.queue(pipe, transfer(1, 100)).unwrap();
        wire.run();
        wire.fates.insert(wire.script.len(), Fate::Lost);
        wire.link_pair.device.queue(pipe, transfer(1, 100)).unwrap();
        let since = wire.engine.now();
        wire.run();
        assert_eq!(wire.ended(Side::Host), [(1, 100, End::Full)]);
        assert!(wire.engine.now() > since + Duration::from_ms(500));
    }
}

/// Returns the lines of the script from `from` on, without the times.
fn said(wire: &Wire, from: usize) -> Vec<&str> {
    wire.script[from..].iter().map(|line| line.splitn(2, " -> ").last().unwrap_or(line)).collect()
}

#[test]
fn a_last_acknowledgement_that_is_lost_is_asked_for_after_500_ms() {
    let mut wire = Wire::at_once(&[plain(IN, 16)]);
    wire.fates.insert(2, Fate::Lost);
    wire.both(Pipe::plain(IN), transfer(1, 100));
    wire.link_pair.host.queue(Pipe::plain(IN), transfer(2, 100)).unwrap();
    wire.run();
    assert_script(
        &wire,
        &[
            "    0    40 -> ACK 1 IN expects 0, takes 1",
            "   72   336 <- DATA 1 IN number 0, 100 bytes, the last",
            "  368   408 -> ACK 1 IN expects 1, takes 0",
            // From when the packet came whose acknowledgement is missing.
            "500000336 500000376 <- ERDY 1 IN for 1",
            "500000408 500000448 -> ACK 1 IN expects 1, takes 1",
            "500000480 500000520 <- NRDY 1 IN",
        ],
    );
    assert_eq!(wire.ended(Side::Device), [(1, 100, End::Full)]);
}

#[test]
fn a_lost_end_of_a_stream_is_noticed_when_the_stream_is_proposed_again() {
    let mut wire = Wire::at_once(&[streamed(IN)]);
    wire.fates.insert(5, Fate::Lost);
    wire.both(on(IN, 3), transfer(1, 100));
    wire.run();
    assert_script(
        &wire,
        &[
            "    0    40 -> ACK 1 IN stream Prime expects 0, takes 1",
            "   72   112 <- NRDY 1 IN stream Prime",
            "  112   152 <- ERDY 1 IN stream 3 for 1",
            "  184   224 -> ACK 1 IN stream 3 expects 0, takes 1",
            "  256   520 <- DATA 1 IN stream 3 number 0, 100 bytes, the last",
            "  552   592 -> ACK 1 IN stream 3 expects 1, takes 0",
            "500000520 500000560 <- ERDY 1 IN stream 3 for 1",
            // It has no buffers for it any more, and says what it has.
            "500000592 500000632 -> ACK 1 IN stream NoStream expects 1, takes 0",
            "500000664 500000704 <- NRDY 1 IN stream NoStream",
        ],
    );
    assert_eq!(wire.ended(Side::Device), [(1, 100, End::Full)]);
}

#[test]
fn a_pipe_that_halts_before_it_hears_the_end_of_a_stream_still_learns_of_it() {
    let mut wire = Wire::at_once(&[streamed(IN)]);
    wire.fates.insert(5, Fate::Lost);
    wire.both(on(IN, 3), transfer(1, 100));
    wire.send_all();
    while wire.script.len() < 6 && wire.step() {}
    wire.link_pair.device.halt(IN);
    wire.link_pair.host.queue(on(IN, 4), transfer(2, 16)).unwrap();
    wire.run();
    assert_eq!(
        said(&wire, 6),
        ["ACK 1 IN stream Prime expects 1, takes 1", "  664   704 <- STALL 1 IN stream Prime"]
    );
    assert_eq!(wire.ended(Side::Device), [(1, 100, End::Full)]);
    assert_eq!(wire.link_pair.host.poll_halt(), Some(IN));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn a_lost_packet_is_repeated_or_fails_and_none_is_accepted_twice(
        sizes in prop::collection::vec((0_usize..4, 1_u16..4, 0_u32..20_000), 1..12),
        fates in prop::collection::btree_map(0_usize..150, prop_oneof![
            Just(Fate::HeaderDamaged), Just(Fate::PayloadDamaged), Just(Fate::Lost), Just(Fate::Lost)
        ], 0..20),
        burst in 1_u8..=16,
    ) {
        let mut wire = moved(&sizes, fates, burst);
        // A pipe may fail before a stream has begun.
        let failed = std::iter::from_fn(|| wire.link_pair.host.poll_halt()).count();
        let ended = wire.ended(Side::Host);
        for &(id, moved, end) in &ended {
            let (.., bytes) = sizes[id as usize];
            prop_assert!(end == End::Failed || failed > 0 || (moved, end) == (bytes, End::Full), "{} {:?}\n{}", id, end, wire.script.join("\n"));
        }
        if failed == 0 {
            prop_assert_eq!(ended.len(), sizes.len(), "{}", wire.script.join("\n"));
            // The device has learnt of each, but for a plain endpoint of which the host wants no
            // more.
            let of_streams = |id: &u64| sizes[*id as usize].0 < 2;
            let learnt = wire.ended(Side::Device).iter().filter(|(id, ..)| of_streams(id)).count();
            prop_assert_eq!(learnt, (0..sizes.len() as u64).filter(of_streams).count(), "{}", wire.script.join("\n"));
        }
    }
}
