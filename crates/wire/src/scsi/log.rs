//! Log pages: what LOG SENSE returns (SPC-5, log parameters; SBC-4, log parameters).
//!
//! A page is a header and a row of parameters, each with its own code. [`LogPage`] and [`LogParameters`]
//! read any page, [`LogWriter`] builds one, and it alone knows the PARAMETER POINTER: a parameter below it is
//! skipped. On top of that, a type for each page whose parameters have a meaning here; its `decode` skips
//! parameters that it does not know, which stay visible to the generic walk.
//!
//! Always true: a counter may have any length on the wire, one that does not fit 64 bits saturates; a counter
//! written here has eight bytes.

mod background_scan;
mod error_counters;
mod informational_exceptions;
mod page;
mod parameter;
mod provisioning;
mod self_test;
mod small_pages;
mod statistics;
mod supported;

pub use background_scan::{BackgroundScanLog, BackgroundScanResult, BackgroundScanState};
pub use error_counters::ErrorCounters;
pub use informational_exceptions::InformationalExceptionsLog;
pub use page::{LogPage, LogPageHeader, LogWriter};
pub use parameter::{LogParameter, LogParameters, ParameterControl, ParameterFormat};
pub use provisioning::{ProvisioningLog, ResourceCount};
pub use self_test::{SelfTestLog, SelfTestOutcome, SelfTestResult};
pub use small_pages::{NonMediumErrorLog, SolidStateMediaLog, StartStopCycleLog, TemperatureLog};
pub use statistics::GeneralStatisticsLog;
pub use supported::{SupportedLogPages, SupportedLogSubpages};

code! {
    /// PAGE CODE of a log page, six bits.
    pub enum LogPageCode: u8 {
        /// The list of the pages there are; subpage FFh lists subpages too.
        SupportedPages = 0x00 => "supported log pages",
        /// Errors of writes.
        WriteErrors = 0x02 => "write error counters",
        /// Errors of reads.
        ReadErrors = 0x03 => "read error counters",
        /// Errors of VERIFY.
        VerifyErrors = 0x05 => "verify error counters",
        /// Errors that no medium made.
        NonMediumErrors = 0x06 => "non-medium errors",
        /// How many blocks are mapped (SBC-4).
        LogicalBlockProvisioning = 0x0c => "logical block provisioning",
        /// How warm the drive is.
        Temperature = 0x0d => "temperature",
        /// Starts and stops, loads and unloads.
        StartStopCycles = 0x0e => "start-stop cycle counters",
        /// Data that application clients stored here.
        ApplicationClient = 0x0f => "application client",
        /// The last twenty self-tests.
        SelfTestResults = 0x10 => "self-test results",
        /// Wear of a solid state medium (SBC-4).
        SolidStateMedia = 0x11 => "solid state media",
        /// Background scan of the medium (SBC-4).
        BackgroundScan = 0x15 => "background scan results",
        /// Commands and blocks counted.
        GeneralStatistics = 0x19 => "general statistics and performance",
        /// Warnings of the drive: informational exceptions, such as predicted failure.
        InformationalExceptions = 0x2f => "informational exceptions",
    }
}

/// SUBPAGE CODE FFh: with page 00h, all pages and subpages.
pub const ALL_SUBPAGES: u8 = 0xff;

/// A big-endian counter of any length.
fn counter(value: &[u8]) -> u64 {
    value.iter().fold(
        0,
        |count: u64, &byte| {
            if count > u64::MAX >> 8 { u64::MAX } else { count << 8 | u64::from(byte) }
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_may_have_any_length() {
        assert_eq!(counter(&[]), 0);
        assert_eq!(counter(&[0x12, 0x34]), 0x1234);
        assert_eq!(counter(&[0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]), u64::MAX);
        assert_eq!(counter(&[1, 0, 0, 0, 0, 0, 0, 0, 0]), u64::MAX);
    }
}
