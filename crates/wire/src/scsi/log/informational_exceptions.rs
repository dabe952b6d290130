//! Informational exceptions log page, 2Fh (SPC-5): what the drive warns of, and how warm it is.

use super::{LogPage, LogPageCode, LogWriter, ParameterControl};
use crate::scsi::sense::AdditionalSense;
use crate::{DecodeError, NoRoom};
use core::fmt;

/// Parameter 0000h; the vendor's bytes after the temperature are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InformationalExceptionsLog {
    /// INFORMATIONAL EXCEPTION ADDITIONAL SENSE CODE and its qualifier; 00/00: nothing to warn of.
    pub additional: AdditionalSense,
    /// MOST RECENT TEMPERATURE READING in degrees Celsius; `None` is FFh on the wire.
    pub celsius: Option<u8>,
}

impl Default for InformationalExceptionsLog {
    /// Nothing to warn of, temperature unknown.
    fn default() -> Self {
        Self { additional: AdditionalSense::NO_ADDITIONAL_SENSE_INFORMATION, celsius: None }
    }
}

impl InformationalExceptionsLog {
    /// Decodes the page; without its parameter there is nothing to warn of.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut log = Self::default();
        for parameter in LogPage::of(LogPageCode::InformationalExceptions, 0, bytes)?.parameters() {
            let parameter = parameter?;
            if let (0, &[asc, ascq, celsius, ..]) = (parameter.code, parameter.value) {
                log.additional = AdditionalSense { asc, ascq };
                log.celsius = (celsius != 0xff).then_some(celsius);
            }
        }
        Ok(log)
    }

    /// Appends the parameter, four bytes long.
    pub fn encode(&self, writer: &mut LogWriter<'_>) -> Result<(), NoRoom> {
        let AdditionalSense { asc, ascq } = self.additional;
        let value = [asc, ascq, self.celsius.unwrap_or(0xff), 0];
        writer.parameter(0, ParameterControl::BINARY_LIST, &value)
    }
}

impl fmt::Display for InformationalExceptionsLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "exception: {}", self.additional)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn literal_bytes_both_ways() {
        let bytes = [0xaf, 0, 0, 8, 0, 0, 0x03, 4, 0x5d, 0x10, 41, 0];
        let log = InformationalExceptionsLog {
            additional: AdditionalSense { asc: 0x5d, ascq: 0x10 },
            celsius: Some(41),
        };
        assert_eq!(InformationalExceptionsLog::decode(&bytes), Ok(log));
        let mut out = [0; 12];
        let mut writer = LogWriter::new(LogPageCode::InformationalExceptions, 0, 0, &mut out).unwrap();
        log.encode(&mut writer).unwrap();
        assert_eq!(writer.finish(), Ok(12));
        assert_eq!(out, bytes);
        assert_eq!(log.to_string(), "exception: ASC 5Dh ASCQ 10h");
    }
}
