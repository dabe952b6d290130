//! A hub's driver against a hub that is a script: what it asks, byte by byte, and what it makes of
//! the answers.

extern crate std;
use super::*;
use crate::types::{DeviceId, Request};
use std::vec::Vec;
use wire::usb::SetupPacket;
use wire::xhci::RouteString;

const DEVICE: DeviceId = DeviceId { slot: 2, generation: 7 };
const NOW: Instant = Instant::ZERO;

fn at_ms(ms: u64) -> Instant {
    NOW + Duration::from_ms(ms)
}

/// At port 3 of a hub at root port 5.
fn hub(speed_id: u8) -> Hub {
    let route = RouteString::from_bits(0x3);
    let control_packet = if speed_id == 4 { 512 } else { 64 };
    let location = Location { root_port: 5, route, speed_id, translator: None, control_packet };
    Hub::new(HubLocation { device: DEVICE, location })
}

/// The next output is this control transfer, which brings these bytes.
fn asks(hub: &mut Hub, now: Instant, setup: [u8; 8], answer: &[u8]) {
    let expected = HubOutput::Control(SetupPacket::from(setup));
    assert_eq!(hub.poll_output(), Some(expected), "{setup:02x?}");
    hub.handle_control(now, TransferStatus::Done, answer);
}

fn requests(hub: &mut Hub) -> Request {
    match hub.poll_output() {
        Some(HubOutput::Request(request)) => {
            hub.handle_answer(Answer::Done);
            request
        }
        other => panic!("{other:?}"),
    }
}

const SUPER_DEVICE: [u8; 18] = [18, 1, 0x20, 3, 9, 0, 3, 9, 9, 0x12, 1, 0, 0, 1, 0, 0, 0, 1];
const SUPER_CONFIGURATION: [u8; 31] = [
    9, 2, 31, 0, 1, 1, 0, 0xe0, 0, 9, 4, 0, 0, 1, 9, 0, 0, 0, 7, 5, 0x81, 0x13, 2, 0, 8, 6, 0x30, 0, 0, 2, 0,
];

/// A hub of SuperSpeed with two ports whose power has been on for 20 ms.
fn up() -> Hub {
    let mut hub = hub(4);
    asks(&mut hub, NOW, [0x80, 6, 0, 1, 0, 0, 18, 0], &SUPER_DEVICE);
    asks(&mut hub, NOW, [0x80, 6, 0, 2, 0, 0, 9, 0], &SUPER_CONFIGURATION[..9]);
    asks(&mut hub, NOW, [0x80, 6, 0, 2, 0, 0, 31, 0], &SUPER_CONFIGURATION);
    let Request::Configure { device: DEVICE, add, drop } = requests(&mut hub) else { panic!("endpoints") };
    assert_eq!((add.len(), drop.len()), (1, 0));
    assert_eq!(add[0].descriptor.encode(), [7, 5, 0x81, 0x13, 2, 0, 8]);
    assert_eq!(add[0].companion.map(|companion| companion.encode()), Some([6, 0x30, 0, 0, 2, 0]));
    asks(&mut hub, NOW, [0, 9, 1, 0, 0, 0, 0, 0], &[]);
    // One hub is above it.
    asks(&mut hub, NOW, [0x20, 12, 1, 0, 0, 0, 0, 0], &[]);
    asks(&mut hub, NOW, [0xa0, 6, 0, 0x2a, 0, 0, 12, 0], &[12, 0x2a, 2, 0x11, 0, 10, 0, 1, 0x40, 1, 0, 0]);
    let shape = HubShape { ports: 2, think_time: 0, multiple_translators: false };
    assert_eq!(requests(&mut hub), Request::DescribeHub(DEVICE, shape));
    asks(&mut hub, NOW, [0x23, 3, 8, 0, 1, 0, 0, 0], &[]);
    asks(&mut hub, NOW, [0x23, 3, 8, 0, 2, 0, 0, 0], &[]);
    assert_eq!((hub.poll_output(), hub.poll_timeout()), (None, Some(at_ms(20))));
    hub.handle_timeout(at_ms(20));
    assert_eq!(hub.poll_output(), Some(HubOutput::Up { ports: 2 }));
    hub
}

const EMPTY: [u8; 4] = [0xa0, 2, 0, 0];
const CAME: [u8; 4] = [3, 2, 1, 0];
/// As before, and nothing has changed.
const THERE: [u8; 4] = [3, 2, 0, 0];

/// The host notes that somebody came to port 2 or went, and looks again: the port says this.
fn notes(hub: &mut Hub, now: Instant, status: [u8; 4]) {
    asks(hub, now, [0x23, 1, 16, 0, 2, 0, 0, 0], &[]);
    asks(hub, now, [0xa3, 0, 0, 0, 2, 0, 4, 0], &status);
}

fn listens(hub: &mut Hub) {
    let endpoint = EndpointAddress::at::<1>(bus::Direction::In);
    assert_eq!(hub.poll_output(), Some(HubOutput::Listen { endpoint, bytes: 2 }));
    assert_eq!(hub.poll_output(), None);
}

/// The same with somebody at port 2.
fn occupied() -> Hub {
    let mut hub = up();
    asks(&mut hub, at_ms(20), [0xa3, 0, 0, 0, 1, 0, 4, 0], &EMPTY);
    asks(&mut hub, at_ms(20), [0xa3, 0, 0, 0, 2, 0, 4, 0], &CAME);
    let route = RouteString::from_bits(0x23);
    let location = Location { root_port: 5, route, speed_id: 4, translator: None, control_packet: 512 };
    assert_eq!(hub.poll_output(), Some(HubOutput::Arrived { port: 2, location }));
    notes(&mut hub, at_ms(20), THERE);
    listens(&mut hub);
    hub
}

#[test]
fn a_hub_of_superspeed_is_brought_up_request_by_request() {
    assert_eq!(occupied().shape().map(|shape| shape.ports), Some(2));
}

#[test]
fn who_goes_is_reported_and_who_comes_again() {
    let mut hub = occupied();
    hub.handle_report(TransferStatus::Done, &[0x04, 0]);
    asks(&mut hub, at_ms(50), [0xa3, 0, 0, 0, 2, 0, 4, 0], &[0xa0, 2, 1, 0]);
    assert_eq!(hub.poll_output(), Some(HubOutput::Left { port: 2 }));
    notes(&mut hub, at_ms(50), EMPTY);
    listens(&mut hub);
    hub.handle_report(TransferStatus::Done, &[0x04, 0]);
    asks(&mut hub, at_ms(90), [0xa3, 0, 0, 0, 2, 0, 4, 0], &CAME);
    assert!(matches!(hub.poll_output(), Some(HubOutput::Arrived { port: 2, .. })));
    notes(&mut hub, at_ms(90), THERE);
    listens(&mut hub);
    // Quicker than the host looks: gone, and somebody is there.
    hub.handle_report(TransferStatus::Done, &[0x04, 0]);
    asks(&mut hub, at_ms(95), [0xa3, 0, 0, 0, 2, 0, 4, 0], &CAME);
    assert_eq!(hub.poll_output(), Some(HubOutput::Left { port: 2 }));
    assert!(matches!(hub.poll_output(), Some(HubOutput::Arrived { port: 2, .. })));
}

#[test]
fn a_device_that_appears_while_a_removal_is_recorded_is_seen() {
    let mut hub = occupied();
    hub.handle_report(TransferStatus::Done, &[0x04, 0]);
    asks(&mut hub, at_ms(50), [0xa3, 0, 0, 0, 2, 0, 4, 0], &[0xa0, 2, 1, 0]);
    assert_eq!(hub.poll_output(), Some(HubOutput::Left { port: 2 }));
    // There is one change for both, and the host has cleared it.
    notes(&mut hub, at_ms(50), THERE);
    assert!(matches!(hub.poll_output(), Some(HubOutput::Arrived { port: 2, .. })));
}

#[test]
fn a_port_is_reset_and_that_is_reported_once() {
    let mut hub = occupied();
    assert!(!hub.reset_port(NOW, 1), "no device is connected");
    assert!(!hub.reset_port(NOW, 3), "there is no such port");
    assert!(hub.reset_port(at_ms(100), 2));
    assert!(!hub.reset_port(at_ms(100), 2), "it is being reset");
    asks(&mut hub, at_ms(100), [0x23, 3, 4, 0, 2, 0, 0, 0], &[]);
    assert_eq!(hub.poll_timeout(), Some(at_ms(900)));
    hub.handle_report(TransferStatus::Done, &[0x04]);
    asks(&mut hub, at_ms(112), [0xa3, 0, 0, 0, 2, 0, 4, 0], &[3, 2, 0x10, 0]);
    assert_eq!(hub.poll_output(), Some(HubOutput::PortReset { port: 2, is_done: true }));
    asks(&mut hub, at_ms(112), [0x23, 1, 20, 0, 2, 0, 0, 0], &[]);
    listens(&mut hub);
    // One that does not end in time, and one whose device goes.
    assert!(hub.reset_port(at_ms(200), 2));
    asks(&mut hub, at_ms(200), [0x23, 3, 4, 0, 2, 0, 0, 0], &[]);
    hub.handle_timeout(at_ms(1000));
    assert_eq!(hub.poll_output(), Some(HubOutput::PortReset { port: 2, is_done: false }));
    assert!(hub.reset_port(at_ms(1000), 2));
    asks(&mut hub, at_ms(1000), [0x23, 3, 4, 0, 2, 0, 0, 0], &[]);
    hub.handle_report(TransferStatus::Done, &[0x04]);
    asks(&mut hub, at_ms(1001), [0xa3, 0, 0, 0, 2, 0, 4, 0], &[0xa0, 2, 1, 0]);
    assert_eq!(hub.poll_output(), Some(HubOutput::PortReset { port: 2, is_done: false }));
    assert_eq!(hub.poll_output(), Some(HubOutput::Left { port: 2 }));
}

#[test]
fn a_link_that_does_not_come_up_is_reset_warmly() {
    let mut hub = up();
    // Connected, not enabled, SS.Inactive.
    asks(&mut hub, at_ms(20), [0xa3, 0, 0, 0, 1, 0, 4, 0], &[0xc1, 2, 0x40, 0]);
    asks(&mut hub, at_ms(20), [0xa3, 0, 0, 0, 2, 0, 4, 0], &EMPTY);
    asks(&mut hub, at_ms(20), [0x23, 1, 25, 0, 1, 0, 0, 0], &[]);
    asks(&mut hub, at_ms(20), [0x23, 3, 28, 0, 1, 0, 0, 0], &[]);
    listens(&mut hub);
    hub.handle_report(TransferStatus::Done, &[0x02]);
    asks(&mut hub, at_ms(120), [0xa3, 0, 0, 0, 1, 0, 4, 0], &[3, 2, 0x30, 0]);
    assert!(matches!(hub.poll_output(), Some(HubOutput::Arrived { port: 1, .. })));
}

/// A hub of high speed with translators for each port, and what is at its port 1.
fn translating(status: [u8; 4]) -> HubOutput {
    let mut hub = hub(3);
    asks(
        &mut hub,
        NOW,
        [0x80, 6, 0, 1, 0, 0, 18, 0],
        &[18, 1, 0, 2, 9, 0, 2, 64, 9, 0x12, 1, 0, 0, 1, 0, 0, 0, 1],
    );
    let configuration = [
        9, 2, 41, 0, 1, 1, 0, 0xe0, 0, 9, 4, 0, 0, 1, 9, 0, 1, 0, 7, 5, 0x81, 3, 1, 0, 12, 9, 4, 0, 1, 1, 9,
        0, 2, 0, 7, 5, 0x81, 3, 1, 0, 12,
    ];
    asks(&mut hub, NOW, [0x80, 6, 0, 2, 0, 0, 9, 0], &configuration[..9]);
    asks(&mut hub, NOW, [0x80, 6, 0, 2, 0, 0, 41, 0], &configuration);
    assert!(matches!(requests(&mut hub), Request::Configure { .. }));
    asks(&mut hub, NOW, [0, 9, 1, 0, 0, 0, 0, 0], &[]);
    // SET_INTERFACE 0 to setting 1; no depth at this speed. Think time 24 bits.
    asks(&mut hub, NOW, [1, 11, 1, 0, 0, 0, 0, 0], &[]);
    asks(&mut hub, NOW, [0xa0, 6, 0, 0x29, 0, 0, 71, 0], &[9, 0x29, 1, 0x40, 0, 1, 0, 0, 0xff]);
    let shape = HubShape { ports: 1, think_time: 2, multiple_translators: true };
    assert_eq!(requests(&mut hub), Request::DescribeHub(DEVICE, shape));
    asks(&mut hub, NOW, [0x23, 3, 8, 0, 1, 0, 0, 0], &[]);
    hub.handle_timeout(at_ms(2));
    assert_eq!(hub.poll_output(), Some(HubOutput::Up { ports: 1 }));
    asks(&mut hub, at_ms(2), [0xa3, 0, 0, 0, 1, 0, 4, 0], &[1, 1, 1, 0]);
    asks(&mut hub, at_ms(2), [0x23, 1, 16, 0, 1, 0, 0, 0], &[]);
    asks(&mut hub, at_ms(2), [0xa3, 0, 0, 0, 1, 0, 4, 0], &[1, 1, 0, 0]);
    assert!(matches!(hub.poll_output(), Some(HubOutput::Listen { bytes: 1, .. })));
    // Contacts come to rest in 100 ms, and after the reset the device rests for 10.
    assert_eq!(hub.poll_timeout(), Some(at_ms(102)));
    hub.handle_timeout(at_ms(102));
    asks(&mut hub, at_ms(102), [0x23, 3, 4, 0, 1, 0, 0, 0], &[]);
    hub.handle_report(TransferStatus::Done, &[0x02]);
    asks(&mut hub, at_ms(112), [0xa3, 0, 0, 0, 1, 0, 4, 0], &status);
    asks(&mut hub, at_ms(112), [0x23, 1, 20, 0, 1, 0, 0, 0], &[]);
    assert!(matches!(hub.poll_output(), Some(HubOutput::Listen { .. })));
    assert_eq!(hub.poll_timeout(), Some(at_ms(122)));
    hub.handle_timeout(at_ms(122));
    hub.poll_output().unwrap()
}

#[test]
fn behind_a_hub_of_high_speed_what_is_slower_has_a_translator() {
    let translator = Some(Translator { hub: DEVICE, port: 1, multiple: true });
    let location = |speed_id, translator, control_packet| Location {
        root_port: 5,
        route: RouteString::from_bits(0x13),
        speed_id,
        translator,
        control_packet,
    };
    let arrived = |location| HubOutput::Arrived { port: 1, location };
    assert_eq!(translating([3, 5, 0x10, 0]), arrived(location(3, None, 64)));
    assert_eq!(translating([3, 1, 0x10, 0]), arrived(location(1, translator, 64)));
    assert_eq!(translating([3, 3, 0x10, 0]), arrived(location(2, translator, 8)));
}

#[test]
fn what_is_no_hub_fails_once() {
    let mut drive = SUPER_DEVICE;
    drive[4] = 0;
    let mut hub = hub(4);
    asks(&mut hub, NOW, [0x80, 6, 0, 1, 0, 0, 18, 0], &drive);
    assert_eq!((hub.poll_output(), hub.poll_output()), (Some(HubOutput::Failed), None));
    assert!(!hub.reset_port(NOW, 1));
}

#[test]
fn a_hub_that_refuses_once_is_asked_again_and_not_for_ever() {
    let mut hub = occupied();
    hub.handle_report(TransferStatus::Done, &[0x02]);
    for _ in 0..3 {
        assert!(matches!(hub.poll_output(), Some(HubOutput::Control(_))));
        hub.handle_control(at_ms(50), TransferStatus::Error, &[]);
    }
    assert_eq!((hub.poll_output(), hub.poll_output()), (Some(HubOutput::Failed), None));
    let mut gone = occupied();
    gone.handle_report(TransferStatus::Disconnected, &[]);
    assert_eq!(gone.poll_output(), Some(HubOutput::Failed));
}

#[test]
fn reports_of_ports_that_are_not_there_are_passed_over() {
    let mut hub = occupied();
    hub.handle_report(TransferStatus::Done, &[0xf9, 0xff]);
    listens(&mut hub);
    let outputs: Vec<_> = core::iter::from_fn(|| hub.poll_output()).collect();
    assert_eq!(outputs, []);
}
