//! Errors of decoding, and the one error of encoding: a buffer that is too small.

use core::fmt;

/// Why bytes are not a value of the type asked for. Names the guilty bytes, never the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// Fewer bytes than the type has.
    Truncated {
        /// Bytes the type needs, as far as is known.
        needed: usize,
        /// Bytes there were.
        got: usize,
    },
    /// The type's own identifying code (IU id, descriptor type, signature, operation code) is another's.
    WrongKind {
        /// The code of the type asked for.
        expected: u32,
        /// The code found.
        found: u32,
    },
    /// A field holds a value that its definition does not allow.
    Invalid {
        /// The field, by its name in the standard.
        field: &'static str,
        /// The value found.
        value: u64,
    },
}

/// The destination is too small for an encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRoom {
    /// Bytes the encoding needs, as far as is known.
    pub needed: usize,
    /// Bytes there were.
    pub got: usize,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { needed, got } => write!(f, "{got} bytes where at least {needed} are needed"),
            Self::WrongKind { expected, found } => {
                write!(f, "code {found:#x} where {expected:#x} was expected")
            }
            Self::Invalid { field, value } => write!(f, "{field} cannot be {value:#x}"),
        }
    }
}

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes of room where {} are needed", self.got, self.needed)
    }
}

impl core::error::Error for DecodeError {}
impl core::error::Error for NoRoom {}
