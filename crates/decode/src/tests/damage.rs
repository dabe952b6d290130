//! Captures of which a part is missing: verdicts on the rest are right, or are not sure.

use super::*;
use capture::{Interface, Item, LinkType, Pcapng, Reader, Record};
use std::ops::Range;
use wire::scsi::opcode::OperationCode;

/// The file of a script without these packets, which the next one counts; and where each block behind the interface begins.
fn file(script: &Script, dropped: Range<usize>) -> (Vec<u8>, Vec<usize>) {
    let mut out = Pcapng::new(Vec::new(), "memory".into(), "").unwrap();
    let interface =
        out.add_interface(&Interface { link_type: LinkType::Usbmon, name: "", description: "" }).unwrap();
    for (index, (at_ns, stream, bytes)) in script.recorded.iter().enumerate() {
        if dropped.contains(&index) {
            out.drop_before_next(1);
            continue;
        }
        let at = units::Instant::from_ps(at_ns * 1_000);
        let comment = stream.map_or_else(String::new, |stream| format!("stream {stream}"));
        out.add(interface, &Record { at, head: bytes, body: &[], cut: 0, comments: &[&comment] }).unwrap();
    }
    let file = out.finish().unwrap();
    let (mut at, mut blocks) = (0, Vec::new());
    while at < file.len() {
        blocks.push(at);
        at += u32::from_le_bytes(file[at + 4..at + 8].try_into().unwrap()) as usize;
    }
    (file, blocks.split_off(2))
}

type Key = (Fault, Option<OperationCode>, bool);

/// Verdicts of a file, whether they are sure, and how many commands there are.
fn verdicts(file: &[u8]) -> (Vec<Key>, usize) {
    let mut reader = Reader::new(file, "memory".into()).unwrap();
    let mut decoder = Decoder::new();
    while let Some(item) = reader.next_item().unwrap() {
        match item {
            Item::Packet(packet) => decoder.take(&packet),
            Item::Damage(_) => decoder.miss(),
            Item::Dropped(dropped) if dropped.is_here => decoder.miss(),
            Item::Dropped(_) => decoder.miss_somewhere(),
            Item::Section => decoder.begin_section(),
        }
    }
    decoder.finish();
    let commands = std::iter::from_fn(|| decoder.poll()).count();
    let recorded = decoder.verdicts().iter().map(|verdict| (verdict.fault, verdict.opcode, verdict.is_sure));
    (recorded.collect(), commands)
}

/// Overwrites, cuts out or takes away some of the file, so that it shows: at least one block is not whole any more, or what is behind
/// says that something is missing.
fn damaged(file: &[u8], blocks: &[usize], dice: &mut good::Dice) -> Vec<u8> {
    let first = dice.below(blocks.len() - 2);
    let last = (first + 1 + dice.below(40)).min(blocks.len() - 1);
    let mut file = file.to_vec();
    let inside =
        |dice: &mut good::Dice, block: usize| blocks[block] + dice.below(blocks[block + 1] - blocks[block]);
    match dice.below(3) {
        0 => {
            let from = inside(dice, first);
            let to = blocks[last] + dice.below(8);
            for byte in &mut file[from..to] {
                *byte = dice.below(256) as u8;
            }
        }
        1 => {
            let from = inside(dice, first).max(blocks[first] + 1);
            drop(file.drain(from..blocks[last]));
        }
        _ => file.truncate(inside(dice, first).max(blocks[first] + 1)),
    }
    file
}

#[test]
fn no_damage_makes_a_sure_verdict() {
    let seed = good::seed();
    let mut dice = good::Dice(seed);
    let scripts = good::all(&mut dice);
    let mut doubts = 0;
    for (which, script) in scripts.iter().enumerate() {
        let (whole, blocks) = file(script, 0..0);
        let (healthy, commands) = verdicts(&whole);
        assert_eq!(healthy, [], "script {which}");
        assert!(commands >= 119, "{commands}");
        for round in 0..400 {
            let damaged = if round % 4 == 0 {
                let from = dice.below(script.recorded.len() - 1);
                let to = (from + 1 + dice.below(40)).min(script.recorded.len() - 1);
                file(script, from..to).0
            } else {
                damaged(&whole, &blocks, &mut dice)
            };
            let (recorded, _) = verdicts(&damaged);
            doubts += recorded.len();
            let sure: Vec<_> = recorded.iter().filter(|(.., is_sure)| *is_sure).collect();
            assert!(sure.is_empty(), "SEED={seed}, script {which}, round {round}: {sure:?}");
        }
    }
    assert!(doubts > 0, "what may be the damage is recorded all the same, and said not to be sure");
}

/// Statistics at the end of a file say that packets are missing, and not where.
#[test]
fn where_packets_are_missing_somewhere_nothing_is_sure() {
    let mut script = Script::enumerated(0);
    let lying = |script: &mut Script, tag| {
        script.send(1, &good::cbw(tag, 512, 0x80, &[0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0]));
        script.receive(0x81, 512, &[0; 512]);
        script.receive(0x81, 13, &[b'U', b'S', b'B', b'S', tag, 0, 0, 0, 1, 0, 0, 0, 0]);
    };
    lying(&mut script, 1);
    script.decoder.miss_somewhere();
    let recorded = |script: &Script| -> Vec<_> {
        script.decoder.verdicts().iter().map(|one| (one.fault, one.is_sure, one.count)).collect()
    };
    assert_eq!(recorded(&script), [(Fault::ResidueTooLarge, false, 1)]);
    lying(&mut script, 2);
    assert_eq!(recorded(&script), [(Fault::ResidueTooLarge, false, 1), (Fault::ResidueTooLarge, true, 1)]);
}
