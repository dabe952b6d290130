//! A SCSI command as its submitter describes it (SAM-5 clause 5.1).
//!
//! Tags are internal to the transport. Payload stays with the caller: a command names a range of
//! the caller's buffer. Left out: bidirectional commands, which no USB transport in use carries.

use bus::Direction;
use core::fmt;
use units::{ByteRange, Instant};
use wire::scsi::cdb::Cdb;
use wire::scsi::lun::LunField;
use wire::uas::TaskAttribute;

/// Length of the longest command descriptor block carried; the variable-length ones in use have 32
/// bytes.
pub const CDB_BYTES_MAX: usize = 32;

/// Identifies a command from its submission to its end.
///
/// The caller chooses the ids; two commands in flight must not share one. The generation counts the
/// uses of a slot, so that a late answer to an earlier use matches nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommandId {
    /// The index of the slot, chosen by the caller.
    pub slot: u16,
    /// The number of uses of the slot.
    pub generation: u32,
}

/// A command descriptor block of 1 to [`CDB_BYTES_MAX`] bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
// Moved in whole words, as it is made.
#[repr(align(8))]
pub struct CommandBlock {
    bytes: [u8; CDB_BYTES_MAX],
    len: u8,
}

/// The data phase of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataPhase {
    /// The direction, seen from the host.
    pub direction: Direction,
    /// The bytes of the command's buffer. An empty range means no data phase.
    pub range: ByteRange,
}

/// One SCSI command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// Returned with the outcome; identifies the buffer in transfers.
    pub id: CommandId,
    /// The logical unit.
    pub lun: LunField,
    /// The task attribute; ignored by a transport without queueing.
    pub attribute: TaskAttribute,
    /// The command descriptor block.
    pub cdb: CommandBlock,
    /// The data phase, if any.
    pub data_phase: Option<DataPhase>,
    /// When the command times out and error recovery starts.
    pub deadline: Instant,
}

impl CommandBlock {
    /// Copies the bytes; `None` if there are none or more than [`CDB_BYTES_MAX`].
    pub fn new(bytes: &[u8]) -> Option<Self> {
        if bytes.is_empty() || bytes.len() > CDB_BYTES_MAX {
            return None;
        }
        let mut block = Self { bytes: [0; CDB_BYTES_MAX], len: bytes.len() as u8 };
        block.bytes[..bytes.len()].copy_from_slice(bytes);
        Some(block)
    }

    /// Returns the bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// Returns all [`CDB_BYTES_MAX`] bytes, zero past the length.
    pub const fn padded(&self) -> &[u8; CDB_BYTES_MAX] {
        &self.bytes
    }

    /// The bytes as a COMMAND IU carries them: the first 16, those that follow, zero past the
    /// length, and how many of these are sent, in fours.
    #[inline]
    pub(crate) fn in_iu(&self) -> (&[u8; 16], &[u8; 16], usize) {
        let (cdb, additional) = self.bytes.split_first_chunk::<16>().expect("a block has 32 bytes");
        let additional = additional.first_chunk::<16>().expect("a block has 32 bytes");
        let len = self.len().saturating_sub(cdb.len()).next_multiple_of(4);
        (cdb, additional, len.min(additional.len()))
    }

    /// How many bytes count.
    #[allow(clippy::len_without_is_empty, reason = "no command descriptor block is empty")]
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// The operation code.
    pub const fn operation_code(&self) -> u8 {
        self.bytes[0]
    }
}

impl From<Cdb> for CommandBlock {
    fn from(cdb: Cdb) -> Self {
        let mut block = Self { bytes: [0; CDB_BYTES_MAX], len: cdb.width().len() as u8 };
        // A length that is known when compiling is copied without a call.
        block.bytes[..16].copy_from_slice(cdb.padded());
        block
    }
}

impl Command {
    /// The data phase, if there are bytes to move.
    pub fn transfer(&self) -> Option<DataPhase> {
        self.data_phase.filter(|phase| !phase.range.is_empty())
    }

    /// Bytes to move; 0 without a data phase.
    pub fn transfer_len(&self) -> u32 {
        self.data_phase.map_or(0, |phase| phase.range.len)
    }
}

impl fmt::Debug for CommandBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CommandBlock({:02x?})", self.as_bytes())
    }
}

impl fmt::Display for CommandId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "command {}.{}", self.slot, self.generation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_block_has_between_one_and_thirty_two_bytes() {
        assert_eq!(CommandBlock::new(&[]), None);
        assert_eq!(CommandBlock::new(&[0; 33]), None);
        let block = CommandBlock::new(&[0x12, 0, 0, 0, 36, 0]).unwrap();
        assert_eq!(block.as_bytes(), [0x12, 0, 0, 0, 36, 0]);
        assert_eq!(block.operation_code(), 0x12);
        assert_eq!(block.padded()[6..], [0; 26]);
    }
}
