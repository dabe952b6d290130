//! Informational exceptions control mode page, 1Ch (SPC-5).

use super::{ModePageCode, blank, whole_of};
use crate::DecodeError;
use crate::scsi::layout::{be32, bit, bits, set_bit, set_bits};
use core::fmt;

/// How the drive warns of its failure.
///
/// ```text
///  2      PERF (7), EBF (5), EWASC (4), DEXCPT (3), TEST (2), EBACKERR (1), LOGERR (0)
///  3      MRIE (3:0)
///  4..8   interval timer
///  8..12  report count
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InformationalExceptionsPage {
    /// Tests must not cost performance.
    #[doc(alias = "PERF")]
    pub performance: bool,
    /// Background functions are on.
    #[doc(alias = "EBF")]
    pub background_functions: bool,
    /// Warnings are on.
    #[doc(alias = "EWASC")]
    pub warnings: bool,
    /// Failure predictions are off.
    #[doc(alias = "DEXCPT")]
    pub disable_exceptions: bool,
    /// A failure prediction is made up as a test.
    #[doc(alias = "TEST")]
    pub test: bool,
    /// Errors of background functions are reported.
    #[doc(alias = "EBACKERR")]
    pub background_errors: bool,
    /// Exceptions are logged.
    #[doc(alias = "LOGERR")]
    pub log_errors: bool,
    /// MRIE: the method of reporting.
    #[doc(alias = "MRIE")]
    pub report_method: ReportMethod,
    /// INTERVAL TIMER between two reports in units of 100 ms; 0 and FFFF_FFFFh: once.
    pub interval_100_ms: u32,
    /// REPORT COUNT; 0: no limit.
    pub report_count: u32,
}

code! {
    /// MRIE, four bits.
    pub enum ReportMethod: u8 {
        /// Nothing is reported.
        None = 0x00 => "none",
        /// As a unit attention.
        UnitAttention = 0x02 => "unit attention",
        /// As a recovered error, if the error recovery page enables those.
        ConditionalRecoveredError = 0x03 => "recovered error, conditionally",
        /// As a recovered error in any case.
        RecoveredError = 0x04 => "recovered error",
        /// As NO SENSE.
        NoSense = 0x05 => "no sense",
        /// Only to REQUEST SENSE.
        OnRequest = 0x06 => "on request",
    }
}

impl InformationalExceptionsPage {
    /// Bytes with the header.
    pub const LEN: usize = 12;

    /// Decodes the page at the front of `bytes`.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let page: &[u8; Self::LEN] = whole_of(ModePageCode::InformationalExceptions, None, bytes)?;
        Ok(Self {
            performance: bit::<7>(page[2]),
            background_functions: bit::<5>(page[2]),
            warnings: bit::<4>(page[2]),
            disable_exceptions: bit::<3>(page[2]),
            test: bit::<2>(page[2]),
            background_errors: bit::<1>(page[2]),
            log_errors: bit::<0>(page[2]),
            report_method: bits::<3, 0>(page[3]).into(),
            interval_100_ms: be32::<4, _>(page),
            report_count: be32::<8, _>(page),
        })
    }

    /// The twelve bytes on the wire.
    pub fn encode(&self, saveable: bool) -> [u8; 12] {
        let mut out: [u8; Self::LEN] = blank(ModePageCode::InformationalExceptions, None, saveable);
        out[2] = set_bit::<7>(self.performance)
            | set_bit::<5>(self.background_functions)
            | set_bit::<4>(self.warnings)
            | set_bit::<3>(self.disable_exceptions)
            | set_bit::<2>(self.test)
            | set_bit::<1>(self.background_errors)
            | set_bit::<0>(self.log_errors);
        out[3] = set_bits::<3, 0>(self.report_method.into());
        out[4..8].copy_from_slice(&self.interval_100_ms.to_be_bytes());
        out[8..].copy_from_slice(&self.report_count.to_be_bytes());
        out
    }
}

impl Default for InformationalExceptionsPage {
    /// All zeroes: nothing is reported.
    fn default() -> Self {
        Self {
            performance: false,
            background_functions: false,
            warnings: false,
            disable_exceptions: false,
            test: false,
            background_errors: false,
            log_errors: false,
            report_method: ReportMethod::None,
            interval_100_ms: 0,
            report_count: 0,
        }
    }
}

impl fmt::Display for InformationalExceptionsPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (disabled, method) = (self.disable_exceptions, self.report_method);
        write!(f, "exceptions disabled {disabled}, reported as {method}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literal_bytes_both_ways() {
        let bytes = [0x9c, 0x0a, 0x1a, 0x06, 0x00, 0x00, 0x17, 0x70, 0x00, 0x00, 0x00, 0x05];
        let page = InformationalExceptionsPage {
            warnings: true,
            disable_exceptions: true,
            background_errors: true,
            report_method: ReportMethod::OnRequest,
            interval_100_ms: 6000,
            report_count: 5,
            ..InformationalExceptionsPage::default()
        };
        assert_eq!(InformationalExceptionsPage::decode(&bytes), Ok(page));
        assert_eq!(page.encode(true), bytes);
    }

    #[test]
    fn every_bit_has_its_own_field() {
        for bit in [0x80, 0x20, 0x10, 0x08, 0x04, 0x02, 0x01] {
            let bytes = [0x1c, 0x0a, bit, 0x0f, 0, 0, 0, 0, 0, 0, 0, 0];
            let page = InformationalExceptionsPage::decode(&bytes).unwrap();
            assert_eq!(page.report_method, ReportMethod::Unknown(15));
            assert_eq!(page.encode(false), bytes);
        }
    }
}
