//! General statistics and performance log page, 19h (SPC-5). Left out: the force unit access parameter and
//! the group statistics of the subpages.

use super::{LogPage, LogPageCode, LogWriter, ParameterControl};
use crate::scsi::layout::{be32, be64};
use crate::{DecodeError, NoRoom};
use core::fmt;

/// Commands and blocks since power on, and the time they took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GeneralStatisticsLog {
    /// NUMBER OF READ COMMANDS.
    pub read_commands: u64,
    /// NUMBER OF WRITE COMMANDS.
    pub write_commands: u64,
    /// NUMBER OF LOGICAL BLOCKS RECEIVED: written.
    pub blocks_received: u64,
    /// NUMBER OF LOGICAL BLOCKS TRANSMITTED: read.
    pub blocks_transmitted: u64,
    /// READ COMMAND PROCESSING INTERVALS: time spent on reads.
    pub read_intervals: u64,
    /// WRITE COMMAND PROCESSING INTERVALS: time spent on writes.
    pub write_intervals: u64,
    /// WEIGHTED NUMBER OF READ COMMANDS PLUS WRITE COMMANDS.
    pub weighted_commands: u64,
    /// WEIGHTED READ COMMAND PROCESSING PLUS WRITE COMMAND PROCESSING.
    pub weighted_intervals: u64,
    /// 0002h: IDLE TIME INTERVALS, if counted.
    pub idle_intervals: Option<u64>,
    /// 0003h: TIME INTERVAL, exponent and integer: one interval lasts integer × 10^-exponent seconds.
    pub interval: Option<(u32, u32)>,
}

impl GeneralStatisticsLog {
    /// Decodes the page; what is missing is zero.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut log = Self::default();
        for parameter in LogPage::of(LogPageCode::GeneralStatistics, 0, bytes)?.parameters() {
            let parameter = parameter?;
            let truncated = |needed| DecodeError::Truncated { needed, got: parameter.value.len() };
            match parameter.code {
                1 => {
                    let value = parameter.value.first_chunk::<64>().ok_or(truncated(64))?;
                    log.read_commands = be64::<0, _>(value);
                    log.write_commands = be64::<8, _>(value);
                    log.blocks_received = be64::<16, _>(value);
                    log.blocks_transmitted = be64::<24, _>(value);
                    log.read_intervals = be64::<32, _>(value);
                    log.write_intervals = be64::<40, _>(value);
                    log.weighted_commands = be64::<48, _>(value);
                    log.weighted_intervals = be64::<56, _>(value);
                }
                2 => log.idle_intervals = Some(parameter.counter()),
                3 => {
                    let value = parameter.value.first_chunk::<8>().ok_or(truncated(8))?;
                    log.interval = Some((be32::<0, _>(value), be32::<4, _>(value)));
                }
                _ => {}
            }
        }
        Ok(log)
    }

    /// Appends the parameters there are.
    pub fn encode(&self, writer: &mut LogWriter<'_>) -> Result<(), NoRoom> {
        let counts = [
            self.read_commands,
            self.write_commands,
            self.blocks_received,
            self.blocks_transmitted,
            self.read_intervals,
            self.write_intervals,
            self.weighted_commands,
            self.weighted_intervals,
        ];
        let value = counts.map(u64::to_be_bytes);
        writer.parameter(1, ParameterControl::BINARY_LIST, value.as_flattened())?;
        if let Some(intervals) = self.idle_intervals {
            writer.parameter(2, ParameterControl::BINARY_LIST, &intervals.to_be_bytes())?;
        }
        if let Some((exponent, integer)) = self.interval {
            let value = [exponent.to_be_bytes(), integer.to_be_bytes()];
            writer.parameter(3, ParameterControl::BINARY_LIST, value.as_flattened())?;
        }
        Ok(())
    }
}

impl fmt::Display for GeneralStatisticsLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (read, written) = (self.blocks_transmitted, self.blocks_received);
        let (reads, writes) = (self.read_commands, self.write_commands);
        write!(f, "{read} blocks read in {reads} commands, {written} written in {writes}")
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;

    #[test]
    fn literal_bytes_both_ways() {
        let mut bytes = [0x99, 0, 0, 0x5c, 0, 1, 0x03, 0x40].to_vec();
        for count in 1..=8u8 {
            bytes.extend([0, 0, 0, 0, 0, 0, 0, count]);
        }
        bytes.extend([0, 2, 0x03, 8, 0, 0, 0, 0, 0, 0, 0, 9]);
        bytes.extend([0, 3, 0x03, 8, 0, 0, 0, 3, 0, 0, 0, 5]);
        let log = GeneralStatisticsLog {
            read_commands: 1,
            write_commands: 2,
            blocks_received: 3,
            blocks_transmitted: 4,
            read_intervals: 5,
            write_intervals: 6,
            weighted_commands: 7,
            weighted_intervals: 8,
            idle_intervals: Some(9),
            interval: Some((3, 5)),
        };
        assert_eq!(GeneralStatisticsLog::decode(&bytes), Ok(log));
        let mut out = [0; 96];
        let mut writer = LogWriter::new(LogPageCode::GeneralStatistics, 0, 0, &mut out).unwrap();
        log.encode(&mut writer).unwrap();
        assert_eq!(writer.finish(), Ok(96));
        assert_eq!(out[..], bytes);
    }

    #[test]
    fn a_short_parameter_is_an_error() {
        let error = DecodeError::Truncated { needed: 64, got: 1 };
        assert_eq!(GeneralStatisticsLog::decode(&[0x19, 0, 0, 5, 0, 1, 3, 1, 0]), Err(error));
    }
}
