//! COMMAND information unit (UAS-2 clause 6.2.2).

use super::header::{IuId, expect_id};
use crate::DecodeError;
use core::fmt;

/// One SCSI command on its way to the device.
///
/// ```text
///  0      id (01h)                  5      reserved
///  1      reserved                  6      ADDITIONAL CDB LENGTH (7:2, in dwords)
///  2..4   tag                       7      reserved
///  4      priority (6:3),           8..16  LOGICAL UNIT NUMBER
///         task attribute (2:0)     16..32  CDB, then the additional CDB bytes
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandIu<'a> {
    /// Names the command on every pipe; on SuperSpeed also the stream.
    pub tag: u16,
    /// How the command orders itself among the others.
    pub attribute: TaskAttribute,
    /// Command priority 0..=15; 0 is no priority (SAM-5 clause 8.7).
    pub priority: u8,
    /// The eight bytes of the logical unit number (SAM-5 clause 4.7).
    pub lun: [u8; 8],
    /// The first 16 bytes of the CDB, zero-padded if it is shorter.
    pub cdb: &'a [u8; 16],
    /// ADDITIONAL CDB BYTES, past those: a multiple of four bytes, 252 at most; usually none.
    pub additional_cdb: &'a [u8],
}

code! {
    /// Task attribute (SAM-5 clause 8.9).
    pub enum TaskAttribute: u8 {
        /// May be reordered with other simple commands.
        Simple = 0x00 => "simple",
        /// Before everything that waits.
        HeadOfQueue = 0x01 => "head of queue",
        /// After everything older, before everything younger.
        Ordered = 0x02 => "ordered",
        /// Only while an auto contingent allegiance stands.
        Aca = 0x04 => "ACA",
    }
}

impl<'a> CommandIu<'a> {
    /// Bytes without additional CDB bytes.
    pub const LEN: usize = 32;
    /// Bytes with as many additional CDB bytes as the length field can say.
    pub const LEN_MAX: usize = Self::LEN + 252;

    /// Decodes an IU; bytes past the additional CDB length are ignored.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let (head, _) = bytes
            .split_first_chunk::<16>()
            .ok_or(DecodeError::Truncated { needed: Self::LEN, got: bytes.len() })?;
        expect_id(IuId::Command, head[0])?;
        let additional_len = usize::from(head[6] & 0xfc);
        let needed = Self::LEN + additional_len;
        let truncated = DecodeError::Truncated { needed, got: bytes.len() };
        let (cdb, rest) = bytes.get(16..).and_then(|b| b.split_first_chunk::<16>()).ok_or(truncated)?;
        Ok(Self {
            tag: u16::from_be_bytes([head[2], head[3]]),
            attribute: TaskAttribute::from(head[4] & 0x07),
            priority: head[4] >> 3 & 0x0f,
            lun: [head[8], head[9], head[10], head[11], head[12], head[13], head[14], head[15]],
            cdb,
            additional_cdb: rest.get(..additional_len).ok_or(truncated)?,
        })
    }

    /// The first [`Self::LEN`] (32) bytes; the additional CDB bytes follow them on the wire as they are.
    ///
    /// Additional bytes past 252 cannot be said in the length field and are not counted.
    #[inline]
    pub fn encode(&self) -> [u8; 32] {
        let mut iu = [0; 32];
        let additional_len = self.additional_cdb.len().min(252) as u8 & 0xfc;
        let tag = self.tag.to_be_bytes();
        let attribute = u8::from(self.attribute) & 0x07 | (self.priority & 0x0f) << 3;
        let fixed = [u8::from(IuId::Command), 0, tag[0], tag[1], attribute, 0, additional_len, 0];
        // Whole words: what is written byte by byte is slow to read again at once.
        iu[..8].copy_from_slice(&u64::from_be_bytes(fixed).to_be_bytes());
        iu[8..16].copy_from_slice(&self.lun);
        iu[16..].copy_from_slice(self.cdb);
        iu
    }
}

impl fmt::Display for CommandIu<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "COMMAND tag {} {} opcode {:#04x}", self.tag, self.attribute, self.cdb[0])
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;
    use std::vec::Vec;

    /// READ(10) of 8 blocks at LBA 0x11223344, tag 5, ordered, priority 3, LUN 1.
    const READ_10: [u8; 32] = [
        0x01, 0x00, 0x00, 0x05, 0x1a, 0x00, 0x00, 0x00, 0x00, 0x01, 0, 0, 0, 0, 0, 0, // header, LUN
        0x28, 0x00, 0x11, 0x22, 0x33, 0x44, 0x00, 0x00, 0x08, 0x00, 0, 0, 0, 0, 0, 0, // CDB
    ];

    #[test]
    fn literal_bytes_both_ways() {
        let iu = CommandIu::decode(&READ_10).unwrap();
        assert_eq!(iu.tag, 5);
        assert_eq!(iu.attribute, TaskAttribute::Ordered);
        assert_eq!(iu.priority, 3);
        assert_eq!(iu.lun, [0, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(iu.cdb[..10], [0x28, 0, 0x11, 0x22, 0x33, 0x44, 0, 0, 8, 0]);
        assert!(iu.additional_cdb.is_empty());
        assert_eq!(iu.encode(), READ_10);
        assert_eq!(iu.to_string(), "COMMAND tag 5 ordered opcode 0x28");
    }

    #[test]
    fn additional_cdb_bytes_count_in_dwords() {
        let mut bytes = READ_10.to_vec();
        bytes[6] = 0x07; // one dword; the two low bits are reserved
        bytes.extend([0xaa, 0xbb, 0xcc, 0xdd, 0xee]);
        let iu = CommandIu::decode(&bytes).unwrap();
        assert_eq!(iu.additional_cdb, [0xaa, 0xbb, 0xcc, 0xdd]);
        assert_eq!(iu.encode()[6], 0x04);
        let short = DecodeError::Truncated { needed: 36, got: 35 };
        assert_eq!(CommandIu::decode(&bytes[..35]), Err(short));
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for len in 0..READ_10.len() {
            let error = CommandIu::decode(&READ_10[..len]).unwrap_err();
            assert_eq!(error, DecodeError::Truncated { needed: 32, got: len });
        }
    }

    #[test]
    fn another_id_is_another_kind() {
        let mut bytes = READ_10;
        bytes[0] = 0x05;
        assert_eq!(CommandIu::decode(&bytes), Err(DecodeError::WrongKind { expected: 1, found: 5 }));
    }

    #[test]
    fn an_unknown_attribute_survives() {
        let mut bytes = READ_10;
        bytes[4] = 0x07;
        let iu = CommandIu::decode(&bytes).unwrap();
        assert_eq!(iu.attribute, TaskAttribute::Unknown(7));
        assert_eq!(iu.encode(), bytes);
    }

    proptest! {
        #[test]
        fn any_bytes_decode_or_say_why(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = CommandIu::decode(&bytes);
        }

        #[test]
        fn decode_undoes_encode(
            tag: u16, attribute in 0u8..8, priority in 0u8..16, lun: [u8; 8], cdb: [u8; 16],
            dwords in prop::collection::vec(any::<[u8; 4]>(), 0..=63),
        ) {
            let additional: Vec<u8> = dwords.concat();
            let attribute = TaskAttribute::from(attribute);
            let iu = CommandIu { tag, attribute, priority, lun, cdb: &cdb, additional_cdb: &additional };
            let bytes = [&iu.encode()[..], &additional].concat();
            prop_assert_eq!(CommandIu::decode(&bytes).unwrap(), iu);
        }
    }
}
