//! The same command, recorded in each capture format.

use crate::{Command, Decoder, Outcome};
use capture::{ByteOrder, Link, Packet};
use wire::bot::CswStatus;
use wire::usb::{PacketId, Token, check_of_payload};

/// TEST UNIT READY, tag 1, and its status.
#[rustfmt::skip]
const CBW: [u8; 31] = [
    b'U', b'S', b'B', b'C', 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
];
const CSW: [u8; 13] = [b'U', b'S', b'B', b'S', 1, 0, 0, 0, 0, 0, 0, 0, 0];

fn decode(link: Link, order: ByteOrder, packets: &[Vec<u8>]) -> (Vec<Command>, Decoder) {
    let mut decoder = Decoder::new();
    for (bytes, number) in packets.iter().zip(1..) {
        let at_ns = number * 1_000;
        let packet =
            Packet { number, at_ns, link, order, interface: 1, bytes, cut: 0, stream: None, is_added: false };
        decoder.take(&packet);
    }
    (std::iter::from_fn(|| decoder.poll()).collect(), decoder)
}

fn is_test_unit_ready(command: &Command) {
    assert_eq!((command.tag, command.lun, command.block.name()), (1, Some(2), "TEST UNIT READY".to_owned()));
    assert_eq!(command.outcome, Outcome::Wrapper(CswStatus::Passed));
}

/// Event, endpoint, status, length, bytes; the header big-endian and of 48 bytes.
fn short_big_endian(event: u8, endpoint: u8, status: i32, length: u32, bytes: &[u8]) -> Vec<u8> {
    let mut packet = vec![0, 0, 0, 0, 0, 0, 0, endpoint, event, 3, endpoint, 5, 0, 2, b'-', 0];
    packet.resize(28, 0);
    packet.extend(status.to_be_bytes());
    packet.extend(length.to_be_bytes());
    packet.extend((bytes.len() as u32).to_be_bytes());
    packet.resize(48, 0);
    [&packet, bytes].concat()
}

#[test]
fn usbmon_of_48_bytes_from_a_big_endian_machine() {
    let packets = [
        short_big_endian(b'S', 0x02, -115, 31, &CBW),
        short_big_endian(b'C', 0x02, 0, 31, &[]),
        short_big_endian(b'S', 0x81, -115, 13, &[]),
        short_big_endian(b'C', 0x81, 0, 13, &CSW),
    ];
    let (commands, decoder) = decode(Link::UsbmonShort, ByteOrder::Big, &packets);
    is_test_unit_ready(&commands[0]);
    assert_eq!(commands[0].address.to_string(), "2.5");
    assert_eq!(decoder.not_understood().count, 0);
}

/// Whether it comes back, endpoint, bytes.
fn usbpcap(is_up: bool, endpoint: u8, bytes: &[u8]) -> Vec<u8> {
    let mut packet = vec![27, 0, endpoint, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0];
    packet.extend([is_up.into(), 2, 0, 5, 0, endpoint, 3]);
    packet.extend((bytes.len() as u32).to_le_bytes());
    [&packet, bytes].concat()
}

#[test]
fn usbpcap_of_a_windows_host() {
    let packets = [
        usbpcap(false, 0x02, &CBW),
        usbpcap(true, 0x02, &[]),
        usbpcap(false, 0x81, &[]),
        usbpcap(true, 0x81, &CSW),
    ];
    let (commands, _) = decode(Link::Usbpcap, ByteOrder::Little, &packets);
    is_test_unit_ready(&commands[0]);
}

/// A packet of USBPcap is of a request, whose number is in bytes 2 to 9.
fn of_request(number: u8, mut packet: Vec<u8>) -> Vec<u8> {
    packet[2] = number;
    packet
}

#[test]
fn usbpcap_does_not_say_how_much_was_written_and_all_of_it_was() {
    // WRITE(10) of one block, tag 7.
    let mut wrapper = [0; 31];
    wrapper[..5].copy_from_slice(b"USBC\x07");
    wrapper[8..12].copy_from_slice(&[0, 2, 0, 0]);
    wrapper[14..24].copy_from_slice(&[10, 0x2a, 0, 0, 0, 0, 9, 0, 0, 1]);
    let status = [b'U', b'S', b'B', b'S', 7, 0, 0, 0, 0, 0, 0, 0, 0];
    let packets = [
        of_request(1, usbpcap(false, 0x02, &wrapper)),
        of_request(1, usbpcap(true, 0x02, &[])),
        of_request(2, usbpcap(false, 0x02, &[0x55; 512])),
        of_request(2, usbpcap(true, 0x02, &[])),
        of_request(3, usbpcap(false, 0x81, &[])),
        of_request(3, usbpcap(true, 0x81, &status)),
    ];
    let (commands, decoder) = decode(Link::Usbpcap, ByteOrder::Little, &packets);
    assert_eq!((commands[0].moved, commands[0].block.name()), (512, "WRITE(10)".to_owned()));
    assert!(decoder.verdicts().is_empty(), "the residue is right");
}

/// As QEMU records it: event, endpoint, status, length, bytes.
fn qemu(event: u8, endpoint: u8, status: i32, length: u32, bytes: &[u8]) -> Vec<u8> {
    let mut packet = vec![9, 0, 0, 0, 0, 0, 0, endpoint, event, 3, endpoint, 5, 2, 0, b'-', b'='];
    packet.resize(28, 0);
    packet.extend(status.to_le_bytes());
    packet.extend(length.to_le_bytes());
    packet.extend((bytes.len() as u32).to_le_bytes());
    packet.resize(64, 0);
    [&packet, bytes].concat()
}

#[test]
fn qemu_does_not_say_either_how_much_was_written_and_errors_of_writes_are_errors() {
    let mut wrapper = [0; 31];
    wrapper[..5].copy_from_slice(b"USBC\x07");
    wrapper[8..12].copy_from_slice(&[0, 2, 0, 0]);
    wrapper[14..24].copy_from_slice(&[10, 0x2a, 0, 0, 0, 0, 9, 0, 0, 1]);
    let status = [b'U', b'S', b'B', b'S', 7, 0, 0, 0, 0, 0, 0, 0, 0];
    for (errno, moved) in [(0, 512), (-121, 0)] {
        let packets = [
            qemu(b'S', 0x02, 0, 31, &wrapper),
            qemu(b'C', 0x02, 0, 0, &[]),
            qemu(b'S', 0x02, 0, 512, &[0x55; 256]),
            qemu(b'C', 0x02, errno, 0, &[]),
            qemu(b'S', 0x81, 0, 0, &[]),
            qemu(b'C', 0x81, 0, 13, &status),
        ];
        let (commands, _) = decode(Link::Usbmon, ByteOrder::Little, &packets);
        assert_eq!(commands[0].moved, moved, "{errno}");
    }
}

fn transaction(id: PacketId, endpoint: u8, payload: &[u8]) -> [Vec<u8>; 3] {
    let token = Token { id, address: 5, endpoint }.encode().to_vec();
    let packet = [&[u8::from(PacketId::Data0)], payload, &check_of_payload(payload)].concat();
    [token, packet, vec![PacketId::Ack.into()]]
}

#[test]
fn packets_of_an_analyser() {
    let nak =
        [Token { id: PacketId::In, address: 5, endpoint: 1 }.encode().to_vec(), vec![PacketId::Nak.into()]];
    let packets =
        [&transaction(PacketId::Out, 2, &CBW)[..], &nak, &transaction(PacketId::In, 1, &CSW)].concat();
    let (commands, _) = decode(Link::Usb2Packets, ByteOrder::Little, &packets);
    is_test_unit_ready(&commands[0]);
    assert_eq!(commands[0].began.packet, 3, "when it was taken");
    assert_eq!(commands[0].address.to_string(), "2.5", "the file's interface in place of the bus");
}

#[test]
fn what_was_added_for_other_readers_is_passed_over() {
    let mut decoder = Decoder::new();
    let [command, end, status] =
        [(PacketId::Out, 2, &CBW[..]), (PacketId::In, 1, &[][..]), (PacketId::In, 1, &CSW)]
            .map(|(id, endpoint, payload)| transaction(id, endpoint, payload));
    let all = command.iter().chain(&end).chain(&status);
    for (bytes, number) in all.zip(1..) {
        let (link, order, is_added) = (Link::Usb2Packets, ByteOrder::Little, (4..7).contains(&number));
        let packet = Packet {
            number,
            at_ns: number,
            link,
            order,
            interface: 1,
            bytes,
            cut: 0,
            stream: None,
            is_added,
        };
        decoder.take(&packet);
    }
    is_test_unit_ready(&decoder.poll().unwrap());
    decoder.finish();
    assert_eq!(decoder.verdicts(), []);
}

#[test]
fn packets_of_something_else_are_counted() {
    let (_, decoder) = decode(Link::Other(1), ByteOrder::Little, &[vec![0; 60], vec![0; 60]]);
    assert_eq!((decoder.foreign().count, decoder.foreign().first), (2, Some(1)));
}

#[test]
fn headers_that_are_cut_are_counted() {
    for (link, len) in
        [(Link::Usbmon, 63), (Link::UsbmonShort, 47), (Link::Usbpcap, 26), (Link::Usb2Packets, 0)]
    {
        let (_, decoder) = decode(link, ByteOrder::Little, &[vec![0; len]]);
        assert_eq!(decoder.not_understood().count, 1, "{link}");
    }
}

/// Event, endpoint, bytes or how many are requested, as FreeBSD's usbpf has them.
fn usbpf(event: u8, endpoint: u8, length: u32, bytes: &[u8]) -> Vec<u8> {
    let mut packet = vec![0; 128];
    (packet[4], packet[8], packet[10], packet[11]) = (1, 5, event, 2);
    (packet[28], packet[40]) = (1, endpoint);
    packet.extend(length.to_le_bytes());
    packet.extend([if bytes.is_empty() { 0 } else { 2 }, 0, 0, 0]);
    packet.extend(bytes);
    packet.resize(packet.len().next_multiple_of(4), 0);
    packet
}

#[test]
fn usbpf_of_freebsd() {
    let packets = [
        usbpf(0, 0x02, 31, &CBW),
        usbpf(1, 0x02, 31, &[]),
        usbpf(0, 0x81, 13, &[]),
        usbpf(1, 0x81, 13, &CSW),
    ];
    let (commands, decoder) = decode(Link::Usbpf, ByteOrder::Little, &packets);
    is_test_unit_ready(&commands[0]);
    assert_eq!(commands[0].address.to_string(), "1.5");
    assert_eq!(decoder.not_understood().count, 0);
}

#[test]
fn devices_that_are_no_drives_are_counted_with_their_classes() {
    let mut script = super::Script::new();
    script.control(
        [0x80, 6, 0, 1, 0, 0, 18, 0],
        &[18, 1, 0, 2, 0, 0, 0, 64, 0x6d, 4, 0x0e, 0xc0, 0, 0, 0, 0, 0, 1],
    );
    let configuration = [9, 2, 34, 0, 1, 1, 0, 0xa0, 50, 9, 4, 0, 0, 1, 3, 1, 2, 0];
    script.control([0x80, 6, 0, 2, 0, 0, 34, 0], &configuration);
    script.submit(9, 0x81, 13, &[]);
    let [device] = &script.decoder.contents().collect::<Vec<_>>()[..] else { panic!("one") };
    assert_eq!((device.address.to_string(), device.id), ("2.5".to_owned(), Some((0x046d, 0xc00e))));
    assert_eq!(device.interfaces, [wire::usb::ClassCode::new(3, 1, 2)]);
    assert_eq!((device.transfers.control, device.transfers.bulk), (2, 1));
    assert_eq!(script.decoder.drives().count(), 0);
}
