//! Requests of the hub class with literal bytes, and what ports do by the clock.

use super::*;

const NOW: Instant = Instant::ZERO;

fn super_speed() -> HubDevice {
    super_speed_of(Duration::from_ns(320))
}

fn super_speed_of(delay: Duration) -> HubDevice {
    HubDevice::new(Shape { kind: HubKind::SuperSpeed, ports: 4, delay, tier: 1, translators: None })
}

fn high_speed(translators: Translators) -> HubDevice {
    let delay = Duration::ZERO;
    HubDevice::new(Shape { kind: HubKind::Usb2, ports: 7, delay, tier: 0, translators: Some(translators) })
}

fn ask(hub: &mut HubDevice, at: Instant, setup: [u8; 8]) -> Verdict {
    hub.handle_control(at, SetupPacket::from(setup))
}

fn bytes(hub: &mut HubDevice, setup: [u8; 8]) -> Vec<u8> {
    match ask(hub, NOW, setup) {
        Verdict::Data(bytes) => bytes,
        verdict => panic!("{verdict:?}"),
    }
}

fn at_ms(ms: u64) -> Instant {
    NOW + Duration::from_ms(ms)
}

const SET_CONFIGURATION: [u8; 8] = [0x00, 0x09, 1, 0, 0, 0, 0, 0];

const fn port_status(port: u8) -> [u8; 8] {
    [0xa3, 0, 0, 0, port, 0, 4, 0]
}

#[test]
fn a_hub_decodes_a_header_in_no_more_than_its_delay() {
    // bHubHdrDecLat in units of 100 ns, and wHubDelay in ns.
    for (delay, expected) in [(0, [0, 0, 0]), (1, [1, 1, 0]), (100, [1, 100, 0]), (400, [1, 0x90, 1])] {
        let mut hub = super_speed_of(Duration::from_ns(delay));
        assert_eq!(ask(&mut hub, NOW, SET_CONFIGURATION), Verdict::Done);
        assert_eq!(bytes(&mut hub, [0xa0, 6, 0, 0x2a, 0, 0, 12, 0])[7..10], expected, "{delay} ns");
    }
}

#[test]
fn a_hub_of_superspeed_says_what_it_is() {
    let mut hub = super_speed();
    let device = [18, 1, 0x20, 0x03, 9, 0, 3, 9, 0x09, 0x12, 1, 0, 0, 1, 0, 0, 0, 1];
    assert_eq!(bytes(&mut hub, [0x80, 6, 0, 1, 0, 0, 18, 0]), device);
    let configuration = [
        9, 2, 31, 0, 1, 1, 0, 0xe0, 0, // self-powered, wakes up
        9, 4, 0, 0, 1, 9, 0, 0, 0, // a hub
        7, 5, 0x81, 0x13, 2, 0, 8, // interrupt IN 1, two bytes, 16 ms
        6, 0x30, 0, 0, 2, 0,
    ];
    assert_eq!(bytes(&mut hub, [0x80, 6, 0, 2, 0, 0, 0, 1]), configuration);
    assert_eq!(bytes(&mut hub, [0x80, 6, 0, 2, 0, 0, 9, 0]), configuration[..9]);
    let store = bytes(&mut hub, [0x80, 6, 0, 15, 0, 0, 0, 1]);
    assert_eq!(store[..12], [5, 15, 42, 0, 3, 7, 16, 2, 2, 0, 0, 0]);
    assert_eq!(store[12..22], [10, 16, 3, 0, 0x0e, 0, 1, 10, 0xff, 0x07]);
    assert_eq!(store[22..25], [20, 16, 4]);
    // The class answers when there is a configuration.
    let hub_descriptor = [0xa0, 6, 0, 0x2a, 0, 0, 12, 0];
    assert_eq!(ask(&mut hub, NOW, hub_descriptor), Verdict::Stall);
    assert_eq!(ask(&mut hub, NOW, SET_CONFIGURATION), Verdict::Done);
    assert_eq!(bytes(&mut hub, hub_descriptor), [12, 0x2a, 4, 0x11, 0, 10, 0, 1, 0x40, 1, 0, 0]);
    assert_eq!(bytes(&mut hub, [0xa0, 0, 0, 0, 0, 0, 4, 0]), [0, 0, 0, 0]);
    assert_eq!(bytes(&mut hub, [0x80, 0, 0, 0, 0, 0, 2, 0]), [1, 0]);
    // A descriptor of USB 2.0, a sixth tier, a fifth port, a port without a number.
    for wrong in
        [[0xa0, 6, 0, 0x29, 0, 0, 9, 0], [0x20, 12, 5, 0, 0, 0, 0, 0], port_status(5), port_status(0)]
    {
        assert_eq!(ask(&mut hub, NOW, wrong), Verdict::Stall, "{wrong:02x?}");
    }
}

#[test]
fn a_hub_of_usb_2_says_what_it_is() {
    let mut hub = high_speed(Translators::Each);
    assert_eq!(bytes(&mut hub, [0x80, 6, 0, 1, 0, 0, 8, 0]), [18, 1, 0, 2, 9, 0, 2, 64]);
    let configuration = [
        9, 2, 41, 0, 1, 1, 0, 0xe0, 0, //
        9, 4, 0, 0, 1, 9, 0, 1, 0, 7, 5, 0x81, 3, 1, 0, 12, // one translator
        9, 4, 0, 1, 1, 9, 0, 2, 0, 7, 5, 0x81, 3, 1, 0, 12, // one for each port
    ];
    assert_eq!(bytes(&mut hub, [0x80, 6, 0, 2, 0, 0, 0, 1]), configuration);
    assert_eq!(ask(&mut hub, NOW, [0x80, 6, 0, 15, 0, 0, 5, 0]), Verdict::Stall);
    ask(&mut hub, NOW, SET_CONFIGURATION);
    assert_eq!(bytes(&mut hub, [0xa0, 6, 0, 0x29, 0, 0, 11, 0]), [9, 0x29, 7, 0x11, 0, 10, 0, 0, 0xff]);
    assert_eq!(ask(&mut hub, NOW, [1, 11, 1, 0, 0, 0, 0, 0]), Verdict::Done);
    assert_eq!(ask(&mut hub, NOW, [1, 11, 2, 0, 0, 0, 0, 0]), Verdict::Stall);
    let mut single = high_speed(Translators::One);
    assert_eq!(bytes(&mut single, [0x80, 6, 0, 1, 0, 0, 7, 0]), [18, 1, 0, 2, 9, 0, 1]);
}

/// A hub that is configured, with somebody at port 2, whose port has power since time 0.
fn powered(mut hub: HubDevice, speed: HubPortSpeed) -> HubDevice {
    hub.plug(NOW, 2, speed);
    ask(&mut hub, NOW, SET_CONFIGURATION);
    ask(&mut hub, NOW, [0x20, 12, 1, 0, 0, 0, 0, 0]);
    assert_eq!(hub.poll_timeout(), None, "without power nothing is noticed");
    assert_eq!(ask(&mut hub, NOW, [0x23, 3, 8, 0, 2, 0, 0, 0]), Verdict::Done);
    hub
}

#[test]
fn a_port_of_superspeed_trains_in_20_ms_and_is_reset_in_12() {
    let mut hub = powered(super_speed(), HubPortSpeed::Super);
    // Powered, link polling.
    assert_eq!(bytes(&mut hub, port_status(2)), [0xe0, 0x02, 0, 0]);
    assert_eq!((hub.poll_timeout(), hub.report()), (Some(at_ms(20)), None));
    hub.handle_timeout(at_ms(20));
    assert_eq!(hub.poll_effect(), Some(HubEffect::Up { port: 2, is_reset: false }));
    assert_eq!(hub.report(), Some([0x04, 0]));
    // Connected, enabled, U0, powered, 5 Gb/s; the connection has changed, until that is noted.
    assert_eq!(bytes(&mut hub, port_status(2)), [0x03, 0x02, 0x01, 0x00]);
    assert_eq!(ask(&mut hub, at_ms(20), [0x23, 1, 16, 0, 2, 0, 0, 0]), Verdict::Done);
    assert_eq!(hub.report(), None);
    assert_eq!(ask(&mut hub, at_ms(30), [0x23, 3, 4, 0, 2, 0, 0, 0]), Verdict::Done);
    assert_eq!(hub.poll_effect(), Some(HubEffect::Down(2)));
    assert_eq!(hub.poll_timeout(), Some(at_ms(42)));
    hub.handle_timeout(at_ms(42));
    assert_eq!(hub.poll_effect(), Some(HubEffect::Up { port: 2, is_reset: true }));
    assert_eq!(bytes(&mut hub, port_status(2)), [0x03, 0x02, 0x10, 0x00]);
    hub.unplug(2);
    assert_eq!(hub.poll_effect(), Some(HubEffect::Down(2)));
    // Powered, Rx.Detect; connection and reset have changed.
    assert_eq!(bytes(&mut hub, port_status(2)), [0xa0, 0x02, 0x11, 0x00]);
}

#[test]
fn a_port_of_usb_2_is_enabled_by_a_reset_of_10_ms() {
    let mut hub = powered(high_speed(Translators::One), HubPortSpeed::High);
    assert_eq!(bytes(&mut hub, port_status(2)), [0x01, 0x05, 0x01, 0x00]);
    assert_eq!(hub.report(), Some([0x04, 0]));
    assert_eq!(ask(&mut hub, at_ms(100), [0x23, 3, 4, 0, 2, 0, 0, 0]), Verdict::Done);
    assert_eq!(bytes(&mut hub, port_status(2)), [0x11, 0x05, 0x01, 0x00]);
    assert_eq!(hub.poll_timeout(), Some(at_ms(110)));
    hub.handle_timeout(at_ms(110));
    assert_eq!(bytes(&mut hub, port_status(2)), [0x03, 0x05, 0x11, 0x00]);
    // CLEAR_FEATURE (PORT_ENABLE), and a feature of SuperSpeed, which it does not have.
    assert_eq!(ask(&mut hub, at_ms(120), [0x23, 1, 1, 0, 2, 0, 0, 0]), Verdict::Done);
    assert_eq!(bytes(&mut hub, port_status(2))[0], 0x01);
    assert_eq!(ask(&mut hub, at_ms(120), [0x23, 3, 28, 0, 2, 0, 0, 0]), Verdict::Stall);
}

#[test]
fn a_hub_that_does_not_know_how_deep_it_is_leads_nowhere() {
    let mut hub = super_speed();
    hub.plug(NOW, 2, HubPortSpeed::Super);
    ask(&mut hub, NOW, SET_CONFIGURATION);
    ask(&mut hub, NOW, [0x23, 3, 8, 0, 2, 0, 0, 0]);
    hub.handle_timeout(at_ms(20));
    assert_eq!(hub.poll_effect(), None);
    // It is behind one hub, and not behind two.
    assert_eq!(ask(&mut hub, NOW, [0x20, 12, 2, 0, 0, 0, 0, 0]), Verdict::Done);
    assert_eq!(hub.poll_effect(), None);
    ask(&mut hub, NOW, [0x20, 12, 1, 0, 0, 0, 0, 0]);
    assert_eq!(hub.poll_effect(), Some(HubEffect::Up { port: 2, is_reset: false }));
}

#[test]
fn a_hub_that_was_reset_has_forgotten_its_ports() {
    let mut hub = powered(super_speed(), HubPortSpeed::Super);
    hub.handle_timeout(at_ms(20));
    while hub.poll_effect().is_some() {}
    hub.restart();
    assert_eq!(hub.poll_effect(), Some(HubEffect::Down(2)));
    assert_eq!((hub.report(), hub.is_configured()), (None, false));
    ask(&mut hub, NOW, SET_CONFIGURATION);
    // Off, its link disabled, no one noticed.
    assert_eq!(bytes(&mut hub, port_status(2)), [0x80, 0x00, 0, 0]);
}
