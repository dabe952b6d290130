//! Self-test logs: results (log address 06h, ATA8-ACS annex A.16) and spans of the selective self-test
//! (log address 09h, ACS-4 clause 9.18).

use super::ring::Ring;
use crate::ata::SelfTest;
use crate::ata::block::Block;
use crate::{DecodeError, Reader};
use core::fmt;

code! {
    /// How a self-test ended, bits 7:4 of its status.
    pub enum SelfTestOutcome: u8 {
        /// Well, or there was none.
        Passed = 0x0 => "passed",
        /// The host stopped it.
        AbortedByHost = 0x1 => "aborted by the host",
        /// A reset stopped it.
        InterruptedByReset = 0x2 => "interrupted by a reset",
        /// It could not continue.
        FatalError = 0x3 => "stopped by a fatal error",
        /// An unknown part failed.
        FailedUnknown = 0x4 => "failed",
        /// The electronics failed.
        FailedElectrical = 0x5 => "failed electrically",
        /// The servo or seek part failed.
        FailedServo = 0x6 => "failed in the servo",
        /// The read part failed.
        FailedRead = 0x7 => "failed to read",
        /// The device was handled badly.
        FailedHandling = 0x8 => "failed, handling damage",
        /// It still runs.
        InProgress = 0xf => "in progress",
    }
}

/// How a self-test ended, or how far it is; one byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SelfTestStatus {
    /// How it ended.
    pub outcome: SelfTestOutcome,
    /// Remainder of the self-test, in tenths, 0..=15 as it travels.
    pub remaining_tenths: u8,
}

impl SelfTestStatus {
    /// Passed, or there was none.
    pub const PASSED: Self = Self { outcome: SelfTestOutcome::Passed, remaining_tenths: 0 };
}

impl From<u8> for SelfTestStatus {
    fn from(status: u8) -> Self {
        Self { outcome: (status >> 4).into(), remaining_tenths: status & 0x0f }
    }
}

impl From<SelfTestStatus> for u8 {
    fn from(status: SelfTestStatus) -> u8 {
        u8::from(status.outcome) << 4 | status.remaining_tenths & 0x0f
    }
}

impl fmt::Display for SelfTestStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.remaining_tenths {
            0 => self.outcome.fmt(f),
            tenths => write!(f, "{}, {} % left", self.outcome, u32::from(tenths) * 10),
        }
    }
}

/// The last 21 self-tests, in a ring.
///
/// ```text
///    0..2    revision (0001h)               508  place of the newest, 1..=21
///    2..506  21 results of 24 bytes         511  checksum
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SelfTestLog {
    ring: Ring<SelfTestEntry, { SelfTestLog::COUNT }>,
}

/// The result of one self-test.
///
/// ```text
///  0  test      2..4  power-on hours          5..9  first LBA that failed
///  1  status    4     failure checkpoint      9..24 vendor specific
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SelfTestEntry {
    /// Which test.
    pub test: SelfTest,
    /// How it ended.
    pub status: SelfTestStatus,
    /// Hours that the device was on when it ended.
    pub power_on_hours: u16,
    /// Where it failed, the vendor's.
    pub checkpoint: u8,
    /// The first LBA that failed, 28 bits; FFFFFFFFh in many drives for none.
    pub failing_lba: u32,
}

impl SelfTestEntry {
    /// An unused place.
    const UNUSED: Self = Self {
        test: SelfTest::OfflineRoutine,
        status: SelfTestStatus::PASSED,
        power_on_hours: 0,
        checkpoint: 0,
        failing_lba: 0,
    };

    fn decode([test, status, h0, h1, checkpoint, l0, l1, l2, l3, ..]: [u8; 24]) -> Self {
        Self {
            test: test.into(),
            status: status.into(),
            power_on_hours: u16::from_le_bytes([h0, h1]),
            checkpoint,
            failing_lba: u32::from_le_bytes([l0, l1, l2, l3]),
        }
    }

    fn encode(&self) -> [u8; 24] {
        let (test, status) = (self.test.into(), self.status.into());
        let [h0, h1] = self.power_on_hours.to_le_bytes();
        let [l0, l1, l2, l3] = self.failing_lba.to_le_bytes();
        let vendor = [0; 15];
        let mut bytes = [0; 24];
        let fields = [test, status, h0, h1, self.checkpoint, l0, l1, l2, l3].into_iter().chain(vendor);
        for (place, byte) in bytes.iter_mut().zip(fields) {
            *place = byte;
        }
        bytes
    }
}

impl SelfTestLog {
    /// Bytes on the wire.
    pub const LEN: usize = 512;
    /// Places in the ring.
    pub const COUNT: usize = 21;
    /// No self-tests.
    pub const EMPTY: Self = Self { ring: Ring::empty(SelfTestEntry::UNUSED) };

    /// The results that are still there, newest first.
    pub fn newest_first(&self) -> impl Iterator<Item = &SelfTestEntry> {
        self.ring.newest_first().take_while(|entry| **entry != SelfTestEntry::UNUSED)
    }

    /// Adds a result, over the oldest.
    pub fn record(&mut self, entry: SelfTestEntry) {
        self.ring.record(entry);
    }

    /// Decodes a block; bytes past [`Self::LEN`] are ignored.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let block = Block::decode_summed(bytes)?;
        let newest = block.u8::<508>().into();
        let mut entries = [SelfTestEntry::UNUSED; Self::COUNT];
        for (place, entry) in entries.iter_mut().zip(block.bytes::<2, 504>().as_chunks::<24>().0) {
            *place = SelfTestEntry::decode(*entry);
        }
        Ok(Self { ring: Ring::new(newest, entries, "self-test index")? })
    }

    /// The bytes of the block.
    pub fn encode(&self) -> [u8; 512] {
        let mut block = Block::zeroed();
        let mut table = [0; 504];
        for (place, entry) in table.as_chunks_mut::<24>().0.iter_mut().zip(self.ring.entries()) {
            *place = entry.encode();
        }
        block.put::<0, 2>([1, 0]);
        block.put::<2, 504>(table);
        block.put::<508, 1>([self.ring.newest() as u8]);
        block.summed()
    }
}

impl fmt::Display for SelfTestEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} self-test {} after {} h", self.test, self.status, self.power_on_hours)
    }
}

impl fmt::Display for SelfTestLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "self-test log, {} results", self.newest_first().count())
    }
}

/// Which LBAs the selective self-test reads. The host writes this log as well.
///
/// ```text
///    0..2   revision (0001h)                       500..502  current span
///    2..82  5 spans: first LBA, last LBA, u64      502..504  feature flags
///  492..500 current LBA                            508..510  minutes to wait after power-on
///                                                  511       checksum
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SelectiveSelfTestLog {
    /// First and last LBA of each span; (0, 0) for an unused one.
    pub spans: [(u64, u64); 5],
    /// Where the test is.
    pub current_lba: u64,
    /// In which span, 1..=5; 0 if none runs.
    pub current_span: u16,
    /// Bit 1 scans the rest afterwards, bit 3 a scan is pending, bit 4 a scan runs.
    pub flags: u16,
    /// Minutes to wait after power-on before a pending scan starts.
    pub pending_minutes: u16,
}

impl SelectiveSelfTestLog {
    /// Bytes on the wire.
    pub const LEN: usize = 512;
    /// No spans.
    pub const EMPTY: Self =
        Self { spans: [(0, 0); 5], current_lba: 0, current_span: 0, flags: 0, pending_minutes: 0 };

    /// Decodes a block; bytes past [`Self::LEN`] are ignored.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let block = Block::decode_summed(bytes)?;
        let table = block.bytes::<2, 80>();
        let mut reader = Reader::new(&table);
        let mut spans = [(0, 0); 5];
        for span in &mut spans {
            *span = (reader.le64()?, reader.le64()?);
        }
        Ok(Self {
            spans,
            current_lba: u64::from_le_bytes(block.bytes::<492, 8>()),
            current_span: block.le16::<500>(),
            flags: block.le16::<502>(),
            pending_minutes: block.le16::<508>(),
        })
    }

    /// The bytes of the block.
    pub fn encode(&self) -> [u8; 512] {
        let mut block = Block::zeroed();
        let mut table = [0; 80];
        let ends = self.spans.iter().flat_map(|(first, last)| [first, last]);
        for (place, lba) in table.as_chunks_mut::<8>().0.iter_mut().zip(ends) {
            *place = lba.to_le_bytes();
        }
        block.put::<0, 2>([1, 0]);
        block.put::<2, 80>(table);
        block.put::<492, 8>(self.current_lba.to_le_bytes());
        block.put::<500, 2>(self.current_span.to_le_bytes());
        block.put::<502, 2>(self.flags.to_le_bytes());
        block.put::<508, 2>(self.pending_minutes.to_le_bytes());
        block.summed()
    }
}

impl fmt::Display for SelectiveSelfTestLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { current_lba, current_span, .. } = self;
        write!(f, "selective self-test log, span {current_span} at LBA {current_lba}")
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;
    use std::vec::Vec;

    fn entry(power_on_hours: u16) -> SelfTestEntry {
        SelfTestEntry {
            test: SelfTest::Short,
            status: SelfTestStatus { outcome: SelfTestOutcome::FailedRead, remaining_tenths: 9 },
            power_on_hours,
            checkpoint: 0x77,
            failing_lba: 0x0123_4567,
        }
    }

    fn summed(mut bytes: [u8; 512]) -> [u8; 512] {
        bytes[511] = bytes[..511].iter().fold(0u8, |sum, byte| sum.wrapping_sub(*byte));
        bytes
    }

    fn block() -> [u8; 512] {
        let mut bytes = [0; 512];
        bytes[..11].copy_from_slice(&[1, 0, 0x01, 0x79, 0x02, 0x01, 0x77, 0x67, 0x45, 0x23, 0x01]);
        bytes[508] = 1;
        summed(bytes)
    }

    #[test]
    fn literal_bytes_both_ways() {
        let log = SelfTestLog::decode(&block()).unwrap();
        assert!(log.newest_first().eq([&entry(0x0102)]));
        assert_eq!(log.encode(), block());
        let mut made = SelfTestLog::EMPTY;
        made.record(entry(0x0102));
        assert_eq!(made, log);
        assert_eq!(log.to_string(), "self-test log, 1 results");
        assert_eq!(entry(3).to_string(), "short self-test failed to read, 90 % left after 3 h");
    }

    #[test]
    fn the_22nd_result_takes_the_place_of_the_first() {
        let mut log = SelfTestLog::EMPTY;
        for hours in 1..=22 {
            log.record(entry(hours));
        }
        let hours: Vec<u16> = log.newest_first().map(|entry| entry.power_on_hours).collect();
        assert!(hours.iter().copied().eq((2..=22).rev()));
        assert_eq!(log.encode()[508], 1);
    }

    #[test]
    fn a_place_past_the_ring_is_refused() {
        let mut bytes = block();
        bytes[508] = 22;
        let error = DecodeError::Invalid { field: "self-test index", value: 22 };
        assert_eq!(SelfTestLog::decode(&summed(bytes)), Err(error));
    }

    #[test]
    fn every_status_survives() {
        for status in 0..=u8::MAX {
            assert_eq!(u8::from(SelfTestStatus::from(status)), status);
        }
        assert_eq!(SelfTestStatus::from(0x00).to_string(), "passed");
    }

    #[test]
    fn selective_spans_both_ways() {
        let mut bytes = [0; 512];
        (bytes[0], bytes[2], bytes[10], bytes[66], bytes[74]) = (1, 5, 9, 6, 7);
        (bytes[492], bytes[499], bytes[500], bytes[502], bytes[508]) = (8, 1, 1, 0x0a, 60);
        let bytes = summed(bytes);
        let log = SelectiveSelfTestLog::decode(&bytes).unwrap();
        assert_eq!(log.spans, [(5, 9), (0, 0), (0, 0), (0, 0), (6, 7)]);
        assert_eq!(log.current_lba, 0x0100_0000_0000_0008);
        assert_eq!((log.current_span, log.flags, log.pending_minutes), (1, 10, 60));
        assert_eq!(log.encode(), bytes);
    }

    #[test]
    fn every_truncated_length_is_an_error() {
        for got in 0..512 {
            let error = DecodeError::Truncated { needed: 512, got };
            assert_eq!(SelfTestLog::decode(&block()[..got]), Err(error));
            assert_eq!(SelectiveSelfTestLog::decode(&block()[..got]), Err(error));
        }
    }

    proptest! {
        #[test]
        fn decode_undoes_encode(bytes in prop::collection::vec(any::<u8>(), 512), newest in 0u8..=21) {
            let mut bytes: [u8; 512] = bytes.try_into().unwrap();
            bytes[508] = newest;
            let bytes = summed(bytes);
            let log = SelfTestLog::decode(&bytes).unwrap();
            prop_assert_eq!(SelfTestLog::decode(&log.encode()).unwrap(), log);
            let log = SelectiveSelfTestLog::decode(&bytes).unwrap();
            prop_assert_eq!(SelectiveSelfTestLog::decode(&log.encode()).unwrap(), log);
        }
    }
}
