//! Link power management, from exit latencies to link states.

use super::*;
use crate::link::superspeed::{LinkState, Sleep};
use crate::xhc::DriverAccess;
use ::xhci_driver::Registers;
use wire::usb::{DeviceStatus, Direction, Recipient, StandardRequest};

fn sleepy(of: Drive) -> Setup {
    Setup::new(Host::chipset()).with(1, drive(of)).sleeping(Sleep::LINUX)
}

/// Returns the device status; default if it has no address yet.
fn status(machine: &mut XhciMachine) -> DeviceStatus {
    let setup = SetupPacket {
        direction: Direction::In,
        length: 2,
        ..SetupPacket::of_standard(Recipient::Device, StandardRequest::GetStatus, 0)
    };
    match machine.drives[0].drive.device.handle_control(setup, &[]) {
        device::Verdict::Data(bytes) => DeviceStatus::decode(&bytes).unwrap(),
        _ => DeviceStatus::default(),
    }
}

/// Returns the PORTPMSC register of USB 3 root port 1.
fn port_power(machine: &mut XhciMachine) -> u32 {
    let now = machine.now();
    let system = &mut machine.system;
    DriverAccess::new(now, &mut system.controller, &mut system.memory).read_register(0x444)
}

/// Returns the time of the link in a state.
fn time_in(machine: &XhciMachine, state: LinkState) -> Duration {
    let now = machine.now();
    machine.link(0).unwrap().meter(now).times(now)[state as usize]
}

fn pass(machine: &mut XhciMachine, span: Duration) {
    let until = machine.now() + span;
    assert!(machine.run_until(Some(until)).unwrap().is_none());
}

#[test]
fn link_power_settings_follow_from_exit_latencies() {
    for of in [Drive::uas(), Drive::bot()] {
        let mut machine = sleepy(of).power_on().unwrap();
        // U1 after five times 10 us, U2 after 10 ms in steps of 256 us.
        assert_eq!(port_power(&mut machine), 0x2832);
        let device = status(&mut machine);
        assert!(device.u1_enabled && device.u2_enabled);
        assert_no_errors(&machine);
        assert_eq!(fixture::write_and_read(&mut machine, 0), {
            let mut again = sleepy(of).power_on().unwrap();
            status(&mut again);
            fixture::write_and_read(&mut again, 0)
        });
    }
}

#[test]
fn a_link_sleeps_when_idle_once_configured() {
    let mut awake = on_uas(Part::CHIPSET);
    let mut machine = sleepy(Drive::uas()).power_on().unwrap();
    // Ports train for 20 ms, in which a link that may sleep would.
    assert_eq!(time_in(&machine, LinkState::U2), Duration::ZERO);
    for machine in [&mut awake, &mut machine] {
        fixture::first(machine, 0);
        pass(machine, Duration::from_ms(50));
    }
    assert_eq!(time_in(&awake, LinkState::U1), Duration::ZERO);
    let [u1, u2] = [LinkState::U1, LinkState::U2].map(|state| time_in(&machine, state));
    // 40 times 256 us in U1, and the rest of the pause in U2.
    assert!((10_240..10_500).contains(&(u1.as_ns() / 1_000)), "{u1}");
    assert!((39_000..39_800).contains(&(u2.as_ns() / 1_000)), "{u2}");
}

#[test]
fn a_reset_device_is_configured_for_sleep_again() {
    let mut machine = sleepy(Drive::uas()).power_on().unwrap();
    fixture::first(&mut machine, 0);
    let now = machine.now();
    let (system, host_device) = (&mut machine.system, &mut machine.devices[0]);
    host_device.request(system, now, initiator::RequestId(7), initiator::BusRequest::ResetPort);
    machine.settle();
    // When it has been reset the device is as it was when it was plugged in.
    for is_enabled in [false, true] {
        let end = machine.now() + Duration::from_ms(30);
        while status(&mut machine).u1_enabled != is_enabled {
            assert!(machine.now() < end && machine.step());
        }
    }
    let before = time_in(&machine, LinkState::U1);
    pass(&mut machine, Duration::from_ms(2));
    assert!(time_in(&machine, LinkState::U1) > before);
}

#[test]
fn links_among_hubs_and_those_of_usb_2_stay_awake() {
    let behind = Setup::new(Host::chipset()).with(1, Hub::new(4).with(1, drive(Drive::uas())));
    let mut machine = behind.sleeping(Sleep::LINUX).power_on().unwrap();
    fixture::first(&mut machine, 0);
    pass(&mut machine, Duration::from_ms(5));
    assert_eq!(port_power(&mut machine), 0);
    let high = Setup::new(Host::chipset()).at(usb2::Rate::High).with(1, drive(Drive::uas()));
    write_and_read(high.sleeping(Sleep::LINUX).power_on().unwrap());
}
