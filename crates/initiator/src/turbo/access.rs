//! Reads and writes that can be merged: comparison and concatenation.

use crate::{Command, CommandBlock};
use bus::Direction;
use wire::scsi::cdb::{CdbWidth, Read, Write};

/// A READ or WRITE whose data phase is whole blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Access {
    kind: Kind,
    pub(super) lba: u64,
    pub(super) blocks: u32,
    pub(super) block_bytes: u32,
}

/// The command without its extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Read(Read),
    Write(Write),
}

/// Blocks of the longest READ(10) and WRITE(10). A pack is not made longer, since devices that know
/// the longer forms need not know them for every length.
const BLOCKS_MAX: u32 = 0xffff;

impl Access {
    /// The access that a command is, if it is one.
    pub(super) fn of(command: &Command) -> Option<Self> {
        let cdb = command.cdb.as_bytes();
        let phase = command.transfer()?;
        let (kind, lba, blocks) = match phase.direction {
            Direction::In => {
                let read = Read::decode(cdb).ok()?;
                (Kind::Read(Read { lba: 0, blocks: 0, ..read }), read.lba, read.blocks)
            }
            Direction::Out => {
                let write = Write::decode(cdb).ok()?;
                (Kind::Write(Write { lba: 0, blocks: 0, ..write }), write.lba, write.blocks)
            }
        };
        let block_bytes = phase.range.len.checked_div(blocks)?;
        let is_whole = block_bytes > 0 && block_bytes.checked_mul(blocks) == Some(phase.range.len);
        is_whole.then_some(Self { kind, lba, blocks, block_bytes })
    }

    /// The block after the last.
    pub(super) const fn end(&self) -> u64 {
        self.lba.saturating_add(self.blocks as u64)
    }

    pub(super) const fn is_read(&self) -> bool {
        matches!(self.kind, Kind::Read(_))
    }

    /// Whether `next` goes on where this ends, and differs in nothing else.
    pub(super) fn is_followed_by(&self, next: &Self) -> bool {
        self.kind == next.kind && self.block_bytes == next.block_bytes && self.end() == next.lba
    }

    /// Both in one, if that is no more than `bytes_max` bytes.
    pub(super) fn with(&self, next: &Self, bytes_max: u32) -> Option<Self> {
        let blocks = self.blocks.checked_add(next.blocks).filter(|&blocks| blocks <= BLOCKS_MAX)?;
        let bytes = blocks.checked_mul(self.block_bytes)?;
        (self.is_followed_by(next) && bytes <= bytes_max).then_some(Self { blocks, ..*self })
    }

    /// The command block.
    pub(super) fn encode(&self) -> CommandBlock {
        let Self { lba, blocks, .. } = *self;
        let widest = |width| if width == CdbWidth::Six { CdbWidth::Ten } else { width };
        match self.kind {
            Kind::Read(read) => Read { lba, blocks, width: widest(read.width), ..read }.encode().into(),
            Kind::Write(write) => Write { lba, blocks, width: widest(write.width), ..write }.encode().into(),
        }
    }
}
