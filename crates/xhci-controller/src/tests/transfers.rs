//! TDs of endpoints without streams: what moves, what is reported, what is cancelled.

use crate::GuestMemory;
use crate::fixture::{Fixture, IN, OUT};
use crate::{LinkAct, Model};
use bus::TransferStatus::{Babble, Cancelled, Done, Error, Short, Stall};
use bus::link::{End, PacketPayload};
use bus::{Pipe, TransferId};
use std::string::String;
use std::vec::Vec;
use units::Duration;
use wire::xhci::{EndpointState, TransferTrb, TrbFlags};
use xhci_driver::{Answer, Config, DmaMemory, Quirks, Request};

const PARTS: [Model; 3] = [Model::CHIPSET, Model::CARD, Model::EARLY_CARD];

fn plain(address: bus::EndpointAddress) -> Pipe {
    Pipe::plain(address)
}

/// Returns the bytes that each of the link's transfers has to move.
fn on_link(fixture: &Fixture) -> Vec<u32> {
    fixture.link.iter().map(|(_, transfer)| transfer.bytes).collect()
}

#[test]
fn received_data_is_in_memory_and_reported() {
    for model in PARTS {
        let (mut fixture, device) = Fixture::with_device(model, Config::default());
        fixture.queue(device, plain(IN), (1, 512));
        assert_eq!(on_link(&fixture), [512]);
        fixture.ends(plain(IN), 512, End::Full);
        assert_eq!(fixture.completions(), [(1, Done, 512)]);
        let bytes = fixture.memory.slice(fixture.buffer, 512).unwrap();
        assert!(bytes.iter().enumerate().all(|(at, byte)| *byte == at as u8));
        assert_eq!(fixture.driver.counters(), xhci_driver::Counters::default());
    }
}

#[test]
fn what_goes_out_is_read_where_it_lies() {
    let (mut fixture, device) = Fixture::with_device(Model::CHIPSET, Config::default());
    let start = fixture.buffer + 0x1_0000 - 600;
    let bytes: Vec<u8> = (0..2000_u32).map(|at| (at / 3) as u8).collect();
    fixture.memory.write(start, &bytes).unwrap();
    let buffer = std::mem::replace(&mut fixture.buffer, start);
    fixture.queue(device, plain(OUT), (1, 2000));
    let (_, transfer) = fixture.link[0];
    let mut scratch = Vec::new();
    // The second packet lies across a boundary of 64 KiB, in two TRBs.
    for (offset, len) in [(0, 512), (512, 512), (1024, 976)] {
        let piece = PacketPayload { transfer: transfer.id, offset, bytes: len };
        let sent = fixture.controller.bytes(&fixture.memory, piece, &mut scratch);
        assert_eq!(sent, &bytes[offset as usize..offset as usize + usize::from(len)]);
    }
    fixture.ends(plain(OUT), 2000, End::Full);
    assert_eq!(fixture.completions(), [(1, Done, 2000)]);
    fixture.buffer = buffer;
}

#[test]
fn a_small_write_is_in_its_trb() {
    let (mut fixture, device) = Fixture::with_device(Model::CHIPSET, Config::default());
    fixture.memory.write(fixture.buffer, &[1, 2, 3]).unwrap();
    fixture.queue(device, plain(OUT), (1, 3));
    fixture.memory.write(fixture.buffer, &[9; 3]).unwrap();
    let piece = PacketPayload { transfer: fixture.link[0].1.id, offset: 0, bytes: 3 };
    assert_eq!(fixture.controller.bytes(&fixture.memory, piece, &mut Vec::new()), [1, 2, 3]);
}

#[test]
fn a_doorbell_takes_the_reads_that_a_controller_needs() {
    let (mut fixture, device) = Fixture::with_device(Model::CARD, Config::default());
    let doorbell_at = fixture.now;
    fixture.submit(device, plain(IN), (1, 512)).unwrap();
    // A register write and one read of a TRB: 250 and 800 ns.
    assert_eq!(fixture.controller.poll_timeout(), Some(doorbell_at + Duration::from_ns(1050)));
    fixture.run();
    let doorbell_at = fixture.now;
    fixture.submit(device, plain(OUT), (2, 512)).unwrap();
    // And what goes out.
    assert_eq!(fixture.controller.poll_timeout(), Some(doorbell_at + Duration::from_ns(1850)));
}

#[test]
fn an_event_is_seen_when_payload_and_event_are_in_memory() {
    let (mut fixture, device) = Fixture::with_device(Model::CARD, Config::default());
    fixture.queue(device, plain(IN), (1, 512));
    let ended = fixture.now;
    fixture.moves(plain(IN), 512, Some(End::Full));
    // 512 bytes, the 16 of the event at 410 MB/s, and a write to memory.
    let bytes = 512 + 16;
    let seen =
        ended + Duration::from_ps(bytes * Model::CARD.attachment.inward_byte_ps) + Duration::from_ns(350);
    assert_eq!(fixture.controller.poll_timeout(), Some(seen));
}

#[test]
fn interrupts_keep_their_distance() {
    let (mut fixture, device) = Fixture::with_device(Model::CHIPSET, Config::default());
    for id in 0..4 {
        fixture.queue(device, plain(IN), (id, 512));
    }
    let before = fixture.controller.counters().interrupts;
    fixture.moves(plain(IN), 512, Some(End::Full));
    fixture.run_for(Duration::from_us(10));
    assert_eq!(fixture.completions(), [(0, Done, 512)]);
    for _ in 1..4 {
        fixture.moves(plain(IN), 512, Some(End::Full));
        fixture.run_for(Duration::from_us(5));
    }
    assert_eq!(fixture.completions(), []);
    fixture.run_for(Duration::from_us(40));
    assert_eq!(fixture.completions(), [(1, Done, 512), (2, Done, 512), (3, Done, 512)]);
    assert_eq!(fixture.controller.counters().interrupts - before, 2);
}

#[test]
fn a_short_packet_in_an_inner_trb_is_reported_as_each_version_does() {
    for (model, late) in [(Model::EARLY_CARD, 0), (Model::CARD, 1), (Model::CHIPSET, 1)] {
        let (mut fixture, device) = Fixture::with_device(model, Config::default());
        fixture.queue(device, plain(IN), (1, 0x2_0000));
        fixture.ends(plain(IN), 36, End::Short);
        assert_eq!(fixture.completions(), [(1, Short, 36)], "{:#06x}", model.version);
        assert_eq!(fixture.driver.counters().late_events, late, "{:#06x}", model.version);
    }
}

#[test]
fn event_data_reports_the_bytes_moved() {
    for model in PARTS {
        let (mut fixture, device) =
            Fixture::with_device(model, Config { event_data: true, ..Config::default() });
        for (id, moved, end, status) in
            [(1, 0x1_8000, End::Full, Done), (2, 0x1_0010, End::Short, Short), (3, 5, End::Short, Short)]
        {
            fixture.queue(device, plain(IN), (id, 0x1_8000));
            fixture.ends(plain(IN), moved, end);
            assert_eq!(fixture.completions(), [(id, status, moved)]);
        }
    }
}

#[test]
fn an_empty_transfer_moves_an_empty_packet() {
    let (mut fixture, device) = Fixture::with_device(Model::CHIPSET, Config::default());
    fixture.queue(device, plain(OUT), (1, 0));
    assert_eq!(on_link(&fixture), [0]);
    fixture.ends(plain(OUT), 0, End::Full);
    assert_eq!(fixture.completions(), [(1, Done, 0)]);
}

#[test]
fn a_ring_wraps_and_the_prefetch_limit_holds() {
    let config = Config { ring_trbs: 5, ..Config::default() };
    let (mut fixture, device) = Fixture::with_device(Model { tds_ahead: 2, ..Model::CHIPSET }, config);
    for id in 0..50 {
        fixture.queue(device, plain(IN), (id, 512));
        fixture.queue(device, plain(IN), (100 + id, 512));
        fixture.queue(device, plain(IN), (200 + id, 512));
        assert_eq!(on_link(&fixture).len(), 2);
        for _ in 0..3 {
            fixture.ends(plain(IN), 512, End::Full);
        }
        assert_eq!(fixture.completions(), [(id, Done, 512), (100 + id, Done, 512), (200 + id, Done, 512)]);
    }
}

#[test]
fn a_stall_halts_the_endpoint_and_the_next_transfer_goes_on_once_it_is_cleared() {
    for model in PARTS {
        let (mut fixture, device) = Fixture::with_device(model, Config::default());
        fixture.queue(device, plain(IN), (1, 512));
        fixture.queue(device, plain(IN), (2, 512));
        fixture.moves(plain(IN), 0, Some(End::Stalled));
        assert_eq!(fixture.endpoint_context(device.slot(), IN).state, EndpointState::Halted);
        fixture.run();
        assert_eq!(fixture.completions(), [(1, Stall, 0)]);
        assert!(fixture.acts.contains(&LinkAct::Reset(IN)) && !fixture.acts.contains(&LinkAct::Resume(IN)));
        assert_eq!(fixture.ask(Request::ResetToggle(device, IN)), Ok(Answer::Done));
        assert!(fixture.acts.contains(&LinkAct::Resume(IN)));
        fixture.ends(plain(IN), 512, End::Full);
        assert_eq!(fixture.completions(), [(2, Done, 512)]);
    }
}

#[test]
fn a_packet_that_is_too_large_is_babble() {
    let (mut fixture, device) = Fixture::with_device(Model::CHIPSET, Config::default());
    fixture.queue(device, plain(IN), (1, 512));
    fixture.ends(plain(IN), 512, End::Overflow);
    assert_eq!(fixture.completions(), [(1, Babble, 512)]);
}

#[test]
fn every_failure_of_a_transfer_is_handed_on_and_the_endpoint_works_again() {
    // Data buffer, resource, bandwidth, no ping response, incompatible, undefined, split, and one
    // that no one knows.
    for code in [2, 7, 8, 20, 22, 33, 36, 200] {
        let config =
            Config { quirks: Quirks { no_soft_retry: true, ..Quirks::default() }, ..Config::default() };
        let (mut fixture, device) = Fixture::with_device(Model::CHIPSET, config);
        fixture.controller.fail_next(code.into());
        fixture.queue(device, plain(IN), (1, 512));
        let ended = fixture.completions();
        assert_eq!(ended, [(1, Error, 0)], "{code}");
        assert_eq!(fixture.ask(Request::ResetToggle(device, IN)), Ok(Answer::Done), "{code}");
        fixture.queue(device, plain(IN), (2, 512));
        fixture.ends(plain(IN), 512, End::Full);
        assert_eq!(fixture.completions(), [(2, Done, 512)], "{code}");
    }
}

#[test]
fn a_transaction_error_is_tried_again_three_times() {
    let (mut fixture, device) = Fixture::with_device(Model::CHIPSET, Config::default());
    for _ in 0..3 {
        fixture.controller.fail_next(4.into());
    }
    fixture.queue(device, plain(IN), (1, 512));
    assert_eq!(fixture.completions(), []);
    assert_eq!(fixture.driver.counters().soft_retries, 3);
    fixture.ends(plain(IN), 512, End::Full);
    assert_eq!(fixture.completions(), [(1, Done, 512)]);
    for _ in 0..4 {
        fixture.controller.fail_next(4.into());
    }
    fixture.queue(device, plain(IN), (2, 512));
    assert_eq!(fixture.completions(), [(2, Error, 0)]);
}

#[test]
fn a_transfer_that_has_not_moved_is_cancelled() {
    for model in PARTS {
        let (mut fixture, device) = Fixture::with_device(model, Config::default());
        fixture.queue(device, plain(IN), (1, 512));
        fixture.cancel(device, plain(IN), 1);
        fixture.run();
        assert_eq!(fixture.completions(), [(1, Cancelled, 0)], "{:#06x}", model.version);
        assert_eq!(fixture.link, []);
        fixture.queue(device, plain(IN), (2, 512));
        fixture.ends(plain(IN), 512, End::Full);
        assert_eq!(fixture.completions(), [(2, Done, 512)]);
    }
}

#[test]
fn a_transfer_that_has_begun_says_how_far_it_came() {
    for model in PARTS {
        let (mut fixture, device) = Fixture::with_device(model, Config::default());
        fixture.queue(device, plain(IN), (1, 0x2_0000));
        fixture.moves(plain(IN), 0x1_0400, None);
        fixture.cancel(device, plain(IN), 1);
        fixture.run();
        assert_eq!(fixture.completions(), [(1, Cancelled, 0x1_0400)], "{:#06x}", model.version);
    }
}

#[test]
fn a_partial_transfer_continues_when_another_is_cancelled() {
    let (mut fixture, device) = Fixture::with_device(Model::CHIPSET, Config::default());
    fixture.queue(device, plain(IN), (1, 4096));
    fixture.queue(device, plain(IN), (2, 512));
    fixture.moves(plain(IN), 1024, None);
    fixture.cancel(device, plain(IN), 2);
    fixture.run();
    assert_eq!(fixture.completions(), [(2, Cancelled, 0)]);
    assert_eq!(on_link(&fixture), [3072]);
    fixture.ends(plain(IN), 3072, End::Full);
    assert_eq!(fixture.completions(), [(1, Done, 4096)]);
}

#[test]
fn what_completes_while_the_endpoint_comes_to_rest_is_done() {
    let (mut fixture, device) = Fixture::with_device(Model::CHIPSET, Config::default());
    fixture.rests = false;
    fixture.queue(device, plain(IN), (1, 512));
    fixture.queue(device, plain(IN), (2, 512));
    fixture.cancel(device, plain(IN), 1);
    fixture.run();
    assert_eq!((fixture.completions(), &fixture.stopping[..]), (vec![], &[IN][..]));
    fixture.moves(plain(IN), 512, Some(End::Full));
    fixture.rest(IN);
    assert_eq!(fixture.completions(), [(1, Done, 512)]);
    assert_eq!(on_link(&fixture), [512]);
}

#[test]
fn an_endpoint_that_halts_before_it_comes_to_rest_is_reset() {
    let (mut fixture, device) = Fixture::with_device(Model::CHIPSET, Config::default());
    fixture.rests = false;
    fixture.queue(device, plain(IN), (1, 512));
    fixture.queue(device, plain(IN), (2, 512));
    fixture.cancel(device, plain(IN), 2);
    fixture.run();
    fixture.moves(plain(IN), 0, Some(End::Stalled));
    fixture.rest(IN);
    let mut ended = fixture.completions();
    ended.sort_by_key(|(id, ..)| *id);
    assert_eq!(ended, [(1, Stall, 0), (2, Cancelled, 0)]);
    assert_eq!(fixture.driver.counters().stop_races, 1);
}

#[test]
fn a_stop_that_is_answered_early_needs_the_quirk() {
    let mut model = Model::CHIPSET;
    model.misbehaviour.answers_stop_early = true;
    for (quirk, expected) in [(true, vec![(1, Done, 512)]), (false, vec![(1, Cancelled, 0)])] {
        let quirks = Quirks { stop_answered_early: quirk, ..Quirks::default() };
        let (mut fixture, device) = Fixture::with_device(model, Config { quirks, ..Config::default() });
        fixture.rests = false;
        fixture.queue(device, plain(IN), (1, 512));
        fixture.cancel(device, plain(IN), 1);
        fixture.run_for(Duration::from_us(200));
        fixture.moves(plain(IN), 512, Some(End::Full));
        fixture.rest(IN);
        assert_eq!(fixture.completions(), expected);
        // Without it the buffer was given back and written to.
        assert_eq!(fixture.controller.counters().stale_progress, u32::from(!quirk));
    }
}

#[test]
fn an_event_ring_that_is_full_holds_the_controller_until_there_is_room() {
    let model = Model { event_segments_exponent: 0, ..Model::CHIPSET };
    // No interrupt for 16 ms.
    let config = Config { moderation_250ns: u16::MAX, ring_trbs: 1024, ..Config::default() };
    let (mut fixture, device) = Fixture::with_device(model, config);
    for id in 0..600 {
        fixture.submit(device, plain(IN), (id, 512)).unwrap();
    }
    let mut moved = 0;
    for _ in 0..700 {
        fixture.run_for(Duration::from_us(2));
        if fixture.link.is_empty() {
            continue;
        }
        fixture.moves(plain(IN), 512, Some(End::Full));
        moved += 1;
    }
    assert!(moved < 300, "{moved}");
    while moved < 600 {
        fixture.run();
        fixture.moves(plain(IN), 512, Some(End::Full));
        moved += 1;
    }
    fixture.run();
    let ended: Vec<_> = fixture.completions().into_iter().map(|(id, ..)| id).collect();
    assert_eq!(ended, (0..600).collect::<Vec<_>>());
    let (reported, reported_in_notes) =
        (fixture.controller.counters().rings_full, fixture.driver.counters().rings_full);
    assert!(reported >= 1 && reported == reported_in_notes, "{reported}, {reported_in_notes}");
}

/// Writes a TRB over the one that the driver has written last but did not ring for.
fn overwrite(fixture: &mut Fixture, at: u64, trb: [u8; 16]) {
    fixture.memory.write_bytes(at, &trb);
}

fn normal(buffer: u64, length: u32, flags: TrbFlags) -> TransferTrb {
    TransferTrb::Normal { buffer, length, td_size: 0, interrupter: 0, flags }
}

#[test]
fn a_trb_with_the_wrong_cycle_bit_is_not_there() {
    let (mut fixture, device) = Fixture::with_device(Model::CHIPSET, Config::default());
    let at = fixture.endpoint_context(device.slot(), IN).dequeue;
    fixture.submit(device, plain(IN), (1, 512)).unwrap();
    let trb = normal(fixture.buffer, 512, TrbFlags::INTERRUPT_ON_COMPLETION);
    overwrite(&mut fixture, at, trb.encode(false));
    fixture.run();
    assert_eq!((fixture.link.len(), fixture.completions()), (0, vec![]));
    assert_eq!(fixture.endpoint_context(device.slot(), IN).state, EndpointState::Running);
}

#[test]
fn a_td_whose_end_is_missing_is_not_begun() {
    let (mut fixture, device) = Fixture::with_device(Model::CHIPSET, Config::default());
    let at = fixture.endpoint_context(device.slot(), IN).dequeue;
    fixture.submit(device, plain(IN), (1, 512)).unwrap();
    let trb = normal(fixture.buffer, 512, TrbFlags::CHAIN);
    overwrite(&mut fixture, at, trb.encode(true));
    fixture.run();
    assert_eq!(fixture.link.len(), 0);
}

#[test]
fn trbs_that_cannot_be_are_refused_and_the_ring_is_moved_past_them() {
    let immediate = TrbFlags::IMMEDIATE_DATA.with(TrbFlags::INTERRUPT_ON_COMPLETION);
    let reported = TrbFlags::INTERRUPT_ON_COMPLETION;
    let boundary = 0x20_0000 + 0xff00;
    let status = TransferTrb::StatusStage { direction: bus::Direction::In, interrupter: 0, flags: reported };
    for (address, trb) in [
        (IN, normal(boundary, 0x200, reported)),
        (IN, normal(0x20_0000, 8, immediate)),
        (OUT, normal(0x20_0000, 9, immediate)),
        (IN, status),
    ] {
        let (mut fixture, device) = Fixture::with_device(Model::CHIPSET, Config::default());
        let at = fixture.endpoint_context(device.slot(), address).dequeue;
        fixture.submit(device, plain(address), (1, 512)).unwrap();
        overwrite(&mut fixture, at, trb.encode(true));
        fixture.run();
        assert_eq!(fixture.completions(), [(1, Error, 0)], "{trb}");
        assert_eq!(fixture.ask(Request::ResetToggle(device, address)), Ok(Answer::Done), "{trb}");
        fixture.queue(device, plain(address), (2, 512));
        assert_eq!(fixture.link.len(), 1, "{trb}");
    }
}

#[test]
fn an_endless_chain_is_rejected() {
    let (mut fixture, device) = Fixture::with_device(Model::CHIPSET, Config::default());
    let at = fixture.endpoint_context(device.slot(), IN).dequeue;
    fixture.submit(device, plain(IN), (1, 512)).unwrap();
    let flags = TrbFlags::CHAIN;
    let link = TransferTrb::Link { segment: at, toggle_cycle: false, interrupter: 0, flags };
    overwrite(&mut fixture, at, link.encode(true));
    fixture.run();
    assert_eq!(fixture.completions(), [(1, Error, 0)]);
}

#[test]
fn a_wrong_td_size_is_refused_from_version_1_0_on() {
    for (model, is_refused) in [(Model::CARD, true), (Model::EARLY_CARD, false)] {
        let (mut fixture, device) = Fixture::with_device(model, Config::default());
        let at = fixture.endpoint_context(device.slot(), IN).dequeue;
        fixture.submit(device, plain(IN), (1, 0x1_8000)).unwrap();
        let wrong = normal(fixture.buffer, 0x1_0000, TrbFlags::CHAIN);
        overwrite(&mut fixture, at, wrong.encode(true));
        fixture.run();
        assert_eq!(fixture.link.is_empty(), is_refused, "{:#06x}", model.version);
    }
}

#[test]
fn doorbells_without_a_target_are_ignored() {
    use xhci_driver::Registers;
    let (mut fixture, device) = Fixture::with_device(Model::CHIPSET, Config::default());
    let mut access =
        crate::fixture::DriverAccess::new(fixture.now, &mut fixture.controller, &mut fixture.memory);
    // No such slot, no such endpoint, an endpoint context that cannot be.
    for (slot, value) in [(60, 3), (u32::from(device.slot()), 9), (u32::from(device.slot()), 200)] {
        access.write_register(0x2000 + 4 * slot, value);
    }
    fixture.run();
    assert_eq!(fixture.controller.counters().idle_doorbells, 3);
    assert_eq!(fixture.driver.counters(), xhci_driver::Counters::default());
}

#[test]
fn the_link_waits_when_memory_is_behind() {
    let (mut fixture, device) = Fixture::with_device(Model::CARD, Config::default());
    fixture.queue(device, plain(IN), (1, 0x1_0000));
    assert_eq!(fixture.controller.buffer_wait(fixture.now), Duration::ZERO);
    // 8 KiB are held; what is above that has to be in memory first.
    fixture.moves(plain(IN), 0x2000 + 0x400, None);
    let waits = Duration::from_ps(0x400 * Model::CARD.attachment.inward_byte_ps);
    assert_eq!(fixture.controller.buffer_wait(fixture.now), waits);
}

#[test]
fn what_goes_out_is_no_faster_than_memory() {
    let (mut fixture, _) = Fixture::with_device(Model::CARD, Config::default());
    let payload = PacketPayload { transfer: TransferId(0), offset: 0, bytes: 1024 };
    let started = fixture.now;
    let mut at = started;
    for _ in 0..1000 {
        // A packet takes the link 2.112 us.
        at = at + fixture.controller.read_payload(at, payload) + Duration::from_ns(2112);
    }
    let rate = 1000 * 1024 * 1_000_000 / (at - started).as_ps();
    assert!((405..=415).contains(&rate), "{rate} MB/s");
}

#[test]
fn a_long_write_waits_for_each_page_whose_trb_was_not_read_ahead() {
    let stop = Duration::from_us(20);
    let (mut fixture, device) =
        Fixture::with_device(Model { next_trb_out: stop, ..Model::CHIPSET }, Config::default());
    fixture.queue(device, plain(OUT), (1, 0x2_0000));
    let transfer = fixture.queued(plain(OUT)).expect("a transfer");
    let mut wait = |offset| {
        // Memory was idle since the last one.
        fixture.now = fixture.now + Duration::from_ms(1);
        fixture.controller.read_payload(fixture.now, PacketPayload { transfer, offset, bytes: 1024 })
    };
    let first = wait(0);
    for (offset, waits) in
        [(0x1000, false), (0xF000, false), (0x1_0000, true), (0x1_0400, false), (0x1_1000, true)]
    {
        let longer = if waits { stop } else { Duration::ZERO };
        assert_eq!(wait(offset), first + longer, "{offset:#x}");
    }
}

/// Returns a controller's transfer events when an endpoint is stopped of which so many bytes
/// had moved.
fn said_of_a_stop(model: Model, moved: u32) -> Vec<String> {
    let (mut fixture, device) = Fixture::with_device(model, Config::default());
    fixture.queue(device, plain(IN), (1, 4096));
    if moved > 0 {
        fixture.moves(plain(IN), moved, None);
    }
    fixture.controller.take_notes(true);
    fixture.cancel(device, Pipe::plain(IN), 1);
    fixture.run();
    let lines = std::iter::from_fn(|| fixture.controller.poll_note(fixture.now));
    let said = lines.filter_map(|(_, line)| {
        let (_, said) = line.split_once("event TRB: transfer event: ")?;
        let (code, rest) = said.split_once(", slot")?;
        Some(format!("{code}, {}", rest.rsplit_once(", ")?.1))
    });
    said.collect()
}

#[test]
fn from_version_1_0_on_a_stop_is_reported_even_if_nothing_has_moved() {
    for (model, reported) in [
        (Model::EARLY_CARD, &[][..]),
        (Model::CARD, &["stopped, length invalid, 0 bytes left"]),
        (Model::CHIPSET, &["stopped, length invalid, 0 bytes left"]),
    ] {
        assert_eq!(said_of_a_stop(model, 0), reported, "{:#06x}", model.version);
        assert_eq!(said_of_a_stop(model, 1024), ["stopped, 3072 bytes left"], "{:#06x}", model.version);
    }
}
