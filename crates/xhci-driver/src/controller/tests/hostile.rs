//! Controllers that do not answer, break, or post events that lie.

use super::*;

#[test]
fn a_command_without_an_answer_is_aborted_and_then_the_controller_given_up() {
    let (mut fixture, device) = Fixture::with_device(Config::default());
    fixture.hw.is_mute = true;
    fixture.submit(device, plain_in(), (1, 512)).unwrap();
    fixture.cancel(device, plain_in(), 1);
    fixture.pass(limit::COMMAND_TIMEOUT);
    assert_eq!(fixture.hw.registers[&0x38] & 4, 4);
    assert_eq!(fixture.xhci.poll_timeout().map(|d| d.reason), Some(DeadlineReason::CommandAbort));
    fixture.pass(limit::ABORT_TIMEOUT);
    let outputs = fixture.outputs();
    assert_eq!(outputs.last(), Some(&Output::Died(Death::CommandsStuck)));
    assert!(matches!(outputs[0], Output::Completed(_, done) if done.status == Disconnected));
}

#[test]
fn an_aborted_command_is_answered_and_the_rest_goes_on() {
    let (mut fixture, device) = Fixture::with_device(Config::default());
    fixture.hw.is_mute = true;
    let request = Request::Configure { device, add: Vec::new(), drop: vec![bulk_in()] };
    fixture.xhci.request(&mut fixture.hw, fixture.now, RequestId(1), request).unwrap();
    fixture.submit(device, Pipe::plain(bulk_out()), (1, 512)).unwrap();
    fixture.cancel(device, Pipe::plain(bulk_out()), 1);
    fixture.pass(limit::COMMAND_TIMEOUT);
    fixture.hw.refusals.push_back((TrbType::ConfigureEndpoint, 25));
    fixture.hw.is_mute = false;
    fixture.hw.execute();
    let stopped = CompletionCode::CommandRingStopped;
    fixture.hw.post(EventTrb::CommandCompletion { pointer: 0, parameter: 0, code: stopped, slot: 0 });
    fixture.interrupt();
    let outputs = fixture.outputs();
    assert!(outputs.contains(&Output::Answered(RequestId(1), Answer::TimedOut)));
    assert!(matches!(outputs[1], Output::Completed(_, done) if done.status == Cancelled));
    assert_eq!(fixture.xhci.poll_timeout(), None);
    assert_eq!(fixture.xhci.counters().command_timeouts, 1);
}

#[test]
fn a_command_that_outlives_its_abort_costs_the_controller() {
    let (mut fixture, device) = Fixture::with_device(Config::default());
    fixture.hw.is_mute = true;
    fixture.submit(device, plain_in(), (1, 512)).unwrap();
    fixture.cancel(device, plain_in(), 1);
    fixture.pass(limit::COMMAND_TIMEOUT);
    let stopped = CompletionCode::CommandRingStopped;
    fixture.hw.post(EventTrb::CommandCompletion { pointer: 0, parameter: 0, code: stopped, slot: 0 });
    fixture.interrupt();
    assert_eq!(fixture.outputs(), []);
    fixture.pass(limit::COMMAND_TIMEOUT);
    assert_eq!(fixture.outputs().last(), Some(&Output::Died(Death::CommandsStuck)));
}

#[test]
fn a_controller_that_is_unplugged_or_breaks_ends_everything() {
    for (word, death) in
        [(u32::MAX, Death::Removed), (0x1000, Death::ControllerError), (0x4, Death::HostSystemError)]
    {
        let (mut fixture, device) = Fixture::with_device(Config::default());
        fixture.submit(device, plain_in(), (1, 512)).unwrap();
        fixture.hw.registers.insert(0x24, word);
        fixture.interrupt();
        let outputs = fixture.outputs();
        assert!(matches!(outputs[0], Output::Completed(_, done) if done.status == Disconnected));
        assert_eq!(outputs[1], Output::Died(death));
        assert_eq!(fixture.submit(device, plain_in(), (2, 512)), Err(Refusal::Gone));
    }
}

#[test]
fn events_that_lie_are_counted_and_end_nothing() {
    let (mut fixture, device) = Fixture::with_device(Config::default());
    fixture.submit(device, plain_in(), (1, 512)).unwrap();
    let at = fixture.trbs(device, plain_in())[0].0;
    let event = |slot, endpoint, pointer| EventTrb::Transfer {
        pointer,
        length: 0,
        code: CompletionCode::Success,
        event_data: false,
        endpoint: EndpointId::new(endpoint),
        slot,
    };
    for lie in [
        event(200, 3, at),
        event(device.slot(), 9, at),
        event(device.slot(), 3, 0),
        event(device.slot(), 0, at),
    ] {
        fixture.hw.post(lie);
    }
    fixture.hw.post(EventTrb::CommandCompletion {
        pointer: 64,
        parameter: 0,
        code: CompletionCode::Success,
        slot: 1,
    });
    fixture.hw.post(EventTrb::PortStatusChange { port: 99, code: CompletionCode::Success });
    fixture.event(device, bulk_in(), (at + 16, 1, 0));
    assert_eq!(fixture.completions(), []);
    let counters = fixture.xhci.counters();
    assert_eq!((counters.stray_events, counters.late_events), (6, 1));
}

#[test]
fn a_residual_larger_than_the_transfer_is_nothing_moved() {
    let (mut fixture, device) = Fixture::with_device(Config::default());
    fixture.submit(device, plain_in(), (1, 512)).unwrap();
    let at = fixture.trbs(device, plain_in())[0].0;
    fixture.event(device, bulk_in(), (at, 13, 0xff_ffff));
    assert_eq!(fixture.completions(), [(1, Short, 0)]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn hostile_events_neither_panic_nor_end_a_transfer_twice(
        events in prop::collection::vec((any::<[u8; 16]>(), 0u8..6, any::<bool>()), 1..40)
    ) {
        let (mut fixture, device) = with_streams(Config::default());
        for id in 0..4 {
            fixture.submit(device, stream(1 + id as u16 % 2), (id, 3 * 0x1_0000)).unwrap();
        }
        let places: Vec<u64> = (1..=2).flat_map(|id| fixture.trbs(device, stream(id))).map(|(at, _)| at).collect();
        let mut ended = Vec::new();
        for (number, (mut trb, kind, cancels)) in events.into_iter().enumerate() {
            let types = [32u8, 32, 32, 33, 34, 37];
            trb[12] = u8::from(fixture.hw.cycle()) | trb[12] & 4;
            trb[13] = types[usize::from(kind)] << 2;
            if kind < 3 {
                (trb[14], trb[15]) = (3, device.slot());
                let place = places[usize::from(trb[0]) % places.len()];
                trb[..8].copy_from_slice(&place.to_le_bytes());
            }
            fixture.hw.post_raw(trb);
            if cancels {
                fixture.cancel(device, stream(1), number as u64 % 4);
            }
            fixture.interrupt();
            ended.extend(fixture.completions().into_iter().map(|(id, ..)| id));
        }
        fixture.hw.registers.insert(0x24, u32::MAX);
        fixture.interrupt();
        ended.extend(fixture.completions().into_iter().map(|(id, ..)| id));
        ended.sort_unstable();
        prop_assert_eq!(ended, [0, 1, 2, 3]);
    }
}
