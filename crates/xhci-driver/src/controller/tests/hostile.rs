//! Controllers that do not answer, break, or post events that lie.

use super::*;

#[test]
fn a_command_without_an_answer_is_aborted_and_then_the_controller_given_up() {
    let (mut stand, device) = Stand::with_device(Config::default());
    stand.hw.is_mute = true;
    stand.submit(device, plain_in(), (1, 512)).unwrap();
    stand.cancel(device, plain_in(), 1);
    stand.pass(limit::COMMAND_TIMEOUT);
    assert_eq!(stand.hw.registers[&0x38] & 4, 4);
    assert_eq!(stand.xhci.poll_timeout().map(|d| d.reason), Some(DeadlineReason::CommandAbort));
    stand.pass(limit::ABORT_TIMEOUT);
    let outputs = stand.outputs();
    assert_eq!(outputs.last(), Some(&Output::Died(Death::CommandsStuck)));
    assert!(matches!(outputs[0], Output::Completed(_, done) if done.status == Disconnected));
}

#[test]
fn an_aborted_command_is_answered_and_the_rest_goes_on() {
    let (mut stand, device) = Stand::with_device(Config::default());
    stand.hw.is_mute = true;
    let request = Request::Configure { device, add: Vec::new(), drop: vec![bulk_in()] };
    stand.xhci.request(&mut stand.hw, stand.now, (RequestId(1), request)).unwrap();
    stand.submit(device, Pipe::plain(bulk_out()), (1, 512)).unwrap();
    stand.cancel(device, Pipe::plain(bulk_out()), 1);
    stand.pass(limit::COMMAND_TIMEOUT);
    stand.hw.refusals.push_back((TrbType::ConfigureEndpoint, 25));
    stand.hw.is_mute = false;
    stand.hw.execute();
    let stopped = CompletionCode::CommandRingStopped;
    stand.hw.post(EventTrb::CommandCompletion { pointer: 0, parameter: 0, code: stopped, slot: 0 });
    stand.interrupt();
    let outputs = stand.outputs();
    assert!(outputs.contains(&Output::Answered(RequestId(1), Answer::TimedOut)));
    assert!(matches!(outputs[1], Output::Completed(_, done) if done.status == Cancelled));
    assert_eq!(stand.xhci.poll_timeout(), None);
    assert_eq!(stand.xhci.counters().command_timeouts, 1);
}

#[test]
fn a_command_that_outlives_its_abort_costs_the_controller() {
    let (mut stand, device) = Stand::with_device(Config::default());
    stand.hw.is_mute = true;
    stand.submit(device, plain_in(), (1, 512)).unwrap();
    stand.cancel(device, plain_in(), 1);
    stand.pass(limit::COMMAND_TIMEOUT);
    let stopped = CompletionCode::CommandRingStopped;
    stand.hw.post(EventTrb::CommandCompletion { pointer: 0, parameter: 0, code: stopped, slot: 0 });
    stand.interrupt();
    assert_eq!(stand.outputs(), []);
    stand.pass(limit::COMMAND_TIMEOUT);
    assert_eq!(stand.outputs().last(), Some(&Output::Died(Death::CommandsStuck)));
}

#[test]
fn a_controller_that_is_pulled_out_or_breaks_ends_everything() {
    for (word, death) in
        [(u32::MAX, Death::Removed), (0x1000, Death::ControllerError), (0x4, Death::HostSystemError)]
    {
        let (mut stand, device) = Stand::with_device(Config::default());
        stand.submit(device, plain_in(), (1, 512)).unwrap();
        stand.hw.registers.insert(0x24, word);
        stand.interrupt();
        let outputs = stand.outputs();
        assert!(matches!(outputs[0], Output::Completed(_, done) if done.status == Disconnected));
        assert_eq!(outputs[1], Output::Died(death));
        assert_eq!(stand.submit(device, plain_in(), (2, 512)), Err(Refusal::Gone));
    }
}

#[test]
fn events_that_lie_are_counted_and_end_nothing() {
    let (mut stand, device) = Stand::with_device(Config::default());
    stand.submit(device, plain_in(), (1, 512)).unwrap();
    let at = stand.trbs(device, plain_in())[0].0;
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
        stand.hw.post(lie);
    }
    stand.hw.post(EventTrb::CommandCompletion {
        pointer: 64,
        parameter: 0,
        code: CompletionCode::Success,
        slot: 1,
    });
    stand.hw.post(EventTrb::PortStatusChange { port: 99, code: CompletionCode::Success });
    stand.event(device, bulk_in(), (at + 16, 1, 0));
    assert_eq!(stand.completions(), []);
    let counters = stand.xhci.counters();
    assert_eq!((counters.stray_events, counters.late_events), (6, 1));
}

#[test]
fn a_residual_larger_than_the_transfer_is_nothing_moved() {
    let (mut stand, device) = Stand::with_device(Config::default());
    stand.submit(device, plain_in(), (1, 512)).unwrap();
    let at = stand.trbs(device, plain_in())[0].0;
    stand.event(device, bulk_in(), (at, 13, 0xff_ffff));
    assert_eq!(stand.completions(), [(1, Short, 0)]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn hostile_events_neither_panic_nor_end_a_transfer_twice(
        events in prop::collection::vec((any::<[u8; 16]>(), 0u8..6, any::<bool>()), 1..40)
    ) {
        let (mut stand, device) = with_streams(Config::default());
        for id in 0..4 {
            stand.submit(device, stream(1 + id as u16 % 2), (id, 3 * 0x1_0000)).unwrap();
        }
        let places: Vec<u64> = (1..=2).flat_map(|id| stand.trbs(device, stream(id))).map(|(at, _)| at).collect();
        let mut ended = Vec::new();
        for (number, (mut trb, kind, cancels)) in events.into_iter().enumerate() {
            let types = [32u8, 32, 32, 33, 34, 37];
            trb[12] = u8::from(stand.hw.cycle()) | trb[12] & 4;
            trb[13] = types[usize::from(kind)] << 2;
            if kind < 3 {
                (trb[14], trb[15]) = (3, device.slot());
                let place = places[usize::from(trb[0]) % places.len()];
                trb[..8].copy_from_slice(&place.to_le_bytes());
            }
            stand.hw.post_raw(trb);
            if cancels {
                stand.cancel(device, stream(1), number as u64 % 4);
            }
            stand.interrupt();
            ended.extend(stand.completions().into_iter().map(|(id, ..)| id));
        }
        stand.hw.registers.insert(0x24, u32::MAX);
        stand.interrupt();
        ended.extend(stand.completions().into_iter().map(|(id, ..)| id));
        ended.sort_unstable();
        prop_assert_eq!(ended, [0, 1, 2, 3]);
    }
}
