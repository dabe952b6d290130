//! Control and bulk packets, streams, cancels, payload in parts.

use super::fixture::{Bench, QEMU, bulk, hello, packet, split};
use crate::usbredir::{Exported, Limits};
use bus::{Direction, EndpointAddress, Pipe, Speed, StreamId, TransferStatus};

#[test]
fn a_control_packet_brings_a_descriptor() {
    let mut bench = Bench::open();
    // endpoint 0x80, GET_DESCRIPTOR device, 8 bytes
    bench.feed(&packet(100, 5, &[0x80, 6, 0x80, 0, 0, 1, 0, 0, 8, 0])).unwrap();
    let packets = bench.sent_packets();
    assert_eq!((packets[0].0, packets[0].1), (100, 5));
    assert_eq!(packets[0].2[..10], [0x80, 6, 0x80, 0, 0, 1, 0, 0, 8, 0]);
    assert_eq!(packets[0].2[10..12], [18, 1]);
    assert_eq!(packets[0].2.len(), 18);
}

#[test]
fn a_control_packet_carries_its_data_stage_to_the_device() {
    let mut bench = Bench::open();
    // SET_SEL with its six bytes
    bench.feed(&packet(100, 5, &[0, 0x30, 0, 0, 0, 0, 0, 0, 6, 0, 1, 2, 3, 0, 4, 0])).unwrap();
    assert_eq!(bench.sent_packets(), [(100, 5, vec![0, 0x30, 0, 0, 0, 0, 0, 0, 6, 0])]);
}

#[test]
fn a_request_that_the_device_does_not_know_stalls() {
    let mut bench = Bench::open();
    bench.feed(&packet(100, 5, &[0x80, 0x55, 0xc0, 0, 0, 0, 0, 0, 8, 0])).unwrap();
    assert_eq!(bench.sent_packets(), [(100, 5, vec![0x80, 0x55, 0xc0, 4, 0, 0, 0, 0, 0, 0])]);
}

#[test]
fn a_control_packet_whose_two_directions_differ_is_not_valid() {
    let mut bench = Bench::open();
    bench.feed(&packet(100, 5, &[0x80, 6, 0x00, 0, 0, 1, 0, 0, 8, 0])).unwrap();
    bench.feed(&packet(100, 6, &[0x81, 6, 0x80, 0, 0, 1, 0, 0, 8, 0])).unwrap();
    let packets = bench.sent_packets();
    assert_eq!((packets[0].2[3], packets[1].2[3]), (2, 2));
}

#[test]
fn an_alternate_setting_selected_by_a_control_packet_counts_too() {
    let mut bench = Bench::configured(0);
    bench.feed(&packet(100, 5, &[0, 11, 1, 0, 1, 0, 0, 0, 0, 0])).unwrap();
    let packets = bench.sent_packets();
    assert_eq!(packets.iter().map(|packet| packet.0).collect::<Vec<_>>(), [4, 5, 100]);
    bench.feed(&packet(18, 9, &[4, 0, 0x0a, 0, 8, 0, 0, 0])).unwrap();
    assert_eq!(bench.sent_packets()[0].2[8], 0);
}

#[test]
fn a_bulk_in_packet_is_answered_with_what_the_device_sent() {
    let mut bench = Bench::configured(0);
    // 64-bit id 0x0102030405060708, endpoint 0x81, length 0x0001_0200, stream 0
    let bytes = [
        101, 0, 0, 0, 10, 0, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1, //
        0x81, 0, 0x00, 0x02, 0, 0, 0, 0, 0x01, 0x00,
    ];
    bench.feed(&bytes).unwrap();
    let transfer = &bench.device.outstanding[0];
    assert_eq!((transfer.id, transfer.length), (0x0102_0304_0506_0708, 0x1_0200));
    assert_eq!(transfer.pipe, Pipe::plain(EndpointAddress::at::<1>(Direction::In)));
    bench.device.end(0x0102_0304_0506_0708, TransferStatus::Short, &[0xaa, 0xbb]);
    let answer = [
        101, 0, 0, 0, 12, 0, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1, //
        0x81, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0xaa, 0xbb,
    ];
    assert_eq!(bench.sent(), answer);
}

#[test]
fn short_ids_and_lengths_travel_in_their_own_layout() {
    let mut bench = Bench::new(Speed::High);
    bench.feed(&hello(0)).unwrap();
    bench.feed(&[6, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1]).unwrap();
    bench.sent();
    // type 101, length 8 + 3, 32-bit id 7, endpoint 2, status, length 3, stream 0, payload
    bench.feed(&[101, 0, 0, 0, 11, 0, 0, 0, 7, 0, 0, 0, 2, 0, 3, 0, 0, 0, 0, 0, 1, 2, 3]).unwrap();
    assert_eq!(bench.device.outstanding[0].payload[..3], [1, 2, 3]);
    bench.device.end(7, TransferStatus::Done, &[]);
    assert_eq!(bench.sent(), [101, 0, 0, 0, 8, 0, 0, 0, 7, 0, 0, 0, 2, 0, 3, 0, 0, 0, 0, 0]);
}

#[test]
fn long_ids_with_short_lengths_and_the_reverse_are_understood() {
    // 64-bit ids only
    let mut bench = Bench::new(Speed::High);
    bench.feed(&hello(0x20)).unwrap();
    bench.feed(&packet(6, 1, &[1])).unwrap();
    bench.feed(&packet(101, 1 << 40, &[0x81, 0, 13, 0, 0, 0, 0, 0])).unwrap();
    assert_eq!((bench.device.outstanding[0].id, bench.device.outstanding[0].length), (1 << 40, 13));
    // 32-bit lengths only
    let mut bench = Bench::new(Speed::High);
    bench.feed(&hello(0x40)).unwrap();
    bench.feed(&[6, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1]).unwrap();
    bench.sent();
    bench.feed(&[101, 0, 0, 0, 10, 0, 0, 0, 9, 0, 0, 0, 0x81, 0, 0, 0, 0, 0, 0, 0, 2, 0]).unwrap();
    assert_eq!((bench.device.outstanding[0].id, bench.device.outstanding[0].length), (9, 0x2_0000));
    bench.device.end(9, TransferStatus::Stall, &[]);
    let answer = [101, 0, 0, 0, 10, 0, 0, 0, 9, 0, 0, 0, 0x81, 4, 0, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(bench.sent(), answer);
}

#[test]
fn streams_that_are_allocated_take_transfers_and_others_do_not() {
    let mut bench = Bench::configured(1);
    bench.feed(&packet(18, 0, &[4, 0, 0x0a, 0, 8, 0, 0, 0])).unwrap();
    bench.sent();
    bench.feed(&bulk(1, 0x83, 8, 112, &[])).unwrap();
    let status = EndpointAddress::at::<3>(Direction::In);
    assert_eq!(bench.device.outstanding[0].pipe, Pipe::stream(status, StreamId::new(8).unwrap()));
    for (id, stream) in [(2, 9), (3, 0), (4, 0x1_0001), (5, u32::MAX)] {
        bench.feed(&bulk(id, 0x83, stream, 112, &[])).unwrap();
        assert_eq!(bench.sent_packets()[0].2[..2], [0x83, 2], "stream {stream}");
    }
    bench.feed(&bulk(6, 0x04, 0, 1, &[9])).unwrap();
    assert_eq!(bench.device.outstanding.len(), 2, "the command pipe has no streams");
}

#[test]
fn freed_streams_take_no_transfers() {
    let mut bench = Bench::configured(1);
    bench.feed(&packet(18, 0, &[4, 0, 0x0a, 0, 8, 0, 0, 0])).unwrap();
    bench.feed(&packet(19, 0, &[4, 0, 0x0a, 0])).unwrap();
    bench.sent();
    bench.feed(&bulk(1, 0x83, 1, 112, &[])).unwrap();
    assert_eq!(bench.sent_packets()[0].2[..2], [0x83, 2]);
}

#[test]
fn a_transfer_to_no_endpoint_is_answered_and_its_payload_read_over() {
    let mut bench = Bench::configured(0);
    let bytes = [bulk(1, 0x05, 3, 5000, &[7; 5000]), bulk(2, 0x81, 0, 13, &[])].concat();
    bench.feed(&bytes).unwrap();
    assert_eq!(bench.sent_packets(), [(101, 1, vec![5, 2, 0, 0, 3, 0, 0, 0, 0, 0])]);
    assert_eq!(bench.device.outstanding[0].id, 2);
}

#[test]
fn a_cancel_before_the_end_is_answered_by_the_transfer() {
    let mut bench = Bench::configured(1);
    bench.feed(&packet(18, 0, &[4, 0, 0x0a, 0, 8, 0, 0, 0])).unwrap();
    bench.sent();
    bench.feed(&bulk(1, 0x81, 5, 4096, &[])).unwrap();
    bench.feed(&packet(21, 1, &[])).unwrap();
    assert_eq!(bench.sent_packets(), [(101, 1, vec![0x81, 1, 0, 0, 5, 0, 0, 0, 0, 0])]);
}

#[test]
fn a_cancel_after_the_end_finds_the_result_on_its_way() {
    let mut bench = Bench::configured(0);
    bench.feed(&bulk(1, 0x81, 0, 4, &[])).unwrap();
    bench.device.end(1, TransferStatus::Done, &[1, 2, 3, 4]);
    bench.feed(&packet(21, 1, &[])).unwrap();
    let result = vec![0x81, 0, 4, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4];
    assert_eq!(bench.sent_packets(), [(101, 1, result)]);
}

#[test]
fn a_cancel_of_nothing_has_no_answer() {
    let mut bench = Bench::configured(0);
    bench.feed(&packet(100, 4, &[0x80, 6, 0x80, 0, 0, 1, 0, 0, 8, 0])).unwrap();
    bench.sent();
    bench.feed(&packet(21, 4, &[])).unwrap();
    bench.feed(&packet(21, 99, &[])).unwrap();
    assert_eq!(bench.sent(), [0u8; 0]);
}

#[test]
fn a_short_payload_waits_until_it_is_whole() {
    let mut bench = Bench::configured(0);
    let bytes = bulk(1, 0x02, 0, 31, &[5; 31]);
    assert_eq!(bench.session.receive(&bytes[..50], &mut bench.device), Ok(0));
    assert!(bench.session.payload_room().is_none());
    bench.feed(&bytes).unwrap();
    assert_eq!(bench.device.outstanding[0].payload[..31], [5; 31]);
}

#[test]
fn a_long_payload_is_read_into_the_memory_where_it_belongs() {
    let mut bench = Bench::configured(0);
    let payload: Vec<u8> = (0..10_000_u32).map(|n| n as u8).collect();
    let bytes = bulk(1, 0x02, 0, 10_000, &payload);
    bench.feed(&bytes[..126]).unwrap();
    let room = bench.session.payload_room().expect("the rest of the payload");
    assert_eq!(room.len(), 9900);
    room[..900].copy_from_slice(&payload[100..1000]);
    bench.session.payload_filled(900, &mut bench.device).unwrap();
    assert!(bench.device.outstanding.is_empty());
    let after = bulk(2, 0x81, 0, 13, &[]);
    bench.feed(&[&payload[1000..], &after].concat()).unwrap();
    assert_eq!(bench.device.outstanding[0].payload[..10_000], payload);
    assert_eq!(bench.device.outstanding[1].id, 2);
}

#[test]
fn a_client_that_does_not_read_is_not_listened_to() {
    let limits = Limits { outgoing_bytes: 2000, ..Limits::default() };
    let mut bench = Bench::with(Speed::Super, limits);
    bench.feed(&hello(QEMU)).unwrap();
    bench.sent();
    bench.feed(&packet(6, 1, &[1])).unwrap();
    bench.sent();
    bench.device.echo = Some(vec![1; 1500]);
    let bytes: Vec<u8> = (0..4).flat_map(|id| bulk(id, 0x81, 0, 4096, &[])).collect();
    let taken = bench.session.receive(&bytes, &mut bench.device).unwrap();
    assert_eq!(taken, 2 * 26, "two answers pass the bound");
    assert!(bench.session.is_congested());
    bench.sent();
    bench.feed(&bytes[taken..]).unwrap();
}

#[test]
fn payload_waits_for_a_medium_that_makes_room() {
    let limits = Limits { payload_bytes_soft: 8192, ..Limits::default() };
    let mut bench = Bench::with(Speed::Super, limits);
    bench.feed(&hello(QEMU)).unwrap();
    bench.feed(&packet(6, 1, &[1])).unwrap();
    let bytes = bulk(1, 0x02, 0, 8192, &[0; 8192]);
    bench.feed(&bytes).unwrap();
    bench.device.at_media = 1;
    assert!(!bench.session.may_receive(&bench.device));
    assert_eq!(bench.session.receive(&bytes, &mut bench.device), Ok(0));
    // Nothing makes room by itself: the client's next packet may.
    bench.device.at_media = 0;
    bench.feed(&bytes).unwrap();
}

#[test]
fn answers_keep_the_order_in_which_transfers_end() {
    let mut bench = Bench::configured(0);
    for id in 1..=3 {
        bench.feed(&bulk(id, 0x81, 0, 512, &[])).unwrap();
    }
    bench.device.end(1, TransferStatus::Done, &[1; 512]);
    bench.device.end(2, TransferStatus::Done, &[2; 3]);
    bench.device.end(3, TransferStatus::Stall, &[]);
    let answers = split(&bench.sent(), 8);
    assert_eq!(
        answers.iter().map(|answer| (answer.1, answer.2[1])).collect::<Vec<_>>(),
        [(1, 0), (2, 0), (3, 4)]
    );
    assert_eq!(bench.device.pool().take(1).len(), 4096);
}

#[test]
fn over_streams_answers_wait_until_the_guest_is_seen_to_have_taken_earlier_ones() {
    let mut bench = Bench::configured(1);
    bench.feed(&packet(18, 0, &[4, 0, 0x0a, 0, 8, 0, 0, 0])).unwrap();
    bench.sent();
    bench.device.echo = Some(vec![7; 16]);
    bench.feed(&bulk(0, 0x83, 8, 112, &[])).unwrap();
    let commands: Vec<u8> = (1..=149).flat_map(|id| bulk(id, 0x04, 0, 1, &[9])).collect();
    bench.feed(&commands).unwrap();
    assert_eq!(bench.sent_packets().len(), 96);
    bench.feed(&bulk(150, 0x83, 8, 112, &[])).unwrap();
    assert_eq!(bench.sent_packets()[0].1, 96, "one is proven, so one more goes");
    bench.session.release_held();
    assert_eq!(bench.sent_packets().len(), 32);
    bench.feed(&packet(3, 0, &[])).unwrap();
    assert_eq!(bench.sent_packets().len(), 151 - 96 - 1 - 32, "a reset empties the ring");
}
