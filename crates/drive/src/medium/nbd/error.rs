//! Why an export cannot be used, in words that say what to do about it.

use super::NbdAddress;
use std::fmt;
use std::io;
use units::{BlockSize, ByteCount};
use wire::DecodeError;
use wire::nbd::OptionReplyKind;

/// Why an export cannot be used.
#[derive(Debug)]
pub struct NbdError {
    /// Which export.
    pub address: NbdAddress,
    /// Reason why it cannot be used.
    pub reason: NbdReason,
}

/// Why an export cannot be used.
#[derive(Debug)]
pub enum NbdReason {
    /// The name of the host has no address.
    Unresolved(io::Error),
    /// There is no connection.
    NotConnected(io::Error),
    /// The server did not answer in time.
    TimedOut,
    /// The server has closed the connection.
    Closed,
    /// No NBD server answers, or one of the oldstyle protocol.
    NotNbd,
    /// The server has only the oldest negotiation, in which an error has no reason.
    TooOld,
    /// The server wants TLS.
    TlsRequired,
    /// The server has no such export.
    NoExport,
    /// The server refuses for another reason.
    Refused {
        /// The error.
        kind: OptionReplyKind,
        /// The server's words, made legible.
        words: String,
    },
    /// The server has broken the protocol.
    Malformed(DecodeError),
    /// The export is empty.
    Empty,
    /// The size of the export is no multiple of the block size.
    Uneven {
        /// Bytes that it has.
        size: ByteCount,
        /// Bytes in one block.
        block_size: BlockSize,
    },
    /// The server takes only larger blocks.
    BlocksTooSmall {
        /// Bytes that an offset and a length are multiples of.
        minimum: u32,
        /// Bytes in one block.
        block_size: BlockSize,
    },
    /// The system has failed.
    Io(io::Error),
}

impl fmt::Display for NbdError {
    /// Writes what failed, why, and what to do about it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot open {}: {}", self.address, self.reason)
    }
}

impl fmt::Display for NbdReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unresolved(error) => write!(f, "cannot resolve the host ({error}); check its name"),
            Self::NotConnected(error) => write!(
                f,
                "cannot connect ({error}); check that the server runs and listens at this address"
            ),
            Self::TimedOut => f.write_str(
                "the server did not answer in time; check that it runs, and that it accepts another client",
            ),
            Self::Closed => {
                f.write_str("the server closed the connection during negotiation; see the server's log")
            }
            Self::NotNbd => f.write_str(
                "what listens there is not an NBD server with newstyle negotiation; check the port",
            ),
            Self::TooOld => f.write_str(
                "the server does not support fixed newstyle negotiation with NBD_OPT_GO; use a newer server",
            ),
            Self::TlsRequired => f.write_str(
                "the server requires TLS, which is not supported; export it without TLS on a Unix socket or loopback, \
                 and reach that by a tunnel (ssh -L)",
            ),
            Self::NoExport => f.write_str(
                "the server has no export of this name; list its exports with `nbdinfo --list` or `qemu-nbd --list`",
            ),
            Self::Refused { kind, words } if words.is_empty() => write!(f, "the server refuses it ({kind})"),
            Self::Refused { kind, words } => write!(f, "the server refuses it ({kind}: {words})"),
            Self::Malformed(error) => write!(f, "the server broke the protocol ({error})"),
            Self::Empty => f.write_str("the export has a size of zero; enlarge it"),
            Self::Uneven { size, block_size } => write!(
                f,
                "its size of {} bytes is not a multiple of the block size of {} bytes; resize the export, or use \
                 another block size",
                size.0,
                block_size.bytes()
            ),
            Self::BlocksTooSmall { minimum, block_size } => write!(
                f,
                "the server accepts only multiples of {minimum} bytes, and blocks have {}; use a block size of {minimum}",
                block_size.bytes()
            ),
            Self::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for NbdError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.reason {
            NbdReason::Unresolved(error) | NbdReason::NotConnected(error) | NbdReason::Io(error) => {
                Some(error)
            }
            NbdReason::Malformed(error) => Some(error),
            _ => None,
        }
    }
}
