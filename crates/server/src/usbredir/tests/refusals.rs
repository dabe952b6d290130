//! Packets that a client should not send.

use super::fixture::{Bench, QEMU, bulk, hello, packet};
use crate::usbredir::{Fault, Limits};
use bus::Speed;
use wire::DecodeError;
use wire::usbredir::PacketType;

#[test]
fn nothing_may_come_before_a_hello() {
    for kind in [3, 6, 7, 21, 100, 101, 1, 200] {
        let mut bench = Bench::new(Speed::Super);
        let bytes = [kind, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let kind = u32::from(kind);
        assert_eq!(bench.feed(&bytes), Err(Fault::BeforeHello(PacketType::from(kind))));
    }
}

#[test]
fn a_second_hello_is_read_over() {
    let mut bench = Bench::open();
    let again = packet(0, 0, &[0; 68]);
    bench.feed(&again).unwrap();
    bench.feed(&packet(7, 5, &[])).unwrap();
    assert_eq!(bench.sent_packets(), [(8, 5, vec![0, 0])]);
}

#[test]
fn unknown_packets_are_read_over() {
    let mut bench = Bench::open();
    let bytes = [packet(28, 1, &[1, 2, 3]), packet(0xffff_ffff, 2, &[]), packet(7, 3, &[])].concat();
    bench.feed(&bytes).unwrap();
    assert_eq!(bench.sent_packets(), [(8, 3, vec![0, 0])]);
}

#[test]
fn packets_without_their_capability_are_read_over() {
    let mut bench = Bench::new(Speed::Super);
    bench.feed(&hello(0x20)).unwrap();
    bench.sent();
    // streams, read-ahead and filters were not agreed on
    bench.feed(&packet(18, 1, &[4, 0, 0x0a, 0, 8, 0, 0, 0])).unwrap();
    bench.feed(&packet(25, 2, &[0; 10])).unwrap();
    bench.feed(&packet(23, 3, b"-1,-1,-1,-1,1\0")).unwrap();
    assert_eq!(bench.sent(), [0u8; 0]);
}

#[test]
fn a_packet_that_is_ours_to_send_ends_the_session() {
    for kind in [1, 2, 4, 5, 8, 11, 14, 17, 20, 27, 104] {
        let mut bench = Bench::open();
        let fault = bench.feed(&packet(kind, 0, &[])).unwrap_err();
        assert_eq!(fault, Fault::WrongDirection(PacketType::from(kind)));
    }
}

#[test]
fn a_client_that_refuses_the_device_ends_the_session() {
    assert_eq!(Bench::open().feed(&packet(22, 0, &[])), Err(Fault::Refused));
}

#[test]
fn endpoints_that_a_drive_does_not_have_are_not_valid() {
    let mut bench = Bench::open();
    bench.feed(&packet(12, 1, &[0x83, 8, 2])).unwrap();
    bench.feed(&packet(13, 2, &[0x83])).unwrap();
    bench.feed(&packet(102, 3, &[0x03, 0, 1, 0, 9])).unwrap();
    bench.feed(&packet(15, 4, &[0x84])).unwrap();
    bench.feed(&packet(16, 5, &[0x84])).unwrap();
    bench.feed(&packet(103, 6, &[0x04, 0, 2, 0, 9, 9])).unwrap();
    let answers = [
        (14, 1, vec![2, 0x83]),
        (14, 2, vec![2, 0x83]),
        (14, 3, vec![2, 0x03]),
        (17, 4, vec![2, 0x84]),
        (17, 5, vec![2, 0x84]),
        (103, 6, vec![0x04, 2, 0, 0]),
    ];
    assert_eq!(bench.sent_packets(), answers);
}

#[test]
fn a_part_of_a_packet_is_waited_for() {
    let whole = packet(6, 77, &[1]);
    for cut in 0..whole.len() {
        let mut bench = Bench::open();
        assert_eq!(bench.session.receive(&whole[..cut], &mut bench.device), Ok(0), "{cut} bytes");
        assert_eq!(bench.sent(), [0u8; 0]);
        bench.feed(&whole).unwrap();
    }
}

#[test]
fn lengths_that_no_packet_of_the_type_has_end_the_session() {
    let wrong = |kind, value| {
        Fault::Malformed(PacketType::from(kind), DecodeError::Invalid { field: "length", value })
    };
    // set_configuration without its byte, with one too many; a bulk packet without its fields
    assert_eq!(Bench::open().feed(&packet(6, 0, &[])), Err(wrong(6, 0)));
    assert_eq!(Bench::open().feed(&packet(6, 0, &[1, 2])), Err(wrong(6, 2)));
    assert_eq!(Bench::open().feed(&packet(101, 0, &[0x81, 0])), Err(wrong(101, 2)));
}

#[test]
fn lengths_past_the_protocols_end_the_session_before_any_byte_of_them() {
    let header = |kind: u8, length: u32| {
        let [a, b, c, d] = length.to_le_bytes();
        [kind, 0, 0, 0, a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0]
    };
    let long = 0x0800_0401; // 128 MiB + 1025
    assert!(matches!(Bench::open().feed(&header(101, long)), Err(Fault::Malformed(..))));
    assert!(matches!(Bench::open().feed(&header(28, long)), Err(Fault::TooLong { .. })));
    let control = Fault::TooLong { kind: PacketType::ControlPacket, length: 0x1_000a };
    assert_eq!(Bench::open().feed(&header(100, 0x1_000a)), Err(control));
}

#[test]
fn payload_that_does_not_fit_its_packet_ends_the_session() {
    let mismatch = |said, came| Fault::PayloadMismatch { kind: PacketType::BulkPacket, said, came };
    let mut bench = Bench::configured(0);
    assert_eq!(bench.feed(&bulk(1, 0x02, 0, 31, &[0; 30])), Err(mismatch(31, 30)));
    let mut bench = Bench::configured(0);
    assert_eq!(bench.feed(&bulk(1, 0x81, 0, 31, &[0; 31])), Err(mismatch(0, 31)));
    let mismatch = Fault::PayloadMismatch { kind: PacketType::ControlPacket, said: 6, came: 1 };
    let bytes = packet(100, 5, &[0, 0x30, 0, 0, 0, 0, 0, 0, 6, 0, 1]);
    assert_eq!(Bench::open().feed(&bytes), Err(mismatch));
}

#[test]
fn payload_past_the_hard_bound_ends_the_session() {
    let limits = Limits { payload_bytes_hard: 20_000, ..Limits::default() };
    let mut bench = Bench::with(Speed::Super, limits);
    bench.feed(&hello(QEMU)).unwrap();
    bench.feed(&packet(6, 1, &[1])).unwrap();
    bench.feed(&bulk(1, 0x02, 0, 8192, &[0; 8192])).unwrap();
    bench.feed(&bulk(2, 0x02, 0, 8192, &[0; 8192])).unwrap();
    let fault = bench.feed(&bulk(3, 0x02, 0, 8192, &[0; 8192])).unwrap_err();
    assert_eq!(fault, Fault::TooMuchPayload { bytes: 24_576 });
}

#[test]
fn transfers_past_what_a_device_accepts_end_the_session() {
    let mut bench = Bench::configured(0);
    bench.device.room = 1;
    bench.feed(&bulk(1, 0x81, 0, 512, &[])).unwrap();
    assert_eq!(bench.feed(&bulk(2, 0x81, 0, 512, &[])), Err(Fault::TooManyTransfers));
}

#[test]
fn faults_read_as_sentences() {
    let fault = Fault::WrongDirection(PacketType::DeviceConnect);
    assert_eq!(fault.to_string(), "device_connect: only the USB host side may send this packet");
    let fault = Fault::PayloadMismatch { kind: PacketType::BulkPacket, said: 31, came: 30 };
    assert_eq!(fault.to_string(), "bulk_packet: payload length mismatch, header says 31 bytes, got 30");
}
