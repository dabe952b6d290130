//! Endpoint context (xHCI 1.2 clause 6.2.3).

use crate::DecodeError;
use crate::usb::{Direction, TransferType};
use crate::xhci::{bit, bytes_of, dwords, field, flag, place, pointer, wide};
use core::fmt;

/// An endpoint: what it is, and where its ring or its stream contexts are.
///
/// ```text
///  0..4   EP State 2:0, Mult 9:8, MaxPStreams 14:10, LSA 15, Interval 23:16, Max ESIT Payload Hi 31:24
///  4..8   CErr 2:1, EP Type 5:3, HID 7, Max Burst Size 15:8, Max Packet Size 31:16
///  8..16  DCS 0, TR Dequeue Pointer 63:4
/// 16..20  Average TRB Length 15:0, Max ESIT Payload Lo 31:16
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndpointContext {
    /// Output only.
    pub state: EndpointState,
    /// Bursts per interval less one, of isochronous endpoints.
    pub mult: u8,
    /// Streams: the primary array has 2^(n+1) entries; 0 is no streams. 5 bits, 15 at most.
    pub primary_streams: u8,
    /// The primary array holds rings only (LSA), no secondary arrays.
    pub linear_streams: bool,
    /// 2^n × 125 µs between two services of a periodic endpoint.
    pub interval: u8,
    /// Bytes per interval of a periodic endpoint; 24 bits.
    pub interval_bytes: u32,
    /// How often a failed transaction is tried: 0 is without end, else 1 to 3.
    pub error_count: u8,
    /// Kind and direction.
    pub endpoint_type: EndpointType,
    /// Device-initiated stream selection is off (HID).
    pub host_initiate_disable: bool,
    /// Packets per burst less one.
    pub max_burst: u8,
    /// Bytes of a packet.
    pub max_packet: u16,
    /// The ring, a multiple of 16; or the primary stream context array.
    pub dequeue: u64,
    /// The cycle bit of the TRBs there (DCS).
    pub cycle: bool,
    /// Average length of the endpoint's TRBs, in bytes, by which the controller estimates bandwidth.
    pub average_trb_length: u16,
}

/// State of an endpoint (bits 2:0).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EndpointState {
    /// It does not exist.
    #[default]
    Disabled,
    /// Doorbells are processed.
    Running,
    /// After a stall or a failure; wants a Reset Endpoint.
    Halted,
    /// Doorbells would let it run again.
    Stopped,
    /// After a TRB Error; wants a Set TR Dequeue Pointer.
    Error,
    /// Reserved.
    Reserved(u8),
}

/// Kind and direction of an endpoint (bits 5:3 of the second dword).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EndpointType {
    /// Not a valid one: what a context of zeroes says.
    NotValid,
    /// The control endpoint, both ways.
    Control,
    /// Isochronous.
    Isoch(Direction),
    /// Bulk.
    Bulk(Direction),
    /// Interrupt.
    Interrupt(Direction),
}

impl EndpointContext {
    /// Bytes that mean something.
    pub const LEN: usize = 32;

    /// A context without streams and service interval: a control or bulk endpoint.
    pub const fn plain(endpoint_type: EndpointType, max_packet: u16, max_burst: u8) -> Self {
        Self {
            state: EndpointState::Disabled,
            mult: 0,
            primary_streams: 0,
            linear_streams: false,
            interval: 0,
            interval_bytes: 0,
            error_count: 3,
            endpoint_type,
            host_initiate_disable: false,
            max_burst,
            max_packet,
            dequeue: 0,
            cycle: true,
            average_trb_length: 0,
        }
    }

    /// Decodes a context; bytes past it are ignored.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let [first, second, low, high, last, ..] = dwords::<8>(bytes)?;
        let [ring_low, ring_high] = pointer(wide(low, high), 4);
        Ok(Self {
            state: EndpointState::from_bits(field(first, 0, 3) as u8),
            mult: field(first, 8, 2) as u8,
            primary_streams: field(first, 10, 5) as u8,
            linear_streams: flag(first, 15),
            interval: field(first, 16, 8) as u8,
            interval_bytes: field(first, 24, 8) << 16 | field(last, 16, 16),
            error_count: field(second, 1, 2) as u8,
            endpoint_type: EndpointType::from_bits(field(second, 3, 3)),
            host_initiate_disable: flag(second, 7),
            max_burst: field(second, 8, 8) as u8,
            max_packet: field(second, 16, 16) as u16,
            dequeue: wide(ring_low, ring_high),
            cycle: flag(low, 0),
            average_trb_length: field(last, 0, 16) as u16,
        })
    }

    /// The 32 bytes.
    pub fn encode(&self) -> [u8; 32] {
        let first = u32::from(self.state.bits())
            | place(self.mult.into(), 8, 2)
            | place(self.primary_streams.into(), 10, 5)
            | bit(self.linear_streams, 15)
            | place(self.interval.into(), 16, 8)
            | place(self.interval_bytes >> 16, 24, 8);
        let second = place(self.error_count.into(), 1, 2)
            | place(self.endpoint_type.bits(), 3, 3)
            | bit(self.host_initiate_disable, 7)
            | place(self.max_burst.into(), 8, 8)
            | place(self.max_packet.into(), 16, 16);
        let [low, high] = pointer(self.dequeue, 4);
        let last = place(self.average_trb_length.into(), 0, 16) | place(self.interval_bytes, 16, 16);
        bytes_of(&[first, second, low | bit(self.cycle, 0), high, last])
    }
}

impl EndpointState {
    const fn from_bits(bits: u8) -> Self {
        match bits {
            0 => Self::Disabled,
            1 => Self::Running,
            2 => Self::Halted,
            3 => Self::Stopped,
            4 => Self::Error,
            other => Self::Reserved(other),
        }
    }

    const fn bits(self) -> u8 {
        match self {
            Self::Disabled => 0,
            Self::Running => 1,
            Self::Halted => 2,
            Self::Stopped => 3,
            Self::Error => 4,
            Self::Reserved(other) => other & 0x07,
        }
    }
}

impl EndpointType {
    /// The type of an endpoint of this kind; control endpoints have no direction.
    pub const fn new(kind: TransferType, direction: Direction) -> Self {
        match kind {
            TransferType::Control => Self::Control,
            TransferType::Isochronous => Self::Isoch(direction),
            TransferType::Bulk => Self::Bulk(direction),
            TransferType::Interrupt => Self::Interrupt(direction),
        }
    }

    const fn from_bits(bits: u32) -> Self {
        match bits & 7 {
            0 => Self::NotValid,
            1 => Self::Isoch(Direction::Out),
            2 => Self::Bulk(Direction::Out),
            3 => Self::Interrupt(Direction::Out),
            4 => Self::Control,
            5 => Self::Isoch(Direction::In),
            6 => Self::Bulk(Direction::In),
            _ => Self::Interrupt(Direction::In),
        }
    }

    const fn bits(self) -> u32 {
        match self {
            Self::NotValid => 0,
            Self::Isoch(Direction::Out) => 1,
            Self::Bulk(Direction::Out) => 2,
            Self::Interrupt(Direction::Out) => 3,
            Self::Control => 4,
            Self::Isoch(Direction::In) => 5,
            Self::Bulk(Direction::In) => 6,
            Self::Interrupt(Direction::In) => 7,
        }
    }
}

impl fmt::Display for EndpointState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disabled => f.write_str("disabled"),
            Self::Running => f.write_str("running"),
            Self::Halted => f.write_str("halted"),
            Self::Stopped => f.write_str("stopped"),
            Self::Error => f.write_str("error"),
            Self::Reserved(bits) => write!(f, "state {bits}"),
        }
    }
}

impl fmt::Display for EndpointContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}, packets of {} bytes", self.endpoint_type, self.state, self.max_packet)?;
        match self.primary_streams {
            0 => write!(f, ", ring at {:#x}", self.dequeue),
            n => write!(f, ", 2^{} stream contexts at {:#x}", n + 1, self.dequeue),
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
    fn a_bulk_endpoint_with_streams_both_ways() {
        let mut bytes = [0; 32];
        let head = [
            0x03, 0x90, 0x00, 0x00, 0x36, 0x0f, 0x00, 0x04, 0x00, 0x10, 0x00, 0x00, 0x01, 0, 0, 0, 0x00,
            0x0c, 0, 0,
        ];
        bytes[..20].copy_from_slice(&head);
        let context = EndpointContext {
            state: EndpointState::Stopped,
            primary_streams: 4,
            linear_streams: true,
            dequeue: 0x1_0000_1000,
            cycle: false,
            average_trb_length: 3072,
            ..EndpointContext::plain(EndpointType::Bulk(Direction::In), 1024, 15)
        };
        assert_eq!(context.encode(), bytes);
        assert_eq!(EndpointContext::decode(&bytes), Ok(context));
        let text = "Bulk(In) stopped, packets of 1024 bytes, 2^5 stream contexts at 0x100001000";
        assert_eq!(context.to_string(), text);
    }

    #[test]
    fn an_interrupt_endpoint_both_ways() {
        let mut bytes = [0; 32];
        bytes[2..8].copy_from_slice(&[0x04, 0x01, 0x3e, 0, 0x10, 0]);
        bytes[8] = 0x11;
        bytes[16..20].copy_from_slice(&[0x10, 0, 0x02, 0]);
        let context = EndpointContext {
            interval: 4,
            interval_bytes: 0x1_0002,
            dequeue: 0x10,
            average_trb_length: 16,
            ..EndpointContext::plain(EndpointType::Interrupt(Direction::In), 16, 0)
        };
        assert_eq!(context.encode(), bytes);
        assert_eq!(EndpointContext::decode(&bytes), Ok(context));
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for len in 0..32 {
            let error = DecodeError::Truncated { needed: 32, got: len };
            assert_eq!(EndpointContext::decode(&[0; 32][..len]), Err(error));
        }
    }

    proptest! {
        #[test]
        fn what_decodes_is_encoded_to_the_same_value(bytes: [u8; 32]) {
            let context = EndpointContext::decode(&bytes).unwrap();
            let _ = context.to_string();
            prop_assert_eq!(EndpointContext::decode(&context.encode()), Ok(context));
        }
    }
}
