//! Transfers that are cancelled, stall, race with a stop, or end with the device's removal.

use super::*;

#[test]
fn a_stall_resets_the_endpoint_and_the_next_transfer_waits_for_clear_halt() {
    let (mut fixture, device) = Fixture::with_device(Config::default());
    fixture.submit(device, plain_in(), (1, 512)).unwrap();
    fixture.submit(device, plain_in(), (2, 512)).unwrap();
    let trbs = fixture.trbs(device, plain_in());
    fixture.hw.set_state(device.slot(), IN, EndpointState::Halted);
    fixture.hw.doorbells.clear();
    fixture.event(device, bulk_in(), (trbs[0].0, 6, 512));
    assert_eq!(fixture.completions(), [(1, Stall, 0)]);
    let types: Vec<_> = fixture.hw.commands.iter().map(CommandTrb::trb_type).collect();
    assert_eq!(types, [TrbType::ResetEndpoint, TrbType::SetTrDequeuePointer]);
    assert_eq!(fixture.hw.dequeue(device.slot(), IN, 0), (trbs[1].0, true));
    fixture.submit(device, plain_in(), (3, 512)).unwrap();
    assert_eq!(fixture.hw.doorbells, []);
    assert_eq!(fixture.ask(Request::ResetToggle(device, bulk_in())), Ok(Answer::Done));
    assert_eq!(fixture.hw.doorbells, [(device.slot(), 3)]);
    assert_eq!(fixture.hw.commands.len(), 2, "the sequence number was reset before");
    fixture.submit(device, plain_in(), (4, 512)).unwrap();
    assert_eq!(fixture.hw.doorbells, [(device.slot(), 3); 2]);
}

#[test]
fn what_is_cancelled_of_a_held_endpoint_needs_no_stop() {
    let (mut fixture, device) = Fixture::with_device(Config::default());
    for id in 1..=3 {
        fixture.submit(device, plain_in(), (id, 512)).unwrap();
    }
    let trbs = fixture.trbs(device, plain_in());
    fixture.hw.set_state(device.slot(), IN, EndpointState::Halted);
    fixture.event(device, bulk_in(), (trbs[0].0, 6, 512));
    fixture.hw.doorbells.clear();
    fixture.cancel(device, plain_in(), 2);
    fixture.interrupt();
    assert_eq!(fixture.completions(), [(1, Stall, 0), (2, Cancelled, 0)]);
    let stops = |command: &CommandTrb| command.trb_type() == TrbType::StopEndpoint;
    assert!(!fixture.hw.commands.iter().any(stops));
    assert_eq!(fixture.hw.dequeue(device.slot(), IN, 0), (trbs[2].0, true));
    assert_eq!(fixture.hw.doorbells, []);
    assert_eq!(fixture.ask(Request::ResetToggle(device, bulk_in())), Ok(Answer::Done));
    assert_eq!(fixture.hw.doorbells, [(device.slot(), 3)]);
}

#[test]
fn a_halt_that_is_cleared_before_the_ring_has_moved_rings_when_it_has() {
    let (mut fixture, device) = Fixture::with_device(Config::default());
    fixture.submit(device, plain_in(), (1, 512)).unwrap();
    fixture.submit(device, plain_in(), (2, 512)).unwrap();
    let at = fixture.trbs(device, plain_in())[0].0;
    fixture.hw.set_state(device.slot(), IN, EndpointState::Halted);
    fixture.hw.is_mute = true;
    fixture.event(device, bulk_in(), (at, 6, 512));
    assert_eq!(fixture.completions(), [(1, Stall, 0)]);
    fixture.hw.doorbells.clear();
    fixture.clear(device);
    assert_eq!((fixture.outputs(), fixture.hw.doorbells.len()), (vec![], 0));
    fixture.hw.is_mute = false;
    fixture.hw.execute();
    fixture.interrupt();
    assert_eq!(fixture.outputs(), [Output::Answered(RequestId(7), Answer::Done)]);
    assert_eq!(fixture.hw.doorbells, [(device.slot(), 3)]);
}

#[test]
fn a_control_endpoint_that_has_stalled_takes_the_next_request() {
    let (mut fixture, device) = Fixture::with_device(Config::default());
    let control = Pipe::plain(bus::EndpointAddress::at::<0>(bus::Direction::In));
    fixture.control(device, 1, [0x80, 6, 0, 1, 0, 0, 18, 0]).unwrap();
    let at = fixture.trbs(device, control)[0].0;
    fixture.hw.set_state(device.slot(), EndpointId::CONTROL, EndpointState::Halted);
    fixture.event(device, control.endpoint, (at, 6, 0));
    assert_eq!(fixture.completions(), [(1, Stall, 0)]);
    fixture.hw.doorbells.clear();
    fixture.control(device, 2, [0x80, 6, 0, 1, 0, 0, 18, 0]).unwrap();
    assert_eq!(fixture.hw.doorbells, [(device.slot(), 1)]);
}

#[test]
fn a_transaction_error_is_tried_again_softly_and_then_reported() {
    let (mut fixture, device) = Fixture::with_device(Config::default());
    fixture.submit(device, plain_in(), (1, 512)).unwrap();
    let at = fixture.trbs(device, plain_in())[0].0;
    for _ in 0..3 {
        fixture.hw.set_state(device.slot(), IN, EndpointState::Halted);
        fixture.event(device, bulk_in(), (at, 4, 512));
        assert_eq!(fixture.completions(), []);
    }
    assert_eq!(fixture.xhci.counters().soft_retries, 3);
    let soft =
        |command: &CommandTrb| matches!(command, CommandTrb::ResetEndpoint { preserve_state: true, .. });
    assert!(fixture.hw.commands.iter().all(soft));
    fixture.hw.set_state(device.slot(), IN, EndpointState::Halted);
    fixture.event(device, bulk_in(), (at, 4, 512));
    assert_eq!(fixture.completions(), [(1, Error, 0)]);
}

#[test]
fn after_a_reported_error_or_babble_waiting_transfers_move_once_both_sequence_numbers_are_reset() {
    // USB transaction error where it is not tried again, babble.
    for (code, status) in [(4, Error), (3, Babble)] {
        let quirks = Quirks { no_soft_retry: true, ..Quirks::default() };
        let (mut fixture, device) = Fixture::with_device(Config { quirks, ..Config::default() });
        fixture.submit(device, plain_in(), (1, 512)).unwrap();
        fixture.submit(device, plain_in(), (2, 512)).unwrap();
        let at = fixture.trbs(device, plain_in())[0].0;
        fixture.hw.set_state(device.slot(), IN, EndpointState::Halted);
        fixture.hw.doorbells.clear();
        fixture.event(device, bulk_in(), (at, code, 512));
        assert_eq!(fixture.completions(), [(1, status, 0)]);
        let resets_sequence =
            |command: &CommandTrb| matches!(command, CommandTrb::ResetEndpoint { preserve_state: false, .. });
        assert!(fixture.hw.commands.iter().any(resets_sequence));
        assert_eq!(fixture.hw.doorbells, [], "the device counts from where it was");
        assert_eq!(fixture.ask(Request::ResetToggle(device, bulk_in())), Ok(Answer::Done));
        assert_eq!(fixture.hw.doorbells, [(device.slot(), 3)]);
    }
}

#[test]
fn the_one_transfer_cancelled_moves_the_ring_past_it() {
    let (mut fixture, device) = Fixture::with_device(Config::default());
    fixture.submit(device, plain_in(), (1, 512)).unwrap();
    fixture.cancel(device, plain_in(), 1);
    fixture.cancel(device, plain_in(), 1);
    fixture.interrupt();
    assert_eq!(fixture.completions(), [(1, Cancelled, 0)]);
    let types: Vec<_> = fixture.hw.commands.iter().map(CommandTrb::trb_type).collect();
    assert_eq!(types, [TrbType::StopEndpoint, TrbType::SetTrDequeuePointer]);
    fixture.submit(device, plain_in(), (2, 512)).unwrap();
    assert_eq!(fixture.trbs(device, plain_in()).len(), 1);
}

#[test]
fn a_transfer_cancelled_behind_another_becomes_nothing() {
    let (mut fixture, device) = Fixture::with_device(Config::default());
    fixture.submit(device, plain_in(), (1, 512)).unwrap();
    fixture.submit(device, plain_in(), (2, 512)).unwrap();
    fixture.cancel(device, plain_in(), 2);
    fixture.interrupt();
    assert_eq!(fixture.completions(), [(2, Cancelled, 0)]);
    let trbs = fixture.trbs(device, plain_in());
    let types: Vec<_> = trbs.iter().map(|(_, trb)| trb.trb_type()).collect();
    assert_eq!(types, [TrbType::Normal, TrbType::NoOp]);
    fixture.event(device, bulk_in(), (trbs[0].0, 1, 0));
    fixture.event(device, bulk_in(), (trbs[1].0, 1, 0));
    assert_eq!(fixture.completions(), [(1, Done, 512)]);
    assert_eq!(fixture.xhci.counters(), crate::Counters::default());
}

#[test]
fn a_stopped_transfer_says_how_far_it_came() {
    let (mut fixture, device) = Fixture::with_device(Config::default());
    fixture.hw.is_mute = true;
    fixture.submit(device, plain_in(), (1, 0x2_0000)).unwrap();
    let trbs = fixture.trbs(device, plain_in());
    fixture.cancel(device, plain_in(), 1);
    fixture.event(device, bulk_in(), (trbs[1].0, 26, 0xff00));
    fixture.hw.set_dequeue(device.slot(), IN, 0, (trbs[1].0, true));
    fixture.hw.is_mute = false;
    fixture.hw.execute();
    fixture.interrupt();
    assert_eq!(fixture.completions(), [(1, Cancelled, 0x1_0100)]);
}

#[test]
fn a_transfer_that_completes_before_the_stop_is_done() {
    let (mut fixture, device) = Fixture::with_device(Config::default());
    fixture.hw.is_mute = true;
    fixture.submit(device, plain_in(), (1, 512)).unwrap();
    fixture.submit(device, plain_in(), (2, 512)).unwrap();
    let trbs = fixture.trbs(device, plain_in());
    fixture.cancel(device, plain_in(), 1);
    fixture.event(device, bulk_in(), (trbs[0].0, 1, 0));
    fixture.hw.set_dequeue(device.slot(), IN, 0, (trbs[1].0, true));
    fixture.hw.doorbells.clear();
    fixture.hw.is_mute = false;
    fixture.hw.execute();
    fixture.interrupt();
    assert_eq!(fixture.completions(), [(1, Done, 512)]);
    assert_eq!(fixture.hw.commands.len(), 1);
    assert_eq!(fixture.hw.doorbells, [(device.slot(), 3)]);
}

#[test]
fn a_stall_before_the_stop_turns_it_into_a_reset() {
    let (mut fixture, device) = Fixture::with_device(Config::default());
    fixture.hw.is_mute = true;
    fixture.submit(device, plain_in(), (1, 512)).unwrap();
    fixture.submit(device, plain_in(), (2, 512)).unwrap();
    let trbs = fixture.trbs(device, plain_in());
    fixture.cancel(device, plain_in(), 2);
    fixture.hw.set_state(device.slot(), IN, EndpointState::Halted);
    fixture.event(device, bulk_in(), (trbs[0].0, 6, 512));
    fixture.hw.is_mute = false;
    fixture.hw.execute();
    fixture.interrupt();
    assert_eq!(fixture.completions(), [(1, Stall, 0), (2, Cancelled, 0)]);
    let types: Vec<_> = fixture.hw.commands.iter().map(CommandTrb::trb_type).collect();
    assert_eq!(types, [TrbType::StopEndpoint, TrbType::ResetEndpoint, TrbType::SetTrDequeuePointer]);
    assert_eq!(fixture.xhci.counters().stop_races, 1);
}

#[test]
fn a_ring_is_never_moved_back_to_what_the_controller_has_passed() {
    let (mut fixture, device) = Fixture::with_device(Config::default());
    fixture.submit(device, plain_in(), (1, 512)).unwrap();
    fixture.submit(device, plain_in(), (2, 512)).unwrap();
    let trbs = fixture.trbs(device, plain_in());
    fixture.hw.set_dequeue(device.slot(), IN, 0, (trbs[1].0, true));
    fixture.cancel(device, plain_in(), 2);
    fixture.interrupt();
    assert_eq!(fixture.completions(), [(2, Cancelled, 0)]);
    assert_eq!(fixture.hw.dequeue(device.slot(), IN, 0), (trbs[1].0 + 16, true));
    // The event of the first was late, and still ends it.
    fixture.event(device, bulk_in(), (trbs[0].0, 1, 0));
    assert_eq!(fixture.completions(), [(1, Done, 512)]);
}

#[test]
fn a_transfer_cancelled_while_the_ring_is_moved_is_seen_to_before_it_runs() {
    let (mut fixture, device) = Fixture::with_device(Config::default());
    fixture.hw.is_mute = true;
    fixture.submit(device, plain_in(), (1, 512)).unwrap();
    fixture.submit(device, plain_in(), (2, 512)).unwrap();
    fixture.cancel(device, plain_in(), 1);
    fixture.hw.execute();
    fixture.interrupt();
    fixture.cancel(device, plain_in(), 2);
    fixture.hw.doorbells.clear();
    fixture.hw.is_mute = false;
    fixture.hw.execute();
    fixture.interrupt();
    assert_eq!(fixture.completions(), [(1, Cancelled, 0), (2, Cancelled, 0)]);
    let types: Vec<_> = fixture.hw.commands.iter().map(CommandTrb::trb_type).collect();
    assert_eq!(types, [TrbType::StopEndpoint, TrbType::SetTrDequeuePointer, TrbType::SetTrDequeuePointer]);
    assert_eq!(fixture.hw.doorbells, []);
}

#[test]
fn a_trb_error_moves_the_ring_without_a_reset() {
    let (mut fixture, device) = Fixture::with_device(Config::default());
    fixture.submit(device, plain_in(), (1, 512)).unwrap();
    let at = fixture.trbs(device, plain_in())[0].0;
    fixture.hw.set_state(device.slot(), IN, EndpointState::Error);
    fixture.event(device, bulk_in(), (at, 5, 512));
    assert_eq!(fixture.completions(), [(1, Error, 0)]);
    let types: Vec<_> = fixture.hw.commands.iter().map(CommandTrb::trb_type).collect();
    assert_eq!(types, [TrbType::SetTrDequeuePointer]);
}

#[test]
fn an_endpoint_that_goes_on_running_costs_the_device_its_slot() {
    let (mut fixture, device) = Fixture::with_device(Config::default());
    fixture.submit(device, plain_in(), (1, 512)).unwrap();
    fixture.hw.refusals.extend([(TrbType::StopEndpoint, 19); 5]);
    fixture.cancel(device, plain_in(), 1);
    fixture.interrupt();
    assert_eq!(fixture.outputs().last(), Some(&Output::Gone(device)));
    assert_eq!(fixture.hw.commands.iter().filter(|c| c.trb_type() == TrbType::StopEndpoint).count(), 5);
    assert_eq!(fixture.submit(device, plain_in(), (2, 512)), Err(Refusal::Gone));
}

#[test]
fn a_stop_answered_early_waits_for_late_events() {
    let quirks = Quirks { stop_answered_early: true, ..Quirks::default() };
    let (mut fixture, device) = Fixture::with_device(Config { quirks, ..Config::default() });
    fixture.submit(device, plain_in(), (1, 512)).unwrap();
    let at = fixture.trbs(device, plain_in())[0].0;
    fixture.cancel(device, plain_in(), 1);
    fixture.interrupt();
    assert_eq!(fixture.completions(), []);
    assert_eq!(fixture.xhci.poll_timeout().map(|d| d.reason), Some(DeadlineReason::StopSettles));
    fixture.event(device, bulk_in(), (at, 1, 0));
    fixture.pass(limit::STOP_SETTLES);
    assert_eq!(fixture.completions(), [(1, Done, 512)]);
    assert_eq!(fixture.hw.commands.len(), 1);
}

#[test]
fn pulling_a_device_ends_its_transfers_once_and_voids_its_id() {
    let (mut fixture, device) = Fixture::with_device(Config::default());
    fixture.submit(device, plain_in(), (1, 512)).unwrap();
    fixture.cancel(device, plain_in(), 1);
    fixture.hw.is_mute = true;
    fixture.submit(device, plain_in(), (2, 512)).unwrap();
    fixture.hw.is_mute = false;
    fixture.hw.plug(3, false);
    fixture.interrupt();
    let mut ended = Vec::new();
    let mut gone = 0;
    for output in fixture.outputs() {
        match output {
            Output::Completed(_, done) => ended.push((done.id.0, done.status)),
            Output::Gone(id) => gone += u32::from(id == device),
            _ => {}
        }
    }
    ended.sort_by_key(|(id, _)| *id);
    assert_eq!(ended.len(), 2);
    assert_eq!(ended[1], (2, Disconnected));
    assert_eq!(gone, 1);
    assert_eq!(fixture.submit(device, plain_in(), (3, 512)), Err(Refusal::Gone));
    let again = fixture.attach();
    assert_ne!(again, device);
}

#[test]
fn a_trb_at_the_dequeue_pointer_is_not_overwritten() {
    // Three places: the second transfer lies behind the first, and a third would lie where the
    // first was.
    let (mut fixture, device) = Fixture::with_device(Config { ring_trbs: 4, ..Config::default() });
    fixture.hw.is_mute = true;
    fixture.submit(device, plain_in(), (1, 512)).unwrap();
    fixture.submit(device, plain_in(), (2, 512)).unwrap();
    let trbs = fixture.trbs(device, plain_in());
    fixture.hw.set_state(device.slot(), IN, EndpointState::Halted);
    fixture.event(device, bulk_in(), (trbs[0].0, 6, 512));
    assert_eq!(fixture.completions(), [(1, Stall, 0)]);
    assert_eq!(fixture.submit(device, plain_in(), (3, 512)), Err(Refusal::Full));
    fixture.hw.is_mute = false;
    fixture.hw.execute();
    fixture.interrupt();
    assert_eq!(fixture.hw.dequeue(device.slot(), IN, 0), (trbs[1].0, true), "the second is not passed");
    assert_eq!(fixture.submit(device, plain_in(), (3, 512)), Ok(()));
}

#[test]
fn an_endpoint_that_halts_again_and_again_where_nothing_is_costs_the_device_its_slot() {
    let (mut fixture, device) = Fixture::with_device(Config::default());
    fixture.submit(device, plain_in(), (1, 512)).unwrap();
    for halts in 0..=limit::LOST_HALTS_MAX {
        assert_eq!(fixture.outputs(), [], "{halts}");
        fixture.hw.set_state(device.slot(), IN, EndpointState::Halted);
        fixture.event(device, bulk_in(), (0, 34, 0));
    }
    assert_eq!(fixture.outputs().last(), Some(&Output::Gone(device)));
}

#[test]
fn a_halt_at_what_was_turned_into_nothing_is_moved_past() {
    let (mut fixture, device) = Fixture::with_device(Config::default());
    for id in 1..=3 {
        fixture.submit(device, plain_in(), (id, 512)).unwrap();
    }
    fixture.cancel(device, plain_in(), 2);
    fixture.interrupt();
    let trbs = fixture.trbs(device, plain_in());
    fixture.event(device, bulk_in(), (trbs[0].0, 1, 0));
    assert_eq!(fixture.completions(), [(2, Cancelled, 0), (1, Done, 512)]);
    fixture.hw.set_dequeue(device.slot(), IN, 0, (trbs[1].0, true));
    fixture.hw.set_state(device.slot(), IN, EndpointState::Halted);
    fixture.hw.doorbells.clear();
    fixture.event(device, bulk_in(), (trbs[1].0, 2, 0));
    assert_eq!(
        fixture.hw.dequeue(device.slot(), IN, 0),
        (trbs[2].0, true),
        "the TRB that it stopped at is not overwritten"
    );
    assert_eq!(fixture.hw.doorbells, [(device.slot(), 3)]);
    assert_eq!(fixture.completions(), []);
}
