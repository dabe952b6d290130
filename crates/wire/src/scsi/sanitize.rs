//! SANITIZE OVERWRITE parameter list (SBC-4); the other sanitize operations have none.
//!
//! ```text
//!  0      INVERT (7), TEST (6:5), overwrite count (4:0)
//!  1      reserved
//!  2..4   initialization pattern length
//!  4..    initialization pattern
//! ```

use super::layout::{be16, bit, bits, set_bit, set_bits};
use crate::{DecodeError, NoRoom, Writer};
use core::fmt;

/// What to write over the medium, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SanitizeOverwrite<'a> {
    /// The pattern is inverted from one pass to the next.
    #[doc(alias = "INVERT")]
    pub invert: bool,
    /// TEST, two bits: the vendor's.
    pub test: u8,
    /// OVERWRITE COUNT, five bits; 0 is reserved.
    pub count: u8,
    /// INITIALIZATION PATTERN, repeated over each block; from 1 byte to a block long.
    pub pattern: &'a [u8],
}

impl<'a> SanitizeOverwrite<'a> {
    /// Bytes before the pattern.
    pub const HEADER_LEN: usize = 4;

    /// Decodes the list.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let (head, rest) = bytes
            .split_first_chunk::<4>()
            .ok_or(DecodeError::Truncated { needed: Self::HEADER_LEN, got: bytes.len() })?;
        let len = usize::from(be16::<2, _>(head));
        let truncated = DecodeError::Truncated { needed: Self::HEADER_LEN + len, got: bytes.len() };
        Ok(Self {
            invert: bit::<7>(head[0]),
            test: bits::<6, 5>(head[0]),
            count: bits::<4, 0>(head[0]),
            pattern: rest.get(..len).ok_or(truncated)?,
        })
    }

    /// Writes the list; the answer is the bytes written.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, NoRoom> {
        let len = self.pattern.len();
        let length = u16::try_from(len).map_err(|_| NoRoom { needed: len, got: u16::MAX.into() })?;
        let mut writer = Writer::new(out);
        let first = set_bit::<7>(self.invert) | set_bits::<6, 5>(self.test) | set_bits::<4, 0>(self.count);
        writer.put(&[first, 0])?;
        writer.be16(length)?;
        writer.put(self.pattern)?;
        Ok(writer.written())
    }
}

impl fmt::Display for SanitizeOverwrite<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "overwrite {} times with {} bytes", self.count, self.pattern.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literal_bytes_both_ways() {
        let bytes = [0xc3, 0, 0x00, 0x02, 0xa5, 0x5a];
        let list = SanitizeOverwrite { invert: true, test: 2, count: 3, pattern: &[0xa5, 0x5a] };
        assert_eq!(SanitizeOverwrite::decode(&bytes), Ok(list));
        let mut out = [0xff; 6];
        assert_eq!(list.encode(&mut out), Ok(6));
        assert_eq!(out, bytes);
        for got in 0..6 {
            let error = DecodeError::Truncated { needed: if got < 4 { 4 } else { 6 }, got };
            assert_eq!(SanitizeOverwrite::decode(&bytes[..got]), Err(error));
        }
    }
}
