//! VERSION: the first message of each side (vfio-user.rst, "VFIO_USER_VERSION").

use crate::{DecodeError, NoRoom, Reader, Writer};
use core::fmt;

/// A protocol version and the capabilities of its sender.
///
/// ```text
///  0..2  major    4..  JSON text, ended by a zero byte; may be absent
///  2..4  minor
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version<'a> {
    /// Incompatible versions differ here.
    pub major: u16,
    /// The server answers with the lower of both.
    pub minor: u16,
    /// Capabilities, without the zero byte; empty if there are none.
    pub json: &'a str,
}

impl<'a> Version<'a> {
    /// Bytes before the text.
    pub const LEN_MIN: usize = 4;

    /// Decodes the body of a message.
    ///
    /// Errors: text that is no UTF-8, or without a zero byte at its end.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let (major, minor) = (reader.le16()?, reader.le16()?);
        let text = match reader.rest() {
            [] => &[][..],
            [text @ .., 0] => text,
            [.., last] => return Err(DecodeError::Invalid { field: "last byte", value: u64::from(*last) }),
        };
        let valid = |error: core::str::Utf8Error| DecodeError::Invalid {
            field: "capabilities",
            value: error.valid_up_to() as u64,
        };
        let json = core::str::from_utf8(text).map_err(valid)?;
        Ok(Self { major, minor, json })
    }

    /// Appends the body to `out`.
    pub fn encode(&self, out: &mut Writer<'_>) -> Result<(), NoRoom> {
        out.le16(self.major)?;
        out.le16(self.minor)?;
        if self.json.is_empty() {
            return Ok(());
        }
        out.put(self.json.as_bytes())?;
        out.u8(0)
    }
}

impl fmt::Display for Version<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "version {}.{} {}", self.major, self.minor, self.json)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn capabilities_are_text_with_a_zero_byte() {
        let bytes = *b"\0\0\x01\0{\"capabilities\":{}}\0";
        let version = Version::decode(&bytes).unwrap();
        assert_eq!((version.major, version.minor, version.json), (0, 1, "{\"capabilities\":{}}"));
        assert_eq!(version.to_string(), "version 0.1 {\"capabilities\":{}}");
        let mut buffer = [0xaa; 24];
        let mut out = Writer::new(&mut buffer);
        version.encode(&mut out).unwrap();
        assert_eq!(out.written(), 24);
        assert_eq!(buffer, bytes);
        assert!(version.encode(&mut Writer::new(&mut [0; 23])).is_err());
    }

    #[test]
    fn no_text_is_no_capability() {
        let version = Version::decode(&[0, 0, 1, 0]).unwrap();
        assert_eq!(version.json, "");
        assert_eq!(Version::decode(&[0, 0, 1, 0, 0]).unwrap().json, "");
    }

    #[test]
    fn text_without_an_end_is_refused() {
        assert_eq!(
            Version::decode(b"\0\0\x01\0{}"),
            Err(DecodeError::Invalid { field: "last byte", value: 0x7d })
        );
        assert_eq!(
            Version::decode(&[0, 0, 1, 0, b'{', 0xff, 0]),
            Err(DecodeError::Invalid { field: "capabilities", value: 1 })
        );
        assert!(Version::decode(&[0, 0, 1]).is_err());
    }
}
