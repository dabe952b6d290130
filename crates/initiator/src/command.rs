//! A SCSI command on its way to a unit, as the one who submits it describes it (SAM-5 clause 5.1).
//!
//! Tags are the transport's affair and do not show here. Payload lies with the caller: a command names a range of its
//! own buffer. Left out: bidirectional commands, which no USB transport carries in use.

use bus::Direction;
use core::fmt;
use units::{ByteRange, Instant};
use wire::scsi::cdb::Cdb;
use wire::scsi::lun::LunField;
use wire::uas::TaskAttribute;

/// Bytes of the longest command descriptor block that is carried: the variable-length ones in use have 32.
pub const CDB_BYTES_MAX: usize = 32;

/// Names a command from its submission to its end.
///
/// The caller gives the names; the transport only returns them. Two commands under way must not have the same. The
/// generation counts the fillings of a slot, so that an answer to an earlier one finds nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommandId {
    /// Which of the caller's slots.
    pub slot: u16,
    /// Which filling of it.
    pub generation: u32,
}

/// The bytes of a command descriptor block, 1 to [`CDB_BYTES_MAX`] of them.
#[derive(Clone, Copy, PartialEq, Eq)]
// Moved in whole words, as it is made.
#[repr(align(8))]
pub struct CommandBlock {
    bytes: [u8; CDB_BYTES_MAX],
    len: u8,
}

/// The data of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataPhase {
    /// The host's direction.
    pub direction: Direction,
    /// Which bytes of the command's buffer. An empty range is no data phase.
    pub range: ByteRange,
}

/// One SCSI command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// Comes back with the outcome, and names the buffer in transfers.
    pub id: CommandId,
    /// The logical unit.
    pub lun: LunField,
    /// How the command orders itself among the others; a transport without queueing ignores it.
    pub attribute: TaskAttribute,
    /// What to do.
    pub cdb: CommandBlock,
    /// What it moves, if anything.
    pub data_phase: Option<DataPhase>,
    /// When the transport loses its patience and begins to recover.
    pub deadline: Instant,
}

impl CommandBlock {
    /// These bytes; `None` if there are none, or more than [`CDB_BYTES_MAX`].
    pub fn new(bytes: &[u8]) -> Option<Self> {
        if bytes.is_empty() || bytes.len() > CDB_BYTES_MAX {
            return None;
        }
        let mut block = Self { bytes: [0; CDB_BYTES_MAX], len: bytes.len() as u8 };
        block.bytes[..bytes.len()].copy_from_slice(bytes);
        Some(block)
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// All [`CDB_BYTES_MAX`] bytes, zero past the length.
    pub const fn padded(&self) -> &[u8; CDB_BYTES_MAX] {
        &self.bytes
    }

    /// The bytes as a COMMAND IU carries them: the first 16, those that follow, zero past the length, and how many of
    /// these are sent, in fours.
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
