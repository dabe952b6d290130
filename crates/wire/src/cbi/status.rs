//! The two bytes of the interrupt endpoint (CBI Transport 1.1 clause 3.4).
//!
//! Their meaning depends on the command set: UFI sends ASC and ASCQ of its sense data (clause 3.4.3.1.1), all others a type
//! and a value.

use crate::DecodeError;
use core::fmt;

/// How a command ended, as the interrupt endpoint reports it.
///
/// ```text
///         UFI      others
///  0      ASC      bType (00h: command completion)
///  1      ASCQ     bValue (1:0)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusBlock(pub [u8; 2]);

/// The meaning of a [`StatusBlock`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandStatus {
    /// Of UFI: the additional sense code and its qualifier; both zero after success.
    Ufi {
        /// ADDITIONAL SENSE CODE.
        asc: u8,
        /// ADDITIONAL SENSE CODE QUALIFIER.
        ascq: u8,
    },
    /// Of any other command set.
    Completion(CompletionValue),
}

/// `bValue` of a command completion (table 3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompletionValue {
    /// 0: the command succeeded.
    Pass,
    /// 1: it failed; REQUEST SENSE reports why.
    Fail,
    /// 2: host and device disagreed on the data phase.
    PhaseError,
    /// 3: it failed, and the device needs a reset.
    PersistentFailure,
}

impl StatusBlock {
    /// Bytes of the block.
    pub const LEN: usize = 2;

    /// Decodes a block; bytes past it are ignored.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let block = bytes.first_chunk::<2>();
        block.map(|block| Self(*block)).ok_or(DecodeError::Truncated { needed: 2, got: bytes.len() })
    }

    /// The meaning for UFI.
    pub const fn ufi(self) -> CommandStatus {
        let Self([asc, ascq]) = self;
        CommandStatus::Ufi { asc, ascq }
    }

    /// The meaning for another command set.
    ///
    /// # Errors
    /// A type that is not a command completion.
    pub fn completion(self) -> Result<CommandStatus, DecodeError> {
        let Self([kind, value]) = self;
        if kind != 0 {
            return Err(DecodeError::Invalid { field: "bType", value: kind.into() });
        }
        Ok(CommandStatus::Completion(match value & 0x03 {
            0 => CompletionValue::Pass,
            1 => CompletionValue::Fail,
            2 => CompletionValue::PhaseError,
            _ => CompletionValue::PersistentFailure,
        }))
    }
}

impl CommandStatus {
    /// The two bytes on the wire.
    pub const fn encode(self) -> [u8; 2] {
        match self {
            Self::Ufi { asc, ascq } => [asc, ascq],
            Self::Completion(value) => [0, value as u8],
        }
    }

    /// Whether the command succeeded. Hosts look at ASC alone: a qualifier has no meaning without it.
    pub const fn is_success(self) -> bool {
        matches!(self, Self::Ufi { asc: 0, .. } | Self::Completion(CompletionValue::Pass))
    }
}

impl fmt::Display for CommandStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ufi { asc: 0, ascq: 0 } => f.write_str("good"),
            Self::Ufi { asc, ascq } => write!(f, "ASC {asc:02x}h, ASCQ {ascq:02x}h"),
            Self::Completion(value) => f.write_str(match value {
                CompletionValue::Pass => "pass",
                CompletionValue::Fail => "fail",
                CompletionValue::PhaseError => "phase error",
                CompletionValue::PersistentFailure => "persistent failure",
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn literal_bytes_both_ways() {
        let changed = StatusBlock::decode(&[0x28, 0x01]).unwrap().ufi();
        assert_eq!(changed, CommandStatus::Ufi { asc: 0x28, ascq: 0x01 });
        assert_eq!((changed.encode(), changed.is_success()), ([0x28, 0x01], false));
        assert_eq!(changed.to_string(), "ASC 28h, ASCQ 01h");
        let good = StatusBlock([0, 0]).ufi();
        assert!(good.is_success() && good.to_string() == "good");
        let values = ["pass", "fail", "phase error", "persistent failure"];
        for (value, text) in (0..).zip(values) {
            let status = StatusBlock([0, value]).completion().unwrap();
            assert_eq!((status.encode(), status.to_string().as_str()), ([0, value], text));
            assert_eq!(status.is_success(), value == 0);
        }
    }

    #[test]
    fn short_blocks_and_unknown_types_are_errors() {
        assert_eq!(StatusBlock::decode(&[0x28]), Err(DecodeError::Truncated { needed: 2, got: 1 }));
        assert_eq!(StatusBlock::decode(&[]), Err(DecodeError::Truncated { needed: 2, got: 0 }));
        let unknown = StatusBlock([0x80, 0]).completion();
        assert_eq!(unknown, Err(DecodeError::Invalid { field: "bType", value: 0x80 }));
    }
}
