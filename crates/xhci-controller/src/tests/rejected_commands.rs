//! Rejected input: contexts, registers and TRBs as no driver may write them. A driver's
//! own are spoilt before the controller reads them.

use crate::GuestMemory;
use crate::Model;
use crate::fixture::TestMemory;
use crate::fixture::{Fixture, IN, OUT};
use bus::{Pipe, TransferStatus};
use std::vec::Vec;
use units::Duration;
use wire::DecodeError;
use wire::usb::{Direction, EndpointDescriptor, SuperSpeedCompanion};
use wire::xhci::{
    CommandTrb, CompletionCode as Code, EndpointContext, EndpointId, EndpointType, EventRingSegment,
    InputControlContext, RouteString, SlotContext, TRB_BYTES, TransferTrb, UsbCommand, UsbStatus, offset,
};
use xhci_driver::{Answer, Config, DeviceId, EndpointPlan, HubShape, Location, Request, Translator};

/// Root port 1 speaks USB 2.0.
const PORT_HIGH: u8 = 1;
const OPERATIONAL: u32 = 0x20;
const INTERRUPTER: u32 = 0x1020;

/// An invalid request: its name, how it is spoilt, and the controller's completion code.
type Row<T> = (&'static str, fn(&mut T), Code);

fn plan(address: bus::EndpointAddress) -> EndpointPlan {
    EndpointPlan {
        descriptor: EndpointDescriptor::bulk(address, 1024),
        companion: Some(SuperSpeedCompanion::bulk(15, 4)),
    }
}

/// How something in memory is decoded, and encoded.
type Codec<T, const N: usize> = (fn(&[u8]) -> Result<T, DecodeError>, fn(&T) -> [u8; N]);

fn change<const N: usize, T>(
    memory: &mut TestMemory,
    at: u64,
    (decode, encode): Codec<T, N>,
    spoil: impl FnOnce(&mut T),
) {
    let mut value = decode(&memory.read::<N>(at).unwrap()).unwrap();
    spoil(&mut value);
    memory.write(at, &encode(&value)).unwrap();
}

/// The input context of the next command that has one, which the controller has not read.
fn input(fixture: &mut Fixture) -> u64 {
    const MOMENT: Duration = Duration::from_ns(50);
    for _ in 0..1000 {
        let trb = fixture.memory.read::<TRB_BYTES>(fixture.controller.commands.next()).unwrap();
        match CommandTrb::decode(&trb) {
            Ok((
                CommandTrb::AddressDevice { input, .. }
                | CommandTrb::ConfigureEndpoint { input, .. }
                | CommandTrb::EvaluateContext { input, .. },
                _,
            )) => return input,
            // A slot is enabled before.
            _ => fixture.run_for(MOMENT),
        }
    }
    panic!("no command with an input context")
}

/// Asks for something, of whose input context what lies so far behind its beginning is spoilt.
fn spoilt<T>(
    fixture: &mut Fixture,
    request: Request,
    (offset, codec): (u64, Codec<T, 32>),
    spoil: impl FnOnce(&mut T),
) -> Answer {
    fixture.begin(request).unwrap();
    let at = input(fixture) + offset;
    change(&mut fixture.memory, at, codec, spoil);
    fixture.answer_of_request()
}

/// The same of the slot context.
fn with_slot(fixture: &mut Fixture, request: Request, spoil: impl FnOnce(&mut SlotContext)) -> Answer {
    let offset = Model::CHIPSET.contexts.in_input(None);
    spoilt(fixture, request, (offset, (SlotContext::decode, SlotContext::encode)), spoil)
}

/// The same of the context of an endpoint.
fn with_endpoint(
    fixture: &mut Fixture,
    request: Request,
    id: EndpointId,
    spoil: impl FnOnce(&mut EndpointContext),
) -> Answer {
    let offset = Model::CHIPSET.contexts.in_input(Some(id));
    spoilt(fixture, request, (offset, (EndpointContext::decode, EndpointContext::encode)), spoil)
}

/// The same of the flags that say which contexts mean something.
fn with_flags(
    fixture: &mut Fixture,
    request: Request,
    spoil: impl FnOnce(&mut InputControlContext),
) -> Answer {
    spoilt(fixture, request, (0, (InputControlContext::decode, InputControlContext::encode)), spoil)
}

/// A controller with a device that has no address yet.
fn connected() -> Fixture {
    let mut fixture = Fixture::running(Model::CHIPSET, Config::default());
    fixture.controller.plug(fixture.now, Fixture::location().root_port, 4);
    fixture.run();
    fixture.reported();
    fixture
}

#[test]
fn a_slot_that_cannot_be_has_no_address() {
    let rows: [Row<SlotContext>; 7] = [
        ("the speed of another port", |slot| slot.speed_id = 3, Code::ParameterError),
        ("no speed", |slot| slot.speed_id = 0, Code::ParameterError),
        ("no endpoint 0", |slot| slot.context_entries = 0, Code::ParameterError),
        ("an interrupter that is not there", |slot| slot.interrupter = 1, Code::ParameterError),
        ("no root port", |slot| slot.root_port = 0, Code::ParameterError),
        ("a root port that is not there", |slot| slot.root_port = 99, Code::ParameterError),
        ("a translator where nothing is split", |slot| slot.translator_slot = 1, Code::ParameterError),
    ];
    for (what, spoil, code) in rows {
        let answer = with_slot(&mut connected(), Request::Attach(Fixture::location()), spoil);
        assert_eq!(answer, Answer::Failed(code), "{what}");
    }
    let answer = with_slot(&mut connected(), Request::Attach(Fixture::location()), |_| ());
    assert!(matches!(answer, Answer::Attached(_)));
}

#[test]
fn an_endpoint_0_that_cannot_be_has_no_address() {
    let rows: [Row<EndpointContext>; 5] = [
        ("packets of high speed", |endpoint| endpoint.max_packet = 64, Code::ParameterError),
        (
            "another kind",
            |endpoint| endpoint.endpoint_type = EndpointType::Bulk(Direction::Out),
            Code::ParameterError,
        ),
        ("no ring", |endpoint| endpoint.dequeue = 0, Code::ParameterError),
        ("TRBs of no length", |endpoint| endpoint.average_trb_length = 0, Code::ParameterError),
        ("streams", |endpoint| endpoint.primary_streams = 1, Code::ParameterError),
    ];
    for (what, spoil, code) in rows {
        let request = Request::Attach(Fixture::location());
        let answer = with_endpoint(&mut connected(), request, EndpointId::CONTROL, spoil);
        assert_eq!(answer, Answer::Failed(code), "{what}");
    }
}

#[test]
fn an_endpoint_that_cannot_be_does_not_come() {
    let rows: [Row<EndpointContext>; 6] = [
        ("packets of high speed", |endpoint| endpoint.max_packet = 512, Code::ParameterError),
        ("a burst of 17", |endpoint| endpoint.max_burst = 16, Code::ParameterError),
        ("several bursts", |endpoint| endpoint.mult = 1, Code::ParameterError),
        (
            "the other direction",
            |endpoint| endpoint.endpoint_type = EndpointType::Bulk(Direction::Out),
            Code::ParameterError,
        ),
        ("no ring", |endpoint| endpoint.dequeue = 0, Code::ParameterError),
        ("more streams than there are", |endpoint| endpoint.primary_streams = 15, Code::ParameterError),
    ];
    for (what, spoil, code) in rows {
        let mut fixture = Fixture::running(Model::CHIPSET, Config::default());
        let device = fixture.attach();
        let request = Request::Configure { device, add: vec![plan(IN)], drop: Vec::new() };
        let answer = with_endpoint(&mut fixture, request, EndpointId::of(IN), spoil);
        assert_eq!((answer, fixture.installed.len()), (Answer::Failed(code), 0), "{what}");
    }
}

/// Linux leaves Average TRB Length of bulk endpoints at 0.
#[test]
fn an_endpoint_without_an_average_length_comes() {
    let mut fixture = Fixture::running(Model::CHIPSET, Config::default());
    let device = fixture.attach();
    let request = Request::Configure { device, add: vec![plan(IN)], drop: Vec::new() };
    let spoil = |endpoint: &mut EndpointContext| endpoint.average_trb_length = 0;
    let answer = with_endpoint(&mut fixture, request, EndpointId::of(IN), spoil);
    assert_eq!((answer, fixture.installed.len()), (Answer::Done, 1));
}

#[test]
fn a_slot_counts_all_endpoints_that_come_and_stay() {
    let mut fixture = Fixture::running(Model::CHIPSET, Config::default());
    let device = fixture.attach();
    let request = |add, drop| Request::Configure { device, add, drop };
    // Bulk IN 1 is endpoint context 3, bulk OUT 2 is 4.
    let answer =
        with_slot(&mut fixture, request(vec![plan(IN)], Vec::new()), |slot| slot.context_entries = 2);
    assert_eq!(answer, Answer::Failed(Code::ParameterError), "one that comes");
    assert_eq!(fixture.ask(request(vec![plan(IN), plan(OUT)], Vec::new())), Ok(Answer::Done));
    let answer = with_slot(&mut fixture, request(Vec::new(), vec![IN]), |slot| slot.context_entries = 3);
    assert_eq!(answer, Answer::Failed(Code::ParameterError), "one that stays");
}

#[test]
fn only_the_slot_and_endpoint_0_are_evaluated() {
    let (mut fixture, device) = Fixture::with_device(Model::CHIPSET, Config::default());
    let flags: [Row<InputControlContext>; 2] = [
        ("another endpoint", |flags| *flags = flags.with(EndpointId::of(IN)), Code::ParameterError),
        ("one that goes", |flags| *flags = flags.dropping(EndpointId::of(IN)), Code::ParameterError),
    ];
    for (what, spoil, code) in flags {
        let answer = with_flags(&mut fixture, Request::SetExitLatency(device, 100), spoil);
        assert_eq!(answer, Answer::Failed(code), "{what}");
    }
    let answer = with_slot(&mut fixture, Request::SetExitLatency(device, 100), |slot| slot.interrupter = 1);
    assert_eq!(answer, Answer::Failed(Code::ParameterError));
    let request = Request::SetControlPacket(device, 512);
    let answer =
        with_endpoint(&mut fixture, request, EndpointId::CONTROL, |endpoint| endpoint.max_packet = 64);
    assert_eq!(answer, Answer::Failed(Code::ParameterError));
    assert_eq!(fixture.ask(Request::SetExitLatency(device, 100)), Ok(Answer::Done));
}

/// A controller with a high-speed hub, and where a drive of full speed is at port 2 of it.
fn with_hub() -> (Fixture, DeviceId, Location) {
    let mut fixture = Fixture::running(Model::CHIPSET, Config::default());
    fixture.controller.plug(fixture.now, PORT_HIGH, 3);
    fixture.run();
    let port = fixture.ask(Request::ResetPort { port: PORT_HIGH });
    assert!(matches!(port, Ok(Answer::Port(_))), "{port:?}");
    let (route, translator) = (RouteString::ROOT, None);
    let hub = Location { root_port: PORT_HIGH, route, speed_id: 3, translator, control_packet: 64 };
    let Ok(Answer::Attached(hub)) = fixture.ask(Request::Attach(hub)) else { panic!("a hub") };
    let translator = Some(Translator { hub, port: 2, multiple: false });
    let route = RouteString::ROOT.via(2).unwrap();
    (fixture, hub, Location { root_port: PORT_HIGH, route, speed_id: 1, translator, control_packet: 64 })
}

#[test]
fn split_transactions_go_to_a_hub_that_translates_for_the_device() {
    const SHAPE: HubShape = HubShape { ports: 4, think_time: 0, multiple_translators: false };
    let rows: [Row<SlotContext>; 5] = [
        ("no translator", |slot| slot.translator_slot = 0, Code::UsbTransactionError),
        ("another port of the hub", |slot| slot.translator_port = 3, Code::UsbTransactionError),
        ("a slot that is not there", |slot| slot.translator_slot = 200, Code::ParameterError),
        ("the device's own slot", |slot| slot.translator_slot = 2, Code::ParameterError),
        ("a translator of a device of high speed", |slot| slot.speed_id = 3, Code::ParameterError),
    ];
    for (what, spoil, code) in rows {
        let (mut fixture, hub, drive) = with_hub();
        assert_eq!(fixture.ask(Request::DescribeHub(hub, SHAPE)), Ok(Answer::Done));
        assert_eq!(with_slot(&mut fixture, Request::Attach(drive), spoil), Answer::Failed(code), "{what}");
        assert!(matches!(fixture.ask(Request::Attach(drive)), Ok(Answer::Attached(_))), "{what}");
    }
    let (mut fixture, _, drive) = with_hub();
    let answer = fixture.ask(Request::Attach(drive));
    assert_eq!(
        answer,
        Ok(Answer::Failed(Code::ParameterError)),
        "the slot context does not say that it is a hub"
    );
}

/// Reads the status register.
fn status(fixture: &mut Fixture) -> UsbStatus {
    fixture.controller.read_register(fixture.now, OPERATIONAL + offset::USB_STATUS).into()
}

fn write(fixture: &mut Fixture, at: u32, value: u32) {
    fixture.controller.write_register(fixture.now, &mut fixture.memory, at, value);
}

#[test]
fn a_controller_that_wants_memory_for_itself_does_not_run_without() {
    for (what, entry, runs) in
        [("no array", 0_u64, false), ("a page that is none", 0x123, false), ("as it was", u64::MAX, true)]
    {
        let mut fixture = Fixture::running(Model::CHIPSET, Config::default());
        let command = UsbCommand::from(fixture.controller.read_register(fixture.now, OPERATIONAL));
        write(&mut fixture, OPERATIONAL, command.without(UsbCommand::RUN).into());
        let contexts = fixture.controller.registers.contexts;
        let array = u64::from_le_bytes(fixture.memory.read(contexts).unwrap());
        match entry {
            0 => fixture.memory.write(contexts, &[0; 8]).unwrap(),
            u64::MAX => {}
            page => fixture.memory.write(array, &page.to_le_bytes()).unwrap(),
        }
        write(&mut fixture, OPERATIONAL, command.into());
        assert_eq!(!status(&mut fixture).has(UsbStatus::HOST_SYSTEM_ERROR), runs, "{what}");
    }
}

#[test]
fn an_event_ring_has_segments_of_16_to_4096_trbs() {
    for (trbs, is_right) in [(0, false), (15, false), (16, true), (4096, true), (4097, false)] {
        let mut fixture = Fixture::running(Model::CHIPSET, Config::default());
        let table = fixture.controller.read_register(fixture.now, INTERRUPTER + offset::EVENT_RING_TABLE);
        let spoil = |segment: &mut EventRingSegment| {
            segment.trbs = trbs;
        };
        let codec = (EventRingSegment::decode as fn(&[u8]) -> _, EventRingSegment::encode as fn(&_) -> _);
        change::<16, _>(&mut fixture.memory, table.into(), codec, spoil);
        write(&mut fixture, INTERRUPTER + offset::EVENT_RING_TABLE + 4, 0);
        assert_eq!(!status(&mut fixture).has(UsbStatus::HOST_SYSTEM_ERROR), is_right, "{trbs}");
    }
}

#[test]
fn a_trb_for_an_interrupter_that_is_not_there_is_a_trb_error() {
    for (wrong, status) in [(1, TransferStatus::Error), (0, TransferStatus::Done)] {
        let (mut fixture, device) = Fixture::with_device(Model::CHIPSET, Config::default());
        let at = fixture.endpoint_context(device.slot(), IN).dequeue;
        fixture.submit(device, Pipe::plain(IN), (9, 512)).unwrap();
        let (trb, cycle) = TransferTrb::decode(&fixture.memory.read::<TRB_BYTES>(at).unwrap()).unwrap();
        let TransferTrb::Normal { buffer, length, td_size, flags, .. } = trb else { panic!("{trb:?}") };
        let trb = TransferTrb::Normal { buffer, length, td_size, interrupter: wrong, flags };
        fixture.memory.write(at, &trb.encode(cycle)).unwrap();
        fixture.run();
        if wrong == 0 {
            fixture.ends(Pipe::plain(IN), 512, bus::link::End::Full);
        }
        let ended: Vec<_> = fixture.completions().into_iter().map(|(id, status, _)| (id, status)).collect();
        assert_eq!(ended, [(9, status)]);
    }
}
