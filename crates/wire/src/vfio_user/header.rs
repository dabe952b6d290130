//! The header that begins every message (vfio-user.rst, "Header").

use super::{Command, MESSAGE_LEN_MAX};
use crate::{DecodeError, Reader};
use core::fmt;

register_bits! {
    /// Flags of a message. The lowest four bits are its type, of which 0 is a command and 1 a reply.
    pub struct HeaderFlags: u32 {
        /// The message is a reply.
        REPLY = 0x01 => "reply",
        /// The sender of the command wants no reply.
        NO_REPLY = 0x10 => "no reply",
        /// The command has failed; the header has the reason.
        ERROR = 0x20 => "error",
    }
}

/// Header of a message: its id, command, length and flags.
///
/// ```text
///  0..2  id         4..8   length with this header     12..16  error number
///  2..4  command    8..12  flags
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Chosen by the sender of a command, repeated by its reply.
    pub id: u16,
    /// Command of the message, or the command that it replies to.
    pub command: Command,
    /// Bytes of the message with this header.
    pub length: u32,
    /// Whether it is a reply, and its outcome.
    pub flags: HeaderFlags,
    /// The error number of a reply with [`HeaderFlags::ERROR`] (errno(3)).
    pub error: u32,
}

impl Header {
    /// Bytes on the wire.
    pub const LEN: usize = 16;

    /// Decodes a header.
    ///
    /// Errors: a length below that of the header or above [`MESSAGE_LEN_MAX`].
    #[inline]
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let (id, command, length) = (reader.le16()?, reader.le16()?.into(), reader.le32()?);
        let (flags, error) = (reader.le32()?.into(), reader.le32()?);
        if !(Self::LEN as u32..=MESSAGE_LEN_MAX).contains(&length) {
            return Err(DecodeError::Invalid { field: "message size", value: length.into() });
        }
        Ok(Self { id, command, length, flags, error })
    }

    /// The bytes of the header.
    #[inline]
    pub fn encode(&self) -> [u8; Self::LEN] {
        let [i0, i1] = self.id.to_le_bytes();
        let [c0, c1] = u16::from(self.command).to_le_bytes();
        let [l0, l1, l2, l3] = self.length.to_le_bytes();
        let [f0, f1, f2, f3] = u32::from(self.flags).to_le_bytes();
        let [e0, e1, e2, e3] = self.error.to_le_bytes();
        [i0, i1, c0, c1, l0, l1, l2, l3, f0, f1, f2, f3, e0, e1, e2, e3]
    }

    /// Bytes after the header.
    pub const fn body_len(&self) -> u32 {
        self.length - Self::LEN as u32
    }

    /// The header of a reply with a body of so many bytes.
    #[must_use]
    pub const fn reply(&self, body_len: u32) -> Self {
        Self { length: Self::LEN as u32 + body_len, flags: HeaderFlags::REPLY, error: 0, ..*self }
    }

    /// The header of a reply that says that the command has failed.
    #[must_use]
    pub const fn failure(&self, error: u32) -> Self {
        let flags = HeaderFlags::REPLY.with(HeaderFlags::ERROR);
        Self { length: Self::LEN as u32, flags, error, ..*self }
    }
}

impl fmt::Display for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, command, length, flags, error } = self;
        write!(f, "{command} id {id}, {length} bytes, flags: {flags}")?;
        if *error != 0 { write!(f, ", error {error}") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    const READ: [u8; 16] = [0x34, 0x12, 9, 0, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

    #[test]
    fn a_command_and_its_replies() {
        let header = Header::decode(&READ).unwrap();
        assert_eq!((header.id, header.command, header.body_len()), (0x1234, Command::RegionRead, 16));
        assert_eq!(header.to_string(), "REGION_READ id 4660, 32 bytes, flags: none");
        assert_eq!(header.reply(20).encode(), [0x34, 0x12, 9, 0, 36, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
        let failed = header.failure(22);
        assert_eq!(failed.encode(), [0x34, 0x12, 9, 0, 16, 0, 0, 0, 0x21, 0, 0, 0, 22, 0, 0, 0]);
        assert_eq!(failed.to_string(), "REGION_READ id 4660, 16 bytes, flags: reply error, error 22");
    }

    #[test]
    fn a_length_below_the_header_or_above_the_limit_is_refused() {
        for (length, is_right) in
            [(0, false), (15, false), (16, true), (0x0010_1000, true), (0x0010_1001, false)]
        {
            let mut bytes = READ;
            bytes[4..8].copy_from_slice(&u32::to_le_bytes(length));
            assert_eq!(Header::decode(&bytes).is_ok(), is_right, "{length}");
        }
        for got in 0..16 {
            assert!(matches!(Header::decode(&READ[..got]), Err(DecodeError::Truncated { .. })));
        }
    }

    proptest! {
        #[test]
        fn encode_undoes_decode(bytes: [u8; 16]) {
            if let Ok(header) = Header::decode(&bytes) {
                prop_assert_eq!(header.encode(), bytes);
            }
        }
    }
}
