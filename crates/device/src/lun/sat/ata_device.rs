//! The state of the ATA device behind ATA PASS-THROUGH: what one command leaves for the next.

use crate::lun::event::UnitEvent;
use wire::ata::{OfflineStatus, PowerMode, ResultRegisters};
use wire::scsi::sense::AtaStatusReturn;

/// State that the ATA device keeps from one command to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtaDevice {
    /// SMART is on.
    pub(super) smart: bool,
    /// How the last off-line routine ended.
    pub(super) offline: OfflineStatus,
    /// The power mode that the host has asked for, until it is left.
    pub(super) power: PowerMode,
    /// Times that power came.
    pub(super) power_cycles: u64,
    /// The registers after the last command (PROTOCOL Fh).
    pub(super) last: AtaStatusReturn,
}

impl Default for AtaDevice {
    fn default() -> Self {
        Self {
            smart: true,
            offline: OfflineStatus::NeverStarted,
            power: PowerMode::Active,
            power_cycles: 0,
            last: AtaStatusReturn::of(&ResultRegisters::SIGNATURE, false),
        }
    }
}

impl AtaDevice {
    /// Applies an event. Power-on resets the state and counts a power cycle; other events change nothing.
    pub fn handle_event(&mut self, event: UnitEvent) {
        if event == UnitEvent::PowerOn {
            *self = Self { power_cycles: self.power_cycles.saturating_add(1), ..Self::default() };
        }
    }

    /// A command has come that needs the medium: the device is active.
    pub const fn wake(&mut self) {
        self.power = PowerMode::Active;
    }
}
