//! From power-on to a device with endpoints, and what a controller refuses on the way.

use crate::xhci::stand::{IN, OUT, PORT, Stand};
use crate::xhci::{ControlAnswer, Hands, Part};
use units::Duration;
use wire::xhci::{CompletionCode, EndpointState, LinkState, PortPower, SlotState, TrbType};
use xhci_driver::{Answer, Config, Death, Output as Told, Refusal, Registers, Request, Unusable};

const PARTS: [Part; 3] = [Part::CHIPSET, Part::CARD, Part::EARLY_CARD];

#[test]
fn every_part_is_taken_from_its_firmware_reset_and_started() {
    for part in PARTS {
        let mut stand = Stand::new(part, Config::default());
        stand.start();
        assert_eq!(stand.told(), [Told::Running], "{}", part.name);
        // The firmware took 0.8 ms and the reset 0.5 ms; the driver looks every millisecond.
        assert!(stand.now >= units::Instant::ZERO + Duration::from_ms(2));
        assert_eq!(stand.memory.faults(), 0);
        let capabilities = stand.driver.capabilities().unwrap();
        assert_eq!(capabilities.registers.version, part.version);
        assert_eq!(capabilities.protocols.len(), 2);
        assert_eq!(capabilities.protocol(PORT).map(|p| p.supported.revision.major), Some(3));
    }
}

#[test]
fn a_device_that_was_there_before_is_told_after_the_start() {
    let mut stand = Stand::new(Part::CHIPSET, Config::default());
    stand.controller.plug(stand.now, PORT, 4);
    stand.start();
    let told = stand.told();
    assert!(
        matches!(told[..], [Told::Running, Told::PortChanged { port: PORT, status }] if status.is_enabled())
    );
}

#[test]
fn a_device_gets_a_slot_an_address_and_endpoints() {
    for part in PARTS {
        let (stand, device) = Stand::with_device(part, Config::default());
        let context = stand.slot_context(device.slot());
        assert_eq!((context.state, context.address), (SlotState::Configured, device.slot()));
        assert_eq!(stand.endpoint_context(device.slot(), IN).state, EndpointState::Running);
        assert_eq!(stand.asked.len(), 1, "SET_ADDRESS is the controller's");
        let addresses: Vec<_> = stand.installed.iter().map(|endpoint| endpoint.address).collect();
        assert_eq!(addresses, [IN, OUT]);
        assert_eq!((stand.installed[0].packet_bytes, stand.installed[0].burst), (1024, 16));
    }
}

#[test]
fn what_its_ports_take_to_wake_up_is_told_and_when_their_links_sleep_is_heeded_and_read_back() {
    let (mut stand, device) = Stand::with_device(Part::CHIPSET, Config::default());
    let registers = &stand.driver.capabilities().unwrap().registers;
    assert_eq!((registers.u1_exit_latency_us, registers.u2_exit_latency_us), (10, 512));
    let power = PortPower { u1_timeout: 50, u2_timeout: 40, forces_accept: false };
    assert_eq!(stand.ask(Request::SetLinkPower { port: PORT, power }), Ok(Answer::Done));
    assert_eq!(stand.powers, [(PORT, power)]);
    let at = 0x404 + 0x20 + 0x10 * (u32::from(PORT) - 1);
    let hands = &mut Hands::new(stand.now, &mut stand.controller, &mut stand.memory);
    assert_eq!(hands.read_register(at), 0x2832);
    // A port of USB 2.0 has another register there.
    hands.write_register(0x424, 0x2832);
    assert_eq!((hands.read_register(0x424), stand.controller.counters().odd_writes), (0, 1));
    assert_eq!(stand.ask(Request::SetExitLatency(device, 2047)), Ok(Answer::Done));
    assert_eq!(stand.slot_context(device.slot()).exit_latency_us, 2047);
}

#[test]
fn a_port_is_reset_and_enabled_again() {
    let mut stand = Stand::running(Part::CHIPSET, Config::default());
    stand.controller.plug(stand.now, PORT, 4);
    stand.run();
    let answer = stand.ask(Request::ResetPort { port: PORT });
    assert!(matches!(answer, Ok(Answer::Port(status)) if status.link_state() == LinkState::U0));
    assert!(stand.told().iter().all(|told| matches!(told, Told::PortChanged { .. })));
}

#[test]
fn a_port_of_usb_2_needs_its_reset() {
    let mut stand = Stand::running(Part::CHIPSET, Config::default());
    stand.controller.plug(stand.now, 1, 3);
    stand.run();
    let answer = stand.ask(Request::ResetPort { port: 1 });
    assert!(matches!(answer, Ok(Answer::Port(status)) if status.is_enabled() && status.speed_id() == 3));
}

#[test]
fn an_empty_port_gives_no_address() {
    let mut stand = Stand::running(Part::CHIPSET, Config::default());
    let answer = stand.ask(Request::Attach(Stand::location()));
    assert_eq!(answer, Ok(Answer::Failed(CompletionCode::UsbTransactionError)));
    stand.run();
    assert_eq!(stand.told(), []);
}

#[test]
fn a_device_that_stalls_its_address_gets_no_slot_and_one_that_is_silent_neither() {
    for (answer, code) in [
        (ControlAnswer::Stalled, CompletionCode::StallError),
        (ControlAnswer::Silent, CompletionCode::UsbTransactionError),
    ] {
        let mut stand = Stand::running(Part::CHIPSET, Config::default());
        let before = stand.memory.in_use();
        stand.controller.plug(stand.now, PORT, 4);
        stand.run();
        stand.told();
        stand.answer = answer;
        assert_eq!(stand.ask(Request::Attach(Stand::location())), Ok(Answer::Failed(code)));
        stand.run();
        assert_eq!(stand.memory.in_use(), before);
    }
}

#[test]
fn a_speed_that_is_not_the_port_s_is_a_parameter_error() {
    let mut stand = Stand::running(Part::CHIPSET, Config::default());
    stand.controller.plug(stand.now, PORT, 4);
    stand.run();
    let wrong = xhci_driver::Location { speed_id: 3, control_packet: 64, ..Stand::location() };
    assert_eq!(stand.ask(Request::Attach(wrong)), Ok(Answer::Failed(CompletionCode::ParameterError)));
    let wrong = xhci_driver::Location { control_packet: 64, ..Stand::location() };
    assert_eq!(stand.ask(Request::Attach(wrong)), Ok(Answer::Failed(CompletionCode::ParameterError)));
}

#[test]
fn slots_end_and_come_back() {
    let part = Part { slots: 2, ..Part::CHIPSET };
    let mut stand = Stand::running(part, Config::default());
    let first = stand.attach();
    let Ok(Answer::Attached(_)) = stand.ask(Request::Attach(Stand::location())) else { panic!("attached") };
    assert_eq!(stand.ask(Request::Attach(Stand::location())), Ok(Answer::NoMemory));
    assert_eq!(stand.ask(Request::Detach(first)), Ok(Answer::Done));
    let Ok(Answer::Attached(again)) = stand.ask(Request::Attach(Stand::location())) else {
        panic!("attached")
    };
    assert_eq!(again.slot(), first.slot());
}

#[test]
fn more_endpoints_than_there_are_is_a_resource_error() {
    let mut stand = Stand::running(Part { endpoints_max: 1, ..Part::CHIPSET }, Config::default());
    let device = stand.attach();
    let plan = |address| xhci_driver::EndpointPlan {
        descriptor: wire::usb::EndpointDescriptor::bulk(address, 1024),
        companion: Some(wire::usb::SuperSpeedCompanion::bulk(15, 4)),
    };
    let both = Request::Configure { device, add: vec![plan(IN), plan(OUT)], drop: Vec::new() };
    assert_eq!(stand.ask(both), Ok(Answer::Failed(CompletionCode::ResourceError)));
    let one = Request::Configure { device, add: vec![plan(IN)], drop: Vec::new() };
    assert_eq!(stand.ask(one), Ok(Answer::Done));
    assert_eq!(stand.installed.len(), 1);
}

#[test]
fn an_endpoint_that_cannot_be_is_a_parameter_error() {
    let mut stand = Stand::running(Part::CHIPSET, Config::default());
    let device = stand.attach();
    let add = vec![xhci_driver::EndpointPlan {
        descriptor: wire::usb::EndpointDescriptor::bulk(IN, 512),
        companion: Some(wire::usb::SuperSpeedCompanion::bulk(15, 4)),
    }];
    let answer = stand.ask(Request::Configure { device, add, drop: Vec::new() });
    assert_eq!(answer, Ok(Answer::Failed(CompletionCode::ParameterError)));
    assert_eq!((stand.installed.len(), stand.memory.faults()), (0, 0));
}

#[test]
fn streams_replace_the_one_ring_and_go_again() {
    let secondary = Part { primary_streams_exponent: 1, has_secondary_streams: true, ..Part::CHIPSET };
    for part in [Part::CHIPSET, Part::CARD, secondary] {
        let (mut stand, device) = Stand::with_streams(part, Config::default());
        assert!(stand.installed.iter().all(|endpoint| endpoint.streams >= 16), "{}", part.name);
        let endpoints = vec![IN, OUT];
        assert_eq!(stand.ask(Request::FreeStreams(device, endpoints)), Ok(Answer::Done));
        assert!(stand.installed.iter().all(|endpoint| endpoint.streams == 0));
        assert_eq!(stand.memory.faults(), 0);
    }
}

#[test]
fn a_part_without_streams_has_none() {
    let (mut stand, device) = Stand::with_device(Part::EARLY_CARD, Config::default());
    let request = Request::AllocateStreams { device, endpoints: vec![IN, OUT], wanted: 16 };
    assert_eq!(stand.ask(request), Err(Refusal::NoStreams));
}

#[test]
fn a_device_is_addressed_again_after_its_reset() {
    let (mut stand, device) = Stand::with_device(Part::CHIPSET, Config::default());
    assert!(matches!(stand.ask(Request::ResetPort { port: PORT }), Ok(Answer::Port(_))));
    assert_eq!(stand.ask(Request::Readdress(device)), Ok(Answer::Done));
    assert_eq!(stand.slot_context(device.slot()).state, SlotState::Addressed);
    assert_eq!(stand.endpoint_context(device.slot(), IN).state, EndpointState::Disabled);
    assert_eq!(stand.installed, []);
    stand.control(device, 5, [0x80, 6, 0, 1, 0, 0, 0, 0]).unwrap();
    assert_eq!(stand.completions(), [(5, bus::TransferStatus::Done, 0)]);
}

#[test]
fn a_device_that_is_pulled_out_is_gone() {
    let (mut stand, device) = Stand::with_device(Part::CHIPSET, Config::default());
    stand.queue(device, bus::Pipe::plain(IN), (1, 512));
    stand.controller.unplug(stand.now, PORT);
    stand.run();
    let told = stand.told();
    assert!(told.contains(&Told::Gone(device)));
    assert_eq!((stand.installed.len(), stand.link.len()), (0, 0));
    let again = stand.attach();
    assert_eq!((again.slot(), again == device), (device.slot(), false));
}

#[test]
fn every_refusal_of_a_command_is_handed_on() {
    for code in [7, 8, 17, 19, 29] {
        let mut stand = Stand::running(Part::CHIPSET, Config::default());
        let device = stand.attach();
        stand.controller.refuse_next(TrbType::ConfigureEndpoint, code.into());
        let answer = stand.ask(Request::Configure { device, add: Vec::new(), drop: Vec::new() });
        assert_eq!(answer, Ok(Answer::Failed(code.into())));
    }
}

#[test]
fn a_command_that_is_not_answered_is_aborted_and_the_next_is_carried_out() {
    let mut part = Part::CHIPSET;
    part.misbehaviour.unanswered = Some(TrbType::EvaluateContext);
    let (mut stand, device) = Stand::with_device(part, Config::default());
    let hands = &mut crate::xhci::Hands::new(stand.now, &mut stand.controller, &mut stand.memory);
    let request = (xhci_driver::RequestId(1), Request::SetControlPacket(device, 512));
    stand.driver.request(hands, stand.now, request).unwrap();
    stand.run_for(Duration::from_secs(6));
    assert_eq!(stand.told(), [Told::Answered(xhci_driver::RequestId(1), Answer::TimedOut)]);
    assert_eq!(stand.driver.counters().command_timeouts, 1);
    let drop = Request::Configure { device, add: Vec::new(), drop: vec![IN] };
    assert_eq!(stand.ask(drop), Ok(Answer::Done));
}

#[test]
fn a_controller_that_does_not_even_abort_is_given_up() {
    let mut part = Part::CHIPSET;
    part.misbehaviour.unanswered = Some(TrbType::EvaluateContext);
    part.misbehaviour.ignores_abort = true;
    let (mut stand, device) = Stand::with_device(part, Config::default());
    let hands = &mut crate::xhci::Hands::new(stand.now, &mut stand.controller, &mut stand.memory);
    let request = (xhci_driver::RequestId(1), Request::SetControlPacket(device, 512));
    stand.driver.request(hands, stand.now, request).unwrap();
    stand.run_for(Duration::from_secs(12));
    assert!(stand.told().contains(&Told::Died(Death::CommandsStuck)));
    stand.start();
    assert!(stand.told().contains(&Told::Running), "a reset helps");
}

#[test]
fn memory_comes_back_when_the_controller_is_started_again() {
    let (mut stand, device) = Stand::with_streams(Part::CARD, Config::default());
    stand.queue(device, crate::xhci::stand::stream(IN, 3), (1, 512));
    let before = stand.memory.in_use();
    stand.start();
    assert!(stand.told().contains(&Told::Running));
    assert!(stand.memory.in_use() < before);
    assert_eq!((stand.memory.faults(), stand.installed.len(), stand.link.len()), (0, 0, 0));
}

#[test]
fn a_controller_that_is_pulled_out_is_noticed() {
    let (mut stand, device) = Stand::with_device(Part::CHIPSET, Config::default());
    stand.told();
    stand.controller.remove();
    let hands = &mut crate::xhci::Hands::new(stand.now, &mut stand.controller, &mut stand.memory);
    stand.driver.handle_interrupt(hands, stand.now);
    stand.run();
    assert_eq!(stand.told(), [Told::Died(Death::Removed)]);
    assert_eq!(stand.submit(device, bus::Pipe::plain(IN), (1, 512)), Err(Refusal::Gone));
    stand.start();
    assert_eq!(stand.told(), [Told::Died(Death::Unusable(Unusable::NotThere))]);
}

#[test]
fn memory_that_is_not_there_stops_the_controller() {
    let (mut stand, device) = Stand::with_device(Part::CHIPSET, Config::default());
    stand.buffer = 0x4000_0000;
    stand.queue(device, bus::Pipe::plain(IN), (1, 512));
    stand.ends(bus::Pipe::plain(IN), 512, crate::link::bulk::End::Full);
    let told = stand.told();
    assert_eq!(told.last(), Some(&Told::Died(Death::HostSystemError)));
    assert!(!stand.controller.is_running());
}
