//! Setup packet: the eight bytes that begin every control transfer (USB 3.2 clause 9.3, USB 2.0 the same).

use super::{DescriptorKind, Direction, EndpointAddress};
use crate::DecodeError;
use core::fmt;

/// A request to the device. Little-endian.
///
/// ```text
///  0      bmRequestType: direction (7), kind (6:5), recipient (4:0)
///  1      bRequest                                       4..6   wIndex
///  2..4   wValue                                         6..8   wLength (bytes of the data stage)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetupPacket {
    /// Direction of the data stage; means nothing if there is none.
    pub direction: Direction,
    /// Type of the request: standard, class or vendor.
    pub kind: RequestKind,
    /// Part of the device that the request is for.
    pub recipient: Recipient,
    /// The request; [`Self::standard`] names it if it is a standard one.
    #[doc(alias = "bRequest")]
    pub request: u8,
    /// A parameter.
    #[doc(alias = "wValue")]
    pub value: u16,
    /// A parameter; the interface or endpoint if one of these is the recipient.
    #[doc(alias = "wIndex")]
    pub index: u16,
    /// Bytes of the data stage: exactly from the host, at most to the host.
    #[doc(alias = "wLength")]
    pub length: u16,
}

/// Type of a request: the document that defines it (bits 6:5 of `bmRequestType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RequestKind {
    /// The USB specification.
    Standard,
    /// The class of the recipient.
    Class,
    /// The vendor.
    Vendor,
    /// Reserved.
    Reserved,
}

code! {
    /// Recipient of a request (bits 4:0 of `bmRequestType`).
    pub enum Recipient: u8 {
        /// The device as a whole.
        Device = 0x00 => "device",
        /// The interface in the low byte of `wIndex`.
        Interface = 0x01 => "interface",
        /// The endpoint in the low byte of `wIndex`.
        Endpoint = 0x02 => "endpoint",
        /// Something else.
        Other = 0x03 => "other",
    }
}

code! {
    /// Standard request (USB 3.2 table 9-5).
    pub enum StandardRequest: u8 {
        /// Two bytes of state of the recipient.
        GetStatus = 0x00 => "GET_STATUS",
        /// Turns a feature off.
        ClearFeature = 0x01 => "CLEAR_FEATURE",
        /// Turns a feature on.
        SetFeature = 0x03 => "SET_FEATURE",
        /// Gives the device its address.
        SetAddress = 0x05 => "SET_ADDRESS",
        /// Reads a descriptor.
        GetDescriptor = 0x06 => "GET_DESCRIPTOR",
        /// Replaces a descriptor.
        SetDescriptor = 0x07 => "SET_DESCRIPTOR",
        /// Reads `bConfigurationValue` of the current configuration, 0 if there is none.
        GetConfiguration = 0x08 => "GET_CONFIGURATION",
        /// Chooses a configuration, 0 for none.
        SetConfiguration = 0x09 => "SET_CONFIGURATION",
        /// Reads the current alternate setting of an interface.
        GetInterface = 0x0a => "GET_INTERFACE",
        /// Chooses an alternate setting.
        SetInterface = 0x0b => "SET_INTERFACE",
        /// Reads a frame number of an isochronous endpoint.
        SynchFrame = 0x0c => "SYNCH_FRAME",
        /// Sets the exit latencies of the path, [`ExitLatencies`](super::ExitLatencies).
        SetSel = 0x30 => "SET_SEL",
        /// Sets the delay from the host to the device, in ns, in `wValue`.
        SetIsochDelay = 0x31 => "SET_ISOCH_DELAY",
    }
}

impl SetupPacket {
    /// Bytes of the packet.
    pub const LEN: usize = 8;

    /// Decodes a packet; bytes past it are ignored.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let packet = bytes.first_chunk::<8>();
        packet.map(|packet| (*packet).into()).ok_or(DecodeError::Truncated { needed: 8, got: bytes.len() })
    }

    /// The whole packet.
    pub fn encode(&self) -> [u8; 8] {
        let [value, index, length] = [self.value, self.index, self.length].map(u16::to_le_bytes);
        let (request_type, request) = (self.request_type(), self.request);
        [request_type, request, value[0], value[1], index[0], index[1], length[0], length[1]]
    }

    /// `bmRequestType`: direction, kind and recipient in one byte.
    #[doc(alias = "bmRequestType")]
    pub fn request_type(&self) -> u8 {
        self.direction.bit_7() | self.kind.bits() << 5 | u8::from(self.recipient) & 0x1f
    }

    /// A standard request without data.
    pub fn of_standard(recipient: Recipient, request: StandardRequest, value: u16) -> Self {
        let (direction, kind) = (Direction::Out, RequestKind::Standard);
        Self { direction, kind, recipient, request: request.into(), value, index: 0, length: 0 }
    }

    /// GET_DESCRIPTOR of the device: the kind, which of that kind, and how many bytes are wanted (USB 2.0 clause 9.4.3).
    pub fn get_descriptor(kind: DescriptorKind, number: u8, length: u16) -> Self {
        let value = u16::from_be_bytes([kind.into(), number]);
        let request = Self::of_standard(Recipient::Device, StandardRequest::GetDescriptor, value);
        Self { direction: Direction::In, length, ..request }
    }

    /// The standard request, if it is one.
    pub fn standard(&self) -> Option<StandardRequest> {
        (self.kind == RequestKind::Standard).then(|| self.request.into())
    }

    /// Whether it is SET_CONFIGURATION or SET_INTERFACE. Where the device accepts one, its endpoints start from their initial state,
    /// also if the same setting is selected again (USB 3.2 clause 9.4.10).
    pub fn selects_setting(&self) -> bool {
        let selects = [StandardRequest::SetConfiguration, StandardRequest::SetInterface];
        self.direction == Direction::Out && self.standard().is_some_and(|request| selects.contains(&request))
    }

    /// Returns the descriptor type and index that GET_DESCRIPTOR carries in `wValue`.
    pub fn descriptor(&self) -> (DescriptorKind, u8) {
        let [index, kind] = self.value.to_le_bytes();
        (kind.into(), index)
    }

    /// The interface in `wIndex`; of use if the recipient is one.
    pub fn interface(&self) -> u8 {
        self.index.to_le_bytes()[0]
    }

    /// The endpoint in `wIndex`; of use if the recipient is one. Any reserved bit is an error.
    pub fn endpoint(&self) -> Result<EndpointAddress, DecodeError> {
        let invalid = DecodeError::Invalid { field: "wIndex", value: self.index.into() };
        u8::try_from(self.index).ok().and_then(|address| address.try_into().ok()).ok_or(invalid)
    }
}

impl From<[u8; 8]> for SetupPacket {
    fn from([request_type, request, v0, v1, i0, i1, l0, l1]: [u8; 8]) -> Self {
        Self {
            direction: Direction::from_bit_7(request_type),
            kind: RequestKind::from_bits(request_type >> 5),
            recipient: Recipient::from(request_type & 0x1f),
            request,
            value: u16::from_le_bytes([v0, v1]),
            index: u16::from_le_bytes([i0, i1]),
            length: u16::from_le_bytes([l0, l1]),
        }
    }
}

impl RequestKind {
    const fn from_bits(bits: u8) -> Self {
        match bits & 0x03 {
            0 => Self::Standard,
            1 => Self::Class,
            2 => Self::Vendor,
            _ => Self::Reserved,
        }
    }

    const fn bits(self) -> u8 {
        match self {
            Self::Standard => 0,
            Self::Class => 1,
            Self::Vendor => 2,
            Self::Reserved => 3,
        }
    }
}

impl fmt::Display for SetupPacket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { direction, kind, recipient, request, value, index, length } = self;
        match self.standard() {
            Some(standard) => write!(f, "{standard} {recipient}")?,
            None => write!(f, "{kind} request {request:#04x} {recipient}")?,
        }
        write!(f, " value {value:#06x} index {index:#06x}")?;
        match length {
            0 => Ok(()),
            length => write!(f, ", {length} bytes {direction}"),
        }
    }
}

impl fmt::Display for RequestKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Standard => "standard",
            Self::Class => "class",
            Self::Vendor => "vendor",
            Self::Reserved => "reserved",
        })
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    /// GET_DESCRIPTOR of string 2 in US English, 255 bytes at most.
    const GET_STRING: [u8; 8] = [0x80, 0x06, 0x02, 0x03, 0x09, 0x04, 0xff, 0x00];
    /// CLEAR_FEATURE(ENDPOINT_HALT) of endpoint 1 IN.
    const CLEAR_HALT: [u8; 8] = [0x02, 0x01, 0x00, 0x00, 0x81, 0x00, 0x00, 0x00];

    #[test]
    fn literal_get_descriptor_both_ways() {
        let setup = SetupPacket::decode(&GET_STRING).unwrap();
        assert_eq!(setup.direction, Direction::In);
        assert_eq!(setup.recipient, Recipient::Device);
        assert_eq!(setup.standard(), Some(StandardRequest::GetDescriptor));
        assert_eq!(setup.descriptor(), (DescriptorKind::String, 2));
        assert_eq!((setup.index, setup.length), (0x0409, 255));
        assert_eq!(setup.encode(), GET_STRING);
        assert_eq!(setup.to_string(), "GET_DESCRIPTOR device value 0x0302 index 0x0409, 255 bytes IN");
    }

    #[test]
    fn literal_clear_halt_both_ways() {
        let setup = SetupPacket::decode(&CLEAR_HALT).unwrap();
        assert_eq!(setup.standard(), Some(StandardRequest::ClearFeature));
        assert_eq!(setup.recipient, Recipient::Endpoint);
        assert_eq!(setup.endpoint(), Ok(EndpointAddress::at::<1>(Direction::In)));
        assert_eq!(setup.encode(), CLEAR_HALT);
        assert_eq!(setup.to_string(), "CLEAR_FEATURE endpoint value 0x0000 index 0x0081");
    }

    #[test]
    fn a_class_request_is_not_a_standard_one() {
        let setup = SetupPacket::from([0xa1, 0xfe, 0, 0, 3, 0, 1, 0]);
        assert_eq!((setup.kind, setup.standard()), (RequestKind::Class, None));
        assert_eq!(setup.interface(), 3);
        assert_eq!(setup.to_string(), "class request 0xfe interface value 0x0000 index 0x0003, 1 bytes IN");
    }

    #[test]
    fn the_requests_of_usb_3_have_their_codes() {
        assert_eq!(StandardRequest::from(48), StandardRequest::SetSel);
        assert_eq!(StandardRequest::from(49), StandardRequest::SetIsochDelay);
    }

    #[test]
    fn a_reserved_bit_in_the_endpoint_is_reported() {
        for (low, high) in [(0x91, 0), (0x01, 1)] {
            let setup = SetupPacket::from([0x02, 0x01, 0, 0, low, high, 0, 0]);
            let value = u64::from(setup.index);
            assert_eq!(setup.endpoint(), Err(DecodeError::Invalid { field: "wIndex", value }));
        }
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for len in 0..8 {
            let error = SetupPacket::decode(&GET_STRING[..len]).unwrap_err();
            assert_eq!(error, DecodeError::Truncated { needed: 8, got: len });
        }
    }

    #[test]
    fn unknown_recipient_and_request_survive() {
        let bytes = [0x7f, 0x33, 0, 0, 0, 0, 0, 0];
        let setup = SetupPacket::from(bytes);
        assert_eq!((setup.kind, setup.recipient), (RequestKind::Reserved, Recipient::Unknown(31)));
        assert_eq!(setup.encode(), bytes);
        assert_eq!(StandardRequest::from(0x33), StandardRequest::Unknown(0x33));
    }

    proptest! {
        #[test]
        fn every_eight_bytes_are_a_packet_and_come_back(bytes: [u8; 8]) {
            let setup = SetupPacket::from(bytes);
            prop_assert_eq!(setup.encode(), bytes);
            prop_assert_eq!(SetupPacket::decode(&bytes).unwrap(), setup);
            let _ = (setup.endpoint(), setup.to_string());
        }
    }
}
