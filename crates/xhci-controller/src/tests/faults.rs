//! Planned faults: each does what its name says, at its occurrence, and nothing besides.

use crate::fixture::{Fixture, IN, PORT, stream};
use crate::{ControllerFault, Model, NotAControllerFault, PLANNED_FAULTS_MAX, PlannedFault};
use bus::Pipe;
use bus::TransferStatus::{Cancelled, Done, Error};
use bus::link::End;
use std::string::ToString;
use std::vec::Vec;
use units::Duration;
use wire::xhci::{LinkState, UsbStatus};
use xhci_driver::{Config, Death, DeviceId, Output as DriverOutput, Request};

fn plan(fixture: &mut Fixture, text: &str) {
    assert!(fixture.controller.plan_fault(text.parse().expect(text)));
}

/// A device whose endpoints have no streams, and a planned fault.
fn with_fault(text: &str) -> (Fixture, DeviceId) {
    let (mut fixture, device) = Fixture::with_device(Model::CHIPSET, Config::default());
    plan(&mut fixture, text);
    (fixture, device)
}

/// Moves three transfers, one after the other. Returns the ids of those that completed.
fn completed_of_three(fixture: &mut Fixture, device: DeviceId) -> Vec<u64> {
    for id in 1..=3 {
        fixture.queue(device, Pipe::plain(IN), (id, 512));
        if fixture.queued(Pipe::plain(IN)).is_some() {
            fixture.ends(Pipe::plain(IN), 512, End::Full);
        }
    }
    let completions = fixture.completions();
    completions.into_iter().filter(|(_, status, _)| *status == Done).map(|(id, ..)| id).collect()
}

#[test]
fn faults_read_as_they_are_written() {
    for name in ControllerFault::names() {
        for schedule in ["@3", "/100", "/100:7"] {
            let text = [name, schedule].concat();
            assert_eq!(text.parse::<PlannedFault>().map(|fault| fault.to_string()), Ok(text));
        }
    }
    for text in ["", "hse", "hse@0", "lose-status@1", "early-event@1"] {
        assert_eq!(text.parse::<PlannedFault>(), Err(NotAControllerFault), "{text}");
    }
}

#[test]
fn no_more_faults_are_planned_than_the_limit() {
    let (mut fixture, device) = with_fault("lose-event@1");
    assert_eq!(completed_of_three(&mut fixture, device), [2, 3]);
    (0..PLANNED_FAULTS_MAX).for_each(|_| plan(&mut fixture, "hse/18446744073709551615"));
    assert!(
        !fixture.controller.plan_fault("hse@1".parse().unwrap()),
        "the spent one has left, and it is full"
    );
}

#[test]
fn a_lost_event_is_that_of_its_number() {
    let (mut fixture, device) = with_fault("lose-event@2");
    assert_eq!(completed_of_three(&mut fixture, device), [1, 3]);
}

#[test]
fn an_event_for_an_unknown_stream_completes_nothing() {
    let (mut fixture, device) = Fixture::with_streams(Model::CHIPSET, Config::default());
    plan(&mut fixture, "unknown-stream@1");
    fixture.queue(device, stream(IN, 2), (1, 512));
    fixture.ends(stream(IN, 2), 512, End::Full);
    assert_eq!(fixture.completions(), []);
    assert_eq!(fixture.driver.counters().stray_events, 1);
    let (mut fixture, device) = with_fault("unknown-stream@1");
    assert_eq!(completed_of_three(&mut fixture, device), [1, 2, 3], "an endpoint without streams has none");
}

#[test]
fn a_wrong_code_is_no_success() {
    let (mut fixture, device) = with_fault("wrong-code@1");
    fixture.queue(device, Pipe::plain(IN), (1, 512));
    fixture.ends(Pipe::plain(IN), 512, End::Full);
    assert_eq!(fixture.completions().first().map(|(id, status, _)| (*id, *status)), Some((1, Error)));
}

#[test]
fn an_ignored_doorbell_leaves_its_transfer_to_the_next() {
    let (mut fixture, device) = with_fault("ignore-doorbell@1");
    fixture.queue(device, Pipe::plain(IN), (1, 512));
    assert_eq!(fixture.queued(Pipe::plain(IN)), None);
    fixture.queue(device, Pipe::plain(IN), (2, 512));
    (0..2).for_each(|_| fixture.ends(Pipe::plain(IN), 512, End::Full));
    assert_eq!(fixture.completions(), [(1, Done, 512), (2, Done, 512)]);
}

#[test]
fn a_rate_affects_the_same_occurrences_each_time() {
    let run = || {
        let (mut fixture, device) = with_fault("lose-event/3:5");
        (0..10).flat_map(|_| completed_of_three(&mut fixture, device)).collect::<Vec<u64>>()
    };
    let completed = run();
    assert!((10..30).contains(&completed.len()), "{completed:?}");
    assert_eq!(completed, run());
}

#[test]
fn a_host_system_error_notifies_the_driver_and_an_internal_error_does_not() {
    for (text, death, bit) in [
        ("hse@1", Some(Death::HostSystemError), UsbStatus::HOST_SYSTEM_ERROR),
        ("hce@1", None, UsbStatus::CONTROLLER_ERROR),
    ] {
        let (mut fixture, device) = with_fault(text);
        fixture.queue(device, Pipe::plain(IN), (1, 512));
        let died: Vec<DriverOutput> =
            fixture.reported().into_iter().filter(|it| matches!(it, DriverOutput::Died(_))).collect();
        assert_eq!(died, death.map(DriverOutput::Died).into_iter().collect::<Vec<_>>(), "{text}");
        let operational = fixture.controller.read_register(fixture.now, 0) & 0xFF;
        let status = UsbStatus::from(fixture.controller.read_register(fixture.now, operational + 4));
        assert!(status.has(bit) && status.has(UsbStatus::HALTED), "{text}: {status}");
        fixture.start();
        assert!(fixture.reported().contains(&DriverOutput::Running), "a reset helps");
    }
}

/// Cancels a transfer of which half has moved. Returns what the driver makes of it, and how many events that took.
fn cancelled_in_the_middle(text: &str) -> ((u64, bus::TransferStatus, u32), u64) {
    let (mut fixture, device) = with_fault(text);
    fixture.queue(device, Pipe::plain(IN), (1, 2048));
    fixture.moves(Pipe::plain(IN), 1024, None);
    let before = fixture.controller.event_traffic().written;
    fixture.cancel(device, Pipe::plain(IN), 1);
    fixture.run();
    let events = fixture.controller.event_traffic().written - before;
    (fixture.completions()[0], events)
}

#[test]
fn a_stopped_event_that_is_lost_or_late_loses_what_has_moved() {
    let (completion, events) = cancelled_in_the_middle("lose-stopped@2");
    assert_eq!(completion, (1, Cancelled, 1024));
    assert_eq!(cancelled_in_the_middle("lose-stopped@1"), ((1, Cancelled, 0), events - 1));
    assert_eq!(cancelled_in_the_middle("late-stopped@1"), ((1, Cancelled, 0), events));
}

#[test]
fn a_stop_that_never_completes_times_out() {
    let (mut fixture, device) = with_fault("lose-stop@1");
    fixture.queue(device, Pipe::plain(IN), (1, 512));
    fixture.cancel(device, Pipe::plain(IN), 1);
    fixture.run_for(Duration::from_secs(12));
    assert_eq!(fixture.driver.counters().command_timeouts, 1);
}

#[test]
fn a_dead_port_stays_down_until_its_device_is_another() {
    let mut fixture = Fixture::running(Model::CHIPSET, Config::default());
    plan(&mut fixture, "dead-port@1");
    fixture.controller.plug(fixture.now, PORT, 4);
    fixture.run();
    let status = |fixture: &Fixture| fixture.controller.ports.status(PORT).expect("a port");
    assert!(status(&fixture).is_connected() && !status(&fixture).is_enabled());
    assert_eq!(status(&fixture).link_state(), LinkState::Inactive);
    fixture.begin(Request::ResetPort { port: PORT }).unwrap();
    fixture.run();
    assert!(!status(&fixture).is_enabled());
    fixture.controller.unplug(fixture.now, PORT);
    fixture.controller.plug(fixture.now, PORT, 4);
    fixture.run();
    assert!(status(&fixture).is_enabled());
}

#[test]
fn faults_outlive_a_power_cycle() {
    let (mut fixture, _) = with_fault("lose-event@3");
    fixture.controller.power_cycle();
    assert!(!fixture.controller.is_running());
    let (mut other, device) = Fixture::with_device(Model::CHIPSET, Config::default());
    core::mem::swap(&mut other.controller.transfers.faults, &mut fixture.controller.transfers.faults);
    assert_eq!(completed_of_three(&mut other, device), [1, 2]);
}
