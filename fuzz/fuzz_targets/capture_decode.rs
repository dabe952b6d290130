//! Capture files and usbmon's text: any bytes are read to their end or refused, each byte is in a packet or a damage at most once,
//! each command is returned once, and nothing grows.
#![no_main]

use capture::{Item, Link, Reader};
use decode::{DEVICES_MAX, Decoder, EVIDENCE_MAX, STEPS_MAX, VERDICTS_MAX};
use std::collections::BTreeSet;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(mut reader) = Reader::new(bytes, "memory".into()) else { return };
    let mut decoder = Decoder::new();
    let (mut packets, mut damaged, mut in_packets) = (0, 0, 0);
    while let Some(item) = reader.next_item().expect("memory is read") {
        match item {
            Item::Packet(packet) => {
                packets += 1;
                assert_eq!(packet.number, packets);
                // The header of an event of usbmon's text is made, and is not in the file.
                let made = if packet.link == Link::Usbmon { 64 } else { 0 };
                in_packets += packet.bytes.len().saturating_sub(made) as u64;
                decoder.take(&packet);
            }
            Item::Damage(damage) => {
                assert!(damage.bytes > 0);
                damaged += damage.bytes;
                decoder.miss();
            }
            Item::Dropped(dropped) => {
                assert!(dropped.packets > 0 || dropped.is_here);
                if dropped.is_here { decoder.miss() } else { decoder.miss_somewhere() }
            }
            Item::Section => decoder.begin_section(),
        }
    }
    assert_eq!(reader.offset(), bytes.len() as u64);
    assert!(in_packets + damaged <= bytes.len() as u64);
    decoder.finish();
    let mut began = BTreeSet::new();
    while let Some(command) = decoder.poll() {
        assert!(began.insert(command.began.packet) && command.began.packet <= packets);
        assert!(command.steps.len() <= STEPS_MAX);
        let _ =
            (command.block.to_string(), command.block.name(), command.outcome.to_string(), command.sense());
    }
    assert!(decoder.contents().count() <= DEVICES_MAX);
    let _ = decoder.clock_tick_ns();
    assert!(decoder.verdicts().len() <= VERDICTS_MAX);
    for verdict in decoder.verdicts() {
        assert!(verdict.packets.len() <= EVIDENCE_MAX);
        let _ = (verdict.to_string(), verdict.quirk());
    }
});
