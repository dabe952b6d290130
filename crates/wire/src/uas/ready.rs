//! READ READY and WRITE READY information units (UAS-2 clauses 6.2.3 and 6.2.4).
//!
//! Only without streams: the device names the command whose data moves next on the data pipe. With streams
//! the tag is in the stream id, and a READY IU would take the place of the SENSE IU.

use super::header::IuId;
use crate::DecodeError;
use crate::usb::Direction;
use core::fmt;

/// The device is about to move data of one command.
///
/// ```text
///  0      id (06h READ READY, 07h WRITE READY)
///  1      reserved
///  2..4   tag
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadyIu {
    /// [`Direction::In`] is READ READY, [`Direction::Out`] is WRITE READY.
    pub direction: Direction,
    /// The tag of the command whose data is next.
    pub tag: u16,
}

impl ReadyIu {
    /// Bytes of the IU.
    pub const LEN: usize = 4;

    /// Decodes an IU of either kind; bytes past it are ignored. An error names READ READY as the expected one.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let &[id, _, high, low] =
            bytes.first_chunk::<4>().ok_or(DecodeError::Truncated { needed: Self::LEN, got: bytes.len() })?;
        let direction = match IuId::from(id) {
            IuId::ReadReady => Direction::In,
            IuId::WriteReady => Direction::Out,
            _ => {
                let expected = u8::from(IuId::ReadReady).into();
                return Err(DecodeError::WrongKind { expected, found: id.into() });
            }
        };
        Ok(Self { direction, tag: u16::from_be_bytes([high, low]) })
    }

    /// The whole IU.
    pub fn encode(&self) -> [u8; 4] {
        let [high, low] = self.tag.to_be_bytes();
        [self.id().into(), 0, high, low]
    }

    /// Which of the two it is.
    pub const fn id(&self) -> IuId {
        match self.direction {
            Direction::In => IuId::ReadReady,
            Direction::Out => IuId::WriteReady,
        }
    }
}

impl fmt::Display for ReadyIu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} tag {}", self.id(), self.tag)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    #[test]
    fn literal_read_ready_both_ways() {
        let iu = ReadyIu { direction: Direction::In, tag: 0x0102 };
        assert_eq!(ReadyIu::decode(&[0x06, 0x00, 0x01, 0x02]), Ok(iu));
        assert_eq!(iu.encode(), [0x06, 0x00, 0x01, 0x02]);
        assert_eq!(iu.to_string(), "READ READY tag 258");
    }

    #[test]
    fn literal_write_ready_both_ways() {
        let iu = ReadyIu { direction: Direction::Out, tag: 3 };
        assert_eq!(ReadyIu::decode(&[0x07, 0x00, 0x00, 0x03]), Ok(iu));
        assert_eq!(iu.encode(), [0x07, 0x00, 0x00, 0x03]);
        assert_eq!(iu.to_string(), "WRITE READY tag 3");
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for len in 0..4 {
            let error = ReadyIu::decode(&[0x06, 0, 0, 1][..len]).unwrap_err();
            assert_eq!(error, DecodeError::Truncated { needed: 4, got: len });
        }
    }

    #[test]
    fn another_id_is_another_kind() {
        let error = DecodeError::WrongKind { expected: 6, found: 8 };
        assert_eq!(ReadyIu::decode(&[0x08, 0, 0, 1]), Err(error));
    }

    proptest! {
        #[test]
        fn any_bytes_decode_or_say_why(bytes in prop::collection::vec(any::<u8>(), 0..16)) {
            let _ = ReadyIu::decode(&bytes);
        }

        #[test]
        fn decode_undoes_encode(tag: u16, read: bool) {
            let iu = ReadyIu { direction: if read { Direction::In } else { Direction::Out }, tag };
            prop_assert_eq!(ReadyIu::decode(&iu.encode()).unwrap(), iu);
        }
    }
}
