//! Summary SMART error log, log address 01h (ATA8-ACS annex A.13).
//!
//! The last five errors, each with the five commands before it. 28-bit LBAs only.

use super::ring::Ring;
use crate::ata::block::Block;
use crate::ata::{AtaCommand, AtaError, AtaStatus};
use crate::{DecodeError, Reader};
use core::fmt;

/// The last five errors, in a ring.
///
/// ```text
///    0       version (01h)                 452..454  errors since the device was made
///    1       place of the newest, 1..=5    511       checksum
///    2..452  5 errors of 90 bytes
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SummaryErrorLog {
    ring: Ring<ErrorEntry, 5>,
    error_count: u16,
}

/// One error.
///
/// ```text
///   0..60  5 commands of 12 bytes, the last one failed     67  status
///  61      error     63..66  LBA 23:0                   68..87  extended information
///  62      count     66      device                      87     state
///                                                       88..90  power-on hours
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorEntry {
    /// Commands that led to the error; the last one failed.
    pub commands: [LoggedCommand; 5],
    /// The error register.
    pub error: AtaError,
    /// The count register.
    pub count: u8,
    /// LBA 23:0.
    pub lba: u32,
    /// The device register, with LBA 27:24.
    pub device: u8,
    /// The status register.
    pub status: AtaStatus,
    /// The vendor's.
    pub extended: [u8; 19],
    /// State of the device: bits 3:0 are 1 sleep, 2 standby, 3 active or idle, 4 self-test.
    pub state: u8,
    /// Hours that the device was on before it.
    pub power_on_hours: u16,
}

/// A command before an error.
///
/// ```text
///  0  device control    2  count           6  device     8..12  ms since power-on
///  1  features          3..6  LBA 23:0     7  command
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedCommand {
    /// The device control register.
    pub control: u8,
    /// The features register.
    pub features: u8,
    /// The count register.
    pub count: u8,
    /// LBA 23:0.
    pub lba: u32,
    /// The device register, with LBA 27:24.
    pub device: u8,
    /// Command code.
    pub command: AtaCommand,
    /// When: milliseconds since power-on, modulo 2^32.
    pub since_power_on_ms: u32,
}

impl LoggedCommand {
    /// No command.
    pub const NONE: Self = Self {
        control: 0,
        features: 0,
        count: 0,
        lba: 0,
        device: 0,
        command: AtaCommand::Nop,
        since_power_on_ms: 0,
    };

    fn decode([control, features, count, l0, l1, l2, device, command, time @ ..]: [u8; 12]) -> Self {
        let (lba, command) = (u32::from_le_bytes([l0, l1, l2, 0]), command.into());
        Self { control, features, count, lba, device, command, since_power_on_ms: u32::from_le_bytes(time) }
    }

    fn encode(&self) -> [u8; 12] {
        let [l0, l1, l2, _] = self.lba.to_le_bytes();
        let [t0, t1, t2, t3] = self.since_power_on_ms.to_le_bytes();
        let command = self.command.into();
        [self.control, self.features, self.count, l0, l1, l2, self.device, command, t0, t1, t2, t3]
    }
}

impl ErrorEntry {
    /// Bytes on the wire.
    pub const LEN: usize = 90;

    /// An unused place.
    const UNUSED: Self = Self {
        commands: [LoggedCommand::NONE; 5],
        error: AtaError::EMPTY,
        count: 0,
        lba: 0,
        device: 0,
        status: AtaStatus::EMPTY,
        extended: [0; 19],
        state: 0,
        power_on_hours: 0,
    };

    fn decode(entry: &[u8; Self::LEN]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(entry);
        let mut commands = [LoggedCommand::NONE; 5];
        for command in &mut commands {
            *command = LoggedCommand::decode(reader.array()?);
        }
        let [_, error, count, l0, l1, l2, device, status] = reader.array()?;
        Ok(Self {
            commands,
            error: error.into(),
            count,
            lba: u32::from_le_bytes([l0, l1, l2, 0]),
            device,
            status: status.into(),
            extended: reader.array()?,
            state: reader.u8()?,
            power_on_hours: reader.le16()?,
        })
    }

    fn encode(&self) -> [u8; Self::LEN] {
        let [l0, l1, l2, _] = self.lba.to_le_bytes();
        let head = [0, self.error.into(), self.count, l0, l1, l2, self.device, self.status.into()];
        let [h0, h1] = self.power_on_hours.to_le_bytes();
        let commands = self.commands.iter().flat_map(LoggedCommand::encode);
        let fields = commands.chain(head).chain(self.extended).chain([self.state, h0, h1]);
        let mut bytes = [0; Self::LEN];
        for (place, byte) in bytes.iter_mut().zip(fields) {
            *place = byte;
        }
        bytes
    }
}

impl SummaryErrorLog {
    /// Bytes on the wire.
    pub const LEN: usize = 512;
    /// No errors.
    pub const EMPTY: Self = Self { ring: Ring::empty(ErrorEntry::UNUSED), error_count: 0 };

    /// Errors since the device was made, 65535 or more.
    pub const fn error_count(&self) -> u16 {
        self.error_count
    }

    /// The errors that are still there, newest first.
    pub fn newest_first(&self) -> impl Iterator<Item = &ErrorEntry> {
        let count = if self.ring.newest() == 0 { 0 } else { usize::from(self.error_count.min(5)) };
        self.ring.newest_first().take(count)
    }

    /// Adds an error, over the oldest.
    pub fn record(&mut self, entry: ErrorEntry) {
        self.ring.record(entry);
        self.error_count = self.error_count.saturating_add(1);
    }

    /// Decodes a block; bytes past [`Self::LEN`] are ignored.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let block = Block::decode_summed(bytes)?;
        let newest = block.u8::<1>().into();
        let mut entries = [ErrorEntry::UNUSED; 5];
        for (place, entry) in entries.iter_mut().zip(block.bytes::<2, 450>().as_chunks::<90>().0) {
            *place = ErrorEntry::decode(entry)?;
        }
        let ring = Ring::new(newest, entries, "error log index")?;
        Ok(Self { ring, error_count: block.le16::<452>() })
    }

    /// The bytes of the block.
    pub fn encode(&self) -> [u8; 512] {
        let mut block = Block::zeroed();
        let mut table = [0; 450];
        for (place, entry) in table.as_chunks_mut::<90>().0.iter_mut().zip(self.ring.entries()) {
            *place = entry.encode();
        }
        block.put::<0, 2>([1, self.ring.newest() as u8]);
        block.put::<2, 450>(table);
        block.put::<452, 2>(self.error_count.to_le_bytes());
        block.summed()
    }
}

impl fmt::Display for ErrorEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [.., failed] = &self.commands;
        let Self { error, lba, power_on_hours, .. } = self;
        write!(f, "{} failed with {error} at LBA {lba:#x} after {power_on_hours} h", failed.command)
    }
}

impl fmt::Display for SummaryErrorLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "summary error log, {} errors", self.error_count)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;
    use std::vec::Vec;

    fn error(power_on_hours: u16) -> ErrorEntry {
        let read = LoggedCommand {
            control: 1,
            features: 2,
            count: 3,
            lba: 0x66_5544,
            device: 0x47,
            command: AtaCommand::ReadDma,
            since_power_on_ms: 0x1122_3344,
        };
        ErrorEntry {
            commands: [
                LoggedCommand::NONE,
                LoggedCommand::NONE,
                LoggedCommand::NONE,
                LoggedCommand::NONE,
                read,
            ],
            error: AtaError::UNCORRECTABLE,
            count: 4,
            lba: 0x66_5545,
            device: 0x47,
            status: AtaStatus::READY.with(AtaStatus::ERROR),
            extended: *b"0123456789abcdefghi",
            state: 3,
            power_on_hours,
        }
    }

    /// One error, in place 1.
    fn block() -> [u8; 512] {
        let mut bytes = [0; 512];
        bytes[..2].copy_from_slice(&[1, 1]);
        bytes[50..62].copy_from_slice(&[1, 2, 3, 0x44, 0x55, 0x66, 0x47, 0xc8, 0x44, 0x33, 0x22, 0x11]);
        bytes[62..70].copy_from_slice(&[0, 0x40, 4, 0x45, 0x55, 0x66, 0x47, 0x41]);
        bytes[70..89].copy_from_slice(b"0123456789abcdefghi");
        bytes[89..92].copy_from_slice(&[3, 0x02, 0x01]);
        bytes[452] = 1;
        bytes[511] = bytes.iter().fold(0u8, |sum, byte| sum.wrapping_sub(*byte));
        bytes
    }

    #[test]
    fn literal_bytes_both_ways() {
        let log = SummaryErrorLog::decode(&block()).unwrap();
        assert!(log.newest_first().eq([&error(0x0102)]));
        assert_eq!(log.encode(), block());
        let mut made = SummaryErrorLog::EMPTY;
        made.record(error(0x0102));
        assert_eq!(made, log);
        assert_eq!(log.to_string(), "summary error log, 1 errors");
        assert_eq!(error(5).to_string(), "READ DMA failed with UNC at LBA 0x665545 after 5 h");
    }

    #[test]
    fn the_sixth_error_takes_the_place_of_the_first() {
        let mut log = SummaryErrorLog::EMPTY;
        for hours in 1..=7 {
            log.record(error(hours));
        }
        let hours: Vec<u16> = log.newest_first().map(|entry| entry.power_on_hours).collect();
        assert_eq!(hours, [7, 6, 5, 4, 3]);
        assert_eq!(log.error_count(), 7);
        assert_eq!(log.encode()[1], 2);
    }

    #[test]
    fn an_empty_log_has_no_errors() {
        assert_eq!(SummaryErrorLog::EMPTY.newest_first().count(), 0);
        let bytes = SummaryErrorLog::EMPTY.encode();
        assert_eq!((bytes[0], bytes[1], bytes[511]), (1, 0, 0xff));
    }

    #[test]
    fn a_place_past_the_ring_is_refused() {
        let mut bytes = block();
        (bytes[1], bytes[511]) = (6, bytes[511].wrapping_sub(5));
        let error = DecodeError::Invalid { field: "error log index", value: 6 };
        assert_eq!(SummaryErrorLog::decode(&bytes), Err(error));
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for got in 0..512 {
            let error = SummaryErrorLog::decode(&block()[..got]).unwrap_err();
            assert_eq!(error, DecodeError::Truncated { needed: 512, got });
        }
    }

    proptest! {
        #[test]
        fn decode_undoes_encode(mut bytes in prop::collection::vec(any::<u8>(), 512), newest in 0u8..=5) {
            bytes[1] = newest;
            bytes[511] = bytes[..511].iter().fold(0u8, |sum, byte| sum.wrapping_sub(*byte));
            let log = SummaryErrorLog::decode(&bytes).unwrap();
            prop_assert!(log.newest_first().count() <= 5);
            prop_assert_eq!(SummaryErrorLog::decode(&log.encode()).unwrap(), log);
        }
    }
}
