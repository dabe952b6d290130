//! Logical block provisioning log page, 0Ch (SBC-4): how many blocks are mapped. Left out: the percentages
//! and the de-duplication and compression counters, which are visible to the generic walk.

use super::{LogPage, LogPageCode, LogWriter, ParameterControl};
use crate::scsi::layout::{bits, set_bits};
use crate::{DecodeError, NoRoom};
use core::fmt;

/// Resources that thresholds watch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProvisioningLog {
    /// 0001h: AVAILABLE LBA MAPPING RESOURCE COUNT.
    pub available: Option<ResourceCount>,
    /// 0002h: USED LBA MAPPING RESOURCE COUNT.
    pub used: Option<ResourceCount>,
}

/// One count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResourceCount {
    /// RESOURCE COUNT in threshold sets: 2 to THRESHOLD EXPONENT (VPD page B2h) blocks each.
    pub threshold_sets: u32,
    /// SCOPE, two bits: 0 not reported, 1 this logical unit's alone, 2 shared.
    pub scope: u8,
}

impl ResourceCount {
    fn decode(value: &[u8]) -> Result<Self, DecodeError> {
        let truncated = DecodeError::Truncated { needed: 4, got: value.len() };
        let (count, rest) = value.split_first_chunk().ok_or(truncated)?;
        let scope = rest.first().map_or(0, |&byte| bits::<1, 0>(byte));
        Ok(Self { threshold_sets: u32::from_be_bytes(*count), scope })
    }

    fn encode(self) -> [u8; 8] {
        let [a, b, c, d] = self.threshold_sets.to_be_bytes();
        [a, b, c, d, set_bits::<1, 0>(self.scope), 0, 0, 0]
    }
}

impl ProvisioningLog {
    /// Decodes the page.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut log = Self::default();
        for parameter in LogPage::of(LogPageCode::LogicalBlockProvisioning, 0, bytes)?.parameters() {
            let parameter = parameter?;
            match parameter.code {
                1 => log.available = Some(ResourceCount::decode(parameter.value)?),
                2 => log.used = Some(ResourceCount::decode(parameter.value)?),
                _ => {}
            }
        }
        Ok(log)
    }

    /// Appends the counts there are.
    pub fn encode(&self, writer: &mut LogWriter<'_>) -> Result<(), NoRoom> {
        for (code, count) in [(1, self.available), (2, self.used)] {
            if let Some(count) = count {
                writer.parameter(code, ParameterControl::BINARY_LIST, &count.encode())?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for ProvisioningLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let used = self.used.map_or(0, |count| count.threshold_sets);
        let available = self.available.map_or(0, |count| count.threshold_sets);
        write!(f, "{used} threshold sets used, {available} available")
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;

    #[test]
    fn literal_bytes_both_ways() {
        let bytes =
            [0x8c, 0, 0, 24, 0, 1, 0x03, 8, 0, 0, 1, 0, 1, 0, 0, 0, 0, 2, 0x03, 8, 0, 0, 0, 16, 2, 0, 0, 0];
        let log = ProvisioningLog {
            available: Some(ResourceCount { threshold_sets: 256, scope: 1 }),
            used: Some(ResourceCount { threshold_sets: 16, scope: 2 }),
        };
        assert_eq!(ProvisioningLog::decode(&bytes), Ok(log));
        let mut out = [0; 28];
        let mut writer = LogWriter::new(LogPageCode::LogicalBlockProvisioning, 0, 0, &mut out).unwrap();
        log.encode(&mut writer).unwrap();
        assert_eq!(writer.finish(), Ok(28));
        assert_eq!(out, bytes);
    }

    #[test]
    fn a_count_without_scope_is_read() {
        let bytes = [0x0c, 0, 0, 8, 0, 2, 0x03, 4, 0, 0, 0, 3];
        let used = Some(ResourceCount { threshold_sets: 3, scope: 0 });
        assert_eq!(ProvisioningLog::decode(&bytes), Ok(ProvisioningLog { available: None, used }));
    }
}
