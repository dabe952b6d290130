//! Requests of the hub class (USB 2.0 clause 11.24.2, USB 3.2 clause 10.16.2).

use crate::usb::{DescriptorKind, Direction, EndpointAddress, Recipient, RequestKind, SetupPacket};
use core::fmt;

code! {
    /// `bRequest` of a class request to a hub (USB 3.2 table 10-8).
    pub enum HubRequestCode: u8 {
        /// Status of hub or port.
        GetStatus = 0x00 => "GET_STATUS",
        /// A feature off, or a change noted.
        ClearFeature = 0x01 => "CLEAR_FEATURE",
        /// A feature on.
        SetFeature = 0x03 => "SET_FEATURE",
        /// The hub descriptor.
        GetDescriptor = 0x06 => "GET_DESCRIPTOR",
        /// A transaction translator forgets what it has of an endpoint (USB 2.0).
        ClearTtBuffer = 0x08 => "CLEAR_TT_BUFFER",
        /// Resets a transaction translator (USB 2.0).
        ResetTt = 0x09 => "RESET_TT",
        /// The vendor-specific state of a translator (USB 2.0).
        GetTtState = 0x0a => "GET_TT_STATE",
        /// A translator stops, so that its state can be read (USB 2.0).
        StopTt = 0x0b => "STOP_TT",
        /// How many hubs are between the hub and the root, at SuperSpeed.
        SetHubDepth = 0x0c => "SET_HUB_DEPTH",
    }
}

code! {
    /// A feature of the hub itself (USB 3.2 table 10-9).
    pub enum HubFeature: u16 {
        /// Local power was lost or is back.
        LocalPowerChange = 0x0000 => "C_HUB_LOCAL_POWER",
        /// Over-current of the hub as a whole.
        OverCurrentChange = 0x0001 => "C_HUB_OVER_CURRENT",
    }
}

code! {
    /// A feature of a port (USB 2.0 table 11-17, USB 3.2 table 10-9).
    pub enum PortFeature: u16 {
        /// Enabled; can be cleared (USB 2.0).
        Enable = 1 => "PORT_ENABLE",
        /// Suspended (USB 2.0).
        Suspend = 2 => "PORT_SUSPEND",
        /// A reset; of SuperSpeed a hot one.
        Reset = 4 => "PORT_RESET",
        /// The state of the link, which the selector says.
        LinkState = 5 => "PORT_LINK_STATE",
        /// Power.
        Power = 8 => "PORT_POWER",
        /// Somebody came or went.
        ConnectionChange = 16 => "C_PORT_CONNECTION",
        /// The hub disabled it (USB 2.0).
        EnableChange = 17 => "C_PORT_ENABLE",
        /// It was resumed (USB 2.0).
        SuspendChange = 18 => "C_PORT_SUSPEND",
        /// Over-current began or ended.
        OverCurrentChange = 19 => "C_PORT_OVER_CURRENT",
        /// A reset is over.
        ResetChange = 20 => "C_PORT_RESET",
        /// The selector is PORT_U1_TIMEOUT.
        U1Timeout = 23 => "PORT_U1_TIMEOUT",
        /// The selector is PORT_U2_TIMEOUT.
        U2Timeout = 24 => "PORT_U2_TIMEOUT",
        /// The link state has changed.
        LinkStateChange = 25 => "C_PORT_LINK_STATE",
        /// The link did not come to a configuration.
        ConfigErrorChange = 26 => "C_PORT_CONFIG_ERROR",
        /// A warm reset.
        WarmReset = 28 => "BH_PORT_RESET",
        /// A warm reset is over.
        WarmResetChange = 29 => "C_BH_PORT_RESET",
    }
}

/// A class request to a hub.
///
/// ```text
///                      bmRequestType  bRequest  wValue       wIndex                        wLength
///  GetDescriptor       A0             06        type << 8    0                             length
///  GetStatus           A0             00        0            0                             4
///  ClearFeature        20             01        feature      0                             0
///  GetPortStatus       A3             00        0            port                          4
///  SetPortFeature      23             03        feature      selector 15:8, port 7:0       0
///  ClearPortFeature    23             01        feature      port                          0
///  SetDepth            20             0C        depth        0                             0
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HubRequest {
    /// The hub descriptor.
    GetDescriptor {
        /// 29h or 2Ah.
        kind: DescriptorKind,
        /// Bytes at most.
        length: u16,
    },
    /// Local power and over-current.
    GetStatus,
    /// A change of the hub is noted.
    ClearFeature(HubFeature),
    /// Status and changes of a port.
    GetPortStatus {
        /// From 1.
        port: u8,
    },
    /// A feature of a port on.
    SetPortFeature {
        /// From 1.
        port: u8,
        /// Which.
        feature: PortFeature,
        /// Time-out or link state.
        selector: u8,
    },
    /// A feature of a port off, or a change noted.
    ClearPortFeature {
        /// From 1.
        port: u8,
        /// Which.
        feature: PortFeature,
    },
    /// A transaction translator forgets what it has of an endpoint.
    ClearTtBuffer {
        /// From 1 where each port has a translator, 1 where all have one.
        port: u8,
        /// Of which endpoint.
        buffer: TtBuffer,
    },
    /// Hubs above it.
    SetDepth(u16),
}

/// Buffer of a transaction translator for an endpoint that is not periodic (USB 2.0 clause 11.24.2.3, table 11-18).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TtBuffer {
    /// The address of the device, 0 to 127.
    pub address: u8,
    /// The endpoint; of endpoint 0 either direction.
    pub endpoint: EndpointAddress,
}

impl TtBuffer {
    /// `wValue`.
    fn encode(self) -> u16 {
        let kind = if self.endpoint.number() == 0 { CONTROL } else { BULK };
        let direction = match self.endpoint.direction() {
            Direction::In => 1,
            Direction::Out => 0,
        };
        u16::from(self.endpoint.number()) | u16::from(self.address & 0x7f) << 4 | kind << 11 | direction << 15
    }

    /// `None` if it is no endpoint, or a periodic one.
    fn decode(value: u16) -> Option<Self> {
        let direction = if value >> 15 == 1 { Direction::In } else { Direction::Out };
        let endpoint = EndpointAddress::new((value & 0x0f) as u8, direction)?;
        let buffer = Self { address: (value >> 4 & 0x7f) as u8, endpoint };
        (buffer.encode() == value).then_some(buffer)
    }
}

/// Types of endpoints in bits 12:11.
const CONTROL: u16 = 0;
const BULK: u16 = 2;

impl HubRequest {
    /// Decodes a setup packet. Returns `None` if it is not a request of the hub class, or not one that is known here.
    pub fn decode(setup: &SetupPacket) -> Option<Self> {
        use HubRequestCode as Code;
        if setup.kind != RequestKind::Class {
            return None;
        }
        let [port, selector] = setup.index.to_le_bytes();
        let feature = PortFeature::from(setup.value);
        match (setup.request.into(), setup.recipient, setup.direction) {
            (Code::GetDescriptor, Recipient::Device, Direction::In) => {
                Some(Self::GetDescriptor { kind: setup.descriptor().0, length: setup.length })
            }
            (Code::GetStatus, Recipient::Device, Direction::In) => Some(Self::GetStatus),
            (Code::ClearFeature, Recipient::Device, Direction::Out) => {
                Some(Self::ClearFeature(setup.value.into()))
            }
            (Code::SetHubDepth, Recipient::Device, Direction::Out) => Some(Self::SetDepth(setup.value)),
            (Code::GetStatus, Recipient::Other, Direction::In) => Some(Self::GetPortStatus { port }),
            (Code::SetFeature, Recipient::Other, Direction::Out) => {
                Some(Self::SetPortFeature { port, feature, selector })
            }
            (Code::ClearFeature, Recipient::Other, Direction::Out) => {
                Some(Self::ClearPortFeature { port, feature })
            }
            (Code::ClearTtBuffer, Recipient::Other, Direction::Out) => {
                Some(Self::ClearTtBuffer { port, buffer: TtBuffer::decode(setup.value)? })
            }
            _ => None,
        }
    }

    /// The setup packet.
    pub fn setup(&self) -> SetupPacket {
        use HubRequestCode as Code;
        let packet = |request: Code, recipient, (value, index), length: u16| SetupPacket {
            // Bytes may be asked for, and be none.
            direction: match request {
                Code::GetDescriptor | Code::GetStatus => Direction::In,
                _ => Direction::Out,
            },
            kind: RequestKind::Class,
            recipient,
            request: request.into(),
            value,
            index,
            length,
        };
        let (hub, other) = (Recipient::Device, Recipient::Other);
        match *self {
            Self::GetDescriptor { kind, length } => {
                let value = u16::from_be_bytes([kind.into(), 0]);
                packet(Code::GetDescriptor, hub, (value, 0), length)
            }
            Self::GetStatus => packet(Code::GetStatus, hub, (0, 0), 4),
            Self::ClearFeature(feature) => packet(Code::ClearFeature, hub, (feature.into(), 0), 0),
            Self::GetPortStatus { port } => packet(Code::GetStatus, other, (0, port.into()), 4),
            Self::SetPortFeature { port, feature, selector } => {
                packet(Code::SetFeature, other, (feature.into(), u16::from_le_bytes([port, selector])), 0)
            }
            Self::ClearPortFeature { port, feature } => {
                packet(Code::ClearFeature, other, (feature.into(), port.into()), 0)
            }
            Self::ClearTtBuffer { port, buffer } => {
                packet(Code::ClearTtBuffer, other, (buffer.encode(), port.into()), 0)
            }
            Self::SetDepth(depth) => packet(Code::SetHubDepth, hub, (depth, 0), 0),
        }
    }
}

impl fmt::Display for HubRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::GetDescriptor { kind, .. } => write!(f, "GET_DESCRIPTOR {kind}"),
            Self::GetStatus => f.write_str("GET_STATUS of the hub"),
            Self::ClearFeature(feature) => write!(f, "CLEAR_FEATURE {feature} of the hub"),
            Self::GetPortStatus { port } => write!(f, "GET_STATUS of port {port}"),
            Self::SetPortFeature { port, feature, selector: 0 } => {
                write!(f, "SET_FEATURE {feature} of port {port}")
            }
            Self::SetPortFeature { port, feature, selector } => {
                write!(f, "SET_FEATURE {feature} {selector} of port {port}")
            }
            Self::ClearPortFeature { port, feature } => write!(f, "CLEAR_FEATURE {feature} of port {port}"),
            Self::ClearTtBuffer { port, buffer: TtBuffer { address, endpoint } } => {
                write!(f, "CLEAR_TT_BUFFER of device {address} endpoint {endpoint}, port {port}")
            }
            Self::SetDepth(depth) => write!(f, "SET_HUB_DEPTH {depth}"),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    #[test]
    fn literal_bytes_both_ways() {
        let cases = [
            (
                HubRequest::GetDescriptor { kind: DescriptorKind::SuperSpeedHub, length: 12 },
                [0xa0, 0x06, 0x00, 0x2a, 0x00, 0x00, 0x0c, 0x00],
            ),
            (
                HubRequest::GetDescriptor { kind: DescriptorKind::Hub, length: 0 },
                [0xa0, 0x06, 0x00, 0x29, 0x00, 0x00, 0x00, 0x00],
            ),
            (HubRequest::GetStatus, [0xa0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x04, 0x00]),
            (HubRequest::ClearFeature(HubFeature::OverCurrentChange), [0x20, 0x01, 0x01, 0, 0, 0, 0, 0]),
            (HubRequest::SetDepth(2), [0x20, 0x0c, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00]),
            (HubRequest::GetPortStatus { port: 3 }, [0xa3, 0x00, 0x00, 0x00, 0x03, 0x00, 0x04, 0x00]),
            (
                HubRequest::SetPortFeature { port: 3, feature: PortFeature::Power, selector: 0 },
                [0x23, 0x03, 0x08, 0x00, 0x03, 0x00, 0x00, 0x00],
            ),
            (
                HubRequest::SetPortFeature { port: 1, feature: PortFeature::LinkState, selector: 3 },
                [0x23, 0x03, 0x05, 0x00, 0x01, 0x03, 0x00, 0x00],
            ),
            (
                HubRequest::ClearPortFeature { port: 15, feature: PortFeature::ResetChange },
                [0x23, 0x01, 0x14, 0x00, 0x0f, 0x00, 0x00, 0x00],
            ),
            (
                // Bulk, from device 5 by endpoint 1.
                HubRequest::ClearTtBuffer {
                    port: 2,
                    buffer: TtBuffer { address: 5, endpoint: EndpointAddress::at::<1>(Direction::In) },
                },
                [0x23, 0x08, 0x51, 0x90, 0x02, 0x00, 0x00, 0x00],
            ),
        ];
        for (request, bytes) in cases {
            assert_eq!(request.setup().encode(), bytes, "{request}");
            assert_eq!(HubRequest::decode(&SetupPacket::from(bytes)), Some(request));
        }
    }

    #[test]
    fn what_is_of_another_kind_is_none() {
        // GET_STATUS of a device, a class request of an interface, SET_DEPTH the wrong way, a buffer of an interrupt endpoint.
        for bytes in [
            [0x80, 0, 0, 0, 0, 0, 2, 0],
            [0x21, 0xff, 0, 0, 0, 0, 0, 0],
            [0xa0, 0x0c, 2, 0, 0, 0, 0, 0],
            [0x23, 0x08, 0x51, 0x98, 2, 0, 0, 0],
        ] {
            assert_eq!(HubRequest::decode(&SetupPacket::from(bytes)), None);
        }
    }

    #[test]
    fn a_request_is_one_line() {
        let reset = HubRequest::SetPortFeature { port: 2, feature: PortFeature::Reset, selector: 0 };
        assert_eq!(reset.to_string(), "SET_FEATURE PORT_RESET of port 2");
    }

    proptest! {
        #[test]
        fn any_setup_decodes_or_does_not(bytes: [u8; 8]) {
            if let Some(request) = HubRequest::decode(&SetupPacket::from(bytes)) {
                let _ = request.to_string();
                prop_assert_eq!(HubRequest::decode(&request.setup()), Some(request));
            }
        }

        #[test]
        fn requests_of_hubs_are_decoded_again(direction in 0_u8..2, recipient in 0_u8..4, code in 0_u8..14, rest: [u8; 6]) {
            let [b2, b3, b4, b5, b6, b7] = rest;
            let setup = SetupPacket::from([direction << 7 | 0x20 | recipient, code, b2, b3, b4, b5, b6, b7]);
            if let Some(request) = HubRequest::decode(&setup) {
                prop_assert_eq!(HubRequest::decode(&request.setup()), Some(request));
            }
        }
    }
}
