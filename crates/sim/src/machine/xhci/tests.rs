//! From power-on to commands over driver and controller: one drive.

mod buses;
mod costs;
mod enclosure;
mod polling;
mod several;
mod sleep;
mod traces;

use super::*;
use crate::link::usb2;
use crate::machine::Simulation;
use crate::machine::fixture::{self, BLOCK, BLOCKS, command, pattern, room};
use crate::xhc::Part;
use initiator::Refusal;
use units::{BlockSize, Duration};
use wire::usb::SetupPacket;
use wire::xhci::RouteString;
use xhci_controller::{Misbehaviour, Model};

const PARTS: [Part; 3] = [Part::CHIPSET, Part::CARD, Part::EARLY_CARD];

/// The drive of a test.
fn drive(drive: Drive) -> Drive {
    let drive = drive.blocks(BLOCKS, BlockSize::B4096).latency(Duration::from_us(20));
    Drive { at_once: 4, ..drive }
}

fn powered(part: Part, of: Drive) -> Result<XhciMachine, PowerOnError> {
    Setup::new(Host::with(part)).with(1, drive(of)).power_on()
}

fn on_bus(part: Part, rate: usb2::Rate, of: Drive) -> XhciMachine {
    Setup::new(Host::with(part)).at(rate).with(1, drive(of)).power_on().unwrap()
}

fn on_uas(part: Part) -> XhciMachine {
    powered(part, Drive::uas()).unwrap()
}

fn on_bot(part: Part) -> XhciMachine {
    powered(part, Drive::bot()).unwrap()
}

fn write_and_read(mut machine: XhciMachine) -> u64 {
    let digest = fixture::write_and_read(&mut machine, 0);
    assert_no_errors(&machine);
    digest
}

fn assert_no_errors(machine: &XhciMachine) {
    assert_eq!(machine.driver().counters(), ::xhci_driver::Counters::default());
    assert_eq!(machine.controller().counters().stale_progress, 0);
    assert_eq!(machine.system.memory.faults(), 0);
}

#[test]
fn reads_return_written_data_with_every_controller() {
    for part in PARTS {
        let bot = || on_bot(part);
        assert_eq!(write_and_read(bot()), write_and_read(bot()), "equal machines have equal digests");
    }
    for part in [Part::CHIPSET, Part::CARD] {
        let uas = || on_uas(part);
        assert_eq!(write_and_read(uas()), write_and_read(uas()), "equal machines have equal digests");
    }
}

/// Driver configurations, and controllers for them.
fn ways() -> Vec<(&'static str, Host)> {
    let of = |config| Host { config, ..Host::chipset() };
    let usual = DriverConfig::default();
    // Two TRBs and a link: each TD goes past a link, and rings come round all the time.
    let tiny = DriverConfig {
        ring_trbs: 3,
        ring_segments: 8,
        stream_ring_trbs: 3,
        stream_ring_segments: 8,
        ..usual
    };
    let chipset = Part::CHIPSET;
    let arrays = Model { primary_streams_exponent: 1, has_secondary_streams: true, ..chipset.model };
    let arrays = Part { model: arrays, ..chipset };
    let early = Misbehaviour { answers_stop_early: true, ..Misbehaviour::NONE };
    let quirks = ::xhci_driver::Quirks { stop_answered_early: true, ..::xhci_driver::Quirks::default() };
    let early = Part { model: Model { misbehaviour: early, ..chipset.model }, ..chipset };
    vec![
        ("event data", of(DriverConfig { event_data: true, ..usual })),
        ("event data on tiny rings", of(DriverConfig { event_data: true, ..tiny })),
        ("tiny rings", of(tiny)),
        ("no moderation", of(DriverConfig { moderation_250ns: 0, ..usual })),
        ("secondary stream arrays", Host::with(arrays)),
        ("stops answered early", Host { config: DriverConfig { quirks, ..usual }, ..Host::with(early) }),
    ]
}

#[test]
fn reads_return_written_data_with_every_driver_configuration() {
    for (what, host) in ways() {
        for of in [Drive::bot(), Drive::uas()] {
            let machine = Setup::new(host).with(1, drive(of)).power_on();
            write_and_read(machine.unwrap_or_else(|error| panic!("{what}: {error}")));
        }
    }
}

#[test]
fn reads_return_written_data_on_usb_2() {
    for rate in [usb2::Rate::High, usb2::Rate::Full] {
        for of in [Drive::bot(), Drive::uas()] {
            let machine = || on_bus(Part::EARLY_CARD, rate, of);
            assert_eq!(
                write_and_read(machine()),
                write_and_read(machine()),
                "equal machines have equal digests"
            );
        }
    }
}

#[test]
fn an_event_scheduled_in_the_past_is_detected() {
    let mut machine = on_uas(Part::CHIPSET);
    fixture::first(&mut machine, 0);
    assert_eq!(machine.audit(), Ok(()));
    let now = machine.engine.now();
    machine.at(Instant::from_ps(now.as_ps() - 1), MachineEvent::Deadline);
    let violation = machine.audit().unwrap_err();
    assert_eq!((violation.invariant, violation.at), (crate::check::Invariant::Past, now));
}

#[test]
fn a_trace_includes_doorbells_and_trbs() {
    #[derive(Clone, Default)]
    struct Shared(std::rc::Rc<std::cell::RefCell<Vec<String>>>);
    impl crate::engine::Trace for Shared {
        fn record(&mut self, entry: crate::engine::TraceEntry<'_>) {
            self.0.borrow_mut().record(entry);
        }
    }
    let mut machine = on_bot(Part::CHIPSET);
    fixture::first(&mut machine, 0);
    let shared = Shared::default();
    machine.trace_to(Box::new(shared.clone()));
    fixture::ask(&mut machine, 0, &command(0, false, 0, 1), room(1));
    let lines = shared.0.borrow();
    let at = |what: &str| lines.iter().position(|line| line.contains(what));
    let order = ["doorbell of slot 1: ", "TRB at ", "DATA 2 OUT", "event TRB: "].map(at);
    assert!(order.iter().all(Option::is_some) && order.is_sorted(), "{order:?}\n{}", lines.join("\n"));
    // Three phases of BOT: three doorbells, three TRBs, three events.
    for what in ["doorbell of", ": TRB at", "event TRB"] {
        assert_eq!(
            lines.iter().filter(|line| line.contains(what)).count(),
            3,
            "{what}\n{}",
            lines.join("\n")
        );
    }
}

#[test]
fn uas_on_usb_2_has_no_streams() {
    let machine = on_bus(Part::CHIPSET, usb2::Rate::High, Drive::uas());
    let Some(AnyTransport::Uas(uas)) = machine.transport(0) else { panic!("UAS") };
    assert_eq!(uas.depth(), 30, "depth of Linux without streams");
    let port = machine.root_ports[0].port;
    assert!(!machine.controller().model().is_usb3(port), "ports of USB 2.0 are the first ones");
}

#[test]
fn a_drive_of_full_speed_has_no_place_on_a_link_of_superspeed() {
    let behind_hub = Setup::new(Host::chipset()).with(2, Hub::new(4).with(1, Drive::bot().full_speed()));
    let refused = behind_hub.power_on().err();
    let spot = PortPath { root: 2, route: RouteString::from_bits(1) };
    assert_eq!(refused, Some(PowerOnError::Setup(SetupError::RateOfDrive(spot))));
}

#[test]
fn a_drive_on_a_bus_of_usb_2_comes_back_when_it_is_plugged_in_again() {
    let mut machine = on_bus(Part::CARD, usb2::Rate::High, Drive::uas());
    let spot = PortPath { root: 1, route: RouteString::ROOT };
    machine.unplug_at(spot).unwrap();
    machine.plug_again(spot).unwrap();
    fixture::first(&mut machine, 0);
    assert_works(&mut machine, 0);
}

#[test]
fn a_part_without_streams_has_no_uas() {
    assert_eq!(powered(Part::EARLY_CARD, Drive::uas()).err(), Some(PowerOnError::NotOffered));
}

/// Completes all commands in flight; returns their slots in order.
fn drain(machine: &mut XhciMachine, commands: usize) -> Vec<u16> {
    let mut ended: Vec<_> =
        (0..commands).map(|_| machine.run().unwrap().expect("each command ends").id.slot).collect();
    ended.sort_unstable();
    ended
}

fn assert_works(machine: &mut XhciMachine, drive: usize) {
    fixture::ask(machine, drive, &command(1, true, 100, 3), pattern(9, 3));
    assert!(fixture::ask(machine, drive, &command(2, false, 100, 3), room(3)) == pattern(9, 3));
}

/// Aborts a command after so many events; each completes once, and the next ones work.
fn abort_after(mut machine: XhciMachine, depth: u16, events: usize) {
    fixture::first(&mut machine, 0);
    for slot in 0..depth {
        let writes = slot.is_multiple_of(2);
        machine.submit(0, &command(slot, writes, u32::from(slot) * 8, 4), pattern(slot.into(), 4)).unwrap();
    }
    for _ in 0..events {
        machine.step();
    }
    machine.abort(0, CommandId { slot: depth / 2, generation: 0 });
    assert_eq!(drain(&mut machine, usize::from(depth)), (0..depth).collect::<Vec<_>>(), "{events}");
    assert_works(&mut machine, 0);
    assert_eq!(machine.system.memory.faults(), 0);
}

#[test]
fn each_command_completes_once_after_an_abort_at_any_event() {
    for events in (0..400).step_by(23) {
        abort_after(on_uas(Part::CHIPSET), 8, events);
        abort_after(on_bot(Part::EARLY_CARD), 1, events);
        abort_after(on_bus(Part::CHIPSET, usb2::Rate::High, Drive::uas()), 8, events);
        abort_after(on_bus(Part::CARD, usb2::Rate::High, Drive::bot()), 1, events);
    }
}

/// Executes the next event, and checks that the drive has been notified of its transfers.
fn step_and_check_notified(machine: &mut XhciMachine) {
    assert!(machine.step(), "it ends before that");
    let device = machine.devices[0].end.device;
    // A USB 2.0 bus may flag progress without any.
    assert!(machine.root_ports[0].bus().is_some() || !machine.root_ports[0].ports(device).1.has_pending());
}

#[test]
fn the_drive_queues_nothing_after_an_abort_at_any_event() {
    let slow = || Drive { latency: Duration::from_ms(1), ..drive(Drive::uas()) };
    let worlds: [&dyn Fn() -> Setup; 3] = [
        &|| Setup::new(Host::chipset()).with(1, slow()),
        &|| Setup::new(Host::chipset()).with(1, Hub::new(4).with(1, slow())),
        &|| Setup::new(Host::chipset()).at(usb2::Rate::High).with(1, slow()),
    ];
    for (setup, writes, events) in
        worlds.iter().flat_map(|setup| (0..160).map(move |events| (setup, events % 2 == 0, events)))
    {
        let mut machine = setup().power_on().unwrap();
        fixture::first(&mut machine, 0);
        let command = command(0, writes, 0, 4);
        machine.submit(0, &command, pattern(1, 4)).unwrap();
        for _ in 0..events {
            machine.step();
        }
        machine.abort(0, command.id);
        while machine.finished.is_empty() {
            step_and_check_notified(&mut machine);
        }
        let rest = machine.now() + crate::machine::QUIESCE_TIME;
        while machine.engine.next_at().is_some_and(|at| at <= rest) {
            step_and_check_notified(&mut machine);
        }
        machine.engine.pass(rest);
        assert_eq!(machine.finished.len(), 1);
        assert_eq!(machine.audit_rest(0, true), Ok(()), "{command:?} after {events} events");
    }
}

#[test]
fn an_endpoint_that_halts_is_reset_and_works_again() {
    for events in (0..300).step_by(37) {
        let mut machine = on_bot(Part::CARD);
        fixture::first(&mut machine, 0);
        machine.submit(0, &command(0, false, 0, 4), room(4)).unwrap();
        for _ in 0..events {
            machine.step();
        }
        // SET FEATURE (ENDPOINT_HALT) of bulk IN 1, as by the device itself.
        let setup = SetupPacket::from([0x02, 3, 0, 0, 0x81, 0, 0, 0]);
        machine.drives[0].drive.device.handle_control(setup, &[]);
        machine.system.ready.drives.add(0);
        machine.settle();
        assert_eq!(drain(&mut machine, 1), [0]);
        assert_works(&mut machine, 0);
    }
}

#[test]
fn detaching_completes_every_command() {
    for events in [0, 10, 100, 300] {
        let mut machine = on_uas(Part::CHIPSET);
        fixture::first(&mut machine, 0);
        for slot in 0..8 {
            machine.submit(0, &command(slot, false, u32::from(slot), 1), vec![0; BLOCK as usize]).unwrap();
        }
        for _ in 0..events {
            machine.step();
        }
        machine.unplug(0);
        assert_eq!(drain(&mut machine, 8), (0..8).collect::<Vec<_>>(), "{events}");
        // The transfers completed before the device was reported as gone.
        while machine.devices[0].device.is_some() && machine.step() {}
        assert_eq!(machine.submit(0, &command(1, false, 0, 1), Vec::new()), Err(Refusal::Gone));
    }
}
