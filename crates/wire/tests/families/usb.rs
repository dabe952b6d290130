//! USB: descriptors alone and end to end, setup packets, status words.

use super::ROOM;
use wire::usb::*;

/// Checks the whole family on these bytes.
pub fn check(bytes: &[u8]) {
    let mut out = [0; ROOM];
    round_trip!(bytes;
        SetupPacket; DeviceDescriptor; ConfigurationDescriptor; OtherSpeedConfigurationDescriptor;
        QualifierDescriptor; InterfaceDescriptor; EndpointDescriptor; SuperSpeedCompanion; PipeUsageDescriptor;
        BosDescriptor; Usb2ExtensionCapability; SuperSpeedCapability; ContainerIdCapability; ExitLatencies;
        DeviceStatus; InterfaceStatus; EndpointStatus;
        Descriptor => out; DeviceCapability => out; StringDescriptor => out; LanguageTable => out;
    );
    let walked = Descriptors::new(bytes).count();
    assert!(walked <= bytes.len() / 2 + 1);
}
