//! Requests (proto.md, "Request message").

use super::Command;
use crate::{DecodeError, Reader};
use core::fmt;

register_bits! {
    /// How a command is carried out.
    pub struct CommandFlags: u16 {
        /// Forced unit access: durable at the reply.
        FUA = 0x01 => "FUA",
        /// Zeroes keep their space.
        NO_HOLE = 0x02 => "NO_HOLE",
        /// The reply to a read is one chunk.
        DF = 0x04 => "DF",
        /// One extent of block status is enough.
        REQ_ONE = 0x08 => "REQ_ONE",
        /// Zeroes only if that is faster than a write.
        FAST_ZERO = 0x10 => "FAST_ZERO",
        /// The length is that of a payload.
        PAYLOAD_LEN = 0x20 => "PAYLOAD_LEN",
    }
}

/// A request. The payload of a write follows it.
///
/// ```text
///  0..4  magic number    4..6  flags     8..16  cookie    24..28  length
///                        6..8  command   16..24 offset
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// How it is carried out.
    pub flags: CommandFlags,
    /// Operation.
    pub command: Command,
    /// Comes back in the reply.
    pub cookie: u64,
    /// First byte of the export.
    pub offset: u64,
    /// Number of bytes.
    pub length: u32,
}

impl Request {
    /// Bytes on the wire.
    pub const LEN: usize = 28;

    /// Decodes a request.
    ///
    /// Errors: another magic number.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let magic = reader.be32()?;
        if magic != MAGIC {
            return Err(DecodeError::WrongKind { expected: MAGIC, found: magic });
        }
        Ok(Self {
            flags: reader.be16()?.into(),
            command: reader.be16()?.into(),
            cookie: reader.be64()?,
            offset: reader.be64()?,
            length: reader.be32()?,
        })
    }

    /// The bytes of the request.
    #[inline]
    pub fn encode(&self) -> [u8; Self::LEN] {
        let [m0, m1, m2, m3] = MAGIC.to_be_bytes();
        let [f0, f1] = u16::from(self.flags).to_be_bytes();
        let [k0, k1] = u16::from(self.command).to_be_bytes();
        let [c0, c1, c2, c3, c4, c5, c6, c7] = self.cookie.to_be_bytes();
        let [o0, o1, o2, o3, o4, o5, o6, o7] = self.offset.to_be_bytes();
        let [l0, l1, l2, l3] = self.length.to_be_bytes();
        [
            m0, m1, m2, m3, f0, f1, k0, k1, c0, c1, c2, c3, c4, c5, c6, c7, o0, o1, o2, o3, o4, o5, o6, o7,
            l0, l1, l2, l3,
        ]
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { flags, command, cookie, offset, length } = self;
        write!(f, "NBD {command} cookie {cookie:#x}, offset {offset}, {length} bytes, flags: {flags}")
    }
}

const MAGIC: u32 = 0x2560_9513;

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn a_write_with_forced_unit_access() {
        let bytes = [
            0x25, 0x60, 0x95, 0x13, 0, 1, 0, 1, 0, 0, 0, 7, 0, 0, 0, 2, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0x10, 0,
        ];
        let request = Request::decode(&bytes).unwrap();
        assert_eq!((request.command, request.flags), (Command::Write, CommandFlags::FUA));
        assert_eq!((request.cookie, request.offset, request.length), (0x7_0000_0002, 65536, 4096));
        assert_eq!(request.encode(), bytes);
        assert_eq!(request.to_string(), "NBD WRITE cookie 0x700000002, offset 65536, 4096 bytes, flags: FUA");
        for len in 0..28 {
            assert!(Request::decode(&bytes[..len]).is_err(), "{len}");
        }
        assert!(Request::decode(&[0; 28]).is_err());
    }
}
