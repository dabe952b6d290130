//! Background scan results log page, 15h (SBC-4): status in parameter 0000h, findings in 0001h to 0800h.

use super::{LogPage, LogPageCode, LogParameters, LogWriter, ParameterControl};
use crate::scsi::layout::{be16, be32, be64, bits, part, set_bits};
use crate::scsi::sense::{AdditionalSense, SenseKey};
use crate::{DecodeError, NoRoom};
use core::fmt;

/// Parameter 0000h: where the scan is.
///
/// ```text
///  0..4   accumulated power on minutes    6..8   background scans performed
///  4      reserved                        8..10  background scan progress
///  5      background scan status         10..12  background medium scans performed
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackgroundScanLog {
    /// ACCUMULATED POWER ON MINUTES.
    pub power_on_minutes: u32,
    /// BACKGROUND SCAN STATUS.
    pub state: BackgroundScanState,
    /// NUMBER OF BACKGROUND SCANS PERFORMED.
    pub scans: u16,
    /// BACKGROUND SCAN PROGRESS in 1/65536.
    pub progress: u16,
    /// NUMBER OF BACKGROUND MEDIUM SCANS PERFORMED.
    pub medium_scans: u16,
}

code! {
    /// BACKGROUND SCAN STATUS.
    pub enum BackgroundScanState: u8 {
        /// No scan runs.
        None = 0x00 => "no scan",
        /// A medium scan runs.
        MediumScan = 0x01 => "medium scan",
        /// A pre-scan runs.
        PreScan = 0x02 => "pre-scan",
        /// Halted by a fatal error.
        HaltedByError = 0x03 => "halted by a fatal error",
        /// Halted by a vendor specific pattern of errors.
        HaltedByPattern = 0x04 => "halted by a pattern of errors",
        /// Halted because the medium is not formatted.
        HaltedUnformatted = 0x05 => "halted, medium unformatted",
        /// Halted by something of the vendor.
        HaltedByVendor = 0x06 => "halted, vendor specific",
        /// Halted because it is too hot or too cold.
        HaltedByTemperature = 0x07 => "halted by temperature",
        /// Waits for its timer.
        Waiting = 0x08 => "waiting for the timer",
    }
}

/// Parameters 0001h to 0800h: a block that the scan found bad.
///
/// ```text
///  0..4   accumulated power on minutes             6      additional sense code qualifier
///  4      reassign status (7:4), sense key (3:0)   7..12  vendor specific
///  5      additional sense code                   12..20  logical block address
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackgroundScanResult {
    /// ACCUMULATED POWER ON MINUTES.
    pub power_on_minutes: u32,
    /// REASSIGN STATUS, four bits.
    pub reassign_status: u8,
    /// SENSE KEY.
    pub sense_key: SenseKey,
    /// ADDITIONAL SENSE CODE and its qualifier.
    pub additional: AdditionalSense,
    /// The vendor's bytes.
    pub vendor_specific: [u8; 5],
    /// LOGICAL BLOCK ADDRESS.
    pub lba: u64,
}

impl BackgroundScanLog {
    /// Decodes the page; the status must be there.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let page = LogPage::of(LogPageCode::BackgroundScan, 0, bytes)?;
        for parameter in page.parameters() {
            let parameter = parameter?;
            if parameter.code == 0 {
                return Self::decode_value(parameter.value);
            }
        }
        Err(DecodeError::Truncated { needed: 20, got: bytes.len() })
    }

    /// The findings among the parameters of a page.
    pub fn results(
        parameters: LogParameters<'_>,
    ) -> impl Iterator<Item = Result<BackgroundScanResult, DecodeError>> {
        let findings = parameters
            .filter(|parameter| !parameter.is_ok_and(|found| !matches!(found.code, 0x0001..=0x0800)));
        findings.map(|parameter| BackgroundScanResult::decode(parameter?.value))
    }

    fn decode_value(value: &[u8]) -> Result<Self, DecodeError> {
        let truncated = DecodeError::Truncated { needed: 12, got: value.len() };
        let value = value.first_chunk::<12>().ok_or(truncated)?;
        Ok(Self {
            power_on_minutes: be32::<0, _>(value),
            state: value[5].into(),
            scans: be16::<6, _>(value),
            progress: be16::<8, _>(value),
            medium_scans: be16::<10, _>(value),
        })
    }

    /// Appends the status, then `results` from parameter 0001h on, 2048 at most.
    pub fn encode(&self, results: &[BackgroundScanResult], writer: &mut LogWriter<'_>) -> Result<(), NoRoom> {
        let mut value = [0; 12];
        value[..4].copy_from_slice(&self.power_on_minutes.to_be_bytes());
        value[5] = self.state.into();
        value[6..8].copy_from_slice(&self.scans.to_be_bytes());
        value[8..10].copy_from_slice(&self.progress.to_be_bytes());
        value[10..].copy_from_slice(&self.medium_scans.to_be_bytes());
        writer.parameter(0, ParameterControl::BINARY_LIST, &value)?;
        for (code, result) in (0x0001..=0x0800).zip(results) {
            writer.parameter(code, ParameterControl::BINARY_LIST, &result.encode())?;
        }
        Ok(())
    }
}

impl BackgroundScanResult {
    /// Bytes of the parameter's value.
    pub const LEN: usize = 20;

    /// Decodes the value of a parameter.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let value = bytes
            .first_chunk::<{ Self::LEN }>()
            .ok_or(DecodeError::Truncated { needed: Self::LEN, got: bytes.len() })?;
        Ok(Self {
            power_on_minutes: be32::<0, _>(value),
            reassign_status: bits::<7, 4>(value[4]),
            sense_key: SenseKey::from_bits(value[4]),
            additional: AdditionalSense { asc: value[5], ascq: value[6] },
            vendor_specific: part::<7, 5, _>(value),
            lba: be64::<12, _>(value),
        })
    }

    /// The value of a parameter.
    pub fn encode(&self) -> [u8; 20] {
        let mut out = [0; Self::LEN];
        out[..4].copy_from_slice(&self.power_on_minutes.to_be_bytes());
        out[4] = set_bits::<7, 4>(self.reassign_status) | set_bits::<3, 0>(self.sense_key.into());
        out[5] = self.additional.asc;
        out[6] = self.additional.ascq;
        out[7..12].copy_from_slice(&self.vendor_specific);
        out[12..].copy_from_slice(&self.lba.to_be_bytes());
        out
    }
}

impl fmt::Display for BackgroundScanLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "background scan: {}, {} scans", self.state, self.scans)
    }
}

impl fmt::Display for BackgroundScanResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LBA {}: {}", self.lba, self.additional)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;
    use std::vec::Vec;

    const PAGE: [u8; 44] = [
        0x95, 0x00, 0x00, 0x28, 0x00, 0x00, 0x03, 0x0c, 0x00, 0x00, 0x10, 0x00, 0x00, 0x01, 0x00, 0x07, 0x80,
        0x00, 0x00, 0x05, 0x00, 0x01, 0x03, 0x14, 0x00, 0x00, 0x0f, 0x00, 0x13, 0x11, 0x02, 1, 2, 3, 4, 5, 0,
        0, 0, 0, 0, 0, 0x12, 0x34,
    ];
    const LOG: BackgroundScanLog = BackgroundScanLog {
        power_on_minutes: 0x1000,
        state: BackgroundScanState::MediumScan,
        scans: 7,
        progress: 0x8000,
        medium_scans: 5,
    };
    const RESULT: BackgroundScanResult = BackgroundScanResult {
        power_on_minutes: 0x0f00,
        reassign_status: 1,
        sense_key: SenseKey::MediumError,
        additional: AdditionalSense { asc: 0x11, ascq: 2 },
        vendor_specific: [1, 2, 3, 4, 5],
        lba: 0x1234,
    };

    #[test]
    fn literal_bytes_both_ways() {
        assert_eq!(BackgroundScanLog::decode(&PAGE), Ok(LOG));
        let found: Vec<_> =
            BackgroundScanLog::results(LogPage::decode(&PAGE).unwrap().parameters()).collect();
        assert_eq!(found, [Ok(RESULT)]);
        let mut out = [0; 44];
        let mut writer = LogWriter::new(LogPageCode::BackgroundScan, 0, 0, &mut out).unwrap();
        LOG.encode(&[RESULT], &mut writer).unwrap();
        assert_eq!(writer.finish(), Ok(44));
        assert_eq!(out, PAGE);
        assert_eq!(RESULT.to_string(), "LBA 4660: ASC 11h ASCQ 02h");
    }

    #[test]
    fn a_page_without_a_status_is_truncated() {
        let error = DecodeError::Truncated { needed: 20, got: 4 };
        assert_eq!(BackgroundScanLog::decode(&[0x15, 0, 0, 0]), Err(error));
    }

    #[test]
    fn a_finding_cut_short_is_an_error() {
        let mut page = PAGE.to_vec();
        page[3] = 0x27;
        let found: Vec<_> =
            BackgroundScanLog::results(LogPage::decode(&page).unwrap().parameters()).collect();
        assert_eq!(found, [Err(DecodeError::Truncated { needed: 40, got: 39 })]);
    }
}
