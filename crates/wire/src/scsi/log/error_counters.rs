//! Error counter log pages: write 02h, read 03h, verify 05h (SPC-5), all of one shape.

use super::{LogPage, LogPageCode, LogWriter};
use crate::{DecodeError, NoRoom};
use core::fmt;

/// The counters of one page; one that the drive does not keep is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ErrorCounters {
    /// 0000h: errors corrected without substantial delay.
    pub corrected_without_delay: Option<u64>,
    /// 0001h: errors corrected with possible delays.
    pub corrected_with_delay: Option<u64>,
    /// 0002h: total rewrites or rereads.
    pub retries: Option<u64>,
    /// 0003h: total errors corrected.
    pub corrected: Option<u64>,
    /// 0004h: times the correction algorithm ran.
    pub correction_runs: Option<u64>,
    /// 0005h: bytes transferred.
    pub bytes: Option<u64>,
    /// 0006h: total uncorrected errors.
    pub uncorrected: Option<u64>,
}

impl ErrorCounters {
    /// Decodes the page that must be `code`: [`LogPageCode::WriteErrors`], `ReadErrors` or `VerifyErrors`.
    pub fn decode(code: LogPageCode, bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut counters = Self::default();
        for parameter in LogPage::of(code, 0, bytes)?.parameters() {
            let parameter = parameter?;
            let place = match parameter.code {
                0 => &mut counters.corrected_without_delay,
                1 => &mut counters.corrected_with_delay,
                2 => &mut counters.retries,
                3 => &mut counters.corrected,
                4 => &mut counters.correction_runs,
                5 => &mut counters.bytes,
                6 => &mut counters.uncorrected,
                _ => continue,
            };
            *place = Some(parameter.counter());
        }
        Ok(counters)
    }

    /// Appends the counters there are.
    pub fn encode(&self, writer: &mut LogWriter<'_>) -> Result<(), NoRoom> {
        writer.counter(0, self.corrected_without_delay)?;
        writer.counter(1, self.corrected_with_delay)?;
        writer.counter(2, self.retries)?;
        writer.counter(3, self.corrected)?;
        writer.counter(4, self.correction_runs)?;
        writer.counter(5, self.bytes)?;
        writer.counter(6, self.uncorrected)
    }
}

impl fmt::Display for ErrorCounters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (corrected, uncorrected) = (self.corrected.unwrap_or(0), self.uncorrected.unwrap_or(0));
        write!(f, "{corrected} errors corrected, {uncorrected} not")
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn literal_bytes_both_ways() {
        let bytes = [
            0x83, 0x00, 0x00, 0x18, 0x00, 0x03, 0x00, 0x08, 0, 0, 0, 0, 0, 0, 0x01, 0x02, // corrected
            0x00, 0x06, 0x00, 0x08, 0, 0, 0, 0, 0, 0, 0, 0x05, // uncorrected
        ];
        let counters =
            ErrorCounters { corrected: Some(0x0102), uncorrected: Some(5), ..ErrorCounters::default() };
        assert_eq!(ErrorCounters::decode(LogPageCode::ReadErrors, &bytes), Ok(counters));
        let mut out = [0; 28];
        let mut writer = LogWriter::new(LogPageCode::ReadErrors, 0, 0, &mut out).unwrap();
        counters.encode(&mut writer).unwrap();
        assert_eq!(writer.finish(), Ok(28));
        assert_eq!(out, bytes);
    }

    #[test]
    fn short_counters_and_unknown_parameters_are_read_over() {
        let bytes = [0x02, 0, 0, 14, 0x00, 0x05, 0x40, 0x04, 0, 0, 0, 9, 0x80, 0x01, 0x00, 0x02, 1, 1];
        let counters = ErrorCounters::decode(LogPageCode::WriteErrors, &bytes).unwrap();
        assert_eq!(counters, ErrorCounters { bytes: Some(9), ..ErrorCounters::default() });
        let error = DecodeError::WrongKind { expected: 0x0500, found: 0x0200 };
        assert_eq!(ErrorCounters::decode(LogPageCode::VerifyErrors, &bytes), Err(error));
    }

    proptest! {
        #[test]
        fn decode_undoes_encode(counts: [Option<u64>; 7]) {
            let [a, b, c, d, e, f, g] = counts;
            let counters = ErrorCounters {
                corrected_without_delay: a,
                corrected_with_delay: b,
                retries: c,
                corrected: d,
                correction_runs: e,
                bytes: f,
                uncorrected: g,
            };
            let mut out = [0; 100];
            let mut writer = LogWriter::new(LogPageCode::WriteErrors, 0, 0, &mut out).unwrap();
            counters.encode(&mut writer).unwrap();
            let len = writer.finish().unwrap();
            prop_assert_eq!(ErrorCounters::decode(LogPageCode::WriteErrors, &out[..len]), Ok(counters));
        }
    }
}
