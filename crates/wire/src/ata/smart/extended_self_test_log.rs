//! Extended self-test log, log address 07h (ACS-4 clause 9.10): the results of the self-test log with 48-bit LBAs.
//!
//! One page with room for 19 results in a ring. Left out: further pages, and vendor bytes.

use super::SelfTestStatus;
use super::ring::Ring;
use crate::DecodeError;
use crate::ata::SelfTest;
use crate::ata::block::Block;
use core::fmt;

/// The last self-tests, in a ring.
///
/// ```text
///    0       version (01h)                  4..498   19 results of 26 bytes
///    2..4    place of the newest, 1..=19    511      checksum
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtendedSelfTestLog {
    ring: Ring<ExtendedSelfTestEntry, { ExtendedSelfTestLog::COUNT }>,
}

/// The result of one self-test.
///
/// ```text
///  0  test      2..4  power-on hours          5..11  first LBA that failed
///  1  status    4     failure checkpoint      11..26 vendor specific
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtendedSelfTestEntry {
    /// Which test.
    pub test: SelfTest,
    /// How it ended.
    pub status: SelfTestStatus,
    /// Hours that the device was on when it ended.
    pub power_on_hours: u16,
    /// Where it failed, the vendor's.
    pub checkpoint: u8,
    /// The first LBA that failed, 48 bits.
    pub failing_lba: u64,
}

impl ExtendedSelfTestEntry {
    /// An unused place.
    const UNUSED: Self = Self {
        test: SelfTest::OfflineRoutine,
        status: SelfTestStatus::PASSED,
        power_on_hours: 0,
        checkpoint: 0,
        failing_lba: 0,
    };

    fn decode([test, status, h0, h1, checkpoint, l0, l1, l2, l3, l4, l5, ..]: [u8; 26]) -> Self {
        Self {
            test: test.into(),
            status: status.into(),
            power_on_hours: u16::from_le_bytes([h0, h1]),
            checkpoint,
            failing_lba: u64::from_le_bytes([l0, l1, l2, l3, l4, l5, 0, 0]),
        }
    }

    fn encode(&self) -> [u8; 26] {
        let (test, status) = (self.test.into(), self.status.into());
        let [h0, h1] = self.power_on_hours.to_le_bytes();
        let [l0, l1, l2, l3, l4, l5, ..] = self.failing_lba.to_le_bytes();
        let fields = [test, status, h0, h1, self.checkpoint, l0, l1, l2, l3, l4, l5];
        let mut bytes = [0; 26];
        for (place, byte) in bytes.iter_mut().zip(fields) {
            *place = byte;
        }
        bytes
    }
}

impl ExtendedSelfTestLog {
    /// Bytes on the wire.
    pub const LEN: usize = 512;
    /// Places in the ring.
    pub const COUNT: usize = 19;
    /// No self-tests.
    pub const EMPTY: Self = Self { ring: Ring::empty(ExtendedSelfTestEntry::UNUSED) };

    /// The results that are still there, newest first.
    pub fn newest_first(&self) -> impl Iterator<Item = &ExtendedSelfTestEntry> {
        self.ring.newest_first().take_while(|entry| **entry != ExtendedSelfTestEntry::UNUSED)
    }

    /// Adds a result, over the oldest.
    pub fn record(&mut self, entry: ExtendedSelfTestEntry) {
        self.ring.record(entry);
    }

    /// Decodes a page; bytes past [`Self::LEN`] are ignored.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let block = Block::decode_summed(bytes)?;
        let newest = u16::from_le_bytes(block.bytes::<2, 2>());
        let mut entries = [ExtendedSelfTestEntry::UNUSED; Self::COUNT];
        for (place, entry) in entries.iter_mut().zip(block.bytes::<4, 494>().as_chunks::<26>().0) {
            *place = ExtendedSelfTestEntry::decode(*entry);
        }
        Ok(Self { ring: Ring::new(newest, entries, "self-test index")? })
    }

    /// The bytes of the page.
    pub fn encode(&self) -> [u8; 512] {
        let mut block = Block::zeroed();
        let mut table = [0; 494];
        for (place, entry) in table.as_chunks_mut::<26>().0.iter_mut().zip(self.ring.entries()) {
            *place = entry.encode();
        }
        block.put::<0, 1>([1]);
        block.put::<2, 2>(self.ring.newest().to_le_bytes());
        block.put::<4, 494>(table);
        block.summed()
    }
}

impl fmt::Display for ExtendedSelfTestLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "extended self-test log, {} results", self.newest_first().count())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::super::SelfTestOutcome;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;
    use std::vec::Vec;

    fn entry(power_on_hours: u16) -> ExtendedSelfTestEntry {
        ExtendedSelfTestEntry {
            test: SelfTest::Short,
            status: SelfTestStatus { outcome: SelfTestOutcome::FailedRead, remaining_tenths: 9 },
            power_on_hours,
            checkpoint: 0x77,
            failing_lba: 0x0605_0403_0201,
        }
    }

    fn summed(mut bytes: [u8; 512]) -> [u8; 512] {
        bytes[511] = 0;
        bytes[511] = 0u8.wrapping_sub(bytes.iter().fold(0, |sum, byte| sum.wrapping_add(*byte)));
        bytes
    }

    fn page() -> [u8; 512] {
        let mut bytes = [0; 512];
        bytes[..15].copy_from_slice(&[1, 0, 1, 0, 0x01, 0x79, 0x02, 0x01, 0x77, 1, 2, 3, 4, 5, 6]);
        summed(bytes)
    }

    #[test]
    fn literal_bytes_both_ways() {
        let log = ExtendedSelfTestLog::decode(&page()).unwrap();
        assert!(log.newest_first().eq([&entry(0x0102)]));
        assert_eq!(log.encode(), page());
        let mut made = ExtendedSelfTestLog::EMPTY;
        made.record(entry(0x0102));
        assert_eq!(made, log);
        assert_eq!(log.to_string(), "extended self-test log, 1 results");
    }

    #[test]
    fn the_20th_result_takes_the_place_of_the_first() {
        let mut log = ExtendedSelfTestLog::EMPTY;
        for hours in 1..=20 {
            log.record(entry(hours));
        }
        let hours: Vec<u16> = log.newest_first().map(|entry| entry.power_on_hours).collect();
        assert!(hours.iter().copied().eq((2..=20).rev()));
    }

    #[test]
    fn a_place_past_the_ring_is_refused() {
        let mut bytes = page();
        bytes[2] = 20;
        let error = DecodeError::Invalid { field: "self-test index", value: 20 };
        assert_eq!(ExtendedSelfTestLog::decode(&summed(bytes)), Err(error));
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for got in 0..512 {
            let error = DecodeError::Truncated { needed: 512, got };
            assert_eq!(ExtendedSelfTestLog::decode(&page()[..got]), Err(error));
        }
    }

    proptest! {
        #[test]
        fn decode_undoes_encode(bytes in prop::collection::vec(any::<u8>(), 512), newest in 0u8..=19) {
            let mut bytes: [u8; 512] = bytes.try_into().unwrap();
            (bytes[2], bytes[3]) = (newest, 0);
            let log = ExtendedSelfTestLog::decode(&summed(bytes)).unwrap();
            prop_assert_eq!(ExtendedSelfTestLog::decode(&log.encode()).unwrap(), log);
        }
    }
}
