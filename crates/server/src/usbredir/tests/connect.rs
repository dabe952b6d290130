//! Hello, connect, configurations, alternate settings, streams, reset.

use super::fixture::{Bench, QEMU, hello, packet, split};
use bus::{Speed, TransferStatus};
use wire::usbredir::Capability;

#[test]
fn our_hello_is_the_first_thing_sent_and_the_only_one_before_the_clients() {
    let mut bench = Bench::new(Speed::Super);
    let sent = bench.sent();
    assert_eq!(sent[..12], [0, 0, 0, 0, 68, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(sent[12..20], *b"uaskit\0\0");
    assert_eq!(sent[76..], [0x7b, 0, 0, 0], "capabilities 0, 1, 3, 4, 5, 6");
    assert_eq!(bench.session.peer(), None);
}

#[test]
fn a_clients_hello_is_kept_with_what_both_can_do() {
    let bench = Bench::open();
    let peer = bench.session.peer().unwrap();
    assert_eq!(peer.version, "qemu usb-redir guest 7.2.0");
    assert!(peer.capabilities.has(Capability::BulkStreams));
    assert!(!peer.capabilities.has(Capability::BulkReceiving), "not offered by us");
}

#[test]
fn interfaces_and_endpoints_are_reported_before_the_device_connects() {
    let mut bench = Bench::new(Speed::Super);
    bench.sent();
    bench.feed(&hello(QEMU)).unwrap();
    let packets = bench.sent_packets();
    let kinds: Vec<u32> = packets.iter().map(|packet| packet.0).collect();
    assert_eq!(kinds, [4, 5, 1]);
    let interface = &packets[0].2;
    assert_eq!(interface[..5], [1, 0, 0, 0, 0]);
    assert_eq!((interface[36], interface[68], interface[100]), (8, 6, 0x50));
    let endpoints = &packets[1].2;
    assert_eq!((endpoints[0], endpoints[16]), (0, 0), "endpoint 0 both ways");
    assert!(endpoints[1..16].iter().chain(&endpoints[17..32]).all(|&kind| kind == 255));
    assert_eq!(packets[2].2, [3, 0, 0, 0, 0x34, 0x12, 0x78, 0x56, 0x02, 0x01]);
}

#[test]
fn layouts_follow_what_both_sides_can_do() {
    // capabilities of the client, bytes of an id, of ep_info, of device_connect
    for (capabilities, id, endpoints, connect) in [
        (0xff, 8, 288, 10),
        (0x00, 4, 96, 8),
        (0x02, 4, 96, 10),
        (0x10, 4, 160, 8),
        (0x11, 4, 288, 8),
        (0x01, 4, 96, 8), // streams without packet sizes do not count
        (0x20, 8, 96, 8),
        (0x30, 8, 160, 8),
        (0x72, 8, 160, 10),
    ] {
        let mut bench = Bench::new(Speed::Super);
        bench.sent();
        bench.feed(&hello(capabilities)).unwrap();
        let lengths: Vec<(u32, usize)> =
            split(&bench.sent(), id).into_iter().map(|(kind, _, body)| (kind, body.len())).collect();
        assert_eq!(lengths, [(4, 132), (5, endpoints), (1, connect)], "capabilities {capabilities:#x}");
    }
}

#[test]
fn a_hello_without_capability_words_offers_nothing() {
    let mut bench = Bench::new(Speed::High);
    bench.sent();
    let mut bytes = hello(0);
    bytes.truncate(76);
    bytes[4] = 64;
    bench.feed(&bytes).unwrap();
    assert_eq!(split(&bench.sent(), 4)[2].2.len(), 8);
}

#[test]
fn a_configuration_is_reported_before_its_status() {
    let mut bench = Bench::open();
    bench.feed(&packet(6, 77, &[1])).unwrap();
    let packets = bench.sent_packets();
    assert_eq!(packets.iter().map(|packet| packet.0).collect::<Vec<_>>(), [4, 5, 8]);
    let endpoints = &packets[1].2;
    assert_eq!((endpoints[2], endpoints[17]), (2, 2), "bulk OUT 2 and IN 1");
    assert_eq!(endpoints[96 + 2 * 17..][..2], [0x00, 0x04], "1024 bytes");
    assert_eq!(endpoints[160 + 4 * 17..][..4], [0, 0, 0, 0], "BOT has no streams");
    assert_eq!((packets[2].1, &packets[2].2[..]), (77, &[0, 1][..]));
}

#[test]
fn an_alternate_setting_is_reported_with_its_streams_before_its_status() {
    let mut bench = Bench::configured(0);
    bench.feed(&packet(9, 78, &[0, 1])).unwrap();
    let packets = bench.sent_packets();
    assert_eq!(packets.iter().map(|packet| packet.0).collect::<Vec<_>>(), [4, 5, 11]);
    assert_eq!(packets[0].2[100], 0x62);
    let streams = |index: usize| u32::from_le_bytes(packets[1].2[160 + 4 * index..][..4].try_into().unwrap());
    assert_eq!((streams(17), streams(2), streams(19), streams(4)), (32, 32, 32, 0));
    assert_eq!((packets[2].1, &packets[2].2[..]), (78, &[0, 0, 1][..]));
}

#[test]
fn at_high_speed_no_endpoint_has_streams_and_packets_are_shorter() {
    let mut bench = Bench::new(Speed::High);
    bench.feed(&hello(QEMU)).unwrap();
    bench.feed(&packet(6, 1, &[1])).unwrap();
    bench.sent();
    bench.feed(&packet(9, 2, &[0, 1])).unwrap();
    let endpoints = bench.sent_packets()[1].2.clone();
    assert_eq!(endpoints[96 + 2 * 19..][..2], [0x00, 0x02], "512 bytes");
    assert!(endpoints[160..].iter().all(|&byte| byte == 0));
}

#[test]
fn what_the_device_refuses_changes_nothing() {
    let mut bench = Bench::configured(1);
    bench.feed(&packet(6, 3, &[9])).unwrap();
    bench.feed(&packet(9, 4, &[0, 2])).unwrap();
    bench.feed(&packet(9, 5, &[7, 0])).unwrap();
    let stalls = [(8, 3, vec![4, 1]), (11, 4, vec![4, 0, 1]), (11, 5, vec![4, 7, 255])];
    assert_eq!(bench.sent_packets(), stalls);
}

#[test]
fn configuration_and_alternate_setting_can_be_asked_for() {
    let mut bench = Bench::open();
    bench.feed(&packet(7, 1, &[])).unwrap();
    bench.feed(&packet(10, 2, &[0])).unwrap();
    assert_eq!(bench.sent_packets(), [(8, 1, vec![0, 0]), (11, 2, vec![4, 0, 255])]);
    let mut bench = Bench::configured(1);
    bench.feed(&packet(7, 3, &[])).unwrap();
    bench.feed(&packet(10, 4, &[0])).unwrap();
    assert_eq!(bench.sent_packets(), [(8, 3, vec![0, 1]), (11, 4, vec![0, 0, 1])]);
}

#[test]
fn streams_are_granted_as_many_as_asked_for_or_not_at_all() {
    // endpoints (OUT 2 is bit 2, IN 1 bit 17, IN 3 bit 19), count → status, granted
    for (endpoints, count, status, granted) in [
        (0x000a_0004_u32, 32_u32, 0, 32_u32),
        (0x000a_0004, 1, 0, 1),
        (0x0002_0000, 5, 0, 5),
        (0x000a_0004, 33, 2, 0),
        (0x000a_0004, u32::MAX, 2, 0),
        (0x000a_0004, 0, 2, 0),
        (0x0000_0000, 4, 2, 0),
        (0x000a_0014, 4, 2, 0), // the command pipe has none
        (0x0000_0001, 4, 2, 0), // endpoint 0
        (0x8000_0000, 4, 2, 0), // there is no such endpoint
    ] {
        let mut bench = Bench::configured(1);
        let body = [endpoints.to_le_bytes(), count.to_le_bytes()].concat();
        bench.feed(&packet(18, 9, &body)).unwrap();
        let answer = [&endpoints.to_le_bytes()[..], &granted.to_le_bytes(), &[status]].concat();
        assert_eq!(bench.sent_packets(), [(20, 9, answer)], "{endpoints:#010x} {count}");
    }
}

#[test]
fn freeing_streams_always_succeeds() {
    // QEMU gives the device up at any other answer, and frees what an alternate setting has taken with it already.
    let mut bench = Bench::configured(0);
    bench.feed(&packet(19, 9, &[4, 0, 0x0a, 0])).unwrap();
    assert_eq!(bench.sent_packets(), [(20, 9, vec![4, 0, 0x0a, 0, 0, 0, 0, 0, 0])]);
}

#[test]
fn a_reset_ends_transfers_and_leaves_an_addressed_device() {
    let mut bench = Bench::configured(0);
    bench.feed(&super::fixture::bulk(5, 0x81, 0, 512, &[])).unwrap();
    bench.feed(&packet(3, 0, &[])).unwrap();
    let answer = (101, 5, vec![0x81, 3, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(bench.sent_packets(), [answer], "a reset itself has no answer");
    bench.feed(&super::fixture::bulk(6, 0x81, 0, 512, &[])).unwrap();
    assert_eq!(bench.sent_packets()[0].2[1], 2, "there is no such endpoint before a configuration");
    bench.feed(&packet(6, 7, &[1])).unwrap();
    assert_eq!(bench.sent_packets()[2].2, [0, 1], "no SET_ADDRESS has to come from the client");
}

#[test]
fn selecting_a_setting_frees_streams() {
    let mut bench = Bench::configured(1);
    bench.feed(&packet(18, 1, &[4, 0, 0x0a, 0, 8, 0, 0, 0])).unwrap();
    bench.feed(&packet(9, 2, &[0, 1])).unwrap();
    bench.sent();
    bench.feed(&super::fixture::bulk(6, 0x81, 1, 512, &[])).unwrap();
    assert_eq!(bench.sent_packets()[0].2[1], 2);
}

/// Endpoint and status of the answers to bulk packets, by id, and the types of the packets behind them.
fn answers_then_kinds(bench: &mut Bench) -> (Vec<(u64, u8, u8)>, Vec<u32>) {
    let packets = bench.sent_packets();
    let bulk_count = packets.iter().take_while(|packet| packet.0 == 101).count();
    let (bulk, rest) = packets.split_at(bulk_count);
    let answers = bulk.iter().map(|(_, id, body)| (*id, body[0], body[1])).collect();
    (answers, rest.iter().map(|packet| packet.0).collect())
}

#[test]
fn a_setting_that_is_selected_cancels_what_is_queued_before_it_is_reported() {
    // SET_ALT_SETTING 1 again and 0, SET_CONFIGURATION 1 and 0, SET_INTERFACE and SET_CONFIGURATION as control packets.
    let selections = [
        (packet(9, 3, &[0, 1]), 11),
        (packet(9, 3, &[0, 0]), 11),
        (packet(6, 3, &[1]), 8),
        (packet(6, 3, &[0]), 8),
        (packet(100, 3, &[0, 11, 1, 0, 1, 0, 0, 0, 0, 0]), 100),
        (packet(100, 3, &[0, 9, 0, 0, 1, 0, 0, 0, 0, 0]), 100),
    ];
    for (selection, answer) in selections {
        let mut bench = Bench::configured(1);
        bench.feed(&packet(18, 0, &[4, 0, 0x0a, 0, 8, 0, 0, 0])).unwrap();
        bench.feed(&super::fixture::bulk(11, 0x02, 5, 512, &[0xee; 512])).unwrap();
        bench.feed(&super::fixture::bulk(12, 0x83, 5, 112, &[])).unwrap();
        bench.sent();
        bench.feed(&selection).unwrap();
        let cancelled = vec![(11, 0x02, 1), (12, 0x83, 1)];
        assert_eq!(answers_then_kinds(&mut bench), (cancelled, vec![4, 5, answer]));
        // A cancel that was sent in the meantime finds nothing: there is one answer for each packet.
        bench.feed(&packet(21, 11, &[])).unwrap();
        assert_eq!(bench.sent(), [0u8; 0]);
    }
}

#[test]
fn answers_that_are_held_go_before_a_new_setting() {
    let mut bench = Bench::configured(1);
    bench.feed(&packet(18, 0, &[4, 0, 0x0a, 0, 8, 0, 0, 0])).unwrap();
    bench.sent();
    bench.device.echo = Some(vec![7; 16]);
    let commands: Vec<u8> = (1..=120).flat_map(|id| super::fixture::bulk(id, 0x04, 0, 1, &[9])).collect();
    bench.feed(&commands).unwrap();
    assert_eq!(bench.sent_packets().len(), 96);
    bench.feed(&packet(9, 3, &[0, 1])).unwrap();
    let (answers, kinds) = answers_then_kinds(&mut bench);
    assert_eq!((answers.len(), kinds), (24, vec![4, 5, 11]));
}

#[test]
fn streams_that_are_allocated_or_freed_cancel_what_is_queued_on_their_endpoints() {
    let mut bench = Bench::configured(1);
    // Endpoint 2 without streams, the command pipe, and endpoint 0x83.
    bench.feed(&super::fixture::bulk(11, 0x02, 0, 512, &[0xee; 512])).unwrap();
    bench.feed(&super::fixture::bulk(12, 0x04, 0, 1, &[9])).unwrap();
    bench.feed(&super::fixture::bulk(13, 0x83, 0, 112, &[])).unwrap();
    bench.feed(&packet(18, 0, &[4, 0, 0x02, 0, 8, 0, 0, 0])).unwrap();
    assert_eq!(answers_then_kinds(&mut bench), (vec![(11, 0x02, 1)], vec![20]));
    // Allocated again, though with as many.
    bench.feed(&super::fixture::bulk(14, 0x02, 5, 512, &[0xee; 512])).unwrap();
    bench.feed(&packet(18, 0, &[4, 0, 0x02, 0, 8, 0, 0, 0])).unwrap();
    assert_eq!(answers_then_kinds(&mut bench), (vec![(14, 0x02, 1)], vec![20]));
    bench.feed(&super::fixture::bulk(15, 0x02, 5, 512, &[0xee; 512])).unwrap();
    bench.feed(&packet(19, 0, &[0x14, 0, 0x08, 0])).unwrap();
    assert_eq!(answers_then_kinds(&mut bench), (vec![(15, 0x02, 1)], vec![20]));
    let left: Vec<_> = bench.device.outstanding.iter().map(|transfer| transfer.id).collect();
    assert_eq!(left, [12, 13], "endpoints without streams have nothing to free");
    // What cannot be allocated changes nothing.
    bench.feed(&packet(18, 0, &[0x10, 0, 0x08, 0, 8, 0, 0, 0])).unwrap();
    assert_eq!(answers_then_kinds(&mut bench), (vec![], vec![20]));
}

#[test]
fn a_device_that_goes_away_says_so() {
    let mut bench = Bench::open();
    bench.session.disconnect();
    bench.feed(&packet(24, 0, &[])).unwrap();
    assert_eq!(bench.sent_packets(), [(2, 0, vec![])]);
}

#[test]
fn transfers_that_a_device_ends_with_an_error_are_reported_as_such() {
    for (status, byte) in [
        (TransferStatus::Done, 0),
        (TransferStatus::Short, 0),
        (TransferStatus::Cancelled, 1),
        (TransferStatus::Error, 3),
        (TransferStatus::Disconnected, 3),
        (TransferStatus::Stall, 4),
        (TransferStatus::Babble, 6),
    ] {
        let mut bench = Bench::configured(0);
        bench.feed(&super::fixture::bulk(5, 0x81, 0, 512, &[])).unwrap();
        bench.device.end(5, status, &[]);
        assert_eq!(bench.sent_packets()[0].2[1], byte, "{status:?}");
    }
}
