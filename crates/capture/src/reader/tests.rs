//! Tests of reading: literal files in both forms and orders, damaged in each way.

use super::*;

/// Number, time, stream and bytes of a packet.
type PacketSummary = (u64, u64, Option<u16>, Vec<u8>);

/// Packets of a whole file, and its damages.
fn read(file: &[u8]) -> (Vec<PacketSummary>, Vec<Damage>) {
    let mut reader = Reader::new(file, "memory".into()).unwrap();
    let (mut packets, mut damages) = (Vec::new(), Vec::new());
    while let Some(item) = reader.next_item().unwrap() {
        match item {
            Item::Packet(Packet { number, at_ns, stream, bytes, .. }) => {
                packets.push((number, at_ns, stream, bytes.to_vec()));
            }
            Item::Damage(damage) => damages.push(damage),
            Item::Section => {}
            Item::Dropped(dropped) => panic!("{dropped}"),
        }
    }
    assert_eq!(reader.offset(), file.len() as u64, "every byte was used");
    (packets, damages)
}

#[rustfmt::skip]
const SECTION: [u8; 28] = [
    0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0,
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 28, 0, 0, 0,
];

/// usbmon, nanoseconds.
#[rustfmt::skip]
const INTERFACE: [u8; 32] = [
    1, 0, 0, 0, 32, 0, 0, 0, 220, 0, 0, 0, 0, 0, 0, 0, 9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0, 0,
];

/// 5 bytes of 12 on stream 7, 2³² + 5 ns after the zero.
#[rustfmt::skip]
const PACKET: [u8; 56] = [
    6, 0, 0, 0, 56, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 5, 0, 0, 0, 5, 0, 0, 0, 12, 0, 0, 0,
    1, 2, 3, 4, 5, 0, 0, 0,
    1, 0, 8, 0, b's', b't', b'r', b'e', b'a', b'm', b' ', b'7', 0, 0, 0, 0, 56, 0, 0, 0,
];

const PACKET_NS: u64 = 4_294_967_301;

fn pcapng(blocks: &[&[u8]]) -> Vec<u8> {
    [&[&SECTION[..], &INTERFACE][..], blocks].concat().concat()
}

#[test]
fn a_packet_has_its_time_its_bytes_and_its_stream() {
    let file = pcapng(&[&PACKET]);
    let mut reader = Reader::new(&file[..], "memory".into()).unwrap();
    let packet = Packet {
        number: 1,
        at_ns: PACKET_NS,
        link: Link::Usbmon,
        order: ByteOrder::Little,
        interface: 0,
        bytes: &[1, 2, 3, 4, 5],
        cut: 7,
        stream: Some(7),
        is_added: false,
    };
    assert_eq!(reader.next_item().unwrap(), Some(Item::Packet(packet)));
    assert_eq!(reader.next_item().unwrap(), None);
}

#[test]
fn files_behind_each_other_are_sections() {
    let file = [pcapng(&[&PACKET]), pcapng(&[&PACKET])].concat();
    let mut reader = Reader::new(&file[..], "memory".into()).unwrap();
    let mut found = Vec::new();
    while let Some(item) = reader.next_item().unwrap() {
        found.push(match item {
            Item::Packet(packet) => packet.number,
            Item::Section => 0,
            other => panic!("{other:?}"),
        });
    }
    assert_eq!(found, [1, 0, 2]);
}

#[test]
fn a_section_of_the_other_byte_order_has_the_same_packets() {
    #[rustfmt::skip]
    let file = [
        0x0a, 0x0d, 0x0d, 0x0a, 0, 0, 0, 28, 0x1a, 0x2b, 0x3c, 0x4d, 0, 1, 0, 0,
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 28,
        // Microseconds, since no resolution is found.
        0, 0, 0, 1, 0, 0, 0, 20, 0, 189, 0, 0, 0, 0, 0, 0, 0, 0, 0, 20,
        0, 0, 0, 6, 0, 0, 0, 36, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 2, 0, 0, 0, 2, 8, 9, 0, 0, 0, 0, 0, 36,
    ];
    assert_eq!(read(&file), (vec![(1, 9_000, None, vec![8, 9])], vec![]));
}

#[test]
fn a_truncated_block_is_reported_with_its_offset() {
    let file = pcapng(&[&PACKET, &PACKET]);
    for cut in 1..56 {
        let (packets, damages) = read(&file[..file.len() - cut]);
        assert_eq!(packets.len(), 1);
        assert_eq!(damages.iter().map(|damage| damage.offset).collect::<Vec<_>>(), [60 + 56], "{cut}");
        assert!(matches!(damages[0].kind, DamageKind::Truncated { .. }));
    }
}

#[test]
fn behind_garbage_the_next_packet_is_found() {
    for garbage in [&[0xff; 40][..], &[6, 0, 0, 0, 13, 0, 0, 0, 1], &[0; 3]] {
        let (packets, damages) = read(&pcapng(&[&PACKET, garbage, &PACKET]));
        assert_eq!(packets.iter().map(|packet| packet.0).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(damages.len(), 1, "{damages:?}");
        assert_eq!((damages[0].offset, damages[0].bytes), (116, garbage.len() as u64));
    }
}

#[test]
fn a_length_that_nothing_has_does_not_eat_the_file() {
    let mut long = PACKET;
    long[4..8].copy_from_slice(&0x7fff_fff0_u32.to_le_bytes());
    let (packets, damages) = read(&pcapng(&[&PACKET, &long, &PACKET]));
    assert_eq!(packets.len(), 2);
    assert_eq!(
        damages,
        [Damage { offset: 116, bytes: 56, kind: DamageKind::Length { length: 0x7fff_fff0 } }]
    );
}

#[test]
fn a_packet_of_an_undescribed_interface_is_damage() {
    let mut other = PACKET;
    other[8] = 3;
    let (packets, damages) = read(&pcapng(&[&other, &PACKET]));
    assert_eq!(packets.len(), 1);
    assert_eq!(damages, [Damage { offset: 60, bytes: 56, kind: DamageKind::Interface { number: 3 } }]);
}

/// A header of usbmon, 2³² + 5 ns after the zero, and what follows it: nothing.
const USBMON: [u8; 64] = {
    let mut header = [0; 64];
    [header[8], header[9], header[10], header[11], header[12]] = [b'C', 3, 0x81, 5, 2];
    header[16] = 4;
    header
};

fn packet(bytes: &[u8; 64]) -> Vec<u8> {
    let head = [6, 0, 0, 0, 96, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 5, 0, 0, 0, 64, 0, 0, 0, 64, 0, 0, 0];
    [&head[..], bytes, &[96, 0, 0, 0]].concat()
}

/// Wherever a section's header is damaged, in the middle or at the beginning, what is behind it is read.
#[test]
fn behind_a_damaged_section_header_the_rest_is_read() {
    for at in 0..SECTION.len() {
        for len in [1, 4, 12] {
            let mut section = SECTION;
            section[at..(at + len).min(28)].fill(0xa5);
            let file = [&section[..], &INTERFACE, &PACKET, &PACKET].concat();
            let (packets, damages) = read(&file);
            assert_eq!(packets.len(), 2, "at the beginning, {at}, {len}: {damages:?}");
            assert_eq!(packets[0].1, PACKET_NS);
            let is_ignored = (12..24).contains(&at) && at + len <= 24;
            assert_eq!(damages.len(), usize::from(!is_ignored), "{at}, {len}: {damages:?}");
            assert!(damages.iter().all(|damage| (damage.offset, damage.bytes) == (0, 28)));
            let file = [&pcapng(&[&PACKET])[..], &section, &INTERFACE, &PACKET].concat();
            let (packets, damages) = read(&file);
            assert_eq!(packets.len(), 2, "in the middle, {at}, {len}: {damages:?}");
            assert_eq!(damages.len(), usize::from(!is_ignored), "{at}, {len}: {damages:?}");
            assert!(damages.iter().all(|damage| (damage.offset, damage.bytes) == (116, 28)));
        }
    }
}

/// The new section is in the other byte order, and its header cannot be read at all.
#[test]
fn behind_a_damaged_section_header_the_byte_order_is_found() {
    let interface = [0, 0, 0, 1, 0, 0, 0, 20, 0, 189, 0, 0, 0, 0, 0, 0, 0, 0, 0, 20];
    #[rustfmt::skip]
    let packet = [
        0, 0, 0, 6, 0, 0, 0, 36, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 2, 0, 0, 0, 2, 8, 9, 0, 0, 0, 0, 0, 36,
    ];
    let file = [&pcapng(&[&PACKET])[..], &[0xff; 28], &interface, &packet].concat();
    let (packets, damages) = read(&file);
    assert_eq!(packets[1], (2, 9_000, None, vec![8, 9]));
    assert_eq!(damages.iter().map(|damage| (damage.offset, damage.bytes)).collect::<Vec<_>>(), [(116, 28)]);
}

#[test]
fn an_interface_that_was_lost_is_known_by_its_packets() {
    let packet = packet(&USBMON);
    let file = [&[0xff; 60][..], &packet, &packet, &packet].concat();
    let mut reader = Reader::new(&file[..], "memory".into()).unwrap();
    let damage = |offset, bytes, kind| Some(Item::Damage(Damage { offset, bytes, kind }));
    assert_eq!(reader.next_item().unwrap(), damage(0, 60, DamageKind::Section));
    assert_eq!(reader.next_item().unwrap(), damage(60, 96, DamageKind::Interface { number: 0 }));
    for _ in 0..2 {
        let Some(Item::Packet(packet)) = reader.next_item().unwrap() else { panic!("a packet") };
        assert_eq!((packet.link, packet.at_ns), (Link::Usbmon, PACKET_NS));
    }
    assert_eq!(reader.next_item().unwrap(), None);
}

#[test]
fn what_packets_look_like() {
    let order = ByteOrder::Little;
    assert_eq!(Link::seen_in(&USBMON, order), Some(Link::Usbmon));
    assert_eq!(Link::seen_in(&USBMON[..48], order), Some(Link::UsbmonShort));
    let usbpcap = [27, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 1, 2, 0, 5, 0, 0x81, 3, 1, 0, 0, 0, 0xaa];
    assert_eq!(Link::seen_in(&usbpcap, order), Some(Link::Usbpcap));
    for other in [&usbpcap[..27], &USBMON[..63], &[], &[0; 64]] {
        assert_eq!(Link::seen_in(other, order), None);
    }
}

#[test]
fn a_block_of_an_unregistered_type_is_reported() {
    let mut unknown = PACKET;
    unknown[0..4].copy_from_slice(&[0x12, 0x34, 0x56, 0x78]);
    let (packets, damages) = read(&pcapng(&[&PACKET, &unknown, &PACKET]));
    assert_eq!(packets.len(), 2);
    let kind = DamageKind::Unknown { kind: 0x7856_3412 };
    assert_eq!(damages, [Damage { offset: 116, bytes: 56, kind }]);
    // Name resolution, a custom block.
    for known in [4, 0xbad_u32] {
        unknown[0..4].copy_from_slice(&known.to_le_bytes());
        unknown[8..52].fill(0);
        assert_eq!(read(&pcapng(&[&unknown])).1, [], "{known:#x}");
    }
}

#[test]
fn packets_that_were_dropped_are_reported() {
    #[rustfmt::skip]
    let packet = [
        6, 0, 0, 0, 52, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0,
        4, 0, 8, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 52, 0, 0, 0,
    ];
    // Statistics: 2 dropped by the interface, 5 by the system; and again, since they are counted from the beginning.
    #[rustfmt::skip]
    let statistics = [
        5, 0, 0, 0, 48, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        5, 0, 8, 0, 2, 0, 0, 0, 0, 0, 0, 0, 7, 0, 8, 0, 5, 0, 0, 0, 0, 0, 0, 0, 48, 0, 0, 0,
    ];
    let file = pcapng(&[&PACKET, &packet, &statistics[..44], &[48, 0, 0, 0], &statistics]);
    let mut reader = Reader::new(&file[..], "memory".into()).unwrap();
    let mut found = Vec::new();
    while let Some(item) = reader.next_item().unwrap() {
        match item {
            Item::Packet(packet) => found.push((packet.number, 0, true)),
            Item::Dropped(Dropped { offset, packets, is_here }) => found.push((packets, offset, is_here)),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(found, [(1, 0, true), (3, 116, true), (2, 0, true), (7, 168, false)]);
    assert_eq!(
        Dropped { offset: 168, packets: 7, is_here: false }.to_string(),
        "at offset 168: 7 packets were dropped somewhere before by the capturing program"
    );
}

/// A file of usbmon, microseconds, with records of so many bytes each; a record's fraction is its place in the file.
fn pcap(records: usize, bytes: usize) -> Vec<u8> {
    let mut file = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 220, 0, 0, 0];
    for record in 0..records as u32 {
        for field in [1_000, record, bytes as u32, bytes as u32] {
            file.extend(field.to_le_bytes());
        }
        file.extend((0..bytes).map(|at| at as u8));
    }
    file
}

#[test]
fn records_have_their_times_and_bytes() {
    let (packets, damages) = read(&pcap(2, 64));
    assert_eq!((packets.len(), damages.len()), (2, 0));
    assert_eq!(packets[1].1, 1_000_000_001_000);
    assert_eq!(packets[1].3, (0..64).collect::<Vec<u8>>());
}

#[test]
fn nanoseconds_and_the_other_byte_order_are_read() {
    let file = [
        &[0xa1, 0xb2, 0x3c, 0x4d, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 189][..],
        &[0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1, 0xaa],
    ];
    let file = file.concat();
    let mut reader = Reader::new(&file[..], "memory".into()).unwrap();
    let Some(Item::Packet(packet)) = reader.next_item().unwrap() else { panic!("a packet") };
    assert_eq!((packet.link, packet.order), (Link::UsbmonShort, ByteOrder::Big));
    assert_eq!((packet.at_ns, packet.bytes), (1_000_000_002, &[0xaa][..]));
}

#[test]
fn a_truncated_record_is_reported_with_its_offset() {
    let file = pcap(2, 64);
    for cut in 1..80 {
        let (packets, damages) = read(&file[..file.len() - cut]);
        assert_eq!(packets.len(), 1);
        assert_eq!((damages.len(), damages[0].offset), (1, 24 + 80), "{cut}: {damages:?}");
    }
}

#[test]
fn behind_a_record_of_garbage_the_next_is_found() {
    let mut file = pcap(5, 64);
    let second = 24 + 80;
    file[second..second + 16].fill(0xff);
    let (packets, damages) = read(&file);
    assert_eq!(packets.iter().map(|packet| packet.1 % 1_000_000 / 1_000).collect::<Vec<_>>(), [0, 2, 3, 4]);
    assert_eq!(damages, [Damage { offset: 104, bytes: 80, kind: DamageKind::Length { length: u32::MAX } }]);
}

#[test]
fn a_record_with_a_wrong_length_is_skipped_alone() {
    let mut file = pcap(5, 64);
    let second = 24 + 80;
    file[second + 8..second + 12].copy_from_slice(&0x0010_0000_u32.to_le_bytes());
    let (packets, damages) = read(&file);
    assert_eq!(packets.len(), 4);
    assert_eq!((damages[0].offset, damages[0].bytes), (104, 80));
}

/// A file of usbmon events without payload: submissions of 31 bytes, in this byte order and fractions.
fn events(order: ByteOrder, fractions: &[u32]) -> Vec<u8> {
    let number = |value: u32| if order == ByteOrder::Big { value.to_be_bytes() } else { value.to_le_bytes() };
    let mut file = vec![0x5a; 24];
    for fraction in fractions {
        [1_000, *fraction, 64, 64].iter().for_each(|field| file.extend(number(*field)));
        let mut event = [0; 64];
        event[8..10].copy_from_slice(&[b'S', 3]);
        event[32..36].copy_from_slice(&number(31));
        file.extend(event);
    }
    file
}

#[test]
fn behind_a_damaged_file_header_the_link_type_is_inferred_from_records() {
    for order in [ByteOrder::Little, ByteOrder::Big] {
        for (fractions, last_ns) in
            [(&[0, 999_999][..], 999_999_000), (&[5, 999_999_999], 999_999_999), (&[7], 7_000)]
        {
            let file = events(order, fractions);
            let (packets, damages) = read(&file);
            assert_eq!(damages, [Damage { offset: 0, bytes: 24, kind: DamageKind::Header }]);
            assert_eq!(packets.len(), fractions.len());
            assert_eq!(packets[packets.len() - 1].1, 1_000_000_000_000 + last_ns, "{order:?} {fractions:?}");
            let mut reader = Reader::new(&file[..], "memory".into()).unwrap();
            assert!(matches!(reader.next_item(), Ok(Some(Item::Damage(damage))) if damage == damages[0]));
            let Ok(Some(Item::Packet(packet))) = reader.next_item() else { panic!("a packet") };
            assert_eq!((packet.link, packet.order), (Link::Usbmon, order));
        }
    }
    // One record and bytes behind it that are none might be anything.
    let unsure = [&events(ByteOrder::Little, &[7])[..], &[0xff; 40]].concat();
    assert!(Reader::new(&unsure[..], "memory".into()).is_err());
}

#[test]
fn what_is_no_capture_is_refused() {
    let files: [(&[u8], &str); 5] = [
        (b"", "it is empty"),
        (&[0; 64], "neither pcap, pcapng"),
        (b"\x0a\x0d\x0d\x0a\x1c\0\0\0????", "neither pcap, pcapng"),
        (b"ffff8a0c 3575914555 S Bulk\n", "neither pcap, pcapng"),
        (b"BZh91AY", "`bzip2 -dc`"),
    ];
    for (file, what) in files {
        let error = Reader::new(file, "memory".into()).err().unwrap().to_string();
        assert!(error.contains(what), "{error}");
    }
}

#[test]
fn what_was_written_is_read() {
    use crate::{Interface, LinkType, Pcapng, Record};
    let mut out = Pcapng::new(Vec::new(), "memory".into(), "uaskit").unwrap();
    let interface = Interface { link_type: LinkType::Usb2Packets, name: "a", description: "b" };
    let interface = out.add_interface(&interface).unwrap();
    for at in 0..3 {
        let at = units::Instant::from_ps(at * 1_000);
        out.add(interface, &Record { at, head: &[0x5a], body: &[], cut: 0, comments: &["stream 65534"] })
            .unwrap();
    }
    let (packets, damages) = read(&out.finish().unwrap());
    assert_eq!(damages, []);
    assert_eq!(packets[2], (3, 2, Some(65_534), vec![0x5a]));
}
