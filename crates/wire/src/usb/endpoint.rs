//! Endpoint addresses, and the endpoint descriptor (USB 3.2 clause 9.6.6, USB 2.0 clause 9.6.6).

use super::Direction;
use super::descriptor_kind::{DescriptorKind, fixed_descriptor};
use crate::DecodeError;
use core::fmt;

/// Number and direction of an endpoint: bit 7 is the direction, bits 3:0 the number, the rest zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[doc(alias = "bEndpointAddress")]
pub struct EndpointAddress(u8);

impl EndpointAddress {
    /// How many addresses there are.
    pub const COUNT: usize = 32;

    /// The endpoint of this number; `None` if the number is above 15.
    pub const fn new(number: u8, direction: Direction) -> Option<Self> {
        if number < 16 { Some(Self(number | direction.bit_7())) } else { None }
    }

    /// The endpoint of a number that is known when compiling: `EndpointAddress::at::<1>(Direction::In)`.
    pub const fn at<const NUMBER: u8>(direction: Direction) -> Self {
        const { assert!(NUMBER < 16, "an endpoint number is 0 to 15") };
        Self(NUMBER | direction.bit_7())
    }

    /// Number, 0 to 15; 0 is the control endpoint.
    pub const fn number(self) -> u8 {
        self.0 & 0x0f
    }

    /// Direction, seen from the host.
    pub const fn direction(self) -> Direction {
        Direction::from_bit_7(self.0)
    }

    /// A place in a table of [`Self::COUNT`] (32): OUT 0 to 15, then IN 0 to 15.
    pub const fn index(self) -> usize {
        ((self.0 & 0x80) >> 3 | self.number()) as usize
    }

    /// The endpoint at this place of such a table; `None` if the place is above 31.
    pub const fn from_index(index: usize) -> Option<Self> {
        match index {
            0..16 => Self::new(index as u8, Direction::Out),
            16..32 => Self::new(index as u8 - 16, Direction::In),
            _ => None,
        }
    }
}

impl TryFrom<u8> for EndpointAddress {
    type Error = DecodeError;

    /// An address as it is on the wire; a reserved bit is an error.
    fn try_from(byte: u8) -> Result<Self, DecodeError> {
        match byte & 0x70 {
            0 => Ok(Self(byte)),
            _ => Err(DecodeError::Invalid { field: "bEndpointAddress", value: byte.into() }),
        }
    }
}

impl From<EndpointAddress> for u8 {
    fn from(address: EndpointAddress) -> Self {
        address.0
    }
}

impl fmt::Display for EndpointAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.number(), self.direction())
    }
}

impl fmt::Debug for EndpointAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EndpointAddress({:#04x})", self.0)
    }
}

/// Transfer type of an endpoint (bits 1:0 of `bmAttributes`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TransferType {
    /// Requests with answers.
    Control,
    /// A rate without retries.
    Isochronous,
    /// Everything, when there is room.
    Bulk,
    /// Little, with a bounded delay.
    Interrupt,
}

/// Transfer type in bits 1:0; what the other bits say depends on it, and they are preserved as received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(alias = "bmAttributes")]
pub struct EndpointAttributes(pub u8);

impl EndpointAttributes {
    /// A bulk endpoint.
    pub const BULK: Self = Self(0x02);
    /// An interrupt endpoint.
    pub const INTERRUPT: Self = Self(0x03);

    /// How data moves.
    pub const fn transfer_type(self) -> TransferType {
        match self.0 & 0x03 {
            0 => TransferType::Control,
            1 => TransferType::Isochronous,
            2 => TransferType::Bulk,
            _ => TransferType::Interrupt,
        }
    }
}

/// One endpoint of an alternate setting.
///
/// ```text
///  0      bLength (7; longer for audio)           3      bmAttributes
///  1      bDescriptorType (05h)                   4..6   wMaxPacketSize (bytes in 10:0)
///  2      bEndpointAddress                        6      bInterval
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndpointDescriptor {
    /// Number and direction.
    #[doc(alias = "bEndpointAddress")]
    pub address: EndpointAddress,
    /// Transfer type.
    #[doc(alias = "bmAttributes")]
    pub attributes: EndpointAttributes,
    /// As on the wire: bits 10:0 are bytes, [`Self::packet_len`]; bits 12:11 count extra transactions.
    #[doc(alias = "wMaxPacketSize")]
    pub max_packet_size: u16,
    /// Polling interval of periodic endpoints, in units that depend on speed; 0 on bulk endpoints.
    #[doc(alias = "bInterval")]
    pub interval: u8,
}

impl EndpointDescriptor {
    /// Bytes of the descriptor.
    pub const LEN: usize = 7;

    /// A bulk endpoint with packets of `packet_len` bytes.
    pub const fn bulk(address: EndpointAddress, packet_len: u16) -> Self {
        Self { address, attributes: EndpointAttributes::BULK, max_packet_size: packet_len, interval: 0 }
    }

    /// An interrupt endpoint at full speed, polled every `interval_ms` milliseconds.
    pub const fn interrupt(address: EndpointAddress, packet_len: u16, interval_ms: u8) -> Self {
        let attributes = EndpointAttributes::INTERRUPT;
        Self { address, attributes, max_packet_size: packet_len, interval: interval_ms }
    }

    /// Decodes a descriptor; bytes past the known ones are ignored.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let &[_, _, address, attributes, m0, m1, interval] =
            fixed_descriptor::<7>(bytes, DescriptorKind::Endpoint)?;
        Ok(Self {
            address: address.try_into()?,
            attributes: EndpointAttributes(attributes),
            max_packet_size: u16::from_le_bytes([m0, m1]),
            interval,
        })
    }

    /// The whole descriptor.
    pub fn encode(&self) -> [u8; 7] {
        let [m0, m1] = self.max_packet_size.to_le_bytes();
        let kind = DescriptorKind::Endpoint.into();
        [7, kind, self.address.into(), self.attributes.0, m0, m1, self.interval]
    }

    /// Bytes of the longest packet.
    pub const fn packet_len(&self) -> u16 {
        self.max_packet_size & 0x07ff
    }
}

impl fmt::Display for EndpointDescriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let transfer_type = self.attributes.transfer_type();
        write!(f, "endpoint {} {transfer_type}, packets of {} bytes", self.address, self.packet_len())
    }
}

impl fmt::Display for TransferType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Control => "control",
            Self::Isochronous => "isochronous",
            Self::Bulk => "bulk",
            Self::Interrupt => "interrupt",
        })
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    /// Bulk endpoint 3 IN with packets of 1024 bytes.
    const BULK_IN: [u8; 7] = [0x07, 0x05, 0x83, 0x02, 0x00, 0x04, 0x00];

    #[test]
    fn literal_bytes_both_ways() {
        let endpoint = EndpointDescriptor::decode(&BULK_IN).unwrap();
        assert_eq!(endpoint, EndpointDescriptor::bulk(EndpointAddress::at::<3>(Direction::In), 1024));
        assert_eq!(endpoint.attributes.transfer_type(), TransferType::Bulk);
        assert_eq!(endpoint.encode(), BULK_IN);
        assert_eq!(endpoint.to_string(), "endpoint 3 IN bulk, packets of 1024 bytes");
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for len in 0..7 {
            let error = EndpointDescriptor::decode(&BULK_IN[..len]).unwrap_err();
            assert_eq!(error, DecodeError::Truncated { needed: 7, got: len });
        }
    }

    #[test]
    fn another_type_is_another_kind() {
        let error = DecodeError::WrongKind { expected: 5, found: 4 };
        assert_eq!(EndpointDescriptor::decode(&[0x07, 0x04, 0x83, 2, 0, 4, 0]), Err(error));
    }

    #[test]
    fn a_length_byte_too_small_is_an_error() {
        let error = DecodeError::Invalid { field: "bLength", value: 6 };
        assert_eq!(EndpointDescriptor::decode(&[0x06, 0x05, 0x83, 2, 0, 4, 0]), Err(error));
    }

    #[test]
    fn a_longer_descriptor_of_an_audio_endpoint_decodes() {
        let audio = [0x09, 0x05, 0x01, 0x09, 0xc0, 0x00, 0x01, 0x00, 0x00];
        let endpoint = EndpointDescriptor::decode(&audio).unwrap();
        assert_eq!(endpoint.attributes.transfer_type(), TransferType::Isochronous);
        assert_eq!(endpoint.attributes, EndpointAttributes(0x09));
        assert_eq!(endpoint.packet_len(), 192);
    }

    #[test]
    fn extra_transactions_are_not_packet_bytes() {
        let interrupt = [0x07, 0x05, 0x81, 0x03, 0x00, 0x14, 0x04];
        let endpoint = EndpointDescriptor::decode(&interrupt).unwrap();
        assert_eq!((endpoint.packet_len(), endpoint.max_packet_size), (1024, 0x1400));
        assert_eq!(endpoint.encode(), interrupt);
    }

    #[test]
    fn addresses_have_a_number_and_a_direction() {
        let address = EndpointAddress::try_from(0x8f).unwrap();
        assert_eq!((address.number(), address.direction()), (15, Direction::In));
        assert_eq!(address.to_string(), "15 IN");
        assert_eq!(EndpointAddress::new(15, Direction::In), Some(address));
        assert_eq!(EndpointAddress::new(16, Direction::In), None);
        assert_eq!(u8::from(EndpointAddress::at::<2>(Direction::Out)), 0x02);
    }

    #[test]
    fn reserved_address_bits_are_an_error() {
        for byte in [0x10, 0x20, 0x40, 0xf1] {
            let error = DecodeError::Invalid { field: "bEndpointAddress", value: byte.into() };
            assert_eq!(EndpointAddress::try_from(byte), Err(error));
        }
    }

    #[test]
    fn a_table_of_endpoints_has_out_before_in() {
        assert_eq!(EndpointAddress::at::<1>(Direction::Out).index(), 1);
        assert_eq!(EndpointAddress::at::<1>(Direction::In).index(), 17);
        assert_eq!(EndpointAddress::from_index(31), EndpointAddress::new(15, Direction::In));
        assert_eq!(EndpointAddress::from_index(32), None);
        for index in 0..32 {
            assert_eq!(EndpointAddress::from_index(index).unwrap().index(), index);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_decode_or_say_why(bytes in prop::collection::vec(any::<u8>(), 0..12)) {
            let _ = EndpointDescriptor::decode(&bytes);
        }

        #[test]
        fn decode_undoes_encode(index in 0usize..32, attributes: u8, max_packet_size: u16, interval: u8) {
            let address = EndpointAddress::from_index(index).unwrap();
            let attributes = EndpointAttributes(attributes);
            let endpoint = EndpointDescriptor { address, attributes, max_packet_size, interval };
            prop_assert_eq!(EndpointDescriptor::decode(&endpoint.encode()).unwrap(), endpoint);
        }
    }
}
