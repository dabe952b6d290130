//! Healthy traffic, recorded in every way that captures are made: from any moment to any other, cut short, of two buses, among other
//! devices. How a capture was made is never a fault of the device.

use super::good::{self, Dice, all, bot, seed, uas};
use super::*;
use crate::{Outcome, Transport};

/// Time, stream and bytes of a packet.
type Recorded = (u64, Option<u16>, Vec<u8>);

const KIND_AT: usize = 9;
const DEVICE_AT: usize = 11;
const BUS_AT: usize = 12;
const HEADER: usize = 64;
/// Packets of the enumeration in a script.
const CONTROLS: usize = 6;

fn decoded(link: Link, recorded: &[Recorded]) -> (Decoder, Vec<Command>) {
    let mut decoder = Decoder::new();
    for (number, (at_ns, stream, bytes)) in (1..).zip(recorded) {
        let (at_ns, stream, order) = (*at_ns, *stream, ByteOrder::Little);
        decoder.take(&Packet {
            number,
            at_ns,
            link,
            order,
            interface: 0,
            bytes,
            cut: 0,
            stream,
            is_added: false,
        });
    }
    decoder.finish();
    let commands = std::iter::from_fn(|| decoder.poll()).collect();
    (decoder, commands)
}

/// Expects no verdict; returns the commands.
fn quiet(recorded: &[Recorded], what: impl Fn() -> String) -> Vec<Command> {
    let (decoder, commands) = decoded(Link::Usbmon, recorded);
    assert_eq!(decoder.verdicts(), [], "{}", what());
    commands
}

#[test]
fn a_capture_may_begin_and_end_anywhere() {
    let seed = seed();
    for (which, script) in all(&mut Dice(seed)).iter().enumerate() {
        let recorded = &script.recorded;
        for at in 0..recorded.len() {
            let what = |how| move || format!("SEED={seed}, script {which}, {how} packet {at}");
            quiet(&recorded[at..], what("from"));
            quiet(&recorded[..at], what("up to"));
            // As a capture in several files: each begins with the enumeration.
            quiet(
                &[&recorded[..CONTROLS], &recorded[at.max(CONTROLS)..]].concat(),
                what("enumeration, then from"),
            );
        }
    }
}

#[test]
fn of_each_packet_any_number_of_bytes_may_be_kept() {
    let seed = seed();
    for (which, script) in all(&mut Dice(seed)).iter().enumerate() {
        let whole = quiet(&script.recorded, String::new).len();
        for snap in 0..64 {
            let cut = |(at_ns, stream, bytes): &Recorded| {
                let captured = bytes.len().min(HEADER + snap);
                let is_control = bytes[KIND_AT] == 2;
                (*at_ns, *stream, bytes[..if is_control { bytes.len() } else { captured }].to_vec())
            };
            let recorded: Vec<Recorded> = script.recorded.iter().map(cut).collect();
            let commands = quiet(&recorded, || format!("SEED={seed}, script {which}, {snap} bytes captured"));
            // Wrappers and units with their command block.
            assert!(snap < 32 || commands.len() == whole, "{which}, {snap}: {}", commands.len());
        }
    }
}

#[test]
fn two_buses_have_the_same_addresses() {
    let seed = seed();
    let mut dice = Dice(seed);
    let (first, second) = (bot(&mut dice), uas(&mut dice, false, false));
    let mut rest = [&first.recorded[..], &second.recorded[..]].map(|recorded| recorded.iter());
    let mut recorded = Vec::new();
    while rest.iter().any(|rest| rest.len() > 0) {
        let which = dice.below(2);
        for (at_ns, stream, bytes) in rest[which].by_ref().take(1 + dice.below(5)) {
            let mut bytes = bytes.clone();
            bytes[BUS_AT] = which as u8 + 1;
            recorded.push((*at_ns, *stream, bytes));
        }
    }
    let commands = quiet(&recorded, || format!("SEED={seed}"));
    for (script, transport) in [(&first, Transport::Bot), (&second, Transport::Uas)] {
        let alone = quiet(&script.recorded, String::new).len();
        assert_eq!(commands.iter().filter(|command| command.transport == transport).count(), alone);
    }
}

/// A keyboard, a camera and a stick of another vendor, at other addresses and beside the drive in the same device.
#[test]
fn what_is_no_drive_makes_no_commands() {
    let seed = seed();
    let mut dice = Dice(seed);
    for script in all(&mut dice) {
        let alone = quiet(&script.recorded, String::new);
        let mut recorded = Vec::new();
        for packet in &script.recorded {
            recorded.push(packet.clone());
            let mut other = packet.2.clone();
            // Isochronous, interrupt; of this device, of another one.
            (other[KIND_AT], other[DEVICE_AT]) = (dice.below(2) as u8, 5 + dice.below(2) as u8);
            other[10] = [0x81, 0x86, 0x05][dice.below(3)];
            recorded.push((packet.0, None, other));
        }
        let mixed = quiet(&recorded, || format!("SEED={seed}"));
        assert_eq!(mixed.len(), alone.len());
        assert!(mixed.iter().zip(&alone).all(|(one, other)| one.moved == other.moved));
    }
}

#[test]
fn headers_of_48_bytes_give_the_same() {
    for script in all(&mut Dice(seed())) {
        let short =
            |(at_ns, stream, bytes): &Recorded| (*at_ns, *stream, [&bytes[..48], &bytes[HEADER..]].concat());
        let recorded: Vec<Recorded> = script.recorded.iter().map(short).collect();
        let (decoder, commands) = decoded(Link::UsbmonShort, &recorded);
        assert_eq!(decoder.verdicts(), []);
        assert_eq!(commands, quiet(&script.recorded, String::new));
    }
}

/// As usb-storage in Linux asks for it: an error for fewer bytes than were asked for, and the residue is what did not come.
#[test]
fn a_short_read_is_reported_as_no_fault() {
    let mut script = Script::enumerated(0);
    script.send(1, &good::cbw(1, 192, 0x80, &[0x1a, 0, 0x3f, 0, 192, 0]));
    script.submit(9, 0x81, 192, &[]);
    script.end(9, 0x81, (-121, 36), &[0; 36]);
    script.receive(0x81, 13, &[b'U', b'S', b'B', b'S', 1, 0, 0, 0, 156, 0, 0, 0, 0]);
    assert_eq!(script.one().moved, 36);
    assert_eq!(script.faults(), []);
}

/// The device has sent 1,024 bytes of 4,096 and then stalls; both say so.
#[test]
fn bytes_before_a_stall_have_moved() {
    let mut script = Script::enumerated(0);
    script.send(1, &good::cbw(1, 4096, 0x80, &[0x28, 0, 0, 0, 0, 0, 0, 0, 8, 0]));
    script.submit(9, 0x81, 4096, &[]);
    let stalled = script.end(9, 0x81, (STALL, 1024), &[0; 1024]);
    script.control([0x02, 1, 0, 0, 0x81, 0, 0, 0], &[]);
    script.receive(0x81, 13, &[b'U', b'S', b'B', b'S', 1, 0, 0, 0, 0, 12, 0, 0, 1]);
    script.decoder.finish();
    assert_eq!(script.one().moved, 1024);
    assert_eq!(script.faults(), [(Fault::StallEndsData, 1, &[stalled][..])], "the residue is right");
    assert!(script.decoder.verdicts()[0].is_note());
}

/// A read fails because the medium may have changed, the host asks why and sends it again.
#[test]
fn a_command_that_is_to_come_again_is_no_retry() {
    for (key, is_retry) in [(6, false), (2, false), (3, true), (0x0b, true)] {
        let mut script = Script::enumerated(0);
        script.send(1, &good::cbw(1, 512, 0x80, &[0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0]));
        script.receive(0x81, 512, &[]);
        script.receive(0x81, 13, &[b'U', b'S', b'B', b'S', 1, 0, 0, 0, 0, 2, 0, 0, 1]);
        script.send(1, &good::cbw(2, 18, 0x80, &[3, 0, 0, 0, 18, 0]));
        script.receive(0x81, 18, &[0x70, 0, key, 0, 0, 0, 0, 10, 0, 0, 0, 0, 4, 1, 0, 0, 0, 0]);
        script.receive(0x81, 13, &good::csw(2, 0));
        let again = script.send(1, &good::cbw(3, 512, 0x80, &[0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0]));
        let retried = [(Fault::Retried, 1, &[7, again][..])];
        assert_eq!(script.faults(), &retried[..usize::from(is_retry)], "sense key {key:#x}");
    }
}

/// Page B2h says that UNMAP is there, a block is written; then blocks are given back by one command or another, or by none.
#[test]
fn blocks_are_given_back_in_more_than_one_way() {
    let trim = [0x85, 0x0d, 0x06, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0x40, 6, 0];
    let identify = [0x85, 0x09, 0x0e, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0x40, 0xec, 0];
    let unmap = [0x42, 0, 0, 0, 0, 0, 0, 0, 24, 0];
    let same = [0x93, 0x08, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0];
    let plain = [0x93, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0];
    for (cdb, status, is_reported) in [
        (&trim[..], 0, false),
        (&unmap, 0, false),
        (&unmap, 1, false),
        (&same, 0, false),
        (&plain, 0, true),
        (&identify, 0, true),
    ] {
        let mut script = Script::enumerated(0);
        script.send(1, &good::cbw(1, 8, 0x80, &[0x12, 1, 0xb2, 0, 8, 0]));
        script.receive(0x81, 8, &[0, 0xb2, 0, 4, 0, 0x80, 2, 0]);
        script.receive(0x81, 13, &good::csw(1, 0));
        script.send(1, &good::cbw(2, 512, 0, &[0x2a, 0, 0, 0, 0, 1, 0, 0, 1, 0]));
        script.send(1, &[0; 512]);
        script.receive(0x81, 13, &good::csw(2, 0));
        script.send(1, &good::cbw(3, 512, 0, cdb));
        script.send(1, &[0; 512]);
        script.receive(0x81, 13, &good::csw(3, status));
        script.decoder.finish();
        let faults: Vec<_> = script.faults().iter().map(|fault| fault.0).collect();
        assert_eq!(faults, &[Fault::TrimNeverSent][..usize::from(is_reported)], "{cdb:02x?}, {status}");
    }
}

const DEVICE_DESCRIPTOR: [u8; 18] = [18, 1, 0, 3, 0, 0, 0, 9, 0x25, 0x15, 0x16, 0x01, 0, 1, 1, 2, 3, 1];

/// Unplugged in the middle of a read, and plugged in again, or another one: at the same address.
#[test]
fn a_device_that_was_unplugged_is_not_reset() {
    for other in [false, true] {
        let mut script = Script::new();
        script.control([0x80, 6, 0, 1, 0, 0, 18, 0], &DEVICE_DESCRIPTOR);
        script.control([0x80, 6, 0, 2, 0, 0, 85, 0], &CONFIGURATION);
        script.control([0x00, 9, 1, 0, 0, 0, 0, 0], &[]);
        script.send(1, &good::cbw(1, 512, 0x80, &[0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0]));
        script.submit(9, 0x81, 512, &[]);
        let gone = script.end(9, 0x81, (-108, 0), &[]);
        let mut descriptor = DEVICE_DESCRIPTOR;
        descriptor[10] = 0x16 + u8::from(other);
        script.control([0x80, 6, 0, 1, 0, 0, 18, 0], &descriptor);
        script.control([0x80, 6, 0, 2, 0, 0, 85, 0], &CONFIGURATION);
        script.control([0x00, 9, 1, 0, 0, 0, 0, 0], &[]);
        script.send(1, &good::cbw(1, 0, 0, &[0; 6]));
        script.receive(0x81, 13, &good::csw(1, 0));
        let outcomes: Vec<_> = script.ended().iter().map(|one| one.outcome).collect();
        assert_eq!(outcomes.len(), 2);
        assert!(matches!(outcomes[0], Outcome::Aborted | Outcome::Unfinished), "{outcomes:?}");
        assert_eq!(script.faults(), [(Fault::Gone, 1, &[gone][..])], "{other}");
    }
}

#[test]
fn a_configuration_of_an_idle_device_is_a_note() {
    let mut script = Script::enumerated(0);
    script.send(1, &good::cbw(1, 0, 0, &[0; 6]));
    script.receive(0x81, 13, &good::csw(1, 0));
    script.control([0x00, 9, 1, 0, 0, 0, 0, 0], &[]);
    assert_eq!(script.faults(), [(Fault::ConfiguredAgain, 1, &[script.packets][..])]);
    assert!(script.decoder.verdicts()[0].is_note());
    assert_eq!(
        script.decoder.verdicts()[0].to_string(),
        format!("2.5: reset or configured again with no command in flight: once (packet {})", script.packets)
    );
}

/// A packet of usbmon as USBPcap records it: without the requested length of a transfer to the host and the moved length of one to the device.
fn usbpcap((at_ns, stream, bytes): &Recorded) -> Recorded {
    let (is_up, kind, endpoint) = (bytes[8] == b'C', bytes[KIND_AT], bytes[10]);
    let setup: &[u8] = if kind == 2 && !is_up { &bytes[40..48] } else { &[] };
    let payload = [setup, &bytes[HEADER..]].concat();
    let stage: &[u8] = match (kind, is_up) {
        (2, false) => &[0],
        (2, true) => &[3],
        _ => &[],
    };
    let mut packet = vec![27 + stage.len() as u8, 0];
    packet.extend(&bytes[..8]);
    packet.extend([0, 0, 0, 0, 9, 0, is_up.into(), bytes[BUS_AT], 0, bytes[DEVICE_AT], 0, endpoint, kind]);
    packet.extend((payload.len() as u32).to_le_bytes());
    packet.extend(stage);
    (*at_ns, *stream, [packet, payload].concat())
}

#[test]
fn usbpcap_has_the_same_commands() {
    for script in all(&mut Dice(seed())) {
        let recorded: Vec<Recorded> = script.recorded.iter().map(usbpcap).collect();
        let (decoder, commands) = decoded(Link::Usbpcap, &recorded);
        assert_eq!((decoder.verdicts(), decoder.not_understood().count), (&[][..], 0));
        let whole = quiet(&script.recorded, String::new);
        let recorded = |commands: &[Command]| -> Vec<_> {
            commands.iter().map(|one| (one.tag, one.block, one.moved, one.outcome)).collect()
        };
        assert_eq!(recorded(&commands), recorded(&whole));
    }
}
