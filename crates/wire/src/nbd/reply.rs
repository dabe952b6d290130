//! Simple replies, and how a reply begins (proto.md, "Simple reply message").

use super::ErrorCode;
use crate::{DecodeError, Reader};
use core::fmt;

/// First four bytes of a reply: which of the two kinds it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyMagic {
    /// A [`SimpleReply`].
    Simple,
    /// A [`super::ChunkHeader`].
    Structured,
}

impl ReplyMagic {
    /// Decodes the first bytes of a reply.
    ///
    /// Errors: fewer than four bytes, or a number that is neither.
    #[inline]
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        match Reader::new(bytes).be32()? {
            SIMPLE_MAGIC => Ok(Self::Simple),
            STRUCTURED_MAGIC => Ok(Self::Structured),
            other => Err(DecodeError::Invalid { field: "reply magic", value: other.into() }),
        }
    }
}

/// A simple reply. The payload of a read that succeeded follows it.
///
/// ```text
///  0..4  magic number    4..8  error    8..16  cookie
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimpleReply {
    /// Why it failed, or [`ErrorCode::None`].
    pub error: ErrorCode,
    /// The request's.
    pub cookie: u64,
}

impl SimpleReply {
    /// Bytes on the wire.
    pub const LEN: usize = 16;

    /// Decodes a reply.
    ///
    /// Errors: another magic number.
    #[inline]
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let magic = reader.be32()?;
        if magic != SIMPLE_MAGIC {
            return Err(DecodeError::WrongKind { expected: SIMPLE_MAGIC, found: magic });
        }
        Ok(Self { error: reader.be32()?.into(), cookie: reader.be64()? })
    }

    /// The bytes of the reply.
    pub fn encode(&self) -> [u8; Self::LEN] {
        let [m0, m1, m2, m3] = SIMPLE_MAGIC.to_be_bytes();
        let [e0, e1, e2, e3] = u32::from(self.error).to_be_bytes();
        let [c0, c1, c2, c3, c4, c5, c6, c7] = self.cookie.to_be_bytes();
        [m0, m1, m2, m3, e0, e1, e2, e3, c0, c1, c2, c3, c4, c5, c6, c7]
    }
}

impl fmt::Display for SimpleReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NBD reply cookie {:#x}, {}", self.cookie, self.error)
    }
}

const SIMPLE_MAGIC: u32 = 0x6744_6698;
pub(super) const STRUCTURED_MAGIC: u32 = 0x668e_33ef;

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn a_reply_with_an_error() {
        let bytes = [0x67, 0x44, 0x66, 0x98, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 9];
        assert_eq!(ReplyMagic::decode(&bytes), Ok(ReplyMagic::Simple));
        let reply = SimpleReply::decode(&bytes).unwrap();
        assert_eq!((reply.error, reply.cookie), (ErrorCode::Io, 9));
        assert_eq!(reply.encode(), bytes);
        assert_eq!(reply.to_string(), "NBD reply cookie 0x9, EIO");
        for len in 0..16 {
            assert!(SimpleReply::decode(&bytes[..len]).is_err(), "{len}");
        }
        assert_eq!(ReplyMagic::decode(&[0x66, 0x8e, 0x33, 0xef]), Ok(ReplyMagic::Structured));
        assert!(ReplyMagic::decode(&[0; 4]).is_err() && ReplyMagic::decode(&[0x67, 0x44, 0x66]).is_err());
        assert!(SimpleReply::decode(&[0; 16]).is_err());
    }
}
