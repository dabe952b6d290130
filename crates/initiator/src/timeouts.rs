//! The timeout of each recovery step, after which the next step follows.

use units::Duration;

/// Timeouts of recovery steps, counted from the start of each. The defaults are close to those of
/// Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// BOT: REQUEST SENSE after a command that failed.
    pub sense: Duration,
    /// UAS: data that are outstanding when a GOOD status arrives.
    pub data_after_status: Duration,
    /// UAS: ABORT TASK.
    pub abort_task: Duration,
    /// UAS: LOGICAL UNIT RESET.
    pub logical_unit_reset: Duration,
    /// UAS: I_T NEXUS RESET.
    pub nexus_reset: Duration,
    /// Clearing a halt.
    pub clear_halt: Duration,
    /// BOT: Mass Storage Reset.
    pub mass_storage_reset: Duration,
    /// A port reset; again for each request that sets the device up afterwards.
    pub port_reset: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            sense: Duration::from_secs(10),
            data_after_status: Duration::from_ms(200),
            abort_task: Duration::from_secs(2),
            logical_unit_reset: Duration::from_secs(5),
            nexus_reset: Duration::from_secs(5),
            clear_halt: Duration::from_secs(3),
            mass_storage_reset: Duration::from_secs(5),
            port_reset: Duration::from_secs(10),
        }
    }
}
