//! Streams: rings, arrays, doorbells with ids.

use super::*;

#[test]
fn streams_have_separate_rings_and_doorbells_with_ids() {
    let (mut fixture, device) = with_streams(Config::default());
    let context = fixture.hw.endpoint(device.slot(), IN);
    assert_eq!((context.primary_streams, context.linear_streams), (5, true));
    fixture.submit(device, stream(1), (1, 512)).unwrap();
    fixture.submit(device, stream(16), (2, 512)).unwrap();
    assert_eq!(fixture.hw.doorbells, [(device.slot(), 0x0001_0003), (device.slot(), 0x0010_0003)]);
    assert_eq!(fixture.submit(device, stream(17), (3, 512)), Err(Refusal::NoSuchPipe));
    assert_eq!(fixture.submit(device, plain_in(), (3, 512)), Err(Refusal::NoSuchPipe));
    let second = fixture.trbs(device, stream(16))[0].0;
    fixture.event(device, bulk_in(), (second, 13, 500));
    assert_eq!(fixture.completions(), [(2, Short, 12)]);
}

#[test]
fn one_stream_cancelled_moves_its_ring_and_rings_the_others() {
    let (mut fixture, device) = with_streams(Config::default());
    fixture.submit(device, stream(3), (1, 512)).unwrap();
    fixture.submit(device, stream(5), (2, 512)).unwrap();
    fixture.hw.doorbells.clear();
    fixture.cancel(device, stream(3), 1);
    fixture.interrupt();
    assert_eq!(fixture.completions(), [(1, Cancelled, 0)]);
    let moved = |command: &CommandTrb| matches!(command, CommandTrb::SetTrDequeuePointer { stream: Some(s), .. } if s.id == 3);
    assert_eq!(fixture.hw.commands.iter().filter(|c| moved(c)).count(), 1);
    assert_eq!(fixture.hw.doorbells, [(device.slot(), 0x0005_0003)]);
}

#[test]
fn rings_on_another_lap_are_set_again_where_cycles_are_forgotten() {
    for forgets_cycles in [false, true] {
        let quirks = Quirks { forgets_cycles, ..Quirks::default() };
        let (mut fixture, device) = with_streams(Config { quirks, stream_ring_trbs: 4, ..Config::default() });
        // Stream 5, whose ring has three places, comes to its second lap; stream 7 stays on its
        // first.
        fixture.submit(device, stream(5), (1, 512)).unwrap();
        let first = fixture.trbs(device, stream(5))[0].0;
        fixture.event(device, bulk_in(), (first, 1, 0));
        for (id, place) in [(2, 1), (3, 2), (4, 0)] {
            fixture.submit(device, stream(5), (id, 512)).unwrap();
            fixture.event(device, bulk_in(), (first + 16 * place, 1, 0));
        }
        fixture.submit(device, stream(5), (6, 512)).unwrap();
        let waits = first + 16;
        fixture.submit(device, stream(7), (7, 512)).unwrap();
        fixture.submit(device, stream(3), (8, 512)).unwrap();
        fixture.outputs();
        fixture.hw.doorbells.clear();
        fixture.cancel(device, stream(3), 8);
        fixture.interrupt();
        assert_eq!(fixture.completions(), [(8, Cancelled, 0)]);
        let moved: Vec<_> = (fixture.hw.commands.iter())
            .filter_map(|command| match *command {
                CommandTrb::SetTrDequeuePointer { dequeue, cycle, stream: Some(stream), .. } => {
                    Some((stream.id, cycle, dequeue == waits))
                }
                _ => None,
            })
            .collect();
        let expected: &[_] =
            if forgets_cycles { &[(5, false, true), (3, true, false)] } else { &[(3, true, false)] };
        assert_eq!(moved, expected);
        assert_eq!(fixture.hw.doorbells, [(device.slot(), 0x0005_0003), (device.slot(), 0x0007_0003)]);
    }
}

#[test]
fn streams_come_and_go_and_leave_no_memory_behind() {
    let (mut fixture, device) = Fixture::with_device(Config::default());
    let before = fixture.hw.memory.pieces_out();
    let endpoints = vec![bulk_in(), bulk_out()];
    let allocate = Request::AllocateStreams { device, endpoints: endpoints.clone(), wanted: 8 };
    assert_eq!(fixture.ask(allocate.clone()), Ok(Answer::Streams(8)));
    assert_eq!(fixture.ask(allocate), Err(Refusal::NoStreams));
    assert_eq!(fixture.ask(Request::FreeStreams(device, endpoints)), Ok(Answer::Done));
    assert_eq!(fixture.hw.memory.pieces_out(), before);
}

#[test]
fn streams_that_cannot_be_had_leave_no_memory_behind() {
    let (mut fixture, device) = Fixture::with_device(Config::default());
    let before = fixture.hw.memory.pieces_out();
    let request = Request::AllocateStreams { device, endpoints: vec![bulk_in(), bulk_out()], wanted: 8 };
    fixture.submit(device, plain_in(), (1, 512)).unwrap();
    assert_eq!(fixture.ask(request.clone()), Err(Refusal::Busy));
    assert_eq!(fixture.hw.memory.pieces_out(), before);
    fixture.cancel(device, plain_in(), 1);
    fixture.interrupt();
    for pieces in 0..18 {
        fixture.hw.memory.limit(pieces);
        assert_eq!(fixture.ask(request.clone()), Ok(Answer::NoMemory));
        assert_eq!(fixture.hw.memory.pieces_out(), before);
    }
}

#[test]
fn broken_streams_are_not_allocated() {
    let quirks = Quirks { broken_streams: true, ..Quirks::default() };
    let (mut fixture, device) = Fixture::with_device(Config { quirks, ..Config::default() });
    let request = Request::AllocateStreams { device, endpoints: vec![bulk_in()], wanted: 8 };
    assert_eq!(fixture.ask(request), Err(Refusal::NoStreams));
}

#[test]
fn a_stall_that_names_no_trb_ends_who_has_waited_longest_of_all_streams() {
    let (mut fixture, device) = with_streams(Config::default());
    fixture.submit(device, stream(9), (1, 512)).unwrap();
    fixture.submit(device, stream(2), (2, 512)).unwrap();
    fixture.hw.doorbells.clear();
    for (ended, left) in [(1, vec![0x0002_0003]), (2, vec![])] {
        fixture.hw.set_state(device.slot(), IN, EndpointState::Halted);
        fixture.event(device, bulk_in(), (0, 6, 0));
        assert_eq!(fixture.completions(), [(ended, Stall, 0)]);
        assert_eq!(fixture.hw.doorbells, [], "the device has not cleared its halt");
        assert_eq!(fixture.ask(Request::ResetToggle(device, bulk_in())), Ok(Answer::Done));
        let expected: Vec<_> = left.into_iter().map(|value| (device.slot(), value)).collect();
        assert_eq!(std::mem::take(&mut fixture.hw.doorbells), expected, "what is left is tried");
    }
    let hard =
        |command: &CommandTrb| matches!(command, CommandTrb::ResetEndpoint { preserve_state: false, .. });
    assert_eq!(fixture.hw.commands.iter().filter(|command| hard(command)).count(), 2);
}

#[test]
fn no_answer_before_a_stream_is_current_is_tried_again_softly_and_then_reported() {
    let (mut fixture, device) = with_streams(Config::default());
    fixture.submit(device, stream(4), (1, 512)).unwrap();
    for _ in 0..3 {
        fixture.hw.set_state(device.slot(), IN, EndpointState::Halted);
        fixture.event(device, bulk_in(), (0, 4, 0));
        assert_eq!(fixture.completions(), []);
    }
    assert_eq!(fixture.xhci.counters().soft_retries, 3);
    fixture.hw.set_state(device.slot(), IN, EndpointState::Halted);
    fixture.event(device, bulk_in(), (0, 4, 0));
    assert_eq!(fixture.completions(), [(1, Error, 0)]);
}
