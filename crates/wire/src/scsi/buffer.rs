//! READ BUFFER parameter data: the descriptor of a buffer (mode 03h) and of the echo buffer (mode 0Bh)
//! (SPC-5).

use super::layout::{be32, bit, set_bit};
use crate::DecodeError;
use core::fmt;

/// The descriptor of a buffer: four bytes.
///
/// ```text
///  0      offset boundary (a power of two; FFh: only offset 0)    1..4  buffer capacity
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferDescriptor {
    /// OFFSET BOUNDARY: offsets are multiples of 2 to this power of bytes; FFh: only 0 is allowed.
    pub offset_boundary: u8,
    /// BUFFER CAPACITY in bytes (24 bits); 0: there is no such buffer.
    pub capacity: u32,
}

impl BufferDescriptor {
    /// Bytes on the wire.
    pub const LEN: usize = 4;

    /// Decodes the first four bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let whole = bytes
            .first_chunk::<{ Self::LEN }>()
            .ok_or(DecodeError::Truncated { needed: Self::LEN, got: bytes.len() })?;
        Ok(Self { offset_boundary: whole[0], capacity: be32::<0, _>(whole) & 0x00ff_ffff })
    }

    /// The four bytes on the wire.
    pub fn encode(&self) -> [u8; 4] {
        let [_, high, middle, low] = self.capacity.to_be_bytes();
        [self.offset_boundary, high, middle, low]
    }
}

/// The descriptor of the echo buffer: four bytes.
///
/// ```text
///  0      EBOS (0)    2..4  buffer capacity (12:0)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EchoBufferDescriptor {
    /// Overwriting by another nexus is reported.
    #[doc(alias = "EBOS")]
    pub overwritten_supported: bool,
    /// BUFFER CAPACITY in bytes (13 bits), 4096 at most; 0: there is no echo buffer.
    pub capacity: u16,
}

impl EchoBufferDescriptor {
    /// Bytes on the wire.
    pub const LEN: usize = 4;

    /// Decodes the first four bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let whole = bytes
            .first_chunk::<{ Self::LEN }>()
            .ok_or(DecodeError::Truncated { needed: Self::LEN, got: bytes.len() })?;
        let capacity = u16::from_be_bytes([whole[2], whole[3]]) & 0x1fff;
        Ok(Self { overwritten_supported: bit::<0>(whole[0]), capacity })
    }

    /// The four bytes on the wire.
    pub fn encode(&self) -> [u8; 4] {
        let [high, low] = (self.capacity & 0x1fff).to_be_bytes();
        [set_bit::<0>(self.overwritten_supported), 0, high, low]
    }
}

impl fmt::Display for BufferDescriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "buffer of {} bytes", self.capacity)
    }
}

impl fmt::Display for EchoBufferDescriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "echo buffer of {} bytes", self.capacity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_both_ways() {
        let bytes = [0x09, 0x01, 0x00, 0x00];
        let descriptor = BufferDescriptor { offset_boundary: 9, capacity: 65536 };
        assert_eq!(BufferDescriptor::decode(&bytes), Ok(descriptor));
        assert_eq!(descriptor.encode(), bytes);
        for got in 0..4 {
            let error = DecodeError::Truncated { needed: 4, got };
            assert_eq!(BufferDescriptor::decode(&bytes[..got]), Err(error));
        }
    }

    #[test]
    fn an_echo_buffer_both_ways() {
        let bytes = [0x01, 0x00, 0x10, 0x00];
        let descriptor = EchoBufferDescriptor { overwritten_supported: true, capacity: 4096 };
        assert_eq!(EchoBufferDescriptor::decode(&bytes), Ok(descriptor));
        assert_eq!(descriptor.encode(), bytes);
        for got in 0..4 {
            let error = DecodeError::Truncated { needed: 4, got };
            assert_eq!(EchoBufferDescriptor::decode(&bytes[..got]), Err(error));
        }
    }

    #[test]
    fn a_capacity_past_its_field_is_cut() {
        let descriptor = EchoBufferDescriptor { overwritten_supported: false, capacity: 0xffff };
        assert_eq!(descriptor.encode(), [0x00, 0x00, 0x1f, 0xff]);
    }
}
