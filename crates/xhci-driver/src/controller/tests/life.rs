//! From power-on to devices with endpoints, and what refuses on the way.

use super::*;

#[test]
fn a_controller_is_reset_and_set_up_and_started() {
    let mut fixture = Fixture::new(Config::default());
    assert_eq!(fixture.hw.registers[&0x20], 0x0d);
    assert_eq!(fixture.hw.registers[&0x58], 16);
    assert_eq!(fixture.hw.registers[&0x1024], 160);
    assert_eq!(fixture.xhci.poll_timeout(), None);
    // Two scratchpad pages: the first context pointer leads to their list.
    assert_ne!(fixture.hw.output(0), 0);
}

#[test]
fn the_event_ring_is_as_long_as_was_asked_for_and_may_be() {
    for (asked, granted) in [(0, 256), (256, 256), (1000, 1000), (4096, 4096), (u16::MAX, 4096)] {
        let mut fixture = Fixture::new(Config { event_ring_trbs: asked, ..Config::default() });
        let table = u64::from(fixture.hw.registers[&0x1030]) | u64::from(fixture.hw.registers[&0x1034]) << 32;
        let mut entry = [0; 16];
        crate::DmaMemory::read_bytes(&mut fixture.hw, table, &mut entry);
        assert_eq!(wire::xhci::EventRingSegment::decode(&entry).unwrap().trbs, granted);
    }
}

#[test]
fn a_controller_that_does_not_halt_is_given_up_in_time() {
    struct Deaf(Machine);
    impl Registers for Deaf {
        fn read_register(&mut self, offset: u32) -> u32 {
            if offset == 0x24 { 0 } else { self.0.read_register(offset) }
        }
        fn write_register(&mut self, _: u32, _: u32) {}
    }
    impl crate::DmaMemory for Deaf {
        fn allocate(&mut self, layout: crate::DmaLayout) -> Option<u64> {
            self.0.memory.allocate(layout)
        }
        fn release(&mut self, _: u64, _: crate::DmaLayout) {}
        fn read_bytes(&mut self, _: u64, _: &mut [u8]) {}
        fn write_bytes(&mut self, _: u64, _: &[u8]) {}
    }
    let (mut hw, mut xhci) = (Deaf(Machine::default()), Controller::new(Config::default()));
    xhci.start(&mut hw, Instant::ZERO);
    assert_eq!(xhci.poll_timeout().map(|deadline| deadline.reason), Some(DeadlineReason::Halt));
    for ms in 1..=32 {
        assert_eq!(xhci.poll_output(), None);
        xhci.handle_timeout(&mut hw, Instant::ZERO + Duration::from_ms(ms));
    }
    assert_eq!(xhci.poll_output(), Some(Output::Died(Death::NotInTime(DeadlineReason::Halt))));
    assert_eq!(xhci.poll_timeout(), None);
}

#[test]
fn memory_comes_back_when_the_controller_is_started_again() {
    let (mut fixture, _) = Fixture::with_device(Config::default());
    let before = fixture.hw.memory.pieces_out();
    fixture.xhci.start(&mut fixture.hw, fixture.now);
    assert!(fixture.outputs().contains(&Output::Running));
    assert!(fixture.hw.memory.pieces_out() < before);
}

#[test]
fn a_plugged_port_is_reported_and_reset() {
    let mut fixture = Fixture::new(Config::default());
    fixture.hw.plug(3, true);
    fixture.interrupt();
    let outputs = fixture.outputs();
    assert!(matches!(outputs[..], [Output::PortChanged { port: 3, status }] if status.is_connected()));
    let answer = fixture.ask(Request::ResetPort { port: 3 });
    assert!(matches!(answer, Ok(Answer::Port(status)) if status.is_enabled()));
    assert_eq!(fixture.ask(Request::ResetPort { port: 5 }), Err(Refusal::NoSuchPipe));
}

#[test]
fn a_port_that_is_not_reset_in_time_is_reported() {
    let mut fixture = Fixture::new(Config::default());
    fixture.xhci.request(&mut fixture.hw, fixture.now, RequestId(1), Request::ResetPort { port: 4 }).unwrap();
    fixture.pass(limit::PORT_RESET_TIMEOUT);
    assert_eq!(fixture.outputs(), [Output::Answered(RequestId(1), Answer::TimedOut)]);
}

#[test]
fn a_device_behind_a_hub_has_route_and_translator() {
    let mut fixture = Fixture::new(Config::default());
    let hub = fixture.attach();
    let shape = HubShape { ports: 4, think_time: 1, multiple_translators: false };
    assert_eq!(fixture.ask(Request::DescribeHub(hub, shape)), Ok(Answer::Done));
    let context = fixture.hw.slot(hub.slot());
    assert!(context.is_hub);
    assert_eq!((context.hub_ports, context.think_time), (4, 1));
    let location = Location {
        root_port: 3,
        route: RouteString::ROOT.via(2).unwrap(),
        speed_id: 1,
        translator: Some(Translator { hub, port: 2, multiple: false }),
        control_packet: 64,
    };
    let Ok(Answer::Attached(device)) = fixture.ask(Request::Attach(location)) else { panic!("attached") };
    let context = fixture.hw.slot(device.slot());
    assert_eq!((context.route.bits(), context.translator_slot, context.translator_port), (2, hub.slot(), 2));
}

#[test]
fn an_address_that_is_refused_gives_the_slot_back_and_all_memory() {
    let mut fixture = Fixture::new(Config::default());
    let before = fixture.hw.memory.pieces_out();
    fixture.hw.refusals.push_back((TrbType::AddressDevice, 4));
    let location = Location {
        root_port: 3,
        route: RouteString::ROOT,
        speed_id: 4,
        translator: None,
        control_packet: 512,
    };
    let answer = fixture.ask(Request::Attach(location));
    assert_eq!(answer, Ok(Answer::Failed(CompletionCode::UsbTransactionError)));
    fixture.interrupt();
    assert_eq!(fixture.hw.commands.last(), Some(&CommandTrb::DisableSlot { slot: 1 }));
    assert_eq!(fixture.hw.memory.pieces_out(), before);
    assert_eq!(fixture.outputs(), []);
}

#[test]
fn endpoints_are_configured_with_bursts_and_rings() {
    let (mut fixture, device) = Fixture::with_device(Config::default());
    let context = fixture.hw.endpoint(device.slot(), IN);
    assert_eq!((context.max_packet, context.max_burst, context.error_count), (1024, 15, 3));
    assert_eq!(fixture.hw.slot(device.slot()).context_entries, 4);
}

#[test]
fn a_refused_configuration_changes_nothing() {
    let (mut fixture, device) = Fixture::with_device(Config::default());
    let before = fixture.hw.memory.pieces_out();
    fixture.hw.refusals.push_back((TrbType::ConfigureEndpoint, 7));
    let request = Request::Configure { device, add: Vec::new(), drop: vec![bulk_in()] };
    assert_eq!(fixture.ask(request), Ok(Answer::Failed(CompletionCode::ResourceError)));
    assert_eq!(fixture.hw.memory.pieces_out(), before);
    assert_eq!(fixture.submit(device, plain_in(), (1, 512)), Ok(()));
}

#[test]
fn a_controller_without_memory_is_given_up_and_nothing_is_kept() {
    for pieces in 0..8 {
        let (mut hw, mut xhci) = (Machine::default(), Controller::new(Config::default()));
        hw.memory.limit(pieces);
        xhci.start(&mut hw, Instant::ZERO);
        assert_eq!(xhci.poll_output(), Some(Output::Died(Death::NoMemory)));
        assert_eq!(hw.memory.pieces_out(), 0);
    }
}

#[test]
fn the_link_of_a_usb_3_port_gets_its_power_timeouts() {
    let mut fixture = Fixture::new(Config::default());
    let power = PortPower { u1_timeout: 50, u2_timeout: 40, forces_accept: false };
    let set_power = |port| Request::SetLinkPower { port, power };
    assert_eq!(fixture.ask(set_power(3)), Ok(Answer::Done));
    assert_eq!(fixture.hw.registers[&0x444], 0x2832);
    assert_eq!(fixture.ask(set_power(1)), Err(Refusal::NotAllowed));
    assert_eq!([0, 5].map(|port| fixture.ask(set_power(port))), [Err(Refusal::NoSuchPipe); 2]);
}

#[test]
fn the_controller_gets_the_exit_latency_of_links() {
    let (mut fixture, device) = Fixture::with_device(Config::default());
    assert_eq!(fixture.ask(Request::SetExitLatency(device, 2047)), Ok(Answer::Done));
    let Some(&CommandTrb::EvaluateContext { slot, input }) = fixture.hw.commands.last() else {
        panic!("evaluated")
    };
    let mut bytes = [0; 96];
    crate::DmaMemory::read_bytes(&mut fixture.hw, input, &mut bytes);
    // A0 alone; the slot context behind it, of 64 bytes each here.
    assert_eq!(
        (slot, &bytes[..8], &bytes[68..70]),
        (device.slot(), &[0, 0, 0, 0, 1, 0, 0, 0][..], &[0xff, 0x07][..])
    );
    fixture.hw.refusals.push_back((TrbType::EvaluateContext, 29));
    let refused = fixture.ask(Request::SetExitLatency(device, 9));
    assert_eq!(refused, Ok(Answer::Failed(CompletionCode::MaxExitLatencyTooLarge)));
}

#[test]
fn a_toggle_is_reset_by_drop_and_add() {
    let (mut fixture, device) = Fixture::with_device(Config::default());
    assert_eq!(fixture.ask(Request::ResetToggle(device, bulk_in())), Ok(Answer::Done));
    assert_eq!(fixture.hw.commands.len(), 1);
    assert_eq!(fixture.submit(device, plain_in(), (1, 512)), Ok(()));
}

#[test]
fn a_device_that_was_reset_gets_its_address_and_loses_its_endpoints() {
    let (mut fixture, device) = Fixture::with_device(Config::default());
    fixture.submit(device, plain_in(), (1, 512)).unwrap();
    fixture.xhci.request(&mut fixture.hw, fixture.now, RequestId(1), Request::Readdress(device)).unwrap();
    fixture.interrupt();
    let outputs = fixture.outputs();
    assert!(outputs.contains(&Output::Answered(RequestId(1), Answer::Done)));
    assert!(matches!(outputs[0], Output::Completed(_, done) if done.status == Cancelled));
    assert_eq!(fixture.submit(device, plain_in(), (2, 512)), Err(Refusal::NoSuchPipe));
    assert_eq!(fixture.control(device, 3, [0x80, 6, 0, 1, 0, 0, 18, 0]), Ok(()));
}

#[test]
fn a_device_replaced_between_two_polls_is_gone() {
    let (mut fixture, device) = Fixture::with_device(Config::default());
    fixture.submit(device, plain_in(), (1, 512)).unwrap();
    // Connected, and was not in the meantime.
    fixture.hw.plug(3, true);
    fixture.interrupt();
    let outputs = fixture.outputs();
    assert!(matches!(outputs[0], Output::Completed(_, done) if done.status == Disconnected), "{outputs:?}");
    assert!(outputs.contains(&Output::Gone(device)));
    assert_eq!(fixture.submit(device, plain_in(), (2, 512)), Err(Refusal::Gone));
}

#[test]
fn who_came_before_the_reset_of_a_port_is_who_is_attached_after_it() {
    let mut fixture = Fixture::new(Config::default());
    // What the event of this says was taken note of by the reset.
    fixture.hw.plug(3, true);
    fixture.xhci.request(&mut fixture.hw, fixture.now, RequestId(1), Request::ResetPort { port: 3 }).unwrap();
    let device = fixture.attach_only();
    fixture.interrupt();
    assert!(!fixture.outputs().contains(&Output::Gone(device)));
}
