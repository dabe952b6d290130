//! Self-test results log page, 10h (SPC-5): the last twenty, the newest first.

use super::{LogPage, LogPageCode, LogWriter, ParameterControl};
use crate::scsi::cdb::SelfTestCode;
use crate::scsi::layout::{be16, be64, bits, set_bits};
use crate::scsi::sense::{AdditionalSense, SenseKey};
use crate::{DecodeError, NoRoom};
use core::fmt;

/// The twenty places; those without a test are [`SelfTestResult::UNUSED`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SelfTestLog {
    /// Parameters 0001h to 0014h.
    pub results: [SelfTestResult; 20],
}

/// One self-test.
///
/// ```text
///  0      self-test code (7:5), results (3:0)    12      sense key (3:0)
///  1      self-test number                       13      additional sense code
///  2..4   accumulated power on hours             14      additional sense code qualifier
///  4..12  address of first failure               15      vendor specific
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SelfTestResult {
    /// SELF-TEST CODE: which test it was, as SEND DIAGNOSTIC named it.
    pub code: SelfTestCode,
    /// SELF-TEST RESULTS: how it ended.
    pub outcome: SelfTestOutcome,
    /// SELF-TEST NUMBER: the segment that failed; 0: not reported.
    pub segment: u8,
    /// ACCUMULATED POWER ON HOURS when it ended; FFFFh: that many or more.
    pub power_on_hours: u16,
    /// ADDRESS OF FIRST FAILURE: an LBA; all ones if there is none.
    pub first_failure: u64,
    /// SENSE KEY.
    pub sense_key: SenseKey,
    /// ADDITIONAL SENSE CODE and its qualifier.
    pub additional: AdditionalSense,
    /// The vendor's byte.
    pub vendor_specific: u8,
}

code! {
    /// SELF-TEST RESULTS, four bits.
    pub enum SelfTestOutcome: u8 {
        /// No error; or no test, if the whole place is zero.
        Passed = 0x00 => "passed",
        /// SEND DIAGNOSTIC ended it.
        AbortedByCommand = 0x01 => "aborted by SEND DIAGNOSTIC",
        /// A reset or another command ended it.
        AbortedOtherwise = 0x02 => "aborted otherwise",
        /// It could not be completed.
        UnknownError = 0x03 => "could not complete",
        /// An unknown segment failed.
        Failed = 0x04 => "failed",
        /// The first segment failed.
        FailedFirst = 0x05 => "first segment failed",
        /// The second segment failed.
        FailedSecond = 0x06 => "second segment failed",
        /// The segment of SELF-TEST NUMBER failed.
        FailedSegment = 0x07 => "a segment failed",
        /// Running.
        InProgress = 0x0f => "in progress",
    }
}

impl SelfTestResult {
    /// Bytes of the parameter's value.
    pub const LEN: usize = 16;

    /// A place without a test: zeroes.
    pub const UNUSED: Self = Self {
        code: SelfTestCode::None,
        outcome: SelfTestOutcome::Passed,
        segment: 0,
        power_on_hours: 0,
        first_failure: 0,
        sense_key: SenseKey::NoSense,
        additional: AdditionalSense { asc: 0, ascq: 0 },
        vendor_specific: 0,
    };

    /// Decodes the value of a parameter.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let value = bytes
            .first_chunk::<{ Self::LEN }>()
            .ok_or(DecodeError::Truncated { needed: Self::LEN, got: bytes.len() })?;
        Ok(Self {
            code: test_code(bits::<7, 5>(value[0])),
            outcome: bits::<3, 0>(value[0]).into(),
            segment: value[1],
            power_on_hours: be16::<2, _>(value),
            first_failure: be64::<4, _>(value),
            sense_key: SenseKey::from_bits(value[12]),
            additional: AdditionalSense { asc: value[13], ascq: value[14] },
            vendor_specific: value[15],
        })
    }

    /// The value of a parameter.
    pub fn encode(&self) -> [u8; 16] {
        let mut out = [0; Self::LEN];
        out[0] = set_bits::<7, 5>(self.code as u8) | set_bits::<3, 0>(self.outcome.into());
        out[1] = self.segment;
        out[2..4].copy_from_slice(&self.power_on_hours.to_be_bytes());
        out[4..12].copy_from_slice(&self.first_failure.to_be_bytes());
        out[12] = set_bits::<3, 0>(self.sense_key.into());
        out[13] = self.additional.asc;
        out[14] = self.additional.ascq;
        out[15] = self.vendor_specific;
        out
    }
}

/// The inverse of `as u8`.
const fn test_code(bits: u8) -> SelfTestCode {
    match bits {
        1 => SelfTestCode::BackgroundShort,
        2 => SelfTestCode::BackgroundExtended,
        3 => SelfTestCode::Reserved3,
        4 => SelfTestCode::AbortBackground,
        5 => SelfTestCode::ForegroundShort,
        6 => SelfTestCode::ForegroundExtended,
        7 => SelfTestCode::Reserved7,
        _ => SelfTestCode::None,
    }
}

impl Default for SelfTestLog {
    /// No test was ever run.
    fn default() -> Self {
        Self { results: [SelfTestResult::UNUSED; 20] }
    }
}

impl SelfTestLog {
    /// Bytes of the whole page.
    pub const LEN: usize = 404;

    /// Decodes the page; a place that is missing is unused.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut log = Self::default();
        for parameter in LogPage::of(LogPageCode::SelfTestResults, 0, bytes)?.parameters() {
            let parameter = parameter?;
            let place = usize::from(parameter.code).checked_sub(1).and_then(|at| log.results.get_mut(at));
            if let Some(place) = place {
                *place = SelfTestResult::decode(parameter.value)?;
            }
        }
        Ok(log)
    }

    /// Appends all twenty places, as the standard asks.
    pub fn encode(&self, writer: &mut LogWriter<'_>) -> Result<(), NoRoom> {
        for (code, result) in (1..).zip(&self.results) {
            writer.parameter(code, ParameterControl::BINARY_LIST, &result.encode())?;
        }
        Ok(())
    }
}

impl fmt::Display for SelfTestLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ran = self.results.iter().filter(|result| **result != SelfTestResult::UNUSED).count();
        write!(f, "{ran} self-tests")
    }
}

impl fmt::Display for SelfTestResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {} hours: {}", self.code, self.power_on_hours, self.outcome)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    const FAILED: [u8; 16] =
        [0x47, 0x03, 0x01, 0x00, 0, 0, 0, 0, 0x00, 0x12, 0x34, 0x56, 0x03, 0x11, 0x00, 0xaa];

    #[test]
    fn a_result_both_ways() {
        let result = SelfTestResult {
            code: SelfTestCode::BackgroundExtended,
            outcome: SelfTestOutcome::FailedSegment,
            segment: 3,
            power_on_hours: 256,
            first_failure: 0x0012_3456,
            sense_key: SenseKey::MediumError,
            additional: AdditionalSense { asc: 0x11, ascq: 0 },
            vendor_specific: 0xaa,
        };
        assert_eq!(SelfTestResult::decode(&FAILED), Ok(result));
        assert_eq!(result.encode(), FAILED);
        assert_eq!(result.to_string(), "background extended self-test at 256 hours: a segment failed");
        for got in 0..16 {
            let error = DecodeError::Truncated { needed: 16, got };
            assert_eq!(SelfTestResult::decode(&FAILED[..got]), Err(error));
        }
    }

    #[test]
    fn the_page_has_twenty_places() {
        let mut log = SelfTestLog::default();
        log.results[0] = SelfTestResult::decode(&FAILED).unwrap();
        let mut out = [0xff; 404];
        let mut writer = LogWriter::new(LogPageCode::SelfTestResults, 0, 0, &mut out).unwrap();
        log.encode(&mut writer).unwrap();
        assert_eq!(writer.finish(), Ok(404));
        assert_eq!(out[..8], [0x90, 0, 0x01, 0x90, 0, 1, 0x03, 0x10]);
        assert_eq!(out[8..24], FAILED);
        assert_eq!(out[24..28], [0, 2, 0x03, 0x10]);
        assert_eq!(out[384..388], [0, 20, 0x03, 0x10]);
        assert_eq!(SelfTestLog::decode(&out), Ok(log));
    }

    proptest! {
        #[test]
        fn what_decodes_round_trips(bytes: [u8; 16]) {
            let result = SelfTestResult::decode(&bytes).unwrap();
            prop_assert_eq!(SelfTestResult::decode(&result.encode()), Ok(result));
        }
    }
}
