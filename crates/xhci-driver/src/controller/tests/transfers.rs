//! Transfers: how they are split into TRBs, and how their ends are reported.

use super::*;

#[test]
fn a_transfer_is_split_submitted_and_completed() {
    let (mut fixture, device) = Fixture::with_device(Config::default());
    fixture.submit(device, plain_in(), (1, 0x1_8000)).unwrap();
    assert_eq!(fixture.hw.doorbells.last(), Some(&(device.slot(), 3)));
    let trbs = fixture.trbs(device, plain_in());
    let short = TrbFlags::INTERRUPT_ON_SHORT;
    let flags: Vec<_> = trbs.iter().map(|(_, trb)| (trb.length(), trb.flags())).collect();
    let expected =
        [(0x1_0000, short.with(TrbFlags::CHAIN)), (0x8000, short.with(TrbFlags::INTERRUPT_ON_COMPLETION))];
    assert_eq!(flags, expected);
    fixture.event(device, bulk_in(), (trbs[1].0, 1, 0));
    assert_eq!(fixture.completions(), [(1, Done, 0x1_8000)]);
}

#[test]
fn a_short_packet_in_the_middle_counts_what_lies_before() {
    let (mut fixture, device) = Fixture::with_device(Config::default());
    fixture.submit(device, plain_in(), (1, 0x2_0000)).unwrap();
    let trbs = fixture.trbs(device, plain_in());
    fixture.event(device, bulk_in(), (trbs[0].0, 13, 0x1_0000 - 36));
    assert_eq!(fixture.completions(), [(1, Short, 36)]);
    // Controllers since 1.0 report the last TRB as well.
    fixture.event(device, bulk_in(), (trbs[1].0, 13, 0x1_0000));
    assert_eq!(fixture.completions(), []);
    assert_eq!(fixture.xhci.counters().late_events, 1);
}

#[test]
fn event_data_reports_the_bytes_moved() {
    let (mut fixture, device) = Fixture::with_device(Config { event_data: true, ..Config::default() });
    fixture.submit(device, plain_in(), (1, 0x1_8000)).unwrap();
    let trbs = fixture.trbs(device, plain_in());
    let Some((_, TransferTrb::EventData { token, .. })) = trbs.last() else { panic!("event data") };
    fixture.hw.post(EventTrb::Transfer {
        pointer: *token,
        length: 0x1_0010,
        code: CompletionCode::ShortPacket,
        event_data: true,
        endpoint: Some(IN),
        slot: device.slot(),
    });
    fixture.interrupt();
    assert_eq!(fixture.completions(), [(1, Short, 0x1_0010)]);
}

#[test]
fn a_small_write_is_immediate() {
    let (mut fixture, device) = Fixture::with_device(Config::default());
    crate::DmaMemory::write_bytes(&mut fixture.hw, 0x100_0000, &[1, 2, 3]);
    fixture.submit(device, Pipe::plain(bulk_out()), (1, 3)).unwrap();
    let [(_, TransferTrb::Normal { buffer, length, flags, .. })] =
        fixture.trbs(device, Pipe::plain(bulk_out()))[..]
    else {
        panic!("one TRB")
    };
    assert_eq!((buffer, length), (0x03_0201, 3));
    assert!(flags.has(TrbFlags::IMMEDIATE_DATA));
}

#[test]
fn a_transfer_of_nothing_is_one_empty_trb() {
    let (mut fixture, device) = Fixture::with_device(Config::default());
    fixture.submit(device, Pipe::plain(bulk_out()), (1, 0)).unwrap();
    let trbs = fixture.trbs(device, Pipe::plain(bulk_out()));
    assert_eq!(trbs.iter().map(|(_, trb)| trb.length()).collect::<Vec<_>>(), [0]);
    fixture.event(device, bulk_out(), (trbs[0].0, 1, 0));
    assert_eq!(fixture.completions(), [(1, Done, 0)]);
}

#[test]
fn a_full_ring_is_typed_and_a_completion_makes_room() {
    let (mut fixture, device) = Fixture::with_device(Config { ring_trbs: 4, ..Config::default() });
    fixture.submit(device, plain_in(), (1, 512)).unwrap();
    fixture.submit(device, plain_in(), (2, 512)).unwrap();
    assert_eq!(fixture.submit(device, plain_in(), (3, 512)), Err(Refusal::Full));
    let first = fixture.trbs(device, plain_in())[0].0;
    fixture.event(device, bulk_in(), (first, 1, 0));
    assert_eq!(fixture.submit(device, plain_in(), (3, 512)), Ok(()));
}

#[test]
fn what_is_not_allowed_is_refused() {
    let (mut fixture, device) = Fixture::with_device(Config::default());
    assert_eq!(
        fixture.submit(device, plain_in(), (1, limit::TRANSFER_BYTES_MAX + 1)),
        Err(Refusal::NotAllowed)
    );
    assert_eq!(fixture.submit(device, stream(1), (1, 512)), Err(Refusal::NoSuchPipe));
    assert_eq!(fixture.control(device, 1, [0, 5, 1, 0, 0, 0, 0, 0]), Err(Refusal::NotAllowed));
    fixture.submit(device, plain_in(), (1, 512)).unwrap();
    let drop = Request::Configure { device, add: Vec::new(), drop: vec![bulk_in()] };
    assert_eq!(fixture.ask(drop), Err(Refusal::Busy));
}

#[test]
fn a_control_transfer_has_three_stages_and_ends_with_the_status() {
    let (mut fixture, device) = Fixture::with_device(Config::default());
    fixture.control(device, 1, [0x80, 6, 0, 1, 0, 0, 18, 0]).unwrap();
    let trbs = fixture.trbs(device, Pipe::plain(bus::EndpointAddress::at::<0>(bus::Direction::In)));
    let types: Vec<_> = trbs.iter().map(|(_, trb)| trb.trb_type()).collect();
    assert_eq!(types, [TrbType::SetupStage, TrbType::DataStage, TrbType::StatusStage]);
    let control = bus::EndpointAddress::at::<0>(bus::Direction::In);
    fixture.event(device, control, (trbs[1].0, 13, 10));
    assert_eq!(fixture.completions(), []);
    fixture.event(device, control, (trbs[2].0, 1, 0));
    assert_eq!(fixture.completions(), [(1, Short, 8)]);
}

#[test]
fn a_control_transfer_without_data_ends_with_its_status_stage() {
    let (mut fixture, device) = Fixture::with_device(Config::default());
    let control = Pipe::plain(bus::EndpointAddress::at::<0>(bus::Direction::Out));
    for id in 1..=3 {
        // SET_CONFIGURATION 1.
        fixture.control(device, id, [0x00, 0x09, 1, 0, 0, 0, 0, 0]).unwrap();
        let trbs = fixture.trbs(device, control);
        let [.., (_, TransferTrb::SetupStage { .. }), (status, TransferTrb::StatusStage { .. })] = trbs[..]
        else {
            panic!("{trbs:?}")
        };
        fixture.event(device, control.endpoint, (status, 1, 0));
        assert_eq!(fixture.completions(), [(id, Done, 0)]);
    }
    assert_eq!(fixture.xhci.counters(), crate::Counters::default());
}
