//! USB: descriptors alone and end to end, setup packets, status words, tokens, the words of hubs; usbmon's header before an event.

use super::ROOM;
use wire::usb::hub::{
    HubDescriptor, HubKind, HubPortStatus, HubRequest, SuperSpeedHubDescriptor, report_of, reported_ports,
};
use wire::usb::*;
use wire::usbmon::UsbmonHeader;

/// Checks the whole family on these bytes.
pub fn check(bytes: &[u8]) {
    let mut out = [0; ROOM];
    round_trip!(bytes;
        SetupPacket; DeviceDescriptor; ConfigurationDescriptor; OtherSpeedConfigurationDescriptor;
        QualifierDescriptor; InterfaceDescriptor; EndpointDescriptor; SuperSpeedCompanion; PipeUsageDescriptor;
        BosDescriptor; Usb2ExtensionCapability; SuperSpeedCapability; ContainerIdCapability; ExitLatencies;
        DeviceStatus; InterfaceStatus; EndpointStatus; Token; UsbmonHeader;
        Descriptor => out; DeviceCapability => out; StringDescriptor => out; LanguageTable => out;
    );
    hubs(bytes);
    let walked = Descriptors::new(bytes).count();
    assert!(walked <= bytes.len() / 2 + 1);
}

fn hubs(bytes: &[u8]) {
    round_trip!(bytes; SuperSpeedHubDescriptor);
    if let Ok(hub) = HubDescriptor::decode(bytes) {
        let _ = hub.to_string();
        let (written, len) = hub.encode();
        assert_eq!(HubDescriptor::decode(&written[..len]), Ok(hub));
    }
    for kind in [HubKind::Usb2, HubKind::SuperSpeed] {
        if let Ok(status) = HubPortStatus::decode(bytes, kind) {
            let _ = status.to_string();
            assert_eq!(HubPortStatus::decode(&status.encode(kind), kind), Ok(status));
        }
    }
    if let Some(request) = SetupPacket::decode(bytes).ok().as_ref().and_then(HubRequest::decode) {
        let _ = request.to_string();
        assert_eq!(HubRequest::decode(&request.setup()), Some(request));
    }
    let ports = || reported_ports(bytes);
    assert!(ports().eq(reported_ports(&report_of(ports()))));
}
