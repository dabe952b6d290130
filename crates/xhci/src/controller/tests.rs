//! The driver on a scripted controller: its life, transfers, streams, what is taken back, and events that lie.

extern crate std;

use super::Controller;
use crate::hardware::Registers;
use crate::script::{Machine, Stand, bulk_in, bulk_out};
use crate::words::{
    Answer, Config, DeadlineReason, Death, HubShape, Location, Output, Refusal, Request, RequestId,
    Translator,
};
use crate::{Quirks, limit};
use bus::TransferStatus::{Cancelled, Disconnected, Done, Error, Short, Stall};
use bus::{Pipe, StreamId};
use proptest::prelude::*;
use std::vec;
use std::vec::Vec;
use units::{Duration, Instant};
use wire::xhci::{
    CommandTrb, CompletionCode, EndpointId, EndpointState, EventTrb, RouteString, TransferTrb, TrbFlags,
    TrbType,
};

/// Where the context of bulk IN 1 is.
const IN: EndpointId = EndpointId::of(bus::EndpointAddress::at::<1>(bus::Direction::In));

fn plain_in() -> Pipe {
    Pipe::plain(bulk_in())
}

fn stream(id: u16) -> Pipe {
    Pipe::stream(bulk_in(), StreamId::new(id).unwrap())
}

fn with_streams(config: Config) -> (Stand, crate::DeviceId) {
    let (mut stand, device) = Stand::with_device(config);
    let endpoints = vec![bulk_in(), bulk_out()];
    let answer = stand.ask(Request::AllocateStreams { device, endpoints, wanted: 32 });
    assert_eq!(answer, Ok(Answer::Streams(16)));
    stand.hw.commands.clear();
    stand.hw.rung.clear();
    (stand, device)
}

#[test]
fn a_controller_is_reset_and_set_up_and_started() {
    let mut stand = Stand::new(Config::default());
    assert_eq!(stand.hw.registers[&0x20], 0x0d);
    assert_eq!(stand.hw.registers[&0x58], 16);
    assert_eq!(stand.hw.registers[&0x1024], 160);
    assert_eq!(stand.xhci.poll_timeout(), None);
    // Two scratchpad pages: the first context pointer leads to their list.
    assert_ne!(stand.hw.output(0), 0);
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
    let (mut stand, _) = Stand::with_device(Config::default());
    let before = stand.hw.memory.pieces_out();
    stand.xhci.start(&mut stand.hw, stand.now);
    assert!(stand.outputs().contains(&Output::Running));
    assert!(stand.hw.memory.pieces_out() < before);
}

#[test]
fn a_plugged_port_is_told_and_reset() {
    let mut stand = Stand::new(Config::default());
    stand.hw.plug(3, true);
    stand.interrupt();
    let outputs = stand.outputs();
    assert!(matches!(outputs[..], [Output::PortChanged { port: 3, status }] if status.is_connected()));
    let answer = stand.ask(Request::ResetPort { port: 3 });
    assert!(matches!(answer, Ok(Answer::Port(status)) if status.is_enabled()));
    assert_eq!(stand.ask(Request::ResetPort { port: 5 }), Err(Refusal::NoSuchPipe));
}

#[test]
fn a_port_that_is_not_reset_in_time_is_told() {
    let mut stand = Stand::new(Config::default());
    stand.xhci.request(&mut stand.hw, stand.now, (RequestId(1), Request::ResetPort { port: 4 })).unwrap();
    stand.pass(limit::PORT_RESET_PATIENCE);
    assert_eq!(stand.outputs(), [Output::Answered(RequestId(1), Answer::TimedOut)]);
}

#[test]
fn a_device_behind_a_hub_has_route_and_translator() {
    let mut stand = Stand::new(Config::default());
    let hub = stand.attach();
    let shape = HubShape { ports: 4, think_time: 1, multiple_translators: false };
    assert_eq!(stand.ask(Request::DescribeHub(hub, shape)), Ok(Answer::Done));
    let context = stand.hw.slot(hub.slot());
    assert!(context.is_hub);
    assert_eq!((context.hub_ports, context.think_time), (4, 1));
    let location = Location {
        root_port: 3,
        route: RouteString::ROOT.via(2).unwrap(),
        speed_id: 1,
        translator: Some(Translator { hub, port: 2, multiple: false }),
        control_packet: 64,
    };
    let Ok(Answer::Attached(device)) = stand.ask(Request::Attach(location)) else { panic!("attached") };
    let context = stand.hw.slot(device.slot());
    assert_eq!((context.route.bits(), context.translator_slot, context.translator_port), (2, hub.slot(), 2));
}

#[test]
fn an_address_that_is_refused_gives_the_slot_back_and_all_memory() {
    let mut stand = Stand::new(Config::default());
    let before = stand.hw.memory.pieces_out();
    stand.hw.refusals.push_back((TrbType::AddressDevice, 4));
    let location = Location {
        root_port: 3,
        route: RouteString::ROOT,
        speed_id: 4,
        translator: None,
        control_packet: 512,
    };
    let answer = stand.ask(Request::Attach(location));
    assert_eq!(answer, Ok(Answer::Failed(CompletionCode::UsbTransactionError)));
    stand.interrupt();
    assert_eq!(stand.hw.commands.last(), Some(&CommandTrb::DisableSlot { slot: 1 }));
    assert_eq!(stand.hw.memory.pieces_out(), before);
    assert_eq!(stand.outputs(), []);
}

#[test]
fn endpoints_are_configured_with_bursts_and_rings() {
    let (mut stand, device) = Stand::with_device(Config::default());
    let context = stand.hw.endpoint(device.slot(), IN);
    assert_eq!((context.max_packet, context.max_burst, context.error_count), (1024, 15, 3));
    assert_eq!(stand.hw.slot(device.slot()).context_entries, 4);
}

#[test]
fn a_refused_configuration_changes_nothing() {
    let (mut stand, device) = Stand::with_device(Config::default());
    let before = stand.hw.memory.pieces_out();
    stand.hw.refusals.push_back((TrbType::ConfigureEndpoint, 7));
    let request = Request::Configure { device, add: Vec::new(), drop: vec![bulk_in()] };
    assert_eq!(stand.ask(request), Ok(Answer::Failed(CompletionCode::ResourceError)));
    assert_eq!(stand.hw.memory.pieces_out(), before);
    assert_eq!(stand.submit(device, plain_in(), (1, 512)), Ok(()));
}

#[test]
fn a_transfer_is_cut_rung_and_completed() {
    let (mut stand, device) = Stand::with_device(Config::default());
    stand.submit(device, plain_in(), (1, 0x1_8000)).unwrap();
    assert_eq!(stand.hw.rung.last(), Some(&(device.slot(), 3)));
    let trbs = stand.trbs(device, plain_in());
    let short = TrbFlags::INTERRUPT_ON_SHORT;
    let flags: Vec<_> = trbs.iter().map(|(_, trb)| (trb.length(), trb.flags())).collect();
    let expected =
        [(0x1_0000, short.with(TrbFlags::CHAIN)), (0x8000, short.with(TrbFlags::INTERRUPT_ON_COMPLETION))];
    assert_eq!(flags, expected);
    stand.event(device, bulk_in(), (trbs[1].0, 1, 0));
    assert_eq!(stand.completions(), [(1, Done, 0x1_8000)]);
}

#[test]
fn a_short_packet_in_the_middle_counts_what_lies_before() {
    let (mut stand, device) = Stand::with_device(Config::default());
    stand.submit(device, plain_in(), (1, 0x2_0000)).unwrap();
    let trbs = stand.trbs(device, plain_in());
    stand.event(device, bulk_in(), (trbs[0].0, 13, 0x1_0000 - 36));
    assert_eq!(stand.completions(), [(1, Short, 36)]);
    // Controllers since 1.0 tell the last TRB as well.
    stand.event(device, bulk_in(), (trbs[1].0, 13, 0x1_0000));
    assert_eq!(stand.completions(), []);
    assert_eq!(stand.xhci.counters().late_events, 1);
}

#[test]
fn event_data_tells_the_bytes_moved() {
    let (mut stand, device) = Stand::with_device(Config { event_data: true, ..Config::default() });
    stand.submit(device, plain_in(), (1, 0x1_8000)).unwrap();
    let trbs = stand.trbs(device, plain_in());
    let Some((_, TransferTrb::EventData { token, .. })) = trbs.last() else { panic!("event data") };
    stand.hw.post(EventTrb::Transfer {
        pointer: *token,
        length: 0x1_0010,
        code: CompletionCode::ShortPacket,
        event_data: true,
        endpoint: Some(IN),
        slot: device.slot(),
    });
    stand.interrupt();
    assert_eq!(stand.completions(), [(1, Short, 0x1_0010)]);
}

#[test]
fn a_control_transfer_without_data_ends_with_its_status_stage() {
    let (mut stand, device) = Stand::with_device(Config::default());
    let control = Pipe::plain(bus::EndpointAddress::at::<0>(bus::Direction::Out));
    for id in 1..=3 {
        // SET_CONFIGURATION 1.
        stand.control(device, id, [0x00, 0x09, 1, 0, 0, 0, 0, 0]).unwrap();
        let trbs = stand.trbs(device, control);
        let [.., (_, TransferTrb::SetupStage { .. }), (status, TransferTrb::StatusStage { .. })] = trbs[..]
        else {
            panic!("{trbs:?}")
        };
        stand.event(device, control.endpoint, (status, 1, 0));
        assert_eq!(stand.completions(), [(id, Done, 0)]);
    }
    assert_eq!(stand.xhci.counters(), crate::Counters::default());
}

#[test]
fn a_small_write_is_immediate() {
    let (mut stand, device) = Stand::with_device(Config::default());
    crate::DmaMemory::write_bytes(&mut stand.hw, 0x100_0000, &[1, 2, 3]);
    stand.submit(device, Pipe::plain(bulk_out()), (1, 3)).unwrap();
    let [(_, TransferTrb::Normal { buffer, length, flags, .. })] =
        stand.trbs(device, Pipe::plain(bulk_out()))[..]
    else {
        panic!("one TRB")
    };
    assert_eq!((buffer, length), (0x03_0201, 3));
    assert!(flags.has(TrbFlags::IMMEDIATE_DATA));
}

#[test]
fn a_transfer_of_nothing_is_one_empty_trb() {
    let (mut stand, device) = Stand::with_device(Config::default());
    stand.submit(device, Pipe::plain(bulk_out()), (1, 0)).unwrap();
    let trbs = stand.trbs(device, Pipe::plain(bulk_out()));
    assert_eq!(trbs.iter().map(|(_, trb)| trb.length()).collect::<Vec<_>>(), [0]);
    stand.event(device, bulk_out(), (trbs[0].0, 1, 0));
    assert_eq!(stand.completions(), [(1, Done, 0)]);
}

#[test]
fn a_full_ring_is_typed_and_a_completion_makes_room() {
    let (mut stand, device) = Stand::with_device(Config { ring_trbs: 4, ..Config::default() });
    stand.submit(device, plain_in(), (1, 512)).unwrap();
    stand.submit(device, plain_in(), (2, 512)).unwrap();
    assert_eq!(stand.submit(device, plain_in(), (3, 512)), Err(Refusal::Full));
    let first = stand.trbs(device, plain_in())[0].0;
    stand.event(device, bulk_in(), (first, 1, 0));
    assert_eq!(stand.submit(device, plain_in(), (3, 512)), Ok(()));
}

#[test]
fn what_is_not_allowed_is_refused() {
    let (mut stand, device) = Stand::with_device(Config::default());
    assert_eq!(
        stand.submit(device, plain_in(), (1, limit::TRANSFER_BYTES_MAX + 1)),
        Err(Refusal::NotAllowed)
    );
    assert_eq!(stand.submit(device, stream(1), (1, 512)), Err(Refusal::NoSuchPipe));
    assert_eq!(stand.control(device, 1, [0, 5, 1, 0, 0, 0, 0, 0]), Err(Refusal::NotAllowed));
    stand.submit(device, plain_in(), (1, 512)).unwrap();
    let drop = Request::Configure { device, add: Vec::new(), drop: vec![bulk_in()] };
    assert_eq!(stand.ask(drop), Err(Refusal::Busy));
}

#[test]
fn a_control_transfer_has_three_stages_and_ends_with_the_status() {
    let (mut stand, device) = Stand::with_device(Config::default());
    stand.control(device, 1, [0x80, 6, 0, 1, 0, 0, 18, 0]).unwrap();
    let trbs = stand.trbs(device, Pipe::plain(bus::EndpointAddress::at::<0>(bus::Direction::In)));
    let types: Vec<_> = trbs.iter().map(|(_, trb)| trb.trb_type()).collect();
    assert_eq!(types, [TrbType::SetupStage, TrbType::DataStage, TrbType::StatusStage]);
    let control = bus::EndpointAddress::at::<0>(bus::Direction::In);
    stand.event(device, control, (trbs[1].0, 13, 10));
    assert_eq!(stand.completions(), []);
    stand.event(device, control, (trbs[2].0, 1, 0));
    assert_eq!(stand.completions(), [(1, Short, 8)]);
}

#[test]
fn a_stall_resets_the_endpoint_and_the_next_transfer_goes_on() {
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
    assert_eq!(stand.hw.rung, [(device.slot(), 3)]);
}

#[test]
fn a_transaction_error_is_tried_again_softly_and_then_told() {
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
fn the_one_transfer_taken_back_moves_the_ring_past_it() {
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
fn a_transfer_taken_back_behind_another_becomes_nothing() {
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
fn a_transfer_taken_back_while_the_ring_is_moved_is_seen_to_before_it_runs() {
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
fn streams_have_rings_of_their_own_and_doorbells_with_ids() {
    let (mut stand, device) = with_streams(Config::default());
    let context = stand.hw.endpoint(device.slot(), IN);
    assert_eq!((context.primary_streams, context.linear_streams), (5, true));
    stand.submit(device, stream(1), (1, 512)).unwrap();
    stand.submit(device, stream(16), (2, 512)).unwrap();
    assert_eq!(stand.hw.rung, [(device.slot(), 0x0001_0003), (device.slot(), 0x0010_0003)]);
    assert_eq!(stand.submit(device, stream(17), (3, 512)), Err(Refusal::NoSuchPipe));
    assert_eq!(stand.submit(device, plain_in(), (3, 512)), Err(Refusal::NoSuchPipe));
    let second = stand.trbs(device, stream(16))[0].0;
    stand.event(device, bulk_in(), (second, 13, 500));
    assert_eq!(stand.completions(), [(2, Short, 12)]);
}

#[test]
fn one_stream_taken_back_moves_its_ring_and_rings_the_others() {
    let (mut stand, device) = with_streams(Config::default());
    stand.submit(device, stream(3), (1, 512)).unwrap();
    stand.submit(device, stream(5), (2, 512)).unwrap();
    stand.hw.rung.clear();
    stand.cancel(device, stream(3), 1);
    stand.interrupt();
    assert_eq!(stand.completions(), [(1, Cancelled, 0)]);
    let moved = |command: &CommandTrb| matches!(command, CommandTrb::SetTrDequeuePointer { stream: Some(s), .. } if s.id == 3);
    assert_eq!(stand.hw.commands.iter().filter(|c| moved(c)).count(), 1);
    assert_eq!(stand.hw.rung, [(device.slot(), 0x0005_0003)]);
}

#[test]
fn streams_come_and_go_and_leave_no_memory_behind() {
    let (mut stand, device) = Stand::with_device(Config::default());
    let before = stand.hw.memory.pieces_out();
    let endpoints = vec![bulk_in(), bulk_out()];
    let allocate = Request::AllocateStreams { device, endpoints: endpoints.clone(), wanted: 8 };
    assert_eq!(stand.ask(allocate.clone()), Ok(Answer::Streams(8)));
    assert_eq!(stand.ask(allocate), Err(Refusal::NoStreams));
    assert_eq!(stand.ask(Request::FreeStreams(device, endpoints)), Ok(Answer::Done));
    assert_eq!(stand.hw.memory.pieces_out(), before);
}

#[test]
fn streams_that_cannot_be_had_leave_no_memory_behind() {
    let (mut stand, device) = Stand::with_device(Config::default());
    let before = stand.hw.memory.pieces_out();
    let request = Request::AllocateStreams { device, endpoints: vec![bulk_in(), bulk_out()], wanted: 8 };
    stand.submit(device, plain_in(), (1, 512)).unwrap();
    assert_eq!(stand.ask(request.clone()), Err(Refusal::Busy));
    assert_eq!(stand.hw.memory.pieces_out(), before);
    stand.cancel(device, plain_in(), 1);
    stand.interrupt();
    for pieces in 0..18 {
        stand.hw.memory.limit(pieces);
        assert_eq!(stand.ask(request.clone()), Ok(Answer::NoMemory));
        assert_eq!(stand.hw.memory.pieces_out(), before);
    }
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
fn broken_streams_are_not_allocated() {
    let quirks = Quirks { broken_streams: true, ..Quirks::default() };
    let (mut stand, device) = Stand::with_device(Config { quirks, ..Config::default() });
    let request = Request::AllocateStreams { device, endpoints: vec![bulk_in()], wanted: 8 };
    assert_eq!(stand.ask(request), Err(Refusal::NoStreams));
}

#[test]
fn a_toggle_begins_anew_by_drop_and_add() {
    let (mut stand, device) = Stand::with_device(Config::default());
    assert_eq!(stand.ask(Request::ResetToggle(device, bulk_in())), Ok(Answer::Done));
    assert_eq!(stand.hw.commands.len(), 1);
    assert_eq!(stand.submit(device, plain_in(), (1, 512)), Ok(()));
}

#[test]
fn a_device_that_was_reset_gets_its_address_and_loses_its_endpoints() {
    let (mut stand, device) = Stand::with_device(Config::default());
    stand.submit(device, plain_in(), (1, 512)).unwrap();
    stand.xhci.request(&mut stand.hw, stand.now, (RequestId(1), Request::Readdress(device))).unwrap();
    stand.interrupt();
    let outputs = stand.outputs();
    assert!(outputs.contains(&Output::Answered(RequestId(1), Answer::Done)));
    assert!(matches!(outputs[0], Output::Completed(_, done) if done.status == Cancelled));
    assert_eq!(stand.submit(device, plain_in(), (2, 512)), Err(Refusal::NoSuchPipe));
    assert_eq!(stand.control(device, 3, [0x80, 6, 0, 1, 0, 0, 18, 0]), Ok(()));
}

#[test]
fn a_device_that_was_exchanged_before_anybody_looked_is_gone() {
    let (mut stand, device) = Stand::with_device(Config::default());
    stand.submit(device, plain_in(), (1, 512)).unwrap();
    // Connected, and was not meanwhile.
    stand.hw.plug(3, true);
    stand.interrupt();
    let outputs = stand.outputs();
    assert!(matches!(outputs[0], Output::Completed(_, done) if done.status == Disconnected), "{outputs:?}");
    assert!(outputs.contains(&Output::Gone(device)));
    assert_eq!(stand.submit(device, plain_in(), (2, 512)), Err(Refusal::Gone));
}

#[test]
fn who_came_before_the_reset_of_a_port_is_who_is_attached_after_it() {
    let mut stand = Stand::new(Config::default());
    // What the event of this says was taken note of by the reset.
    stand.hw.plug(3, true);
    stand.xhci.request(&mut stand.hw, stand.now, (RequestId(1), Request::ResetPort { port: 3 })).unwrap();
    let device = stand.attach_only();
    stand.interrupt();
    assert!(!stand.outputs().contains(&Output::Gone(device)));
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
fn a_command_without_an_answer_is_aborted_and_then_the_controller_given_up() {
    let (mut stand, device) = Stand::with_device(Config::default());
    stand.hw.is_mute = true;
    stand.submit(device, plain_in(), (1, 512)).unwrap();
    stand.cancel(device, plain_in(), 1);
    stand.pass(limit::COMMAND_PATIENCE);
    assert_eq!(stand.hw.registers[&0x38] & 4, 4);
    assert_eq!(stand.xhci.poll_timeout().map(|d| d.reason), Some(DeadlineReason::CommandAbort));
    stand.pass(limit::ABORT_PATIENCE);
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
    stand.pass(limit::COMMAND_PATIENCE);
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
    stand.pass(limit::COMMAND_PATIENCE);
    let stopped = CompletionCode::CommandRingStopped;
    stand.hw.post(EventTrb::CommandCompletion { pointer: 0, parameter: 0, code: stopped, slot: 0 });
    stand.interrupt();
    assert_eq!(stand.outputs(), []);
    stand.pass(limit::COMMAND_PATIENCE);
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
