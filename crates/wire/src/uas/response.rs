//! RESPONSE information unit (UAS-2 clause 6.2.6): the answer to task management, and to an IU that is
//! not a command at all.

use super::header::{IuId, expect_id};
use crate::DecodeError;
use crate::scsi::sense::{AdditionalSense, SenseKey};
use core::fmt;

/// RESPONSE IU: result of a task management function, or the reason why an IU was rejected.
///
/// ```text
///  0      id (04h)                  4..7   ADDITIONAL RESPONSE INFORMATION
///  1      reserved                  7      RESPONSE CODE
///  2..4   tag
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseIu {
    /// The tag of the IU answered.
    pub tag: u16,
    /// QUERY ASYNCHRONOUS EVENT describes the event here (SAM-5 clause 7.9); otherwise zero.
    pub additional: [u8; 3],
    /// The answer.
    pub code: ResponseCode,
}

code! {
    /// Response code (UAS-2 clause 6.2.6).
    pub enum ResponseCode: u8 {
        /// The task management function did what there was to do; also when that was nothing.
        TaskManagementComplete = 0x00 => "task management function complete",
        /// The IU is too short, of an unknown kind, or holds a field that it must not.
        InvalidIu = 0x02 => "invalid information unit",
        /// The device does not have this task management function.
        TaskManagementNotSupported = 0x04 => "task management function not supported",
        /// The device has it but could not do it.
        TaskManagementFailed = 0x05 => "task management function failed",
        /// A query found what it asked for.
        TaskManagementSucceeded = 0x08 => "task management function succeeded",
        /// No such logical unit.
        IncorrectLun = 0x09 => "incorrect logical unit number",
        /// The tag names a command or a function that has not ended yet.
        OverlappedTag = 0x0a => "overlapped tag attempted",
    }
}

impl ResponseIu {
    /// Bytes of the IU.
    pub const LEN: usize = 8;

    /// An answer without additional information.
    pub const fn new(tag: u16, code: ResponseCode) -> Self {
        Self { tag, additional: [0; 3], code }
    }

    /// The answer to QUERY ASYNCHRONOUS EVENT where one unit attention condition stands
    /// (SAM-5 table 56: UADE DEPTH and sense key, then the additional sense code and its qualifier).
    pub const fn asynchronous_event(tag: u16, additional: AdditionalSense) -> Self {
        const ONE_EVENT: u8 = 0b01 << 4;
        let key = SenseKey::UnitAttention as u8;
        let additional = [ONE_EVENT | key, additional.asc, additional.ascq];
        Self { tag, additional, code: ResponseCode::TaskManagementSucceeded }
    }

    /// Decodes an IU; bytes past it are ignored.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let iu =
            bytes.first_chunk::<8>().ok_or(DecodeError::Truncated { needed: Self::LEN, got: bytes.len() })?;
        expect_id(IuId::Response, iu[0])?;
        Ok(Self {
            tag: u16::from_be_bytes([iu[2], iu[3]]),
            additional: [iu[4], iu[5], iu[6]],
            code: ResponseCode::from(iu[7]),
        })
    }

    /// The whole IU.
    pub fn encode(&self) -> [u8; 8] {
        let tag = self.tag.to_be_bytes();
        let [first, second, third] = self.additional;
        [IuId::Response.into(), 0, tag[0], tag[1], first, second, third, self.code.into()]
    }
}

impl fmt::Display for ResponseIu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RESPONSE tag {} {}", self.tag, self.code)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    /// INCORRECT LUN for tag 0x0203, with additional information 0x0a0b0c.
    const INCORRECT_LUN: [u8; 8] = [0x04, 0x00, 0x02, 0x03, 0x0a, 0x0b, 0x0c, 0x09];

    #[test]
    fn literal_bytes_both_ways() {
        let iu = ResponseIu::decode(&INCORRECT_LUN).unwrap();
        assert_eq!(iu.tag, 0x0203);
        assert_eq!(iu.additional, [0x0a, 0x0b, 0x0c]);
        assert_eq!(iu.code, ResponseCode::IncorrectLun);
        assert_eq!(iu.encode(), INCORRECT_LUN);
        assert_eq!(iu.to_string(), "RESPONSE tag 515 incorrect logical unit number");
    }

    #[test]
    fn the_codes_of_the_standard() {
        let codes = [0x00, 0x02, 0x04, 0x05, 0x08, 0x09, 0x0a].map(ResponseCode::from);
        let expected = [
            ResponseCode::TaskManagementComplete,
            ResponseCode::InvalidIu,
            ResponseCode::TaskManagementNotSupported,
            ResponseCode::TaskManagementFailed,
            ResponseCode::TaskManagementSucceeded,
            ResponseCode::IncorrectLun,
            ResponseCode::OverlappedTag,
        ];
        assert_eq!(codes, expected);
    }

    #[test]
    fn a_plain_answer_has_no_additional_information() {
        let bytes = ResponseIu::new(1, ResponseCode::InvalidIu).encode();
        assert_eq!(bytes, [0x04, 0, 0, 1, 0, 0, 0, 2]);
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for len in 0..INCORRECT_LUN.len() {
            let error = ResponseIu::decode(&INCORRECT_LUN[..len]).unwrap_err();
            assert_eq!(error, DecodeError::Truncated { needed: 8, got: len });
        }
    }

    #[test]
    fn another_id_is_another_kind() {
        let mut bytes = INCORRECT_LUN;
        bytes[0] = 0x03;
        assert_eq!(ResponseIu::decode(&bytes), Err(DecodeError::WrongKind { expected: 4, found: 3 }));
    }

    #[test]
    fn an_unknown_code_survives() {
        let mut bytes = INCORRECT_LUN;
        bytes[7] = 0x77;
        let iu = ResponseIu::decode(&bytes).unwrap();
        assert_eq!(iu.code, ResponseCode::Unknown(0x77));
        assert_eq!(iu.encode(), bytes);
    }

    proptest! {
        #[test]
        fn any_bytes_decode_or_say_why(bytes in prop::collection::vec(any::<u8>(), 0..32)) {
            let _ = ResponseIu::decode(&bytes);
        }

        #[test]
        fn decode_undoes_encode(tag: u16, additional: [u8; 3], code: u8) {
            let iu = ResponseIu { tag, additional, code: code.into() };
            prop_assert_eq!(ResponseIu::decode(&iu.encode()).unwrap(), iu);
        }
    }
}
