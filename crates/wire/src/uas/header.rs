//! The header of an information unit (UAS-2 clause 6.2).
//!
//! Left out: the tag, which each unit decodes. Always true: an id that is not known survives.

use crate::DecodeError;

/// Bytes of the header that begins every unit.
pub const HEADER_LEN: usize = 4;

code! {
    /// The id of an information unit, byte 0 of each (UAS-2 table 9).
    pub enum IuId: u8 {
        /// COMMAND, host to device on the command pipe.
        Command = 0x01 => "COMMAND",
        /// SENSE, device to host on the status pipe.
        Sense = 0x03 => "SENSE",
        /// RESPONSE, device to host on the status pipe.
        Response = 0x04 => "RESPONSE",
        /// TASK MANAGEMENT, host to device on the command pipe.
        TaskManagement = 0x05 => "TASK MANAGEMENT",
        /// READ READY, device to host on the status pipe, without streams only.
        ReadReady = 0x06 => "READ READY",
        /// WRITE READY, device to host on the status pipe, without streams only.
        WriteReady = 0x07 => "WRITE READY",
    }
}

#[inline]
pub(super) fn header(bytes: &[u8]) -> Result<&[u8; HEADER_LEN], DecodeError> {
    bytes.first_chunk().ok_or(DecodeError::Truncated { needed: HEADER_LEN, got: bytes.len() })
}

#[inline]
pub(super) fn expect_id(expected: IuId, found: u8) -> Result<(), DecodeError> {
    let expected = u8::from(expected);
    if found == expected {
        return Ok(());
    }
    Err(DecodeError::WrongKind { expected: expected.into(), found: found.into() })
}
