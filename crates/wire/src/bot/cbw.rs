//! Command Block Wrapper (Bulk-Only Transport 1.0 clause 5.1).
//!
//! The standard distinguishes *valid* from *meaningful* (clause 6.2), because a device answers them differently.
//! A wrapper that is not valid does not decode; one that decodes is asked for its meaning separately.

use crate::DecodeError;
use crate::usb::Direction;
use core::fmt;

/// One command on its way to the device. Little-endian.
///
/// ```text
///  0..4   dCBWSignature (43425355h, "USBC")      13      bCBWLUN (3:0)
///  4..8   dCBWTag                                14      bCBWCBLength (4:0), 1 to 16
///  8..12  dCBWDataTransferLength (bytes)         15..31  CBWCB
/// 12      bmCBWFlags: direction (7)
/// ```
///
/// The bytes 12 to 14 are preserved as received, with their reserved bits: [`Self::meaningful`] judges them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cbw {
    /// The status wrapper of this command carries it back.
    #[doc(alias = "dCBWTag")]
    pub tag: u32,
    /// Bytes that the host expects to move; 0 is no data phase, and then the direction means nothing.
    #[doc(alias = "dCBWDataTransferLength")]
    pub transfer_len: u32,
    /// Bit 7 is the direction, bit 6 is obsolete, the others are reserved.
    #[doc(alias = "bmCBWFlags")]
    pub flags: u8,
    /// Bits 3:0 are the logical unit, the others are reserved.
    #[doc(alias = "bCBWLUN")]
    pub lun: u8,
    /// Bytes of the command block that count; bits 7:5 are reserved.
    #[doc(alias = "bCBWCBLength")]
    pub command_len: u8,
    /// The command block, whatever is in it past its length.
    #[doc(alias = "CBWCB")]
    pub command: [u8; 16],
}

/// Why a valid wrapper makes no sense to the device (clause 6.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaningless {
    /// A reserved bit is set in the byte at this offset.
    ReservedBits {
        /// 12, 13 or 14.
        offset: u8,
    },
    /// The device has no such logical unit.
    NoSuchLun {
        /// The unit asked for.
        lun: u8,
        /// The highest one there is.
        max_lun: u8,
    },
    /// A command block is 1 to 16 bytes.
    CommandLength {
        /// The length found.
        len: u8,
    },
}

impl Cbw {
    /// Bytes of the wrapper, no more and no less.
    pub const LEN: usize = 31;
    /// "USBC", read little-endian.
    #[doc(alias = "dCBWSignature")]
    pub const SIGNATURE: u32 = 0x4342_5355;

    /// A wrapper with every reserved bit clear. A command past 16 bytes is cut; BOT cannot carry it.
    pub fn new(tag: u32, transfer_len: u32, direction: Direction, lun: u8, command: &[u8]) -> Self {
        let mut block = [0; 16];
        for (place, byte) in block.iter_mut().zip(command) {
            *place = *byte;
        }
        let command_len = command.len().min(16) as u8;
        Self { tag, transfer_len, flags: direction.bit_7(), lun: lun & 0x0f, command_len, command: block }
    }

    /// Decodes a wrapper that is *valid* in itself (clause 6.2.1): its length and its signature are right.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let got = bytes.len();
        let (head, tail) =
            bytes.split_first_chunk::<15>().ok_or(DecodeError::Truncated { needed: Self::LEN, got })?;
        let signature = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
        let command = *tail.first_chunk::<16>().ok_or(DecodeError::Truncated { needed: Self::LEN, got })?;
        if got != Self::LEN {
            return Err(DecodeError::Invalid { field: "length of the CBW", value: got as u64 });
        }
        if signature != Self::SIGNATURE {
            return Err(DecodeError::WrongKind { expected: Self::SIGNATURE, found: signature });
        }
        Ok(Self {
            tag: u32::from_le_bytes([head[4], head[5], head[6], head[7]]),
            transfer_len: u32::from_le_bytes([head[8], head[9], head[10], head[11]]),
            flags: head[12],
            lun: head[13],
            command_len: head[14],
            command,
        })
    }

    /// The whole wrapper.
    pub fn encode(&self) -> [u8; 31] {
        let mut cbw = [0; 31];
        let head = [Self::SIGNATURE, self.tag, self.transfer_len].map(u32::to_le_bytes);
        let fixed = [self.flags, self.lun, self.command_len];
        let bytes = head.as_flattened().iter().chain(&fixed).chain(&self.command);
        for (place, byte) in cbw.iter_mut().zip(bytes) {
            *place = *byte;
        }
        cbw
    }

    /// Which way the data phase goes, if there is one.
    pub const fn direction(&self) -> Direction {
        Direction::from_bit_7(self.flags)
    }

    /// The command block, if the wrapper is *meaningful* to a device whose highest unit is `max_lun`.
    ///
    /// Whether the block is a command of the subclass is for the unit to say. The obsolete bit 6 of the
    /// flags is not a reserved one and is let through.
    pub fn meaningful(&self, max_lun: u8) -> Result<&[u8], Meaningless> {
        let reserved = [(12, self.flags & 0x3f), (13, self.lun & 0xf0), (14, self.command_len & 0xe0)];
        if let Some(&(offset, _)) = reserved.iter().find(|(_, bits)| *bits != 0) {
            return Err(Meaningless::ReservedBits { offset });
        }
        if self.lun > max_lun {
            return Err(Meaningless::NoSuchLun { lun: self.lun, max_lun });
        }
        match self.command.get(..self.command_len.into()) {
            Some(block) if !block.is_empty() => Ok(block),
            _ => Err(Meaningless::CommandLength { len: self.command_len }),
        }
    }
}

impl fmt::Display for Cbw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tag, transfer_len, lun, command, .. } = self;
        write!(f, "CBW tag {tag:#010x} LUN {lun} opcode {:#04x}", command[0])?;
        match transfer_len {
            0 => f.write_str(", no data"),
            len => write!(f, ", {len} bytes {}", self.direction()),
        }
    }
}

impl fmt::Display for Meaningless {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ReservedBits { offset } => write!(f, "reserved bits set in byte {offset}"),
            Self::NoSuchLun { lun, max_lun } => write!(f, "LUN {lun} where the highest is {max_lun}"),
            Self::CommandLength { len } => write!(f, "a command block of {len} bytes"),
        }
    }
}

impl core::error::Error for Meaningless {}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    /// READ(10) of 8 blocks at LBA 0x11223344 on LUN 1: 4096 bytes to the host, tag 0x0a0b0c0d.
    const READ_10: [u8; 31] = [
        0x55, 0x53, 0x42, 0x43, 0x0d, 0x0c, 0x0b, 0x0a, 0x00, 0x10, 0x00, 0x00, 0x80, 0x01,
        0x0a, // wrapper
        0x28, 0x00, 0x11, 0x22, 0x33, 0x44, 0x00, 0x00, 0x08, 0x00, 0, 0, 0, 0, 0, 0, // command block
    ];

    #[test]
    fn literal_bytes_both_ways() {
        let cbw = Cbw::decode(&READ_10).unwrap();
        assert_eq!(cbw.tag, 0x0a0b_0c0d);
        assert_eq!(cbw.transfer_len, 4096);
        assert_eq!(cbw.direction(), Direction::In);
        assert_eq!(cbw.lun, 1);
        let block = [0x28, 0x00, 0x11, 0x22, 0x33, 0x44, 0x00, 0x00, 0x08, 0x00];
        assert_eq!(cbw.meaningful(1), Ok(&block[..]));
        assert_eq!(cbw.encode(), READ_10);
        assert_eq!(Cbw::new(0x0a0b_0c0d, 4096, Direction::In, 1, &block), cbw);
        assert_eq!(cbw.to_string(), "CBW tag 0x0a0b0c0d LUN 1 opcode 0x28, 4096 bytes IN");
    }

    #[test]
    fn test_unit_ready_has_no_data() {
        let cbw = Cbw::new(1, 0, Direction::Out, 0, &[0; 6]);
        let bytes = cbw.encode();
        assert_eq!(bytes[..15], [0x55, 0x53, 0x42, 0x43, 1, 0, 0, 0, 0, 0, 0, 0, 0x00, 0x00, 0x06]);
        assert_eq!(cbw.to_string(), "CBW tag 0x00000001 LUN 0 opcode 0x00, no data");
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for len in 0..31 {
            let error = Cbw::decode(&READ_10[..len]).unwrap_err();
            assert_eq!(error, DecodeError::Truncated { needed: 31, got: len });
        }
    }

    #[test]
    fn one_byte_too_many_is_not_valid() {
        let long = [&READ_10[..], &[0]].concat();
        let error = DecodeError::Invalid { field: "length of the CBW", value: 32 };
        assert_eq!(Cbw::decode(&long), Err(error));
    }

    #[test]
    fn another_signature_is_not_valid() {
        let mut bytes = READ_10;
        bytes[3] = 0x53; // "USBS", a status wrapper's
        let error = DecodeError::WrongKind { expected: 0x4342_5355, found: 0x5342_5355 };
        assert_eq!(Cbw::decode(&bytes), Err(error));
    }

    #[test]
    fn each_reserved_bit_is_meaningless_and_survives() {
        for (offset, bits) in [(12, 0x01), (12, 0x20), (13, 0x10), (13, 0x80), (14, 0x20), (14, 0x80)] {
            let mut bytes = READ_10;
            bytes[offset] |= bits;
            let cbw = Cbw::decode(&bytes).unwrap();
            let offset = offset as u8;
            assert_eq!(cbw.meaningful(15), Err(Meaningless::ReservedBits { offset }));
            assert_eq!(cbw.encode(), bytes);
        }
    }

    #[test]
    fn the_obsolete_flag_is_let_through() {
        let mut bytes = READ_10;
        bytes[12] |= 0x40;
        assert!(Cbw::decode(&bytes).unwrap().meaningful(1).is_ok());
    }

    #[test]
    fn a_unit_that_is_not_there_is_meaningless() {
        let cbw = Cbw::decode(&READ_10).unwrap();
        assert_eq!(cbw.meaningful(0), Err(Meaningless::NoSuchLun { lun: 1, max_lun: 0 }));
    }

    #[test]
    fn a_command_block_is_one_to_sixteen_bytes() {
        for len in 0..=31 {
            let mut bytes = READ_10;
            bytes[14] = len;
            let cbw = Cbw::decode(&bytes).unwrap();
            match len {
                1..=16 => assert_eq!(cbw.meaningful(1), Ok(&bytes[15..15 + usize::from(len)])),
                _ => assert_eq!(cbw.meaningful(1), Err(Meaningless::CommandLength { len })),
            }
        }
    }

    proptest! {
        #[test]
        fn any_bytes_decode_or_say_why(bytes in prop::collection::vec(any::<u8>(), 29..34), max_lun: u8) {
            let mut bytes = bytes;
            bytes[..4].copy_from_slice(b"USBC");
            if let Ok(cbw) = Cbw::decode(&bytes) {
                let _ = cbw.meaningful(max_lun);
                prop_assert_eq!(&cbw.encode()[..], &bytes[..]);
            }
        }

        #[test]
        fn decode_undoes_encode(
            tag: u32, transfer_len: u32, flags: u8, lun: u8, command_len: u8, command: [u8; 16],
        ) {
            let cbw = Cbw { tag, transfer_len, flags, lun, command_len, command };
            prop_assert_eq!(Cbw::decode(&cbw.encode()).unwrap(), cbw);
        }
    }
}
