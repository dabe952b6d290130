//! The descriptors of a hub (USB 2.0 clause 11.23, USB 3.2 clause 10.15).

use super::{POWER_GOOD_2MS, Shape};
use crate::link::usb2::Translators;
use wire::usb::hub::{HubDescriptor, HubKind, SuperSpeedHubDescriptor};
use wire::usb::{
    BcdVersion, BosDescriptor, ClassCode, ConfigurationDescriptor, ContainerIdCapability, DeviceDescriptor,
    Direction, EndpointAddress, EndpointAttributes, EndpointDescriptor, InterfaceDescriptor, SpeedSet,
    SuperSpeedCapability, SuperSpeedCompanion, Usb2ExtensionCapability,
};

/// The status change endpoint.
pub const STATUS_CHANGE: EndpointAddress = EndpointAddress::at::<1>(Direction::In);
/// Power switched for each port, no over-current protection (wHubCharacteristics bits 1:0 and 4:3).
const CHARACTERISTICS: u16 = 0x0011;
/// Header decode latency in units of 100 ns. On an awake link it is part of the hub's delay, so a
/// faster hub reports less.
const HEADER_DECODE_100NS: u16 = 1;
/// Interrupt transfers of notifications (bits 1:0 and 5:4).
const NOTIFICATION: EndpointAttributes = EndpointAttributes(0x13);
/// Interrupt transfers.
const INTERRUPT: EndpointAttributes = EndpointAttributes(0x03);

pub(super) fn device(shape: &Shape) -> Vec<u8> {
    let (version, class, max_packet_size_0) = match shape.kind {
        HubKind::SuperSpeed => (0x0320, ClassCode::HUB_SUPER_SPEED, 9),
        HubKind::Usb2 => match shape.translators {
            Some(Translators::Each) => (0x0200, ClassCode::HUB_TRANSLATORS, 64),
            Some(Translators::One) => (0x0200, ClassCode::HUB_ONE_TRANSLATOR, 64),
            None => (0x0110, ClassCode::HUB, 64),
        },
    };
    let device = DeviceDescriptor {
        usb_version: BcdVersion(version),
        class,
        max_packet_size_0,
        vendor: 0x1209,
        product: 0x0001,
        device_version: BcdVersion(0x0100),
        manufacturer_string: 0,
        product_string: 0,
        serial_string: 0,
        configurations: 1,
    };
    device.encode().to_vec()
}

pub(super) fn configuration(shape: &Shape) -> Vec<u8> {
    let mut rest = Vec::new();
    let protocols: &[u8] = match shape.translators {
        Some(Translators::Each) => &[1, 2],
        _ => &[0],
    };
    for (alternate, protocol) in (0..).zip(protocols) {
        let class = ClassCode { protocol: *protocol, ..ClassCode::HUB };
        let interface = InterfaceDescriptor { number: 0, alternate, endpoints: 1, class, string: 0 };
        rest.extend(interface.encode());
        let (attributes, max_packet_size, interval) = match shape.kind {
            // 2^7 and 2^11 times 125 us, and 255 ms.
            HubKind::SuperSpeed => (NOTIFICATION, shape.report_bytes(), 8),
            HubKind::Usb2 => {
                let interval = if shape.translators.is_some() { 12 } else { 255 };
                (INTERRUPT, shape.report_bytes(), interval)
            }
        };
        rest.extend(
            EndpointDescriptor { address: STATUS_CHANGE, attributes, max_packet_size, interval }.encode(),
        );
        if shape.kind == HubKind::SuperSpeed {
            let companion = SuperSpeedCompanion { max_burst: 0, attributes: 0, bytes_per_interval: 2 };
            rest.extend(companion.encode());
        }
    }
    let head = ConfigurationDescriptor {
        total_len: (ConfigurationDescriptor::LEN + rest.len()) as u16,
        interfaces: 1,
        value: 1,
        string: 0,
        self_powered: true,
        remote_wakeup: true,
        max_power: 0,
    };
    [&head.encode()[..], &rest].concat()
}

/// USB 2.0 extension, SuperSpeed, container (clause 10.15.1).
pub(super) fn object_store() -> Vec<u8> {
    let extension = Usb2ExtensionCapability { lpm: true, ..Default::default() }.encode();
    let speeds = SuperSpeedCapability {
        ltm: false,
        speeds: SpeedSet::FULL.union(SpeedSet::HIGH).union(SpeedSet::SUPER),
        full_function_from: 1,
        u1_exit_latency_us: 10,
        u2_exit_latency_us: 2047,
    };
    let container = ContainerIdCapability::of_version_8(0x1209_0001).encode();
    let rest = [&extension[..], &speeds.encode(), &container].concat();
    let head = BosDescriptor { total_len: (BosDescriptor::LEN + rest.len()) as u16, capabilities: 3 };
    [&head.encode()[..], &rest].concat()
}

pub(super) fn hub(shape: &Shape) -> Vec<u8> {
    let delay_ns = u16::try_from(shape.delay.as_ns()).unwrap_or(u16::MAX);
    match shape.kind {
        HubKind::SuperSpeed => SuperSpeedHubDescriptor {
            ports: shape.ports,
            characteristics: CHARACTERISTICS,
            power_good_2ms: POWER_GOOD_2MS,
            current_4ma: 0,
            header_decode_100ns: HEADER_DECODE_100NS.min(delay_ns.div_ceil(100)) as u8,
            delay_ns,
            fixed: 0,
        }
        .encode()
        .to_vec(),
        HubKind::Usb2 => {
            let hub = HubDescriptor {
                ports: shape.ports,
                characteristics: CHARACTERISTICS,
                power_good_2ms: POWER_GOOD_2MS,
                current_ma: 0,
                fixed: 0,
            };
            let (bytes, len) = hub.encode();
            bytes[..len].to_vec()
        }
    }
}
