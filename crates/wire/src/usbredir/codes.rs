//! The codes of usbredir 0.7: packet types, status, speed, endpoint types, and who may send what.

use super::{
    AllocBulkStreams, AltSettingStatus, BufferedBulkPacket, BulkPacket, BulkReceivingStatus,
    BulkStreamsStatus, Capabilities, Capability, ConfigurationStatus, ControlPacket, DeviceConnect,
    EndpointInfo, FreeBulkStreams, GetAltSetting, Hello, InterfaceInfo, InterruptPacket,
    InterruptReceivingStatus, IsoPacket, IsoStreamStatus, SetAltSetting, SetConfiguration,
    StartBulkReceiving, StartInterruptReceiving, StartIsoStream, StopBulkReceiving, StopInterruptReceiving,
    StopIsoStream,
};

code! {
    /// Type of a packet, the first field of its [`Header`](super::Header).
    pub enum PacketType: u32 {
        /// First packet of each side: version and capabilities.
        Hello = 0 => "hello",
        /// A device is there.
        DeviceConnect = 1 => "device_connect",
        /// The device is gone.
        DeviceDisconnect = 2 => "device_disconnect",
        /// Reset the device; not answered.
        Reset = 3 => "reset",
        /// The interfaces of the current configuration.
        InterfaceInfo = 4 => "interface_info",
        /// The endpoints of the current configuration and alternate settings.
        EndpointInfo = 5 => "ep_info",
        /// Select a configuration.
        SetConfiguration = 6 => "set_configuration",
        /// Ask for the current configuration.
        GetConfiguration = 7 => "get_configuration",
        /// Answers both of them.
        ConfigurationStatus = 8 => "configuration_status",
        /// Select an alternate setting.
        SetAltSetting = 9 => "set_alt_setting",
        /// Ask for the current alternate setting.
        GetAltSetting = 10 => "get_alt_setting",
        /// Answers both of them.
        AltSettingStatus = 11 => "alt_setting_status",
        /// Start an isochronous stream.
        StartIsoStream = 12 => "start_iso_stream",
        /// Stop an isochronous stream.
        StopIsoStream = 13 => "stop_iso_stream",
        /// Answers both of them, and reports a stream that stopped by itself.
        IsoStreamStatus = 14 => "iso_stream_status",
        /// Start to poll an interrupt IN endpoint.
        StartInterruptReceiving = 15 => "start_interrupt_receiving",
        /// Stop to poll it.
        StopInterruptReceiving = 16 => "stop_interrupt_receiving",
        /// Answers both of them, and reports a poll that stopped by itself.
        InterruptReceivingStatus = 17 => "interrupt_receiving_status",
        /// Allocate streams on bulk endpoints.
        AllocBulkStreams = 18 => "alloc_bulk_streams",
        /// Free them.
        FreeBulkStreams = 19 => "free_bulk_streams",
        /// Answers both of them.
        BulkStreamsStatus = 20 => "bulk_streams_status",
        /// Cancel the data packet with the same id.
        CancelDataPacket = 21 => "cancel_data_packet",
        /// The guest's filter refuses the device.
        FilterReject = 22 => "filter_reject",
        /// The filter of the sender.
        FilterFilter = 23 => "filter_filter",
        /// The guest has seen the disconnect.
        DeviceDisconnectAck = 24 => "device_disconnect_ack",
        /// Start to read ahead on a bulk IN endpoint.
        StartBulkReceiving = 25 => "start_bulk_receiving",
        /// Stop to read ahead.
        StopBulkReceiving = 26 => "stop_bulk_receiving",
        /// Answers both of them, and reports a read-ahead that stopped by itself.
        BulkReceivingStatus = 27 => "bulk_receiving_status",
        /// A control transfer, or its completion.
        ControlPacket = 100 => "control_packet",
        /// A bulk transfer, or its completion.
        BulkPacket = 101 => "bulk_packet",
        /// An isochronous packet.
        IsoPacket = 102 => "iso_packet",
        /// An interrupt packet, or its completion.
        InterruptPacket = 103 => "interrupt_packet",
        /// Bytes read ahead on a bulk IN endpoint.
        BufferedBulkPacket = 104 => "buffered_bulk_packet",
    }
}

code! {
    /// How a request or a transfer ended. In a request the field is 0.
    pub enum Status: u8 {
        /// Well.
        Success = 0 => "success",
        /// By a cancel.
        Cancelled = 1 => "cancelled",
        /// The packet type, a length or an endpoint was not valid.
        Invalid = 2 => "invalid",
        /// With an error on the bus or in the device.
        IoError = 3 => "I/O error",
        /// The endpoint is halted, or the request was refused.
        Stall = 4 => "stall",
        /// The device did not answer in time.
        Timeout = 5 => "timeout",
        /// The device sent more than was asked for.
        Babble = 6 => "babble",
    }
}

code! {
    /// Speed of a device.
    pub enum Speed: u8 {
        /// 1.5 Mbit/s.
        Low = 0 => "low speed",
        /// 12 Mbit/s.
        Full = 1 => "full speed",
        /// 480 Mbit/s.
        High = 2 => "high speed",
        /// 5 Gbit/s and more.
        Super = 3 => "SuperSpeed",
        /// Unknown to the host side.
        Untold = 255 => "untold speed",
    }
}

code! {
    /// Type of an endpoint: the USB transfer types, and one value for a place without an endpoint.
    pub enum EndpointType: u8 {
        /// Control; endpoint 0.
        Control = 0 => "control",
        /// Isochronous.
        Isochronous = 1 => "isochronous",
        /// Bulk.
        Bulk = 2 => "bulk",
        /// Interrupt.
        Interrupt = 3 => "interrupt",
        /// There is no such endpoint.
        Absent = 255 => "absent",
    }
}

/// A side of a redirection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Owns the device: here the virtual drive.
    UsbHost,
    /// Uses the device: here the virtual machine.
    UsbGuest,
}

impl PacketType {
    /// Bytes of the type's own header, `None` for an unknown type.
    pub const fn header_len(self, capabilities: Capabilities) -> Option<usize> {
        Some(match self {
            Self::Hello => Hello::LEN,
            Self::DeviceConnect => DeviceConnect::len(capabilities),
            Self::InterfaceInfo => InterfaceInfo::LEN,
            Self::EndpointInfo => EndpointInfo::len(capabilities),
            Self::SetConfiguration => SetConfiguration::LEN,
            Self::ConfigurationStatus => ConfigurationStatus::LEN,
            Self::SetAltSetting => SetAltSetting::LEN,
            Self::GetAltSetting => GetAltSetting::LEN,
            Self::AltSettingStatus => AltSettingStatus::LEN,
            Self::StartIsoStream => StartIsoStream::LEN,
            Self::StopIsoStream => StopIsoStream::LEN,
            Self::IsoStreamStatus => IsoStreamStatus::LEN,
            Self::StartInterruptReceiving => StartInterruptReceiving::LEN,
            Self::StopInterruptReceiving => StopInterruptReceiving::LEN,
            Self::InterruptReceivingStatus => InterruptReceivingStatus::LEN,
            Self::AllocBulkStreams => AllocBulkStreams::LEN,
            Self::FreeBulkStreams => FreeBulkStreams::LEN,
            Self::BulkStreamsStatus => BulkStreamsStatus::LEN,
            Self::StartBulkReceiving => StartBulkReceiving::LEN,
            Self::StopBulkReceiving => StopBulkReceiving::LEN,
            Self::BulkReceivingStatus => BulkReceivingStatus::LEN,
            Self::ControlPacket => ControlPacket::LEN,
            Self::BulkPacket => BulkPacket::len(capabilities),
            Self::IsoPacket => IsoPacket::LEN,
            Self::InterruptPacket => InterruptPacket::LEN,
            Self::BufferedBulkPacket => BufferedBulkPacket::LEN,
            Self::DeviceDisconnect
            | Self::Reset
            | Self::GetConfiguration
            | Self::CancelDataPacket
            | Self::FilterReject
            | Self::FilterFilter
            | Self::DeviceDisconnectAck => 0,
            Self::Unknown(_) => return None,
        })
    }

    /// Whether bytes may follow the type's own header.
    pub const fn has_payload(self) -> bool {
        matches!(
            self,
            Self::Hello
                | Self::FilterFilter
                | Self::ControlPacket
                | Self::BulkPacket
                | Self::IsoPacket
                | Self::InterruptPacket
                | Self::BufferedBulkPacket
        )
    }

    /// Whether `side` may send this type; an unknown one may not be sent.
    pub const fn may_come_from(self, side: Side) -> bool {
        match self {
            Self::Hello
            | Self::FilterFilter
            | Self::ControlPacket
            | Self::BulkPacket
            | Self::IsoPacket
            | Self::InterruptPacket => true,
            Self::DeviceConnect
            | Self::DeviceDisconnect
            | Self::InterfaceInfo
            | Self::EndpointInfo
            | Self::ConfigurationStatus
            | Self::AltSettingStatus
            | Self::IsoStreamStatus
            | Self::InterruptReceivingStatus
            | Self::BulkStreamsStatus
            | Self::BulkReceivingStatus
            | Self::BufferedBulkPacket => matches!(side, Side::UsbHost),
            Self::Reset
            | Self::SetConfiguration
            | Self::GetConfiguration
            | Self::SetAltSetting
            | Self::GetAltSetting
            | Self::StartIsoStream
            | Self::StopIsoStream
            | Self::StartInterruptReceiving
            | Self::StopInterruptReceiving
            | Self::AllocBulkStreams
            | Self::FreeBulkStreams
            | Self::CancelDataPacket
            | Self::FilterReject
            | Self::DeviceDisconnectAck
            | Self::StartBulkReceiving
            | Self::StopBulkReceiving => matches!(side, Side::UsbGuest),
            Self::Unknown(_) => false,
        }
    }

    /// The capability without which this type may not be sent.
    pub const fn requires(self) -> Option<Capability> {
        match self {
            Self::AllocBulkStreams | Self::FreeBulkStreams | Self::BulkStreamsStatus => {
                Some(Capability::BulkStreams)
            }
            Self::FilterReject | Self::FilterFilter => Some(Capability::Filter),
            Self::DeviceDisconnectAck => Some(Capability::DeviceDisconnectAck),
            Self::StartBulkReceiving
            | Self::StopBulkReceiving
            | Self::BulkReceivingStatus
            | Self::BufferedBulkPacket => Some(Capability::BulkReceiving),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    fn known() -> impl Iterator<Item = PacketType> {
        (0..=27).chain(100..=104).map(PacketType::from)
    }

    #[test]
    fn there_are_33_packet_types() {
        assert_eq!(known().filter(|kind| !matches!(kind, PacketType::Unknown(_))).count(), 33);
        for unknown in [28, 99, 105, u32::MAX] {
            assert_eq!(PacketType::from(unknown), PacketType::Unknown(unknown));
            assert_eq!(u32::from(PacketType::from(unknown)), unknown);
        }
    }

    #[test]
    fn an_unknown_type_has_no_layout_and_no_sender() {
        let unknown = PacketType::from(28);
        assert_eq!(unknown.header_len(Capabilities::NONE), None);
        assert!(!unknown.may_come_from(Side::UsbHost) && !unknown.may_come_from(Side::UsbGuest));
        assert_eq!(unknown.to_string(), "unknown (0x1c)");
    }

    #[test]
    fn requests_come_from_the_guest_and_answers_from_the_host() {
        let from = |side| known().filter(move |kind| kind.may_come_from(side)).map(u32::from);
        let guest = [0, 3, 6, 7, 9, 10, 12, 13, 15, 16, 18, 19, 21, 22, 23, 24, 25, 26, 100, 101, 102, 103];
        assert!(from(Side::UsbGuest).eq(guest));
        let host = [0, 1, 2, 4, 5, 8, 11, 14, 17, 20, 23, 27, 100, 101, 102, 103, 104];
        assert!(from(Side::UsbHost).eq(host));
    }

    #[test]
    fn type_headers_have_the_lengths_of_the_protocol() {
        let none = [64, 8, 0, 0, 132, 96, 1, 0, 2, 2, 1, 3, 3, 1, 2, 1, 1, 2, 8, 4, 9, 0, 0, 0, 0, 10, 5, 6];
        let data = [10, 8, 4, 4, 10];
        for (kind, len) in known().zip(none.into_iter().chain(data)) {
            assert_eq!(kind.header_len(Capabilities::NONE), Some(len), "{kind}");
        }
        let all = Capabilities::from(0xff);
        assert_eq!(PacketType::DeviceConnect.header_len(all), Some(10));
        assert_eq!(PacketType::EndpointInfo.header_len(all), Some(288));
        assert_eq!(PacketType::BulkPacket.header_len(all), Some(10));
    }

    #[test]
    fn only_seven_types_carry_a_payload() {
        let payload = known().filter(|kind| kind.has_payload()).map(u32::from);
        assert!(payload.eq([0, 23, 100, 101, 102, 103, 104]));
    }

    #[test]
    fn optional_types_name_their_capability() {
        let optional = known().filter_map(|kind| Some((u32::from(kind), kind.requires()? as u32)));
        let table =
            [(18, 0), (19, 0), (20, 0), (22, 2), (23, 2), (24, 3), (25, 7), (26, 7), (27, 7), (104, 7)];
        assert!(optional.eq(table));
    }

    #[test]
    fn status_and_speed_codes() {
        let names = [0, 1, 2, 3, 4, 5, 6, 7].map(|code| Status::from(code).to_string());
        let expected =
            ["success", "cancelled", "invalid", "I/O error", "stall", "timeout", "babble", "unknown (0x07)"];
        assert_eq!(names, expected);
        assert_eq!(u8::from(Speed::Super), 3);
        assert_eq!(u8::from(Speed::High), 2);
        assert_eq!(EndpointType::from(2), EndpointType::Bulk);
        assert_eq!(EndpointType::from(255), EndpointType::Absent);
    }
}
