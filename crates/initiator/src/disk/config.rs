//! Limits of a disk and of its retries.
//!
//! Each limit of [`RetryLimits`] bounds one way in which a unit can delay a request, so that it
//! ends whatever the unit answers. Left out: the transport's own error recovery.

use units::Duration;
use wire::scsi::lun::LunField;

/// Parameters of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskConfig {
    /// The logical unit.
    pub lun: LunField,
    /// Commands in flight: at most the transport's depth. 0 counts as 1.
    pub depth: u16,
    /// Requests accepted at once. 0 counts as 1.
    pub requests_max: u16,
    /// Maximum length of one command's data: the transport's maximum, or what suits it.
    pub transfer_bytes_max: u32,
    /// Whether identification starts with REPORT LUNS: [`Disk::luns`](super::Disk::luns).
    pub report_luns: bool,
    /// Limits of retries.
    pub retry_limits: RetryLimits,
}

/// How often and how long a command is retried before it fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryLimits {
    /// Attempts per command for transient errors.
    pub attempts_max: u8,
    /// Unit attentions tolerated per command; a unit may queue several.
    pub attentions_max: u8,
    /// BUSY and TASK SET FULL tolerated per command.
    pub busy_max: u8,
    /// Wait after the first of them; doubles with each.
    pub busy_wait: Duration,
    /// The longest such wait, also if the unit asks for longer.
    pub busy_wait_max: Duration,
    /// Interval of polling a unit that is becoming ready.
    pub ready_poll: Duration,
    /// How long a unit may be becoming ready.
    pub ready_wait: Duration,
    /// The timeout of a command.
    pub command_timeout: Duration,
    /// The timeout of SYNCHRONIZE CACHE and of commands that change many blocks.
    pub long_timeout: Duration,
}

impl RetryLimits {
    /// For real drives: spin-up and occasional bridge errors.
    pub const DEFAULT: Self = Self {
        attempts_max: 5,
        attentions_max: 8,
        busy_max: 20,
        busy_wait: Duration::from_ms(1),
        busy_wait_max: Duration::from_secs(1),
        ready_poll: Duration::from_ms(250),
        ready_wait: Duration::from_secs(30),
        command_timeout: Duration::from_secs(30),
        long_timeout: Duration::from_secs(60),
    };
}

impl Default for RetryLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl DiskConfig {
    /// LUN 0, default retry limits, as many requests as commands.
    pub fn new(depth: u16, transfer_bytes_max: u32) -> Self {
        Self {
            lun: LunField::default(),
            depth,
            requests_max: depth,
            transfer_bytes_max,
            report_luns: false,
            retry_limits: RetryLimits::DEFAULT,
        }
    }
}
