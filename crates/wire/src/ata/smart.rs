//! SMART: readings, thresholds and the logs behind SMART READ LOG (ACS-4 clauses 7.43 and 9, ATA8-ACS
//! annex A for what ACS no longer describes).
//!
//! Each is a block of 512 bytes whose byte 511 makes the sum of all bytes zero. The attribute table was never
//! standardised; its layout is SFF-8035i's, which all drives and tools use. Left out: vendor specific bytes, which
//! are zero when written and ignored when read.

mod error_log;
mod extended_error_log;
mod extended_self_test_log;
mod readings;
mod ring;
mod self_test_log;

pub use error_log::{ErrorEntry, LoggedCommand, SummaryErrorLog};
pub use extended_error_log::ExtendedErrorLog;
pub use extended_self_test_log::{ExtendedSelfTestEntry, ExtendedSelfTestLog};
pub use readings::{
    Attribute, AttributeFlags, AttributeThreshold, OfflineCapabilities, OfflineStatus, SmartCapabilities,
    SmartReadings, SmartThresholds,
};
pub use self_test_log::{SelectiveSelfTestLog, SelfTestEntry, SelfTestLog, SelfTestOutcome, SelfTestStatus};
