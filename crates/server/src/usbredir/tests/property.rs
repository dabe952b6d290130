//! Any bytes, cut anywhere.

use super::fixture::{Bench, QEMU, bulk, hello, packet, split};
use crate::usbredir::{Fault, Limits};
use bus::Speed;
use proptest::collection::vec;
use proptest::prelude::*;

/// Packets that a client may send, most of them sound.
fn script() -> impl Strategy<Value = Vec<u8>> {
    let id = 0u64..6;
    let endpoint =
        prop_oneof![8 => Just(0x81u8), 8 => Just(0x02), 4 => Just(0x83), 4 => Just(0x04), 1 => any::<u8>()];
    let step = prop_oneof![
        8 => (id.clone(), endpoint, 0u32..40, 0u32..9000).prop_map(|(id, endpoint, stream, length)| {
            let payload = if endpoint & 0x80 == 0 { length as usize } else { 0 };
            bulk(id, endpoint, stream % 3, length, &vec![stream as u8; payload])
        }),
        1 => (0u8..3).prop_map(|configuration| packet(6, 50, &[configuration])),
        2 => (0u8..3).prop_map(|alternate| packet(9, 51, &[0, alternate])),
        2 => (1u8..40).prop_map(|count| packet(18, 52, &[4, 0, 0x0a, 0, count, 0, 0, 0])),
        1 => Just(packet(19, 53, &[4, 0, 0x0a, 0])),
        2 => id.prop_map(|id| packet(21, id, &[])),
        1 => Just(packet(3, 0, &[])),
        1 => (any::<u8>(), any::<u8>()).prop_map(|(request, value)| {
            packet(100, 54, &[0x80, request, 0x80, 0, 0, value, 0, 0, 64, 0])
        }),
        1 => (25u32..99, vec![any::<u8>(); 3]).prop_map(|(kind, body)| packet(kind, 55, &body)),
    ];
    vec(step, 0..40).prop_map(|steps| [hello(QEMU), packet(6, 1, &[1]), steps.concat()].concat())
}

fn limits() -> Limits {
    Limits {
        outgoing_bytes: 4096,
        payload_bytes_soft: 16 << 10,
        payload_bytes_hard: 64 << 10,
        ..Limits::default()
    }
}

/// Gives `bytes` to a session in pieces of these lengths, over and over; reads what it sends. What it has sent, and
/// whether it went on to the end.
fn play(bytes: &[u8], cuts: &[usize], echo: bool) -> (Vec<u8>, Result<(), Fault>, Bench) {
    let mut bench = Bench::with(Speed::Super, limits());
    bench.device.echo = echo.then(|| vec![0x5a; 3000]);
    let (mut sent, mut buffer, mut rest) = (bench.sent(), vec![], bytes);
    for &cut in cuts.iter().cycle() {
        let (next, after) = rest.split_at(cut.min(rest.len()));
        buffer.extend_from_slice(next);
        let outcome = bench.session.receive(&buffer, &mut bench.device);
        // Answers to the last packet, the longest of which are the two infos, may lie on top.
        assert!(bench.session.outgoing_bytes() <= limits().outgoing_bytes + 3000 + 600);
        sent.extend(bench.sent());
        match outcome {
            Err(fault) => return (sent, Err(fault), bench),
            Ok(taken) => drop(buffer.drain(..taken)),
        }
        let was_empty = rest.is_empty();
        rest = after;
        if was_empty && matches!(outcome, Ok(0)) {
            break;
        }
    }
    (sent, Ok(()), bench)
}

proptest! {
    #[test]
    fn any_bytes_are_survived(bytes in vec(any::<u8>(), 0..300), cut in 1usize..100) {
        let _ = play(&bytes, &[cut], true);
        let _ = play(&[hello(QEMU), bytes].concat(), &[cut], true);
    }

    #[test]
    fn bytes_gone_wrong_are_survived(
        mut bytes in script(),
        wrong in vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in 1usize..5000,
    ) {
        for (place, byte) in wrong {
            *place.get_mut(&mut bytes) = byte;
        }
        let (_, _, bench) = play(&bytes, &[cut], false);
        prop_assert!(bench.device.outstanding.iter().map(|t| t.payload.len()).sum::<usize>() <= 64 << 10);
    }

    #[test]
    fn answers_do_not_depend_on_how_bytes_are_cut(bytes in script(), cuts in vec(1usize..3000, 1..20)) {
        let whole = play(&bytes, &[bytes.len()], true);
        let pieces = play(&bytes, &cuts, true);
        prop_assert_eq!(whole.1, pieces.1);
        prop_assert!(whole.0 == pieces.0, "the same bytes are sent");
    }

    #[test]
    fn each_bulk_packet_is_answered_once(bytes in script(), cuts in vec(1usize..3000, 1..20)) {
        let asked = split(&bytes[80..], 8).iter().filter(|packet| packet.0 == 101).count();
        let (mut sent, outcome, mut bench) = play(&bytes, &cuts, false);
        prop_assume!(outcome.is_ok());
        while let Some(first) = bench.device.outstanding.first() {
            bench.device.end(first.id, bus::TransferStatus::Short, &[]);
        }
        sent.extend(bench.sent());
        // Our hello alone has a 32-bit id.
        let answered = split(&sent[80..], 8).iter().filter(|packet| packet.0 == 101).count();
        prop_assert_eq!(answered, asked);
    }
}
