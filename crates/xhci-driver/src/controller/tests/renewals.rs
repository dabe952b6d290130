//! Endpoints that begin again with their numbers after a failure that did not say whether they
//! halted, or after none.

use super::*;

/// A completion code that says nothing of the endpoint: Undefined Error (xHCI 1.2 table 6-90).
const UNDEFINED: u8 = 33;

fn types(stand: &Stand) -> Vec<TrbType> {
    stand.hw.commands.iter().map(CommandTrb::trb_type).collect()
}

/// D3; A0 and A3: bulk IN 1 is dropped and added, and the slot context is there.
fn assert_drops_and_adds_bulk_in(stand: &mut Stand) {
    let Some(&CommandTrb::ConfigureEndpoint { input, deconfigure: false, .. }) = stand.hw.commands.last()
    else {
        panic!("{:?}", stand.hw.commands)
    };
    let mut bytes = [0; 8];
    crate::DmaMemory::read_bytes(&mut stand.hw, input, &mut bytes);
    assert_eq!(bytes, [0x08, 0, 0, 0, 0x09, 0, 0, 0]);
}

#[test]
fn an_error_with_an_unknown_code_that_halted_holds_the_endpoint_as_any_halt() {
    for code in [UNDEFINED, 7, 200] {
        let (mut stand, device) = Stand::with_device(Config::default());
        stand.submit(device, plain_in(), (1, 512)).unwrap();
        stand.submit(device, plain_in(), (2, 512)).unwrap();
        let trbs = stand.trbs(device, plain_in());
        stand.hw.set_state(device.slot(), IN, EndpointState::Halted);
        stand.hw.rung.clear();
        stand.event(device, bulk_in(), (trbs[0].0, code, 512));
        assert_eq!(stand.completions(), [(1, Error, 0)], "{code}");
        assert_eq!(stand.hw.rung, [], "the device counts from where it was");
        let expected = [TrbType::StopEndpoint, TrbType::ResetEndpoint, TrbType::SetTrDequeuePointer];
        assert_eq!(types(&stand), expected);
        assert_eq!(stand.ask(Request::ResetToggle(device, bulk_in())), Ok(Answer::Done));
        assert_eq!((stand.hw.commands.len(), &stand.hw.rung[..]), (3, &[(device.slot(), 3)][..]));
        stand.event(device, bulk_in(), (trbs[1].0, 1, 0));
        assert_eq!(stand.completions(), [(2, Done, 512)]);
    }
}

#[test]
fn an_error_without_a_halt_ends_what_may_have_begun_and_the_endpoint_is_dropped_and_added() {
    // An undefined error leaves the endpoint running, a TRB error leaves it in error.
    for (code, state) in [(UNDEFINED, EndpointState::Running), (5, EndpointState::Error)] {
        let (mut stand, device) = Stand::with_device(Config::default());
        stand.submit(device, plain_in(), (1, 512)).unwrap();
        stand.submit(device, plain_in(), (2, 512)).unwrap();
        let at = stand.trbs(device, plain_in())[0].0;
        stand.hw.set_state(device.slot(), IN, state);
        stand.event(device, bulk_in(), (at, code, 512));
        assert_eq!(stand.completions(), [(1, Error, 0), (2, Error, 0)]);
        stand.hw.rung.clear();
        stand.submit(device, plain_in(), (3, 512)).unwrap();
        stand.submit(device, plain_in(), (4, 512)).unwrap();
        let left = stand.trbs(device, plain_in());
        stand.hw.commands.clear();
        assert_eq!(stand.ask(Request::ResetToggle(device, bulk_in())), Ok(Answer::Done));
        assert_eq!(types(&stand), [TrbType::ConfigureEndpoint]);
        assert_drops_and_adds_bulk_in(&mut stand);
        assert_eq!(stand.hw.dequeue(device.slot(), IN, 0), (left[0].0, true), "its ring is the same");
        assert_eq!(stand.hw.rung, [(device.slot(), 3)]);
        left.iter().for_each(|(at, _)| stand.event(device, bulk_in(), (*at, 1, 0)));
        assert_eq!(stand.completions(), [(3, Done, 512), (4, Done, 512)]);
    }
}

#[test]
fn an_error_of_a_stream_without_a_halt_ends_the_others_and_each_ring_goes_on_after_the_clear() {
    let (mut stand, device) = with_streams(Config::default());
    stand.submit(device, stream(2), (1, 512)).unwrap();
    stand.submit(device, stream(7), (2, 512)).unwrap();
    let at = stand.trbs(device, stream(2))[0].0;
    stand.event(device, bulk_in(), (at, UNDEFINED, 512));
    assert_eq!(stand.completions(), [(1, Error, 0), (2, Error, 0)]);
    stand.hw.rung.clear();
    stand.submit(device, stream(7), (3, 512)).unwrap();
    let left = stand.trbs(device, stream(7));
    assert_eq!(stand.ask(Request::ResetToggle(device, bulk_in())), Ok(Answer::Done));
    assert_drops_and_adds_bulk_in(&mut stand);
    assert_eq!(stand.hw.endpoint(device.slot(), IN).primary_streams, 5);
    assert_eq!(stand.hw.dequeue(device.slot(), IN, 7), (left[0].0, true));
    assert_eq!(stand.hw.dequeue(device.slot(), IN, 2), (at + 16, true));
    assert_eq!(stand.hw.rung, [(device.slot(), 0x0007_0003)]);
}

#[test]
fn a_clear_that_comes_before_it_is_known_whether_the_endpoint_halted_waits() {
    let (mut stand, device) = Stand::with_device(Config::default());
    stand.submit(device, plain_in(), (1, 512)).unwrap();
    let at = stand.trbs(device, plain_in())[0].0;
    stand.hw.is_mute = true;
    stand.event(device, bulk_in(), (at, UNDEFINED, 512));
    assert_eq!(stand.completions(), [(1, Error, 0)]);
    stand.clear(device);
    assert_eq!(stand.outputs(), []);
    stand.hw.is_mute = false;
    stand.hw.execute();
    stand.interrupt();
    assert_eq!(stand.outputs(), [Output::Answered(RequestId(7), Answer::Done)]);
    let expected = [TrbType::StopEndpoint, TrbType::SetTrDequeuePointer, TrbType::ConfigureEndpoint];
    assert_eq!(types(&stand), expected);
}

#[test]
fn a_transfer_submitted_while_its_endpoint_is_dropped_and_added_is_not_lost() {
    let (mut stand, device) = Stand::with_device(Config::default());
    stand.submit(device, plain_in(), (1, 512)).unwrap();
    let at = stand.trbs(device, plain_in())[0].0;
    stand.event(device, bulk_in(), (at, 1, 0));
    assert_eq!(stand.completions(), [(1, Done, 512)]);
    stand.hw.is_mute = true;
    stand.hw.rung.clear();
    stand.clear(device);
    stand.submit(device, plain_in(), (2, 512)).unwrap();
    stand.submit(device, plain_in(), (3, 512)).unwrap();
    stand.cancel(device, plain_in(), 3);
    assert_eq!(stand.hw.rung, [], "the controller may know of neither endpoint");
    stand.hw.is_mute = false;
    stand.hw.execute();
    stand.interrupt();
    assert_drops_and_adds_bulk_in_first(&mut stand);
    assert_eq!(stand.hw.dequeue(device.slot(), IN, 0), (at + 16, true));
    stand.event(device, bulk_in(), (at + 16, 1, 0));
    let answered = Output::Answered(RequestId(7), Answer::Done);
    let outputs = stand.outputs();
    assert!(outputs.contains(&answered), "{outputs:?}");
    let ended: Vec<_> = outputs
        .iter()
        .filter_map(|output| match output {
            Output::Completed(_, done) => Some((done.id.0, done.status)),
            _ => None,
        })
        .collect();
    assert_eq!(ended, [(3, Cancelled), (2, Done)]);
}

/// The first command was such, and what was cancelled stopped the endpoint after it.
fn assert_drops_and_adds_bulk_in_first(stand: &mut Stand) {
    assert_eq!(types(stand), [TrbType::ConfigureEndpoint, TrbType::StopEndpoint]);
    stand.hw.commands.truncate(1);
    assert_drops_and_adds_bulk_in(stand);
}

#[test]
fn a_drop_and_add_that_is_refused_leaves_a_held_endpoint_held() {
    let (mut stand, device) = Stand::with_device(Config::default());
    stand.submit(device, plain_in(), (1, 512)).unwrap();
    let at = stand.trbs(device, plain_in())[0].0;
    stand.event(device, bulk_in(), (at, UNDEFINED, 512));
    assert_eq!(stand.completions(), [(1, Error, 0)]);
    stand.submit(device, plain_in(), (2, 512)).unwrap();
    stand.hw.rung.clear();
    stand.hw.refusals.push_back((TrbType::ConfigureEndpoint, 8));
    let refused = stand.ask(Request::ResetToggle(device, bulk_in()));
    assert_eq!(refused, Ok(Answer::Failed(CompletionCode::BandwidthError)));
    assert_eq!(stand.hw.rung, []);
    stand.cancel(device, plain_in(), 2);
    stand.interrupt();
    assert_eq!(stand.completions(), [(2, Cancelled, 0)]);
    assert_eq!(stand.ask(Request::ResetToggle(device, bulk_in())), Ok(Answer::Done));
}

#[test]
fn nothing_is_taken_on_for_an_endpoint_whose_rings_are_about_to_go() {
    let (mut stand, device) = Stand::with_device(Config::default());
    let endpoints = vec![bulk_in()];
    let allocate = Request::AllocateStreams { device, endpoints, wanted: 8 };
    stand.hw.is_mute = true;
    stand.xhci.request(&mut stand.hw, stand.now, (RequestId(1), allocate.clone())).unwrap();
    assert_eq!(stand.submit(device, plain_in(), (1, 512)), Err(Refusal::Busy));
    assert_eq!(stand.submit(device, Pipe::plain(bulk_out()), (2, 512)), Ok(()), "this one stays");
    stand.hw.refusals.push_back((TrbType::ConfigureEndpoint, 8));
    stand.hw.is_mute = false;
    stand.hw.execute();
    stand.interrupt();
    let refused = Answer::Failed(CompletionCode::BandwidthError);
    assert_eq!(stand.outputs(), [Output::Answered(RequestId(1), refused)]);
    assert_eq!(stand.submit(device, plain_in(), (3, 512)), Ok(()), "it stays after all");
    stand.cancel(device, plain_in(), 3);
    stand.interrupt();
    assert_eq!(stand.completions(), [(3, Cancelled, 0)]);
    assert_eq!(stand.ask(allocate), Ok(Answer::Streams(8)));
}
