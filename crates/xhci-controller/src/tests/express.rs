//! Traffic on PCI Express, to the picosecond, on a card of one lane: a write to a register takes
//! 250 ns, a read from memory 800 ns, a write to memory 350 ns, and a byte 2,437 ps either way, so
//! that a TRB takes 38,992 ps and a packet of 1,024 bytes 2,495,488 ps. 8 KiB are held, which is
//! 19,963,904 ps.

use crate::Model;
use crate::fixture::{Fixture, IN, OUT, stream};
use bus::link::{End, PacketPayload};
use bus::{Pipe, TransferId};
use std::vec::Vec;
use units::{Duration, Instant};
use xhci_driver::{Config, DeviceId, Request};

const PACKET: u32 = 1024;

/// Returns how many TDs the link has, after each time that the controller does something by itself
/// in the next 10 us, in nanoseconds.
fn fetched(fixture: &mut Fixture) -> Vec<(u64, usize)> {
    let start = fixture.now;
    let mut seen = Vec::new();
    while let Some(at) =
        fixture.controller.poll_timeout().filter(|at| at.since(start) < Duration::from_us(10))
    {
        fixture.run_for(at.since(fixture.now));
        seen.push((at.since(start).as_ps() / 1000, fixture.link.len()));
    }
    seen
}

/// A card that takes eight TDs on at once, and so many TDs of a packet behind one doorbell.
fn behind_one_doorbell(tds: u64, model: Model) -> (Fixture, DeviceId) {
    let (mut fixture, device) = Fixture::with_device(model, Config::default());
    for id in 1..=tds {
        fixture.submit(device, Pipe::plain(IN), (id, PACKET)).unwrap();
    }
    fixture.controller.transfers.fetches.truncate(1);
    (fixture, device)
}

fn eight_ahead() -> Model {
    Model { tds_ahead: 8, ..Model::CARD }
}

/// So many packets go out at once; how much longer than the link needs the last of them waits, in
/// picoseconds.
fn waits(fixture: &mut Fixture, packets: u32) -> u64 {
    let payload = PacketPayload { transfer: TransferId(0), offset: 0, bytes: PACKET as u16 };
    let paced = (0..packets).map(|_| fixture.controller.read_payload(fixture.now, payload).as_ps());
    paced.last().expect("a packet")
}

/// When the events that no one has seen can be seen, in picoseconds from a time on.
fn seen(fixture: &Fixture, since: Instant) -> Vec<u64> {
    fixture.controller.transfers.events.ring.times().map(|at| at.since(since).as_ps()).collect()
}

#[test]
fn a_read_brings_a_line_of_four_trbs_and_what_is_behind_takes_one_more_each() {
    // 250 + 800; 800 more for each line.
    let (mut fixture, _) = behind_one_doorbell(6, eight_ahead());
    assert_eq!(fetched(&mut fixture), [(1050, 4), (1850, 6)]);
    let (mut fixture, _) = behind_one_doorbell(9, Model { tds_ahead: 16, ..Model::CARD });
    assert_eq!(fetched(&mut fixture), [(1050, 4), (1850, 8), (2650, 9)]);
}

#[test]
fn a_line_is_left_from_where_a_ring_stands() {
    let (mut fixture, device) = Fixture::with_device(eight_ahead(), Config::default());
    for id in 1..=3 {
        fixture.queue(device, Pipe::plain(IN), (id, PACKET));
        fixture.ends(Pipe::plain(IN), PACKET, End::Full);
    }
    // The fourth TRB is the last of its line.
    for id in 4..=6 {
        fixture.submit(device, Pipe::plain(IN), (id, PACKET)).unwrap();
    }
    fixture.controller.transfers.fetches.truncate(1);
    assert_eq!(fetched(&mut fixture), [(1050, 1), (1850, 3)]);
}

#[test]
fn a_read_costs_nothing_while_the_link_has_tds_of_the_ring() {
    let (mut fixture, _) = behind_one_doorbell(5, Model::CARD);
    assert_eq!(fetched(&mut fixture), [(1050, 4)]);
    // The fifth is read when there is room for it, and the link has three until it is there.
    fixture.moves(Pipe::plain(IN), PACKET, Some(End::Full));
    assert_eq!(fixture.link.len(), 3);
    assert_eq!(fetched(&mut fixture)[0], (800, 4));
}

#[test]
fn what_was_written_after_its_line_was_read_is_read_by_its_own_doorbell() {
    let (mut fixture, device) = Fixture::with_device(eight_ahead(), Config::default());
    fixture.queue(device, Pipe::plain(IN), (1, PACKET));
    fixture.submit(device, Pipe::plain(IN), (2, PACKET)).unwrap();
    fixture.run_for(Duration::from_ns(300));
    // It lies in the ring when the first ends, and 750 ns of its doorbell's 1,050 are left.
    fixture.moves(Pipe::plain(IN), PACKET, Some(End::Full));
    assert_eq!(fixture.link.len(), 0);
    assert_eq!(fetched(&mut fixture)[0], (750, 1));
}

#[test]
fn a_td_begins_with_its_first_line_and_all_its_trbs_take_the_lane() {
    // 320 KiB in TRBs of 64 KiB: five of them, in two lines.
    let (mut fixture, device) = Fixture::with_device(eight_ahead(), Config::default());
    fixture.submit(device, Pipe::plain(OUT), (1, 5 << 16)).unwrap();
    // 250 + 2 × 800: the TRB, and what goes out.
    assert_eq!(fetched(&mut fixture), [(1850, 1)]);
}

#[test]
fn trbs_and_contexts_of_streams_are_read_at_the_cost_of_payload() {
    let (mut fixture, device) = Fixture::with_streams(Model::CARD, Config::default());
    // Eight packets are held; the ninth waits for its bytes.
    assert_eq!(waits(&mut fixture, 9), 2_495_488);
    fixture.run();
    // The context is read by the doorbell, the TRB with it in 250 + 2 × 800 ns; that of an IN
    // endpoint takes as much.
    fixture.submit(device, stream(IN, 1), (1, PACKET)).unwrap();
    assert_eq!(waits(&mut fixture, 9), 2_495_488 + 38_992);
    fixture.run();
    fixture.submit(device, stream(IN, 2), (2, PACKET)).unwrap();
    fixture.run_for(Duration::from_ns(1849));
    assert_eq!(waits(&mut fixture, 8), 0, "the context has crossed long ago");
    fixture.run();
    fixture.submit(device, stream(IN, 3), (3, PACKET)).unwrap();
    fixture.run_for(Duration::from_ns(1850));
    assert_eq!(waits(&mut fixture, 8), 38_992);
}

#[test]
fn events_are_written_at_the_cost_of_payload_and_behind_it() {
    let (mut fixture, device) = Fixture::with_device(Model::CARD, Config::default());
    fixture.queue(device, Pipe::plain(IN), (1, PACKET));
    fixture.queue(device, Pipe::plain(OUT), (2, PACKET));
    fixture.queue(device, Pipe::plain(OUT), (3, PACKET));
    let now = fixture.now;
    fixture.moves(Pipe::plain(OUT), PACKET, Some(End::Full));
    assert_eq!(seen(&fixture, now), [38_992 + 350_000]);
    fixture.moves(Pipe::plain(IN), PACKET, Some(End::Full));
    let behind_payload = 38_992 + 2_495_488 + 38_992 + 350_000;
    assert_eq!(seen(&fixture, now)[1..], [behind_payload]);
    fixture.moves(Pipe::plain(OUT), PACKET, Some(End::Full));
    assert_eq!(seen(&fixture, now)[2..], [behind_payload + 38_992]);
}

#[test]
fn a_command_is_read_carried_out_and_answered() {
    let mut fixture = Fixture::running(Model::CARD, Config::default());
    fixture.controller.plug(fixture.now, crate::fixture::PORT, 4);
    fixture.run();
    let now = fixture.now;
    fixture.begin(Request::Attach(Fixture::location())).unwrap();
    fixture.run_for(Duration::from_ns(1050));
    // 250 + 800 ns, 3 us for the command, and its event.
    assert_eq!(seen(&fixture, now), [1_050_000 + 3_000_000 + 38_992 + 350_000]);
}
