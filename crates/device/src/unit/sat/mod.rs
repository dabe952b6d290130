//! SCSI / ATA translation (SAT-4): the ATA device that hosts look for behind a USB bridge.
//!
//! There is none; the unit answers as one would. Tools that ask a drive about itself do so by ATA PASS-THROUGH
//! (smartctl, hdparm, udisks), and drives behind bridges have taught them to. What the ATA device tells is what the
//! SCSI unit tells: the same names, capacity, write cache, counters and self-tests, seen from the other side.
//! `pass_through` takes a CDB apart and puts the answer together; the other files are the ATA commands (ACS-4).
//!
//! Left out: NCQ, resets by PROTOCOL, security, host protected areas, SCT, selective self-tests, off-line
//! collection by itself. A command that is not here is aborted, as ACS-4 has it.
//!
//! Always true: SMART tells nothing that was not counted. There is no clock here, so there are no power-on hours,
//! and no temperature but the one that the unit's owner has said; nothing predicts a failure.

mod blocks;
mod features;
mod identify;
mod logs;
mod pass_through;
mod smart;

use super::table::Row;
use super::{MediumPlan, Plan, UnitEvent};
use alloc::vec::Vec;
pub use identify::{ata_information, identify};
use wire::ata::{OfflineStatus, PowerMode, ResultRegisters};
use wire::scsi::sense::AtaStatusReturn;

/// The family's rows.
pub const ROWS: &[Row] = &[pass_through::ROW_12, pass_through::ROW_16];

/// What the ATA device remembers from one command to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtaDevice {
    /// SMART is on.
    smart: bool,
    /// How the last off-line routine ended.
    offline: OfflineStatus,
    /// The power mode that the host has asked for, until it is left.
    power: PowerMode,
    /// Times that power came.
    power_cycles: u64,
    /// The registers after the last command (PROTOCOL Fh).
    last: AtaStatusReturn,
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
    /// What `event` leaves. Settings are those after power-on when power comes, and stay otherwise.
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

/// What becomes of an ATA command next.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Action {
    /// It has ended, well or not, with these registers.
    End(ResultRegisters),
    /// Whole blocks of 512 bytes for the host; then it has ended well.
    Send(Vec<u8>),
    /// So many bytes of parameter data from the host.
    Receive(u32),
    /// Something for the medium.
    Medium(MediumPlan),
    /// It does not come to that: the SCSI unit says no.
    Refuse(Plan),
}

impl Action {
    /// It has ended well, and the registers have nothing to say.
    const DONE: Self = Self::End(ResultRegisters::GOOD);
    /// The device does not do that.
    const ABORT: Self = Self::End(ResultRegisters::ABORTED);
}

#[cfg(test)]
mod tests;
