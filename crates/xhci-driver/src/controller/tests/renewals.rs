//! Endpoints that begin again with their numbers after a failure that did not say whether they
//! halted, or after none.

use super::*;

/// A completion code that says nothing of the endpoint: Undefined Error (xHCI 1.2 table 6-90).
const UNDEFINED: u8 = 33;

fn types(fixture: &Fixture) -> Vec<TrbType> {
    fixture.hw.commands.iter().map(CommandTrb::trb_type).collect()
}

/// D3; A0 and A3: bulk IN 1 is dropped and added, and the slot context is there.
fn assert_drops_and_adds_bulk_in(fixture: &mut Fixture) {
    let Some(&CommandTrb::ConfigureEndpoint { input, deconfigure: false, .. }) = fixture.hw.commands.last()
    else {
        panic!("{:?}", fixture.hw.commands)
    };
    let mut bytes = [0; 8];
    crate::DmaMemory::read_bytes(&mut fixture.hw, input, &mut bytes);
    assert_eq!(bytes, [0x08, 0, 0, 0, 0x09, 0, 0, 0]);
}

#[test]
fn an_error_with_an_unknown_code_that_halted_holds_the_endpoint_as_any_halt() {
    for code in [UNDEFINED, 7, 200] {
        let (mut fixture, device) = Fixture::with_device(Config::default());
        fixture.submit(device, plain_in(), (1, 512)).unwrap();
        fixture.submit(device, plain_in(), (2, 512)).unwrap();
        let trbs = fixture.trbs(device, plain_in());
        fixture.hw.set_state(device.slot(), IN, EndpointState::Halted);
        fixture.hw.doorbells.clear();
        fixture.event(device, bulk_in(), (trbs[0].0, code, 512));
        assert_eq!(fixture.completions(), [(1, Error, 0)], "{code}");
        assert_eq!(fixture.hw.doorbells, [], "the device counts from where it was");
        let expected = [TrbType::StopEndpoint, TrbType::ResetEndpoint, TrbType::SetTrDequeuePointer];
        assert_eq!(types(&fixture), expected);
        assert_eq!(fixture.ask(Request::ResetToggle(device, bulk_in())), Ok(Answer::Done));
        assert_eq!((fixture.hw.commands.len(), &fixture.hw.doorbells[..]), (3, &[(device.slot(), 3)][..]));
        fixture.event(device, bulk_in(), (trbs[1].0, 1, 0));
        assert_eq!(fixture.completions(), [(2, Done, 512)]);
    }
}

#[test]
fn an_error_without_a_halt_ends_what_may_have_begun_and_the_endpoint_is_dropped_and_added() {
    // An undefined error leaves the endpoint running, a TRB error leaves it in error.
    for (code, state) in [(UNDEFINED, EndpointState::Running), (5, EndpointState::Error)] {
        let (mut fixture, device) = Fixture::with_device(Config::default());
        fixture.submit(device, plain_in(), (1, 512)).unwrap();
        fixture.submit(device, plain_in(), (2, 512)).unwrap();
        let at = fixture.trbs(device, plain_in())[0].0;
        fixture.hw.set_state(device.slot(), IN, state);
        fixture.event(device, bulk_in(), (at, code, 512));
        assert_eq!(fixture.completions(), [(1, Error, 0), (2, Error, 0)]);
        fixture.hw.doorbells.clear();
        fixture.submit(device, plain_in(), (3, 512)).unwrap();
        fixture.submit(device, plain_in(), (4, 512)).unwrap();
        let left = fixture.trbs(device, plain_in());
        fixture.hw.commands.clear();
        assert_eq!(fixture.ask(Request::ResetToggle(device, bulk_in())), Ok(Answer::Done));
        assert_eq!(types(&fixture), [TrbType::ConfigureEndpoint]);
        assert_drops_and_adds_bulk_in(&mut fixture);
        assert_eq!(fixture.hw.dequeue(device.slot(), IN, 0), (left[0].0, true), "its ring is the same");
        assert_eq!(fixture.hw.doorbells, [(device.slot(), 3)]);
        left.iter().for_each(|(at, _)| fixture.event(device, bulk_in(), (*at, 1, 0)));
        assert_eq!(fixture.completions(), [(3, Done, 512), (4, Done, 512)]);
    }
}

#[test]
fn an_error_of_a_stream_without_a_halt_ends_the_others_and_each_ring_goes_on_after_the_clear() {
    let (mut fixture, device) = with_streams(Config::default());
    fixture.submit(device, stream(2), (1, 512)).unwrap();
    fixture.submit(device, stream(7), (2, 512)).unwrap();
    let at = fixture.trbs(device, stream(2))[0].0;
    fixture.event(device, bulk_in(), (at, UNDEFINED, 512));
    assert_eq!(fixture.completions(), [(1, Error, 0), (2, Error, 0)]);
    fixture.hw.doorbells.clear();
    fixture.submit(device, stream(7), (3, 512)).unwrap();
    let left = fixture.trbs(device, stream(7));
    assert_eq!(fixture.ask(Request::ResetToggle(device, bulk_in())), Ok(Answer::Done));
    assert_drops_and_adds_bulk_in(&mut fixture);
    assert_eq!(fixture.hw.endpoint(device.slot(), IN).primary_streams, 5);
    assert_eq!(fixture.hw.dequeue(device.slot(), IN, 7), (left[0].0, true));
    assert_eq!(fixture.hw.dequeue(device.slot(), IN, 2), (at + 16, true));
    assert_eq!(fixture.hw.doorbells, [(device.slot(), 0x0007_0003)]);
}

#[test]
fn a_clear_that_comes_before_it_is_known_whether_the_endpoint_halted_waits() {
    let (mut fixture, device) = Fixture::with_device(Config::default());
    fixture.submit(device, plain_in(), (1, 512)).unwrap();
    let at = fixture.trbs(device, plain_in())[0].0;
    fixture.hw.is_mute = true;
    fixture.event(device, bulk_in(), (at, UNDEFINED, 512));
    assert_eq!(fixture.completions(), [(1, Error, 0)]);
    fixture.clear(device);
    assert_eq!(fixture.outputs(), []);
    fixture.hw.is_mute = false;
    fixture.hw.execute();
    fixture.interrupt();
    assert_eq!(fixture.outputs(), [Output::Answered(RequestId(7), Answer::Done)]);
    let expected = [TrbType::StopEndpoint, TrbType::SetTrDequeuePointer, TrbType::ConfigureEndpoint];
    assert_eq!(types(&fixture), expected);
}

#[test]
fn a_transfer_submitted_while_its_endpoint_is_dropped_and_added_is_not_lost() {
    let (mut fixture, device) = Fixture::with_device(Config::default());
    fixture.submit(device, plain_in(), (1, 512)).unwrap();
    let at = fixture.trbs(device, plain_in())[0].0;
    fixture.event(device, bulk_in(), (at, 1, 0));
    assert_eq!(fixture.completions(), [(1, Done, 512)]);
    fixture.hw.is_mute = true;
    fixture.hw.doorbells.clear();
    fixture.clear(device);
    fixture.submit(device, plain_in(), (2, 512)).unwrap();
    fixture.submit(device, plain_in(), (3, 512)).unwrap();
    fixture.cancel(device, plain_in(), 3);
    assert_eq!(fixture.hw.doorbells, [], "the controller may know of neither endpoint");
    fixture.hw.is_mute = false;
    fixture.hw.execute();
    fixture.interrupt();
    assert_drops_and_adds_bulk_in_first(&mut fixture);
    assert_eq!(fixture.hw.dequeue(device.slot(), IN, 0), (at + 16, true));
    fixture.event(device, bulk_in(), (at + 16, 1, 0));
    let answered = Output::Answered(RequestId(7), Answer::Done);
    let outputs = fixture.outputs();
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
fn assert_drops_and_adds_bulk_in_first(fixture: &mut Fixture) {
    assert_eq!(types(fixture), [TrbType::ConfigureEndpoint, TrbType::StopEndpoint]);
    fixture.hw.commands.truncate(1);
    assert_drops_and_adds_bulk_in(fixture);
}

#[test]
fn a_drop_and_add_that_is_refused_leaves_a_held_endpoint_held() {
    let (mut fixture, device) = Fixture::with_device(Config::default());
    fixture.submit(device, plain_in(), (1, 512)).unwrap();
    let at = fixture.trbs(device, plain_in())[0].0;
    fixture.event(device, bulk_in(), (at, UNDEFINED, 512));
    assert_eq!(fixture.completions(), [(1, Error, 0)]);
    fixture.submit(device, plain_in(), (2, 512)).unwrap();
    fixture.hw.doorbells.clear();
    fixture.hw.refusals.push_back((TrbType::ConfigureEndpoint, 8));
    let refused = fixture.ask(Request::ResetToggle(device, bulk_in()));
    assert_eq!(refused, Ok(Answer::Failed(CompletionCode::BandwidthError)));
    assert_eq!(fixture.hw.doorbells, []);
    fixture.cancel(device, plain_in(), 2);
    fixture.interrupt();
    assert_eq!(fixture.completions(), [(2, Cancelled, 0)]);
    assert_eq!(fixture.ask(Request::ResetToggle(device, bulk_in())), Ok(Answer::Done));
}

#[test]
fn no_transfer_is_accepted_for_an_endpoint_whose_rings_are_about_to_go() {
    let (mut fixture, device) = Fixture::with_device(Config::default());
    let endpoints = vec![bulk_in()];
    let allocate = Request::AllocateStreams { device, endpoints, wanted: 8 };
    fixture.hw.is_mute = true;
    fixture.xhci.request(&mut fixture.hw, fixture.now, RequestId(1), allocate.clone()).unwrap();
    assert_eq!(fixture.submit(device, plain_in(), (1, 512)), Err(Refusal::Busy));
    assert_eq!(fixture.submit(device, Pipe::plain(bulk_out()), (2, 512)), Ok(()), "this one stays");
    fixture.hw.refusals.push_back((TrbType::ConfigureEndpoint, 8));
    fixture.hw.is_mute = false;
    fixture.hw.execute();
    fixture.interrupt();
    let refused = Answer::Failed(CompletionCode::BandwidthError);
    assert_eq!(fixture.outputs(), [Output::Answered(RequestId(1), refused)]);
    assert_eq!(fixture.submit(device, plain_in(), (3, 512)), Ok(()), "it stays after all");
    fixture.cancel(device, plain_in(), 3);
    fixture.interrupt();
    assert_eq!(fixture.completions(), [(3, Cancelled, 0)]);
    assert_eq!(fixture.ask(allocate), Ok(Answer::Streams(8)));
}
