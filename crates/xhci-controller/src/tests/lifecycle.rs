//! From power-on to a device with endpoints, and what a controller refuses on the way.

use crate::fixture::DriverAccess;
use crate::fixture::{Fixture, IN, OUT, PORT};
use crate::{ControlAnswer, Model};
use std::vec::Vec;
use units::Duration;
use wire::xhci::{CompletionCode, EndpointState, LinkState, PortPower, SlotState, TrbType};
use xhci_driver::{Answer, Config, Death, Output as DriverOutput, Refusal, Registers, Request, Unusable};

const PARTS: [Model; 3] = [Model::CHIPSET, Model::CARD, Model::EARLY_CARD];

#[test]
fn every_part_is_taken_from_its_firmware_reset_and_started() {
    for model in PARTS {
        let mut fixture = Fixture::new(model, Config::default());
        fixture.start();
        assert_eq!(fixture.reported(), [DriverOutput::Running], "{:#06x}", model.version);
        // The firmware took 0.8 ms and the reset 0.5 ms; the driver looks every millisecond.
        assert!(fixture.now >= units::Instant::ZERO + Duration::from_ms(2));
        assert_eq!(fixture.memory.faults(), 0);
        let capabilities = fixture.driver.capabilities().unwrap();
        assert_eq!(capabilities.registers.version, model.version);
        assert_eq!(capabilities.protocols.len(), 2);
        assert_eq!(capabilities.protocol(PORT).map(|p| p.supported.revision.major), Some(3));
    }
}

#[test]
fn a_device_attached_before_the_start_is_reported_after_it() {
    let mut fixture = Fixture::new(Model::CHIPSET, Config::default());
    fixture.controller.plug(fixture.now, PORT, 4);
    fixture.start();
    let reported = fixture.reported();
    assert!(
        matches!(reported[..], [DriverOutput::Running, DriverOutput::PortChanged { port: PORT, status }] if status.is_enabled())
    );
}

#[test]
fn a_device_gets_a_slot_an_address_and_endpoints() {
    for model in PARTS {
        let (fixture, device) = Fixture::with_device(model, Config::default());
        let context = fixture.slot_context(device.slot());
        assert_eq!((context.state, context.address), (SlotState::Configured, device.slot()));
        assert_eq!(fixture.endpoint_context(device.slot(), IN).state, EndpointState::Running);
        assert_eq!(fixture.asked.len(), 1, "SET_ADDRESS is the controller's");
        let addresses: Vec<_> = fixture.installed.iter().map(|endpoint| endpoint.address).collect();
        assert_eq!(addresses, [IN, OUT]);
        assert_eq!((fixture.installed[0].packet_bytes, fixture.installed[0].burst), (1024, 16));
    }
}

#[test]
fn exit_latencies_are_advertised_and_port_timeouts_are_applied_and_read_back() {
    let (mut fixture, device) = Fixture::with_device(Model::CHIPSET, Config::default());
    let registers = &fixture.driver.capabilities().unwrap().registers;
    assert_eq!((registers.u1_exit_latency_us, registers.u2_exit_latency_us), (10, 512));
    let power = PortPower { u1_timeout: 50, u2_timeout: 40, forces_accept: false };
    assert_eq!(fixture.ask(Request::SetLinkPower { port: PORT, power }), Ok(Answer::Done));
    assert_eq!(fixture.powers, [(PORT, power)]);
    let at = 0x404 + 0x20 + 0x10 * (u32::from(PORT) - 1);
    let access = &mut DriverAccess::new(fixture.now, &mut fixture.controller, &mut fixture.memory);
    assert_eq!(access.read_register(at), 0x2832);
    // A port of USB 2.0 has another register there.
    access.write_register(0x424, 0x2832);
    assert_eq!((access.read_register(0x424), fixture.controller.counters().odd_writes), (0, 1));
    assert_eq!(fixture.ask(Request::SetExitLatency(device, 2047)), Ok(Answer::Done));
    assert_eq!(fixture.slot_context(device.slot()).exit_latency_us, 2047);
}

#[test]
fn a_port_is_reset_and_enabled_again() {
    let mut fixture = Fixture::running(Model::CHIPSET, Config::default());
    fixture.controller.plug(fixture.now, PORT, 4);
    fixture.run();
    let answer = fixture.ask(Request::ResetPort { port: PORT });
    assert!(matches!(answer, Ok(Answer::Port(status)) if status.link_state() == LinkState::U0));
    assert!(fixture.reported().iter().all(|reported| matches!(reported, DriverOutput::PortChanged { .. })));
}

#[test]
fn a_port_of_usb_2_needs_its_reset() {
    let mut fixture = Fixture::running(Model::CHIPSET, Config::default());
    fixture.controller.plug(fixture.now, 1, 3);
    fixture.run();
    let answer = fixture.ask(Request::ResetPort { port: 1 });
    assert!(matches!(answer, Ok(Answer::Port(status)) if status.is_enabled() && status.speed_id() == 3));
}

#[test]
fn an_empty_port_gives_no_address() {
    let mut fixture = Fixture::running(Model::CHIPSET, Config::default());
    let answer = fixture.ask(Request::Attach(Fixture::location()));
    assert_eq!(answer, Ok(Answer::Failed(CompletionCode::UsbTransactionError)));
    fixture.run();
    assert_eq!(fixture.reported(), []);
}

#[test]
fn a_device_that_stalls_its_address_gets_no_slot_and_one_that_is_silent_neither() {
    for (answer, code) in [
        (ControlAnswer::Stalled, CompletionCode::StallError),
        (ControlAnswer::Silent, CompletionCode::UsbTransactionError),
    ] {
        let mut fixture = Fixture::running(Model::CHIPSET, Config::default());
        let before = fixture.memory.in_use();
        fixture.controller.plug(fixture.now, PORT, 4);
        fixture.run();
        fixture.reported();
        fixture.answer = answer;
        assert_eq!(fixture.ask(Request::Attach(Fixture::location())), Ok(Answer::Failed(code)));
        fixture.run();
        assert_eq!(fixture.memory.in_use(), before);
    }
}

#[test]
fn a_speed_that_is_not_the_port_s_is_a_parameter_error() {
    let mut fixture = Fixture::running(Model::CHIPSET, Config::default());
    fixture.controller.plug(fixture.now, PORT, 4);
    fixture.run();
    let wrong = xhci_driver::Location { speed_id: 3, control_packet: 64, ..Fixture::location() };
    assert_eq!(fixture.ask(Request::Attach(wrong)), Ok(Answer::Failed(CompletionCode::ParameterError)));
    let wrong = xhci_driver::Location { control_packet: 64, ..Fixture::location() };
    assert_eq!(fixture.ask(Request::Attach(wrong)), Ok(Answer::Failed(CompletionCode::ParameterError)));
}

#[test]
fn slots_end_and_come_back() {
    let model = Model { slots: 2, ..Model::CHIPSET };
    let mut fixture = Fixture::running(model, Config::default());
    let first = fixture.attach();
    let Ok(Answer::Attached(_)) = fixture.ask(Request::Attach(Fixture::location())) else {
        panic!("attached")
    };
    assert_eq!(fixture.ask(Request::Attach(Fixture::location())), Ok(Answer::NoMemory));
    assert_eq!(fixture.ask(Request::Detach(first)), Ok(Answer::Done));
    let Ok(Answer::Attached(again)) = fixture.ask(Request::Attach(Fixture::location())) else {
        panic!("attached")
    };
    assert_eq!(again.slot(), first.slot());
}

#[test]
fn more_endpoints_than_there_are_is_a_resource_error() {
    let mut fixture = Fixture::running(Model { endpoints_max: 1, ..Model::CHIPSET }, Config::default());
    let device = fixture.attach();
    let plan = |address| xhci_driver::EndpointPlan {
        descriptor: wire::usb::EndpointDescriptor::bulk(address, 1024),
        companion: Some(wire::usb::SuperSpeedCompanion::bulk(15, 4)),
    };
    let both = Request::Configure { device, add: vec![plan(IN), plan(OUT)], drop: Vec::new() };
    assert_eq!(fixture.ask(both), Ok(Answer::Failed(CompletionCode::ResourceError)));
    let one = Request::Configure { device, add: vec![plan(IN)], drop: Vec::new() };
    assert_eq!(fixture.ask(one), Ok(Answer::Done));
    assert_eq!(fixture.installed.len(), 1);
}

#[test]
fn an_endpoint_that_cannot_be_is_a_parameter_error() {
    let mut fixture = Fixture::running(Model::CHIPSET, Config::default());
    let device = fixture.attach();
    let add = vec![xhci_driver::EndpointPlan {
        descriptor: wire::usb::EndpointDescriptor::bulk(IN, 512),
        companion: Some(wire::usb::SuperSpeedCompanion::bulk(15, 4)),
    }];
    let answer = fixture.ask(Request::Configure { device, add, drop: Vec::new() });
    assert_eq!(answer, Ok(Answer::Failed(CompletionCode::ParameterError)));
    assert_eq!((fixture.installed.len(), fixture.memory.faults()), (0, 0));
}

#[test]
fn streams_replace_the_one_ring_and_go_again() {
    let secondary = Model { primary_streams_exponent: 1, has_secondary_streams: true, ..Model::CHIPSET };
    for model in [Model::CHIPSET, Model::CARD, secondary] {
        let (mut fixture, device) = Fixture::with_streams(model, Config::default());
        assert!(fixture.installed.iter().all(|endpoint| endpoint.streams >= 16), "{:#06x}", model.version);
        let endpoints = vec![IN, OUT];
        assert_eq!(fixture.ask(Request::FreeStreams(device, endpoints)), Ok(Answer::Done));
        assert!(fixture.installed.iter().all(|endpoint| endpoint.streams == 0));
        assert_eq!(fixture.memory.faults(), 0);
    }
}

#[test]
fn a_part_without_streams_has_none() {
    let (mut fixture, device) = Fixture::with_device(Model::EARLY_CARD, Config::default());
    let request = Request::AllocateStreams { device, endpoints: vec![IN, OUT], wanted: 16 };
    assert_eq!(fixture.ask(request), Err(Refusal::NoStreams));
}

#[test]
fn a_device_is_addressed_again_after_its_reset() {
    let (mut fixture, device) = Fixture::with_device(Model::CHIPSET, Config::default());
    assert!(matches!(fixture.ask(Request::ResetPort { port: PORT }), Ok(Answer::Port(_))));
    assert_eq!(fixture.ask(Request::Readdress(device)), Ok(Answer::Done));
    assert_eq!(fixture.slot_context(device.slot()).state, SlotState::Addressed);
    assert_eq!(fixture.endpoint_context(device.slot(), IN).state, EndpointState::Disabled);
    assert_eq!(fixture.installed, []);
    fixture.control(device, 5, [0x80, 6, 0, 1, 0, 0, 0, 0]).unwrap();
    assert_eq!(fixture.completions(), [(5, bus::TransferStatus::Done, 0)]);
}

#[test]
fn a_device_that_is_unplugged_is_gone() {
    let (mut fixture, device) = Fixture::with_device(Model::CHIPSET, Config::default());
    fixture.queue(device, bus::Pipe::plain(IN), (1, 512));
    fixture.controller.unplug(fixture.now, PORT);
    fixture.run();
    let reported = fixture.reported();
    assert!(reported.contains(&DriverOutput::Gone(device)));
    assert_eq!((fixture.installed.len(), fixture.link.len()), (0, 0));
    let again = fixture.attach();
    assert_eq!((again.slot(), again == device), (device.slot(), false));
}

#[test]
fn every_refusal_of_a_command_is_handed_on() {
    for code in [7, 8, 17, 19, 29] {
        let mut fixture = Fixture::running(Model::CHIPSET, Config::default());
        let device = fixture.attach();
        fixture.controller.refuse_next(TrbType::ConfigureEndpoint, code.into());
        let answer = fixture.ask(Request::Configure { device, add: Vec::new(), drop: Vec::new() });
        assert_eq!(answer, Ok(Answer::Failed(code.into())));
    }
}

#[test]
fn a_command_that_is_not_answered_is_aborted_and_the_next_is_carried_out() {
    let mut model = Model::CHIPSET;
    model.misbehaviour.unanswered = Some(TrbType::EvaluateContext);
    let (mut fixture, device) = Fixture::with_device(model, Config::default());
    let access =
        &mut crate::fixture::DriverAccess::new(fixture.now, &mut fixture.controller, &mut fixture.memory);
    let request = Request::SetControlPacket(device, 512);
    fixture.driver.request(access, fixture.now, xhci_driver::RequestId(1), request).unwrap();
    fixture.run_for(Duration::from_secs(6));
    assert_eq!(fixture.reported(), [DriverOutput::Answered(xhci_driver::RequestId(1), Answer::TimedOut)]);
    assert_eq!(fixture.driver.counters().command_timeouts, 1);
    let drop = Request::Configure { device, add: Vec::new(), drop: vec![IN] };
    assert_eq!(fixture.ask(drop), Ok(Answer::Done));
}

#[test]
fn a_controller_that_does_not_even_abort_is_given_up() {
    let mut model = Model::CHIPSET;
    model.misbehaviour.unanswered = Some(TrbType::EvaluateContext);
    model.misbehaviour.ignores_abort = true;
    let (mut fixture, device) = Fixture::with_device(model, Config::default());
    let access =
        &mut crate::fixture::DriverAccess::new(fixture.now, &mut fixture.controller, &mut fixture.memory);
    let request = Request::SetControlPacket(device, 512);
    fixture.driver.request(access, fixture.now, xhci_driver::RequestId(1), request).unwrap();
    fixture.run_for(Duration::from_secs(12));
    assert!(fixture.reported().contains(&DriverOutput::Died(Death::CommandsStuck)));
    fixture.start();
    assert!(fixture.reported().contains(&DriverOutput::Running), "a reset helps");
}

#[test]
fn memory_comes_back_when_the_controller_is_started_again() {
    let (mut fixture, device) = Fixture::with_streams(Model::CARD, Config::default());
    fixture.queue(device, crate::fixture::stream(IN, 3), (1, 512));
    let before = fixture.memory.in_use();
    fixture.start();
    assert!(fixture.reported().contains(&DriverOutput::Running));
    assert!(fixture.memory.in_use() < before);
    assert_eq!((fixture.memory.faults(), fixture.installed.len(), fixture.link.len()), (0, 0, 0));
}

#[test]
fn a_controller_that_is_unplugged_is_noticed() {
    let (mut fixture, device) = Fixture::with_device(Model::CHIPSET, Config::default());
    fixture.reported();
    fixture.controller.remove();
    let access =
        &mut crate::fixture::DriverAccess::new(fixture.now, &mut fixture.controller, &mut fixture.memory);
    fixture.driver.handle_interrupt(access, fixture.now);
    fixture.run();
    assert_eq!(fixture.reported(), [DriverOutput::Died(Death::Removed)]);
    assert_eq!(fixture.submit(device, bus::Pipe::plain(IN), (1, 512)), Err(Refusal::Gone));
    fixture.start();
    assert_eq!(fixture.reported(), [DriverOutput::Died(Death::Unusable(Unusable::NotThere))]);
}

#[test]
fn memory_that_is_not_there_stops_the_controller() {
    let (mut fixture, device) = Fixture::with_device(Model::CHIPSET, Config::default());
    fixture.buffer = 0x4000_0000;
    fixture.queue(device, bus::Pipe::plain(IN), (1, 512));
    fixture.ends(bus::Pipe::plain(IN), 512, bus::link::End::Full);
    let reported = fixture.reported();
    assert_eq!(reported.last(), Some(&DriverOutput::Died(Death::HostSystemError)));
    assert!(!fixture.controller.is_running());
}
