//! Hello of the server, and flags of the client (proto.md, "Newstyle negotiation").

use crate::{DecodeError, Reader};
use core::fmt;

register_bits! {
    /// Abilities of the server in negotiation.
    pub struct HandshakeFlags: u16 {
        /// Every option has a reply.
        FIXED_NEWSTYLE = 0x01 => "fixed newstyle",
        /// It can leave out the zeroes after EXPORT_NAME.
        NO_ZEROES = 0x02 => "no zeroes",
    }
}

register_bits! {
    /// Abilities that the client makes use of, in reply.
    pub struct ClientFlags: u32 {
        /// Every option has a reply.
        FIXED_NEWSTYLE = 0x01 => "fixed newstyle",
        /// No zeroes after EXPORT_NAME.
        NO_ZEROES = 0x02 => "no zeroes",
    }
}

/// First bytes of a server.
///
/// ```text
///  0..8  "NBDMAGIC"    8..16  "IHAVEOPT"    16..18  flags
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerHello {
    /// Abilities of the server.
    pub flags: HandshakeFlags,
}

impl ServerHello {
    /// Bytes on the wire.
    pub const LEN: usize = 18;

    /// Decodes a hello.
    ///
    /// Errors: another magic number, among them that of the oldstyle negotiation.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        for (field, expected) in [("NBDMAGIC", MAGIC), ("IHAVEOPT", OPTION_MAGIC)] {
            let value = reader.be64()?;
            if value != expected {
                return Err(DecodeError::Invalid { field, value });
            }
        }
        Ok(Self { flags: reader.be16()?.into() })
    }

    /// The bytes of the hello.
    pub fn encode(&self) -> [u8; Self::LEN] {
        let [m0, m1, m2, m3, m4, m5, m6, m7] = MAGIC.to_be_bytes();
        let [o0, o1, o2, o3, o4, o5, o6, o7] = OPTION_MAGIC.to_be_bytes();
        let [f0, f1] = u16::from(self.flags).to_be_bytes();
        [m0, m1, m2, m3, m4, m5, m6, m7, o0, o1, o2, o3, o4, o5, o6, o7, f0, f1]
    }
}

impl fmt::Display for ServerHello {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NBD hello, flags: {}", self.flags)
    }
}

impl ClientFlags {
    /// Bytes on the wire.
    pub const LEN: usize = 4;

    /// Decodes the flags.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        Ok(Reader::new(bytes).be32()?.into())
    }

    /// The bytes of the flags.
    pub fn encode(self) -> [u8; Self::LEN] {
        u32::from(self).to_be_bytes()
    }
}

/// "NBDMAGIC".
const MAGIC: u64 = 0x4e42_444d_4147_4943;
/// "IHAVEOPT", which begins every option as well.
pub(super) const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn a_fixed_newstyle_server_begins() {
        let bytes = *b"NBDMAGICIHAVEOPT\0\x03";
        let hello = ServerHello::decode(&bytes).unwrap();
        assert!(hello.flags.has(HandshakeFlags::FIXED_NEWSTYLE.with(HandshakeFlags::NO_ZEROES)));
        assert_eq!(hello.encode(), bytes);
        assert_eq!(hello.to_string(), "NBD hello, flags: fixed newstyle no zeroes");
        for len in 0..18 {
            assert!(
                matches!(ServerHello::decode(&bytes[..len]), Err(DecodeError::Truncated { .. })),
                "{len}"
            );
        }
    }

    #[test]
    fn an_oldstyle_server_and_another_protocol_are_refused() {
        let oldstyle = *b"NBDMAGIC\x00\x00\x42\x02\x81\x86\x12\x53\0\0";
        let error = DecodeError::Invalid { field: "IHAVEOPT", value: 0x0000_4202_8186_1253 };
        assert_eq!(ServerHello::decode(&oldstyle), Err(error));
        assert!(ServerHello::decode(b"SSH-2.0-OpenSSH_9.2p1").is_err());
    }

    #[test]
    fn the_client_answers_with_its_flags() {
        let flags = ClientFlags::FIXED_NEWSTYLE.with(ClientFlags::NO_ZEROES);
        assert_eq!(flags.encode(), [0, 0, 0, 3]);
        assert_eq!(ClientFlags::decode(&[0, 0, 0, 3]), Ok(flags));
        assert!(ClientFlags::decode(&[0, 0, 0]).is_err());
    }
}
