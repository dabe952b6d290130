//! Random traffic: nothing panics, nothing grows.

use super::*;
use crate::{STEPS_MAX, decoder::DEVICES_MAX};
use proptest::prelude::*;

/// One end of a transfer: endpoint, status, length, bytes out of pieces that mean something.
fn event() -> impl Strategy<Value = (u64, u8, i32, usize, Vec<u8>)> {
    let endpoint = prop::sample::select(vec![0x01, 0x81, 0x02, 0x83, 0x04, 0x00, 0x80]);
    let status = prop::sample::select(vec![PENDING, PENDING, 0, 0, 0, STALL, CANCELLED, -75, -71, -108]);
    let start = prop::sample::select(vec![
        &b"USBC"[..],
        b"USBS",
        &[1, 0, 0, 1],
        &[3, 0, 0, 1],
        &[4, 0, 0, 1],
        &[5, 0, 0, 1],
        &[6, 0, 0, 1],
        &[],
    ]);
    let rest =
        prop::collection::vec(prop::sample::select(vec![0_u8, 0, 0, 1, 2, 8, 0x28, 0x80, 0xff]), 0..40);
    (0..4_u64, endpoint, status, 0..100_usize, start, rest, any::<bool>()).prop_map(
        |(id, endpoint, status, length, start, rest, fits)| {
            let mut bytes = [start, &rest].concat();
            match start {
                b"USBC" => bytes.resize(31, 0),
                b"USBS" => bytes.resize(13, 0),
                [1, ..] => bytes.resize(32, 0),
                _ => {}
            }
            let length = if fits { bytes.len() } else { length };
            (id, endpoint, status, length, bytes)
        },
    )
}

proptest! {
    #[test]
    fn every_command_that_begins_ends_once(
        events in prop::collection::vec(event(), 0..300),
        alternate in 0..3_u8,
        streams in any::<bool>(),
    ) {
        let mut script = if alternate == 2 { Script::new() } else { Script::enumerated(alternate) };
        for (at, (id, endpoint, status, length, bytes)) in events.iter().enumerate() {
            script.stream = (streams && at % 3 == 0).then_some(1);
            script.emit(*id, *endpoint, (*status, *length), bytes, None);
        }
        script.decoder.finish();
        let mut began: Vec<_> = script.ended().iter().map(|command| command.began.packet).collect();
        began.sort_unstable();
        let all = began.len();
        began.dedup();
        prop_assert_eq!(began.len(), all, "no command twice");
        prop_assert!(script.decoder.verdicts().iter().all(|verdict| verdict.count > 0));
    }

    #[test]
    fn any_packet_is_taken(
        link in prop::sample::select(vec![Link::Usbmon, Link::UsbmonShort, Link::Usbpcap, Link::Usb2Packets]),
        packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..100), 0..50),
    ) {
        let mut decoder = Decoder::new();
        for (bytes, number) in packets.iter().zip(1..) {
            let order = if number % 2 == 0 { ByteOrder::Little } else { ByteOrder::Big };
            let packet =
                Packet { number, at_ns: number, link, order, interface: 0, bytes, cut: 0, stream: None, is_added: false };
            decoder.take(&packet);
        }
        decoder.finish();
    }
}

#[test]
fn a_command_of_many_transfers_keeps_the_first() {
    let mut script = Script::enumerated(0);
    let mut cbw = [0; 31];
    cbw[..4].copy_from_slice(b"USBC");
    cbw[8..15].copy_from_slice(&[0, 0, 16, 0, 0x80, 0, 10]);
    cbw[15] = 0x28;
    script.send(1, &cbw);
    for _ in 0..100 {
        script.receive(0x81, 512, &[0; 512]);
    }
    script.decoder.finish();
    let command = script.one();
    assert_eq!((command.steps.len(), command.moved), (STEPS_MAX, 51_200));
    assert_eq!(command.steps_left_off, 202 - STEPS_MAX as u32);
}

#[test]
fn devices_have_a_limit() {
    let mut script = Script::enumerated(0);
    for device in 0..=DEVICES_MAX as u16 {
        let mut bytes = vec![0; 64];
        [bytes[8], bytes[9], bytes[14]] = [b'S', 2, b'-'];
        bytes[11..14].copy_from_slice(&[7, device.to_le_bytes()[0], device.to_le_bytes()[1] + 1]);
        let link = Link::Usbmon;
        let order = ByteOrder::Little;
        let number = script.packets + 1;
        let packet = Packet {
            number,
            at_ns: 0,
            link,
            order,
            interface: 0,
            bytes: &bytes,
            cut: 0,
            stream: None,
            is_added: false,
        };
        script.decoder.take(&packet);
    }
    assert_eq!(script.decoder.losses().devices, 0, "none of them was a drive");
}
