//! Endpoint 0: SETUP, data and status.

use super::orders::fate;
use super::*;

fn setup(direction: Direction, length: u16) -> SetupPacket {
    let clear_halt = BusRequest::ClearHalt(IN).setup().unwrap();
    SetupPacket { direction, length, ..clear_halt }
}

/// A control transfer that the device answers as soon as it is asked: how it ends, and bytes of its
/// data at each end.
fn control(wire: &mut Wire, setup: SetupPacket, answer: ControlAnswer) -> (Option<ControlEnd>, u16, u16) {
    wire.link_pair.host.control(ControlTransfer { id: TransferId(1), setup }).unwrap();
    let (mut end, mut moved, mut taken) = (None, 0, 0);
    while wire.go() {
        while let Some(event) = wire.link_pair.device.poll_control() {
            match event {
                ControlEvent::Asked(setup) => wire.link_pair.device.answer(setup, answer),
                ControlEvent::Moved(piece) => taken += piece.bytes,
            }
        }
        while let Some(progress) = wire.link_pair.host.poll_control() {
            moved = progress.moved;
            assert!(end.is_none(), "it ends once");
            end = progress.ended;
        }
    }
    (end, moved, taken)
}

#[test]
fn a_request_without_data_is_a_setup_and_an_empty_packet() {
    let mut wire = Wire::high(&[]);
    let ended = control(&mut wire, setup(Direction::Out, 0), ControlAnswer::Done(0));
    assert_eq!(ended, (Some(ControlEnd::Done), 0, 0));
    assert_script(
        &wire,
        &[
            "   316    633 -> SETUP 0",
            "   633   1083 -> DATA0 8 bytes",
            "  1083   1366 <- ACK",
            "  1366   1683 -> IN 0",
            "  1683   2000 <- DATA1 0 bytes",
            "  2000   2283 -> ACK",
        ],
    );
}

#[test]
fn data_for_the_host_begins_with_data1_and_its_status_goes_the_other_way() {
    let mut wire = Wire::high(&[]);
    let ended = control(&mut wire, setup(Direction::In, 255), ControlAnswer::Done(100));
    assert_eq!(ended, (Some(ControlEnd::Done), 100, 0));
    let data: Vec<_> = wire.said.iter().filter(|said| said.contains("DATA")).collect();
    assert_eq!(data, ["-> DATA0 8 bytes", "<- DATA1 64 bytes", "<- DATA0 36 bytes", "-> DATA1 0 bytes"]);
}

#[test]
fn a_refused_request_stalls_and_the_next_is_taken() {
    let mut wire = Wire::high(&[]);
    for direction in [Direction::In, Direction::Out] {
        let ended = control(&mut wire, setup(direction, 0), ControlAnswer::Stall);
        assert_eq!(ended, (Some(ControlEnd::Stalled), 0, 0));
    }
    let ended = control(&mut wire, setup(Direction::Out, 0), ControlAnswer::Done(0));
    assert_eq!(ended, (Some(ControlEnd::Done), 0, 0));
}

#[test]
fn a_lost_request_fails() {
    let mut wire = Wire::high(&[]);
    wire.fates = vec![Fate::Lost; 6];
    let ended = control(&mut wire, setup(Direction::Out, 0), ControlAnswer::Done(0));
    assert_eq!(ended, (Some(ControlEnd::Failed), 0, 0));
    assert_eq!(wire.said.len(), 6);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn whatever_is_lost_a_control_transfer_ends_once_with_all_its_data(
        rate in prop_oneof![Just(Rate::Full), Just(Rate::High)],
        is_in in prop::bool::ANY,
        length in 0_u16..300,
        fates in prop::collection::vec(fate(), 0..40),
    ) {
        let mut wire = Wire::new(rate, &[], 0);
        // Losses one by one, so that no packet is tried three times.
        wire.fates = fates.into_iter().flat_map(|fate| [Fate::Arrives, Fate::Arrives, fate, Fate::Arrives, Fate::Arrives, Fate::Arrives]).collect();
        let direction = if is_in { Direction::In } else { Direction::Out };
        let (end, moved, taken) = control(&mut wire, setup(direction, length), ControlAnswer::Done(length));
        let taken = if is_in { length } else { taken };
        prop_assert_eq!((end, moved, taken), (Some(ControlEnd::Done), length, length), "{}", wire.script.join("\n"));
    }
}
