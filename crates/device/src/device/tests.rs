//! Scripts on endpoint 0: each request in each state of the device, in literal setup packets.

use crate::host_fixture::HostFixture;
use crate::{ActiveTransport, Transports, Verdict};
use alloc::vec::Vec;
use bus::Speed;
use proptest::prelude::*;

const GET_DEVICE: [u8; 8] = [0x80, 0x06, 0, 1, 0, 0, 18, 0];
const GET_CONFIGURATION: [u8; 8] = [0x80, 0x08, 0, 0, 0, 0, 1, 0];
const GET_INTERFACE: [u8; 8] = [0x81, 0x0a, 0, 0, 0, 0, 1, 0];
const GET_DEVICE_STATUS: [u8; 8] = [0x80, 0x00, 0, 0, 0, 0, 2, 0];
const GET_INTERFACE_STATUS: [u8; 8] = [0x81, 0x00, 0, 0, 0, 0, 2, 0];
const GET_MAX_LUN: [u8; 8] = [0xa1, 0xfe, 0, 0, 0, 0, 1, 0];
const MASS_STORAGE_RESET: [u8; 8] = [0x21, 0xff, 0, 0, 0, 0, 0, 0];
const SET_SEL: [u8; 8] = [0x00, 0x30, 0, 0, 0, 0, 6, 0];

const fn set_address(address: u8) -> [u8; 8] {
    [0x00, 0x05, address, 0, 0, 0, 0, 0]
}

const fn set_configuration(value: u8) -> [u8; 8] {
    [0x00, 0x09, value, 0, 0, 0, 0, 0]
}

const fn set_interface(interface: u8, alternate: u8) -> [u8; 8] {
    [0x01, 0x0b, alternate, 0, interface, 0, 0, 0]
}

const fn get_endpoint_status(endpoint: u8) -> [u8; 8] {
    [0x82, 0x00, 0, 0, endpoint, 0, 2, 0]
}

const fn set_halt(endpoint: u8) -> [u8; 8] {
    [0x02, 0x03, 0, 0, endpoint, 0, 0, 0]
}

const fn clear_halt(endpoint: u8) -> [u8; 8] {
    [0x02, 0x01, 0, 0, endpoint, 0, 0, 0]
}

const fn set_device_feature(feature: u8) -> [u8; 8] {
    [0x00, 0x03, feature, 0, 0, 0, 0, 0]
}

const fn clear_device_feature(feature: u8) -> [u8; 8] {
    [0x00, 0x01, feature, 0, 0, 0, 0, 0]
}

const U1_ENABLE: u8 = 48;
const U2_ENABLE: u8 = 49;
const REMOTE_WAKEUP: u8 = 1;

fn in_default(speed: Speed) -> HostFixture {
    HostFixture::new(crate::host_fixture::config(speed, Transports::Dual))
}

fn in_addressed(speed: Speed) -> HostFixture {
    let mut host = in_default(speed);
    assert_eq!(host.control(set_address(7), &[]), Verdict::Done);
    host
}

fn data(bytes: &[u8]) -> Verdict {
    Verdict::Data(bytes.to_vec())
}

#[test]
fn a_new_device_reports_its_descriptors_and_nothing_else() {
    let mut host = in_default(Speed::Super);
    assert!(matches!(host.control(GET_DEVICE, &[]), Verdict::Data(bytes) if bytes.len() == 18));
    let requests = [
        GET_CONFIGURATION,
        GET_INTERFACE,
        GET_DEVICE_STATUS,
        GET_INTERFACE_STATUS,
        get_endpoint_status(0),
        GET_MAX_LUN,
        set_configuration(1),
        set_interface(0, 0),
        set_halt(0x81),
        clear_halt(0x81),
        MASS_STORAGE_RESET,
    ];
    for request in requests {
        assert_eq!(host.control(request, &[]), Verdict::Stall, "{request:02x?}");
    }
}

#[test]
fn an_addressed_device_has_no_configuration_yet() {
    let mut host = in_addressed(Speed::Super);
    assert_eq!(host.control(GET_CONFIGURATION, &[]), data(&[0]));
    assert_eq!(host.control(GET_DEVICE_STATUS, &[]), data(&[1, 0]));
    assert_eq!(host.control(get_endpoint_status(0), &[]), data(&[0, 0]));
    let requests = [
        GET_INTERFACE,
        GET_INTERFACE_STATUS,
        get_endpoint_status(0x81),
        GET_MAX_LUN,
        MASS_STORAGE_RESET,
        set_interface(0, 0),
        set_halt(0x81),
        clear_halt(0x81),
        set_device_feature(U1_ENABLE),
    ];
    for request in requests {
        assert_eq!(host.control(request, &[]), Verdict::Stall, "{request:02x?}");
    }
}

#[test]
fn address_0_is_the_default_state_again() {
    let mut host = in_addressed(Speed::High);
    assert_eq!(host.control(set_address(0), &[]), Verdict::Done);
    assert_eq!(host.control(GET_CONFIGURATION, &[]), Verdict::Stall);
}

#[test]
fn an_address_above_127_is_refused() {
    let mut host = in_default(Speed::High);
    assert_eq!(host.control(set_address(128), &[]), Verdict::Stall);
    assert_eq!(host.control(set_address(127), &[]), Verdict::Done);
}

#[test]
fn a_configured_device_has_its_first_setting() {
    let mut host = in_addressed(Speed::High);
    assert_eq!(host.control(set_configuration(1), &[]), Verdict::Done);
    assert_eq!(host.control(GET_CONFIGURATION, &[]), data(&[1]));
    assert_eq!(host.control(GET_INTERFACE, &[]), data(&[0]));
    assert_eq!(host.control(GET_INTERFACE_STATUS, &[]), data(&[0, 0]));
    assert_eq!(host.device.transport(), ActiveTransport::Bot);
    assert_eq!(host.control(set_address(9), &[]), Verdict::Stall);
}

#[test]
fn only_configuration_1_exists() {
    let mut host = in_addressed(Speed::High);
    assert_eq!(host.control(set_configuration(2), &[]), Verdict::Stall);
    assert_eq!(host.control(GET_CONFIGURATION, &[]), data(&[0]));
}

#[test]
fn configuration_0_turns_the_transport_off() {
    let mut host = HostFixture::bot(Speed::High);
    assert_eq!(host.control(set_configuration(0), &[]), Verdict::Done);
    assert_eq!(host.control(GET_CONFIGURATION, &[]), data(&[0]));
    assert_eq!(host.control(GET_INTERFACE, &[]), Verdict::Stall);
    assert_eq!(host.device.transport(), ActiveTransport::None);
}

#[test]
fn the_setting_chooses_the_transport() {
    for (speed, streams) in [(Speed::Super, true), (Speed::High, false), (Speed::Full, false)] {
        let mut host = HostFixture::bot(speed);
        assert_eq!(host.control(set_interface(0, 1), &[]), Verdict::Done);
        assert_eq!(host.control(GET_INTERFACE, &[]), data(&[1]));
        assert_eq!(host.device.transport(), ActiveTransport::Uas { streams });
        assert_eq!(host.control(set_configuration(1), &[]), Verdict::Done);
        assert_eq!(host.device.transport(), ActiveTransport::Bot);
    }
}

#[test]
fn other_settings_and_interfaces_do_not_exist() {
    let mut host = HostFixture::bot(Speed::High);
    for request in [set_interface(0, 2), set_interface(1, 0), [0x81, 0x0a, 0, 0, 1, 0, 1, 0]] {
        assert_eq!(host.control(request, &[]), Verdict::Stall, "{request:02x?}");
    }
    assert_eq!(host.device.transport(), ActiveTransport::Bot);
}

#[test]
fn a_device_with_one_transport_has_one_setting() {
    for (transports, active) in [
        (Transports::UasOnly, ActiveTransport::Uas { streams: true }),
        (Transports::BotOnly, ActiveTransport::Bot),
    ] {
        let mut host = HostFixture::configured(crate::host_fixture::config(Speed::Super, transports), 0);
        assert_eq!(host.device.transport(), active);
        assert_eq!(host.control(set_interface(0, 1), &[]), Verdict::Stall);
    }
}

#[test]
fn the_highest_unit_is_reported_where_bot_is_on() {
    let mut host = HostFixture::bot(Speed::High);
    assert_eq!(host.control(GET_MAX_LUN, &[]), data(&[1]));
    assert_eq!(host.control([0xa1, 0xfe, 0, 0, 1, 0, 1, 0], &[]), Verdict::Stall, "of interface 1");
    assert_eq!(host.control([0x21, 0xff, 0, 0, 1, 0, 0, 0], &[]), Verdict::Stall, "of interface 1");
    let mut host = HostFixture::uas(Speed::High);
    assert_eq!(host.control(GET_MAX_LUN, &[]), Verdict::Stall);
    assert_eq!(host.control(MASS_STORAGE_RESET, &[]), Verdict::Stall);
}

#[test]
fn an_answer_is_cut_at_the_length_asked_for() {
    let mut host = in_default(Speed::Super);
    assert_eq!(host.control([0x80, 0x06, 0, 1, 0, 0, 8, 0], &[]), data(&[18, 1, 0, 3, 0, 0, 0, 9]));
    assert_eq!(host.control([0x80, 0x06, 0, 2, 0, 0, 9, 0], &[]), data(&[9, 2, 121, 0, 1, 1, 0, 0xc0, 0]));
    assert_eq!(host.control([0x80, 0x06, 0, 2, 0, 0, 0, 0], &[]), data(&[]));
    assert!(
        matches!(host.control([0x80, 0x06, 0, 2, 0, 0, 0xff, 0xff], &[]), Verdict::Data(all) if all.len() == 121)
    );
}

#[test]
fn strings_come_in_whatever_language_is_asked_for() {
    let mut host = in_default(Speed::High);
    let text = data(&[10, 3, b'A', 0, b'C', 0, b'M', 0, b'E', 0]);
    for language in [[0x09, 0x04], [0x07, 0x04], [0, 0]] {
        assert_eq!(host.control([0x80, 0x06, 1, 3, language[0], language[1], 255, 0], &[]), text);
    }
}

#[test]
fn descriptors_that_do_not_exist_stall() {
    let mut host = in_default(Speed::Super);
    for (kind, index) in [(1, 1), (2, 1), (3, 6), (6, 0), (7, 0), (0x22, 0)] {
        assert_eq!(
            host.control([0x80, 0x06, index, kind, 0, 0, 255, 0], &[]),
            Verdict::Stall,
            "{kind} {index}"
        );
    }
    let of_interface = [0x81, 0x06, 0, 1, 0, 0, 18, 0];
    assert_eq!(host.control(of_interface, &[]), Verdict::Stall);
}

#[test]
fn the_qualifier_is_reported_below_super_speed() {
    for speed in [Speed::High, Speed::Full] {
        let mut host = in_default(speed);
        assert_eq!(
            host.control([0x80, 0x06, 0, 6, 0, 0, 10, 0], &[]),
            data(&[10, 6, 0x10, 0x02, 0, 0, 0, 64, 1, 0])
        );
    }
}

#[test]
fn u1_and_u2_are_switched_one_by_one() {
    let mut host = HostFixture::bot(Speed::Super);
    assert_eq!(host.control(GET_DEVICE_STATUS, &[]), data(&[0x01, 0]));
    assert_eq!(host.control(set_device_feature(U1_ENABLE), &[]), Verdict::Done);
    assert_eq!(host.control(GET_DEVICE_STATUS, &[]), data(&[0x05, 0]));
    assert_eq!(host.control(set_device_feature(U2_ENABLE), &[]), Verdict::Done);
    assert_eq!(host.control(GET_DEVICE_STATUS, &[]), data(&[0x0d, 0]));
    assert_eq!(host.control(clear_device_feature(U1_ENABLE), &[]), Verdict::Done);
    assert_eq!(host.control(GET_DEVICE_STATUS, &[]), data(&[0x09, 0]));
    host.reset_port();
    host.configure(0);
    assert_eq!(host.control(GET_DEVICE_STATUS, &[]), data(&[0x01, 0]));
}

#[test]
fn requests_of_super_speed_stall_below_it() {
    let mut host = HostFixture::bot(Speed::High);
    let requests =
        [set_device_feature(U1_ENABLE), set_device_feature(U2_ENABLE), [0, 0x31, 40, 0, 0, 0, 0, 0]];
    for request in requests {
        assert_eq!(host.control(request, &[]), Verdict::Stall, "{request:02x?}");
    }
    assert_eq!(host.control(SET_SEL, &[0; 6]), Verdict::Stall);
    assert_eq!(host.control([0x01, 0x03, 0, 0, 0, 1, 0, 0], &[]), Verdict::Stall);
}

#[test]
fn exit_latencies_are_six_bytes() {
    let mut host = in_addressed(Speed::Super);
    assert_eq!(host.control(SET_SEL, &[10, 20, 0, 1, 0, 2]), Verdict::Done);
    for length in [0, 5, 7] {
        assert_eq!(host.control(SET_SEL, &[0; 7][..length]), Verdict::Stall);
    }
    assert_eq!(host.control([0, 0x31, 40, 0, 0, 0, 0, 0], &[]), Verdict::Done, "SET ISOCH DELAY");
}

#[test]
fn a_function_is_suspended_without_remote_wake_up() {
    let mut host = HostFixture::bot(Speed::Super);
    assert_eq!(host.control([0x01, 0x03, 0, 0, 0, 1, 0, 0], &[]), Verdict::Done);
    assert_eq!(host.control([0x01, 0x03, 0, 0, 0, 3, 0, 0], &[]), Verdict::Stall);
    assert_eq!(host.control([0x01, 0x03, 0, 0, 1, 1, 0, 0], &[]), Verdict::Stall, "of interface 1");
    assert_eq!(host.control(GET_INTERFACE_STATUS, &[]), data(&[0, 0]));
}

#[test]
fn remote_wake_up_is_refused() {
    for speed in [Speed::Full, Speed::High, Speed::Super] {
        let mut host = HostFixture::bot(speed);
        assert_eq!(host.control(set_device_feature(REMOTE_WAKEUP), &[]), Verdict::Stall);
    }
}

#[test]
fn a_halt_is_reported_until_it_is_cleared() {
    let mut host = HostFixture::uas(Speed::Super);
    for endpoint in [0x81, 0x02, 0x83, 0x04] {
        assert_eq!(host.control(get_endpoint_status(endpoint), &[]), data(&[0, 0]));
        assert_eq!(host.control(set_halt(endpoint), &[]), Verdict::Done);
        assert_eq!(host.control(get_endpoint_status(endpoint), &[]), data(&[1, 0]));
        assert_eq!(host.control(clear_halt(endpoint), &[]), Verdict::Done);
        assert_eq!(host.control(get_endpoint_status(endpoint), &[]), data(&[0, 0]));
    }
}

#[test]
fn halts_go_with_the_setting() {
    for request in [set_interface(0, 1), set_interface(0, 0), set_configuration(1)] {
        let mut host = HostFixture::uas(Speed::Super);
        host.control(set_halt(0x81), &[]);
        assert_eq!(host.control(request, &[]), Verdict::Done);
        assert_eq!(host.control(get_endpoint_status(0x81), &[]), data(&[0, 0]), "{request:02x?}");
    }
}

#[test]
fn endpoints_of_the_other_setting_do_not_exist() {
    let mut host = HostFixture::bot(Speed::High);
    for endpoint in [0x01, 0x82, 0x83, 0x03, 0x04, 0x84, 0x8f, 0x71] {
        for request in [get_endpoint_status(endpoint), set_halt(endpoint), clear_halt(endpoint)] {
            assert_eq!(host.control(request, &[]), Verdict::Stall, "{request:02x?}");
        }
    }
}

#[test]
fn endpoint_0_is_never_halted() {
    let mut host = HostFixture::bot(Speed::High);
    for endpoint in [0x00, 0x80] {
        assert_eq!(host.control(set_halt(endpoint), &[]), Verdict::Done);
        assert_eq!(host.control(get_endpoint_status(endpoint), &[]), data(&[0, 0]));
        assert_eq!(host.control(clear_halt(endpoint), &[]), Verdict::Done);
    }
}

#[test]
fn unknown_requests_stall() {
    let mut host = HostFixture::bot(Speed::Super);
    let requests = [
        [0x80, 0x0d, 0, 0, 0, 0, 2, 0],
        [0x00, 0x07, 0, 1, 0, 0, 18, 0],
        [0x82, 0x0c, 0, 0, 0x81, 0, 2, 0],
        [0xc0, 0x06, 0, 1, 0, 0, 18, 0],
        [0xa1, 0x01, 0, 0, 0, 0, 1, 0],
        [0x83, 0x00, 0, 0, 0, 0, 2, 0],
        set_device_feature(77),
        [0x02, 0x03, 1, 0, 0x81, 0, 0, 0],
    ];
    for request in requests {
        assert_eq!(host.control(request, &[0; 18]), Verdict::Stall, "{request:02x?}");
    }
}

#[test]
fn a_port_reset_is_the_default_state() {
    let mut host = HostFixture::uas(Speed::Super);
    host.reset_port();
    assert_eq!(host.device.transport(), ActiveTransport::None);
    assert_eq!(host.control(GET_CONFIGURATION, &[]), Verdict::Stall);
    host.configure(0);
    assert_eq!(host.run(&[0; 6]), crate::host_fixture::bot::csw(0, 1));
    assert_eq!(host.request_sense(), (0x06, 0x29, 0x02));
}

fn any_setup() -> impl Strategy<Value = [u8; 8]> {
    let small = || prop_oneof![8 => 0u8..8, 1 => 0x80u8..0x90, 1 => any::<u8>()];
    let request_type = prop_oneof![3 => 0u8..4, 3 => 0x80u8..0x84, 1 => 0xa0u8..0xa3, 1 => any::<u8>()];
    let request = prop_oneof![6 => 0u8..13, 2 => 0x30u8..0x32, 2 => 0xfeu8..=0xff, 1 => any::<u8>()];
    (request_type, request, small(), small(), small(), small(), any::<u8>(), small())
        .prop_map(|(t, r, v0, v1, i0, i1, l0, l1)| [t, r, v0, v1, i0, i1, l0, l1])
}

proptest! {
    #[test]
    fn any_requests_are_answered_as_their_direction_allows(
        speed in prop::sample::select(&[Speed::Full, Speed::High, Speed::Super][..]),
        requests in prop::collection::vec(any_setup(), 1..40),
    ) {
        let mut host = HostFixture::bot(speed);
        for setup in requests {
            let length = usize::from(u16::from_le_bytes([setup[6], setup[7]]));
            let sent: Vec<u8> = if setup[0] & 0x80 == 0 { alloc::vec![0; length] } else { Vec::new() };
            match host.control(setup, &sent) {
                Verdict::Data(bytes) => prop_assert!(setup[0] & 0x80 != 0 && bytes.len() <= length),
                Verdict::Done => prop_assert!(setup[0] & 0x80 == 0),
                Verdict::Stall => {}
            }
        }
    }
}
