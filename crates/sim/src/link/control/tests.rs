//! Control transfers packet by packet, with times worked out by hand.

use super::*;
use crate::link::Fate;
use crate::link::bulk::{Endpoint, Transfer};
use crate::link::superspeed::{Inactivity, Side, Sleep};
use crate::link::wire::{Wire, assert_script};
use bus::Pipe;
use proptest::prelude::*;
use units::Duration;
use wire::usb::{Recipient, RequestKind, SetupPacket};

fn setup(direction: Direction, length: u16) -> SetupPacket {
    let (kind, recipient) = (RequestKind::Vendor, Recipient::Device);
    SetupPacket { direction, kind, recipient, request: 1, value: 2, index: 3, length }
}

/// The setup packet as a script has it.
const fn bytes(direction: Direction) -> &'static str {
    match direction {
        Direction::In => "c0, 01, 02, 00, 03, 00",
        Direction::Out => "40, 01, 02, 00, 03, 00",
    }
}

fn begin(wire: &mut Wire, setup: SetupPacket) {
    wire.link_pair.host.control(ControlTransfer { id: TransferId(1), setup }).unwrap();
}

/// Lets things happen, with a device that answers at once.
fn run(wire: &mut Wire, answer: ControlAnswer) -> (Option<ControlEnd>, u16) {
    wire.send_all();
    let (mut ended, mut moved) = (None, 0);
    loop {
        while let Some(event) = wire.link_pair.device.poll_control() {
            if let ControlEvent::Asked(setup) = event {
                wire.link_pair.device.answer(setup, answer);
            }
        }
        wire.send_all();
        while let Some(progress) = wire.link_pair.host.poll_control() {
            assert_eq!((progress.id, ended), (TransferId(1), None), "it ends once");
            (ended, moved) = (progress.ended, progress.moved);
        }
        if !wire.step() {
            return (ended, moved);
        }
    }
}

#[test]
fn a_request_without_data_takes_a_setup_a_status_and_an_answer_to_each() {
    let mut wire = Wire::new(&[]);
    begin(&mut wire, setup(Direction::Out, 0));
    assert_eq!(run(&mut wire, ControlAnswer::Done(0)), (Some(ControlEnd::Done), 0));
    assert_script(
        &wire,
        &[
            // 20 + 12 + 8 symbols.
            &format!("    0    80 -> SETUP [{}, 00, 00]", bytes(Direction::Out)),
            // 200 ns after it has come; LGOOD and LCRD have gone by then.
            "  280   320 <- ACK 0 OUT expects 1, takes 1",
            "  420   460 -> STATUS",
            "  660   700 <- ACK 0 OUT expects 0, takes 1",
        ],
    );
}

#[test]
fn data_for_the_host_comes_in_packets_of_512_bytes_each_asked_for() {
    let mut wire = Wire::new(&[]);
    begin(&mut wire, setup(Direction::In, 600));
    assert_eq!(run(&mut wire, ControlAnswer::Done(600)), (Some(ControlEnd::Done), 600));
    assert_script(
        &wire,
        &[
            &format!("    0    80 -> SETUP [{}, 58, 02]", bytes(Direction::In)),
            "  280   320 <- ACK 0 OUT expects 1, takes 1",
            "  420   460 -> ACK 0 IN expects 0, takes 1",
            // 544 symbols; then 120.
            "  660  1748 <- DATA 0 IN number 0, 512 bytes",
            " 1848  1888 -> ACK 0 IN expects 1, takes 1",
            // The lane has been idle since, and has sent its skip.
            " 2088  2328 <- DATA 0 IN number 1, 88 bytes, the last",
            " 2428  2468 -> ACK 0 IN expects 2, takes 0",
            " 2468  2508 -> STATUS",
            // 200 ns after the last of both.
            " 2708  2748 <- ACK 0 OUT expects 2, takes 1",
        ],
    );
}

#[test]
fn data_that_ends_early_on_a_full_packet_needs_an_empty_one() {
    let mut wire = Wire::new(&[]);
    begin(&mut wire, setup(Direction::In, 4096));
    assert_eq!(run(&mut wire, ControlAnswer::Done(1024)), (Some(ControlEnd::Done), 1024));
    let data: Vec<_> =
        wire.script.iter().filter_map(|line| line.split(", ").find(|part| part.ends_with("bytes"))).collect();
    assert_eq!(data, ["512 bytes", "512 bytes", "0 bytes"]);
}

#[test]
fn data_for_the_device_is_there_before_it_is_asked() {
    let mut wire = Wire::new(&[]);
    begin(&mut wire, setup(Direction::Out, 600));
    assert_eq!(run(&mut wire, ControlAnswer::Done(0)), (Some(ControlEnd::Done), 600));
    let said: Vec<_> = wire.script[2..].iter().map(|line| &line[12..]).collect();
    assert_eq!(
        said,
        [
            "-> DATA 0 OUT number 0, 512 bytes",
            "<- ACK 0 OUT expects 1, takes 1",
            "-> DATA 0 OUT number 1, 88 bytes, the last",
            "<- ACK 0 OUT expects 2, takes 1",
            "-> STATUS",
            "<- ACK 0 OUT expects 2, takes 1",
        ]
    );
}

#[test]
fn a_refusal_comes_in_the_place_of_data_or_of_the_status_and_the_next_setup_is_taken() {
    for (direction, length, refused_at) in
        [(Direction::In, 8, "IN"), (Direction::Out, 0, "OUT"), (Direction::Out, 8, "OUT")]
    {
        let mut wire = Wire::new(&[]);
        begin(&mut wire, setup(direction, length));
        assert_eq!(run(&mut wire, ControlAnswer::Stall).0, Some(ControlEnd::Stalled));
        assert!(wire.script.last().unwrap().ends_with(&format!("STALL 0 {refused_at}")));
        begin(&mut wire, setup(Direction::Out, 0));
        assert_eq!(run(&mut wire, ControlAnswer::Done(0)).0, Some(ControlEnd::Done));
    }
}

#[test]
fn a_device_that_is_not_done_says_so_and_is_asked_again_when_it_is() {
    for direction in [Direction::In, Direction::Out] {
        let mut wire = Wire::new(&[]);
        let asked = setup(direction, if direction == Direction::In { 8 } else { 0 });
        begin(&mut wire, asked);
        wire.run();
        assert!(wire.script.last().unwrap().contains("NRDY"));
        wire.link_pair.device.answer(asked, ControlAnswer::Done(8));
        assert_eq!(run(&mut wire, ControlAnswer::Stall).0, Some(ControlEnd::Done));
    }
}

#[test]
fn damaged_data_is_asked_for_again() {
    for (direction, nth) in [(Direction::In, 3), (Direction::Out, 2)] {
        let mut wire = Wire::new(&[]);
        wire.fates.insert(nth, Fate::PayloadDamaged);
        begin(&mut wire, setup(direction, 600));
        assert_eq!(run(&mut wire, ControlAnswer::Done(600)), (Some(ControlEnd::Done), 600));
        assert!(wire.script[nth].contains("DATA"));
        assert!(wire.script[nth + 1].contains("expects 0 again, takes 1"), "{}", wire.script[nth + 1]);
        assert!(wire.script[nth + 2].ends_with("number 0, 512 bytes"), "{}", wire.script[nth + 2]);
    }
}

#[test]
fn only_one_control_transfer_is_in_progress() {
    let mut wire = Wire::new(&[]);
    begin(&mut wire, setup(Direction::Out, 0));
    let another = ControlTransfer { id: TransferId(2), setup: setup(Direction::Out, 0) };
    assert_eq!(wire.link_pair.host.control(another), Err(ControlBusy));
}

#[test]
fn an_invalid_device_packet_is_a_violation() {
    use crate::link::bulk::{HostPort, Message};
    let mut host = HostPort::new(&[]);
    assert!(
        host.receive(&Message::Nrdy { endpoint: endpoint_0(Direction::Out), stream: None }).is_err(),
        "nothing was asked"
    );
    host.control(ControlTransfer { id: TransferId(1), setup: setup(Direction::In, 8) }).unwrap();
    host.poll();
    assert!(
        host.receive(&Message::Stall { endpoint: endpoint_0(Direction::Out), stream: None }).is_err(),
        "a SETUP is not refused"
    );
}

proptest! {
    #[test]
    fn data_of_any_length_moves_beside_a_bulk_transfer(length in 0_u16..2000, answered in 0_u16..2000, is_in: bool, bulk in 1_u32..40_000) {
        let direction = if is_in { Direction::In } else { Direction::Out };
        let address = EndpointAddress::at::<1>(Direction::In);
        let mut wire = Wire::new(&[Endpoint::bulk(address, 1024, 4, 0)]);
        wire.both(Pipe::plain(address), Transfer { id: TransferId(7), bytes: bulk });
        begin(&mut wire, setup(direction, length));
        let (end, moved) = run(&mut wire, ControlAnswer::Done(answered));
        prop_assert_eq!(end, Some(ControlEnd::Done));
        prop_assert_eq!(moved, if is_in { answered.min(length) } else { length });
        prop_assert_eq!(wire.ended(Side::Host).len(), 1);
    }
}

#[test]
fn a_device_requests_u1_after_u1_enable() {
    let asleep = |setup: Option<[u8; 8]>| {
        let mut wire = Wire::new(&[]);
        let (u1, u2) = (Inactivity::Accepted, Inactivity::Refused);
        wire.link_pair.let_sleep(Sleep { u1, u2, ..Sleep::LINUX });
        if let Some(setup) = setup {
            let setup = SetupPacket::decode(&setup).unwrap();
            begin(&mut wire, setup);
            assert_eq!(run(&mut wire, ControlAnswer::Done(0)).0, Some(ControlEnd::Done));
            wire.link_pair.apply_feature(wire.engine.now(), setup);
        }
        let later = wire.engine.now() + Duration::from_ms(1);
        let [_, in_u1, ..] = wire.link_pair.link().unwrap().meter(later).times(later);
        in_u1 > Duration::ZERO
    };
    assert!(!asleep(None));
    // SET_FEATURE and CLEAR_FEATURE of U1_ENABLE; SET_FEATURE of U2_ENABLE, for which the port does
    // not wait.
    assert!(asleep(Some([0x00, 0x03, 48, 0, 0, 0, 0, 0])));
    assert!(!asleep(Some([0x00, 0x01, 48, 0, 0, 0, 0, 0])));
    assert!(!asleep(Some([0x00, 0x03, 49, 0, 0, 0, 0, 0])));
    // The same number is no feature of an interface.
    assert!(!asleep(Some([0x01, 0x03, 48, 0, 0, 0, 0, 0])));
}
