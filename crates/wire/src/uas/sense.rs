//! SENSE information unit (UAS-2 clause 6.2.5): the end of a command.

use super::header::{IuId, expect_id};
use crate::scsi::Status;
use crate::{DecodeError, NoRoom, Writer};
use core::fmt;

/// The status of one command, with the sense data that belongs to it.
///
/// ```text
///  0      id (03h)                  6      STATUS
///  1      reserved                  7..14  reserved
///  2..4   tag                      14..16  SENSE DATA LENGTH (bytes)
///  4..6   STATUS QUALIFIER         16..    SENSE DATA
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenseIu<'a> {
    /// The tag of the command that ends.
    pub tag: u16,
    /// When to try again after BUSY, TASK SET FULL and such (SAM-5 clause 5.3.2); 0 says nothing.
    pub status_qualifier: u16,
    /// How the command ended.
    pub status: Status,
    /// Sense data in fixed or descriptor format; may be empty.
    pub sense: &'a [u8],
}

impl<'a> SenseIu<'a> {
    /// Bytes without sense data.
    pub const LEN: usize = 16;

    /// Decodes an IU; bytes past the sense data length are ignored, a length past the bytes is an error.
    #[inline(always)]
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let Some((head, rest)) = bytes.split_first_chunk::<16>() else {
            return Err(truncated(Self::LEN, bytes));
        };
        expect_id(IuId::Sense, head[0])?;
        let sense_len = usize::from(u16::from_be_bytes([head[14], head[15]]));
        let Some(sense) = rest.get(..sense_len) else { return Err(truncated(Self::LEN + sense_len, bytes)) };
        Ok(Self {
            tag: u16::from_be_bytes([head[2], head[3]]),
            status_qualifier: u16::from_be_bytes([head[4], head[5]]),
            status: Status::from(head[6]),
            sense,
        })
    }

    /// Decodes the IU of which a capture has kept the front alone: its sense data may be fewer than it announces.
    ///
    /// # Errors
    /// Bytes that are no SENSE IU, or fewer than its head.
    pub fn decode_front(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let Some((head, rest)) = bytes.split_first_chunk::<16>() else {
            return Err(truncated(Self::LEN, bytes));
        };
        expect_id(IuId::Sense, head[0])?;
        let sense_len = usize::from(u16::from_be_bytes([head[14], head[15]]));
        Ok(Self {
            tag: u16::from_be_bytes([head[2], head[3]]),
            status_qualifier: u16::from_be_bytes([head[4], head[5]]),
            status: Status::from(head[6]),
            sense: rest.get(..sense_len).unwrap_or(rest),
        })
    }

    /// Writes the IU to the front of `out` and says how long it is.
    ///
    /// Sense bytes past 65535 cannot be said in the length field and are left off.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, NoRoom> {
        let sense_len = self.sense.len().min(u16::MAX.into());
        let sense = self.sense.get(..sense_len).unwrap_or(self.sense);
        let (needed, got) = (Self::LEN + sense_len, out.len());
        let mut writer = Writer::new(out);
        let mut put = || {
            writer.put(&self.head())?;
            writer.put(sense)
        };
        put().map_err(|_: NoRoom| NoRoom { needed, got })?;
        Ok(needed)
    }

    /// The bytes before the sense data, which are all if there is none.
    #[inline(always)]
    pub fn head(&self) -> [u8; SenseIu::<'static>::LEN] {
        let (id, status) = (IuId::Sense.into(), self.status.into());
        let [tag, tag_low] = self.tag.to_be_bytes();
        let [qualifier, qualifier_low] = self.status_qualifier.to_be_bytes();
        let [len, len_low] = (self.sense.len().min(u16::MAX.into()) as u16).to_be_bytes();
        [id, 0, tag, tag_low, qualifier, qualifier_low, status, 0, 0, 0, 0, 0, 0, 0, len, len_low]
    }
}

#[cold]
const fn truncated(needed: usize, bytes: &[u8]) -> DecodeError {
    DecodeError::Truncated { needed, got: bytes.len() }
}

impl fmt::Display for SenseIu<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SENSE tag {} {}", self.tag, self.status)?;
        match self.sense.len() {
            0 => Ok(()),
            len => write!(f, " with {len} bytes of sense"),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;
    use std::{vec, vec::Vec};

    /// CHECK CONDITION for tag 0x0102: medium error, unrecovered read error, fixed format.
    const CHECK_CONDITION: [u8; 34] = [
        0x03, 0x00, 0x01, 0x02, 0x00, 0x00, 0x02, 0, 0, 0, 0, 0, 0, 0, 0x00,
        0x12, // header, status, length
        0x70, 0x00, 0x03, 0, 0, 0, 0, 0x0a, 0, 0, 0, 0, 0x11, 0x00, 0, 0, 0, 0, // sense
    ];
    /// TASK SET FULL for tag 7, status qualifier 0x4005.
    const TASK_SET_FULL: [u8; 16] = [0x03, 0, 0, 7, 0x40, 0x05, 0x28, 0, 0, 0, 0, 0, 0, 0, 0, 0];

    #[test]
    fn literal_bytes_both_ways() {
        let iu = SenseIu::decode(&CHECK_CONDITION).unwrap();
        assert_eq!(iu.tag, 0x0102);
        assert_eq!(iu.status, Status::CheckCondition);
        assert_eq!(iu.status_qualifier, 0);
        assert_eq!(iu.sense, &CHECK_CONDITION[16..]);
        let mut out = [0xff; 40];
        assert_eq!(iu.encode(&mut out), Ok(34));
        assert_eq!(out[..34], CHECK_CONDITION);
        assert_eq!(out[34..], [0xff; 6]);
        assert_eq!(iu.to_string(), "SENSE tag 258 CHECK CONDITION with 18 bytes of sense");
    }

    #[test]
    fn a_status_without_sense_takes_sixteen_bytes() {
        let iu = SenseIu::decode(&TASK_SET_FULL).unwrap();
        assert_eq!((iu.status, iu.status_qualifier), (Status::TaskSetFull, 0x4005));
        assert!(iu.sense.is_empty());
        let mut out = [0xff; 16];
        assert_eq!(iu.encode(&mut out), Ok(16));
        assert_eq!(out, TASK_SET_FULL);
        assert_eq!(iu.to_string(), "SENSE tag 7 TASK SET FULL");
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for len in 0..CHECK_CONDITION.len() {
            let needed = if len < 16 { 16 } else { 34 };
            let error = SenseIu::decode(&CHECK_CONDITION[..len]).unwrap_err();
            assert_eq!(error, DecodeError::Truncated { needed, got: len });
        }
    }

    #[test]
    fn bytes_past_the_sense_are_ignored() {
        let padded = [&TASK_SET_FULL[..], &[0xaa; 96]].concat();
        assert!(SenseIu::decode(&padded).unwrap().sense.is_empty());
    }

    #[test]
    fn every_buffer_too_small_is_an_error() {
        let iu = SenseIu::decode(&CHECK_CONDITION).unwrap();
        for len in 0..34 {
            assert_eq!(iu.encode(&mut vec![0; len]), Err(NoRoom { needed: 34, got: len }));
        }
    }

    #[test]
    fn another_id_is_another_kind() {
        let mut bytes = TASK_SET_FULL;
        bytes[0] = 0x04;
        assert_eq!(SenseIu::decode(&bytes), Err(DecodeError::WrongKind { expected: 3, found: 4 }));
    }

    #[test]
    fn an_unknown_status_survives() {
        let mut bytes = TASK_SET_FULL;
        bytes[6] = 0x99;
        let iu = SenseIu::decode(&bytes).unwrap();
        assert_eq!(iu.status, Status::Unknown(0x99));
        let mut out = [0; 16];
        assert_eq!(iu.encode(&mut out), Ok(16));
        assert_eq!(out, bytes);
    }

    #[test]
    fn sense_past_the_length_field_is_left_off() {
        let sense = vec![0x5a; 65536];
        let iu = SenseIu { tag: 1, status_qualifier: 0, status: Status::CheckCondition, sense: &sense };
        let mut out = vec![0; 65552];
        assert_eq!(iu.encode(&mut out), Ok(65551));
        assert_eq!(out[14..16], [0xff, 0xff]);
    }

    #[test]
    fn the_front_of_a_sense_iu_has_its_status_and_the_sense_data_that_were_kept() {
        let mut whole = [3, 0, 0, 7, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 18, 0x70, 0, 5];
        let cut = SenseIu::decode_front(&whole).unwrap();
        assert_eq!((cut.tag, cut.status, cut.sense), (7, Status::CheckCondition, &[0x70, 0, 5][..]));
        assert!(SenseIu::decode(&whole).is_err());
        assert!(SenseIu::decode_front(&whole[..15]).is_err());
        whole[0] = 4;
        assert!(SenseIu::decode_front(&whole).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_decode_or_say_why(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = SenseIu::decode(&bytes);
        }

        #[test]
        fn decode_undoes_encode(
            tag: u16, status_qualifier: u16, status: u8, sense in prop::collection::vec(any::<u8>(), 0..=252),
        ) {
            let iu = SenseIu { tag, status_qualifier, status: status.into(), sense: &sense };
            let mut out: Vec<u8> = vec![0xff; 300];
            let len = iu.encode(&mut out).unwrap();
            prop_assert_eq!(SenseIu::decode(&out[..len]).unwrap(), iu);
        }
    }
}
