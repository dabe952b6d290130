//! Endpoint addresses (USB 3.2 table 9-24, bEndpointAddress).

use super::Direction;
use core::fmt;

/// An endpoint's number and direction, as one byte: direction in bit 7, number in bits 3:0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EndpointAddress(u8);

impl EndpointAddress {
    /// The endpoint with this number, 0..=15; higher bits of the number are ignored.
    pub const fn new(number: u8, direction: Direction) -> Self {
        Self(number & 0x0f | direction.bit_7())
    }

    /// The endpoint number, 0..=15.
    pub const fn number(self) -> u8 {
        self.0 & 0x0f
    }

    /// The host's direction.
    pub const fn direction(self) -> Direction {
        Direction::from_bit_7(self.0)
    }
}

impl From<u8> for EndpointAddress {
    /// Reserved bits 6:4 are dropped.
    fn from(byte: u8) -> Self {
        Self(byte & 0x8f)
    }
}

impl From<EndpointAddress> for u8 {
    fn from(address: EndpointAddress) -> Self {
        address.0
    }
}

impl fmt::Display for EndpointAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "endpoint {} {}", self.number(), self.direction())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literal_bytes_both_ways() {
        let address = EndpointAddress::from(0x81);
        assert_eq!((address.number(), address.direction()), (1, Direction::In));
        assert_eq!(u8::from(EndpointAddress::new(2, Direction::Out)), 0x02);
        assert_eq!(u8::from(EndpointAddress::new(15, Direction::In)), 0x8f);
    }

    #[test]
    fn reserved_bits_are_dropped() {
        assert_eq!(u8::from(EndpointAddress::from(0xff)), 0x8f);
    }
}
