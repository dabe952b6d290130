//! Headers of options and of their replies (proto.md, "Newstyle negotiation").

use super::hello::OPTION_MAGIC;
use super::{OPTION_REPLY_LEN_MAX, OptionCode, OptionReplyKind, STRING_LEN_MAX};
use crate::{DecodeError, Reader};
use core::fmt;

/// Header of an option.
///
/// ```text
///  0..8  "IHAVEOPT"    8..12  option    12..16  length of data
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionHeader {
    /// The option.
    pub option: OptionCode,
    /// Bytes of data that follow.
    pub data_len: u32,
}

impl OptionHeader {
    /// Bytes on the wire.
    pub const LEN: usize = 16;

    /// Decodes a header.
    ///
    /// Errors: another magic number, or more data than two strings with what surrounds them.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let magic = reader.be64()?;
        if magic != OPTION_MAGIC {
            return Err(DecodeError::Invalid { field: "IHAVEOPT", value: magic });
        }
        let (option, data_len) = (reader.be32()?.into(), reader.be32()?);
        if data_len as usize > 2 * STRING_LEN_MAX + 64 {
            return Err(DecodeError::Invalid { field: "option data length", value: data_len.into() });
        }
        Ok(Self { option, data_len })
    }

    /// The bytes of the header.
    pub fn encode(&self) -> [u8; Self::LEN] {
        let [m0, m1, m2, m3, m4, m5, m6, m7] = OPTION_MAGIC.to_be_bytes();
        let [o0, o1, o2, o3] = u32::from(self.option).to_be_bytes();
        let [l0, l1, l2, l3] = self.data_len.to_be_bytes();
        [m0, m1, m2, m3, m4, m5, m6, m7, o0, o1, o2, o3, l0, l1, l2, l3]
    }
}

impl fmt::Display for OptionHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NBD option {}, {} bytes", self.option, self.data_len)
    }
}

/// Header of a reply to an option.
///
/// ```text
///  0..8  magic number    8..12  option    12..16  kind    16..20  length of data
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionReply {
    /// The option that it replies to.
    pub option: OptionCode,
    /// Outcome, or a part of the answer.
    pub kind: OptionReplyKind,
    /// Bytes of data that follow; of an error, words for people.
    pub data_len: u32,
}

impl OptionReply {
    /// Bytes on the wire.
    pub const LEN: usize = 20;

    /// Decodes a header.
    ///
    /// Errors: another magic number, or more data than [`OPTION_REPLY_LEN_MAX`].
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let magic = reader.be64()?;
        if magic != REPLY_MAGIC {
            return Err(DecodeError::Invalid { field: "option reply magic", value: magic });
        }
        let (option, kind, data_len) = (reader.be32()?.into(), reader.be32()?.into(), reader.be32()?);
        if data_len > OPTION_REPLY_LEN_MAX {
            return Err(DecodeError::Invalid { field: "option reply length", value: data_len.into() });
        }
        Ok(Self { option, kind, data_len })
    }

    /// The bytes of the header.
    pub fn encode(&self) -> [u8; Self::LEN] {
        let [m0, m1, m2, m3, m4, m5, m6, m7] = REPLY_MAGIC.to_be_bytes();
        let [o0, o1, o2, o3] = u32::from(self.option).to_be_bytes();
        let [k0, k1, k2, k3] = u32::from(self.kind).to_be_bytes();
        let [l0, l1, l2, l3] = self.data_len.to_be_bytes();
        [m0, m1, m2, m3, m4, m5, m6, m7, o0, o1, o2, o3, k0, k1, k2, k3, l0, l1, l2, l3]
    }
}

impl fmt::Display for OptionReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NBD reply to {}: {}, {} bytes", self.option, self.kind, self.data_len)
    }
}

const REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn an_option_and_its_acknowledgement() {
        let option = OptionHeader { option: OptionCode::StructuredReply, data_len: 0 };
        assert_eq!(option.encode(), *b"IHAVEOPT\0\0\0\x08\0\0\0\0");
        assert_eq!(OptionHeader::decode(&option.encode()), Ok(option));
        assert_eq!(option.to_string(), "NBD option STRUCTURED_REPLY, 0 bytes");
        let bytes = [0, 3, 0xe8, 0x89, 4, 0x55, 0x65, 0xa9, 0, 0, 0, 8, 0, 0, 0, 1, 0, 0, 0, 0];
        let reply = OptionReply::decode(&bytes).unwrap();
        assert_eq!((reply.option, reply.kind), (OptionCode::StructuredReply, OptionReplyKind::Ack));
        assert_eq!(reply.encode(), bytes);
        assert_eq!(reply.to_string(), "NBD reply to STRUCTURED_REPLY: ACK, 0 bytes");
        for len in 0..20 {
            assert!(OptionReply::decode(&bytes[..len]).is_err(), "{len}");
            assert!(OptionHeader::decode(&option.encode()[..len.min(15)]).is_err(), "{len}");
        }
    }

    #[test]
    fn what_is_too_long_or_of_another_kind_is_refused() {
        let mut bytes = [0, 3, 0xe8, 0x89, 4, 0x55, 0x65, 0xa9, 0, 0, 0, 7, 0, 0, 0, 3, 0, 0, 0x10, 0x41];
        assert!(OptionReply::decode(&bytes).is_err());
        bytes[19] = 0x40;
        assert!(OptionReply::decode(&bytes).is_ok());
        bytes[0] = 1;
        assert!(OptionReply::decode(&bytes).is_err());
        assert!(OptionHeader::decode(b"IHAVEOPT\0\0\0\x07\xff\xff\xff\xff").is_err());
        assert!(OptionHeader::decode(b"IHAVEOPS\0\0\0\x07\0\0\0\0").is_err());
    }
}
