//! Transfers that are cancelled, halted, stopped in a race, pulled out.

use super::*;

#[test]
fn a_stall_resets_the_endpoint_and_the_next_transfer_goes_on_once_the_device_has_let_go() {
    let (mut stand, device) = Stand::with_device(Config::default());
    stand.submit(device, plain_in(), (1, 512)).unwrap();
    stand.submit(device, plain_in(), (2, 512)).unwrap();
    let trbs = stand.trbs(device, plain_in());
    stand.hw.set_state(device.slot(), IN, EndpointState::Halted);
    stand.hw.rung.clear();
    stand.event(device, bulk_in(), (trbs[0].0, 6, 512));
    assert_eq!(stand.completions(), [(1, Stall, 0)]);
    let types: Vec<_> = stand.hw.commands.iter().map(CommandTrb::trb_type).collect();
    assert_eq!(types, [TrbType::ResetEndpoint, TrbType::SetTrDequeuePointer]);
    assert_eq!(stand.hw.dequeue(device.slot(), IN, 0), (trbs[1].0, true));
    stand.submit(device, plain_in(), (3, 512)).unwrap();
    assert_eq!(stand.hw.rung, []);
    assert_eq!(stand.ask(Request::ResetToggle(device, bulk_in())), Ok(Answer::Done));
    assert_eq!(stand.hw.rung, [(device.slot(), 3)]);
    assert_eq!(stand.hw.commands.len(), 2, "numbers have begun anew already");
    stand.submit(device, plain_in(), (4, 512)).unwrap();
    assert_eq!(stand.hw.rung, [(device.slot(), 3); 2]);
}

#[test]
fn what_is_cancelled_of_a_held_endpoint_needs_no_stop() {
    let (mut stand, device) = Stand::with_device(Config::default());
    for id in 1..=3 {
        stand.submit(device, plain_in(), (id, 512)).unwrap();
    }
    let trbs = stand.trbs(device, plain_in());
    stand.hw.set_state(device.slot(), IN, EndpointState::Halted);
    stand.event(device, bulk_in(), (trbs[0].0, 6, 512));
    stand.hw.rung.clear();
    stand.cancel(device, plain_in(), 2);
    stand.interrupt();
    assert_eq!(stand.completions(), [(1, Stall, 0), (2, Cancelled, 0)]);
    let stops = |command: &CommandTrb| command.trb_type() == TrbType::StopEndpoint;
    assert!(!stand.hw.commands.iter().any(stops));
    assert_eq!(stand.hw.dequeue(device.slot(), IN, 0), (trbs[2].0, true));
    assert_eq!(stand.hw.rung, []);
    assert_eq!(stand.ask(Request::ResetToggle(device, bulk_in())), Ok(Answer::Done));
    assert_eq!(stand.hw.rung, [(device.slot(), 3)]);
}

#[test]
fn a_halt_that_is_cleared_before_the_ring_has_moved_rings_when_it_has() {
    let (mut stand, device) = Stand::with_device(Config::default());
    stand.submit(device, plain_in(), (1, 512)).unwrap();
    stand.submit(device, plain_in(), (2, 512)).unwrap();
    let at = stand.trbs(device, plain_in())[0].0;
    stand.hw.set_state(device.slot(), IN, EndpointState::Halted);
    stand.hw.is_mute = true;
    stand.event(device, bulk_in(), (at, 6, 512));
    assert_eq!(stand.completions(), [(1, Stall, 0)]);
    stand.hw.rung.clear();
    stand.clear(device);
    assert_eq!((stand.outputs(), stand.hw.rung.len()), (vec![], 0));
    stand.hw.is_mute = false;
    stand.hw.execute();
    stand.interrupt();
    assert_eq!(stand.outputs(), [Output::Answered(RequestId(7), Answer::Done)]);
    assert_eq!(stand.hw.rung, [(device.slot(), 3)]);
}

#[test]
fn a_control_endpoint_that_has_stalled_takes_the_next_request() {
    let (mut stand, device) = Stand::with_device(Config::default());
    let control = Pipe::plain(bus::EndpointAddress::at::<0>(bus::Direction::In));
    stand.control(device, 1, [0x80, 6, 0, 1, 0, 0, 18, 0]).unwrap();
    let at = stand.trbs(device, control)[0].0;
    stand.hw.set_state(device.slot(), EndpointId::CONTROL, EndpointState::Halted);
    stand.event(device, control.endpoint, (at, 6, 0));
    assert_eq!(stand.completions(), [(1, Stall, 0)]);
    stand.hw.rung.clear();
    stand.control(device, 2, [0x80, 6, 0, 1, 0, 0, 18, 0]).unwrap();
    assert_eq!(stand.hw.rung, [(device.slot(), 1)]);
}

#[test]
fn a_transaction_error_is_tried_again_softly_and_then_reported() {
    let (mut stand, device) = Stand::with_device(Config::default());
    stand.submit(device, plain_in(), (1, 512)).unwrap();
    let at = stand.trbs(device, plain_in())[0].0;
    for _ in 0..3 {
        stand.hw.set_state(device.slot(), IN, EndpointState::Halted);
        stand.event(device, bulk_in(), (at, 4, 512));
        assert_eq!(stand.completions(), []);
    }
    assert_eq!(stand.xhci.counters().soft_retries, 3);
    let soft =
        |command: &CommandTrb| matches!(command, CommandTrb::ResetEndpoint { preserve_state: true, .. });
    assert!(stand.hw.commands.iter().all(soft));
    stand.hw.set_state(device.slot(), IN, EndpointState::Halted);
    stand.event(device, bulk_in(), (at, 4, 512));
    assert_eq!(stand.completions(), [(1, Error, 0)]);
}

#[test]
fn after_an_error_or_babble_that_was_told_what_waits_moves_once_both_ends_count_anew() {
    // USB transaction error where it is not tried again, babble.
    for (code, status) in [(4, Error), (3, Babble)] {
        let quirks = Quirks { no_soft_retry: true, ..Quirks::default() };
        let (mut stand, device) = Stand::with_device(Config { quirks, ..Config::default() });
        stand.submit(device, plain_in(), (1, 512)).unwrap();
        stand.submit(device, plain_in(), (2, 512)).unwrap();
        let at = stand.trbs(device, plain_in())[0].0;
        stand.hw.set_state(device.slot(), IN, EndpointState::Halted);
        stand.hw.rung.clear();
        stand.event(device, bulk_in(), (at, code, 512));
        assert_eq!(stand.completions(), [(1, status, 0)]);
        let anew =
            |command: &CommandTrb| matches!(command, CommandTrb::ResetEndpoint { preserve_state: false, .. });
        assert!(stand.hw.commands.iter().any(anew));
        assert_eq!(stand.hw.rung, [], "the device counts from where it was");
        assert_eq!(stand.ask(Request::ResetToggle(device, bulk_in())), Ok(Answer::Done));
        assert_eq!(stand.hw.rung, [(device.slot(), 3)]);
    }
}

#[test]
fn the_one_transfer_cancelled_moves_the_ring_past_it() {
    let (mut stand, device) = Stand::with_device(Config::default());
    stand.submit(device, plain_in(), (1, 512)).unwrap();
    stand.cancel(device, plain_in(), 1);
    stand.cancel(device, plain_in(), 1);
    stand.interrupt();
    assert_eq!(stand.completions(), [(1, Cancelled, 0)]);
    let types: Vec<_> = stand.hw.commands.iter().map(CommandTrb::trb_type).collect();
    assert_eq!(types, [TrbType::StopEndpoint, TrbType::SetTrDequeuePointer]);
    stand.submit(device, plain_in(), (2, 512)).unwrap();
    assert_eq!(stand.trbs(device, plain_in()).len(), 1);
}

#[test]
fn a_transfer_cancelled_behind_another_becomes_nothing() {
    let (mut stand, device) = Stand::with_device(Config::default());
    stand.submit(device, plain_in(), (1, 512)).unwrap();
    stand.submit(device, plain_in(), (2, 512)).unwrap();
    stand.cancel(device, plain_in(), 2);
    stand.interrupt();
    assert_eq!(stand.completions(), [(2, Cancelled, 0)]);
    let trbs = stand.trbs(device, plain_in());
    let types: Vec<_> = trbs.iter().map(|(_, trb)| trb.trb_type()).collect();
    assert_eq!(types, [TrbType::Normal, TrbType::NoOp]);
    stand.event(device, bulk_in(), (trbs[0].0, 1, 0));
    stand.event(device, bulk_in(), (trbs[1].0, 1, 0));
    assert_eq!(stand.completions(), [(1, Done, 512)]);
    assert_eq!(stand.xhci.counters(), crate::Counters::default());
}

#[test]
fn a_stopped_transfer_says_how_far_it_came() {
    let (mut stand, device) = Stand::with_device(Config::default());
    stand.hw.is_mute = true;
    stand.submit(device, plain_in(), (1, 0x2_0000)).unwrap();
    let trbs = stand.trbs(device, plain_in());
    stand.cancel(device, plain_in(), 1);
    stand.event(device, bulk_in(), (trbs[1].0, 26, 0xff00));
    stand.hw.set_dequeue(device.slot(), IN, 0, (trbs[1].0, true));
    stand.hw.is_mute = false;
    stand.hw.execute();
    stand.interrupt();
    assert_eq!(stand.completions(), [(1, Cancelled, 0x1_0100)]);
}

#[test]
fn a_transfer_that_completes_before_the_stop_is_done() {
    let (mut stand, device) = Stand::with_device(Config::default());
    stand.hw.is_mute = true;
    stand.submit(device, plain_in(), (1, 512)).unwrap();
    stand.submit(device, plain_in(), (2, 512)).unwrap();
    let trbs = stand.trbs(device, plain_in());
    stand.cancel(device, plain_in(), 1);
    stand.event(device, bulk_in(), (trbs[0].0, 1, 0));
    stand.hw.set_dequeue(device.slot(), IN, 0, (trbs[1].0, true));
    stand.hw.rung.clear();
    stand.hw.is_mute = false;
    stand.hw.execute();
    stand.interrupt();
    assert_eq!(stand.completions(), [(1, Done, 512)]);
    assert_eq!(stand.hw.commands.len(), 1);
    assert_eq!(stand.hw.rung, [(device.slot(), 3)]);
}

#[test]
fn a_stall_before_the_stop_turns_it_into_a_reset() {
    let (mut stand, device) = Stand::with_device(Config::default());
    stand.hw.is_mute = true;
    stand.submit(device, plain_in(), (1, 512)).unwrap();
    stand.submit(device, plain_in(), (2, 512)).unwrap();
    let trbs = stand.trbs(device, plain_in());
    stand.cancel(device, plain_in(), 2);
    stand.hw.set_state(device.slot(), IN, EndpointState::Halted);
    stand.event(device, bulk_in(), (trbs[0].0, 6, 512));
    stand.hw.is_mute = false;
    stand.hw.execute();
    stand.interrupt();
    assert_eq!(stand.completions(), [(1, Stall, 0), (2, Cancelled, 0)]);
    let types: Vec<_> = stand.hw.commands.iter().map(CommandTrb::trb_type).collect();
    assert_eq!(types, [TrbType::StopEndpoint, TrbType::ResetEndpoint, TrbType::SetTrDequeuePointer]);
    assert_eq!(stand.xhci.counters().stop_races, 1);
}

#[test]
fn a_ring_is_never_moved_back_to_what_the_controller_has_passed() {
    let (mut stand, device) = Stand::with_device(Config::default());
    stand.submit(device, plain_in(), (1, 512)).unwrap();
    stand.submit(device, plain_in(), (2, 512)).unwrap();
    let trbs = stand.trbs(device, plain_in());
    stand.hw.set_dequeue(device.slot(), IN, 0, (trbs[1].0, true));
    stand.cancel(device, plain_in(), 2);
    stand.interrupt();
    assert_eq!(stand.completions(), [(2, Cancelled, 0)]);
    assert_eq!(stand.hw.dequeue(device.slot(), IN, 0), (trbs[1].0 + 16, true));
    // The event of the first was late, and still ends it.
    stand.event(device, bulk_in(), (trbs[0].0, 1, 0));
    assert_eq!(stand.completions(), [(1, Done, 512)]);
}

#[test]
fn a_transfer_cancelled_while_the_ring_is_moved_is_seen_to_before_it_runs() {
    let (mut stand, device) = Stand::with_device(Config::default());
    stand.hw.is_mute = true;
    stand.submit(device, plain_in(), (1, 512)).unwrap();
    stand.submit(device, plain_in(), (2, 512)).unwrap();
    stand.cancel(device, plain_in(), 1);
    stand.hw.execute();
    stand.interrupt();
    stand.cancel(device, plain_in(), 2);
    stand.hw.rung.clear();
    stand.hw.is_mute = false;
    stand.hw.execute();
    stand.interrupt();
    assert_eq!(stand.completions(), [(1, Cancelled, 0), (2, Cancelled, 0)]);
    let types: Vec<_> = stand.hw.commands.iter().map(CommandTrb::trb_type).collect();
    assert_eq!(types, [TrbType::StopEndpoint, TrbType::SetTrDequeuePointer, TrbType::SetTrDequeuePointer]);
    assert_eq!(stand.hw.rung, []);
}

#[test]
fn a_trb_error_moves_the_ring_without_a_reset() {
    let (mut stand, device) = Stand::with_device(Config::default());
    stand.submit(device, plain_in(), (1, 512)).unwrap();
    let at = stand.trbs(device, plain_in())[0].0;
    stand.hw.set_state(device.slot(), IN, EndpointState::Error);
    stand.event(device, bulk_in(), (at, 5, 512));
    assert_eq!(stand.completions(), [(1, Error, 0)]);
    let types: Vec<_> = stand.hw.commands.iter().map(CommandTrb::trb_type).collect();
    assert_eq!(types, [TrbType::SetTrDequeuePointer]);
}

#[test]
fn an_endpoint_that_goes_on_running_costs_the_device_its_slot() {
    let (mut stand, device) = Stand::with_device(Config::default());
    stand.submit(device, plain_in(), (1, 512)).unwrap();
    stand.hw.refusals.extend([(TrbType::StopEndpoint, 19); 5]);
    stand.cancel(device, plain_in(), 1);
    stand.interrupt();
    assert_eq!(stand.outputs().last(), Some(&Output::Gone(device)));
    assert_eq!(stand.hw.commands.iter().filter(|c| c.trb_type() == TrbType::StopEndpoint).count(), 5);
    assert_eq!(stand.submit(device, plain_in(), (2, 512)), Err(Refusal::Gone));
}

#[test]
fn a_stop_answered_early_waits_for_late_events() {
    let quirks = Quirks { stop_answered_early: true, ..Quirks::default() };
    let (mut stand, device) = Stand::with_device(Config { quirks, ..Config::default() });
    stand.submit(device, plain_in(), (1, 512)).unwrap();
    let at = stand.trbs(device, plain_in())[0].0;
    stand.cancel(device, plain_in(), 1);
    stand.interrupt();
    assert_eq!(stand.completions(), []);
    assert_eq!(stand.xhci.poll_timeout().map(|d| d.reason), Some(DeadlineReason::StopSettles));
    stand.event(device, bulk_in(), (at, 1, 0));
    stand.pass(limit::STOP_SETTLES);
    assert_eq!(stand.completions(), [(1, Done, 512)]);
    assert_eq!(stand.hw.commands.len(), 1);
}

#[test]
fn pulling_a_device_ends_its_transfers_once_and_voids_its_id() {
    let (mut stand, device) = Stand::with_device(Config::default());
    stand.submit(device, plain_in(), (1, 512)).unwrap();
    stand.cancel(device, plain_in(), 1);
    stand.hw.is_mute = true;
    stand.submit(device, plain_in(), (2, 512)).unwrap();
    stand.hw.is_mute = false;
    stand.hw.plug(3, false);
    stand.interrupt();
    let mut ended = Vec::new();
    let mut gone = 0;
    for output in stand.outputs() {
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
    assert_eq!(stand.submit(device, plain_in(), (3, 512)), Err(Refusal::Gone));
    let again = stand.attach();
    assert_ne!(again, device);
}

#[test]
fn a_place_where_the_controller_stands_is_not_filled_anew() {
    // Three places: the second transfer lies behind the first, and a third would lie where the
    // first was.
    let (mut stand, device) = Stand::with_device(Config { ring_trbs: 4, ..Config::default() });
    stand.hw.is_mute = true;
    stand.submit(device, plain_in(), (1, 512)).unwrap();
    stand.submit(device, plain_in(), (2, 512)).unwrap();
    let trbs = stand.trbs(device, plain_in());
    stand.hw.set_state(device.slot(), IN, EndpointState::Halted);
    stand.event(device, bulk_in(), (trbs[0].0, 6, 512));
    assert_eq!(stand.completions(), [(1, Stall, 0)]);
    assert_eq!(stand.submit(device, plain_in(), (3, 512)), Err(Refusal::Full));
    stand.hw.is_mute = false;
    stand.hw.execute();
    stand.interrupt();
    assert_eq!(stand.hw.dequeue(device.slot(), IN, 0), (trbs[1].0, true), "the second is not passed");
    assert_eq!(stand.submit(device, plain_in(), (3, 512)), Ok(()));
}

#[test]
fn an_endpoint_that_halts_again_and_again_where_nothing_is_costs_the_device_its_slot() {
    let (mut stand, device) = Stand::with_device(Config::default());
    stand.submit(device, plain_in(), (1, 512)).unwrap();
    for halts in 0..=limit::LOST_HALTS_MAX {
        assert_eq!(stand.outputs(), [], "{halts}");
        stand.hw.set_state(device.slot(), IN, EndpointState::Halted);
        stand.event(device, bulk_in(), (0, 34, 0));
    }
    assert_eq!(stand.outputs().last(), Some(&Output::Gone(device)));
}

#[test]
fn a_halt_at_what_was_turned_into_nothing_is_moved_past() {
    let (mut stand, device) = Stand::with_device(Config::default());
    for id in 1..=3 {
        stand.submit(device, plain_in(), (id, 512)).unwrap();
    }
    stand.cancel(device, plain_in(), 2);
    stand.interrupt();
    let trbs = stand.trbs(device, plain_in());
    stand.event(device, bulk_in(), (trbs[0].0, 1, 0));
    assert_eq!(stand.completions(), [(2, Cancelled, 0), (1, Done, 512)]);
    stand.hw.set_dequeue(device.slot(), IN, 0, (trbs[1].0, true));
    stand.hw.set_state(device.slot(), IN, EndpointState::Halted);
    stand.hw.rung.clear();
    stand.event(device, bulk_in(), (trbs[1].0, 2, 0));
    assert_eq!(
        stand.hw.dequeue(device.slot(), IN, 0),
        (trbs[2].0, true),
        "what it stood on is not filled anew"
    );
    assert_eq!(stand.hw.rung, [(device.slot(), 3)]);
    assert_eq!(stand.completions(), []);
}
