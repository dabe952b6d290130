//! Links that sleep, from what both ends say of themselves to the states that they are in.

use super::*;
use crate::link::superspeed::{LinkState, Sleep};
use crate::xhc::DriverAccess;
use ::xhci_driver::Registers;
use wire::usb::{DeviceStatus, Direction, Recipient, StandardRequest};

fn sleepy(of: Drive) -> Setup {
    Setup::new(Host::chipset()).with(1, drive(of)).sleeping(Sleep::LINUX)
}

/// What the device of a drive says of itself now: nothing, if it has no address yet.
fn status(world: &mut Driven) -> DeviceStatus {
    let setup = SetupPacket {
        direction: Direction::In,
        length: 2,
        ..SetupPacket::of_standard(Recipient::Device, StandardRequest::GetStatus, 0)
    };
    match world.seats[0].drive.device.handle_control(setup, &[]) {
        device::Verdict::Data(bytes) => DeviceStatus::decode(&bytes).unwrap(),
        _ => DeviceStatus::default(),
    }
}

/// When the link of root port 1 of USB 3 is to sleep, as its register says.
fn port_power(world: &mut Driven) -> u32 {
    let now = world.now();
    let machine = &mut world.machine;
    DriverAccess::new(now, &mut machine.controller, &mut machine.memory).read_register(0x444)
}

/// How long the link has been in a state.
fn time_in(world: &Driven, state: LinkState) -> Duration {
    let now = world.now();
    world.link(0).unwrap().meter(now).times(now)[state as usize]
}

fn pass(world: &mut Driven, span: Duration) {
    let until = world.now() + span;
    assert!(world.run_until(Some(until)).unwrap().is_none());
}

#[test]
fn port_device_and_controller_are_told_what_follows_from_exit_latencies() {
    for of in [Drive::uas(), Drive::bot()] {
        let mut world = sleepy(of).power_on().unwrap();
        // U1 after five times 10 us, U2 after 10 ms in steps of 256 us.
        assert_eq!(port_power(&mut world), 0x2832);
        let told = status(&mut world);
        assert!(told.u1_enabled && told.u2_enabled);
        assert_no_trouble(&world);
        assert_eq!(fixture::write_and_read(&mut world, 0), {
            let mut again = sleepy(of).power_on().unwrap();
            status(&mut again);
            fixture::write_and_read(&mut again, 0)
        });
    }
}

#[test]
fn a_link_sleeps_when_nothing_crosses_and_not_before_it_was_told_to() {
    let mut awake = on_uas(Part::CHIPSET);
    let mut world = sleepy(Drive::uas()).power_on().unwrap();
    // Ports train for 20 ms, in which a link that may sleep would.
    assert_eq!(time_in(&world, LinkState::U2), Duration::ZERO);
    for world in [&mut awake, &mut world] {
        fixture::first(world, 0);
        pass(world, Duration::from_ms(50));
    }
    assert_eq!(time_in(&awake, LinkState::U1), Duration::ZERO);
    let [u1, u2] = [LinkState::U1, LinkState::U2].map(|state| time_in(&world, state));
    // 40 times 256 us in U1, and the rest of the pause in U2.
    assert!((10_240..10_500).contains(&(u1.as_ns() / 1_000)), "{u1}");
    assert!((39_000..39_800).contains(&(u2.as_ns() / 1_000)), "{u2}");
}

#[test]
fn a_device_that_was_reset_is_told_again() {
    let mut world = sleepy(Drive::uas()).power_on().unwrap();
    fixture::first(&mut world, 0);
    let now = world.now();
    let (machine, front) = (&mut world.machine, &mut world.fronts[0]);
    front.request(machine, now, (initiator::RequestId(7), initiator::BusRequest::ResetPort));
    world.settle();
    // When it has been reset the device is as it was when it was plugged in.
    for is_enabled in [false, true] {
        let end = world.now() + Duration::from_ms(30);
        while status(&mut world).u1_enabled != is_enabled {
            assert!(world.now() < end && world.step());
        }
    }
    let before = time_in(&world, LinkState::U1);
    pass(&mut world, Duration::from_ms(2));
    assert!(time_in(&world, LinkState::U1) > before);
}

#[test]
fn links_among_hubs_and_those_of_usb_2_stay_awake() {
    let behind = Setup::new(Host::chipset()).with(1, Hub::new(4).with(1, drive(Drive::uas())));
    let mut world = behind.sleeping(Sleep::LINUX).power_on().unwrap();
    fixture::first(&mut world, 0);
    pass(&mut world, Duration::from_ms(5));
    assert_eq!(port_power(&mut world), 0);
    let high = Setup::new(Host::chipset()).at(usb2::Rate::High).with(1, drive(Drive::uas()));
    write_and_read(high.sleeping(Sleep::LINUX).power_on().unwrap());
}
