//! Streams: contexts, doorbells with ids, what is cancelled of one stream, and arrays in two steps.

use crate::GuestMemory;
use crate::Model;
use crate::fixture::{Fixture, IN, PATH, stream};
use bus::TransferStatus::{Cancelled, Disconnected, Done, Error, Stall};
use bus::link::End;
use std::vec::Vec;
use units::Duration;
use wire::xhci::{EndpointState, StreamContextType};
use xhci_driver::{Answer, Config, Output as DriverOutput, Quirks, Registers, Request};

/// A model whose primary arrays are too small for 16 streams.
fn secondary() -> Model {
    Model { primary_streams_exponent: 1, has_secondary_streams: true, ..Model::CHIPSET }
}

#[test]
fn every_stream_has_a_separate_ring() {
    for model in [Model::CHIPSET, Model::CARD, secondary()] {
        let (mut fixture, device) = Fixture::with_streams(model, Config::default());
        for id in 1..=16 {
            fixture.queue(device, stream(IN, id), (id.into(), 512));
        }
        assert_eq!(fixture.link.len(), 16);
        for id in (1..=16).rev() {
            fixture.ends(stream(IN, id), 512, End::Full);
            assert_eq!(fixture.completions(), [(id.into(), Done, 512)], "{:#06x}", model.version);
        }
        assert_eq!(fixture.driver.counters(), xhci_driver::Counters::default());
    }
}

#[test]
fn the_context_of_a_stream_is_read_before_its_trb() {
    let (mut fixture, device) = Fixture::with_streams(Model::CARD, Config::default());
    let doorbell_at = fixture.now;
    fixture.submit(device, stream(IN, 1), (1, 512)).unwrap();
    assert_eq!(fixture.controller.poll_timeout(), Some(doorbell_at + Duration::from_ns(250 + 2 * 800)));
}

#[test]
fn one_stream_is_cancelled_and_the_others_continue() {
    for model in [Model::CHIPSET, secondary()] {
        let (mut fixture, device) = Fixture::with_streams(model, Config::default());
        fixture.queue(device, stream(IN, 3), (1, 512));
        fixture.queue(device, stream(IN, 5), (2, 4096));
        fixture.moves(stream(IN, 5), 2048, None);
        fixture.cancel(device, stream(IN, 3), 1);
        fixture.run();
        assert_eq!(fixture.completions(), [(1, Cancelled, 0)], "{:#06x}", model.version);
        assert_eq!(
            fixture.link.iter().map(|(pipe, on)| (*pipe, on.bytes)).collect::<Vec<_>>(),
            [(stream(IN, 5), 2048)]
        );
        fixture.ends(stream(IN, 5), 2048, End::Full);
        assert_eq!(fixture.completions(), [(2, Done, 4096)]);
        fixture.queue(device, stream(IN, 3), (3, 512));
        fixture.ends(stream(IN, 3), 512, End::Full);
        assert_eq!(fixture.completions(), [(3, Done, 512)]);
    }
}

#[test]
fn a_stream_that_was_moved_says_so_in_its_context() {
    let (mut fixture, device) = Fixture::with_streams(Model::CHIPSET, Config::default());
    let before = fixture.stream_context(device.slot(), IN, 3);
    assert_eq!(before.context_type, StreamContextType::PrimaryRing);
    fixture.queue(device, stream(IN, 3), (1, 512));
    fixture.cancel(device, stream(IN, 3), 1);
    fixture.run();
    assert_eq!(fixture.stream_context(device.slot(), IN, 3).dequeue, before.dequeue + 16);
}

#[test]
fn a_stall_on_one_stream_halts_all_and_the_others_come_again() {
    let (mut fixture, device) = Fixture::with_streams(Model::CHIPSET, Config::default());
    fixture.queue(device, stream(IN, 3), (1, 512));
    fixture.queue(device, stream(IN, 5), (2, 512));
    fixture.moves(stream(IN, 3), 0, Some(End::Stalled));
    assert_eq!(fixture.link, []);
    fixture.run();
    assert_eq!(fixture.completions(), [(1, Stall, 0)]);
    assert_eq!(fixture.link, [], "the device is still halted");
    assert_eq!(fixture.ask(Request::ResetToggle(device, IN)), Ok(Answer::Done));
    fixture.ends(stream(IN, 5), 512, End::Full);
    assert_eq!(fixture.completions(), [(2, Done, 512)]);
}

#[test]
fn a_halt_before_any_stream_is_current_is_reported_without_a_trb() {
    let (mut fixture, device) = Fixture::with_streams(Model::CHIPSET, Config::default());
    fixture.queue(device, stream(IN, 5), (1, 512));
    fixture.queue(device, stream(IN, 3), (2, 512));
    fixture.controller.handle_halt(fixture.now, &mut fixture.memory, PATH, IN, true);
    // It is halted already, and nothing more is reported.
    fixture.controller.handle_halt(fixture.now, &mut fixture.memory, PATH, IN, true);
    assert_eq!(fixture.endpoint_context(device.slot(), IN).state, EndpointState::Halted);
    fixture.run();
    assert_eq!(fixture.completions(), [(1, Stall, 0)], "that which has waited longest");
    assert_eq!(fixture.driver.counters().stray_events, 1);
    assert_eq!(fixture.ask(Request::ResetToggle(device, IN)), Ok(Answer::Done));
    fixture.ends(stream(IN, 3), 512, End::Full);
    assert_eq!(fixture.completions(), [(2, Done, 512)]);
}

#[test]
fn a_halt_while_stopped_is_reported_at_the_next_doorbell() {
    let (mut fixture, device) = Fixture::with_streams(Model::CHIPSET, Config::default());
    fixture.queue(device, stream(IN, 5), (1, 512));
    fixture.cancel(device, stream(IN, 5), 1);
    fixture.run();
    assert_eq!(fixture.completions(), [(1, Cancelled, 0)]);
    assert_eq!(fixture.endpoint_context(device.slot(), IN).state, EndpointState::Stopped);
    // It has said NoStream to a device that asked, which was answered with STALL.
    fixture.controller.handle_halt(fixture.now, &mut fixture.memory, PATH, IN, true);
    fixture.run();
    assert_eq!(fixture.endpoint_context(device.slot(), IN).state, EndpointState::Stopped);
    fixture.submit(device, stream(IN, 3), (2, 512)).unwrap();
    fixture.run();
    assert_eq!(fixture.completions(), [(2, Stall, 0)]);
    assert_eq!(fixture.ask(Request::ResetToggle(device, IN)), Ok(Answer::Done));
    fixture.queue(device, stream(IN, 3), (3, 512));
    fixture.ends(stream(IN, 3), 512, End::Full);
    assert_eq!(fixture.completions(), [(3, Done, 512)]);
}

#[test]
fn a_stream_that_is_not_there_halts_the_endpoint() {
    let (mut fixture, device) = Fixture::with_streams(Model::CHIPSET, Config::default());
    for id in [0, 40_000] {
        let mut access =
            crate::fixture::DriverAccess::new(fixture.now, &mut fixture.controller, &mut fixture.memory);
        access.write_register(0x2000 + 4 * u32::from(device.slot()), 3 | id << 16);
        fixture.run();
        assert_eq!(
            fixture.endpoint_context(device.slot(), IN).state,
            EndpointState::Stopped,
            "after a reset"
        );
        fixture.queue(device, stream(IN, 1), (1, 512));
        fixture.ends(stream(IN, 1), 512, End::Full);
        assert_eq!(fixture.completions(), [(1, Done, 512)]);
    }
}

#[test]
fn a_context_of_the_wrong_type_is_an_invalid_stream_type() {
    let (mut fixture, device) = Fixture::with_streams(Model::CHIPSET, Config::default());
    let at = fixture.endpoint_context(device.slot(), IN).dequeue + 16 * 4;
    let mut context = fixture.stream_context(device.slot(), IN, 4);
    context.context_type = StreamContextType::SecondaryRing;
    fixture.memory.write(at, &context.encode()).unwrap();
    fixture.queue(device, stream(IN, 4), (1, 512));
    // The event names no TRB, so no one can be reported which transfer it was; after some halts the
    // endpoint is given up.
    let reported = fixture.reported();
    assert!(matches!(reported[..], [DriverOutput::Completed(_, done), DriverOutput::Gone(gone)]
        if done.status == Disconnected && gone == device));
    assert_eq!(fixture.driver.counters().failed_endpoints, 1);
}

#[test]
fn streams_that_are_offered_and_do_not_work_are_seen_by_nothing_moving() {
    let mut model = Model::CHIPSET;
    model.misbehaviour.ignores_streams = true;
    let (mut fixture, device) = Fixture::with_streams(model, Config::default());
    fixture.queue(device, stream(IN, 1), (1, 512));
    assert_eq!((fixture.link.len(), fixture.completions()), (0, vec![]));
    assert_eq!(fixture.controller.counters().idle_doorbells, 1);
    fixture.cancel(device, stream(IN, 1), 1);
    fixture.run();
    assert_eq!(fixture.completions(), [(1, Cancelled, 0)]);
}

/// As on QEMU's controller: a drive that has been at work for a while stands still after one
/// command was given up.
#[test]
fn laps_that_are_forgotten_need_the_quirk() {
    let mut model = Model::CHIPSET;
    model.misbehaviour.forgets_cycles = true;
    for forgets_cycles in [true, false] {
        let quirks = Quirks { forgets_cycles, ..Quirks::default() };
        let (mut fixture, device) =
            Fixture::with_streams(model, Config { quirks, stream_ring_trbs: 4, ..Config::default() });
        for id in 1..=4 {
            fixture.queue(device, stream(IN, 5), (id, 512));
            fixture.ends(stream(IN, 5), 512, End::Full);
        }
        fixture.queue(device, stream(IN, 3), (5, 512));
        fixture.queue(device, stream(IN, 5), (6, 512));
        fixture.cancel(device, stream(IN, 3), 5);
        fixture.run();
        let ended: Vec<_> = fixture.completions().into_iter().map(|(id, status, _)| (id, status)).collect();
        assert_eq!(ended, [(1, Done), (2, Done), (3, Done), (4, Done), (5, Cancelled)]);
        let on_link: Vec<_> = fixture.link.iter().map(|(pipe, _)| *pipe).collect();
        if forgets_cycles {
            assert_eq!(on_link, [stream(IN, 5)]);
            fixture.ends(stream(IN, 5), 512, End::Full);
            assert_eq!(fixture.completions(), [(6, Done, 512)]);
        } else {
            assert_eq!((on_link, fixture.completions()), (vec![], vec![]));
        }
    }
}

#[test]
fn a_failure_of_one_stream_is_its_own() {
    let (mut fixture, device) = Fixture::with_streams(Model::CHIPSET, Config::default());
    fixture.queue(device, stream(IN, 2), (1, 512));
    fixture.controller.fail_next(2.into());
    fixture.queue(device, stream(IN, 7), (2, 512));
    assert_eq!(fixture.completions(), [(2, Error, 0)]);
    assert_eq!(fixture.ask(Request::ResetToggle(device, IN)), Ok(Answer::Done));
    fixture.ends(stream(IN, 2), 512, End::Full);
    assert_eq!(fixture.completions(), [(1, Done, 512)]);
}
