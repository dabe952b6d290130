//! Log pages of one or a few numbers: non-medium errors 06h, temperature 0Dh, start-stop cycles 0Eh (SPC-5),
//! solid state media 11h (SBC-4).

use super::{LogPage, LogPageCode, LogWriter, ParameterControl};
use crate::{DecodeError, NoRoom};
use core::fmt;

/// Page 06h: errors that no medium made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NonMediumErrorLog {
    /// 0000h: NON-MEDIUM ERROR COUNT.
    pub count: u64,
}

impl NonMediumErrorLog {
    /// Decodes the page; without its parameter the count is zero.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut log = Self::default();
        for parameter in LogPage::of(LogPageCode::NonMediumErrors, 0, bytes)?.parameters() {
            let parameter = parameter?;
            if parameter.code == 0 {
                log.count = parameter.counter();
            }
        }
        Ok(log)
    }

    /// Appends the counter.
    pub fn encode(&self, writer: &mut LogWriter<'_>) -> Result<(), NoRoom> {
        writer.counter(0, Some(self.count))
    }
}

/// Page 0Dh: how warm the drive is, in degrees Celsius.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TemperatureLog {
    /// 0000h: TEMPERATURE; `None` (FFh on the wire) if it is not available.
    pub celsius: Option<u8>,
    /// 0001h: REFERENCE TEMPERATURE: the warmest at which the drive works; the parameter may be missing.
    pub reference_celsius: Option<u8>,
}

impl TemperatureLog {
    /// Decodes the page.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut log = Self::default();
        for parameter in LogPage::of(LogPageCode::Temperature, 0, bytes)?.parameters() {
            let parameter = parameter?;
            let celsius = parameter.value.get(1).copied().filter(|&celsius| celsius != 0xff);
            match parameter.code {
                0 => log.celsius = celsius,
                1 => log.reference_celsius = celsius,
                _ => {}
            }
        }
        Ok(log)
    }

    /// Appends the temperature and, if there is one, the reference.
    pub fn encode(&self, writer: &mut LogWriter<'_>) -> Result<(), NoRoom> {
        writer.parameter(0, ParameterControl::BINARY_LIST, &[0, self.celsius.unwrap_or(0xff)])?;
        self.reference_celsius
            .map_or(Ok(()), |celsius| writer.parameter(1, ParameterControl::BINARY_LIST, &[0, celsius]))
    }
}

/// Page 0Eh: how often the drive started and stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StartStopCycleLog {
    /// 0001h: DATE OF MANUFACTURE, year and week as ASCII digits ("YYYYWW").
    pub manufactured: Option<[u8; 6]>,
    /// 0002h: ACCOUNTING DATE, likewise; the application client's.
    pub accounting: Option<[u8; 6]>,
    /// 0003h: SPECIFIED CYCLE COUNT OVER DEVICE LIFETIME.
    pub specified_cycles: Option<u32>,
    /// 0004h: ACCUMULATED START-STOP CYCLES.
    pub cycles: Option<u32>,
    /// 0005h: SPECIFIED LOAD-UNLOAD COUNT OVER DEVICE LIFETIME.
    pub specified_load_unloads: Option<u32>,
    /// 0006h: ACCUMULATED LOAD-UNLOAD CYCLES.
    pub load_unloads: Option<u32>,
}

impl StartStopCycleLog {
    /// Decodes the page; a parameter of another length than its own is skipped.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut log = Self::default();
        for parameter in LogPage::of(LogPageCode::StartStopCycles, 0, bytes)?.parameters() {
            let parameter = parameter?;
            let date = parameter.value.try_into().ok();
            let count = parameter.value.try_into().ok().map(u32::from_be_bytes);
            match parameter.code {
                1 => log.manufactured = date,
                2 => log.accounting = date,
                3 => log.specified_cycles = count,
                4 => log.cycles = count,
                5 => log.specified_load_unloads = count,
                6 => log.load_unloads = count,
                _ => {}
            }
        }
        Ok(log)
    }

    /// Appends the parameters there are.
    pub fn encode(&self, writer: &mut LogWriter<'_>) -> Result<(), NoRoom> {
        for (code, date) in [(1, self.manufactured), (2, self.accounting)] {
            if let Some(date) = date {
                writer.parameter(code, ParameterControl::ASCII, &date)?;
            }
        }
        let counts = [
            (3, ParameterControl::BINARY_LIST, self.specified_cycles),
            (4, ParameterControl::BINARY_LIST, self.cycles),
            (5, ParameterControl::BINARY_LIST, self.specified_load_unloads),
            (6, ParameterControl::BINARY_LIST, self.load_unloads),
        ];
        for (code, control, count) in counts {
            if let Some(count) = count {
                writer.parameter(code, control, &count.to_be_bytes())?;
            }
        }
        Ok(())
    }
}

/// Page 11h: wear of a solid state medium.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SolidStateMediaLog {
    /// 0001h: PERCENTAGE USED ENDURANCE INDICATOR; 100 is the endurance promised, 255 the maximum reported.
    pub percentage_used: u8,
}

impl SolidStateMediaLog {
    /// Decodes the page; without its parameter nothing was used.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut log = Self::default();
        for parameter in LogPage::of(LogPageCode::SolidStateMedia, 0, bytes)?.parameters() {
            let parameter = parameter?;
            if let (1, Some(&percentage)) = (parameter.code, parameter.value.get(3)) {
                log.percentage_used = percentage;
            }
        }
        Ok(log)
    }

    /// Appends the indicator.
    pub fn encode(&self, writer: &mut LogWriter<'_>) -> Result<(), NoRoom> {
        writer.parameter(1, ParameterControl::BINARY_LIST, &[0, 0, 0, self.percentage_used])
    }
}

impl fmt::Display for NonMediumErrorLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} non-medium errors", self.count)
    }
}

impl fmt::Display for TemperatureLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.celsius {
            Some(celsius) => write!(f, "{celsius} \u{b0}C"),
            None => f.write_str("temperature unknown"),
        }
    }
}

impl fmt::Display for StartStopCycleLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (cycles, loads) = (self.cycles.unwrap_or(0), self.load_unloads.unwrap_or(0));
        write!(f, "{cycles} start-stop cycles, {loads} load-unload cycles")
    }
}

impl fmt::Display for SolidStateMediaLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} % of the endurance used", self.percentage_used)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;
    use std::vec::Vec;

    fn page(code: LogPageCode, put: impl FnOnce(&mut LogWriter<'_>) -> Result<(), NoRoom>) -> Vec<u8> {
        let mut out = [0; 100];
        let mut writer = LogWriter::new(code, 0, 0, &mut out).unwrap();
        put(&mut writer).unwrap();
        let len = writer.finish().unwrap();
        out[..len].to_vec()
    }

    #[test]
    fn non_medium_errors_both_ways() {
        let bytes = [0x86, 0, 0, 12, 0, 0, 0x00, 8, 0, 0, 0, 0, 0, 0, 1, 0];
        let log = NonMediumErrorLog { count: 256 };
        assert_eq!(NonMediumErrorLog::decode(&bytes), Ok(log));
        assert_eq!(page(LogPageCode::NonMediumErrors, |writer| log.encode(writer)), bytes);
    }

    #[test]
    fn temperature_both_ways() {
        let bytes = [0x8d, 0, 0, 12, 0, 0, 0x03, 2, 0, 35, 0, 1, 0x03, 2, 0, 70];
        let log = TemperatureLog { celsius: Some(35), reference_celsius: Some(70) };
        assert_eq!(TemperatureLog::decode(&bytes), Ok(log));
        assert_eq!(page(LogPageCode::Temperature, |writer| log.encode(writer)), bytes);
        assert_eq!(log.to_string(), "35 \u{b0}C");
    }

    #[test]
    fn an_unknown_temperature_is_ff() {
        let bytes = [0x8d, 0, 0, 6, 0, 0, 0x03, 2, 0, 0xff];
        let log = TemperatureLog::default();
        assert_eq!(TemperatureLog::decode(&bytes), Ok(log));
        assert_eq!(page(LogPageCode::Temperature, |writer| log.encode(writer)), bytes);
    }

    #[test]
    fn start_stop_cycles_both_ways() {
        let mut bytes = [0x8e, 0, 0, 26, 0, 1, 0x01, 6].to_vec();
        bytes.extend(b"202631");
        bytes.extend([0, 3, 0x03, 4, 0, 0, 0xc3, 0x50, 0, 4, 0x03, 4, 0, 0, 0, 12]);
        let log = StartStopCycleLog {
            manufactured: Some(*b"202631"),
            specified_cycles: Some(50_000),
            cycles: Some(12),
            ..StartStopCycleLog::default()
        };
        assert_eq!(StartStopCycleLog::decode(&bytes), Ok(log));
        assert_eq!(page(LogPageCode::StartStopCycles, |writer| log.encode(writer)), bytes);
    }

    #[test]
    fn solid_state_media_both_ways() {
        let bytes = [0x91, 0, 0, 8, 0, 1, 0x03, 4, 0, 0, 0, 3];
        let log = SolidStateMediaLog { percentage_used: 3 };
        assert_eq!(SolidStateMediaLog::decode(&bytes), Ok(log));
        assert_eq!(page(LogPageCode::SolidStateMedia, |writer| log.encode(writer)), bytes);
    }

    #[test]
    fn a_parameter_cut_short_is_an_error() {
        let bytes = [0x91, 0, 0, 7, 0, 1, 0x03, 4, 0, 0, 0];
        let error = DecodeError::Truncated { needed: 8, got: 7 };
        assert_eq!(SolidStateMediaLog::decode(&bytes), Err(error));
    }
}
