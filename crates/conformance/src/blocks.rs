//! Blocks of the drive under test, read and written as a host does.
//!
//! One command at a time, over whichever transport [`Probe::begin_scsi`] has selected. Left out: error recovery; the caller writes
//! only at the levels that announce it.

use crate::bus::BUFFER_BYTES;
use crate::exchange::{AnnouncedData, ScsiAnswer};
use crate::probe::Probe;
use crate::suite::READ_CAPACITY_16;
use std::time::Duration;
use wire::bot::Cbw;
use wire::scsi::capacity::{Capacity10, Capacity16};
use wire::scsi::cdb::{Read, SynchronizeCache, Write};
use wire::scsi::lun::Lun;
use wire::scsi::opcode::OperationCode;
use wire::usb::Direction;

/// How long a flush may take: a disk writes a full cache at scattered places.
pub(crate) const FLUSH_LIMIT: Duration = Duration::from_secs(30);

/// The blocks that a drive announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AnnouncedBlocks {
    /// How many.
    pub(crate) count: u64,
    /// Bytes of each.
    pub(crate) bytes: u32,
}

impl AnnouncedBlocks {
    /// Blocks of the longest transfer.
    pub(crate) const fn at_once(self) -> u64 {
        (BUFFER_BYTES / self.bytes) as u64
    }

    /// Bytes of so many blocks, in words.
    pub(crate) fn size(self, blocks: u64) -> String {
        units::Capacity(blocks.saturating_mul(self.bytes.into())).to_string()
    }
}

impl Probe<'_> {
    /// Asks for the capacity, with READ CAPACITY (16) where (10) does not suffice.
    ///
    /// # Errors
    ///
    /// Why it is not known, in words.
    pub(crate) fn announced_blocks(&mut self) -> Result<AnnouncedBlocks, String> {
        let cdb = [OperationCode::ReadCapacity10.into(), 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let answer = self.scsi(0, &cdb, Capacity10::LEN as u32)?;
        let short = Capacity10::decode(&answer.data)
            .map_err(|_| format!("READ CAPACITY (10): {}", answer.describe()))?;
        let (mut last, mut bytes) = (u64::from(short.last_lba), short.block_length);
        if short.last_lba == u32::MAX {
            let long = self.capacity_16()?.ok_or("READ CAPACITY (16) fails")?;
            (last, bytes) = (long.last_lba, long.block_length);
        }
        // Stamps need whole words, and a command a whole block.
        if !(512..=BUFFER_BYTES).contains(&bytes) || !bytes.is_multiple_of(8) {
            return Err(format!("blocks of {bytes} bytes are not supported"));
        }
        Ok(AnnouncedBlocks { count: last.saturating_add(1), bytes })
    }

    /// Asks for READ CAPACITY (16) data, if the device has them.
    ///
    /// # Errors
    ///
    /// Why there is no status, in words.
    pub(crate) fn capacity_16(&mut self) -> Result<Option<Capacity16>, String> {
        let mut cdb = [0; 16];
        (cdb[0], cdb[1], cdb[13]) = (OperationCode::ServiceActionIn16.into(), READ_CAPACITY_16, 32);
        let answer = self.scsi(0, &cdb, 32)?;
        Ok(Capacity16::decode(&answer.data).ok().filter(|_| answer.is_good()))
    }

    /// Writes blocks: at most 64 KiB, over BOT more.
    ///
    /// # Errors
    ///
    /// The drive's answer, in words.
    pub(crate) fn write_blocks(&mut self, lba: u64, bytes: &[u8], block_bytes: u32) -> Result<(), String> {
        let blocks = bytes.len() as u32 / block_bytes;
        let answer = self.scsi_out(0, &Write { lba, blocks, ..Write::default() }.encode(), bytes)?;
        if answer.is_good() { Ok(()) } else { Err(format!("WRITE of LBA {lba}: {}", answer.describe())) }
    }

    /// Reads blocks: at most 64 KiB, over BOT more.
    ///
    /// # Errors
    ///
    /// The drive's answer, in words.
    pub(crate) fn read_blocks(&mut self, lba: u64, blocks: u64, block_bytes: u32) -> Result<Vec<u8>, String> {
        let length = blocks as u32 * block_bytes;
        let read = Read { lba, blocks: blocks as u32, ..Read::default() }.encode();
        let answer = self.scsi(0, &read, length)?;
        if answer.is_good() && answer.data.len() == length as usize {
            return Ok(answer.data);
        }
        Err(format!("READ of LBA {lba}: {}", answer.describe()))
    }

    /// Has the drive write its cache to the medium.
    ///
    /// # Errors
    ///
    /// Why there is no status, in words.
    pub(crate) fn synchronize_cache(&mut self) -> Result<ScsiAnswer, String> {
        self.within(FLUSH_LIMIT, |probe| probe.scsi(0, &SynchronizeCache::default().encode(), 0))
    }

    /// Runs a command that sends data (at most 64 KiB, over BOT more), over BOT if the device has it, else over UAS.
    ///
    /// # Errors
    ///
    /// Why there is no status, in words.
    pub(crate) fn scsi_out(&mut self, lun: u8, cdb: &[u8], bytes: &[u8]) -> Result<ScsiAnswer, String> {
        match (self.device().bot, self.device().uas) {
            (Some(plan), _) => {
                let tag = self.tag();
                let cbw = Cbw::new(tag, bytes.len() as u32, Direction::Out, lun, cdb);
                let exchange = self.bot(&plan, &cbw, AnnouncedData::Out(bytes));
                self.bot_answer(&plan, lun, cdb, exchange)
            }
            (None, Some(plan)) => {
                let lun = Lun::Unit(lun.into()).into();
                let exchange = self.uas_command(&plan, 1, lun, cdb, AnnouncedData::Out(bytes));
                exchange.scsi().ok_or_else(|| exchange.describe())
            }
            (None, None) => Err("the device has no transport".to_owned()),
        }
    }
}
