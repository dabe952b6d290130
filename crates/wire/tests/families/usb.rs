//! USB: descriptors alone and end to end, setup packets, status words, tokens; usbmon's header before an event.

use super::ROOM;
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
    let walked = Descriptors::new(bytes).count();
    assert!(walked <= bytes.len() / 2 + 1);
}
