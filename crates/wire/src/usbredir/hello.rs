//! `hello`: the first packet of each side (usbredir 0.7, `usb_redir_hello_header`).
//!
//! The capability words follow as payload; see [`Capabilities::decode`](super::Capabilities::decode).

use super::PacketType;
use crate::DecodeError;
use core::fmt;

/// Version string of the sender: free text, for logs only.
///
/// ```text
///  0..64  version, zero-terminated      64..  capability words (payload)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    version: [u8; Self::LEN],
}

impl Hello {
    /// The packet type that this header belongs to.
    pub const KIND: PacketType = PacketType::Hello;
    /// Bytes on the wire, without the capability words.
    pub const LEN: usize = 64;

    /// A hello with this version text, cut to 63 bytes.
    pub fn new(version: &str) -> Self {
        let mut field = [0; Self::LEN];
        for (place, byte) in field.iter_mut().take(Self::LEN - 1).zip(version.bytes()) {
            *place = byte;
        }
        Self { version: field }
    }

    /// The version text up to its zero byte, as the peer wrote it: any bytes.
    pub fn version(&self) -> &[u8] {
        self.version.split(|&byte| byte == 0).next().unwrap_or_default()
    }

    /// Decodes the header; bytes past [`Self::LEN`] are left alone.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let version = bytes.first_chunk::<64>();
        let version = version.ok_or(DecodeError::Truncated { needed: Self::LEN, got: bytes.len() })?;
        Ok(Self { version: *version })
    }

    /// The bytes of the header.
    pub const fn encode(&self) -> [u8; 64] {
        self.version
    }
}

impl fmt::Display for Hello {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "hello, version \"{}\"", self.version().escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn literal_bytes_both_ways() {
        let mut bytes = [0; 64];
        bytes[..6].copy_from_slice(b"uas\"\x07t");
        let hello = Hello::decode(&bytes).unwrap();
        assert_eq!(hello.version(), b"uas\"\x07t");
        assert_eq!(hello.encode(), bytes);
        assert_eq!(hello.to_string(), "hello, version \"uas\\\"\\x07t\"");
    }

    #[test]
    fn a_text_is_cut_so_that_its_zero_byte_stays() {
        let hello = Hello::new("0123456789012345678901234567890123456789012345678901234567890123456789");
        assert_eq!(hello.version().len(), 63);
        assert_eq!(hello.encode()[63], 0);
    }

    #[test]
    fn a_text_without_a_zero_byte_ends_with_the_field() {
        assert_eq!(Hello::decode(&[b'x'; 64]).unwrap().version(), [b'x'; 64]);
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for got in 0..64 {
            let error = Hello::decode(&[0; 64][..got]).unwrap_err();
            assert_eq!(error, DecodeError::Truncated { needed: 64, got });
        }
    }
}
